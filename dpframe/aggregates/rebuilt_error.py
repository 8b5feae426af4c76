"""The error of results that are rebuilt from several noisy tables, by grouping set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from dpframe.aggregates.distribution_error import DistributionError, RunError
from dpframe.aggregates.distribution_sets_error import DistributionSetsError
from dpframe.aggregates.error_rules import ErrorRule, MeanError, PartError, VarianceError
from dpframe.aggregates.joint_noise import Independent
from dpframe.aggregates.running_error import RunningError
from dpframe.aggregates.weighted_noise import WeightedNoise, excess_of
from dpframe.mechanisms import AdditiveMechanism
from dpframe.workloads import rounding_variance

__all__ = ["OutputError", "RebuiltError", "rebuilt_noise"]

_NEXT_TO_NOTHING: Final = 1e-9
Sets: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RebuiltError:
    """The result of a group follows from several noisy tables by weighted least squares; which one
    errs most depends on the grouping set.

    Parameters
    ----------
    inner
        How the result's error follows from those of the rebuilt numbers.
    sizes
        How many values each column has.
    sets
        The columns of each grouping set that is released.
    measured
        For each rebuilt number the columns of each of its noisy tables.
    weights
        For each the weights of these, in proportion to one over their variances.
    """

    inner: PartError | MeanError | VarianceError
    sizes: tuple[int, ...]
    sets: Sets
    measured: tuple[Sets, ...]
    weights: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        columns = range(len(self.sizes))
        tables = [table for measured in self.measured for table in measured]
        if (
            not self.sets
            or min(self.sizes, default=0) < 1
            or len(self.measured) != self.inner.parts
        ):
            raise ValueError("an error of grouping sets that cannot be")
        if any(i not in columns for table in (*self.sets, *tables) for i in table):
            raise ValueError("a grouping set of a column that is not there")
        if [len(m) for m in self.measured] != [len(w) for w in self.weights] or not all(
            weight > 0 for weights in self.weights for weight in weights
        ):
            raise ValueError("tables without weights")

    @property
    def groups(self) -> int:
        """How many groups all sets have together."""
        return sum(math.prod(self.sizes[i] for i in kept) for kept in self.sets)

    @property
    def entries(self) -> int:
        """How many numbers the first noisy table has, of one group where it is one of cells."""
        return math.prod(self.sizes[i] for i in self.measured[0][0])

    @property
    def parts(self) -> int:
        """How many noisy tables there are."""
        return sum(map(len, self.measured))

    def noises(
        self, laws: Sequence[tuple[AdditiveMechanism, Fraction]], kept: tuple[int, ...]
    ) -> Independent:
        """The law of each rebuilt number in a group of one of the sets, with its step.

        Parameters
        ----------
        laws
            The noise of each noisy table and its step, in their order.
        kept
            The columns of the set.
        """
        found, start = list[tuple[WeightedNoise, Fraction]](), 0
        for measured, weights in zip(self.measured, self.weights, strict=True):
            here = laws[start : start + len(measured)]
            start += len(measured)
            noise = rebuilt_noise(
                self.sizes,
                kept,
                measured,
                tuple(map(float, weights)),
                tuple(law for law, _ in here),
            )
            found.append((noise, here[0][1]))
        return Independent(tuple(found))


OutputError: TypeAlias = (
    ErrorRule | RebuiltError | DistributionError | DistributionSetsError | RunError | RunningError
)


@lru_cache(maxsize=4096)
def rebuilt_noise(
    sizes: tuple[int, ...],
    kept: tuple[int, ...],
    measured: Sets,
    weights: tuple[float, ...],
    laws: tuple[AdditiveMechanism, ...],
) -> WeightedNoise:
    """The noise of one number of a grouping set, that of making numbers whole included.

    With weights w_B of the tables B, and W_A the sum of w_B times the number of cells that an entry
    of B stands for over those that tell of the columns A, what B says of A counts w_B / W_A. So an
    entry of B that agrees with the group in the columns of M, among those that B and the set have,
    has the factor: the sum over A of w_B / W_A, times 1 - 1/n for each column of A in M and -1/n
    for each of A that is not, over the product of the n of the set's columns outside of A.
    """
    spread = fourth = 0.0
    energies = [
        w * math.prod(n for i, n in enumerate(sizes) if i not in table)
        for w, table in zip(weights, measured, strict=True)
    ]
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
