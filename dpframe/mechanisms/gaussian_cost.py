"""What a mechanism costs in Gaussian differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

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
    from dpframe.mechanisms import Law

__all__ = ["mu_squared_of"]


def mu_squared_of(
    law: Law, sensitivity: ExactSensitivity, ranges: Sequence[Fraction] = (), repeats: int = 1
) -> Fraction | None:
    """The square of mu, which adds up; never too small (see `dpframe.accounting.trade_offs`).

    None for a rule by which groups appear: it fails with its delta, and then no mu holds.

    Parameters
    ----------
    law, sensitivity, ranges, repeats
        As for `events_of`.
    """
    from dpframe.accounting import trade_offs  # few sessions need it

    match law:
        case NoNoise():
            return Fraction(0)
        case DiscreteGaussian():
            return trade_offs.discrete_gaussian_mu_squared(
                law.sigma_squared, sensitivity.l2_squared
            )
        case DiscreteLaplace():
            fine = law.fine if isinstance(law, RoundedLaplace) else 1
            l1, linf = (fine * math.ceil(norm) for norm in (sensitivity.l1, sensitivity.linf))
            return trade_offs.laplace_mu_squared(law.scale * fine, Fraction(l1), Fraction(linf))
        case Exponential():
            each = (trade_offs.bounded_range_mu_squared(law.epsilon(r)) for r in ranges)
            return repeats * sum(each, Fraction(0))
        case PermuteAndFlip() | ReportNoisyMax():
            return repeats * trade_offs.pure_mu_squared(law.epsilon(sum(ranges, Fraction(0))))
        case RandomizedResponse():
            return repeats * trade_offs.response_mu_squared(law.row_epsilon, law.categories)
        case TruncatedGeometric() | NoisyThreshold():
            return None
        case _:
            assert_never(law)
