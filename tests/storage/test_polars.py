"""The law of storage on Polars."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from tests.engines.running import one_hash
from tests.storage.law import check
from tests.storage.polars_readers import READERS

__all__ = ["one_hash"]


@pytest.mark.always
@pytest.mark.usefixtures("one_hash")
def test_how_rows_are_stored_decides_nothing(tmp_path: Path) -> None:
    found = check(READERS, tmp_path, trials=75)
    found.verdict(1_000)
    assert found.readers == {reader.name for reader in READERS}


@pytest.mark.parametrize("through_pyarrow", [True, False])
def test_rows_of_a_delta_table_are_counted_where_no_column_is_needed(
    through_pyarrow: bool, tmp_path: Path
) -> None:
    pytest.importorskip("deltalake")
    pl.DataFrame({"x": [1.0, None, 3.0], "g": ["a", "b", "b"]}).write_delta(tmp_path)
    frame = pl.scan_delta(tmp_path, use_pyarrow=through_pyarrow)
    session = dp.Session(epsilon=10**8)
    counted = session.protect(frame, dp.Rows()).dp_count().collect(epsilon=10**6)
    assert counted.item() == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.usefixtures("one_hash")
def test_that_it_decides_nothing_in_many_trials(seed: int, tmp_path: Path) -> None:
    check(READERS, tmp_path, trials=130, queries_each=20, seed=seed).verdict(2_500)
