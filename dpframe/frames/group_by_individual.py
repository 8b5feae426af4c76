"""One row for each individual, and aggregates of an individual's rows in each of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self, TypeAlias

import polars as pl

from dpframe.core.domain import columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change, map_named
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import UnsupportedOperation, require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.filter import Filter
from dpframe.frames.individual_aggregates import IndividualAggregate, Over, aggregate_calls
from dpframe.frames.sampling import once, unused
from dpframe.frames.step import FramePart, Step
from dpframe.frames.with_columns import Drop, Select, WithColumns, unique_names
from dpframe.kernel.frame import RowLimit, rename_limits
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import grouped, grouped_type, unordered
from dpframe.rows.operation import Namespace

__all__ = ["Gather", "GroupByIndividual", "OverIndividual", "with_aggregates"]

_Aggregate: TypeAlias = "tuple[str, IndividualAggregate, tuple[Tree, ...]]"
"""The name of a column, the aggregate that it holds, and what that is of."""


@dataclass(frozen=True, slots=True)
class Gather(Step):
    """Aggregates of each individual's rows as columns: in one row for each individual and value of
    `by`, or repeated in each of the rows.

    Guarantee
    ---------
    Each value is computed from the rows of one individual alone, and their order does not matter.
    An individual has no more rows or groups than before.

    Proof
    -----
    Rows are grouped by the identifier and by keys that are computed from each row alone, and each
    aggregate is a function of the rows of one group (see `dpframe.frames.individual_aggregates`).

    Parameters
    ----------
    by
        Further keys that divide an individual's rows.
    aggregates
        Each aggregate, with the name of its column.
    beside
        Whether the rows stay.
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]
    aggregates: tuple[_Aggregate, ...]
    beside: bool

    def map_exprs(self, change: Change) -> Self:
        made = tuple((name, how, tuple(map(change, of))) for name, how, of in self.aggregates)
        return replace(self, by=map_named(self.by, change), aggregates=made)

    def facts(self, before: FrameFacts) -> FrameFacts:
        made = {
            name: how.domain([domain(tree, before.columns) for tree in of])
            for name, how, of in self.aggregates
        }
        if self.beside:
            return replace(before, columns=columns({**before.columns, **made}))
        who = _identifier(before)
        keys = {n.name: domain(n.tree, before.columns) for n in self.by}
        kept = {who: who} | {n.tree.name: n.name for n in self.by if isinstance(n.tree, Column)}
        return replace(
            before,
            columns=columns({who: before.columns[who], **keys, **made}),
            complete=False,
            time=None if before.time is None else kept[before.time],
            limits=(
                *rename_limits(before.limits, kept),
                RowLimit(1, frozenset(n.name for n in self.by)),
            ),
        )

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        who = _identifier(before)
        keys = [Named(who, Column(who)), *self.by]
        if not self.beside:
            names = [f"key {i}" for i in range(len(keys))]
            rows = frame.select(*self._keys(keys, names, before, ns), *self._values(before, ns))
            reduced = self._reduced(rows, names, keys, before, ns)
            return reduced.select(
                *(
                    ns.col(_held(name, n.tree, before, ns)).alias(n.name)
                    for name, n in zip(names, keys, strict=True)
                ),
                *self._results(before, ns),
            )
        names = [unused(before.columns, f"key {i} ") for i in range(len(keys))]
        marked = once(frame.with_columns(*self._keys(keys, names, before, ns)))
        rows = marked.select(*map(ns.col, names), *self._values(before, ns))
        reduced = self._reduced(rows, names, (), before, ns)
        results = reduced.select(*map(ns.col, names), *self._results(before, ns))
        joined = marked.join(results, on=names, how="left", nulls_equal=True)
        return joined.drop(*names)

    def _keys(
        self, keys: Sequence[Named], names: Sequence[str], before: FrameFacts, ns: Namespace
    ) -> list[pl.Expr]:
        """The grouping expressions, each followed by its value where that has another form."""
        made = []
        for name, n in zip(names, keys, strict=True):
            value, dtype = lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype
            form = grouped(ns, value, dtype) if ns is pl else unordered(ns, value)
            made.append(form.alias(name))
            held = _held(name, n.tree, before, ns)
            if held != name and not self.beside:
                made.append(value.alias(held))
        return made

    def _values(self, before: FrameFacts, ns: Namespace) -> list[pl.Expr]:
        made = []
        for i, (_, how, of) in enumerate(self.aggregates):
            value = lower(of[0], before.columns, ns) if of else None
            known = domain(of[0], before.columns) if of else None
            rows = how.rows(ns, value, known)
            made += [unordered(ns, e).alias(f"value {i} {j}") for j, e in enumerate(rows)]
        return made

    def _reduced(
        self,
        rows: pl.LazyFrame,
        names: Sequence[str],
        keys: Sequence[Named],
        before: FrameFacts,
        ns: Namespace,
    ) -> pl.LazyFrame:
        """One row for each combination of keys."""
        held = [_held(name, n.tree, before, ns) for name, n in zip(names, keys, strict=False)]
        made = [ns.col(h).first().alias(h) for h in held if h not in names]
        for i, (_, how, of) in enumerate(self.aggregates):
            given = [ns.col(f"value {i} {j}") for j in range(self._width(how, of, before, ns))]
            made += [e.alias(f"found {i} {j}") for j, e in enumerate(how.reduce(given, ns))]
        return rows.group_by(list(names)).agg(*made)

    def _width(
        self, how: IndividualAggregate, of: Sequence[Tree], before: FrameFacts, ns: Namespace
    ) -> int:
        known = domain(of[0], before.columns) if of else None
        return len(how.rows(ns, ns.col("value") if of else None, known))

    def _results(self, before: FrameFacts, ns: Namespace) -> list[pl.Expr]:
        made = []
        for i, (name, how, of) in enumerate(self.aggregates):
            known = domain(of[0], before.columns) if of else None
            given = [ns.col(f"value {i} {j}") for j in range(self._width(how, of, before, ns))]
            found = [ns.col(f"found {i} {j}") for j in range(len(how.reduce(given, ns)))]
            made.append(how.result(ns, found, known).alias(name))
        return made

    def words(self) -> str:
        by = ", ".join(f"{n.name}={outer_words(n.tree)}" for n in self.by)
        made = ", ".join(
            f"{name}={how.words([outer_words(tree) for tree in of])}"
            for name, how, of in self.aggregates
        )
        return f"gather(by=[{by}], {made})"

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False

    @property
    def stability(self) -> str:
        return "what is computed depends on rows of the same individual only"


def _held(name: str, tree: Tree, before: FrameFacts, ns: Namespace) -> str:
    """The column that has the value of a key: that by which rows are grouped, where it is in the
    same form.
    """
    dtype = domain(tree, before.columns).dtype
    return name if ns is not pl or grouped_type(dtype) == dtype else f"{name} value"


def _identifier(facts: FrameFacts) -> str:
    """The identifier, by which rows are of one individual."""
    who = facts.identifier
    require(who is not None, "aggregates of one individual's rows need an identifier")
    assert who is not None
    return who


def _require_keys(by: Sequence[Named], before: FrameFacts, where: str) -> None:
    """Refuse keys whose equality is unsure, and rows of one person in several windows."""
    for n in by:
        dtype = domain(n.tree, before.columns).dtype
        if dtype.is_float or dtype.is_nested or not dtype.is_known or dtype.name == "Null":
            raise UnsupportedOperation(
                f"rows cannot be grouped by values of type {dtype}",
                where=where,
                remedy="group by text, integers, dates or categories",
            )
    if before.time is not None and not any(n.tree == Column(before.time) for n in by):
        raise UnsupportedOperation(
            f"budgets are for each calendar window of {before.time!r}, and one number of all rows "
            "of a person would be in several windows",
            where=where,
            remedy=f"group by {before.time!r} too; or protect a column that has one value in each "
            "window, such as the first day of the month, as time=, and group by that",
        )


_Bounds: TypeAlias = "tuple[Fraction, Fraction] | None"


def gather_parts(
    part: FramePart, before: FrameFacts
) -> tuple[tuple[Named, ...], tuple[Named, ...], tuple[_Bounds, ...], bool] | None:
    """The keys of aggregates of individuals' rows, the columns that they make and how, the bounds
    of what is added up, and whether the rows stay; None for other parts.
    """
    if not isinstance(part, Gather):
        return None
    made = tuple(Named(name, Call(how, of)) for name, how, of in part.aggregates)
    bounds = tuple(
        how.bounds(domain(of[0], before.columns)) if of else None for _, how, of in part.aggregates
    )
    return part.by, made, bounds, part.beside


class _Composite(Step):
    """A step that is done in several parts, one after another."""

    __slots__ = ()

    def facts(self, before: FrameFacts) -> FrameFacts:
        part, known = self.parts(before)[-1]
        return part.facts(known)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        for part, known in self.parts(before):
            frame = part.lower(frame, known, ns, salt)
        return frame

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False


def _with_facts(
    parts: Sequence[FramePart], before: FrameFacts
) -> tuple[tuple[FramePart, FrameFacts], ...]:
    """Each part with what is known before it."""
    made = []
    for part in parts:
        made.append((part, before))
        before = part.facts(before)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class GroupByIndividual(_Composite):
    """One row for each individual, or for each individual and value of some keys, with aggregates
    of its rows.

    Guarantee
    ---------
    A row of the result is computed from the rows of one individual alone, and their order does not
    matter. Frames that differ in one individual's rows become frames that differ only in that
    individual's rows: in one row, if there are no further keys. An individual has at most one row
    for each value of the keys, and no more rows or groups than before.

    Proof
    -----
    Rows are grouped by the identifier, and by the keys, which are computed from each row alone. So
    two individuals are never in one group, and each value is a function of one group (see
    `dpframe.frames.individual_aggregates`). Take any row of a group to stand for it: that maps the
    rows of the result to different rows before, with the same values of the identifier and of keys
    that are columns. So what was true of an individual's rows before (at most n of them, at most n
    for each value, at most n values) is true of those that stand for groups, and of the result.
    Where individuals are persons in calendar windows, the time is one of the keys, so all rows of a
    group have one time, and the result has it.

    Parameters
    ----------
    who
        What the identifier is called afterwards.
    by
        Further keys.
    outputs
        What is computed: aggregates, and what follows from them.
    """

    engines = EVERYWHERE

    who: str
    by: tuple[Named, ...]
    outputs: tuple[Named, ...]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change), outputs=map_named(self.outputs, change))

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        identifier = _identifier(before)
        _require_keys(self.by, before, self.words())
        if before.norm is not None:
            raise UnsupportedOperation(
                "limit_norm weighs the rows of an individual, and these become other rows",
                where=self.words(),
                remedy="write limit_norm after group_by(...).agg(...)",
            )
        keys = (Named(self.who, Column(identifier)), *self.by)
        unique_names((*keys, *self.outputs))
        taken = {identifier, *(n.name for n in self.by)}
        found, outputs = _taken_out(self.outputs, taken)
        if identifier in {n.name for n in self.by}:
            raise UnsupportedOperation(
                f"{identifier!r} identifies individuals, and another grouping column has its name",
                where=self.words(),
                remedy="give that column another name with .alias(...)",
            )
        selected = (keys[0], *(Named(n.name, Column(n.name)) for n in self.by), *outputs)
        parts = (Gather(self.by, found, beside=False), Select(selected))
        return _with_facts(parts, before)

    def words(self) -> str:
        outputs = ", ".join(f"{n.name}={outer_words(n.tree)}" for n in self.outputs)
        keys = [
            f'"{self.who}"',
            *(
                f'"{n.name}"' if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
                for n in self.by
            ),
        ]
        return f"group_by({', '.join(keys)}).agg({outputs})"

    @property
    def stability(self) -> str:
        each = "each individual" if not self.by else "each individual and value of the other keys"
        return f"one row for {each}, computed from that individual's rows alone"


@dataclass(frozen=True, slots=True)
class OverIndividual(_Composite):
    """A step whose expressions have aggregates of the individual's rows in them.

    Guarantee
    ---------
    The result of a row depends only on the rows of the same individual, and not on their order. No
    row is added.

    Proof
    -----
    Each aggregate is added as a column first. Its value belongs to the row's group by the
    identifier and by further keys, which are computed from each row alone. A group has rows of one
    individual only, and the value is a function of them (see
    `dpframe.frames.individual_aggregates`). The rest is a row-wise step on these columns. Where
    individuals are persons in calendar windows, the time is one of the keys, so a group is in one
    window.

    Parameters
    ----------
    inner
        The step, with the aggregates in its expressions.
    """

    engines = EVERYWHERE

    inner: WithColumns | Select | Filter

    def map_exprs(self, change: Change) -> Self:
        return replace(self, inner=self.inner.map_exprs(change))

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        identifier = _identifier(before)
        names: dict[Call, str] = {}
        taken = {*before.columns}
        if isinstance(self.inner, (WithColumns, Select)):
            taken |= {n.name for n in self.inner.named}
        found: dict[tuple[Tree, ...], list[_Aggregate]] = {}
        for call in (call for tree in self.inner.exprs for call in aggregate_calls(tree)):
            over = call.operation
            assert isinstance(over, Over)
            of, (who, *keys) = call.args[: over.aggregate.arity], call.args[over.aggregate.arity :]
            require(who == Column(identifier), "an aggregate over one individual has only its rows")
            if call not in names:
                names[call] = unused(taken, f"aggregate {len(names)}")
                found.setdefault(tuple(keys), []).append((names[call], over.aggregate, of))
        parts: list[FramePart] = []
        for trees, aggregates in found.items():
            by = tuple(Named(f"by {i}", tree) for i, tree in enumerate(trees))
            _require_keys(by, before, self.words())
            parts.append(Gather(by, tuple(aggregates), beside=True))
        parts.append(self.inner.map_exprs(lambda tree: _with_columns(tree, names)))
        if not isinstance(self.inner, Select):
            parts.append(Drop(tuple(names.values())))
        return _with_facts(parts, before)

    def words(self) -> str:
        return self.inner.words()

    @property
    def stability(self) -> str:
        return "what happens to a row depends on rows of the same individual only"


def with_aggregates(step: WithColumns | Select | Filter) -> Step:
    """The step, or one that computes the aggregates of individuals in it first."""
    found = any(aggregate_calls(tree) for tree in step.exprs)
    return OverIndividual(step) if found else step


def _taken_out(
    outputs: Sequence[Named], taken: set[str]
) -> tuple[tuple[_Aggregate, ...], tuple[Named, ...]]:
    """The aggregates of some outputs, each once, and the outputs with columns in their place."""
    names: dict[Call, str] = {}
    found: list[_Aggregate] = []
    for n in outputs:
        for call in aggregate_calls(n.tree):
            if call not in names:
                assert isinstance(call.operation, IndividualAggregate)
                names[call] = unused(taken, f"aggregate {len(names)}")
                found.append((names[call], call.operation, call.args))
    return tuple(found), tuple(Named(n.name, _with_columns(n.tree, names)) for n in outputs)


def _with_columns(tree: Tree, names: Mapping[Call, str]) -> Tree:
    """A tree with columns in place of aggregates."""
    match tree:
        case Column() | Literal():
            return tree
        case Call(operation, args):
            if tree in names:
                return Column(names[tree])
            return Call(operation, tuple(_with_columns(arg, names) for arg in args))
