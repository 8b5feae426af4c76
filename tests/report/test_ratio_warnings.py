"""Plans warn of ratios of totals that are clamped separately."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

SCHEMA = {"who": pl.Int64, "spent": pl.Float64, "card": pl.Float64}


def warned(of: dp.DPExpr) -> bool:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), unit="who")
    plan = frame.limit_rows(5).agg(of.alias("r")).plan(epsilon=1)
    return any("clamped separately" in warning for warning in plan.warnings)


def total(name: str) -> dp.DPExpr:
    return dp.sum(name, (0, 100), per="unit")


@pytest.mark.parametrize(
    ("of", "biased"),
    [
        (total("card") / total("spent"), True),
        ((total("card") / total("spent") * 100).round(1), True),
        (100 * total("card") / (total("spent") + 1), True),
        (total("card") / dp.count(per="unit", bounds=(0, 9)), False),
        (total("card") / 5, False),
        (total("card") - total("spent"), False),
        (dp.sum("card", (0, 9)) / dp.sum("spent", (0, 9)), False),
        (total("card"), False),
    ],
)
def test_ratios_of_clamped_totals(of: dp.DPExpr, biased: bool) -> None:
    assert warned(of) is biased
