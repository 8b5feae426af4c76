"""Private frames: verbs where each row stays on its own, limits, joins and dp aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from math import floor
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

import polars as pl

from dpframe import pipeline
from dpframe.api.expressions import (
    DPExpr,
    IntoBins,
    IntoBounds,
    IntoColumn,
    IntoKeys,
    column_name,
    constant,
    equality,
    fills,
    flat,
    is_plain_aggregate,
    require_rows,
)
from dpframe.api.functions import count, mean, n_unique, quantile, std
from dpframe.api.group_by import (
    PrivateGroupBy,
    PrivateGroupByIndividual,
    Shortcuts,
    group_names,
    is_discovered,
    public_keys,
    query_of,
)
from dpframe.api.limits import suggest_for_frame
from dpframe.api.no_raw_access import FRAME_HINTS, FRAME_REASONS, RAW, NoRawAccess
from dpframe.api.payer import ProtectedRows, SessionBudget, Spend, payer_of
from dpframe.api.query import (
    COUNT,
    Change,
    Changes,
    PrivateQuery,
    counts_of_values,
    named_spend,
    with_changes,
)
from dpframe.api.source import Source, Sources, refuse_protected_keys
from dpframe.core.dtypes import Columns, Domain, DType
from dpframe.core.exact import Number, show_input
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import (
    DPFrameError,
    InvalidBounds,
    MissingKeys,
    UnboundedSensitivity,
    UnknownColumn,
    UnsupportedOperation,
    require,
)
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows, read_norm
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import GroupByIndividual, with_aggregates
from dpframe.frames.joins import How, JoinPrivate, JoinPrivateKeys, JoinPublic
from dpframe.frames.public import to_polars_frame
from dpframe.frames.relation import Binary, Concat, Owners, Relation, Step, chain_of
from dpframe.frames.row_steps import Drop, DropNulls, Explode, Filter, Rename, Select, WithColumns
from dpframe.frames.sampling import require_order
from dpframe.parse.groups import Keys, SetsAsked, nothing_else
from dpframe.parse.size import shown
from dpframe.report.notebook import frame_html, frame_words
from dpframe.rows.cast import Cast
from dpframe.rows.failures import FAILURES
from dpframe.rows.logic import FillNan, FillNull
from dpframe.rows.polars_dtypes import from_polars, to_polars
from dpframe.rows.suggest import did_you_mean, unknown_column
from dpframe.sealed import all_sealed, has_rows

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
    """The join with another private frame, whose rows meet those of the same individual."""
    mine, theirs = relation.facts.identifier, other.facts.identifier
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
        or (
            isinstance(step, (WithColumns, Select))
            and all(named.tree == Column(name) for named in step.named if named.name == name)
        )
        for relation, name in columns
        for step, _ in relation.steps
    )


def _with_identifier(who: tuple[str, str], left: tuple[str, ...], right: tuple[str, ...]) -> str:
    """The keys as they should be written."""
    here, there = [who[0], *left], [who[1], *right]
    return f"on={here}" if here == there else f"left_on={here}, right_on={there}"


def public_table(other: object) -> pl.DataFrame:
    """The public side of a join as a frame of Polars in memory."""
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


def refuse_join_options(nulls_equal: object, coalesce: object) -> None:
    """Refuse what makes another join than Polars makes by default."""
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
    """Check that a public frame has each key once, if `validate` requires it."""
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


def require_flag(value: object, where: str) -> bool:
    """The value, if it is True or False."""
    if not isinstance(value, bool):
        raise UnsupportedOperation(
            f"{show_input(value)} is neither True nor False",
            where=where,
            remedy="write True or False",
        )
    return value


def falling_column(order_by: str | None, columns: Columns) -> tuple[pl.Expr, str]:
    """A column whose values fall where those of another rise, and a name for it."""
    where = f"limit_rows(..., order_by={show_input(order_by)}, descending=True)"
    if order_by is None:
        raise UnsupportedOperation(
            "descending=True needs order_by=",
            where=where,
            remedy='name a column of dates, datetimes or whole numbers: order_by="day"',
        )
    require_order(order_by, columns, where)
    dtype, column = columns[order_by].dtype, pl.col(order_by)
    unit: Any = dtype.unit
    if dtype.name == "Date":
        column = column.dt.epoch("d")
    elif dtype.name == "Datetime":
        column = column.dt.timestamp(unit)
    else:  # -x - 1 keeps the least Int64 within its type
        column = column.cast(pl.Int64)
    name = f"{order_by} falling"
    while name in columns:
        name += "_"
    return (-1 - column).alias(name), name


# -- Windows of `group_by_dynamic` ----------------------------------------------------------------


_AFTERWARDS = "release windows that do not overlap, and add up or average the released result"
_ALLOWED: Mapping[str, tuple[tuple[object, ...], str]] = MappingProxyType(
    {
        "period": ((None,), f"windows that overlap or leave gaps: {_AFTERWARDS}"),
        "offset": (
            (None,),
            "windows that are moved: write .group_by(pl.col(...).dt.offset_by(by)"
            ".dt.truncate(every)), and move the released beginnings",
        ),
        "include_boundaries": (
            (False,),
            'add the end to the released result: pl.col(...).dt.offset_by("1w")',
        ),
        "closed": (("left",), "windows hold their beginning and not their end"),
        "label": (("left",), "windows are called by their beginning"),
        "start_by": (("window",), "windows begin at regular boundaries, for any data"),
    }
)
P = ParamSpec("P")
T = TypeVar("T")
MOST_WINDOWS = 100_000
"""More windows than these are to be listed."""
_AS_THEY_ARE = (Mapping, pl.DataFrame, pl.Series, Keys, str, bytes)


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of one column."""

    name: str  # The column of the result that holds their beginnings
    every: str | timedelta  # How long they are
    expression: pl.Expr  # The beginning of the window that a time falls in
    column: str | None  # The column of times, where they are no expression


def window_of(index: str | pl.Expr, every: str | timedelta, others: Mapping[str, object]) -> Window:
    """The windows of a call, if they are regular."""
    for name, value in others.items():
        if name not in _ALLOWED:
            raise UnsupportedOperation(
                f"group_by_dynamic has no argument {name!r}",
                where=f"group_by_dynamic({name}=...)",
                remedy=f"it has index_column, every, group_by, keys, {', '.join(_ALLOWED)}",
            )
        values, instead = _ALLOWED[name]
        if value not in values and not (name == "period" and value == every):
            raise UnsupportedOperation(
                f"group_by_dynamic with {name}={value!r} is not supported",
                where=f"group_by_dynamic({name}=...)",
                remedy=(f"leave {name}= out", instead),
            )
    time = pl.col(index) if isinstance(index, str) else index
    if not isinstance(time, pl.Expr):
        raise UnsupportedOperation(
            "group_by_dynamic takes the column of times first",
            where="group_by_dynamic(...)",
            remedy='write for example .group_by_dynamic("at", every="1w")',
        )
    try:
        made = time.dt.truncate(every)
        name = made.meta.output_name()
        return Window(name, every, made, name if time.meta.eq(pl.col(name)) else None)
    except FAILURES:
        raise UnsupportedOperation(
            "group_by_dynamic takes one column of times and the length of windows",
            where=f"group_by_dynamic({shown(time)})",
            remedy='write for example .group_by_dynamic("at", every="1w")',
        ) from None


def window_keys(keys: object, window: Window, columns: Columns, *, alone: bool) -> Any:
    """The keys as they are, where those of windows are beginnings of windows."""
    if isinstance(keys, Iterable) and not isinstance(
        keys, (Mapping, pl.DataFrame, pl.Series, Keys)
    ):
        keys = keys if isinstance(keys, (str, bytes)) else list(keys)
    listed = _of_window(keys, window.name, alone)
    if listed is None or window.name not in columns:
        return keys
    try:
        given = pl.Series(window.name, listed)
        begins = given.to_frame().select(pl.col(window.name).dt.truncate(window.every)).to_series()
        right = begins.equals(given)
    except FAILURES:  # the reader of the keys checks their type
        return keys
    if not right:
        wrong = begins.ne_missing(given)
        raise MissingKeys(
            f"the key {given.filter(wrong).item(0)} is not the beginning of a window of "
            f"{window.every}",
            where="group_by_dynamic(keys=...)",
            remedy=(
                f"write {begins.filter(wrong).item(0)} in its place",
                f"truncate the keys: .dt.truncate({window.every!r})",
            ),
        )
    return keys


def _of_window(keys: object, name: str, alone: bool) -> Any:
    """What is listed for the windows; None where that is not seen here."""
    if isinstance(keys, Keys):
        keys = keys.frame
    if isinstance(keys, pl.DataFrame):
        return keys[name] if name in keys.columns else None
    if isinstance(keys, Mapping):
        return keys.get(name)
    return keys if alone and isinstance(keys, (list, pl.Series)) else None


def windows_within(window: Window, columns: Columns) -> pl.Series | None:
    """The beginnings of all windows of a column whose bounds are known; None where they are not, or
    make more than 100,000 windows, or the clock of a time zone may leave one out.
    """
    found = _ends(window, columns)
    if found is None or found.zone or found.about > MOST_WINDOWS:
        return None
    try:
        begins = found.ends.dt.truncate(window.every).cast(pl.Int64)
        near = pl.int_range(begins[0], begins[1] + 1, max(1, found.length // 2), eager=True)
        near = near.append(begins).alias(window.name).cast(found.ends.dtype)
        return near.dt.truncate(window.every).unique().sort()
    except FAILURES:
        return None


@dataclass(frozen=True, slots=True)
class _Ends:
    """Between which values of a column its windows are."""

    # The first and the last value that the column may have; without their time zone.
    ends: pl.Series
    length: int  # The length of a window, in the units of the column
    about: int  # How many windows there are, give or take one
    zone: bool  # Whether the clock of a time zone says where they begin


def _ends(window: Window, columns: Columns) -> _Ends | None:
    found = columns.get(window.name)
    if found is None or found.bounds is None or found.dtype.name not in ("Date", "Datetime"):
        return None
    if window.column != window.name:
        return None
    first, last = floor(found.bounds[0]), floor(found.bounds[1])
    dtype = to_polars(found.dtype)
    plain = pl.Datetime(dtype.time_unit) if isinstance(dtype, pl.Datetime) else dtype
    every = window.every
    if isinstance(every, timedelta):
        every = f"{every // timedelta(microseconds=1)}us"
    try:
        ends = pl.Series(window.name, [first, last], dtype=pl.Int64).cast(plain)
        offset = pl.lit(ends).first().dt.offset_by(every)
        length = pl.select(offset.to_physical()).item() - first
    except FAILURES:
        return None
    if length <= 0:
        return None
    return _Ends(ends, length, (last - first) // length, found.dtype.zone is not None)


def why_not_known(window: Window, columns: Columns, refusal: MissingKeys) -> MissingKeys:
    """A refusal for want of keys that says why bounds give no windows, where that is why."""
    found, name = _ends(window, columns), window.name
    lists = f"list their beginnings with keys={{{name!r}: [...]}}"
    where = f"group_by_dynamic({name!r}, every={window.every!r})"
    if found is not None and found.about > MOST_WINDOWS:
        return MissingKeys(
            f"between the bounds of {name!r} are about {found.about:,} windows; at "
            f"most {MOST_WINDOWS:,} are possible without a list",
            where=where,
            remedy=("take longer windows, or .filter(...) to a shorter time", f"{lists}"),
        )
    if found is not None and found.zone:
        return MissingKeys(
            f"{name!r} has a time zone, whose clock may skip windows, so its bounds do "
            "not give the windows",
            where=where,
            remedy=f"{lists}, made by pl.datetime_range(first, last, every, time_zone=..., "
            "eager=True)",
        )
    if found is None and name in columns and window.column == name:
        return MissingKeys(
            refusal.what,
            where=where,
            remedy=(
                f"give bounds: session.protect(..., bounds={{{name!r}: (first, last)}})",
                f"{lists}, or open the session with a delta, which finds windows",
            ),
        )
    return refusal


# -- `describe` -----------------------------------------------------------------------------------


_QUARTILES = (("25%", 0.25), ("50%", 0.5), ("75%", 0.75))
_STATISTICS = ("count", "null_count", "n_unique", "mean", "std", "25%", "50%", "75%")


def description(
    facts: FrameFacts,
    columns: str | Sequence[str] | None,
    bounds: Mapping[str, IntoBounds] | None,
) -> tuple[list[DPExpr], Changes]:
    """The dp expressions of a description, and how its result is handed out."""
    names = _names(facts, columns)
    given: Mapping[str, IntoBounds] = {} if bounds is None else bounds
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidBounds(
            "bounds= of describe is a dict of column names and pairs",
            where="describe(..., bounds=...)",
            remedy='write for example .describe(["age"], bounds={"age": (low, high)})',
        )
    for name in given:
        _known(name, names)
    facts_of = {name: facts.columns[name] for name in names if name not in given}
    lacking = [
        n
        for n, d in facts_of.items()
        if d.dtype.is_ordered and (d.bounds is None or d.is_range_of_type)
    ]
    if lacking:
        pairs = ", ".join(f'"{n}": (low, high)' for n in lacking)
        raise UnboundedSensitivity(
            f"the values of {', '.join(map(repr, lacking))} have no known bounds",
            where="describe(...)",
            remedy=f"write .describe({names!r}, bounds={{{pairs}}}) with the ranges that "
            "you expect; values outside are clipped to them",
        )
    asked = [each for n in names for each in _of(n, facts.columns[n], given.get(n))]
    exprs = [DPExpr(replace(each._spec, interval_optional=True)) for each in asked]
    return exprs, Changes((Change(".describe(...)", lambda frame: _long(frame, names)),))


def _names(facts: FrameFacts, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return [name for name in facts.columns if name != facts.identifier]
    names = [columns] if isinstance(columns, str) else columns
    if has_rows(names) or not isinstance(names, Iterable):
        raise _no_names()
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise _no_names()
        _known(name, list(facts.columns))
    return names


def _no_names() -> UnsupportedOperation:
    return UnsupportedOperation(
        "describe takes names of columns",
        where="describe(...)",
        remedy='write for example .describe(["age", "income"])',
    )


def _known(name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UnknownColumn(
            f"there is no column {name!r} to describe",
            where="describe(...)",
            remedy=did_you_mean(str(name), names),
        )


def _of(name: str, found: Domain, bounds: IntoBounds | None) -> Iterator[DPExpr]:
    column = pl.col(name)
    yield count(column).alias(f"{name}_count")
    yield count(pl.when(column.is_null()).then(1)).alias(f"{name}_null_count")
    if not found.dtype.is_ordered:
        if not found.dtype.is_nested:
            yield n_unique(column).alias(f"{name}_n_unique")
        return
    yield mean(column, bounds).alias(f"{name}_mean")
    if found.dtype.is_numeric or found.dtype.is_boolean:
        yield std(column, bounds).alias(f"{name}_std")
    if not found.dtype.is_boolean:
        for said, q in _QUARTILES:
            yield quantile(column, q, bounds).alias(f"{name}_{said}")


def _long(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The one row of a description with a row for each statistic, as Polars has it."""
    found = frame.row(0, named=True)
    rows = [s for s in _STATISTICS if any(f"{name}_{s}" in found for name in names)]
    columns = {"statistic_" if "statistic" in names else "statistic": pl.Series(rows)}
    used = set[str]()
    for name in names:
        for end in ("", "_low", "_high"):
            cells = [f"{name}_{statistic}{end}" for statistic in rows]
            used.update(cells)
            if not end or any(cell in found for cell in cells):
                column = name + end
                while end and column in names:
                    column += "_"
                columns[column] = _cells([found.get(cell) for cell in cells])
    for other in (name for name in found if name not in used):  # the share that limits drop
        columns[other] = pl.repeat(found[other], len(rows), eager=True)
    return pl.DataFrame(columns)


def _cells(values: Sequence[Any]) -> pl.Series:
    """Numbers as Float64; text where a value is no number, such as a date."""
    if all(value is None or isinstance(value, (int, float, Decimal)) for value in values):
        floats = [None if value is None else float(value) for value in values]
        return pl.Series(floats, dtype=pl.Float64)
    texts = [None if value is None else str(value) for value in values]
    return pl.Series(texts, dtype=pl.String)


# -- The frame ------------------------------------------------------------------------------------


@all_sealed
class PrivateFrame(NoRawAccess, Shortcuts):
    """A frame of private rows. Nothing raw comes out of it.

    Row-wise verbs (`filter`, `with_columns`, `select`, `rename`, `drop`, `cast`, `fill_null`,
    `fill_nan`, `drop_nulls`) work as in Polars and give another private frame, as do `join`,
    `concat`, `explode` and limits; `agg` and the `dp_*` methods give a `PrivateQuery`. Made by
    `Session.protect`.

    Guarantee
    ---------
    Row-wise verbs are 1-stable: one individual's rows become at most as many rows, each computed
    from itself alone. After every other verb a row still belongs to one individual and depends
    only on that individual's rows and public values. The plan states into how many rows one row
    can turn.
    """

    __slots__ = ("_relation", "_session", "_source")
    _noun = "a private frame"
    _written = "frame"
    _hints = FRAME_HINTS
    _reasons = FRAME_REASONS
    _otherwise = RAW

    def __init__(
        self, relation: Relation, source: Source | Sources, session: SessionBudget | None
    ) -> None:
        self._relation = relation
        self._source = source
        self._session = session

    # -- rows -------------------------------------------------------------------------------------

    def filter(self, *predicates: object, **constraints: object) -> Self:
        """Keep rows for which all predicates are true; keywords compare for equality.

        With a unit that names an identifier, an aggregate of a person's own rows may stand in a
        predicate: ``pl.len().over("user_id") >= 3`` keeps the rows of people with three or more.

        Raises
        ------
        UnsupportedOperation
            For an expression that is not a condition, mixes rows, or has no known rule.
        UnknownColumn
            When the frame does not have the column.
        """
        given = flat(predicates)
        given += [equality(name, value) for name, value in constraints.items()]
        if not given:
            return self
        require_rows(given, "filter")
        named = pipeline.read_rows_of_individuals(given, {}, self._relation, "filter")
        return self._then(with_aggregates(Filter(tuple(n.tree for n in named))))

    def with_columns(self, *exprs: object, **named_exprs: object) -> Self:
        """Add or replace columns, each computed from its own row.

        With a unit that names an identifier, an aggregate of a person's own rows may stand in an
        expression: ``first=pl.col("at").min().over("user_id")``.

        Raises
        ------
        UnsupportedOperation
            For expressions that mix rows or have no known rule; the message shows what to write
            instead.
        UnknownColumn
            When the frame does not have the column.
        UnitDropped
            When the identifier would get other values.
        """
        given = flat(exprs)
        require_rows([*given, *named_exprs.values()], "with_columns")
        read = pipeline.read_rows_of_individuals
        named = read(given, named_exprs, self._relation, "with_columns")
        return self._then(with_aggregates(WithColumns(named))) if named else self

    def select(self, *exprs: object, **named_exprs: object) -> Any:
        """Row-wise expressions give a `PrivateFrame`; dp expressions a `PrivateQuery` of one row.

        Raises
        ------
        UnsupportedOperation
            When both kinds are mixed, or no column would be left; else as for `with_columns`.
        UnitDropped
            When the identifier is not among row-wise columns.
        """
        unnamed = flat(exprs)
        given = [*unnamed, *named_exprs.values()]
        columns = self._relation.facts.columns
        dp = [isinstance(e, DPExpr) or is_plain_aggregate(e, columns) for e in given]
        if given and all(dp):
            return self.agg(*unnamed, **named_exprs)
        if any(dp):
            mixed = next(e for e, is_dp in zip(given, dp, strict=True) if is_dp)
            raise UnsupportedOperation(
                "row-wise and dp expressions cannot be selected together",
                where=mixed._words() if isinstance(mixed, DPExpr) else shown(mixed),
                remedy="compute columns with with_columns(...) first, then aggregate",
            )
        read = pipeline.read_rows_of_individuals
        return self._then(
            with_aggregates(Select(read(unnamed, named_exprs, self._relation, "select")))
        )

    def sort(
        self,
        by: object,
        *more_by: object,
        descending: bool | Sequence[bool] = False,
        nulls_last: bool | Sequence[bool] = False,
        maintain_order: bool = False,
        multithreaded: bool = True,
    ) -> Self:
        """The same rows, unsorted: aggregates do not depend on the order of rows.

        Raises
        ------
        UnsupportedOperation
            For values without an order, or an expression that mixes rows.
        UnknownColumn
            When the frame does not have the column.
        """
        given = flat([by, *more_by])
        require_rows(given, "sort")
        pipeline.read_rows(given, {}, self._relation, "sort")
        return self

    def rename(self, mapping: Mapping[str, str], *, strict: bool = True) -> Self:
        """Give columns other names; the identifier is followed.

        Parameters
        ----------
        mapping
            ``{"old": "new"}``.
        strict
            Whether names that the frame does not have are refused; otherwise they are left out.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        UnsupportedOperation
            When names would not differ, or a function is given.
        """
        if not isinstance(mapping, Mapping):
            raise UnsupportedOperation(
                "rename takes a mapping of names, not a function",
                where="rename(...)",
                remedy='write rename({"old": "new"})',
            )
        if not strict:
            columns = self._relation.facts.columns
            mapping = {old: new for old, new in mapping.items() if old in columns}
        self._known(mapping, "rename")
        return self._then(Rename(tuple((str(a), str(b)) for a, b in mapping.items())))

    def drop(self, *columns: object, strict: bool = True) -> Self:
        """Forget columns.

        Parameters
        ----------
        columns
            Names or selectors.
        strict
            Whether names that the frame does not have are refused; otherwise they are left out.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        UnitDropped
            When the identifier is among them.
        """
        given = flat(columns)
        if not strict:
            known = self._relation.facts.columns
            given = [c for c in given if not isinstance(c, str) or c.startswith("^") or c in known]
        names = self._selected(given, "drop")
        return self._then(Drop(names)) if names else self

    def cast(self, dtypes: object, *, strict: bool = False) -> Self:
        """Change types; values that do not fit become null, so `strict` makes no difference.

        Parameters
        ----------
        dtypes
            A type for all columns, or a mapping of columns or selectors to types.

        Raises
        ------
        UnsupportedOperation
            For casts whose result may depend on other rows or on the version of Polars.
        UnitDropped
            When the identifier is cast.
        """
        wanted: dict[str, DType] = {}
        if isinstance(dtypes, Mapping):
            for key, dtype in dtypes.items():
                for name in self._selected([key], "cast"):
                    wanted[name] = from_polars(dtype)
        else:
            wanted = dict.fromkeys(self._relation.facts.columns, from_polars(dtypes))
        return self._with({n: Call(Cast(t), (Column(n),)) for n, t in wanted.items()})

    def fill_null(self, value: object = None, strategy: object = None, **_: object) -> Self:
        """Replace nulls with a constant, in the columns whose type it has.

        Raises
        ------
        UnsupportedOperation
            With a strategy, which would look at other rows.
        """
        if strategy is not None or value is None:
            raise UnsupportedOperation(
                "fill_null with a strategy looks at other rows",
                where=f"fill_null(strategy={strategy!r})",
                remedy="fill with a constant: fill_null(0)",
            )
        return self._fill(FillNull(), value)

    def fill_nan(self, value: object) -> Self:
        """Replace NaN with a constant, in all float columns."""
        return self._fill(FillNan(), value)

    def drop_nulls(self, subset: object = None) -> Self:
        """Drop rows with a null in `subset`, or in any column.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        """
        given = [] if subset is None else subset if isinstance(subset, (list, tuple)) else [subset]
        names = (
            self._selected(given, "drop_nulls") if given else tuple(self._relation.facts.columns)
        )
        return self._then(DropNulls(names))

    # -- limits -----------------------------------------------------------------------------------

    def limit_rows(
        self, n: int, by: object = None, *, order_by: str | None = None, descending: bool = False
    ) -> PrivateFrame:
        """Keep at most `n` rows of each individual, or of each individual and value of `by`.

        This is needed where one individual could have any number of rows. A secret hash of the rows
        decides which rows stay. Dropped rows bias results, so choose `n` such that few are dropped.

        Parameters
        ----------
        n
            A positive integer.
        by
            Column names; None limits all rows of an individual together, as the identifier does.
        order_by
            A column of dates, datetimes or whole numbers. Rows with the least values are kept
            first, and nulls last. Streams need it: their frames grow every night, and rows that the
            limit kept before must stay.
        descending
            Whether rows with the largest values of `order_by` are kept first instead, such as the
            last orders of each person. Nulls come last.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`, or a column's type is not known.
        """
        columns = self._by(by, "limit_rows")
        who = self._relation.facts.identifier
        within = tuple(name for name in columns if name != who)
        if not require_flag(descending, "limit_rows(..., descending=...)"):
            return self._then(LimitRows(n, within, order_by))
        falling, name = falling_column(order_by, self._relation.facts.columns)
        return self.with_columns(falling)._then(LimitRows(n, within, name)).drop(name)

    def limit_groups(self, n: int, by: object, *, order_by: str | None = None) -> PrivateFrame:
        """Keep each individual's rows in at most `n` of its values of the columns `by`.

        Parameters
        ----------
        n
            A positive integer.
        by
            Column names; those that a later group-by uses.
        order_by
            One of them, of dates, datetimes or whole numbers. Groups with the least values are kept
            first, and nulls last. Streams need it.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        """
        return self._then(LimitGroups(n, self._by(by, "limit_groups"), order_by))

    def limit_norm(self, n: Number) -> PrivateFrame:
        """Weight each individual's rows by one factor of at most 1, so that the norm of its rows in
        all groups is at most `n`.

        The norm is the root of the sum of squares of an individual's row counts over groups. For
        aggregates over individuals each group counts as 1, so an individual in 9 groups has a norm
        of 3. No row is dropped, so results have less bias than with `limit_groups` at the same
        noise. Counts, sums, means and variances support it; a mean is then a weighted mean of the
        rows. If groups are found privately, an individual counts in at most 256 of them, unless
        `limit_groups` sets another number.

        Parameters
        ----------
        n
            The largest norm, at least 1/64: the number of rows of an individual in one group, or
            the root of the number of groups with one row each.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`, or `n` is not a positive number.
        """
        return self._then(LimitNorm(read_norm(n)))

    @named_spend(1)
    def suggest_limits(
        self,
        by: object = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        coverage: Number = 0.95,
        details: bool = False,
    ) -> pl.DataFrame:
        """Find privately the limits that most individuals keep. This is a release and costs its
        spend.

        Earlier limits of the frame have no effect. `PrivateQuery.suggest_limits` also finds bounds,
        and compares the kinds of limits for a query.

        Parameters
        ----------
        by
            Columns or row-wise expressions that a later group-by uses; None for rows in all.
        epsilon, delta, rho
            The spend.
        coverage
            The share of individuals who should lose no rows.
        details
            As for `PrivateQuery.suggest_limits`.

        Returns
        -------
        polars.DataFrame
            One row per limit: `limit` as you write it, such as ``limit_rows(15)``, and its number
            `n`. `people` is the share of individuals who lose no row, and `rows` the share of rows
            that is kept, both up to noise.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        InvalidBudget
            When the spend is invalid, or in another measure than the session's.
        """
        spend = Spend(epsilon, delta, rho)
        columns = flat([] if by is None else [by])
        return suggest_for_frame(rows_of(self), columns, spend, coverage, details=details)

    # -- several frames ------------------------------------------------------------------------

    def join(
        self,
        other: object,
        on: object = None,
        how: How = "inner",
        *,
        left_on: object = None,
        right_on: object = None,
        suffix: str = "_right",
        validate: str = "m:m",
        nulls_equal: bool = False,
        coalesce: bool | None = None,
        maintain_order: str | None = None,
        allow_parallel: bool = True,
        force_parallel: bool = False,
    ) -> PrivateFrame:
        """Join with a public frame, or with another private frame on the identifier.

        Parameters
        ----------
        other
            A table of Polars, pandas or pyarrow, which is public and becomes part of the plan; or
            a private frame of the same session that protects the same individuals.
        on, left_on, right_on
            Names of key columns, as in Polars; a null matches nothing. Private frames join on
            their identifiers, which may stand among other keys.
        how
            ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``. Another join would reveal which keys
            are in the private frame.
        suffix
            Appended to the names of new columns whose name is taken.
        validate
            ``"m:1"`` checks that a public frame has each key once. Keys of private frames cannot be
            checked, because a check that fails would reveal them.
        nulls_equal, coalesce
            Only the defaults of Polars.
        maintain_order, allow_parallel, force_parallel
            Have no effect, because private rows have no order.

        Raises
        ------
        UnsupportedOperation
            For another kind of join, keys of unlike types, or frames of unlike units or sessions.
        """
        refuse_join_options(nulls_equal, coalesce)
        if how not in _HOWS:
            raise UnsupportedOperation(
                f"a private frame has no join of the kind {how!r}",
                where=f"join(..., how={how!r})",
                remedy="use inner, left, semi or anti",
            )
        left = self._by(on if on is not None else left_on, "join")
        right = self._by(on if on is not None else right_on, "join")
        if not isinstance(other, PrivateFrame):
            table = public_table(other)
            require_validated(validate, table, right)
            return self._then(JoinPublic.of(table, left, right, how, suffix))
        require_validated(validate, other, right)
        self._require_same_session_and_unit(other, "join")
        step = private_join(self._relation, other._relation, left, right, how, suffix)
        return self._and(other, step)

    def concat(self, other: PrivateFrame) -> PrivateFrame:
        """The rows of both frames, which must have the same columns. An individual's rows are those
        in both.

        Raises
        ------
        UnsupportedOperation
            For another kind of frame, or one of another session, unit or engine.
        """
        if not isinstance(other, PrivateFrame):
            raise UnsupportedOperation(
                "a private frame can only be concatenated with another private frame, not with a "
                f"{type(other).__name__}",
                where="concat(...)",
                remedy="protect the other one in the same session: session.protect(other, "
                "unit=...)",
            )
        self._require_same_session_and_unit(other, "concat")
        return self._and(other, Concat(other._relation, chain_of(other._relation)))

    def explode(
        self,
        column: object,
        *,
        max_length: int | None = None,
        empty_as_null: bool = True,
        keep_nulls: bool = True,
    ) -> PrivateFrame:
        """One row for each element of a column of lists, up to `max_length` of each. A list without
        elements gives one row with a null: Polars 2 gives none unless ``empty_as_null=True``.

        Raises
        ------
        UnboundedSensitivity
            When the lists may have any length and no `max_length` is given.
        UnsupportedOperation
            For several columns, whose lists might differ in length.
        """
        if not (empty_as_null and keep_nulls):
            name = "empty_as_null" if not empty_as_null else "keep_nulls"
            before = (
                ".drop_nulls([column])"
                if empty_as_null
                else ".filter(pl.col(column).list.len().ne_missing(0))"
            )
            raise UnsupportedOperation(
                f"explode with {name}=False is not supported",
                where=f"explode(..., {name}=False)",
                remedy=f"leave {name} out, and write {before} before it",
            )
        names = self._by(column, "explode")
        if len(names) != 1:
            raise UnsupportedOperation(
                "explode takes one column",
                where=f"explode({list(names)})",
                why="lists of different lengths would make it fail, which depends on the data",
                remedy="write one explode for each column",
            )
        return self._then(Explode(names[0], max_length))

    def _require_same_session_and_unit(self, other: PrivateFrame, what: str) -> None:
        if other._session is not self._session:
            raise UnsupportedOperation(
                "the frames belong to different sessions",
                where=f"{what}(...)",
                remedy="protect both frames in one session",
            )
        mine, theirs = self._relation.facts.unit, other._relation.facts.unit
        require(mine.kind == theirs.kind, "frames of one session protect one kind of unit")

    def _and(self, other: PrivateFrame, step: Binary) -> PrivateFrame:
        tokens = self._relation.token, other._relation.token
        both = Sources((tokens[0], self._source), (tokens[1], other._source))
        return PrivateFrame(self._relation.then(step), both, self._session)

    # -- aggregates -----------------------------------------------------------------------------

    def group_by(
        self, *by: Any, keys: IntoKeys | None = None, maintain_order: bool = True, **named_by: Any
    ) -> GroupBy:
        """Group rows by public keys, by groups found in the data, or by the individual.

        With the identifier in `by`, ``agg`` takes Polars' own aggregates and returns a private
        frame with one row for each individual, and for each value of further keys.

        Parameters
        ----------
        by
            Columns or row-wise expressions; or `dpframe.rollup`, `dpframe.cube` or
            `dpframe.grouping_sets`, for several tables in one result. A column that is not in the
            set of a row is null there, and the column ``grouping`` distinguishes this from a null
            key.
        keys
            A list, Series, DataFrame, ``{column: values}`` (their product) or `dpframe.keys`. The
            result has every key, in this order, even if no row has it; rows with other keys are
            dropped. Without keys the categories of Enum, Boolean and declared columns are used.
            Otherwise the query finds groups with enough individuals privately when it runs, and
            returns them sorted. This needs a delta.
        maintain_order
            Has no effect: results are always in the order of the keys.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data.
        """
        if isinstance(named_by.get("other"), bool):
            raise UnsupportedOperation(
                "group_by has no argument 'other'",
                where="group_by(..., other=...)",
                why="rows with keys that are not listed are dropped",
                remedy="write dp_histogram(column, [...], other=True)",
            )
        given = flat(by)
        rows = rows_of(self)
        refuse_protected_keys(keys, self._source, "group_by(..., keys=...)")
        sets = [item for item in given if isinstance(item, SetsAsked)]
        if sets:
            nothing_else(named_by, given[1:])
            require_rows(sets[0].columns, "group_by")
            found = PrivateGroupBy(rows, pipeline.group_sets(rows.relation, sets[0], keys))
            return cast("GroupBy", found)
        require_rows([*given, *named_by.values()], "group_by")

        def grouped() -> PrivateGroupBy:
            discover = rows.payer is None or rows.payer.discovers
            return PrivateGroupBy(
                rows, pipeline.group(rows.relation, given, named_by, keys, discover)
            )

        own = None
        if keys is None:
            own = pipeline.individuals(rows.relation, given, named_by)
        if own is None:
            return cast("GroupBy", grouped())
        who, by = own

        def reduced(exprs: Sequence[object], named: Mapping[str, object]) -> PrivateFrame:
            return self._then(pipeline.one_row_each(rows.relation, who, by, exprs, named))

        written = GroupByIndividual(who, by, ()).words().removesuffix(".agg()")
        return cast("GroupBy", PrivateGroupByIndividual(reduced, grouped, written))

    def agg(self, *exprs: object, **named: object) -> PrivateQuery:
        """A query with one row: dp expressions over all rows. Nothing runs.

        Raises
        ------
        UnsupportedOperation
            For an expression that is not a dp expression; the message names the one to use.
        UnboundedSensitivity
            When one individual could change a result by any amount.
        """
        return query_of(rows_of(self), None, exprs, named)

    # -- groups and aggregates in one word --------------------------------------------------------

    def group_by_dynamic(
        self,
        index_column: str | pl.Expr,
        *,
        every: str | timedelta,
        group_by: object = None,
        keys: IntoKeys | None = None,
        **options: object,
    ) -> PrivateGroupBy:
        """Group rows by windows of time, which begin at regular boundaries: the same as
        ``group_by(pl.col(index_column).dt.truncate(every))``.

        Parameters
        ----------
        index_column
            A column of dates or datetimes; in the result it holds the beginnings of windows.
        every
            How long a window is, such as ``"1w"``, ``"1mo"`` or ``"15m"``.
        group_by
            Other columns to group by.
        keys
            As for `group_by`: the beginnings of windows, which are public. Without them all windows
            between bounds of the column that are declared, or that a filter gives, up to 100,000.
            If the column has no bounds, windows with enough individuals are chosen privately,
            which needs a delta; ``group_by(pl.col(index_column).dt.truncate(every))`` always does
            that.
        options
            Arguments of Polars' method, which may have the values that they have by default.

        Raises
        ------
        UnsupportedOperation
            For windows that overlap, leave gaps, are moved or begin elsewhere.
        MissingKeys
            When a key is no beginning of a window, or keys are needed.
        """
        window = window_of(index_column, every, options)
        others = [] if group_by is None else flat([group_by])
        columns = self._relation.facts.columns
        given = window_keys(keys, window, columns, alone=not others)
        if keys is None:
            given = self._known_windows(window, others)
        try:
            return self.group_by(*others, window.expression, keys=given)
        except MissingKeys as refusal:
            if keys is not None:
                raise
            raise why_not_known(window, columns, refusal) from None

    def value_counts(
        self,
        column: str | pl.Expr,
        *,
        sort: bool = False,
        name: str | None = None,
        normalize: bool = False,
        keys: IntoKeys | None = None,
        **options: Any,
    ) -> PrivateQuery:
        """The number of rows by the values of a column: ``group_by(column).agg(dp.count())``.

        Parameters
        ----------
        column
            Its name, or a row-wise expression.
        sort
            Whether `collect` gives the largest counts first, as they are with their noise. A
            `Release` keeps the order of the groups.
        name
            The name of the counts; default ``"count"``, or ``"proportion"`` with `normalize`.
        normalize
            Whether `collect` gives shares of the sum of the noisy counts, null where that is not
            above 0; they have no intervals. Plans and releases are of the counts, ``"count"``.
        keys
            As for `group_by`. Nulls are counted where they are among the keys or found.
        options
            Options of `dpframe.count`.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data.
        """
        counts = COUNT if name is None or normalize else name
        share = (name or "proportion") if normalize else None
        groups = self.group_by(column, keys=keys)
        if share in group_names(groups):
            raise UnsupportedOperation(
                f"the result would have two columns named {share!r}",
                where=f"value_counts(name={share!r})",
                remedy='write name="share"',
            )
        query = groups.agg(count(**options).alias(counts))
        if not sort and not normalize:
            return query
        return with_changes(query, counts_of_values(counts, share, by_size=sort))

    def describe(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        bounds: Mapping[str, IntoBounds] | None = None,
    ) -> PrivateQuery:
        """Describe the columns at one cost, in the form of `polars.DataFrame.describe`: a row for
        each statistic, and a column for each column.

        The rows are `count`, `null_count`, `n_unique` (text only), `mean`, `std` (numbers only),
        `25%`, `50%` and `75%`. A statistic that a column does not have is null. `min` and `max`
        are left out, because each is one person's value.

        Parameters
        ----------
        columns
            Names; without them all columns except the identifier.
        bounds
            The range (low, high) of each column where it is not known.

        Returns
        -------
        PrivateQuery
            Its `collect` gives the column `statistic` and the described columns: numbers as
            Float64, others, such as dates, as text. With ``interval=0.95`` columns `<name>_low` and
            `<name>_high` follow each, null for quartiles, which have no interval. `release` keeps
            one row with columns such as `age_mean`, and prints each with its error.

        Raises
        ------
        UnboundedSensitivity
            When bounds or limits are missing.
        """
        exprs, long = description(self._relation.facts, columns, bounds)
        return with_changes(self.agg(*exprs), long)

    def pipe(
        self, function: Callable[Concatenate[Self, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a function of the frame gives: ``function(frame, ...)``."""
        return function(self, *args, **kwargs)

    def dp_histogram(
        self, column: IntoColumn, bins: IntoBins = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.histogram`. Without a list, categories are chosen privately where the
        session has a delta: the result is then the number of rows by the values of the column.
        """
        try:
            return super().dp_histogram(column, bins, **options)
        except MissingKeys:
            groups: PrivateGroupBy | None = None
            if bins is None and not {"bounds", "other"} & options.keys():
                with suppress(DPFrameError):
                    groups = self.group_by(column)
            if groups is None or not is_discovered(groups):
                raise
        return groups.agg(count(**options).alias("count"))

    # -- what is public -------------------------------------------------------------------------

    @property
    def session(self) -> SessionBudget | None:
        """The `Session` that pays for queries; for a part of a partition, the part's session."""
        return self._session

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns, which are public."""
        return pl.Schema(pipeline.schema_of(self._relation))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, which are public."""
        return list(self._relation.facts.columns)

    def explain_unit(self) -> str:
        """Whom the session protects in this frame, and the known facts about its columns."""
        return frame_words(self._relation)

    def __repr__(self) -> str:
        whom = self._relation.facts.unit.whom()
        return f"<PrivateFrame {self._relation.name!r}: {self.columns}; protects {whom}>"

    def _repr_html_(self) -> str:
        return frame_html(self._relation)

    def __contains__(self, column: object) -> bool:
        return column in self._relation.facts.columns

    # -- inside ---------------------------------------------------------------------------------

    def _then(self, step: Step) -> Self:
        return type(self)(self._relation.then(step), self._source, self._session)

    def _with(self, trees: Mapping[str, Tree]) -> Self:
        return self._then(WithColumns(tuple(Named(n, t) for n, t in trees.items())))

    def _fill(self, operation: FillNull | FillNan, value: object) -> Self:
        op = operation.name
        given = value if isinstance(value, pl.Expr) else constant(value, op)
        (read, *_) = (*pipeline.read_rows([given], {}, self._relation, op), None)
        if read is None or not isinstance(read.tree, Literal):
            raise UnsupportedOperation(
                f"{op} of a whole frame takes a constant",
                where=f"{op}({given})",
                remedy=f"write with_columns(pl.col(...).{op}(...))",
            )
        chosen = {
            name: Call(operation, (Column(name), read.tree))
            for name, found in self._relation.facts.columns.items()
            if name != self._relation.facts.identifier and fills(op, found.dtype, read.tree.dtype)
        }
        return self._with(chosen) if chosen else self

    def _known(self, names: Iterable[str], what: str) -> None:
        for name in names:
            if name not in self._relation.facts.columns:
                raise unknown_column(name, self._relation.facts.columns, f"{what}({name!r})")

    def _selected(self, columns: Sequence[object], what: str) -> tuple[str, ...]:
        names: list[str] = []
        for item in flat(columns):
            if isinstance(item, str) and not item.startswith("^"):
                self._known([item], what)
                names.append(item)
            else:
                found = pipeline.read_rows([item], {}, self._relation, what)
                names.extend(n.tree.name for n in found if isinstance(n.tree, Column))
        return tuple(dict.fromkeys(names))

    def _known_windows(self, window: Window, others: list[object]) -> pl.DataFrame | None:
        """The windows that bounds give, for each of the other keys where these are known."""
        known = windows_within(window, self._relation.facts.columns)
        if known is None or not others:
            return known if known is None else known.to_frame()
        with suppress(MissingKeys):
            groups = self.group_by(*others)
            beside = public_keys(groups)
            if beside is not None and beside.height * known.len() <= MOST_WINDOWS:
                return beside.join(known.to_frame(), how="cross", maintain_order="left_right")
        return None

    def _by(self, by: object, what: str) -> tuple[str, ...]:
        given = [] if by is None else flat([by])
        return tuple(dict.fromkeys(column_name(item, what) for item in given))


def rows_of(frame: PrivateFrame) -> ProtectedRows:
    """What is known of a frame's rows, where they are, and who pays."""
    payer = None if frame._session is None else payer_of(frame._session)
    return ProtectedRows(frame._relation, frame._source, payer)


if TYPE_CHECKING:

    class QueryOrFrame(PrivateQuery, PrivateFrame):  # type: ignore[misc] # pyright: ignore
        """What `agg` of groups gives: a query; or a private frame with one row for each individual,
        where rows are grouped by the identifier. Type checkers do not see which it is.
        """

    class GroupBy(PrivateGroupBy):
        """Groups of a private frame."""

        def agg(self, *exprs: object, **named: object) -> QueryOrFrame: ...
        def len(self, name: str = "len") -> QueryOrFrame: ...
