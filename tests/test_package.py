"""What the package says of itself: one version with a date, Pythons that are tried, no address that
is not there.
"""

from __future__ import annotations

import re
import runpy
import sys
from datetime import date
from types import ModuleType
from typing import Any

import pytest

import dpframe as dp
from tests.documentation import ROOT
from tests.wheel import IN_SOURCE, PROJECT, VERSIONS, interpreter

CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_there_is_one_version_and_the_changelog_dates_it() -> None:
    assert PROJECT["version"] == dp.__version__
    released = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", CHANGES, re.MULTILINE)
    assert released is not None
    assert released[1] == dp.__version__
    assert date(2026, 1, 1) < date.fromisoformat(released[2])


def test_pythons_that_are_claimed_begin_with_the_oldest_that_is_allowed() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert VERSIONS[0] == oldest
    minors = [int(version.partition(".")[2]) for version in VERSIONS]
    assert minors == list(range(minors[0], minors[0] + len(minors)))


def test_the_long_description_has_no_link_that_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hatchling, which runs this where a package is made, need not be installed here."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    made = hook["LongDescription"]()
    made.root = str(ROOT)
    metadata: dict[str, Any] = {}
    made.update(metadata)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = metadata["readme"]["text"]
    assert "](docs/" in readme
    links = re.findall(r"\]\(([^)]*)\)", shown)
    assert links == re.findall(r"\]\((https?://[^)]*)\)", readme)
    assert links
    words = re.findall(r"(?<!!)\[([^\[\]]+)\]\(docs/[^)]*\)", readme)
    assert len(words) > 20
    assert all(each in shown for each in words)
    code = re.findall(r"^```.*?^```$", readme, re.MULTILINE | re.DOTALL)
    assert code == re.findall(r"^```.*?^```$", shown, re.MULTILINE | re.DOTALL)
    assert PROJECT["dynamic"] == ["readme"]


def test_interpreters_are_found_by_what_they_say() -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert interpreter(own) is not None
    assert interpreter("2.99") is None


def test_no_address_is_made_up() -> None:
    addresses = PROJECT.get("urls", {}).values()
    assert not [found for found in addresses if re.search(r"example|localhost|TODO", found)]
    assert PROJECT["authors"]


def test_what_the_source_archive_must_hold_is_there() -> None:
    assert all((ROOT / name).exists() for name in IN_SOURCE)
