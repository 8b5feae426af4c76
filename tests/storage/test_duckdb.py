"""The law of storage on DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.running import one_hash
from tests.storage.duckdb_readers import READERS
from tests.storage.law import check

__all__ = ["one_hash"]


@pytest.mark.usefixtures("one_hash")
def test_how_rows_are_stored_decides_nothing(tmp_path: Path) -> None:
    found = check(READERS, tmp_path, trials=45)
    found.verdict(1_000)
    assert not found.refused
    assert found.readers == {reader.name for reader in READERS}
