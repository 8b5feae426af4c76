"""Exact discrete noise and the one door to randomness; only `dpframe.mechanisms` imports this."""

from dpframe.samplers.box import MAX_ARCHES, Arch, discrete_box, discrete_hull
from dpframe.samplers.cells import discrete_gaussian, discrete_laplace, staircase
from dpframe.samplers.ordered import MOST_CHOSEN, Line, Runs, ordered_exponential
from dpframe.samplers.responses import PLACES, randomized_responses, row_places
from dpframe.samplers.selection import (
    exponential_mechanism,
    exponential_mechanism_each,
    exponential_mechanism_runs,
    flips,
    permute_and_flip,
    permute_and_flip_each,
    report_noisy_max,
    report_noisy_max_each,
)
from dpframe.samplers.source import (
    OS,
    BitSource,
    OSBits,
    uniform_below,
    uniform_words,
    uniforms_below,
)

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
