"""Never less than the truth: bounds against exact compositions of output distributions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import accounting as a
from dpframe.accounting.accountants import SplitAccountant, needing_delta
from dpframe.accounting.comparison import ACCOUNTANTS
from dpframe.accounting.events import AnyEvent
from dpframe.accounting.losses import smoothed_distance
from dpframe.errors import UnsupportedOperation
from tests.accounting import exact_laws as exact

EPSILONS = (0.0, 0.05, 0.3, 0.7, 1.3, 2.9)
TINY = mp.mpf(10) ** -16


def assert_sound(events: list[AnyEvent], pair: exact.Pair, epsilons: tuple[float, ...]) -> None:
    """No accountant claims less than the exact delta, nor an epsilon at which delta is exceeded."""
    for kind in ACCOUNTANTS:
        try:
            accountant = kind(events)
        except UnsupportedOperation:
            continue
        needy = needing_delta(accountant.counts.items())
        searches = needy and isinstance(accountant, SplitAccountant)  # slow, and tries `epsilon`
        for epsilon in () if searches else epsilons:
            true = exact.delta(pair, epsilon)
            assert accountant.delta(epsilon) >= true * (1 - TINY) - TINY**2, (kind, epsilon)
        for delta in (1e-3, 1e-7):
            found = accountant.epsilon(delta)
            if math.isfinite(found):
                assert exact.delta(pair, found) <= exact.real(delta) * (1 + TINY), (kind, delta)


def assert_tight(events: list[AnyEvent], pair: exact.Pair, epsilons: tuple[float, ...]) -> None:
    """The privacy loss distribution is the exact one."""
    accountant = a.PrivacyLossAccountant(events)
    for epsilon in epsilons:
        true = exact.delta(pair, epsilon)
        assert accountant.delta(epsilon) <= true * (1 + mp.mpf(10) ** -7) + mp.mpf(10) ** -18


small = st.fractions(Fraction(1, 20), Fraction(3), max_denominator=20)


events = st.one_of(
    st.builds(a.DiscreteLaplaceEvent, st.sampled_from([1, 2, 5]), st.integers(1, 3)),
    st.builds(a.DiscreteGaussianEvent, st.sampled_from([Fraction(1, 2), Fraction(1)])),
    st.builds(a.RandomizedResponseEvent, small, st.integers(2, 5)),
    st.builds(a.ApproxEvent, small, st.sampled_from(["0", "1e-9", "0.001"])),
)


def pair_of(event: AnyEvent) -> exact.Pair:
    match event:
        case a.DiscreteLaplaceEvent():
            return exact.discrete_laplace(Fraction(event.scale), int(event.sensitivity), 0)
        case a.DiscreteGaussianEvent():
            return exact.discrete_gaussian(Fraction(event.sigma), 12)
        case a.RandomizedResponseEvent():
            return exact.response(Fraction(event.epsilon), int(event.categories))
        case a.ApproxEvent():
            return exact.approx(Fraction(event.epsilon), Fraction(event.delta))
    raise NotImplementedError


@settings(max_examples=8)
@given(st.lists(events, min_size=1, max_size=3))
def test_no_bound_is_below_the_exact_composition(drawn: list[AnyEvent]) -> None:
    assert_sound(drawn, exact.together(map(pair_of, drawn)), EPSILONS)


@pytest.mark.parametrize(
    ("event", "pair", "count"),
    [
        (a.DiscreteLaplaceEvent(10), exact.discrete_laplace(Fraction(10), 1, 0), 30),
        (a.DiscreteLaplaceEvent(4, 3), exact.discrete_laplace(Fraction(4), 3, 0), 12),
        (a.DiscreteGaussianEvent(2), exact.discrete_gaussian(Fraction(2), 24), 4),
        (a.DiscreteGaussianEvent(Fraction(1, 3)), exact.discrete_gaussian(Fraction(1, 3), 6), 6),
        (a.RandomizedResponseEvent("0.3", 4), exact.response(Fraction(3, 10), 4), 10),
        (a.RandomizedResponseEvent("0.5", 3), exact.response(Fraction(1, 2), 3), 8),
        (a.ApproxEvent("0.3", "1e-9"), exact.approx(Fraction(3, 10), Fraction(1, 10**9)), 5),
    ],
    ids=["laplace", "laplace 3", "gaussian", "small gaussian", "response", "response 3", "approx"],
)
def test_the_privacy_loss_distribution_of_discrete_noise_is_exact(
    event: AnyEvent, pair: exact.Pair, count: int
) -> None:
    composed = exact.together([pair] * count)
    assert_sound([event] * count, composed, EPSILONS)
    assert_tight([event] * count, composed, (0.05, 0.3, 0.7, 1.3))


@pytest.mark.parametrize("moves", [(1, 1), (2, 1), (3, 2), (1, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(11)])
def test_a_vector_is_no_easier_to_tell_than_one_entry(
    moves: tuple[int, ...], scale: Fraction
) -> None:
    """The claim on Laplace noise in `dpframe.accounting.losses`."""
    spread = exact.together(exact.discrete_laplace(scale, move, 0) for move in moves)
    one = exact.discrete_laplace(scale, sum(moves), 0)
    for i in range(60):
        epsilon = Fraction(i, 50) * sum(moves) / scale
        assert exact.delta(spread, epsilon) <= exact.delta(one, epsilon) + mp.mpf(10) ** -35
    assert_sound([a.DiscreteLaplaceEvent(scale, sum(moves))], spread, EPSILONS)


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([-1, 0, 1])), min_size=2, max_size=4),
    st.sampled_from([Fraction(1), Fraction(4), Fraction(20)]),
)
def test_choices_cost_no_more_than_their_events(
    scores: list[tuple[int, int]], scale: Fraction
) -> None:
    before, after = [s for s, _ in scores], [s + d for s, d in scores]
    moves = [d for _, d in scores]
    reach = max(1, max(moves) - min(moves))
    chosen = exact.exponential(before, after, scale)
    assert_sound([a.ExponentialEvent(reach / scale)] * 2, exact.together([chosen] * 2), EPSILONS)
    flipped = exact.permute_and_flip(before, after, scale)
    event = a.PermuteAndFlipEvent(reach / scale)
    assert_sound([event] * 2, exact.together([flipped] * 2), EPSILONS)


@pytest.mark.parametrize("shift", [0.01, 0.1, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-30])
def test_gaussian_noise(shift: float, delta: float) -> None:
    for kind in (a.GaussianDPAccountant, a.PrivacyLossAccountant, a.ZCDPAccountant):
        accountant = kind([a.GaussianEvent(1 / Fraction(shift))])
        epsilon = accountant.epsilon(delta)
        assert exact.gaussian_delta(mp.mpf(shift), mp.mpf(epsilon)) <= delta
        if kind is not a.ZCDPAccountant and delta > 1e-20:
            lower = mp.mpf(epsilon) * (1 - mp.mpf(10) ** -6)
            assert exact.gaussian_delta(mp.mpf(shift), lower) > delta or epsilon == 0
        if epsilon:
            assert accountant.delta(epsilon) <= delta * (1 + 1e-3)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("e", ["0.01", "0.1", "1", "7"])
def test_one_laplace(e: str, delta: float) -> None:
    accountant = a.PrivacyLossAccountant([a.LaplaceEvent(1, e)])
    epsilon = accountant.epsilon(delta)
    true = exact.laplace_delta(mp.mpf(e), mp.mpf(epsilon))
    assert true <= delta
    assert epsilon <= float(e)
    assert epsilon >= float(e) * 0.5 or float(e) < 3 * delta
    for price in (0.0, 0.3 * float(e), 0.9 * float(e)):
        found, wanted = accountant.delta(price), exact.laplace_delta(mp.mpf(e), mp.mpf(price))
        assert wanted <= found <= wanted * (1 + mp.mpf(10) ** -5) + mp.mpf(10) ** -12


def sum_of_laplaces(e: Any, count: int, epsilon: Any) -> Any:
    """Delta of `count` Laplace mechanisms: losses at each end and uniform in between, after a tilt.

    exp(-L / 2) times the law is exp(-e / 2) (delta_e / 2 + delta_-e / 2 + uniform / 4), so k-fold
    it is a mixture over how many losses are at the ends, of sums of uniforms (Irwin and Hall).
    """

    def irwin_hall(n: int, x: Any) -> Any:
        """The density of the sum of n uniforms on (0, 1)."""
        return mp.fsum(
            (-1) ** j * mp.binomial(n, j) * (x - j) ** (n - 1) for j in range(int(mp.floor(x)) + 1)
        ) / mp.factorial(n - 1)

    total = mp.mpf(0)
    for inside in range(count + 1):
        weight = mp.binomial(count, inside) * mp.exp(-count * e / 2) * mp.mpf(2) ** (inside - count)
        weight *= (e / 2) ** inside
        for up in range(count - inside + 1):
            w = weight * mp.binomial(count - inside, up)
            base = (2 * up - (count - inside)) * e

            def gain(loss: Any) -> Any:
                return mp.exp(loss / 2) - mp.exp(epsilon - loss / 2)

            if not inside:
                total += w * max(mp.mpf(0), gain(base))
                continue
            low = max(base - inside * e, epsilon)
            if low >= base + inside * e:
                continue
            knots = [low, base + inside * e]
            knots += [k for j in range(inside + 1) if (k := base + (2 * j - inside) * e) > low]

            def density(loss: Any, n: int = inside, centre: Any = base) -> Any:
                return irwin_hall(n, (loss - centre) / (2 * e) + mp.mpf(n) / 2) / (2 * e)

            total += w * mp.quad(lambda t: density(t) * gain(t), sorted(set(knots)))
    return total


@pytest.mark.parametrize(("e", "count"), [("0.1", 3), ("1", 4), ("0.5", 5)])
def test_several_laplaces(e: str, count: int) -> None:
    """By an exact formula: sums of uniforms."""
    accountant = a.PrivacyLossAccountant([a.LaplaceEvent(1, e)] * count)
    for share in ("0.2", "0.5", "0.8"):
        epsilon = mp.mpf(share) * mp.mpf(e) * count
        true = sum_of_laplaces(mp.mpf(e), count, epsilon)
        found = accountant.delta(float(epsilon))
        assert true * (1 - mp.mpf(10) ** -12) <= found <= true * (1 + mp.mpf(10) ** -5)


def test_choices_beside_continuous_noise_cost_more_than_either() -> None:
    chosen: list[AnyEvent] = [a.ExponentialEvent("0.3")] * 5
    noise: list[AnyEvent] = [a.GaussianEvent(5)]
    apart = [a.PrivacyLossAccountant(events) for events in (chosen, noise)]
    for events in (chosen + noise, noise + chosen):
        both = a.PrivacyLossAccountant(events)
        assert both.epsilon(1e-6) > max(one.epsilon(1e-6) for one in apart) * 1.1
        assert both.delta(1.0) > max(one.delta(1.0) for one in apart) * 1.1


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("loss", [Fraction(1, 10), Fraction(1)])
def test_continuous_noise_beside_responses(sigma: Fraction, loss: Fraction) -> None:
    """Given what the responses tell, the noise has the rest of epsilon to tell."""
    noise, response = a.GaussianEvent(sigma), a.RandomizedResponseEvent(loss)
    shift = 2 / exact.real(sigma)

    def true(epsilon: float) -> Any:
        return mp.fsum(
            p * exact.gaussian_delta(shift, exact.real(epsilon) - mp.log(p / q))
            for p, q in exact.response(loss, 2)
        )

    for events in ([noise] * 4 + [response], [response] + [noise] * 4):
        accountant = a.PrivacyLossAccountant(events)
        delta = accountant.delta(0.7)
        assert true(0.7) * (1 - TINY) <= delta
        assert delta <= true(0.7) * (1 + mp.mpf(10) ** -4) + mp.mpf(10) ** -15
        epsilon = accountant.epsilon(1e-5)
        assert true(epsilon) <= exact.real(1e-5)
        assert true(epsilon * 0.999 - 1e-4) > exact.real(1e-5)


def test_the_distance_of_normals_is_rounded_up() -> None:
    for count in range(1, 30):
        mu = Fraction(a.GaussianDPAccountant([a.GaussianEvent(3)] * count).mu) ** 2
        assert Fraction(count, 9) <= mu <= Fraction(count, 9) * (1 + Fraction(1, 2**48))


@given(
    st.lists(
        st.one_of(
            st.builds(a.GaussianEvent, small, small),
            st.builds(a.DiscreteGaussianEvent, small.map(lambda s: s + 3), st.integers(1, 3)),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_squared_distances_and_factors_add_up(drawn: list[AnyEvent]) -> None:
    found, factor = a.GaussianDPAccountant(drawn)._distance_and_factor()
    each = [smoothed_distance(event) for event in drawn]  # type: ignore[arg-type]
    squared = sum((d[0] for d in each if d is not None), Fraction(0))
    factors = sum(Fraction(d[1]) for d in each if d is not None)
    assert squared <= Fraction(found) <= squared * (1 + Fraction(1, 2**50))
    assert factors <= Fraction(factor) <= factors * (1 + Fraction(1, 10**8))


@pytest.mark.parametrize("kind", ACCOUNTANTS, ids=lambda k: k.method)
@pytest.mark.parametrize(("sigma", "sensitivity"), [(60, "1.5"), (60, 3), (900, 3), (90000, 300)])
def test_noise_on_a_fine_grid_costs_what_continuous_noise_does(
    kind: Any, sigma: int, sensitivity: int | str
) -> None:
    costs = []
    for event in (a.GaussianEvent, a.DiscreteGaussianEvent):
        try:
            costs.append(kind([event(sigma, sensitivity)] * 5).epsilon(1e-6))
        except UnsupportedOperation:
            return
    assert costs[1] == pytest.approx(costs[0], rel=0.01)
