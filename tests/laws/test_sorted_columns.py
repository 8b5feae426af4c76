"""Columns that are marked as sorted give what the same rows give without the mark.

Polars looks values up in sorted columns in other ways than in others, and its ways do not agree on
NaN. Whether a column is marked depends on all of its rows.
"""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from dpframe.core.tree import Column, walk
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import lower
from dpframe.rows.registry import OPERATIONS
from tests.laws.amounts import amounts
from tests.laws.checking import Engine, same, tree_of, values
from tests.laws.frames import SCHEMA, nasty_frame, wide_columns

pytestmark = [
    pytest.mark.filterwarnings("ignore:Comparisons with None:UserWarning"),
    pytest.mark.filterwarnings("ignore:`cut` is deprecated:DeprecationWarning"),
]
NASTY = nasty_frame(60)
COLUMNS = wide_columns(NASTY)
NUMBERS = [0.0, -0.0, math.nan, math.nan, 1.0, 2.5, -1.0, math.inf, -math.inf]
SORTED = [
    name for name, dtype in SCHEMA.items() if not pl.Series([], dtype=dtype).dtype.is_nested()
]


def examples(name: str) -> dict[str, pl.Expr]:
    """The examples of all operations that use a column, lowered."""
    found = {}
    for text in dict.fromkeys(text for operation in OPERATIONS for text in operation.examples):
        tree = tree_of(text)
        if any(isinstance(node, Column) and node.name == name for node in walk(tree)):
            found[text] = lower(tree, COLUMNS)
    return found


def results(frame: pl.DataFrame, made: dict[str, pl.Expr], engine: Engine) -> pl.DataFrame:
    lazy = frame.lazy().select(**{f"r{i}": e for i, e in enumerate(made.values())})
    return lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)


def some_rows(rng: random.Random, name: str, height: int) -> pl.DataFrame:
    """Rows of extremes, mostly without nulls in a column, and with few different numbers there."""
    pool = NASTY.drop_nulls(name) if rng.random() < 0.7 else NASTY
    rows = pool[[rng.randrange(pool.height) for _ in range(height)]]
    if not rows.schema[name].is_float() or rng.random() < 0.3:
        return rows
    few = pl.Series(name, rng.choices(NUMBERS, k=height), dtype=rows.schema[name])
    return rows.with_columns(few)


def marked(frame: pl.DataFrame, name: str, descending: bool, nulls_last: bool) -> pl.DataFrame:
    """Rows in the order of a column, which is marked."""
    found = frame.sort(name, descending=descending, nulls_last=nulls_last, maintain_order=True)
    known = found[name]
    return found.with_columns(known.set_sorted(descending=descending))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", SORTED)
@amounts("times", 2, 5)
def test_a_mark_changes_nothing(name: str, engine: Engine, times: int) -> None:
    made = examples(name)
    rng = random.Random(name)
    for height in [*(2, 3, 4, 5) * times, 12, 40, NASTY.height]:
        rows = some_rows(rng, name, height)
        for descending in (False, True):
            frame = marked(rows, name, descending, rng.random() < 0.5)
            order = rng.sample(range(height), height)
            mixed = results(frame[order], made, engine)
            for text, one, other in zip(made, results(frame, made, engine), mixed, strict=True):
                back = dict(zip(order, values(other), strict=True))
                expected = [back[i] for i in range(height)]
                assert same(values(one), expected), (
                    f"{text}: {name} marked as sorted: {frame[name].to_list()}"
                )
