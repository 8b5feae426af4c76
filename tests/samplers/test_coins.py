"""Coins are exact: with scripted bits they fall as a comparison of 128-bit integers says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpframe.samplers.source import ONE, coins
from tests.samplers.scripted import Script

_WORD = 1 << 64
edges = st.sampled_from([0, 1, _WORD - 1, _WORD, _WORD + 1, ONE // 2, ONE - _WORD, ONE - 1, ONE])
numerators = edges | st.integers(0, ONE)


def thrown(probabilities: list[int], which: list[int], uniform: list[int]) -> list[bool]:
    source = Script(u64=[u >> 64 for u in uniform] + [u % _WORD for u in uniform])
    found: list[bool] = coins(probabilities, np.array(which, np.int64), source).tolist()
    assert source.exhausted()
    return found


@given(st.lists(numerators, min_size=1, max_size=5), st.data())
def test_a_coin_compares_128_bits(probabilities: list[int], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(probabilities) - 1), max_size=8))
    near = st.sampled_from([max(0, min(ONE - 1, p + d)) for p in probabilities for d in (-1, 0, 1)])
    uniform = [data.draw(near | st.integers(0, ONE - 1)) for _ in which]
    expected = [u < probabilities[i] for i, u in zip(which, uniform, strict=True)]
    assert thrown(probabilities, which, uniform) == expected


def test_certain_coins_are_certain() -> None:
    for uniform in (0, 1, _WORD, ONE - 1):
        assert thrown([0, ONE], [0, 1], [uniform, uniform]) == [False, True]
    assert thrown([ONE - 1], [0, 0], [ONE - 1, ONE - 2]) == [False, True]
    assert thrown([1], [0, 0], [0, 1]) == [True, False]
    assert coins([0, ONE], np.array([], np.int64)).tolist() == []


@pytest.mark.parametrize("chance", [Fraction(1, 1000), Fraction(1, 3), Fraction(999, 1000)])
def test_coins_of_the_operating_system_are_fair(chance: Fraction) -> None:
    numerator = chance.numerator * ONE // chance.denominator
    found = coins([0, numerator], np.ones(200_000, np.int64))
    assert stats.binomtest(int(found.sum()), found.size, float(chance)).pvalue > 1e-6
