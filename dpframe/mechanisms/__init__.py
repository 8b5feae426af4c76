"""Mechanisms: scale, cost and draw side by side, one file for each family."""

from dpframe.mechanisms.combined import (
    Boxes,
    CombinableNoise,
    CombinedNoise,
    IndependentNoise,
    fair_coins,
)
from dpframe.mechanisms.discrete_box import DiscreteBox
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_hull import DiscreteHull, second_moments
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace, RoundedLaplace
from dpframe.mechanisms.discrete_staircase import DiscreteStaircase
from dpframe.mechanisms.groups import (
    KeyMechanism,
    NoisyThreshold,
    TruncatedGeometric,
    WeighedRounds,
    WeighedThreshold,
)
from dpframe.mechanisms.mechanism import (
    AdditiveMechanism,
    AdditiveTask,
    Box,
    Choice,
    Exposure,
    KeyTask,
    Mechanism,
    MechanismTask,
    NoNoise,
    RecursiveTask,
    ReportMechanism,
    ResponseTask,
    SelectionMechanism,
    SelectionTask,
    TogetherTask,
    VectorMechanism,
    box_of,
)
from dpframe.mechanisms.randomized_response import RandomizedResponse
from dpframe.mechanisms.selection import (
    Exponential,
    JointExponential,
    NoisyTable,
    PermuteAndFlip,
    RecursiveExponential,
    ReportNoisyMax,
)
from dpframe.samplers import MAX_ARCHES, Arch

ADDITIVE: tuple[type[AdditiveMechanism], ...] = (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
)
"""Noise, whose least is chosen; the first where two have as little."""
REFINED: tuple[type[AdditiveMechanism], ...] = (RoundedLaplace,)
"""Noise that takes the place of other noise in plans of many numbers."""
VECTORS: tuple[type[VectorMechanism], ...] = (DiscreteHull, DiscreteBox)
"""Noise for several numbers together."""
SELECTIONS: tuple[type[SelectionMechanism], ...] = (
    PermuteAndFlip,
    Exponential,
    ReportNoisyMax,
    NoisyTable,
)
"""Choices, whose first that is preferred for a task is taken, or a rival that has a smaller
error."""
RECURSIVE: tuple[type[RecursiveExponential], ...] = (RecursiveExponential,)
"""Choices that follow one another."""
TOGETHER: tuple[type[JointExponential], ...] = (JointExponential,)
"""Choices of several candidates at once."""
REPORTS: tuple[type[ReportMechanism], ...] = (RandomizedResponse,)
"""Reports of rows."""
KEYS: tuple[type[KeyMechanism], ...] = (
    WeighedRounds,
    WeighedThreshold,
    TruncatedGeometric,
    NoisyThreshold,
)
"""Rules by which groups appear."""
MECHANISMS: tuple[type[Mechanism], ...] = (
    NoNoise,
    *ADDITIVE,
    *REFINED,
    *VECTORS,
    *SELECTIONS,
    *RECURSIVE,
    *TOGETHER,
    *REPORTS,
    *KEYS,
)
"""All mechanisms that draw something."""

__all__ = [
    "ADDITIVE",
    "KEYS",
    "MAX_ARCHES",
    "MECHANISMS",
    "RECURSIVE",
    "REFINED",
    "REPORTS",
    "SELECTIONS",
    "TOGETHER",
    "VECTORS",
    "AdditiveMechanism",
    "AdditiveTask",
    "Arch",
    "Box",
    "Boxes",
    "Choice",
    "CombinableNoise",
    "CombinedNoise",
    "DiscreteBox",
    "DiscreteGaussian",
    "DiscreteHull",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "Exponential",
    "Exposure",
    "IndependentNoise",
    "JointExponential",
    "KeyMechanism",
    "KeyTask",
    "Mechanism",
    "MechanismTask",
    "NoNoise",
    "NoisyTable",
    "NoisyThreshold",
    "PermuteAndFlip",
    "RandomizedResponse",
    "RecursiveExponential",
    "RecursiveTask",
    "ReportMechanism",
    "ReportNoisyMax",
    "ResponseTask",
    "RoundedLaplace",
    "SelectionMechanism",
    "SelectionTask",
    "TogetherTask",
    "TruncatedGeometric",
    "VectorMechanism",
    "WeighedRounds",
    "WeighedThreshold",
    "box_of",
    "fair_coins",
    "second_moments",
]
