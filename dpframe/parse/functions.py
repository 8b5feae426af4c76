"""Functions of numbers, Booleans, lists and several columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import NULL
from dpframe.core.exact import as_given
from dpframe.core.tree import Call, Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.parse.build import Handler, Operand, constant, integer, make, operand, simple
from dpframe.parse.dtypes import read_dtype_expression
from dpframe.parse.hints import snake
from dpframe.parse.ipc import read_ipc
from dpframe.parse.literals import Values
from dpframe.parse.strings import STRINGS
from dpframe.parse.temporal import TEMPORAL
from dpframe.rows.arithmetic import Sub

_CLOSED = {"Both": "both", "Left": "left", "Right": "right", "None": "none"}


def _log(operands: Sequence[Operand], params: Any) -> Tree:
    """Logarithm; the base is a parameter in the oldest Polars and an operand in newer ones."""
    base = constant(operands[1], "the base of log") if len(operands) > 1 else params["base"]
    if isinstance(base, bool) or not isinstance(base, (int, float)):
        raise UnsupportedOperation("the base of log is not a number", remedy="write a number")
    if not (math.isfinite(base) and base > 0 and base != 1):
        raise InvalidBounds(
            f"log has no base {base}", remedy="use a finite base above 0 other than 1"
        )
    value = float(base)
    return make("log", operands[0], base=None if value == math.e else value)


def _round(operands: Sequence[Operand], params: Any) -> Tree:
    mode = params.get("mode", "HalfToEven")
    if mode != "HalfToEven":
        raise UnsupportedOperation(
            f"round with the mode {mode} is not supported",
            remedy='leave mode out: numbers are rounded with "half_to_even"',
        )
    return make("round", *operands, decimals=int(params["decimals"]))


def _clip(operands: Sequence[Operand], params: Any) -> Tree:
    source, *bounds = operands
    has_lo, has_hi = bool(params["has_min"]), bool(params["has_max"])
    if any(not isinstance(operand(bound), Literal) for bound in bounds):
        for bound in bounds:
            if isinstance(operand(bound), Literal):
                _clip_bound(bound)
        return make("clip_between", source, *bounds, has_lo=has_lo, has_hi=has_hi)
    ends = [_clip_bound(bound) for bound in bounds]
    lo = ends.pop(0) if has_lo else None
    hi = ends.pop(0) if has_hi else None
    if lo is not None and hi is not None and _reversed(lo, hi):
        raise InvalidBounds(
            f"the bounds of clip are reversed: {as_given(lo)} is above {as_given(hi)}",
            remedy="write the lower bound first",
        )
    lo = None if lo == -math.inf else lo
    hi = None if hi == math.inf else hi
    return make("clip", source, lo=lo, hi=hi)


def _clip_bound(bound: Operand) -> Scalar:
    value = constant(bound, "a bound of clip")
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)):
        raise InvalidBounds(
            "a bound of clip is missing or NaN", remedy="leave the bound out, or write a number"
        )
    return value


def _reversed(lo: Any, hi: Any) -> bool:
    try:
        return bool(lo > hi)
    except TypeError:
        if isinstance(lo, date) and isinstance(hi, date):  # a date beside a datetime
            return _as_day(lo) > _as_day(hi)
        return False


def _as_day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _is_in(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    nulls_equal = bool(params["nulls_equal"])
    if not isinstance(given, Values):
        return _is_in_list(source, given, nulls_equal)
    return make("is_in", source, values=_as_set(given.values), nulls_equal=nulls_equal)


def _is_in_list(source: Operand, given: Operand, nulls_equal: bool) -> Tree:
    """Whether a value is in the list of its own row."""
    if isinstance(given, Literal):
        raise UnsupportedOperation(
            "is_in needs a list of constants, or a list column",
            remedy="write the values in a list: .is_in([1, 2])",
        )
    found = make("list_contains", given, source)
    if nulls_equal:
        return found
    return make("when", make("is_not_null", source), found, Literal(None, NULL))


def _as_set(values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The values sorted and each once: a Python set has no order that a plan could keep."""
    given: set[Any] = {value for value in values if value is not None}
    nan = [value for value in given if value != value][:1]
    null = [None] if None in values else []
    return (*sorted(value for value in given if value == value), *nan, *null)


def _is_between(operands: Sequence[Operand], params: Any) -> Tree:
    return make("is_between", *operands, closed=_CLOSED[params["closed"]])


def _ignoring_nulls(op: str) -> Handler:
    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        return make(op, *_some(op, operands), ignore_nulls=bool(params["ignore_nulls"]))

    return handle


def _variadic(op: str) -> Handler:
    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        return make(op, *_some(op, operands))

    return handle


def _some(op: str, operands: Sequence[Operand]) -> Sequence[Operand]:
    if not operands:
        raise UnsupportedOperation(
            f"{op} needs at least one column", remedy="check the column selection"
        )
    return operands


def _listed(value: Operand, what: str) -> tuple[Scalar, ...]:
    return value.values if isinstance(value, Values) else (constant(value, what),)


def _pairs(operands: Sequence[Operand], name: str) -> dict[str, tuple[Scalar, ...]]:
    """The old and new values of a replacement, one new value for each old one."""
    old = _listed(operands[1], f"the old values of {name}")
    new = _listed(operands[2], f"the new values of {name}")
    if len(new) == 1:
        new = new * len(old)
    if len(old) != len(new):
        raise InvalidBounds(
            f"{name} has {len(old)} old and {len(new)} new values",
            remedy="give each old value one new value, or all of them the same",
        )
    if len(set(old)) != len(old):
        raise InvalidBounds(f"{name} lists an old value twice", remedy="list each value once")
    return {"old": old, "new": new}


def _replace(operands: Sequence[Operand], params: Any) -> Tree:
    return make("replace", operands[0], **_pairs(operands, "replace"))


def _replace_strict(operands: Sequence[Operand], params: Any) -> Tree:
    if len(operands) < 4:
        raise UnsupportedOperation(
            "replace_strict without a default raises depending on the data",
            remedy="add default=..., for example default=None, or use .replace(...)",
        )
    node = params.get("return_dtype") if isinstance(params, Mapping) else None
    dtype = None if node is None else read_dtype_expression(node)
    pairs = _pairs(operands, "replace_strict")
    return make("replace_strict", operands[0], operands[3], **pairs, dtype=dtype)


def _field(operands: Sequence[Operand], params: Any) -> Tree:
    return make("field", *operands, field=str(params))


def _list_get(operands: Sequence[Operand], params: Any) -> Tree:
    source, index = operands
    return make("list_get", source, index=integer(index, "the index of list.get"))


def _list_contains(operands: Sequence[Operand], params: Any) -> Tree:
    source, item = operands[0], operand(operands[1])
    equal = params["nulls_equal"] if isinstance(params, Mapping) else True
    if not equal and not (isinstance(item, Literal) and item.value is not None):
        raise UnsupportedOperation(
            "list.contains with nulls_equal=False is not supported",
            remedy="leave nulls_equal out, and use .is_null() for nulls",
        )
    return make("list_contains", source, item)


def _list_slice(operands: Sequence[Operand], params: Any) -> Tree:
    source, offset, length = operands
    count = _whole(length, "the length of list.slice", missing=True)
    start = _whole(offset, "the offset of list.slice", missing=False)
    return make("list_slice", source, offset=start, length=count)


def _whole(value: Operand, what: str, missing: bool) -> int | None:
    """A whole constant; Polars writes ``list.tail(n)`` with ``0 - n`` as its offset."""
    match operand(value):
        case Call(Sub(), (Literal(int() as a), Literal(int() as b))):
            return a - b
        case Literal(None) if missing:
            return None
        case _:
            return integer(value, what)


def _cut(operands: Sequence[Operand], params: Any) -> Tree:
    if params["include_breaks"]:
        raise _struct_result("cut with include_breaks=True")
    breaks = _checked_breaks(params["breaks"], "cut")
    left_closed = bool(params["left_closed"])
    given = params["labels"]
    labels = interval_labels(breaks, left_closed) if given is None else tuple(given)
    return _cut_call(operands[0], breaks, labels, left_closed, "cut")


def _bin(operands: Sequence[Operand], params: Any) -> Tree:
    """`bin_intervals` with explicit breakpoints."""
    [(method, body)] = params["method"].items()
    if method != "Intervals" or "Breaks" not in body["spec"]:
        raise UnsupportedOperation(
            f"bin_{method.lower()} with bins that are derived from the data is not supported",
            remedy="use bin_intervals or cut with a list of public breaks",
        )
    if params["include_intervals"]:
        raise _struct_result("bin_intervals with include_intervals=True")
    if not params["labels"]:
        raise UnsupportedOperation(
            "bin_intervals without labels is not supported", remedy="give one label per bin"
        )
    breaks = _checked_breaks(read_ipc(body["spec"]["Breaks"]).to_list(), "bin_intervals")
    left_closed = not body["right_closed"]
    return _cut_call(operands[0], breaks, tuple(params["labels"]), left_closed, "bin_intervals")


def _struct_result(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{what} is not supported", remedy="leave it out, and name the bins with labels"
    )


def _checked_breaks(given: Sequence[Any], name: str) -> tuple[float, ...]:
    try:
        breaks = tuple(float(b) for b in given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidBounds(
            f"the breaks of {name} are not finite numbers", remedy="use finite numbers"
        ) from None
    if not all(map(math.isfinite, breaks)) or any(a >= b for a, b in pairwise(breaks)):
        raise InvalidBounds(
            f"the breaks of {name} are not finite and ascending",
            remedy="use finite numbers, each above the one before",
        )
    return breaks


def _cut_call(
    source: Operand, breaks: tuple[float, ...], labels: tuple[str, ...], left: bool, name: str
) -> Tree:
    if len(labels) != len(breaks) + 1 or len(set(labels)) != len(labels):
        raise InvalidBounds(
            f"{name} with {len(breaks)} breaks has {len(labels)} labels",
            remedy=f"give {len(breaks) + 1} different labels",
        )
    return make("cut", source, breaks=breaks, labels=labels, left_closed=left)


def interval_labels(breaks: Sequence[float], left_closed: bool) -> tuple[str, ...]:
    """The labels that `cut` makes up, such as ``(-inf, 1]``."""
    ends = ["-inf", *map(_shown, breaks), "inf"]
    opening, closing = ("[", ")") if left_closed else ("(", "]")
    return tuple(f"{opening}{a}, {b}{closing}" for a, b in pairwise(ends))


def _shown(value: float) -> str:
    """A float as Rust prints it: the shortest digits, never with an exponent."""
    shown = format(Decimal(repr(value)), "f")
    return shown.removesuffix(".0")


def _sql(operands: Sequence[Operand], params: Any) -> Tree:
    """What `pl.sql_expr` makes of arithmetic and IN since Polars 2; earlier it made others' forms.

    Numbers are computed as everywhere here: not as decimals, and division by zero gives null.
    """
    kind, inner = next(iter(params.items())) if isinstance(params, Mapping) else (params, None)
    if kind == "IsIn":
        return _is_in(operands, inner)
    asked = str(inner if kind == "Binary" else kind)
    op = _SQL_OPERATORS.get(asked)
    if op is None:
        raise UnsupportedOperation(
            f"{snake(asked)} of SQL is not supported", remedy="use +, -, *, / and IN"
        )
    return make(op, *operands)


_SQL_OPERATORS = {"Plus": "add", "Minus": "sub", "Mul": "mul", "Div": "truediv"}


_LISTS = ("ListExpr", "ArrayExpr")
_PLAIN: Mapping[str, str] = {
    "Negate": "neg",
    "Abs": "abs",
    "Sign": "sign",
    "Exp": "exp",
    "Log1p": "log1p",
    "Floor": "floor",
    "Ceil": "ceil",
    "Pow.Generic": "pow",
    "Pow.Sqrt": "sqrt",
    "Pow.Cbrt": "cbrt",
    "FillNull": "fill_null",
    "Boolean.Not": "not",
    "Boolean.IsNull": "is_null",
    "Boolean.IsNotNull": "is_not_null",
    "Boolean.IsNan": "is_nan",
    "Boolean.IsNotNan": "is_not_nan",
    "Boolean.IsFinite": "is_finite",
    "Boolean.IsInfinite": "is_infinite",
    **{f"{kind}.Length": "list_len" for kind in _LISTS},
    **{
        f"{kind}.{n}": f"list_{n.lower()}" for kind in _LISTS for n in ("Sum", "Mean", "Min", "Max")
    },
    "ArrayExpr.ToList": "list_of_array",
}
_TRIGONOMETRY = (
    *("Sin", "Cos", "Tan", "Cot", "ArcSin", "ArcCos", "ArcTan", "Sinh", "Cosh", "Tanh"),
    *("ArcSinh", "ArcCosh", "ArcTanh", "Degrees", "Radians"),
)
_VARIADIC: Mapping[str, str] = {
    "Coalesce": "coalesce",
    "ListExpr.Concat": "concat_list",
    "MinHorizontal": "min_horizontal",
    "MaxHorizontal": "max_horizontal",
    "Boolean.AnyHorizontal": "any_horizontal",
    "Boolean.AllHorizontal": "all_horizontal",
}

FUNCTIONS: Mapping[str, Handler] = MappingProxyType(
    {
        **{name: simple(op) for name, op in _PLAIN.items()},
        **{f"Trigonometry.{name}": simple(name.lower()) for name in _TRIGONOMETRY},
        "Atan2": simple("arctan2"),
        **{name: _variadic(op) for name, op in _VARIADIC.items()},
        **STRINGS,
        **TEMPORAL,
        "SumHorizontal": _ignoring_nulls("sum_horizontal"),
        "MeanHorizontal": _ignoring_nulls("mean_horizontal"),
        "Log": _log,
        "Round": _round,
        "Clip": _clip,
        "Boolean.IsIn": _is_in,
        "Boolean.IsBetween": _is_between,
        "Replace": _replace,
        "ReplaceStrict": _replace_strict,
        "StructExpr.FieldByName": _field,
        "ListExpr.Get": _list_get,
        "ArrayExpr.Get": _list_get,
        "ListExpr.Contains": _list_contains,
        "ArrayExpr.Contains": _list_contains,
        "ListExpr.Slice": _list_slice,
        "Cut": _cut,
        "Bin": _bin,
        "Sql": _sql,
    }
)
"""The allow-list: Polars' functions that are read, and what reads them."""
