"""Structs and their fields."""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import INT64, STRING, Domain, domain_of_dtype, struct_type
from dpframe.core.interval import interval
from dpframe.core.tree import Column
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.rows import fold
from tests.calls import call
from tests.rows.running import X, evaluate, refusal, refusal_of

FRAME = pl.DataFrame(
    {"x": [1, None, 3], "y": ["a", None, None]}, schema={"x": pl.Int64, "y": pl.String}
)
BOTH = call("struct", X, Column("y"), names=("x", "b"))


def test_a_struct_is_never_null() -> None:
    wanted = [{"x": 1, "b": "a"}, {"x": None, "b": None}, {"x": 3, "b": None}]
    assert evaluate(BOTH, FRAME).to_list() == wanted


def test_fields_come_back() -> None:
    assert evaluate(call("field", BOTH, field="x"), FRAME).to_list() == [1, None, 3]
    assert evaluate(call("field", BOTH, field="b"), FRAME).to_list() == ["a", None, None]


def test_a_null_struct_gives_null_fields() -> None:
    structs = pl.Series("x", [{"a": 1}, None], dtype=pl.Struct({"a": pl.Int64}))
    tree = call("field", X, field="a")
    assert evaluate(tree, pl.DataFrame({"x": structs})).to_list() == [1, None]


def test_facts_are_kept_by_field() -> None:
    known = {
        "x": Domain(INT64, nullable=False, interval=interval(0, 9)),
        "y": domain_of_dtype(STRING),
    }
    whole = fold.domain(BOTH, known)
    assert not whole.nullable
    assert whole.dtype == struct_type((("x", INT64), ("b", STRING)))
    assert fold.domain(call("field", BOTH, field="x"), known) == known["x"]


def test_words() -> None:
    assert fold.words(BOTH) == 'struct(col("x"), col("y").alias("b"))'
    assert fold.words(call("field", X, field="a")) == 'col("x").struct.field("a")'


def test_refusals() -> None:
    assert isinstance(refusal(call("field", X, field="a"), x=INT64), UnsupportedOperation)
    known = struct_type((("abc", INT64),))
    error = refusal(call("field", X, field="abx"), x=known)
    assert isinstance(error, UnknownColumn)
    assert "did you mean 'abc'" in str(error)
    for names in (("a", "a"), ()):
        assert isinstance(refusal_of("struct", names=names), UnsupportedOperation)
