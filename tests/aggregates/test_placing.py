"""Places among edges, found by arithmetic, against comparisons with every edge."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.aggregates import cells
from dpframe.aggregates.cells import at_or_below, below

Numbers = list[int] | list[float]
_MOST = 2**63 - 1


def near(edges: Numbers) -> Numbers:
    """Edges, what is next to each on both sides, what is far, and zeros of both signs."""
    if isinstance(edges[0], int):
        around = {int(e) + d for e in edges for d in (-1, 0, 1)} | {0, -(2**63), _MOST, 2**53 + 1}
        return sorted(n for n in around if -(2**63) <= n <= _MOST)
    found = [math.nextafter(e, to) for e in edges for to in (-math.inf, math.inf)]
    halves = [float((Fraction(a) + Fraction(b)) / 2) for a, b in itertools.pairwise(edges)]
    wide = [-math.inf, math.inf, 1.7e308, -1.7e308, 5e-324, -5e-324, 0.0, -0.0]
    return [*edges, *found, *halves, *wide]


def placed(edges: Numbers, numbers: Numbers, **options: Any) -> tuple[list[int], list[int]]:
    frame = pl.LazyFrame({"x": numbers})
    x = pl.col("x")
    made = frame.with_columns(a=at_or_below(x, edges, pl), b=below(x, edges, pl)).collect(**options)
    return made["a"].to_list(), made["b"].to_list()


def check(edges: Numbers, **options: Any) -> None:
    numbers = near(edges)
    upto, under = placed(edges, numbers, **options)
    assert upto == [bisect_right(edges, n) for n in numbers]
    assert under == [bisect_left(edges, n) for n in numbers]


EDGES: dict[str, Numbers] = {
    "two": [0.0, 1.0],
    "a few": [float(n) for n in range(7)],
    "tenths": [n / 10 for n in range(100)],
    "thirds": [float(Fraction(n, 3)) for n in range(-50, 50)],
    "far from zero": [1e15 + n for n in range(64)],
    "too far from zero": [float(2**53 + 2 * n) for n in range(64)],
    "tiny": [5e-324 * n for n in range(64)],
    "small": [1e-300 * n for n in range(64)],
    "huge": [1e306 * n for n in range(-32, 32)],
    "the widest": [1.7e307 * n for n in range(-10, 11)],
    "powers": [2.0**n for n in range(40)],
    "unequal": [0.0, *(1.1**n for n in range(60))],
    "two that are near": [*(float(n) for n in range(40)), math.nextafter(39, 40)],
    "ages": list(range(17, 91)),
    "years in nanoseconds": [31_556_952 * 10**9 * n for n in range(-40, 60)],
    "odd and large": [2**53 + 3 * n for n in range(50)],
    "the largest": [_MOST - 5 * n for n in reversed(range(40))],
    "all that there are": [-(2**63) + 2**58 * n for n in range(32)],
    "five thousand": [600 * n / 5000 for n in range(5001)],
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_next_to_every_edge(name: str, engine: str) -> None:
    check(EDGES[name], engine=engine)


@given(
    st.fractions(-(10**6), 10**6),
    st.fractions(Fraction(1, 10**9), 10**6),
    st.integers(2, 400),
    st.randoms(use_true_random=False),
)
def test_equal_and_nearly_equal_steps(
    first: Fraction, step: Fraction, size: int, random: Any
) -> None:
    exact = [first + n * step for n in range(size)]
    if random.random() < 0.5:
        exact = [e + step * Fraction(random.randrange(-49, 50), 100) for e in exact]
    edges = sorted({float(e) for e in exact})
    check(edges)


@given(st.sets(st.integers(-(2**63), _MOST) | st.integers(-100, 100), min_size=1, max_size=60))
def test_any_integers(edges: set[int]) -> None:
    check(sorted(edges))


@given(st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60))
def test_any_floats(edges: set[float]) -> None:
    check(sorted(edges))


def test_no_edge_and_one() -> None:
    assert placed([], [1.5, -2.0]) == ([0, 0], [0, 0])
    assert placed([1.5], [1.5, -2.0, 2.0]) == ([1, 0, 1], [0, 0, 1])


@pytest.mark.parametrize("few", [0, 20])
def test_null_and_nan_have_no_place_or_any(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other rows are placed as they are without them."""
    monkeypatch.setattr(cells, "FEW", few)
    edges = [float(n) for n in range(30 if few else 10)]
    frame = pl.DataFrame({"x": [None, 3.0, math.nan, 4.5, None]})
    found = frame.select(at_or_below(pl.col("x"), edges, pl)).to_series().to_list()
    assert [found[1], found[3]] == [4, 5]


@pytest.mark.parametrize("name", EDGES)
def test_which_are_computed(name: str) -> None:
    """Where arithmetic may find the place, it does: else this module would be tested in vain."""
    edges = EDGES[name]
    made = cells.parts_of(edges)
    slow = {"two that are near", "powers", "unequal", "tiny", "the widest", "the largest"}
    if name not in slow:
        assert made is not None
    if made is not None and len(edges) > cells.FEW:
        assert "search_sorted" not in str(at_or_below(pl.col("x"), edges, pl))


def test_a_place_that_is_one_too_far_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for more than rounding, places are wrong, and the check of every edge says so."""
    monkeypatch.setattr(cells, "_ROOM", 2.0)
    assert cells.parts_of(EDGES["tenths"]) is None
    monkeypatch.setattr(cells, "_ROOM", 0.5)
    assert cells.parts_of([float(n) for n in np.arange(64) * 1.5]) is not None
