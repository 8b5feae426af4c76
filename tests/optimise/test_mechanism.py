"""Which mechanism is chosen, and that its noise is what the charge pays for.

Costs are computed again here, with Fractions, from the scale that is drawn from.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.core.sensitivity import NO_SENSITIVITY, ExactSensitivity
from dpframe.mechanisms import (
    AdditiveTask,
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    NoisyTable,
    NoNoise,
    PermuteAndFlip,
    ReportNoisyMax,
    SelectionTask,
)
from dpframe.optimise.mechanisms import choose
from tests.score_ranges import of_groups, of_one

BIT = Fraction(1, 2**36)
"""By so little may a charge exceed what irrational scales really cost."""

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**4)
spends: st.SearchStrategy[Budget] = st.one_of(
    positive.map(dp.PureDP),
    st.builds(dp.ApproxDP, positive, st.integers(2, 15).map(lambda n: Fraction(1, 10**n))),
    positive.map(dp.ZCDP),
)


@st.composite
def sensitivities(draw: st.DrawFn) -> ExactSensitivity:
    """k entries that change by at most b each, all of them or less."""
    k, b = draw(st.integers(1, 50)), draw(st.integers(1, 2**30))
    l1 = draw(st.integers(b, k * b))
    return ExactSensitivity(
        k, Fraction(l1), Fraction(draw(st.integers(b * b, l1 * b))), Fraction(b)
    )


def count(k: int = 1) -> ExactSensitivity:
    """A count whose k rows come or go, each in its own entry."""
    return ExactSensitivity(k, Fraction(k), Fraction(k), Fraction(1))


def pays(charged: Fraction, used: Fraction) -> bool:
    """What is charged covers what is used, and no more but the last bits of a root."""
    return used <= charged <= used * (1 + 2 * BIT)


@settings(max_examples=max(200, settings().max_examples))
@given(sensitivities(), spends)
def test_additive_noise_costs_what_is_charged(found: ExactSensitivity, share: Budget) -> None:
    choice = choose(AdditiveTask("o", found), share)
    assert share.covers(choice.cost)
    law = choice.law
    match law, share:
        case DiscreteLaplace(), dp.ZCDP():
            assert pays(choice.cost.main, law.rho(found.l1, found.l2_squared, found.linf))
        case DiscreteLaplace(scale), _:
            assert choice.cost.main == found.l1 / scale
            assert choice.cost.slack == 0
        case DiscreteStaircase(rate, width), dp.PureDP():
            assert choice.cost.main == found.l0 * math.ceil(found.linf / width) * rate
            laplace = DiscreteLaplace.for_pure(found.l1, share.main)
            assert law.variance() < laplace.variance()
        case DiscreteGaussian(sigma_squared), dp.ZCDP():
            assert pays(choice.cost.main, found.l2_squared / (2 * sigma_squared))
        case DiscreteGaussian(), dp.ApproxDP():
            assert choice.cost == share
            # the bound is itself rounded up, by a few parts in 10**11
            found_delta = law.delta(share.main, found.l0, found.l2_squared, found.linf)
            assert found_delta <= float(share.slack) * (1 + 1e-9)
        case _:
            raise AssertionError(f"{law} for {share}")


@settings(max_examples=max(200, settings().max_examples))
@given(
    st.integers(1, 2**30),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["auto", "exponential", "permute_and_flip", "report_noisy_max", "noisy_table"]),
    spends,
)
def test_selections_cost_what_is_charged(
    reach: int, groups: int, rounds: int, weighted: bool, mechanism: str, share: Budget
) -> None:
    moved = of_groups(Fraction(groups * reach), Fraction(reach))
    sensitivity = ExactSensitivity(1, moved.l1, moved.l2_squared, Fraction(reach))
    asked = SelectionTask("o", sensitivity, moved, mechanism, rounds, weighted)
    if weighted and mechanism not in ("auto", "exponential"):
        with pytest.raises(dp.UnsupportedOperation):
            choose(asked, share)
        return
    choice = choose(asked, share)
    law = choice.law
    assert share.covers(choice.cost)
    if isinstance(law, NoisyTable):
        assert mechanism == "noisy_table" or (mechanism == "auto" and rounds > 1 and not weighted)
        noise = choose(AdditiveTask("o", sensitivity, law.noise.name), share)
        assert (law.noise, choice.cost) == (noise.law, noise.cost)
        return
    assert choice.cost.slack == 0
    assert isinstance(law, (Exponential, PermuteAndFlip, ReportNoisyMax))
    pure = moved.l1 / law.scale
    if not isinstance(share, dp.ZCDP):
        assert choice.cost.main == rounds * pure
    elif isinstance(law, Exponential):
        assert pays(choice.cost.main, rounds * moved.l2_squared / (8 * law.scale**2))
    else:
        assert pays(choice.cost.main, rounds * pure**2 / 2)


# ---------------------------------------------------------------------------- which is chosen


@settings(max_examples=max(100, settings().max_examples))
@given(sensitivities(), spends)
def test_the_least_error_is_chosen(found: ExactSensitivity, share: Budget) -> None:
    chosen = choose(AdditiveTask("o", found), share)
    others = []
    for mechanism in ("discrete_laplace", "discrete_gaussian"):
        try:
            others.append(choose(AdditiveTask("o", found, mechanism), share))
        except dp.UnsupportedOperation:
            assert isinstance(share, dp.PureDP)
            assert mechanism == "discrete_gaussian"
    least = min(map(_variance, others))
    if isinstance(chosen.law, DiscreteStaircase):
        assert isinstance(share, dp.PureDP)
        assert _variance(chosen) < least
    else:
        assert _variance(chosen) == least


def _variance(choice: Choice) -> float:
    assert isinstance(choice.law, (DiscreteLaplace, DiscreteGaussian, DiscreteStaircase))
    return choice.law.variance()


@pytest.mark.parametrize(
    ("share", "k", "kind"),
    [
        (dp.PureDP(1), 1, DiscreteLaplace),
        (dp.PureDP(1), 1000, DiscreteLaplace),
        (dp.ApproxDP(1, "1e-8"), 1, DiscreteLaplace),  # one entry: Laplace noise is less
        (dp.ApproxDP(1, "1e-8"), 1000, DiscreteGaussian),  # many: L2 is far below L1
        (dp.ApproxDP(1, 0), 1000, DiscreteLaplace),
        (dp.ZCDP("0.1"), 1, DiscreteGaussian),
        (dp.ZCDP("0.1"), 1000, DiscreteGaussian),
    ],
)
def test_what_is_chosen_for_counts(share: Budget, k: int, kind: type) -> None:
    assert type(choose(AdditiveTask("o", count(k)), share).law) is kind


def test_which_choice_is_made_of_candidates() -> None:
    moved = of_one(Fraction(1))
    plain = SelectionTask("o", count(), moved)
    points = SelectionTask("o", count(), moved, weighted=True)
    for share in (dp.PureDP(1), dp.ApproxDP(1, "1e-8")):
        assert type(choose(plain, share).law) is PermuteAndFlip
        assert type(choose(points, share).law) is Exponential
    for asked in (plain, points):
        assert type(choose(asked, dp.ZCDP(1)).law) is Exponential


@pytest.mark.parametrize("share", [dp.PureDP(1), dp.ApproxDP(1, "1e-8"), dp.ZCDP(1)], ids=str)
def test_what_no_one_can_change_is_free(share: Budget) -> None:
    choice = choose(AdditiveTask("o", NO_SENSITIVITY), share)
    assert type(choice.law) is NoNoise
    assert choice.cost.is_zero
    assert type(choice.cost) is type(share)


@pytest.mark.parametrize("share", [dp.PureDP(10**9), dp.ApproxDP(10**9, "1e-8"), dp.ZCDP(10**12)])
def test_a_scale_that_is_raised_to_the_least_one_charges_what_it_uses(share: Budget) -> None:
    choice = choose(AdditiveTask("o", count(), "discrete_laplace"), share)
    assert isinstance(choice.law, DiscreteLaplace)
    assert choice.law.scale == Fraction(1, 2**10)
    # of rho the whole epsilon, where nearly all losses are the largest
    assert choice.cost.main == 2**10
    assert choice.cost.slack == 0


@pytest.mark.parametrize("share", [dp.PureDP("1e-30"), dp.ZCDP("1e-60")], ids=str)
def test_more_noise_than_can_be_drawn_is_refused(share: Budget) -> None:
    with pytest.raises(dp.InvalidBudget, match=r"more than can be drawn\n  instead: spend more"):
        choose(AdditiveTask("o", count()), share)


def test_gaussian_noise_has_no_pure_epsilon() -> None:
    with pytest.raises(dp.UnsupportedOperation, match="delta or zCDP"):
        choose(AdditiveTask("o", count(), "discrete_gaussian"), dp.PureDP(1))


def test_a_reason_is_given() -> None:
    for share in (dp.PureDP(1), dp.ApproxDP(1, "1e-8"), dp.ZCDP(1)):
        for asked in (
            AdditiveTask("o", count()),
            AdditiveTask("o", count(9)),
            AdditiveTask("o", NO_SENSITIVITY),
            SelectionTask("o", count(), of_one(Fraction(1)), "auto"),
            SelectionTask("o", count(), of_one(Fraction(1)), "exponential"),
        ):
            assert choose(asked, share).reason
