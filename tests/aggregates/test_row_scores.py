"""Scores of candidates that are row-wise expressions, and their bounds."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

ROWS = pl.DataFrame({"shop": ["a", "b", "b"], "x": [1_000, 5, 5]})


def people(**known: object) -> dp.PrivateFrame:
    return dp.Session(epsilon=1e6).protect(ROWS, dp.Rows(), **known)  # type: ignore[arg-type]


def test_bounds_of_a_row_wise_score_are_what_a_row_adds_at_most() -> None:
    query = people().agg(
        pl.col("shop").dp_argmax(score=pl.col("x"), candidates=["a", "b"], bounds=(0, 5))
    )
    (release,) = query.plan(epsilon=1).releases
    assert release.sensitivity.linf == 5
    assert query.collect(epsilon=1e4).item() == "b"  # 5 + 5 over 1,000 clamped to 5


def test_given_bounds_come_before_declared_ones() -> None:
    known = people(bounds={"x": (0, 1_000)})
    given = known.agg(
        pl.col("shop").dp_argmax(score=pl.col("x"), candidates=["a", "b"], bounds=(0, 5))
    )
    declared = known.agg(pl.col("shop").dp_argmax(score=pl.col("x"), candidates=["a", "b"]))
    assert [q.plan(epsilon=1).releases[0].sensitivity.linf for q in (given, declared)] == [5, 1_000]
    assert declared.collect(epsilon=1e4).item() == "a"


def test_a_row_wise_score_without_bounds_is_refused() -> None:
    with pytest.raises(dp.UnboundedSensitivity):
        people().agg(
            pl.col("shop").dp_argmax(score=pl.col("x") * pl.col("x"), candidates=["a", "b"])
        )
