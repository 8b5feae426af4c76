"""What an aggregate is: one class with everything about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.error_rules import ErrorRule, PartError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.part import Part
from dpframe.aggregates.request import Request, Scope

Noisy = NDArray[np.int64]
_INT64 = 2**63 - 1


def shifted(values: Noisy, by: int) -> Noisy:
    """Integers moved by a constant, and held at the limits of Int64."""
    moved = values + np.int64(max(-_INT64, min(_INT64, by)))
    over = (moved < values) if by > 0 else (moved > values)
    return np.where(over, np.int64(_INT64 if by > 0 else -_INT64), moved)


@dataclass(frozen=True, slots=True, eq=False)
class Use:
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
    """

    part: Part
    role: str
    impact: Fraction = Fraction(1)


class Aggregate(ABC):
    """One dp aggregate: the noisy parts it needs, and how they make its result.

    A subclass's docstring has a `Guarantee` section. Everything after the parts is
    post-processing and costs nothing.
    """

    kind: ClassVar[str]
    summary: ClassVar[str]
    mechanisms: ClassVar[tuple[str, ...]] = ("auto", "discrete_laplace", "discrete_gaussian")
    """The values that its `mechanism=` accepts; just ``"auto"`` where there is no choice."""
    monotone: ClassVar[bool] = False
    """Whether the result has one part and rises with it."""
    clamps: ClassVar[bool] = False
    """Whether it has `bounds` to which each value is clamped."""
    examples: ClassVar[tuple[str, ...]]
    """dp expressions over the laws' frame, as text."""

    @abstractmethod
    def uses(self, request: Request, scope: Scope) -> tuple[Use, ...]:
        """The parts, in the order in which `combine` takes them.

        Raises
        ------
        UnboundedSensitivity, InvalidBounds, UnsupportedOperation, MissingKeys
            When the request makes no sense on such a frame.
        """

    @abstractmethod
    def combine(self, request: Request, scope: Scope, values: Sequence[Noisy]) -> pl.Series:
        """The result, one row per group, from the noisy integers of its parts.

        Parts with cells come as arrays of shape (groups, cells), selections as (groups, rounds).
        """

    def expand(self, request: Request, scope: Scope) -> pl.DataFrame | None:
        """The public columns of a result with several rows per group, or None.

        Where there is one, `combine` yields one list per group, as long as this frame.
        """
        return None

    def interval(
        self,
        request: Request,
        scope: Scope,
        values: Sequence[Noisy],
        noise: JointNoise,
        level: Fraction,
    ) -> tuple[pl.Series, pl.Series] | None:
        """Where the exact result lies with probability `level`, given the joint law of the noise of
        the parts; None for a result that is no number. Post-processing: it depends on the noisy
        integers alone.
        """
        if not self.monotone:
            return None
        (noisy,) = values
        most = noise.reach(0, level)
        low, high = shifted(noisy, -most), shifted(noisy, most)
        return self.combine(request, scope, [low]), self.combine(request, scope, [high])

    def plain(self, request: Request, scope: Scope, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        """The same of public data as plain Polars has it, without bounds: what a simulation
        compares with.

        Parameters
        ----------
        request, scope
            What was asked, and of which frame.
        column
            Its values as numbers, null where there are none; of totals with ``per="unit"``, except
            for counts. None for rows.

        Returns
        -------
        tuple of polars.Expr
            One, or those of a list. None at all where the exact tables have no bounds, so that they
            make the plain result.
        """
        return ()

    def note(self, request: Request, scope: Scope) -> str:
        """How the result comes from the noisy parts, in a plan; empty where that goes without
        saying.
        """
        return ""

    def error(self, request: Request, scope: Scope) -> ErrorRule:
        """How a bound on the result's error follows from bounds on those of its parts."""
        return PartError()
