"""Exact discrete noise and the one door to randomness; only `dpframe.mechanisms` imports this."""

from dpframe.samplers.box import discrete_box
from dpframe.samplers.cells import discrete_gaussian, discrete_laplace
from dpframe.samplers.envelope import (
    exponential_mechanism,
    exponential_mechanism_each,
    exponential_mechanism_runs,
)
from dpframe.samplers.grouped import permute_and_flip_each, report_noisy_max_each
from dpframe.samplers.hull import MAX_ARCHES, Arch, discrete_hull
from dpframe.samplers.ordered import Line, ordered_exponential
from dpframe.samplers.ordered_chain import MOST_CHOSEN, Runs
from dpframe.samplers.responses import randomized_responses
from dpframe.samplers.row_places import PLACES, row_places
from dpframe.samplers.selection import flips, permute_and_flip, report_noisy_max
from dpframe.samplers.source import OS, BitSource, OSBits, uniform_words
from dpframe.samplers.staircase import staircase
from dpframe.samplers.uniform import uniform_below, uniforms_below

__all__ = [
    "MAX_ARCHES",
    "MOST_CHOSEN",
    "OS",
    "PLACES",
    "Arch",
    "BitSource",
    "Line",
    "OSBits",
    "Runs",
    "discrete_box",
    "discrete_gaussian",
    "discrete_hull",
    "discrete_laplace",
    "exponential_mechanism",
    "exponential_mechanism_each",
    "exponential_mechanism_runs",
    "flips",
    "ordered_exponential",
    "permute_and_flip",
    "permute_and_flip_each",
    "randomized_responses",
    "report_noisy_max",
    "report_noisy_max_each",
    "row_places",
    "staircase",
    "uniform_below",
    "uniform_words",
    "uniforms_below",
]
