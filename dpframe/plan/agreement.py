"""Whether the plan that people read agrees with the physical plan, which the kernel verifies.

The physical plan decides about privacy. The reading says much of it again, in other forms and with
words. A document in which the two differ would show a reviewer another release than the verified
one.

What the reading says becomes parts of a physical plan (`plan/reading.py`), and both are compared as
numbers: each step with all that comes before it, then what each draw is of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product, repeat
from math import prod
from operator import attrgetter
from types import SimpleNamespace
from typing import cast

from dpframe.aggregates.cells import MOST_EDGES, Edges, comparable
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.request import with_places
from dpframe.aggregates.values import Value
from dpframe.core.budget import Budget
from dpframe.core.dtypes import Domain, DType
from dpframe.core.sensitivity import ExactSensitivity, ScoreRange
from dpframe.core.tree import Column, Named
from dpframe.core.units import Adjacency, Identifier, Rows, Unit
from dpframe.errors import DPFrameError, Unsound
from dpframe.frames.definition import definition
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import ADDING, AGGREGATES
from dpframe.frames.groups import digest_of_sets
from dpframe.frames.nodes import named_rows
from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import PARTS, Facts, facts_of
from dpframe.kernel.moves import addition_of, norms_of, ranges_of
from dpframe.kernel.plan import Call, Gather
from dpframe.mechanisms import KeyMechanism
from dpframe.plan.data import (
    OWNED,
    FoundLimit,
    JointDraw,
    NoisyAggregate,
    PlanData,
    PlanOutput,
    owner_remark,
)
from dpframe.plan.reading import Said, Scope, frames_of, is_measurement, value_of, what_of
from dpframe.plan.several import after_search, blocks_of
from dpframe.rows.registry import BY_NAME

# The kernel's check of the physical plan of a plan that is read.


@lru_cache(maxsize=256)
def require_verified(physical: Plan) -> None:
    """Refuse a physical plan that states what does not follow from it, or has operations that
    dpframe does not have, by `Unsound`. A plan that was verified is remembered.
    """
    try:
        verify(physical)
    except Refused as refused:
        raise Unsound(
            f"the plan does not hold: {refused}",
            where="the physical plan",
            why="the kernel computes it again from the plan alone, and finds less privacy than the "
            "plan states, or no plan at all",
            remedy="do not approve or run it; plan the query again",
        ) from None
    others, aggregates, odd = Counter[str](), Counter[str](), list[str]()
    for node in nodes_of(physical):
        if isinstance(node, Call) and node.operation not in BY_NAME:
            others[node.operation] += 1
        elif isinstance(node, Gather):
            aggregates.update(call.operation for _, call in node.new)
            for (_, call), bounds in zip(node.new, node.bounds, strict=True):
                if (call.operation in ADDING) == (bounds is None):
                    odd.append(call.operation)
    for operation in others:
        if others[operation] > aggregates[operation] or operation not in AGGREGATES:
            raise Unsound(
                f"the plan does not hold: dpframe has no operation {operation!r}",
                where="the physical plan",
                why="the kernel believes of each operation that its result for a row follows from "
                "that row alone, which is sure of those that dpframe has",
                remedy="verify it by the version of dpframe that made it",
            )
    if odd:
        raise Unsound(
            f"the plan does not hold: {odd[0]!r} has no bounds, or needs none",
            where="the physical plan",
            why="sums and means of an individual's rows clamp values to bounds",
            remedy="plan the query again",
        )


def nodes_of(value: object) -> Iterator[object]:
    """All nodes of a part of a physical plan."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes_of(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from nodes_of(getattr(value, field.name))


# Parts of physical plans as numbers. Two parts have one number where they mean the same.
#
# A number stands for a step with all that comes before it. A column stands for the expression that
# made it. So names of columns, columns that nothing reads and the places of items do not matter,
# and the order of steps does.


@dataclass(frozen=True)
class RowsAfter:
    """The rows after some steps."""

    number: int  # Which rows they are
    columns: Mapping[str, int]  # The number of each column
    # The numbers of the column that identifies individuals, and of the one whose windows do.
    owner: int | None = None
    time: int | None = None
    are_weighed: bool = False  # Whether rows of an individual count in parts


class Terms:
    """The numbers of all parts that were seen. Each part that is new gets the next one."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._added: dict[int, dict[str, str]] = {}
        self._most: dict[int, int] = {}
        self.computed: set[int] = set()
        """What steps compute, each with the rows that it is computed of."""

    def number(self, *term: Hashable) -> int:
        """The number of a term."""
        return self._numbers.setdefault(term, len(self._numbers))

    def source(self, scan: kernel.Scan, columns: Iterable[str]) -> RowsAfter:
        """All rows of a source, with these of its columns."""
        rows = self.number("Scan", scan.name, scan.unit, scan.owners)
        numbers = {name: self.number("column", rows, name) for name in columns}
        if not isinstance(scan.unit, kernel.Person):
            return RowsAfter(rows, numbers)
        time = scan.unit.time
        whose = numbers.get(scan.unit.column), None if time is None else numbers.get(time)
        return RowsAfter(rows, numbers, *whose)

    def frames(self, plan: kernel.Plan) -> list[RowsAfter]:
        """The rows of each frame of a physical plan."""
        frames: list[RowsAfter] = []
        for frame in plan.frames:
            match frame:
                case kernel.Scan(columns=columns):
                    frames.append(self.source(frame, (name for name, _ in columns)))
                case kernel.Union(left, right) | kernel.Meet(left, right):
                    frames.append(self.both(frame, frames[left], frames[right]))
                case _:
                    frames.append(self.after(frame, frames[frame.input]))
        return frames

    def after(self, frame: kernel.Frame, before: RowsAfter) -> RowsAfter:
        """The rows after a step with one frame. What a public table adds is known of steps of the
        physical plan, and is the same after an equal step.
        """
        rows, columns = before.number, before.columns
        match frame:
            case kernel.Map(_, named):
                new = {name: self.row(row, before) for name, row in named}
                computed = (new[name] for name, row in named if not isinstance(row, kernel.Col))
                self.computed.update(self.number("computed", rows, one) for one in computed)
                return replace(before, columns=new)
            case kernel.Gather(_, by, new_columns, _, beside):  # a reading does not have bounds
                keys = {name: self.row(row, before) for name, row in by}
                about = rows, *keys.values()
                new = {
                    name: self.number("aggregate", about, self.row(call, before))
                    for name, call in new_columns
                }
                self.computed.update(new.values())
                if beside:
                    return replace(before, columns={**columns, **new})
                each = self.number("Gather", about)
                return replace(before, number=each, columns={**columns, **keys, **new})
            case kernel.Explode(_, column, most):
                step = self.number("Explode", rows, self.row(kernel.Col(column), before))
                most = self._most.setdefault(step, most) if most == 0 else most
                self._most.setdefault(step, most)
                rows = self.number("first", step, most)
                new = {column: self.number("element", rows)}
                return replace(before, number=rows, columns={**columns, **new})
            case kernel.Lookup(_, public, on, how, names):
                here = tuple((self.row(kernel.Col(a), before), b) for a, b in on)
                rows = self.number("Lookup", rows, public, here, how)
                added = self._added.setdefault(rows, {})
                added.update((name, name) for name in names)
                new = {name: self.number("public", rows, name) for name in added}
                return replace(before, number=rows, columns={**new, **columns})
            case kernel.OneEach(_, by_rows, listed):
                groups = tuple(self.row(row, before) for row in by_rows)
                rows = self.number("OneEach", rows, groups, listed)
                numbers = zip((frame.rows, frame.groups, frame.fullest), range(3), strict=True)
                new = {name: self.number("of individual", rows, which) for name, which in numbers}
                for end in frame.ends:
                    about = rows, self.row(end.row, before), end.total
                    new[end.least] = self.number("least", *about)
                    new[end.largest] = self.number("largest", *about)
                self.computed.update(new.values())
                columns = {**columns, **new}
                return replace(before, number=rows, columns=columns, are_weighed=False)
            case kernel.KeepRows(_, n, by, first) | kernel.KeepGroups(_, n, by, first):
                of = (*by,) if first is None else (*by, first)
                which = tuple(self.row(kernel.Col(name), before) for name in of)
                kind = type(frame).__name__
                return replace(before, number=self.number(kind, rows, n, len(by), which))
            case kernel.Part(_, by, key):  # a reading does not have the types of keys
                frame = replace(frame, key=tuple(replace(value, dtype="") for value in key))
        assert isinstance(frame, kernel.Filter | kernel.Part | kernel.Without | kernel.Weigh)
        number = self.node(replace(frame, input=rows), before)
        assert isinstance(number, int)
        are_weighed = before.are_weighed or isinstance(frame, kernel.Weigh)
        return replace(before, number=number, are_weighed=are_weighed)

    def both(
        self,
        frame: kernel.Union | kernel.Meet,
        left: RowsAfter,
        right: RowsAfter,
        suffix: str | None = None,
    ) -> RowsAfter:
        """The rows after a step with two frames. A reading has the suffix that columns of the right
        frame get, and no names.
        """
        if isinstance(frame, kernel.Union):
            rows = self.number("Union", left.number, right.number)
            columns = {
                name: self.number("either", column, right.columns[name])
                for name, column in left.columns.items()
                if name in right.columns
            }
            owner, time = (
                None if None in pair else self.number("either", *pair)
                for pair in ((left.owner, right.owner), (left.time, right.time))
            )
            return RowsAfter(rows, columns, owner, time)
        on = tuple(
            (self.row(kernel.Col(a), left), self.row(kernel.Col(b), right)) for a, b in frame.on
        )
        rows = self.number("Meet", left.number, right.number, on, frame.how)
        added = self._added.setdefault(rows, {})
        added.update((now, name) for name, now in frame.new)
        new = {
            now: self.number("met", rows, self.row(kernel.Col(name), right))
            for now, name in added.items()
            if suffix is None or now == (name + suffix if name in left.columns else name)
        }
        return replace(left, number=rows, columns={**left.columns, **new})

    def row(self, row: kernel.Row, rows: RowsAfter) -> int:
        """An expression of columns."""
        match row:
            case kernel.Col(name):
                number = rows.columns.get(name)
                return self.number("missing", name) if number is None else number
            case kernel.Lit(dtype, value, parameter):
                return self.number("Lit", dtype, value, parameter)
            case kernel.Call(operation, operands, constants):
                inner = tuple(self.row(one, rows) for one in operands)
                return self.number("Call", operation, inner, constants)

    def node(self, value: object, rows: RowsAfter) -> Hashable:
        """Any other part of a plan, whose expressions are of these rows."""
        match value:
            case kernel.Col() | kernel.Lit() | kernel.Call():
                return self.row(value, rows)
            case kernel.Listed(sizes=sizes) if len(sizes) > 1:  # a reading has their product
                return self.node(replace(value, sizes=(prod(sizes),)), rows)
            case tuple() if value and not isinstance(value[0], int | Fraction):
                return tuple(map(self.node, value, repeat(rows)))
        if not is_dataclass(value) or isinstance(value, type):
            assert isinstance(value, Hashable)
            return value
        names = map(attrgetter("name"), fields(value))
        parts = map(getattr, repeat(value), names)
        return self.number(type(value).__name__, *map(self.node, parts, repeat(rows)))


def disagreement(plan: PlanData, physical: kernel.Plan) -> str | None:
    """The first statement of a plan that its physical plan contradicts, if any."""
    try:
        return next(_disagreements(plan, physical), None)
    except _ODD:
        return "its numbers"


_ODD = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    DPFrameError,
    LookupError,
    TypeError,
    ValueError,
    kernel.Refused,
)
"""What definitions raise that no planner writes."""


def _disagreements(plan: PlanData, physical: kernel.Plan) -> Iterator[str]:
    if not _is_cost(plan.cost, physical):
        yield "cost"
    if plan.found is None:
        if physical.options:
            yield "found"
        if physical.composition != plan.composition:
            yield "composition"
        yield from _of_query(plan, physical)
        return
    search, choices = next(blocks_of(plan)), plan.found.choices
    if len(physical.options) != len(choices):
        yield "found"
        return
    yield from _of_query(search, physical)
    query = after_search(plan)
    for choice, option in zip(choices, physical.options, strict=True):
        if not _is_cost(choice.cost, option):
            yield f"found.choices (limit {choice.n})"
        limits = (f for f in option.frames if isinstance(f, kernel.KeepRows | kernel.KeepGroups))
        if not any(frame.n == choice.n for frame in limits):
            yield f"found.choices (limit {choice.n})"
        if option is not physical.options[-1]:
            yield from _Comparison(query, option, plan.found, choice.n).differences()
    last = physical.options[-1]
    if last.composition != plan.composition:
        yield "composition"
    yield from _of_query(query, last)


def _is_cost(cost: Budget, physical: kernel.Plan) -> bool:
    measure = physical.measure if physical.composition == "sum" else "epsilon"
    return (cost.currency, cost.main, cost.slack) == (measure, physical.cost, physical.delta)


def _of_query(plan: PlanData, physical: kernel.Plan) -> Iterator[str]:
    """What differs in the draws, and in the frames and tables that they are of."""
    if plan.unit.adjacency != physical.neighbours:
        yield "unit"
    releases, draws = plan.draws, physical.draws
    if len(releases) != len(draws):
        yield "releases"
        return
    compared = _Comparison(plan, physical)
    for release, draw in zip(releases, draws, strict=True):
        if not _are_norms(release, draw, physical, compared.facts):
            yield f"sensitivity of {release.name!r}"
        stated = release.cost
        if (stated.currency, stated.main, stated.slack) != (
            physical.measure,
            draw.cost,
            draw.delta,
        ):
            yield f"cost of {release.name!r}"
        if not _is_law(release, draw, draws):
            yield f"mechanism of {release.name!r}"
        if release.joint is not None and not _is_joint(release.joint, draw, compared):
            yield f"joint draw of {release.name!r}"
    yield from compared.differences()


def _are_norms(
    release: NoisyAggregate, draw: kernel.Draw, physical: kernel.Plan, facts: Sequence[Facts]
) -> bool:
    """Whether the stated norms of numbers, or ranges of scores, are the kernel's."""
    what = draw.what
    if isinstance(what, kernel.Appear | kernel.Reports):  # their laws say all
        return True
    is_noisy = isinstance(draw.law, kernel.Laplace | kernel.Gaussian)
    if isinstance(what, kernel.Vector | kernel.Running | kernel.Nights) or (
        isinstance(what, kernel.Rank) and is_noisy
    ):
        exact = release.exact if release.joint is None else release.joint.exact
        norms = ExactSensitivity.of(norms_of(physical, facts, what))
        if not release.law.draws_scores:
            return exact == norms
        # scores: as many times the norms of one candidate are stated, and not all move so far
        return (
            exact.l1 >= norms.l1
            and exact.l2_squared >= norms.l2_squared
            and exact.linf >= norms.linf
        )
    ranges = ranges_of(physical, facts, what)
    return release.scores == ScoreRange(ranges.l1, ranges.squares, ranges.linf)


def _is_joint(joint: JointDraw, draw: kernel.Draw, whole: _Comparison) -> bool:
    """Whether rows move the numbers of a draw as is stated."""
    physical = whole.physical
    if not isinstance(draw.what, kernel.Vector):
        return False
    tables = [physical.tables[place] for place in draw.what.tables]
    additions = [addition_of(table, place) for place, table in enumerate(tables)]
    of_all = tables[0].keys is None and whole.facts[tables[0].frame].complete
    changes = physical.neighbours == "change-one"
    return joint.is_of(draw, additions, changes=changes, whole=of_all)


def _is_law(release: NoisyAggregate, draw: kernel.Draw, draws: Sequence[kernel.Draw]) -> bool:
    by_number = release.law.number_law
    if by_number is None:
        return draw.law == release.law.kernel_law
    if not isinstance(draw.law, kernel.Threshold) or not 0 <= draw.law.draw < len(draws):
        return False
    threshold, noise = by_number
    return draw.law.least == threshold and draws[draw.law.draw].law == noise.kernel_law


_MOST_CHOICES = 256
"""There are several where sources have one name, and in options."""
_Limits = Mapping[tuple[type, tuple[str, ...], int], int]
"""Other numbers for limits, by their kind and columns."""


class _Comparison:
    """The steps, tables and draws of a reading, compared with those of its physical plan. For an
    option that is not the last, which the reading has: the limit that is found, and its value
    there. Its draws may be other ones of the same tables.
    """

    def __init__(
        self,
        plan: PlanData,
        physical: kernel.Plan,
        found: FoundLimit | None = None,
        limit: int = 0,
    ) -> None:
        self.physical, self.found, self.limit = physical, found, limit
        self.blocks, self.terms = list(blocks_of(plan)), Terms()
        self.sources: dict[kernel.Scan, dict[str, str]] = {}
        for frame in physical.frames:
            if isinstance(frame, kernel.Scan):
                self.sources.setdefault(replace(frame, columns=()), {}).update(frame.columns)
        self.facts, self.frames = facts_of(physical.frames), self.terms.frames(physical)
        self.computed, self.terms.computed = self.terms.computed, set()
        self.tables = [self.table(one, self.frames[one.frame]) for one in physical.tables]
        numbers = dict(enumerate(self.tables))
        self.subjects = [with_places(draw.what, numbers) for draw in physical.draws]

    def table(self, table: kernel.Table, rows: RowsAfter) -> int:
        """The number of a table."""
        number = self.terms.node(replace(table, frame=rows.number), rows)
        assert isinstance(number, int)
        return number

    @cached_property
    def public_keys(self) -> Sequence[kernel.Listed]:
        """All public keys."""
        every = (table.keys for table in self.physical.tables)
        return [*dict.fromkeys(keys for keys in every if isinstance(keys, kernel.Listed))]

    def edges_of(self, edges: Said, dtype: Said) -> Sequence[Fraction]:
        """The exact edges of steps, from what values of a type are compared with."""
        nodes = nodes_of(self.physical.tables)
        every = (node.edges for node in nodes if isinstance(node, kernel.UpTo))
        for exact in dict.fromkeys(every):
            if _size(exact) != edges["size"] or edges["size"] > MOST_EDGES:
                continue  # few bytes may stand for any amount of numbers
            listed_out = _list(exact)
            # what values of a type are compared with
            kind = DType(dtype["name"], scale=dtype.get("scale"))
            value = Value(Column(""), Domain(kind, nullable=True))
            numbers = Edges.of([comparable(number, value) for number in listed_out], ())
            listed = None if numbers.listed is None else [*map(definition, numbers.listed)]
            if (listed, numbers.digest) == (edges.get("listed"), edges.get("digest")):
                return listed_out
        return ()

    def differences(self) -> Iterator[str]:
        """What is different."""
        chosen, first = [], 0
        for block in self.blocks:
            yield from self._of_types(block)
            tried = []
            for scans, limits in islice(self._choices(block), _MOST_CHOICES):
                tried.append(_Block(self, block, scans, limits, first))
                if not tried[-1].differences:
                    break
            if not tried:
                yield "unit"
                return
            chosen.append(tried[-1] if not tried[-1].differences else tried[0])
            first += 1 + max((release.draw for release in block.releases), default=-1)
        for one in chosen:
            yield from one.steps
        read = {number for one in chosen for number in one.read}
        for place, (frame, rows) in enumerate(zip(self.physical.frames, self.frames, strict=True)):
            if rows.number not in read:
                of = f"the source {frame.name!r}" if isinstance(frame, kernel.Scan) else ""
                yield f"what it states of {of or f'frame {place}'}"
        if not self.computed <= self.terms.computed:
            yield "what it states that steps compute"
        for one in chosen:
            yield from one.draws
        if self.found is not None:
            known = {table for one in chosen for table in (*one.expected, *one.counts)}
            for place, number in enumerate(self.tables):
                if number not in known:
                    yield f"what it states of table {place}"
            for one in chosen:
                if not one.expected <= {*self.tables}:
                    yield f"what it states of the limit {self.limit}"
            forms = {form for one in chosen for what in one.subjects for form in _forms_of(what)}
            for place, what in enumerate(self.subjects):
                if not isinstance(what, kernel.Appear) and not forms.issuperset(_forms_of(what)):
                    yield f"what it states of draw {place}"

    def _of_types(self, block: PlanData) -> Iterator[str]:
        """Columns of other types. None is known of a column that nothing reads."""
        for column in block.columns or ():
            types = [
                columns[column.name]
                for scan, columns in self.sources.items()
                if _is_named(scan.name, column.frame) and column.name in columns
            ]
            # a type may be stated with the one value that a declaration leaves
            starts = tuple(f"{kind}, always " for kind in types)
            if types and column.type not in types and not column.type.startswith(starts):
                yield f"type of the column {column.name!r}"

    def _choices(self, block: PlanData) -> Iterator[tuple[dict[int, kernel.Scan], _Limits]]:
        """Which sources its frames may be, and which limits it may have in an option."""
        steps = [step.definition for step in block.steps]
        others = list(_frames_in(steps))
        stated = {0: [scan for scan in self.sources if _is_source(scan, block, others)]}
        for other in others:
            adjacency = self.physical.neighbours
            those = [scan for scan in self.sources if _is_other(scan, other, adjacency)]
            stated.setdefault(other["number"], those)
        for scans in product(*stated.values()):
            if len({scan.name for scan in scans}) == len(scans):
                for limits in self._limits(steps):
                    yield dict(zip(stated, scans, strict=True)), limits

    def _limits(self, steps: Sequence[Said]) -> Iterator[_Limits]:
        """The limits of an option: the one that is found, and one behind it that is weaker, by
        which it is found how many rows are dropped.
        """
        if self.found is None:
            yield {}
            return
        kind = kernel.KeepRows if self.found.step == "limit_rows" else kernel.KeepGroups
        limits: _Limits = {(kind, self.found.by, self.found.choices[-1].n): self.limit}
        yield limits
        if steps and steps[-1]["step"] == "LimitRows" and not steps[-1]["by"]:
            most = steps[-1]["n"]
            rows = (f.n for f in self.physical.frames if isinstance(f, kernel.KeepRows))
            for n in sorted({*rows}, reverse=True):
                if self.limit <= n <= most:
                    yield {**limits, (kernel.KeepRows, (), most): n}


class _Block:
    """One frame of a reading with its groups, and what is drawn of it."""

    def __init__(
        self,
        whole: _Comparison,  # The comparison that it is a part of
        plan: PlanData,  # The frame as a plan of its own
        scans: Mapping[int, kernel.Scan],  # The source that each of its frames is
        limits: _Limits,  # The limits of an option
        first: int,  # The place of its first draw
    ) -> None:
        self._whole, self._plan, self._first = whole, plan, first
        self._scans, self._limits = scans, limits
        self.read: set[int] = set()
        """The numbers of its rows after each step."""
        steps = [step.definition for step in plan.steps]
        self.steps: list[str] = []
        """Steps that the physical plan does not have there."""
        self._rows = self._after(0, steps, [f"steps[{n}].definition" for n in range(len(steps))])
        self._by: tuple[Named, ...] = value_of(plan.grouped_by or [])
        self._scope = Scope(self._table, len(self._by))
        finders = [n for n, one in enumerate(plan.releases) if isinstance(one.law, KeyMechanism)]
        self._finder = finders[0] if finders else None
        self._known: dict[tuple[int, int], kernel.What] = {}
        self.subjects: list[kernel.What] = []
        self.expected: set[int] = set()
        """The tables that are drawn from."""
        self.draws = list(self._of_groups())
        self.draws += self._of_tables() if whole.found is not None else self._of_draws()

    @property
    def differences(self) -> Sequence[str]:
        return self.steps or self.draws

    @cached_property
    def counts(self) -> set[int]:
        """Tables with the number of rows, which a draw may have next to sums."""
        return {self._table_of(None, None, adds) for adds in (kernel.One(), kernel.People())}

    def _after(self, number: int, steps: Sequence[Said], names: Sequence[str]) -> RowsAfter:
        """The rows after some steps, each with a name for messages."""
        terms, scan = self._whole.terms, self._scans[number]
        there = {rows.number for rows in self._whole.frames}
        rows = terms.source(scan, self._whole.sources[scan])
        self.read.add(rows.number)
        for one, name in zip(steps, names, strict=True):
            if "other" in one:
                other = one["other"]
                right = self._after(other["number"], other["steps"], [name] * len(other["steps"]))
                on = tuple(map(tuple, one.get("on", ())))
                step = (
                    kernel.Union(0, 0)
                    if one["step"] == "Concat"
                    else kernel.Meet(0, 0, on, one["how"], ())
                )
                rows = terms.both(step, rows, right, one.get("suffix"))
            else:
                columns = rows.columns
                owner, time = (
                    next((c for c, number in columns.items() if number == who), None)
                    for who in (rows.owner, rows.time)
                )
                for frame in frames_of(one, columns, owner, time):
                    if isinstance(frame, kernel.KeepRows | kernel.KeepGroups):
                        limit = type(frame), frame.by, frame.n
                        frame = replace(frame, n=self._limits.get(limit, frame.n))
                    rows = terms.after(frame, rows)
            self.read.add(rows.number)
            if rows.number not in there:
                self.steps.append(name)
        return rows

    def _keys(self, kept: Sequence[int] | None) -> Iterator[kernel.Keys | None]:
        """The keys of a table, by all columns or by some of them, whose keys no reading has."""
        by = named_rows(self._by if kept is None else [self._by[place] for place in kept])
        if not by:
            yield None
        elif self._finder is not None:
            yield kernel.Found(by, self._first + self._plan.releases[self._finder].draw)
        elif kept is None or len(kept) == len(self._by):
            yield kernel.Listed(by, (self._plan.groups or 0,), self._plan.keys_digest or "")
        else:
            yield from (kernel.Listed(by, one.sizes, one.digest) for one in self._whole.public_keys)

    def _table(self, table: Table) -> int:
        unit = self._plan.unit
        time = unit.time if isinstance(unit, Identifier) else None
        adds = table.statistic.adds(cast("FrameFacts", SimpleNamespace(time=time)))
        cells = None if table.cells is None else table.cells.node
        number = self._table_of(table.kept, cells, adds)
        self.expected.add(number)
        return number

    def _what(self, measurement: Said, stated: kernel.What) -> kernel.What:
        return what_of(measurement, self._by, self._scope, self._whole.edges_of, stated)

    def _table_of(
        self, kept: Sequence[int] | None, cells: kernel.Cells | None, adds: kernel.Adds
    ) -> int:
        tables = (kernel.Table(0, keys, cells, adds) for keys in self._keys(kept))
        numbers = [self._whole.table(table, self._rows) for table in tables]
        return next((number for number in numbers if number in self._there), numbers[0])

    @cached_property
    def _there(self) -> set[int]:
        """The tables that its draws are of; in an option all tables."""
        if self._whole.found is not None:
            return {*self._whole.tables}
        tables = set[int]()
        for release in self._plan.releases:
            what = self._whole.subjects[self._first + release.draw]
            if isinstance(what, kernel.Vector | kernel.Choice):
                tables.update(what.tables)
            else:
                tables.add(what.table)
        return tables

    def _numbers_of(self, choice: kernel.Choice, measurement: Said) -> kernel.Vector:
        """The numbers of candidates, where all of them are drawn with noise."""
        number, by = len(choice.tables), measurement.get("kept", self._by)
        each = tuple(tuple(int(i == j) for j in range(number)) for i in range(number))
        return kernel.Vector(choice.tables, each, tuple(range(len(by))), 1, total=False)

    def _of_groups(self) -> Iterator[str]:
        """Public keys that no table has."""
        stated = self._plan.keys_digest, self._plan.groups
        known = any(stated == (one.digest, prod(one.sizes)) for one in self._whole.public_keys)
        if self._plan.groups is not None and not known and stated != self._keys_of_sets():
            yield "groups"

    def _keys_of_sets(self) -> tuple[str, int] | None:
        """The digest of the keys of its sets of columns, and how many groups all columns make; None
        where a table has all columns, so that its keys are those of the plan.
        """
        tables = zip(self._whole.tables, self._whole.physical.tables, strict=True)
        every = {table.keys for number, table in tables if number in self._there}
        listed = {keys for keys in every if isinstance(keys, kernel.Listed)}
        if any(len(keys.by) == len(self._by) or len(keys.by) != len(keys.sizes) for keys in listed):
            return None
        sizes = {pair for keys in listed for pair in zip(keys.by, keys.sizes, strict=True)}
        if {column for column, _ in sizes} != {*named_rows(self._by)}:
            return None
        if len(sizes) != len(self._by):
            return None
        return digest_of_sets(keys.digest for keys in listed), prod(n for _, n in sizes)

    def _of_tables(self) -> Iterator[str]:
        """For an option, whose draws may be other ones: all tables, and nothing different."""
        if self._finder is not None:
            self.expected.add(self._table_of(None, None, self._counts))
        subjects = self._whole.subjects
        stated = next((what for what in subjects if isinstance(what, kernel.Running)), subjects[0])
        for output in self._plan.outputs:
            for measurement in _measurements(output):
                what = self._what(measurement, stated)
                self.subjects.append(what)
                if isinstance(what, kernel.Choice):
                    self.subjects.append(self._numbers_of(what, measurement))
        yield from ()

    def _of_draws(self) -> Iterator[str]:
        """Outputs that are not made of the draws that they name."""
        releases = self._plan.releases
        if not all(output.releases for output in self._plan.outputs):
            return  # `contradiction` says so in other words
        used = set[int]()
        if self._finder is not None:
            used.add(self._finder)
            if not self._finds_groups(releases[self._finder]):
                yield "groups"
        for output in self._plan.outputs:
            left, known = list(output.releases), list[int]()
            for measurement in _measurements(output):
                if left and self._is_drawn(measurement, releases[left[0]]):
                    known.append(left.pop(0))
                elif not any(self._is_drawn(measurement, releases[place]) for place in known):
                    yield f"definition of {output.name!r}"
            if left and left != [self._finder]:
                yield f"definition of {output.name!r}"
            used |= {*output.releases}
        if used != {*range(len(releases))}:
            yield "releases"
        if self._there - self.expected - self.counts:
            yield "releases"

    def _finds_groups(self, release: NoisyAggregate) -> bool:
        """Whether groups appear by how many individuals, or rows, they have."""
        what = self._whole.subjects[self._first + release.draw]
        if not isinstance(what, kernel.Appear):
            return False
        self.expected.add(what.table)
        place = self._whole.tables.index(what.table)
        facts = self._whole.facts[self._whole.physical.tables[place].frame]
        most = 1 if isinstance(self._counts, kernel.People) else facts.rows
        return (what.table, what.rows) == (self._table_of(None, None, self._counts), most)

    @property
    def _counts(self) -> kernel.Adds:
        """What groups appear by."""
        return kernel.People() if isinstance(self._plan.unit, Identifier) else kernel.One()

    def _is_drawn(self, measurement: Said, release: NoisyAggregate) -> bool:
        """Whether a measurement with a definition is what a release is, or follows from it."""
        stated = self._whole.subjects[self._first + release.draw]
        key = id(measurement), release.draw
        what = self._known.get(key)
        if what is None:
            what = self._known[key] = self._what(measurement, stated)
        if release.law.draws_scores and isinstance(what, kernel.Choice):
            what = self._numbers_of(what, measurement)
        joint = release.joint
        if joint is None or not isinstance(stated, kernel.Vector):
            return what == stated
        if not isinstance(what, kernel.Vector):
            return False
        same = {"tables": (), "matrix": ()}
        if replace(what, **same) != replace(stated, **same):  # type: ignore[arg-type]
            return False
        times: dict[int, int] = {}
        for factor, row in zip(joint.factors, stated.matrix, strict=True):
            if factor:
                for table, of_table in zip(stated.tables, row, strict=True):
                    if of_table:
                        times[table] = times.get(table, 0) + factor * of_table
        parts = PARTS if self._rows.are_weighed else 1
        numbers = {table: n * parts for table, n in times.items() if n}
        if numbers != {what.tables[0]: joint.divisor}:
            return False
        places = {what.tables[0]: self._whole.tables.index(what.tables[0])}
        norms = norms_of(self._whole.physical, self._whole.facts, with_places(what, places))  # type: ignore[arg-type]
        exact = ExactSensitivity.of(norms)
        return release.exact == (exact if parts == 1 else exact.scale(Fraction(1, parts)))


def _size(numbers: kernel.Numbers) -> int:
    match numbers:
        case kernel.Progression(count=count):
            return count
        case kernel.Ratios(numerators):
            return len(numerators)
    return len(numbers)


def _list(numbers: kernel.Numbers) -> Sequence[Fraction]:
    match numbers:
        case kernel.Progression(first, step, count):
            return [first + step * place for place in range(count)]
        case kernel.Ratios(numerators, denominator):
            return [Fraction(number, denominator) for number in numerators]
    return numbers


def _forms_of(what: kernel.What) -> Iterator[object]:
    """What is drawn, in a form that all options have in common. A vector may have several tables.
    Quantiles are chosen one inside the other, all at once or one by one, as suits the limit.
    """
    match what:
        case kernel.Vector():
            yield replace(what, tables=(), matrix=())
        case kernel.Rank():
            yield what.table, what.quantile
        case kernel.Ranks() | kernel.Levels():
            yield from ((what.table, quantile) for quantile in what.quantiles)
        case _:
            yield what


def _measurements(output: PlanOutput) -> Iterator[Said]:
    """The definitions of what an output is made of, without formulas and public tables."""
    assert isinstance(output.definition, list)
    return filter(is_measurement, output.definition)


def _frames_in(steps: Sequence[Said]) -> Iterator[Said]:
    """All other frames that steps are with."""
    for other in (step["other"] for step in steps if "other" in step):
        yield other
        yield from _frames_in(other["steps"])


def _is_source(scan: kernel.Scan, plan: PlanData, others: Sequence[Said]) -> bool:
    """Whether a source is the one that a plan is of."""
    unit: kernel.Unit = (
        kernel.Person(plan.unit.column, plan.unit.window, plan.unit.time)
        if isinstance(plan.unit, Identifier)
        else kernel.Rows(plan.unit.contributions)
    )
    if not _is_named(scan.name, plan.source) or scan.unit != unit:
        return False
    start, owners = f"{plan.source}: ", scan.owners
    if owners is None:
        owned_too = any("owners" in other for other in others)
        return owned_too or not any(one.startswith(start + OWNED) for one in plan.remarks)
    names = (owners.source, re.sub(r" \([0-9]+\)$", "", owners.source), None)
    keys = owners.here, owners.there
    return any(start + owner_remark(*keys, name) in plan.remarks for name in names)


def _is_other(scan: kernel.Scan, other: Said, adjacency: Adjacency) -> bool:
    """Whether a source is one that a frame is joined with."""
    unit: Unit = (
        Rows(adjacency, scan.unit.contributions)
        if isinstance(scan.unit, kernel.Rows)
        else Identifier(scan.unit.column, scan.unit.every, scan.unit.time)
    )
    if not _is_named(scan.name, other["frame"]) or unit.words() != other["unit"]:
        return False
    owners, stated = scan.owners, other.get("owners")
    if owners is None or stated is None:
        return owners is stated
    return _is_named(owners.source, stated[0]) and [owners.here, owners.there] == stated[1:]


def _is_named(name: str, stated: str) -> bool:
    """Whether a source has a name, with a number where several sources do."""
    rest = name.removeprefix(stated)
    return name.startswith(stated) and re.fullmatch(r"( \([0-9]+\))?", rest) is not None
