"""Means of many groups, moved towards their common mean by as much as their noise makes likely.

For a small group the noisy mean S / N is usually noise, and its neighbours are more informative.
With true means spread around mu with variance t, and noises X of S and Y of N,

    S - mu N = n (mean - mu) + X - mu Y,

so the least squares estimate of a group's mean is mu + n t (S - mu N) / (n**2 t + V), where V is
the variance of X - mu Y. It is the noisy mean where n**2 t is far above V, and mu where the noise
hides the group (Robbins 1956; Efron and Morris 1973). The values of mu and t maximise the
likelihood of the released numbers, with noise and means taken as normal. N replaces n where N is
above 0. All of this is post-processing: it uses only released numbers and the public law of their
noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.error_rules import NoErrorBound
from dpframe.aggregates.request import QueryScope, Request
from dpframe.errors import UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.mechanisms import AdditiveMechanism, Mechanism

__all__ = [
    "SHRUNK",
    "UNKNOWN",
    "Prior",
    "no_bound",
    "prior_of",
    "require_groups",
    "shrunk_means",
    "shrunk_offsets",
    "variances_of",
]

Floats: TypeAlias = "NDArray[np.float64]"

SHRUNK: Final = (
    "moved towards the mean of all groups by as much as its noise is above their spread, and so "
    "biased: groups come out more alike than they are, most of all small ones, and one whose noisy "
    "count is below 1 gets the mean of all"
)
UNKNOWN: Final = "null where the noisy count is below 1"
"""The words of plans for means that are moved, and for others."""
_LEAST: Final = 2.0**-12
"""The least spread of means that is distinguished from 0, relative to half the bounds' width."""
_SPREADS: Final = 25
_STEPS: Final = 4
_FINER: Final = 12
_GOLDEN: Final = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Prior:
    """How the means of groups lie.

    Parameters
    ----------
    mean
        What they are spread around.
    variance
        How far, squared; 0 where noise explains all their differences.
    """

    mean: float
    variance: float


def shrunk_means(
    total: Floats, count: Floats, variances: tuple[float, float], half: float
) -> Floats:
    """Means around the middle of the bounds, from noisy centred sums and counts, one per group.

    Parameters
    ----------
    total, count
        The noisy numbers.
    variances
        The variances of the noise of a sum, and of a count.
    half
        Half the width of the bounds, above 0.
    """
    prior = prior_of(total, count, variances, half)
    size = np.maximum(count, 0.0)
    spread = size * size * prior.variance + _noise(prior.mean, variances)
    moved = np.zeros(total.shape)
    np.divide(
        size * prior.variance * (total - prior.mean * count), spread, where=spread > 0, out=moved
    )
    found: Floats = np.clip(prior.mean + moved, -half, half)
    return found


def prior_of(total: Floats, count: Floats, variances: tuple[float, float], half: float) -> Prior:
    """The common mean and the spread under which the noisy numbers are most likely.

    Likelihoods may have several maxima: the largest of a grid of spreads is followed by golden
    section between its neighbours. A spread that is not more likely than 0 counts as 0.
    """
    spreads = [0.0, *(half * np.geomspace(_LEAST, 1.0, _SPREADS)).tolist()]
    tried = [_at(spread, total, count, variances, half) for spread in spreads]
    best = min(range(len(tried)), key=lambda i: tried[i][0])
    if best == 0:
        return Prior(tried[0][1], 0.0)
    low, high = spreads[best - 1], spreads[min(best + 1, _SPREADS)]
    found = (*tried[best], spreads[best])
    for _ in range(_FINER):
        inner = (high - (high - low) * _GOLDEN, low + (high - low) * _GOLDEN)
        left, right = (_at(spread, total, count, variances, half) for spread in inner)
        found = min(found, (*left, inner[0]), (*right, inner[1]))
        low, high = (low, inner[1]) if left[0] <= right[0] else (inner[0], high)
    return Prior(found[1], found[2] ** 2)


def _at(
    spread: float, total: Floats, count: Floats, variances: tuple[float, float], half: float
) -> tuple[float, float]:
    """Minus twice the logarithm of the likelihood at the likeliest common mean, and that mean."""
    size = np.maximum(count, 0.0)
    between = size * size * spread**2
    mean = 0.0
    for _ in range(_STEPS):  # the mean is in the variance of the noise, where it matters little
        weights = 1.0 / (between + _noise(mean, variances))
        below = float((count * count * weights).sum())
        above = float((count * total * weights).sum())
        mean = min(half, max(-half, above / below)) if below > 0 else 0.0
    variance = between + _noise(mean, variances)
    off = total - mean * count
    return float((off * off / variance + np.log(variance)).sum()), mean


def _noise(mean: float, variances: tuple[float, float]) -> float:
    """The variance of X - mean * Y, whose noises are uncorrelated."""
    return variances[0] + mean * mean * variances[1]


def shrunk_offsets(
    values: Sequence[NDArray[np.int64]],
    noise: tuple[float, float],
    width: Fraction,
    step: Fraction,
) -> Floats:
    """Means less the middle of the bounds.

    Parameters
    ----------
    values
        The noisy sums, in steps, and counts.
    noise
        The variances of their noise, in steps squared.
    width, step
        The width of the bounds, and the step of a sum.
    """
    total, count = (part.reshape(-1).astype(np.float64) for part in values)
    half = float(width / 2 / step)  # in steps, which no bounds make too large for floats
    return shrunk_means(total, count, noise, half) * float(step)


def variances_of(noise: Sequence[Mechanism]) -> tuple[float, float]:
    """The variances of the noise of a sum and of a count, in steps squared; 0 if none exists."""
    if not noise:
        return 0.0, 0.0
    total, count = noise
    assert isinstance(total, AdditiveMechanism)
    assert isinstance(count, AdditiveMechanism)
    return total.variance(), count.variance()


def no_bound(name: str) -> NoErrorBound:
    """Why the error of a mean that is moved towards others has no bound."""
    return NoErrorBound(
        f"{name!r} is biased towards the mean of all groups, by how much depends on the data",
        "ask for interval=0.95, which holds the exact mean all the same, simulate it on public "
        "data, or leave shrink=True out",
    )


def require_groups(request: Request, scope: QueryScope) -> None:
    """Refuse to shrink where there are no means to move towards.

    Raises
    ------
    UnsupportedOperation
        Without groups, and by several sets of columns.
    """
    if scope.groups is None or isinstance(scope.groups, SetGroups):
        what = "there is one mean" if scope.groups is None else "those of several sets differ"
        raise UnsupportedOperation(
            f"shrink=True moves means of groups towards their common mean, and here {what}",
            where=request.name,
            remedy=("leave shrink=True out", "use it in a group_by of one set of columns"),
        )
