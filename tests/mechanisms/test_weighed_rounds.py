"""Rounds of thresholds of weights: laws of whole results of small neighbouring frames over all that
earlier rounds may find, and costs as accountants count them.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from dpframe import accounting
from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.units import parts_in_each
from dpframe.errors import MissingKeys
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import (
    DiscreteGaussian,
    Exposure,
    KeyTask,
    WeighedRounds,
    WeighedThreshold,
)
from dpframe.mechanisms import (
    groups as weighed_rounds,
)
from tests.mechanisms.test_weighed_threshold import divergence, masses

Law = dict[object, float]
ONE = ExactSensitivity(256, Fraction(16 * PARTS), Fraction(PARTS**2), Fraction(PARTS))


def task(rounds: int) -> KeyTask:
    return KeyTask("g", ONE, 256, PARTS, rounds)


@cache
def appears(law: WeighedThreshold, total: int) -> float:
    """How likely a group with such a sum appears; one without any never does."""
    assert isinstance(law.noise, DiscreteGaussian)
    noise = masses(law.noise.sigma_squared, 13 * math.ceil(law.noise.sigma_squared**0.5))
    return math.fsum(p for x, p in noise.items() if total > 0 and total + x >= law.threshold)


def results(law: WeighedRounds, others: tuple[int, ...], there: bool) -> Law:
    """Exact probabilities of which groups each round finds, where others make so much in each, with
    an individual in all of them or without it; it weighs more the fewer are left.
    """
    every = tuple(range(len(others)))
    left: dict[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], float]] = {(): (every, 1.0)}
    for rule in law.in_rounds:
        after = defaultdict[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], float]]()
        for found, (groups, chance) in left.items():
            own = parts_in_each(law.norm, len(groups)) if there and groups else 0
            each = {g: appears(rule, others[g] + own) for g in groups}
            for new in itertools.chain.from_iterable(
                itertools.combinations(groups, n) for n in range(len(groups) + 1)
            ):
                rest = tuple(g for g in groups if g not in new)
                p = math.prod([each[g] for g in new] + [1 - each[g] for g in rest])
                after[(*found, new)] = rest, chance * p
        left = after
    return {found: chance for found, (_, chance) in left.items()}


@pytest.mark.parametrize("slack", [Fraction(1, 4), Fraction(1, 50), Fraction(1, 10**4)])
@pytest.mark.parametrize("shares", [(1, 8), (1, 2, 4), (3, 1)])
def test_results_of_neighbours_are_as_close_as_is_claimed(
    slack: Fraction, shares: tuple[int, ...]
) -> None:
    """Groups of nobody else, and others around the thresholds of both rounds, in both directions:
    what a later round weighs follows from what was found, which differs from case to case.
    """
    most = 2 if len(shares) > 2 else 3
    law = WeighedRounds.over(DiscreteGaussian(Fraction(9)), shares, 5, most, slack)
    first, last = law.thresholds[0], law.thresholds[-1]
    near = [0, max(1, last - 3), last + 2, max(1, first - 4)]
    norms = ExactSensitivity(most, Fraction(5 * most), Fraction(25), Fraction(5))
    furthest = 0.0
    for t in range(1, most + 1):
        for others in itertools.combinations_with_replacement(near, t):
            without, having = results(law, others, False), results(law, others, True)
            assert math.isclose(sum(without.values()), 1)
            assert math.isclose(sum(having.values()), 1)
            for epsilon in ("0.1", "1", "3"):
                allowed = float(law.delta_at(Fraction(epsilon), Exposure(norms, most)))
                found = [
                    divergence(one, other, float(epsilon))
                    for one, other in ((having, without), (without, having))
                ]
                assert max(found) <= allowed + 1e-12, (others, epsilon)
                if not any(others):
                    furthest = max(furthest, max(found) / float(slack))
    assert 0.05 < furthest <= 1


@pytest.mark.parametrize("place", [0, 1])
def test_a_lower_threshold_is_refused(place: int) -> None:
    law = WeighedRounds.over(DiscreteGaussian(Fraction(9)), (1, 8), 5, 3, Fraction(1, 50))
    lower = list(law.thresholds)
    lower[place] -= 1
    with pytest.raises(ValueError, match="too often"):
        replace(law, thresholds=tuple(lower))
    whole = [WeighedThreshold.over(r.noise, 5, 3, law.slack, alone=True) for r in law.in_rounds]
    with pytest.raises(ValueError, match="too often"):  # the slack of all rounds for each
        replace(law, thresholds=tuple(rule.threshold for rule in whole))


@pytest.mark.parametrize(
    ("shares", "thresholds", "most"),
    [
        ((1,), (99,), 3),
        ((1, 8), (99,), 3),
        ((0, 8), (99, 99), 3),
        ((), (), 3),
        ((1, 8), (99, 99), 13),
    ],
)
def test_what_are_no_rounds_is_refused(
    shares: tuple[int, ...], thresholds: tuple[int, ...], most: int
) -> None:
    with pytest.raises(ValueError, match=r"no rounds|more sums"):
        WeighedRounds(DiscreteGaussian(Fraction(9)), shares, thresholds, Fraction(1, 9), 5, most)


@pytest.mark.parametrize("rounds", [2, 3, 4])
@pytest.mark.parametrize(
    "share", [ApproxDP(1, "1e-6"), ApproxDP("0.1", "1e-9"), ApproxDP(8, "0.1")]
)
def test_rounds_cost_what_a_plan_of_them_does(rounds: int, share: ApproxDP) -> None:
    """By privacy loss distributions of all draws, of which the stated delta knows nothing."""
    choice = WeighedRounds.fit(task(rounds), share)
    assert choice is not None
    law, exposure = choice.law, task(rounds).exposure
    assert isinstance(law, WeighedRounds)
    stated = law.delta_at(share.main, exposure)
    assert stated <= share.slack
    assert law.slack == share.slack / 2
    counted = accounting.PrivacyLossAccountant(law.events(exposure)).delta(share.main)
    assert counted <= float(stated) * (1 + 1e-5)
    assert counted >= float(share.slack) * 0.99
    assert law.epsilon_cost(exposure) is None
    assert law.delta(257) == 1


def test_rounds_cost_their_sum_in_rho() -> None:
    share = ZCDP("0.1", "1e-6")
    choice = WeighedRounds.fit(task(3), share)
    assert choice is not None
    law, exposure = choice.law, task(3).exposure
    assert isinstance(law, WeighedRounds)
    each = [rule.rho_cost(exposure) for rule in law.in_rounds]
    assert sum(each) == law.rho_cost(exposure) == share.main
    assert [cost / each[0] for cost in each] == [1, 8, 64]
    assert sum(rule.slack for rule in law.in_rounds) == law.failure(exposure) == share.slack


def test_a_round_that_nobody_pays_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighed_rounds, "_noises", lambda whole, shares: [whole for _ in shares])
    choice = WeighedRounds.fit(task(2), ApproxDP(1, "1e-6"))
    assert choice is not None
    events = choice.law.events(task(2).exposure)
    assert accounting.PrivacyLossAccountant(events).delta(1) > 1e-5


def test_rounds_are_for_weighed_individuals_and_need_a_delta() -> None:
    assert WeighedRounds.fit(KeyTask("g", ONE, 256, None, 2), ApproxDP(1, "1e-6")) is None
    assert WeighedRounds.fit(task(1), ApproxDP(1, "1e-6")) is None
    with pytest.raises(MissingKeys, match="delta"):
        WeighedRounds.fit(task(2), PureDP(1))
    number = DiscreteGaussian(Fraction(PARTS**2))
    assert WeighedThreshold.over_number(number, task(2), PARTS, Fraction(1, 10**6)) is None
    assert WeighedThreshold.over_number(number, task(1), PARTS, Fraction(1, 10**6)) is not None


def test_sizes_and_words_are_those_of_the_rounds() -> None:
    choice = WeighedRounds.fit(task(2), ApproxDP(1, "1e-6"))
    assert choice is not None
    law = choice.law
    assert isinstance(law, WeighedRounds)
    first, last = law.in_rounds
    assert law.size_at(Fraction(19, 20)) == last.size_at(Fraction(19, 20))
    assert law.size_at(Fraction(19, 20)) < first.size_at(Fraction(19, 20))
    for rule in (first, last):
        assert f"of at least {rule.threshold / PARTS:.4g}" in law.rule
    assert "in 2 rounds" in law.rule
    assert "11.1%" in law.rule
    assert law.is_for(PARTS, 256)
    assert not law.is_for(PARTS, 255)
    assert law.shown_scale(Fraction(1, PARTS)) == last.shown_scale(Fraction(1, PARTS))
