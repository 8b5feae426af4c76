"""What samples from two distributions prove about epsilon, next to the claim of a plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.accountants import PrivacyLossAccountant
from dpframe.accounting.gaussian_noise import epsilon_of_rho, normal_epsilon
from dpframe.core.budget import GDP, ZCDP
from dpframe.core.exact import float_up, nearest
from dpframe.errors import DPFrameError
from dpframe.report import Plan

# The claim of a plan, as epsilons at deltas where samples are informative.

_DELTAS = (1e-6, 1e-3, 1e-2, 3e-2, 0.1)
"""Where a claim in rho is turned into epsilons, samples prove most at some delta of these."""


def claims_of(plan: Plan) -> list[tuple[float, float]]:
    """Deltas, and the epsilon that is claimed at each.

    A rho allows more at every delta than the mechanisms that a plan states do: a conversion holds
    for every mechanism with that rho. So where their privacy losses are known together, it is the
    epsilon of these that is claimed.
    """
    cost = plan.cost
    if isinstance(cost, GDP):
        squared = float_up(cost.main)
        return [(d, normal_epsilon(squared, d)) for d in _DELTAS]
    if not isinstance(cost, ZCDP):
        return [(nearest(cost.slack), nearest(cost.main))]
    slack = nearest(cost.slack)
    losses: PrivacyLossAccountant | None = None
    with suppress(DPFrameError):  # more events than can be listed
        losses = PrivacyLossAccountant(plan.events)
    found = [(slack + d, epsilon_of_rho(cost.main, d)) for d in _DELTAS]
    return [(delta, min(epsilon, _known(losses, delta))) for delta, epsilon in found]


def _known(losses: PrivacyLossAccountant | None, delta: float) -> float:
    """What is known of the stated mechanisms; infinite where it is nothing."""
    if losses is None:
        return math.inf
    with suppress(DPFrameError):  # mechanisms whose losses have no known law
        return losses.epsilon(delta)
    return math.inf


# What samples from two distributions prove about epsilon.
#
# For every event, (epsilon, delta)-differential privacy says P(event) <= exp(epsilon) Q(event) +
# delta, where P and Q are the distributions of what is released on neighbouring frames. So counts
# of one event among runs on both sides give exact bounds on both probabilities (Clopper and Pearson
# 1934). These give a lower bound on epsilon that holds with the chosen confidence (Jagielski,
# Ullman and Oprea 2020; Nasr et al. 2021). The event is chosen on one half of the runs and counted
# on the other, so that choosing it does not make the bound less sure.

Floats = NDArray[np.float64]
_THRESHOLDS = 160
_MOST_TOGETHER = 400
"""Of outcomes that are distinguished as a whole."""


@dataclass(frozen=True, slots=True)
class Event:
    """The event that a score is at least, or at most, a threshold; `swapped` when it is the more
    likely one without the individual.
    """

    score: int
    threshold: float
    least: bool
    swapped: bool
    delta: float

    def hits(self, scores: Floats) -> int:
        """In how many runs it happened."""
        met = scores >= self.threshold if self.least else scores <= self.threshold
        return int(np.count_nonzero(met))


def best_event(
    # `one`, `other`: scores of runs with and without the individual, in several ways.
    one: Sequence[Floats],
    other: Sequence[Floats],
    # `deltas`, `claims`: each delta, and the epsilon that is claimed for it.
    deltas: Sequence[float],
    claims: Sequence[float],
) -> Event:
    """The event that proves most of what is claimed, by its counts among some runs."""
    found: list[tuple[float, Event]] = []
    pairs = list(zip(deltas, claims, strict=True))
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        for swapped, (p, q) in enumerate(((a, b), (b, a))):
            found += _candidates(number, p, q, bool(swapped), pairs)
    return max(found, key=lambda item: item[0])[1]


def _candidates(
    number: int, p: Floats, q: Floats, swapped: bool, claims: Sequence[tuple[float, float]]
) -> Iterator[tuple[float, Event]]:
    points = np.unique(np.concatenate([p, q]))
    if points.size > _THRESHOLDS:
        spread = np.linspace(0, points.size - 1, _THRESHOLDS).astype(np.int64)
        both = np.sort(np.concatenate([p, q]))
        places = np.linspace(0, both.size - 1, _THRESHOLDS).astype(np.int64)
        points = np.unique(np.concatenate([points[spread], both[places]]))
    for least in (True, False):
        hits = [_reached(np.sort(s), points, least) / s.size for s in (p, q)]
        low, high = _wilson(hits[0], p.size, -1.0), _wilson(hits[1], q.size, 1.0)
        for delta, claim in claims:
            proved = np.log(np.maximum(low - delta, 1e-300) / high) / max(claim, 1e-12)
            best = int(np.argmax(proved))
            event = Event(number, float(points[best]), least, swapped, delta)
            yield float(proved[best]), event


def expected_share(
    # `one`, `other`: how likely each outcome is on both sides.
    one: Floats,
    other: Floats,
    runs: int,  # How many there are on each
    claims: Sequence[tuple[float, float]],  # Deltas, and the epsilon that is claimed for each
) -> float:
    """About how much of a claim this many runs prove, where it is known how likely outcomes are."""
    best = 0.0
    for p, q in ((one, other), (other, one)):
        order = np.argsort(q / p)
        likelier, rarer = (np.minimum(side[order].cumsum(), 1.0) for side in (p, q))
        low, high = _wilson(likelier, runs, -1.0), _wilson(rarer, runs, 1.0)
        for delta, claim in claims:
            proved = np.log(np.maximum(low - delta, 1e-300) / high) / max(claim, 1e-12)
            best = max(best, float(proved.max()))
    return best


def _reached(ordered: Floats, points: Floats, least: bool) -> Floats:
    """How many scores are at least, or at most, each point."""
    if least:
        return (ordered.size - np.searchsorted(ordered, points, "left")).astype(np.float64)
    return np.searchsorted(ordered, points, "right").astype(np.float64)


def _wilson(share: Floats, n: int, sign: float, z: float = 3.0) -> Floats:
    """An approximate bound on a probability (Wilson 1927), only to choose an event with."""
    centre = share + z * z / (2 * n)
    width = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (centre + sign * width) / (1 + z * z / n)


def proved_epsilon(
    # `hits`, `others`: in how many runs it happened, on the side where it is more likely and on the
    # other.
    hits: int,
    others: int,
    n: int,
    delta: float,  # Of (epsilon, delta)
    doubt: float,  # The probability with which the bound may be too large, shared by both sides
) -> float:
    """A lower bound on epsilon from counts of an event among `n` runs on each side."""
    least = binomial_low(hits, n, doubt / 2)
    most = binomial_high(others, n, doubt / 2)
    return max(0.0, math.log((least - delta) / most)) if least > delta else 0.0


def binomial_low(hits: int, n: int, doubt: float) -> float:
    """The least probability that this many hits or more leave plausible (Clopper and Pearson
    1934).
    """
    if hits == 0:
        return 0.0
    tail = np.arange(hits, n + 1)
    low, high = 0.0, hits / n
    for _ in range(60):
        middle = (low + high) / 2
        if _mass(tail, n, middle) <= doubt:
            low = middle
        else:
            high = middle
    return low


def binomial_high(hits: int, n: int, doubt: float) -> float:
    """The largest probability that this many hits or fewer leave plausible."""
    return 1.0 - binomial_low(n - hits, n, doubt)


def _mass(counts: NDArray[np.int64], n: int, p: float) -> float:
    """The probability of any of some numbers of hits among n."""
    if p <= 0.0:
        return float(0 in counts)
    logs = _LOGS.upto(n)
    terms = logs[n] - logs[counts] - logs[n - counts]
    return float(np.exp(terms + counts * math.log(p) + (n - counts) * math.log1p(-p)).sum())


class _Factorials:
    """Logarithms of factorials, as many as were needed so far."""

    def __init__(self) -> None:
        self._known: Floats = np.zeros(1)

    def upto(self, n: int) -> Floats:
        if self._known.size <= n:
            self._known = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
        return self._known


_LOGS = _Factorials()


def likelihood_scores(
    features: Iterable[tuple[Floats, Floats]],  # The runs to learn from: columns of both sides
    # `one`, `other`: the runs to score, of shape (runs, features).
    one: Floats,
    other: Floats,
) -> tuple[Floats, Floats]:
    """Sums of logarithms of ratios of how often a value was seen on either side."""
    totals = np.zeros(len(one)), np.zeros(len(other))
    for number, (p, q) in enumerate(features):
        edges = _bins(p, q)
        seen = [np.bincount(_placed(side, edges), minlength=edges.size + 2) for side in (p, q)]
        ratio = np.log((seen[0] + 1.0) / (seen[1] + 1.0) * ((len(q) + 1.0) / (len(p) + 1.0)))
        for total, side in zip(totals, (one, other), strict=True):
            total += ratio[_placed(side[:, number], edges)]
    return totals


def joint_scores(
    # `learnt`, `learnt_other`: the runs to learn from.
    learnt: Floats,
    learnt_other: Floats,
    # `one`, `other`: the runs to score, of shape (runs, features).
    one: Floats,
    other: Floats,
) -> tuple[Floats, Floats]:
    """Logarithms of ratios of how often all features had the same values on either side together;
    0 where these are too many to be seen often.
    """
    sides = [np.nan_to_num(s, nan=-1e300) for s in (learnt, learnt_other, one, other)]
    ends = np.cumsum([len(side) for side in sides])
    values, codes = np.unique(np.concatenate(sides), axis=0, return_inverse=True)
    if len(values) > _MOST_TOGETHER:
        return np.zeros(len(one)), np.zeros(len(other))
    p, q, a, b = np.split(codes.reshape(-1), ends[:-1])
    seen, of_other = (np.bincount(c, minlength=len(values)) + 1.0 for c in (p, q))
    ratio = np.log(seen / of_other * (len(q) + 1.0) / (len(p) + 1.0))
    return ratio[a], ratio[b]


def _bins(p: Floats, q: Floats, most: int = 48) -> Floats:
    """Edges between which values are taken for the same."""
    both = np.concatenate([p, q])
    both = np.sort(both[~np.isnan(both)])
    points = np.unique(both)
    if points.size > most:
        points = np.unique(both[np.linspace(0, both.size - 1, most).astype(np.int64)])
    return points


def _placed(values: Floats, edges: Floats) -> NDArray[np.int64]:
    """The number of the bin of each value, the last one for none."""
    found = np.searchsorted(edges, values, "right")
    found[np.isnan(values)] = edges.size + 1
    return found
