"""What is no pair of bounds is refused wherever bounds may stand, and never enters a plan."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidBounds

Asked = Callable[[Any], dp.DPExpr]

ENTRANCES: dict[str, Asked] = {
    "count": lambda bounds: dp.count(bounds=bounds),
    "count of units": lambda bounds: dp.count(per="unit", bounds=bounds),
    "sum": lambda bounds: dp.sum("x", bounds),
    "sum of units": lambda bounds: dp.sum("x", bounds, per="unit"),
    "mean": lambda bounds: dp.mean("x", bounds),
    "var": lambda bounds: dp.var("x", bounds),
    "std": lambda bounds: dp.std("x", bounds),
    "quantile": lambda bounds: dp.quantile("x", 0.5, bounds),
    "median": lambda bounds: dp.median("x", bounds),
    "equal bins": lambda bounds: dp.histogram("x", 5, bounds=bounds),
    "no bins": lambda bounds: dp.histogram("x", bounds=bounds),
    "edges": lambda bounds: dp.histogram("x", [0, 3, 5], bounds=bounds),
    "categories": lambda bounds: dp.histogram("c", ["A", "B"], bounds=bounds),
    "rows": lambda bounds: dp.argmax("c", None, ["A", "B"], bounds=bounds),
    "counts": lambda bounds: dp.argmax("c", dp.count(), ["A", "B"], bounds=bounds),
    "sums": lambda bounds: dp.argmax("c", dp.sum("x", (0, 5)), ["A", "B"], bounds=bounds),
    "score": lambda bounds: dp.argmax("c", pl.col("x"), ["A", "B"], bounds=bounds),
    "counted score": lambda bounds: dp.argmax("c", dp.count(bounds=bounds), ["A", "B"]),
    "summed score": lambda bounds: dp.argmax("c", dp.sum("x", bounds), ["A", "B"]),
    "frame": lambda bounds: dp.argmax(
        None, pl.col("x") * pl.col("p"), pl.DataFrame({"p": [1, 2]}), bounds=bounds
    ),
}
NOWHERE = ("count", "edges", "categories", "rows", "counts", "sums", "counted score")
"""Where bounds mean nothing, whatever they are."""
NO_PAIRS: dict[str, Callable[[], object]] = {
    "dp expression": dp.count,
    "expression": lambda: pl.col("x"),
    "generator": lambda: (end for end in (0, 5)),
    "memory": lambda: memoryview(b"\x00\x05"),
    "bytes": lambda: b"\x00\x05",
    "mutable bytes": lambda: bytearray(b"\x00\x05"),
    "set": lambda: {0, 5},
    "object": object,
}


class Pair:
    """A collection that is written as its address."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[int]:
        return iter((0, 5))

    def __contains__(self, item: object) -> bool:
        return item in (0, 5)


@pytest.fixture
def frame() -> dp.PrivateFrame:
    data = pl.DataFrame({"who": ["a", "b"], "c": ["A", "B"], "x": [1, 4]})
    session = dp.Session(epsilon=100)
    return session.protect(data, unit=dp.Identifier("who")).limit_rows(3)


@pytest.mark.parametrize("given", NO_PAIRS)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_what_is_no_pair_of_bounds_is_refused(
    frame: dp.PrivateFrame, entrance: str, given: str
) -> None:
    with pytest.raises(InvalidBounds):
        frame.select(ENTRANCES[entrance](NO_PAIRS[given]())).plan(epsilon=1)


@pytest.mark.parametrize("entrance", NOWHERE)
def test_bounds_are_refused_where_they_would_bound_nothing(
    frame: dp.PrivateFrame, entrance: str
) -> None:
    with pytest.raises(InvalidBounds, match="bounds"):
        frame.select(ENTRANCES[entrance]((0, 5))).plan(epsilon=1)


def test_bounds_of_an_argmax_of_counts_are_refused_with_what_they_are_for(
    frame: dp.PrivateFrame,
) -> None:
    groups = frame.group_by("c", keys=["A", "B"])
    for asked in (
        lambda: frame.dp_argmax("c", None, ["A", "B"], bounds=(0, 5)),
        lambda: frame.dp_argmax("c", dp.count(), ["A", "B"], bounds=(0, 5)),
        lambda: groups.dp_argmax(bounds=(0, 5)),
        lambda: groups.dp_argmax(score=dp.count(), bounds=(0, 5)),
    ):
        with pytest.raises(InvalidBounds, match="what one row adds to a row-wise score"):
            asked().plan(epsilon=1)


@pytest.mark.parametrize("entrance", [name for name in ENTRANCES if name not in NOWHERE])
def test_pairs_of_every_kind_make_one_plan(frame: dp.PrivateFrame, entrance: str) -> None:
    pairs = [
        (0, 5),
        [0, 5],
        np.array([0, 5]),
        pl.Series([0, 5]),
        deque([0, 5]),
        {"low": 0, "high": 5}.values(),
        (np.array(0), np.int8(5)),
        Pair(),
    ]
    plans = [frame.select(ENTRANCES[entrance](pair)).plan(epsilon=1) for pair in pairs]
    assert len({plan.fingerprint for plan in plans}) == 1
    assert not any(" at 0x" in plan.explain(details=True) for plan in plans)


X = pl.col("x")
OF_TYPES: dict[str, pl.Expr] = {
    "a column": X,
    "what follows from it": X.abs() + 1,
    "twice": X * 2,
    "another type": pl.col("long").cast(pl.Int32),
    "whole numbers": pl.col("u"),
    "the length of a text": pl.col("c").str.len_chars(),
    "bytes of a text": 2 * pl.col("c").str.len_bytes(),
    "the length of a list": pl.col("l").list.len(),
    "how often": pl.col("c").str.count_matches("a"),
}
KNOWN: dict[str, pl.Expr] = {
    "clipped": X.clip(0, 3 * 10**9),
    "a rest": X % 70,
    "a condition": (X > 3).cast(pl.Int32),
    "16 bits": pl.col("short"),
    "cast from 16 bits": pl.col("short").cast(pl.Int32) * 2,
    "declared": pl.col("d") * 2,
    "clipped lengths": pl.col("c").str.len_chars().clip(0, 20),
    "a large constant": pl.when(X > 3).then(2**40).otherwise(0),
}
WITHOUT: dict[str, Callable[[pl.Expr], Any]] = {
    "sum": lambda e: dp.sum(e),
    "mean": lambda e: dp.mean(e),
    "std": lambda e: dp.std(e),
    "median": lambda e: dp.median(e),
    "bins": lambda e: dp.histogram(e, 2),
    "edges": lambda e: dp.cdf(e, 1),
    "ratio": lambda e: dp.ratio(e, e),
    "score": lambda e: dp.argmax("c", e, ["A", "B"]),
    "plain mean": lambda e: e.mean(),
    "plain quantile": lambda e: e.quantile(0.9),
}


def integers() -> dp.PrivateFrame:
    types = {"x": pl.Int32, "u": pl.UInt32, "d": pl.Int32, "short": pl.Int16, "long": pl.Int64}
    schema = {**types, "c": pl.String, "l": pl.List(pl.Int64)}
    frame = pl.LazyFrame(schema=schema)
    return dp.Session(epsilon=1).protect(frame, dp.Rows(), bounds={"d": (0, 100)})


@pytest.mark.parametrize("ask", WITHOUT)
def test_the_range_of_32_bits_gives_no_bounds(ask: str) -> None:
    """Noise for it would hide every real value, and a median would be one of its few points."""
    for value in OF_TYPES.values():
        with pytest.raises(dp.UnboundedSensitivity):
            integers().agg(WITHOUT[ask](value).alias("out"))
    for value in KNOWN.values():
        integers().agg(WITHOUT[ask](value).alias("out"))


def test_a_description_asks_for_them_too() -> None:
    with pytest.raises(dp.UnboundedSensitivity, match="'x', 'u' have no known bounds"):
        integers().describe(["x", "u", "d", "short"])
