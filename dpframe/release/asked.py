"""The intervals that are requested with results."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.exact import Number
from dpframe.errors import UnsupportedOperation
from dpframe.plan import confidence_of

__all__ = ["Intervals", "read_intervals"]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of each number.

    Parameters
    ----------
    confidence
        How often they hold what they are of.
    sampling
        Whether they also hold what would be found of the population that the data are a sample of.
    """

    confidence: Fraction
    sampling: bool = False

    @property
    def words(self) -> str:
        """The identity of results with such intervals."""
        return f"{self.confidence}{' with sampling' if self.sampling else ''}"


def read_intervals(confidence: Number | None, sampling: object = False) -> Intervals | None:
    """The request; None for no intervals.

    Raises
    ------
    UnsupportedOperation
        When sampling is to be covered by no interval, or is no truth value.
    """
    if not isinstance(sampling, bool):
        raise UnsupportedOperation(
            "sampling= is True or False",
            where="sampling=...",
            remedy="write interval=0.95, sampling=True",
        )
    if confidence is None:
        if sampling:
            raise UnsupportedOperation(
                "sampling=True needs interval=",
                where="sampling=True",
                remedy="write interval=0.95, sampling=True",
            )
        return None
    return Intervals(confidence_of(confidence, "interval"), sampling)
