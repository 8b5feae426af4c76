"""Many dominating pairs together: the kernel computes their delta, and here epsilon is found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from dpframe.accounting.loss_laws import Translated
from dpframe.accounting.normal import log_delta_normal, normal_epsilon
from dpframe.accounting.search import least_reaching
from dpframe.core.exact import dyadic_up, float_up
from dpframe.kernel.losses import ADDED, Loss, Normals, losses_delta

_NEAR = 1e-9
"""How much of an epsilon that is searched for may be too much."""


class Composition:
    """Independent events by their dominating pairs.

    Parameters
    ----------
    pairs
        How often each occurs. Gaussian ones are one together: their squared distances add up.
    added
        Which part of epsilon may be too much, about. Less takes longer.
    """

    def __init__(self, pairs: Mapping[Translated, int], added: float = ADDED) -> None:
        self._added = added
        losses: Counter[Loss] = Counter()
        failure, log_factor, normal = Fraction(0), 0.0, Fraction(0)
        for pair, count in pairs.items():
            failure += count * pair.failure
            log_factor += count * pair.factor
            if isinstance(pair.law, Normals):
                normal += dyadic_up(count * pair.law.d_squared)  # short numbers add up fast
            else:
                losses[pair.law] += count
        self._normal = normal if not losses else None
        """The squared distance, where all noise is Gaussian."""
        if normal:
            losses[Normals(normal)] += 1
        self._losses = frozenset(losses.items())
        self._failure = float_up(failure)
        self._log_factor = log_factor * (1.0 + 1e-9)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at an epsilon of at least 0."""
        if self._failure >= 1.0:
            return 1.0
        lowered = max(0.0, epsilon - 2.0 * self._log_factor)
        losses = self._of_losses(lowered) * math.exp(self._log_factor)
        return min(1.0, (self._failure + losses) * (1.0 + 1e-15))

    def epsilon(self, delta: float, start: float) -> float:
        """An epsilon at which `delta` is an upper bound, a billionth too large at most; infinity
        if none is found. The search begins at `start`.
        """
        left = (delta - self._failure) * math.exp(-self._log_factor) * (1.0 - 1e-14)
        if left <= 0.0:
            return math.inf
        if self._normal is not None:
            least = normal_epsilon(float_up(self._normal), left) if self._normal else 0.0
        else:
            least = self._search(math.log(left), start)
        return least + 2.0 * self._log_factor

    def _of_losses(self, epsilon: float) -> float:
        if self._normal is not None:
            if not self._normal:
                return 0.0
            d = math.sqrt(float_up(self._normal)) * (1.0 + 1e-15)
            return math.exp(log_delta_normal(d, epsilon))
        return float_up(losses_delta(self._losses, Fraction(epsilon), self._added))

    def _search(self, target: float, start: float) -> float:
        def log_delta(epsilon: float) -> float:
            found = self._of_losses(epsilon)
            return math.log(found) if found else -math.inf

        return least_reaching(log_delta, target, max(start, 1e-12), _NEAR)
