"""Folders of ledgers' tests, which are removed at once: there are thousands."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A key and the kind of place have nothing to do with each other: what is tried with each is
    tried on a server with a key, and without one in the slow suite.
    """
    for item in items:
        found = getattr(getattr(item, "callspec", None), "params", {})
        if found.get("place") == "postgresql" and found.get("key", "") is None:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    place = tempfile.mkdtemp()
    yield Path(place)
    shutil.rmtree(place, ignore_errors=True)
