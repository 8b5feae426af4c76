"""Rows of each individual in at most this many groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import as_given
from dpframe.core.exprs import Change
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.individuals import Owners
from dpframe.frames.sampling import (
    comparable,
    keep_first_of_many,
    keep_first_together,
    require_columns,
    require_count,
    require_identifier,
    require_order,
    unused,
)
from dpframe.frames.step import Step
from dpframe.kernel.frame import GroupLimit
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.layouts import grouped_type
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class LimitGroups(Step):
    """Keep the rows of each individual in at most `n` different values of the columns `by`; those
    with the least values of the column `order_by` before others, if one of them is named.

    Guarantee
    ---------
    Which values are kept depends on the individual and its values alone
    (`dpframe.frames.sampling`), so frames that differ in one individual differ in at most that
    individual's kept rows afterwards. A null is a value like others.

    Proof
    -----
    For each salt, the distinct pairs of individual and value are ordered by `order_by` if it is
    named, then by a salted hash and then by the values. The first `n` of each individual are
    kept, and a row stays if its pair does. No pair of another individual enters this order, and
    the salt is drawn without looking at data.
    """

    engines = EVERYWHERE

    n: int
    by: tuple[str, ...]
    order_by: str | None = None

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        require_count(self.n, self.words())
        if not self.by:
            raise UnsupportedOperation(
                "limit_groups needs the columns that make the groups",
                where=self.words(),
                remedy=('write limit_groups(n, by="city")', "limit rows with limit_rows(n)"),
            )
        require_columns(self.by, before.columns, self.words())
        require_order(self.order_by, before.columns, self.words())
        if self.order_by is not None and self.order_by not in self.by:
            raise UnsupportedOperation(
                f"{self.order_by!r} is not one of the columns of by=, which order the groups",
                where=self.words(),
                remedy=f"write by={[*self.by, self.order_by]!r}",
            )
        return before.limited(GroupLimit(self.n, frozenset(self.by), self.order_by))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        owners = Owners.of(frame, before, ns, self.words())
        types = {name: found.dtype for name, found in before.columns.items()} | owners.types
        names = {
            name: unused(types, f"key{i}")
            for i, name in enumerate(dict.fromkeys((*owners.types, *self.by)))
        }
        marked = owners.frame.with_columns(
            *(comparable(ns, name, types[name]).alias(key) for name, key in names.items())
        )
        keys = list(names.values())
        whose = {names[name]: grouped_type(dtype) for name, dtype in owners.types.items()}
        kept = self.keep(marked.select(*keys).unique(), names, whose, before, salt, ns)
        limited = marked.join(kept, on=keys, how="semi", nulls_equal=True).drop(*keys)
        return owners.without(limited)

    def keep(
        self,
        pairs: pl.LazyFrame,
        names: Mapping[str, str],
        whose: Mapping[str, DType],
        before: FrameFacts,
        salt: int,
        ns: Namespace,
    ) -> pl.LazyFrame:
        """The rows that are left of a frame with one row per individual and value of the columns.

        `names` maps columns to their names in it, and `whose` has the columns that identify
        individuals, with their types; text is text there, not a category.
        """
        order = self._order(names, whose, before)
        first = None if self.order_by is None else names[self.order_by]
        return keep_first_of_many(pairs, self.n, list(whose), order, salt, ns, first)

    def keep_together(
        self,
        pairs: pl.DataFrame,
        names: Mapping[str, str],
        whose: Mapping[str, DType],
        before: FrameFacts,
        salt: int,
    ) -> pl.DataFrame:
        """The same of such a frame in memory, where those of an individual follow each other."""
        if self.order_by is not None or len(whose) != 1:
            return self.keep(pairs.lazy(), names, whose, before, salt, pl).collect(
                optimizations=OPTIMIZATIONS
            )
        order = self._order(names, whose, before)
        (within,) = whose
        return keep_first_together(pairs, self.n, within, order, salt)

    def _order(
        self, names: Mapping[str, str], whose: Mapping[str, DType], before: FrameFacts
    ) -> dict[str, DType]:
        """What decides which pairs of an individual are kept."""
        order = dict(whose)
        for name in self.by:
            order[names[name]] = grouped_type(before.columns[name].dtype)
        return order

    def words(self) -> str:
        first = "" if self.order_by is None else f", order_by={self.order_by!r}"
        by = ", ".join(repr(name) for name in self.by)
        return f"limit_groups({as_given(self.n)}, by=[{by}]{first})"

    @property
    def stability(self) -> str:
        return (
            "which groups of an individual are kept depends on that individual's groups alone; "
            "rows in others are dropped, which biases results"
        )
