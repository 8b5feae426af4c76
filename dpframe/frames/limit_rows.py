"""At most this many rows of each individual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import as_given
from dpframe.core.exprs import Change
from dpframe.errors import UnsupportedOperation, require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.individuals import Owners
from dpframe.frames.sampling import (
    first_ranked,
    hashes,
    keep_first,
    least_of_runs,
    require_columns,
    require_count,
    require_identifier,
    require_order,
    unused,
)
from dpframe.frames.step import Step
from dpframe.kernel.frame import RowLimit
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.layouts import is_encodable
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class LimitRows(Step):
    """Keep at most `n` rows of each individual, or of each individual and value of `by`; those with
    the least values of the column `order_by` before others, if one is named.

    Guarantee
    ---------
    Which rows of an individual are kept depends on these rows alone (`dpframe.frames.sampling`), so
    frames that differ in one individual differ in at most that individual's kept rows afterwards.

    Proof
    -----
    For each salt, rows of one individual (and value of `by`) are ordered by `order_by` if it is
    named, then by a salted hash of their values and then by the values themselves. The first `n`
    are kept. Other individuals' rows do not enter this order. Rows that are equal in everything
    are interchangeable. Lists, arrays and structs enter as texts, and no two of them have one
    text. The salt is drawn without looking at data, so the guarantee holds for each salt, and
    therefore on average.

    The frames of a release have the columns that its plan names, and no others. So all of its
    tables have one choice of rows, but for rows that are equal in these columns and can stand for
    each other. Where several releases rest on one choice of rows, each plan names all columns of
    the frame.

    Parameters
    ----------
    n, by, order_by
        How many rows, of what, and which first.
    """

    engines = EVERYWHERE

    n: int
    by: tuple[str, ...] = ()
    order_by: str | None = None

    @staticmethod
    def columns_of(before: FrameFacts) -> list[str]:
        """The columns whose values distinguish rows, in the order of their names."""
        return sorted(before.columns)

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        require_count(self.n, self.words())
        require_columns(self.by, before.columns, self.words())
        require_order(self.order_by, before.columns, self.words())
        for name, found in before.columns.items():
            if not is_encodable(found.dtype):
                raise UnsupportedOperation(
                    f"rows are chosen by their values, and values of {name!r}, of type "
                    f"{found.dtype}, cannot be distinguished",
                    where=self.words(),
                    remedy=f"drop {name!r} first",
                )
        # Everybody has one value of the identifier.
        by = frozenset(self.by) - {before.identifier}
        return before.limited(RowLimit(self.n, by, self.order_by))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        owners = Owners.of(frame, before, ns, self.words())
        order = {name: before.columns[name].dtype for name in self.columns_of(before)}
        within = list(dict.fromkeys([*owners.types, *self.by]))
        order |= owners.types
        first, taken = self.order_by, before.columns
        kept = keep_first(owners.frame, self.n, within, order, salt, ns, first, taken)
        return owners.without(kept)

    def keep(
        self, rows: pl.LazyFrame, names: Mapping[str, str], before: FrameFacts, salt: int
    ) -> pl.LazyFrame:
        """The rows that are left of a frame on Polars, where no column decides first and there are
        no windows.

        `names` maps columns to their names there; the frame may have others.
        """
        order, within = self._named(names, before)
        return keep_first(rows, self.n, within, order, salt, pl)

    def _named(
        self, names: Mapping[str, str], before: FrameFacts
    ) -> tuple[dict[str, DType], list[str]]:
        """The columns that decide, and of these whose rows they are."""
        assert before.identifier is not None
        require(before.time is None, "rows are limited over all time")
        order = {names[name]: before.columns[name].dtype for name in self.columns_of(before)}
        return order, [names[name] for name in dict.fromkeys((before.identifier, *self.by))]

    def keep_together(
        self,
        rows: pl.DataFrame,
        names: Mapping[str, str],
        places: NDArray[np.int64],
        start: NDArray[np.int64],
        before: FrameFacts,
        salt: int,
    ) -> NDArray[np.int64]:
        """Which are left of some rows in memory on Polars, where no column decides first: those of
        an individual, or of its values of `by`, follow each other.

        Parameters
        ----------
        names
            What the columns are called there.
        places, start
            The place of each of the rows in `rows`, and where those of another individual start.
        """
        order, within = self._named(names, before)
        if order.keys() <= {*within}:  # all rows of a run are equal
            sizes = np.diff(np.append(start, places.size))
            return np.flatnonzero(np.arange(places.size) - np.repeat(start, sizes) < self.n)
        kept, torn = least_of_runs(hashes(rows, order, salt)[places], start, self.n)
        sure = np.flatnonzero(kept)
        if not torn.any():
            return sure
        position = unused(order, "position")
        unsure = np.flatnonzero(torn)
        rest = rows.select(*order)[places[unsure]].with_columns(pl.Series(position, unsure))
        ranked = first_ranked(rest.lazy(), self.n, within, order, salt, pl).collect(
            optimizations=OPTIMIZATIONS
        )
        return np.concatenate([sure, ranked[position].to_numpy()])

    def words(self) -> str:
        by = ", ".join(repr(name) for name in self.by)
        first = "" if self.order_by is None else f", order_by={self.order_by!r}"
        return f"limit_rows({as_given(self.n)}{f', by=[{by}]' if by else ''}{first})"

    @property
    def stability(self) -> str:
        return (
            "which of an individual's rows are kept depends on these rows alone; others are "
            "dropped, which biases results"
        )
