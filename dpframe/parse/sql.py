"""SQL text of jobs: extensions to what Polars parses, and parameters as names.

Values of parameters never enter the text. ``:day`` becomes a quoted name that represents the
parameter (`dpframe.parse.size`); its letters are hexadecimal digits for any value. Nothing
else of the text is touched but the name of DATE_TRUNC, which Polars parses on frames only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time

import polars as pl

from dpframe.core.dtypes import (
    DATE,
    STRING,
    TIME,
    DType,
    Scalar,
    columns,
    datetime_type,
    domain_of_dtype,
)
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Literal, Tree, column_names
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.selectors import Schema
from dpframe.parse.size import SQL, given, mark, marked, require_short_sql
from dpframe.rows.cast import Cast
from dpframe.rows.constants import out_of_range
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, lower
from dpframe.rows.operation import Node, Operand, Values
from dpframe.rows.polars_dtypes import from_polars, read_dtype_expression
from dpframe.rows.temporal import DateOf, OffsetBy, ReplaceTimeZone, Truncate, zoned_constant

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
_CLOCKS = {
    *("NOW", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
    *("TODAY",),
}
_TRUNCATES = ["(", "DATE_TRUNC"]
"""What stands before the unit of DATE_TRUNC, the nearest first."""
_UNITS = {
    "year": "1y", "quarter": "1q", "month": "1mo", "week": "1w", "day": "1d", "hour": "1h",
    "minute": "1m", "second": "1s",
}  # fmt: skip
_IN_LISTS = {"DATE", "TIMESTAMP", "NULL", "TRUE", "FALSE"}
_EXAMPLE = 'write for example "age >= 40"'
Token = tuple[str, str]
Remedy = str | tuple[str, str]


def sql_expression(text: str, parameters: Mapping[str, Parameter]) -> pl.Expr:
    """An expression that is written in SQL, with parameters as ``:name``."""
    require_short_sql(text)
    try:
        made = pl.sql_expr(_prepared(text, parameters))
    except DPFrameError as error:
        raise error.at(text) from None
    except FAILURES as error:  # Polars has a class for each way to be wrong
        raise UnsupportedOperation(
            f"this is not an SQL expression ({type(error).__name__})",
            where=text,
            remedy=next((remedy for sign, remedy in _HINTS if sign(text.upper())), _EXAMPLE),
        ) from None
    return made.alias(SQL)


def _prepared(text: str, parameters: Mapping[str, Parameter]) -> str:
    """The text as Polars is given it."""
    tokens = [(str(found.lastgroup), found[0]) for found in _TOKEN.finditer(text)]
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
        elif kind == "text" and [t.upper() for t in _before(tokens, number)[:2]] == _TRUNCATES:
            unit = token[1:-1].strip().lower()
            if unit not in _UNITS:
                raise UnsupportedOperation(
                    f"DATE_TRUNC has no unit {token}", remedy=f"use one of {', '.join(_UNITS)}"
                )
            made.append(f"'{TRUNCATED}{_UNITS[unit]}'")
        else:
            made.append(token)
    return "".join(made)


def _before(tokens: list[Token], number: int) -> list[str]:
    """What stands before a token, without spaces and comments, the nearest first."""
    kept = [t for kind, t in tokens[:number] if kind not in ("space", "comment")]
    return kept[::-1]


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


# Dates and times in SQL: constants as text, time zones, and what Polars cannot parse of them.
#
# Text that is compared with a date or a time is read as one. If only one side has a time zone, it
# is compared by the local clock time in that zone. So ``at >= '2026-11-22'`` is true from the first
# moment of that day there, and ``CAST(at AS DATE)`` is the day there.


COMPARISONS = {
    *(f"Operator.{name}" for name in ("Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq")),
    *("Operator.EqValidity", "Operator.NotEqValidity", "Boolean.IsBetween"),
}
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?"
)
_CLOCK = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
_EXAMPLES = {
    "Date": "write the day as '2026-11-22'",
    "Time": "write the time as '18:00:00'",
    "Datetime": "write the moment as '2026-11-22' or '2026-11-22 18:00:00'",
    "Duration": "compare it with an interval: INTERVAL '90 minutes'",
}


def standing(value: Operand) -> Operand:
    """A constant, or what it stands for: a parameter in a list."""
    if isinstance(value, Values):
        return _listed(value)
    parameter = marked(value.value) if isinstance(value, Literal) else None
    return value if parameter is None else given(parameter)


def _listed(values: Values) -> Values:
    found = [marked(value) for value in values.values]
    named = [one for one in found if one is not None]
    if not named:
        return values
    if len(found) == 1:
        held = named[0].typed_value
        return Values(held if isinstance(held, tuple) else (held,), named[0].kind.dtype, named[0])
    every: list[Scalar] = []
    dtype = named[0].kind.dtype
    for value, parameter in zip(values.values, found, strict=True):
        if parameter is None:
            every.append(_read(str(value), dtype).value if dtype.is_temporal else value)
            continue
        if parameter.kind.dtype != dtype:
            raise _unlike()
        held = parameter.typed_value
        every += held if isinstance(held, tuple) else (held,)
    if any(one is None for one in found) and not (dtype.is_temporal or dtype == STRING):
        raise _unlike()
    return Values(tuple(every), dtype)


def _unlike() -> UnsupportedOperation:
    return UnsupportedOperation(
        "the values of a list are of different types", remedy="list values of one type"
    )


def adapted(
    key: str, operands: Sequence[Operand], params: Node, schema: Schema
) -> Tree | Sequence[Operand]:
    """What a function of SQL means where that is not what it means in Polars; else its operands."""
    if key in COMPARISONS and not any(isinstance(one, Values) for one in operands):
        return _alike([one for one in operands if not isinstance(one, Values)], schema)
    if key == "Boolean.IsIn" or (key == "Sql" and isinstance(params, Mapping) and "IsIn" in params):
        return _member(operands, schema)
    if isinstance(operands[0], Values):
        return operands
    match key:
        case "Node.Cast":
            return _cast(operands[0], read_dtype_expression(params["dtype"]), schema) or operands
        case "StringExpr.Strptime":
            return _parsed(operands, params, schema)
        case "TemporalExpr.OffsetBy":
            return _moved(operands, params)
        case "StringExpr.StartsWith":
            return _truncated(operands, schema) or operands
        case _:
            return operands


def dtype_of(tree: Tree, schema: Schema) -> DType | None:
    """The type of an expression, where it has one."""
    known = {name: domain_of_dtype(from_polars(schema[name])) for name in column_names(tree)}
    with suppress(DPFrameError):
        return domain(tree, columns(known)).dtype
    return None


# -- comparisons ----------------------------------------------------------------------------------


def _alike(trees: Sequence[Tree], schema: Schema) -> Sequence[Tree]:
    """Operands that can be compared: moments all with a zone, or all without one."""
    types = [dtype_of(tree, schema) for tree in trees]
    moments = [t for t in types if t is not None and t.is_temporal]
    if not moments:
        return trees
    target = next((t for t in moments if t.name == "Datetime"), moments[0])
    made = [_read_beside(tree, target) for tree in trees]
    return _in_one_zone(made, [dtype_of(tree, schema) for tree in made])


def _read_beside(tree: Tree, target: DType) -> Tree:
    """Text as a moment of the kind that it is compared with."""
    if isinstance(tree, Literal) and isinstance(tree.value, str) and tree.parameter is None:
        return _read(tree.value, target)
    return tree


def _in_one_zone(trees: Sequence[Tree], types: Sequence[DType | None]) -> Sequence[Tree]:
    zones = (
        t.zone
        for tree, t in zip(trees, types, strict=True)
        if t is not None and not isinstance(tree, Literal)  # a constant takes any zone
    )
    zone = next((zone for zone in zones if zone is not None), None)
    bare = [t is not None and t.name in ("Date", "Datetime") and t.zone is None for t in types]
    if zone is None or not any(bare):
        return trees
    zoned = [
        _at(tree, zone) if is_bare else tree for tree, is_bare in zip(trees, bare, strict=True)
    ]
    if None not in zoned:
        return [tree for tree in zoned if tree is not None]
    return [
        _on_clocks(tree) if t is not None and t.zone is not None else tree
        for tree, t in zip(trees, types, strict=True)
    ]


def _at(tree: Tree, zone: str) -> Tree | None:
    """A constant as the one moment at which clocks in a zone show it; None if none exists."""
    if not isinstance(tree, Literal) or tree.parameter is not None:
        return None
    value = tree.value
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return zoned_constant(Literal(value, datetime_type()), zone, Literal("raise", STRING))


def _on_clocks(tree: Tree) -> Tree:
    """A moment as clocks in its zone show it."""
    return ReplaceTimeZone(None).of(tree)


def _member(operands: Sequence[Operand], schema: Schema) -> Sequence[Operand]:
    source, listed = operands
    if isinstance(source, Values) or not isinstance(listed, Values):
        return operands
    dtype = dtype_of(source, schema)
    if dtype is None or not dtype.is_temporal:
        return operands
    if listed.parameter is None and listed.dtype == STRING:
        found = [None if v is None else _read(str(v), dtype) for v in listed.values]
        kinds = {literal.dtype for literal in found if literal is not None}
        if len(kinds) > 1:
            raise _unlike()
        values = tuple(None if literal is None else literal.value for literal in found)
        listed = Values(values, next(iter(kinds), dtype))
    if dtype.zone is not None and listed.dtype.zone is None and dtype.name == "Datetime":
        source = _on_clocks(source)
    return source, listed


# -- constants ------------------------------------------------------------------------------------


def _read(text: str, target: DType) -> Literal:
    """Text as a constant of the kind of a type."""
    bare = text.strip()
    found: Literal | None = None
    with suppress(ValueError, OverflowError):
        match target.name:
            case "Date" if len(bare) == 10 and _MOMENT.fullmatch(bare):
                found = Literal(date.fromisoformat(bare), DATE)
            case "Time" if _CLOCK.fullmatch(bare):
                found = Literal(time.fromisoformat(bare), TIME)
            case "Datetime" if _MOMENT.fullmatch(bare):
                moment = datetime.fromisoformat(bare.replace(" +", "+").replace(" -", "-"))
                if moment.tzinfo is None:
                    found = Literal(moment, datetime_type())
                else:
                    found = Literal(moment.astimezone(UTC), datetime_type("us", "UTC"))
    if found is None:
        raise UnsupportedOperation(
            f"{text!r} is compared with a {target}, and is not a valid one",
            remedy=_EXAMPLES.get(target.name, "compare values of one type"),
        )
    return found


# -- functions ------------------------------------------------------------------------------------


def _cast(tree: Tree, target: DType, schema: Schema) -> Tree | None:
    """CAST where it reads a constant, or takes the zone away: what clocks there show is left."""
    if target.name not in ("Date", "Datetime", "Time"):
        return None
    if isinstance(tree, Literal) and isinstance(tree.value, str) and tree.parameter is None:
        return _read(tree.value, target) if target.zone is None else None
    dtype = dtype_of(tree, schema)
    if dtype is None or dtype.name != "Datetime" or dtype.zone is None or target.zone is not None:
        return None
    match target.name:
        case "Date":
            return DateOf().of(tree)
        case "Datetime":
            clocks = _on_clocks(tree)
            return clocks if dtype.unit == target.unit else Cast(target).of(clocks)
        case _:
            return None


def _parsed(operands: Sequence[Operand], params: Node, schema: Schema) -> Tree | Sequence[Operand]:
    """DATE(...) and typed constants, as Polars 1 writes them."""
    source = operands[0]
    dtype, options = read_dtype_expression(params[0]), params[1]
    if isinstance(source, Values) or options["format"] is not None:
        return operands
    if dtype_of(source, schema) == STRING and not isinstance(source, Literal):
        return operands
    if isinstance(source, Literal) and source.parameter is None and isinstance(source.value, str):
        return _read(source.value, dtype)
    return _cast(source, dtype, schema) or Cast(dtype).of(source)


def _moved(operands: Sequence[Operand], params: Node) -> Tree | Sequence[Operand]:
    """A constant that is moved by an interval is a constant, as Polars 2 writes it."""
    source = operands[0]
    if not isinstance(source, Literal) or source.parameter is not None:
        return operands
    moved = OffsetBy.read(operands, params)
    value = pl.select(lower(moved, columns({}))).item()
    if value is None:
        raise out_of_range()
    return Literal(value, source.dtype)


def _truncated(operands: Sequence[Operand], schema: Schema) -> Tree | None:
    """DATE_TRUNC, which `dpframe.parse.sql` hands on as a function that Polars parses."""
    unit, source = operands
    if not isinstance(unit, Literal) or not str(unit.value).startswith(TRUNCATED):
        return None
    assert not isinstance(source, Values)
    source = _read_beside(source, datetime_type())
    dtype = dtype_of(source, schema)
    if dtype is not None and dtype.name == "Datetime" and dtype.zone is not None:
        source = _on_clocks(source)
    return Call(Truncate(str(unit.value).removeprefix(TRUNCATED)), (source,))
