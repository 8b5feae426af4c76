"""The limit that errs least by what it drops and by noise together, and how much it may drop."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, foldnorm

from dpframe.api.limits import LIMITS
from dpframe.mechanisms import AdditiveMechanism, DiscreteGaussian, DiscreteLaplace
from dpframe.optimise.limit_rule import (
    BLIND,
    GROUPS,
    LimitRule,
    _log_density,
    median_error,
    quantile_of_losses,
    remark_of,
)
from dpframe.plan.data import REACH

EPSILON = 1.0
SEARCH = EPSILON / 20
NOISE = tuple(3 / (EPSILON - SEARCH) * n for n in LIMITS)
LAW = DiscreteLaplace(Fraction(20))
NORMAL = DiscreteGaussian(Fraction(800))
RULE = LimitRule(LIMITS, NOISE, (), LAW)
WRONG = 1e-6
"""How often a test may fail although all is right."""


def histogram(rows: Any) -> list[int]:
    """How many have so many rows up to each limit and above the one before, and above all."""
    places = np.searchsorted(LIMITS, rows)
    return np.bincount(places, minlength=len(LIMITS) + 1).tolist()


def lost(rows: Any, limit: int) -> int:
    return int(np.maximum(0, np.asarray(rows) - limit).sum())


def noisy(rows: Any, drawn: np.random.Generator, scale: float = 20) -> list[int]:
    counts = np.array(histogram(rows))
    p = 1 - math.exp(-1 / scale)
    found = counts + drawn.geometric(p, counts.size) - drawn.geometric(p, counts.size)
    return found.tolist()


def outlier(drawn: np.random.Generator, n: int) -> Any:
    rows = drawn.integers(1, 6, n)
    rows[0] = 20_000
    return rows


HEAVY: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "Pareto 1.0": lambda drawn, n: np.floor(drawn.pareto(1.0, n) + 1).astype(int),
    "Pareto 1.25": lambda drawn, n: np.floor(drawn.pareto(1.25, n) + 1).astype(int),
    "Pareto 1.5": lambda drawn, n: np.floor(drawn.pareto(1.5, n) + 1).astype(int),
    "lognormal 1.5": lambda drawn, n: np.ceil(drawn.lognormal(1, 1.5, n)).astype(int),
    "one outlier": outlier,
}

SEEN = {
    **{name: law for name, law in HEAVY.items() if name != "one outlier"},
    "Pareto from 6": lambda drawn, n: np.ceil(6 * (drawn.pareto(1.25, n) + 1)).astype(int),
    "Weibull 0.5": lambda drawn, n: np.ceil(5 * drawn.weibull(0.5, n)).astype(int),
}
"""Laws whose tail the others let see."""


@given(st.lists(st.integers(1, LIMITS[-1]), min_size=1, max_size=40))
def test_without_noise_what_is_dropped_lies_between_the_ends_of_the_bins(rows: list[int]) -> None:
    counts = histogram(rows)
    rule = LimitRule(LIMITS, (0.0,) * len(LIMITS))
    ends = np.searchsorted(LIMITS, rows)
    least = [1 if e == 0 else LIMITS[e - 1] + 1 for e in ends]
    most = [LIMITS[e] for e in ends]
    every = rule.best_loss(counts).every
    for place, limit in enumerate(LIMITS):
        only = LimitRule(LIMITS, tuple(0.0 if n <= limit else math.inf for n in LIMITS))
        assert only.best_loss(counts).place <= place
        found = rule.share(counts, place) * every
        assert lost(least, limit) * (1 - 1e-6) - 1e-6 <= found
        assert found <= lost(most, limit) * (1 + 1e-6) + 1e-6
    assert sum(least) - 1e-6 <= every <= sum(most) + 1e-6


number = st.integers(-60, 3000) | st.just(0) | st.integers(-(2**63), 2**63)
some = st.lists(number, min_size=len(LIMITS) + 1, max_size=len(LIMITS) + 1)
laws = st.sampled_from([LAW, NORMAL, DiscreteLaplace(Fraction(1, 100)), None])


@given(some, st.integers(1, len(LIMITS)), laws, st.booleans())
@settings(max_examples=15)
def test_whatever_the_counts_there_is_a_limit(
    counts: list[int], k: int, law: AdditiveMechanism | None, is_normal: bool
) -> None:
    rule = LimitRule(LIMITS, NOISE[:k], (), law, is_normal)
    above, loss = rule.above(counts), rule.best_loss(counts)
    assert all(0 <= later <= before * (1 + 1e-9) for before, later in pairwise(above))
    assert 0 <= loss.place < k
    assert 0 <= loss.dropped < math.inf
    assert 0 <= loss.share <= loss.most_share + 1e-9 <= 1 + 1e-9
    assert loss.most.reach >= min(REACH[1], REACH[0] * LIMITS[loss.place])
    assert "dpframe chose" in remark_of(loss, "limit_rows(5)", by_groups=False)


@pytest.mark.parametrize("kind", HEAVY)
def test_no_more_is_dropped_than_is_said(kind: str) -> None:
    """Of 60 runs on six draws of the data, at a hundred times the miss of warnings."""
    drawn, miss, more, others = np.random.default_rng(11), Fraction(1, 10), 0, 0
    for _ in range(6):
        rows = HEAVY[kind](drawn, int(drawn.integers(2000, 5001)))
        for _ in range(10):
            counts = noisy(rows, drawn)
            loss = RULE.best_loss(counts)
            most = RULE.most(counts, loss.place, miss)
            limit = LIMITS[loss.place]
            within = np.minimum(rows, most.reach)
            more += lost(within, limit) > most.rows
            others += int((rows > limit).sum()) > most.individuals
            if lost(rows, limit) > 0.15 * rows.sum() and rows.max() <= loss.most.reach:
                assert loss.is_much
    for missed in (more, others):
        assert binom.sf(missed - 1, 60, float(miss)) > WRONG


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEEN)
def test_it_errs_little_more_than_the_best_limit(kind: str) -> None:
    """In the median of the absolute error; nothing that hides an outlier can find its limit."""
    drawn, found, fixed = np.random.default_rng(3), list[float](), []
    for _ in range(30):
        rows = SEEN[kind](drawn, int(drawn.integers(2000, 5001)))
        drops = np.array([lost(rows, n) for n in LIMITS])
        fixed.append(abs(drawn.laplace(0, np.array(LIMITS), (100, len(LIMITS))) - drops))
        for _ in range(5):
            place = RULE.best_loss(noisy(rows, drawn)).place
            noise = drawn.laplace(0, LIMITS[place] / (EPSILON - SEARCH), 20)
            found += abs(noise - drops[place]).tolist()
    best = np.median(np.concatenate(fixed), axis=0).min()
    assert np.median(found) < 1.9 * best


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("Pareto from 6", 2000, 10_000), ("Weibull 0.5", 100, 500)]
)
def test_a_limit_fits_where_a_tail_begins_late_and_where_it_ends(
    kind: str, least: int, most: int
) -> None:
    drawn = np.random.default_rng(8)
    limits = [
        LIMITS[RULE.best_loss(noisy(SEEN[kind](drawn, 3500), drawn)).place] for _ in range(15)
    ]
    assert least <= np.median(limits) <= most


@given(st.floats(0, 100), st.floats(0.01, 100))
def test_the_median_error_is_that_of_the_noise(dropped: float, noise: float) -> None:
    def median(*, is_normal: bool) -> float:
        return float(median_error(np.array(dropped), np.array(noise), is_normal=is_normal))

    m, scale = median(is_normal=False), noise / math.log(20)
    assert m >= dropped
    assert math.exp((dropped - m) / scale) + math.exp(-(dropped + m) / scale) == pytest.approx(1)
    exact = foldnorm.ppf(0.5, dropped / (noise / 1.96), scale=noise / 1.96)
    assert median(is_normal=True) == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("law", [LAW, NORMAL], ids=["Laplace", "Gauss"])
def test_the_density_is_that_of_both_kinds_of_noise_together(law: AdditiveMechanism) -> None:
    off, spread = (part.ravel() for part in np.meshgrid([0.0, 5, -40, 300], [1.0, 90, 2000]))
    t = np.linspace(-900, 900, 36_001)
    noise = np.exp(-(t**2) / 1600) if law is NORMAL else np.exp(-np.abs(t) / 20)
    normal = np.exp(-((off[:, None] - t) ** 2) / (2 * spread[:, None])) / np.sqrt(spread[:, None])
    exact = np.log((noise * normal).sum(axis=1))
    density = _log_density(off, spread, law)
    np.testing.assert_allclose(density - density[0], exact - exact[0], atol=2e-3)


@pytest.mark.parametrize("law", [LAW, NORMAL], ids=["Laplace", "Gauss"])
def test_the_quantile_of_losses_holds_and_is_little_too_large(law: AdditiveMechanism) -> None:
    drawn, ends, miss = np.random.default_rng(2), np.array(LIMITS[:10]), Fraction(1, 20)
    found = quantile_of_losses(law, tuple(ends.tolist()), miss)
    if law is LAW:
        p = 1 - math.exp(-1 / 20)
        noise = drawn.geometric(p, (10_000, 10)) - drawn.geometric(p, (10_000, 10))
    else:
        noise = np.rint(drawn.normal(0, math.sqrt(800), (10_000, 10)))
    losses = np.maximum(0, -noise) @ ends
    beyond = int((losses > found).sum())
    assert binom.sf(beyond - 1, 10_000, float(miss)) > WRONG
    assert (losses > 0.93 * found).mean() > float(miss)


def test_where_noise_hides_who_has_more_no_low_limit_is_taken() -> None:
    few = RULE.best_loss([40, *[0] * len(LIMITS)])
    assert LIMITS[few.place] == BLIND
    many = RULE.best_loss([20_000, *[0] * len(LIMITS)])
    assert LIMITS[many.place] <= 2


@given(st.integers(1, 40), st.integers(50, 3000))
@settings(max_examples=30)
def test_a_usual_group_has_who_has_rows_in_it(rows: int, individuals: int) -> None:
    """Of individuals who have as many rows each, in groups that are drawn for each row."""
    rule, counts = LimitRule(LIMITS, ()), histogram([rows] * individuals)
    least, most = (
        [t for t in (0, *LIMITS) if t < rows][-1] + 1,
        min(t for t in LIMITS if t >= rows),
    )
    found = rule.usual_size(counts)
    lowest, highest = (individuals * (1 - (1 - 1 / GROUPS) ** t) for t in (least - 1, most))
    assert lowest - 1e-6 <= found <= highest + 1e-6


def test_groups_of_a_usual_size_appear_where_they_can() -> None:
    counts = histogram(HEAVY["Pareto 1.5"](np.random.default_rng(5), 8000))
    usual = LimitRule(LIMITS, NOISE).usual_size(counts)
    free = LimitRule(LIMITS, NOISE).best_loss(counts)
    sizes = tuple(math.floor(usual * (p + 1) / free.place) for p in range(len(LIMITS)))
    assert LimitRule(LIMITS, NOISE, sizes).best_loss(counts).place == free.place - 1
    none = tuple(10**9 + n for n in LIMITS)
    assert LimitRule(LIMITS, NOISE, none).best_loss(counts).place == 0


def test_much_is_more_than_a_tenth() -> None:
    sure = DiscreteLaplace(Fraction(1, 100))
    rule = LimitRule((1, 2), (1.0, 10**9), (), sure)
    assert rule.best_loss([50_000, 40_000, 0]).is_much  # 2 is out of the question
    assert not rule.best_loss([50_000, 400, 0]).is_much
