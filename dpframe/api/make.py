"""A dp expression of one aggregate, from arguments as they were given."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import PLACEHOLDER, Aggregate, AggregateSpec, OutputSpec
from dpframe.aggregates.values import is_listed
from dpframe.api.expressions import DPExpr
from dpframe.core.exact import Number, as_given, exact
from dpframe.core.tree import Named
from dpframe.errors import InvalidBounds, InvalidBudget, UnsupportedOperation

_COUNTER = itertools.count()
_PAIRS = ("bounds", "denominator_bounds")
_FLAGS = ("nonnegative", "other", "shrink")
_MOST_WEIGHT = Fraction(10**60)


def require_rows_of(per: object, method: str) -> None:
    """Refuse an aggregate of individuals' totals where there is one of rows only.

    Raises
    ------
    UnsupportedOperation
        When it is not of rows.
    """
    if isinstance(per, str) and per == "row":
        return
    raise UnsupportedOperation(
        f"dp_{method} works per row, not per individual",
        where=f"dp_{method}(per={as_given(per)})",
        remedy=(
            "add .limit_rows(1) for one row of each individual",
            'use dp_histogram or dp_quantile with per="unit", which work on totals of individuals',
        ),
    )


def make(
    aggregate: Aggregate,
    expression: Any,
    *,
    weight: Number = 1,
    mechanism: str = "auto",
    score: AggregateSpec | pl.Expr | None = None,
    denominator: pl.Expr | None = None,
) -> DPExpr:
    """A dp expression of one aggregate.

    Raises
    ------
    InvalidBudget
        When the weight is not a positive number.
    UnsupportedOperation
        When the mechanism does not release such an aggregate.
    """
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
            f"dp_{kind} takes a column name or a Polars expression, not {as_given(column)}",
            remedy='write for example pl.col("age")',
        )
    accepted = aggregate.mechanisms
    if mechanism not in accepted:
        raise UnsupportedOperation(
            f"mechanism {as_given(mechanism)} cannot release a {kind}",
            where=f"dp_{kind}(mechanism={as_given(mechanism)})",
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
        clean[name] = _flag(given, where) if name in _FLAGS else given
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


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise UnsupportedOperation(
            f"{as_given(value)} is not True or False", where=where, remedy="write True or False"
        )
    return bool(value)


def _as_pair(bounds: Any) -> Any:
    """Bounds in one form, so that equal queries have equal plans; checked where they are used."""
    if isinstance(bounds, (np.ndarray, pl.Series)):
        bounds = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds.to_list()
    if isinstance(bounds, (list, tuple)) or (is_listed(bounds) and not isinstance(bounds, range)):
        return tuple(_plain(end) for end in bounds)
    return bounds


def _plain(end: Any) -> Any:
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
            f"a weight must be a positive number{sensible}, not {as_given(weight)}",
            where=f"dp_{kind}(weight={as_given(weight)})",
            remedy="write weight=2 for twice the share of the cost",
        )
    return number
