"""Tables that are wanted of one table of disjoint sums, and what they need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from dpframe.workloads.axes import Axis, Factor, Integers, Kind, flat, needs_of, outputs

# Integer vectors that are measured of a table: one map for each of its axes.

Levels: TypeAlias = tuple[int, ...]
"""A level of each axis: a subspace of tables, orthogonal to that of any others."""


@dataclass(frozen=True, slots=True)
class Part:
    """An integer vector that is linear in a table: the Kronecker product of its factors."""

    factors: tuple[Factor, ...]  # One per axis of the table, in their order

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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table that is wanted: sums over the cells of some axes, for each of the others."""

    kinds: tuple[Kind, ...]  # What is wanted of each axis; the table has their products
    weight: Fraction = Fraction(1)  # How much its error counts, relative to others


@dataclass(frozen=True)
class Workload:
    """What is to be answered from one table of disjoint sums."""

    axes: tuple[Axis, ...]  # The columns of the table
    tables: tuple[Wanted, ...]  # What is wanted of it, at least one

    def __post_init__(self) -> None:
        for table in self.tables:
            if len(table.kinds) != len(self.axes):
                raise ValueError("a wanted table says something of every axis")
            for axis, kind in zip(self.axes, table.kinds, strict=True):
                if kind in ("prefixes", "ranges") and not axis.is_ordered:
                    raise ValueError("only the cells of an ordered axis have prefixes and ranges")

    def branching(self, children: int) -> Workload:
        """The same of trees whose nodes have this many children."""
        return replace(
            self,
            axes=tuple(
                Axis.ordered(axis.size, children) if axis.is_ordered else axis for axis in self.axes
            ),
        )

    def outputs(self, table: Wanted) -> int:
        """How many numbers a table has."""
        return math.prod(map(outputs, self.axes, table.kinds))

    def flat(self, table: Wanted) -> Fraction:
        """The mean variance of a table's numbers where it is made of cells, or totals, that were
        measured separately with noise of variance 1.
        """
        return math.prod(map(flat, self.axes, table.kinds), start=Fraction(1))

    @cached_property
    def subspaces(self) -> tuple[Levels, ...]:
        """The subspaces that the tables need, coarse ones first."""
        found: dict[Levels, None] = {}
        for table in self.tables:
            reach = [
                range(1 if kind == "total" else axis.height + 1)
                for axis, kind in zip(self.axes, table.kinds, strict=True)
            ]
            found |= dict.fromkeys(itertools.product(*reach))
        return tuple(sorted(found, key=lambda levels: (sum(levels), levels)))

    def need(self, table: Wanted) -> Mapping[Levels, Fraction]:
        """The sum of the squared norms of a table's queries, by subspace, where it is not 0."""
        each = [
            [(level, found) for level, found in enumerate(needs_of(axis, kind)) if found]
            for axis, kind in zip(self.axes, table.kinds, strict=True)
        ]
        return {
            tuple(level for level, _ in ways): math.prod((n for _, n in ways), start=Fraction(1))
            for ways in itertools.product(*each)
        }

    @cached_property
    def needs(self) -> Mapping[Levels, Fraction]:
        """What a unit of variance in each subspace adds to the sum over the tables of their mean
        squared errors, each relative to what it would be if it were measured on its own.
        """
        total = dict.fromkeys(self.subspaces, Fraction(0))
        for table in self.tables:
            scale = table.weight / (self.outputs(table) * self.flat(table))
            for levels, found in self.need(table).items():
                total[levels] += scale * found
        return total
