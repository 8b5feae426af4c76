"""No noise, for results that no individual's data can change."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.kernel import plan as kernel
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import AdditiveMechanism

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


@dataclass(frozen=True, slots=True)
class NoNoise(AdditiveMechanism):
    """Release an exact number: right only when its sensitivity is exactly 0.

    The cost is 0 under every privacy measure, because neighbouring data give the same number.
    """

    name: ClassVar[str] = "none"
    label: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Exact()

    @property
    def scale(self) -> Fraction:
        """0."""
        return Fraction(0)

    def epsilon(self) -> Fraction:
        """0."""
        return Fraction(0)

    def rho(self) -> Fraction:
        """0."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """0."""
        return 0.0

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """None at all."""
        _require_public(exposure)
        return ()

    def log_noise(self, candidates: int) -> float:
        """0, as if it were one step: what costs nothing changes no choice."""
        return 0.0

    def variance(self) -> float:
        """0."""
        return 0.0

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """0, for any confidence."""
        return 0

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(0 > x) for each x."""
        return np.where(x < 0, 1.0, 0.0)


def _require_public(exposure: Exposure) -> None:
    """Refuse a cost for numbers that individuals can change: no finite cost would be enough."""
    if not exposure.sensitivity.is_zero:
        raise ValueError("a number that individuals can change is not released without noise")
