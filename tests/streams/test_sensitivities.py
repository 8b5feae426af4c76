"""What one individual moves through all nights, against what plans declare: streams of frames that
grow, with late rows, nights that are caught up, limits and both adjacencies.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.draw import part_of
from dpframe.frames.nights import Schedule, first_limits
from dpframe.workloads import PeriodTree, SquareRoot, best_tree, sum_of_squares
from tests.laws.amounts import amounts
from tests.streams.nights import (
    KEYS,
    SCHEMA,
    START,
    Row,
    assert_within,
    column,
    moved,
    prepared_of,
    reads_of,
    vectors,
)

PERIODS = 5
NIGHTS = PERIODS + 3
SCHEDULE = Schedule("day", "1d", START, PERIODS)
SPENDS: list[dict[str, Any]] = [{"rho": 1}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}]
ME = 0


def asked(frame: dp.PrivateFrame, grouped: bool, per: Any = "row") -> dp.PrivateQuery:
    outputs = [
        dp.count(per=per, bounds=None if per == "row" else (0, 2)).alias("n"),
        dp.sum("x", (-2, 3), per=per).alias("s"),
    ]
    return frame.group_by("key", keys=KEYS).agg(*outputs) if grouped else frame.agg(*outputs)


def private(spend: dict[str, Any], unit: Any) -> dp.PrivateFrame:
    return dp.Session(**spend).protect(pl.LazyFrame(schema=SCHEMA), unit=unit)


def a_row(who: int, growing: bool) -> st.SearchStrategy[Row]:
    """A row that comes on some night and stays; or, where it may vanish, is there on any nights."""
    nights = st.integers(0, NIGHTS).map(lambda first: frozenset(range(first, NIGHTS + 1)))
    if not growing:
        nights = st.frozensets(st.integers(0, NIGHTS))
    return st.builds(
        Row,
        st.just(who),
        st.integers(-1, PERIODS),
        st.sampled_from(KEYS),
        st.sampled_from([-5, -2, 0, 1, 3, 9, None]),
        nights,
    )


def some_rows(who: int, most: int, growing: bool = True) -> st.SearchStrategy[list[Row]]:
    return st.lists(a_row(who, growing), max_size=most)


def check(prepared: Any, before: list[Row], after: list[Row], reads: list[int]) -> None:
    two = [vectors(prepared, SCHEDULE, rows, reads) for rows in (before, after)]
    for part, one, other in zip(prepared.parts, *two, strict=True):
        assert_within(moved(one, other), part.sensitivity)


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@amounts("examples", 8, 200)
def test_rows_that_come_and_go(
    spend: dict[str, Any], grouped: bool, contributions: int, examples: int
) -> None:
    unit = dp.Rows(contributions=contributions)
    prepared = prepared_of(asked(private(spend, unit), grouped), SCHEDULE, **spend)

    @settings(max_examples=examples)
    @given(some_rows(1, 3), some_rows(ME, contributions, growing=False), reads_of(PERIODS))
    def law(others: list[Row], mine: list[Row], reads: list[int]) -> None:
        check(prepared, others, [*others, *mine], reads)

    law()


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@amounts("examples", 8, 200)
def test_rows_that_change(
    spend: dict[str, Any], grouped: bool, contributions: int, examples: int
) -> None:
    unit = dp.Rows("change-one", contributions=contributions)
    prepared = prepared_of(asked(private(spend, unit), grouped), SCHEDULE, **spend)
    k = contributions
    mine = st.lists(a_row(ME, growing=True), min_size=k, max_size=k)

    @settings(max_examples=examples)
    @given(some_rows(1, 2), mine, mine, reads_of(PERIODS))
    def law(others: list[Row], one: list[Row], other: list[Row], reads: list[int]) -> None:
        other = [dataclasses.replace(b, nights=a.nights) for a, b in zip(one, other, strict=True)]
        check(prepared, [*others, *one], [*others, *other], reads)

    law()


LIMITS: dict[str, Any] = {
    "first row": (lambda f: f.limit_rows(1, order_by="day"), "row"),
    "first rows": (lambda f: f.limit_rows(3, order_by="day"), "row"),
    "first dates": (
        lambda f: f.limit_groups(2, by="day", order_by="day").limit_rows(1, by="day"),
        "row",
    ),
    "first dates, rows of each key": (
        lambda f: (
            f.limit_groups(3, by="day", order_by="day")
            .limit_rows(2, by=["day", "key"])
            .limit_rows(50)
        ),
        "row",
    ),
    "first dates, each once": (lambda f: f.limit_groups(2, by="day", order_by="day"), "unit"),
    "first rows, each once": (lambda f: f.limit_rows(3, order_by="day"), "unit"),
    "every date, each once": (lambda f: f, "unit"),
    "first dates, then a filter": (
        lambda f: (
            f.limit_groups(2, by="day", order_by="day")
            .limit_rows(1, by="day")
            .filter(pl.col("key") == "a")
        ),
        "row",
    ),
    "first rows of a filtered frame": (
        lambda f: f.filter(pl.col("key") == "a").limit_rows(2, order_by="day"),
        "row",
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("spend", SPENDS[:2], ids=str)
@amounts("examples", 8, 200)
def test_individuals_whose_rows_come_late(
    spend: dict[str, Any], grouped: bool, limit: str, examples: int
) -> None:
    narrowed, per = LIMITS[limit]
    query = asked(narrowed(private(spend, "who")), grouped, per)
    if "each key" in limit and not grouped:  # which says nothing of a date
        with pytest.raises(dp.UnboundedSensitivity, match="in all nights of the stream"):
            prepared_of(query, SCHEDULE, **spend)
        return
    prepared = prepared_of(query, SCHEDULE, **spend)

    @settings(max_examples=examples)
    @given(some_rows(1, 3), some_rows(ME, 7), reads_of(PERIODS))
    def law(others: list[Row], mine: list[Row], reads: list[int]) -> None:
        check(prepared, others, [*others, *mine], reads)

    law()


def test_first_limits_are_attained() -> None:
    """Rows on the first dates, each on time, move as much as is declared."""
    on_time = [Row(ME, d, "a", 3, frozenset(range(d, NIGHTS))) for d in range(PERIODS)]
    for limit in ("first rows", "first dates", "first row"):
        narrowed, per = LIMITS[limit]
        prepared = prepared_of(
            asked(narrowed(private(SPENDS[0], "who")), True, per), SCHEDULE, rho=1
        )
        mine = on_time
        if limit != "first dates":
            mine = [on_time[0]] * 3
        found = vectors(prepared, SCHEDULE, mine, list(range(PERIODS)))
        none = vectors(prepared, SCHEDULE, [], list(range(PERIODS)))
        for part, one, other in zip(prepared.parts, none, found, strict=True):
            assert moved(one, other) == dataclasses.replace(
                part.sensitivity, l0=moved(one, other).l0
            )


def test_no_step_that_keeps_other_rows_each_night_comes_before_a_first_limit() -> None:
    frame = private(SPENDS[0], "who")
    first = frame.limit_rows(2, order_by="day")
    for narrowed, kept in (
        (first, [2]),
        (first.limit_rows(1), [2]),
        (frame.filter(pl.col("x") > 0).limit_rows(3, order_by="day"), [3]),
        (frame.limit_rows(9).limit_rows(2, order_by="day"), []),
        (frame.limit_groups(2, by="key").limit_rows(2, order_by="day"), []),
    ):
        assert [limit.n for limit in first_limits(narrowed._relation, "day")] == kept


def test_a_limit_by_hash_would_be_wrong() -> None:
    """Of one row at a time, another one each night, the first limit would see five columns."""
    nightly = [Row(ME, d, "a", 3, frozenset({d})) for d in range(PERIODS)]
    narrowed, per = LIMITS["first row"]
    prepared = prepared_of(asked(narrowed(private(SPENDS[0], "who")), False, per), SCHEDULE, rho=1)
    found, none = (
        vectors(prepared, SCHEDULE, rows, list(range(PERIODS))) for rows in (nightly, [])
    )
    apart = moved(none[0], found[0])
    assert apart.l2_squared > prepared.parts[0].sensitivity.l2_squared


@pytest.mark.parametrize("periods", [1, 2, 5, 6])
@pytest.mark.parametrize("branching", [0, 2, 3])
def test_columns_by_brute_force(periods: int, branching: int) -> None:
    sums = PeriodTree(periods, branching, 3) if branching else SquareRoot(periods)
    columns = []
    for j in range(periods):
        exact = pl.Series([int(i == j) for i in range(periods)]).to_numpy()
        drawn = [sums.sums(exact, t) for t in range(periods)]
        columns.append([int(x) for one in drawn for x in one.reshape(-1)])
    assert len(columns[0]) == sums.drawn_rows
    for run in range(1, periods + 1):
        declared = column(sums, run)
        seen = []
        for size in range(1, run + 1):
            for some in itertools.combinations(columns, size):
                whole = [sum(each) for each in zip(*some, strict=True)]
                seen.append((sum(whole), sum(x * x for x in whole), max(whole)))
        most = tuple(max(norm) for norm in zip(*seen, strict=True))
        stated = declared.l1, declared.l2_squared, declared.linf
        assert all(a <= b for a, b in zip(most, stated, strict=True))
        if not branching:
            assert most == stated


def test_a_tree_is_for_pure_epsilon_alone() -> None:
    for spend in SPENDS:
        prepared = prepared_of(asked(private(spend, dp.Rows()), True), SCHEDULE, **spend)
        pure = spend == {"epsilon": 1}
        assert {bool(part_of(one).levels) for one in prepared.draws} == {pure}
        name = "discrete_laplace" if pure else "discrete_gaussian"
        assert {one.law.name for one in prepared.draws} == {name}


def test_the_error_of_a_year_is_that_of_the_formula() -> None:
    """Root mean squares over 365 days, for a column of norm 1: 2.78 of the square root, where
    daily counts that are added up have 13.5 and a job a day 19.1.
    """
    days, sums = 365, SquareRoot(365)
    c = [math.comb(2 * k, k) / 4**k for k in range(days)]
    squares = list(itertools.accumulate(x * x for x in c))
    formula = math.sqrt(sum(squares) / days * squares[-1])
    norm = column(sums, 1).l2_squared
    each = [sum_of_squares(sums.total_factors(t)) * norm for t in range(days)]
    assert math.sqrt(sum(each) / days) == pytest.approx(formula, rel=1e-3)
    assert formula == pytest.approx(2.78, abs=0.01)
    assert formula < 0.25 * math.sqrt(days)
    daily = math.sqrt(sum(range(1, days + 1)) / days)
    tree = best_tree(days)
    levels = [tree.levels**2 * sum_of_squares(tree.total_factors(t)) for t in range(days)]
    assert math.sqrt(sum(levels) / days) < 0.7 * daily
