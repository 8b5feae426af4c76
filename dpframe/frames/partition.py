"""Parts of a frame: the rows that have one of several public keys.

A part that is a period may wait for rows that come late. A delay fixes when it may be paid for and
read. Protection and cost do not depend on it: a part that waits is the same part, and is charged in
the same way.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self, TypeAlias

import polars as pl

from dpframe.core import windows
from dpframe.core.dtypes import STRING, Columns, Domain, DType, Scalar, columns, domain_of_dtype
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import (
    Call,
    Change,
    Column,
    Literal,
    Named,
    Tree,
    column_names,
    map_named,
    substitute,
)
from dpframe.core.units import EVERYWHERE
from dpframe.core.windows import AFTER, BEFORE, Every, Windows
from dpframe.errors import TooEarly, UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.facts import FrameFacts, refine
from dpframe.frames.groups import Groups
from dpframe.frames.joins import JoinPrivate, JoinPublic
from dpframe.frames.nights import Waits, before_first_limits, first_limits, require_rowwise
from dpframe.frames.relation import Concat, FramePart, Relation, Step, frames_of
from dpframe.frames.row_steps import Drop, DropNulls, Filter, Rename, Select, WithColumns
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.rows.comparison import Eq
from dpframe.rows.constants import literal_lower, literal_words
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import unordered
from dpframe.rows.logic import IsNotNull, IsNull
from dpframe.rows.operation import Namespace
from dpframe.rows.possible import CLOCK, TIME, Known, by_clocks, holds_one, may_be, times_of

__all__ = ["windows_read"]


@dataclass(frozen=True, slots=True)
class Part(Step):
    """Keep the rows whose values of `by` are `key`; null equals null.

    Guarantee
    ---------
    1-stable, and parts with different keys have no row in common.

    Proof
    -----
    Each row is kept or dropped on its own values. Keys are values of the types of `by`, and are
    compared in them (text as text), so no row equals two keys.
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]  # The expressions that identify parts
    # One value for each of them, None for null; a constant where it is that of a parameter, or one
    # of the values of a parameter that is a list.
    key: tuple[Scalar | Literal, ...]
    # Whether a column may have been computed. What Polars then takes for sorted may not be, and
    # equality would be decided by looking in the wrong half (docs/decisions/0002).
    computed: bool
    # How long after its end the part is released; None for at any time. It states nothing about its
    # rows.
    waits: Waits | None = None

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The key, from any source."""
        return tuple(key.value if isinstance(key, Literal) else key for key in self.key)

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        table = dict(before.columns)
        for tree, dtype, value in self.pairs(before):
            if value is not None:
                table = refine(table, Call(Eq(), (tree, Literal(value, dtype))))
        return replace(before, columns=columns(table), complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.filter(*(self._holds(*pair, before, ns) for pair in self.pairs(before)))

    def _holds(
        self, tree: Tree, dtype: DType, value: Scalar, before: FrameFacts, ns: Namespace
    ) -> pl.Expr:
        expression = lower(tree, before.columns, ns)
        if dtype == STRING and domain(tree, before.columns).dtype != STRING:
            expression = expression.cast(ns.String)
        if self.computed:
            expression = unordered(ns, expression)
        if value is None:
            return expression.is_null()
        equal: pl.Expr = expression == literal_lower(Literal(value, dtype), ns)
        return equal

    def pairs(self, before: FrameFacts) -> Iterator[tuple[Tree, DType, Scalar]]:
        """Each expression, the type in which it is compared, and its value."""
        for named, value in zip(self.by, self.values, strict=True):
            yield named.tree, key_type(domain(named.tree, before.columns).dtype), value

    def words(self) -> str:
        waits = () if self.waits is None else (self.waits.words(),)
        return f"part({', '.join([*self._words(), *waits])})"

    def _words(self) -> Iterator[str]:
        for named, key in zip(self.by, self.key, strict=True):
            by = outer_words(named.tree)
            if isinstance(key, Literal) and key.parameter is not None and key.parameter.kind.many:
                yield f"{by} is one of :{key.parameter.name}"
                continue
            # words do not depend on the type
            written = literal_words(key if isinstance(key, Literal) else Literal(key, STRING))
            yield f"{by} is null" if key is None else f"{by} == {written}"

    @property
    def stability(self) -> str:
        return "each row is in one part at most, by its own values"


def key_type(dtype: DType) -> DType:
    """The type in which values are compared with keys; codes of categories depend on the data."""
    return STRING if dtype.is_text else dtype


def require_due(relations: Iterable[Relation]) -> None:
    """Refuse to read parts before their time."""
    waits = [found for relation in relations for found in _waiting(relation)]
    if not waits:
        return
    due, part = max(waits, key=lambda found: found[0])
    if due > windows.now():
        raise TooEarly(
            f"this may be released from {due:%Y-%m-%d %H:%M:%S} UTC on",
            due=due,
            where=part.words(),
            why="the part waits for rows that come late; nothing was read or charged",
            remedy="release it after that time",
        )


def _waiting(relation: Relation) -> Iterator[tuple[dt.datetime, Part]]:
    """When each part may be read that waits, among all frames that are joined."""
    for frame in frames_of(relation):
        for step, before in frame.steps:
            if isinstance(step, Part) and step.waits is not None:
                for named, value in zip(step.by, step.values, strict=True):
                    if isinstance(value, dt.date):
                        zone = domain(named.tree, before.columns).dtype.zone
                        yield step.waits.due(value, zone), step


def first_parts(relation: Relation, by: tuple[Named, ...]) -> int | None:
    """In how many parts an individual's rows can be, for any added rows, if parts are charged in
    the order of their keys; None if unknown.

    Proof
    -----
    Let a limit keep the rows of an individual's first n dates (or its first n rows by date), and
    let the result of each earlier step for a row depend on this row alone. Let k_1 < k_2 < ... <
    k_m be the parts in which plans find rows of an individual, in the order of their last charge.
    When k_m is read, rows with the dates k_1 to k_{m-1} exist, because they existed before and no
    row vanishes. The limit keeps k_m only if it is among the first n dates, so m is at most n. A
    row that no longer passes a filter before the limit has vanished, so the results of the steps
    before the limit must not change.
    """
    if len(by) != 1 or relation.facts.unit.kind != "identifier":
        return None
    tree = by[0].tree
    dtype = domain(tree, relation.facts.columns).dtype
    if not isinstance(tree, Column) or not (dtype.is_integer or dtype.name == "Date"):
        return None
    if any(isinstance(step, Part) for step, _ in relation.steps):
        return None
    try:
        require_rowwise(relation)
    except UnsupportedOperation:
        return None
    limits = first_limits(relation, tree.name)
    of_dates = [x.n for x in limits if isinstance(x, GroupLimit) and x.by == {tree.name}]
    of_rows = [x.n for x in limits if isinstance(x, RowLimit) and not x.by]
    return min([*of_dates, *of_rows], default=None)


def steady_steps(relation: Relation) -> list[Step] | None:
    """The steps before the limit that keeps an individual's first parts. Their results for a row
    must not change while parts are charged. None if the query reads no part that lasts: parts that
    were made together with one for null do not last (a stricter rule than necessary).
    """
    for number, (step, before) in enumerate(relation.steps):
        if isinstance(step, Part):
            whole = replace(relation, steps=relation.steps[:number], facts=before)
            if not relation.named or None in step.values or first_parts(whole, step.by) is None:
                return None
            (by,) = step.by
            assert isinstance(by.tree, Column)
            return before_first_limits(whole, by.tree.name)
    return None


# Which calendar windows a query may read, from its filters and keys.
#
# The result is only a proposal. The exact query drops all other rows before anything else
# (`dpframe.lower.tables`), so that a plan reads these windows alone, independently of inference. A
# wrong answer could change results and never privacy; a law says that none exists.
#
# Rows of all frames of a query meet and are limited within one window, so that a row of a result is
# made of rows of its own window. So what is found of the last frame is right for each of the first.

_TRIES = 250
"""How many ranges of windows are tried for one end; what is not settled then may be read."""

Condition: TypeAlias = "Callable[[Known], bool]"
"""Whether a row with these known values may be read."""


@lru_cache(maxsize=256)
def windows_read(relation: Relation, groups: Groups | None = None) -> Windows | None:
    """The windows of rows that a frame, or its groups, may be made of; None where individuals are
    not distinguished by windows.
    """
    if relation.source.time is None:
        return None
    found = _Found.of(relation)
    return found.narrow(_of_groups(groups, found, relation.facts)).windows


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known at one point of a chain of steps."""

    windows: Windows  # Those that rows may be in
    dtype: DType  # The column of the times
    # The columns that follow from a row's time alone, and how, with `TIME` for the time.
    made: Mapping[str, Tree]

    @classmethod
    def of(cls, relation: Relation) -> _Found:
        facts = relation.source
        assert facts.time is not None
        assert facts.every is not None
        found = cls(
            Windows(facts.every), facts.columns[facts.time].dtype, {facts.time: Column(TIME)}
        )
        known = [*(before for _, before in relation.steps), relation.facts]
        for (step, before), after in zip(relation.steps, known[1:], strict=True):
            parts = step.parts(before)
            later = [*(facts for _, facts in parts[1:]), after]
            for (part, facts), then in zip(parts, later, strict=True):
                found = found.then(part, facts, then)
        return found

    def then(self, step: FramePart, before: FrameFacts, after: FrameFacts) -> _Found:
        """The facts after a step; for unknown steps, as few as possible."""
        match step:
            case Filter(predicates):
                return self.narrow(self._conditions(predicates, before.columns))
            case DropNulls(names):
                trees = [IsNotNull().of(Column(name)) for name in names]
                return self.narrow(self._conditions(trees, before.columns))
            case Part():
                return self.narrow(self._conditions(_of_part(step, before), before.columns))
            case WithColumns(named):
                others = {n: t for n, t in self.made.items() if n not in {m.name for m in named}}
                return replace(self, made=others | self._columns_of_time(named))
            case Select(named):
                return replace(self, made=self._columns_of_time(named))
            case Rename(mapping):
                new = dict(mapping)
                return replace(self, made={new.get(n, n): t for n, t in self.made.items()})
            case Drop(names):
                return replace(self, made={n: t for n, t in self.made.items() if n not in names})
            case LimitRows() | LimitGroups() | LimitNorm() | JoinPublic() | JoinPrivate():
                return self
            case Concat(other):
                both = self.windows.hull(_Found.of(other).windows)
                return self._only_time(both, after)
            case _:
                return self._only_time(self.windows, after)

    def _only_time(self, windows: Windows, after: FrameFacts) -> _Found:
        assert after.time is not None
        return replace(self, windows=windows, made={after.time: Column(TIME)})

    def _columns_of_time(self, named: Sequence[Named]) -> dict[str, Tree]:
        """Of columns that are computed at once, those that follow from the time."""
        return {
            n.name: substitute(n.tree, self.made)
            for n in named
            if (names := column_names(n.tree)) and all(name in self.made for name in names)
        }

    def _conditions(self, trees: Sequence[Tree], columns: Columns) -> Iterator[Condition]:
        """Conditions on the time that rows must meet. Of other columns nothing is known but their
        types: what owners declare may be wrong.
        """
        if TIME in columns or CLOCK in columns:
            return
        table = {name: domain_of_dtype(found.dtype) for name, found in columns.items()}
        for tree in trees:
            of_time = self.of_time(tree)
            if of_time is not None:
                yield lambda known, tree=of_time: may_be(  # type: ignore[misc]
                    tree, True, replace(known, columns={**table, **known.columns})
                )

    def of_time(self, tree: Tree) -> Tree | None:
        """An expression with `TIME` for the time; None where it does not read it."""
        found = substitute(tree, self.made)
        if TIME not in column_names(found):
            return None
        return found if self.dtype.zone is None else by_clocks(found)

    def narrow(self, conditions: Iterator[Condition]) -> _Found:
        """The same where rows meet some conditions."""
        every = tuple(conditions)
        if not every:
            return self
        search = _Search(self.windows.every, self.dtype, every)
        return replace(self, windows=search.within(self.windows))


def _of_part(step: Part, before: FrameFacts) -> list[Tree]:
    """The conditions of a part."""
    found: list[Tree] = []
    for named, value in zip(step.by, step.values, strict=True):
        dtype = domain(named.tree, before.columns).dtype
        listed = None if value is None else Literal(value, dtype)
        found.append(
            IsNull().of(named.tree) if listed is None else Call(Eq(), (named.tree, listed))
        )
    return found


def _of_groups(groups: Groups | None, found: _Found, facts: FrameFacts) -> Iterator[Condition]:
    """Rows have a listed key; where several columns make it, each has a listed value."""
    if groups is None or groups.discovered:
        return
    for named, column in zip(groups.by, groups.keys.iter_columns(), strict=True):
        tree = found.of_time(named.tree)
        if tree is None or not set(column_names(tree)) <= {TIME, CLOCK}:
            continue
        dtype = domain(named.tree, facts.columns).dtype
        if dtype.is_boolean:
            yield _one_of_flags(tree, column.to_list())
        elif dtype.name in ("Date", "Datetime") or dtype.is_integer:
            numbers = column.to_physical().cast(pl.Int128).drop_nulls().sort().to_list()
            yield _one_of_numbers(tree, numbers, column.null_count() > 0)


def _one_of_numbers(tree: Tree, numbers: Sequence[int], null: bool) -> Condition:
    def may(known: Known) -> bool:
        if known.is_null(tree):
            return null
        found = known.of(tree)
        return (null and found.nullable) or holds_one(found.interval, numbers)

    return may


def _one_of_flags(tree: Tree, flags: Sequence[bool | None]) -> Condition:
    def may(known: Known) -> bool:
        return None in flags or any(may_be(tree, flag is True, known) for flag in flags)

    return may


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for the windows in which rows may meet conditions.

    Ranges of windows are halved. One in which a condition cannot hold has no row that meets it; so
    the first window that is left is no later than the first that has one.
    """

    every: Every
    dtype: DType
    conditions: tuple[Condition, ...]

    def within(self, windows: Windows) -> Windows:
        """The windows that are left of some."""
        without = windows.without and self._may_lack_time()
        none = Windows(self.every, 0, -1, without)
        if windows.none_with_time:
            return none
        low, high = BEFORE[self.every], AFTER[self.every]
        first = low if windows.first is None else windows.first
        last = high if windows.last is None else windows.last
        start = self._end(first, last, at_last=False)
        if start is None:
            return none
        stop = self._end(start, last, at_last=True)
        if stop is None:
            return none
        ends = (None if start <= low else start, None if stop >= high else stop)
        return Windows(self.every, *ends, without)

    def _end(self, first: int, last: int, *, at_last: bool) -> int | None:
        """The first or the last window that may be read; None where none may."""
        waiting, tries = [(first, last)], _TRIES
        while waiting:
            low, high = waiting.pop()
            if not tries:
                return high if at_last else low
            tries -= 1
            if not self._may_have_time(low, high):
                continue
            if low == high:
                return low
            middle = (low + high) // 2
            halves = [(low, middle), (middle + 1, high)]
            waiting += halves if at_last else halves[::-1]
        return None

    def _may_have_time(self, first: int, last: int) -> bool:
        times = times_of(first, last, self.every, self.dtype)
        if times is None:
            return False
        known, shown = (Domain(self.dtype, False, interval=found) for found in times)
        columns = {TIME: known}
        if self.dtype.zone is not None:
            columns[CLOCK] = replace(shown, dtype=replace(self.dtype, zone=None))
        return self._may_meet(Known(columns))

    def _may_lack_time(self) -> bool:
        columns = {TIME: Domain(self.dtype, interval=EVERYTHING)}
        if self.dtype.zone is not None:
            columns[CLOCK] = Domain(replace(self.dtype, zone=None))
        return self._may_meet(Known(columns, frozenset((TIME, CLOCK))))

    def _may_meet(self, known: Known) -> bool:
        return all(condition(known) for condition in self.conditions)
