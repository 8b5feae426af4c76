"""The kernel's norms of sums over disjoint sets of rows, against all moves there are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dpframe.core.units import Rows
from dpframe.kernel.frame import Facts, GroupLimit, RowLimit
from dpframe.kernel.moves import Norms, norms_of
from dpframe.kernel.plan import (
    Adds,
    Cells,
    Col,
    Grid,
    Listed,
    Nights,
    One,
    Placed,
    Plan,
    Table,
    Tree,
    Values,
    Vector,
)

Change = tuple[int, ...]
"""What a move adds to each entry."""


def norms(
    adds: Adds,
    facts: Facts,
    neighbours: str,
    groups: int | None,
    cells: Cells | None = None,
    total: bool = False,
) -> Norms:
    """The norms of a table by this many listed groups, or of all rows."""
    keys = None if groups is None else Listed((("g", Col("g")),), (groups,), "")
    plan = Plan(
        neighbours,  # type: ignore[arg-type]
        *((), (Table(0, keys, cells, adds),), (), "epsilon"),
        *(Fraction(0), Fraction(0), ()),
    )
    kept = () if groups is None else (0,)
    return norms_of(plan, [facts], Vector((0,), ((1,),), kept, 1, total))


def of_rows(unit: Rows, lo: int, hi: int, entries: int | None, total: bool = False) -> Norms:
    """Of sums of values between `lo` and `hi`, of rows of which none stands for an individual."""
    facts = Facts(("g", "x"), unit.contributions, complete=False)
    adds = Placed(Col("x"), Grid(Fraction(1), Fraction(0), lo, hi))
    return norms(adds, facts, unit.adjacency, entries, total=total)


def rows(lo: int, hi: int, entries: int | None, always: bool) -> list[Change]:
    """What one row can add: a value in its entry, or 0 (dropped, null, or in no entry)."""
    size = entries or 1
    found = [
        tuple(value if i == entry else 0 for i in range(size))
        for entry in range(size)
        for value in range(lo, hi + 1)
    ]
    return found if always and entries is None else [*found, (0,) * size]


def changes(there: list[Change], unit: Rows) -> Iterator[Change]:
    """How far the vector moves, for every way in which an individual's rows may differ."""
    if unit.adjacency == "add-remove":
        single = there
    else:
        single = [tuple(b - a for a, b in zip(x, y, strict=True)) for x in there for y in there]
    for moves in itertools.combinations_with_replacement(set(single), unit.contributions):
        yield tuple(map(sum, zip(*moves, strict=True)))


def check(found: Norms, moved: list[Change]) -> None:
    """Each norm is reached and none is exceeded; as many numbers as are reached, or more."""
    assert found.l1 == max(sum(map(abs, change)) for change in moved)
    assert found.l2_squared == max(sum(c * c for c in change) for change in moved)
    assert found.linf == max(max(map(abs, change)) for change in moved)
    assert found.l0 >= max(sum(c != 0 for c in change) for change in moved)


@pytest.mark.parametrize(
    ("entries", "k"),
    [*itertools.product((None, 1, 2, 3, 4), (1, 2)), *((entries, 3) for entries in (None, 1, 2))],
)
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize(("lo", "hi"), [(0, 1), (1, 1), (-1, 1), (0, 3), (2, 3), (-3, -2), (-1, 3)])
def test_norms_are_what_the_worst_move_reaches(
    entries: int | None, k: int, adjacency: str, lo: int, hi: int
) -> None:
    unit = Rows(adjacency, contributions=k)  # type: ignore[arg-type]
    moved = list(changes(rows(lo, hi, entries, always=False), unit))
    check(of_rows(unit, lo, hi, entries), moved)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("entries", [None, 1, 3])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_rows_that_are_all_there_are_counted_alike(
    complete: bool, entries: int | None, k: int, adjacency: str
) -> None:
    unit = Rows(adjacency, contributions=k)  # type: ignore[arg-type]
    facts = Facts(("g", "x"), k, complete)
    always = complete and adjacency == "change-one"
    moved = list(changes(rows(1, 1, entries, always), unit))
    check(norms(One(), facts, adjacency, entries), moved)


@pytest.mark.parametrize(("k", "groups", "moved"), [(1, 1, 2), (3, 4, 6), (100, 1, 13)])
def test_rows_move_a_sum_of_each_width_and_no_more_than_are_drawn(
    k: int, groups: int, moved: int
) -> None:
    """Nine days, one by one and in four pairs: 13 sums of each group, and each row is in two."""
    keys = Listed((("g", Col("g")), ("day", Col("day"))), (9 * groups,), "")
    plan = Plan(
        "add-remove",
        *((), (Table(0, keys, None, One()),), (), "epsilon"),
        *(Fraction(0), Fraction(0), ()),
    )
    nights = Nights(0, "day", "Date", "1d", "2027-03-01", 9, Tree(2, 2))
    found = norms_of(plan, [Facts(("g", "day"), k, complete=False)], nights)
    assert (found.l0, found.l1) == (moved, 2 * k)


@pytest.mark.parametrize(("groups", "cells"), [(1, 2), (1, 3), (2, 2), (3, 2), (2, 3)])
def test_norms_with_limits_of_cells_are_what_the_worst_table_reaches(
    groups: int, cells: int
) -> None:
    """Against all tables of one individual's rows, with any limits of rows, groups and cells."""
    most = 5 if groups * cells <= 4 else 3
    tables = np.array(list(itertools.product(range(most + 1), repeat=groups * cells)))
    total, largest = tables.sum(axis=1), tables.max(axis=1)
    in_group = tables.reshape(-1, groups, cells).sum(axis=2).max(axis=1)
    squared, touched = (tables**2).sum(axis=1), (tables > 0).sum(axis=1)
    listed = Values(Col("c"), tuple(map(str, range(cells))), other=False)
    for n, of_group, of_cell in itertools.product(
        range(1, most * groups + 1), range(1, most * cells), range(1, most + 1)
    ):
        limits = (
            RowLimit(n),
            GroupLimit(groups, frozenset({"g"})),
            RowLimit(of_group, frozenset({"g"})),
            RowLimit(of_cell, frozenset({"g", "c"})),
        )
        facts = Facts(("p", "g", "c"), 0, complete=False, person="p", limits=limits)
        found = norms(One(), facts, "add-remove", groups, listed)
        may = (total <= n) & (in_group <= of_group) & (largest <= of_cell)
        assert found.l1 == total[may].max()
        assert found.linf == largest[may].max()
        assert found.l2_squared == squared[may].max()
        assert found.l0 >= touched[may].max()


@pytest.mark.parametrize("entries", [2, 3])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("ends", [(0, 1), (0, 3), (-2, 0), (2, 3), (-3, -1)])
def test_a_total_costs_no_more_where_rows_that_change_add_numbers_of_one_sign(
    entries: int, k: int, ends: tuple[int, int]
) -> None:
    unit = Rows("change-one", contributions=k)
    moved = changes(rows(*ends, entries, always=False), unit)
    found = of_rows(unit, *ends, entries, total=True)
    check(found, [(*change, sum(change)) for change in moved])
    plain = of_rows(unit, *ends, entries)
    assert (plain.l1, plain.l2_squared) == (found.l1, found.l2_squared)


@pytest.mark.parametrize("entries", [None, 1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_rows_that_add_nothing_move_nothing(entries: int | None, adjacency: str) -> None:
    unit = Rows(adjacency, contributions=3)  # type: ignore[arg-type]
    found = of_rows(unit, 0, 0, entries)
    assert (found.l1, found.l2_squared, found.linf) == (0, 0, 0)
