"""Groups with public keys, also by several sets of columns: what rows are grouped by, and which
groups are released.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import NULL, Columns
from dpframe.core.tree import Column, Literal, Named, Tree
from dpframe.frames.public import digest
from dpframe.rows.fold import domain, outer_words
from dpframe.rows.logic import IsNotNull, When
from dpframe.rows.lookup import IsIn


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A group-by, usually one whose keys are known without data.

    Every key gives a row of the result, even when no row of the frame has it; rows with other keys
    are dropped. So which groups appear says nothing about the data. Where keys are not listed
    they are chosen privately when the query runs.
    """

    by: tuple[Named, ...]  # The grouping expressions and the names of their columns
    keys: pl.DataFrame  # The public keys: one column for each of `by`, of its type, each row once
    origin: str  # Where the keys come from, for the plan
    # Whether the keys are still to be chosen; until then there are no keys.
    discovered: bool = False

    @property
    def size(self) -> int:
        """The number of keys that are known."""
        return self.keys.height

    def with_keys(self, keys: pl.DataFrame) -> Groups:
        """The same groups with keys that were chosen."""
        return replace(self, keys=keys, discovered=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.by)

    def list_keys(self, length: int = 100) -> str:
        """The keys, in a plan; the first ones where there are many."""
        shown: list[str] = []
        for row in self.keys.head(length).rows():
            key = ", ".join("null" if v is None else _key(v) for v in row)
            shown.append(key if len(row) == 1 else f"({key})")
            if sum(len(s) + 2 for s in shown) > length:
                break
        rest = self.size - len(shown)
        return ", ".join(shown) + (f" and {rest} more" if rest else "")

    def words(self) -> str:
        by = (
            outer_words(n.tree) if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
            for n in self.by
        )
        return f"group_by({', '.join(by)})"


def _key(value: object) -> str:
    return repr(value) if isinstance(value, (str, bytes)) else str(value)


def digest_of_keys(groups: Groups) -> str:
    """A digest of the public keys, equal for all forms of the same keys."""
    keys = groups.keys
    for seen, found in tuple(_DIGESTS):
        if seen() is keys:
            return found
    small = (pl.Int8, pl.Int16, pl.Int32)
    columns = keys.iter_columns()
    found = digest(pl.DataFrame([c.cast(pl.Int64) if c.dtype in small else c for c in columns]))
    _DIGESTS.append((weakref.ref(keys), found))
    return found


def digest_of_sets(digests: Iterable[str]) -> str:
    """One digest of the public keys of several sets of columns, in any order."""
    return sha256(" ".join(sorted({*digests})).encode()).hexdigest()


_DIGESTS: Final = deque[tuple["weakref.ref[pl.DataFrame]", str]](maxlen=8)
"""Digests of the last frames of keys: a plan needs one many times, and there may be millions of
keys.
"""


# -- Several sets of columns ----------------------------------------------------------------------


GROUPING = "grouping"
"""The column that shows which columns a row's set leaves out."""


@dataclass(frozen=True, eq=False)
class SetGroups(Groups):
    """Groups by several sets of the columns. The keys are the product of those of each column, in
    the order of the columns, and a row counts only where all of its values are among them.
    """

    # The columns of each set, by their numbers, in the order in which the sets are released.
    sets: tuple[tuple[int, ...], ...] = ()
    written: str = ""  # How the sets were written

    @cached_property
    def values(self) -> tuple[pl.Series, ...]:
        """The keys of each column."""
        return tuple(column.unique(maintain_order=True) for column in self.keys.get_columns())

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many there are."""
        return tuple(map(len, self.values))

    def words(self) -> str:
        return f"group_by({self.written})"

    def margin(self, kept: tuple[int, ...]) -> Groups | None:
        """The groups by some of the columns alone; None where that is all rows together."""
        if not kept:
            return None
        by: tuple[Named, ...] = tuple(self.by[i] for i in kept)
        return Groups(by, self.table(kept), self.origin)

    def entries(self, kept: tuple[int, ...]) -> int:
        """How many groups there are by some of the columns."""
        return math.prod(self.sizes[i] for i in kept)

    def grouping(self, kept: tuple[int, ...]) -> int:
        """The columns that a set leaves out as bits, the first column's highest."""
        width = len(self.by)
        return sum(1 << (width - 1 - i) for i in range(width) if i not in kept)

    def result_groups(self) -> Groups:
        """The groups of all sets as they stand in a result."""
        frames = []
        for kept in self.sets:
            table = self.table(kept)
            columns = [
                table[name] if i in kept else pl.Series(name, [None], dtype=dtype)
                for i, (name, dtype) in enumerate(self.keys.schema.items())
            ]
            height = self.entries(kept)
            columns = [c if len(c) == height else c.new_from_index(0, height) for c in columns]
            bits = pl.Series(GROUPING, [self.grouping(kept)], dtype=pl.UInt32)
            frames.append(pl.DataFrame([*columns, bits.new_from_index(0, height)]))
        return Groups(self.by, pl.concat(frames), self.origin)

    def table(self, kept: tuple[int, ...]) -> pl.DataFrame:
        """The keys of the groups by some of the columns alone."""
        frames = [self.values[i].to_frame() for i in kept]
        if not frames:
            return pl.DataFrame()
        made = frames[0]
        for frame in frames[1:]:
            made = made.join(frame, how="cross", maintain_order="left_right")
        return made


# Groups of several queries of the same rows as grouping sets of the finest of them.
#
# The results stay as requested. A table by fewer columns counts rows for any values of the others.
# So where the keys of a column are not all of its values, one more group holds its other values. It
# is in no result; the smaller tables are sums over it as well.


_MOST: Final = 1 << 20
_MORE: Final = 2
"""Times as many groups are worth what is drawn jointly, or as many as are counted in no time."""
_FEW: Final = 10_000
_SEPARABLE: Final = frozenset({"String", "Boolean", "Date", "Enum"})
"""Types besides integers whose listed values every engine distinguishes from others."""


@dataclass(frozen=True, slots=True, eq=False)
class SetsOfQuery:
    """The grouping sets that one query shows, of those that all have in common."""

    sets: tuple[tuple[int, ...], ...]  # The columns of each
    # Which of its groups are shown, in which order; None for all of them as they are.
    rows: tuple[NDArray[np.int64] | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CommonSets:
    """What several queries have in common."""

    groups: SetGroups  # The groups of all of them
    shown: tuple[SetsOfQuery, ...]  # What each shows


@dataclass(frozen=True, slots=True, eq=False)
class ListedKeys:
    """Groups whose keys are all combinations of the values of each column."""

    groups: Groups | None  # The groups; None for all rows together
    # By the expression of each column, the values that are listed for it.
    values: Mapping[Tree, frozenset[object]]

    @classmethod
    def of(cls, groups: Groups | None) -> ListedKeys | None:
        """None where the keys are others, or are not listed."""
        if groups is None:
            return cls(None, {})
        found = _values(groups)
        if found is None:
            return None
        trees = [named.tree for named in groups.by]
        values = {t: frozenset(v.to_list()) for t, v in zip(trees, found, strict=True)}
        return cls(groups, values) if len(values) == len(trees) else None


class Margins:
    """The tables of the same rows that are margins of others. A column with its keys gets a
    number, so that to compare two tables is to compare a few numbers, and looks at no key.

    Parameters
    ----------
    columns
        The unit of the rows of all tables.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._numbers: dict[tuple[Tree, frozenset[object]], int] = {}
        self._whole: set[int] = set()
        self._separable: set[int] = set()
        self._tables: dict[ListedKeys, frozenset[int]] = {}

    def add(self, table: ListedKeys) -> None:
        """One more table."""
        self._tables[table] = frozenset(self._number(*column) for column in table.values.items())

    def is_margin(self, table: ListedKeys, fine: ListedKeys) -> bool:
        """Whether a table is a margin of another: each of its columns has the same keys there,
        and what is left out can be distinguished.
        """
        kept, every = self._tables[table], self._tables[fine]
        if not kept <= every:
            return False
        if isinstance(fine.groups, SetGroups):  # whose totals are of listed keys alone
            return every - kept <= self._whole
        if isinstance(table.groups, SetGroups):  # likewise, and others may leave any column out
            return every <= self._whole
        return every - kept <= self._separable

    def _number(self, tree: Tree, keys: frozenset[object]) -> int:
        unused = len(self._numbers)
        number = self._numbers.setdefault((tree, keys), unused)
        if number == unused:
            if _are_all(tree, keys, self._columns):
                self._whole.add(number)
            if number in self._whole or _have_rest(tree, keys, self._columns):
                self._separable.add(number)
        return number


def common_sets(asked: Sequence[Groups | None], columns: Columns) -> CommonSets | None:
    """The groups of several queries, where all others are margins of the first.

    Returns
    -------
    CommonSets or None
        None where there would be too many groups.
    """
    finest = asked[0]
    values = None if finest is None else _values(finest)
    if finest is None or values is None:
        return None
    trees = [named.tree for named in finest.by]
    places = [_places(groups, trees) for groups in asked]
    left_out = {i for kept in places for i in range(len(trees)) if i not in kept}
    rests = [
        i in left_out and not _are_all(trees[i], values[i].to_list(), columns)
        for i in range(len(trees))
    ]
    by = tuple(
        Named(named.name, _with_rest(named.tree, mine) if rest else named.tree)
        for named, mine, rest in zip(finest.by, values, rests, strict=True)
    )
    listed = [
        pl.concat([mine, pl.Series(mine.name, [None], dtype=mine.dtype)]) if rest else mine
        for mine, rest in zip(values, rests, strict=True)
    ]
    size, before = math.prod(map(len, listed)), math.prod(map(len, values))
    if size > _MOST or size > max(_FEW, _MORE * before):
        return None
    keys = listed[0].to_frame()
    for column in listed[1:]:
        keys = keys.join(column.to_frame(), how="cross", maintain_order="left_right")
    shown = tuple(
        _sets_of_query(groups, kept, listed, tuple(names.name for names in finest.by))
        for groups, kept in zip(asked, places, strict=True)
    )
    sets = tuple(dict.fromkeys(kept for one in shown for kept in one.sets))
    sets = tuple(sorted(sets, key=lambda kept: (-len(kept), kept)))
    origin = finest.origin
    if any(rests):
        rest = " and ".join(named.name for named, has in zip(by, rests, strict=True) if has)
        origin = f"{origin}, and null for any other value of {rest}"
    return CommonSets(SetGroups(by, keys, origin, False, sets, _write_sets(finest, sets)), shown)


def _places(groups: Groups | None, trees: Sequence[Tree]) -> tuple[int, ...]:
    """The columns of a query, in its own order, by their numbers in the finest."""
    return () if groups is None else tuple(trees.index(named.tree) for named in groups.by)


def _sets_of_query(
    groups: Groups | None,
    places: tuple[int, ...],
    listed: Sequence[pl.Series],
    names: Sequence[str],
) -> SetsOfQuery:
    if isinstance(groups, SetGroups):  # of columns with all of their values
        sets = tuple(tuple(sorted(places[i] for i in kept)) for kept in groups.sets)
        rows = tuple(
            _rows_of(groups.table(kept), [places[i] for i in kept], listed) for kept in groups.sets
        )
        return SetsOfQuery(sets, rows)
    if groups is None:
        return SetsOfQuery(((),), (None,))
    return SetsOfQuery((tuple(sorted(places)),), (_rows_of(groups.keys, places, listed),))


def _rows_of(
    keys: pl.DataFrame, places: Sequence[int], listed: Sequence[pl.Series]
) -> NDArray[np.int64] | None:
    """The place of each key in the product of all values of its columns, in the finest's order."""
    if not places:  # all rows together
        return None
    found = np.zeros(keys.height, dtype=np.int64)
    for place, column in sorted(zip(places, keys.iter_columns(), strict=True), key=lambda p: p[0]):
        values = listed[place]
        numbers = pl.DataFrame({"value": values, "at": np.arange(len(values))})
        at = column.to_frame("value").join(
            numbers, on="value", how="left", nulls_equal=True, maintain_order="left"
        )
        found = found * len(values) + at["at"].to_numpy()
    everything = math.prod(len(listed[place]) for place in places)
    if keys.height == everything and (found == np.arange(everything)).all():
        return None
    return found


def _values(groups: Groups) -> tuple[pl.Series, ...] | None:
    """The keys of each column, where the groups are all combinations of them."""
    if groups.discovered or not groups.size:
        return None
    values = tuple(column.unique(maintain_order=True) for column in groups.keys.iter_columns())
    return values if math.prod(map(len, values)) == groups.size else None


def _are_all(tree: Tree, keys: Collection[object], columns: Columns) -> bool:
    """Whether the keys are all values that an expression is known to have."""
    found = domain(tree, columns)
    if found.categories is None or (found.nullable and None not in keys):
        return False
    return {*found.categories} <= {*keys}


def _have_rest(tree: Tree, keys: Collection[object], columns: Columns) -> bool:
    """Whether one more group can take all other values: null must not be a key."""
    dtype = domain(tree, columns).dtype
    if None in keys or not (dtype.is_integer or dtype.name in _SEPARABLE):
        return False
    nullable = When().of(IsNotNull().of(tree), tree, Literal(None, NULL))
    return domain(nullable, columns).dtype == dtype


def _with_rest(tree: Tree, keys: pl.Series) -> Tree:
    """The expression where it has one of the keys, else null."""
    listed = IsIn(tuple(keys.sort().to_list()), False).of(tree)
    return When().of(listed, tree, Literal(None, NULL))


def _write_sets(finest: Groups, sets: Sequence[tuple[int, ...]]) -> str:
    names = finest.names
    shown = []
    for kept in sets:
        inside = ", ".join(names[i] for i in kept)
        shown.append(f"({inside}{',' if len(kept) == 1 else ''})")
    return f"grouping_sets([{', '.join(shown)}])"
