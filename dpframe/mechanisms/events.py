"""What a mechanism counts as, for `dpframe.accounting`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from dpframe.core.exact import sqrt_down, sqrt_up
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace
from dpframe.mechanisms.exponential import Exponential
from dpframe.mechanisms.noisy_threshold import NoisyThreshold
from dpframe.mechanisms.none import NoNoise
from dpframe.mechanisms.permute_and_flip import PermuteAndFlip
from dpframe.mechanisms.randomized_response import RandomizedResponse
from dpframe.mechanisms.report_noisy_max import ReportNoisyMax
from dpframe.mechanisms.rounded_laplace import RoundedLaplace
from dpframe.mechanisms.truncated_geometric import TruncatedGeometric

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent

__all__ = ["events_of", "unit_moves"]

_NEXT_TO_NOTHING = Fraction(1, 10**60)
"""The least epsilon of an event, for what costs none."""


_MOST_ONES = 256


def unit_moves(sensitivity: ExactSensitivity) -> int:
    """How many entries move by 1 each, where none moves farther and there are not very many: each
    is then known better than their vector. 0 otherwise.
    """
    ones = min(sensitivity.l0, math.floor(sensitivity.l2_squared))
    return ones if sensitivity.linf <= 1 and ones <= _MOST_ONES else 0


def events_of(
    law: NoNoise
    | DiscreteLaplace
    | DiscreteGaussian
    | Exponential
    | PermuteAndFlip
    | ReportNoisyMax
    | RandomizedResponse
    | TruncatedGeometric
    | NoisyThreshold,
    sensitivity: ExactSensitivity,
    ranges: Sequence[Fraction] = (),
    repeats: int = 1,
    shared: bool = False,
) -> tuple[AnyEvent, ...]:
    """Events that together cost as much as one release; roots are rounded towards more cost.

    Parameters
    ----------
    law
        The mechanism.
    sensitivity
        Of what noise is added to, in steps.
    ranges
        For selections: the ranges of score changes, one for each group that one unit touches. Only
        the exponential mechanism is known by each of them, others by their sum.
    repeats
        How often the mechanism is used: rounds of a selection, reports or groups of a unit.
    shared
        Whether the ranges stand for others within their sum and maximum, see
        `dpframe.aggregates.part.ScoreRange.is_shared`.
    """
    from dpframe.accounting import events as made  # few plans need them

    event: AnyEvent
    match law:
        case NoNoise():
            return ()
        case RoundedLaplace():
            steps = math.ceil(sensitivity.l1) * law.fine
            event = made.DiscreteLaplaceEvent(law.scale * law.fine, steps)
        case DiscreteLaplace():
            event = made.DiscreteLaplaceEvent(law.scale, math.ceil(sensitivity.l1))
        case DiscreteGaussian():
            ones = unit_moves(sensitivity)
            if ones > 1:
                one = made.DiscreteGaussianEvent(sqrt_down(law.sigma_squared))
                return (one,) * ones * repeats
            l2 = sqrt_up(sensitivity.l2_squared)
            event = made.DiscreteGaussianEvent(sqrt_down(law.sigma_squared), l2)
        case Exponential():
            kind = made.SharedExponentialEvent if shared else made.ExponentialEvent
            return tuple(kind(law.epsilon(r)) for r in ranges) * repeats
        case PermuteAndFlip() | ReportNoisyMax():
            # no theorem lets its groups be told apart: by one range they could be less alike
            event = made.PermuteAndFlipEvent(law.epsilon(sum(ranges, Fraction(0))))
        case RandomizedResponse():
            event = made.RandomizedResponseEvent(law.row_epsilon, law.categories)
        case TruncatedGeometric():
            event = made.ApproxEvent(law.row_epsilon, law.row_delta)
        case NoisyThreshold():
            event = made.ApproxEvent(_NEXT_TO_NOTHING, law.row_delta)
        case _:
            assert_never(law)
    return (event,) * repeats
