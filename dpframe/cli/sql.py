"""Refusals of SQL expressions, in the words of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from dpframe.errors import DPFrameError

T = TypeVar("T")

_KNOWN = (
    "comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE, CAST, COALESCE, arithmetic, "
    "EXTRACT, DATE_TRUNC and INTERVAL"
)
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("compare it with a value", "compare it with something, for example age >= 40"),
    (".dt.date()", "write CAST(at AS DATE), which is the day in the zone of the column"),
    ("parse the text first", "write CAST, or compare text with text: s = '2026-11-22'"),
    ("parse it with a fixed format", "write STRPTIME(s, '%Y-%m-%d'), or compare it as text"),
    (".replace_time_zone", "write the moment with its offset: '2026-11-22 00:00:00+01:00'"),
    ("methods of .dt", "write EXTRACT(YEAR FROM at), or CAST(at AS VARCHAR) for text"),
    ("methods of .str", "compare text with =, LIKE and IN, or write CAST(s AS BIGINT)"),
    (".cast(pl.Int64) or .cast(pl.String)", "write CAST(x AS BIGINT) or CAST(x AS VARCHAR)"),
    ("cast to one of these", "write CAST(x AS BIGINT), CAST(x AS DOUBLE) or CAST(x AS VARCHAR)"),
    (".cast(pl.Int64)", "write CAST(x AS BIGINT)"),
    (".cast(pl.String)", "write CAST(x AS VARCHAR)"),
    ("cast one side", "write CAST(x AS ...) around one side"),
    (".is_in(", "write IN, with values in brackets: x IN (1, 2), or x IN (:values)"),
    ("pl.when", "write CASE WHEN ... THEN ... ELSE ... END"),
    (".fill_null", "write COALESCE(x, 0)"),
    ("dp_ aggregate", 'name the aggregate in [query.outputs.NAME]: aggregate = "sum"'),
    ("dp.count()", 'name the aggregate in [query.outputs.NAME]: aggregate = "count"'),
    (".dp_", 'name the aggregate in [query.outputs.NAME]: aggregate = "mean"'),
    ("frame's own methods", "do it before the data come to where the job reads them"),
    ("true division", "write / or CAST(x / y AS BIGINT)"),
)
"""What a remedy for Polars says, and what to write in SQL instead."""

_POLARS = re.compile(r"\bpl\.|\bdp\.|\.[a-z_]+\.?[a-z_]*\(|\.dt\b|\.str\b|\bcol\(|with_columns")
_NAMES: tuple[tuple[str, str], ...] = (
    ("str.len_bytes", "OCTET_LENGTH"),
    ("str.len_chars", "LENGTH"),
    ("str.to_lowercase", "LOWER"),
    ("str.to_uppercase", "UPPER"),
    ("str.contains", "LIKE"),
    ("str.starts_with", "LIKE"),
    ("str.ends_with", "LIKE"),
    ("str.slice", "SUBSTR"),
    ("dt.offset_by", "INTERVAL"),
    ("dt.truncate", "DATE_TRUNC"),
    ("dt.date", "CAST(... AS DATE)"),
    ("is_in", "IN"),
    ("pl.len", "COUNT(*)"),
    ("pl.int_range", "ROW_NUMBER"),
    ("n_unique", "COUNT(DISTINCT ...)"),
)
_PREFIX = re.compile(r"\b(pl|dp|dt|str|list)\.(?=[a-z])")
_PART = re.compile(r"\bdt\.(year|month|day|hour|minute|second|week|weekday|quarter|iso_year)\b")
_TYPES = (
    (re.compile(r"\bDatetime\(\w+, ([^)]+)\)"), r"TIMESTAMP in \1"),
    (re.compile(r"\bDatetime(\(\w+\))?"), "TIMESTAMP"),
    (re.compile(r"\bU?Int(8|16|32|64|128)\b"), "integer"),
    (re.compile(r"\bFloat(32|64)\b"), "float"),
    (re.compile(r"\bString\b"), "text"),
    (re.compile(r"\bDuration(\(\w+\))?"), "INTERVAL"),
)


def in_sql(text: str, make: Callable[[], T]) -> T:
    """Build a value from an SQL expression; refusals quote the expression as written.

    Raises
    ------
    DPFrameError
        What is refused.
    """
    try:
        return make()
    except DPFrameError as error:
        error.what, error.where = _in_words(error.what), text
        error.remedy = None if error.remedy is None else _remedy(error.remedy)
        raise error from None


def _in_words(what: str) -> str:
    """What was refused, with functions and types as SQL calls them."""
    for name, said in _NAMES:
        what = what.replace(name, said)
    what = _PART.sub(lambda found: f"EXTRACT({found[1].upper()} ...)", what)
    for pattern, said in _TYPES:
        what = pattern.sub(said, what)
    what = _PREFIX.sub("", what)
    return what.replace("private expression", "private SQL expression")


def _remedy(remedy: str) -> str:
    found = next((said for sign, said in _REMEDIES if sign in remedy), None)
    if found is None and _POLARS.search(remedy):
        return f"write it with {_KNOWN}"
    return found or remedy
