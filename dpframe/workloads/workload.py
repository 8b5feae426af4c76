"""Tables that are wanted of one table of disjoint sums, and what they need of each subspace."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpframe.workloads.axes import Axis
from dpframe.workloads.needs import Kind, flat, needs_of, outputs
from dpframe.workloads.parts import Levels


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table that is wanted: sums over the cells of some axes, for each of the others.

    Parameters
    ----------
    kinds
        What is wanted of each axis; the table has their products.
    weight
        How much its error counts, relative to others.
    """

    kinds: tuple[Kind, ...]
    weight: Fraction = Fraction(1)


@dataclass(frozen=True)
class Workload:
    """What is to be answered from one table of disjoint sums.

    Parameters
    ----------
    axes
        The columns of the table.
    tables
        What is wanted of it, at least one.
    """

    axes: tuple[Axis, ...]
    tables: tuple[Wanted, ...]

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
