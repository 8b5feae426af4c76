"""The law of storage on Polars."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.usefixtures("one_hash")
def test_that_it_decides_nothing_in_many_trials(seed: int, tmp_path: Path) -> None:
    check(READERS, tmp_path, trials=130, queries_each=20, seed=seed).verdict(2_500)
