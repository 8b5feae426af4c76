"""Columns that hold one value throughout, which Polars keeps as that value alone, and constants."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import Literal, Tree, column_names, substitute
from dpframe.errors import DPFrameError
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import lower, words
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.api.exactly import ENOUGH, exactly, protected
from tests.laws.checking import Engine, same, tree_of
from tests.laws.frames import SCHEMA, nasty_frame, values, wide_columns
from tests.laws.trees import LEAVES, kind

NASTY = nasty_frame(7)
COLUMNS = wide_columns(NASTY)
HEIGHT = 3


def as_values(row: int | None) -> pl.DataFrame:
    """Columns that Polars keeps as one value: that of a row, or null."""
    held = {
        name: pl.lit(None, dtype=dtype) if row is None else pl.lit(NASTY[name].slice(row, 1))
        for name, dtype in SCHEMA.items()
    }
    rows = pl.DataFrame({"row": range(HEIGHT)})
    return rows.with_columns(value.first().alias(name) for name, value in held.items())


def as_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The same columns, row by row."""
    return pl.DataFrame([pl.concat([column.slice(0, 1)] * HEIGHT) for column in frame])


PAIRS = [(frame, as_rows(frame)) for frame in map(as_values, (None, 0, 3))]


def variants(tree: Tree) -> Iterator[Tree]:
    """The tree, with constants for some of its columns, but not for all."""
    known: dict[str, Tree] = {}
    for name in column_names(tree):
        for leaf in LEAVES.get(kind(COLUMNS[name].dtype), []):
            if isinstance(leaf, Literal) and leaf.value is not None:
                known.setdefault(name, leaf)
    names = sorted(column_names(tree))
    for size in range(len(names)):
        for chosen in combinations(names, size):
            yield substitute(tree, {name: known[name] for name in chosen if name in known})


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.filterwarnings("ignore:Comparisons with None:UserWarning")
@pytest.mark.filterwarnings("ignore:`cut` is deprecated:DeprecationWarning")
def test_each_row_has_its_value(operation: Kind, engine: Engine) -> None:
    tried = 0
    for tree in (v for text in operation.examples for v in variants(tree_of(text))):
        try:
            made = lower(tree, COLUMNS).alias("x")
        except DPFrameError:  # an operand must not be constant
            continue
        for held, plain in PAIRS:
            tried += 1
            found, expected = (
                f.lazy().with_columns(made).collect(engine=engine, optimizations=OPTIMIZATIONS)["x"]
                for f in (held, plain)
            )
            assert len(found) == HEIGHT, words(tree)
            pairs = zip(values(found), values(expected), strict=True)
            assert all(same(a, b) for a, b in pairs), words(tree)
    assert tried


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_one_row_does_not_decide_how_many_count(engine: Engine) -> None:
    value = pl.when(pl.col("k") > 100).then(pl.col("k"))
    for number in (1, 700):
        session = dp.Session(epsilon=9 * ENOUGH)
        people = session.protect(pl.DataFrame({"k": [None, 1] * 500 + [number]}), dp.Rows())
        for differs in (pl.lit(5).ne_missing(value), ~(pl.lit(800) < value).fill_null(False)):
            for query in (
                people.agg(dp.sum(differs)),
                people.with_columns(x=differs).dp_sum("x"),
                people.filter(differs).dp_count(),
            ):
                assert query.collect(epsilon=ENOUGH, engine=engine).item() == 1001


def test_a_constant_column_of_a_protected_frame() -> None:
    people = protected(pl.DataFrame({"u": range(9)}).with_columns(x=pl.lit(2)), dp.Rows())
    assert exactly(people.filter(pl.lit(1) < pl.col("x")).dp_count()).item() == 9
