"""SQL text of jobs: extensions to what Polars parses, and parameters as names.

Values of parameters never enter the text. ``:day`` becomes a quoted name that represents the
parameter (`dpframe.parse.parameters`); its letters are hexadecimal digits for any value. Nothing
else of the text is touched but the name of DATE_TRUNC, which Polars parses on frames only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import polars as pl

from dpframe.core.parameters import Parameter
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.parameters import SQL, mark
from dpframe.parse.size import require_short_sql
from dpframe.rows.failures import FAILURES

TRUNCATED = "dpframe:date_trunc:"
"""How the text begins that stands for DATE_TRUNC and its unit."""

_TOKEN = re.compile(
    r"""
    (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*"|`[^`]*`)
    | (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<cast>::)
    | (?P<parameter>:(?P<called>[A-Za-z_]\w*))
    | (?P<word>[A-Za-z_]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<space>\s+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = (
    *("text", "name", "comment", "dollar", "cast", "parameter", "word", "number", "space", "sign"),
)
_CLOCKS = {
    *("NOW", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
    *("TODAY",),
}
_UNITS = {
    "year": "1y",
    "quarter": "1q",
    "month": "1mo",
    "week": "1w",
    "day": "1d",
    "hour": "1h",
    "minute": "1m",
    "second": "1s",
}
_IN_LISTS = {"DATE", "TIMESTAMP", "NULL", "TRUE", "FALSE"}
_EXAMPLE = 'write for example "age >= 40"'
Token = tuple[str, str]
Remedy = str | tuple[str, str]


def sql_expression(text: str, parameters: Mapping[str, Parameter]) -> pl.Expr:
    """An expression that is written in SQL, with parameters as ``:name``.

    Raises
    ------
    UnsupportedOperation
        When it is invalid, or names an undeclared parameter.
    """
    require_short_sql(text)
    try:
        made = pl.sql_expr(_prepared(text, parameters))
    except DPFrameError as error:
        raise error.at(text) from None
    except FAILURES as error:  # Polars has a class for each way to be wrong
        raise UnsupportedOperation(
            f"this is not an SQL expression ({type(error).__name__})",
            where=text,
            remedy=_remedy(text),
        ) from None
    return made.alias(SQL)


def _prepared(text: str, parameters: Mapping[str, Parameter]) -> str:
    """The text as Polars is given it."""
    tokens = [(_kind(found), found[0]) for found in _TOKEN.finditer(text)]
    made: list[str] = []
    for number, (kind, token) in enumerate(tokens):
        if kind == "parameter":
            made.append(_standing_for(token[1:], parameters, _before(tokens, number)))
        elif kind == "word" and token.upper() in _CLOCKS:
            raise UnsupportedOperation(
                f"{token} has another value each time the job is planned, so a plan "
                "with it cannot be approved",
                remedy='declare a parameter: [parameters] day = {type = "date"}, and write :day',
            )
        elif kind == "word" and token.upper() == "DATE_TRUNC":
            made.append("STARTS_WITH")
        elif kind == "text" and _is_unit(tokens, number):
            made.append(f"'{TRUNCATED}{_every(token)}'")
        else:
            made.append(token)
    return "".join(made)


def _kind(found: re.Match[str]) -> str:
    """What a token is."""
    return next(kind for kind in _KINDS if found[kind] is not None)


def _before(tokens: list[Token], number: int) -> list[str]:
    """What stands before a token, without spaces and comments, the nearest first."""
    kept = [t for kind, t in tokens[:number] if kind not in ("space", "comment")]
    return kept[::-1]


def _is_unit(tokens: list[Token], number: int) -> bool:
    return [t.upper() for t in _before(tokens, number)[:2]] == ["(", "DATE_TRUNC"]


def _every(token: str) -> str:
    unit = token[1:-1].strip().lower()
    if unit not in _UNITS:
        raise UnsupportedOperation(
            f"DATE_TRUNC has no unit {token}", remedy=f"use one of {', '.join(_UNITS)}"
        )
    return _UNITS[unit]


def _standing_for(name: str, parameters: Mapping[str, Parameter], before: list[str]) -> str:
    """What stands for a parameter: in lists a text, since Polars takes constants only there."""
    found = parameters.get(name)
    if found is None:
        known = ", ".join(f":{known}" for known in sorted(parameters))
        raise UnsupportedOperation(
            f"the job declares no parameter {name!r}",
            remedy=f"its parameters are {known}"
            if known
            else f'declare it: [parameters] {name} = {{type = "date"}}',
        )
    quote = "'" if _in_list(before) else '"'
    return f"{quote}{mark(found)}{quote}"


def _in_list(before: list[str]) -> bool:
    """Whether this is a value of a list after IN: only constants and commas stand before it."""
    for place, token in enumerate(before):
        if token == "(":
            return place + 1 < len(before) and before[place + 1].upper() == "IN"
        is_value = token[0] in ",'+-:" or token[0].isdigit() or token.upper() in _IN_LISTS
        if not is_value:
            return False
    return False


def _remedy(text: str) -> Remedy:
    upper = text.upper()
    for sign, remedy in _HINTS:
        if sign(upper):
            return remedy
    return _EXAMPLE


_HINTS: tuple[tuple[Callable[[str], bool], Remedy], ...] = (
    (
        lambda t: " IN " in t and "DATE '" in t,
        "write dates in lists as text: day IN ('2026-11-22', '2026-11-23')",
    ),
    (
        lambda t: "AT TIME ZONE" in t,
        "write a moment with its offset: at >= '2026-11-22 00:00:00+01:00'",
    ),
    (
        lambda t: "LIKE" in t and ":" in t,
        ("write the pattern as a constant in quotes", "compare with a parameter: = :name"),
    ),
    (
        lambda t: "TO_DATE" in t or "DATE_DIFF" in t or "DATEDIFF" in t,
        ("write DATE '2026-11-22' or CAST(x AS DATE)", "write at + INTERVAL '7 days'"),
    ),
    (
        lambda t: any(f"{part}(" in t for part in ("YEAR", "MONTH", "DAY", "HOUR")),
        "write EXTRACT(YEAR FROM at)",
    ),
)
