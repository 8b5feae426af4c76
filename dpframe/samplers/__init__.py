"""Exact discrete noise and the one door to randomness; only `dpframe.mechanisms` imports this."""

from dpframe.samplers.cells import discrete_gaussian, discrete_laplace
from dpframe.samplers.selection import exponential_mechanism, permute_and_flip, uniform_below
from dpframe.samplers.source import OS, BitSource, OSBits

__all__ = [
    "OS",
    "BitSource",
    "OSBits",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "permute_and_flip",
    "uniform_below",
]
