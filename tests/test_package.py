"""What the package says of itself: one version with a date, Pythons that are tried, no address that
is not there.
"""

from __future__ import annotations

import re
import sys
from datetime import date

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
