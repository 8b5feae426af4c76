"""Rows that meet a condition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.core.domain import columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.refine import refine
from dpframe.frames.step import Step
from dpframe.rows.fold import domain, lower, outer_words, words
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class Filter(Step):
    """Keep rows for which every predicate is true; null counts as false.

    What the predicates imply of a column (it is not null, it lies in an interval) is known
    afterwards.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    A predicate is an expression of row operations, so its value in a row depends on that row alone
    and is never an error. Each row is kept or dropped on its own; rows that both frames share
    meet the same fate in both.
    """

    engines = EVERYWHERE

    predicates: tuple[Tree, ...]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, predicates=tuple(map(change, self.predicates)))

    def facts(self, before: FrameFacts) -> FrameFacts:
        table = dict(before.columns)
        for predicate in self.predicates:
            found = domain(predicate, before.columns)
            if not found.dtype.is_boolean:
                raise UnsupportedOperation(
                    f"a filter needs a Boolean expression, and this has type {found.dtype}",
                    where=f"filter({outer_words(predicate)})",
                    remedy="compare it with a value: "
                    + f"{words(predicate)} {'>=' if found.dtype.is_numeric else '=='} value",
                )
        for predicate in self.predicates:
            table = refine(table, predicate)
        return replace(before, columns=columns(table), complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.filter(*(lower(p, before.columns, ns) for p in self.predicates))

    def words(self) -> str:
        return f"filter({', '.join(outer_words(p) for p in self.predicates)})"

    @property
    def stability(self) -> str:
        return "each row is kept or dropped on its own values"


@dataclass(frozen=True, slots=True)
class DropNulls(Step):
    """Drop rows with a null in any of the columns.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    It is a filter whose condition, that no value is null, looks at one row.
    """

    engines = EVERYWHERE

    names: tuple[str, ...]

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        table = {
            name: found.with_null(False) if name in self.names else found
            for name, found in before.columns.items()
        }
        return replace(before, columns=columns(table), complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.filter(*(ns.col(name).is_not_null() for name in self.names))

    def words(self) -> str:
        return f"drop_nulls({', '.join(repr(n) for n in self.names)})"

    @property
    def stability(self) -> str:
        return "each row is kept or dropped on its own values"
