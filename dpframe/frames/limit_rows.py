"""At most so many rows of each individual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import as_given
from dpframe.core.exprs import Change
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.individuals import Owners
from dpframe.frames.limits import RowLimit
from dpframe.frames.sampling import (
    keep_first,
    require_columns,
    require_count,
    require_identifier,
    require_order,
)
from dpframe.frames.step import Step
from dpframe.rows.encoded import is_encodable
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
    named, then by a salted hash of their values and then by the values themselves, and the first
    `n` are kept. Other individuals' rows
    do not enter this order. Rows that are equal in everything are interchangeable. Lists, arrays
    and structs enter as texts, and no two of them have one text. The salt is drawn without looking
    at data, so the guarantee holds for each salt, and therefore on average.
    """

    engines = EVERYWHERE

    n: int
    by: tuple[str, ...] = ()
    order_by: str | None = None

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
                    f"rows are chosen by their values, and those of {name!r} of type {found.dtype} "
                    "cannot be told apart",
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
        order = {name: found.dtype for name, found in before.columns.items()} | owners.types
        within = list(dict.fromkeys([*owners.types, *self.by]))
        kept = keep_first(owners.frame, self.n, within, order, salt, ns, self.order_by)
        return owners.without(kept)

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
