"""Brackets of exp(-x) against 1000-digit arithmetic, and coins whose bits are scripted."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.samplers import OS
from dpframe.samplers.exponential import (
    FILTER_MARGIN,
    _series,
    bernoulli_exp,
    bracket_exp,
    decay,
    geometric_exp,
    taylor_exp,
)

from .scripted import Script

exponents = st.builds(
    Fraction,
    st.integers(0, 200).flatmap(lambda bits: st.integers(0, 1 << bits)),
    st.integers(0, 200).flatmap(lambda bits: st.integers(1, 1 << bits)),
)


def scaled_exp(x: Fraction, precision: int) -> mpmath.mpf:
    with mpmath.workprec(precision + 600):
        return mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** precision


def floor_exp(x: Fraction, precision: int) -> int:
    with mpmath.workprec(precision + 600):
        return int(mpmath.floor(scaled_exp(x, precision)))


@given(exponents, st.integers(1, 700))
def test_bracket_holds_and_is_narrow(x: Fraction, precision: int) -> None:
    lo, hi = bracket_exp(x, precision)
    with mpmath.workprec(precision + 600):
        assert lo <= scaled_exp(x, precision) <= hi
    assert hi - lo <= 3


@pytest.mark.parametrize("width", [12, 64])
def test_a_series_holds_for_all_that_rounds_to_its_argument(width: int) -> None:
    """At both ends of [y, y + 1], for the least and the largest y."""
    largest = (1 << width - 8) - 1
    for y in (0, 1, largest // 2, largest):
        lo, hi = _series(y, width)
        unit = 1 << width
        with mpmath.workprec(width + 600):
            assert lo <= scaled_exp(Fraction(y + 1, unit), width)
            assert scaled_exp(Fraction(y, unit), width) <= hi


def test_bracket_of_zero_and_of_the_very_large() -> None:
    assert bracket_exp(Fraction(0), 64) == (1 << 64, 1 << 64)
    assert bracket_exp(Fraction(1 << 80), 64) == (0, 1)
    lo, hi = bracket_exp(Fraction(63), 64)
    assert lo <= scaled_exp(Fraction(63), 64) <= hi


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(1), Fraction(41, 3), Fraction(1, 10**12)])
def test_coin_is_decided_exactly_at_the_boundary(x: Fraction) -> None:
    first, second = divmod(floor_exp(x, 128), 1 << 64)
    assert bernoulli_exp(x, Script(single=[first - 1]))
    assert not bernoulli_exp(x, Script(single=[first + 1]))
    for low, expected in ((second - 1, True), (second + 1, False)):
        source = Script(single=[first, low])
        assert bernoulli_exp(x, source) is expected
        assert source.exhausted()


def test_coin_uses_the_prefix_that_is_known() -> None:
    x = Fraction(1)
    boundary = floor_exp(x, 64)
    assert bernoulli_exp(x, Script(), boundary - 1, 64)
    assert not bernoulli_exp(x, Script(), boundary + 1, 64)
    low = floor_exp(x, 128) & (1 << 64) - 1
    assert bernoulli_exp(x, Script(single=[low - 1]), boundary, 64)
    assert not bernoulli_exp(x, Script(single=[low + 1]), boundary, 64)


def test_a_sure_coin_is_sure() -> None:
    assert all(bernoulli_exp(Fraction(0), Script(single=[u])) for u in (0, 1, (1 << 64) - 1))


def test_an_all_but_impossible_coin_ends() -> None:
    assert not bernoulli_exp(Fraction(1 << 90), Script(single=[1]))
    assert not bernoulli_exp(Fraction(1 << 90), Script(single=[0, 0, 7]))


def test_geometric_digits_and_overflow_add_up() -> None:
    rate = Fraction(1)  # 3 digits, then blocks of 8
    low, high = 0, (1 << 64) - 1  # always below, never below the boundary
    assert geometric_exp(rate, Script(single=[high, high, high, high])) == 0
    assert geometric_exp(rate, Script(single=[low, high, high, high])) == 1
    assert geometric_exp(rate, Script(single=[high, low, low, high])) == 6
    # a word of zeros proves U < exp(-8), so each one adds a block
    assert geometric_exp(rate, Script(single=[low, high, high, low, low, high])) == 17


@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(1), Fraction(3)])
def test_geometric_law_roughly(rate: Fraction) -> None:
    # 3000 draws, deviations of at most 7 standard deviations each: false alarm below 1e-10
    n = 3000
    counts = Counter(geometric_exp(rate, OS) for _ in range(n))
    q = float(mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator))
    for g in range(4):
        p = (1 - q) * q**g
        assert abs(counts[g] - n * p) < 7 * (n * p * (1 - p)) ** 0.5 + 1


@pytest.mark.parametrize(("terms", "bound"), [(16, 2.0**-50), (7, 2.0**-26)])
def test_taylor_is_within_its_bound(terms: int, bound: float) -> None:
    y = np.concatenate([np.linspace(-0.36, 0.36, 1501), [0.0, 1e-300, 2.0**-40]])
    approximate = taylor_exp(y, terms)
    with mpmath.workprec(200):
        worst = max(
            abs(mpmath.mpf(float(a)) - mpmath.exp(-mpmath.mpf(float(v))))
            for a, v in zip(approximate, y, strict=True)
        )
    assert worst < bound
    if terms == 16:
        assert worst * 32 < FILTER_MARGIN


@given(
    st.integers(0, (1 << 64) - 1), st.fractions(Fraction(1, 1024), 1 << 62, max_denominator=10**6)
)
def test_decay_is_within_its_bound(gap: int, scale: Fraction) -> None:
    found = float(decay(np.array([gap], np.uint64), float(1 / scale))[0])
    with mpmath.workprec(200):
        x = mpmath.mpf(gap) * scale.denominator / scale.numerator
        if x < 699:
            assert abs(found / mpmath.exp(-x) - 1) < 2.0**-25
        else:
            assert mpmath.exp(-x) * 0.99 <= found < 1e-300
