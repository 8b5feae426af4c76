"""Joins of private frames, from what an analyst wrote to the step that does it."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Column
from dpframe.errors import UnsupportedOperation
from dpframe.frames.binary import chain_of
from dpframe.frames.filter import DropNulls, Filter
from dpframe.frames.join_private import JoinPrivate, JoinPrivateKeys
from dpframe.frames.join_public import How, JoinPublic
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.public import to_polars_frame
from dpframe.frames.relation import Owners, Relation
from dpframe.frames.with_columns import Drop, Select, WithColumns

_HOWS = ("inner", "left", "semi", "anti")
_KEEP_VALUES = (Filter, DropNulls, LimitRows, LimitGroups, LimitNorm, Drop)


def private_join(
    relation: Relation,
    other: Relation,
    left: tuple[str, ...],
    right: tuple[str, ...],
    how: How,
    suffix: str,
) -> JoinPrivate:
    """The join with another private frame, whose rows meet those of the same individual.

    Raises
    ------
    UnsupportedOperation
        When rows of different individuals would meet, or for another kind of join.
    """
    mine, theirs = relation.facts.identifier, other.facts.identifier
    if how not in _HOWS:
        raise _no_such_join(how)
    keys = tuple(zip(left, right, strict=False))
    who = None if mine is None or theirs is None else (mine, theirs)
    if who is not None and len(left) == len(right) and who in keys:
        keys = tuple(key for key in keys if key != who)
    elif (
        len(left) == len(right) == 1
        and relation.owners == Owners(other.token, other.name, *keys[0])
        and _as_protected((relation, left[0]), (other, right[0]))
    ):
        pass  # these are the keys by which it is known whose a row is
    elif who is not None and (left or right):
        raise UnsupportedOperation(
            "private frames join on their identifiers, or rows of different individuals would meet",
            where=f"join(..., left_on={list(left)}, right_on={list(right)})",
            remedy=(
                f"write {_with_identifier(who, left, right)}",
                "leave on= out: each row then meets all rows of the same individual",
            ),
        )
    if keys:
        return JoinPrivateKeys(other, chain_of(other), how, suffix, keys)
    return JoinPrivate(other, chain_of(other), how, suffix)


def _as_protected(*columns: tuple[Relation, str]) -> bool:
    """Whether columns have the values that they had when their frames were protected."""
    return all(
        isinstance(step, _KEEP_VALUES)
        or (isinstance(step, (WithColumns, Select)) and _keeps(step, name))
        for relation, name in columns
        for step, _ in relation.steps
    )


def _keeps(step: WithColumns | Select, name: str) -> bool:
    return all(named.tree == Column(name) for named in step.named if named.name == name)


def _with_identifier(who: tuple[str, str], left: tuple[str, ...], right: tuple[str, ...]) -> str:
    """The keys as they should be written."""
    here, there = [who[0], *left], [who[1], *right]
    return f"on={here}" if here == there else f"left_on={here}, right_on={there}"


def public_table(other: object) -> pl.DataFrame:
    """The public side of a join as a frame of Polars in memory.

    Raises
    ------
    UnsupportedOperation
        When it is not a table of Polars, pandas or pyarrow.
    """
    other = to_polars_frame(other, "join(...)")
    if isinstance(other, pl.LazyFrame):
        other = other.collect()
    if not isinstance(other, pl.DataFrame):
        raise UnsupportedOperation(
            f"a private frame joins with a table, not with a value of type {type(other).__name__}",
            where="join(...)",
            remedy=(
                "pass a public table of Polars, pandas or pyarrow",
                "pass another private frame",
            ),
        )
    return other


def public_join(
    other: pl.DataFrame, left: tuple[str, ...], right: tuple[str, ...], how: How, suffix: str
) -> JoinPublic:
    """The join with a public frame.

    Raises
    ------
    UnsupportedOperation
        For another kind of join.
    """
    if how not in _HOWS:
        raise _no_such_join(how)
    return JoinPublic.of(other, left, right, how, suffix)


def refuse_join_options(nulls_equal: object, coalesce: object) -> None:
    """Refuse what makes another join than Polars makes by default.

    Raises
    ------
    UnsupportedOperation
        When nulls would match, or both keys would be kept.
    """
    if nulls_equal:
        raise UnsupportedOperation(
            "join with nulls_equal=True is not supported: a null matches nothing",
            where="join(..., nulls_equal=True)",
            remedy="leave nulls_equal= out, and fill nulls of both keys first: .fill_null(value)",
        )
    if coalesce is False:
        raise UnsupportedOperation(
            "join with coalesce=False is not supported: it keeps one key of both",
            where="join(..., coalesce=False)",
            remedy="leave coalesce out, and copy the key of the other frame first",
        )


def require_validated(validate: object, other: object, right: tuple[str, ...]) -> None:
    """Check that a public frame has each key once, if `validate` requires it.

    Raises
    ------
    UnsupportedOperation
        When it has one twice, or keys of private rows would be checked.
    """
    if validate == "m:m":
        return
    is_public = isinstance(other, pl.DataFrame)
    if validate != "m:1" or not isinstance(other, pl.DataFrame):
        leave = "leave validate= out"
        raise UnsupportedOperation(
            f"join with validate={validate!r} is not supported",
            where=f"join(..., validate={validate!r})",
            why="a check of private keys that fails would reveal them",
            remedy=(leave, 'write validate="m:1"') if is_public else leave,
        )
    names = [name for name in right if name in other.columns]
    keys = other.select(names)
    if len(names) == len(right) and keys.is_duplicated().any():
        raise UnsupportedOperation(
            "the public frame has some keys more than once",
            where="join(..., validate='m:1')",
            remedy=f"keep one row of each key: other.unique({list(right)!r}, keep='first')",
        )


def _no_such_join(how: object) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a private frame has no join of the kind {how!r}",
        where=f"join(..., how={how!r})",
        remedy="use inner, left, semi or anti",
    )
