"""dp expressions: what `pl.col("x").dp_sum(...)` gives. They record; nothing runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import AggregateSpec, OutputSpec, written_arguments
from dpframe.api.intents import meant_by_method
from dpframe.api.registration import AGGREGATES
from dpframe.core.exact import as_given
from dpframe.core.tree import Named
from dpframe.errors import UnsupportedOperation
from dpframe.parse.size import shown
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import words
from dpframe.sealed import all_sealed

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

    def _post(self, symbol: str, method: str, other: Any, mirrored: bool = False) -> DPExpr:
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

    def __add__(self, other: Any) -> DPExpr:
        return self._post("+", "__add__", other)

    def __radd__(self, other: Any) -> DPExpr:
        return self._post("+", "__radd__", other, mirrored=True)

    def __sub__(self, other: Any) -> DPExpr:
        return self._post("-", "__sub__", other)

    def __rsub__(self, other: Any) -> DPExpr:
        return self._post("-", "__rsub__", other, mirrored=True)

    def __mul__(self, other: Any) -> DPExpr:
        return self._post("*", "__mul__", other)

    def __rmul__(self, other: Any) -> DPExpr:
        return self._post("*", "__rmul__", other, mirrored=True)

    def __truediv__(self, other: Any) -> DPExpr:
        return self._post("/", "__truediv__", other)

    def __rtruediv__(self, other: Any) -> DPExpr:
        return self._post("/", "__rtruediv__", other, mirrored=True)

    def __floordiv__(self, other: Any) -> DPExpr:
        return self._post("//", "__floordiv__", other)

    def __rfloordiv__(self, other: Any) -> DPExpr:
        return self._post("//", "__rfloordiv__", other, mirrored=True)

    def __mod__(self, other: Any) -> DPExpr:
        return self._post("%", "__mod__", other)

    def __rmod__(self, other: Any) -> DPExpr:
        return self._post("%", "__rmod__", other, mirrored=True)

    def __pow__(self, other: Any) -> DPExpr:
        return self._post("**", "__pow__", other)

    def __rpow__(self, other: Any) -> DPExpr:
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

    def round(self, decimals: int = 0, mode: Any = "half_to_even") -> DPExpr:
        """The result rounded; post-processing."""
        return self._apply("round", decimals, *([] if mode == "half_to_even" else [mode]))

    def abs(self) -> DPExpr:
        """The result's absolute value; post-processing."""
        return self._apply("abs")

    def sqrt(self) -> DPExpr:
        """The result's square root; post-processing."""
        return self._apply("sqrt")

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> DPExpr:
        """The result clamped to constants; post-processing."""
        return self._apply("clip", lower_bound, upper_bound)

    def _apply(self, method: str, *arguments: Any) -> DPExpr:
        spec = self._spec
        if any(isinstance(a, (pl.Expr, pl.Series)) for a in arguments):
            raise _no_rows(f"{self._words()}.{method}(...)", method)
        said = ", ".join(map(as_given, arguments))
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
        f"a name cannot begin or end with {as_given(given)}",
        where=f".name.{what}(...)",
        remedy=f'write a text: .name.{what}("_")',
    )


def refuse_method(expression: pl.Expr, name: str) -> NoReturn:
    """Refuse an unknown ``dp_`` method.

    Raises
    ------
    UnsupportedOperation
        With what to write instead.
    """
    raise UnsupportedOperation(
        f"expressions have no {name}",
        where=f"{shown(expression)}.{name}",
        remedy=meant_by_method(name, AGGREGATES),
    )


def output_of(expression: DPExpr, alias: str | None = None) -> OutputSpec:
    """What a dp expression records, under another name where one is given."""
    return (expression if alias is None else expression.alias(alias))._spec


def aggregate_of(expression: DPExpr, what: str) -> AggregateSpec:
    """The one aggregate that an expression is.

    Raises
    ------
    UnsupportedOperation
        When it is arithmetic of several.
    """
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
    other: Any, symbol: str, mine: Callable[[], str]
) -> tuple[Mapping[str, AggregateSpec], Any, str]:
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
            where=f"{mine()} {symbol} {as_given(other)}",
            remedy="use numbers or other dp expressions, and compute the rest with the "
            "released numbers",
        )
    number = other.item() if isinstance(other, np.number) else other
    try:
        return {}, pl.lit(number), repr(number)
    except FAILURES:
        raise UnsupportedOperation(
            f"Polars cannot hold this {type(number).__name__}",
            where=f"{mine()} {symbol} {as_given(number)}",
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
    said = ", ".join([*below, *written_arguments(spec.aggregate)])
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
