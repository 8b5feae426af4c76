"""Each rule of the kernel by itself: against all cases of small sizes, and against plans that break
one condition of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp, isqrt, log

import pytest

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel import plan as p
from dpframe.kernel.frame import Reach
from dpframe.kernel.laws import pure_rho, tail_of
from dpframe.kernel.moves import Addition, _change_norms, column_of, moves_of
from dpframe.kernel.verify import _alone
from tests.kernel.test_oracle import (
    EDGES,
    FOUND,
    GRID,
    HONEST,
    LAPLACE,
    ONE,
    PEOPLE,
    POINTS,
    ROUGH,
    ROWS,
    TWO,
    WEEKS,
    F,
    G,
    H,
    X,
    other,
    plan,
)

LEN = p.Call("individual_len", (), "[]")
EACH = p.OneEach(0, (), None, "x", "g", "h", ())

LOOSE = {
    "total",  # under add-remove a total is refused
    "box",  # a row that changes moves twice as far
    "windows",
    "windows that merge",  # keys that follow from the window bound more than the kernel sees
    "people in cells",
    "cells of people",
    "options",
    "laplace in rho",
    "box in rho",
    "rounds",
    "rank",
    "ranks",
    "exact",
    "another source says who",
}
"""Plans whose costs the kernel does not find, or finds higher ones."""


@pytest.mark.parametrize("name", [name for name in (*HONEST, *ROUGH) if name not in LOOSE])
def test_costs_are_those_of_enumeration(name: str) -> None:
    stated = (HONEST | ROUGH)[name]
    assert verify(stated).costs == tuple(draw.cost for draw in stated.draws)


# -- Numbers, against all cases ------------------------------------------------------------------


def _counts(reach: Reach, cells: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways in which the rows of an individual may lie in the cells of its groups."""
    groups = [
        cell for cell in product(range(reach.cell + 1), repeat=cells) if sum(cell) <= reach.most
    ]
    for chosen in product(groups, repeat=reach.groups):
        if sum(map(sum, chosen)) <= reach.rows:
            yield chosen


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_squares_of_a_reach(cells: int) -> None:
    for rows, groups, most, cell in product(range(1, 6), (1, 2), (1, 2, 3, 4), (1, 2, 3)):
        if groups * most < rows or most > rows or cell > most:
            continue
        reach = Reach(rows, groups, most, cell)
        largest = max(sum(n * n for g in way for n in g) for way in _counts(reach, cells))
        assert reach.squares(cells) == largest, (reach, cells)
    assert Reach(0, 1, 1, 1).squares(1) == 0
    assert Reach(9, 3, 3, 3, norm=4).squares(1) == 16


@pytest.mark.parametrize("norm", [4096, 12_288, 1_000])
@pytest.mark.parametrize("groups", [1, 2, 9])
def test_who_is_alone_in_several_groups_adds_less_to_each(groups: int, norm: int) -> None:
    """A row has 4096 parts. In each of t groups it adds the norm over the root of t, or all."""
    noise, least = p.Gaussian(F(1_000_000)), 9_000
    adds = {t: min(4096, isqrt(norm**2 // t)) for t in range(1, groups + 1)}
    exact = max(t * tail_of(noise, least - one) for t, one in adds.items())
    assert _alone(Reach(groups, groups, 1, 1, norm=norm), noise, least) == exact


@pytest.mark.parametrize("column", [(5,), (5, 3), (4, 2, 1), (3, 3, 1, 0), (7, 4, 2, 2, 1)])
def test_norms_of_a_column_and_of_the_difference_of_two(column: tuple[int, ...]) -> None:
    size = len(column)
    columns = [(0,) * j + column[: size - j] for j in range(size)]
    moves = columns + [
        tuple(a - b for a, b in zip(one, two, strict=True)) for one in columns for two in columns
    ]
    l1 = max(sum(map(abs, move)) for move in moves)
    square = max(sum(m * m for m in move) for move in moves)
    assert _change_norms(column) == (l1, square)


MATRICES = [
    ((1, 0), (0, 1)),
    ((1, 2), (2, -1)),
    ((1, -1), (0, 3)),
    ((2, 1),),
    ((0, 1), (1, 0), (1, 1)),
]


def _rows(additions: Sequence[Addition]) -> Iterator[tuple[int, ...]]:
    """All that one row may add to the tables."""
    needs = sorted({str(a.needs) for a in additions if a.needs is not None})
    for met in product((False, True), repeat=len(needs)):
        there = dict(zip(needs, met, strict=True))
        ends = [(a.lo, a.hi) if a.needs is None or there[str(a.needs)] else (0,) for a in additions]
        yield from product(*ends)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("needs", [(None, None), (None, "x"), ("x", "x"), ("x", "y")])
def test_moves_of_a_row(matrix: tuple[tuple[int, ...], ...], needs: tuple[object, object]) -> None:
    for ends in product([(1, 1), (0, 2), (-1, 2), (-3, -1)], repeat=2):
        # what a row always adds is one number
        additions = [
            Addition(lo, lo if n is None else hi, n)
            for (lo, hi), n in zip(ends, needs, strict=True)
        ]
        numbers = [
            tuple(sum(f * a for f, a in zip(row, added, strict=True)) for row in matrix)
            for added in _rows(additions)
        ]
        changes = [
            tuple(a - b for a, b in zip(one, two, strict=True))
            for one in numbers
            for two in numbers
        ]
        moves = moves_of(additions, matrix)
        for j in range(len(matrix)):
            assert moves.widths[j] == max(abs(number[j]) for number in numbers)
            assert max(abs(change[j]) for change in changes) <= moves.stays[j]
            assert moves.stays[j] <= 2 * moves.widths[j]
        assert max(sum(map(abs, change)) for change in changes) <= moves.stays_l1
        assert max(sum(c * c for c in change) for change in changes) <= moves.stays_squares
        if all(sum(map(bool, row)) == 1 for row in matrix):  # nothing cancels
            for j in range(len(matrix)):
                assert moves.stays[j] == max(abs(change[j]) for change in changes)


def _cost(*frames: p.Frame, **fields: object) -> Fraction:
    (cost,) = verify(_generous(plan(F(1), *frames, **fields))).costs  # type: ignore[arg-type]
    return cost


def _generous(stated: Plan) -> Plan:
    """The plan with costs that are never too low."""
    plenty, sure = F(10**9), F(1)
    draws = tuple(replace(draw, cost=plenty, delta=sure) for draw in stated.draws)
    number = F(len(draws) + 1)
    return replace(stated, draws=draws, cost=plenty * number, delta=sure * number)


WIDE = p.Grid(F(1), F(0), -2, 5)
"""A row adds -2 to 5, or nothing: 7 in all, and 5 at most in size."""
TWO_ROWS = replace(ROWS, unit=p.Rows(2))
IN_TWO = (
    PEOPLE,
    p.KeepGroups(0, 2, ("g",), None),
    p.KeepRows(1, 3, ("g",), None),
)
"""A person has at most three rows in each of two groups."""
SCALE = F(10)


@pytest.mark.parametrize(
    ("law", "share"),
    [
        (p.Exponential(SCALE), F(1, 10)),
        (p.PermuteAndFlip(SCALE), F(1, 10)),
        (p.NoisyMax(SCALE), F(1, 10)),
    ],
)
def test_choices_cost_the_range_of_their_scores(law: p.Law, share: Fraction) -> None:
    """By hand: how far scores move against each other, with each kind of choice."""
    cells, tables = p.Choice((0,), "cells", 1), p.Choice((0, 1), "tables", 1)
    groups = p.Choice((0,), "groups", 1)
    placed = (p.Placed(X, WIDE), p.Placed(H, WIDE))
    keys: dict[str, object] = {"by": ("g",), "sizes": (4,)}
    expected = [
        # rows that come or go
        (7, _cost(TWO_ROWS, what=tables, adds=placed, law=law), 2),
        (1, _cost(ROWS, what=cells, cells=EDGES, law=law), 1),
        (1, _cost(TWO_ROWS, what=cells, cells=EDGES, law=law), 2),
        (1, _cost(ROWS, what=groups, law=law, **keys), 1),
        # rows that change
        (14, _cost(ROWS, what=tables, adds=placed, law=law, change=True), 1),
        (14, _cost(TWO_ROWS, what=tables, adds=placed, law=law, change=True), 2),
        (2, _cost(TWO_ROWS, what=cells, cells=EDGES, law=law, change=True), 2),
        (2, _cost(TWO_ROWS, what=groups, law=law, change=True, **keys), 2),
        # persons: three rows in each of two groups
        (7, _cost(*IN_TWO, what=tables, adds=placed, law=law, **keys), 6),
        (1, _cost(*IN_TWO, what=cells, cells=EDGES, law=law, **keys), 6),
        (1, _cost(*IN_TWO, what=groups, law=law, **keys), 3),
        (3, _cost(*IN_TWO, what=groups, adds=(p.PersonRows(None, 3),), law=law, **keys), 1),
        (1, _cost(*IN_TWO, what=groups, adds=(p.People(),), law=law, **keys), 1),
        # ranks of one half in parts of a half: a row that comes moves them by 2
        (2, _cost(TWO_ROWS, what=p.Rank(0, F(1, 2)), cells=POINTS, law=law), 2),
        (6, _cost(ROWS, what=p.Rank(0, F(1, 4)), cells=POINTS, law=law), 1),
        (1, _cost(ROWS, what=p.Rank(0, F(0)), cells=POINTS, law=law), 1),
        (4, _cost(TWO_ROWS, what=p.Rank(0, F(1, 2)), cells=POINTS, law=law, change=True), 2),
        (1, _cost(ROWS, what=p.Rank(0, F(1)), cells=POINTS, law=law, change=True), 1),
        (
            12,
            _cost(ROWS, what=p.Rank(0, F(1, 4)), cells=POINTS, law=law, change=True, **keys),
            1,
        ),
        # tuples: 4 m (1 - d), or 4 m where a row changes
        (10, _cost(ROWS, what=p.Ranks(0, (F(1, 3), F(1, 2))), cells=POINTS, law=law), 2),
        (
            24,
            _cost(ROWS, what=p.Ranks(0, (F(1, 3), F(1, 2))), cells=POINTS, law=law, change=True),
            1,
        ),
    ]
    for number, (each, cost, times) in enumerate(expected):
        assert cost == each * times * share, number


def test_rounds_and_levels_add_up() -> None:
    law = p.Exponential(SCALE)
    for rounds in (1, 2, 3):
        found = _cost(ROWS, what=p.Choice((0,), "cells", rounds), cells=EDGES, law=law)
        assert found == F(rounds, 10)
    quartiles = (F(1, 4), F(1, 2), F(3, 4))
    levels = p.Levels(0, quartiles, ((1,), (0, 2)))
    # in parts of a quarter: the first choice is a median of all rows, the others are medians
    assert _cost(ROWS, what=levels, cells=POINTS, law=law) == 2 * F(4, 10)
    # of one level, two choices may have a row that changes: once before, once after
    assert _cost(ROWS, what=levels, cells=POINTS, law=law, change=True) == 2 * F(8, 10)
    one = p.Levels(0, (F(1, 2),), ((0,),))
    assert _cost(ROWS, what=one, cells=POINTS, law=law, change=True) == F(4, 10)


def test_choices_in_rho() -> None:
    law, noisy = p.Exponential(SCALE), p.NoisyMax(SCALE)
    cells = p.Choice((0,), "cells", 2)
    assert _cost(ROWS, what=cells, cells=EDGES, law=law, rho=True) == 2 * F(1, 8 * 100)
    assert _cost(ROWS, what=cells, cells=EDGES, law=noisy, rho=True) == 2 * F(1, 2 * 100)
    keys: dict[str, object] = {"by": ("g",), "sizes": (4,)}
    one = p.Choice((0,), "cells", 1)
    found = _cost(*IN_TWO, what=one, cells=EDGES, law=law, rho=True, **keys)
    assert found == F(9 + 9, 8 * 100)  # three rows in each of two groups
    rank = p.Rank(0, F(1, 4))
    found = _cost(*IN_TWO, what=rank, cells=POINTS, law=law, rho=True, **keys)
    assert found == F((9 + 9) * 6 * 6, 8 * 100)
    found = _cost(ROWS, what=rank, cells=POINTS, law=law, rho=True, change=True, **keys)
    assert found == F(2 * 6 * 6, 8 * 100)  # 6 in each of two groups, more than 8 in one


def test_choices_of_cells_that_a_person_is_in_a_few_times() -> None:
    law, cells = p.Exponential(SCALE), p.Choice((0,), "cells", 1)
    values = p.Values(H, ("1", "2", "3"), False)
    keys: dict[str, object] = {"by": ("g",), "sizes": (4,), "what": cells, "law": law}
    wide: dict[str, object] = {"adds": (p.Placed(X, WIDE),), "cells": values, **keys}
    assert _cost(*IN_TWO, **wide) == F(2 * 3 * 5, 10)
    once = (*IN_TWO, p.KeepRows(2, 1, ("g", "h"), None))
    assert _cost(*once, **wide) == F(2 * 7, 10)  # both ends of one addition are further apart
    of_rows = (*IN_TWO, p.KeepRows(2, 4, (), None))
    found = _cost(*of_rows, cells=EDGES, rho=True, **keys)
    assert found == F(3 * 3 + 1, 8 * 100)
    found = _cost(*of_rows, cells=EDGES, **keys)
    assert found == F(4, 10)


@pytest.mark.parametrize("scale", [F(1, 2), F(2), F(5)])
def test_laplace_noise_in_rho(scale: Fraction) -> None:
    """The largest Renyi divergence over its order is that of order 1, the relative entropy."""
    h, far = float(1 / scale), 400
    weights = {x: exp(-h * abs(x)) for x in range(-far, far + 1)}
    whole = sum(weights.values())
    for rows in (1, 2, 3):
        cost = float(_cost(replace(ROWS, unit=p.Rows(rows)), law=p.Laplace(scale, 1), rho=True))
        losses = [
            (weights[x] / whole, h * (abs(x - rows) - abs(x))) for x in range(-far + rows, far)
        ]
        assert cost == pytest.approx(sum(p * loss for p, loss in losses), rel=1e-9)
        for order in (1.5, 2, 5, 20):
            moment = sum(p * exp((order - 1) * loss) for p, loss in losses)
            assert log(moment) / (order - 1) / order <= cost * (1 + 1e-9)
    both = _cost(ROWS, adds=(p.One(), p.Placed(X, GRID)), law=p.Laplace(scale, 1), rho=True)
    one, five = (
        _cost(ROWS, adds=(adds,), law=p.Laplace(scale, 1), rho=True)
        for adds in (p.One(), p.Placed(X, GRID))
    )
    assert both == pytest.approx(one + five, rel=1e-9)


def test_rows_that_change_in_rho() -> None:
    gaussian = p.Gaussian(F(1, 2))
    adds = p.One(), p.Placed(X, WIDE)
    fields: dict[str, object] = {"adds": adds, "law": gaussian, "rho": True, "change": True}
    assert _cost(TWO_ROWS, **fields) == 4 * 7 * 7  # a row that stays counts before and after
    assert _cost(TWO_ROWS, by=("g",), sizes=(3,), **fields) == 4 * 2 * (1 + 25)
    assert _cost(TWO_ROWS, p.Filter(0, ()), **fields) == 4 * 7 * 7


def test_steps_after_which_rows_may_be_missing() -> None:
    """A count of all rows changes only where rows may be missing."""
    assert _cost(ROWS, law=p.Exact(), change=True) == 0
    assert _cost(ROWS, p.Map(0, (("x", X),)), law=p.Exact(), change=True) == 0
    left = p.Lookup(0, "digest", (("g", "k"),), "left", ("n",), 1)
    assert _cost(ROWS, left, law=p.Exact(), change=True) == 0
    for step in (
        p.Filter(0, ()),
        p.Part(0, (), ()),
        p.Without(0, (G,)),
        p.Explode(0, "l", 1),
        replace(left, how="inner"),
        replace(left, how="semi", new=()),
        replace(left, how="anti", new=()),
    ):
        assert _cost(ROWS, step, change=True) == F(1, 7), step
    assert _cost(ROWS, replace(left, most=2), change=True) == F(2, 7)
    assert _cost(ROWS, p.Union(0, 0), change=True) == F(2, 7)


def test_running_sums() -> None:
    running = p.Running(0, (4, 2))
    assert _cost(TWO_ROWS, what=running, cells=EDGES) == 2 * F(6, 7)
    assert _cost(TWO_ROWS, what=running, cells=EDGES, change=True) == 2 * F(6, 7)
    keys: dict[str, object] = {"by": ("g",), "sizes": (4,)}
    assert _cost(TWO_ROWS, what=running, cells=EDGES, change=True, **keys) == 2 * 2 * F(6, 7)
    gaussian = p.Gaussian(F(100))
    found = _cost(TWO_ROWS, what=running, cells=EDGES, law=gaussian, rho=True)
    assert found == F(4 * (16 + 4), 200)
    found = _cost(TWO_ROWS, what=running, cells=EDGES, law=gaussian, rho=True, change=True, **keys)
    assert found == F(2 * 4 * (16 + 4), 200)
    found = _cost(*IN_TWO, what=running, cells=EDGES, law=gaussian, rho=True, **keys)
    assert found == F(2 * 9 * (16 + 4), 200)
    found = _cost(*IN_TWO, what=running, cells=EDGES, law=p.Staircase(F(1), 5, 1), **keys)
    assert found == 2 * 2 * 3  # two cells of two groups, and 12 in one of them are three levels


def test_noisy_scores() -> None:
    cells = p.Between(X, (F(0), F(1), F(2)))
    rank = p.Rank(0, F(1, 4))
    keys: dict[str, object] = {"by": ("g",), "sizes": (4,)}
    one: dict[str, object] = {"by": ("g",), "sizes": (1,)}
    gaussian: dict[str, object] = {"law": p.Gaussian(F(100)), "rho": True}
    for fields, l1, squares in (
        ({}, 2 * 3, 4 * 9),
        ({"change": True}, 2 * 4, 4 * 16),
        ({"change": True, **one}, 2 * 4, 4 * 16),
        ({"change": True, **keys}, 2 * 2 * 3, 4 * 2 * 9),
    ):
        assert _cost(TWO_ROWS, what=rank, cells=cells, **fields) == 3 * F(l1, 7)
        found = _cost(TWO_ROWS, what=rank, cells=cells, **fields, **gaussian)
        assert found == 3 * F(squares, 200)
    found = _cost(*IN_TWO, what=rank, cells=cells, **keys, **gaussian)
    assert found == 3 * F(2 * 9 * 9, 200)


def test_the_most_expensive_option_is_paid() -> None:
    first, cheap, dear = HONEST["rows"], HONEST["filter"], HONEST["reports"]
    assert (cheap.neighbours, dear.neighbours) == ("change-one",) * 2
    first = plan(F(1, 7), ROWS, p.Filter(0, ()), change=True)
    dear = replace(
        dear, frames=(ROWS,), draws=(replace(dear.draws[0], cost=F(1, 4)),), cost=F(1, 4)
    )
    frames = [f.frames[0] for f in (first, cheap, dear)]
    assert frames[0] == frames[1] == frames[2]
    for options in ((cheap, dear), (dear, cheap)):
        most = max(cheap.cost, dear.cost)
        whole = replace(first, options=options, cost=first.cost + most)
        assert verify(whole).costs == (first.cost,)
        with pytest.raises(Refused, match="the draws cost more"):
            verify(replace(whole, cost=first.cost + min(cheap.cost, dear.cost)))


def test_deltas_of_draws_and_options_add_up() -> None:
    found, _ = FOUND["the rule"]
    stated = sum(draw.delta for draw in found.draws)
    verify(replace(found, delta=stated))
    with pytest.raises(Refused, match="fail more often"):
        verify(replace(found, delta=stated * F(999, 1000)))
    both = replace(found, options=(replace(found, delta=stated),), cost=2 * found.cost)
    verify(replace(both, delta=2 * stated))
    with pytest.raises(Refused, match="fail more often"):
        verify(replace(both, delta=2 * stated * F(999, 1000)))


def test_pure_mechanisms_in_rho() -> None:
    for epsilon in (F(1, 100), F(1), F(5), F(40)):
        e = float(epsilon)
        exact = e * (exp(e) - 1) / (exp(e) + 1)
        assert exact * (1 - 1e-12) <= pure_rho(epsilon) <= min(exact * (1 + 1e-12), e * e / 2)
    assert pure_rho(F(1 << 21)) == 1 << 21


def test_tails_of_discrete_laplace_noise() -> None:
    for scale, fine in ((F(2), 1), (F(3, 2), 1), (F(2), 1025)):
        h = float(1 / (scale * fine))
        for least in (1, 2, 7):
            steps = range(least * fine - fine // 2, 200 * fine)
            exact = sum(exp(-h * n) for n in steps) * (1 - exp(-h)) / (1 + exp(-h))
            assert float(tail_of(p.Laplace(scale, fine), least)) == pytest.approx(exact, rel=1e-9)
    assert tail_of(p.Laplace(F(2), 1), 0) == 1


def test_tails_of_narrow_gaussian_noise() -> None:
    for variance in (F(1, 4), F(3), F(50)):
        s = float(variance)
        whole = sum(exp(-(n**2) / (2 * s)) for n in range(-200, 201))
        for least in (1, 3, 8):
            exact = sum(exp(-(n**2) / (2 * s)) for n in range(least, 300)) / whole
            found = float(tail_of(p.Gaussian(variance), least))
            assert exact * (1 - 1e-9) <= found <= exact * 1.02


# -- Conditions, one at a time -------------------------------------------------------------------

COUNT = plan(F(1), ROWS)
PERSONS = plan(F(1), PEOPLE, ONE)
KEYED = plan(F(1), ROWS, by=("g",), sizes=(3,))
CROSSED = plan(F(1), ROWS, by=("g", "h"), sizes=(3, 4))
CELLED = plan(F(1), ROWS, cells=EDGES)
CHOICE = plan(F(1), ROWS, what=p.Choice((0,), "cells", 1), cells=EDGES, law=p.Exponential(SCALE))
RANK = plan(F(1), ROWS, what=p.Rank(0, F(1, 2)), cells=POINTS, law=p.Exponential(SCALE))
RANKS = plan(F(1), ROWS, what=p.Ranks(0, (F(1, 2),)), cells=POINTS, law=p.Exponential(SCALE))
LEVELS = plan(
    F(1),
    ROWS,
    what=p.Levels(0, (F(1, 4), F(1, 2)), ((1,), (0,))),
    cells=POINTS,
    law=p.Exponential(SCALE),
)
NOISY = plan(F(1), ROWS, what=p.Rank(0, F(1, 2)), cells=p.Between(X, (F(0),)))
RUNNING = plan(F(1), ROWS, what=p.Running(0, (2, 1)), cells=EDGES)
WINNER = plan(
    F(1), ROWS, what=p.Choice((0,), "groups", 1), by=("g",), sizes=(3,), law=p.NoisyMax(SCALE)
)
TABLES = plan(
    F(1),
    ROWS,
    what=p.Choice((0, 1), "tables", 1),
    adds=(p.One(), p.Valued(X)),
    law=p.PermuteAndFlip(SCALE),
)
REPORTS = HONEST["reports"]
BOX = plan(F(1), ROWS, adds=(p.Placed(X, GRID),), law=p.Box(F(1, 3), (5,), 4, ()))
HULL = HONEST["hull"]
RULE, THRESHOLD = FOUND["the rule"][0], FOUND["a threshold"][0]
LISTED = replace(
    THRESHOLD,
    tables=tuple(
        replace(THRESHOLD.tables[0], keys=p.Listed((("g", G),), (9,), "keys"), adds=adds)
        for adds in (p.People(), p.PersonRows(None, 1))
    ),
    draws=(
        *THRESHOLD.draws,
        replace(THRESHOLD.draws[0], what=p.Vector((1,), ((1,),), (0,), 1, total=False)),
    ),
)
TOTAL = plan(F(1), ROWS, by=("g",), sizes=(3,), total=True, change=True)
WINDOWED = plan(F(1), WEEKS, p.KeepRows(0, 1, (), None))
TWICE = plan(F(1), PEOPLE, TWO, p.Meet(1, 1, (("g", "g"),), "inner", (("x", "x2"),)))
LOOKUP = HONEST["lookup"]
WEIGHED = plan(F(1), PEOPLE, p.Weigh(0, F(2)), by=("g",), sizes=(4,))


def _table(stated: Plan, **fields: object) -> Plan:
    first, *rest = stated.tables
    return replace(stated, tables=(replace(first, **fields), *rest))  # type: ignore[arg-type]


def _draw(stated: Plan, number: int = 0, **fields: object) -> Plan:
    draws = [*stated.draws]
    draws[number] = replace(draws[number], **fields)  # type: ignore[arg-type]
    return replace(stated, draws=tuple(draws))


def _what(stated: Plan, number: int = 0, **fields: object) -> Plan:
    what = replace(stated.draws[number].what, **fields)  # type: ignore[arg-type]
    return _draw(stated, number, what=what)


def _law(stated: Plan, number: int = 0, **fields: object) -> Plan:
    law = replace(stated.draws[number].law, **fields)  # type: ignore[arg-type]
    return _draw(stated, number, law=law)


def _frames(stated: Plan, *frames: p.Frame) -> Plan:
    """The plan of other frames, whose tables are of the last one."""
    tables = tuple(replace(table, frame=len(frames) - 1) for table in stated.tables)
    return replace(stated, frames=frames, tables=tables)


def _keys(stated: Plan, **fields: object) -> Plan:
    keys = stated.tables[0].keys
    assert keys is not None
    return _table(stated, keys=replace(keys, **fields))  # type: ignore[arg-type]


def _person(**fields: object) -> Plan:
    unit = replace(p.Person("p", None, None), **fields)  # type: ignore[arg-type]
    return _frames(PERSONS, replace(PEOPLE, unit=unit), ONE)


def _scan(unit: p.Unit, columns: tuple[tuple[str, str], ...]) -> p.Scan:
    return p.Scan("A", columns, unit, None)


MEET = TWICE.frames[2]
assert isinstance(MEET, p.Meet)
LOOK = LOOKUP.frames[1]
assert isinstance(LOOK, p.Lookup)
OTHER = p.Scan("B", PEOPLE.columns, p.Person("p", "1d", "t"), None)

CONDITIONS: dict[str, list[tuple[Plan, Plan]]] = {
    "the owners of rows": [
        (COUNT, _frames(COUNT, replace(ROWS, owners=p.Owners("B", "h", "h")))),
        (
            _frames(PERSONS, replace(PEOPLE, owners=p.Owners("B", "h", "h")), ONE),
            _frames(PERSONS, replace(PEOPLE, owners=p.Owners("B", "q", "h")), ONE),
        ),
    ],
    "a key of a part": [
        (
            _frames(COUNT, ROWS, p.Part(0, (G,), (p.Lit("Int64", "1"),))),
            _frames(COUNT, ROWS, p.Part(0, (G,), ())),
        )
    ],
    "an exploded column": [
        (HONEST["explode"], _frames(COUNT, ROWS, p.Explode(0, "q", 3))),
        (HONEST["explode"], _frames(COUNT, ROWS, p.Explode(0, "l", 0))),
        (PERSONS, _frames(PERSONS, PEOPLE, ONE, p.Explode(1, "p", 2))),
        (WINDOWED, _frames(WINDOWED, WEEKS, ONE, p.Explode(1, "t", 2))),
    ],
    "a norm": [
        (WEIGHED, _frames(KEYED, ROWS, p.Weigh(0, F(2)))),
        (WEIGHED, _frames(WEIGHED, PEOPLE, p.Weigh(0, F(1, 65)))),
        (WEIGHED, _frames(WEIGHED, PEOPLE, p.Weigh(0, F(1 << 16)))),
    ],
    "one row for each individual": [(HONEST["one each"], _frames(COUNT, ROWS, EACH))],
    "a step on a frame": [
        (PERSONS, _frames(PERSONS, PEOPLE, p.KeepRows(1, 1, (), None))),
        (PERSONS, _frames(PERSONS, PEOPLE, p.KeepRows(-1, 1, (), None))),
    ],
    "two columns of one name": [
        (COUNT, _frames(COUNT, _scan(p.Rows(1), (("x", "Int64"), ("x", "Int64"))))),
        (HONEST["map"], _frames(COUNT, ROWS, p.Map(0, (("x", X), ("x", H))))),
        *(
            (HONEST["one each"], _frames(PERSONS, PEOPLE, replace(EACH, **{name: "p"})))
            for name in ("rows", "groups", "fullest")
        ),
        (
            HONEST["one each"],
            _frames(PERSONS, PEOPLE, replace(EACH, ends=(p.Ends("l", "l", X, total=True),))),
        ),
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, new=("x",)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, new=(("x", "h"),)))),
        (
            HONEST["gather"],
            _frames(PERSONS, PEOPLE, p.Gather(0, (), (("p", LEN),), (None,), False), ONE),
        ),
        (CROSSED, _keys(CROSSED, by=(("k", G), ("k", H)))),
    ],
    "an expression of a column that is not there": [
        (COUNT, _frames(COUNT, ROWS, p.Filter(0, (other("f", p.Col("q")),)))),
        (COUNT, _frames(COUNT, ROWS, p.Map(0, (("x", p.Col("q")),)))),
        (COUNT, _frames(COUNT, ROWS, p.Part(0, (p.Col("q"),), (p.Lit("Int64", "1"),)))),
        (COUNT, _frames(COUNT, ROWS, p.Without(0, (p.Col("q"),)))),
        (
            HONEST["gather"],
            _frames(PERSONS, PEOPLE, p.Gather(0, (("k", p.Col("q")),), (), (), False), ONE),
        ),
        (KEYED, _keys(KEYED, by=(("k", p.Col("q")),))),
        (CELLED, _table(CELLED, cells=replace(EDGES, row=p.Col("q")))),
        (CELLED, _table(CELLED, cells=p.Whole(replace(EDGES, row=p.Col("q"))))),
        (BOX, _table(BOX, adds=p.Placed(p.Col("q"), GRID))),
        (HONEST["valued"], _table(HONEST["valued"], adds=p.Valued(p.Col("q")))),
        (HONEST["distinct"], _table(HONEST["distinct"], adds=p.Distinct(p.Col("q")))),
        (HONEST["squared"], _table(HONEST["squared"], adds=p.Squared(p.Col("q"), GRID, 0))),
        (
            HONEST["paired"],
            _table(HONEST["paired"], adds=p.Paired(X, GRID, p.Col("q"), GRID)),
        ),
        (
            HONEST["values of a person"],
            _table(HONEST["values of a person"], adds=p.PersonRows(p.Col("q"), 4)),
        ),
        (
            HONEST["totals"],
            _table(HONEST["totals"], adds=p.PersonTotal(p.Placed(p.Col("q"), GRID))),
        ),
    ],
    "an individual without rows": [(COUNT, _frames(COUNT, replace(ROWS, unit=p.Rows(0))))],
    "the owner of rows": [
        (PERSONS, _person(column="q")),
        (WINDOWED, _person(every="1w")),
        (WINDOWED, _person(time="t")),
        (WINDOWED, _person(every="1w", time="p")),
        (WINDOWED, _person(every="1w", time="q")),
    ],
    "the column of the owner is gone": [
        (PERSONS, _frames(PERSONS, PEOPLE, ONE, p.Map(1, (("x", X),)))),
        (WINDOWED, _frames(WINDOWED, WEEKS, ONE, p.Map(1, (("p", p.Col("p")),)))),
    ],
    "keys of a join": [
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, on=()))),
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, on=(("q", "k"),)))),
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, most=-1))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, on=(("q", "g"),)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, on=(("g", "q"),)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, p.Weigh(1, F(2)), replace(MEET, right=2))),
    ],
    "a join that only keeps rows": [
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, how="semi"))),
        (LOOKUP, _frames(COUNT, ROWS, replace(LOOK, how="anti"))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, how="semi"))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, how="anti"))),
    ],
    "frames that do not fit together": [
        (HONEST["union"], _frames(COUNT, ROWS, p.Map(0, (("x", X),)), p.Union(0, 1))),
        (
            _frames(PERSONS, PEOPLE, TWO, p.Union(1, 1)),
            _frames(WEIGHED, PEOPLE, TWO, p.Weigh(1, F(2)), p.Union(1, 2)),
        ),
    ],
    "frames with other owners": [
        (
            _frames(PERSONS, PEOPLE, TWO, p.Union(1, 1)),
            _frames(
                PERSONS,
                PEOPLE,
                TWO,
                p.Map(
                    1, tuple((n, p.Col({"p": "g", "g": "p"}.get(n, n))) for n, _ in PEOPLE.columns)
                ),
                p.Union(1, 2),
            ),
        )
    ],
    "rows meet by their owner": [
        (TWICE, _frames(COUNT, ROWS, p.Meet(0, 0, (("g", "g"),), "semi", ())))
    ],
    "columns of a join": [
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, new=(("q", "x2"),)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, new=(("p", "x2"),)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, new=(("g", "x2"),)))),
        (TWICE, _frames(TWICE, PEOPLE, TWO, replace(MEET, new=(("x", "x2"), ("x", "x3"))))),
    ],
    "a limit$": [
        (PERSONS, _frames(PERSONS, PEOPLE, p.KeepRows(0, 0, (), None))),
        (PERSONS, _frames(PERSONS, PEOPLE, ONE, p.KeepRows(1, 1, ("q",), None))),
        (PERSONS, _frames(COUNT, ROWS, ONE)),
    ],
    "a limit by columns that are not there": [
        (PERSONS, _frames(PERSONS, PEOPLE, p.KeepRows(0, 1, (), None, ("x", "q"))))
    ],
    "a limit in the order": [(PERSONS, _frames(PERSONS, PEOPLE, p.KeepRows(0, 1, (), "q")))],
    "a limit of groups": [
        (PERSONS, _frames(PERSONS, PEOPLE, ONE, p.KeepGroups(1, 1, (), None))),
        (PERSONS, _frames(PERSONS, PEOPLE, ONE, p.KeepGroups(1, 1, ("g",), "h"))),
    ],
    "aggregates of an individual's rows": [
        (HONEST["gather"], _frames(COUNT, ROWS, p.Gather(0, (), (("n", LEN),), (None,), False))),
    ],
    "bounds of aggregates": [
        (HONEST["gather"], _frames(PERSONS, PEOPLE, p.Gather(0, (), (("n", LEN),), bounds, False)))
        for bounds in ((), (None, None), ((F(1), F(0)),))
    ],
    "rows that are weighed become other rows": [
        (
            HONEST["gather"],
            _frames(PERSONS, PEOPLE, p.Weigh(0, F(2)), p.Gather(1, (), (), (), False)),
        ),
    ],
    "individuals are counted": [(COUNT, _table(COUNT, adds=p.People()))],
    "persons come and go": [(PERSONS, replace(PERSONS, neighbours="change-one"))],
    "weights are for the finest groups": [
        (WEIGHED, _what(_keys(WEIGHED, by=(("k", G), ("l", H)), sizes=(4, 2)), kept=(0,)))
    ],
    "individuals are in cells": [
        (
            _table(PERSONS, adds=p.People(), cells=p.OfPeople(EDGES, GRID)),
            _table(PERSONS, adds=p.PersonRows(None, 2), cells=p.OfPeople(EDGES, GRID)),
        )
    ],
    "kept columns of keys": [
        (COUNT, _what(COUNT, kept=(0,))),
        (CROSSED, _what(CROSSED, kept=(1, 0))),
        (CROSSED, _what(CROSSED, kept=(0, 0))),
        (CROSSED, _what(CROSSED, kept=(2,))),
        (CROSSED, _what(CROSSED, kept=(-1,))),
        (KEYED, _what(_keys(KEYED, by=(), sizes=(1,)), kept=())),
    ],
    "combinations that are no product": [(CROSSED, _what(_keys(CROSSED, sizes=(9,)), kept=(0,)))],
    "sizes of keys": [
        (CROSSED, _keys(CROSSED, sizes=(3, 4, 5))),
        (CROSSED, _keys(CROSSED, sizes=(3, -1))),
    ],
    "one individual may have any number of rows": [(PERSONS, _frames(PERSONS, PEOPLE))],
    "a number of rows": [
        (
            HONEST["rows of a person"],
            _table(HONEST["rows of a person"], adds=p.PersonRows(None, 0)),
        )
    ],
    "a grid": [
        (BOX, _table(BOX, adds=p.Placed(X, replace(GRID, lo=6)))),
        (BOX, _table(BOX, adds=p.Placed(X, replace(GRID, step=F(0))))),
        (
            _table(PERSONS, adds=p.People(), cells=p.OfPeople(EDGES, GRID)),
            _table(PERSONS, adds=p.People(), cells=p.OfPeople(EDGES, replace(GRID, step=F(0)))),
        ),
        (HONEST["squared"], _table(HONEST["squared"], adds=p.Squared(X, replace(GRID, lo=6), 0))),
        (
            HONEST["paired"],
            _table(HONEST["paired"], adds=p.Paired(X, GRID, H, replace(GRID, step=F(-1)))),
        ),
    ],
    "a shift of squares": [
        (HONEST["squared"], _table(HONEST["squared"], adds=p.Squared(X, GRID, -1))),
        (HONEST["squared"], _table(HONEST["squared"], adds=p.Squared(X, GRID, (1 << 12) + 1))),
    ],
    "edges or candidates": [
        (CELLED, _table(CELLED, cells=p.UpTo(X, (F(1), F(1)), True))),
        (CELLED, _table(CELLED, cells=p.Edges(X, (F(1), F(0)), True))),
        (NOISY, _table(NOISY, cells=p.Between(X, (F(1), F(1))))),
    ],
    "a value is listed twice": [(CELLED, _table(CELLED, cells=p.Values(X, ("1", "1"), False)))],
    "points": [(RANK, _table(RANK, cells=p.Points(X, F(0), F(0), 3)))],
    "no cells": [
        (CELLED, _table(CELLED, cells=p.Edges(X, (F(1),), True))),
        (CELLED, _table(CELLED, cells=p.Values(X, (), False))),
        (CELLED, _table(CELLED, cells=p.UpTo(X, (), False))),
        (RANK, _table(RANK, cells=p.Points(X, F(0), F(1), 0))),
    ],
    "a matrix of another size": [
        (COUNT, _what(COUNT, matrix=())),
        (COUNT, _what(COUNT, matrix=((1, 1),))),
        (COUNT, _what(COUNT, matrix=((1,), ()))),
    ],
    "one individual may be in several cells": [
        (CELLED, _table(_frames(CELLED, PEOPLE, ONE), adds=p.People())),
        (RUNNING, _table(_frames(RUNNING, PEOPLE, ONE), adds=p.People())),
    ],
    "runs of cells": [(CELLED, _what(CELLED, run=3)), (CELLED, _what(CELLED, run=-1))],
    "a draw without tables": [(COUNT, _what(COUNT, tables=(), matrix=((),)))],
    "tables of other rows": [
        (
            TABLES,
            replace(TABLES, tables=(TABLES.tables[0], replace(TABLES.tables[1], cells=EDGES))),
        ),
    ],
    "a frame that is not there": [
        (COUNT, _table(COUNT, frame=1)),
        (COUNT, _table(COUNT, frame=-1)),
    ],
    "numbers of different values": [
        (WEIGHED, _table(WEIGHED, adds=p.Distinct(X))),
        (WEIGHED, _table(WEIGHED, adds=p.DistinctPersons())),
    ],
    "factors of cells": [
        (RUNNING, _what(RUNNING, column=(2,))),
        (RUNNING, _what(RUNNING, column=(1, 2))),
        (RUNNING, _what(RUNNING, column=(1, -1))),
        (RUNNING, _what(_table(RUNNING, cells=None), column=(1,))),
        (RUNNING, _table(RUNNING, adds=p.Placed(X, GRID))),
    ],
    "scores of other candidates": [
        (NOISY, _table(NOISY, cells=POINTS)),
        (NOISY, _frames(NOISY, PEOPLE, ONE, p.Weigh(1, F(2)))),
    ],
    "a quantile$": [
        (RANK, _what(RANK, quantile=F(-1, 2))),
        (RANK, _what(RANK, quantile=F(3, 2))),
        (NOISY, _what(NOISY, quantile=F(3, 2))),
    ],
    "a total that would cost more": [
        (TOTAL, replace(TOTAL, neighbours="add-remove")),
        (TOTAL, _what(TOTAL, matrix=((2,),))),
        (TOTAL, _table(TOTAL, adds=p.Placed(X, GRID))),
    ],
    "a table that is not there": [
        (COUNT, _what(COUNT, tables=(1,))),
        (RANK, _what(RANK, table=-1)),
    ],
    "scores of rows that are weighed": [
        (CHOICE, _frames(CHOICE, PEOPLE, ONE, p.Weigh(1, F(2)))),
    ],
    "a choice by the numbers of several tables": [
        (CHOICE, _what(replace(CHOICE, tables=CHOICE.tables * 2), tables=(0, 1)))
    ],
    "quantiles that do not rise": [
        (RANKS, _what(RANKS, quantiles=())),
        (RANKS, _what(RANKS, quantiles=(F(1, 2), F(1, 4)))),
        (RANKS, _what(RANKS, quantiles=(F(5, 4),))),
    ],
    "levels that do not have each quantile once": [
        (LEVELS, _what(LEVELS, levels=((1,),))),
        (LEVELS, _what(LEVELS, levels=((1,), (0, 1)))),
    ],
    "choices of one level": [(LEVELS, _what(LEVELS, levels=((0, 1),)))],
    "a quantile of no rows": [
        (LEVELS, _what(LEVELS, quantiles=(F(1, 2),) * 3, levels=((0,), (2,), (1,)))),
    ],
    "reports of rows that may come or go": [
        (REPORTS, replace(REPORTS, neighbours="add-remove")),
        (REPORTS, _frames(REPORTS, REPORTS.frames[0], p.Filter(0, ()))),
        (REPORTS, _table(REPORTS, keys=p.Listed((("k", G),), (3,), "keys"))),
    ],
    "reports of rows that are in no cell": [
        (REPORTS, _table(REPORTS, cells=EDGES)),
        (REPORTS, _table(REPORTS, cells=p.Values(X, ("1", "2"), False))),
        (REPORTS, _table(REPORTS, adds=p.Valued(X))),
    ],
    "a choice among no cells": [(CHOICE, _table(CHOICE, cells=None))],
    "a choice among no groups": [
        (WINNER, _what(_table(WINNER, keys=None))),
        (WINNER, _table(WINNER, cells=EDGES)),
    ],
    "a choice among tables of cells": [
        (TABLES, replace(TABLES, tables=tuple(replace(t, cells=EDGES) for t in TABLES.tables)))
    ],
    "ranks of something else": [
        (RANK, _table(RANK, adds=p.Valued(X))),
        (NOISY, _table(NOISY, adds=p.Valued(X))),
    ],
    "ranks in cells that have no order": [
        (RANK, _table(RANK, cells=EDGES)),
        (RANKS, _table(RANKS, cells=p.Values(X, ("1",), True))),
        (LEVELS, _table(LEVELS, cells=EDGES)),
    ],
    "no noise on numbers": [(COUNT, _draw(COUNT, law=p.Exact()))],
    "a scale that cannot be drawn": [
        (COUNT, _draw(COUNT, law=p.Laplace(F(1, 1025), 1))),
        (COUNT, _draw(COUNT, law=p.Laplace(F((1 << 56) + 1), 1))),
        (COUNT, _draw(COUNT, law=p.Laplace(F(1 << 56, 1024), 1025))),
        (COUNT, _draw(COUNT, law=p.Laplace(F(7), 2))),
        (CHOICE, _draw(CHOICE, law=p.Exponential(F(1, 1025)))),
        (CHOICE, _draw(CHOICE, law=p.Exponential(F((1 << 62) + 1)))),
        (CHOICE, _draw(CHOICE, law=p.NoisyMax(F((1 << 56) + 1)))),
    ],
    "a sigma that cannot be drawn": [
        (replace(COUNT, measure="rho"), _draw(replace(COUNT, measure="rho"), law=p.Gaussian(v)))
        for v in (F(1, (1 << 20) + 1), F((1 << 112) + 1))
    ],
    "a staircase that cannot be drawn": [
        (HONEST["staircase"], _draw(COUNT, law=p.Staircase(*parameters)))
        for parameters in ((F(1, 9), 2, 1), (F(65), 2, 1), (F(1), 2, 0), (F(1), 2, 3))
    ],
    "a box of numbers that are no vector": [
        (RUNNING, _draw(RUNNING, law=p.Box(F(1), (1, 1), 1, ())))
    ],
    "a choice of numbers that are not scores": [(COUNT, _draw(COUNT, law=p.Exponential(SCALE)))],
    "a choice without rounds": [(CHOICE, _what(CHOICE, rounds=0))],
    "a choice without noise": [(CHOICE, _draw(CHOICE, law=p.Exact()))],
    "noise of scores that are not released": [(CHOICE, _draw(CHOICE, law=LAPLACE))],
    "reports that are not random": [
        (REPORTS, _draw(REPORTS, law=LAPLACE)),
        (REPORTS, _law(REPORTS, epsilon=F(0))),
        (REPORTS, _table(REPORTS, cells=p.Values(X, (), True))),
    ],
    "noise whose tail is not known": [
        (THRESHOLD, _draw(THRESHOLD, law=p.Staircase(F(1), 2, 1))),
    ],
    "a fineness of a box": [(BOX, _law(BOX, fineness=f)) for f in (0, 3, 1 << 31)],
    "widths of a box": [
        (BOX, _law(BOX, widths=())),
        (BOX, _law(BOX, widths=(0,))),
        (BOX, _law(BOX, widths=((1 << 32) + 1,))),
        (BOX, _law(BOX, widths=(5,) * 65)),
    ],
    "a box that cannot be drawn": [
        (BOX, _law(BOX, epsilon=F(0))),
        (BOX, _law(BOX, epsilon=F((1 << 14) + 1))),
        (BOX, _law(BOX, epsilon=F(1, 1 << 60))),
    ],
    "hulls that cannot be drawn": [(HULL, _law(HULL, arches=((0, 1, 2),) * 9))],
    "a box of other numbers": [(BOX, _law(BOX, widths=(5, 5)))],
    "a row moves numbers out of the box": [(BOX, _law(BOX, widths=(4,)))],
    "a hull of numbers that are not there": [
        (HULL, _law(HULL, arches=((0, 1, 3),))),
        (HULL, _law(HULL, arches=((-3, -2, -1),))),
    ],
    "hulls that share a sum": [
        (HULL, _law(HULL, arches=((0, 1, 2), (0, 1, 2)))),
        (HULL, _law(HULL, arches=((0, 1, 2), (2, 1, 0)))),
    ],
    "numbers that are no count": [
        (HULL, _law(HULL, arches=((0, 2, 1),))),
        (HULL, _law(HULL, widths=(1, 6, 25))),
        (HULL, _law(HULL, widths=(1, 5, 26))),
        (HULL, _law(HULL, widths=(2, 5, 25))),
        (HULL, _what(HULL, matrix=((1, 0, 0), (0, 1, 0), (0, 0, -1)))),
        (HULL, _what(_law(HULL, widths=(1, 6, 25)), matrix=((1, 0, 0), (1, 1, 0), (0, 0, 1)))),
        (HULL, _table(HULL, adds=p.Valued(H))),
    ],
    "stands there with other owners": [
        (COUNT, replace(COUNT, frames=(ROWS, replace(ROWS, unit=p.Rows(2))))),
    ],
    "sources that protect rows": [
        (COUNT, replace(COUNT, frames=(ROWS, replace(PEOPLE, name="B")))),
        (COUNT, replace(COUNT, frames=())),
    ],
    "sources with other windows": [(PERSONS, replace(PERSONS, frames=(*PERSONS.frames, OTHER)))],
    "a plan without draws": [(COUNT, replace(COUNT, draws=()))],
    "groups that no draw finds": [
        (RULE, _table(RULE, keys=p.Found((("g", G),), 2))),
        (RULE, _table(RULE, keys=p.Found((("g", G),), -1))),
        (RULE, _table(RULE, keys=p.Found((("g", G),), 1))),
    ],
    "groups that are found later": [
        (
            RULE,
            _table(
                replace(RULE, draws=(RULE.draws[1], RULE.draws[0])), keys=p.Found((("g", G),), 1)
            ),
        )
    ],
    "groups by other keys": [
        (
            RULE,
            _what(
                replace(
                    RULE,
                    tables=(
                        *RULE.tables,
                        replace(RULE.tables[0], keys=p.Found((("h", H),), 0)),
                    ),
                ),
                1,
                tables=(1,),
            ),
        )
    ],
    "a rule by which no group appears": [
        (RULE, _law(RULE, epsilon=F(0))),
        (RULE, _law(RULE, delta=F(0))),
        (RULE, _law(RULE, delta=F(1))),
    ],
    "a threshold of a number that is not drawn": [
        (LISTED, _law(LISTED, 1, draw=3)),
        (LISTED, _law(LISTED, 1, draw=-1)),
        (LISTED, _law(LISTED, 1, draw=1)),
    ],
    "a threshold of something else": [(THRESHOLD, _what(THRESHOLD, matrix=((2,),)))],
    "a threshold of another number": [
        (LISTED, _what(LISTED, tables=(1,))),
        (LISTED, _what(LISTED, kept=())),
    ],
    "a law by which no groups appear": [(RULE, _draw(RULE, law=LAPLACE))],
    "groups that appear by something else": [
        (RULE, _table(RULE, cells=EDGES)),
        (RULE, _table(RULE, adds=p.PersonRows(None, 2))),
        (RULE, _frames(RULE, *RULE.frames, p.Weigh(1, F(2)))),
    ],
    "an individual may have more rows in a group": [
        (RULE, _what(RULE, rows=0)),
        (
            _what(_table(_frames(RULE, *IN_TWO), adds=p.One()), rows=3),
            _what(_table(_frames(RULE, *IN_TWO), adds=p.One()), rows=2),
        ),
    ],
    "in another measure": [
        (COUNT, replace(COUNT, options=(replace(COUNT, measure="rho"),))),
        (KEYED, replace(KEYED, options=(replace(KEYED, neighbours="change-one"),))),
    ],
    "has options of its own": [
        (COUNT, replace(COUNT, options=(replace(COUNT, options=(COUNT,)),)))
    ],
    "option 0: draw 0": [(COUNT, replace(COUNT, options=(_what(COUNT, matrix=()),)))],
}
"""By message: plans that are accepted, and the same ones with one condition broken."""


# -- Streams -------------------------------------------------------------------------------------

DAYS = replace(PEOPLE, columns=(*PEOPLE.columns, ("d", "Date")))
ADD_ONE = p.One()
TREE, ROOT = p.Tree(3, 2), p.Root((8, 4, 3, 2, 2, 1, 1, 1, 0))


def _stream(
    *frames: p.Frame,
    every: p.Every = "1d",
    dtype: str = "Date",
    adds: p.Adds = ADD_ONE,
    by: tuple[str, ...] = (),
    keys: int = 1,
    sums: p.Root | p.Tree = TREE,
    change: bool = False,
    period: p.Row | None = None,
) -> Plan:
    """Nine periods of a frame, for each of some other keys."""
    day: p.Row = p.Col("d") if dtype == "Date" else other("dt_date", p.Col("d"))
    if every != "1d":
        day = p.Call("dt_truncate", (day,), f'[["every","{every}"]]')
    rows = [(f"k{name}", p.Col(name)) for name in by]
    listed = p.Listed((*rows, ("period", period or day)), (9 * keys,), "keys")
    nights = p.Nights(0, "d", dtype, every, "2027-03-01", 9, sums)
    rho = isinstance(sums, p.Root)
    law = p.Gaussian(F(1, 2)) if rho else p.Laplace(F(1), 1)
    made = plan(F(1), *frames, adds=(adds,), law=law, what=nights, rho=rho, change=change)
    return _generous(replace(made, tables=(p.Table(len(frames) - 1, listed, None, adds),)))


def _found(*frames: p.Frame, **fields: object) -> Fraction:
    (cost,) = verify(_stream(*frames, **fields)).costs  # type: ignore[arg-type]
    return cost


FIRST_ROWS = DAYS, p.KeepRows(0, 3, (), "d")
EACH_DAY = DAYS, p.KeepRows(0, 9, (), None), p.KeepRows(1, 2, ("d",), None)
FIRST_DAYS = DAYS, p.KeepGroups(0, 2, ("d",), "d"), p.KeepRows(1, 2, ("d",), None)
EACH_KEY = DAYS, p.KeepRows(0, 9, (), None), p.KeepRows(1, 2, ("d", "g"), None)


def test_what_persons_move_in_all_nights() -> None:
    """By hand, in two levels of a tree: each row of a period is in two sums."""
    people, of_g = p.People(), {"by": ("g",), "keys": 3}
    assert _found(*FIRST_ROWS) == 3 * 2
    assert _found(*FIRST_ROWS, adds=p.Placed(X, GRID)) == 5 * 3 * 2
    assert _found(*FIRST_ROWS, **of_g) == 3 * 2
    assert _found(*FIRST_DAYS) == 2 * 2 * 2
    assert _found(*EACH_DAY) == 9 * 2 * 2
    assert _found(*EACH_DAY, **of_g) == 9 * 2 * 2
    assert _found(*EACH_KEY, **of_g) == 3 * 9 * 2 * 2
    assert _found(DAYS, adds=people, **of_g) == 3 * 9 * 2
    assert _found(*EACH_DAY, adds=people, **of_g) == 2 * 9 * 2
    assert _found(*FIRST_DAYS, adds=people, **of_g) == 2 * 2 * 2
    for every, days in (("1w", 7), ("1mo", 31), ("1q", 92), ("1y", 366)):
        assert _found(*EACH_DAY, every=every) == days * 9 * 2 * 2
        assert _found(*EACH_KEY, every=every, **of_g) == 3 * days * 9 * 2 * 2
        assert _found(*FIRST_DAYS, every=every) == 2 * 2 * 2
        assert _found(DAYS, adds=people, every=every, **of_g) == 3 * 9 * 2
    with pytest.raises(Refused, match="no limit holds"):
        _found(*EACH_KEY)


@pytest.mark.parametrize(("branching", "levels"), [(2, 1), (3, 2), (2, 4)])
@pytest.mark.parametrize("run", [1, 2, 3])
def test_no_choice_of_periods_moves_the_sums_of_a_tree_further(
    branching: int, levels: int, run: int
) -> None:
    """By trying each: a sum of a level is of as many periods as its power of the branching."""
    tree = p.Tree(branching, levels)
    column = column_of(p.Nights(0, "d", "Date", "1d", "2027-03-01", 9, tree), run)
    for chosen in combinations(range(9), run):
        moved = Counter(
            (level, day // branching**level) for level in range(levels) for day in chosen
        )
        assert sum(moved.values()) <= column.l1
        assert sum(by * by for by in moved.values()) <= column.l2_squared
        assert max(moved.values()) <= column.linf


def test_squares_that_persons_move_in_all_nights() -> None:
    column = ROOT.column
    of_one = sum(c * c for c in column)
    windows = [column[0], *(a + b for a, b in zip(column[1:], column, strict=False))]
    of_two = sum(w * w for w in windows)
    assert _found(*FIRST_ROWS, sums=ROOT) == 9 * of_one
    assert _found(*FIRST_ROWS, sums=ROOT, adds=p.Placed(X, GRID)) == 25 * 9 * of_one
    assert _found(*FIRST_DAYS, sums=ROOT) == 4 * of_two
    assert _found(*FIRST_DAYS, sums=ROOT, adds=p.People(), by=("g",), keys=3) == 2 * of_two
    all_days = sum(sum(column[: t + 1]) ** 2 for t in range(9))
    assert _found(*EACH_DAY, sums=ROOT) == 4 * all_days
    assert _found(*EACH_KEY, sums=ROOT, by=("g",), keys=3) == 3 * 4 * all_days


def test_what_rows_move_in_all_nights() -> None:
    rows = replace(ROWS, columns=DAYS.columns, unit=p.Rows(2))
    of_one = sum(c * c for c in ROOT.column)
    assert _found(rows) == 2 * 2
    assert _found(rows, change=True) == 2 * 2 * 2
    assert _found(rows, adds=p.Placed(X, GRID), change=True) == 2 * 5 * 2 * 2
    assert _found(rows, sums=ROOT) == 4 * of_one
    assert _found(rows, sums=ROOT, change=True) == 2 * 4 * of_one


def _truncated(row: p.Row, every: str) -> p.Row:
    return p.Call("dt_truncate", (row,), f'[["every","{every}"]]')


D = p.Col("d")
STREAM_OF_ROWS = replace(ROWS, columns=DAYS.columns)
MOMENTS = _scan(p.Rows(1), (("d", "Datetime(us)"), ("x", "Int64")))
STREAMS: dict[str, list[tuple[Plan, Plan]]] = {
    "a stream by something else than listed keys": [
        (_stream(*FIRST_ROWS), _table(_stream(*FIRST_ROWS), cells=EDGES)),
        (_stream(*FIRST_ROWS), _table(_stream(*FIRST_ROWS), keys=None)),
        (_stream(*FIRST_ROWS), _stream(*FIRST_ROWS, p.Weigh(1, F(2)))),
    ],
    "a stream of rows that do not stand alone": [
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, p.Union(0, 0))),
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, p.Without(0, (G,)))),
        (
            _stream(*FIRST_ROWS),
            _stream(DAYS, p.Gather(0, (), (("n", LEN),), (None,), True), p.KeepRows(1, 3, (), "d")),
        ),
        (_stream(*FIRST_ROWS), _stream(*FIRST_ROWS, p.Meet(1, 1, (), "semi", ()))),
        (
            _stream(*FIRST_ROWS),
            _stream(replace(DAYS, unit=p.Person("p", "1w", "t")), p.KeepRows(0, 3, (), "d")),
        ),
    ],
    "sums of periods that do not add up": [
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, adds=p.Distinct(X))),
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, adds=p.Squared(X, GRID, 0))),
    ],
    "the periods of a stream": [
        (_stream(STREAM_OF_ROWS), _what(_stream(STREAM_OF_ROWS), periods=0)),
        (_stream(STREAM_OF_ROWS), _what(_stream(STREAM_OF_ROWS), periods=4)),
    ],
    "the dates of a stream have another type": [
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, dtype="Datetime(us)")),
        (_stream(MOMENTS, dtype="Datetime(us)"), _stream(MOMENTS)),
    ],
    "periods by something else": [
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, period=p.Col("t"))),
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, period=_truncated(D, "1w"))),
        (_stream(STREAM_OF_ROWS), _stream(STREAM_OF_ROWS, every="1w", period=D)),
        (
            _stream(STREAM_OF_ROWS, every="1w"),
            _stream(STREAM_OF_ROWS, every="1w", period=_truncated(D, "1mo")),
        ),
        (
            _stream(STREAM_OF_ROWS, every="1w"),
            _stream(STREAM_OF_ROWS, every="1w", period=_truncated(p.Col("t"), "1w")),
        ),
        (_stream(MOMENTS, dtype="Datetime(us)"), _stream(MOMENTS, dtype="Datetime(us)", period=D)),
    ],
    "a stream that begins on no date": [
        (_stream(*FIRST_ROWS), _what(_stream(*FIRST_ROWS), start="2027-02-30")),
    ],
    "sizes of keys": [
        (_stream(*FIRST_ROWS), _keys(_stream(*FIRST_ROWS), sizes=())),
        (_stream(*FIRST_ROWS), _keys(_stream(*FIRST_ROWS), sizes=(3, 3))),
    ],
    "an expression of a column that is not there": [
        (
            _stream(*FIRST_ROWS, by=("g",), keys=3),
            _stream(*FIRST_ROWS, by=("q",), keys=3),
        ),
    ],
    "a tree of periods": [
        (_stream(*FIRST_ROWS), _stream(*FIRST_ROWS, sums=p.Tree(1, 2))),
        (_stream(*FIRST_ROWS), _stream(*FIRST_ROWS, sums=p.Tree(2, 0))),
        (_stream(*FIRST_ROWS), _stream(*FIRST_ROWS, sums=p.Tree(2, 65))),
    ],
    "factors of periods": [
        (_stream(*FIRST_ROWS, sums=ROOT), _stream(*FIRST_ROWS, sums=p.Root((1,) * 8))),
        (_stream(*FIRST_ROWS, sums=ROOT), _stream(*FIRST_ROWS, sums=p.Root((1,) * 8 + (-1,)))),
        (_stream(*FIRST_ROWS, sums=ROOT), _stream(*FIRST_ROWS, sums=p.Root((1,) * 8 + (2,)))),
    ],
}
for more, pairs in STREAMS.items():
    CONDITIONS[more] = [*CONDITIONS.get(more, []), *pairs]


@pytest.mark.parametrize(
    ("message", "number"),
    [(message, n) for message, pairs in CONDITIONS.items() for n in range(len(pairs))],
)
def test_a_broken_condition_is_refused(message: str, number: int) -> None:
    right, wrong = CONDITIONS[message][number]
    verify(_generous(right))
    with pytest.raises(Refused, match=message):
        verify(_generous(wrong))
