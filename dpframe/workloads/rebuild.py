"""From noisy parts to the tables that are wanted: least squares, level by level.

Sums of nodes are informative about every subspace up to their own levels, all of them with
weights in the same proportion: leaves per node over the variance of the noise. So the weighted
sums of these estimates follow from fine levels to coarse ones, each axis after the other, and
every table is read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis
from dpframe.workloads.factors import Integers, block_sums, compared
from dpframe.workloads.parts import Levels
from dpframe.workloads.strategy import Strategy

Floats: TypeAlias = "NDArray[np.float64]"


class Estimate:
    """The estimate of a table from noisy parts. All of it is post-processing.

    Parameters
    ----------
    strategy
        What was measured.
    measured
        The noisy integers of each part, in its shape.
    lines
        The number of tables that are estimated at once, in a last axis of each part; None for one
        table without such an axis.

    Notes
    -----
    Without noise it is the table itself, up to roundings of floats.
    """

    def __init__(
        self, strategy: Strategy, measured: Sequence[Integers], lines: int | None = None
    ) -> None:
        self.strategy = strategy
        self.axes: tuple[Axis, ...] = strategy.workload.axes
        beside = () if lines is None else (lines,)
        held = [
            values.reshape(*part.shape, *beside).astype(np.float64)
            for part, values in zip(strategy.parts, measured, strict=True)
        ]
        self.told: Mapping[Levels, Floats] = _of_tables(strategy, held)

    def cells(self, kept: Sequence[bool]) -> Floats:
        """The estimated table, summed up over the axes that are not kept; their length is 1.

        Sums of such a table are the tables of fewer axes, up to the rounding of floats.
        """
        reach = [axis.height if k else 0 for axis, k in zip(self.axes, kept, strict=True)]
        found = {
            levels: values
            for levels, values in self.told.items()
            if all(level <= most for level, most in zip(levels, reach, strict=True))
        }
        for at in range(len(self.axes)):
            found = _joined(found, at, self.axes[at], reach[at])
        (table,) = found.values()
        return table


def _of_tables(strategy: Strategy, held: Sequence[Floats]) -> dict[Levels, Floats]:
    """The contrasts of each subspace, as the weighted mean of what sums of nodes say."""
    axes = strategy.workload.axes
    sums: dict[Levels, Floats] = {}
    weights: dict[Levels, float] = {}
    for part, values, variance in zip(strategy.parts, held, strategy.unit_variances, strict=True):
        weight = part.energy(part.levels) / variance
        sums[part.levels], weights[part.levels] = values * weight, weight
    for at, axis in enumerate(axes):
        for level in range(axis.height, 0, -1):
            for levels in [levels for levels in sums if levels[at] == level]:
                coarser = (*levels[:at], level - 1, *levels[at + 1 :])
                summed = block_sums(sums[levels], at, axis.branching)
                sums[coarser] = sums[coarser] + summed if coarser in sums else summed
                weights[coarser] = weights.get(coarser, 0.0) + weights[levels]
    return {
        levels: _contrasts(sums[levels] / weights[levels], levels, axes)
        for levels in strategy.workload.subspaces
    }


def _contrasts(sums: Floats, levels: Levels, axes: Sequence[Axis]) -> Floats:
    for at, (level, axis) in enumerate(zip(levels, axes, strict=True)):
        if level:
            sums = compared(sums, at, axis.nodes(level - 1), axis.branching)
    return sums


def _joined(
    found: Mapping[Levels, Floats], at: int, axis: Axis, reach: int
) -> dict[Levels, Floats]:
    """The levels of one axis up to `reach` as one."""
    grouped: dict[Levels, dict[int, Floats]] = {}
    for levels, values in found.items():
        grouped.setdefault((*levels[:at], 0, *levels[at + 1 :]), {})[levels[at]] = values
    return {levels: _grown(values, at, axis, reach) for levels, values in grouped.items()}


def _grown(values: Mapping[int, Floats], at: int, axis: Axis, reach: int) -> Floats:
    """The sums of the nodes of a level, from that of all cells and contrasts level by level."""
    sums = values[0]
    for level in range(1, reach + 1):
        sums = _divided(sums, values[level], at, axis, level)
    return sums


def _divided(sums: Floats, contrasts: Floats, at: int, axis: Axis, level: int) -> Floats:
    """The sums of nodes divided among their children. Children that have no cells get nothing."""
    b, parents = axis.branching, axis.nodes(level - 1)
    before, after = sums.shape[:at], sums.shape[at + 1 :]
    whole = np.expand_dims(sums, at + 1)
    if b == 2:
        signed = np.stack([contrasts, -contrasts], axis=at + 1)
    else:
        signed = contrasts.reshape((*before, parents, b, *after))
    children = _shared(whole, signed, at + 1, b, b)
    flat = children.reshape((*before, parents * b, *after))
    real = axis.nodes(level) - (parents - 1) * b  # children of the last node that have cells
    if real == b:
        return flat
    here = (slice(None),) * at
    few = _shared(
        whole[(*here, slice(-1, None))],
        signed[(*here, slice(-1, None), slice(real))],
        at + 1,
        real,
        b,
    )
    return np.concatenate([flat[(*here, slice((parents - 1) * b))], few.squeeze(at)], axis=at)


def _shared(whole: Floats, signed: Floats, at: int, children: int, branching: int) -> Floats:
    """Each of this many children: an equal part of the whole, and by how much it is above the
    mean.

    The contrasts of two children are d and -d: their difference is twice that of each from the
    mean.
    """
    if branching == 2:
        return (whole + signed) / 2.0 if children == 2 else whole
    total = signed.sum(axis=at, keepdims=True)
    found: Floats = (branching * whole + children * signed - total) / (children * branching)
    return found
