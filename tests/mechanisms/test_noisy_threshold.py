"""Thresholds: the least with which a group of one individual appears no more often than delta, by
exact tails in 60 digits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace, NoisyThreshold
from dpframe.mechanisms.discrete_laplace import RoundedLaplace

mp.mp.dps = 60
scales = st.builds(Fraction, st.integers(1, 3000), st.integers(1, 50)).filter(lambda s: s < 2000)
deltas = st.integers(1, 29).map(lambda n: Fraction(1, 10**n)) | st.builds(
    Fraction, st.integers(1, 10**6), st.just(4 * 10**6)
)


def real(value: Fraction | int) -> mp.mpf:
    number = Fraction(value)
    return mp.mpf(number.numerator) / number.denominator


def laplace_tail(scale: Fraction, a: int) -> mp.mpf:
    """P(x >= a)."""
    q = mp.exp(-1 / real(scale))
    return q**a / (1 + q) if a >= 0 else 1 - q ** (1 - a) / (1 + q)


def rounded_tail(scale: Fraction, a: int) -> mp.mpf:
    """Rounded to the nearest of 1025 steps: at least a where the fine noise is at least ..."""
    fine = RoundedLaplace.fine
    return laplace_tail(scale * fine, a * fine - (fine - 1) // 2)


@lru_cache(maxsize=64)
def gaussian_weights(variance: Fraction) -> tuple[mp.mpf, ...]:
    reach = int(16 * float(variance) ** 0.5) + 40
    half = 1 / (2 * real(variance))
    return tuple(mp.exp(-k * k * half) for k in range(reach))


def gaussian_tail(variance: Fraction, a: int) -> mp.mpf:
    weights = gaussian_weights(variance)
    total = 2 * mp.fsum(weights) - weights[0]
    if a <= 0:
        return 1 - gaussian_tail(variance, 1 - a)
    return mp.fsum(weights[a:]) / total


def least_for(tail: object, most: int, delta: Fraction, law: NoisyThreshold) -> None:
    """With the threshold delta is kept; with one less it is not."""
    assert callable(tail)
    row = real(min(delta, Fraction(1, 4)))
    assert law.row_delta <= delta
    assert tail(law.threshold - most) <= row
    assert tail(law.threshold - most - 1) > row or law.threshold == most + 1


@given(scales, st.integers(1, 9), deltas)
def test_laplace_thresholds_are_the_least(scale: Fraction, most: int, delta: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    law = NoisyThreshold.for_delta(noise, most, delta)
    least_for(lambda a: laplace_tail(noise.scale, a), most, delta, law)


@given(scales, st.integers(1, 9), deltas)
def test_rounded_laplace_thresholds_are_the_least(
    scale: Fraction, most: int, delta: Fraction
) -> None:
    noise = RoundedLaplace(scale)
    law = NoisyThreshold.for_delta(noise, most, delta)
    least_for(lambda a: rounded_tail(noise.scale, a), most, delta, law)


@settings(max_examples=15)
@given(st.builds(Fraction, st.integers(1, 900), st.integers(1, 9)), st.integers(1, 9), deltas)
def test_gaussian_thresholds_are_the_least(variance: Fraction, most: int, delta: Fraction) -> None:
    noise = DiscreteGaussian(variance)
    law = NoisyThreshold.for_delta(noise, most, delta)
    least_for(lambda a: gaussian_tail(noise.sigma_squared, a), most, delta, law)


@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**12), Fraction(1, 10**28)])
def test_thresholds_of_wide_gaussian_noise_keep_delta(delta: Fraction) -> None:
    variance = Fraction(600**2)
    law = NoisyThreshold.for_delta(DiscreteGaussian(variance), 3, delta)
    assert gaussian_tail(variance, law.threshold - 3) <= real(delta)
    assert gaussian_tail(variance, law.threshold - 5) > real(delta)


def test_what_a_threshold_says() -> None:
    law = NoisyThreshold(DiscreteLaplace(Fraction(2)), 7, Fraction(1, 100))
    assert law.delta(3) == Fraction(3, 100)
    assert law.size_at(Fraction(1, 2)) == 7


@given(scales, deltas, st.sampled_from([Fraction(3, 4), Fraction(19, 20), Fraction(999, 1000)]))
def test_sizes_are_those_with_the_chance(
    scale: Fraction, delta: Fraction, chance: Fraction
) -> None:
    noise = DiscreteLaplace(scale)
    law = NoisyThreshold.for_delta(noise, 1, delta)
    assert laplace_tail(noise.scale, law.threshold - law.size_at(chance)) >= real(chance)
