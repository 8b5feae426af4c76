"""Mechanisms and numbers as the kernel writes them, and constants as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from dpframe.core.rationals import Rationals, rationals
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import (
    DiscreteBox,
    DiscreteGaussian,
    DiscreteHull,
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    JointExponential,
    Mechanism,
    NoisyTable,
    NoisyThreshold,
    NoNoise,
    PermuteAndFlip,
    RandomizedResponse,
    RecursiveExponential,
    ReportNoisyMax,
    RoundedLaplace,
    TruncatedGeometric,
    WeighedRounds,
    WeighedThreshold,
)
from dpframe.plan.definition import Json

__all__ = ["law_of", "number_law", "numbers_of", "text_of"]


def law_of(law: Mechanism) -> kernel.Law:
    """The law of a mechanism that needs no other draw.

    Raises
    ------
    Refused
        When the kernel does not have the law.
    """
    match law:
        case NoNoise():
            return kernel.Exact()
        case RoundedLaplace() | DiscreteLaplace():
            return kernel.Laplace(law.scale, law.fine)
        case DiscreteGaussian():
            return kernel.Gaussian(law.sigma_squared)
        case DiscreteHull():
            return kernel.Box(law.epsilon, law.widths, law.fineness, law.arches)
        case DiscreteBox():
            return kernel.Box(law.epsilon, law.widths, law.fineness, ())
        case DiscreteStaircase():
            return kernel.Staircase(law.rate, law.width, law.inner)
        case RandomizedResponse():
            return kernel.Response(law.row_epsilon)
        case TruncatedGeometric():
            return kernel.Geometric(law.row_epsilon, law.row_delta)
        case WeighedThreshold() | WeighedRounds():
            rounds = [one for one in law.in_rounds if isinstance(one, WeighedThreshold)]
            return kernel.WeighedThreshold(tuple(map(_round, rounds)))
        case NoisyTable():  # the choice follows from the noisy numbers
            return law_of(law.noise)
        case ReportNoisyMax():
            return kernel.NoisyMax(law.scale)
        case PermuteAndFlip():
            return kernel.PermuteAndFlip(law.scale)
        case Exponential() if type(law) in (Exponential, JointExponential, RecursiveExponential):
            return kernel.Exponential(law.scale)
    raise kernel.Refused(f"the mechanism {law.name} has no law in the kernel")


def number_law(law: Mechanism) -> tuple[int, Mechanism] | None:
    """For groups that appear by a number of another draw: the threshold and the noise of that
    number; None for other mechanisms.
    """
    if isinstance(law, NoisyThreshold | WeighedThreshold):
        noise = law.noise_of_number()
        return None if noise is None else (law.threshold, noise)
    return None


def _round(law: WeighedThreshold) -> tuple[int, Fraction]:
    """The threshold and the noise of one round of a choice of groups by weights."""
    if not isinstance(law.noise, DiscreteGaussian):
        raise kernel.Refused("weights with other noise than Gaussian")
    return law.threshold, law.noise.sigma_squared


def numbers_of(numbers: Sequence[Fraction]) -> kernel.Numbers:
    """Edges or candidates in the only form that physical plans have for them."""
    numbers = numbers if isinstance(numbers, Rationals) else rationals(numbers)
    are_few = len(numbers) <= kernel.LISTED_UP_TO
    if are_few or not isinstance(numbers, Rationals) or not numbers.are_short:
        return tuple(numbers)
    if isinstance(numbers.numerators, range):
        step = Fraction(numbers.numerators.step, numbers.denominator)
        return kernel.Progression(numbers[0], step, len(numbers))
    return kernel.Ratios(tuple(numbers.numerators), numbers.denominator)


def text_of(constant: Json) -> str:
    """A constant of a definition as JSON, in one form."""
    return json.dumps(constant, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
