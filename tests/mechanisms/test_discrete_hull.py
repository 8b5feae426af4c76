"""Discrete hull noise: what it costs, by exact radii, and how wide it is, against what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import (
    MECHANISMS,
    VECTORS,
    AdditiveTask,
    Box,
    CombinedNoise,
    DiscreteBox,
    DiscreteHull,
    Exposure,
    second_moments,
)
from dpframe.mechanisms.discrete_hull import _cumulants_at
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.plan import codec
from tests.samplers.seeded import Seeded
from tests.samplers.test_hull import least_radius

ONE = ((0, 1, 2),)
TWO = ((0, 1, 2), (0, 4, 3))
MOVED = ExactSensitivity(3, Fraction(3), Fraction(3), Fraction(1))
EXPOSURE = Exposure(MOVED)
LAWS = [
    DiscreteHull(Fraction(1), (1, 2, 4), 1, 1, ONE),
    DiscreteHull(Fraction(7, 10), (1, 3, 9), 4, 1, ONE),
    DiscreteHull(Fraction(2), (1, 4, 8), 8, 1, ONE),
    DiscreteHull(Fraction(1, 2), (1, 1, 1, 1, 1), 2, 1, TWO),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.widths}/{law.fineness}")
WIDE = {
    "one": (Fraction(1, 3), (1, 2**30, 2**30), ONE),
    "ages": (Fraction(1), (1, 73, 5329), ONE),
    "two": (Fraction(2), (1, 100, 10_000, 900, 30), TWO),
    "beside": (Fraction(1), (1, 2**20, 2**20, 16), ONE),
    "few": (Fraction(6), (1, 73, 5329), ONE),
}


def wide(name: str) -> DiscreteHull:
    epsilon, widths, arches = WIDE[name]
    return DiscreteHull.around(DiscreteBox.for_pure(widths, 1, epsilon), arches)


def rows_of(law: DiscreteHull) -> list[tuple[int, ...]]:
    """All that a row adds: it is counted, and adds to each sum and its squares what lies above the
    arch.
    """
    found = []
    places = [(total, square) for _, total, square in law.arches]
    for numbers in product(*(range(-w, w + 1) for w in law.widths)):
        above = all(
            (law.widths[q] + numbers[q]) * law.widths[s] ** 2 >= 2 * numbers[s] ** 2 * law.widths[q]
            for s, q in places
        )
        if numbers[0] == law.widths[0] and above:
            found.append(numbers)
    return found


@each_law
def test_no_row_changes_probabilities_by_more_than_it_costs(law: DiscreteHull) -> None:
    """ln P(z) is -epsilon N(z) / fineness, so exactly: all vectors of a grid, all that rows add and
    take away; and some do change it by all of epsilon.
    """
    rows = rows_of(law)
    if len(rows) > 60:
        rows = rows[:: len(rows) // 30]
    rows += [(0,) * len(law.widths)]
    worst = 0
    some = list(product(*(range(-2 * w, 2 * w + 1) for w in law.widths)))
    for z in [*some[:: max(1, len(some) // 200)], (0,) * len(law.widths)]:
        own = least_radius(z, law.widths, law.fineness, law.arches)
        for row, sign in product(rows, (1, -1)):
            moved = tuple(x + sign * v for x, v in zip(z, row, strict=True))
            found = least_radius(moved, law.widths, law.fineness, law.arches)
            worst = max(worst, abs(found - own))
    assert worst == law.fineness


def test_a_row_that_leaves_the_arch_costs_more() -> None:
    """With squares below those of its value it would be outside of what the noise is for."""
    law = LAWS[1]
    row = (1, 3, 0)  # 2 - 1 is the least of y where x is 1, so 9
    assert least_radius(row, law.widths, law.fineness, law.arches) > law.fineness
    assert least_radius((1, 3, 9), law.widths, law.fineness, law.arches) == law.fineness


@st.composite
def moved_vectors(draw: st.DrawFn) -> tuple[DiscreteHull, tuple[int, ...], list[tuple[int, ...]]]:
    """A law, a vector, and what each of some rows adds to it or takes from it."""
    half = draw(st.integers(1, 40))
    beside = draw(st.integers(1, 30))
    fineness = 1 << draw(st.integers(0, 6))
    law = DiscreteHull(Fraction(1), (1, half, half * half, beside), fineness, 4, ONE)
    z = tuple(draw(st.integers(-5 * w, 5 * w)) for w in law.widths)
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        s = draw(st.integers(-half, half))
        square = draw(st.integers(s * s, half * half))
        row = 1, s, 2 * square - half * half, draw(st.integers(-beside, beside))
        sign = draw(st.sampled_from([1, -1]))
        rows.append(tuple(sign * v for v in row))
    return law, z, rows


@given(moved_vectors())
def test_rows_move_the_least_radius_by_fineness_each(
    case: tuple[DiscreteHull, tuple[int, ...], list[tuple[int, ...]]],
) -> None:
    law, z, moves = case
    moved = tuple(sum(column) for column in zip(z, *moves, strict=True))
    before, after = (least_radius(v, law.widths, law.fineness, ONE) for v in (z, moved))
    assert abs(after - before) <= len(moves) * law.fineness


@given(moved_vectors())
def test_log_masses_are_those_of_least_radii(
    case: tuple[DiscreteHull, tuple[int, ...], list[tuple[int, ...]]],
) -> None:
    law, z, _ = case
    radius = least_radius(z, law.widths, law.fineness, law.arches)
    (found,) = law.log_masses(np.array([z])) / -float(law.epsilon / law.fineness)
    assert found == radius


@pytest.mark.parametrize("name", WIDE)
def test_variances_and_covariances_are_those_of_what_is_drawn(name: str) -> None:
    law, n = wide(name), 60_000
    drawn = draw_noise(law.kernel_law, n, Seeded(2)).astype(float)
    variances = np.array(law.variances())
    assert (drawn**2).mean(axis=0) == pytest.approx(variances, rel=0.03)
    deviations = np.sqrt(variances)
    for i, j in product(range(len(variances)), repeat=2):
        found = (drawn[:, i] * drawn[:, j]).mean() / (deviations[i] * deviations[j])
        stated = law.hull.covariance(i, j) / (deviations[i] * deviations[j])
        assert found == pytest.approx(stated, abs=0.03)


def test_variances_are_those_of_the_continuous_limit() -> None:
    epsilon, numbers = Fraction(1, 1000), 4
    law = DiscreteHull.around(DiscreteBox.for_pure((1, *[2**20] * 3), 1, epsilon), ONE)
    moments = [*second_moments(1), Fraction(1, 3)]  # the last number is uniform beside the arch
    limit = [float(m * (numbers + 1) * (numbers + 2) / epsilon**2) for m in moments]
    scaled = np.array(law.variances()) / np.array(law.widths, float) ** 2
    assert scaled == pytest.approx(np.array(limit), rel=2e-3)


@pytest.mark.parametrize("name", WIDE)
def test_quantiles_are_those_of_what_is_drawn(name: str) -> None:
    law, n = wide(name), 60_000
    drawn = draw_noise(law.kernel_law, n, Seeded(6))
    numbers = len(law.widths)
    asked = [tuple(int(i == j) for i in range(numbers)) for j in range(numbers)]
    if name == "beside":
        asked.append((5, 0, 0, 1))
    for factors in asked:
        sums = np.abs(drawn @ np.array(factors))
        noise = CombinedNoise(law, factors, 1)
        for level in (0.5, 0.95, 0.99):
            a = noise.quantile(level)
            spread = 5 * math.sqrt(level * (1 - level) / n)
            assert (sums <= a).mean() >= level - spread
            least = (sums <= a * 0.98 - 1).mean()
            assert least <= level + spread


@pytest.mark.parametrize("name", WIDE)
def test_fourth_cumulants_are_those_of_what_is_drawn(name: str) -> None:
    law = wide(name)
    drawn = draw_noise(law.kernel_law, 200_000, Seeded(8)) / np.sqrt(law.variances())
    for place in range(len(law.widths)):
        along = np.zeros(len(law.widths))
        along[place] = 1.0 / math.sqrt(law.variances()[place])
        cumulants = law.cumulants_of_sum(along)
        assert cumulants is not None
        assert cumulants[0] == pytest.approx(1.0)
        found = float((drawn[:, place] ** 4).mean() - 3 * (drawn[:, place] ** 2).mean() ** 2)
        assert found == pytest.approx(cumulants[1], rel=0.2, abs=0.15)


@pytest.mark.parametrize("factors", [(1, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 1), (2, 0, 0, 1)])
def test_oddness_is_that_of_what_is_drawn(factors: tuple[int, ...]) -> None:
    law = DiscreteHull.around(DiscreteBox.for_pure((1, 64, 4096, 2), 1, Fraction(5)), ONE)
    drawn = draw_noise(law.kernel_law, 100_000, Seeded(4)) @ np.array(factors)
    assert law.oddness_of_sum(factors) == pytest.approx((drawn % 2).mean(), abs=0.01)


def test_sums_of_even_parts_are_never_odd() -> None:
    law = DiscreteHull.around(DiscreteBox.for_pure((1, 64, 4096, 2), 1, Fraction(5)), ONE)
    assert law.oddness_of_sum((2, 0, 0, 4)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("radius", [0.0, 1.0, 7.0])
def test_a_number_beside_the_arches_has_the_cumulants_of_a_uniform_one(radius: float) -> None:
    """From -2 times the radius to 2 times, by adding up."""
    law = DiscreteHull(Fraction(1), (1, 3, 9, 2), 1, 1, ONE)
    found = _cumulants_at(law.hull, 3, np.array([radius]))
    values = np.arange(-2.0 * radius, 2.0 * radius + 1.0)
    second = (values**2).mean()
    exact = [0.0, second, 0.0, (values**4).mean() - 3 * second**2]
    assert [cumulant.item() for cumulant in found] == pytest.approx(exact)


def test_sums_that_are_not_known_are_refused() -> None:
    law = wide("beside")
    for factors in [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (0, 1, 0, 0, 0), (1, 0, 0)]:
        with pytest.raises(ValueError, match="number"):
            CombinedNoise(law, factors, 1)
    with pytest.raises(ValueError, match="arches"):
        DiscreteHull(Fraction(1), (1, 2, 3), 1, 1, ())


@pytest.mark.parametrize("rows", [1, 3])
def test_costs_are_those_of_the_box(rows: int) -> None:
    box = DiscreteBox.for_pure((1, 64, 4096), rows, Fraction(2))
    law = DiscreteHull.around(box, ONE)
    assert law.whole_epsilon == law.epsilon_cost(EXPOSURE) == box.whole_epsilon
    assert law.rho_cost(EXPOSURE) == box.rho_cost(EXPOSURE)
    assert law.mu_squared_cost(EXPOSURE) == box.mu_squared_cost(EXPOSURE)
    assert law.events(EXPOSURE) == box.events(EXPOSURE)
    assert law.log_noise(1) < box.log_noise(1)


def test_it_is_chosen_where_there_are_arches() -> None:
    assert DiscreteHull in VECTORS
    assert DiscreteHull in MECHANISMS
    widths = (1, 64, 4096)
    for share in (PureDP(1), ApproxDP(1, "1e-6"), ZCDP("0.1")):
        task = AdditiveTask("x", MOVED, "auto", Box(widths, 2, ONE))
        choice = DiscreteHull.fit(task, share)
        assert choice is not None
        assert isinstance(choice.law, DiscreteHull)
        assert DiscreteBox.fit(task, share) is None
        assert choice.law.covers(Box(widths, 2, ONE))
        assert not choice.law.covers(Box(widths, 2))
        assert not choice.law.covers(Box(widths, 2, ((0, 2, 1),)))
        assert choice.cost.main <= share.main
        plain = AdditiveTask("x", MOVED, "auto", Box(widths, 2))
        assert DiscreteHull.fit(plain, share) is None
        box = DiscreteBox.fit(plain, share)
        assert box is not None
        assert isinstance(box.law, DiscreteBox)
        assert not box.law.covers(Box(widths, 2, ONE))
        assert box.cost == choice.cost


def test_it_can_be_written_and_read() -> None:
    law = wide("two")
    assert codec.decode(DiscreteHull, codec.encode(law), "law") == law
