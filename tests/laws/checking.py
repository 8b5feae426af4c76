"""The laws of row-wise expressions, as checks of one frame and several expressions at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, Literal

import polars as pl

from dpframe.core.dtypes import Columns, Domain
from dpframe.core.tree import Tree
from dpframe.lower.tables import bind_layers
from dpframe.parse.reader import read
from dpframe.rows.constants import physical
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower
from dpframe.rows.polars_dtypes import to_polars
from tests.laws.frames import SCHEMA, number, values
from tests.laws.layouts import stored

Engine = Literal["in-memory", "streaming"]
_NAMES = {
    "pl": pl,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
}


@dataclass(frozen=True)
class Expression:
    """An expression under test: how it is written, its tree, its facts and those of the frame."""

    text: str
    tree: Tree
    domain: Domain
    columns: Columns = field(repr=False, compare=False)
    bound: dict[tuple[int, ...], tuple[list[list[pl.Expr]], list[pl.Expr]]] = field(
        default_factory=dict, repr=False, compare=False
    )


def tree_of(text: str, schema: Mapping[str, Any] = SCHEMA) -> Tree:
    """The tree of an expression over a frame's schema that is written as Python text."""
    (named,) = read(eval(text, dict(_NAMES)), schema)
    return named.tree


def expression(text: str, tree: Tree, columns: Columns) -> Expression:
    return Expression(text, tree, domain(tree, columns), columns)


def run(
    frame: pl.DataFrame, expressions: Sequence[Expression], engine: Engine = "in-memory"
) -> list[pl.Series]:
    """The lowered expressions on a frame, in one query; columns are stored in many ways."""
    names = [f"result {i}" for i in range(len(expressions))]
    steps, lowered = _bound(expressions)
    lazy = stored(frame).lazy()
    for step in steps:
        lazy = lazy.with_columns(step)
    made = [e.alias(n) for e, n in zip(lowered, names, strict=True)]
    lazy = lazy.with_columns(made).select(names)
    return lazy.collect(engine=engine, optimizations=OPTIMIZATIONS).get_columns()


def _bound(
    expressions: Sequence[Expression],
) -> tuple[list[list[pl.Expr]], list[pl.Expr]]:
    """Columns that come first, and the expressions, as a query has them: what nested operations
    would repeat is computed once. Remembered, for the same ones run on many frames.
    """
    if not expressions:
        return [], []
    known = expressions[0].bound
    which = tuple(map(id, expressions))
    if which not in known:
        columns = expressions[0].columns
        steps, trees, after = bind_layers(tuple(e.tree for e in expressions), columns, pl)
        known[which] = (steps, [lower(tree, after) for tree in trees])
    return known[which]


def same(a: Any, b: Any) -> bool:
    """Equality of plain values, in which NaN equals NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def check_facts(expressions: Sequence[Expression], results: Sequence[pl.Series]) -> None:
    """The type is the inferred one, and no value contradicts the inferred facts."""
    for checked, result in zip(expressions, results, strict=True):
        assert result.dtype == to_polars(checked.domain.dtype), checked.text
        for value in values(result):
            problem = contradiction(value, checked.domain)
            assert problem is None, f"{checked.text}: {value!r} {problem} ({checked.domain})"


def contradiction(value: Any, facts: Domain) -> str | None:
    """What a value has that its domain rules out; None when all is well."""
    if value is None:
        return None if facts.nullable else "is null"
    if isinstance(value, float) and math.isnan(value):
        return None if facts.nan else "is NaN"
    if isinstance(value, list):
        assert facts.inner is not None
        found = [contradiction(item, facts.inner) for item in value]
        return next((problem for problem in found if problem), None)
    if isinstance(value, dict):
        found = [contradiction(value[name], field) for name, field in facts.fields or ()]
        return next((problem for problem in found if problem), None)
    if value in (math.inf, -math.inf):
        end = facts.interval.hi if value > 0 else facts.interval.lo
        return None if end is None else "is infinite"
    exact = number(value)
    if exact is not None and not facts.interval.contains(exact):
        return "is outside the interval"
    if facts.categories is not None and value not in _physical_categories(facts):
        return "is not among the categories"
    return None


def _physical_categories(facts: Domain) -> list[Any]:
    if not facts.dtype.is_temporal:
        return list(facts.categories or ())
    return [physical(c, facts.dtype) for c in facts.categories or ()]


def check_engines(frame: pl.DataFrame, expressions: Sequence[Expression]) -> list[list[Any]]:
    """Never fails, on either engine, and both agree; returns the values."""
    results = run(frame, expressions)
    check_facts(expressions, results)
    streamed = run(frame, expressions, "streaming")
    plain = [values(r) for r in results]
    for checked, one, other in zip(expressions, plain, streamed, strict=True):
        assert other.dtype == to_polars(checked.domain.dtype), checked.text
        assert same(one, values(other)), f"{checked.text}: engines differ"
    return plain


def check_row_wise(
    frame: pl.DataFrame,
    expressions: Sequence[Expression],
    whole: Sequence[list[Any]],
    engine: Engine = "in-memory",
    singles: int = 8,
) -> None:
    """Each row's result is the same when rows are reversed, split, or alone."""
    height = frame.height
    orders = [list(range(height))[::-1]]
    orders += [list(range(0, height, 2)), list(range(1, height, 2))]
    step = max(1, height // singles) if singles else height + 1
    orders += [[i] for i in range(0, height, step)]
    for order in orders:
        part = run(frame[order], expressions, engine)
        for checked, all_values, some in zip(expressions, whole, part, strict=True):
            expected = [all_values[i] for i in order]
            assert same(values(some), expected), (
                f"{checked.text}: rows {order} give {values(some)}, within the frame {expected}"
            )
