"""How far one individual moves the scores of candidates apart, found by trying all changes.

Scores of both signs: a row that changes may raise one candidate by the whole width and lower
another by as much.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import polars as pl
import pytest

import dpframe as dp

AT = [-1, 1]
SCORED = dp.argmax(
    candidates=pl.DataFrame({"at": AT}), bounds=(-3, 2), score=pl.col("x") * pl.col("at")
)


def clamped(x: int) -> list[int]:
    return [min(2, max(-3, x * at)) for at in AT]


def ranges(unit: dp.Rows) -> tuple[Fraction, Fraction]:
    """The declared range and the largest one there is, for one group."""
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Int64}), unit=unit)
    (release,) = frame.agg(w=SCORED).plan(epsilon=1).releases
    assert release.scores is not None
    rows = [clamped(x) for x in range(-5, 6)] + [[0, 0]]  # the last: none, or null
    pairs = product(rows, rows) if unit.adjacency == "change-one" else ((r, [0, 0]) for r in rows)
    moves = {tuple(a - b for a, b in zip(new, old, strict=True)) for old, new in pairs}
    found = max(max(m) - min(m) for m in moves) * unit.contributions
    return release.scores.l1 * release.step, Fraction(found)


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_the_range_of_scores_of_both_signs_is_declared_and_reached(
    adjacency: str, contributions: int
) -> None:
    declared, found = ranges(dp.Rows(adjacency, contributions=contributions))  # type: ignore[arg-type]
    width = 5 * contributions
    assert found == (2 * width if adjacency == "change-one" else width)
    assert declared == found
