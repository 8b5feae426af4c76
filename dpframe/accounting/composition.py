"""Many dominating pairs together: on which grid, in which window; then they are convolved."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Final

from dpframe.accounting.choices import together
from dpframe.accounting.connect_the_dots import Dots, dots, largest_loss, spacing, spread
from dpframe.accounting.convolution import Composed, compose
from dpframe.accounting.loss_laws import LossLaw, Normal, Translated
from dpframe.accounting.normal import log_delta_normal, normal_epsilon
from dpframe.accounting.tilting import View, view_at_delta, view_at_epsilon
from dpframe.core.exact import dyadic_up, float_up

__all__ = ["GRID_ERROR", "Composition"]

_COARSE: Final = 64
"""Cells of a law when only the window is sought."""
_MOST_LOSS: Final = 600.0
"""An event with more is taken to reveal everything: exp of it would leave floats."""
_LARGEST: Final = 1 << 17
_SMALLEST: Final = 1 << 14
GRID_ERROR: Final = 2e-8
"""Which part of epsilon the grid may add, where its size allows."""


class Composition:
    """Independent events by their dominating pairs.

    Parameters
    ----------
    pairs
        How often each occurs. Gaussian ones are one together: their squared distances add up.
    grid_error
        Which part of epsilon the grid may add: results are upper bounds at any.
    """

    def __init__(self, pairs: Mapping[Translated, int], grid_error: float = GRID_ERROR) -> None:
        self._grid_error = grid_error
        found: Counter[LossLaw] = Counter()
        failure, log_factor, normal = Fraction(0), 0.0, Fraction(0)
        for pair, count in pairs.items():
            failure += count * pair.failure
            log_factor += count * pair.factor
            if isinstance(pair.law, Normal):
                normal += dyadic_up(count * pair.law.d_squared)  # short numbers add up fast
            else:
                found[pair.law] += count
        if normal:
            found[Normal(normal)] += 1
        self._laws = together(found)
        self._failure = float_up(failure)
        self._log_factor = log_factor * (1.0 + 1e-9)
        self._hopeless = any(largest_loss(law) > _MOST_LOSS for law in found)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at an epsilon of at least 0."""
        if self._failure >= 1.0 or self._hopeless:
            return 1.0
        if not self._laws:
            return self._failure
        lowered = max(0.0, epsilon - 2.0 * self._log_factor)
        if self._normal is not None:
            d = math.sqrt(float_up(self._normal)) * (1.0 + 1e-15)
            found = math.exp(log_delta_normal(d, lowered) + self._log_factor)
            return min(1.0, (self._failure + found) * (1.0 + 1e-15))
        view = view_at_epsilon(*self._coarse, lowered)
        found = self._composed(view).delta(lowered) * math.exp(self._log_factor)
        return min(1.0, (self._failure + found) * (1.0 + 1e-15))

    def epsilon(self, delta: float) -> float:
        """An epsilon at which `delta` is an upper bound; infinity if none is found."""
        left = (delta - self._failure) * math.exp(-self._log_factor) * (1.0 - 1e-14)
        if left <= 0.0 or self._hopeless:
            return math.inf
        if not self._laws:
            return 0.0
        if self._normal is not None:
            return normal_epsilon(float_up(self._normal), left) + 2.0 * self._log_factor
        view = view_at_delta(*self._coarse, math.log(left))
        return self._composed(view).epsilon(left) + 2.0 * self._log_factor

    @property
    def _normal(self) -> Fraction | None:
        """The squared distance, where all noise is Gaussian: no grid is needed then."""
        law = next(iter(self._laws)) if len(self._laws) == 1 else None
        return law.d_squared if isinstance(law, Normal) else None

    @cached_property
    def _coarse(self) -> tuple[list[tuple[Dots, int]], float]:
        """Laws on a grid of their own each would not share one; one step for the narrowest."""
        step = min(spread(law) for law in self._laws) / _COARSE
        widest = max(largest_loss(law) for law in self._laws)
        step = max(step, widest / 2**12)
        h = Fraction(step)
        return [(dots(law, h), count) for law, count in self._laws.items()], float(h)

    def _composed(self, view: View) -> Composed:
        low, high = self._window(view)
        h = self._step(high - low, view)
        parts = [(dots(law, h), count) for law, count in self._laws.items()]
        lowest = math.floor(low / float(h)) - 2
        points = math.ceil(high / float(h)) + 2 - lowest
        n = 1 << max(4, (points - 1).bit_length())
        return compose(parts, h, view, lowest, n)

    def _window(self, view: View) -> tuple[float, float]:
        """No wider than what the sum of losses can be."""
        reach = sum(count * largest_loss(law) for law, count in self._laws.items()) * (1 + 1e-9)
        low = max(min(view.low, view.epsilon * 0.5), -reach)
        return low, max(min(view.high, reach), view.epsilon * 1.001, low + 1e-9)

    def _step(self, width: float, view: View) -> Fraction:
        """The grid's step: on all atoms if that is possible, else as fine as is paid for.

        Splitting between two points at a distance of h adds at most h**2 / 6 to the variance of a
        smooth loss, so theta h**2 / 12 or so per event to epsilon.
        """
        most = max(_SMALLEST, min(_LARGEST, 2 * _LARGEST // len(self._laws)))
        atoms = _common_step([spacing(law) for law in self._laws], width / (2 * most))
        free = self._laws if atoms is None else [w for w in self._laws if not _is_atomic(w)]
        if atoms is not None and not free:
            return atoms
        draws = sum(self._laws[law] for law in free)
        coarsest = min(spread(law) for law in free) / 16
        added = 12.0 * self._grid_error * max(view.epsilon, coarsest) / (draws * view.theta)
        aim = max(min(math.sqrt(added), coarsest), width / most)
        if atoms is None:
            return Fraction(aim)
        return atoms / max(1, math.floor(atoms / Fraction(aim)))


def _is_atomic(law: LossLaw) -> bool:
    return type(law).__name__ in ("Response", "SteppedLaplace", "SteppedNormal", "Choices")


def _common_step(steps: list[Fraction | None], least: float) -> Fraction | None:
    """The largest step with all of them as multiples, unless it is below `least`."""
    found: Fraction | None = None
    for step in steps:
        if step is None:
            continue
        found = step if found is None else _gcd(found, step)
        if found < least:
            return None
    return found


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator),
        a.denominator * b.denominator,
    )
