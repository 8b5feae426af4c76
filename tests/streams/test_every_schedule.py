"""The proof of what individuals move (`dpframe.frames.nights`), against every small frame that
grows: every set of rows, each of which comes on every night or never, and every choice among the
rows that limits leave open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.draw import part_of
from dpframe.frames.nights import Schedule
from dpframe.workloads import PeriodTree, RunningSums, SquareRoot
from tests.streams.nights import KEYS, SCHEMA, START, Row, column, moved, prepared_of, vectors

Cell = tuple[int, int]
"""A date and a key."""


def schedules(cells: Sequence[Cell], nights: int) -> Iterator[list[frozenset[Cell]]]:
    """What there is on each night, however late each cell has its first row."""
    for arrivals in itertools.product(range(nights + 1), repeat=len(cells)):
        yield [
            frozenset(cell for cell, first in zip(cells, arrivals, strict=True) if first <= night)
            for night in range(nights)
        ]


def first_dates(there: frozenset[Cell], g: int, pick: int) -> list[Cell]:
    """A row of each of the first dates; which key it has on which date nobody can tell."""
    dates = sorted({date for date, _ in there})[:g]
    found = []
    for place, date in enumerate(dates):
        keys = sorted(key for d, key in there if d == date)
        found.append((date, keys[(pick >> place) % len(keys)]))
    return found


class Nights:
    """All that is drawn through all nights, by what each cell adds to it, in whole parts."""

    def __init__(self, sums: RunningSums, nights: int, keys: int) -> None:
        self._rows: list[dict[Cell, np.ndarray[Any, Any]]] = []
        for night in range(nights):
            self._rows.append({})
            for key in range(keys):
                for date in range(-1, nights):
                    exact = np.zeros((keys, night + 1), dtype=np.int64)
                    if 0 <= date <= night:
                        exact[key, date] = 1
                    self._rows[night][date, key] = sums.sums(exact, night).reshape(-1)

    def norms(self, kept: Sequence[Sequence[Cell]]) -> tuple[int, int, int]:
        """L1, L2 squared and Linf of what cells add that are kept on each night."""
        l1 = l2_squared = linf = 0
        for row, cells in zip(self._rows, kept, strict=True):
            if cells:
                vector = sum(row[cell] for cell in cells)
                l1 += int(np.abs(vector).sum())
                l2_squared += int((vector * vector).sum())
                linf = max(linf, int(np.abs(vector).max()))
        return l1, l2_squared, linf


@pytest.mark.parametrize(("nights", "g"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("tree", [False, True])
def test_first_dates_with_one_key(nights: int, g: int, tree: bool) -> None:
    """Dates before the first period, after tonight, and late ones: none moves more, and the worst
    moves as much.
    """
    sums: RunningSums = PeriodTree(nights, 2, 2) if tree else SquareRoot(nights)
    declared = column(sums, g)
    cells = [(date, 0) for date in range(-1, nights)]
    worst = [0] * 3
    drawn = Nights(sums, nights, 1)
    for there in schedules(cells, nights):
        kept = [first_dates(cells_, g, 0) for cells_ in there]
        found = drawn.norms(kept)
        worst = [max(a, b) for a, b in zip(worst, found, strict=True)]
    assert worst[0] <= declared.l1
    assert worst[1] <= declared.l2_squared
    assert worst[2] <= declared.linf
    if not tree:
        assert worst[1] == declared.l2_squared


@pytest.mark.parametrize("g", [1, 2])
def test_first_dates_with_rows_in_any_key(g: int) -> None:
    """One row of each date: its key is another one each night, whichever is the worst."""
    nights, keys = 3, 2
    sums = SquareRoot(nights)
    declared = column(sums, g)
    cells = [(date, key) for date in range(nights) for key in range(keys)]
    worst, drawn = 0, Nights(sums, nights, 2)
    for there in schedules(cells, nights):
        for picks in itertools.product(range(1 << g), repeat=nights):
            kept = [first_dates(c, g, pick) for c, pick in zip(there, picks, strict=True)]
            worst = max(worst, drawn.norms(kept)[1])
    assert worst == declared.l2_squared


@pytest.mark.parametrize("n", [1, 2])
def test_first_rows_with_rows_in_any_key(n: int) -> None:
    """The first rows, of which several may have one date."""
    nights = 3
    sums = SquareRoot(nights)
    declared = column(sums, 1)
    cells = [(date, number) for date in range(-1, nights) for number in range(n)]
    worst, drawn = 0, Nights(sums, nights, 2)
    for there in schedules(cells, nights):
        kept = [[(date, 0) for date, _ in sorted(c)[:n]] for c in there]
        worst = max(worst, drawn.norms(kept)[1])
    assert worst == n * n * declared.l2_squared


# -- What nobody but the data owner can promise ---------------------------------------------------

SCHEDULE = Schedule("day", "1d", START, 5)


def changing() -> list[Row]:
    """A row that is of another key from the second night on, and one that takes its place."""
    nights = range(9)
    return [
        Row(0, 0, "a", 1, frozenset([0])),
        Row(0, 0, "b", 1, frozenset(nights[1:])),
        Row(0, 1, "a", 1, frozenset(nights[1:])),
    ]


def test_what_a_filter_before_a_limit_needs() -> None:
    """Where a row fails a filter that it had passed, a later one takes its place, and more moves
    than was paid for: so plans say what must not change. After the limit it may.
    """
    frame = dp.Session(rho=1).protect(pl.LazyFrame(schema=SCHEMA), unit="who", name="v")
    of_key = pl.col("key") == "a"
    before = frame.filter(of_key).limit_rows(1, order_by="day").dp_count()
    after = frame.limit_rows(1, order_by="day").filter(of_key).dp_count()
    found = []
    for query in (before, after):
        prepared = prepared_of(query, SCHEDULE, rho=1)
        (vector,) = vectors(prepared, SCHEDULE, changing(), range(5))
        (one,) = prepared.draws
        declared = part_of(one).sensitivity(prepared.query.scope)
        by = moved([0] * len(vector), vector).l2_squared
        found.append((by <= declared.l2_squared, prepared.plan.warnings))
    (broken, said), (kept, unsaid) = found
    assert not broken
    assert kept
    assert any('nor may what filter(col("key") == "a") makes of them change' in w for w in said)
    assert not any("nor may what" in w for w in unsaid)
    assert KEYS == ["a", "b"]
