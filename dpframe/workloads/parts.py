"""Integer vectors that are measured of a table: one map for each of its axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from dpframe.workloads.factors import Factor, Integers

Levels: TypeAlias = tuple[int, ...]
"""A level of each axis: a subspace of tables, orthogonal to that of any others."""


@dataclass(frozen=True, slots=True)
class Part:
    """An integer vector that is linear in a table: the Kronecker product of its factors.

    Parameters
    ----------
    factors
        One per axis of the table, in their order.
    """

    factors: tuple[Factor, ...]

    @property
    def levels(self) -> Levels:
        """The levels of its factors."""
        return tuple(factor.level for factor in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many numbers along each axis."""
        return tuple(factor.entries for factor in self.factors)

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def energy(self, levels: Levels) -> int:
        """What the squared norm of a table in a subspace is multiplied by."""
        return math.prod(f.energy(level) for f, level in zip(self.factors, levels, strict=True))

    def of(self, table: Integers) -> Integers:
        """The vector of a table, in the shape of its factors.

        Integers are added and multiplied modulo 2**64: what is released is the true vector with its
        noise, modulo 2**64, however large it is, so an overflow could never cost privacy.
        """
        order = sorted(range(len(self.factors)), key=lambda at: self.factors[at].entries)
        for at in order:  # those that leave least first
            table = self.factors[at].of(table, at)
        return table
