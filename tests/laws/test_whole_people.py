"""What a budget for each window of time says of a whole person: present in n windows, it loses up
to n times the epsilon, whether one query reads them all or n queries one each, and no more.

Losses are exact: noise of the discrete Laplace with scale s, added to numbers that a person moves
by d in all, tells frames with and without the person apart by d / s at most, and does so in its
tails; Gaussian noise with variance v by a rho of (sum of squares) / (2 v).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.payer import Spend, prepare_for
from dpframe.api.query import PrivateQuery, parts
from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace
from tests.laws.amounts import examples
from tests.laws.neighbours import exact_tables

AT, WHO = pl.col("at"), pl.col("who")
SCHEMA = {"who": pl.Int64, "at": pl.Datetime("us"), "g": pl.String, "x": pl.Int64}
START = datetime(2027, 1, 1)
EPSILON, RHO = Fraction(1, 2), Fraction(1, 8)
NOISES = ["discrete_laplace", "discrete_gaussian"]
QUERIES: dict[str, Any] = {
    "people": lambda frame, noise: frame.agg(n=WHO.dp_n_unique(mechanism=noise)),
    "rows": lambda frame, noise: frame.limit_rows(3).agg(n=dp.count(mechanism=noise)),
    "sums": lambda frame, noise: frame.agg(
        s=pl.col("x").dp_sum((-4, 9), per="unit", mechanism=noise)
    ),
    "groups": lambda frame, noise: (
        frame.limit_groups(2, by="g")
        .limit_rows(2, by="g")
        .group_by("g", keys=["a", "b", "c"])
        .agg(n=dp.count(mechanism=noise))
    ),
    "by month": lambda frame, noise: frame.group_by(m=AT.dt.month(), keys={"m": range(1, 13)}).agg(
        n=WHO.dp_n_unique(mechanism=noise)
    ),
}


def month(number: int) -> datetime:
    return datetime(2027 + number // 12, number % 12 + 1, 1)


def within(frame: dp.PrivateFrame, first: int, last: int) -> dp.PrivateFrame:
    """The months from one to another."""
    return frame.filter(month(first) <= AT, month(last + 1) > AT)


def session_of(noise: str) -> dp.Session:
    budget: dict[str, Any] = {"epsilon": EPSILON} if noise == "discrete_laplace" else {"rho": RHO}
    return dp.Session(**budget, per="1mo")


def protected(of: dp.Session, rows: pl.DataFrame) -> dp.PrivateFrame:
    return of.protect(rows, unit=dp.Identifier("who", window="1mo", time="at"), name="v")


def loss(query: PrivateQuery, noise: str, whole: pl.DataFrame, without: pl.DataFrame) -> Fraction:
    """By how much what a query draws tells two frames apart."""
    asked, _, payer = parts(query)
    assert payer is not None
    spend = Spend(epsilon=EPSILON) if noise == "discrete_laplace" else Spend(rho=RHO)
    prepared = prepare_for(payer, asked, spend)
    (one,) = prepared.draws
    (both, alone) = (exact_tables(asked, rows, salt=7) for rows in (whole, without))
    moved = [
        int(a - b)
        for table in both
        for a, b in zip(
            both[table].dense(1).reshape(-1), alone[table].dense(1).reshape(-1), strict=True
        )
    ]
    if isinstance(one.law, DiscreteLaplace):
        return Fraction(sum(map(abs, moved))) / one.law.scale
    assert isinstance(one.law, DiscreteGaussian)
    return Fraction(sum(d * d for d in moved)) / (2 * one.law.sigma_squared)


@st.composite
def people(draw: st.DrawFn) -> tuple[int, pl.DataFrame, pl.DataFrame]:
    """In how many months, from January on, a person is present; frames with and without it."""
    n = draw(st.integers(1, 3))
    cells = st.tuples(st.sampled_from("abcd"), st.integers(-9, 12), st.integers(0, 27))

    def rows(who: int, number: int, least: int) -> list[tuple[Any, ...]]:
        found = draw(st.lists(cells, min_size=least, max_size=4))
        return [(who, month(number) + timedelta(days=day), g, x) for g, x, day in found]

    others = [row for who in (2, 3) for number in range(3) for row in rows(who, number, 0)]
    person = [row for number in range(n) for row in rows(1, number, 1)]
    whole, without = (pl.DataFrame(r, SCHEMA, orient="row") for r in (others + person, others))
    return n, whole, without


def losses(
    ask: Any, noise: str, n: int, whole: pl.DataFrame, without: pl.DataFrame
) -> tuple[Fraction, Fraction]:
    """Of one query over all months, and of one for each month together."""
    frame = protected(session_of(noise), whole)
    at_once = loss(ask(within(frame, 0, n - 1), noise), noise, whole, without)
    each = [loss(ask(within(frame, m, m), noise), noise, whole, without) for m in range(n)]
    return at_once, sum(each, Fraction(0))


@examples(5, 1_000)
@given(
    st.sampled_from([*QUERIES]),
    st.sampled_from(["discrete_laplace", "discrete_gaussian"]),
    people(),
)
def test_a_person_loses_no_more_than_as_often_as_it_is_there(
    name: str, noise: str, made: tuple[int, pl.DataFrame, pl.DataFrame]
) -> None:
    n, whole, without = made
    at_once, each = losses(QUERIES[name], noise, n, whole, without)
    if noise == "discrete_laplace":
        assert max(at_once, each) <= n * EPSILON
    else:
        assert at_once <= n * n * RHO
        assert each <= n * RHO


@pytest.mark.parametrize("n", [1, 2, 3])
def test_and_up_to_that(n: int) -> None:
    """A count of people moves by one for each month that is read."""
    rows = [(1, month(number), "a", 0) for number in range(n)]
    whole, without = (pl.DataFrame(r, SCHEMA, orient="row") for r in (rows, rows[:0]))
    ask = QUERIES["people"]
    assert losses(ask, "discrete_laplace", n, whole, without) == (n * EPSILON, n * EPSILON)
    at_once, each = losses(ask, "discrete_gaussian", n, whole, without)
    assert (at_once, each) == (n * n * RHO, n * RHO)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("at_once", [False, True])
def test_it_is_charged_once_and_says_so(n: int, at_once: bool) -> None:
    """The budget of each month pays what is spent on it; of the whole person plans say the rest."""
    of = session_of("discrete_laplace")
    rows = pl.DataFrame([(1, month(m), "a", 0) for m in range(n)], SCHEMA, orient="row")
    frame = protected(of, rows)
    asked = [(0, n - 1)] if at_once else [(m, m) for m in range(n)]
    for first, last in asked:
        query = within(frame, first, last).agg(n=WHO.dp_n_unique())
        assert "a person in n months is protected n times less" in query.explain(
            details=True, epsilon=EPSILON
        )
        query.collect(epsilon=EPSILON)
    assert of.spent == dp.PureDP(EPSILON)
    for m in range(n):
        assert of.remaining_in(month(m).date()).is_zero
