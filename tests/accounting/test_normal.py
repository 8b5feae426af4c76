"""Mills' ratio of many numbers at once, against 40 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpframe.accounting.normal import mills_of, mills_of_many


def exact(x: float) -> mpmath.mpf:
    tail = mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2
    return tail * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(mpmath.mpf(x) ** 2 / 2)


@pytest.mark.parametrize(
    ("low", "high", "error"),
    [(-36.0, -5.0, 2e-13), (-5.0, 0.0, 5e-15), (0.0, 4.0, 5e-15), (4.0, 45.0, 5e-15)],
)
def test_ratios_are_as_exact_as_one_by_one(low: float, high: float, error: float) -> None:
    middles = (np.arange(np.ceil(low * 64), high * 64) + 0.5) / 64  # farthest from every point
    some = np.concatenate([np.linspace(low, high, 301), middles[:: max(1, len(middles) // 300)]])
    found = mills_of_many(some)
    with mpmath.workdps(40):
        errors = [abs(f / exact(x) - 1) for f, x in zip(found.tolist(), some.tolist(), strict=True)]
    assert max(errors) < error


def test_ratios_beyond_the_polynomials_are_those_of_one_by_one() -> None:
    far = np.array([39.999, 40.0, 40.001, 41.0, 300.0, 1e6])
    assert np.allclose(mills_of_many(far), mills_of(far), rtol=1e-14, atol=0)
    assert mills_of_many(np.array([])).shape == (0,)


def test_ratios_fall() -> None:
    """Also from one polynomial to the next, but for rounding."""
    fine = np.arange(-5.0, 41.0, 1e-4)
    ratios = mills_of_many(fine)
    assert (ratios[1:] <= ratios[:-1] * (1 + 1e-14)).all()
