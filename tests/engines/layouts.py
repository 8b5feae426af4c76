"""Operations on an engine over rows stored in several ways, compared with Polars row by row."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import polars as pl

from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.engine import Engine, has_type
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.registry import OPERATIONS
from tests.engines.operations import _is_listed
from tests.laws.checking import expression, run, same, tree_of
from tests.laws.frames import SCHEMA, values, wide_columns

BATCH = 30


def listed(engine: Engine, data: Any, frame: pl.DataFrame) -> Iterator[tuple[Tree, Any]]:
    """The examples that an engine accepts, and how it writes them."""
    columns = wide_columns(frame)
    for text in (t for o in OPERATIONS for t in o.examples):
        if not set(re.findall(r'"(\w+)"', text)) & set(SCHEMA) <= set(frame.columns):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = tree_of(text)
        dtype = domain(tree, columns).dtype
        if not has_type(engine.name, dtype) or not _is_listed(tree, engine):
            continue
        try:
            made = lower(tree, columns, engine.ns)
            engine.frame(data).select(made.alias("x"))
        except UnsupportedOperation:
            continue
        yield tree, made


def check(engine: Engine, data: Any, frame: pl.DataFrame) -> int:
    """Each example gives for the engine's rows, which are those of the frame, what Polars gives for
    each row alone; how many were compared.
    """
    columns = wide_columns(frame)
    accepted = list(listed(engine, data, frame))
    for start in range(0, len(accepted), BATCH):
        batch = accepted[start : start + BATCH]
        made = [e.alias(f"x{i}") for i, (_, e) in enumerate(batch)]
        query = engine.frame(data).select(engine.ns.col("row"), *made)
        found = engine.collect([query])[0].sort("row")
        polars = [expression(words(tree), tree, columns) for tree, _ in batch]
        alone = [run(frame[i], polars) for i in range(frame.height)]
        for i, (tree, _) in enumerate(batch):
            for row, got in enumerate(values(found[f"x{i}"])):
                expected = values(alone[row][i])[0]
                assert same(got, expected), f"{words(tree)}: {got!r}, on Polars {expected!r}"
    return len(accepted)
