"""Edges and candidates have one form in plans, and mean the same in each."""

from __future__ import annotations

import json
from fractions import Fraction
from math import lcm
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.exact import numbers_of, rationals
from dpframe.kernel import Refused, verify
from dpframe.kernel import plan as p
from dpframe.kernel.moves import cells_in
from dpframe.kernel.plan import read, write
from dpframe.kernel.render import render
from tests.kernel.oracle import each_of

F = Fraction
X = p.Col("x")
SCAN = p.Scan("data", (("x", "Float64"),), p.Rows(1), None)
EXACT = st.fractions(min_value=-9, max_value=9, max_denominator=12)
LISTS = st.builds(
    lambda first, step, size: [first + n * step for n in range(size)],
    EXACT,
    EXACT.map(abs).filter(bool),
    st.integers(2, 80),
) | st.lists(EXACT, min_size=2, max_size=80, unique=True).map(sorted)
LONG = st.builds(
    lambda power, size, bits: [n**power + F(1, 1 << bits) for n in range(size)],
    st.integers(1, 2),
    st.integers(64, 65),
    st.integers(4094, 4097),
)


def forms(numbers: list[Fraction]) -> list[p.Numbers]:
    """All forms in which rising numbers can stand."""
    under = lcm(*(number.denominator for number in numbers))
    found: list[p.Numbers] = [tuple(numbers)]
    found += [p.Ratios(tuple(int(n * under * k) for n in numbers), under * k) for k in (1, 3)]
    step = numbers[1] - numbers[0]
    if all(n == numbers[0] + place * step for place, n in enumerate(numbers)):
        found.append(p.Progression(numbers[0], step, len(numbers)))
    return found


def cells(numbers: p.Numbers) -> list[p.Edges | p.UpTo | p.Between]:
    """Cells of each kind."""
    return [
        p.Edges(X, numbers, True),
        p.Edges(X, numbers, False),
        p.UpTo(X, numbers, True),
        p.UpTo(X, numbers, False),
        p.Between(X, numbers),
    ]


def plans_of(numbers: p.Numbers) -> list[p.Plan]:
    """Plans that count and choose in these cells, and state more than they cost."""
    draws = [
        p.Draw(p.Vector((0,), ((1,),), (), 1, False), p.Laplace(F(3), 1), F(9), F(0)),
        p.Draw(p.Rank(0, F(1, 3)), p.Exponential(F(50)), F(9), F(0)),
        p.Draw(p.Rank(0, F(1, 3)), p.Laplace(F(900), 1), F(9), F(0)),
    ]
    made = []
    for one in cells(numbers):
        table = p.Table(0, None, one, p.One())
        each = draws if isinstance(one, p.Between) else draws[:1]
        made += [
            p.Plan(way, (SCAN,), (table,), (draw,), "epsilon", F(9), F(0), ())
            for draw in each
            for way in ("add-remove", "change-one")
        ]
    return made


@given(LISTS)
def test_numbers_mean_the_same_in_each_form(numbers: list[Fraction]) -> None:
    for one in forms(numbers):
        assert each_of(one) == tuple(numbers)
        assert [*map(cells_in, cells(one))] == [*map(cells_in, cells(tuple(numbers)))]
        for plan, listed in zip(plans_of(one), plans_of(tuple(numbers)), strict=True):
            assert verify(plan) == verify(listed)


@given(LISTS | LONG)
def test_the_form_that_the_planner_gives_is_read_and_no_other(numbers: list[Fraction]) -> None:
    right = numbers_of(numbers)
    assert right == numbers_of(rationals(numbers))
    assert each_of(right) == tuple(numbers)
    every: list[p.Numbers] = [right, *forms(numbers)]
    for one in every:
        for plan in plans_of(one):
            if one == right:
                assert read(write(plan)) == plan
            else:
                with pytest.raises(Refused, match="another form"):
                    read(write(plan))


@given(LISTS, st.integers(0, 79))
def test_numbers_that_do_not_rise_are_refused(numbers: list[Fraction], place: int) -> None:
    at = place % (len(numbers) - 1)
    numbers[at + 1] = numbers[at] - (place % 2)
    for one in [tuple(numbers), p.Ratios(tuple(int(n * 27720) for n in numbers), 27720)]:
        for plan in plans_of(one):
            with pytest.raises(Refused, match="do not increase"):
                verify(plan)


@pytest.mark.parametrize(
    "numbers",
    [
        p.Progression(F(0), F(0), 99),
        p.Progression(F(0), F(-1), 99),
        p.Progression(F(0), F(1), 0),
        p.Progression(F(0), F(1), -1),
        p.Ratios((1, 2), 0),
        p.Ratios((1, 2), -1),
        p.Ratios(tuple(n * n for n in range(70)), 0),
        p.Ratios(tuple(n * n for n in range(70)), -1),
    ],
)
def test_malformed_numbers_are_refused(numbers: p.Numbers) -> None:
    for plan in plans_of(numbers):
        with pytest.raises(Refused, match="do not increase"):
            verify(plan)
        with pytest.raises(Refused, match="another form"):
            read(write(plan))


def test_no_rule_is_written_out() -> None:
    """A plan of a few bytes takes no time, whatever it states."""
    for plan in plans_of(p.Progression(F(0), F(1), 10**300)):
        assert read(write(plan)) == plan
        assert "in steps of 1" in render(plan)
        if not isinstance(plan.draws[0].what, p.Rank):
            assert verify(plan).costs[0] < 1


def test_other_numbers_have_other_texts() -> None:
    lists = [[F(n, k) for n in range(size)] for size in (70, 71) for k in (1, 2)]
    lists += [[F(n * n, k) + more for n in range(70)] for k in (1, 2) for more in (0, 1)]
    lists += [[F(n * n) + (n == 50) for n in range(70)]]
    texts = {render(plan) for one in lists for plan in plans_of(numbers_of(one))[:1]}
    assert len(texts) == len(lists)


def test_the_denominator_is_that_of_the_numbers() -> None:
    halves = [F(n * n, 2) for n in range(70)]
    assert numbers_of(halves) == p.Ratios(tuple(n * n for n in range(70)), 2)
    assert numbers_of([*map(F, range(64))]) == tuple(map(F, range(64)))
    assert numbers_of([*map(F, range(65))]) == p.Progression(F(0), F(1), 65)


WRITTEN: dict[str, pl.Expr] = {
    "equal bins": dp.col("x").dp_histogram(1000, bounds=(0, Fraction("0.3"))),
    "a range": dp.col("i").dp_histogram(range(0, 700, 7)),
    "a list of decimals": dp.col("x").dp_histogram([n / 10 for n in range(300)]),
    "candidates": dp.col("x").dp_quantile(0.5, candidates=[n / 100 for n in range(100)]),
    "up to equal edges": dp.col("x").dp_cdf(1000, bounds=(Fraction("0.1"), 7)),
    "up to listed edges": dp.col("x").dp_cdf([n / 10 for n in range(300)]),
    "up to edges of whole numbers": dp.col("i").dp_cdf(70, bounds=(0, 1000)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_users_write_at_equal_distances_is_a_rule(name: str) -> None:
    frame = pl.DataFrame({"x": [1.0], "i": [1]})
    people = dp.Session(epsilon=9).protect(frame, unit=dp.Rows())
    plan = people.agg(WRITTEN[name]).plan(epsilon=1)
    assert plan.physical is not None
    (table,) = plan.physical.tables
    assert isinstance(table.cells, p.Edges | p.Between | p.UpTo)
    of = table.cells.candidates if isinstance(table.cells, p.Between) else table.cells.edges
    assert isinstance(of, p.Progression)
    assert len(write(plan.physical)) < 9000


def test_edges_of_whole_numbers_stand_there_before_they_are_rounded() -> None:
    """A whole number is at or below an edge just where it is at or below its floor."""
    frame = pl.DataFrame({"i": [1]})
    people = dp.Session(epsilon=9).protect(frame, unit=dp.Rows())
    plan = people.agg(dp.col("i").dp_cdf(7, bounds=(0, 100))).plan(epsilon=1)
    assert plan.physical is not None
    (table,) = plan.physical.tables
    assert table.cells == p.UpTo(p.Col("i"), tuple(F(100 * n, 7) for n in range(1, 8)), False)


def _small() -> Any:
    (plan, *_) = plans_of(numbers_of([F(n * n) for n in range(70)]))
    return plan


@pytest.mark.parametrize("numerators", [["1"], [1.5], [True, *range(70)], None, {}])
def test_other_json_of_numbers_is_refused(numerators: object) -> None:
    said = json.loads(write(_small()))
    assert read(json.dumps(said, separators=(",", ":"))) == _small()
    said["tables"][0]["cells"]["edges"]["numerators"] = numerators
    with pytest.raises(Refused):
        read(json.dumps(said, separators=(",", ":")))
