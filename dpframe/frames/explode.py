"""Rows for the elements of a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.core.domain import columns
from dpframe.core.engines import POLARS
from dpframe.core.exact import as_given
from dpframe.core.exprs import Change
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.sampling import require_count
from dpframe.frames.step import Step
from dpframe.kernel.frame import copy_limits, rename_limits
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import unknown_column


@dataclass(frozen=True, slots=True)
class Explode(Step):
    """One row for each of the first elements of a list; a null for none.

    Guarantee
    ---------
    A row becomes at most `max_length` rows, from its own values.

    Proof
    -----
    The list is cut after `max_length` elements before it is exploded, and an empty or missing list
    makes one row. The limits of an individual's rows are multiplied by that number; those on groups
    of other columns still hold, those on groups of the exploded column do not.

    Parameters
    ----------
    column
        Of lists, or of arrays, whose width is known.
    max_length
        How many elements count; None for an array's width.
    """

    engines = frozenset((POLARS,))

    column: str
    max_length: int | None

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        times = self.times(before)
        inner = before.columns[self.column].inner
        assert inner is not None
        table = {**before.columns, self.column: inner.with_null()}
        kept = {name: name for name in before.columns if name != self.column}
        limits = copy_limits(rename_limits(before.limits, kept), times)
        return replace(
            before,
            columns=columns(table),
            complete=False,
            copies=before.copies * times,
            limits=limits,
        )

    def times(self, before: FrameFacts) -> int:
        """How many rows one row becomes at most."""
        if self.column not in before.columns:
            raise unknown_column(self.column, before.columns, self.words())
        dtype = before.columns[self.column].dtype
        if dtype.name not in ("List", "Array") or dtype.inner is None:
            raise UnsupportedOperation(
                f"{self.column!r} of type {dtype} has no elements",
                where=self.words(),
                remedy="name a column of lists: .explode(column, max_length=n)",
            )
        if self.max_length is not None:
            return require_count(self.max_length, self.words())
        if dtype.name == "Array" and dtype.width is not None:
            return max(1, dtype.width)
        raise UnboundedSensitivity(
            f"the lists of {self.column!r} may have any length, so one row could become any number "
            "of rows",
            where=self.words(),
            remedy=f"write explode({self.column!r}, max_length=n), where n elements count",
        )

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        column = ns.col(self.column)
        if before.columns[self.column].dtype.name == "Array":
            column = column.arr.to_list()
        first = column.list.head(self.times(before))
        # an empty list becomes a null row before Polars 2, and no row since
        first = ns.when(first.list.len() > 0).then(first)
        return frame.with_columns(first.alias(self.column)).explode(self.column)

    def words(self) -> str:
        length = "" if self.max_length is None else f", max_length={as_given(self.max_length)}"
        return f"explode({self.column!r}{length})"

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False

    @property
    def stability(self) -> str:
        return "each row becomes at most as many rows as elements count; more are dropped"
