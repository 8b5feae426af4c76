"""One row per individual: how many rows and groups it has, and between what its values lie; and
rows without those of groups that a release has found before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, Domain, columns
from dpframe.core.interval import interval
from dpframe.core.tree import Change, Named, Tree, map_named
from dpframe.core.units import EVERYWHERE
from dpframe.frames.facts import FrameFacts
from dpframe.frames.public import bring, digest, freeze, grouped_keys, within_keys
from dpframe.frames.relation import Relation, Step
from dpframe.frames.sampling import new_name, owner_columns, require_identifier
from dpframe.kernel.frame import RowLimit
from dpframe.rows.fold import domain, lower, outer_words, words
from dpframe.rows.layouts import grouped, grouped_type, unordered, unsigned_zero
from dpframe.rows.operation import Namespace

ROWS, GROUPS, FULLEST = "rows", "groups", "rows in the fullest group"
_FINE = 2.0**10
_FAR = 2.0**40


@dataclass(frozen=True, slots=True)
class Extremes:
    """The least and the largest of some numbers of an individual."""

    tree: Tree  # The number in a row
    # Whether they are the totals in its groups, each value rounded to 1/1024, or else those of
    # rows.
    total: bool


@dataclass(frozen=True, slots=True)
class PerIndividual(Step):
    """Count the rows of each individual, its groups, and the rows in its fullest group, and find
    between what its values lie.

    Guarantee
    ---------
    The rows of one individual become one row, computed from these rows alone and in any order:
    numbers are compared, and sums are of integers.

    Proof
    -----
    Rows are grouped by the identifier first, and by the window of their time where there are
    windows, so each result is a function of one individual's rows. Counting does not depend on the
    order of rows. With windows the row keeps the latest time, which is in the same window. Whether
    a row's group is listed depends on that row alone.
    """

    engines = EVERYWHERE

    by: tuple[Named, ...] = ()  # What makes the groups; nothing for all rows together
    extremes: tuple[Extremes, ...] = ()  # Numbers whose least and largest are sought
    # The public keys where groups are listed; rows in other groups do not count then.
    listed: pl.DataFrame | None = field(default=None, repr=False, compare=False)
    digest: str | None = None  # The digest of the keys, for fingerprints

    @classmethod
    def within(
        cls, by: tuple[Named, ...], extremes: tuple[Extremes, ...], keys: pl.DataFrame
    ) -> Self:
        """The same of rows in listed groups alone."""
        keys = freeze(keys)
        return cls(by, extremes, keys, digest(keys))

    def map_exprs(self, change: Change) -> Self:
        by = map_named(self.by, change)
        extremes = tuple(replace(e, tree=change(e.tree)) for e in self.extremes)
        return replace(self, by=by, extremes=extremes)

    def facts(self, before: FrameFacts) -> FrameFacts:
        identifier = require_identifier(before.identifier, self.words())
        number = Domain(INT64, nullable=False, interval=interval(1, None))
        names = [self.name_of(n, before) for n in (ROWS, GROUPS, FULLEST)]
        who = Domain(grouped_type(before.columns[identifier].dtype), nullable=False)
        ends = Domain(FLOAT64, nullable=True)
        places = range(len(self.extremes))
        found = [self.name_of(end, before) for i in places for end in ends_of(i)]
        table = {identifier: who, **dict.fromkeys(names, number), **dict.fromkeys(found, ends)}
        if before.time is not None:
            table[before.time] = before.columns[before.time]
        known = replace(before, columns=columns(table), complete=False, copies=1)
        return replace(known, limits=(RowLimit(1),), norm=None)

    @staticmethod
    def name_of(number: str, facts: FrameFacts) -> str:
        """The column for a number, which must not clash with the columns of the owner."""
        return new_name([name for name in (facts.identifier, facts.time) if name], number)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        identifier = require_identifier(before.identifier, self.words())
        keys = [f"g{i}" for i in range(len(self.by))]
        owners = [found for found, _ in owner_columns(before, ns)]
        whose = ["unit", "window"][: len(owners)]
        owned = [found.alias(name) for found, name in zip(owners, whose, strict=True)]
        times = [] if before.time is None else [unordered(ns, ns.col(before.time)).alias("time")]
        latest = [ns.col("time").max().alias("time") for _ in times]
        groups = [
            grouped(
                ns, lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype
            ).alias(key)
            for key, n in zip(keys, self.by, strict=True)
        ]
        numbers = [self._number(e, before, ns).alias(f"x{i}") for i, e in enumerate(self.extremes)]
        rows = frame.select(*owned, *times, *groups, *numbers)
        if self.listed is not None:
            rows = within_keys(rows, grouped_keys(self.listed, keys), keys, ns)
        in_pairs = [e for i, extreme in enumerate(self.extremes) for e in _of_pair(i, extreme, ns)]
        pairs = rows.group_by([*whose, *keys]).agg(ns.len().alias("n"), *latest, *in_pairs)
        number = ns.col("n").cast(ns.Int64)
        counted = pairs.group_by(whose).agg(
            number.sum().alias(self.name_of(ROWS, before)),
            ns.len().cast(ns.Int64).alias(self.name_of(GROUPS, before)),
            number.max().alias(self.name_of(FULLEST, before)),
            *(
                end.alias(self.name_of(name, before))
                for i, extreme in enumerate(self.extremes)
                for name, end in zip(ends_of(i), _of_individual(i, extreme, ns), strict=True)
            ),
            *latest,
        )
        return self._rename(counted, before, identifier)

    def _rename(self, counted: pl.LazyFrame, before: FrameFacts, identifier: str) -> pl.LazyFrame:
        """The columns by the names that they have afterwards."""
        if before.time is None:
            return counted.rename({"unit": identifier})
        return counted.drop("window").rename({"unit": identifier, "time": before.time})

    def _number(self, extreme: Extremes, before: FrameFacts, ns: Namespace) -> pl.Expr:
        """A number without NaN; as an integer where it will be added up."""
        given = lower(extreme.tree, before.columns, ns).cast(ns.Float64)
        value = unsigned_zero(ns, given, FLOAT64)  # whichever zero comes first is the least
        if domain(extreme.tree, before.columns).dtype.is_float:
            value = ns.when(value.is_nan()).then(None).otherwise(value)
        if not extreme.total:
            return value
        fine = (value.clip(-_FAR, _FAR) * _FINE + 0.5).floor()
        return fine.cast(ns.Int64)

    def words(self) -> str:
        groups = f"groups by [{', '.join(repr(n.name) for n in self.by)}]" if self.by else "groups"
        ends = ", ".join(
            f"the least and largest {'total of ' * e.total}{words(e.tree)}" for e in self.extremes
        )
        more = f", and {ends}" if ends else ""
        listed = "" if self.listed is None else f" among {self.listed.height} that are listed"
        return f"one row per individual with its numbers of rows and {groups}{listed}{more}"

    @property
    def computes(self) -> bool:
        return True

    @property
    def stability(self) -> str:
        return "the rows of an individual become one row, computed from these alone"


def ends_of(number: int) -> tuple[str, str]:
    """The columns of the least and the largest."""
    return f"least {number}", f"largest {number}"


def _of_pair(number: int, extreme: Extremes, ns: Namespace) -> tuple[pl.Expr, ...]:
    """What is kept of an individual in a group."""
    value = ns.col(f"x{number}")
    if extreme.total:
        return (value.sum().alias(f"s{number}"),)
    return value.min().alias(f"a{number}"), value.max().alias(f"b{number}")


def _of_individual(number: int, extreme: Extremes, ns: Namespace) -> tuple[pl.Expr, pl.Expr]:
    if extreme.total:
        total = ns.col(f"s{number}").cast(ns.Float64) / _FINE
        return total.min(), total.max()
    return ns.col(f"a{number}").min(), ns.col(f"b{number}").max()


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
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]  # What rows are grouped by
    rounds: int  # How many rounds there are
    # The groups that were found, none before the first round: one column for each of `by`, in their
    # order. No part of a plan, which is made before there are any.
    found: pl.DataFrame = field(repr=False, compare=False)

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        return replace(before, complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        keys = [new_name(before.columns, f"key{i}_") for i in range(len(self.by))]
        values = [
            grouped(ns, lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype)
            for n in self.by
        ]
        marked = frame.with_columns(*(e.alias(key) for e, key in zip(values, keys, strict=True)))
        listed = bring(grouped_keys(self.found, keys), ns)
        return marked.join(listed, on=keys, how="anti", nulls_equal=True).drop(*keys)

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
