"""The error of results that are rebuilt from several noisy tables, by grouping set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dpframe.aggregates.distribution_error import DistributionError, RootError, RunError
from dpframe.aggregates.distribution_sets_error import DistributionSetsError
from dpframe.aggregates.error_rules import ErrorRule, MeanError, PartError, VarianceError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.rebuilt_noise import Drawn, NoisyTables, noise_of_numbers
from dpframe.aggregates.run_rank_error import RunRankError
from dpframe.aggregates.running_error import RunningError

__all__ = ["OutputError", "RebuiltError"]

Sets: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RebuiltError:
    """The result of a group follows from several noisy tables by weighted least squares; which
    one has the largest error depends on the grouping set.

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
    def table_sizes(self) -> list[int]:
        """How many groups each noisy table has."""
        tables = (table for measured in self.measured for table in measured)
        return [math.prod(self.sizes[i] for i in table) for table in tables]

    @property
    def parts(self) -> int:
        """How many noisy tables there are."""
        return sum(map(len, self.measured))

    def noises(self, drawn: Sequence[Drawn], kept: tuple[int, ...]) -> JointNoise:
        """The law of the rebuilt numbers in a group of one of the sets, each with its step.

        Parameters
        ----------
        drawn
            The noise of each noisy table, its step and the number of its draw, in their order.
        kept
            The columns of the set.
        """
        found, start = list[NoisyTables](), 0
        for measured, weights in zip(self.measured, self.weights, strict=True):
            here = tuple(drawn[start : start + len(measured)])
            start += len(measured)
            found.append(NoisyTables(measured, tuple(map(float, weights)), here))
        return noise_of_numbers(self.sizes, kept, tuple(found))


OutputError: TypeAlias = (
    ErrorRule
    | RunRankError
    | RebuiltError
    | DistributionError
    | DistributionSetsError
    | RootError
    | RunError
    | RunningError
)
