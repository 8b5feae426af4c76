"""A folder with data, in memory where that is possible: each charge waits for the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import PEOPLE
from tests.ledger.conftest import tmp_path

__all__ = ["folder", "tmp_path"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    return tmp_path
