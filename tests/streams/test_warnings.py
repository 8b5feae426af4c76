"""Results of streams warn of what queries warn of without a look at results."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp

START = date(2027, 1, 1)
ROWS = pl.DataFrame({"user_id": [1, 2], "at": [datetime(2027, 1, 1, 5)] * 2})


@pytest.mark.parametrize("window", [False, True])
def test_keys_that_no_row_can_have_and_rows_of_events(window: bool, tmp_path: Path) -> None:
    session = dp.Session(rho=1, ledger=str(tmp_path / "budget.db"))
    frame = session.protect(ROWS, unit=dp.Rows(), name="visits")
    frame = frame.with_columns(day=pl.col("at").dt.date(), hour=pl.col("at").dt.hour())
    query = frame.group_by("hour", keys=range(1, 25)).agg(dp.count())
    stream = session.stream("hours", query, by="day", start=START, periods=3, rho="0.1")
    with pytest.warns() as caught:
        stream.window(START, 1) if window else stream.release(START)
    assert {w.category for w in caught} >= {dp.EventRows, dp.ImpossibleKeys}
    assert {w.filename for w in caught} == {__file__}
