"""Accountants: basic, advanced and optimal composition, and one for each measure of privacy."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.accountant import (
    ACROSS,
    WITHIN,
    Accountant,
    ValidFor,
    epsilon_at,
    pure_epsilon,
    zcdp_rho,
)
from dpframe.accounting.events import (
    AnyEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RandomizedResponseEvent,
    ZCDPEvent,
)
from dpframe.accounting.gaussian_noise import (
    epsilon_of_rho,
    log_delta_normal,
    log_delta_zcdp,
    loose_epsilon_of_rho,
    normal_epsilon,
    renyi_epsilon,
)
from dpframe.accounting.losses import FINE, Composition, Translated, smoothed_distance, translate
from dpframe.core.exact import decimal_up, exact, float_down, float_up
from dpframe.kernel.losses import MOST_SUMS, Reported

# Basic composition, and what happens side by side.


class BasicAccountant(Accountant):
    """Epsilons add up, and deltas (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006).

    Exact for pure events. Events that have no finite epsilon share the delta that others leave
    equally.
    """

    method: ClassVar[str] = "basic"
    valid_for: ClassVar[ValidFor] = ACROSS

    def _epsilon(self, delta: Fraction) -> float:
        left = delta - self._slack
        if left < 0:
            return float("inf")
        needy = needing_delta(self.counts.items())
        parts = pure_parts(self.counts.items(), float_down(left / needy) if needy else 0.0)
        return float("inf") if parts is None else decimal_up(sum_of(parts))

    def _delta(self, epsilon: Fraction) -> float:
        if needing_delta(self.counts.items()):
            return super()._delta(epsilon)
        parts = pure_parts(self.counts.items(), 0.0)
        return decimal_up(self._slack) if parts and sum_of(parts) <= epsilon else 1.0


def needing_delta(counts: Iterable[tuple[AnyEvent, int]]) -> int:
    """How many events have no finite epsilon."""
    return sum(count for event, count in counts if pure_epsilon(event) is None)


def pure_parts(
    counts: Iterable[tuple[AnyEvent, int]], share: float
) -> list[tuple[Fraction, int]] | None:
    """Epsilons and how often each occurs, when each event without one is given `share` of delta.

    None when one of them is infinite.
    """
    found = []
    for event, count in counts:
        epsilon = pure_epsilon(event)
        if epsilon is None:
            at_share = epsilon_at(event, share) if share > 0.0 else float("inf")
            if at_share == float("inf"):
                return None
            epsilon = Fraction(at_share)
        found.append((epsilon, count))
    return found


def sum_of(parts: Iterable[tuple[Fraction, int]]) -> Fraction:
    return sum((epsilon * count for epsilon, count in parts), Fraction(0))


# Advanced composition: bounds in closed form for many small epsilons.

_SHARES: Final = tuple(Fraction(i, 100) for i in (2, *range(5, 100, 5), 98))
"""Which parts of delta are tried for the events that need one."""
_FEW_SHARES: Final = _SHARES[2:20:4]
_MOST_DISTINCT: Final = 20
_INFLATE: Final = 1.0 + 1e-14


class SplitAccountant(Accountant):
    """Gives part of delta to the events that have no finite epsilon, then composes epsilons.

    Any split is valid, the best of a few is taken.
    """

    def _epsilon(self, delta: Fraction) -> float:
        left = delta - self._slack
        if left <= 0:
            return math.inf
        needy = needing_delta(self.counts.items())
        if not needy:
            return self._of(Fraction(0), left, 1)
        shares = _SHARES if len(self.counts) == 1 else _FEW_SHARES
        if len(self.counts) > _MOST_DISTINCT:  # each share is a composition of its own
            shares = (Fraction(1, 2),)
        return min(self._of(left * share, left * (1 - share), needy) for share in shares)

    def _of(self, given: Fraction, rest: Fraction, needy: int) -> float:
        parts = pure_parts(self.counts.items(), float_down(given / needy))
        return math.inf if parts is None else self._compose(parts, float_down(rest))

    @abstractmethod
    def _compose(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        """Epsilon of this many purely private events at delta."""


class AdvancedAccountant(SplitAccountant):
    """sqrt(2 ln(1 / delta) sum(e**2)) + sum(e (exp(e) - 1)) (Dwork and Roth 2014, Theorem 3.20).

    With unequal epsilons: their proof by Azuma's inequality holds term by term (Rogers, Roth,
    Ullman and Vadhan 2016, Theorem 2.4).
    """

    method: ClassVar[str] = "advanced"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _compose(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if delta <= 0.0 or any(e > 600 for e, _ in parts):
            return math.inf
        squares = float_up(sum((n * e * e for e, n in parts), Fraction(0)))
        means = math.fsum(n * float(e) * math.expm1(float(e)) for e, n in parts)
        return (math.sqrt(2.0 * squares * -math.log(delta)) + means) * _INFLATE


class ClosedFormAccountant(SplitAccountant):
    """The closed form of Kairouz, Oh and Viswanath 2015, Theorems 3.4 and 3.5: the least of
    sum(e), m + sqrt(2 v ln(e + sqrt(v) / delta)) and m + sqrt(2 v ln(1 / delta)),

    where m = sum(e tanh(e / 2)) and v = sum(e**2).
    """

    method: ClassVar[str] = "Kairouz-Oh-Viswanath, closed form"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _compose(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if delta <= 0.0:
            return math.inf
        squares = float_up(sum((n * e * e for e, n in parts), Fraction(0)))
        means = math.fsum(n * float(e) * math.tanh(float(e) / 2.0) for e, n in parts)
        log = min(-math.log(delta), math.log(math.e + math.sqrt(squares) / delta))
        total = decimal_up(sum((n * e for e, n in parts), Fraction(0)))
        return min(total, (means + math.sqrt(2.0 * squares * log)) * _INFLATE)


# Optimal composition of events when only their (epsilon, delta) is used.


class OptimalAccountant(SplitAccountant):
    """Kairouz, Oh and Viswanath 2015: no theorem that knows only epsilons and deltas gives less.

    Each event is at worst binary randomised response (Theorem 3.3), so the bound is the delta of
    many of those, at any epsilon; the kernel computes it, see `PrivacyLossAccountant`.
    """

    method: ClassVar[str] = "Kairouz-Oh-Viswanath"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _compose(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if len(parts) == 1 and parts[0][1] == 1 and delta < 1e-15:
            return float_up(parts[0][0])
        rho = sum((n * e * e / 2 for e, n in parts), Fraction(0))
        return _responses(parts).epsilon(delta, epsilon_of_rho(rho, delta))

    def _delta(self, epsilon: Fraction) -> float:
        if needing_delta(self.counts.items()):
            return super()._delta(epsilon)
        parts = pure_parts(self.counts.items(), 0.0)
        assert parts is not None
        found = _responses(parts).delta(float_down(epsilon))
        return float_up(self._slack + Fraction(found))


def _responses(parts: Sequence[tuple[Fraction, int]]) -> Composition:
    pairs: Counter[Translated] = Counter()
    for epsilon, count in parts:
        if epsilon:
            pairs[Translated(Reported(epsilon, 2))] += count
    return Composition(pairs)


# Concentrated privacy: rho adds up, even if later steps are chosen after earlier ones.


class ZCDPAccountant(Accountant):
    """Sums of rho (Bun and Steinke 2016, Lemma 2.3), converted by Canonne, Kamath and Steinke 2020,
    Proposition 12. Failures add to delta (delta-approximate zCDP).
    """

    method: ClassVar[str] = "zCDP, tight"
    valid_for: ClassVar[ValidFor] = ACROSS

    @property
    def rho(self) -> Fraction:
        """The sum, exactly."""
        return sum((n * zcdp_rho(event) for event, n in self.counts.items()), Fraction(0))

    def _epsilon(self, delta: Fraction) -> float:
        return epsilon_of_rho(self.rho, self._remaining_delta(delta))

    def _delta(self, epsilon: Fraction) -> float:
        log_delta = log_delta_zcdp(self.rho, epsilon)
        return float_up(self._slack + Fraction(max(math.exp(log_delta), 1e-300)))


class LooseZCDPAccountant(ZCDPAccountant):
    """The same sums by rho + 2 sqrt(rho ln(1 / delta)) (Bun and Steinke 2016, Prop. 1.3)."""

    method: ClassVar[str] = "zCDP, loose"

    def _epsilon(self, delta: Fraction) -> float:
        return loose_epsilon_of_rho(self.rho, self._remaining_delta(delta))

    def _delta(self, epsilon: Fraction) -> float:
        return Accountant._delta(self, epsilon)


# Gaussian differential privacy: squared distances add up.


class GaussianDPAccountant(Accountant):
    """Gaussian events only: mu**2 = sum((sensitivity / sigma)**2), converted exactly.

    Dong, Roth and Su 2022, Corollary 3.3; Balle and Wang 2018, Theorem 8.

    Discrete noise is seen as continuous noise rounded at random, at a slightly larger mu
    (`dpframe.accounting.gaussian_noise`).
    """

    method: ClassVar[str] = "Gaussian DP"
    valid_for: ClassVar[ValidFor] = ACROSS

    @property
    def mu(self) -> float:
        """The distance between two unit normals that are as hard to distinguish; rounded up."""
        return math.sqrt(self._distance_and_factor()[0]) * (1.0 + 2.0**-50)

    def _covers(self, event: AnyEvent) -> bool:
        if isinstance(event, DiscreteGaussianEvent):
            return smoothed_distance(event) is not None
        return isinstance(event, GaussianEvent)

    def _distance_and_factor(self) -> tuple[float, float]:
        squared, factor = Fraction(0), 0.0
        for event, count in self.counts.items():
            assert isinstance(event, (GaussianEvent, DiscreteGaussianEvent))
            found = smoothed_distance(event)
            assert found is not None
            squared += count * found[0]
            factor += count * found[1]
        return float_up(squared), factor * (1.0 + 1e-9)

    def _epsilon(self, delta: Fraction) -> float:
        squared, factor = self._distance_and_factor()
        left = self._remaining_delta(delta) * math.exp(-factor) * (1.0 - 1e-15)
        return normal_epsilon(squared, left) + 2.0 * factor if left > 0.0 else math.inf

    def _delta(self, epsilon: Fraction) -> float:
        squared, factor = self._distance_and_factor()
        lowered = max(0.0, float(epsilon) * (1.0 - 1e-15) - 2.0 * factor)
        log_delta = log_delta_normal(math.sqrt(squared) * (1.0 + 1e-15), lowered)
        return max(math.exp(log_delta + factor), 1e-300) * (1.0 + 1e-14)


# Renyi divergences, which add up at every order.

Floats: TypeAlias = NDArray[np.float64]
_MOST_STEPS: Final = 256


class RenyiAccountant(Accountant):
    """Sums of Renyi divergences (Mironov 2017, Prop. 1), converted at the best order by Canonne,
    Kamath and Steinke 2020, Proposition 12. Failures add to delta.

    Across plans it is the curve, or its value at one order, that is to be budgeted beforehand
    (Feldman and Zrnic 2021).
    """

    method: ClassVar[str] = "Renyi"
    valid_for: ClassVar[ValidFor] = ACROSS

    def curve(self, orders: Floats) -> Floats:
        """Upper bounds on the divergence of all events together, at each order above 1."""
        total = np.zeros(len(orders))
        for event, count in self.counts.items():
            total = total + count * renyi_divergence(event, orders)
        return total

    def _epsilon(self, delta: Fraction) -> float:
        left = self._remaining_delta(delta)
        return renyi_epsilon(self.curve, left) if left > 0.0 else math.inf


def renyi_divergence(event: AnyEvent, orders: Floats) -> Floats:
    """An upper bound on the Renyi divergence of each order above 1, but for the event's slack.

    Laplace noise: Mironov 2017, Table II; for integers the sum over the privacy loss
    (`dpframe.accounting.losses`). Gaussian: order * (sensitivity / sigma)**2 / 2 (the same; for
    integers Canonne, Kamath and Steinke 2020, Prop. 5). Pure privacy: what randomised response has,
    and for bounded range order * rho if that is less.
    """
    a = np.asarray(orders, dtype=np.float64)
    with np.errstate(over="ignore"):
        concentrated = a * float_up(zcdp_rho(event))
    epsilon = pure_epsilon(event)
    if isinstance(event, (GaussianEvent, DiscreteGaussianEvent, ZCDPEvent)) or epsilon is None:
        return concentrated
    e = float_up(epsilon)
    match event:
        case LaplaceEvent():
            found = _laplace(e, a)
        case DiscreteLaplaceEvent() if exact(event.sensitivity) <= _MOST_STEPS:
            found = _discrete_laplace(float_up(1 / exact(event.scale)), int(event.sensitivity), a)
        case DiscreteLaplaceEvent():
            found = _laplace(float_up(epsilon + 1 / (4 * exact(event.scale) ** 2)), a)
        case RandomizedResponseEvent():
            found = _response(e, int(event.categories), a)
        case _:
            found = _response(e, 2, a)
    if isinstance(event, ExponentialEvent):
        found = np.minimum(found, concentrated)
    return np.minimum(found, e)


def _over(logs: Floats, size: float, a: Floats) -> Floats:
    """logs / (a - 1), raised by the rounding of logarithms of numbers up to exp(a size)."""
    return np.asarray((logs + 4e-16 * (2.0 + a * size)) / (a - 1.0))


def _laplace(e: float, a: Floats) -> Floats:
    up = np.log(a / (2.0 * a - 1.0)) + (a - 1.0) * e
    down = np.log((a - 1.0) / (2.0 * a - 1.0)) - a * e
    return _over(np.logaddexp(up, down), e, a)


def _response(e: float, categories: int, a: Floats) -> Floats:
    logs = np.logaddexp(a * e, (1.0 - a) * e)
    if categories > 2:
        logs = np.logaddexp(logs, math.log(categories - 2))
    top = e + math.log1p((categories - 1) * math.exp(-e))
    return _over(logs - top, e, a)


def _discrete_laplace(step: float, steps: int, a: Floats) -> Floats:
    """E[exp((a - 1) loss)]: moved from 0 to D, x <= 0 has a loss of D steps, x >= D one of -D, and
    those between D - 2 x.
    """
    total = -math.log1p(math.exp(-step))
    x = np.arange(steps + 1)
    logs = total - step * x
    logs[1:-1] += math.log(-math.expm1(-step))
    losses = step * (steps - 2.0 * x)
    exponents = logs + np.multiply.outer(a - 1.0, losses)
    return _over(np.asarray(np.logaddexp.reduce(exponents, axis=-1)), step * steps, a)


# Privacy loss distributions, to account for events whose parameters are fixed.
#
# Exact for noise, but for rounding. Of choices only the range of losses is known: those of one
# range are taken together (`dpframe.kernel.losses`), others by a pair that is the worst at every
# epsilon alone.

_ADDED: Final = 1e-9
"""Which part of epsilon may be too much where losses have many sums."""
_ENOUGH: Final = 512
"""A few equal events with continuous noise get as many steps as keep the sums of losses few, and at
least these. Then delta is exact, but for the steps.
"""


class PrivacyLossAccountant(Accountant):
    """The laws of the events' privacy losses together (Meiser and Mohammadi 2018; Koskela, Jälkö
    and Honkela 2020), as the kernel adds them up for plans.

    Where losses have few different sums the result is exact up to rounding, see
    `dpframe.kernel.losses`; elsewhere epsilon exceeds the exact one by about a part in 10**8. The
    sum of all losses is returned where it is smaller. See `dpframe.accounting.losses`
    for the pairs and `dpframe.kernel.losses` for the proof. Of more than 1,000 kinds of events only
    the sum is known. Not valid across plans.
    """

    method: ClassVar[str] = "privacy loss distribution"
    valid_for: ClassVar[ValidFor] = WITHIN

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        super().__init__(events)
        pairs: Counter[Translated] = Counter()
        for event, count in self.counts.items():
            steps = MOST_SUMS // (2 * count) if len(self.counts) == 1 else 0
            pair = translate(event, steps if steps >= _ENOUGH else FINE)
            assert pair is not None
            pairs[pair] += count
        self._composition = Composition(pairs, _ADDED)
        self._rho = sum((n * zcdp_rho(event) for event, n in self.counts.items()), Fraction(0))
        parts = pure_parts(self.counts.items(), 0.0)
        self._sum = float("inf") if parts is None else decimal_up(sum_of(parts))

    def _covers(self, event: AnyEvent) -> bool:
        return translate(event) is not None

    def _epsilon(self, delta: Fraction) -> float:
        most = float_down(delta)
        found = self._composition.epsilon(most, epsilon_of_rho(self._rho, most))
        return min(found, self._sum) if delta > self._slack else found

    def _delta(self, epsilon: Fraction) -> float:
        return self._composition.delta(float_down(epsilon))
