"""Keeping a few rows of each individual: by a salted hash of the rows themselves.

The rows kept of an individual may depend only on that individual's rows. A position in the frame,
an order of arrival or a random number drawn for each row would depend on who else is there, and
then one individual could move everybody's rows. So rows are ranked by a hash of their own values,
and by the values themselves where hashes are equal: a total order, but for rows that are equal in
everything. Lists, arrays and structs are ranked by texts that are unique for each value. The salt
is fresh for each release and secret; it makes the choice look random, and privacy does not rest
on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import INT64, Columns, DType
from dpframe.core.exact import show_input
from dpframe.core.windows import AFTER, BEFORE, Windows
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.layouts import encoded, grouped, grouped_type, in_order, unordered
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import unknown_column
from dpframe.rows.temporal import NO_TIME, window_number


def keep_first(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, DType],
    salt: int,
    ns: Namespace,
    first: str | None = None,
    taken: Collection[str] = (),
) -> pl.LazyFrame:
    """At most this many rows for each value of the columns `within`, by the hash of the columns
    `order`, which distinguish rows. If `first` is named, rows with its least values come first,
    and nulls last. The frame may have other columns, with the names `taken`.

    Ranking takes an engine several times as long as counting, so it is for those only that have
    too many. Several columns are counted by their hash: where two hashes are equal that counts
    too many, and ranking keeps all rows of those that have few.
    """
    if ns is not pl:
        return first_ranked(frame, most, within, order, salt, ns, first, taken)
    rank = new_name({*order, *taken}, "rank")
    whose = [comparable(ns, name, order[name]) for name in within]
    counted = whose if len(whose) == 1 else [ns.struct(*whose).hash(salt)]
    sized = once(frame.with_columns(ns.len().over(counted).alias(rank)))
    few = sized.filter(ns.col(rank) <= most).drop(rank)
    many = sized.filter(ns.col(rank) > most).drop(rank)
    if first is None:
        ranked = first_sorted(many, most, within, order, salt, ns, taken)
    else:
        ranked = first_ranked(many, most, within, order, salt, ns, first, taken)
    kept: pl.LazyFrame = ns.concat([few, ranked])
    return kept


def keep_first_of_many(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, DType],
    salt: int,
    ns: Namespace,
    first: str | None = None,
) -> pl.LazyFrame:
    """The same rows, found sooner where rows are narrow and many have too many: where ranking is
    a sort, counting before it does not pay, unless this many are kept that few have more.
    """
    if ns is pl and most < _PLENTY and first is None:
        return first_sorted(frame, most, within, order, salt, ns)
    return keep_first(frame, most, within, order, salt, ns, first)


def first_ranked(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, DType],
    salt: int,
    ns: Namespace,
    first: str | None = None,
    taken: Collection[str] = (),
) -> pl.LazyFrame:
    """The same rows, by ranking everybody's."""
    hashed, rank = (new_name({*order, *taken}, name) for name in ("hash", "rank"))
    values = {name: comparable(ns, name, dtype) for name, dtype in order.items()}
    rest = [value for name, value in values.items() if name not in within]
    marked = frame.with_columns(row_hash(ns, values, order, salt).alias(hashed))
    before = [] if first is None else [ns.col(first).is_null(), values[first]]
    position = ns.col(hashed).cum_count()
    by = [*before, ns.col(hashed), *rest]
    if ns is pl:  # older versions want different names
        by = [value.alias(f"by{i}") for i, value in enumerate(by)]
    position = position.over([values[n] for n in within], order_by=by)
    ranked = marked.with_columns(position.alias(rank))
    kept: pl.LazyFrame = ranked.filter(ns.col(rank) <= most).drop(hashed, rank)
    return kept


_BLOCK, _ROWS = 1 << 16, 1 << 18
"""This many numbers are in a cache, and this many rows in memory in addition to the frame."""
_PLENTY = 10
"""A limit that few are taken to exceed; only speed depends on it."""
COARSE = 32
"""How many bits of a hash a sort goes by."""
_MIXED, _OTHERS, _TIED = 1, 2, 4
"""Flags of a row after a sort. Another owner has the bits of its owner. The row before it has the
same bits and other values. It is the first one to drop, and the last one to keep has its bits.
"""


def first_sorted(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, DType],
    salt: int,
    ns: Namespace,
    taken: Collection[str] = (),
) -> pl.LazyFrame:
    """The same rows as `first_ranked` keeps, by one sort of one column, where no column decides
    before the hash.

    The sort key begins with the first bits of the hash of `within`, which stand for the row's
    owner, and ends with the first bits of the row's own hash. A row is kept if the row `most`
    places before it has another owner. This is right if all rows of an owner have the same values
    of `within`, and if the last row kept and the first dropped differ in these bits. Owners that
    fail either test are looked up afterwards, and their rows are ranked by whole hashes and values.
    So rows that share bits are only ranked in another way, and the same rows are kept. Rows that
    are equal in all of `order` stand for each other. So an owner passes the second test too if all
    of its rows that share bits are equal.
    """
    names = {*order, *taken}
    key, owner, first, torn = (new_name(names, name) for name in ("hash", "owner", "first", "torn"))
    values = {name: comparable(ns, name, dtype) for name, dtype in order.items()}
    whose = [values[name] for name in within]
    owners = {name: values[name] for name in within}
    high, low = (
        row_hash(ns, found, order, salt) // 2 ** (64 - COARSE) for found in (owners, values)
    )
    marked = frame.with_columns(
        high.cast(ns.UInt32).alias(owner), (high * 2**32 + low).alias(key)
    ).sort(key)
    same = ns.col(owner) == ns.col(owner).shift(1)
    mixed = ns.any_horizontal(value.ne_missing(value.shift(1)) for value in whose)
    kept = ns.col(owner).shift(most).ne_missing(ns.col(owner))
    shared = ns.col(key) == ns.col(key).shift(1)
    tied = kept.shift(1) & ~kept & shared
    rest_of_row = (value for name, value in values.items() if name not in within)
    others = ns.any_horizontal(
        ns.lit(False), *(value.ne_missing(value.shift(1)) for value in rest_of_row)
    )
    ordered = marked.with_columns(
        kept.alias(first),
        ns.when(same & mixed)
        .then(_MIXED)
        .otherwise(ns.when(shared & others).then(_OTHERS).otherwise(0) + tied * _TIED)
        .alias(torn),
    )

    def has(flag: int) -> pl.Expr:
        """Whether the owner has such a row."""
        found: pl.Expr = ns.col(owner).is_in(
            ns.col(owner).filter((ns.col(torn) & flag) > 0).implode()
        )
        return found

    unsure = has(_MIXED) | (has(_OTHERS) & has(_TIED))
    decided = once(ordered.with_columns(unsure.alias(torn)).drop(owner, key))
    sure = decided.filter(ns.col(first) & ~ns.col(torn)).drop(first, torn)
    rest = decided.filter(ns.col(torn)).drop(first, torn)
    found: pl.LazyFrame = ns.concat(
        [sure, first_ranked(rest, most, within, order, salt, ns, taken=taken)]
    )
    return found


def keep_first_together(
    rows: pl.DataFrame, most: int, within: str, order: Mapping[str, DType], salt: int
) -> pl.DataFrame:
    """The same rows, of a frame in memory where rows with equal values of the column `within`,
    which has no nulls, follow each other.
    """
    if not rows.height:
        return rows
    whose = rows[within].to_numpy()
    first = np.ones(rows.height, np.bool_)
    np.not_equal(whose[1:], whose[:-1], out=first[1:])
    kept, torn = least_of_runs(hashes(rows, order, salt), np.flatnonzero(first), most)
    sure = rows.filter(pl.Series(kept))
    if not torn.any():
        return sure
    rest = rows.filter(pl.Series(torn)).lazy()
    return pl.concat(
        [
            sure,
            first_ranked(rest, most, [within], order, salt, pl).collect(
                optimizations=OPTIMIZATIONS
            ),
        ]
    )


def hashes(rows: pl.DataFrame, order: Mapping[str, DType], salt: int) -> NDArray[np.uint64]:
    """The hash of each row of a frame in memory."""
    values = {name: comparable(pl, name, dtype) for name, dtype in order.items()}
    bits = row_hash(pl, values, order, salt).cast(pl.UInt64)
    found = np.empty(rows.height, np.uint64)
    for start in range(0, rows.height, _ROWS):
        found[start : start + _ROWS] = rows.slice(start, _ROWS).select(bits).to_series().to_numpy()
    return found


def least_of_runs(
    hashed: NDArray[np.uint64], start: NDArray[np.int64], most: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The rows with the least hashes in their run, and the rows that must be ranked by whole
    hashes and values. These are all rows of a run in which the last row to keep and the first to
    drop have the same first bits.

    One sort of numbers decides, in which the place of a run comes before the first bits of a hash.
    The numbers of a run follow each other in order, too, and the last that is kept is known by its
    place.

    Parameters
    ----------
    start
        Where each run starts, whose first starts at 0.
    """
    end = np.append(start[1:], hashed.size)
    small = np.uint32 if start.size < 2**32 else np.uint64
    run = np.repeat(np.arange(start.size, dtype=small), end - start)
    bits = np.uint64(int(start.size).bit_length())
    numbers = hashed >> bits
    del hashed  # as large as the rows
    for block in range(0, run.size, _BLOCK):
        of_run = run[block : block + _BLOCK].astype(np.uint64)
        numbers[block : block + _BLOCK] |= of_run << (np.uint64(64) - bits)
    rising = in_order(pl.Series(numbers)).to_numpy()
    last = rising[np.minimum(start + most, end) - 1]
    many = np.flatnonzero(end - start > most)
    equal = many[rising[start[many] + most] == last[many]]
    kept = numbers <= last[run]
    torn = np.zeros(run.size, np.bool_)
    if equal.size:
        unsure = np.zeros(start.size, np.bool_)
        unsure[equal] = True
        torn = unsure[run]
        kept &= ~torn
    return kept, torn


def row_hash(
    ns: Namespace, values: Mapping[str, pl.Expr], types: Mapping[str, DType], salt: int
) -> pl.Expr:
    """A hash of some values of a row, each engine's own, for any types."""
    hashed: pl.Expr = ns.struct(*values.values()).hash(salt)
    return hashed


def once(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The same frame, computed once though it is used twice: Polars finds that on its own where
    it is simple, and repeats whole chains of limits where it is not.
    """
    return frame.cache() if isinstance(frame, pl.LazyFrame) else frame


def new_name(names: Collection[str], wanted: str) -> str:
    """A name like `wanted` that no column has."""
    while wanted in names:
        wanted += "_"
    return wanted


def comparable(ns: Namespace, name: str, dtype: DType) -> pl.Expr:
    """A column whose order, groups and hash depend on its values alone."""
    if dtype.is_nested:
        return unordered(ns, encoded(ns, ns.col(name), dtype)).alias(name)
    return grouped(ns, ns.col(name), dtype).alias(name)


def require_columns(names: Sequence[str], columns: Columns, where: str) -> None:
    """Refuse columns that are not there, or whose values cannot be distinguished surely."""
    for name in names:
        if name not in columns:
            raise unknown_column(name, columns, where)
        dtype = columns[name].dtype
        if dtype.is_float or dtype.is_nested or not dtype.is_known:
            raise UnsupportedOperation(
                f"the column {name!r} of type {dtype} cannot make groups",
                where=where,
                remedy="use text, integers, dates or categories",
            )


def require_count(n: object, where: str) -> int:
    """A limit that is a positive integer."""
    if isinstance(n, bool) or not isinstance(n, int) or not 0 < n < 2**31:
        raise UnsupportedOperation(
            f"a limit is a positive integer below 2**31, not {show_input(n)}",
            where=where,
            remedy="write for example 10",
        )
    return n


def require_identifier(identifier: str | None, where: str) -> str:
    """The identifier, which limits need."""
    if identifier is None:
        raise UnsupportedOperation(
            "a limit needs an identifier of individuals, and unit=dp.Rows() has none",
            where=where,
            remedy=(
                'protect the frame with unit="user_id"',
                "write dp.Rows(contributions=n) where one person has at most n rows",
            ),
        )
    return identifier


def require_order(name: object, columns: Columns, where: str) -> None:
    """Refuse a column to order by that is not there, or whose order engines may not agree on."""
    if name is None:
        return
    if not isinstance(name, str) or name not in columns:
        raise unknown_column(name, columns, where)
    dtype = columns[name].dtype
    if not (dtype.is_integer or dtype.name in ("Date", "Datetime")):
        raise UnsupportedOperation(
            f"rows are not ordered by values of type {dtype}",
            where=where,
            remedy="order by a column of dates, datetimes or whole numbers",
        )


# The owner of a row: the columns by which rows belong to the same individual.
#
# An individual is a person, who is known by the identifier; or a person in one calendar window,
# which is known by its number as well. Code that groups, ranks, joins or counts individuals takes
# these columns from here. Each is computed from a row's own values, and never null, so rows of two
# individuals never meet in them.


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """A frame with the columns that identify the owners of its rows."""

    # The frame, with a further column for the number of the window where there are windows.
    frame: pl.LazyFrame
    types: dict[str, DType]  # The columns that identify individuals, and their types
    added: tuple[str, ...]  # The further column, if any

    def without(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """A frame of such rows without what was added."""
        return frame.drop(*self.added) if self.added else frame

    @classmethod
    def of(
        cls,
        frame: pl.LazyFrame,
        facts: FrameFacts,
        ns: Namespace,
        where: str,
        taken: Collection[str] = (),
    ) -> Owners:
        """The owners of a frame of individuals.

        Parameters
        ----------
        where
            The step, for messages.
        taken
            Names that no column may be given.
        """
        who = require_identifier(facts.identifier, where)
        types = {who: facts.columns[who].dtype}
        window = window_of(facts, ns)
        if window is None:
            return cls(frame, types, ())
        name = new_name({*facts.columns, *taken}, "window")
        return cls(frame.with_columns(window.alias(name)), {**types, name: INT64}, (name,))


def window_of(facts: FrameFacts, ns: Namespace) -> pl.Expr | None:
    """The number of each row's window; None where all rows of a person are one individual's."""
    if facts.time is None or facts.every is None:
        return None
    return window_number(ns, ns.col(facts.time), facts.columns[facts.time].dtype, facts.every)


def owner_columns(facts: FrameFacts, ns: Namespace) -> list[tuple[pl.Expr, DType]]:
    """The same columns as expressions in the form in which they are grouped, and their types: the
    identifier, and the window where there is one.
    """
    who = require_identifier(facts.identifier, "statistics of individuals")
    dtype = facts.columns[who].dtype
    found = [(comparable(ns, who, dtype), grouped_type(dtype))]
    window = window_of(facts, ns)
    return found if window is None else [*found, (window, INT64)]


def within_windows(
    frame: pl.LazyFrame, facts: FrameFacts, windows: Windows | None, ns: Namespace
) -> pl.LazyFrame:
    """The rows in some windows: what a plan says that it reads is all that it reads."""
    number = window_of(facts, ns)
    if windows is None or number is None or windows.are_all:
        return frame
    if windows.every == "1d":  # dates outside the calendar are read with the days next to it
        inside = number.clip(BEFORE["1d"], AFTER["1d"])
        number = ns.when(number == NO_TIME).then(number).otherwise(inside)
    if windows.none_with_time:
        return frame.filter(number == NO_TIME if windows.without else number < NO_TIME)
    kept = number > NO_TIME if windows.first is None else number >= windows.first
    if windows.last is not None:
        kept = kept & (number <= windows.last)
    return frame.filter(kept | (number == NO_TIME) if windows.without else kept)
