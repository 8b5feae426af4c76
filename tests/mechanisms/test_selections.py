"""The exponential mechanism and permute-and-flip: laws, privacy by enumeration, accuracy, cost."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.sensitivity import ScoreRange
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import Exponential, PermuteAndFlip
from dpframe.mechanisms.noise import choose_each, choose_points, choose_top_each
from tests.mechanisms.laws import exponential_law, flip_law

one = Fraction(1)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_pure_scale_is_range_over_epsilon(kind: type[Exponential] | type[PermuteAndFlip]) -> None:
    mechanism = kind.for_pure(Fraction(2), Fraction("0.1"))
    assert mechanism.scale == 20
    assert mechanism.epsilon(Fraction(2)) == Fraction(1, 10)
    assert mechanism.name in ("exponential", "permute_and_flip")


def test_zcdp_cost() -> None:
    # Cesar-Rogers 2021 / Rogers-Steinke: eps-bounded-range => eps^2/8-zCDP
    mechanism = Exponential.for_pure(Fraction(2), Fraction("0.1"))
    assert mechanism.rho(Fraction(4)) == Fraction("0.00125")
    # permute-and-flip has no such discount (Bun-Steinke 2016: epsilon**2 / 2)
    assert PermuteAndFlip(mechanism.scale).rho(Fraction(2)) == Fraction("0.005")


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_all_of_rho_is_spent(kind: type[Exponential] | type[PermuteAndFlip]) -> None:
    """Of a choice in two groups, by what its measure counts."""
    moved = ScoreRange(Fraction(6), Fraction(18), Fraction(3))
    for rho in (Fraction(1, 8), Fraction(2), Fraction(1, 3)):
        law = kind.for_rho(moved, rho)
        spent = law.rho(moved.l2_squared if isinstance(law, Exponential) else moved.l1)
        assert rho * Fraction(999_999, 1_000_000) <= spent <= rho


@pytest.mark.parametrize("rho", ["0.00125", "0.1", "1/3", "7", "1e-12"])
def test_zcdp_scale_never_costs_more(rho: str) -> None:
    asked = Fraction(rho)
    cost = Exponential.for_zcdp(Fraction(3), asked).rho(Fraction(3))
    assert asked * (1 - Fraction(1, 2**60)) <= cost <= asked
    assert Exponential.for_zcdp(Fraction(4), Fraction("0.00125")).scale == 20


@pytest.mark.parametrize(
    ("kind", "scale", "expected"),
    [
        # McSherry-Talwar 2007: p ~ exp(eps u/(2D)); diffprivlib Exponential agrees
        ("em", 2, [0.1863237232258476, 0.3071958857184984, 0.506480391055654]),
        # p ~ exp(eps u/D), monotonic
        ("em", 1, [0.09003057317038046, 0.24472847105479764, 0.6652409557748219]),
        # McKenna-Sheldon 2020; == report-noisy-max with Exponential(2D/eps) noise (Ding et al.)
        ("pf", 2, [0.14675136056098287, 0.2660769698315784, 0.5871716696074387]),
    ],
)
def test_selection_follows_the_reference_law(kind: str, scale: int, expected: list[float]) -> None:
    """3000 choices; frequencies within 7 standard deviations, 3e-12 each by chance."""
    scores, n = np.array([0, 1, 2], np.int64), 3000
    mechanism = (Exponential if kind == "em" else PermuteAndFlip)(Fraction(scale))
    counts = np.bincount(choose_each(mechanism.kernel_law, np.tile(scores, (n, 1))), minlength=3)
    law = np.array(expected)
    assert np.all(np.abs(counts - n * law) <= 7 * np.sqrt(n * law * (1 - law)))


@pytest.mark.parametrize("law", [exponential_law, flip_law])
@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 1, 5], [3, 3, 2, -4], [0, 7]])
def test_cost_is_range_over_scale_whatever_the_change(law, scores) -> None:  # type: ignore[no-untyped-def]
    """Every change of every score, of both signs: no probability moves by more than exp(range)."""
    scale = 1.7
    before = law(scores, scale)
    for change in product((-2, -1, 0, 1), repeat=len(scores)):
        after = law([s + c for s, c in zip(scores, change, strict=True)], scale)
        allowed = (max(change) - min(change)) / scale
        for p, q in zip(before, after, strict=True):
            assert abs(math.log(p / q)) <= allowed + 1e-9


def test_laws_of_what_appears_choose_nothing() -> None:
    with pytest.raises(kernel.Refused, match="a choice cannot be drawn by the law Geometric"):
        choose_top_each(kernel.Geometric(one, one / 9), np.zeros((2, 3), np.int64), 2)


def test_permute_and_flip_has_no_zcdp_discount() -> None:
    """Two candidates, gap 0 then r: the Kullback-Leibler divergence is near epsilon**2 / 2."""
    r = 0.05
    p, q = flip_law([0, 0], 1.0), flip_law([r, 0], 1.0)
    divergence = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert divergence > 0.9 * r**2 / 2
    assert divergence > 3 * float(Exponential(one).rho(Fraction(r) ** 2))


@pytest.mark.parametrize("alpha", [1.1, 2.0, 5.0, 50.0])
@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0])
def test_bounded_range_price_of_the_exponential_mechanism(alpha: float, eta: float) -> None:
    """Renyi divergences of order alpha are at most alpha rho, for moves of a whole range."""
    rho = float(Exponential(one).rho(Fraction(eta) ** 2))
    for base in np.linspace(-8, 8, 33):  # log odds of the candidate that moves
        p, q = (1 / (1 + math.exp(-x)) for x in (base, base + eta))
        for a, b in ((p, q), (q, p)):
            moment = a**alpha * b ** (1 - alpha) + (1 - a) ** alpha * (1 - b) ** (1 - alpha)
            assert math.log(moment) / (alpha - 1) <= alpha * rho * (1 + 1e-9)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("scores", [[0, 0, 0, 0], [9, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1], [0, -50]])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_accuracy_holds(kind, scores: list[int], confidence: float) -> None:  # type: ignore[no-untyped-def]
    mechanism = kind(Fraction(3, 2))
    law = (exponential_law if kind is Exponential else flip_law)([float(s) for s in scores], 1.5)
    within = mechanism.accuracy(confidence, len(scores))
    reached = sum(p for s, p in zip(scores, law, strict=True) if max(scores) - s <= within)
    assert reached >= confidence


def test_accuracy_values() -> None:
    # McSherry-Talwar: scale * ln(candidates / (1 - confidence))
    assert Exponential(Fraction(2)).accuracy(0.95, 100) == pytest.approx(2 * math.log(2000))
    assert PermuteAndFlip(Fraction(2)).accuracy(0.95, 101) == pytest.approx(2 * math.log(1000))
    for n in (1, 2, 3, 1000):
        for confidence in (0.01, 0.5, 0.999):
            sharper = PermuteAndFlip(one).accuracy(confidence, n)
            assert 0.0 <= sharper <= Exponential(one).accuracy(confidence, n)
    assert Exponential(one).accuracy(0.95, 1) == 0.0
    with pytest.raises(InvalidBounds):
        Exponential(one).accuracy(1.0, 3)
    with pytest.raises(ValueError, match="candidate"):
        PermuteAndFlip(one).accuracy(0.9, 0)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_top_k_without_repetition_in_order(kind) -> None:  # type: ignore[no-untyped-def]
    scores = np.array([[0, 1000, 3000, 2000]], np.int64)
    law, flat = kind(one).kernel_law, kind(Fraction(10**9)).kernel_law
    assert choose_top_each(law, scores, 3).tolist() == [[2, 3, 1]]  # a gap of 1000 scales
    assert sorted(choose_top_each(flat, scores, 4)[0].tolist()) == [0, 1, 2, 3]
    for k in (0, 5):
        with pytest.raises(ValueError, match="choose"):
            choose_top_each(law, scores, k)


def test_a_point_of_a_run() -> None:
    scores, weights = np.array([0, 50, 7], np.int64), np.array([10**6, 3, 1], np.int64)
    sizes = np.array([2, 1])
    many = [np.tile(part, 300) for part in (scores, weights, sizes)]
    runs, points = choose_points(one, *many)
    assert (runs[::2] == 1 + 3 * np.arange(300)).all()  # e**50 against 1e6
    assert set(points[::2].tolist()) == {0, 1, 2}  # a miss of one: (2/3)**300
    assert (runs[1::2] == 2 + 3 * np.arange(300)).all()
    assert not points[1::2].any()


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_limits(kind) -> None:  # type: ignore[no-untyped-def]
    assert kind(Fraction(1, 10**6)).scale == Fraction(1, 1024)
    with pytest.raises(InvalidBudget, match="instead"):
        kind(Fraction(2**62 + 1))
    with pytest.raises(InvalidBudget):
        kind.for_pure(one, Fraction(0))
    with pytest.raises(ValueError, match="NoNoise"):
        kind.for_pure(Fraction(0), one)
    assert hash(kind(one)) == hash(kind(Fraction(1)))


@given(
    st.fractions("1/1000", 10**6, max_denominator=1000),
    st.fractions("1/10000", 100, max_denominator=10000),
)
def test_the_sharpest_exponential_choice_costs_just_its_rho(wide: Fraction, rho: Fraction) -> None:
    found = Exponential.for_zcdp(wide, rho).rho(wide)
    assert rho * (1 - Fraction(1, 2**60)) <= found <= rho
