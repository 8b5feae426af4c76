"""Mechanisms: scale, cost and draw side by side, one file each."""

from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace
from dpframe.mechanisms.exponential import Exponential
from dpframe.mechanisms.none import NoNoise
from dpframe.mechanisms.permute_and_flip import PermuteAndFlip

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Exponential", "NoNoise", "PermuteAndFlip"]
