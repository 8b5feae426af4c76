"""What will run, as a physical plan for the kernel, and what a session says in plans of itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from itertools import count
from typing import TypeVar, get_args

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.draw import Draw, Places, number_of
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.measurement import Table as ExactTable
from dpframe.aggregates.request import with_places
from dpframe.core.budget import Budget
from dpframe.core.dtypes import DType
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Literal, Operation, Tree
from dpframe.errors import Unsound
from dpframe.frames.definition import type_words
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import SetGroups
from dpframe.frames.joins import JoinPrivate, JoinPublic
from dpframe.frames.nodes import has_no_node, keys_of, step_of, text_of_constant, unit_of
from dpframe.frames.per_individual import PerIndividual
from dpframe.frames.relation import Binary, Concat, Relation, shares_choices
from dpframe.kernel import Refused
from dpframe.kernel import plan as kernel
from dpframe.ledger.approvals import StatedBudget
from dpframe.ledger.parts import Share
from dpframe.lower.from_plan import Handles, PlanTables, types_of_digest
from dpframe.optimise.prepared import Prepared, PreparedTogether
from dpframe.optimise.queries import Place
from dpframe.plan.data import PlanData
from dpframe.plan.several import blocks_of

# -- what will run, as a physical plan for the kernel ---------------------------------------------
# Nothing here is trusted: the kernel checks what comes out, and refuses what it has no node for.


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """A physical plan, and what its items are of."""

    plan: kernel.Plan  # The plan
    parts: tuple[Places, ...]  # Where draws stand in it, for each query that it runs
    handles: Handles  # The frames that it names
    options: tuple[Translation, ...] = ()  # The same of each plan that may run afterwards
    # The tables of each query, read from the plan once the kernel has verified it.
    tables: tuple[tuple[PlanTables, ...], ...] = ()


def physical(prepared: PreparedTogether, sources: dict[int, str] | None = None) -> kernel.Plan:
    """The physical plan of what will run."""
    return translate(prepared, Lists() if sources is None else Lists(sources)).plan


def translate(prepared: PreparedTogether, lists: Lists | None = None) -> Translation:
    """The physical plan of what will run. It is the same in every process. `prepared`: what will
    run. `lists`: where its items are kept; it may have the names of the sources of a larger plan.
    Raises `Refused` when the kernel has no node for a part of it.
    """
    lists = Lists() if lists is None else lists
    plan, limits = prepared.plan, prepared.limits
    composition, measure = _composition(prepared)
    parts = list(zip(prepared.parts, blocks_of(plan), strict=True))
    drawn = [lists.add(part, block) for part, block in (parts if limits is None else parts[:1])]
    options = () if limits is None else limits.options
    each = tuple(translate(option, Lists(lists.sources)) for option in options)
    physical_plan = kernel.Plan(
        plan.unit.adjacency,
        _of_columns_read(lists),
        tuple(lists.tables),
        tuple(lists.draws),
        measure,
        plan.cost.main,
        plan.cost.slack,
        tuple(option.plan for option in each),
        composition,
    )
    places = tuple(Places(physical_plan, draws) for draws in drawn)
    return Translation(physical_plan, places, lists.handles, each)


def _of_columns_read(lists: Lists) -> tuple[kernel.Frame, ...]:
    """The frames without columns that nothing names."""
    named = _names_in(lists.frames, [*lists.tables, *lists.draws])

    def read(frame: kernel.Frame) -> kernel.Frame:
        if isinstance(frame, kernel.Scan):
            return replace(frame, columns=tuple(p for p in frame.columns if p[0] in named))
        if isinstance(frame, kernel.Map):
            return replace(frame, columns=tuple(p for p in frame.columns if p[0] in named))
        return frame

    return tuple(map(read, lists.frames))


def _names_in(frames: Iterable[kernel.Frame], naming: list[object]) -> set[str]:
    """What frames, and parts of a plan that are taken from the list, name. A step that only passes
    a column on does not name it; any other text that is the name of a column does.
    """
    for frame in frames:
        match frame:
            case kernel.Scan():
                naming += frame.unit, frame.owners
            case kernel.Map():
                naming += (pair for pair in frame.columns if not _stays(pair))
            case _:
                naming.append(frame)
    return _texts(naming)


def _stays(pair: tuple[str, kernel.Row]) -> bool:
    name, row = pair
    return isinstance(row, kernel.Col) and row.name == name


def _texts(open_: list[object]) -> set[str]:
    """All texts in parts of a physical plan, which are taken from the list."""
    found = set[str]()
    while open_:
        value = open_.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, tuple):
            if value and not isinstance(value[0], int | Fraction):  # there may be many numbers
                open_ += value
        elif hasattr(value, "__dict__"):
            open_ += vars(value).values()
    return found


def _composition(prepared: PreparedTogether) -> tuple[kernel.Composition, kernel.Measure]:
    """How costs of draws make the plan's, and their measure. A search and the queries after it are
    separate plans, whose costs add up.
    """
    plan = prepared.plan
    if prepared.limits is None and plan.composition == "zcdp":
        return "zcdp", "rho"
    if prepared.limits is None and plan.composition == "numerical":
        return "numerical", "rho"
    for measure in get_args(kernel.Measure):
        if measure == plan.cost.currency:
            return "sum", measure
    raise has_no_node(plan.cost.currency)


@dataclass
class Lists:
    """The items of a plan, as they are added. An equal item is added once."""

    sources: dict[int, str] = field(default_factory=dict)
    """Names of protected frames by their tokens: two frames may have one name."""
    frames: dict[kernel.Frame, int] = field(default_factory=dict)
    tables: dict[kernel.Table, int] = field(default_factory=dict)
    draws: list[kernel.Draw] = field(default_factory=list)
    protected: dict[str, Relation] = field(default_factory=dict)
    """Protected frames by these names, without steps."""
    public: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Public frames and public keys by their digests."""
    types: dict[str, DType] = field(default_factory=dict)
    moments: dict[tuple[str, str], Operation] = field(default_factory=dict)
    """As `Handles` has them."""
    relations: dict[tuple[int, bool], tuple[Relation, int]] = field(default_factory=dict)
    """Frames after all steps, by their identities and choices, and their places. They are kept here
    so that no other one gets such an identity.
    """
    finder: int = 0
    """The draw that finds the groups of the query whose draws are added."""

    @property
    def handles(self) -> Handles:
        """What the plan names."""
        return Handles(self.protected, self.sources, self.public, self.types, self.moments)

    def note(self, trees: Iterable[Tree]) -> None:
        """Keep types for which a plan has a digest, and moments, whose zones it does not name."""
        open_ = [*trees]
        while open_:
            tree = open_.pop()
            if isinstance(tree, Literal):
                self.types |= types_of_digest(tree.dtype)
            elif isinstance(tree, Call):
                open_ += tree.args
                operation = tree.operation
                constants = text_of_constant(operation.constants) if operation.constants else ""
                if '{"datetime":' in constants:
                    known = self.moments.setdefault((operation.name, constants), operation)
                    if repr(known) != repr(operation):
                        raise kernel.Refused("moments that differ in the name of their zone alone")

    def add(self, part: Prepared, plan: PlanData) -> dict[Draw, int]:
        """All draws of one query, and their places."""
        used = {(use.part, use.mechanism): n for n, use in enumerate(part.parts)}
        of_draws = [(plan.releases[used[d.keys[0]]], d) for d in part.draws]
        of_draws.sort(key=lambda one: one[0].draw)  # in the order of the plan that people read
        draws = [draw for _, draw in of_draws]
        finder = next(
            (n for n, d in enumerate(draws) if isinstance(d.measurement, KeySelection)), 0
        )
        first = len(self.draws)
        self.finder = first + finder
        for release, draw in of_draws:
            law, what = draw.law, self.what(draw.measurement, part.query)
            if law.draws_scores:
                what = self.noisy(what)
            made: kernel.Law
            by_number = law.number_law
            if by_number is not None:
                number = number_of(draw.measurement, [one.measurement for one in draws])
                if number is None:
                    raise kernel.Refused("a threshold of no number")
                if draws[number].law != by_number[1]:
                    raise kernel.Refused("a threshold has other noise than its number")
                made = kernel.Threshold(by_number[0], first + number)
            else:
                made = law.kernel_law
            self.draws.append(kernel.Draw(what, made, release.cost.main, release.cost.slack))
        return {draw: first + number for number, draw in enumerate(draws)}

    def frame(self, frame: kernel.Frame) -> int:
        """The place of a frame."""
        return self.frames.setdefault(frame, len(self.frames))

    def source(self, token: int, name: str) -> str:
        """The name of a protected frame, with a number where another one has it too."""
        if token not in self.sources:
            free = (name if n == 1 else f"{name} ({n})" for n in count(1))
            taken = {*self.sources.values()}
            self.sources[token] = next(one for one in free if one not in taken)
        return self.sources[token]

    def relation(self, relation: Relation, shares: bool) -> int:
        """The place of a frame after all its steps. It may share its choices of rows with other
        releases.
        """
        key = id(relation), shares
        if key in self.relations:
            return self.relations[key][1]
        owners = relation.owners
        facts = relation.source
        listed = sorted(facts.columns.items())  # sources have them in any order
        columns = tuple((n, type_words(domain.dtype)) for n, domain in listed)
        name = self.source(relation.token, relation.name)
        self.protected[name] = relation
        through = None
        if owners is not None:
            source = self.source(owners.token, owners.name)
            through = kernel.Owners(source, owners.here, owners.there)
        place = self.frame(kernel.Scan(name, columns, unit_of(facts.unit), through))
        for step, before in relation.steps:
            self.note(step.exprs)
            if isinstance(step, Binary):
                place = self.frame(self.binary(step, before, place, shares))
                continue
            for part, known in step.parts(before):
                made = step_of(part, known, place)
                match part:
                    case JoinPublic(public=public, digest=digest):
                        self.public[digest] = public
                    case PerIndividual(listed=pl.DataFrame() as listed_keys, digest=str(digest)):
                        self.public[digest] = listed_keys
                if shares and isinstance(made, kernel.KeepRows):
                    made = replace(made, of=tuple(sorted(known.columns)))
                place = self.frame(made)
        self.relations[key] = relation, place
        return place

    def binary(self, step: Binary, before: FrameFacts, place: int, shares: bool) -> kernel.Frame:
        """A step with another private frame."""
        other = self.relation(step.other, shares)
        match step:
            case Concat():
                return kernel.Union(place, other)
            case JoinPrivate(how=how):
                return kernel.Meet(
                    place, other, step.keys, how, tuple(step.new_columns(before).items())
                )
        raise has_no_node(type(step).__name__)

    def table(self, table: ExactTable, query: Query) -> int:
        """The place of a table."""
        rules = query.scope.rules
        made, groups = rules.nodes[rules.place(table)], query.groups
        if table.kept is not None:
            assert isinstance(groups, SetGroups)
            groups = groups.margin(table.kept)
        keys = None if groups is None else keys_of(groups, self.finder)
        self.note(table.statistic.exprs)
        self.note(() if table.cells is None else table.cells.exprs)
        self.note(() if groups is None else (one.tree for one in groups.by))
        if groups is not None and isinstance(keys, kernel.Listed):
            self.public[keys.digest] = groups.keys
        frame = self.relation(query.relation, shares_choices(query.relation))
        made = replace(made, frame=frame, keys=keys)
        return self.tables.setdefault(made, len(self.tables))

    def what(self, measurement: Measurement, query: Query) -> kernel.What:
        """What is drawn."""
        rules, tables = query.scope.rules, dict.fromkeys(measurement.tables)
        places = {rules.place(table): self.table(table, query) for table in tables}
        return with_places(measurement.node(query.scope), places)

    def noisy(self, what: kernel.What) -> kernel.What:
        """The numbers of candidates, all with noise."""
        if isinstance(what, kernel.Rank):
            return what
        if not isinstance(what, kernel.Choice):
            raise kernel.Refused("noise of scores that are not numbers of tables")
        keys, number = list(self.tables)[what.tables[0]].keys, len(what.tables)
        kept = tuple(range(0 if keys is None else len(keys.by)))
        each = tuple(tuple(int(i == j) for j in range(number)) for i in range(number))
        return kernel.Vector(what.tables, each, kept, 1, total=False)


# -- what a session says in plans of itself, and of what it was given -----------------------------

Made = TypeVar("Made", Prepared, PreparedTogether)


def on_part(prepared: Made, share: Share) -> Made:
    """A plan that says that its frame is one of several parts, and what that costs the whole."""
    return replace(prepared, plan=replace(prepared.plan, share=share))


def stating(prepared: Made, budget: StatedBudget) -> Made:
    """The plan with the budget that it is to be charged to."""
    return replace(prepared, plan=replace(prepared.plan, budget=budget))


def with_remaining(prepared: Made, remaining: Budget) -> Made:
    """The plan with the remaining budget."""
    return replace(prepared, plan=replace(prepared.plan, remaining=remaining))


def with_parameters(prepared: Made, parameters: tuple[Parameter, ...]) -> Made:
    """The plan with its parameters."""
    return replace(prepared, plan=replace(prepared.plan, parameters=parameters))


def with_physical(prepared: Made) -> Made:
    """The plan with its physical plan. Raises `Unsound` when the kernel has no nodes for it."""
    whole = prepared if isinstance(prepared, PreparedTogether) else alone(prepared)
    try:
        physical_plan = physical(whole)
    except Refused as refused:
        raise Unsound(
            f"the query has no physical plan: {refused}",
            remedy="report this as an error of dpframe, with the query",
        ) from None
    plan = replace(prepared.plan, physical=physical_plan, dpframe_version=_version())
    return replace(prepared, plan=plan)


@cache
def _version() -> str:
    """The version of dpframe, which takes longer to look up than a plan takes to make."""
    return version("dpframe")


def alone(prepared: Prepared) -> PreparedTogether:
    """One query as several are."""
    return PreparedTogether(prepared.plan, (prepared,), (Place.whole(prepared.query),))
