"""Parts of a frame: the rows that have one of several public keys.

A part that is a period may wait for rows that come late. A delay fixes when it may be paid for and
read. Protection and cost do not depend on it: a part that waits is the same part, and is charged in
the same way.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.core import windows
from dpframe.core.dtypes import STRING, DType, Scalar, columns
from dpframe.core.tree import Call, Change, Column, Literal, Named, Tree, map_named
from dpframe.core.units import EVERYWHERE
from dpframe.errors import TooEarly, UnsupportedOperation
from dpframe.frames.facts import FrameFacts, refine
from dpframe.frames.nights import before_first_limits, first_limits, require_rowwise
from dpframe.frames.relation import Relation, Step, frames_of
from dpframe.frames.schedule import Waits
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.rows.comparison import Eq
from dpframe.rows.constants import literal_lower, literal_words
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import unordered
from dpframe.rows.operation import Namespace


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
