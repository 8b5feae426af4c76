"""What purely private noise costs in rho: no less than its Renyi divergences, which reach it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpframe.mechanisms import DiscreteLaplace, RandomizedResponse, RoundedLaplace
from dpframe.mechanisms.pure_rho import laplace_rho, pure_rho, response_rho

ORDERS = 1.0 + np.geomspace(1e-3, 1e4, 400)


def over_order(p: Any, q: Any) -> Any:
    """The Renyi divergences over their orders."""
    p, q = np.asarray(p), np.asarray(q)
    logs = np.multiply.outer(ORDERS, np.log(p)) + np.multiply.outer(1 - ORDERS, np.log(q))
    top = logs.max(axis=1)
    return (top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / (ORDERS - 1) / ORDERS


def mean_loss(p: Any, q: Any) -> float:
    return float((np.asarray(p) * np.log(np.asarray(p) / np.asarray(q))).sum())


@cache
def moved(scale: float, steps: int) -> tuple[Any, Any]:
    """Discrete Laplace noise: the classes of outcomes with one loss each, before and after."""
    q = math.exp(-1 / scale)
    inner = [q**x * (1 - q) / (1 + q) for x in range(1, steps)]
    p = np.array([1 / (1 + q), *inner, q**steps / (1 + q)])
    return p, p[::-1]


def responses(epsilon: float, categories: int) -> tuple[Any, Any]:
    total = math.exp(epsilon) + categories - 1
    p = [math.exp(epsilon) / total, 1 / total] + [1 / total] * (categories - 2)
    return p, [p[1], p[0], *p[2:]]


@settings(max_examples=40, deadline=None)
@given(st.fractions("1/8", 50, max_denominator=8), st.integers(1, 40))
def test_laplace_noise_costs_its_mean_loss(scale: Fraction, steps: int) -> None:
    pair = moved(float(scale), steps)
    rho = float(laplace_rho(scale, Fraction(steps)))
    assert over_order(*pair).max() <= rho * (1 + 1e-7)  # divergences next to order 1 cancel
    # moves of one step cost half a percent more at most, in few digits
    assert rho == pytest.approx(mean_loss(*pair), rel=1e-9 if steps > 1 or scale < 4 else 0.0053)
    assert rho <= (steps / float(scale)) ** 2 / 2 * (1 + 1e-12)


def test_on_a_fine_grid_it_is_that_of_continuous_noise() -> None:
    """epsilon - 1 + exp(-epsilon) (Harrison and Manurangsi 2026)."""
    for epsilon in ("0.01", "0.1", "1", "4"):
        e = Fraction(epsilon)
        rho = laplace_rho(2**30 / e, Fraction(2**30))
        with mp.workdps(40):
            exact = mp.mpf(epsilon) - 1 + mp.exp(-mp.mpf(epsilon))
            assert 0 <= mp.mpf(rho.numerator) / rho.denominator / exact - 1 < 1e-8


def vectors(l1: int, linf: int, entries: int) -> list[tuple[int, ...]]:
    return [d for d in product(range(linf + 1), repeat=entries) if sum(d) <= l1]


@pytest.mark.parametrize("scale", ["0.4", "3", "25"])
@pytest.mark.parametrize(("l1", "linf", "entries"), [(1, 1, 1), (3, 1, 3), (5, 2, 4), (6, 4, 3)])
def test_no_move_of_a_vector_costs_more(scale: str, l1: int, linf: int, entries: int) -> None:
    law = DiscreteLaplace(Fraction(scale))
    rho = law.rho(Fraction(l1), None, Fraction(linf))
    costs = [
        sum(over_order(*moved(float(scale), d)) for d in move if d)
        for move in vectors(l1, linf, entries)
    ]
    most = max(float(np.max(c)) for c in costs)
    assert most <= float(rho) * (1 + 1e-7)
    assert most >= float(rho) * (1 - 6e-3)  # near order 1 it is reached
    for squared in range(l1, l1 * linf + 1):
        bound = float(law.rho(Fraction(l1), Fraction(squared), Fraction(linf)))
        moves = vectors(l1, linf, entries)
        for move, cost in zip(moves, costs, strict=True):
            if sum(d * d for d in move) <= squared:
                assert np.max(cost) <= bound * (1 + 1e-7)


def test_a_vector_of_counts_costs_as_many_times_what_one_does() -> None:
    """By L1 alone it was the square of that."""
    one = DiscreteLaplace(Fraction(10)).rho(Fraction(1))
    many = DiscreteLaplace(Fraction(10)).rho(Fraction(12), Fraction(12), Fraction(1))
    assert abs(many - 12 * one) < one / 10**14  # both are rounded up


@settings(max_examples=40, deadline=None)
@example(Fraction(3), 20)
@example(Fraction(8), 1000)
@given(
    st.fractions("1/100", 9, max_denominator=100),
    st.sampled_from([2, 3, 6, 7, 8, 12, 40, 1000]),
)
def test_responses_cost_the_largest_slope(epsilon: Fraction, categories: int) -> None:
    pair = responses(float(epsilon), categories)
    rho = float(response_rho(epsilon, categories))
    most = float(over_order(*pair).max())
    assert most <= rho * (1 + 1e-7)
    assert rho <= max(most, mean_loss(*pair)) * 1.01


@pytest.mark.parametrize("epsilon", ["1e-9", "1/3", "5", "100", "999999", "1000001/3", "4e7/3"])
@pytest.mark.parametrize("categories", [2, 3, 5])
def test_rho_is_rounded_up(epsilon: str, categories: int) -> None:
    """The mean loss, in 200 digits; beyond them is nothing to be seen of a huge one."""
    numerator, _, denominator = epsilon.partition("/")
    e = Fraction(numerator) / Fraction(denominator or 1)
    with mp.workdps(200):
        x = mp.mpf(e.numerator) / e.denominator
        mean = x * (1 - mp.exp(-x)) / (1 + (categories - 1) * mp.exp(-x))
        found = response_rho(e, categories)
        over = mp.mpf(found.numerator) / found.denominator / mean - 1
        assert -(mp.mpf(10) ** -180) <= over <= mp.mpf("1e-15")


@settings(max_examples=30, deadline=None)
@given(
    st.fractions("1/1000", 40, max_denominator=1000),
    st.integers(1, 60),
    st.integers(1, 9),
    st.booleans(),
)
def test_the_least_scale_keeps_rho(rho: Fraction, l1: int, linf: int, squared: bool) -> None:
    norms = (Fraction(l1 * min(l1, linf)) if squared else None, Fraction(linf))
    law = DiscreteLaplace.for_zcdp(Fraction(l1), rho, *norms)
    assert rho * (1 - Fraction(1, 10**9)) < law.rho(Fraction(l1), *norms) <= rho


@pytest.mark.parametrize("categories", [2, 5, 9, 300])
@pytest.mark.parametrize("rows", [1, 4])
def test_reports_of_several_rows_add_up(rows: int, categories: int) -> None:
    law = RandomizedResponse.for_zcdp(rows, Fraction(1, 10), categories)
    assert Fraction(99999, 10**6) < law.rho(rows) <= Fraction(1, 10)
    assert law.rho(rows) == rows * law.rho(1)


def test_finer_noise_costs_less_and_the_worst_nearly_half_its_squared_epsilon() -> None:
    assert RoundedLaplace(Fraction(10)).rho(Fraction(1)) < DiscreteLaplace(Fraction(10)).rho(
        Fraction(1)
    )
    assert float(pure_rho(Fraction(1, 10))) == pytest.approx(0.1 * math.tanh(0.05), rel=1e-15)
    assert pure_rho(Fraction(0)) == 0
