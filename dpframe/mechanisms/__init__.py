"""Mechanisms: scale, cost and draw side by side, one file each."""

from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace
from dpframe.mechanisms.exponential import Exponential
from dpframe.mechanisms.mechanism import (
    AdditiveMechanism,
    Exposure,
    KeyMechanism,
    Mechanism,
    ReportMechanism,
    SelectionMechanism,
)
from dpframe.mechanisms.noisy_threshold import NoisyThreshold
from dpframe.mechanisms.none import NoNoise
from dpframe.mechanisms.permute_and_flip import PermuteAndFlip
from dpframe.mechanisms.randomized_response import RandomizedResponse
from dpframe.mechanisms.report_noisy_max import ReportNoisyMax
from dpframe.mechanisms.rounded_laplace import RoundedLaplace
from dpframe.mechanisms.truncated_geometric import TruncatedGeometric

SelectionLaw = Exponential | PermuteAndFlip | ReportNoisyMax
"""Mechanisms that choose a candidate."""
AdditiveLaw = DiscreteLaplace | DiscreteGaussian | NoNoise
"""Mechanisms that add noise, or none, to numbers."""
KeyLaw = TruncatedGeometric | NoisyThreshold
"""Rules by which groups appear."""
Law = AdditiveLaw | SelectionLaw | RandomizedResponse | KeyLaw

__all__ = [
    "AdditiveLaw",
    "AdditiveMechanism",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Exposure",
    "KeyLaw",
    "KeyMechanism",
    "Law",
    "Mechanism",
    "NoNoise",
    "NoisyThreshold",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportMechanism",
    "ReportNoisyMax",
    "RoundedLaplace",
    "SelectionLaw",
    "SelectionMechanism",
    "TruncatedGeometric",
]
