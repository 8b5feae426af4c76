"""Vectors of the box law against its exact law, hundreds of thousands at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpframe.mechanisms import DiscreteBox
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.samplers import OS
from dpframe.samplers.box import Radii

from . import checks

pytestmark = pytest.mark.slow

N = 300_000
LAWS = [
    DiscreteBox(Fraction(1), (1, 1, 1), 1, 1),
    DiscreteBox(Fraction(7, 10), (1, 3), 4, 1),
    DiscreteBox(Fraction(1), (2, 3, 5, 7), 16, 1),
    DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)),
    DiscreteBox.for_pure((1, 2**20), 1, Fraction(1, 1000)),
    DiscreteBox.for_pure((1, 1), 1, Fraction(1, 30_000)),
    DiscreteBox.for_pure((5,) * 64, 1, Fraction(2)),
    DiscreteBox.for_pure((1, 3), 1, Fraction(12)),
    DiscreteBox.for_pure((2**31,), 1, Fraction(1, 100)),
]
each_law = pytest.mark.parametrize(
    "law", LAWS, ids=lambda law: f"{len(law.widths)}d-{max(law.widths)}-{float(law.epsilon):.3g}"
)


def radii(law: DiscreteBox | Radii) -> tuple[np.ndarray, np.ndarray]:
    """All radii that matter with their probabilities, or every so many of them."""
    rate = float(law.rate if isinstance(law, Radii) else law.epsilon / law.fineness)
    most = (60 + 4 * len(law.widths)) / rate
    r = np.arange(0.0, most, max(1.0, float(int(most / 200_000))))
    logs = -rate * r
    for width in law.widths:
        logs = logs + np.log(2 * np.floor(r * width / law.fineness) + 1)
    weights = np.exp(logs - logs.max())
    return r, weights / weights.sum()


def coordinate_upper(law: DiscreteBox, width: int) -> checks.Upper:
    """m -> P(|z_j| >= m)."""
    r, weights = radii(law)
    half = np.floor(r * width / law.fineness)

    def upper(m: np.ndarray) -> np.ndarray:
        found = [
            float(np.clip((2 * (half - k + 1)) / (2 * half + 1), 0, 1) @ weights) if k > 0 else 1.0
            for k in np.atleast_1d(m).tolist()
        ]
        return np.array(found)

    return upper


@each_law
def test_each_coordinate(law: DiscreteBox) -> None:
    drawn = draw_noise(law.kernel_law, N // len(law.widths))
    found: checks.PValues = {}
    for j in {0, len(law.widths) - 1}:
        column = np.ascontiguousarray(drawn[:, j])
        scale = math.sqrt(law.variances()[j])
        upper = coordinate_upper(law, law.widths[j])
        found |= checks.named(f"{j}", checks.magnitudes(column, upper, scale))
        found |= checks.named(f"{j}", checks.signs(column))
        if scale > 10**8:
            found |= checks.named(f"{j}", checks.low_bytes(column))
    checks.assert_plausible(found)


@each_law
def test_coordinates_are_uncorrelated_and_their_signs_independent(law: DiscreteBox) -> None:
    drawn = draw_noise(law.kernel_law, N // len(law.widths)).astype(np.float64)
    found = {}
    for i in range(min(3, drawn.shape[1] - 1)):
        one, other = drawn[:, i], drawn[:, i + 1]
        both = np.sign(one) * np.sign(other)
        used = np.count_nonzero(both)
        score = both.sum() / math.sqrt(max(1, used))
        found[f"signs {i}"] = math.erfc(abs(score) / math.sqrt(2))
    if found:
        checks.assert_plausible(found)


@each_law
def test_least_boxes(law: DiscreteBox) -> None:
    """N(z): the number of z with it, times exp(-rate N)."""
    drawn = np.abs(draw_noise(law.kernel_law, N // len(law.widths)))
    least = np.zeros(len(drawn), np.int64)
    for j, width in enumerate(law.widths):
        m = law.fineness
        column = drawn[:, j]
        whole, rest = column // width, column % width
        least = np.maximum(least, whole * m + -(-rest * m // width))
    checks.assert_plausible(checks.magnitudes(least, _shells(law), law.fineness / law.epsilon))


def _shells(law: DiscreteBox) -> Callable[[np.ndarray], np.ndarray]:
    """m -> P(N >= m): all R >= N may give it, so it is P(R >= m) less what they give below m."""
    r, weights = radii(law)
    step = r[1] - r[0]
    logs = sum(np.log(2 * np.floor(r * w / law.fineness) + 1) for w in law.widths)
    # P(N < m) = sum over R of P(R) min(1, V(m - 1) / V(R))
    beyond = np.append(np.cumsum((weights * np.exp(logs[0] - logs))[::-1])[::-1], 0.0)
    up_to = np.append(0.0, np.cumsum(weights))

    def upper(m: np.ndarray) -> np.ndarray:
        place = np.clip(np.ceil(np.atleast_1d(m) / step), 0, r.size).astype(np.int64)
        inside = up_to[place]
        volume = np.exp(logs[np.maximum(place - 1, 0)] - logs[0])
        below = np.where(place > 0, inside + beyond[place] * volume, 0.0)
        return np.clip(1 - below, 0.0, 1.0)

    return upper


FORCED = [
    Radii(Fraction(1), (1, 1), 1),
    Radii(Fraction(1, 3000), (1, 1, 7), 1),
    Radii(Fraction(1, 2**12), (1, 60, 2**30), 2**11),
]


def _found(law: Radii, n: int) -> checks.PValues:
    r, weights = radii(law)
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    drawn, far = law.draw(n, OS)
    for place, radius in far.items():
        drawn[place] = radius
    scale = float((len(law.widths) + 1) / law.rate)
    return checks.magnitudes(drawn, lambda m: tails[np.minimum(m, r.size)], scale)


@pytest.mark.parametrize("law", FORCED, ids=["plain", "cells", "fine"])
def test_radii(law: Radii) -> None:
    checks.assert_plausible(_found(law, 250_000))


@pytest.mark.parametrize("law", FORCED, ids=["plain", "cells", "fine"])
def test_without_the_guide_table(law: Radii) -> None:
    forced = Radii(law.rate, law.widths, law.fineness)
    forced.table(0)._guide = np.full(1 << 16, 0xFFFF, np.uint16)
    checks.assert_plausible(_found(forced, 250_000))


@pytest.mark.parametrize("law", FORCED[1:], ids=["cells", "fine"])
def test_with_every_offset_by_the_float_filter(law: Radii) -> None:
    forced = Radii(law.rate, law.widths, law.fineness)
    forced._squeeze = np.zeros_like(forced._squeeze)
    checks.assert_plausible(_found(forced, 250_000))


@pytest.mark.parametrize("law", FORCED[1:], ids=["cells", "fine"])
def test_with_every_offset_exactly(law: Radii, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframe.samplers.box._MARGIN", 2.0)
    checks.assert_plausible(_found(Radii(law.rate, law.widths, law.fineness), 30_000))


@pytest.mark.parametrize("cells", [3, 40])
def test_with_many_tables(cells: int) -> None:
    forced = Radii(Fraction(1, 200), (1, 2), 4, shift=3, cells=cells)
    checks.assert_plausible(_found(forced, 4000))
