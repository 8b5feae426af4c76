"""Polars' verbs on the result of a query: they wait for it, cost nothing and are tried before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dpframe as dp

ROWS = pl.DataFrame({"town": ["a"] * 5 + ["b"] * 9 + ["c"] * 7, "x": range(21)})
ENOUGH = 10**5


def asked() -> dp.PrivateQuery:
    frame = dp.Session(epsilon=10 * ENOUGH).protect(ROWS, unit=dp.Rows())
    return frame.group_by("town", keys=["a", "b", "c"]).agg(n=dp.count(), t=dp.sum("x", (0, 20)))


VERBS: list[Callable[[Any], Any]] = [
    lambda f: f.sort("n", descending=True),
    lambda f: f.sort("n").head(2),
    lambda f: f.sort("town").limit(1),
    lambda f: f.tail(2),
    lambda f: f.top_k(2, by="n"),
    lambda f: f.bottom_k(1, by="t"),
    lambda f: f.with_columns(share=pl.col("n") / pl.col("n").sum()),
    lambda f: f.select("town", mean=pl.col("t") / pl.col("n")),
    lambda f: f.filter(pl.col("n") > 5),
    lambda f: f.rename({"n": "people"}).drop("t"),
    lambda f: f.sort("n").with_columns(so_far=pl.col("n").cum_sum()).select(pl.last("so_far")),
]


@pytest.mark.parametrize("verb", VERBS)
def test_a_query_gives_what_its_result_gives(verb: Callable[[Any], Any]) -> None:
    query = asked()
    exact = ROWS.group_by("town").agg(n=pl.len().cast(pl.Int64), t=pl.col("x").sum()).sort("town")
    assert_frame_equal(verb(query).collect(epsilon=ENOUGH), verb(exact))


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_done_to_a_result_is_in_no_plan(verb: Callable[[Any], Any]) -> None:
    query = asked()
    assert verb(query).plan(epsilon=1).fingerprint == query.plan(epsilon=1).fingerprint


def test_intervals_move_with_their_rows() -> None:
    found = asked().sort("n", descending=True).collect(epsilon=ENOUGH, interval=0.95)
    assert found["n_low"].to_list() == found["n"].to_list() == [9, 7, 5]


@pytest.mark.parametrize(
    ("verb", "kind", "words"),
    [
        (lambda q: q.sort("people"), dp.UnknownColumn, "no column 'people'"),
        (lambda q: q.filter(pl.col("x") > 3), dp.UnknownColumn, "before the aggregates"),
        (lambda q: q.with_columns(m=dp.count()), dp.UnsupportedOperation, r"\.agg"),
        (lambda q: q.with_columns(pl.col("n").str.len_chars()), dp.UnsupportedOperation, "Polars"),
        (lambda q: q.drop("n").sort("n"), dp.UnknownColumn, "no column 'n'"),
        (lambda q: q.head(1).release(epsilon=1), dp.UnsupportedOperation, "keeps its result"),
        (lambda q: dp.Session(epsilon=1).release([q.tail(1)], epsilon=1), Exception, "keeps its"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_charge(
    verb: Callable[[Any], Any], kind: type[Exception], words: str
) -> None:
    query = asked()
    with pytest.raises(kind, match=words):
        verb(query)
    assert query._payer is not None
    assert query._payer.ledger.spent.main == 0


def test_a_paid_result_is_handed_out_whatever_is_done_to_it() -> None:
    """Made-up numbers pass where a released one may not."""
    text = pl.col("town").replace_strict({"a": 1, None: 2})
    with pytest.warns(dp.ResultWarning, match="without it"):
        found = asked().with_columns(text).collect(epsilon=ENOUGH)
    assert found["n"].to_list() == [5, 9, 7]


def test_private_rows_need_no_order() -> None:
    frame = dp.Session(epsilon=ENOUGH).protect(ROWS, unit=dp.Rows())
    assert frame.sort("x", descending=True) is frame
    assert frame.sort(pl.col("x") % 3).dp_count().collect(epsilon=100).item() == 21
    with pytest.raises(dp.UnknownColumn):
        frame.sort("y")
