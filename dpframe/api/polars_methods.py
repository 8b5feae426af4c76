"""The methods that importing dpframe adds to Polars.

On expressions: ``pl.col("x").dp_sum((0, 1))`` and its family. On frames: ``dp_protect``, and
``dp_count``, ``dp_sum``, ``dp_histogram``, ``dp_argmax``, which give a query without a session:
``session.collect(query, epsilon=...)`` runs it. All are registered by Polars' own extension
interface, under names of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import polars as pl

from dpframe.api import functions
from dpframe.api.frame import PrivateFrame
from dpframe.api.query import PrivateQuery
from dpframe.api.session import Session
from dpframe.api.source import protected_source
from dpframe.core.domain import columns, domain_of_dtype
from dpframe.core.units import Unit, as_unit
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import protected_facts
from dpframe.frames.relation import Relation
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.sealed import sealed

_EXPRESSIONS: dict[str, Callable[..., Any]] = {
    f"dp_{name}": function for name, function in functions.BY_NAME.items()
}


@sealed
def dp_protect(
    frame: pl.DataFrame | pl.LazyFrame, session: Session, unit: Unit | str, **options: Any
) -> PrivateFrame:
    """`session.protect(frame, unit)`."""
    if not isinstance(session, Session):
        raise UnsupportedOperation(
            f"a frame is protected by a session, not by a {type(session).__name__}",
            where="frame.dp_protect(session, unit)",
            remedy="open one with dp.Session(epsilon=1.0)",
        )
    return session.protect(frame, unit, **options)


@sealed
def dp_count(frame: Any, column: Any = None, *, unit: Unit | str, **options: Any) -> PrivateQuery:
    """A count of rows (or of a column's values) of a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_count(column, **options)


@sealed
def dp_sum(
    frame: Any, column: Any, bounds: Any = None, *, unit: Unit | str, **options: Any
) -> PrivateQuery:
    """A sum over a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_sum(column, bounds, **options)


@sealed
def dp_histogram(
    frame: Any, column: Any, bins: Any = None, *, unit: Unit | str, **options: Any
) -> PrivateQuery:
    """A histogram of a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_histogram(column, bins, **options)


@sealed
def dp_argmax(
    frame: Any, column: Any = None, score: Any = None, *, unit: Unit | str, **options: Any
) -> PrivateQuery:
    """An argmax over a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_argmax(column, score, **options)


_FRAMES: dict[str, Callable[..., Any]] = {
    "dp_protect": dp_protect,
    "dp_count": dp_count,
    "dp_sum": dp_sum,
    "dp_histogram": dp_histogram,
    "dp_argmax": dp_argmax,
}


def _unbound(frame: Any, unit: Unit | str) -> PrivateFrame:
    who = as_unit(unit)
    source = protected_source(frame)
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(source.schema).items()}
    relation = Relation.of("data", protected_facts(columns(table), who), source.remarks)
    return PrivateFrame(relation, source, None)


def _method(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """An accessor that calls `function` with the object it is looked up on."""

    def accessor(owner: Any) -> Any:
        return functools.update_wrapper(functools.partial(function, owner), function)

    functools.update_wrapper(accessor, function)
    return accessor


def register() -> None:
    """Add the methods to Polars; again is harmless."""
    for name, function in _EXPRESSIONS.items():
        _add(pl.api.register_expr_namespace, pl.Expr, name, function)
    for name, function in _FRAMES.items():
        _add(pl.api.register_dataframe_namespace, pl.DataFrame, name, function)
        _add(pl.api.register_lazyframe_namespace, pl.LazyFrame, name, function)


def _add(register_namespace: Any, owner: type, name: str, function: Callable[..., Any]) -> None:
    if not hasattr(owner, name):
        register_namespace(name)(_method(function))
