"""Keys of groups that are found in the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import polars as pl

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate, Noisy, Output
from dpframe.aggregates.measurement import Additive, Measurement, Table
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.shapes import Column, Shape
from dpframe.aggregates.statistics import DistinctCount, RowCount, UnitCount
from dpframe.core.exact import show_input
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.tree import column_names
from dpframe.core.units import Identifier
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm
from dpframe.frames.contributions import changed_groups, spread_of
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.per_individual import WithoutFound, rounds_of
from dpframe.frames.relation import Relation
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import KeyTask

# -- which groups appear, where groups are not listed ---------------------------------------------


@dataclass(frozen=True, slots=True)
class KeySelection(Measurement):
    """A private choice of groups by how many individuals they have.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, where an individual in g groups pays g times what one
    group costs: g epsilon' and g delta', by the rule of its own or by the threshold of a noisy
    number.

    Proof
    -----
    Each group appears or not by its own number of individuals and its own coins. One individual
    changes that number by at most 1, in at most g groups (twice as many where rows are changed).
    The rule for one group is private (`TruncatedGeometric`, `NoisyThreshold`), and costs of groups
    add up. Groups without rows never appear under either rule, so the engine need not know them.
    """

    table: Table  # Individuals per group, or rows
    # How many rows an individual has at most, where rows are counted: n rows are of at least ceil(n
    # / rows) individuals, and that number changes by at most 1 with one of them.
    rows: int = 1

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        """In how many groups the number of individuals changes, by one in each: a row that leaves
        a group for another counts as two.
        """
        groups = self.changed_groups(scope)
        return ContributionBounds(groups, groups, 1)

    def changed_groups(self, scope: QueryScope) -> int:
        """How many groups have another number of individuals when one changes: a row that is
        changed may leave one and enter another.
        """
        assert scope.groups is not None
        return changed_groups(scope.facts, scope.groups)

    def node(self, scope: QueryScope) -> kernel.Appear:
        return kernel.Appear(scope.rules.place(self.table), self.rows)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        groups = Fraction(self.changed_groups(scope))
        return ExactSensitivity(self.changed_groups(scope), groups, groups, Fraction(1))

    def entries(self, scope: QueryScope) -> int:
        return 1

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> KeyTask:
        return KeyTask(name, sensitivity, self.changed_groups(scope))

    def words(self) -> str:
        return f"groups that appear, by {self.table.words()}"


@dataclass(frozen=True, slots=True)
class WeighedKeys(KeySelection):
    """A private choice of groups by the noisy sum of the weights of their individuals.

    Guarantee
    ---------
    The cost of Gaussian noise by L2, which is the norm that individuals are weighed to, and a delta
    for all groups together in which one individual is alone; in several rounds, that of each.

    Proof
    -----
    An individual in t groups, t no more than limits allow, has the largest weight k in each with
    t k**2 <= N**2, or less (`dpframe.lower.pairs`). It follows from the individual's own
    groups, so no other individual's weights change with it, and the vector of sums moves by N at
    most in L2. The rest is the theorem of `WeighedThreshold`: all other releases about groups in
    which the individual is alone belong to B there, and all releases about other groups are
    private on their own. In several rounds the same holds for each. Rows of groups that earlier
    rounds released are left out by their own keys (`WithoutFound`), before individuals are
    weighted and before their groups are limited. So the weighted frame is one that one individual
    changes by its own rows, and costs add up as in `WeighedRounds`.
    """

    rounds: int = 1  # How many rounds there are

    def spread(self, scope: QueryScope) -> ContributionBounds:
        """How the parts of an individual lie among groups."""
        return self.table.statistic.spread(scope)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        weights = Additive(self.table)
        return scope.rules.sensitivity(weights, lambda: weights.node(scope))

    def changed_groups(self, scope: QueryScope) -> int:
        """How many groups an individual counts in."""
        groups = self.spread(scope).groups
        assert groups is not None
        return groups

    @property
    def step(self) -> Fraction:
        return Fraction(1, PARTS)

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> KeyTask:
        norm = self.spread(scope).norm
        return KeyTask(name, sensitivity, self.changed_groups(scope), norm, self.rounds)

    def words(self) -> str:
        return "groups that appear, by the weights of their individuals"


def key_selection(scope: QueryScope, rounds: int = 1) -> KeySelection:
    """The choice of unlisted groups in a scope, in this many rounds."""
    if scope.norm is not None:
        return WeighedKeys(Table(UnitCount()), rounds=rounds)
    if isinstance(scope.facts.unit, Identifier):
        return KeySelection(Table(UnitCount()))
    return KeySelection(Table(RowCount()), scope.spread.tight[2])


# -- which groups there are, and nothing else -----------------------------------------------------

BEST_ROUNDS: Final = 2
"""The default; docs/benchmarks.md compares."""
MOST_ROUNDS: Final = 4
"""Of more the first would have barely any of the cost."""


@dataclass(frozen=True, slots=True)
class _KeysAlone(Shape):
    """Only the keys, without other columns."""

    def columns(self, column: Column, groups: Groups | None) -> list[pl.Series]:
        return []


@dataclass(frozen=True, slots=True, eq=False)
class BoundGroupKeys(BoundAggregate):
    """The keys of unlisted groups; it needs the choice of the groups alone."""

    rounds: int | None  # In how many rounds they are to be found; None for as many as are best

    @property
    def shape(self) -> Shape:
        return _KeysAlone()

    @property
    def note(self) -> str:
        return "the keys of the groups that appear, sorted, and nothing else of them"

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return pl.Series(self.name, [], dtype=pl.Null)


@dataclass(frozen=True, slots=True, eq=False)
class GroupKeys(Aggregate):
    """Which groups there are, and nothing else."""

    rounds: int | None = None  # In how many rounds they are found, or None
    kind: ClassVar[str] = "groups"
    summary: ClassVar[str] = "Which groups there are."
    mechanisms: ClassVar[tuple[str, ...]] = ("auto",)
    examples: ClassVar[tuple[str, ...]] = ()

    @property
    def name_without_column(self) -> str:
        return "groups"

    def bind(self, request: Request, scope: QueryScope) -> BoundAggregate:
        where, rounds = "dp_groups(rounds=...)", self.rounds
        if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MOST_ROUNDS):
            raise UnsupportedOperation(
                f"groups are found in 1 to {MOST_ROUNDS} rounds, not {show_input(rounds)}",
                where=where,
                remedy=("leave rounds= out", f"write rounds={BEST_ROUNDS}"),
            )
        if scope.groups is None or not scope.groups.discovered:
            raise UnsupportedOperation(
                "keys= already lists the groups, so there is nothing to discover",
                where="dp_groups()",
                remedy=("leave keys= out", "count the rows of each group with .len()"),
            )
        return BoundGroupKeys(request, (), rounds)


def require_numbers(aggregates: Iterable[BoundAggregate], where: str, why: str) -> None:
    """Refuse what needs numbers of groups, where nothing but the groups is requested. Raises
    `UnsupportedOperation` with what to do instead.
    """
    if group_keys_in(aggregates) is not None:
        raise UnsupportedOperation(
            f"dp_groups() releases no number of any group, and {why}",
            where=where,
            remedy="write a second query by the groups that this one finds: group_by(..., "
            "keys=groups)",
        )


def group_keys_in(aggregates: Iterable[BoundAggregate]) -> BoundGroupKeys | None:
    """The request, where that is which groups there are."""
    return next((found for found in aggregates if isinstance(found, BoundGroupKeys)), None)


# -- aggregates of weighted individuals: those that add up over them ------------------------------

MOST_FOUND: Final = 256
"""The number of unlisted groups in which a weighted individual counts, unless it is limited."""

_WHERE = "limit_norm(...)"


def require_adds_up(bound: BoundAggregate, scope: QueryScope) -> None:
    """Refuse what is no sum over individuals, where these are weighed. Raises
    `UnsupportedOperation` with what to write instead.
    """
    if scope.norm is None:
        return
    groups = scope.groups
    if isinstance(groups, SetGroups):
        raise UnsupportedOperation(
            "limit_norm does not work with grouping sets",
            where=_WHERE,
            remedy=(
                "use .limit_groups(n, by=...) and .limit_rows(n) instead of it",
                "write one group_by for each set",
            ),
        )
    if not all(_adds_up(use.part) for use in bound.uses):
        raise UnsupportedOperation(
            f"limit_norm does not work with {bound.request.kind}",
            where=_WHERE,
            why="only counts, sums and what is computed from them can weight individuals",
            remedy="use .limit_rows(n) or .limit_groups(n, by=...) instead of it",
        )


def with_weights(relation: Relation, groups: Groups | None, outputs: Iterable[Output]) -> Relation:
    """The frame by whose individuals unlisted groups can be found.

    If only the groups are requested, and an individual may be in any number of them, individuals
    are weighted so that the norm of one is 1. That hides an individual in many groups as well as
    one in few, and no limit has to be chosen. The groups may be found in rounds: then a step
    comes before that leaves out what rounds before have found. Numbers are of weighed individuals
    only where `limit_norm` was written.

    Groups with one individual alone are hidden by a threshold, which has to know in how many an
    individual may be; `MOST_FOUND` is more than most have, and its logarithm is what it costs. All
    that is steps as an analyst could write them.

    Raises `UnsupportedOperation` when several rounds are requested where individuals are not
    weighed by that.
    """
    asked = [bound for output in outputs for bound in output.aggregates.values()]
    keys = group_keys_in(asked)
    rounds = 1 if keys is None else BEST_ROUNDS if keys.rounds is None else keys.rounds
    found = _weigh(relation, groups, keys is not None, rounds)
    if keys is not None and keys.rounds is not None and rounds_of(found) != keys.rounds:
        raise UnsupportedOperation(
            "dp_groups(rounds=...) needs an identifier, no limits, and groups that are "
            "not lists, structs or floats",
            where=f"dp_groups(rounds={keys.rounds})",
            remedy=(
                "write dp_groups() without rounds=",
                "leave limit_groups, limit_rows and limit_norm out",
            ),
        )
    return found


def _weigh(relation: Relation, groups: Groups | None, only_keys: bool, rounds: int) -> Relation:
    """The frame with these steps, where they are what it needs."""
    if groups is None or not groups.discovered or not isinstance(relation.facts.unit, Identifier):
        return relation
    known, columns = spread_of(relation.facts, groups), relation.facts.columns
    used = tuple(sorted({name for n in groups.by for name in column_names(n.tree)}))
    types = [columns[name].dtype for name in used]
    if known.groups is not None or known.rows is not None or not used:
        return relation
    if any(dtype.is_float or dtype.is_nested or not dtype.is_known for dtype in types):
        return relation
    if relation.facts.norm is None:
        if not only_keys:
            return relation
        if rounds > 1:
            relation = relation.then(WithoutFound(groups.by, rounds, groups.keys))
        relation = relation.then(LimitNorm(Fraction(1)))
    return relation.then(LimitGroups(MOST_FOUND, used))


def _adds_up(part: Measurement) -> bool:
    return (
        isinstance(part, Additive)
        and part.table.cells is None
        and not isinstance(part.table.statistic, DistinctCount)
    )
