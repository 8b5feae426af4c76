"""The choice of groups: the inequalities of privacy hold of the very numbers that coins are thrown
with.

The reference is the recursion of Desfontaines, Voss and Gipson (2022, Theorem 1) in 60 digits.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.mechanisms import TruncatedGeometric
from dpframe.mechanisms.noise import appear, appearance_chances
from dpframe.samplers.source import ONE

epsilons = st.builds(Fraction, st.integers(1, 4000), st.just(100)) | st.sampled_from(
    [Fraction(1, 100), Fraction(1, 3), Fraction(63), Fraction(64), Fraction(65), Fraction(10**6)]
)
deltas = st.integers(1, 29).map(lambda n: Fraction(1, 10**n)) | st.builds(
    Fraction, st.integers(1, 10**6), st.just(10**6)
)


def real(value: Fraction | int) -> mp.mpf:
    number = Fraction(value)
    return mp.mpf(number.numerator) / number.denominator


@given(epsilons, deltas)
@example(Fraction(1), Fraction(1))
@example(Fraction(1, 10**400), Fraction(1, 1000))
@example(Fraction(1, 100), Fraction(1, 1 << 100))
def test_neighbours_keep_a_group_about_as_often(epsilon: Fraction, delta: Fraction) -> None:
    """Four inequalities: more or one fewer individual, group or no group."""
    table = appearance_chances(epsilon, delta)
    with mp.workdps(60):
        growth, slack = mp.exp(real(epsilon)), real(delta) * ONE
        for p, more in zip(table, [*table[1:], ONE], strict=True):
            assert more <= growth * p + slack
            assert p <= growth * more + slack
            assert ONE - p <= growth * (ONE - more) + slack
            assert ONE - more <= growth * (ONE - p) + slack
    assert table[0] == 0
    assert table[-1] == ONE
    assert table == sorted(table)


@given(epsilons, deltas)
@example(Fraction(63), Fraction(1, 10**28))
def test_groups_appear_as_often_as_they_may(epsilon: Fraction, delta: Fraction) -> None:
    table = appearance_chances(epsilon, delta)
    if epsilon > 64:  # counts as 64 there
        return
    with mp.workdps(60):
        growth, slack, p = mp.exp(real(epsilon)), real(delta), mp.mpf(0)
        for n, numerator in enumerate(table):
            found = real(Fraction(numerator, ONE))
            assert found <= p * (1 + mp.mpf(10) ** -50)
            assert found >= p * (1 - mp.mpf(10) ** -6), n
            p = min(growth * p + slack, 1 - (1 - p - slack) / growth, mp.mpf(1))


@given(epsilons, deltas)
def test_a_group_of_one_appears_with_delta(epsilon: Fraction, delta: Fraction) -> None:
    table = appearance_chances(epsilon, delta)
    assert table[1] == min(ONE, delta.numerator * ONE // delta.denominator)


def test_no_group_appears_without_individuals_and_large_ones_do() -> None:
    law = TruncatedGeometric(Fraction(1), Fraction(1, 10**6))
    kept = appear(law.kernel_law, np.array([-5, 0, 10**6, 2**62], np.int64))
    assert kept.tolist() == [False, False, True, True]
    assert appear(law.kernel_law, np.array([], np.int64)).tolist() == []


def test_even_chances_and_costs() -> None:
    law = TruncatedGeometric(Fraction(1, 2), Fraction(1, 10**5))
    half = law.size_at(Fraction(1, 2))
    table = appearance_chances(Fraction(1, 2), Fraction(1, 10**5))
    assert Fraction(table[half], ONE) >= Fraction(1, 2) > Fraction(table[half - 1], ONE)
    assert law.size_at(Fraction(1)) == len(table) - 1
    assert law.epsilon(3) == Fraction(3, 2)
    assert law.delta(3) == Fraction(3, 10**5)
    assert law.rho(3) == Fraction(3, 8)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (Fraction(1, 10**400), Fraction(1, 10**8)),
        (Fraction(1, 10**12), Fraction(1, 10**8)),
        (Fraction(1), Fraction(1, 10**40)),
        (Fraction(1), Fraction(1, 10**400)),
        (Fraction(1, 10**400), Fraction(1, 10**400)),
        (Fraction(0), Fraction(1, 10)),
        (Fraction(1), Fraction(0)),
    ],
)
def test_what_is_too_little_is_refused(epsilon: Fraction, delta: Fraction) -> None:
    with pytest.raises(dp.InvalidBudget):
        TruncatedGeometric(epsilon, delta)
