"""Parameters that jobs declare: `dp.parameter` in Python, `[parameters]` in TOML."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from dpframe.core.exact import show_input
from dpframe.core.parameters import NAME, Held, NotAValue, Parameter, ParameterType
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.ledger.approvals import Allowed, Range, read_range
from dpframe.parse.size import mark
from dpframe.rows.failures import FAILURES
from dpframe.sealed import sealed

if TYPE_CHECKING:
    from polars._typing import IntoExpr

__all__ = ["ParameterValue", "Parameters", "parameter", "with_parameters"]

VARIABLE = "DPFRAME_PARAM_"
"""How the names of environment variables with values begin."""

DEFAULT_SCALE = 9
"""Digits after the point of a decimal without a stated scale."""

IntoType: TypeAlias = "pl.DataType | type[pl.DataType] | type"

_PYTHON: Mapping[object, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    Decimal: "decimal",
    date: "date",
    datetime: "datetime",
}


class Parameters:
    """What one run of a job is given, and what the job declares.

    Parameters
    ----------
    given
        Values as text, by name; they take precedence over the environment.
    ranged
        Whether they may be ranges, as those that are approved: then the job has one of the values.
    """

    def __init__(self, given: Mapping[str, str], *, ranged: bool = False) -> None:
        self._given = dict(given)
        self._declared: dict[str, Parameter] = {}
        self._ranged = ranged
        self._allowed: dict[str, Range] = {}

    @property
    def allowed(self) -> Allowed:
        """The ranges that were given, by name."""
        return tuple(sorted(self._allowed.items()))

    @property
    def declared(self) -> tuple[Parameter, ...]:
        """What was declared until now, with values, by name."""
        return tuple(self._declared[name] for name in sorted(self._declared))

    def declare(self, name: str, kind: ParameterType, default: object = None) -> Parameter:
        """A parameter with its value: the one given, else that of the environment, else the
        default.
        """
        where = f"parameter {name!r}"
        if not NAME.fullmatch(name):
            raise UnsupportedOperation(
                "a parameter's name has letters, digits and _ only, and begins with a letter",
                where=where,
                remedy="call it for example 'day'",
            )
        made = Parameter.of(name, kind, self._value(name, kind, default))
        if self._declared.setdefault(name, made) != made:
            raise UnsupportedOperation(
                f"{name!r} is declared twice, with different types or defaults",
                where=where,
                remedy="declare it once",
            )
        return made

    def _value(self, name: str, kind: ParameterType, default: object) -> Held:
        variable = VARIABLE + name.upper()
        text, place = self._given.get(name), f"--param {name}"
        if text is not None and self._ranged:
            text = self._in_range(name, kind, text)
        if text is None:
            text, place = os.environ.get(variable), variable
        if text is None and default is None:
            raise UnsupportedOperation(
                f"the parameter {name!r} has no value, and no default",
                where=f"parameter {name!r}",
                remedy=(f"give it: --param {name}=...", f"set {variable} in the environment"),
            )
        try:
            return kind.of(default) if text is None else kind.read(text)
        except NotAValue as error:
            wrong, place = (default, "default") if text is None else (text, place)
            raise UnsupportedOperation(
                f"the parameter {name!r} is of type {kind.words()}, and {show_input(wrong)} is not",
                where=f"{place} of parameter {name!r}" if text is None else place,
                remedy=str(error),
            ) from None

    def _in_range(self, name: str, kind: ParameterType, text: str) -> str | None:
        """A value of a range that was given, as text; None where it may be any."""
        try:
            found = read_range(text, kind)
        except NotAValue:
            raise not_of(name, kind, text) from None
        if found is None:
            return text
        self._allowed[name] = found
        example = found.example()
        return None if example is None else kind.text(example)

    def require_known(self, names: Collection[str]) -> None:
        """Refuse values of parameters that are not those that the job declares."""
        for name in self._given:
            if name not in names:
                known = ", ".join(sorted(names))
                raise UnsupportedOperation(
                    f"the job has no parameter {name!r}",
                    where=f"--param {name}",
                    remedy=f"it has {known}" if known else "it has none; leave --param out",
                )


def not_of(name: str, kind: ParameterType, text: str) -> UnsupportedOperation:
    """The refusal of what are no values of a parameter."""
    return UnsupportedOperation(
        f"the parameter {name!r} is of type {kind.words()}, and {show_input(text)} are "
        "not values of that type",
        where=f"--param {name}",
        remedy="write LOW..HIGH, several values with commas or as JSON, or any",
    )


_current: ContextVar[Parameters | None] = ContextVar("parameters", default=None)


@contextmanager
def declaring(parameters: Parameters) -> Iterator[None]:
    """Within this, `parameter` declares what these are."""
    before = _current.set(parameters)
    try:
        yield
    finally:
        _current.reset(before)


class ParameterValue(pl.Expr):
    """A parameter of a job: an expression of its value, which plans show by its name.

    `value` is the plain Python value. Use it where an expression does not fit: in keys of groups,
    bounds and names of files. It is public, as the whole plan is.
    """

    value: Any
    """The value, or the list of values."""
    _parameter: Parameter

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, how: str) -> str:
        return format(self.value, how)

    def __repr__(self) -> str:
        return f"<parameter {self.value!r}>"

    # Python calls the right operand first if its class is a subclass, and would reverse ``col ==
    # parameter``.

    def __eq__(self, other: IntoExpr) -> pl.Expr:  # type: ignore[override]
        return NotImplemented if type(other) is pl.Expr else super().__eq__(other)

    def __ne__(self, other: IntoExpr) -> pl.Expr:  # type: ignore[override]
        return NotImplemented if type(other) is pl.Expr else super().__ne__(other)

    def __lt__(self, other: IntoExpr) -> pl.Expr:
        return NotImplemented if type(other) is pl.Expr else super().__lt__(other)

    def __le__(self, other: IntoExpr) -> pl.Expr:
        return NotImplemented if type(other) is pl.Expr else super().__le__(other)

    def __gt__(self, other: IntoExpr) -> pl.Expr:
        return NotImplemented if type(other) is pl.Expr else super().__gt__(other)

    def __ge__(self, other: IntoExpr) -> pl.Expr:
        return NotImplemented if type(other) is pl.Expr else super().__ge__(other)

    __hash__ = pl.Expr.__hash__


@sealed
def parameter(name: str, dtype: IntoType, default: object = None) -> ParameterValue:
    """A parameter of a job. Each run sets it by ``dpframe run JOB --param day=2026-11-22``, or by
    ``DPFRAME_PARAM_DAY`` in the environment.

    Use it in expressions as a constant, or as a key of `Session.partition`; its `value` is the
    Python value. Plans show name, type and value, and an approval may cover a range of values.

    Parameters
    ----------
    name
        Letters, digits and ``_``.
    dtype
        ``pl.Date``, ``pl.Datetime("us", zone)``, ``pl.Int64``, ``pl.Float64``,
        ``pl.Decimal(scale=2)``, ``pl.Boolean``, ``pl.String``, or ``pl.List`` of one.
    default
        The value of runs that do not set it; without a default they are refused.

    Raises
    ------
    UnsupportedOperation
        When the name or the type is invalid, or there is no value of the type.

    Examples
    --------
    >>> import datetime, polars as pl, dpframe as dp
    >>> day = dp.parameter("day", pl.Date, default=datetime.date(2026, 11, 20))
    >>> day.value
    datetime.date(2026, 11, 20)
    >>> session = dp.Session(epsilon=1.0)
    >>> visits = session.protect(pl.LazyFrame(schema={"day": pl.Date}), unit=dp.Rows())
    >>> plan = visits.filter(pl.col("day") == day).dp_count().plan(epsilon=0.1)
    >>> plan.steps[0].words, plan.parameters[0].value
    ('filter(col("day") == :day)', '2026-11-20')
    """
    if not isinstance(name, str):
        raise UnsupportedOperation(
            f"the name of a parameter is text, not {show_input(name)}",
            where="dp.parameter(...)",
            remedy='write for example dp.parameter("day", pl.Date)',
        )
    if isinstance(default, pl.Series):
        default = default.to_list()
    current = _current.get()
    declared = Parameters({}) if current is None else current
    found = declared.declare(name, type_of(dtype), default)
    held = found.typed_value
    value = list(held) if isinstance(held, tuple) else held
    made = ParameterValue._from_pyexpr(_literal(value, found).alias(mark(found))._pyexpr)
    assert isinstance(made, ParameterValue)
    made.value = value
    made._parameter = found
    return made


def as_parameter(value: object) -> object:
    """A parameter itself if the value is one, but not an expression that contains one; anything
    else unchanged.
    """
    found = value.__dict__.get("_parameter") if isinstance(value, ParameterValue) else None
    return value if found is None else found


def with_parameters(keys: object) -> object:
    """Keys in which parameters stand for themselves."""
    if isinstance(keys, ParameterValue):
        return as_parameter(keys)
    if isinstance(keys, dict):
        return {name: with_parameters(values) for name, values in keys.items()}
    if isinstance(keys, list | tuple):
        return [as_parameter(key) for key in keys]
    return keys


def _literal(value: object, found: Parameter) -> pl.Expr:
    if isinstance(value, list):
        return pl.lit(pl.Series(value, dtype=None if value else pl.String)).implode()
    return pl.lit(value)


def type_of(dtype: object) -> ParameterType:
    """The type of a parameter that a type of Polars, or of Python, says."""
    try:
        return _typed(dtype)
    except (DPFrameError, NotAValue, TypeError, *FAILURES):
        raise UnsupportedOperation(
            f"a parameter cannot be of type {show_input(dtype)}",
            where="dp.parameter(..., dtype)",
            remedy="use pl.Date, pl.Datetime, pl.Int64, pl.Float64, pl.Decimal, pl.Boolean, "
            "pl.String, or pl.List of one of them",
        ) from None


def _typed(dtype: object) -> ParameterType:
    if isinstance(dtype, type) and dtype in _PYTHON:
        kind = _PYTHON[dtype]
        return ParameterType(kind, scale=DEFAULT_SCALE if kind == "decimal" else None)
    if isinstance(dtype, pl.List):
        inner = _typed(dtype.inner)
        if inner.many:
            raise TypeError
        return ParameterType(inner.kind, inner.zone, inner.scale, many=True)
    if isinstance(dtype, pl.Datetime):
        return ParameterType("datetime", dtype.time_zone)
    if isinstance(dtype, pl.Decimal):
        return ParameterType("decimal", scale=dtype.scale)
    for kind, alike in _KINDS.items():
        if dtype in alike:
            return ParameterType(kind, scale=DEFAULT_SCALE if kind == "decimal" else None)
    raise TypeError


_KINDS: Mapping[str, Sequence[object]] = {
    "bool": (pl.Boolean,),
    "int": (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32),
    "float": (pl.Float32, pl.Float64),
    "string": (pl.String,),
    "date": (pl.Date,),
    "datetime": (pl.Datetime,),
    "decimal": (pl.Decimal,),
}
