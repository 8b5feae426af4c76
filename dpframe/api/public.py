"""Public frames that stand in for protected ones in simulations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import polars as pl

from dpframe.api.no_raw_access import NoRawAccess
from dpframe.api.origins import origins_of
from dpframe.api.source import Source, Sources, protected_source
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.frames.binary import frames_of
from dpframe.frames.relation import Relation
from dpframe.lower.engines.polars_engine import POLARS

Frames: TypeAlias = "dict[int, pl.LazyFrame]"
_WHERE = "simulate(public_frame, ...)"


def bind_public_frames(given: object, relation: Relation, source: Source | Sources) -> Frames:
    """Public frames in place of the protected ones, by token. Nothing protected is among them.

    Parameters
    ----------
    given
        A public frame, or ``{frame name: public frame}`` for a query over several.
    relation
        The relation and the source of the query.
    source
        The protected frames: only their schemas are read.

    Raises
    ------
    UnsupportedOperation
        When something private is given, a frame is missing, or a type is another one.
    UnknownColumn
        When a column is missing.
    """
    schemas = source.schemas(relation.token)
    names = {part.token: part.name for part in frames_of(relation)}
    frames = _by_name(given, sorted(set(names.values())), len(names))
    found = {}
    for token, name in names.items():
        if isinstance(frames[name], (NoRawAccess, Source, Sources)):
            raise _private(f"a {type(frames[name]).__name__}")
        if source.holds(frames[name]):
            raise _private("the protected frame itself, or one with rows of it,")
        if isinstance(frames[name], pl.LazyFrame) and origins_of(frames[name]).unknown:
            raise _untold(name)
        found[token] = _fitting(_public(frames[name]), schemas[token], name)
    return found


def _by_name(given: object, names: list[str], frames: int) -> Mapping[str, Any]:
    if frames > len(names):
        raise UnsupportedOperation(
            f"two frames of the query are named {names[0]!r}, so none can stand in for one of them",
            where=_WHERE,
            remedy="give them different names: session.protect(..., name=...)",
        )
    if not isinstance(given, Mapping):
        if frames == 1:
            return {names[0]: given}
        raise UnsupportedOperation(
            f"the query is over {frames} private frames, and one public frame is given",
            where=_WHERE,
            remedy=f"give one for each: {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    if set(given) != set(names):
        raise UnsupportedOperation(
            f"public frames are given for {', '.join(map(repr, given)) or 'none'}, and the query "
            f"is over {', '.join(map(repr, names))}",
            where=_WHERE,
            remedy=f"give one for each: {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    return given


def _public(frame: object) -> pl.LazyFrame:
    with suppress(UnsupportedOperation):
        public = protected_source(frame)
        if public.engine is POLARS:
            data: pl.LazyFrame = public.opened(0).data[0]
            return data
    raise UnsupportedOperation(
        f"a simulation runs on a public frame of Polars, not on a {type(frame).__name__}",
        where=_WHERE,
        remedy="pass a Polars DataFrame or LazyFrame, or a pyarrow Table or dataset",
    )


def _private(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a simulation runs on public data, and {what} is private",
        where=_WHERE,
        why="the errors of a simulation are published without noise",
        remedy="pass public or synthetic data with the same columns",
    )


def _untold(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the public frame for {name!r} is lazy, so its rows may be the protected ones",
        where=_WHERE,
        remedy="collect it, if it is public: simulate(frame.collect(), ...)",
    )


def _fitting(public: pl.LazyFrame, wanted: pl.Schema, name: str) -> pl.LazyFrame:
    """The columns of the protected frame, in its order."""
    schema = public.collect_schema()
    for column, dtype in wanted.items():
        if column not in schema:
            raise UnknownColumn(
                f"the public frame for {name!r} has no column {column!r}",
                where=_WHERE,
                remedy="give it one of that name and type, of nulls if the query does not use it",
            )
        if schema[column] != dtype:
            raise UnsupportedOperation(
                f"the column {column!r} of the public frame for {name!r} has type "
                f"{schema[column]}, and the protected one {dtype}",
                where=_WHERE,
                remedy="cast it before",
            )
    return public.select(*wanted)
