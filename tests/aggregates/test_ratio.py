"""Ratios of totals whose pairs are clamped together: what they are, and where they lie."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.statistics import PairSum
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import INT64, domain_of_dtype
from dpframe.core.interval import Grid
from dpframe.core.tree import Column
from dpframe.errors import InvalidBounds, UnboundedSensitivity, UnsupportedOperation
from tests.audit.test_audit import seeded

LOTS: dict[str, Any] = {"epsilon": 10**6}


def session(**budget: Any) -> dp.Session:
    return dp.Session(**(budget or {"epsilon": 10**9}))


def released(rows: dict[str, list[Any]], expression: pl.Expr, unit: Any = None) -> Any:
    frame = session().protect(pl.DataFrame(rows), unit or dp.Rows())
    return frame.agg(r=expression).collect(**LOTS)["r"].item()


def test_a_pair_beyond_its_bounds_keeps_its_ratio() -> None:
    """The card share of everybody is 0.7; clamped apart, the total of all is clamped more."""
    paid = [10.0, 20.0, 300.0, 5000.0]
    rows = {"card": [0.7 * p for p in paid], "paid": paid}
    together = pl.col("card").dp_ratio("paid", (0, 100), denominator_bounds=(0, 100))
    assert released(rows, together) == pytest.approx(0.7, abs=1e-4)
    apart = pl.col("card").dp_sum((0, 100)) / pl.col("paid").dp_sum((0, 100))
    assert released(rows, apart) > 0.9


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([6, 2], [3, 4], (3 + 2) / (1.5 + 4)),  # (6, 3) counts half
        ([2, 2], [3, 10], (2 + 1) / (3 + 5)),  # (2, 10) counts half
        ([-4, 2], [4, 4], (-1 + 2) / (1 + 4)),  # a lower bound of -1: a quarter
        ([None, 2, 1], [3, None, 4], 3 / 7),  # as plain sums have it
        ([1, 3], [-1, 4], 3 / 4),  # nothing is below a bound of 0
    ],
)
def test_values(a: list[Any], b: list[Any], expected: float) -> None:
    ratio = pl.col("a").dp_ratio("b", (-1, 3), denominator_bounds=(0, 5))
    assert released({"a": a, "b": b}, ratio) == pytest.approx(expected, abs=1e-3)
    floats = {
        name: [None if v is None else float(v) for v in [*column, float("nan")]]
        for name, column in (("a", a), ("b", b))
    }
    assert released(floats, ratio) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("a", "expected"),
    [([-2, 0], -2 / 8), ([-2, 5], -2 / 4), ([-6, -1], -4 / 6), ([0, 0], 0)],
)
def test_bounds_may_end_at_0(a: list[Any], expected: float) -> None:
    """0 is within them, and what is above counts nothing."""
    ratio = pl.col("a").dp_ratio("b", (-3, 0), denominator_bounds=(0, 9))
    found = released({"a": a, "b": [4, 4]}, ratio)
    assert found == pytest.approx(expected, abs=1e-3)
    query = session().protect(pl.DataFrame({"a": a, "b": [4, 4]}), dp.Rows()).agg(ratio)
    (first, second) = query.plan(epsilon=1).releases
    assert "into [-3, 0] and [0, 9]" in first.contents
    assert "into [0, 9] and [-3, 0]" in second.contents


def test_infinite_numbers_count_as_far_ones() -> None:
    ratio = pl.col("a").dp_ratio("b", (-1, 3), denominator_bounds=(0, 5))
    rows = {"a": [float("inf"), 1.0], "b": [5.0, 2.0]}
    assert released(rows, ratio) == pytest.approx((3 + 1) / (0 + 2), abs=1e-3)


def test_totals_of_individuals_are_scaled_and_not_rows() -> None:
    rows = {"id": [1, 1, 1, 2, 2], "a": [3, 3, 3, 1, 1], "b": [6, 0, 6, 2, 2]}
    ratio = pl.col("a").dp_ratio("b", (0, 3), denominator_bounds=(0, 100), per="unit")
    assert released(rows, ratio, "id") == pytest.approx((3 + 2) / (4 + 4), abs=1e-3)


def test_nothing_is_told_of_a_total_within_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = session().protect(pl.DataFrame({"a": [1] * 4, "b": [1] * 4}), dp.Rows())
    query = frame.agg(r=pl.col("a").dp_ratio("b", (0, 1), denominator_bounds=(0, 1)))
    seeded(monkeypatch, 1)  # one in twenty totals is beyond the noise of 95 in 100
    result = query.collect(epsilon="0.001", interval=0.95)
    assert result["r_low"].item() is None
    assert result["r_high"].item() is None
    found = [query.collect(epsilon="0.001")["r"].item() for _ in range(40)]
    assert sum(value is None for value in found) >= 30


def test_both_totals_are_one_draw() -> None:
    frame = session().protect(pl.DataFrame({"a": [1], "b": [1]}), dp.Rows())
    query = frame.agg(r=pl.col("a").dp_ratio("b", (0, 5), denominator_bounds=(0, 9)))
    plan = query.plan(epsilon=1)
    assert {r.aggregate for r in plan.releases} == {"ratio.numerator", "ratio.denominator"}
    assert len({r.draw for r in plan.releases}) == 1
    assert [r.sensitivity.l1 for r in plan.releases] == [5.0, 9.0]
    with pytest.raises(UnsupportedOperation, match=r"interval=0\.95"):
        plan.accuracy("r")


REFUSED: dict[str, tuple[Callable[[], Any], type[dp.DPFrameError], str]] = {
    "no bounds": (lambda: dp.ratio("a", "b"), UnboundedSensitivity, "write bounds=(0, high)"),
    "not below": (
        lambda: dp.ratio("a", "b", (0, 1)),
        UnboundedSensitivity,
        "instead: write denominator_bounds=(0, high)",
    ),
    "away from 0": (lambda: dp.ratio("a", "b", (2, 5)), InvalidBounds, "write bounds=(0, 5)"),
    "empty": (
        lambda: dp.ratio("a", "b", (0, 1), denominator_bounds=(0, 0)),
        InvalidBounds,
        "write denominator_bounds=(0, high)",
    ),
    "times": (lambda: dp.ratio("t", "b", (0, 1)), UnsupportedOperation, "total_seconds"),
    "text": (lambda: dp.ratio("s", "b", (0, 1)), UnsupportedOperation, "needs numbers"),
    "a dp aggregate": (lambda: dp.ratio("a", dp.count()), UnsupportedOperation, "row-wise"),
    "two columns": (lambda: dp.ratio("a", pl.col("b", "a")), UnsupportedOperation, "makes 2"),
    "unit of rows": (
        lambda: dp.ratio("a", "b", (0, 1), denominator_bounds=(0, 1), per="unit"),
        UnsupportedOperation,
        "unit=dp.Rows() has none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    made, error, says = REFUSED[name]
    schema = {"a": pl.Int64, "b": pl.Float64, "t": pl.Duration("us"), "s": pl.String}
    frame = session().protect(pl.LazyFrame(schema=schema), dp.Rows(contributions=2))
    with pytest.raises(error) as refusal:
        frame.agg(r=made()).plan(epsilon=1)
    assert says in str(refusal.value)


def test_bounds_are_inferred_where_they_are_known() -> None:
    frame = session().protect(pl.LazyFrame(schema={"a": pl.UInt8, "b": pl.Boolean}), dp.Rows())
    plan = frame.agg(r=dp.ratio("a", pl.col("b"))).plan(epsilon=1)
    assert [r.sensitivity.l1 for r in plan.releases] == [255.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("spend", [{"epsilon": "0.2"}, {"rho": "0.002"}, {"rho": 1}])
@pytest.mark.parametrize("unit", [dp.Rows(), "who"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_hold_the_exact_ratio(
    spend: dict[str, Any], unit: Any, level: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 2,000 groups of the same rows, whose noise is independent: of many rows, and of so few
    that the lower total is near 0, where intervals have no ends and hold all.
    """
    groups = 2000
    for size in (400, 12):
        paid = [1.0 + (i % 9) for i in range(size)]
        card = [p * (0.3 + 0.1 * (i % 5)) for i, p in enumerate(paid)]
        rows = pl.DataFrame(
            {
                "who": range(groups * size),
                "g": np.repeat(np.arange(groups), size),
                "card": card * groups,
                "paid": paid * groups,
            }
        )
        factors = [min(1.0, 3 / c, 7 / p) for c, p in zip(card, paid, strict=True)]
        exact = sum(f * c for f, c in zip(factors, card, strict=True)) / sum(
            f * p for f, p in zip(factors, paid, strict=True)
        )
        budget: dict[str, Any] = {"rho": 10**6} if "rho" in spend else {"epsilon": 10**6}
        frame: Any = dp.Session(**budget).protect(rows, unit)
        per: Any = "row" if unit != "who" else "unit"
        ratio = dp.ratio("card", "paid", (0, 3), denominator_bounds=(0, 7), per=per)
        if unit == "who":
            frame = frame.limit_groups(1, by="g")
        query = frame.group_by("g", keys=list(range(groups))).agg(r=ratio)
        seeded(monkeypatch, size)
        found = query.collect(**spend, interval=level)
        low, high = (found[f"r_{end}"].to_numpy() for end in ("low", "high"))
        inside = np.isnan(low) | ((low - 1e-6 <= exact) & (exact <= high + 1e-6))
        held = float(inside.mean())
        assert held >= level - 4 * (level * (1 - level) / groups) ** 0.5
        shown = found.drop_nulls()
        assert ((shown["r_low"] <= shown["r"]) & (shown["r"] <= shown["r_high"])).all()


def test_numbers_are_rounded_on_a_grid_of_whole_steps_too() -> None:
    """What is scaled down is no whole number, whatever it was before."""
    whole = Value(Column("a"), domain_of_dtype(INT64))
    grid = Grid(Fraction(1), Fraction(0), 0, 10)
    pair = PairSum(whole, grid, Value(Column("b"), domain_of_dtype(INT64)), grid)
    data = pl.DataFrame({"a": [3, 10, 7], "b": [1, 40, -1]})
    found = data.select(pair.place(pl.col("a"), pl.col("b"), pl))["a"]
    assert found.dtype == pl.Int64
    assert found.to_list() == [3, 3, 0]


@pytest.mark.parametrize(
    ("above", "below", "said"),
    [
        (("x", (0, 9)), ("y", (-9, 9)), 'which is 0 for those with col("x") below 0;'),
        (("x", (-9, 0)), ("y", (0, 9)), 'with col("x") above 0 or col("y") below 0;'),
        (("u", (0, 9)), ("y", (-9, 9)), None),
        (("x", (-9, 9)), ("u", (0, 9)), None),
    ],
)
def test_plans_say_which_pairs_count_nothing(
    above: tuple[str, Any], below: tuple[str, Any], said: str | None
) -> None:
    """A number beyond a bound of 0 leaves nothing of its pair."""
    schema = {"x": pl.Float64, "y": pl.Int64, "u": pl.UInt8, "who": pl.Int64}
    (name, bounds), (other, others) = above, below
    session, people = (dp.Session(epsilon=1) for _ in range(2))
    rows = session.protect(pl.LazyFrame(schema=schema), unit=dp.Rows())
    asked = pl.col(name).dp_ratio(other, bounds, denominator_bounds=others)
    (output,) = rows.agg(asked).plan(epsilon=1).outputs
    assert (said or "one factor for both numbers;") in output.note
    who = people.protect(pl.LazyFrame(schema=schema), unit="who")
    total = pl.col(name).dp_ratio(other, bounds, denominator_bounds=others, per="unit")
    (output,) = who.agg(total).plan(epsilon=1).outputs
    assert ("for those with totals of" in output.note) == (said is not None)
