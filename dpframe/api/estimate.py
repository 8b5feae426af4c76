"""A number that follows from a release, with its error."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number computed from a release, with its error.

    Parameters
    ----------
    value
        The number.
    error
        The 95% error: with 95% confidence the exact number is within this distance of `value`.
    """

    value: int
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval that holds the exact number with 95% confidence."""
        return self.value - self.error, self.value + self.error

    def __str__(self) -> str:
        return f"{self.value:,} ± {self.error:,.10g} (95%)"

    def __repr__(self) -> str:
        return f"<Estimate {self}>"
