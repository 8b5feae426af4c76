"""The law of storage on Polars."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.running import one_hash
from tests.storage.law import check
from tests.storage.polars_readers import READERS

__all__ = ["one_hash"]

SAFE = [reader for reader in READERS if reader.name in ("a table", "rows in memory")]


@pytest.mark.usefixtures("one_hash")
def test_how_rows_are_stored_decides_nothing(tmp_path: Path) -> None:
    check(SAFE, tmp_path, trials=20).verdict(300)
