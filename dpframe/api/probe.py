"""Check once, on constants and before it gets data, that an engine computes as expected.

Other programs speak the protocols of an engine, and settings change what expressions mean. So a
fixed query on awkward values is run on each session, and its exact tables are compared with those
of Polars. No private data is read, and nothing is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts
from dpframe.api import functions as dp
from dpframe.api.expressions import DPExpr
from dpframe.core.dtypes import columns, domain_of_dtype
from dpframe.core.units import Identifier
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import LimitRows
from dpframe.frames.facts import protected_facts
from dpframe.frames.relation import Relation
from dpframe.infer import measurements_of
from dpframe.lower import Execution
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import schema_from_polars

_NAN, _INF = math.nan, math.inf
_WHOLE = [0, 1, -7, 7, 2**63 - 1, -(2**63), None, 2**53 + 1, 3, -3, 100, 2**31, -1, 5]
_OTHER = [3, 0, 2, -2, 1, -1, 4, 1, None, 2**62, 0, 2, -(2**63), 2**63 - 1]
_REAL = [0.5, -0.0, _NAN, _INF, -_INF, 1.5, 2.5, -1.5, None, 1e300, 5e-324, 49.0, 9.3e18, -2.5]
_REALS = [_NAN, 0.0, 1.0, -1.0, 49.0, 0.0, -0.0, 2.5, 3.0, 1e-300, _INF, 49.0, None, 0.1]
_TEXT = ["a", "A", " a", "a ", "", None, "é", "e\u0301", "ß", "ab" * 9, "12", "🙂", "a%b", "x'y"]
_DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None, date(2026, 1, 1)]
_MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 999_999), None, datetime(2024, 3, 31, 2, 30, 5)]
_ROWS = len(_WHOLE)


def require_equal(engine: Engine) -> None:
    """Refuse a session on which the fixed query gives other tables than Polars."""
    if engine is POLARS or engine.is_accepted:
        return
    try:
        same = _tables(engine, engine.ns.dialect.native_frame(_rows())) == _expected()
        why = "gives other numbers than Polars for constants"
        if same and not engine.has_border():
            same, why = False, "lets statistics of stored values decide which rows there are"
    except FAILURES as error:  # of constants
        same, why = False, f"does not run a query of constants ({type(error).__name__})"
    if not same:
        raise UnsupportedOperation(
            f"the session looks like {engine.label}, and it {why}: its results would be wrong",
            where="session.protect(frame, ...)",
            remedy=(
                f"use a session of {engine.label} itself with its default settings",
                "write Parquet and protect its path",
            ),
        )
    engine.accept()


@cache
def _rows() -> pl.DataFrame:
    """A frame of constants, one individual and one key for each two rows."""
    days = [_DAYS[i % len(_DAYS)] for i in range(_ROWS)]
    moments = [_MOMENTS[i % len(_MOMENTS)] for i in range(_ROWS)]
    numbers = pl.DataFrame({"row": range(_ROWS), "i": _WHOLE, "n": _OTHER}, schema_overrides=_INTS)
    return numbers.with_columns(
        pl.Series("who", [i // 2 for i in range(_ROWS)], dtype=pl.Int64),
        pl.Series("x", _REAL, dtype=pl.Float64),
        pl.Series("y", _REALS, dtype=pl.Float64),
        pl.Series("b", [[True, False, None][i % 3] for i in range(_ROWS)], dtype=pl.Boolean),
        pl.Series("s", _TEXT, dtype=pl.String),
        pl.Series("d", days, dtype=pl.Date),
        pl.Series("t", moments, dtype=pl.Datetime("us")),
    )


_INTS: Any = {"row": pl.Int64, "i": pl.Int64, "n": pl.Int64}


@cache
def _expected() -> list[Any]:
    return _tables(POLARS, _rows().lazy())


@cache
def _query() -> Query:
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(_rows().schema).items()}
    relation = Relation.of("constants", protected_facts(columns(table), Identifier("who")))
    relation = relation.then(LimitRows(_ROWS))
    keys = {"row": list(range(_ROWS))}
    groups = pipeline.group(relation, [pl.col("row")], {}, keys, False)
    specs = [output.alias(f"o{i}") for i, output in enumerate(_outputs())]
    return pipeline.ask(relation, groups, [spec._spec for spec in specs])


def _tables(engine: Engine, data: Any) -> list[Any]:
    """The exact tables of the query."""
    query = _query()
    tables = list(
        dict.fromkeys(table for use in measurements_of(query) for table in use.part.tables)
    )
    token = query.relation.token
    found = Execution(engine, {token: data}, {token: _rows().schema}).run(
        query.relation, query.groups, tables
    )
    return [_plain(found[table]) for table in tables]


def _plain(cells: CellCounts) -> list[Any]:
    parts = (cells.groups, cells.cells, cells.values, cells.size)
    return [p if p is None or isinstance(p, int) else np.asarray(p).tolist() for p in parts]


def _outputs() -> Iterator[DPExpr]:
    """A sum of each expression for each row, so that each value is checked separately."""
    for truth in _truths():
        yield dp.sum(pl.when(truth).then(1).otherwise(2), (0, 2))
    for number in _numbers():
        yield dp.sum(number, (-1000, 1000))


def _truths() -> Iterator[pl.Expr]:
    i, n, x, y, b, s = map(pl.col, ("i", "n", "x", "y", "b", "s"))
    yield from (x > 1, x == y, x <= y, x.is_nan(), x.is_finite(), x != 0, x.is_between(0, 2))
    yield from (i > n, i.eq_missing(n), i.is_in([7, 3]), b & (i > 0), b | (i > 0), b ^ (x > 0), ~b)
    yield from (s == "a", s > "a", s.is_in(["a ", "ß"]), s.str.starts_with("a"))
    yield from (s.str.contains("b", literal=True), s.str.slice(1, 1) == "a", s.is_null())
    yield from (s.str.strip_chars() == "a", s.str.slice(-2).str.pad_start(3, "é") == "ébb")


def _numbers() -> Iterator[pl.Expr]:
    i, n, x, y, b, s = map(pl.col, ("i", "n", "x", "y", "b", "s"))
    d, t = pl.col("d"), pl.col("t")
    yield from (x.clip(-3, 3), x.floor(), x.ceil(), x.fill_nan(7.0), x.fill_null(5.0), x / y)
    yield from (i + n, i - n, i * n, -i, i // n, i % n, i.abs(), x.sign(), i / n)
    yield from (x.cast(pl.Int64), x.cast(pl.Int8), i.cast(pl.Int8), i.cast(pl.Float64) / 2**60)
    yield from (b.cast(pl.Int64), pl.when(x > 0).then(i).otherwise(n), pl.coalesce(i, n))
    yield from (pl.min_horizontal(x, y), pl.max_horizontal(x, y), pl.sum_horizontal(i, n))
    yield from (s.str.len_chars(), d.dt.year(), d.dt.weekday(), d.dt.ordinal_day())
    yield from (t.dt.hour(), t.dt.second(), t.dt.month(), x.sqrt())
    yield s.str.find("b", literal=True)
