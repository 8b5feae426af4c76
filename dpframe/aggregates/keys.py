"""Which groups appear, where nobody listed them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.aggregates.measurement import Integers, Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import RowCount
from dpframe.aggregates.unit_statistics import UnitCount
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import Contribution, ExactSensitivity, additive_sensitivity
from dpframe.core.units import Identifier
from dpframe.frames.contributions import touched
from dpframe.mechanisms import KeyTask

__all__ = ["KeySelection", "key_selection"]


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

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        one = Contribution(Fraction(0), Fraction(1))
        return additive_sensitivity(one, self.spread(scope), scope.entries)

    def entries(self, scope: QueryScope) -> int:
        return 1

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> KeyTask:
        return KeyTask(name, sensitivity, self.touched(scope))

    def individuals(self, counts: Integers) -> Integers:
        """How many individuals there are at least."""
        return np.asarray(-(-counts // self.rows), np.int64)

    def words(self) -> str:
        return f"groups that appear, by {self.table.words()}"


def key_selection(scope: QueryScope) -> KeySelection:
    """The choice of groups in a scope whose groups nobody listed."""
    if isinstance(scope.facts.unit, Identifier):
        return KeySelection(Table(UnitCount()))
    return KeySelection(Table(RowCount()), scope.spread.tight[2])
