"""Dp expressions, which `pl.col("x").dp_sum(...)` gives, and arguments of verbs of private frames,
read the way Polars reads them.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import (
    PLACEHOLDER,
    Aggregate,
    AggregateSpec,
    OutputSpec,
    write_arguments,
)
from dpframe.aggregates.values import is_listed
from dpframe.api.no_raw_access import meant_by_method
from dpframe.api.registration import AGGREGATES
from dpframe.core import tree
from dpframe.core.dtypes import Columns, DType
from dpframe.core.exact import Number, exact, show_input
from dpframe.core.tree import Named
from dpframe.errors import DPFrameError, InvalidBounds, InvalidBudget, UnsupportedOperation
from dpframe.parse.groups import Keys
from dpframe.parse.hints import aggregates, function_key, function_name, node_name
from dpframe.parse.outputs import polars_schema, read_plain
from dpframe.parse.reader import read_nodes, tree_of
from dpframe.parse.selectors import output_name
from dpframe.parse.size import shown
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import words
from dpframe.rows.operation import Node
from dpframe.sealed import all_sealed, has_rows

Bound: TypeAlias = int | float | Decimal | Fraction | date | time | timedelta
IntoBounds: TypeAlias = tuple[Bound, ...] | list[Any]
"""The range (low, high) of values."""
IntoBins: TypeAlias = int | Iterable[object] | None
IntoKeys: TypeAlias = Iterable[object] | Mapping[str, Iterable[object]] | pl.DataFrame | Keys
"""Public keys of groups."""
Noise: TypeAlias = Literal["auto", "discrete_laplace", "discrete_gaussian", "discrete_staircase"]
Per: TypeAlias = Literal["row", "unit"]
Counting: TypeAlias = Literal[
    "auto", "discrete_laplace", "discrete_gaussian", "discrete_staircase", "randomized_response"
]


def given_bounds(bounds: IntoBounds | None) -> tuple[object, ...] | None:
    """Bounds as they are; other values are refused where the column is known."""
    return tuple(bounds) if isinstance(bounds, list) else bounds


def flat(items: Iterable[object]) -> list[Any]:
    """Arguments one by one, those in lists too."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, (list, tuple)) or (
            isinstance(item, Iterable)
            and not isinstance(item, (str, pl.Expr, Mapping))
            and not has_rows(item)  # columns of a frame would be quoted as what is wrong
        ):
            found.extend(item)
        else:
            found.append(item)
    return found


def _literal(value: object) -> pl.Expr:
    made = pl.lit(value)
    made.meta.serialize(format="json")  # Polars 1.32 makes constants of any object
    return made


def constant(value: object, op: str) -> pl.Expr:
    """A constant as an expression."""
    try:
        return _literal(value)
    except FAILURES:
        raise UnsupportedOperation(
            f"a value of type {type(value).__name__} is not a constant",
            where=f"{op}({show_input(value)})",
            remedy=f"fill with a number, string, date or Boolean: {op}(0)",
        ) from None


def equality(name: str, value: object) -> pl.Expr:
    """The condition that a column has a value."""
    try:
        other = value if isinstance(value, pl.Expr) else _literal(value)
        condition: pl.Expr = pl.col(name) == other
    except FAILURES:
        raise UnsupportedOperation(
            f"a value of type {type(value).__name__} is not a constant",
            where=f"filter({name}={show_input(value)})",
            remedy=f"write a number, string, date or Boolean: filter({name}=0)",
        ) from None
    return condition


def require_rows(items: Iterable[object], what: str) -> None:
    """Refuse dp expressions where rows are worked on."""
    for item in items:
        if isinstance(item, DPExpr):
            raise UnsupportedOperation(
                f"{what} works on rows, and a dp expression has none",
                where=item._words(),
                remedy="use dp expressions in agg or select only",
            )


def column_name(item: object, what: str) -> str:
    """A column given by its name, or as `pl.col`."""
    if isinstance(item, pl.Expr) and item.meta.is_column():
        return item.meta.output_name()
    if isinstance(item, str):
        return item
    raise UnsupportedOperation(
        f"{what} takes names of columns, not {item}",
        where=f"{what}(..., by=...)",
        remedy="compute the column first with with_columns(...)",
    )


def fills(op: str, column: DType, value: DType) -> bool:
    """Whether a frame-wide fill touches a column, as Polars decides it by type."""
    if op == "fill_nan":
        return column.is_float
    if value.is_numeric:
        return column.is_numeric
    if value.is_text:
        return column.name == "String"
    return column.name == value.name


def listed(values: Iterable[object], what: str) -> tuple[object, ...]:
    """The values of a list, Series or array, for the function `what`."""
    if isinstance(values, pl.Series):
        return tuple(values.to_list())
    alone = getattr(values, "ndim", 1) == 0  # an array of one number is no list
    if alone or isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidBounds(
            f"{show_input(values)} is not a list of values",
            where=f"{what}(...)",
            remedy="write the values in a list: [...]",
        )
    return tuple(values)


def as_per(per: str, kind: str) -> Literal["unit"] | None:
    """What aggregates are over, as they hold it."""
    if per not in ("row", "unit"):
        raise UnsupportedOperation(
            f"per={per!r} is neither 'row' nor 'unit'",
            where=f"dp_{kind}(per=...)",
            remedy="write per='row' or per='unit'",
        )
    return "unit" if per == "unit" else None


# -- Dp expressions -------------------------------------------------------------------------------


IntoColumn: TypeAlias = str | pl.Expr

_LONGEST = 10_000
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "floor_divide": operator.floordiv,
        "remainder": operator.mod,
        "power": operator.pow,
    }
)
"""By the names of NumPy's functions."""
_HOW = (
    "write it on a private frame: session.protect(frame, unit=...).agg(...)",
    "compute the rest with the released result, such as shares: "
    '.with_columns(share=pl.col("n") / pl.col("n").sum())',
)


@all_sealed
class DPExpr(pl.Expr):
    """A dp aggregate, or arithmetic of several, waiting for a private frame.

    It has the type and the names of a Polars expression, but plain Polars raises an error when it
    runs one, so it never yields a number without noise. Arithmetic with other dp expressions and
    constants is post-processing and costs only its parts.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> share = (pl.col("income").dp_sum((0, 9)) / dp.count()).alias("share")
    >>> share
    <dp expression: col("income").dp_sum((0, 9)) / dp.count()>
    >>> pl.DataFrame({"income": [1]}).select(share)
    Traceback (most recent call last):
        ...
    dpframe.errors.UnsupportedOperation: a dp expression cannot be part of a Polars expression, or
      run on a Polars frame
      in: col("income").dp_sum((0, 9)) / dp.count()
      instead: write it on a private frame: session.protect(frame, unit=...).agg(...)
           or: compute the rest with the released result, ...
    """

    _spec: OutputSpec

    def __new__(cls, spec: OutputSpec) -> DPExpr:
        made = object.__new__(cls)
        made._spec = spec
        return made

    def __init__(self, spec: OutputSpec) -> None:
        """The parent's state is never made: there is no Polars expression behind this one."""

    @property
    def _pyexpr(self) -> NoReturn:  # type: ignore[override]
        raise AttributeError("_pyexpr")

    def __getattr__(self, name: str) -> NoReturn:
        if name == "_pyexpr":  # all of Polars asks for this before it uses an expression
            raise UnsupportedOperation(
                "a dp expression cannot be part of a Polars expression, or run on a Polars frame",
                where=self._words(),
                remedy=_HOW,
            )
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedOperation(
            f"a dp expression has no {name}",
            where=self._words(),
            remedy="collect it, and compute the rest with the released numbers",
        )

    def _words(self) -> str:
        text = self._spec.words
        for placeholder, spec in self._spec.aggregates.items():
            text = text.replace("{" + placeholder + "}", _spec_words(spec))
        return text

    def __repr__(self) -> str:
        return f"<dp expression: {self._words()}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        text = repr(self).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<pre>{text}</pre>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a dp expression cannot be pickled or copied",
            where=self._words(),
            remedy="write the expression again where it is needed",
        )

    def __bool__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a dp expression is neither true nor false before it is released",
            where=self._words(),
            remedy="collect it, and compare the released number",
        )

    def __hash__(self) -> int:
        return id(self)

    def alias(self, name: str) -> DPExpr:
        """The same, its result named `name`."""
        return DPExpr(replace(self._spec, alias=name, prefix="", suffix=""))

    @property
    def name(self) -> ResultNames:  # type: ignore[override]
        """Names made from those of the columns: ``.name.prefix(...)``, ``.name.suffix(...)``."""
        return ResultNames(self)

    def _post(self, symbol: str, method: str, other: object, mirrored: bool = False) -> DPExpr:
        mine = self._spec
        aggregates, theirs, text = _operand(other, symbol, self._words)
        left = _post_of(mine)
        post = getattr(left, method)(theirs)
        mine_text = _bracketed(mine)
        words = f"{text} {symbol} {mine_text}" if mirrored else f"{mine_text} {symbol} {text}"
        _require_short(words)
        merged: Mapping[str, AggregateSpec] = (
            {**aggregates, **mine.aggregates} if mirrored else {**mine.aggregates, **aggregates}
        )
        return DPExpr(replace(mine, aggregates=merged, post=post, words=words))

    def __add__(self, other: object) -> DPExpr:
        return self._post("+", "__add__", other)

    def __radd__(self, other: object) -> DPExpr:
        return self._post("+", "__radd__", other, mirrored=True)

    def __sub__(self, other: object) -> DPExpr:
        return self._post("-", "__sub__", other)

    def __rsub__(self, other: object) -> DPExpr:
        return self._post("-", "__rsub__", other, mirrored=True)

    def __mul__(self, other: object) -> DPExpr:
        return self._post("*", "__mul__", other)

    def __rmul__(self, other: object) -> DPExpr:
        return self._post("*", "__rmul__", other, mirrored=True)

    def __truediv__(self, other: object) -> DPExpr:
        return self._post("/", "__truediv__", other)

    def __rtruediv__(self, other: object) -> DPExpr:
        return self._post("/", "__rtruediv__", other, mirrored=True)

    def __floordiv__(self, other: object) -> DPExpr:
        return self._post("//", "__floordiv__", other)

    def __rfloordiv__(self, other: object) -> DPExpr:
        return self._post("//", "__rfloordiv__", other, mirrored=True)

    def __mod__(self, other: object) -> DPExpr:
        return self._post("%", "__mod__", other)

    def __rmod__(self, other: object) -> DPExpr:
        return self._post("%", "__rmod__", other, mirrored=True)

    def __pow__(self, other: object) -> DPExpr:
        return self._post("**", "__pow__", other)

    def __rpow__(self, other: object) -> DPExpr:
        return self._post("**", "__rpow__", other, mirrored=True)

    def __neg__(self) -> DPExpr:
        spec = self._spec
        words = _require_short(f"-{_bracketed(spec)}")
        return DPExpr(replace(spec, post=-_post_of(spec), words=words))

    def __pos__(self) -> DPExpr:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> DPExpr:
        """Arithmetic that begins with a number of NumPy, such as ``np.float64(2) * dp.count()``."""
        rule = _OPERATORS.get(ufunc.__name__)
        arrays = any(isinstance(operand, np.ndarray) for operand in inputs)
        if rule is None or method != "__call__" or options or arrays:
            raise UnsupportedOperation(
                f"NumPy's {ufunc.__name__} does not take a dp expression",
                where=self._words(),
                remedy="collect it, and compute the rest with the released numbers",
            )
        first, second = (n.item() if isinstance(n, np.generic) else n for n in inputs)
        result: DPExpr = rule(first, second)
        return result

    def round(self, decimals: int = 0, mode: object = "half_to_even") -> DPExpr:
        """The result rounded; post-processing."""
        return self._apply("round", decimals, *([] if mode == "half_to_even" else [mode]))

    def abs(self) -> DPExpr:
        """The result's absolute value; post-processing."""
        return self._apply("abs")

    def sqrt(self) -> DPExpr:
        """The result's square root; post-processing."""
        return self._apply("sqrt")

    def clip(self, lower_bound: object = None, upper_bound: object = None) -> DPExpr:
        """The result clamped to constants; post-processing."""
        return self._apply("clip", lower_bound, upper_bound)

    def _apply(self, method: str, *arguments: object) -> DPExpr:
        spec = self._spec
        if any(isinstance(a, (pl.Expr, pl.Series)) for a in arguments):
            raise _no_rows(f"{self._words()}.{method}(...)", method)
        said = ", ".join(map(show_input, arguments))
        try:
            post = getattr(_post_of(spec), method)(*arguments)
        except FAILURES:
            raise UnsupportedOperation(
                f"{method} does not accept such arguments",
                where=f"{self._words()}.{method}({said})",
                remedy="pass numbers, as in Polars",
            ) from None
        words = _require_short(f"{_bracketed(spec)}.{method}({said})")
        return DPExpr(replace(spec, post=post, words=words))


@all_sealed
class ResultNames:
    """How results are called, from the names of their columns."""

    def __init__(self, expression: DPExpr) -> None:
        self._expression = expression

    def prefix(self, prefix: str) -> DPExpr:
        """The same, with `prefix` before the name of its result."""
        spec = self._expression._spec
        return DPExpr(replace(spec, prefix=_text(prefix, "prefix") + spec.prefix))

    def suffix(self, suffix: str) -> DPExpr:
        """The same, with `suffix` after the name of its result."""
        spec = self._expression._spec
        return DPExpr(replace(spec, suffix=spec.suffix + _text(suffix, "suffix")))

    def keep(self) -> DPExpr:
        """The same under the name of its column."""
        return DPExpr(replace(self._expression._spec, alias=None, prefix="", suffix=""))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedOperation(
            f"the name of a dp expression has no {name}",
            where=self._expression._words(),
            remedy="use .alias(name), .name.prefix(...) or .name.suffix(...)",
        )


def _text(given: object, what: str) -> str:
    if isinstance(given, str):
        return given
    raise UnsupportedOperation(
        f"a name cannot begin or end with {show_input(given)}",
        where=f".name.{what}(...)",
        remedy=f'write a text: .name.{what}("_")',
    )


def refuse_method(expression: pl.Expr, name: str) -> NoReturn:
    """Refuse an unknown ``dp_`` method."""
    raise UnsupportedOperation(
        f"expressions have no {name}",
        where=f"{shown(expression)}.{name}",
        remedy=meant_by_method(name, AGGREGATES),
    )


def output_of(expression: DPExpr, alias: str | None = None) -> OutputSpec:
    """What a dp expression records, under another name where one is given."""
    return (expression if alias is None else expression.alias(alias))._spec


def aggregate_of(expression: DPExpr, what: str) -> AggregateSpec:
    """The one aggregate that an expression is."""
    spec = expression._spec
    if spec.post is not None or len(spec.aggregates) != 1:
        raise UnsupportedOperation(
            f"{what} must be one dp aggregate, not arithmetic of dp aggregates",
            where=expression._words(),
            remedy="compute inside the aggregate: (pl.col('a') + pl.col('b')).dp_sum(...)",
        )
    return next(iter(spec.aggregates.values()))


def _require_short(words: str) -> str:
    """Arithmetic that can be shown: nested calls make it longer, and so do parts that are used
    several times.
    """
    if len(words) <= _LONGEST:
        return words
    raise UnsupportedOperation(
        f"arithmetic of dp expressions may be at most {_LONGEST} characters long",
        where=f"{words[:100]}...",
        remedy="release the parts, and compute with the released numbers",
    )


def _post_of(spec: OutputSpec) -> pl.Expr:
    return pl.col(next(iter(spec.aggregates))) if spec.post is None else spec.post


def _bracketed(spec: OutputSpec) -> str:
    return spec.words if spec.post is None else f"({spec.words})"


def _operand(
    other: object, symbol: str, mine: Callable[[], str]
) -> tuple[Mapping[str, AggregateSpec], pl.Expr, str]:
    """The other side of an operator: a dp expression or a constant."""
    if isinstance(other, DPExpr):
        return other._spec.aggregates, _post_of(other._spec), _bracketed(other._spec)
    if isinstance(other, pl.Expr) and _is_aggregate(other):
        raise UnsupportedOperation(
            f"{symbol} of a dp result and an aggregate of Polars is not possible",
            where=f"{mine()} and {_shown(other)}",
            remedy=(
                'write both sides in Polars: pl.col("a").sum() / pl.len()',
                'write both sides with dpframe: dp.sum("a", (low, high)) / dp.count()',
            ),
        )
    if isinstance(other, (pl.Expr, pl.Series)):
        raise _no_rows(f"{mine()} {symbol} {_shown(other)}", symbol)
    if not isinstance(other, (int, float, Decimal, np.number)):
        raise UnsupportedOperation(
            f"a dp result cannot be combined with a {type(other).__name__}",
            where=f"{mine()} {symbol} {show_input(other)}",
            remedy="use numbers or other dp expressions, and compute the rest with the "
            "released numbers",
        )
    number = other.item() if isinstance(other, np.number) else other
    try:
        return {}, pl.lit(number), repr(number)
    except FAILURES:
        raise UnsupportedOperation(
            f"Polars cannot hold this {type(number).__name__}",
            where=f"{mine()} {symbol} {show_input(number)}",
            remedy="use a finite number of less than 38 digits, or a float",
        ) from None


def _is_aggregate(expression: pl.Expr) -> bool:
    """Whether Polars writes an expression with an aggregate; for the choice of a message."""
    try:
        text = expression.meta.serialize(format="json")
    except FAILURES:
        return False
    return '{"Agg":' in text or text.strip('"') == "Len"


def _no_rows(where: str, what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{what} of a dp result and a row-wise expression is not possible: results have no rows",
        where=where,
        remedy=(
            'compute with columns inside the aggregate: (pl.col("a") - '
            'pl.col("b")).dp_sum((low, high))',
            "compute with constants or other dp expressions",
        ),
    )


def _spec_words(spec: AggregateSpec) -> str:
    below = [] if spec.denominator is None else [_shown(spec.denominator)]
    said = ", ".join([*below, *write_arguments(spec.aggregate)])
    method = spec.aggregate.method
    if spec.expression is None:
        return f"dp.{method}({said})"
    given = spec.expression
    column = words(given.tree) if isinstance(given, Named) else _shown(given)
    return f"{column}.dp_{method}({said})"


def _shown(operand: pl.Expr | pl.Series) -> str:
    """An operand in a message; a Series may hold data, so its values are not shown."""
    if isinstance(operand, pl.Series):
        return f"a Series of type {operand.dtype}"
    return shown(operand)


_COUNTER = itertools.count()
_PAIRS = ("bounds", "denominator_bounds")
_FLAGS = ("nonnegative", "other", "shrink")
_MOST_WEIGHT = Fraction(10**60)


def require_rows_of(per: object, method: str) -> None:
    """Refuse an aggregate of individuals' totals where there is one of rows only."""
    if isinstance(per, str) and per == "row":
        return
    raise UnsupportedOperation(
        f"dp_{method} works per row, not per individual",
        where=f"dp_{method}(per={show_input(per)})",
        remedy=(
            "add .limit_rows(1) for one row of each individual",
            'use dp_histogram or dp_quantile with per="unit", which work on totals of individuals',
        ),
    )


def make(
    aggregate: Aggregate,
    expression: object,
    *,
    weight: Number = 1,
    mechanism: str = "auto",
    score: AggregateSpec | pl.Expr | None = None,
    denominator: pl.Expr | None = None,
) -> DPExpr:
    """A dp expression of one aggregate."""
    column = pl.col(expression) if isinstance(expression, str) else expression
    kind = aggregate.kind
    if isinstance(column, DPExpr):
        raise UnsupportedOperation(
            f"dp_{kind} of a dp expression is not possible: its result has no rows",
            where=column._words(),
            remedy="use a column or a row-wise expression",
        )
    if column is not None and not isinstance(column, (pl.Expr, Named)):
        raise UnsupportedOperation(
            f"dp_{kind} takes a column name or a Polars expression, not {show_input(column)}",
            remedy='write for example pl.col("age")',
        )
    accepted = aggregate.mechanisms
    if mechanism not in accepted:
        raise UnsupportedOperation(
            f"mechanism {show_input(mechanism)} cannot release a {kind}",
            where=f"dp_{kind}(mechanism={show_input(mechanism)})",
            remedy="use one of " + ", ".join(repr(m) for m in accepted),
        )
    asked = _clean(aggregate), column, _weight(weight, kind), mechanism, score, denominator
    spec = AggregateSpec(*asked)
    placeholder = f"{PLACEHOLDER}{next(_COUNTER)}"
    return DPExpr(OutputSpec({placeholder: spec}, None, "{" + placeholder + "}"))


def _clean(aggregate: Aggregate) -> Aggregate:
    """The aggregate with its arguments in one form, so that equal queries have equal plans."""
    said = aggregate.arguments()
    clean: dict[str, Any] = {}
    for name, value in said.items():
        given = _as_pair(value) if name in _PAIRS else value
        where = f"dp_{aggregate.kind}({name}=...)"
        _require_writable(given, where)
        if name in _FLAGS:
            if not isinstance(given, (bool, np.bool_)):
                raise UnsupportedOperation(
                    f"{show_input(given)} is not True or False",
                    where=where,
                    remedy="write True or False",
                )
            given = bool(given)
        clean[name] = given
    return replace(aggregate, **clean)


def _require_writable(value: object, where: str) -> None:
    """Refuse numbers that Python does not write, so that plans and messages can show the others."""
    if isinstance(value, (list, tuple)) and set(map(type, value)) == {float}:
        return  # a hundred thousand edges, say
    try:
        _ = repr(value)
    except ValueError:
        raise InvalidBounds(
            "a number with too many digits", where=where, remedy="write a shorter number"
        ) from None


def _as_pair(bounds: object) -> object:
    """Bounds in one form, so that equal queries have equal plans; checked where they are used."""
    if isinstance(bounds, (np.ndarray, pl.Series)):
        bounds = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds.to_list()
    if isinstance(bounds, (list, tuple)) or (is_listed(bounds) and not isinstance(bounds, range)):
        return tuple(_plain(end) for end in bounds)
    return bounds


def _plain(end: Any) -> object:
    """An array of one number as that number."""
    return end.item() if getattr(end, "shape", None) == () and hasattr(end, "item") else end


def _weight(weight: Number, kind: str) -> Fraction:
    try:
        number = exact(weight)
    except (TypeError, ValueError, ZeroDivisionError):
        number = Fraction(0)
    if not 1 / _MOST_WEIGHT <= number <= _MOST_WEIGHT:
        sensible = " between 1e-60 and 1e60" if number > 0 else ""
        raise InvalidBudget(
            f"a weight must be a positive number{sensible}, not {show_input(weight)}",
            where=f"dp_{kind}(weight={show_input(weight)})",
            remedy="write weight=2 for twice the share of the cost",
        )
    return number


PlainNumber: TypeAlias = "int | float"

_ARITHMETIC: Mapping[str, str] = MappingProxyType(
    {
        "Plus": "add",
        "Minus": "sub",
        "Multiply": "mul",
        "TrueDivide": "truediv",
        "FloorDivide": "floordiv",
        "Modulus": "mod",
    }
)
_LATER = "release the parts, and compute the rest with the released numbers"


def is_plain_aggregate(expression: object, columns: Columns) -> bool:
    """Whether Polars would make one value of all rows."""
    if not isinstance(expression, pl.Expr) or isinstance(expression, DPExpr):
        return False
    try:
        schema = polars_schema(columns)
        return read_nodes(expression, schema, lambda nodes, _: any(map(aggregates, nodes)))
    except DPFrameError:  # the next reader of the expression explains why
        return False


def dp_expressions(expression: pl.Expr, columns: Columns) -> list[DPExpr]:
    """The dp expressions that mean what Polars' aggregates mean, each with the name that Polars
    gives it; none where it is no aggregate.
    """

    def found(nodes: Sequence[Node], _: bool) -> list[DPExpr]:
        if not any(map(aggregates, nodes)):
            return []
        return [_Reader(columns).output(node) for node in nodes]

    return read_nodes(expression, polars_schema(columns), found, what="agg")


class _Reader:
    """Reads aggregates, and arithmetic on their results."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def output(self, node: Node) -> DPExpr:
        made = self._read(node)
        if not isinstance(made, DPExpr):
            raise _rows_and_aggregates()
        return made.alias(output_name(node))

    def _read(self, node: Node) -> DPExpr | PlainNumber:
        plain = read_plain(node, self._columns)
        if plain is not None:
            return make(plain.aggregate, plain.values)
        [(kind, body)] = node.items()
        match kind:
            case "Alias":
                return self._read(body[0])
            case "KeepName":
                return self._read(body)
            case "RenameAlias":
                return self._read(body["expr"])
            case "Literal":
                return _number(node)
            case "BinaryExpr":
                return self._arithmetic(body)
            case "Function":
                return self._function(body)
            case _:
                raise self._refused(node, node_name(kind, body))

    def _arithmetic(self, body: Node) -> DPExpr:
        name = _ARITHMETIC.get(body["op"])
        if name is None:
            raise _beyond(f"the operator {body['op']}")
        left, right = self._read(body["left"]), self._read(body["right"])
        if isinstance(left, DPExpr):
            made: DPExpr = getattr(left, f"__{name}__")(right)
        else:
            made = getattr(right, f"__r{name}__")(left)
        return made

    def _function(self, body: Node) -> DPExpr:
        key, params = function_key(body["function"])
        if not any(map(aggregates, body["input"])):
            raise self._refused({"Function": body}, function_name(key, params))
        of, *others = (self._read(part) for part in body["input"])
        if not isinstance(of, DPExpr) or any(isinstance(o, DPExpr) for o in others):
            raise _beyond(function_name(key, params))
        match key, others:
            case "Negate", []:
                return -of
            case "Abs", []:
                return of.abs()
            case "Pow.Sqrt", []:
                return of.sqrt()
            case "Pow.Generic", [power]:
                return of**power
            case "Round", [] if params.get("mode", "HalfToEven") == "HalfToEven":
                return of.round(params["decimals"])
            case "Clip", ends:
                given = iter(ends)
                low = next(given) if params["has_min"] else None
                high = next(given) if params["has_max"] else None
                return of.clip(low, high)
            case _:
                raise _beyond(function_name(key, params))

    def _refused(self, node: Node, name: str) -> UnsupportedOperation:
        """The refusal of a call that is not an aggregate, next to one."""
        if aggregates(node):
            return _beyond(name)
        tree_of(node, polars_schema(self._columns))  # refuses what it knows by its name
        return _rows_and_aggregates()


def _number(node: Node) -> PlainNumber:
    found = tree_of(node, {})
    value = found.value if isinstance(found, tree.Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _beyond("a constant that is no number")
    return value


def _beyond(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name} cannot be applied to a private result inside the query", remedy=_LATER
    )


def _rows_and_aggregates() -> UnsupportedOperation:
    return UnsupportedOperation(
        "the expression mixes rows and aggregates, so rows would show an aggregate without noise",
        remedy=("aggregate both sides", "release the aggregate first, and use its number"),
    )
