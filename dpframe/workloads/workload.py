"""Tables that are wanted of one table of disjoint sums, and what they need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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


# The variance of each number that is wanted, where numbers of one table differ in it.

Floats: TypeAlias = "NDArray[np.float64]"


def _children(axis: Axis, level: int) -> Floats:
    """For each node of the level above, how many of its children have cells."""
    b, parents = axis.branching, axis.nodes(level - 1)
    found = np.full(parents, float(b))
    found[-1] = axis.nodes(level) - (parents - 1) * b
    return found


def cell_norms(axis: Axis) -> list[Floats]:
    """For each level, the squared norm of each cell in its subspace."""
    place = np.arange(axis.size)
    pull, norms = np.ones(axis.size), list[Floats]()
    for level in range(axis.height, 0, -1):
        few = _children(axis, level)[place // axis.width(level - 1)]
        norms.append(axis.width(level) * pull**2 * (1.0 - 1.0 / few))
        pull = pull / few
    return [axis.leaves * pull**2, *reversed(norms)]


def prefix_norms(axis: Axis) -> list[Floats]:
    """For each level, the squared norm of the sums of the first 1, 2, ... cells."""
    ends = np.arange(1, axis.size + 1)
    pull, norms = np.zeros(axis.size), list[Floats]()
    for level in range(axis.height, 0, -1):
        width, parent = axis.width(level), axis.width(level - 1)
        few = _children(axis, level)[np.minimum(ends, axis.size - 1) // parent]
        before = (ends % parent) // width
        norms.append(width * (before + pull**2 - (before + pull) ** 2 / few))
        pull = (before + pull) / few
    for norm in norms:
        norm[-1] = 0.0  # all cells together are the whole
    pull[-1] = 1.0
    return [axis.leaves * pull**2, *reversed(norms)]


def variances_of(
    axes: Sequence[Axis],
    kinds: Sequence[Kind],
    variances: Mapping[Levels, float],  # The variance in each subspace, see `Strategy.variances`
) -> Floats:
    """The variance of each number of a table of totals, cells and prefixes; axes that are summed up
    have length 1.
    """
    norms = [_norms(axis, kind) for axis, kind in zip(axes, kinds, strict=True)]
    total = np.zeros(tuple(each[0].size for each in norms))
    for levels in itertools.product(*(range(len(each)) for each in norms)):
        product = np.array(variances[levels])
        for each, level in zip(norms, levels, strict=True):
            product = np.multiply.outer(product, each[level])
        total += product
    return total


def _norms(axis: Axis, kind: Kind) -> list[Floats]:
    match kind:
        case "total":
            return [np.array([float(axis.leaves)])]
        case "cells":
            return cell_norms(axis)
        case "prefixes":
            return prefix_norms(axis)
        case "ranges":
            raise ValueError("ranges are looked at one by one")


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
