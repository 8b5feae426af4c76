"""Assembling results: what would fail is found before the charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.release import assemble

FRAME = pl.DataFrame({"age": [1, 2, 3], "name": ["a", "b", "a"], "member": [True, False, True]})


def asked(*outputs: pl.Expr, by: str | None = None, keys: Any = None) -> Any:
    people = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    return people.agg(*outputs) if by is None else people.group_by(by, keys=keys).agg(*outputs)


def assembled(query: dp.PrivateQuery, **values: int) -> pl.DataFrame:
    """The result where every number that is drawn is the one given for its part."""
    inner = query._query
    prepared = pipeline.plan(inner, dp.PureDP(1), None)
    noisy = {}
    for use in prepared.parts:
        groups = 1 if inner.groups is None else inner.groups.size
        cells = use.part.entries(inner.scope) // groups
        noisy[(use.part, use.mechanism)] = np.full((groups, cells), values[use.role.split(".")[-1]])
    return assemble(inner, noisy)


def test_a_failing_rehearsal_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise pl.exceptions.ShapeError("internal words")

    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    monkeypatch.setattr("dpframe.release.results.assemble", broken)
    with pytest.raises(dp.UnsupportedOperation, match="nothing was charged") as caught:
        query.collect(epsilon=1)
    assert "internal words" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert session.history.is_empty()


def test_a_rehearsal_of_arithmetic_tries_numbers_of_both_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def seen(query: Any, values: Any, *rest: Any) -> pl.DataFrame:
        tried.extend(int(v.flat[0]) for v in values.values())
        return assemble(query, values, *rest)

    monkeypatch.setattr("dpframe.release.results.assemble", seen)
    asked((dp.count() * 2).alias("r")).collect(epsilon=1)
    assert min(tried) < 0 < max(tried)
    assert 0 in tried


@pytest.mark.parametrize(
    "post",
    [
        lambda: dp.count() / dp.histogram("name", ["a"]),
        lambda: dp.argmax("name", candidates=["a", "b"]) + 1,
        lambda: dp.argmax("name", candidates=["a", "b"], k=2) * 2,
        lambda: dp.quantile("age", [0.1, 0.9], (0, 9)).sqrt(),
    ],
)
def test_arithmetic_that_cannot_be_done_is_refused_when_the_query_is_built(post: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation):
        asked(post().alias("r"))


def test_a_count_below_one_leaves_means_and_variances_null() -> None:
    query = asked(dp.mean("age", (0, 9)).alias("m"), dp.var("age", (0, 9)).alias("v"))
    for count, known in ((-3, [False, False]), (0, [False, False]), (1, [True, False])):
        row = assembled(query, sum=5, count=count, sum_of_squares=5).row(0)
        assert [value is not None for value in row] == known


def test_means_and_variances_stay_within_what_their_bounds_allow() -> None:
    query = asked(dp.mean("age", (0, 8)).alias("m"), dp.var("age", (0, 8), ddof=0).alias("v"))
    large = assembled(query, sum=10**9, count=2, sum_of_squares=0)
    assert large.row(0) == (8.0, 0.0)
    squares = assembled(query, sum=0, count=2, sum_of_squares=10**15)
    assert squares.row(0) == (4.0, 16.0)
    assert assembled(query, sum=-(10**9), count=2, sum_of_squares=0)["m"].item() == 0.0


def test_numbers_at_the_limits_of_integers_do_not_fail() -> None:
    most = 2**63 - 1
    query = asked(dp.count(nonnegative=True).alias("n"), dp.sum("age", (0, 2**40)).alias("s"))
    for value in (most, -most, -most - 1):
        row = assembled(query, count=value, sum=value).row(0)
        assert row[0] == max(0, value)
        assert row[1] == value * 2**10  # the steps of a sum within 2**40, in a Decimal


def test_keys_stand_before_outputs_in_their_order() -> None:
    query = asked(dp.count().alias("n"), by="name", keys=["z", "a"])
    assert assembled(query, count=7).rows() == [("z", 7), ("a", 7)]


def test_post_processing_by_zero_does_not_fail() -> None:
    query = asked((dp.sum("age", (0, 9)) / dp.count()).alias("r"), (dp.count() // 0).alias("q"))
    assert assembled(query, sum=1, count=0).row(0) == (float("inf"), None)
