"""Discrete box noise: what it costs, by exact probabilities, and how wide it is, by exact sums."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.accounting.accountant import zcdp_rho
from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import InvalidBudget
from dpframe.mechanisms import (
    MECHANISMS,
    VECTORS,
    AdditiveTask,
    Box,
    DiscreteBox,
    DiscreteHull,
    Exposure,
)
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.mechanisms.pure_rho import pure_rho
from dpframe.plan import codec
from tests.samplers.seeded import Seeded

MOVED = ExactSensitivity(2, Fraction(2), Fraction(2), Fraction(1))
EXPOSURE = Exposure(MOVED)
LAWS = [
    DiscreteBox(Fraction(1), (1, 1), 1, 1),
    DiscreteBox(Fraction(7, 10), (1, 3), 4, 1),
    DiscreteBox(Fraction(13, 10), (2, 5), 8, 1),
    DiscreteBox(Fraction(1), (3,), 2, 1),
    DiscreteBox(Fraction(2), (1, 1, 2), 2, 1),
    DiscreteBox(Fraction(1, 2), (1, 1, 1), 1, 1),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.widths}/{law.fineness}")


def least_radius(law: DiscreteBox, z: tuple[int, ...]) -> int:
    """N(z), by definition."""
    radius = 0
    while any(abs(x) > radius * w // law.fineness for x, w in zip(z, law.widths, strict=True)):
        radius += 1
    return radius


def probability(law: DiscreteBox, z: tuple[int, ...]) -> float:
    """P(z), by the radius from which it may have come: what the sampler draws."""
    rate = float(law.epsilon) / law.fineness
    first = least_radius(law, z)
    far = first + int((60 + 20 * len(law.widths)) / rate)
    return math.fsum(math.exp(-rate * r) for r in range(first, far)) / total(law)


TOTALS: dict[DiscreteBox, float] = {}


def total(law: DiscreteBox) -> float:
    """The sum of exp(-rate R) V(R)."""
    if law not in TOTALS:
        rate = float(law.epsilon) / law.fineness
        far = int((60 + 20 * len(law.widths)) / rate)
        TOTALS[law] = math.fsum(math.exp(-rate * r) * volume(law, r) for r in range(far))
    return TOTALS[law]


def volume(law: DiscreteBox, radius: int) -> int:
    return math.prod(2 * (radius * w // law.fineness) + 1 for w in law.widths)


def grid(law: DiscreteBox, times: int) -> list[tuple[int, ...]]:
    return list(product(*(range(-times * w, times * w + 1) for w in law.widths)))


@each_law
@pytest.mark.parametrize("rows", [1, 2])
def test_no_move_of_so_many_rows_changes_probabilities_by_more_than_they_cost(
    law: DiscreteBox, rows: int
) -> None:
    """ln P(z) is -epsilon N(z) / fineness, so exactly: all vectors of a grid, all moves."""
    moves = grid(law, rows)
    if len(moves) > 400:
        moves = [
            tuple(rows * w * s for w, s in zip(law.widths, signs, strict=True))
            for signs in product((-1, 0, 1), repeat=len(law.widths))
        ]
    worst = 0
    least: dict[tuple[int, ...], int] = {}
    for z in grid(law, 2):
        for v in moves:
            moved = tuple(x + y for x, y in zip(z, v, strict=True))
            for point in (z, moved):
                if point not in least:
                    least[point] = least_radius(law, point)
            worst = max(worst, abs(least[moved] - least[z]))
    assert worst == rows * law.fineness


@each_law
def test_what_is_drawn_has_these_probabilities(law: DiscreteBox) -> None:
    """The chain of radius and coordinates gives exp(-epsilon N / fineness), and they add up."""
    rate = float(law.epsilon) / law.fineness
    origin = probability(law, (0,) * len(law.widths))
    for z in grid(law, 1):
        ratio = probability(law, z) / origin
        assert ratio == pytest.approx(math.exp(-rate * least_radius(law, z)), rel=1e-9)
    if len(law.widths) < 3:
        whole = grid(law, int(24 / law.epsilon) // len(law.widths))
        shells = np.bincount([least_radius(law, z) for z in whole])
        added = origin * float(shells @ np.exp(-rate * np.arange(shells.size)))
        assert added == pytest.approx(1, rel=1e-3)


@st.composite
def moved_vectors(draw: st.DrawFn) -> tuple[DiscreteBox, tuple[int, ...], list[tuple[int, ...]]]:
    """A law, a vector, and what each of some rows adds to it or takes from it."""
    widths = tuple(draw(st.lists(st.integers(1, 70), min_size=1, max_size=5)))
    fineness = 1 << draw(st.integers(0, 8))
    law = DiscreteBox(Fraction(1), widths, fineness, 4)
    z = tuple(draw(st.integers(-5 * w, 5 * w)) for w in widths)
    rows = draw(st.integers(1, 4))
    moves = [tuple(draw(st.integers(-w, w)) for w in widths) for _ in range(rows)]
    return law, z, moves


@given(moved_vectors())
def test_rows_move_the_least_radius_by_fineness_each(
    case: tuple[DiscreteBox, tuple[int, ...], list[tuple[int, ...]]],
) -> None:
    law, z, moves = case
    moved = tuple(sum(column) for column in zip(z, *moves, strict=True))
    apart = abs(least_radius(law, moved) - least_radius(law, z))
    assert apart <= len(moves) * law.fineness
    assert Fraction(apart, law.fineness) * law.epsilon <= law.whole_epsilon


def test_rows_that_are_centred_on_the_count_cost_epsilon() -> None:
    """A row adds 1 to n and 2 c - 1 to 2 C - n, c from 0 to 1 in whole steps of its width."""
    law = DiscreteBox(Fraction(3, 2), (1, 1, 4), 8, 1)
    rows = [(1, 2 * c - 1, 2 * x - 4) for c in (0, 1) for x in range(5)]
    worst = 0
    for z in grid(law, 2):
        for row in rows:
            moved = tuple(x + y for x, y in zip(z, row, strict=True))
            worst = max(worst, abs(least_radius(law, moved) - least_radius(law, z)))
    assert worst == law.fineness


def test_a_wrong_centre_under_change_one_costs_twice_as_much() -> None:
    """A row that changes moves n not at all and 2 C - n by twice its width: outside the box."""
    law = DiscreteBox(Fraction(1), (1, 1), 1, 1)
    assert least_radius(law, (0, 2)) == 2 * law.fineness


def test_rows_in_several_groups_cost_their_sum() -> None:
    """Two independent vectors, one row in each: the ratio of products."""
    law = DiscreteBox(Fraction(1, 2), (1, 2), 2, 2)
    ends = [
        max(
            abs(least_radius(law, tuple(np.add(z, v))) - least_radius(law, z)) for z in grid(law, 2)
        )
        for v in ((1, 2), (-1, 1))
    ]
    assert sum(ends) * law.epsilon / law.fineness == law.whole_epsilon == law.epsilon_cost(EXPOSURE)


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/3", "1", "7.5", "10000"])
@pytest.mark.parametrize("widths", [(1,), (1, 1, 1), (1, 2**30), (1, 60, 2**31), (5,) * 64])
def test_for_pure_spends_all_of_it(widths: tuple[int, ...], epsilon: str) -> None:
    law = DiscreteBox.for_pure(widths, 3, Fraction(epsilon))
    assert law.whole_epsilon == Fraction(epsilon) == law.epsilon_cost(EXPOSURE)
    assert law.rows == 3
    assert law.fineness >= 1
    assert law.fineness & (law.fineness - 1) == 0
    assert draw_noise(law.kernel_law, 3).shape == (3, len(widths))


@pytest.mark.parametrize("epsilon", ["1/100", "1", "10"])
@pytest.mark.parametrize("widths", [(1, 3), (3, 5), (1, 2**30), (7, 7), (1, 60, 2**30)])
def test_coarseness_costs_less_than_a_thousandth(widths: tuple[int, ...], epsilon: str) -> None:
    law = DiscreteBox.for_pure(widths, 1, Fraction(epsilon))
    finer = DiscreteBox(law.epsilon, widths, law.fineness * 64, 1)
    for ours, best in zip(law.variances(), finer.variances(), strict=True):
        assert math.sqrt(ours) <= math.sqrt(best) * 1.001


@pytest.mark.parametrize("d", [1, 2, 3, 10, 64])
def test_deviations_are_near_the_continuous_limit(d: int) -> None:
    widths = (1 << 20, *[1000 + i for i in range(d - 1)])
    law = DiscreteBox.for_pure(widths, 1, Fraction(1, 2))
    for width, variance in zip(widths, law.variances(), strict=True):
        limit = 2 * width * math.sqrt((d + 1) * (d + 2) / 3)
        assert math.sqrt(variance) == pytest.approx(limit, rel=2e-3)


@each_law
def test_variances_are_those_of_the_sums(law: DiscreteBox) -> None:
    rate = float(law.epsilon) / law.fineness
    far = int((60 + 20 * len(law.widths)) / rate)
    for width, variance in zip(law.widths, law.variances(), strict=True):
        halves = [r * width // law.fineness for r in range(far)]
        exact = math.fsum(
            math.exp(-rate * r) * volume(law, r) * h * (h + 1) / 3 for r, h in enumerate(halves)
        )
        assert variance == pytest.approx(exact / total(law), rel=1e-6)
    assert law.log_noise(1) == pytest.approx(
        sum(math.log(v) for v in law.variances()) / 2 / len(law.widths)
    )


@pytest.mark.parametrize("epsilon", ["1/1000", "1", "50"])
@pytest.mark.parametrize("widths", [(1,), (1, 1, 1), (3, 7), (1, 60, 2**30), (2,) * 20])
@pytest.mark.parametrize("miss", [0.1, 1e-9])
def test_the_law_of_the_radius_is_a_little_too_wide(
    widths: tuple[int, ...], epsilon: str, miss: float
) -> None:
    law = DiscreteBox.for_pure(widths, 1, Fraction(epsilon))
    radii, weights = law.radius_law(miss)
    assert radii.size == weights.size <= 200
    assert 1 - miss <= weights.sum() <= 1 + 1e-9
    assert (np.diff(radii) > 0).all()
    fine = law.radii(64)
    for share in (0.2, 0.5, 0.85, min(0.95, 1 - 1.5 * miss)):
        exact = fine.last[np.searchsorted(np.cumsum(fine.weights), share)]
        ours = radii[np.searchsorted(np.cumsum(weights), share)]
        assert ours >= exact
    squares = [
        float((np.floor(r * widths[-1] / law.fineness) ** 2) @ w)
        for r, w in ((radii, weights), (fine.last, fine.weights))
    ]
    if miss < 1e-3 and squares[1] > 1:
        assert squares[1] * (1 - 1e-6) <= squares[0] <= squares[1] * 1.05


def test_a_radius_of_0_that_is_likely_is_a_group_by_itself() -> None:
    law = DiscreteBox(Fraction(1, 4), (1,), 1, 1)
    radii, weights = law.radius_law(1e-30)
    assert radii.size <= 200
    assert radii[0] == 0
    assert weights[0] == pytest.approx(math.expm1(-0.25) ** 2 / (1 + math.exp(-0.25)), rel=1e-9)


def test_draws_have_the_variances() -> None:
    law = DiscreteBox.for_pure((1, 60, 2**30), 1, Fraction(1, 2))
    drawn = draw_noise(law.kernel_law, 20_000, Seeded(4)).astype(float)
    assert drawn.var(axis=0) == pytest.approx(law.variances(), rel=0.1)
    rest = np.corrcoef(drawn.T)[np.triu_indices(3, 1)]
    assert np.abs(rest).max() < 0.05


# -- what it costs --------------------------------------------------------------------------------


def test_costs_are_those_of_any_mechanism_of_its_epsilon() -> None:
    law = DiscreteBox(Fraction(1, 4), (1, 1), 1, 4)
    assert law.rho_cost(EXPOSURE) == pure_rho(Fraction(1))
    (event,) = law.events(EXPOSURE)
    assert zcdp_rho(event) <= Fraction(1, 2)
    assert zcdp_rho(event) >= law.rho_cost(EXPOSURE)
    mu_squared = law.mu_squared_cost(EXPOSURE)
    assert mu_squared is not None
    assert mu_squared > 0
    assert law.failure(EXPOSURE) == 0
    assert len([*law.pairs(EXPOSURE, Fraction(1))]) == 1


@pytest.mark.parametrize("law", LAWS[:2], ids=lambda law: f"{law.widths}/{law.fineness}")
def test_divergences_stay_below_rho(law: DiscreteBox) -> None:
    """Renyi divergences of the law and the law moved by one row, by adding up."""
    rho = float(law.rho)
    points = grid(law, int(24 / law.epsilon) // len(law.widths))
    logs = {z: -float(law.epsilon) * least_radius(law, z) / law.fineness for z in points}
    for signs in product((0, 1), repeat=len(law.widths)):
        pairs = []
        for z in points:
            moved = tuple(x + s * w for x, s, w in zip(z, signs, law.widths, strict=True))
            if moved in logs:
                pairs.append((logs[z], logs[moved]))
        p, q = np.array(pairs).T
        whole = np.log(np.exp(p).sum())
        for alpha in (1.001, 1.5, 2.0, 5.0, 30.0):
            found = math.log(float(np.exp(alpha * p + (1 - alpha) * q - whole).sum())) / (alpha - 1)
            assert found <= rho * alpha + 1e-6


@pytest.mark.parametrize("rho", ["1/1000000", "0.02436", "1", "30", "5000"])
def test_for_zcdp_spends_nearly_all_of_it(rho: str) -> None:
    law = DiscreteBox.for_zcdp((1, 5), 3, Fraction(rho))
    assert Fraction(rho) * (1 - Fraction(1, 2**30)) <= law.rho <= Fraction(rho)


def test_fitted_in_each_measure() -> None:
    box = Box((1, 60), 2)
    task, without = AdditiveTask("n", MOVED, box=box), AdditiveTask("n", MOVED)
    for share in (PureDP(1), ApproxDP(1, "1e-6"), ZCDP("0.5")):
        choice = DiscreteBox.fit(task, share)
        assert choice is not None
        assert isinstance(choice.law, DiscreteBox)
        assert share.covers(choice.cost)
        assert choice.cost.main >= share.main * (1 - Fraction(1, 2**30))
        assert choice.cost.slack == 0
        assert choice.law.widths == box.widths
        assert choice.law.rows == box.rows
        assert DiscreteBox.fit(without, share) is None
    assert (DiscreteHull, DiscreteBox) == VECTORS
    assert DiscreteBox in MECHANISMS


# -- parameters and documents ---------------------------------------------------------------------


def test_what_people_read() -> None:
    law = DiscreteBox(Fraction(1, 2), (1, 60), 8, 1)
    assert law.shown_scale(Fraction(1, 10)) == 12.0
    assert law.details() == "one draw for 2 numbers"
    assert DiscreteBox(Fraction(1, 2), (1,), 8, 1).details() == ""
    assert law.name == "discrete_box"


def test_plans_hold_it() -> None:
    law = DiscreteBox(Fraction(1, 3), (1, 60), 8, 5)
    written = codec.encode(law)
    assert written == {
        "kind": "DiscreteBox",
        "epsilon": "1/3",
        "widths": [1, 60],
        "fineness": 8,
        "rows": 5,
    }
    assert codec.decode(DiscreteBox, written, "") == law
    for wrong in ({"fineness": 3}, {"widths": []}, {"widths": [0]}, {"rows": 0}, {"epsilon": "-1"}):
        with pytest.raises(codec.Malformed):
            codec.decode(DiscreteBox, {**written, **wrong}, "")


def test_parameters() -> None:
    one = Fraction(1)
    for epsilon, widths, fineness, rows in (
        (0, (1,), 1, 1),
        (one, (), 1, 1),
        (one, (1,) * 65, 1, 1),
        (one, (0,), 1, 1),
        (one, (2**32 + 1,), 1, 1),
        (one, (True,), 1, 1),
        (one, (1,), 6, 1),
        (one, (1,), 2**31, 1),
        (one, (1,), 1, 0),
        (0.5, (1,), 1, 1),
    ):
        with pytest.raises(ValueError, match=r"epsilon|width|fineness|row"):
            DiscreteBox(epsilon, widths, fineness, rows)  # type: ignore[arg-type]
    with pytest.raises(InvalidBudget, match="more than can be drawn"):
        DiscreteBox.for_pure((2**30,), 1, Fraction(1, 2**25))
    assert DiscreteBox(Fraction(10**6), (1,), 1, 1).epsilon == 2**14
    digits = Fraction(7**300, 3 * 7**300 + 1)
    short = DiscreteBox(digits, (1,), 1, 1).epsilon
    assert digits * (1 - Fraction(1, 2**60)) <= short <= digits
    assert short.denominator.bit_length() < 200
