"""Costs that are no pure epsilon, against the exact laws of small draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel.laws import noise_losses, response_rho
from dpframe.kernel.losses import (
    Geometrics,
    Loss,
    Normals,
    Ranged,
    Reported,
    Wholes,
    _transform,
    gaussian_delta,
    losses_delta,
    rho_delta,
)
from dpframe.kernel.moves import Norms
from dpframe.kernel.plan import Gaussian, Staircase
from dpframe.kernel.tails import gaussian_sum, gaussian_tail, mills, quantile_up
from dpframe.kernel.trade_offs import (
    bounded_range_mu_squared,
    gaussian_mu_squared,
    laplace_mu_squared,
    pure_mu_squared,
    response_mu_squared,
)
from tests.accounting.test_choices import strategy, worst
from tests.kernel.plans import plans

F = Fraction
NORMAL = NormalDist()


def gaussian(sigma_squared: float, centre: int, far: int) -> list[float]:
    terms = [math.exp(-((x - centre) ** 2) / (2 * sigma_squared)) for x in range(-far, far + 1)]
    return [term / math.fsum(terms) for term in terms]


def laplace(h: float, centre: int, far: int) -> list[float]:
    terms = [math.exp(-h * abs(x - centre)) for x in range(-far, far + 1)]
    return [term / math.fsum(terms) for term in terms]


def joined(laws: list[list[float]]) -> list[float]:
    return [math.prod(chances) for chances in product(*laws)]


def true_delta(one: list[float], other: list[float], epsilon: float) -> float:
    grown = math.exp(epsilon)
    return math.fsum(max(0.0, p - grown * q) for p, q in zip(one, other, strict=True))


def true_mu(one: list[float], other: list[float]) -> float:
    """The largest z(alpha) + z(beta) over the tests that are best, where both are known well."""
    known = [(p, q) for p, q in zip(one, other, strict=True) if p > 0 and q > 0]
    pairs = sorted(known, key=lambda pair: pair[0] / pair[1])
    alpha, beta, found = 0.0, 1.0, 0.0
    for p, q in pairs:  # the first results are said to come from `other`
        alpha, beta = alpha + p, beta - q
        if 1e-6 < alpha < 1 - 1e-6 and 1e-6 < beta < 1 - 1e-6:
            found = max(found, -NORMAL.inv_cdf(alpha) - NORMAL.inv_cdf(beta))
    return found


MOVES = [(1,), (3,), (1, 1), (1, 1, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("sigma_squared", [F(1, 2), F(2), F(13, 2)])
@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(3)])
def test_delta_of_gaussian_noise_is_true(
    moves: tuple[int, ...], sigma_squared: Fraction, epsilon: Fraction
) -> None:
    far = 26 if len(moves) < 3 else 16
    one = joined([gaussian(float(sigma_squared), 0, far) for _ in moves])
    other = joined([gaussian(float(sigma_squared), move, far) for move in moves])
    stated = gaussian_delta(
        sigma_squared, len(moves), sum(m * m for m in moves), max(moves), epsilon
    )
    lost = true_delta(one, other, float(epsilon))
    assert lost <= float(stated) * (1 + 1e-6) + 1e-13
    if max(moves) == 1 or len(moves) == 1:
        assert lost >= 0.9 * float(stated) or lost < 1e-9 or sigma_squared < 1


@pytest.mark.parametrize("sigma_squared", [F(200), F(300), F(5000)])
@pytest.mark.parametrize("least", [1, 10, 60, 200])
def test_sums_by_integrals_are_those_of_terms(sigma_squared: Fraction, least: int) -> None:
    half = float(1 / (2 * sigma_squared))
    ends = range(least, least + int(20 * float(sigma_squared) ** 0.5))
    terms = math.fsum(math.exp(-half * (x * x - least * least)) for x in ends)
    low, high = gaussian_sum(sigma_squared, least)
    assert low <= high
    assert math.isclose(float(low), terms, rel_tol=1e-12)
    assert math.isclose(float(high), terms, rel_tol=1e-12)


@given(st.fractions(F(1, 10), 1000), st.integers(-50, 50))
def test_tails_add_up_to_one(sigma_squared: Fraction, least: int) -> None:
    low, high = gaussian_tail(sigma_squared, least)
    other, another = gaussian_tail(sigma_squared, 1 - least)
    assert low <= high
    assert abs(low + another - 1) < Decimal("1e-20")
    assert abs(high + other - 1) < Decimal("1e-20")


@given(st.decimals(-8, 30, places=3))
def test_mills_ratio_solves_its_equation(x: Decimal) -> None:
    step = Decimal("1e-8")
    low, high = mills(x)
    slope = (mills(x + step)[0] - mills(x - step)[0]) / (2 * step)
    assert 0 < low <= high
    assert math.isclose(float(slope), float(x * low - 1), rel_tol=1e-6, abs_tol=1e-9)


@given(st.floats(1e-200, 0.999))
def test_quantiles_are_not_below_the_true_ones(tail: float) -> None:
    found = float(quantile_up(Decimal(tail).ln()))
    true = -NORMAL.inv_cdf(tail)
    assert found >= true - 1e-12 * (1 + abs(true))
    assert math.isclose(found, true, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("sigma_squared", [F(1, 4), F(1), F(3), F(10)])
@pytest.mark.parametrize("moves", [(1,), (1, 1), (2, 1)])
def test_mu_of_gaussian_noise_is_true(sigma_squared: Fraction, moves: tuple[int, ...]) -> None:
    one = joined([gaussian(float(sigma_squared), 0, 30) for _ in moves])
    other = joined([gaussian(float(sigma_squared), move, 30) for move in moves])
    stated = float(gaussian_mu_squared(sigma_squared, sum(m * m for m in moves))) ** 0.5
    lost = true_mu(one, other)
    assert lost <= stated * (1 + 1e-9)
    if len(moves) == 1:
        assert lost >= 0.98 * stated


@pytest.mark.parametrize("h", [F(1, 4), F(1), F(2)])
@pytest.mark.parametrize("moves", [(1,), (4,), (1, 1), (2, 1), (2, 2)])
def test_mu_of_laplace_noise_is_true(h: Fraction, moves: tuple[int, ...]) -> None:
    one = joined([laplace(float(h), 0, 60) for _ in moves])
    other = joined([laplace(float(h), move, 60) for move in moves])
    stated = float(laplace_mu_squared(h, sum(moves), max(moves))) ** 0.5
    lost = true_mu(one, other)
    assert lost <= stated * (1 + 1e-9)
    if len(moves) == 1:
        assert lost >= 0.98 * stated


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
@pytest.mark.parametrize("cells", [2, 3, 7, 20, 500])
def test_reports_cost_what_they_reveal(epsilon: Fraction, cells: int) -> None:
    grown, n = math.exp(float(epsilon)), math.exp(float(epsilon)) + cells - 1
    one, other = [grown / n, 1 / n], [1 / n, grown / n]
    rest = [1 / n] * (cells - 2)
    mu = true_mu([*one, *rest], [*other, *rest])
    squared = float(response_mu_squared(epsilon, cells))
    assert 0.98 * squared <= mu * mu <= squared * (1 + 1e-9)
    worst = 0.0
    for order in [1 + 2 ** (k / 8) for k in range(-100, 100)]:
        logs = [
            order * math.log(p) + (1 - order) * math.log(q) for p, q in zip(one, other, strict=True)
        ]
        logs.append(math.log(max(cells - 2, 1e-300) / n))
        total = max(logs) + math.log(math.fsum(math.exp(x - max(logs)) for x in logs))
        worst = max(worst, total / (order - 1) / order)
    rho = float(response_rho(epsilon, cells))
    assert worst <= rho * (1 + 1e-3) + 1e-10  # orders next to 1 are off by rounding
    assert 0.98 * rho <= worst


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(4)])
def test_choices_and_pure_mechanisms_cost_what_they_reveal(epsilon: Fraction) -> None:
    e = float(epsilon)
    p = 1 / (1 + math.exp(-e))
    squared = float(pure_mu_squared(epsilon))
    assert math.isclose(true_mu([p, 1 - p], [1 - p, p]) ** 2, squared, rel_tol=1e-9)
    worst = 0.0
    for k in range(1, 40):  # losses t and t - epsilon
        t = e * k / 40
        q = (1 - math.exp(t - e)) / (math.exp(t) - math.exp(t - e))
        worst = max(worst, true_mu([q * math.exp(t), 1 - q * math.exp(t)], [q, 1 - q]))
    bounded = float(bounded_range_mu_squared(epsilon))
    assert 0.98 * bounded <= worst**2 <= bounded * (1 + 1e-9)


@given(st.fractions(F(1, 1000), 5), st.fractions(F(1, 100), 50), st.floats(1.01, 200))
def test_no_order_gives_less_delta_from_rho(rho: Fraction, epsilon: Fraction, a: float) -> None:
    """Any order gives a bound, and the one that is used is the best."""
    power = (a - 1) * (a * float(rho) - float(epsilon)) + a * math.log1p(-1 / a) - math.log(a - 1)
    assert float(rho_delta(rho, epsilon)) <= math.exp(min(0.0, power)) * (1 + 1e-9) + 1e-300


def of_atoms(law: Loss) -> list[tuple[float, float]]:
    """The losses of one draw, and their chances."""
    match law:
        case Reported(epsilon, cells):
            e, n = float(epsilon), math.exp(float(epsilon)) + cells - 1
            return [(e, math.exp(e) / n), (-e, 1 / n), (0.0, (cells - 2) / n)]
        case Geometrics(h, steps):
            far = 40 + int(40 / h)
            one, other = (laplace(float(h), move, far) for move in (0, steps))
        case Wholes(sigma_squared):
            one, other = (
                gaussian(float(sigma_squared), 0, 22),
                gaussian(float(sigma_squared), 1, 22),
            )
        case Ranged(epsilon):
            e, m = float(epsilon), 400
            ends = [-e + 2 * e * k / m for k in range(m + 1)]
            c = 1 / (2 * (1 - math.exp(-e)))
            masses = [
                2 * c * (math.exp((b - e) / 2) - math.exp((a - e) / 2)) for a, b in pairwise(ends)
            ]
            return [
                ((a + b) / 2, mass) for (a, b), mass in zip(pairwise(ends), masses, strict=True)
            ]
        case Normals(d_squared):
            d = float(d_squared) ** 0.5
            places = [-8 + k / 25 for k in range(401)]
            return [
                (d * d / 2 + d * (a + b) / 2, NORMAL.cdf(b) - NORMAL.cdf(a))
                for a, b in pairwise(places)
            ]
        case _:
            raise ValueError(law)
    return [(math.log(p / q), p) for p, q in zip(one, other, strict=True) if p > 0 and q > 0]


THIRD = Reported(F(1, 3), 2)


@pytest.mark.parametrize(
    ("losses", "near"),
    [
        ({THIRD: 4}, 1e-6),
        ({THIRD: 2, Reported(F(1, 5), 5): 2}, 1e-6),
        ({Geometrics(F(1, 4), 3): 3}, 1e-6),
        ({Geometrics(F(1, 4), 1): 1, THIRD: 1}, 1e-6),
        ({Wholes(F(2)): 2}, 1e-6),
        ({Wholes(F(1, 4)): 1, THIRD: 1}, 1e-6),
        ({Ranged(F(1, 2)): 2, THIRD: 1}, 1e-3),
        ({Normals(F(1, 4)): 1, THIRD: 2}, 1e-3),
    ],
)
@pytest.mark.parametrize("epsilon", [F(7, 10)])
def test_losses_add_up_to_the_true_delta(
    losses: dict[Loss, int], near: float, epsilon: Fraction
) -> None:
    every = list[dict[float, float]]()
    for law, n in losses.items():
        merged: dict[float, float] = {}
        for loss, chance in of_atoms(law):
            merged[round(loss, 9)] = merged.get(round(loss, 9), 0.0) + chance
        every += [merged] * n
    atoms: dict[float, float] = {0.0: 1.0}
    for mine in every:
        added: dict[float, float] = {}
        for a, p in atoms.items():
            for b, q in mine.items():
                added[round(a + b, 9)] = added.get(round(a + b, 9), 0.0) + p * q
        atoms = added
    lost = math.fsum(max(0.0, 1 - math.exp(float(epsilon) - loss)) * p for loss, p in atoms.items())
    found = float(losses_delta(frozenset(losses.items()), epsilon))
    assert lost * (1 - near) <= found <= lost * (1 + 1e-4 + near) + 1e-12


def test_losses_of_many_draws_cost_what_other_methods_find() -> None:
    """Values of 60 digits, by convolution: 100 draws of discrete Laplace noise of scale 10."""
    losses = frozenset({(Geometrics(F(1, 10), 1), 100)})
    assert math.isclose(float(losses_delta(losses, F("4.774568"))), 1e-6, rel_tol=1e-4)
    assert losses_delta(losses, F(10)) == 0


def test_gaussian_losses_have_no_largest() -> None:
    losses = frozenset({(Normals(F(10**22)), 1), (Reported(F(1), 2), 1)})
    assert losses_delta(losses, F(2 * 10**9)) == 1


def true_transform(law: Geometrics | Ranged, s: Any) -> Any:
    """E[exp(s L)] with 60 digits."""
    with mp.workdps(60):
        if isinstance(law, Ranged):
            e = mp.mpf(law.epsilon.numerator) / law.epsilon.denominator
            return mp.sinh(e * (s + 0.5)) / (s + 0.5) / mp.sinh(e / 2) / 2
        h = mp.mpf(law.h.numerator) / law.h.denominator
        q, r = mp.exp(-h), mp.exp(-h * (1 + 2 * s))
        inner = (1 - q) * (r - r**law.steps) / (1 - r)
        return mp.exp(s * h * law.steps) * (1 + inner + r**law.steps) / (1 + q)


@pytest.mark.parametrize(
    "law",
    [
        Geometrics(F(1, 10**9), 10**8),
        Geometrics(F(1, 10**12), 10**12),
        Geometrics(F(1, 1 << 56), 1 << 50),
        Geometrics(F(1, 4), 5),
        Ranged(F(1, 10**8)),
        Ranged(F(1, 2)),
    ],
)
@pytest.mark.parametrize("c", [0.5, 10.0, 1000.0])
def test_transforms_of_tiny_steps_keep_their_digits(law: Geometrics | Ranged, c: float) -> None:
    for t in (0.0, 3.0, 1000.0):
        log, curve = _transform(law, np.full(1, c), np.array([t]))
        true = true_transform(law, mp.mpc(c, t)) * mp.exp(-mp.mpf(float(log[0])))
        whole = abs(true_transform(law, mp.mpc(c, 0)) * mp.exp(-mp.mpf(float(log[0]))))
        assert abs(mp.mpc(complex(curve[0])) - true) <= 1e-12 * whole


@given(
    st.integers(0, 2**32), st.sampled_from([0.05, 0.6, 1.9]), st.permutations([0, 1, 2, 3, 4, 5])
)
@settings(max_examples=15)
def test_no_strategy_tells_more_than_many_choices(seed: int, e: float, order: list[int]) -> None:
    """Choices in any order, beside one of another range and a report, each for its own data."""
    kinds = ["choice"] * 4 + ["other range", "report"]
    p, q = strategy(np.random.default_rng(seed), e, [kinds[i] for i in order])
    known = {Ranged(F(e)): 4, Ranged(F(e) / 3): 1, Reported(F(e), 2): 1}
    for epsilon in (0.5 * e, 1.5 * e, 3 * e, 4.5 * e):
        lost = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
        assert float(losses_delta(frozenset(known.items()), F(epsilon))) >= lost * (1 - 1e-9)


@pytest.mark.parametrize(
    "law", [Reported(F(1, 10), 2), Geometrics(F(1, 10), 1), Reported(F(1, 20), 2)]
)
@pytest.mark.parametrize("many", [9_000, 20_000, 41_986, 42_386, 60_000, 250_000])
@pytest.mark.parametrize("z", [0.5, 3.0, 4.75, 9.0, 30.0])
def test_very_many_losses_add_up_to_what_they_are(
    law: Reported | Geometrics, many: int, z: float
) -> None:
    """Against a sum over how many of them are positive. Powers of their transforms are below the
    least float, and a sum of such powers once was a third too small.
    """
    e = float(law.epsilon if isinstance(law, Reported) else law.h)
    epsilon = F(round(1000 * (many * e * e / 2 + z * e * math.sqrt(many))), 1000)
    p, last = 1 / (1 + math.exp(-e)), math.lgamma(many + 1)
    exact = 0.0
    for positive in range(many // 2, many + 1):
        loss = e * (2 * positive - many) - float(epsilon)
        if loss > 0:
            ways = last - math.lgamma(positive + 1) - math.lgamma(many - positive + 1)
            likely = ways + positive * math.log(p) + (many - positive) * math.log1p(-p)
            exact -= math.exp(likely) * math.expm1(-loss)
    found = float(losses_delta(frozenset({(law, many)}), epsilon))
    assert exact * (1 - 1e-7) <= found <= exact * 1.01 + 1e-290


@pytest.mark.parametrize("e", [0.02, 0.3, 1.5])
def test_three_choices_cost_what_they_reveal(e: float) -> None:
    for share in (0.2, 0.5, 0.9):
        epsilon = 3 * e * share
        lost = float(worst(e, 3, np.array([epsilon]))[0])
        found = float(losses_delta(frozenset({(Ranged(F(e)), 3)}), F(epsilon)))
        assert lost * (1 - 1e-9) <= found <= lost * 1.01 + 1e-5 * e
        apart = float(losses_delta(frozenset({(Ranged(F(e), True), 3)}), F(epsilon)))
        assert apart > found * 1.02 or share == 0.2


@pytest.mark.parametrize(
    ("times", "epsilon", "beside", "stated"),
    [
        (12, F(1, 2), 0, 0.00013732545787),
        (12, F(1, 2), 1, 0.00015383660977),
        (12, F(1, 2), 30, 0.00123924450646),
        (100, F(2), 0, 1.072506958e-05),
        (100, F(2), 1, 1.097401969e-05),
        (100, F(2), 30, 2.043087904e-05),
        (1000, F(5), 0, 0.00349244133),
        (1000, F(5), 1, 0.00349756194),
        (1000, F(5), 30, 0.00364830445),
    ],
)
def test_many_choices_cost_what_convolution_finds(
    times: int, epsilon: Fraction, beside: int, stated: float
) -> None:
    """The values are from the same losses composed on a grid by fast Fourier transforms."""
    e = F(1, 10)
    losses: list[tuple[Loss, int]] = [(Ranged(e), times)]
    if beside:
        losses.append((Geometrics(F(1, 40), 1), beside))
    assert math.isclose(float(losses_delta(frozenset(losses), epsilon)), stated, rel_tol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        *(f"many draws {unit}" for unit in ("person", "rows", "changed")),
        *(f"gaussian numbers {unit}" for unit in ("person", "rows", "changed")),
        *(f"deciles {unit}" for unit in ("person", "rows")),
    ],
)
def test_an_epsilon_follows_from_losses(name: str) -> None:
    plan = plans()[f"{name} delta"]
    assert plan.composition == "numerical"
    for wrong in (
        replace(plan, cost=plan.cost * F(99, 100)),
        replace(plan, delta=plan.delta * F(9, 10)),
        replace(plan, measure="epsilon"),
        replace(plan, draws=(*plan.draws, plan.draws[0])),
    ):
        with pytest.raises(Refused):
            verify(wrong)


def exact_delta(losses: Sequence[Loss], epsilon: Fraction) -> Any:
    """Delta by every combination of losses, with fifty digits."""
    mass: dict[Fraction, Any] = {F(0): mp.mpf(1)}
    for law in losses:
        if isinstance(law, Reported):
            rest = mp.exp(-exact(law.epsilon))
            every = [(law.epsilon, 1), (F(0), (law.cells - 2) * rest), (-law.epsilon, rest)]
        else:
            assert isinstance(law, Geometrics)
            q, steps = mp.exp(-exact(law.h)), law.steps
            inner = [(law.h * (steps - 2 * x), q**x * (1 - q)) for x in range(1, steps)]
            every = [(law.h * steps, 1), *inner, (-law.h * steps, q**steps)]
        whole = mp.fsum(weight for _, weight in every)
        sums: dict[Fraction, Any] = {}
        for (one, p), (other, weight) in product(mass.items(), every):
            sums[one + other] = sums.get(one + other, 0) + p * weight / whole
        mass = sums
    gains = (p * (1 - mp.exp(exact(epsilon - at))) for at, p in mass.items() if at > epsilon)
    return mp.fsum(gains)


def exact(number: Fraction) -> Any:
    return mp.mpf(number.numerator) / number.denominator


few_losses = st.one_of(
    st.builds(Reported, st.fractions(0, 3, max_denominator=6), st.integers(2, 5)),
    st.builds(Geometrics, st.fractions("1/6", 2, max_denominator=6), st.integers(1, 6)),
)


@given(
    st.lists(
        st.tuples(few_losses, st.integers(1, 4)), min_size=1, max_size=3, unique_by=lambda x: x[0]
    ),
    st.fractions(0, 12, max_denominator=12),
)
def test_delta_of_few_sums_is_exact(laws: list[tuple[Loss, int]], epsilon: Fraction) -> None:
    with mp.workdps(50):
        true = exact_delta([law for law, n in laws for _ in range(n)], epsilon)
        found = exact(losses_delta(frozenset(laws), epsilon))
        assert true <= found <= true * (1 + mp.mpf("1e-10")) + mp.mpf("1e-299")


@given(
    st.lists(
        st.tuples(st.fractions("1/50", 4, max_denominator=50), st.integers(1, 9)),
        min_size=1,
        max_size=4,
        unique_by=lambda x: x[0],
    ),
    st.fractions(0, 9, max_denominator=9),
)
def test_gaussian_losses_add_up_exactly(
    laws: list[tuple[Fraction, int]], epsilon: Fraction
) -> None:
    found = losses_delta(frozenset((Normals(d), n) for d, n in laws), epsilon)
    with mp.workdps(50):
        d = mp.sqrt(sum(exact(d * n) for d, n in laws))
        a = exact(epsilon) / d - d / 2
        true = mp.ncdf(-a) - mp.exp(exact(epsilon)) * mp.ncdf(-a - d)
        assert true <= exact(found) <= true * (1 + mp.mpf("1e-15")) + mp.mpf("1e-30")


@pytest.mark.parametrize("times", [1, 2, 100, 700])
def test_a_rare_sum_is_as_exact_as_a_likely_one(times: int) -> None:
    e, epsilon = F(1, 2), F(times, 2) - F(1, 4)  # all responses are true
    with mp.workdps(50):
        true = (1 / (1 + mp.exp(-exact(e)))) ** times * (1 - mp.exp(-mp.mpf(1) / 4))
        found = exact(losses_delta(frozenset({(Reported(e, 2), times)}), epsilon))
        assert true <= found <= true * (1 + mp.mpf("1e-8"))


def composed(name: str) -> Plan:
    """A plan in rho, as one of an epsilon that follows from its rho."""
    plan = plans()[name]
    assert plan.measure == "rho"
    delta = rho_delta(plan.cost, F(8))
    return replace(plan, cost=F(8), delta=delta, composition="zcdp")


@pytest.mark.parametrize("name", ["counts person rho", "gaussian rows rho", "winner changed rho"])
def test_an_epsilon_follows_from_rho(name: str) -> None:
    plan = composed(name)
    assert verify(plan).delta == plan.delta > 0
    for wrong in (
        replace(plan, cost=plan.cost * F(999, 1000)),
        replace(plan, delta=plan.delta * F(999, 1000)),
        replace(plan, measure="epsilon"),
        replace(plan, measure="mu_squared"),
    ):
        with pytest.raises(Refused):
            verify(wrong)


def test_one_delta_is_stated_for_one_epsilon() -> None:
    plan = plans()["gaussian sum rows delta"]
    (draw,) = plan.draws
    assert isinstance(draw.law, Gaussian)
    less = replace(draw, cost=draw.cost * F(999, 1000))
    with pytest.raises(Refused, match="draw 0 costs more"):
        verify(replace(plan, draws=(less,)))
    more = replace(draw, cost=draw.cost * 2)
    with pytest.raises(Refused, match="cost more than the plan"):
        verify(replace(plan, draws=(more,)))
    assert verify(replace(plan, draws=(more,), cost=more.cost)).deltas[0] < draw.delta / 100


@pytest.mark.parametrize(("moves", "levels"), [(1, 1), (5, 1), (6, 2), (10, 2), (11, 3)])
def test_stairs_cost_the_levels_that_a_number_may_cross(moves: int, levels: int) -> None:
    norms = Norms(2, 2 * moves, 2 * moves**2, moves, 0, (), twice=False)
    found = noise_losses(Staircase(F(1, 2), 5, 1), norms)
    assert found == ([(Reported(F(levels, 2), 2), 2)], 0)


def test_draws_that_fail_more_than_always_do_not_cancel_out() -> None:
    composed = [plan for plan in plans().values() if plan.composition == "numerical"]
    assert composed
    for plan in composed:
        ample = replace(plan, cost=F(100))
        first = replace(plan.draws[0], delta=F(2))
        twice = replace(ample, draws=(first, replace(first), *plan.draws[1:]))
        verify(replace(twice, draws=(plan.draws[0], *plan.draws)))
        with pytest.raises(Refused):
            verify(twice)
