"""The winners of a noisy table: private by all norms of the scores, and as near as it says."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import (
    AdditiveMechanism,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Exposure,
    NoisyTable,
    NoNoise,
    RoundedLaplace,
    SelectionTask,
)
from dpframe.mechanisms.noise import choose_each, choose_top_each
from dpframe.optimise.mechanisms import choose
from tests.score_ranges import of_one

Ranking = tuple[int, ...]
NOISES: tuple[AdditiveMechanism, ...] = (
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteGaussian(Fraction(9, 4)),
    DiscreteGaussian(Fraction(1, 3)),
)
REACH = 20


def weights_of(noise: AdditiveMechanism, reach: int) -> NDArray[np.float64]:
    """The probabilities of -reach to reach, from the law's own tails."""
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    return noise.above(places - 1) - noise.above(places)


@lru_cache(maxsize=4096)
def orders(scores: tuple[int, ...], noise: AdditiveMechanism) -> dict[Ranking, float]:
    """The exact law of the order of noisy scores, but for what lies beyond the reach."""
    size = len(scores)
    places = np.indices((2 * REACH + 1,) * size).reshape(size, -1).T
    chances = weights_of(noise, REACH)[places].prod(axis=1)
    found: dict[Ranking, float] = defaultdict(float)
    for order in itertools.permutations(range(size)):
        holds = np.ones(len(places), dtype=np.bool_)
        for i, j in pairwise(order):  # ties go to the one that is listed first
            holds &= places[:, i] + scores[i] + (i < j) > places[:, j] + scores[j]
        found[order] = float(chances[holds].sum())
    return found


def rankings(scores: Sequence[int], noise: AdditiveMechanism, k: int) -> dict[Ranking, float]:
    """The exact law of the winners."""
    found: dict[Ranking, float] = defaultdict(float)
    for order, chance in orders(tuple(scores), noise).items():
        found[order[:k]] += chance
    return found


def moves(l1: int, most: int, entries: int) -> Iterator[tuple[int, ...]]:
    """All changes of a table of scores within an L1 and an Linf norm."""
    for change in itertools.product(range(-most, most + 1), repeat=entries):
        if 0 < sum(map(abs, change)) <= l1:
            yield change


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("noise", NOISES[:2], ids=str)
@pytest.mark.parametrize(("l1", "most"), [(1, 1), (2, 1), (2, 2)])
def test_no_ranking_of_a_small_table_is_likelier_than_epsilon_allows(
    l1: int, most: int, noise: DiscreteLaplace, k: int
) -> None:
    """Over all tables of neighbours; and with two steps of an individual epsilon is reached."""
    exposure = Exposure(ExactSensitivity(3, Fraction(l1), Fraction(l1 * most), Fraction(most)))
    epsilon = NoisyTable(noise).epsilon_cost(exposure)
    assert epsilon == Fraction(l1) / noise.scale
    left = 3 * 2 * float(noise.above(np.array([float(REACH)]))[0])
    worst = 0.0
    for scores in ((0, 0, 0), (2, 1, 0), (0, 3, 3), (0, 2, 4)):
        before = rankings(scores, noise, k)
        for change in moves(l1, most, 3):
            after = rankings([s + c for s, c in zip(scores, change, strict=True)], noise, k)
            for ranking in before.keys() | after.keys():
                p, q = before[ranking], after[ranking]
                assert p <= math.exp(epsilon) * (q + left) + left
                if min(p, q) > 1e3 * left:
                    worst = max(worst, abs(math.log(p / q)))
    assert worst <= float(epsilon) * (1 + 1e-2)
    assert worst >= 0.5 * float(epsilon)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("noise", NOISES[2:], ids=str)
def test_rankings_of_neighbours_are_within_rho(noise: DiscreteGaussian, k: int) -> None:
    """Renyi divergences of order a are at most a rho, by L2."""
    for l1, most in ((1, 1), (2, 1), (2, 2)):
        squared = Fraction(l1 * most)
        exposure = Exposure(ExactSensitivity(3, Fraction(l1), squared, Fraction(most)))
        rho = float(NoisyTable(noise).rho_cost(exposure))
        assert rho == pytest.approx(float(squared / (2 * noise.sigma_squared)))
        for scores in ((0, 0, 0), (2, 1, 0)):
            before = rankings(scores, noise, k)
            for change in moves(l1, most, 3):
                after = rankings([s + c for s, c in zip(scores, change, strict=True)], noise, k)
                for order in (1.5, 2.0, 5.0):
                    total = sum(
                        p**order * after[r] ** (1 - order) for r, p in before.items() if p > 1e-9
                    )
                    assert math.log(total) / (order - 1) <= order * rho * (1 + 1e-6) + 1e-6


def test_one_who_moves_all_scores_is_not_covered_by_their_range() -> None:
    """What must not be: to charge by how far scores move apart, as one choice may."""
    noise = DiscreteLaplace(Fraction(2, 3))
    before, after = rankings((0, 0, 1), noise, 3), rankings((0, 2, 0), noise, 3)
    worst = max(abs(math.log(before[r] / after[r])) for r in before)
    assert worst > 2 / float(noise.scale)  # as if the largest move were all
    exposure = Exposure(
        ExactSensitivity(3, Fraction(3), Fraction(5), Fraction(2)), 1, (Fraction(3),), Fraction(3)
    )
    assert worst <= float(NoisyTable(noise).epsilon_cost(exposure) or 0)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("repeats", [1, 5])
def test_it_costs_what_its_noise_costs_however_many_win(
    noise: AdditiveMechanism, repeats: int
) -> None:
    sensitivity = ExactSensitivity(4, Fraction(4), Fraction(6), Fraction(2))
    once = Exposure(sensitivity)
    exposure = Exposure(sensitivity, repeats, (Fraction(1),), Fraction(1), Fraction(1))
    table = NoisyTable(noise)
    assert table.epsilon_cost(exposure) == noise.epsilon_cost(once)
    assert table.rho_cost(exposure) == noise.rho_cost(once)
    assert table.mu_squared_cost(exposure) == noise.mu_squared_cost(once)
    assert table.events(exposure) == noise.events(once)
    assert table.failure(exposure) == 0
    largest = Fraction(2**14)
    assert [*table.pairs(exposure, largest)] == [*noise.pairs(once, largest)]
    if noise.epsilon_cost(once) is None:
        price = Fraction(1)
        assert table.delta_at(price, exposure) == noise.delta_at(price, once)


def test_without_noise_it_is_none() -> None:
    with pytest.raises(ValueError, match="needs noise"):
        NoisyTable(NoNoise())


# ------------------------------------------------------------------------------------ how near


def chance_beyond(noise: AdditiveMechanism, a: int, reach: int) -> float:
    """P(x - y > a), added up."""
    weights = weights_of(noise, reach)
    apart = np.convolve(weights, weights[::-1])  # from -2 reach to 2 reach
    return float(apart[2 * reach + a + 1 :].sum())


@pytest.mark.parametrize(
    "noise",
    [
        *NOISES,
        DiscreteLaplace(Fraction(7)),
        DiscreteLaplace(Fraction(1, 20)),
        DiscreteGaussian(Fraction(17)),
        DiscreteGaussian(Fraction(1, 50)),
        RoundedLaplace(Fraction(3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("missed", ["0.6", "0.3", "0.05", "1e-3", "1e-6"])
def test_two_draws_are_apart_as_rarely_as_said(noise: AdditiveMechanism, missed: str) -> None:
    a, allowed = noise.apart(Fraction(missed)), float(Fraction(missed))
    assert chance_beyond(noise, a, 400) <= allowed * (1 + 1e-9)
    narrow = DiscreteGaussian(Fraction(1, 50))  # its bound is a factor too large
    if a and noise != narrow and not isinstance(noise, RoundedLaplace):
        factor = 1.0 if isinstance(noise, DiscreteLaplace) else 1.2
        assert chance_beyond(noise, a - 1, 400) * factor > allowed * (1 - 1e-9)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(900)), DiscreteGaussian(Fraction(900**2))]
)
@pytest.mark.parametrize("missed", [0.05, 1e-3, 1e-9])
def test_what_choices_rest_on_is_about_what_is_said(
    noise: AdditiveMechanism, missed: float
) -> None:
    found = math.exp(noise.log_apart(missed))
    assert found == pytest.approx(noise.apart(Fraction(missed)), rel=0.01)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_winners_are_as_near_the_best_of_those_left_as_said(
    noise: AdditiveMechanism, k: int
) -> None:
    """All at once, from the exact law of rankings."""
    table = NoisyTable(noise)
    for scores in ((0, 0, 0), (0, 1, 2), (4, 4, 0), (0, 3, 6)):
        law = rankings(scores, noise, k)
        for confidence in ("0.5", "0.8", "0.95"):
            within = table.accuracy_of(Fraction(confidence), 3, k, k)
            missed = 0.0
            for ranking, p in law.items():
                left = [max(scores[i] for i in set(range(3)) - {*ranking[:j]}) for j in range(k)]
                short = max(best - scores[i] for best, i in zip(left, ranking, strict=True))
                missed += p * (short > within)
            assert missed <= 1 - float(confidence) + 1e-9


def test_errors_are_those_of_all_groups_at_once_and_of_single_ones() -> None:
    table = NoisyTable(DiscreteLaplace(Fraction(50)))
    one = table.accuracy_of(Fraction(95, 100), 20, 4, 1)
    assert one == table.accuracy_of(Fraction(95, 100), 20, 4, 4)
    assert one < table.accuracy_of(Fraction(95, 100), 20, 4, 8)
    assert table.accuracy(Fraction(95, 100), 20) == table.accuracy_of(Fraction(95, 100), 20, 1, 1)
    assert table.accuracy(Fraction(95, 100), 20) < one
    assert table.accuracy_of(0.95, 1, 1, 1) == 0
    with pytest.raises(ValueError, match="candidate"):
        table.accuracy(0.95, 0)


# ------------------------------------------------------------------------------------ the draw


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2]], ids=str)
def test_rankings_are_drawn_as_often_as_they_should_be(noise: AdditiveMechanism) -> None:
    runs, scores = 40_000, np.array([1, 0, 2], dtype=np.int64)
    law = rankings(scores.tolist(), noise, 2)
    drawn = choose_top_each(NoisyTable(noise).kernel_law, np.tile(scores, (runs, 1)), 2)
    found: dict[Ranking, int] = defaultdict(int)
    for row in drawn.tolist():
        found[tuple(row)] += 1
    chi = sum((found[r] - runs * p) ** 2 / (runs * p) for r, p in law.items())
    assert chi < 30  # five degrees of freedom: one in 70,000


def test_ties_go_to_the_first_and_nothing_overflows() -> None:
    sharp = NoisyTable(DiscreteLaplace(Fraction(1, 1000))).kernel_law
    assert choose_top_each(sharp, np.array([[5, 7, 7, 5, 7]]), 4).tolist() == [[1, 2, 4, 0]]
    assert choose_each(sharp, np.array([[3, 3], [1, 2]])).tolist() == [0, 1]
    ends = np.array([-(2**63) + 2**40, 2**63 - 2**40, 0], dtype=np.int64)
    assert choose_top_each(sharp, ends.reshape(1, -1), 3).tolist() == [[1, 2, 0]]
    with pytest.raises(ValueError, match="cannot choose 3 of 2"):
        choose_top_each(sharp, np.array([[1, 2]]), 3)


# ---------------------------------------------------------------------------------- the choice


def task(k: int, l1: int, candidates: int = 42, mechanism: str = "auto") -> SelectionTask:
    sensitivity = ExactSensitivity(l1, Fraction(l1), Fraction(l1), Fraction(1))
    return SelectionTask("w", sensitivity, of_one(Fraction(1)), mechanism, k, False, candidates)


@pytest.mark.parametrize("share", [dp.PureDP(1), dp.ApproxDP(1, "1e-6"), dp.ZCDP("0.02")])
def test_several_winners_are_read_from_a_table_and_one_is_chosen(share: Budget) -> None:
    assert isinstance(choose(task(10, 1), share).law, NoisyTable)
    assert not isinstance(choose(task(1, 1), share).law, NoisyTable)
    assert isinstance(choose(task(1, 1, mechanism="noisy_table"), share).law, NoisyTable)
    assert isinstance(choose(task(10, 1, mechanism="exponential"), share).law, Exponential)


@pytest.mark.parametrize("share", [dp.PureDP(1), dp.ZCDP("0.02")])
def test_choices_are_kept_where_an_individual_moves_many_scores(
    share: Budget,
) -> None:
    assert not isinstance(choose(task(3, 42), share).law, NoisyTable)


def test_noise_is_by_the_norm_that_errs_less() -> None:
    by_l1 = choose(task(3, 1), dp.ApproxDP(1, "1e-6"))
    by_l2 = choose(task(40, 30), dp.ApproxDP(1, "1e-6"))
    assert isinstance(by_l1.law, NoisyTable)
    assert isinstance(by_l1.law.noise, DiscreteLaplace)
    assert by_l1.cost.slack == 0
    assert isinstance(by_l2.law, NoisyTable)
    assert isinstance(by_l2.law.noise, DiscreteGaussian)
    assert by_l2.cost.slack > 0
    assert "by L2, errs less than 40 choices" in by_l2.reason


def test_scores_that_move_too_far_for_noise_leave_choices() -> None:
    wide = Fraction(2**80)
    asked = SelectionTask(
        "w",
        ExactSensitivity(1, wide, wide**2, wide),
        of_one(Fraction(1)),
        "auto",
        5,
        False,
        9,
    )
    assert not isinstance(choose(asked, dp.PureDP(1)).law, NoisyTable)
