"""Bins of numbers."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import BOOLEAN, DATE, FLOAT64, INT64, STRING, Domain, DType
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows import fold
from tests.calls import call
from tests.rows.running import X, apply, assert_as_reference, refusal, refusal_of

NAN, INF = float("nan"), float("inf")
LABELS = ("a", "b", "c", "d")
BREAKS = (-1.0, 0.0, 2.5)
FLOATS = pl.Series("x", [None, NAN, INF, -INF, -1.0, -0.0, 0.0, 2.5, 2.6, -1.1, 5e-324, 1e300])


def cut(breaks: tuple[float, ...], labels: tuple[str, ...], left_closed: bool) -> dict[str, Any]:
    return {"breaks": breaks, "labels": labels, "left_closed": left_closed}


@pytest.mark.parametrize("left_closed", [False, True])
@pytest.mark.parametrize(
    "column",
    [
        FLOATS,
        FLOATS.cast(pl.Float32),
        pl.Series("x", [None, -(2**63), -1, 0, 2, 3, 2**63 - 1]),
        pl.Series("x", [None, 0, 2, 3, 2**64 - 1], dtype=pl.UInt64),
        pl.Series("x", [None, -128, -1, 0, 127], dtype=pl.Int8),
        pl.Series("x", [None, Decimal("-1"), Decimal("2.50"), Decimal("2.51")]),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)
def test_bins(column: pl.Series, left_closed: bool) -> None:
    assert_as_reference("cut", column, **cut(BREAKS, LABELS, left_closed))


@pytest.mark.parametrize("left_closed", [False, True])
def test_same_as_polars(left_closed: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = FLOATS.cut(BREAKS, labels=LABELS, left_closed=left_closed).cast(pl.String)
    assert apply("cut", FLOATS, **cut(BREAKS, LABELS, left_closed)) == theirs.to_list()


def test_no_breaks_is_one_bin() -> None:
    column = pl.Series("x", [1.0, None, NAN])
    assert apply("cut", column, **cut((), ("all",), False)) == ["all", None, None]


def test_many_breaks() -> None:
    breaks = tuple(float(b) for b in range(500))
    labels = tuple(f"bin {b}" for b in range(501))
    column = pl.Series("x", [i / 2 for i in range(-2, 1010, 61)])
    assert_as_reference("cut", column, **cut(breaks, labels, False))


def test_facts() -> None:
    tree = call("cut", X, **cut(BREAKS, LABELS, False))
    found = fold.domain(tree, {"x": Domain(INT64, nullable=False)})
    assert found.dtype.categories == found.categories == LABELS
    assert not found.nullable
    assert fold.domain(tree, {"x": Domain(FLOAT64, nullable=False, nan=True)}).nullable
    assert fold.words(tree) == 'col("x").cut([-1, 0, 2.5], labels=["a", "b", "c", "d"])'


@pytest.mark.parametrize(
    ("breaks", "labels"),
    [
        ((1.0, 1.0), ("a", "b", "c")),
        ((2.0, 1.0), ("a", "b", "c")),
        ((NAN,), ("a", "b")),
        ((INF,), ("a", "b")),
        ((1.0,), ("a", "a")),
        ((1.0,), ("a",)),
        (("x",), ("a", "b")),
    ],
)
def test_breaks_and_labels_that_make_no_sense(breaks: Any, labels: Any) -> None:
    assert isinstance(refusal_of("cut", **cut(breaks, labels, False)), InvalidBounds)


@pytest.mark.parametrize("dtype", [STRING, DATE, BOOLEAN], ids=str)
def test_types_that_are_not_numbers(dtype: DType) -> None:
    tree = call("cut", X, **cut((1.0,), ("a", "b"), False))
    assert isinstance(refusal(tree, x=dtype), UnsupportedOperation)
