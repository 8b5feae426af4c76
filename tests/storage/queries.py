"""Queries of all kinds for the law of storage, and the exact tables that each needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Table
from dpframe.api.query import parts
from tests.laws.neighbours import tables_of
from tests.storage.rows import SCHEMA

_LONG = "a" * 70
_NAMES: dict[str, Any] = {
    "pl": pl, "dp": dp, "date": date, "datetime": datetime, "UTC": UTC, "Decimal": Decimal,
    "LONG": _LONG, "KEYS": pl.DataFrame({"i": [0, 1, 5, 7, None], "w": [1.5, 2.5, 0.5, 9.0, 3.0]}),
    "NUMBERS": pl.DataFrame({"x": [1.0, 10.0, float("nan")]}),
}  # fmt: skip
_CONDITIONS = [
    'pl.col("x") > 5', 'pl.col("x") < 5', 'pl.col("x") >= 1.0', 'pl.col("x") == 1.0',
    'pl.col("x") != 1.0', 'pl.col("x").is_nan()', 'pl.col("x").is_not_nan()',
    'pl.col("x").is_null()', 'pl.col("x").is_not_null()', 'pl.col("x").is_finite()',
    'pl.col("x").is_in([1.0, 10.0])', 'pl.col("x").is_in([float("nan")])',
    'pl.col("x").is_between(0, 5)', '~(pl.col("x") > 5)', 'pl.col("x") > pl.col("y")',
    'pl.col("x") == float("inf")', 'pl.col("x") <= float("nan")', '1 / pl.col("y") > 0',
    'pl.col("x").eq_missing(1.0)', 'pl.col("z") > 0.5', 'pl.col("z") != 1.0', 'pl.col("y") == 0.0',
    '(pl.col("x") > 5) | (pl.col("i") == 7)', '(pl.col("x") > 0) & pl.col("b")',
    'pl.col("i") > 5', 'pl.col("i") == 7', 'pl.col("i") != 7', 'pl.col("i").is_null()',
    'pl.col("i").is_in([0, 7, 2**63 - 1])', 'pl.col("i").is_between(0, 5)', 'pl.col("k") < 1',
    'pl.col("b")', '~pl.col("b")', 'pl.col("b").is_null()', 'pl.col("s") == LONG',
    'pl.col("s") > LONG + "a"', 'pl.col("s") != "a"', 'pl.col("s").is_in(["a", LONG + "b"])',
    'pl.col("s").str.starts_with(LONG)', 'pl.col("s").is_null()', 'pl.col("g") == "a"',
    'pl.col("g") == "7"', 'pl.col("g") != "b"', 'pl.col("g").is_in(["1", "b c"])',
    'pl.col("d") > date(1970, 1, 1)', 'pl.col("d") == date(2024, 1, 1)',
    'pl.col("t") >= datetime(1970, 1, 1)', 'pl.col("t") < datetime(1970, 1, 1)',
    'pl.col("tz") > datetime(1970, 1, 1, tzinfo=UTC)', 'pl.col("dec") > 1',
    'pl.col("dec") == Decimal("5.00")',
]  # fmt: skip
_ROWS = [
    ("", "", "n=dp.count()"),
    ("", "", 'n=pl.col("x").dp_count(), m=pl.col("s").dp_count(), k=pl.col("i").dp_count()'),
    ("", "", 'a=pl.col("x").dp_sum((0, 5)), b=pl.col("x").dp_mean((0, 20))'),
    ("", "", 'a=pl.col("i").dp_sum((-3, 9)), b=pl.col("k").dp_sum((0, 2)), c=dp.count()'),
    ("", "", 'a=pl.col("dec").dp_sum((0, 99)), b=pl.col("z").dp_std((0, 3))'),
    ("", "", 'a=pl.col("x").dp_histogram([0, 1, 5], other=True)'),
    ("", "", 'a=pl.col("i").dp_histogram([0, 1, 5, 20])'),
    ("", "", 'a=pl.col("s").dp_histogram(["a", LONG, None], other=True)'),
    ("", "", 'a=pl.col("b").dp_histogram(), b=pl.col("k").dp_histogram([0, 1])'),
    ("", "", 'a=pl.col("d").dp_histogram([date(1900, 1, 1), date(1970, 1, 1), date(2030, 1, 1)])'),
    ("", "", 'a=pl.col("x").dp_cdf([0, 1, 5]), b=pl.col("x").dp_count()'),
    ("", "", 'a=pl.when(pl.col("x") > 5).then(pl.col("i")).otherwise(2).dp_sum((0, 9))'),
    ("", "", 'a=pl.when(pl.col("x").is_nan()).then(1.0).otherwise("y").dp_sum((-1, 5))'),
    ("", "", 'a=(pl.col("x") / pl.col("y")).dp_sum((-5, 5))'),
    ("", "", 'a=pl.col("x").fill_nan(3.0).fill_null(1.0).dp_sum((0, 9))'),
    ("", "", 'a=pl.col("x").dp_quantile([0.25, 0.9], (0, 10)), b=pl.col("i").dp_median((0, 9))'),
    ("", "", 'a=pl.col("x").dp_n_unique(), b=pl.col("s").dp_n_unique()'),
    ("", "", 'a=pl.col("i").dp_n_unique(), b=pl.col("d").dp_n_unique()'),
    ("", "", 'a=pl.col("g").dp_argmax(candidates=["a", "b", "7", "z"])'),
    ("", "", 'a=pl.col("i").dp_argmax(candidates=[0, 7, None], score=pl.col("x").dp_sum((0, 5)))'),
    ("", '.group_by(big=pl.col("x") > 5, keys=[True, False, None])', "n=dp.count()"),
    ("", '.group_by(q=pl.col("i") // 5, keys=[0, 1, None])', 'n=pl.col("x").dp_count()'),
    ("", '.group_by("g", keys=["a", "b", "7", "1", "b c"])',
     'n=dp.count(), a=pl.col("x").dp_sum((0, 5))'),
    ("", '.group_by("s", keys=["a", LONG, None])', 'n=dp.count(), a=pl.col("k").dp_sum((0, 5))'),
    ("", '.group_by("b", "k", keys={"b": [True, None], "k": [0, 1, None]})', "n=dp.count()"),
    ("", '.group_by("d", keys=[date(1970, 1, 1), date(2024, 1, 1), None])', "n=dp.count()"),
    ("", '.group_by("t", keys=[datetime(1970, 1, 1), None])',
     'n=dp.count(), a=pl.col("y").dp_sum((0, 5))'),
    ('.join(KEYS, on="i")', "", 'n=dp.count(), w=pl.col("w").dp_sum((0, 3))'),
    ('.join(KEYS, on="i", how="left")', "", 'n=pl.col("w").dp_count()'),
    ('.join(KEYS, on="i", how="anti")', "", 'n=dp.count(), a=pl.col("x").dp_sum((0, 3))'),
    ('.drop_nulls("x").filter(pl.col("x") > 1)', "", "n=dp.count()"),
    ('.with_columns(x=pl.lit(1.0) * pl.col("x")).filter(pl.col("x") > 5)', "", "n=dp.count()"),
    ('.rename({"x": "y", "y": "x"}).filter(pl.col("y") > 5)', "", 'n=pl.col("x").dp_count()'),
    *((f".filter({t})", "", 'n=dp.count(), a=pl.col("i").dp_sum((0, 5))') for t in _CONDITIONS),
]  # fmt: skip
_PEOPLE = [
    (".limit_rows(1)", "", 'n=dp.count(), a=pl.col("x").dp_sum((0, 5))'),
    ('.select("u", "x", "i").limit_rows(2).filter(pl.col("x") > 5)', "", "n=dp.count()"),
    ('.filter(pl.col("x") > 5)', "",
     'n=dp.n_unique("u"), t=pl.col("x").dp_sum((0, 20), per="unit")'),
    ('.filter(pl.col("x") != 1.0)', "",
     'n=dp.n_unique("u"), c=dp.count(per="unit", bounds=(0, 3))'),
    ("", "", 'n=dp.n_unique("u"), m=pl.col("x").dp_mean((0, 5), per="unit")'),
    ("", "", 'a=pl.col("x").dp_histogram([0, 1, 5], other=True, per="unit")'),
    ('.limit_groups(1, by="g")', '.group_by("g", keys=["a", "b", "7", "1"])', 'n=dp.n_unique("u")'),
    ('.with_columns(big=pl.col("x") > 5).limit_groups(2, by="big")',
     '.group_by("big", keys=[True, False, None])',
     'n=dp.n_unique("u"), c=dp.count(per="unit", bounds=(0, 2))'),
    ('.select("u", "x", "y").limit_rows(1).join(f.select("u", "i").limit_rows(2), on="u")', "",
     'n=dp.count(), a=pl.col("x").dp_sum((0, 5))'),
    (".limit_norm(2)", '.group_by("g", keys=["a", "b", "7"])', 'n=dp.n_unique("u")'),
]  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A query of protected rows.

    Parameters
    ----------
    text
        As an analyst writes it.
    columns
        The columns of `SCHEMA` that it names; all where it names none that is read.
    """

    text: str
    query: Query
    tables: tuple[Table, ...]
    columns: frozenset[str]

    @property
    def token(self) -> int:
        """Of the protected frame."""
        return self.query.relation.token


@cache
def queries(unit: str) -> tuple[Asked, ...]:
    """The queries of the unit ``"rows"`` or of the people ``"u"``; limits have a known salt."""
    session = dp.Session(epsilon=1, delta=0.1)
    who: Any = dp.Rows() if unit == "rows" else unit
    people = session.protect(pl.LazyFrame(schema=dict(SCHEMA)), who)
    found = []
    for steps, groups, outputs in _ROWS if unit == "rows" else _PEOPLE:
        text = f"f{steps}{groups}.agg({outputs})"
        query = parts(eval(text, {**_NAMES, "f": people}))[0]
        query = replace(query, relation=replace(query.relation, salt=12345))
        names = frozenset(re.findall(r'"(\w+)"', text)) & set(SCHEMA)
        ordered = ".limit_rows(1)" in steps and "select" not in steps
        whole = ordered or ".rename(" in steps  # of which all columns are read
        columns = frozenset(SCHEMA) if whole else names | ({"u"} if unit == "u" else set())
        found.append(Asked(text, query, tables_of(query), columns))
    return tuple(found)
