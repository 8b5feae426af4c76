"""The noise of a number made of several noisy ones, against sums over all vectors."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import InvalidBounds
from dpframe.kernel import Refused
from dpframe.mechanisms import (
    CombinedNoise,
    DiscreteBox,
    DiscreteGaussian,
    DiscreteLaplace,
    Exposure,
    RoundedLaplace,
)
from dpframe.mechanisms.noise import noise as draw_noise
from tests.samplers.seeded import Seeded

Law = DiscreteBox | DiscreteGaussian | DiscreteLaplace
BOX = DiscreteBox(Fraction(1), (1, 3), 4, 1)
FINE = DiscreteBox.for_pure((1, 3), 1, Fraction(2))
THREE = DiscreteBox.for_pure((1, 1, 2), 1, Fraction(4))
LAPLACE = DiscreteLaplace(Fraction(3, 4))
GAUSSIAN = DiscreteGaussian(Fraction(7, 3))
SMALL: list[tuple[Law, tuple[int, ...], int]] = [
    (BOX, (1, 0), 1),
    (BOX, (0, 2), 3),
    (BOX, (3, 1), 2),
    (BOX, (-3, 1), 2),
    (BOX, (3, 2), 1),
    (BOX, (5, 3), 4),
    (FINE, (3, 1), 2),
    (THREE, (1, 1, 0), 2),
    (THREE, (0, -3, 1), 2),
    (THREE, (-2, 0, 1), 1),
    (THREE, (2, 1, 1), 2),
    (THREE, (0, 0, 0), 1),
    (LAPLACE, (1, 1), 1),
    (LAPLACE, (0, -1), 1),
    (LAPLACE, (3, 2), 2),
    (LAPLACE, (1, 2, 1), 3),
    (GAUSSIAN, (1, 1), 2),
    (GAUSSIAN, (4, 1, 1), 1),
    (RoundedLaplace(Fraction(3, 4)), (1, -1), 2),
]
each = pytest.mark.parametrize(
    "noise",
    [CombinedNoise(*row) for row in SMALL],
    ids=lambda n: f"{n.name}{n.factors}/{n.divisor}",
)


@cache
def vectors(law: Law, dimensions: int) -> dict[tuple[int, ...], float]:
    """All likely vectors with their probabilities."""
    if isinstance(law, DiscreteBox):
        return boxes(law)
    reach = np.arange(-14.0, 15.0)
    if isinstance(law, DiscreteGaussian):
        mass = np.exp(-(reach**2) / float(2 * law.sigma_squared))
    elif isinstance(law, RoundedLaplace):
        tails = law.above(reach - 1.0) - law.above(reach)
        mass = tails
    else:
        mass = np.exp(-np.abs(reach) / float(law.scale))
    mass = mass / mass.sum()
    one = dict(zip(reach.astype(int).tolist(), mass.tolist(), strict=True))
    return {z: math.prod(one[x] for x in z) for z in product(one, repeat=dimensions)}


def boxes(law: DiscreteBox) -> dict[tuple[int, ...], float]:
    rate = float(law.epsilon) / law.fineness
    reach = [int(24 * w / law.epsilon) for w in law.widths]
    points = np.array(list(product(*(range(-r, r + 1) for r in reach))))
    least = np.max(
        [-(-np.abs(points[:, j]) * law.fineness // w) for j, w in enumerate(law.widths)], axis=0
    )
    mass = np.exp(-rate * least)
    mass /= mass.sum()
    return {tuple(z): float(p) for z, p in zip(points.tolist(), mass, strict=True)}


@cache
def exact_law(noise: CombinedNoise) -> dict[int, float]:
    """By rounding every vector's sum, halves both ways."""
    found: dict[int, float] = defaultdict(float)
    for z, p in vectors(noise.law, len(noise.factors)).items():
        place = Fraction(sum(f * x for f, x in zip(noise.factors, z, strict=True)), noise.divisor)
        down = math.floor(place)
        if place - down == Fraction(1, 2):
            found[down] += p / 2
            found[down + 1] += p / 2
        else:
            found[round(place)] += p
    return found


def beyond(noise: CombinedNoise, a: int) -> float:
    return math.fsum(p for x, p in exact_law(noise).items() if abs(x) > a)


@each
def test_tails_are_those_of_the_sums(noise: CombinedNoise) -> None:
    for a in range(12):
        exact, ours = beyond(noise, a), noise.beyond(a, 1e-4)
        if exact > 1e-3:
            assert exact * (1 - 1e-3) <= ours <= exact * 1.01 + 1e-9


@each
def test_quantiles_are_those_of_the_sums(noise: CombinedNoise) -> None:
    for confidence in (0.05, 0.5, 0.8, 0.9, 0.95, 0.98):
        a = noise.quantile(confidence)
        assert beyond(noise, a) <= (1 - confidence) * 1.001 + 1e-4
        if a:
            assert beyond(noise, a - 1) >= (1 - confidence) * 0.98 - 1e-4


@each
def test_noises_that_are_taken_for_alike_have_one_law(noise: CombinedNoise) -> None:
    found, other = exact_law(noise), exact_law(noise.alike)
    for x in found.keys() | other.keys():
        assert found.get(x, 0.0) == pytest.approx(other.get(x, 0.0), rel=1e-9, abs=1e-12)
    assert noise.alike.alike == noise.alike


def test_noises_are_alike_whatever_their_signs_and_places_are() -> None:
    for law, factors, other in (
        (THREE, (1, 0, 2), (0, -1, 2)),
        (THREE, (3, 1, 0), (-1, 3, 0)),
        (GAUSSIAN, (4, 1, 0), (0, -1, 4)),
        (LAPLACE, (0, 0), (0, 0)),
    ):
        one = CombinedNoise(law, factors, 3)
        assert one.alike == CombinedNoise(law, other, 3).alike
        assert one.quantile(0.9) == CombinedNoise(law, other, 3).quantile(0.9)
    assert CombinedNoise(BOX, (1, 3), 1).alike != CombinedNoise(BOX, (3, 1), 1).alike
    assert CombinedNoise(THREE, (1, 0, 0), 1).alike != CombinedNoise(THREE, (0, 0, 1), 1).alike


@each
def test_variances_are_those_of_the_sums(noise: CombinedNoise) -> None:
    exact = math.fsum(x * x * p for x, p in exact_law(noise).items())
    assert noise.variance() == pytest.approx(exact, rel=0.01, abs=1e-12)


@each
def test_above_is_the_tail_of_one_side(noise: CombinedNoise) -> None:
    x = np.array([-3.5, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0])
    exact = [math.fsum(p for y, p in exact_law(noise).items() if y > t) for t in x.tolist()]
    assert noise.above(x) == pytest.approx(exact, rel=0.01, abs=2e-3)
    assert noise.above(np.array([1e15])).tolist() == pytest.approx([0.0], abs=1e-100)


def drawn(noise: CombinedNoise, n: int, seed: int) -> np.ndarray:
    """By drawing vectors and combining them."""
    if isinstance(noise.law, DiscreteBox):
        z = draw_noise(noise.law.kernel_law, n, Seeded(seed))
    else:
        draws = draw_noise(noise.law.kernel_law, n * len(noise.factors), Seeded(seed))
        z = draws.reshape(n, -1)
    place = z.astype(np.float64) @ np.array(noise.factors, np.float64) / noise.divisor
    coin = np.random.default_rng(seed).choice([-0.25, 0.25], n) / noise.divisor
    return np.rint(place + coin * (np.abs(place % 1 - 0.5) < 1e-12))


LARGE: list[tuple[Law, tuple[int, ...], int]] = [
    (DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)), (60, 1, 0), 2),
    (DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)), (2**30, 0, 1), 2),
    (DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)), (1, 0, 0), 1),
    (DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)), (0, 0, 1), 1),
    (DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2)), (5, 3, 2), 1),
    (DiscreteBox.for_pure((1, 60), 1, Fraction(1, 3)), (3, 2), 1),
    (DiscreteBox.for_pure((1, 2**30), 1, Fraction(8)), (2**30, 1), 2),
    (DiscreteBox.for_pure((7, 7), 1, Fraction(1, 10**5)), (1, 1), 2),
    (DiscreteBox.for_pure((4,) * 30, 1, Fraction(1)), (1,) + (0,) * 28 + (1,), 2),
    (DiscreteLaplace(Fraction(5000)), (1, 1), 1),
    (DiscreteLaplace(Fraction(5000, 3)), (2**20, 7), 2**20),
    (DiscreteGaussian(Fraction(10**9)), (1, -1, 2), 2),
    (DiscreteGaussian(Fraction(400)), (2**30, 2**29), 2**30),
]
each_large = pytest.mark.parametrize(
    "noise",
    [CombinedNoise(*row) for row in LARGE],
    ids=lambda n: f"{n.name}{n.factors[:3]}/{n.divisor}",
)


@each_large
def test_large_noise_is_as_wide_as_draws(noise: CombinedNoise) -> None:
    n = 40_000
    found = drawn(noise, n, 7)
    assert found.var() == pytest.approx(noise.variance(), rel=0.06)
    for confidence in (0.5, 0.95, 0.99):
        a = noise.quantile(confidence)
        off = 7 * math.sqrt(confidence * (1 - confidence) / n)
        assert np.mean(np.abs(found) <= a) >= confidence - off
        assert np.mean(np.abs(found) <= a - 1) <= confidence + off + 0.003
    for x in (0.3, 1.0, 2.0):
        at = x * math.sqrt(noise.variance())
        assert float(noise.above(np.array([at]))[0]) == pytest.approx(
            np.mean(found > at), abs=0.012
        )


def two_laplace_beyond(x: float) -> float:
    """P(|z_1 + z_2| > x), continuous, scale 1."""
    return (1 + x / 2) * math.exp(-x)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_sums_of_two_laplace_are_within_half_a_percent(confidence: float) -> None:
    scale = 10**9
    noise = CombinedNoise(DiscreteLaplace(Fraction(scale)), (1, 1), 1)
    found = noise.quantile(confidence) / scale
    assert two_laplace_beyond(found) <= (1 - confidence) * (1 + 1e-6)
    assert two_laplace_beyond(found / 1.005) > 1 - confidence


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_sums_of_gaussian_noise_are_within_half_a_percent(confidence: float) -> None:
    variance = Fraction(10**18)
    noise = CombinedNoise(DiscreteGaussian(variance), (3, 4), 5)
    exact = DiscreteGaussian(variance).quantile(confidence)
    assert exact <= noise.quantile(confidence) <= exact * 1.005


@pytest.mark.parametrize("epsilon", ["1/10000", "1/50", "1"])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_two_coordinates_are_within_half_a_percent(epsilon: str, confidence: float) -> None:
    """Of a box of fine steps: given the radius r, |z_1 + z_2| > t with (1 - t / 2 r)**2."""
    law = DiscreteBox.for_pure((2**20, 2**20), 1, Fraction(epsilon))
    r = np.linspace(0, 90, 900_001)
    density = r**2 * np.exp(-r) / 2 * 1e-4

    def exact(t: float) -> float:
        return float(np.clip(1 - t / np.maximum(2 * r, 1e-9), 0, None) ** 2 @ density)

    unit = 2**20 / float(law.epsilon)
    found = CombinedNoise(law, (1, 1), 1).quantile(confidence) / unit
    assert exact(found) <= (1 - confidence) * (1 + 1e-3)
    assert exact(found / 1.005) > 1 - confidence


def test_more_vectors_need_more_and_follow_from_one() -> None:
    noise = CombinedNoise(DiscreteBox.for_pure((1, 60), 1, Fraction(1, 2)), (60, 1), 2)
    found = [noise.quantile(0.95, cells) for cells in (1, 10, 1000, 10**6)]
    assert found == sorted(found)
    assert noise.beyond(found[-1], 1e-8) <= 5.2e-8
    with pytest.raises(InvalidBounds):
        noise.quantile(1.0)


def test_a_single_coordinate_is_that_coordinate() -> None:
    for law in (LAPLACE, GAUSSIAN):
        noise = CombinedNoise(law, (1,), 1)
        assert noise.variance() == law.variance()
        for confidence in (0.3, 0.9, 0.95, 0.999):
            assert noise.quantile(confidence, 5) == law.quantile(confidence, 5)


def test_costs_and_names_are_those_of_the_law() -> None:
    moved = Exposure(ExactSensitivity(2, Fraction(2), Fraction(2), Fraction(1)))
    for law in (BOX, LAPLACE, GAUSSIAN):
        noise = CombinedNoise(law, (1, 1), 2)
        assert (noise.name, noise.label) == (law.name, law.label)
        assert noise.scale_label == law.scale_label
        assert noise.epsilon_cost(moved) == law.epsilon_cost(moved)
        assert noise.rho_cost(moved) == law.rho_cost(moved)
        assert noise.mu_squared_cost(moved) == law.mu_squared_cost(moved)
        assert noise.events(moved) == law.events(moved)
        assert [*noise.pairs(moved, Fraction(1))] == [*law.pairs(moved, Fraction(1))]
        assert noise.details() == law.details()
        assert noise.log_noise(1) == pytest.approx(math.log(noise.variance()) / 2)
        with pytest.raises(Refused, match="no law"):
            _ = noise.kernel_law
    gaussian = CombinedNoise(GAUSSIAN, (1, 1), 2)
    assert gaussian.delta_at(Fraction(1), moved) == GAUSSIAN.delta_at(Fraction(1), moved)
    assert CombinedNoise.name == "combined_noise"


def test_scales_that_people_read() -> None:
    box = DiscreteBox(Fraction(1, 2), (1, 60), 8, 1)
    assert CombinedNoise(box, (60, 1), 2).shown_scale(Fraction(1, 3)) == 40.0
    assert CombinedNoise(box, (0, 1), 1).shown_scale(Fraction(1)) == box.shown_scale(Fraction(1))
    assert CombinedNoise(DiscreteLaplace(Fraction(2)), (3, 4), 2).shown_scale(Fraction(1)) == 5.0
    assert CombinedNoise(DiscreteGaussian(Fraction(4)), (3, -4), 2).shown_scale(Fraction(1)) == 5.0


def test_parameters() -> None:
    for law, factors, divisor in ((BOX, (1,), 1), (BOX, (1, 1), 0), (LAPLACE, (), 1)):
        with pytest.raises(ValueError, match="combined noise"):
            CombinedNoise(law, factors, divisor)
