"""Rows without those of groups that a release has found before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change, map_named
from dpframe.core.tree import Named
from dpframe.frames.facts import FrameFacts
from dpframe.frames.public import brought, grouped_keys
from dpframe.frames.relation import Relation
from dpframe.frames.sampling import unused
from dpframe.frames.step import Step
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import grouped
from dpframe.rows.operation import Namespace

__all__ = ["WithoutFound", "rounds_of", "without"]


@dataclass(frozen=True, slots=True)
class WithoutFound(Step):
    """Leave out rows of groups that earlier rounds of the same release found.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    The groups are what rounds before released, the same for both frames by the time that this round
    begins. Whether a row stays follows from its own key, an expression of row operations, and from
    that list: it is a filter.

    Parameters
    ----------
    by
        What rows are grouped by.
    rounds
        How many rounds there are.
    found
        The groups that were found, none before the first round: one column for each of `by`, in
        their order. No part of a plan, which is made before there are any.
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]
    rounds: int
    found: pl.DataFrame = field(repr=False, compare=False)

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        return replace(before, complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        keys = [unused(before.columns, f"key{i}_") for i in range(len(self.by))]
        made = [
            grouped(ns, lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype)
            for n in self.by
        ]
        marked = frame.with_columns(*(e.alias(key) for e, key in zip(made, keys, strict=True)))
        found = brought(grouped_keys(self.found, keys), ns)
        return marked.join(found, on=keys, how="anti", nulls_equal=True).drop(*keys)

    def words(self) -> str:
        by = ", ".join(outer_words(n.tree) for n in self.by)
        return f"leave out groups of {by} that rounds before found, of {self.rounds} rounds"

    @property
    def stability(self) -> str:
        return "each row is left out or not by its own key, and by what rounds before released"


def rounds_of(relation: Relation) -> int:
    """In how many rounds groups of a frame are found."""
    steps = [step for step, _ in relation.steps if isinstance(step, WithoutFound)]
    return steps[-1].rounds if steps else 1


def without(relation: Relation, found: pl.DataFrame) -> Relation:
    """The frame of a later round, when these groups are found."""
    steps = tuple(
        (replace(step, found=found) if isinstance(step, WithoutFound) else step, facts)
        for step, facts in relation.steps
    )
    return replace(relation, steps=steps)
