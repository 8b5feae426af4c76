"""The noise that is drawn is what the charge pays for: every aggregate, in every measure.

Epsilon and rho are computed again from the drawn law's scale and the exact sensitivity, with
Fractions; the delta of Gaussian noise from its definition.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpframe as dp
from dpframe import accounting, pipeline, runner
from dpframe.aggregates.registry import AGGREGATES
from dpframe.core.budget import Budget
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.kernel import plan as kernel
from dpframe.lower import Execution
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.mechanisms import (
    DiscreteBox,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    NoisyTable,
    NoNoise,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
)
from dpframe.plan import NoisyAggregate
from dpframe.release import draws
from tests.laws.amounts import amounts
from tests.laws.frames import nasty_frame
from tests.laws.neighbours import UNITS
from tests.laws.queries import names_of, query

SPENDS: list[Budget] = [dp.PureDP("0.3"), dp.ApproxDP("0.7", "1e-7"), dp.ZCDP("0.05")]
GROUPINGS = ["f", 'f.group_by("b", keys=[None, True])', 'f.group_by("e")']
BIT = Fraction(1, 2**39)


def texts() -> list[tuple[str, str]]:
    """Each example of each aggregate with each of its mechanisms."""
    return [
        (text, mechanism)
        for aggregate in AGGREGATES
        for text in aggregate.examples
        for mechanism in aggregate.mechanisms
    ]


def with_mechanism(text: str, mechanism: str) -> str:
    comma = "" if text.endswith("()") else ", "
    return f'{text[:-1]}{comma}mechanism="{mechanism}")'


def delta_of(law: DiscreteGaussian, epsilon: Fraction, exact: ExactSensitivity) -> float:
    """The delta of Gaussian noise: of one integer entry by the sum over its outcomes (Canonne,
    Kamath and Steinke 2020, Theorem 7), otherwise of the continuous law (Balle and Wang 2018).
    """
    sigma, rate = math.sqrt(law.sigma_squared), float(epsilon)
    if exact.l0 == 1 and sigma < 2000:
        step = math.isqrt(int(exact.l2_squared))
        z = np.arange(-int(40 * sigma) - step, int(40 * sigma) + step + 1, dtype=np.float64)
        half = float(1 / (2 * law.sigma_squared))
        weights = np.exp(-half * z * z)
        excess = weights - math.exp(rate) * np.exp(-half * (z - step) ** 2)
        return float(np.maximum(excess, 0).sum() / weights.sum())
    if exact.linf <= 1 and sigma < 200:  # as many entries move by 1: their sum decides
        entries, reach = min(exact.l0, int(exact.l2_squared)), int(12 * sigma) + 2
        z = np.arange(-reach, reach + 1, dtype=np.float64)
        one = np.exp(-(z * z) / (2 * float(law.sigma_squared)))
        total = np.array([1.0])
        for _ in range(entries):
            total = np.convolve(total, one / one.sum())
        s = np.arange(-reach * entries, reach * entries + 1, dtype=np.float64)
        loss = (entries - 2 * s) / (2 * float(law.sigma_squared))
        return float((total * np.maximum(0.0, -np.expm1(rate - loss))).sum())
    d = math.sqrt(exact.l2_squared) / sigma

    def upper(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    return upper(rate / d - d / 2) - math.exp(rate) * upper(rate / d + d / 2)


def check_release(release: NoisyAggregate, share: Budget, scope: Any) -> None:
    """The cost is what the law costs at the exact sensitivity."""
    cost, law = release.cost, release.law
    exact = release.exact if release.joint is None else release.joint.exact
    if isinstance(law, NoisyTable):  # as of a table that is released
        assert release.candidates is not None
        check_release(replace(release, law=law.noise, scores=None, repeats=1), share, scope)
        return
    if law.name == "randomized_response":  # each row answers for itself
        l1, l2_squared, times = Fraction(1), Fraction(1), scope.facts.unit.contributions
    elif release.scores is not None:
        found = release.scores
        l1, l2_squared, times = found.l1, found.l2_squared, release.repeats
    else:
        l1, l2_squared, times = exact.l1, exact.l2_squared, 1
    assert (l1 == 0) == isinstance(law, NoNoise)
    zcdp = isinstance(cost, dp.ZCDP)
    match law:
        case NoNoise():
            assert cost.is_zero
            assert release.scale == 0
            return
        case DiscreteGaussian(sigma_squared):
            if zcdp:
                assert cost.main == l2_squared / (2 * sigma_squared)
            else:
                assert 0 < cost.slack <= share.slack
                assert delta_of(law, cost.main, exact) <= float(cost.slack) * (1 + 1e-6)
            squares = 1.0 if release.joint is None else sum(f * f for f in factors_of(release))
            size = release.scale**2 / (float(sigma_squared) * float(release.step) ** 2 * squares)
            assert size == pytest.approx(1, rel=1e-14)
            return
        case DiscreteBox(epsilon, widths, _, rows):
            check_box(release, rows * epsilon, widths)
            return
        case Exponential(scale) if zcdp:
            used = times * l2_squared / (8 * scale * scale)
        case DiscreteLaplace(scale) if zcdp:
            full, left = divmod(l1, exact.linf)
            concentrated = full * mean_loss(scale, exact.linf) + mean_loss(scale, left)
            used = min(concentrated, l2_squared * mean_loss(scale, Fraction(1)))
            assert used * (1 - Fraction(1, 10**12)) <= cost.main <= used * Fraction(1006, 1000)
            assert cost.main <= (l1 / scale) ** 2 / 2 * (1 + BIT)
            return
        case PermuteAndFlip(scale) | ReportNoisyMax(scale) if zcdp:
            used = times * (l1 / scale) ** 2 / 2
        case RandomizedResponse(epsilon, categories) if zcdp:
            grown = math.exp(epsilon)
            used = times * epsilon * Fraction((grown - 1) / (grown + categories - 1))
            assert (
                used * (1 - Fraction(1, 10**12))
                <= cost.main
                <= times * epsilon**2 / 2 * (1 + BIT * 2**20)
            )
            return
        case DiscreteStaircase(rate, width):  # a number that moves changes by so many levels
            assert cost.main == exact.l0 * math.ceil(exact.linf / width) * rate
            used = cost.main
        case _:
            assert cost.main == times * l1 / law.scale  # exactly
            used = cost.main
    assert used <= cost.main <= used * (1 + BIT)
    assert cost.slack == 0
    # the scale that people read is never below the one that is drawn from
    assert Fraction(release.scale) >= law.scale * release.step
    assert release.scale == pytest.approx(float(law.scale * release.step), rel=1e-15)


def factors_of(release: NoisyAggregate) -> list[float]:
    assert release.joint is not None
    return [factor / release.joint.divisor for factor in release.joint.factors]


def check_box(release: NoisyAggregate, epsilon: Fraction, widths: tuple[int, ...]) -> None:
    """An individual's rows move the vectors by so many boxes, each at its epsilon; a part is shown
    by how far one of them moves it.
    """
    cost, joint = release.cost, release.joint
    assert joint is not None
    assert joint.exact.l1 <= sum(widths) * epsilon / release.law.epsilon  # type: ignore[attr-defined]
    assert cost.slack == 0
    if isinstance(cost, dp.ZCDP):
        used = Fraction(
            mpmath.nstr(mpmath.mpf(float(epsilon)) * mpmath.tanh(float(epsilon) / 2), 15)
        )
        assert used * (1 - Fraction(1, 10**9)) <= cost.main
        assert cost.main <= used * (1 + Fraction(1, 10**9))
    else:
        assert cost.main == epsilon
    moved = sum(abs(f) * w for f, w in zip(factors_of(release), widths, strict=True))
    scale = moved * float(release.step) / float(release.law.epsilon)  # type: ignore[attr-defined]
    assert release.scale == pytest.approx(scale, rel=1e-12)


def mean_loss(scale: Fraction, steps: Fraction) -> Fraction:
    """Of discrete Laplace noise moved by so many steps: the mean of |x - steps| - |x|, over the
    scale.
    """
    if not steps:
        return Fraction(0)
    with mpmath.workdps(50):
        h = mpmath.mpf(scale.denominator) / scale.numerator
        q = mpmath.exp(-h)
        moved = int(steps) - 2 * q * (1 - q ** int(steps)) / (1 - q * q)
        return Fraction(mpmath.nstr(h * moved, 40))


def epsilon_of(rho: Fraction, delta: float) -> float:
    """Canonne, Kamath and Steinke 2020, Proposition 12, by the best of many orders."""
    a = 1 + np.geomspace(1e-3, 1e9, 400_000)
    return float((a * float(rho) + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)).min())


def check_total(plan: dp.Plan, share: Budget) -> None:
    """The costs of the releases add up to the plan's, or imply it through zCDP."""
    costs = [draw.cost for draw in plan.draws if not draw.cost.is_zero]
    total = sum((c.main for c in costs), Fraction(0))
    if plan.composition == "sum":
        assert total == plan.cost.main
        assert sum((c.slack for c in costs), Fraction(0)) == plan.cost.slack
        return
    assert plan.cost == share
    assert all(isinstance(cost, dp.ZCDP) for cost in costs)
    implied = epsilon_of(total, float(share.slack))
    if plan.composition == "numerical":  # see tests/optimise/test_numerical.py
        assert implied >= float(share.main) * (1 - 1e-6)
        counted = accounting.PrivacyLossAccountant(plan.events).epsilon(share.slack)
        assert counted == pytest.approx(float(share.main), rel=5e-3)
        assert counted <= float(share.main) * (1 + 1e-3)  # roots are rounded up in events
        return
    assert implied == pytest.approx(float(share.main), rel=1e-6)
    assert implied <= float(share.main) * (1 + 1e-9)


@pytest.mark.parametrize("share", SPENDS, ids=str)
@pytest.mark.parametrize(("text", "mechanism"), texts())
@amounts("groupings", 1, len(GROUPINGS))
def test_noise_costs_what_is_charged(
    text: str, mechanism: str, share: Budget, groupings: int
) -> None:
    """In every unit by so many groupings, others for another example."""
    first = texts().index((text, mechanism))
    for number, unit in enumerate(UNITS):
        for place in range(groupings):
            grouping = GROUPINGS[(first + number + place) % len(GROUPINGS)]
            try:
                asked = query([with_mechanism(text, mechanism)], unit, grouping)
                plan = pipeline.plan(asked, share, None).plan
            except dp.UnsupportedOperation:  # no Gaussian noise in pure DP, for example
                assert mechanism != "auto"
                continue
            for release in plan.releases:
                check_release(release, share, asked.scope)
                if mechanism not in ("auto", release.mechanism):
                    assert release.mechanism == "none"
            check_total(plan, share)
            assert plan.cost.main <= share.main
            assert plan.cost.slack <= share.slack


def together() -> list[Any]:
    """Each unit in each measure; where losses are composed, which takes seconds, one of each
    adjacency with the others in the slow profile.
    """
    return [
        pytest.param(unit, share, marks=[pytest.mark.slow] if is_late else [], id=f"{unit}-{share}")
        for number, unit in enumerate(UNITS)
        for share in SPENDS
        for is_late in [isinstance(share, dp.ApproxDP) and number % 3 != 1]
    ]


@pytest.mark.parametrize(("unit", "share"), together())
def test_all_parts_of_one_plan_pay_together(unit: dp.Rows, share: Budget) -> None:
    everything = [text for aggregate in AGGREGATES for text in aggregate.examples]
    asked = query(everything, unit, GROUPINGS[1])
    plan = pipeline.plan(asked, share, None).plan
    for release in plan.releases:
        check_release(release, share, asked.scope)
    check_total(plan, share)
    assert plan.cost.main == share.main


# ------------------------------------------------------------------- what is planned is drawn


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("share", SPENDS, ids=str)
def test_the_planned_laws_are_those_drawn_from(
    share: Budget, grouping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: Counter[object] = Counter()

    def no_noise(law: Any, n: int) -> NDArray[np.int64]:
        drawn[law] += n
        return np.zeros((n, len(law.widths)) if isinstance(law, kernel.Box) else n, np.int64)

    def first(law: Any, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        drawn[law] += len(scores)
        return np.zeros(len(scores), np.int64)

    def first_ones(law: Any, scores: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        drawn[law] += 0 if isinstance(law, kernel.Exact) else len(scores) * k
        return np.tile(np.arange(k), (len(scores), 1))

    def first_points(
        scale: Fraction, scores: object, weights: object, sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        drawn[kernel.Exponential(scale)] += len(sizes)
        return np.cumsum(sizes) - sizes, np.zeros(len(sizes), np.int64)

    def first_tuple(scale: Fraction, line: object, shares: Any, row: object) -> list[int]:
        drawn[kernel.Exponential(scale)] += len(shares)
        return [0] * len(shares)

    monkeypatch.setattr(draws, "noise", no_noise)

    monkeypatch.setattr(draws, "choose_each", first)
    monkeypatch.setattr(draws, "choose_top_each", first_ones)
    monkeypatch.setattr(draws, "choose_points", first_points)
    monkeypatch.setattr(draws, "choose_points", first_points)
    monkeypatch.setattr(draws, "choose_tuple", first_tuple)
    everything = [text for aggregate in AGGREGATES for text in aggregate.examples]
    asked = query(everything, dp.Rows("change-one", contributions=2), grouping)
    frame = nasty_frame(30).select(names_of(asked))
    frame.columns = list(asked.relation.source.columns)
    session = dp.Session(share)
    prepared = pipeline.plan(asked, share, None)
    token = asked.relation.token
    execution = Execution(POLARS, {token: frame.lazy()}, {token: frame.schema})
    runner.run(pipeline.alone(prepared), [execution], session._payer.ledger)
    planned: Counter[object] = Counter()
    for release in prepared.plan.draws:
        law = release.law.kernel_law
        if isinstance(release.law, NoisyTable):  # every score has noise
            groups = release.entries // release.repeats
            planned[law] += groups * (release.candidates or 0)
            continue
        together = release.joint is not None and isinstance(release.law, DiscreteGaussian)
        numbers = len(release.joint.widths) if together and release.joint else 1
        planned[law] += release.entries * numbers
    assert drawn == planned
    assert session.spent == prepared.plan.cost


def test_each_release_draws_anew() -> None:
    """Two collections of one query are two releases, with noise of their own."""
    session = dp.Session(epsilon=100)
    frame = session.protect(pl.DataFrame({"x": [1.0] * 10}), dp.Rows())
    query_of_sum = frame.agg(pl.col("x").dp_sum((0, 1)))
    values = {query_of_sum.collect(epsilon=1).item() for _ in range(20)}
    assert len(values) > 15
    assert session.spent == dp.PureDP(20)
