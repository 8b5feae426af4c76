"""The privacy loss of many events together, from fast Fourier transforms.

The laws of the events are put on one grid (`dpframe.accounting.connect_the_dots`), which only
adds loss. They are *tilted* (multiplied by exp(theta loss) and normalised, so that the losses
that decide about delta become the likely ones and are not lost in rounding). Then they are
transformed, multiplied and transformed back on a window of n points. The reported delta is never
below the one of exact arithmetic:

*Outside the window.* A transform of length n wraps losses around. Losses below the window come back
inside it and only add to delta; losses above it come back too, but count for too little, so delta
is raised by P(loss above), by Chernoff's bound.

*Rounding.* With unit roundoff u = 2**-53 the error of a transform of length n is at most 8 u
log2(n) of its Euclidean norm (Higham 2002, Theorem 24.2: (u + 4 u (sqrt(2) + u) + ...) log2(n)).
Tilted laws x_i have |x_i| <= 1, and their spectra are at most 1 in modulus. So the error of the
spectrum of the product of k_i-th powers is at most 8 u log2(n) sqrt(n) sum(k_i |x_i|) plus 3 u
sqrt(n) sum(k_i) for the products (2.3 u each, in Euclidean norm), and that of the result

    E = 1.1 u (8 log2(n) (sum(k_i |x_i|) + 2) + 3 sum(k_i)).

delta = sum(w_j y_j) over tilted masses y with weights w, so it is raised by E |w| (Cauchy and
Schwarz). Masses, norms and exponentials are right to 1e-12 per event, so delta is multiplied by
exp(2e-12 (events + 1)). Losses are right to 2**-50 of their size, so epsilon is multiplied by
1 + 2**-48.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.connect_the_dots import Dots
from dpframe.accounting.search import root_between
from dpframe.accounting.tilting import View, cumulant

__all__ = ["Composed", "compose"]

Floats: TypeAlias = NDArray[np.float64]

_U: Final = 2.0**-53
_NEAR: Final = 1e-12
"""How much of an epsilon that is searched for may be too much."""


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """Masses under P of the sum of losses in a window, and what must be added to delta.

    Parameters
    ----------
    losses, masses
        The grid, rising, and upper bounds on the masses there, except for rounding.
    noise
        E times the weights: the error vector of tilted masses has norm E, and weights turn these
        into the masses.
    beyond
        The probability of a loss above the window or of an infinite one.
    inflate
        A factor of at least 1 for delta.
    """

    losses: Floats
    masses: Floats
    noise: Floats
    beyond: float
    inflate: float

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at epsilon."""
        epsilon /= 1.0 + 2.0**-48
        if epsilon < self.losses[0]:
            return 1.0
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        shares = epsilon - self.losses[start:]
        np.negative(np.expm1(shares, out=shares), out=shares)
        terms = shares * self.masses[start:]
        found = float(terms.sum())
        np.square(np.multiply(shares, self.noise[start:], out=terms), out=terms)
        error = math.sqrt(float(terms.sum()))
        return min(1.0, (found + error + self.beyond) * self.inflate)

    def epsilon(self, delta: float) -> float:
        """An epsilon >= 0 whose `delta` is at most this one; infinity if none exists."""
        last = max(0.0, float(self.losses[-1])) * (1.0 + 2.0**-47)
        if self.delta(last) > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0

        def excess(epsilon: float) -> float:
            found = self.delta(epsilon)
            return math.log(min(found / delta, 1e300)) if found else -700.0

        return root_between(excess, 0.0, last, _NEAR)


def compose(
    parts: Sequence[tuple[Dots, int]], h: Fraction, view: View, lowest: int, n: int
) -> Composed:
    """The sum of independent losses on the window of n points from `lowest` on.

    Parameters
    ----------
    parts
        Laws on the multiples of h, and how often each occurs.
    n
        A power of two.
    """
    step, theta = float(h), view.theta
    spectrum = np.ones(n // 2 + 1, dtype=np.complex128)
    log_norm = norms = infinite = 0.0
    events = sum(count for _, count in parts)
    for part, count in parts:
        tilted, log_sum = _tilted(part, step, theta)
        log_norm += count * log_sum
        norms += count * float(np.sqrt((tilted * tilted).sum()))
        infinite += count * part.infinite
        spectrum *= _power(np.fft.rfft(_wrapped(tilted, part.first, n)), count)
    wrapped = np.fft.irfft(spectrum, n)
    shift = lowest % n
    masses = np.concatenate([wrapped[shift:], wrapped[:shift]])
    np.maximum(masses, 0.0, out=masses)
    losses = np.arange(lowest, lowest + n, dtype=np.float64)
    losses *= step
    weights = losses * -theta
    weights += log_norm
    np.minimum(weights, 300.0, out=weights)  # more is 1 anyway
    masses *= np.exp(weights, out=weights)
    error = 1.1 * _U * (8.0 * math.log2(n) * (norms + 2.0) + 3.0 * events)
    beyond = infinite + _above(parts, step, view.steep, lowest + n - 1)
    inflate = math.exp(min(700.0, 2e-12 * (events + 1)))
    weights *= error
    return Composed(losses, masses, weights, beyond, inflate)


def _tilted(part: Dots, step: float, theta: float) -> tuple[Floats, float]:
    """Masses times exp(theta loss), with sum 1, and the logarithm of what they were divided by."""
    end = part.first + len(part.masses)
    tilted = np.arange(part.first, end, dtype=np.float64)
    tilted *= step
    tilted *= theta
    with np.errstate(divide="ignore"):
        tilted += np.log(part.masses)
    top = float(tilted.max())
    tilted -= top
    total = float(np.exp(tilted, out=tilted).sum())
    tilted /= total
    return tilted, top + math.log(total)


def _wrapped(masses: Floats, first: int, n: int) -> Floats:
    """Masses at their places modulo n."""
    shift = first % n
    size = -(-(shift + len(masses)) // n) * n
    placed = np.zeros(size)
    placed[shift : shift + len(masses)] = masses
    if size == n:
        return placed
    return np.asarray(placed.reshape(-1, n).sum(axis=0))


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """By repeated squaring, whose rounding is known."""
    result: NDArray[np.complex128] | None = None
    while True:
        if count & 1:
            result = spectrum if result is None else result * spectrum
        count >>= 1
        if not count:
            assert result is not None
            return result
        spectrum = spectrum * spectrum


def _above(parts: Sequence[tuple[Dots, int]], step: float, steep: float, last: int) -> float:
    """P(loss > last step) by Chernoff's bound at the best of a few orders."""
    if sum(count * (part.first + len(part.masses) - 1) for part, count in parts) <= last:
        return 0.0
    orders = steep * np.array([0.8, 1.0, 1.25])
    logs = cumulant(parts, step, orders) - orders * (last * step)
    return math.exp(min(0.0, float(logs.min()) + 1e-9))
