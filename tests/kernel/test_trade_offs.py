"""mu of Gaussian differential privacy: no test tells neighbours better, and one tells as well."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting.gaussian_noise import largest_mu_squared, log_delta_normal
from dpframe.kernel.trade_offs import (
    _is_convex,
    bounded_range_mu_squared,
    gaussian_mu_squared,
    laplace_mu_squared,
    pure_mu_squared,
    response_mu_squared,
)

Corners = "list[tuple[Any, Any]]"


def z(p: Any, q: Any) -> Any:
    """The quantile at p = 1 - q, by the lesser of the two."""
    if p == q:
        return mp.mpf(0)
    tail = min(p, q)
    found = mp.findroot(
        lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2) - mp.log(tail), mp.sqrt(-2 * mp.log(2 * tail))
    )
    return found if q < p else -found


def least_mu(p: list[Any], q: list[Any]) -> Any:
    """By all tests of likelihood ratios between two discrete laws."""
    order = sorted(range(len(p)), key=lambda i: p[i] / q[i])
    best = mp.mpf(0)
    hit, alarm = mp.fsum(p), mp.fsum(q)
    miss, quiet = mp.mpf(0), mp.mpf(0)
    for i in order[:-1]:  # the test says P for outcomes after these
        miss += p[i]
        quiet += q[i]
        hit, alarm = 1 - miss, 1 - quiet
        if min(hit, alarm, miss, quiet) > mp.mpf(10) ** -30:
            best = max(best, z(quiet, alarm) - z(miss, hit))
    return best


def root(value: Fraction) -> Any:
    return mp.sqrt(mp.mpf(value.numerator) / value.denominator)


def assert_covers(found: Fraction, exact: Any, near: float = 1e-8) -> None:
    assert exact <= root(found) <= exact * (1 + near)


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mp.workdps(50):
        yield


@pytest.mark.parametrize("epsilon", ["1e-12", "0.001", "0.1", "0.19", "0.2", "1", "4", "30", "600"])
def test_pure_privacy(epsilon: str) -> None:
    e = mp.mpf(epsilon)
    exact = 2 * z(1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e)))
    assert_covers(pure_mu_squared(Fraction(epsilon)), exact, 1e-3 if e > 500 else 1e-8)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3", "9"])
@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
def test_responses(epsilon: str, categories: int) -> None:
    e = mp.exp(mp.mpf(epsilon))
    p = [e, mp.mpf(1), *[mp.mpf(1)] * (categories - 2)]
    p = [x / mp.fsum(p) for x in p]
    q = [p[1], p[0], *p[2:]]
    # the categories that are alike are one outcome
    merged = ([p[0], p[1], mp.fsum(p[2:])], [q[0], q[1], mp.fsum(q[2:])])
    exact = least_mu(*(merged if categories > 2 else (p, q)))
    assert_covers(response_mu_squared(Fraction(epsilon), categories), exact)


@pytest.mark.parametrize("epsilon", ["640", "660", "689", "701", "3000", "999999", "2e6", "1e30"])
@pytest.mark.parametrize("categories", [2, 3, 1000])
def test_huge_losses_cost_as_much_as_they_tell(epsilon: str, categories: int) -> None:
    """The tail beyond x is phi(x) / x at most, and as good as that; by logarithms alone."""
    e = mp.mpf(epsilon)

    def beyond(log_tail: Any) -> Any:
        x = mp.sqrt(-2 * log_tail)
        for _ in range(9):
            x = mp.sqrt(-2 * (log_tail + mp.log(2 * mp.pi) / 2 + mp.log(x)))
        return x

    exact = beyond(-e) + beyond(-e + mp.log(categories - 1))
    found = response_mu_squared(Fraction(epsilon), categories)
    assert_covers(found, exact * (1 - 3 / e), 0.02 if e < 1000 else 0.01)
    assert found <= pure_mu_squared(Fraction(epsilon))
    assert_covers(
        bounded_range_mu_squared(2 * Fraction(epsilon)), 2 * beyond(-e) * (1 - 3 / e), 0.02
    )


@pytest.mark.parametrize("width", ["0.1", "1", "5"])
def test_bounded_range(width: str) -> None:
    """Losses t and t - width, at all t; the middle is the worst."""
    e = mp.mpf(width)
    worst = mp.mpf(0)
    for i in range(1, 40):
        t = e * i / 40
        p = (mp.exp(e) - mp.exp(t)) / (mp.exp(e) - 1)
        pair = [p, 1 - p], [p * mp.exp(-t), (1 - p) * mp.exp(e - t)]
        worst = max(worst, least_mu(*pair))
    assert_covers(bounded_range_mu_squared(Fraction(width)), worst)


def laplace(scale: Fraction, steps: int) -> tuple[list[Any], list[Any]]:
    q = mp.exp(-mp.mpf(scale.denominator) / scale.numerator)
    p = [1 / (1 + q), *((1 - q) / (1 + q) * q**x for x in range(1, steps)), q**steps / (1 + q)]
    return p, p[::-1]


@settings(max_examples=15, deadline=None)
@given(st.fractions("1/4", 30, max_denominator=8), st.integers(1, 12))
def test_laplace_noise(scale: Fraction, steps: int) -> None:
    exact = least_mu(*laplace(scale, steps))
    assert_covers(laplace_mu_squared(1 / scale, steps, steps), exact)


@pytest.mark.parametrize("move", [(1, 1), (2, 1), (1, 1, 1), (3, 1)])
@pytest.mark.parametrize("scale", ["1", "4"])
def test_vectors_of_laplace_noise(move: tuple[int, ...], scale: str) -> None:
    """By the product of what each entry shows; it is not easier to tell than mu says."""
    pairs = [laplace(Fraction(scale), d) for d in move]
    p = [math.prod(ps) for ps in product(*(pair[0] for pair in pairs))]
    q = [math.prod(qs) for qs in product(*(pair[1] for pair in pairs))]
    merged: dict[Any, list[Any]] = {}
    for a, b in zip(p, q, strict=True):
        entry = merged.setdefault(mp.nstr(mp.log(a / b), 20), [mp.mpf(0), mp.mpf(0)])
        entry[0] += a
        entry[1] += b
    exact = least_mu([a for a, _ in merged.values()], [b for _, b in merged.values()])
    found = laplace_mu_squared(1 / Fraction(scale), sum(move), max(move))
    assert exact <= root(found)
    less = laplace_mu_squared(1 / Fraction(scale), sum(move), sum(move))
    assert found <= less or max(move) == 1


@pytest.mark.parametrize("sigma", ["0.01", "0.3", "0.8", "1", "2.5", "9", "19.9", "20.1", "60"])
def test_discrete_gaussian_noise(sigma: str) -> None:
    variance = Fraction(sigma) ** 2
    v = mp.mpf(variance.numerator) / variance.denominator
    reach = math.ceil(12 * float(sigma)) + 3
    weights = [mp.exp(-mp.mpf(x * x) / (2 * v)) for x in range(-reach, reach + 1)]
    total = mp.fsum(weights)
    p = [w / total for w in weights]
    exact = least_mu(p[1:], p[:-1]) if float(sigma) < 5 else _centre(p)
    found = gaussian_mu_squared(variance, 1)
    if float(sigma) <= 0.3:  # tests in the far tail tell best, which the sum above leaves out
        assert root(found) >= exact
        return
    assert_covers(found, exact, 1e-8 if float(sigma) <= 20 else 2.0 / float(variance))
    assert found * variance < 1 + Fraction(1, 8) / variance or float(sigma) > 20 or variance < 2


def _centre(p: list[Any]) -> Any:
    """The corners nearest to the middle, which are the worst of wide noise but for the last digits
    of tails.
    """
    half = p[len(p) // 2] / 2
    return 2 * z(mp.mpf(1) / 2 + half, mp.mpf(1) / 2 - half)


@pytest.mark.parametrize("variance", [1, 4, 30, 100])
def test_corners_are_followed_until_an_analytic_bound_takes_over(variance: int) -> None:
    """Steps in 50 digits well beyond where floats follow them."""
    mu = root(gaussian_mu_squared(Fraction(variance), 1))
    last = 20 * variance + 40

    def quantile(j: int) -> Any:
        terms = [
            mp.exp(-mp.mpf((k * k) - (j + 1) ** 2) / (2 * variance)) for k in range(j + 1, j + 60)
        ]
        norm = 1 + 2 * mp.fsum(mp.exp(-mp.mpf(k * k) / (2 * variance)) for k in range(1, 200))
        log = mp.log(mp.fsum(terms)) - mp.mpf((j + 1) ** 2) / (2 * variance) - mp.log(norm)
        guess = mp.sqrt(-2 * log)
        return mp.findroot(
            lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2) - log, guess, tol=mp.mpf(10) ** -30
        )

    for j in (last // 4, last // 2, last - 1, last, last + 1, 3 * last):
        assert quantile(j) - quantile(j - 1) <= mu


@pytest.mark.parametrize(("at", "h"), [("1.5", "1"), ("2", "0.25"), ("0.75", "0.5")])
def test_later_corners_are_judged_by_three_cells_in_a_row(at: str, h: str) -> None:
    """What the normal law has before `at`, from `at` on, and after that, in cells of width h: the
    outer two multiplied, over the square of the one between them.
    """

    def beyond(k: int) -> Any:
        return mp.erfc((mp.mpf(at) + k * mp.mpf(h)) / mp.sqrt(2)) / 2

    before, one, after = (beyond(k) - beyond(k + 1) for k in (-1, 0, 1))
    ratio = before * after / one**2
    for times, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
        assert _is_convex(Decimal(at), Decimal(h), Decimal(str(ratio * times))) is holds


def test_a_vector_costs_by_l2() -> None:
    one = gaussian_mu_squared(Fraction(100), 1)
    assert gaussian_mu_squared(Fraction(100), 7) == 7 * one
    assert one * 100 == pytest.approx(1 + 1 / 1200, rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.001", "1", "20", "10000"])
@pytest.mark.parametrize("digits_of_delta", [2, 8, 100])
def test_what_mu_implies(epsilon: str, digits_of_delta: int) -> None:
    """Balle and Wang 2018, Theorem 8, in 50 digits, and hardly any more mu keeps it."""
    log_delta = -digits_of_delta * math.log(10)
    found = largest_mu_squared(Fraction(epsilon), log_delta, 8)
    mu, e = root(found), mp.mpf(epsilon)

    def delta(mu: Any) -> Any:
        a = e / mu - mu / 2
        tail = lambda x: mp.erfc(x / mp.sqrt(2)) / 2  # noqa: E731
        with mp.workdps(400):
            return tail(a) - mp.exp(e) * tail(a + mu)

    assert delta(mu) <= mp.mpf(10) ** -digits_of_delta
    assert delta(mu * mp.mpf("1.000001")) > mp.mpf(10) ** -digits_of_delta
    assert log_delta_normal(float(mu), float(epsilon)) <= log_delta


def test_mu_of_composed_noise_is_never_above_the_sum() -> None:
    """A hundred counts of Laplace noise: mu from the sum of squares covers the exact delta."""
    from dpframe import accounting

    total = 100 * pure_mu_squared(Fraction(1, 10))
    exact = accounting.PrivacyLossAccountant([accounting.DiscreteLaplaceEvent(10)] * 100)
    for epsilon in np.linspace(0.5, 8, 16):
        ours = log_delta_normal(math.sqrt(total), float(epsilon))
        assert exact.delta(float(epsilon)) <= math.exp(ours) * (1 + 1e-9)
    assert pure_mu_squared(Fraction(1, 10)) < Fraction(1571, 100000)
