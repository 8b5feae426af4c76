"""An aggregate of one frame: the request is read and checked once, and answers everything.

All other code asks these objects about a query's aggregates: their noisy parts, how a result
follows from them, its shape, its interval, its text and its error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.error_rules import PartError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.ranges import Ranges
from dpframe.aggregates.rebuilt_error import OutputError
from dpframe.aggregates.request import Request
from dpframe.aggregates.shapes import ONE, Shape
from dpframe.core.domain import Columns
from dpframe.core.tree import Tree
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.rows.fold import domain

Noisy = NDArray[np.int64]
MeasurementKey = tuple[Measurement, str]
"""A part, and the mechanism that is requested: two requests share what has one key."""
Laws: TypeAlias = "Mapping[MeasurementKey, Mechanism]"
"""The mechanism of each part on its own."""
_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementUse:
    """A part as one output uses it.

    Parameters
    ----------
    part
        The vector.
    role
        What the plan calls it there.
    impact
        The square of the part's effect on the output's relative error: what one typical error of
        the part does to the output, relative to what all rows together can make it, where a count's
        is 1. Only the split of a plan's cost rests on it.
    portion
        What the part gets of the output's cost, relative to the others, where impacts do not
        decide.
    is_shared
        Whether outputs that use the part pay for it once; else what each would pay adds up.
    """

    part: Measurement
    role: str
    impact: Fraction = Fraction(1)
    portion: Fraction = Fraction(1)
    is_shared: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Clamp:
    """Values that are clamped to bounds.

    Parameters
    ----------
    tree
        Each row's value.
    bounds
        The bounds.
    per_unit
        Whether totals of individuals are clamped to them, and not rows.
    biases
        Whether values outside move the result at all; they move no quantile within the bounds.
    """

    tree: Tree
    bounds: tuple[Fraction, Fraction]
    per_unit: bool = False
    biases: bool = True


def is_told(clamp: Clamp, columns: Columns) -> bool:
    """Whether rows whose values it clamps can be counted one by one: of numbers in rows."""
    return not clamp.per_unit and domain(clamp.tree, columns).dtype.is_numeric


@dataclass(frozen=True, slots=True, eq=False)
class BoundAggregate(ABC):
    """One dp aggregate, bound to the frame it is computed from.

    Everything after the parts is post-processing and costs nothing.

    Parameters
    ----------
    request
        The request.
    uses
        The noisy parts that it needs, in the order in which `combine` takes them.
    """

    request: Request
    uses: tuple[MeasurementUse, ...]

    monotone: ClassVar[bool] = False
    """Whether the result has one part and rises with it."""

    @property
    def rests_on(self) -> int | None:
        """The index of the part that counts the rows that the result rests on, where the result
        is null if that count may be 0 within noise.
        """
        return None

    @property
    def name(self) -> str:
        """The output column that it is first used in."""
        return self.request.name

    @property
    def keys(self) -> tuple[MeasurementKey, ...]:
        """What its noisy numbers are found by, in the order of its parts."""
        return tuple((use.part, self.request.mechanism) for use in self.uses)

    @property
    def shape(self) -> Shape:
        """How its result stands in a frame."""
        return ONE

    @property
    def is_plain_number(self) -> bool:
        """Whether the result is the unchanged number of its one part, in the part's units."""
        return False

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is clamped to bounds."""
        return ()

    @property
    def is_nonnegative(self) -> bool:
        """Whether negative results are to be avoided; results of several grouping sets still add
        up.
        """
        return False

    @property
    def note(self) -> str:
        """How the result comes from the noisy parts, in a plan; empty where that goes without
        saying.
        """
        return ""

    @property
    def ranges(self) -> Ranges | None:
        """The ranges between two edges that its counts give; None where they have no order."""
        return None

    @property
    def error(self) -> OutputError:
        """How a bound on the result's error follows from bounds on those of its parts."""
        return PartError()

    @property
    def depends_on_noise(self) -> bool:
        """Whether the result depends on how much noise its parts get, and not on their numbers
        alone.
        """
        return False

    def knowing(self, noise: Sequence[Mechanism]) -> BoundAggregate:
        """The same, where it is known what noise its parts get. Until then results are those of
        parts without noise.

        Parameters
        ----------
        noise
            The mechanism of each part on its own, in the order of `uses`.
        """
        return self

    @abstractmethod
    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        """The result, one row per group, from the noisy integers of its parts.

        Parts with cells come as arrays of shape (groups, cells), selections as (groups, rounds).
        Where the shape has several rows per group, so has the result.
        """

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        """Where the exact result lies with probability `level`, given the joint law of the noise of
        the parts; None for a result that is no number. Post-processing: it depends on the noisy
        integers alone.
        """
        if not self.monotone:
            return None
        (noisy,) = values
        most = noise.reach(0, level)
        return self.combine([shifted(noisy, -most)]), self.combine([shifted(noisy, most)])

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        """The same of public data as plain Polars has it, without bounds: what a simulation
        compares with.

        Parameters
        ----------
        column
            Its values as numbers, null if none exist; of totals where `is_of_totals`. None for
            rows.

        Returns
        -------
        tuple of polars.Expr
            One, or those of a list. None at all where the exact tables have no bounds, so that they
            make the plain result.
        """
        return ()

    @property
    def plain_tree(self) -> Tree | None:
        """What the plain result is of; None for rows."""
        return self.request.tree

    @property
    def plain_beside(self) -> Tree | None:
        """What stands below the line of the plain result, where it is a ratio."""
        return None

    def plain_of_two(self, column: pl.Expr, beside: pl.Expr) -> tuple[pl.Expr, ...]:
        """As `plain`, of two columns."""
        return self.plain(column)

    @property
    def is_of_totals(self) -> bool:
        """Whether the plain result is one of totals of individuals, not of rows."""
        return False

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        """The result from the physical numbers that the plain expressions gave."""
        raise NotImplementedError(self.request.kind)  # for those that have plain expressions


def shifted(values: Noisy, by: int) -> Noisy:
    """Integers moved by a constant, and held at the limits of Int64."""
    moved = values + np.int64(max(-_INT64, min(_INT64, by)))
    over = (moved < values) if by > 0 else (moved > values)
    return np.where(over, np.int64(_INT64 if by > 0 else -_INT64), moved)


def variance_of(laws: Laws, key: MeasurementKey) -> float:
    """The variance of a part to which noise is added, in steps squared."""
    law = laws[key]
    assert isinstance(law, AdditiveMechanism)
    return law.variance()
