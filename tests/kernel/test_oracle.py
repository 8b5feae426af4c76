"""The second judge notices lies: each of these plans states a little less than it costs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dpframe.kernel import Plan
from dpframe.kernel import plan as p
from tests.kernel.oracle import Meaningless, judge, nodes

F = Fraction
COLUMNS = (("x", "Float64"), ("g", "String"), ("h", "Int64"), ("b", "Boolean"))
ROWS = p.Scan("A", (*COLUMNS, ("l", "List(Int64)")), p.Rows(1), None)
PEOPLE = p.Scan("A", (*COLUMNS, ("p", "String"), ("t", "Date")), p.Person("p", None, None), None)
WEEKS = replace(PEOPLE, unit=p.Person("p", "1w", "t"))
X, G, H, B = map(p.Col, "xghb")
GRID = p.Grid(F(1), F(0), -3, 5)
EVEN = p.Grid(F(1), F(0), -5, 5)
ARCH = (p.Valued(X), p.Placed(X, EVEN), p.Squared(X, EVEN, 0))
POINTS = p.Points(X, F(0), F(1), 3)
ONE, TWO = p.KeepRows(0, 1, (), None), p.KeepRows(0, 2, (), None)
S = F(7)
LAPLACE = p.Laplace(S, 1)
SAME = tuple((name, p.Col(name)) for name in ("x", "h", "p"))


def plan(
    cost: Fraction,
    *frames: p.Frame,
    adds: tuple[p.Adds, ...] = (p.One(),),
    by: tuple[str, ...] | tuple[p.Row, ...] = (),
    sizes: tuple[int, ...] = (),
    kept: tuple[int, ...] | None = None,
    cells: p.Cells | None = None,
    run: int = 1,
    total: bool = False,
    matrix: tuple[tuple[int, ...], ...] | None = None,
    law: p.Law = LAPLACE,
    what: p.What | None = None,
    change: bool = False,
    rho: bool = False,
) -> Plan:
    """A plan of one draw."""
    rows = [p.Col(row) if isinstance(row, str) else row for row in by]
    keys = p.Listed(tuple((f"k{n}", row) for n, row in enumerate(rows)), sizes, "keys")
    tables = tuple(p.Table(len(frames) - 1, keys if by else None, cells, add) for add in adds)
    places = tuple(range(len(adds)))
    if matrix is None:
        matrix = tuple(tuple(int(i == j) for j in places) for i in places)
    kept = tuple(range(len(by))) if kept is None else kept
    what = what or p.Vector(places, matrix, kept, run, total)
    neighbours = "change-one" if change else "add-remove"
    draws = (p.Draw(what, law, cost, F(0)),)
    measure = "rho" if rho else "epsilon"
    return Plan(neighbours, frames, tables, draws, measure, cost, F(0), ())  # type: ignore[arg-type]


def other(operation: str, row: p.Row) -> p.Call:
    """Some row-wise operation."""
    return p.Call(operation, (row,), "[]")


def nights(
    sums: p.Root | p.Tree, periods: int = 3, by: str = "t", every: p.Every = "1d", table: int = 0
) -> p.Nights:
    """Sums of the periods of a stream."""
    return p.Nights(table, by, "Date", every, "2024-12-02", periods, sums)


DAY = ("t",)
DATED = replace(ROWS, columns=(*COLUMNS, ("t", "Date")))
ROOT = p.Root((3, 2, 1))
FIRST = p.KeepRows(0, 1, (), "t")
EDGES = p.Edges(X, (F(0), F(1), F(2)), False)
AT_0_AND_1 = p.Progression(F(0), F(1), 2)
HALVES = p.Ratios((0, 1, 3), 2)
FOUR = p.KeepRows(0, 4, (), None)

HONEST: dict[str, Plan] = {
    "rows": plan(2 / S, replace(ROWS, unit=p.Rows(2))),
    "rows that change": plan(8 / S, ROWS, adds=(p.Placed(X, GRID),), change=True),
    "rows in other groups": plan(2 / S, ROWS, by=("g",), sizes=(3,), change=True),
    "a fine grid": plan(1 / S, ROWS, law=p.Laplace(S, 1025)),
    "a literal": plan(1 / S, ROWS, by=(p.Lit("String", "'w'"),), sizes=(1,)),
    "map": plan(
        4 / S,
        PEOPLE,
        p.KeepGroups(0, 2, ("g",), None),
        p.KeepRows(1, 2, ("g",), None),
        p.Map(2, (("p", p.Col("p")), ("g", other("new", H)), ("h", H))),
        by=("g",),
        sizes=(9,),
    ),
    "filter": plan(1 / S, ROWS, p.Filter(0, (other("gt", X), B)), change=True),
    "part": plan(1 / S, ROWS, p.Part(0, (H,), (p.Lit("Int64", "1"),)), change=True),
    "without": plan(1 / S, ROWS, p.Without(0, (G,)), change=True),
    "explode": plan(3 / S, ROWS, p.Explode(0, "l", 3)),
    "lookup": plan(4 / S, ROWS, p.Lookup(0, "digest", (("g", "k"),), "inner", ("n",), 4)),
    "left lookup": plan(
        4 / S, ROWS, p.Lookup(0, "digest", (("g", "k"),), "left", ("n",), 4), adds=(p.One(),)
    ),
    "semi lookup": plan(
        1 / S, ROWS, p.Lookup(0, "digest", (("g", "k"),), "semi", (), 1), change=True
    ),
    "anti lookup": plan(
        1 / S, ROWS, p.Lookup(0, "digest", (("g", "k"),), "anti", (), 1), change=True
    ),
    "union": plan(2 / S, ROWS, p.Union(0, 0)),
    "meet": plan(4 / S, PEOPLE, TWO, p.Meet(1, 1, (("p", "p"),), "inner", (("x", "x2"),))),
    "left meet": plan(
        6 / S,
        PEOPLE,
        TWO,
        p.KeepRows(0, 3, (), None),
        p.Meet(1, 2, (("p", "p"), ("g", "g")), "left", ()),
    ),
    "semi meet": plan(2 / S, PEOPLE, TWO, p.Meet(1, 0, (("p", "p"), ("g", "g")), "semi", ())),
    "anti meet": plan(2 / S, PEOPLE, TWO, p.Meet(1, 0, (("p", "p"), ("g", "h")), "anti", ())),
    "keep rows": plan(2 / S, PEOPLE, TWO),
    "keep rows in each group": plan(
        6 / S, PEOPLE, p.KeepRows(0, 2, ("g",), "x"), by=("g",), sizes=(3,)
    ),
    "keep groups": plan(
        6 / S, PEOPLE, p.KeepGroups(0, 2, ("g",), None), p.KeepRows(1, 3, ("g",), None)
    ),
    "weigh": plan(F(8192) / S, PEOPLE, p.Weigh(0, F(2))),
    "weigh over groups": plan(F(16384) / S, PEOPLE, p.Weigh(0, F(2)), by=("g",), sizes=(4,)),
    "one each": plan(
        5 / S,
        PEOPLE,
        p.OneEach(0, (G,), None, "n", "m", "k", (p.Ends("x", "y", H, total=True),)),
        adds=(p.Placed(X, GRID),),
    ),
    "gather": plan(
        3 / S,
        PEOPLE,
        p.Gather(0, (("k", G),), (("x", p.Call("sum", (H,), "[]")),), (None,), False),
        by=("k",),
        sizes=(3,),
    ),
    "gather beside": plan(
        10 / S,
        PEOPLE,
        p.Gather(0, (), (("x", p.Call("sum", (H,), "[]")),), (None,), True),
        p.KeepRows(1, 2, (), None),
        adds=(p.Placed(X, GRID),),
    ),
    "windows": plan(
        2 / S, WEEKS, by=(other("dt_month", p.Col("t")),), sizes=(12,), adds=(p.People(),)
    ),
    "windows that merge": plan(
        7 / S,
        WEEKS,
        by=(other("dt_month", p.Col("t")), other("dt_day", p.Col("t"))),
        sizes=(12, 31),
        kept=(0,),
        adds=(p.People(),),
    ),
    "valued": plan(1 / S, ROWS, adds=(p.Valued(X),), change=True),
    "placed": plan(5 / S, ROWS, adds=(p.Placed(X, GRID),)),
    "squared": plan(25 / S, ROWS, adds=(p.Squared(X, GRID, 0),)),
    "squared and shortened": plan(6 / S, ROWS, adds=(p.Squared(X, GRID, 2),)),
    "paired": plan(5 / S, ROWS, adds=(p.Paired(X, GRID, H, p.Grid(F(1), F(0), 0, 9)),)),
    "distinct": plan(2 / S, ROWS, adds=(p.Distinct(H),), by=("g",), sizes=(3,), change=True),
    "people": plan(3 / S, PEOPLE, adds=(p.People(),), by=("g",), sizes=(3,)),
    "people in cells": plan(2 / S, PEOPLE, adds=(p.People(),), cells=EDGES),
    "people in merged groups": plan(
        3 / S,
        PEOPLE,
        p.KeepGroups(0, 1, ("g",), None),
        adds=(p.People(),),
        by=("g", "h"),
        sizes=(4, 3),
        kept=(0,),
    ),
    "rows of a person": plan(4 / S, PEOPLE, adds=(p.PersonRows(None, 4),)),
    "values of a person": plan(4 / S, PEOPLE, adds=(p.PersonRows(X, 4),)),
    "totals": plan(5 / S, PEOPLE, adds=(p.PersonTotal(p.Placed(X, GRID)),)),
    "cells of people": plan(
        2 / S, PEOPLE, adds=(p.PersonRows(None, 2),), cells=p.OfPeople(EDGES, GRID)
    ),
    "listed combinations": plan(2 / S, PEOPLE, adds=(p.People(),), by=("g", "h"), sizes=(2,)),
    "bins": plan(2 / S, ROWS, cells=p.Edges(X, (F(0), F(1), F(2)), True), change=True),
    "categories": plan(2 / S, ROWS, cells=p.Values(G, ("'v'", "'w'"), False), change=True),
    "points": plan(2 / S, ROWS, cells=p.Points(X, F(0), F(1), 3), change=True),
    "candidates": plan(2 / S, ROWS, cells=p.Between(X, (F(0), F(1))), change=True),
    "edges": plan(2 / S, ROWS, cells=p.UpTo(X, (F(0), F(1)), False), change=True),
    "edges by a rule": plan(2 / S, ROWS, cells=p.UpTo(X, AT_0_AND_1, False), change=True),
    "edges over one number": plan(2 / S, ROWS, cells=p.Edges(X, HALVES, True), change=True),
    "all cells": plan(2 / S, ROWS, cells=p.Whole(EDGES), change=True, run=1),
    "runs": plan(2 / S, ROWS, cells=p.Points(X, F(0), F(1), 4), run=2, change=True),
    "merged cells": plan(1 / S, ROWS, cells=EDGES, run=0, change=True),
    "total": plan(2 / S, ROWS, by=("g",), sizes=(3,), total=True),
    "matrix": plan(15 / S, ROWS, adds=(p.One(), p.Placed(X, GRID)), matrix=((1, 2), (1, -1))),
    "running": plan(3 / S, ROWS, what=p.Running(0, (2, 1)), cells=EDGES),
    "staircase": plan(F(3, 4), ROWS, adds=(p.Placed(X, GRID),), law=p.Staircase(F(1, 4), 2, 1)),
    "reports": plan(
        F(1, 2),
        replace(ROWS, unit=p.Rows(2)),
        what=p.Reports(0),
        cells=p.Whole(EDGES),
        law=p.Response(F(1, 4)),
        change=True,
    ),
    "nights": plan(6 / S, DATED, by=DAY, sizes=(3,), what=nights(ROOT)),
    "nights of rows that change": plan(
        2 / S, DATED, by=DAY, sizes=(4,), what=nights(p.Tree(2, 1), 4), change=True
    ),
    "a tree of nights": plan(
        18 / S,
        PEOPLE,
        p.KeepRows(0, 3, (), "t"),
        by=("g", "t"),
        sizes=(16,),
        what=nights(p.Tree(2, 2), 4),
        adds=(p.Placed(X, p.Grid(F(1), F(0), -3, 2)),),
    ),
    "first days": plan(
        6 / S,
        PEOPLE,
        p.KeepGroups(0, 2, DAY, "t"),
        p.KeepRows(1, 3, DAY, None),
        by=("g", "t"),
        sizes=(9,),
        what=nights(p.Tree(2, 1)),
    ),
    "rows of each day": plan(
        6 / S,
        PEOPLE,
        p.KeepRows(0, 2, (), None),
        p.KeepRows(1, 1, DAY, None),
        by=DAY,
        sizes=(2,),
        what=nights(p.Root((3, 0)), 2),
    ),
    "people of each day": plan(
        4 / S, PEOPLE, by=("h", "t"), sizes=(4,), what=nights(p.Tree(3, 1), 2), adds=(p.People(),)
    ),
    "persons in several windows": plan(
        2 / S, WEEKS, adds=(p.DistinctPersons(),), by=("b",), sizes=(2,)
    ),
    "gaussian": plan(F(25, 18), ROWS, adds=(p.Placed(X, GRID),), law=p.Gaussian(F(9)), rho=True),
    "box": plan(F(2, 3), ROWS, adds=ARCH[1:2], law=p.Box(F(1, 3), (5,), 4, ()), change=True),
    "hull": plan(F(1, 3), ROWS, adds=ARCH, law=p.Box(F(1, 3), (1, 5, 25), 64, ((0, 1, 2),))),
}
"""Plans that state exactly what they cost. Those of which not even a thousandth less is enough."""

TWO_CELLS = p.Between(X, (F(0), F(1)))


SMALL = F(1, 10**6)


def weighed(*rounds: tuple[int, Fraction], delta: Fraction = SMALL) -> Plan:
    """A plan that finds groups by the weights of individuals."""
    by = (("g", G), *((("rounds", p.Lit("Int64", "1")),) if len(rounds) > 1 else ()))
    frames = (PEOPLE, p.Weigh(0, F(1)), p.KeepGroups(1, 1, ("g",), None))
    tables = (p.Table(2, p.Found(by, 0), None, p.People()),)
    cost = sum((F(4096**2) / (2 * variance) for _, variance in rounds), F())
    draw = p.Draw(p.Appear(0, 1), p.WeighedThreshold(rounds), cost, delta)
    return Plan("add-remove", frames, tables, (draw,), "rho", cost, delta, ())


ROUGH: dict[str, Plan] = {
    "another source says who": plan(F(1), replace(PEOPLE, owners=p.Owners("B", "h", "h"))),
    "exact": plan(F(0), ROWS, law=p.Exact()),
    "laplace in rho": plan(F(1, 3), ROWS, law=p.Laplace(F(1), 1), rho=True),
    "box in rho": plan(F(1, 3), ROWS, law=p.Box(F(1), (1,), 1, ()), rho=True),
    "choice of cells": plan(
        1 / S, ROWS, what=p.Choice((0,), "cells", 1), cells=EDGES, law=p.Exponential(S)
    ),
    "choice of groups": plan(
        1 / S,
        ROWS,
        what=p.Choice((0,), "groups", 1),
        by=("g",),
        sizes=(3,),
        law=p.PermuteAndFlip(S),
    ),
    "choice of tables": plan(
        1 / S,
        ROWS,
        what=p.Choice((0, 1), "tables", 1),
        adds=(p.One(), p.Valued(X)),
        law=p.NoisyMax(S),
    ),
    "rounds": plan(
        2 / S, ROWS, what=p.Choice((0,), "cells", 2), cells=EDGES, law=p.Exponential(S), change=True
    ),
    "rank": plan(1 / S, ROWS, what=p.Rank(0, F(1, 2)), cells=POINTS, law=p.Exponential(S)),
    "noisy rank": plan(2 / S, ROWS, what=p.Rank(0, F(1, 2)), cells=TWO_CELLS),
    "noisy rank in rho": plan(
        F(1, 4), ROWS, what=p.Rank(0, F(1, 2)), cells=TWO_CELLS, law=p.Gaussian(F(4)), rho=True
    ),
    "groups by weights": weighed((10**5, F(4096**2))),
    "groups by weights in rounds": weighed((10**5, F(2 * 4096**2)), (10**5, F(2 * 4096**2))),
    "ranks": plan(
        4 / S, ROWS, what=p.Ranks(0, (F(1, 3), F(1, 2))), cells=POINTS, law=p.Exponential(S)
    ),
}
"""Plans that cost more than half of what they state, or state it for nothing."""


def options() -> Plan:
    """A plan after which one of two others runs."""
    first = HONEST["rows"]
    return replace(first, options=(HONEST["union"], HONEST["explode"]), cost=first.cost + 3 / S)


HONEST["options"] = options()


def found(delta: Fraction, finder: p.Law) -> Plan:
    """A plan that finds groups, by a rule or by numbers that an earlier draw gave."""
    keys = p.Found((("g", G),), 0 if isinstance(finder, p.Geometric) else 1)
    tables = (p.Table(1, keys, None, p.People()),)
    appear = p.Draw(p.Appear(0, 1), finder, F(1, 2), delta)
    numbers = p.Draw(p.Vector((0,), ((1,),), (0,), 1, False), p.Laplace(F(2), 1), F(1), F(0))
    draws = (appear, numbers) if isinstance(finder, p.Geometric) else (numbers, appear)
    frames = (PEOPLE, p.KeepGroups(0, 2, ("g",), None))
    return Plan("add-remove", frames, tables, draws, "epsilon", F(3, 2), F(1), ())


TAIL = F(math.exp(-9 / 2) / (1 + math.exp(-1 / 2)))
"""With what probability noise of scale 2 makes 10 or more of 1."""
TWICE = 2 * TAIL - TAIL**2
OFTEN = F(math.erfc(4 / math.sqrt(2)) / 2)
"""With what probability normal noise is four times its standard deviation or more."""
FOUND = {
    "the rule": (found(F(1, 50), p.Geometric(F(1, 4), F(1, 100))), F(1, 3)),
    "a threshold": (found(TWICE * F(1001, 1000), p.Threshold(10, 0)), F(99, 100)),
    "weights": (
        weighed((5 * 4096, F(4096**2)), delta=OFTEN * F(1001, 1000)),
        F(99, 100),
    ),
}
"""Plans that find groups, and a share of their delta that is too little."""


def stating(lie: Plan, share: Fraction) -> Plan:
    """A plan that states a share of its costs."""
    draws = tuple(replace(draw, cost=draw.cost * share) for draw in lie.draws)
    options = tuple(stating(option, share) for option in lie.options)
    return replace(lie, draws=draws, cost=lie.cost * share, options=options)


@pytest.mark.parametrize("name", HONEST)
def test_what_costs_as_stated_is_not_unsafe_and_what_costs_more_is(name: str) -> None:
    honest = HONEST[name]
    assert not judge(honest, 15, 10).unsafe
    assert judge(stating(honest, F(999, 1000)), 200, 300).unsafe


@pytest.mark.parametrize("name", ROUGH)
def test_what_costs_far_more_than_stated_is_unsafe(name: str) -> None:
    assert judge(stating(ROUGH[name], F(1, 2)), 200, 200).unsafe


@pytest.mark.parametrize("name", FOUND)
def test_groups_that_are_found_too_often_are_unsafe(name: str) -> None:
    honest, share = FOUND[name]
    draws = tuple(replace(draw, delta=draw.delta * share) for draw in honest.draws)
    assert not judge(honest, 15, 10).unsafe
    assert judge(replace(honest, draws=draws), 100, 100).unsafe


@pytest.mark.parametrize("limit", [ONE, p.KeepRows(0, 1, (), "x"), p.KeepGroups(0, 1, DAY, None)])
def test_what_a_limit_keeps_on_one_night_it_need_not_keep_on_the_next(limit: p.Frame) -> None:
    days = p.KeepRows(1, 1, DAY, None)
    stream = plan(1 / S, PEOPLE, limit, days, by=DAY, sizes=(2,), what=nights(p.Tree(2, 1), 2))
    assert judge(stream, 200, 200).unsafe
    first = replace(stream, frames=(PEOPLE, replace(limit, first="t"), days))  # type: ignore[call-arg]
    assert not judge(first, 10, 5).unsafe


def test_rows_of_nobody_cannot_be_limited() -> None:
    renamed = p.Map(0, (("q", p.Col("p")), ("p", H)))
    assert judge(plan(1 / S, PEOPLE, renamed, p.KeepRows(1, 1, (), None))).share == 1
    replaced = p.Map(0, (("p", other("new", H)), ("h", H)))
    with pytest.raises(Meaningless):
        judge(plan(1 / S, PEOPLE, replaced, p.KeepRows(1, 1, (), None)))


def test_one_source_cannot_have_individuals_of_two_kinds() -> None:
    first = plan(1 / S, PEOPLE, ONE)
    second = p.Table(3, None, None, p.One())
    draw = p.Draw(p.Vector((1,), ((1,),), (), 1, False), LAPLACE, 1 / S, F(0))
    other_person = replace(PEOPLE, unit=p.Person("h", None, None))
    frames = (PEOPLE, ONE, other_person, p.KeepRows(2, 1, (), None))
    tables, draws = (*first.tables, second), (*first.draws, draw)
    both = replace(first, frames=frames, tables=tables, draws=draws, cost=2 / S)
    assert judge(both, 100, 100).unsafe
    for option in (plan(1 / S, ROWS), plan(1 / S, WEEKS, ONE)):
        with pytest.raises(Meaningless):
            judge(replace(first, options=(option,), cost=2 / S))


def test_each_node_is_in_a_lie() -> None:
    known = {cls for cls in vars(p).values() if hasattr(cls, "__dataclass_fields__")}
    lies = [*HONEST.values(), *ROUGH.values(), *(lie for lie, _ in FOUND.values())]
    assert known - {type(node) for lie in lies for node in nodes(lie)} == {p.Levels}
