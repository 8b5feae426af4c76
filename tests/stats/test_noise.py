"""Noise against its exact law, a million draws at a time, and against an independent sampler."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.samplers import OS, discrete_gaussian, discrete_laplace
from dpframe.samplers import cells as module
from dpframe.samplers.cells import Cells, _gaussian, _laplace
from dpframe.samplers.exponential import bernoulli_exp, geometric_exp

from . import checks, cks

pytestmark = pytest.mark.slow

N = 1_000_000
SCALES = [
    Fraction(3, 10),
    Fraction(1),
    Fraction(10, 7),
    Fraction(73, 10),
    Fraction(319, 10),
    Fraction(32),
    Fraction(331, 10),
    Fraction(639, 10),
    Fraction(651, 10),
    Fraction(1000, 7),
    Fraction(10**9),
    Fraction(2**40, 3),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace(scale: Fraction) -> None:
    drawn = discrete_laplace(scale, N)
    found = checks.magnitudes(drawn, checks.laplace_upper(scale), float(scale))
    found |= checks.signs(drawn) | checks.laplace_bits(drawn, scale)
    if scale > 10**8:
        found |= checks.low_bytes(drawn)
    checks.assert_plausible(found)


@pytest.mark.parametrize("sigma", SCALES, ids=str)
def test_discrete_gaussian(sigma: Fraction) -> None:
    drawn = discrete_gaussian(sigma**2, N)
    found = checks.magnitudes(drawn, checks.gaussian_upper(sigma**2), float(sigma))
    found |= checks.signs(drawn)
    if sigma > 10**8:
        found |= checks.low_bytes(drawn)
    checks.assert_plausible(found)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000, 7)], ids=str)
def test_single_draws_have_the_same_law_as_blocks(scale: Fraction) -> None:
    single = np.array([int(discrete_laplace(scale, 1)[0]) for _ in range(40_000)])
    found = checks.magnitudes(single, checks.laplace_upper(scale), float(scale))
    found |= checks.named(
        "gauss",
        checks.magnitudes(
            np.array([int(discrete_gaussian(scale**2, 1)[0]) for _ in range(40_000)]),
            checks.gaussian_upper(scale**2),
            float(scale),
        ),
    )
    checks.assert_plausible(found | checks.signs(single))


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(5), Fraction(100)], ids=str)
def test_agrees_with_the_samplers_of_canonne_kamath_and_steinke(scale: Fraction) -> None:
    n = 20_000
    laplace = np.array([cks.discrete_laplace(scale) for _ in range(n)])
    gauss = np.array([cks.discrete_gaussian(scale**2) for _ in range(n)])
    found = checks.named("laplace", checks.same_law(laplace, discrete_laplace(scale, n)))
    found |= checks.named("gauss", checks.same_law(gauss, discrete_gaussian(scale**2, n)))
    # the oracle itself, so that two equal mistakes do not agree
    found |= checks.named(
        "oracle laplace", checks.magnitudes(laplace, checks.laplace_upper(scale), float(scale))
    )
    found |= checks.named(
        "oracle gauss", checks.magnitudes(gauss, checks.gaussian_upper(scale**2), float(scale))
    )
    checks.assert_plausible(found)


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(100, 199), Fraction(1, 1000)], ids=str)
def test_geometric(rate: Fraction) -> None:
    drawn = np.array([geometric_exp(rate, OS) for _ in range(30_000)])
    scale = float(1 / rate)
    checks.assert_plausible(
        checks.magnitudes(drawn, lambda m: np.exp(-m / scale), scale)
        | checks.laplace_bits(drawn + 1, 1 / rate)
    )


@pytest.mark.parametrize("x", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4)], ids=str)
def test_coin(x: Fraction) -> None:
    n = 50_000
    heads = sum(bernoulli_exp(x, OS) for _ in range(n))
    p = math.exp(-x)
    counts = np.array([heads, n - heads])
    checks.assert_plausible(checks.choices(counts, [p, 1 - p]))


def _fresh(law: Cells, cells: int | None = None) -> Cells:
    return Cells(law.linear, law.quadratic, law.shift, law.cells if cells is None else cells)


def _found(law: Cells, n: int) -> checks.PValues:
    drawn = law.draw(n, OS)
    if law.quadratic:
        variance = 1 / (2 * law.quadratic)
        return checks.magnitudes(drawn, checks.gaussian_upper(variance), math.sqrt(variance))
    scale = 1 / law.linear
    found = checks.magnitudes(drawn, checks.laplace_upper(scale), float(scale))
    return found | checks.laplace_bits(drawn, scale)


FORCED = [
    _laplace(Fraction(1)),
    _gaussian(Fraction(1)),
    _laplace(Fraction(1000)),
    _gaussian(Fraction(90_000)),
]


@pytest.mark.parametrize("law", FORCED, ids=["laplace 1", "gauss 1", "laplace 1000", "gauss 300"])
def test_without_the_guide_table(law: Cells) -> None:
    forced = _fresh(law)
    forced.table._guide = np.full(1 << 16, 0xFFFF, np.uint16)
    checks.assert_plausible(_found(forced, 250_000))


@pytest.mark.parametrize("law", FORCED[2:], ids=["laplace 1000", "gauss 300"])
def test_with_every_offset_by_the_float_filter(law: Cells) -> None:
    forced = _fresh(law)
    forced._squeeze = np.zeros_like(forced._squeeze)
    checks.assert_plausible(_found(forced, 250_000))


@pytest.mark.parametrize("law", FORCED[2:], ids=["laplace 1000", "gauss 300"])
def test_with_every_offset_by_exact_integers(law: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILTER_MARGIN", 2.0)
    forced = _fresh(law)
    forced._squeeze = np.zeros_like(forced._squeeze)
    checks.assert_plausible(_found(forced, 30_000))


@pytest.mark.parametrize(
    ("law", "cells"),
    [
        (_laplace(Fraction(10)), 8),
        (_laplace(Fraction(1000)), 6),
        (_gaussian(Fraction(100)), 7),
        (_gaussian(Fraction(10**6)), 40),
        (_laplace(Fraction(10**9)), 3),
    ],
    ids=["laplace 10", "laplace 1000", "gauss 10", "gauss 1000", "laplace 1e9"],
)
def test_with_much_of_the_law_in_the_tail(law: Cells, cells: int) -> None:
    checks.assert_plausible(_found(_fresh(law, cells), 30_000))
