"""Spending by accuracy: the least amount at which errors are small enough."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp

X = pl.col("x")
FRAME = pl.DataFrame({"g": ["a", "b"] * 20, "x": [1] * 40})
SESSIONS: list[tuple[dp.PureDP | dp.ApproxDP | dp.ZCDP, dict[str, Any]]] = [
    (dp.PureDP(10), {}),
    (dp.ApproxDP(10, "1e-6"), {}),
    (dp.ApproxDP(10, "1e-6"), {"delta": "1e-7"}),
    (dp.ZCDP(10), {}),
]


def query(session: dp.Session) -> dp.PrivateQuery:
    frame = session.protect(FRAME, dp.Rows()).group_by("g", keys=["a", "b"])
    return frame.agg(dp.count().alias("n"), X.dp_sum((0, 10)).alias("t"))


@pytest.mark.parametrize(("budget", "more"), SESSIONS, ids=str)
@pytest.mark.parametrize("wanted", [{"n": 30}, {"t": "250.5"}, {"n": 3, "t": 9000}], ids=str)
def test_the_least_spend_is_found(budget: Any, more: dict[str, Any], wanted: Any) -> None:
    session = dp.Session(budget)
    plan = query(session).plan(accuracy=wanted, **more)
    assert all(plan.accuracy(name) <= float(error) for name, error in wanted.items())
    currency = "rho" if isinstance(budget, dp.ZCDP) else "epsilon"
    less = {currency: float(plan.cost.main) * 0.9999, **more}
    worse = query(session).plan(**less)
    assert any(worse.accuracy(name) > float(error) for name, error in wanted.items())


def test_it_is_charged_and_released_like_any_other_spend() -> None:
    session = dp.Session(epsilon=1)
    released = query(session).release(accuracy={"n": 30}, interval=0.95)
    assert released.cost == session.spent == released.plan.cost
    assert (released.frame["n_high"] - released.frame["n"]).max() <= 30
    assert query(session).explain(accuracy={"n": 30}) != ""
    other = session.collect(query(session), accuracy={"n": 40})
    assert other.height == 2


def test_what_does_not_fit_is_refused_before_data_is_read() -> None:
    session = dp.Session(epsilon="0.01")
    with pytest.raises(dp.BudgetExceeded):
        query(session).collect(accuracy={"n": 5})
    assert session.spent.is_zero


@pytest.mark.parametrize(
    ("wanted", "more", "error"),
    [
        ({}, {}, dp.InvalidBudget),
        ({"n": 0}, {}, dp.InvalidBounds),
        ({"n": -1}, {}, dp.InvalidBounds),
        ({"n": float("nan")}, {}, dp.InvalidBounds),
        ({"n": "many"}, {}, dp.InvalidBounds),
        (50, {}, dp.InvalidBounds),
        ({"m": 5}, {}, dp.UnknownColumn),
        ({"n": 5}, {"epsilon": 1}, dp.InvalidBudget),
        ({"n": 5}, {"rho": 1}, dp.InvalidBudget),
        ({"n": 5}, {"delta": "1e-7"}, dp.InvalidBudget),
    ],
)
def test_accuracies_that_make_no_sense_are_refused(
    wanted: Any, more: dict[str, Any], error: type[dp.DPFrameError]
) -> None:
    session = dp.Session(epsilon=1)
    with pytest.raises(error):
        query(session).plan(accuracy=wanted, **more)


def test_errors_that_depend_on_data_are_refused() -> None:
    frame = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    with pytest.raises(dp.InvalidBudget, match="the error of a mean depends"):
        frame.agg(X.dp_mean((0, 5))).plan(accuracy={"x": "0.1"})
    with pytest.raises(dp.UnsupportedOperation, match="depends on the data"):
        frame.agg(r=X.dp_sum((0, 5)) / dp.count()).plan(accuracy={"r": 1})
