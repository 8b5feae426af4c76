"""Slices of noise in hulls: what they give is as likely as in what is drawn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpframe.aggregates.noise import Together
from dpframe.mechanisms import AdditiveMechanism, CombinedNoise, DiscreteBox, DiscreteHull
from dpframe.mechanisms.noise import noise as draw_noise
from tests.samplers.seeded import Seeded

N = 60_000
ONE = (1, 64, 4096), ((0, 1, 2),)
TWO = (1, 64, 4096, 128, 16384, 50), ((0, 1, 2), (0, 3, 4))


def law_of(about: Any, epsilon: Fraction) -> DiscreteHull:
    widths, arches = about
    return DiscreteHull.around(DiscreteBox.for_pure(widths, 1, epsilon), arches)


def part(law: DiscreteHull, factors: dict[int, int]) -> tuple[AdditiveMechanism, Fraction]:
    """One number of the vector, or a sum of two, in units of its width."""
    made = tuple(factors.get(place, 0) for place in range(len(law.widths)))
    largest = max(law.widths[place] for place in factors)
    return CombinedNoise(law, made, 1), Fraction(1, largest)


CASES = {
    "mean": (ONE, [{1: 1}, {0: 1}]),
    "variance": (ONE, [{2: 1}, {1: 1}, {0: 1}]),
    "squares and count": (ONE, [{2: 1}, {0: 1}]),
    "sum and squares": (ONE, [{1: 1}, {2: 1}]),
    "count first": (ONE, [{0: 1}, {1: 1}]),
    "another variance": (TWO, [{4: 1}, {3: 1}, {0: 1}]),
    "sums of two": (TWO, [{1: 1}, {3: 1}]),
    "squares of two": (TWO, [{2: 1}, {4: 1}]),
    "beside both": (TWO, [{5: 1}, {0: 1}]),
    "centred": (TWO, [{5: 1, 0: 25}, {0: 1}]),
    "all": (TWO, [{2: 1}, {1: 1}, {0: 1}, {3: 1}, {5: 1}]),
}


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(4)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_windows_are_as_likely_as_in_draws(name: str, epsilon: Fraction) -> None:
    """How often the first noise lies within bounds that depend on the others."""
    about, asked = CASES[name]
    law = law_of(about, epsilon)
    parts = tuple(part(law, factors) for factors in asked)
    slices = Together(parts).slices(0.05, (1.0,) * (len(parts) - 1))
    drawn = draw_noise(law.kernel_law, N, Seeded(11)).astype(float)
    values = [
        sum(f * drawn[:, place] for place, f in factors.items()) * float(step)
        for factors, (_, step) in zip(asked, parts, strict=True)
    ]
    assert slices.weights.sum() == pytest.approx(1.0)
    size = float(np.std(values[0]))
    for turns in ((0.0,) * 4, (0.5, -0.3, 0.7, 0.2), (-0.8, 0.6, 0.1, 0.9)):
        shift = sum(
            (t * v for t, v in zip(turns, slices.others, strict=False)),
            np.zeros(slices.weights.size),
        )
        moved = sum((t * v for t, v in zip(turns, values[1:], strict=False)), np.zeros(N))
        for reach in (0.5, 1.5, 2.5):
            stated = slices.outside(shift - reach * size, shift + reach * size)
            off = np.abs(values[0] - moved)
            coarse = 0.5 * float(parts[0][1])  # counts have few steps
            found = (off > reach * size + coarse).mean(), (off > reach * size - coarse).mean()
            room = 0.012 + 0.03 * float(stated)
            assert found[0] - room <= stated <= found[1] + room


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(4)], ids=str)
def test_moments_are_those_of_the_law(epsilon: Fraction) -> None:
    law = law_of(ONE, epsilon)
    parts = tuple(part(law, {place: 1}) for place in (2, 1, 0))
    slices = Together(parts).slices(0.05, (1.0, 1.0))
    for other, place in zip(slices.others, (1, 0), strict=True):
        variance = law.variances()[place] / law.widths[place] ** 2
        assert slices.weights @ other**2 == pytest.approx(variance, rel=0.03, abs=0.1)
        assert slices.weights @ other == pytest.approx(0.0, abs=0.02)


def test_few_whole_steps_have_the_laws_of_their_parts() -> None:
    """A count, and a number beside it less the middle of each counted value: whole both."""
    law = law_of(((1, 64, 4096, 50), ((0, 1, 2),)), Fraction(6))
    first = part(law, {1: 1})
    for factors, divisor in (((1, 0, 0, 0), 1), ((25, 0, 0, 1), 50)):
        other = CombinedNoise(law, factors, divisor)
        slices = Together((first, (other, Fraction(1)))).slices(0.05, (1.0,))
        (noise,) = slices.others
        for x in (0.25, 1.25):
            exact = 2 * float(other.above(np.array([x]))[0])
            assert slices.weights @ (np.abs(noise) > x) == pytest.approx(exact, abs=0.04)


def test_a_law_is_even_but_for_squares_beside_the_count() -> None:
    law = law_of(ONE, Fraction(1))
    assert Together((part(law, {1: 1}), part(law, {0: 1}))).even
    assert Together((part(law, {1: 1}), part(law, {2: 1}))).even
    assert not Together((part(law, {2: 1}), part(law, {0: 1}))).even
    assert not Together(tuple(part(law, {place: 1}) for place in (2, 1, 0))).even
