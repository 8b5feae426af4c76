"""What results look like: how one result per group, or several, stands in a released frame.

An output that is alone makes its own frame; among others it becomes one column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.frames.groups import Groups

Ends = tuple[pl.Series, pl.Series]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A result."""

    values: pl.Series  # As many for each group as its shape has rows
    shape: Shape  # How it stands in a frame
    ends: Ends | None = None  # Its interval


class Shape:
    """One value per group, which may be a list."""

    __slots__ = ()

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels of several values of a group; None for one, or a list of any length."""
        return None

    @property
    def is_choice(self) -> bool:
        """Whether values are choices among candidates, even where they are numbers."""
        return False

    @property
    def rows(self) -> int:
        """How many values there are for each group."""
        return 1

    @property
    def is_table(self) -> bool:
        """Whether each group has rows of its own in it."""
        return False

    @property
    def chooses_groups(self) -> bool:
        """Whether its values are groups, so that no others are released."""
        return False

    def names(self, output: str) -> list[str]:
        """The columns, besides keys, of the frame that an output makes alone, where it is a
        table.

        Ends of intervals are named after them, and are in no list.
        """
        return []

    def columns(self, column: Column, groups: Groups | None) -> list[pl.Series]:
        """The result as columns of a frame with other outputs, with the ends of its interval."""
        return _with_ends(column.values, column.ends)

    def frame(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        """The result as a frame, with the keys of groups."""
        return pl.DataFrame([*_keys(groups), *self.columns(column, groups)])


@dataclass(frozen=True, slots=True)
class OneChoice(Shape):
    """One winner."""

    @property
    def is_choice(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Listed(Shape):
    """A list of numbers, as many for each group as there are `items`, which name them."""

    items: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.items


ONE = Shape()
"""A number, or another single value, for each group."""


@dataclass(frozen=True, slots=True, eq=False)
class Later:
    """A frame that is made where it is read: plans of many bins do not use their labels."""

    make: Callable[[], pl.DataFrame]  # Makes it
    height: int  # How many rows it has


@dataclass(frozen=True, slots=True, eq=False)
class _Table(Shape):
    """Several values per group: a row each in a table, or a list each in a frame with other
    outputs.
    """

    # The public columns, with a row for each value of a group; long ones may be made later.
    public: pl.DataFrame | Later

    @property
    def beside(self) -> pl.DataFrame:
        """The public columns."""
        return self.public.make() if isinstance(self.public, Later) else self.public

    @property
    def labels(self) -> tuple[str, ...] | None:
        listed = self.beside.to_series(0).cast(pl.String).fill_null("null")
        return tuple(listed.to_list())

    @property
    def rows(self) -> int:
        return self._height

    @property
    def _height(self) -> int:
        """How many rows a group has in the table."""
        return self.public.height

    @property
    def is_table(self) -> bool:
        return True

    def columns(self, column: Column, groups: Groups | None) -> list[pl.Series]:
        name = column.values.name
        made = [_lists(self._items(column, groups), self._height, name)]
        if column.ends is not None:
            made += [_lists(end, self._height, n) for end, n in _named_ends(name, column.ends)]
        return made

    def frame(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        table = self._rows(column, groups)
        if groups is None:
            return table
        keys = groups.keys
        repeated = keys.select(pl.all().repeat_by(self._height).explode()) if keys.height else keys
        return pl.concat([repeated, table], how="horizontal")

    def _tile(self, groups: Groups | None) -> pl.DataFrame:
        """The public columns for all groups."""
        size = 1 if groups is None else groups.size
        return pl.concat([self.beside] * size) if size else self.beside.clear()

    def _items(self, column: Column, groups: Groups | None) -> pl.Series:
        """What lists hold."""
        raise NotImplementedError

    def _rows(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        """The table without the keys of groups."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Counts(_Table):
    """A count for each category or bin; lists are of structs."""

    has_ends: bool  # Whether bins come with their ends

    def names(self, output: str) -> list[str]:
        edges = ("lower", "upper") if self.has_ends else ()
        return [output, *edges, "count"]

    def _items(self, column: Column, groups: Groups | None) -> pl.Series:
        return self._tile(groups).with_columns(column.values.alias("count")).to_struct()

    def _rows(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        counts = column.values.alias("count")
        return self._tile(groups).with_columns(_with_ends(counts, column.ends))


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative(_Table):
    """The number of rows up to each edge, and its share of all; lists are of structs."""

    # Whether the number of all rows comes after those up to edges; it is in no row of a table.
    has_total: bool

    @property
    def labels(self) -> tuple[str, ...] | None:
        edges = self.beside.to_series(0).cast(pl.String).to_list()
        return (*edges, *["all rows"] * self.has_total)

    @property
    def rows(self) -> int:
        return self._height + self.has_total

    def names(self, output: str) -> list[str]:
        return [output, "count", "share"]

    def columns(self, column: Column, groups: Groups | None) -> list[pl.Series]:
        return super(Cumulative, self).columns(self._up_to_edges(column), groups)

    def frame(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        return super(Cumulative, self).frame(self._up_to_edges(column), groups)

    def _up_to_edges(self, column: Column) -> Column:
        """Counts with their shares as structs, and the ends of counts, without totals."""
        counts = self._grid(column.values).astype(np.float64)
        totals = counts[:, -1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(totals >= 1, np.clip(counts / totals, 0.0, 1.0), np.nan)
        made = pl.DataFrame(
            {
                "count": self._flatten(column.values),
                "share": pl.Series(shares[:, : self._height].reshape(-1)).fill_nan(None),
            }
        )
        ends = column.ends and (self._flatten(column.ends[0]), self._flatten(column.ends[1]))
        return Column(made.to_struct(column.values.name), self, ends)

    def _grid(self, values: pl.Series) -> NDArray[np.int64]:
        return values.to_numpy().reshape(-1, self.rows)

    def _flatten(self, values: pl.Series) -> pl.Series:
        return pl.Series(self._grid(values)[:, : self._height].reshape(-1), dtype=pl.Int64)

    def _items(self, column: Column, groups: Groups | None) -> pl.Series:
        return self._tile(groups).with_columns(*column.values.struct.unnest()).to_struct()

    def _rows(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        counts, shares = column.values.struct.unnest().get_columns()
        return self._tile(groups).with_columns(*_with_ends(counts, column.ends), shares)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks(_Table):
    """Several winners in their order."""

    @property
    def is_choice(self) -> bool:
        return True

    def names(self, output: str) -> list[str]:
        return [output, *self.beside.columns]

    def _items(self, column: Column, groups: Groups | None) -> pl.Series:
        return column.values

    def _rows(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        return self._tile(groups).select(*_with_ends(column.values, column.ends), pl.all())


@dataclass(frozen=True, slots=True, eq=False)
class BestGroups(_Table):
    """Groups by their number among the keys: the frame has the keys of these alone."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        return tuple(map(str, self.beside["rank"].to_list())) if self.is_table else None

    @property
    def is_choice(self) -> bool:
        return True

    @property
    def chooses_groups(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return self.rows > 1

    def names(self, output: str) -> list[str]:
        return self.beside.columns if self.is_table else []

    def frame(self, column: Column, groups: Groups | None) -> pl.DataFrame:
        assert groups is not None
        rows = groups.keys[column.values.to_list()]
        return rows.with_columns(self.beside) if self.is_table else rows

    def _items(self, column: Column, groups: Groups | None) -> pl.Series:
        return column.values


def ranks(winners: int) -> pl.DataFrame:
    """The places of this many winners."""
    return pl.DataFrame({"rank": list(range(1, winners + 1))})


def _keys(groups: Groups | None) -> Sequence[pl.Series]:
    return [] if groups is None else groups.keys.get_columns()


def _with_ends(values: pl.Series, ends: Ends | None) -> list[pl.Series]:
    """A column, with the ends of its interval after it."""
    if ends is None:
        return [values]
    return [values, *(end.alias(name) for end, name in _named_ends(values.name, ends))]


def _named_ends(name: str, ends: Ends) -> tuple[tuple[pl.Series, str], ...]:
    return (ends[0], f"{name}_low"), (ends[1], f"{name}_high")


def _lists(flat: pl.Series, rows: int, name: str) -> pl.Series:
    """One list of `rows` values per group."""
    numbers = pl.int_range(len(flat), eager=True) // rows
    frame = pl.DataFrame({"i": numbers, "v": flat})
    return frame.group_by("i", maintain_order=True).agg("v")["v"].alias(name)
