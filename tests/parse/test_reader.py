"""Expressions are read into the trees that they mean."""

from __future__ import annotations

import math
import pickle
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import FLOAT64, INT64, STRING
from dpframe.core.tree import Call, Column, Literal, Named, walk
from dpframe.errors import DPFrameError, UnknownColumn, UnsupportedOperation
from dpframe.parse.reader import read
from dpframe.parse.size import MAX_DEPTH
from dpframe.rows.lookup import IsIn
from dpframe.rows.registry import BY_NAME, READERS
from tests.calls import call
from tests.laws.reference_adapter import states_its_meaning

from .spellings import SCHEMA, SPELLINGS, evaluate


@pytest.mark.parametrize(("spelling", "tree"), SPELLINGS, ids=[s for s, _ in SPELLINGS])
def test_a_spelling_is_read_into_its_tree(spelling: str, tree: Any) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    [named] = read(expression, SCHEMA)
    assert named.tree == tree
    assert repr(named.tree) == repr(tree) or "tzinfo" in repr(tree)
    assert hash(named.tree) == hash(tree)
    assert pickle.loads(pickle.dumps(named)) == named


def test_every_operation_has_a_spelling_or_states_what_it_means() -> None:
    """Laws compare what is read with what an operation states."""
    nodes = [node for _, tree in SPELLINGS for node in walk(tree)]
    used = {node.operation.name for node in nodes if isinstance(node, Call)}
    assert used <= set(BY_NAME)
    for name in set(BY_NAME) - used:
        assert states_its_meaning(BY_NAME[name]), name


@pytest.mark.parametrize("key", ["Function.Sum", "Sum", "Operator.TruncDivide", "add", ""])
def test_only_what_is_registered_is_read(key: str) -> None:
    assert key not in READERS
    assert len(READERS) > len(BY_NAME)


@pytest.mark.parametrize("spelling", [s for s, _ in SPELLINGS][::7])
def test_reading_twice_gives_the_same(spelling: str) -> None:
    first, second = evaluate(spelling), evaluate(spelling)
    if first is not None:
        assert read(first, SCHEMA) == read(second, SCHEMA)


def test_nan_is_told_from_the_infinities() -> None:
    [nan] = read(pl.lit(float("nan")), SCHEMA)
    assert isinstance(nan.tree, Literal)
    assert isinstance(nan.tree.value, float)
    assert math.isnan(nan.tree.value)
    [named] = read(pl.col("x") + float("inf") + pl.lit("null") + 2**40, SCHEMA)
    assert named.tree == call(
        "add",
        call("add", call("add", Column("x"), Literal(math.inf, FLOAT64)), Literal("null", STRING)),
        Literal(2**40, INT64),
    )
    [narrow] = read(pl.lit(float("nan"), dtype=pl.Float32), SCHEMA)
    assert isinstance(narrow.tree, Literal)
    assert math.isnan(narrow.tree.value)  # type: ignore[arg-type]


def test_nan_among_values() -> None:
    [named] = read(pl.col("x").is_in([math.nan, 2.0, None, 1.0]), SCHEMA)
    assert isinstance(named.tree, Call)
    assert isinstance(named.tree.operation, IsIn)
    values = named.tree.operation.values
    assert values[:2] == (1.0, 2.0)
    assert math.isnan(values[2])  # type: ignore[arg-type]
    assert values[3] is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("a", Named("a", Column("a"))),
        (5, Named("literal", Literal(5, INT64))),
        (2.5, Named("literal", Literal(2.5, FLOAT64))),
    ],
)
def test_plain_python_values(given: Any, named: Named) -> None:
    assert read(given, SCHEMA) == (named,)


def test_other_objects_are_no_expressions() -> None:
    for given in (object(), pl.DataFrame(), pl.when(pl.col("p")), len):
        with pytest.raises(UnsupportedOperation):
            read(given, SCHEMA)


def test_an_unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match="did you mean 'day'"):
        read(pl.col("dya") + 1, SCHEMA)
    with pytest.raises(UnknownColumn, match="'nope'"):
        read("nope", SCHEMA)
    with pytest.raises(UnknownColumn):
        read(pl.col("a").fill_null(pl.col("")), SCHEMA)


def test_an_error_says_where() -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        read(pl.col("a") + pl.col("b").sum(), SCHEMA, what="filter")
    assert caught.value.where is not None
    assert caught.value.where.startswith("filter: ")
    assert "sum()" in caught.value.where
    assert caught.value.remedy is not None


def test_a_long_chain_up_to_the_limit_is_read() -> None:
    expression = pl.col("a")
    for _ in range(MAX_DEPTH - 5):
        expression = expression + 1
    [named] = read(expression, SCHEMA)
    assert sum(1 for _ in walk(named.tree)) == 2 * (MAX_DEPTH - 5) + 1


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 3_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    added = pl.col("a")
    chosen: Any = pl.lit(0)
    for i in range(depth):
        added = added + 1
        chosen = pl.when(pl.col("a") == i).then(i).otherwise(chosen)
    for expression in (added, chosen):
        with pytest.raises(UnsupportedOperation, match="nested") as caught:
            read(expression, SCHEMA)
        assert len(str(caught.value)) < 1_000


def test_too_many_parts_are_refused() -> None:
    expression = pl.col("a")
    for _ in range(15):
        expression = expression + expression
    with pytest.raises(UnsupportedOperation, match="parts"):
        read(expression, SCHEMA)


def test_an_expression_that_knows_its_own_refusal_keeps_it() -> None:
    class Lazy(pl.Expr):
        @property
        def _pyexpr(self) -> Any:
            raise DPFrameError("mine")

        @_pyexpr.setter
        def _pyexpr(self, value: Any) -> None: ...

    with pytest.raises(DPFrameError, match=r"^mine$"):
        read(Lazy(), SCHEMA)


def test_two_outputs_of_one_name_are_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="2 columns named 'z'"):
        read(pl.col("a", "b").alias("z"), SCHEMA)


@pytest.mark.skipif(
    int(pl.__version__.split(".")[0]) < 2, reason="SQL has forms of its own since 2"
)
@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("a / b", pl.col("a") / pl.col("b")),
        ("a + b", pl.col("a") + pl.col("b")),
        ("a IN (2, 1)", pl.col("a").is_in([1, 2])),
        ("s IN ('y', 'x')", pl.col("s").is_in(["x", "y"])),
    ],
)
def test_sql_is_read_as_the_methods_are(sql: str, same: pl.Expr) -> None:
    schema = {"a": pl.Int64(), "b": pl.Int64(), "s": pl.String()}
    assert read(pl.sql_expr(sql), schema)[0].tree == read(same, schema)[0].tree
    for other in ("a % b", "round(a)", "a // b"):
        with pytest.raises(UnsupportedOperation, match="of SQL is not supported"):
            read(pl.sql_expr(other), schema)
