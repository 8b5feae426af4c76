"""Which groups appear, where groups are not listed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.measurement import Additive, Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import RowCount
from dpframe.aggregates.unit_statistics import UnitCount
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.units import Identifier
from dpframe.core.weights import PARTS
from dpframe.frames.contributions import touched
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import KeyTask

__all__ = ["KeySelection", "WeighedKeys", "key_selection"]


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

    Parameters
    ----------
    table
        Individuals per group, or rows.
    rows
        How many rows an individual has at most, where rows are counted: n rows are of at least
        ceil(n / rows) individuals, and that number changes by at most 1 with one of them.
    """

    table: Table
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
        groups = self.touched(scope)
        return ContributionBounds(groups, groups, 1)

    def touched(self, scope: QueryScope) -> int:
        """How many groups have another number of individuals when one changes: a row that is
        changed may leave one and enter another.
        """
        assert scope.groups is not None
        return touched(scope.facts, scope.groups)

    def node(self, scope: QueryScope) -> kernel.Appear:
        return kernel.Appear(scope.rules.place(self.table), self.rows)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        groups = Fraction(self.touched(scope))
        return ExactSensitivity(self.touched(scope), groups, groups, Fraction(1))

    def entries(self, scope: QueryScope) -> int:
        return 1

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> KeyTask:
        return KeyTask(name, sensitivity, self.touched(scope))

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
    t k**2 <= N**2, or less (`dpframe.lower.weighed`). It follows from the individual's own
    groups, so no other individual's weights change with it, and the vector of sums moves by N at
    most in L2. The rest is the theorem of `WeighedThreshold`: all other releases about groups in
    which the individual is alone belong to B there, and all releases about other groups are
    private on their own. In several rounds the same holds for each. Rows of groups that earlier
    rounds released are left out by their own keys (`WithoutFound`), before individuals are
    weighted and before their groups are limited. So the weighted frame is one that one individual
    changes by its own rows, and costs add up as in `WeighedRounds`.

    Parameters
    ----------
    rounds
        How many rounds there are.
    """

    rounds: int = 1

    def spread(self, scope: QueryScope) -> ContributionBounds:
        """How the parts of an individual lie among groups."""
        return self.table.statistic.spread(scope)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        weights = Additive(self.table)
        return scope.rules.sensitivity(weights, lambda: weights.node(scope))

    def touched(self, scope: QueryScope) -> int:
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
        return KeyTask(name, sensitivity, self.touched(scope), norm, self.rounds)

    def words(self) -> str:
        return "groups that appear, by the weights of their individuals"


def key_selection(scope: QueryScope, rounds: int = 1) -> KeySelection:
    """The choice of unlisted groups in a scope, in this many rounds."""
    if scope.norm is not None:
        return WeighedKeys(Table(UnitCount()), rounds=rounds)
    if isinstance(scope.facts.unit, Identifier):
        return KeySelection(Table(UnitCount()))
    return KeySelection(Table(RowCount()), scope.spread.tight[2])
