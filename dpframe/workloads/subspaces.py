"""Linear maps of tables that multiply what lies in each subspace of axes by a factor.

A table splits into orthogonal parts, one for each set A of axes: along the axes of A what differs
from the mean, and means along the others. So with f_A the factors, and M_B the means over all axes
but those of B, the map is the sum over B of g_B M_B, where

    g_B = the sum over A that hold B of (-1)**|A - B| f_A.

Means follow from one another, from large tables to small ones, and their sum from small ones to
large ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Kept: TypeAlias = tuple[bool, ...]

_NOTHING: Final = 1e-14
"""Factors that are smaller, relative to the largest, are rounding errors."""


class Filter:
    """A map of tables of one shape.

    Parameters
    ----------
    shape
        The lengths of the axes.
    factors
        The filter of each set of axes.
    """

    def __init__(self, shape: tuple[int, ...], factors: Mapping[Kept, float]) -> None:
        self.of_mean = factors[(False,) * len(shape)]
        """The factor of tables that are the same everywhere."""
        means = {kept: _of_means(kept, factors) for kept in factors}
        largest = max(map(abs, means.values()))
        self._whole: Kept = (True,) * len(shape)
        self._means = {k: g for k, g in means.items() if abs(g) > _NOTHING * largest}
        self._means.setdefault(self._whole, 0.0)
        self._down = list(_summed_up(shape, self._means))
        self._up = list(_filled_in(shape, self._means))

    def of(self, table: Floats) -> Floats:
        """The map of a table."""
        means: dict[Kept, Floats] = {self._whole: table}
        for kept, finer, at in self._down:
            means[kept] = _mean_along(means[finer], at)
        made = {kept: means[kept] * factor for kept, factor in self._means.items()}
        for kept, wider in self._up:
            made[wider] += made.pop(kept)
        return made[self._whole]


def joined(shape: tuple[int, ...], margins: Mapping[Kept, Floats]) -> Floats:
    """The sum of tables that are the same along all axes that they do not keep, where they have a
    length of 1.
    """
    whole: Kept = (True,) * len(shape)
    made = {kept: table.copy() for kept, table in margins.items()}
    made.setdefault(whole, np.zeros(shape))
    for kept, wider in _filled_in(shape, made):
        made[wider] += made.pop(kept)
    return made[whole]


def _of_means(kept: Kept, factors: Mapping[Kept, float]) -> float:
    """The factor of the means over the axes that are not kept."""
    ways = ((k,) if k else (False, True) for k in kept)
    return math.fsum(
        (-1) ** (sum(axes) - sum(kept)) * factors[axes] for axes in itertools.product(*ways)
    )


def _summed_up(shape: tuple[int, ...], wanted: Iterable[Kept]) -> Iterable[tuple[Kept, Kept, int]]:
    """Tables in the order in which their means are made, each from which one, along which axis:
    large ones first, from the smallest that is known, along its longest axes.
    """
    known = [(True,) * len(shape)]
    for kept in sorted(wanted, key=lambda kept: -_size(shape, kept)):
        found = min((k for k in known if _holds(k, kept)), key=lambda k: _size(shape, k))
        more = [i for i in range(len(shape)) if found[i] and not kept[i]]
        for at in sorted(more, key=lambda i: -shape[i]):
            coarser = (*found[:at], False, *found[at + 1 :])
            known.append(coarser)
            yield coarser, found, at
            found = coarser


def _filled_in(shape: tuple[int, ...], given: Iterable[Kept]) -> list[tuple[Kept, Kept]]:
    """Tables in the order in which they are added to others, and to which: small ones first, each
    to the smallest that keeps all of its axes.
    """
    rising = sorted(given, key=lambda kept: (_size(shape, kept), sum(kept)))
    return [
        (kept, next(wider for wider in rising[i + 1 :] if _holds(wider, kept)))
        for i, kept in enumerate(rising[:-1])
    ]


def _size(shape: tuple[int, ...], kept: Kept) -> int:
    return math.prod(n for n, k in zip(shape, kept, strict=True) if k)


def _holds(wider: Kept, kept: Kept) -> bool:
    return all(w or not k for w, k in zip(wider, kept, strict=True))


def _mean_along(table: Floats, at: int) -> Floats:
    """The means along one axis, which stays with a length of 1."""
    size, after = table.shape[at], math.prod(table.shape[at + 1 :])
    lines = np.ascontiguousarray(table).reshape(-1, size, after)
    # a product is far quicker than sums of short lines
    alone = after == 1
    scale = 1.0 / size
    found: Floats = lines[:, :, 0] @ np.full(size, scale) if alone else lines.sum(axis=1) * scale
    return found.reshape(*table.shape[:at], 1, *table.shape[at + 1 :])
