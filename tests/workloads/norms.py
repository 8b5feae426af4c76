"""The variance of each number that is wanted, where numbers of one table differ in it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads import Axis, Kind, Levels

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
