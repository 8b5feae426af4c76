"""Steps where each row stays on its own: new and changed columns, conditions, rows of lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import polars as pl

from dpframe.core.dtypes import Domain, columns
from dpframe.core.exact import show_input
from dpframe.core.tree import Call, Change, Column, Literal, Named, Tree, map_named
from dpframe.core.units import EVERYWHERE, POLARS
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.facts import FrameFacts, refine
from dpframe.frames.relation import Relation, Step
from dpframe.frames.sampling import require_count
from dpframe.kernel.frame import copy_limits, rename_limits
from dpframe.rows.fold import domain, lower, outer_words, words
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import unknown_column


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
        computed = {n.name: domain(n.tree, before.columns) for n in self.named}
        changed = {n.name for n in self.named if n.tree != Column(n.name)}
        kept = {name: name for name in before.columns if name not in changed}
        return before.with_table({**before.columns, **computed}, kept, self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.with_columns(
            *(lower(n.tree, before.columns, ns).alias(n.name) for n in self.named)
        )

    def words(self) -> str:
        return f"with_columns({_column_words(self.named)})"

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
        computed: dict[str, Domain] = {n.name: domain(n.tree, before.columns) for n in self.named}
        kept: dict[str, str] = {}
        for n in self.named:
            if isinstance(n.tree, Column):
                kept.setdefault(n.tree.name, n.name)
        return before.with_table(some_columns(computed, self.words()), kept, self.words())

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
        return f"select({_column_words(self.named)})"

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
        return before.with_table(made, dict(zip(before.columns, names, strict=True)), self.words())

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
        return before.with_table(some_columns(kept, self.words()), same, self.words())

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


def _column_words(named: tuple[Named, ...]) -> str:
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


_ONE_TO_ONE: Final = frozenset({"add", "cast", "fill_null", "mul", "neg", "sub"})
"""Operations with constants that map each value, or nearly each, to a different value."""


def own_columns(relation: Relation) -> frozenset[str]:
    """The identifier of a frame under its present name, and columns that hold the same in another
    form; empty where rows are protected.
    """
    found = set[str]()
    for step, before in relation.steps:
        if isinstance(step, (Select, WithColumns)) and before.identifier is not None:
            own = {before.identifier, *found}
            found |= {n.name for n in step.named if renamed_column(n.tree) in own}
    if relation.facts.identifier is not None:
        found.add(relation.facts.identifier)
    return frozenset(found & {*relation.facts.columns})


def renamed_column(tree: Tree) -> str | None:
    """The column that an expression is, perhaps in another type, or shifted by constants."""
    while isinstance(tree, Call) and tree.operation.name in _ONE_TO_ONE:
        others = [arg for arg in tree.args if not isinstance(arg, Literal)]
        if len(others) != 1:
            return None
        (tree,) = others
    return tree.name if isinstance(tree, Column) else None


# -- Conditions -----------------------------------------------------------------------------------


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


# -- Lists ----------------------------------------------------------------------------------------


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
    """

    engines = frozenset((POLARS,))

    column: str  # Of lists, or of arrays, whose width is known
    max_length: int | None  # How many elements count; None for an array's width

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
        length = "" if self.max_length is None else f", max_length={show_input(self.max_length)}"
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
