"""Budgets for each month of people on Spark: what is charged is what is read there, whatever time
zone and rules the Spark session has.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.test_windows import FRAME, MONTHLY
from tests.engines.spark import frames, session

__all__ = ["session"]

pytestmark = pytest.mark.spark
AT = pl.col("at")


def test_a_budget_for_each_month_on_spark(session: Any, tmp_path: Path) -> None:
    """Months end as the times in the column do, far from those of the Spark session's zone; a query
    over two is charged to both, and a second session of the ledger goes on with what is left.
    """
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    session.conf.set("spark.sql.ansi.enabled", "true")
    orders = frames(session, tmp_path, {"orders": FRAME})["orders"]

    def opened() -> tuple[dp.Session, dp.PrivateFrame]:
        of = dp.Session(epsilon=100, per="1mo", ledger=tmp_path / "budget.db")
        return of, of.protect(orders, unit=MONTHLY, name="orders")

    def spent(of: dp.Session) -> list[Any]:
        days = [date(2026, 10, 1), date(2026, 11, 30), date(2026, 12, 31), None]
        return [100 - of.remaining_in(day).main for day in days]

    of, people = opened()
    later = people.filter((AT.dt.year() == 2026) & (AT.dt.month() >= 11))
    asked = later.agg(n=pl.col("user").dp_n_unique())
    assert asked.collect(epsilon=60).item() == 3  # without noise but for odds of e**-60
    assert spent(of) == [0, 60, 60, 0]
    again, people = opened()
    assert spent(again) == [0, 60, 60, 0]
    december = people.filter((AT.dt.year() == 2026) & (AT.dt.month() == 12))
    for query in (december.dp_n_unique("user"), people.dp_n_unique("user")):
        with pytest.raises(dp.BudgetExceeded):
            query.collect(epsilon=41)
    assert spent(again) == [0, 60, 60, 0]
    assert again.history["windows"].to_list() == ["2026-11 and 2026-12"]
