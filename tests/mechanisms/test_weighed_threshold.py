"""Thresholds of weights: laws of whole results of small neighbouring frames, whose hockey-stick
divergence is no more than what is claimed, and tails in 60 digits.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import UnitCount
from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.units import norm_in_parts, parts_in_each
from dpframe.errors import MissingKeys
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exposure,
    KeyTask,
    NoisyThreshold,
    WeighedThreshold,
)
from dpframe.release.draws import KeyChoice
from tests.mechanisms.test_noisy_threshold import gaussian_tail, real

Law = dict[object, float]
EPSILONS = (0.1, 1.0, 3.0)
NOTHING = None


def masses(variance: Fraction, reach: int) -> dict[int, float]:
    """Of noise, up to where it hardly ever goes; what is beyond belongs to the ends."""
    half = 1 / (2 * real(variance))
    found = {k: mp.exp(-k * k * half) for k in range(-reach, reach + 1)}
    whole = mp.fsum(found.values())
    return {k: float(p / whole) for k, p in found.items()}


def law_of(law: WeighedThreshold, sums: list[int]) -> Law:
    """Exact probabilities of what comes out of groups with such sums: nothing, or the noisy sum, or
    that the group is there.
    """
    noise = masses(law.noise.sigma_squared, 13 * math.ceil(law.noise.sigma_squared**0.5))
    each = list[Law]()
    for total in sums:
        found: Law = {NOTHING: 0.0}
        for x, p in noise.items():
            there = total > 0 and total + x >= law.threshold
            kept: object = (0 if law.alone else total + x) if there else NOTHING
            found[kept] = found.get(kept, 0.0) + p
        each.append(found)
    return {
        tuple(key for key, _ in results): math.prod(p for _, p in results)
        for results in itertools.product(*(found.items() for found in each))
    }


def divergence(one: Law, other: Law, epsilon: float) -> float:
    """The least delta with which one is no likelier than the other by epsilon."""
    factor = math.exp(epsilon)
    return math.fsum(max(0.0, p - factor * other.get(key, 0.0)) for key, p in one.items())


def numbers_of(law: WeighedThreshold, shared: tuple[int, ...], t: int) -> tuple[Law, Law]:
    """Results without and with an individual in t groups, of which some have so much without it."""
    k = parts_in_each(law.norm, t)
    without = [*shared, *(0 for _ in range(t - len(shared)))]
    return law_of(law, without), law_of(law, [total + k for total in without])


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("slack", [Fraction(1, 4), Fraction(1, 50), Fraction(1, 10**4)])
@pytest.mark.parametrize(("norm", "variance"), [(5, Fraction(9)), (3, Fraction(7, 3))])
def test_results_of_neighbours_are_as_close_as_is_claimed(
    norm: int, variance: Fraction, slack: Fraction, alone: bool
) -> None:
    """All groups that an individual is in, new ones and others at all distances from the threshold,
    by whole distributions: in both directions, at several epsilons.
    """
    most = 4 if alone else 3
    law = WeighedThreshold.over(DiscreteGaussian(variance), norm, most, slack, alone=alone)
    near = [1, max(1, law.threshold - 3), law.threshold + 2]
    cases = [
        (t, shared)
        for t in range(1, most + 1)
        for number in range(min(t, 2) + 1 if alone else min(t, 1) + 1)
        for shared in itertools.combinations_with_replacement(near, number)
    ]
    furthest = 0.0
    for t, shared in cases:
        without, having = numbers_of(law, shared, t)
        moved = t * parts_in_each(norm, t) ** 2
        assert moved <= norm**2
        for epsilon in EPSILONS:
            claimed = law.noise.delta(Fraction(str(epsilon)), most, Fraction(norm**2))
            allowed = float(law.delta(t)) + claimed
            found = max(divergence(having, without, epsilon), divergence(without, having, epsilon))
            assert found <= allowed + 1e-12, (t, shared, epsilon)
            if not shared:
                furthest = max(furthest, found / float(slack))
    assert 0.05 < furthest <= 1  # one step of a whole threshold is that much here


@pytest.mark.parametrize("lower", [1, 2])
def test_a_lower_threshold_is_refused_and_would_tell(lower: int) -> None:
    noise, slack = DiscreteGaussian(Fraction(9)), Fraction(1, 50)
    law = WeighedThreshold.over(noise, 5, 3, slack, alone=True)
    with pytest.raises(ValueError, match="too often"):
        WeighedThreshold(noise, law.threshold - lower, slack, 5, 3, True)
    k = [parts_in_each(5, t) for t in (1, 2, 3)]
    chances = [t * gaussian_tail(Fraction(9), law.threshold - lower - k[t - 1]) for t in (1, 2, 3)]
    assert max(chances) > real(slack)


variances = st.builds(Fraction, st.integers(1, 400), st.integers(1, 9))
slacks = st.integers(1, 12).map(lambda n: Fraction(1, 10**n))


@settings(max_examples=25)
@given(variances, st.integers(1, 60), st.sampled_from([1, 2, 3, 7, 40, 300]), slacks)
def test_groups_of_one_individual_appear_as_often_as_the_slack_says(
    variance: Fraction, norm: int, most: int, slack: Fraction
) -> None:
    law = WeighedThreshold.over(DiscreteGaussian(variance), norm, most, slack, alone=True)
    delta = min(slack, Fraction(1, 4))
    chances = [
        t * gaussian_tail(law.noise.sigma_squared, law.threshold - parts_in_each(norm, t))
        for t in range(1, most + 1)
    ]
    assert max(chances) <= real(delta)
    if most <= 31:  # the least, where each number of groups is looked at by itself
        below = [
            t * gaussian_tail(law.noise.sigma_squared, law.threshold - 1 - parts_in_each(norm, t))
            for t in range(1, most + 1)
        ]
        assert max(below) > real(delta) or law.threshold == 1 + parts_in_each(norm, 1)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_weights_are_the_largest_with_the_norm(norm: int, groups: int) -> None:
    k = parts_in_each(norm, groups)
    assert 0 <= k <= PARTS
    assert groups * k * k <= norm * norm
    assert k == PARTS or groups * (k + 1) ** 2 > norm * norm


ONE = ExactSensitivity(256, Fraction(16 * PARTS), Fraction(PARTS**2), Fraction(PARTS))
TASK = KeyTask("g", ONE, 256, PARTS)


def test_costs_are_those_of_the_noise_and_the_slack() -> None:
    for share in (ApproxDP(1, "1e-6"), ZCDP("0.1", "1e-6")):
        choice = WeighedThreshold.fit(TASK, share)
        assert choice is not None
        law = choice.law
        assert isinstance(law, WeighedThreshold)
        assert law.alone
        assert not law.biases_numbers
        exposure = TASK.exposure
        if isinstance(share, ZCDP):
            assert law.rho_cost(exposure) == share.main
            assert law.failure(exposure) == share.slack
            assert law.slack == share.slack
        else:
            assert law.epsilon_cost(exposure) is None
            assert law.slack == share.slack / 2
            assert law.delta_at(share.main, exposure) <= share.slack
        noise, once = law.events(exposure)
        assert noise == law.noise.events(Exposure(ONE))[0]
        assert once.delta == law.slack  # type: ignore[union-attr]
        assert law.delta(257) == 1


def test_a_released_sum_is_paid_for_already() -> None:
    law = WeighedThreshold.over(
        DiscreteGaussian(Fraction(10**8)), PARTS, 256, Fraction(1, 10**6), alone=False
    )
    assert law.epsilon_cost(TASK.exposure) == 0
    assert law.rho_cost(TASK.exposure) == 0
    assert law.failure(TASK.exposure) == Fraction(1, 10**6)
    assert len(law.events(TASK.exposure)) == 1
    assert law.biases_numbers
    assert law.is_hidden_by([(law.noise, Fraction(PARTS))])
    assert not law.is_hidden_by([(law.noise, Fraction(PARTS + 1))])
    assert not law.is_hidden_by([(DiscreteGaussian(Fraction(10**9)), Fraction(PARTS))])
    assert not law.is_hidden_by([])


def test_only_weighed_individuals_are_found_by_weights() -> None:
    task = KeyTask("g", ONE, 256)
    assert WeighedThreshold.fit(task, ApproxDP(1, "1e-6")) is None
    with pytest.raises(MissingKeys, match="delta"):
        WeighedThreshold.fit(TASK, PureDP(1))


@pytest.mark.parametrize(
    ("slack", "norm", "most"),
    [(Fraction(0), 3, 4), (Fraction(1, 2), 3, 4), (Fraction(1, 9), 0, 4), (Fraction(1, 9), 3, 0)],
)
def test_no_threshold_without_what_it_needs(slack: Fraction, norm: int, most: int) -> None:
    with pytest.raises(ValueError, match="a threshold needs"):
        WeighedThreshold(DiscreteGaussian(Fraction(9)), 10**6, slack, norm, most, True)
    with pytest.raises(ValueError, match="a threshold needs"):
        WeighedThreshold(DiscreteGaussian(Fraction(9)), 10**6, Fraction(1, 9), 3, 1 << 31, True)


def test_sizes_grow_with_chances() -> None:
    law = WeighedThreshold.over(
        DiscreteGaussian(Fraction(PARTS**2)), PARTS, 9, Fraction(1, 10**6), alone=False
    )
    assert law.size_at(Fraction(1, 2)) == math.ceil(Fraction(law.threshold, PARTS))
    assert law.size_at(Fraction(19, 20)) > law.size_at(Fraction(1, 2))


def test_noise_of_its_own_is_drawn_for_each_group() -> None:
    law = WeighedThreshold.over(
        DiscreteGaussian(Fraction(PARTS**2)), PARTS, 9, Fraction(1, 10**6), alone=True
    )
    sums: NDArray[np.int64] = np.full(20_000, law.threshold, np.int64)
    choice = KeyChoice(Table(UnitCount()), 1, law.kernel_law)
    assert 0.48 < choice.keep(sums)[0].mean() < 0.52
    assert not choice.keep(sums - 40 * PARTS)[0].any()
    assert choice.keep(sums + 40 * PARTS)[0].all()


@pytest.mark.parametrize("norm", [Fraction(1), Fraction(5, 2)])
def test_many_groups_cost_little_where_individuals_are_weighed(norm: Fraction) -> None:
    """Noise for 64 groups, each with one of 64 groups' delta, needs 8 times as many individuals."""
    spend, many = ApproxDP(1, "1e-6"), 64
    parts = norm_in_parts(norm)
    one = ExactSensitivity(many, Fraction(8 * parts), Fraction(parts**2), Fraction(parts))
    weighed = WeighedThreshold.fit(KeyTask("g", one, many, parts), spend)
    limited = ExactSensitivity(many, Fraction(many), Fraction(many), Fraction(1))
    noise = DiscreteGaussian.for_approx(many, limited.l2_squared, spend.main, spend.slack / 2)
    threshold = NoisyThreshold.for_delta(noise, 1, spend.slack / 2 / many).threshold
    assert weighed is not None
    assert isinstance(weighed.law, WeighedThreshold)
    in_norms = weighed.law.threshold / parts
    assert threshold / 8 * 0.9 < in_norms < threshold / 8 + 1
    assert DiscreteLaplace(Fraction(many)).variance() > noise.variance()
