"""Probabilities that noise lies above numbers, in arrays: those of the exact laws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace, NoNoise, RoundedLaplace
from dpframe.mechanisms.discrete_gaussian import normal_above

LAWS = [
    DiscreteLaplace(Fraction(1, 50)),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteLaplace(Fraction(2**52)),
    RoundedLaplace(Fraction(1, 7)),
    RoundedLaplace(Fraction(29, 2)),
    RoundedLaplace(Fraction(2**40)),
    DiscreteGaussian(Fraction(1, 9)),
    DiscreteGaussian(Fraction(63**2)),
    DiscreteGaussian(Fraction(65**2)),
    DiscreteGaussian(Fraction(2**80)),
    NoNoise(),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_tails_are_those_of_quantiles(law: Any) -> None:
    """At the quantile no more is missed than may be, and one step before it too much is."""
    for confidence in ("0.02", "0.5", "0.95", "0.999", "0.999999999"):
        miss = float(1 - Fraction(confidence))
        a = law.quantile(Fraction(confidence))
        beyond, before = 2 * law.above(np.array([a, a - 1.0]))
        assert beyond <= miss * (1 + 2**-13)
        assert a == 0 or before > miss * (1 - 1e-9)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_tails_are_symmetric_and_fall(law: Any) -> None:
    reach = law.quantile(0.9999)
    k = np.unique(np.floor(np.linspace(-reach, reach, 101)))
    assert law.above(k) == pytest.approx(law.above(k + 0.4))
    assert law.above(k) + law.above(-k - 1) == pytest.approx(1, abs=1e-4)
    assert (np.diff(law.above(np.append(-np.inf, np.append(k, np.inf)))) <= 1e-12).all()
    assert law.above(np.array([-np.inf, np.inf])) == pytest.approx([1, 0], abs=1e-300)


def test_the_normal_tail_is_rounded_up() -> None:
    exact = {0.0: 0.5, 1.0: 0.15865525393145707, 1.003: 0.157929881, 6.0: 9.865876450376946e-10}
    for z, tail in exact.items():
        assert tail <= normal_above(np.array([z]))[0] * (1 + 1e-8) <= tail * (1 + 2**-14)
        assert normal_above(np.array([-z]))[0] == pytest.approx(1 - tail, abs=2**-15)
