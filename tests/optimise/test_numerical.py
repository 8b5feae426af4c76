"""Plans whose cost is the composed privacy loss: never less than the truth, and hardly more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import accounting
from dpframe.core.sensitivity import ExactSensitivity, ScoreRange
from dpframe.mechanisms import (
    AdditiveTask,
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    MechanismTask,
    RoundedLaplace,
    SelectionTask,
)
from dpframe.optimise.mechanisms import choose, choose_together, largest_within, refine


def moved(steps: int) -> ExactSensitivity:
    return ExactSensitivity(1, Fraction(steps), Fraction(steps**2), Fraction(steps))


def counts(n: int, mechanism: str = "auto") -> list[MechanismTask]:
    return [AdditiveTask(f"c{i}", moved(1), mechanism) for i in range(n)]


def equally(asked: Sequence[MechanismTask], spend: dp.ApproxDP):  # type: ignore[no-untyped-def]
    return choose_together(asked, [Fraction(1)] * len(asked), spend)


def shared(asked: Sequence[MechanismTask]):  # type: ignore[no-untyped-def]
    def at(rho: Fraction) -> tuple[Choice, ...]:
        return tuple(choose(a, dp.ZCDP(rho / len(asked))) for a in asked)

    return at


SPEND = dp.ApproxDP("4.774568", "1e-6")


def test_a_hundred_pure_counts_of_a_tenth_are_claimed_at_their_true_cost() -> None:
    """4.774568 (60-digit arithmetic; notes of the reference values): losses are plus or minus 0.1
    on the integers, so no accountant can say less.
    """
    asked = counts(100, "discrete_laplace")
    found = largest_within(shared(asked), asked, SPEND, Fraction(1, 3))
    assert found is not None
    assert {type(c.law) for c in found} == {DiscreteLaplace}
    assert float(found[0].law.scale) == pytest.approx(10, rel=2e-5)  # type: ignore[union-attr]
    assert found[0].law.scale >= 10 * (1 - Fraction(1, 10**7))  # type: ignore[union-attr]


def test_noise_on_a_fine_grid_is_chosen_when_it_pays() -> None:
    """4.6927 at the same scale (the same source)."""
    found = equally(counts(100, "discrete_laplace"), dp.ApproxDP("4.6927", "1e-6"))
    law = found.choices[0].law
    assert isinstance(law, RoundedLaplace)
    assert float(law.scale) == pytest.approx(10, rel=2e-5)
    assert "1025 times finer" in found.choices[0].reason


def test_a_hundred_float_sums_have_losses_between() -> None:
    steps = 2**30 + 7
    asked = [AdditiveTask(f"s{i}", moved(steps), "discrete_laplace") for i in range(100)]
    law = equally(asked, dp.ApproxDP("4.6927", "1e-6")).choices[0].law
    assert type(law) is DiscreteLaplace
    assert float(law.scale / steps) == pytest.approx(10, rel=2e-5)


def test_a_hundred_gaussian_counts() -> None:
    """4.886554 for continuous noise of sigma 10 (the same source); Gaussian noise is the least."""
    law = equally(counts(100), dp.ApproxDP("4.88657", "1e-6")).choices[0].law
    assert isinstance(law, DiscreteGaussian)
    assert law.sigma == pytest.approx(10, rel=1e-4)


def test_few_laplace_counts_are_not_refined() -> None:
    assert type(equally(counts(3), dp.ApproxDP(1, "1e-8")).choices[0].law) is DiscreteLaplace


MIXED = [
    *counts(20),
    *counts(10, "discrete_laplace"),
    *[AdditiveTask(f"s{i}", moved(2**20 + i)) for i in range(10)],
    *[
        SelectionTask(
            f"a{i}", moved(9), ScoreRange(Fraction(1), Fraction(1), Fraction(1)), rounds=2
        )
        for i in range(5)
    ],
    AdditiveTask("vector", ExactSensitivity(2, Fraction(2), Fraction(2), Fraction(1))),
]


@pytest.mark.parametrize("epsilon", ["0.01", "1", "12"])
@pytest.mark.parametrize("delta", [pytest.param("1e-4", marks=pytest.mark.slow), "1e-10"])
@pytest.mark.parametrize("weighted", [False, True])
def test_never_more_is_spent_than_asked(epsilon: str, delta: str, weighted: bool) -> None:
    """Counted again from the events, which know nothing of how the noise was found."""
    spend = dp.ApproxDP(epsilon, delta)
    weights = [Fraction(1 + i % 3 * weighted) for i in range(len(MIXED))]
    found = choose_together(MIXED, weights, spend)
    assert found.composition != "sum"
    assert found.cost == spend
    events = [e for c, a in zip(found.choices, MIXED, strict=True) for e in counted(c, a)]
    assert len(events) == len(MIXED) + 5 + (found.choices[-1].law.name == "discrete_gaussian")
    least = accounting.best(events, delta)
    assert least.epsilon <= float(epsilon) * (1 + 1e-3)  # unlike roundings; see the next test


def counted(choice: Choice, asked: MechanismTask) -> tuple[accounting.Event, ...]:
    return choice.law.events(asked.exposure)


@pytest.mark.parametrize("parts", [20, 60, 300])
@pytest.mark.parametrize("mechanism", ["auto", "discrete_laplace"])
def test_claims_cover_the_exact_loss(parts: int, mechanism: str) -> None:
    """The exact delta by convolving the laws themselves, outcome by outcome."""
    spend = dp.ApproxDP(2, "1e-5")
    found = equally(counts(parts, mechanism), spend)
    assert found.composition == "numerical"
    law = found.choices[0].law
    delta = exact_delta(law, parts, 2.0)
    assert delta <= 1e-5 * (1 + 2e-5)  # what the grid here adds
    rounding = 0.12 if isinstance(law, RoundedLaplace) else 2e-4  # rounding hides a little more
    assert delta >= 1e-5 * (1 - rounding)


def exact_delta(law: object, parts: int, epsilon: float) -> float:
    """Losses of one release of a count that moves by 1, on a fine grid by their nearest point, so
    within parts * step of the truth in the mean and far less in effect.
    """
    assert isinstance(law, (DiscreteGaussian, DiscreteLaplace))
    width = 12 * math.sqrt(law.variance()) + 40
    x = np.arange(-math.ceil(width), math.ceil(width) + 1, dtype=np.float64)
    if isinstance(law, DiscreteGaussian):
        logs = -x * x / (2 * float(law.sigma_squared))
    elif isinstance(law, RoundedLaplace):
        rate = float(1 / (law.scale * law.fine))
        half = law.fine // 2
        tail = np.exp(-rate * (np.abs(x) * law.fine - half))  # of the fine law, in proportion
        logs = np.log(
            np.where(
                x == 0,
                (1 + math.exp(-rate)) / 1 - 2 * math.exp(-rate * (half + 1)),
                tail - np.exp(-rate * (np.abs(x) * law.fine + half + 1)),
            )
        )
    else:
        logs = -np.abs(x) / float(law.scale)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    losses = np.append(logs[1:] - logs[:-1], 0.0)  # P at x, Q at x - 1
    return convolved(losses[:-1], p[1:], parts, epsilon)


def convolved(losses: np.ndarray, masses: np.ndarray, parts: int, epsilon: float) -> float:
    n, reach = 1 << 18, 12.0
    step = 2 * reach / n
    grid = np.zeros(n)
    at = losses / step
    low = np.floor(at).astype(int)
    share = at - low  # linear: the mean of the loss is kept
    np.add.at(grid, low % n, masses * (1 - share))
    np.add.at(grid, (low + 1) % n, masses * share)
    total = np.fft.irfft(np.fft.rfft(grid) ** parts, n)
    loss = np.where(np.arange(n) < n // 2, np.arange(n), np.arange(n) - n) * step
    above = loss > epsilon
    return float((total[above] * -np.expm1(epsilon - loss[above])).sum())


def test_losses_of_the_rounded_law_are_within_those_of_the_fine_one() -> None:
    asked = counts(50, "discrete_laplace")
    chooser = refine(shared(asked), asked)
    law = chooser(Fraction(1, 4))[0].law
    assert isinstance(law, RoundedLaplace)
    assert law.scale == choose(asked[0], dp.ZCDP(Fraction(1, 200))).law.scale  # type: ignore[union-attr]


def test_plans_can_be_counted_again() -> None:
    session = dp.Session(epsilon=10, delta="1e-6")
    frame = session.protect(pl.DataFrame({"x": [0.5], "g": ["a"]}), dp.Rows())
    query = frame.agg(
        dp.count(),
        pl.col("x").dp_mean((0, 1)),
        pl.col("x").dp_median((0, 1)).alias("median"),
        pl.col("g").dp_argmax(candidates=["a", "b", "c"], k=3).alias("best"),
        pl.col("g")
        .dp_argmax(candidates=["a", "b", "c"], k=3, mechanism="permute_and_flip")
        .alias("flipped"),
    )
    plan = query.plan(epsilon=1)
    kinds = sorted(type(event).__name__ for event in plan.events)
    box, flips = ["PermuteAndFlipEvent"], ["PermuteAndFlipEvent"] * 3
    assert kinds == ["DiscreteLaplaceEvent", "ExponentialEvent", *box, *flips]
    assert accounting.BasicAccountant(plan.events).epsilon(0) == pytest.approx(1, rel=1e-9)
    assert accounting.best(plan.events, "1e-6").epsilon <= 1


def test_plans_of_many_parts_can_be_counted_again() -> None:
    session = dp.Session(epsilon=10, delta="1e-6")
    frame = session.protect(pl.DataFrame({"x": [0.5]}), dp.Rows(contributions=2))
    noise = "discrete_laplace"
    many = {f"s{i}": (pl.col("x") * i).dp_sum((0, i + 1), mechanism=noise) for i in range(60)}
    plan = frame.agg(**many).plan(epsilon=2, delta="1e-6")
    assert plan.composition == "numerical"
    found = accounting.PrivacyLossAccountant(plan.events).epsilon("1e-6")
    assert found == pytest.approx(2, rel=1e-4)
