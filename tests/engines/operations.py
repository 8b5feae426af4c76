"""Each row-wise operation on an engine: what it gives on awkward values, or that it is refused."""

from __future__ import annotations

import re
import warnings
from datetime import date, datetime, time, timedelta
from typing import Any

import polars as pl
import pytest

from dpframe.core.tree import Call, walk
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.engine import Engine, has_type
from dpframe.rows.fold import domain, lower
from dpframe.rows.operation import Kind
from tests.laws.checking import expression, run, same, tree_of
from tests.laws.frames import SCHEMA, nasty_frame, values, wide_columns

NAMES: dict[str, Any] = {
    "pl": pl,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
}
_CALENDAR = (-719_162, 2_932_896)
_DAY_US = 86_400 * 10**6
_UNSIGNED = ("u8", "u32", "u64")
COLUMNS = [
    *("i8", "i32", "i64", "i64b", *_UNSIGNED, "f32", "f64", "f64b", "b", "bb", "s", "sb"),
    *("e", "d", "dt", "dtb"),
]


def awkward(engine: str) -> pl.DataFrame:
    """The columns that an engine has types for; dates within the years that all engines have."""
    first, last = _CALENDAR
    inside = pl.col("d").to_physical().is_between(first, last)
    moments = [
        pl.when(
            pl.col(name).to_physical().is_between(first * _DAY_US, (last + 1) * _DAY_US - 1)
        ).then(name)
        for name in ("dt", "dtb")
    ]
    frame = pl.DataFrame(nasty_frame(61)).with_columns(pl.when(inside).then("d"), *moments)
    names = [n for n in COLUMNS if engine == "duckdb" or n not in _UNSIGNED]
    return frame.select(pl.int_range(pl.len()).alias("row"), *names)


def check(operation: Kind, engine: Engine, data: Any, frame: pl.DataFrame) -> None:
    """All examples give what they give on Polars, or are refused by the engine's name; some are
    accepted if the operation is listed, and none if it is not.
    """
    accepted = 0
    columns = wide_columns(frame)
    for text in operation.examples:
        if not set(re.findall(r'"(\w+)"', text)) & set(SCHEMA) <= set(frame.columns):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = tree_of(text)
        if not has_type(engine.name, domain(tree, columns).dtype):
            continue
        if not _is_listed(tree, engine):
            continue
        try:
            made = engine.frame(data).select(
                engine.ns.col("row"), lower(tree, columns, engine.ns).alias("x")
            )
        except UnsupportedOperation as refused:
            if engine.label not in str(refused):
                raise
            continue
        accepted += 1
        found = engine.collect([made])[0].sort("row")["x"]
        (expected,) = run(frame, [expression(text, tree, columns)])
        if isinstance(expected.dtype, pl.Enum):
            expected = expected.cast(pl.String)
        assert found.dtype == expected.dtype, text
        for row, (one, other) in enumerate(zip(values(found), values(expected), strict=True)):
            assert same(one, other), f"{text} in row {row}: {one!r}, and {other!r} on Polars"
    listed = engine.name in operation.engines
    assert bool(accepted) == listed, f"{accepted} examples of {operation.name} ran"


def _is_listed(tree: Any, engine: Engine) -> bool:
    calls = [node for node in walk(tree) if isinstance(node, Call)]
    return all(engine.name in node.operation.engines for node in calls)


def check_refused(operation: Kind, people: Any, label: str) -> None:
    """An operation that is not listed is refused, by its name, when a query is built."""
    found = 0
    for text in operation.examples:
        if not set(re.findall(r'"(\w+)"', text)) & set(SCHEMA) <= set(people.columns):
            continue
        with pytest.raises(UnsupportedOperation) as caught:
            people.with_columns(eval(text, dict(NAMES)).alias("made")).dp_count()
        assert f"is not supported on {label}" in str(caught.value), text
        found += f"the operation {operation.name!r}" in str(caught.value)
    assert found or not any(
        set(re.findall(r'"(\w+)"', text)) & set(SCHEMA) <= set(people.columns)
        for text in operation.examples
    )
