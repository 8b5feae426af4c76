"""Histograms and quantiles of the totals of individuals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.statistics import total_value
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import FLOAT64, INT64, DType, domain_of_dtype
from dpframe.core.tree import Column
from dpframe.errors import DPFrameError

LOTS: dict[str, Any] = {"epsilon": 10**6}
ROWS = pl.DataFrame(
    [
        *({"id": who, "g": "a", "x": x, "y": x / 4} for who, x in ((1, 3), (1, 4), (2, 9), (3, 0))),
        *({"id": who, "g": "b", "x": x, "y": x / 4} for who, x in ((1, 5), (1, 5), (2, -2))),
        {"id": 4, "g": "a", "x": None, "y": None},  # who has no value there
        {"id": None, "g": "a", "x": 7, "y": 1.75},
    ]
)


def people(unit: Any = "id") -> Any:
    return dp.Session(epsilon=10**9).protect(ROWS, unit)


def by_g(expression: pl.Expr) -> dict[str, Any]:
    query = people().group_by("g", keys=["a", "b"]).agg(r=expression)
    found = query.collect(**LOTS)
    return {g: found.filter(pl.col("g") == g)["r"].to_list() for g in ("a", "b")}


def test_individuals_are_counted_by_their_totals() -> None:
    counts = people().agg(pl.col("x").dp_histogram([0, 5, 10, 20], per="unit")).collect(**LOTS)
    assert counts["count"].to_list() == [1, 1, 1]  # 0, 7 and 17; nothing of who has no value
    other = people().agg(
        pl.col("x").dp_histogram(2, bounds=(0, 10), other=True, per="unit")
    ).collect(**LOTS)  # fmt: skip
    assert other["count"].to_list() == [1, 1, 2]  # 17, and who has none
    query = people().group_by("g", keys=["a", "b"])
    found = query.agg(r=pl.col("y").dp_histogram([0.0, 1.0, 2.0, 3.0], per="unit"))
    assert found.collect(**LOTS)["count"].to_list() == [1, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("high", ["0.25", "0.5", "1", "1.5", "3", "40"])
@pytest.mark.parametrize("low", ["-2.5", "-0.5", "0"])
def test_rows_of_integers_count_as_much_as_those_of_floats(low: str, high: str) -> None:
    rows = pl.DataFrame({"id": [i // 2 for i in range(200)], "x": [5, -3, 16_000, -15_999] * 50})
    frame = dp.Session(epsilon=10**9).protect(rows, unit="id")
    bounds = (Fraction(low), Fraction(high))
    total = frame.agg(
        i=pl.col("x").dp_sum(bounds, per="unit"),
        f=pl.col("x").cast(pl.Float64).dp_sum(bounds, per="unit"),
    ).collect(**LOTS)
    true = 50 * min(bounds[1], 2) + 50 * min(bounds[1], 1)
    for found in total.row(0):
        assert found == pytest.approx(float(true), abs=0.01)


def test_quantiles_are_of_totals() -> None:
    assert by_g(pl.col("x").dp_median((0, 20), per="unit"))["a"] == [7]
    listed = pl.col("x").dp_quantile([0.2, 0.9], (-50, 50), per="unit")
    assert by_g(listed) == {"a": [[0, 9]], "b": [[-2, 10]]}
    among = pl.col("y").dp_quantile(0.5, candidates=[0.5, 1.75, 2.25], per="unit")
    assert by_g(among)["a"] == [1.75]


@pytest.mark.parametrize(
    ("dtype", "ends", "total", "exact"),
    [
        (INT64, (0, 9), "Int64", True),
        (INT64, (-9, 0), "Int64", True),
        (INT64, (Fraction(1, 2), 9), "Int64", False),
        (INT64, (0, Fraction(19, 2)), "Int64", False),
        (FLOAT64, (0, 9), "Float64", False),
        (DType("Duration", unit="us"), (0, 9), "Duration", True),
    ],
)
def test_rows_are_added_up_exactly_where_they_can_be(
    dtype: DType, ends: Any, total: str, exact: bool
) -> None:
    lo, hi = map(Fraction, ends)
    value = total_value(Value(Column("x"), domain_of_dtype(dtype)), (lo, hi))
    assert value.domain.dtype.name == total
    assert (value.grid.step == 1) == exact
    assert value.grid.centre == 0
    assert (value.grid.lo * value.grid.step, value.grid.hi * value.grid.step) == (lo, hi)


def test_nobody_needs_a_limit_of_rows() -> None:
    asked = pl.col("x").dp_histogram([0, 5, 10], per="unit")
    (release,) = people().agg(asked).plan(epsilon=1).releases
    assert (release.sensitivity.l1, release.sensitivity.linf) == (1.0, 1.0)
    grouped = people().group_by("g", keys=["a", "b"]).agg(r=asked)
    assert grouped.plan(epsilon=1).releases[0].sensitivity.l1 == 2.0
    found = dp.Session(epsilon=1, delta=1e-6).protect(ROWS, "id").group_by("g")
    with pytest.raises(DPFrameError, match="may be in any number of groups"):
        found.agg(r=asked).plan(epsilon=1, delta=1e-6, limits=None)


def test_by_grouping_sets_each_is_a_table_of_its_own() -> None:
    rolled = people().group_by(dp.rollup("g"), keys={"g": ["a", "b"]})
    found = rolled.agg(pl.col("x").dp_histogram([0, 5, 10, 20], per="unit")).collect(**LOTS)
    assert found["count"].to_list() == [1, 2, 0, 0, 0, 1, 1, 1, 1]


REFUSED: dict[str, tuple[Callable[[], pl.Expr], Any, str]] = {
    "categories": (
        lambda: pl.col("g").dp_histogram(["a", "b"], per="unit"), "id", "n_unique",
    ),
    "no bounds": (
        lambda: pl.col("x").clip(0, 3).dp_histogram(5, per="unit"), "id",
        'dp_histogram(10, bounds=(low, high), per="unit")',
    ),
    "no bounds of a quantile": (
        lambda: pl.col("x").clip(0, 3).dp_quantile(0.5, per="unit"), "id",
        'dp_quantile(0.5, (low, high), per="unit")',
    ),
    "no identifier": (
        lambda: pl.col("x").dp_median((0, 3), per="unit"), dp.Rows(contributions=2),
        "unit=dp.Rows() has none",
    ),
    "not of rows": (lambda: pl.col("x").dp_cdf([1], per="unit"), "id", "dp_histogram"),
    "neither": (lambda: pl.col("x").dp_median((0, 3), per="person"), "id", "per='row'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    made, unit, says = REFUSED[name]
    with pytest.raises(DPFrameError) as refusal:
        people(unit).agg(r=made()).plan(epsilon=1)
    assert says in str(refusal.value)


def test_where_each_individual_has_one_row_its_total_is_that_row() -> None:
    rows = dp.Session(epsilon=10**9).protect(ROWS.drop("id"), dp.Rows())
    asked = [rows.agg(r=pl.col("x").dp_median((0, 20), per=per)) for per in ("row", "unit")]
    first, second = (query.plan(epsilon=1).releases[0] for query in asked)
    assert first.contents == second.contents


def test_plans_say_that_totals_are_counted_and_what_becomes_of_those_outside() -> None:
    def note(asked: pl.Expr) -> str:
        return people().agg(asked).plan(epsilon=1).outputs[0].note

    bins = [0, 5, 10]
    assert note(pl.col("x").dp_histogram(bins, per="unit")).endswith(
        "of individuals by their totals and not of rows, and totals outside the bins are in none: "
        "other=True adds a row for them"
    )
    with_others = note(pl.col("x").dp_histogram(bins, per="unit", other=True))
    assert with_others.endswith("totals outside the bins are in the last row")
    assert note(pl.col("x").dp_median((0, 20), per="unit")) == (
        "the chosen value, of individuals' totals and not of rows; totals outside the bounds count "
        "as the nearer one"
    )
    listed = note(pl.col("y").dp_quantile(0.5, candidates=[0.5, 1.75], per="unit"))
    assert listed == "the chosen value, of individuals' totals and not of rows"


def test_a_ratio_says_where_its_interval_is_asked_for() -> None:
    asked = pl.col("x").dp_ratio("y", (0, 9), denominator_bounds=(0, 9), per="unit").alias("r")
    query = people().agg(asked)
    with pytest.raises(dp.UnsupportedOperation, match=r"\.collect\(\.\.\., interval=0\.95\)"):
        query.plan(epsilon=1).accuracy("r")
    assert "r_low" in query.collect(**LOTS, interval=0.95).columns
