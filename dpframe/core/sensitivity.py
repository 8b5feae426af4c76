"""How far one individual can move a released vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.exact import float_up, sqrt_up
from dpframe.core.fields import EXACT
from dpframe.kernel.moves import Norms


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of one released vector between neighbouring frames, in the value's units.

    Parameters
    ----------
    l0
        How many entries can change.
    l1
        The sum of absolute changes.
    l2
        The Euclidean norm of the change.
    linf
        The largest change of one entry.

    Notes
    -----
    For people: rounded up, but for L2, which is the nearest float to a root. Noise is calibrated to
    the exact values.
    """

    l0: int = field(metadata={EXACT: True})  # ways to place ten quantiles need 180 bits
    l1: float
    l2: float
    linf: float


@dataclass(frozen=True, slots=True)
class ExactSensitivity:
    """The same, exactly, with L2 squared so that it is rational."""

    l0: int = field(metadata={EXACT: True})
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @classmethod
    def of(cls, norms: Norms) -> ExactSensitivity:
        """The sensitivity that the kernel finds."""
        if not norms.l1:
            return NO_SENSITIVITY
        of_one = Fraction(norms.l1), Fraction(norms.l2_squared), Fraction(norms.linf)
        return cls(max(1, norms.l0), *of_one)

    @property
    def is_zero(self) -> bool:
        return self.l1 == 0

    def scaled(self, factor: Fraction) -> ExactSensitivity:
        """The sensitivity of the vector times `factor`."""
        f = abs(factor)
        return ExactSensitivity(self.l0, self.l1 * f, self.l2_squared * f * f, self.linf * f)

    def repeated(self, times: int) -> ExactSensitivity:
        """The sensitivity of `times` such vectors together, if one row can move them all."""
        n = times
        return ExactSensitivity(self.l0 * n, self.l1 * n, self.l2_squared * n, self.linf)

    def public(self) -> Sensitivity:
        """As floats, rounded up."""
        l2 = sqrt_up(self.l2_squared)
        return Sensitivity(self.l0, float_up(self.l1), _near(l2), float_up(self.linf))


def _near(value: Fraction) -> float:
    """The nearest float, which for an irrational root is the value that people expect."""
    return float(value)


def concentrated(l1: Fraction, linf: Fraction) -> tuple[Fraction, ...]:
    """As many numbers of size `linf` as L1 allows, and one with what is left of it: of all within
    both bounds those that differ most (they majorise the others).
    """
    if not linf:
        return ()
    full, left = divmod(l1, linf)
    return (linf,) * full + ((left,) if left else ())


NO_SENSITIVITY = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))
