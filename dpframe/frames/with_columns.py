"""New and changed columns, row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change, map_named
from dpframe.core.tree import Column, Named
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.step import Step
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class WithColumns(Step):
    """Add or replace columns, each computed from its own row.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    Each row becomes exactly one row. Its new values are those of row operations, total functions of
    that row: they yield a value or null, never an error. So a row that both frames share becomes
    the same row in both.
    """

    engines = EVERYWHERE

    named: tuple[Named, ...]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, named=map_named(self.named, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        unique_names(self.named)
        made = {n.name: domain(n.tree, before.columns) for n in self.named}
        changed = {n.name for n in self.named if n.tree != Column(n.name)}
        kept = {name: name for name in before.columns if name not in changed}
        return before.changed({**before.columns, **made}, kept, self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.with_columns(
            *(lower(n.tree, before.columns, ns).alias(n.name) for n in self.named)
        )

    def words(self) -> str:
        return f"with_columns({_made(self.named)})"

    @property
    def computes(self) -> bool:
        return any(not isinstance(n.tree, Column) for n in self.named)

    @property
    def stability(self) -> str:
        return "each row is computed from its own values"


@dataclass(frozen=True, slots=True)
class Select(Step):
    """Keep or compute columns, each from its own row.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    As for `with_columns`: each row becomes exactly one row, by total functions of that row. The
    number of rows does not change, because a constant is broadcast to the frame's length.
    """

    engines = EVERYWHERE

    named: tuple[Named, ...]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, named=map_named(self.named, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        unique_names(self.named)
        made: dict[str, Domain] = {n.name: domain(n.tree, before.columns) for n in self.named}
        kept: dict[str, str] = {}
        for n in self.named:
            if isinstance(n.tree, Column):
                kept.setdefault(n.tree.name, n.name)
        return before.changed(some_columns(made, self.words()), kept, self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        if not self.named:  # only the number of rows is read, and without columns there is none
            return frame
        # with_columns first: a select of constants alone would yield one row
        made = frame.with_columns(
            *(lower(n.tree, before.columns, ns).alias(n.name) for n in self.named)
        )
        return made.select(*(n.name for n in self.named))

    def words(self) -> str:
        return f"select({_made(self.named)})"

    @property
    def computes(self) -> bool:
        return any(not isinstance(n.tree, Column) for n in self.named)

    @property
    def stability(self) -> str:
        return "each row is computed from its own values"


@dataclass(frozen=True, slots=True)
class Rename(Step):
    """Give columns other names.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    Rows and their values stay as they are. New names do not depend on data.
    """

    engines = EVERYWHERE

    mapping: tuple[tuple[str, str], ...]

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        new = dict(self.mapping)
        names = [new.get(name, name) for name in before.columns]
        for name in names:
            if names.count(name) > 1:
                raise UnsupportedOperation(
                    f"two columns would be named {name!r}",
                    where=self.words(),
                    remedy="drop one of them first, or choose another name",
                )
        made = dict(zip(names, before.columns.values(), strict=True))
        return before.changed(made, dict(zip(before.columns, names, strict=True)), self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        new = dict(self.mapping)
        return frame.select(*(ns.col(n).alias(new.get(n, n)) for n in before.columns))

    def words(self) -> str:
        return "rename({" + ", ".join(f"{a!r}: {b!r}" for a, b in self.mapping) + "})"

    @property
    def stability(self) -> str:
        return "rows stay as they are"


@dataclass(frozen=True, slots=True)
class Drop(Step):
    """Forget columns.

    Guarantee
    ---------
    1-stable: frames that differ in k rows differ in at most k rows afterwards.

    Proof
    -----
    Each row becomes one row, with fewer of its values. Rows that become equal stay several rows.
    """

    engines = EVERYWHERE

    names: tuple[str, ...]

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        kept = {name: found for name, found in before.columns.items() if name not in self.names}
        same = {name: name for name in kept}
        return before.changed(some_columns(kept, self.words()), same, self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.drop(*self.names)

    def words(self) -> str:
        return f"drop({', '.join(repr(n) for n in self.names)})"

    @property
    def stability(self) -> str:
        return "rows stay as they are"


def some_columns(table: dict[str, Domain], where: str) -> dict[str, Domain]:
    """Refuse a frame without columns: engines take it for a frame without rows."""
    if not table:
        raise UnsupportedOperation(
            "no column would be left, and a frame without columns has no rows",
            where=where,
            remedy="keep at least one column",
        )
    return table


def _made(named: tuple[Named, ...]) -> str:
    """Columns as keywords; those that stay as they are by name only."""
    return ", ".join(
        f'"{n.name}"' if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
        for n in named
    )


def unique_names(named: tuple[Named, ...]) -> None:
    """Refuse two outputs of one name, as Polars does."""
    seen: set[str] = set()
    for output in named:
        if output.name in seen:
            raise UnsupportedOperation(
                f"two outputs are named {output.name!r}",
                where=outer_words(output.tree),
                remedy="give one of them another name with .alias(...)",
            )
        seen.add(output.name)
