"""Laws of losses on a grid: never below the exact ones, and the same at the points of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from dpframe.accounting.connect_the_dots import Dots, dots, largest_loss, spacing
from dpframe.accounting.loss_laws import (
    HalfLine,
    LossLaw,
    Normal,
    Response,
    SteppedLaplace,
    SteppedNormal,
)
from tests.accounting import exact_laws as exact

RIGHT_TO = mp.mpf(10) ** -12
"""What masses on a grid may lack, relatively."""

Curve = Callable[[Any], Any]


def of_pair(pair: exact.Pair) -> Curve:
    return lambda epsilon: exact.delta(pair, Fraction(str(epsilon)))


def of_laplace(e: Any) -> Curve:
    return lambda x: 1 - mp.exp((x - max(e, abs(x))) / 2)


def of_bounded_range(e: Any) -> Curve:
    def positive(x: Any) -> Any:
        return (1 - mp.exp((x - e) / 2)) ** 2 / (1 - mp.exp(-e)) if x < e else mp.mpf(0)

    return lambda x: positive(x) if x >= 0 else 1 - mp.exp(x) + mp.exp(x) * positive(-x)


def of_normal(d: Any) -> Curve:
    return lambda x: exact.gaussian_delta(d, x)


def delta_of(made: Dots, h: Fraction, epsilon: Any) -> Any:
    first = max(made.first, int(mp.floor(epsilon / exact.real(h))))
    terms = (
        made.masses[k - made.first].item() * -mp.expm1(epsilon - k * exact.real(h))
        for k in range(first, made.first + len(made.masses))
        if k * exact.real(h) > epsilon
    )
    return mp.fsum(terms) + mp.mpf(made.infinite)


CASES: list[tuple[LossLaw, Curve, Fraction]] = [
    (Response(Fraction(3, 7)), of_pair(exact.response(Fraction(3, 7), 2)), Fraction(1, 9)),
    (Response(Fraction(2), 5), of_pair(exact.response(Fraction(2), 5)), Fraction(1, 40)),
    (HalfLine(Fraction(1, 10), True), of_laplace(mp.mpf(1) / 10), Fraction(1, 3000)),
    (HalfLine(Fraction(5), True), of_laplace(mp.mpf(5)), Fraction(1, 90)),
    (HalfLine(Fraction(1, 10), False), of_bounded_range(mp.mpf(1) / 10), Fraction(1, 3000)),
    (HalfLine(Fraction(7), False), of_bounded_range(mp.mpf(7)), Fraction(1, 70)),
    (
        SteppedLaplace(Fraction(1, 4), 5),
        of_pair(exact.discrete_laplace(Fraction(4), 5, 0)),
        Fraction(1, 17),
    ),
    (
        SteppedNormal(Fraction(9, 4)),
        of_pair(exact.discrete_gaussian(Fraction(3, 2), 40)),
        Fraction(1, 31),
    ),
    (Normal(Fraction(1, 100)), of_normal(mp.mpf(1) / 10), Fraction(1, 400)),
    (Normal(Fraction(9)), of_normal(mp.mpf(3)), Fraction(1, 20)),
]
EVERY = pytest.mark.parametrize(("law", "curve", "h"), CASES, ids=[str(law) for law, _, _ in CASES])


@EVERY
def test_delta_on_a_grid_is_never_below_the_exact_one(
    law: LossLaw, curve: Curve, h: Fraction
) -> None:
    made = dots(law, h)
    top = min(largest_loss(law), 12.0)
    for share in (-2.3, -1.2, -0.6, 0.0, 0.31, 0.5, 0.87, 0.999):
        epsilon = mp.mpf(repr(share * top))
        assert delta_of(made, h, epsilon) >= curve(epsilon) * (1 - RIGHT_TO)


@EVERY
def test_delta_at_points_of_the_grid_is_the_exact_one(
    law: LossLaw, curve: Curve, h: Fraction
) -> None:
    """Where losses are spread out; atoms between two points are moved to both."""
    if not isinstance(law, (HalfLine, Normal)):
        h = spacing(law) or h
    made = dots(law, h)
    steps = math.floor(law.epsilon / h) if isinstance(law, HalfLine) else len(made.masses) // 3
    for k in (-steps // 2, -1, 0, steps // 3, steps // 2):
        epsilon = k * exact.real(h)
        found, true = delta_of(made, h, epsilon), curve(epsilon)
        assert true * (1 - RIGHT_TO) <= found <= true * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -18


@pytest.mark.parametrize("e", [Fraction(7), Fraction(40)])
def test_rounding_in_fine_cells_adds_to_delta(e: Fraction) -> None:
    """A cell's p - exp(t) q is so much less than p that its rounding counts."""
    h, curve = Fraction(1, 10**4), of_bounded_range(exact.real(e))
    made = dots(HalfLine(e, False), h)
    for cells in (3, 30, 300):
        epsilon = exact.real(e - cells * h)
        assert delta_of(made, h, epsilon) >= curve(epsilon) * (1 - RIGHT_TO)


@EVERY
def test_the_largest_loss_is_that_of_the_last_point(
    law: LossLaw, curve: Curve, h: Fraction
) -> None:
    h = spacing(law) or h
    made = dots(law, h)
    last = (made.first + len(made.masses) - 1) * h
    assert last - h <= Fraction(largest_loss(law)) <= last + h
