"""The attack on floating-point noise (Mironov 2012): which outputs are possible at all.

Noise that is a float, added to a float, leaves traces of the exact answer in the last bits. Between
-1/2 and 1/2 an answer of 0 plus noise has bits finer than 2**-53, and an answer of 1 plus noise has
none: there the noise lies between -2 and -1/2, whose floats are 2**-53 apart at least, and the sum
is exact. So one released number near 0 tells which answer it was, whatever epsilon is.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpframe as dp

N = 20_000


def near_zero(released: NDArray[np.float64]) -> NDArray[np.float64]:
    return released[np.abs(released) < 0.5]


def has_bits_finer_than(released: NDArray[np.float64], bits: int) -> NDArray[np.bool_]:
    """Whether a number is no multiple of 2**-bits."""
    scaled = near_zero(released) * 2.0**bits
    return scaled != np.rint(scaled)


def guesses_right(zero: NDArray[np.float64], one: NDArray[np.float64]) -> float:
    """How often the attack tells 0 from 1, of the outputs that it takes a guess at; 0.5 by chance.

    It guesses 0 where there are finer bits and 1 where there are none.
    """
    right = has_bits_finer_than(zero, 53).mean() + (~has_bits_finer_than(one, 53)).mean()
    return float(right) / 2


def test_the_attack_breaks_floating_point_noise() -> None:
    rng = np.random.default_rng()
    zero, one = (answer + rng.laplace(0.0, 1.0, N) for answer in (0.0, 1.0))
    assert near_zero(one).size > 1000
    assert not has_bits_finer_than(one, 53).any()
    assert guesses_right(zero, one) > 0.8  # and every finer bit proves that it was 0


def released(answer: float, **spend: float) -> NDArray[np.float64]:
    """Private sums of one value in each of many groups."""
    frame = pl.DataFrame({"g": range(N), "x": [answer] * N})
    session = dp.Session(rho=1) if "rho" in spend else dp.Session(epsilon=1, delta=1e-6)
    private = session.protect(frame, dp.Rows())
    sums = private.group_by("g", keys=range(N)).agg(pl.col("x").dp_sum((0.0, 1.0)))
    return sums.collect(**spend)["x"].to_numpy()


@pytest.mark.parametrize(
    "spend", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 1}], ids=str
)
def test_the_attack_finds_nothing_here(spend: dict[str, float]) -> None:
    zero, one = released(0.0, **spend), released(1.0, **spend)
    assert near_zero(zero).size > 1000 < near_zero(one).size
    assert guesses_right(zero, one) == 0.5  # no output has finer bits, so it always guesses 1


def test_every_output_is_possible_for_either_answer() -> None:
    """All outputs are multiples of one power of two, and as many of its odd ones as of others."""
    for answer in (0.0, 1.0):
        steps = released(answer, epsilon=1) * 2.0**30
        assert (steps == np.rint(steps)).all()
        odd = int((steps % 2 == 1).sum())
        assert abs(odd - N / 2) < 7 * (N / 4) ** 0.5
