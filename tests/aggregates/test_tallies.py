"""Numbers counted by cell in NumPy, against comparisons with every edge and against Polars."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.aggregates import cells
from dpframe.aggregates.cells import (
    BinTally,
    PointCells,
    PositionTally,
    Tally,
    UpToTally,
    WholeTally,
)
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import FLOAT64, INT64, Domain
from dpframe.core.tree import Column
from tests.aggregates.test_placing import EDGES, near
from tests.laws.layouts import WAYS

Edges = list[int] | list[float]


def reference(numbers: Sequence[Any], edges: Edges, kind: str) -> list[int]:
    """The counts by bisection, of Python's exact comparisons."""
    known = [x for x in numbers if x is not None and not math.isnan(x)]
    below, upto = ([f(edges, x) for x in known] for f in (bisect_left, bisect_right))
    last = len(edges) - 1
    if kind == "bins":
        places = [min(u - 1, last - 1) for u, x in zip(upto, known, strict=True) if x <= edges[-1]]
        size, places = last, [p for p in places if p >= 0]
    elif kind == "up to":
        size, places = last + 2, below
    else:
        size, places = 2 * last + 3, [b + u for b, u in zip(below, upto, strict=True)]
    found = Counter(places)
    return [found[i] for i in range(size)]


def made(edges: Edges) -> dict[str, Tally]:
    return {
        "bins": BinTally(edges, other=False),
        "up to": UpToTally(edges),
        "positions": PositionTally(edges),
    }


def column(numbers: Sequence[Any]) -> pl.Series:
    whole = all(x is None or isinstance(x, int) for x in numbers)
    return pl.Series("x", numbers, dtype=pl.Int64 if whole else pl.Float64)


def check(edges: Edges, numbers: Sequence[Any], way: str = "in one piece") -> None:
    found = WAYS[way](column(numbers), random.Random(0))
    for kind, tally in made(edges).items():
        tally.add(found)
        assert tally.counts().tolist() == reference(numbers, edges, kind), kind
        tally.add(found)  # what comes in batches adds up
        assert (tally.counts() // 2).tolist() == reference(numbers, edges, kind)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_BLOCK", 8)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("way", WAYS)
def test_next_to_every_edge_in_every_layout(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = EDGES[name][:300]
    if name == "five thousand":
        monkeypatch.setattr(cells, "_BLOCK", 512)
    whole = isinstance(edges[0], int)
    numbers: list[Any] = [*near(edges), None, None]
    check(edges, numbers if whole else [*numbers, math.nan, math.nan], way)


@pytest.mark.parametrize("few", [0, 20, 100])
@given(
    st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=60),
    st.lists(st.floats() | st.none(), max_size=30),
)
def test_any_floats(few: int, edges: set[float], numbers: list[float | None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FEW", few)
        rising = sorted(edges)
        check(rising, [*numbers, *rising, None])


@pytest.mark.parametrize("few", [0, 20, 100])
@given(
    st.sets(st.integers(-(2**63), 2**63 - 1) | st.integers(-99, 99), min_size=2, max_size=60),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-99, 99) | st.none(), max_size=30),
)
def test_any_integers(few: int, edges: set[int], numbers: list[int | None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FEW", few)
        rising = sorted(edges)
        check(rising, [*numbers, *rising])


@pytest.mark.parametrize("few", [0, 100])
def test_integers_among_floats_are_compared_as_floats(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Polars does."""
    monkeypatch.setattr(cells, "FEW", few)
    edges = [-0.5, 0.5, float(2**53), float(2**62), 2.0**63]
    numbers = [-1, 0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, -(2**63)]
    tally = PositionTally(edges)
    tally.add(pl.Series(numbers))
    assert tally.counts().tolist() == reference([float(n) for n in numbers], edges, "positions")
    x = pl.col("x")
    place = cells.at_or_below(x, edges, pl) + cells.below(x, edges, pl)
    found = Counter(pl.DataFrame({"x": numbers}).select(place).to_series().to_list())
    assert tally.counts().tolist() == [found[i] for i in range(11)]


@given(
    st.fractions(-(10**6), 10**6) | st.just(Fraction(0)),
    st.fractions(Fraction(1, 10**6), 10**6) | st.just(Fraction(1)) | st.just(Fraction(1, 2**1022)),
    st.integers(2, 5000),
    st.lists(st.floats() | st.none(), max_size=20),
    st.booleans(),
)
def test_points_are_those_of_polars(
    lo: Fraction, step: Fraction, points: int, numbers: list[float | None], dense: bool
) -> None:
    own = [float(lo + step * i) for i in (0, 1, points - 1, points, -1)]
    half = [float(lo + step * (Fraction(i) + Fraction(1, 2))) for i in (-1, 0, points - 1)]
    beside = [math.nextafter(x, to) for x in (*own, *half) for to in (-math.inf, math.inf)]
    whole: list[Any] = [*numbers, *own, *half, *beside, math.nan, None, -0.0, math.inf]
    rows = {"x": pl.Series(whole, dtype=pl.Float64)}
    integers = pl.Series([None, 0, 2**53 + 1, -(2**63), 2**63 - 1, int(lo), int(lo) + 1])
    for dtype, numbers_ in ((FLOAT64, rows["x"]), (INT64, integers)):
        layout = PointCells(Value(Column("x"), Domain(dtype)), lo, step, points)
        placed = pl.DataFrame({"x": numbers_}).select(layout.place(pl.col("x"), pl)).to_series()
        tally = layout.tally()
        assert tally is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cells, "_DENSE", 1 << 17 if dense else 1)
            tally.add(numbers_)
        expected = Counter(placed.drop_nulls().to_list())
        assert tally.counts().tolist() == [expected[i] for i in range(points)]


def test_other_rows_have_a_cell() -> None:
    rows = pl.Series([None, math.nan, -1.0, 0.0, 0.5, 1.0, 1.5, math.inf])
    bins = BinTally([0.0, 0.5, 1.0], other=True)
    whole = WholeTally(UpToTally([0.0, 1.0]))
    for tally, expected in ((bins, [1, 2, 5]), (whole, [2, 2, 2, 2])):
        tally.add(rows)
        tally.add(rows.clear())
        assert tally.counts().tolist() == expected


def test_one_step_has_all_numbers() -> None:
    tally = UpToTally([])
    tally.add(pl.Series([None, math.nan, -1.0, math.inf]))
    assert tally.counts().tolist() == [2]


@pytest.mark.filterwarnings("error")
def test_no_row_makes_a_warning() -> None:
    wide = [-1.7e308, *(float(n) for n in range(30)), 1.7e308]
    rows = pl.Series([math.inf, -math.inf, math.nan, 1.7e308, -1.7e308, 5e-324, None])
    points = cells.PointTally(-1e30, (2.0**512, 2.0**512), 9)
    for tally in (*made(wide).values(), *made(EDGES["tenths"]).values(), points):
        tally.add(rows)


def test_a_comparison_that_is_planted_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at edges go to the other side."""
    monkeypatch.setattr(cells, "_compare_with_edges", lambda numbers, edges, want: numbers > edges)
    with pytest.raises(AssertionError):
        check(EDGES["tenths"], near(EDGES["tenths"]))
    with pytest.raises(AssertionError):
        check(EDGES["a few"], near(EDGES["a few"]))
