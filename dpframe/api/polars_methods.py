"""The methods of frames that importing dpframe adds to Polars, see `dpframe.api.registration`.

``dp_count``, ``dp_sum``, ``dp_histogram``, ``dp_cdf`` and ``dp_argmax`` give a query without a
session: ``session.collect(query, epsilon=...)`` runs it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.api.expressions import IntoBins, IntoColumn
from dpframe.api.frame import PrivateFrame
from dpframe.api.query import PrivateQuery
from dpframe.api.session import Session, Through
from dpframe.api.source import protected_source
from dpframe.core.dtypes import columns, domain_of_dtype
from dpframe.core.units import Unit, as_unit
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import protected_facts
from dpframe.frames.relation import Relation
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.sealed import sealed


@sealed
def dp_protect(
    frame: pl.DataFrame | pl.LazyFrame, session: Session, unit: Unit | str | Through, **options: Any
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
    frame: object, column: IntoColumn, bounds: Any = None, *, unit: Unit | str, **options: object
) -> PrivateQuery:
    """A sum over a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_sum(column, bounds, **options)


@sealed
def dp_histogram(
    frame: object, column: IntoColumn, bins: IntoBins = None, *, unit: Unit | str, **options: object
) -> PrivateQuery:
    """A histogram of a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_histogram(column, bins, **options)


@sealed
def dp_cdf(
    frame: object, column: IntoColumn, bins: IntoBins = None, *, unit: Unit | str, **options: object
) -> PrivateQuery:
    """A distribution function of a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_cdf(column, bins, **options)


@sealed
def dp_argmax(
    frame: object, column: Any = None, score: Any = None, *, unit: Unit | str, **options: Any
) -> PrivateQuery:
    """An argmax over a raw frame, for `session.collect`."""
    return _unbound(frame, unit).dp_argmax(column, score, **options)


def _unbound(frame: object, unit: Unit | str) -> PrivateFrame:
    who = as_unit(unit)
    source = protected_source(frame)
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(source.schema).items()}
    relation = Relation.of(
        "data", protected_facts(columns(table), who), source.remarks, by_place=True
    )
    return PrivateFrame(relation, source, None)
