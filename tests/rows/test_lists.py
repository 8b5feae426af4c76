"""Lists and arrays against plain Python."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import FLOAT64, INT64, STRING, Domain, DType, list_type
from dpframe.core.interval import interval
from dpframe.core.tree import Column, Literal, Tree
from dpframe.errors import DPFrameError, InvalidBounds
from dpframe.rows import fold
from tests.calls import call
from tests.laws.reference_text_time import REFERENCES
from tests.rows.running import X, assert_as_reference, evaluate, facts, refusal, refusal_of

NAN = float("nan")
INTEGERS = pl.Series("x", [[1, None], [], None, [2], [1, 2, 3], [None]], dtype=pl.List(pl.Int64))
SMALL = INTEGERS.cast(pl.List(pl.Int8))
TEXTS = pl.Series("x", [["a", None], [], None, ["b", "é"], ["", "A"], [None]])
ENUMS = pl.Series("x", [["a", None], [], None, ["b"], ["b", "a"], [None]]).cast(
    pl.List(pl.Enum(["a", "b"]))
)
ARRAYS = pl.Series("x", [[1, 2, None], None, [3, 3, 3]], dtype=pl.Array(pl.Int64, 3))
ALL = [INTEGERS, SMALL, TEXTS, ENUMS, ARRAYS]


@pytest.mark.parametrize("column", ALL, ids=lambda c: str(c.dtype))
def test_len_and_get(column: pl.Series) -> None:
    assert_as_reference("list_len", column)
    for index in (0, 1, -1, -2, 5, -5, 2**32 - 1, -(2**32) + 1):
        assert_as_reference("list_get", column, index=index)


@pytest.mark.parametrize(
    ("column", "item"),
    [
        (INTEGERS, Literal(1, INT64)),
        (SMALL, Literal(1, INT64)),
        (SMALL, Literal(300, INT64)),
        (INTEGERS, Literal(None, DType("Null"))),
        (TEXTS, Literal("a", STRING)),
        (ENUMS, Literal("a", STRING)),
        (ENUMS, Literal("not one of them", STRING)),
        (ENUMS, Literal(None, DType("Null"))),
        (ARRAYS, Literal(3, INT64)),
        (ARRAYS, Literal(None, DType("Null"))),
        (pl.Series("x", [[NAN], [0.0, None], None, [-0.0]]), Literal(NAN, FLOAT64)),
        (pl.Series("x", [[NAN], [0.0, None], None, [-0.0]]), Literal(0, INT64)),
    ],
)
def test_contains_a_constant(column: pl.Series, item: Literal) -> None:
    found = evaluate(call("list_contains", X, item), pl.DataFrame({"x": column})).to_list()
    wanted = [REFERENCES["list_contains"]([v, item.value], {}) for v in column.to_list()]
    assert found == wanted


def test_contains_what_differs_from_row_to_row() -> None:
    frame = pl.DataFrame({"x": INTEGERS, "y": pl.Series([1, 1, 1, 3, None, None], dtype=pl.Int8)})
    found = evaluate(call("list_contains", X, Column("y")), frame).to_list()
    assert found == [True, False, None, False, False, True]


def test_contains_dates() -> None:
    column = pl.Series("x", [[date(2020, 1, 1)], None, []], dtype=pl.List(pl.Date))
    tree = call("list_contains", X, Literal(date(2020, 1, 1), DType("Date")))
    assert evaluate(tree, pl.DataFrame({"x": column})).to_list() == [True, None, False]


def test_facts_of_elements_are_kept() -> None:
    element = Domain(INT64, nullable=False, interval=interval(0, 9))
    array = DType("Array", inner=INT64, width=3)
    inside = Domain(array, nullable=False, inner=element)
    known = {"x": inside}
    assert fold.domain(call("list_len", X), known).interval == interval(3, 3)
    assert fold.domain(call("list_get", X, index=-3), known) == element
    assert fold.domain(call("list_get", X, index=3), known).nullable
    found = fold.domain(call("list_contains", X, Literal(1, INT64)), known)
    assert not found.nullable
    for width, nullable in ((None, True), (0, True), (3, False)):
        dtype = list_type(INT64) if width is None else replace(array, width=width)
        known = {"x": replace(inside, dtype=dtype)}
        for extreme in ("list_min", "list_max"):
            assert fold.domain(call(extreme, X), known) == replace(element, nullable=nullable)


@pytest.mark.parametrize(
    ("tree", "dtype"),
    [
        (call("list_len", X), STRING),
        (call("list_contains", X, Literal("1", STRING)), list_type(INT64)),
        (call("list_contains", X, Literal(1, INT64)), list_type(DType("UInt64"))),
        (call("list_contains", X, X), list_type(list_type(INT64))),
        (call("concat_list", X), list_type(list_type(INT64))),
        (call("concat_list", X), DType("Struct", fields=(("a", INT64),))),
        (call("concat_list", X, Literal(1, INT64)), DType("Struct", fields=(("a", INT64),))),
        (call("concat_list", X), DType("Null")),
    ],
)
def test_refusals(tree: Tree, dtype: DType) -> None:
    assert isinstance(refusal(tree, x=dtype), DPFrameError)


def test_slices_are_taken_anywhere_within_32_bits() -> None:
    for offset, length in ((0, 2), (100, 5), (-100, None), (1 - 2**31, 2**31 - 1), (2**31 - 1, 0)):
        tree = call("list_slice", X, offset=offset, length=length)
        found = evaluate(tree, pl.DataFrame({"x": INTEGERS})).to_list()
        for items, some in zip(INTEGERS.to_list(), found, strict=True):
            start = offset if offset >= 0 or items is None else len(items) + offset
            end = 2**40 if length is None else max(0, start + length)
            assert some == (None if items is None else items[max(0, start) : end])
    for offset, length in ((-(2**31), None), (0, 2**31), (0, -1)):
        assert isinstance(refusal_of("list_slice", offset=offset, length=length), InvalidBounds)
    assert isinstance(refusal_of("list_get", index=2**40), InvalidBounds)


def test_null_elements_only() -> None:
    column: Any = pl.Series("x", [[None], [], None], dtype=pl.List(pl.Null))
    frame = pl.DataFrame({"x": column})
    assert evaluate(call("list_len", X), frame).to_list() == [1, 0, None]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64], ids=str)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_items_are_found_in_columns_of_several_pieces(dtype: Any, engine: Any) -> None:
    """Older versions of Polars take some lists for others there."""
    lists: list[Any] = [[1, None], None, [2], [], [3, 1], [None]]
    items = [1, 2, None, 1, 1, None]
    for cut in range(1, 6):
        parts = [pl.Series("x", part, pl.List(dtype)) for part in (lists[:cut], lists[cut:])]
        column = pl.concat(parts, rechunk=False)
        frame = pl.DataFrame({"x": column, "y": pl.Series(items, dtype=dtype)})
        for item in (1, 2, None, X):
            tree = call("list_contains", X, Column("y") if item is X else Literal(item, INT64))
            lowered = fold.lower(tree, facts(frame)).alias("found")
            found = frame.lazy().select(lowered).collect(engine=engine)["found"]
            wanted = [
                None if one is None else (other if item is X else item) in one
                for one, other in zip(lists, items, strict=True)
            ]
            assert found.to_list() == wanted, (cut, item)
