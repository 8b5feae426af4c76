"""The noise of numbers of grouping sets that are rebuilt from several noisy tables.

Let w_B be the weights of the tables B. W_A is the sum, over those with the columns A, of w_B
times the number of cells in an entry of B. Then B's estimate for A counts w_B / W_A. Take an entry
of B, and let M be the common columns of B and the set in which it agrees with the group. Its factor
is a sum over A. Each term is w_B / W_A, times 1 - 1/n for each column of A in M and -1/n for each
other column of A, over the product of the n of the set's columns outside of A.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import Independent, JointNoise
from dpframe.aggregates.mixed_noise import MixedNoise
from dpframe.aggregates.noise_law import noise_law
from dpframe.aggregates.weighted_noise import WeightedNoise, cumulants_of_sum, excess_of
from dpframe.mechanisms import AdditiveMechanism, CombinableNoise, CombinedNoise
from dpframe.workloads import rounding_variance

__all__ = ["Drawn", "NoisyTables", "noise_of_numbers", "rebuilt_noise"]

Floats: TypeAlias = "NDArray[np.float64]"
Columns: TypeAlias = tuple[int, ...]
Sets: TypeAlias = tuple[Columns, ...]
Drawn: TypeAlias = "tuple[AdditiveMechanism, Fraction, int]"
"""The noise of one table, its step, and the number of its draw."""

_NEXT_TO_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """The tables that one number of each group is rebuilt from.

    Parameters
    ----------
    measured
        The columns of each.
    weights
        The weights of these, in proportion to one over their variances.
    drawn
        What noise each has.
    """

    measured: Sets
    weights: tuple[float, ...]
    drawn: tuple[Drawn, ...]

    @property
    def laws(self) -> tuple[AdditiveMechanism, ...]:
        return tuple(law for law, _, _ in self.drawn)

    @property
    def step(self) -> Fraction:
        return self.drawn[0][1]


@lru_cache(maxsize=4096)
def noise_of_numbers(
    sizes: tuple[int, ...], kept: Columns, numbers: tuple[NoisyTables, ...]
) -> JointNoise:
    """The joint law of several numbers of a group by some columns, each in its steps.

    Parameters
    ----------
    sizes
        How many values each column has.
    kept
        The columns.
    numbers
        What each is rebuilt from.
    """
    together = {d for one in numbers for law, _, d in one.drawn if isinstance(law, CombinedNoise)}
    if together and all(one.measured == (kept,) for one in numbers):  # which are what is drawn
        return noise_law([one.drawn[0] for one in numbers])
    laws = tuple(rebuilt_noise(sizes, kept, n.measured, n.weights, n.laws) for n in numbers)
    parts = tuple(zip(laws, (one.step for one in numbers), strict=True))
    users = [{d for _, _, d in one.drawn if d in together} for one in numbers]
    if not any(a & b for a, b in itertools.combinations(users, 2)):
        return Independent(parts)
    return _mixed(sizes, kept, numbers, parts)


def _mixed(
    sizes: tuple[int, ...],
    kept: Columns,
    numbers: tuple[NoisyTables, ...],
    parts: tuple[tuple[WeightedNoise, Fraction], ...],
) -> MixedNoise:
    """The law where numbers are rebuilt from what is drawn jointly."""
    spread = [math.sqrt(max(law.spread, _NEXT_TO_NOTHING)) for law, _ in parts]
    excess = max(law.excess for law, _ in parts)
    terms = list(_terms(sizes, kept, numbers))
    correlations = []
    for a, b in itertools.combinations(range(len(numbers)), 2):
        found = []
        for sign in (1.0, -1.0):
            along = np.zeros(len(numbers))
            along[a], along[b] = 1.0 / spread[a], sign / spread[b]
            found.append(_cumulants(terms, along))
        (plus, plus_fourth), (minus, minus_fourth) = found
        correlation = (plus - minus) / 4.0
        correlations.append(0.0 if abs(correlation) < _NEXT_TO_NOTHING else correlation)
        for variance, fourth in ((plus, plus_fourth), (minus, minus_fourth)):
            if variance > _NEXT_TO_NOTHING:
                excess = max(excess, fourth / variance**2)
    return MixedNoise(parts, tuple(correlations), min(excess, 3.0))


_Term: TypeAlias = "tuple[CombinableNoise | AdditiveMechanism, Floats, int]"
"""A law, for each number its factors of the law's numbers, and how many such vectors there are."""


def _terms(
    sizes: tuple[int, ...], kept: Columns, numbers: Sequence[NoisyTables]
) -> Iterator[_Term]:
    """All noise that some numbers are made of; what is drawn jointly as one."""
    joint: dict[int, dict[int, tuple[CombinedNoise, list[tuple[float, int]]]]] = {}
    for place, one in enumerate(numbers):
        energies = _energies(sizes, one.measured, one.weights)
        for (law, _, draw), table, energy in zip(one.drawn, one.measured, energies, strict=True):
            factors = list(_factors(sizes, kept, table, one.measured, energies, energy))
            if isinstance(law, CombinedNoise):
                joint.setdefault(draw, {})[place] = law, factors
                continue
            for factor, times in factors:
                row = np.zeros((len(numbers), 1))
                row[place] = factor
                yield law, row, times
    for users in joint.values():
        yield from _of_draw(users, len(numbers))


def _of_draw(
    users: Mapping[int, tuple[CombinedNoise, list[tuple[float, int]]]], numbers: int
) -> Iterator[_Term]:
    """The vectors of one draw: one kind of entries after another."""
    first, factors = next(iter(users.values()))
    for kind, (_, times) in enumerate(factors):
        rows = np.zeros((numbers, len(first.factors)))
        for place, (law, own) in users.items():
            rows[place] = own[kind][0] * np.array(law.factors, dtype=float) / law.divisor
        yield first.law, rows, times


def _cumulants(terms: Sequence[_Term], along: Floats) -> tuple[float, float]:
    """The variance and the fourth cumulant of a sum of all numbers with factors."""
    variance = fourth = 0.0
    for law, rows, times in terms:
        more = cumulants_of_sum(law, along @ rows)
        variance += times * more[0]
        fourth += times * more[1]
    return variance, fourth


@lru_cache(maxsize=4096)
def rebuilt_noise(
    sizes: tuple[int, ...],
    kept: Columns,
    measured: Sets,
    weights: tuple[float, ...],
    laws: tuple[AdditiveMechanism, ...],
) -> WeightedNoise:
    """The noise of one number of a grouping set, that of making numbers whole included."""
    spread = fourth = 0.0
    energies = _energies(sizes, measured, weights)
    for table, energy, law in zip(measured, energies, laws, strict=True):
        variance, excess = law.variance(), excess_of(law)
        for factor, times in _factors(sizes, kept, table, measured, energies, energy):
            spread += times * factor**2 * variance
            fourth += times * factor**4 * excess * variance**2
    rounding = (
        0.0 if len(measured) == 1 and set(measured[0]) >= set(kept) else _rounding(kept, sizes)
    )
    total = spread + rounding
    return WeightedNoise(total, fourth / total**2 if total > _NEXT_TO_NOTHING else 0.0)


def _energies(sizes: Sequence[int], measured: Sets, weights: Sequence[float]) -> list[float]:
    """The weight of each table times the cells that an entry of it stands for."""
    return [
        w * math.prod(n for i, n in enumerate(sizes) if i not in table)
        for w, table in zip(weights, measured, strict=True)
    ]


def _rounding(kept: Sequence[int], sizes: Sequence[int]) -> float:
    return rounding_variance([sizes[i] > 1 for i in kept])


def _factors(
    sizes: Sequence[int],
    kept: Sequence[int],
    table: tuple[int, ...],
    measured: Sequence[tuple[int, ...]],
    energies: Sequence[float],
    energy: float,
) -> Iterator[tuple[float, int]]:
    """The factors of the entries of a table, and how many entries have each."""
    shared = [i for i in table if i in kept]
    apart = math.prod(sizes[i] for i in table if i not in kept)
    told = {
        subset: energy
        / sum(e for t, e in zip(measured, energies, strict=True) if set(subset) <= set(t))
        for k in range(len(shared) + 1)
        for subset in itertools.combinations(shared, k)
    }
    for same in itertools.product((True, False), repeat=len(shared)):
        times = apart * math.prod(
            1 if alike else sizes[i] - 1 for i, alike in zip(shared, same, strict=True)
        )
        if not times:
            continue
        agree = dict(zip(shared, same, strict=True))
        factor = math.fsum(
            weight
            * math.prod((1.0 if agree[i] else 0.0) - 1.0 / sizes[i] for i in subset)
            / math.prod(sizes[i] for i in kept if i not in subset)
            for subset, weight in told.items()
        )
        yield factor, times
