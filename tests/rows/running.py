"""Runs an operation in every way that must agree, and checks what was inferred about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_series_equal

from dpframe.core.dtypes import Domain, DType, domain_of_dtype
from dpframe.core.tree import Column, Tree
from dpframe.errors import DPFrameError
from dpframe.rows import fold
from dpframe.rows.operation import RowOperation
from dpframe.rows.polars_dtypes import schema_from_polars, to_polars
from tests.calls import call
from tests.laws.reference_text_time import REFERENCES

X = Column("x")


def facts(frame: pl.DataFrame) -> dict[str, Domain]:
    """What the types of a frame tell about its columns."""
    return {n: domain_of_dtype(t) for n, t in schema_from_polars(frame.schema).items()}


def evaluate(
    tree: Tree, frame: pl.DataFrame, columns: Mapping[str, Domain] | None = None
) -> pl.Series:
    """The operation's results, after checking that they are row-wise and as inferred."""
    known = facts(frame) if columns is None else columns
    inferred = fold.domain(tree, known)
    assert fold.words(tree)
    lowered = fold.lower(tree, known).alias("r")
    result = frame.select(lowered)["r"]
    assert result.dtype == to_polars(inferred.dtype), (result.dtype, inferred.dtype)
    lazy = frame.lazy().select(lowered)
    assert_series_equal(result, lazy.collect(engine="streaming")["r"])
    empty = frame.clear().select(lowered)["r"]
    assert empty.dtype == result.dtype
    assert len(empty) == 0
    backwards = frame.reverse().select(lowered)["r"].reverse()
    assert_series_equal(result, backwards)
    alone = pl.concat([frame.slice(i, 1).select(lowered) for i in range(len(frame))])["r"]
    assert_series_equal(result, alone)
    _assert_masked_rows_are_harmless(frame, lowered, result)
    _assert_as_inferred(result, inferred)
    return result


def _assert_masked_rows_are_harmless(
    frame: pl.DataFrame, lowered: pl.Expr, result: pl.Series
) -> None:
    """A null may hide any value: the others must be as before."""
    odd = pl.int_range(pl.len()) % 2 == 1
    masked = frame.with_columns(pl.when(odd).then(pl.col(n)).alias(n) for n in frame.columns)
    kept = masked.select(lowered)["r"].gather_every(2, 1)
    assert_series_equal(kept, result.gather_every(2, 1))


def _assert_as_inferred(result: pl.Series, inferred: Domain) -> None:
    assert inferred.nullable or result.null_count() == 0
    present = result.drop_nulls()
    if inferred.categories is not None:
        assert set(present.to_list()) <= set(inferred.categories)
    if inferred.dtype.is_float or inferred.dtype.is_decimal or not inferred.dtype.is_ordered:
        return
    for value in present.to_physical().to_list():
        assert inferred.interval.contains(Fraction(value)), (value, inferred.interval)


def apply(op: str, column: pl.Series, **options: Any) -> list[Any]:
    """The results of an operation on one column, as Python values."""
    return evaluate(call(op, X, **options), pl.DataFrame({"x": column})).to_list()


def physical(op: str, column: pl.Series, **options: Any) -> list[Any]:
    """The results of an operation on one column, in physical units."""
    return evaluate(call(op, X, **options), pl.DataFrame({"x": column})).to_physical().to_list()


def assert_as_reference(op: str, column: pl.Series, **options: Any) -> None:
    """The operation equals its plain-Python reference on a column of values that Python has."""
    found = apply(op, column, **options)
    for value, result in zip(column.to_list(), found, strict=True):
        expected = _meaning(op, value, options)
        assert (type(result), result) == (type(expected), expected), (op, options, value)
        if isinstance(result, datetime):
            assert result.utcoffset() == expected.utcoffset()


def _meaning(op: str, value: Any, constants: Mapping[str, Any]) -> Any:
    """What the operation gives in plain Python, by what tests know or by what it states."""
    if op in REFERENCES:
        return REFERENCES[op]([value], constants)
    operation = call(op, X, **constants).operation
    assert isinstance(operation, RowOperation)
    return None if value is None else operation.reference(value)


def refusal_of(op: str, **constants: Any) -> DPFrameError:
    """The error that an operation is refused with when it is made, whatever its operands."""
    with pytest.raises(DPFrameError) as caught:
        call(op, X, **constants)
    return caught.value


def refusal(tree: Tree, **dtypes: DType) -> DPFrameError:
    """The error that a tree is refused with."""
    with pytest.raises(DPFrameError) as caught:
        fold.domain(tree, {name: domain_of_dtype(dtype) for name, dtype in dtypes.items()})
    assert caught.value.where
    return caught.value
