"""Discrete Gaussian: calibration, cost, quantiles against published values and series."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting.gaussian_noise import delta_bound, variance_for
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.mechanisms import DiscreteGaussian
from dpframe.mechanisms.discrete_gaussian import least_covering
from dpframe.mechanisms.noise import noise as draw_noise
from tests.entered import entered

one = Fraction(1)


def exact_delta(variance: Fraction, step: int, epsilon: Fraction) -> mpmath.mpf:
    """Canonne-Kamath-Steinke 2020, Theorem 7, as the difference of two tails, to 40 digits."""
    with mpmath.workdps(40):
        v, e = (mpmath.mpf(x.numerator) / x.denominator for x in (variance, epsilon))
        crossing = epsilon * variance / step - Fraction(step, 2)
        first, far = math.floor(crossing) + 1, math.ceil(16 * math.sqrt(variance)) + 40

        def weight(k: int) -> mpmath.mpf:
            return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * v))

        total = 1 + 2 * mpmath.fsum(weight(k) for k in range(1, far))
        upper = mpmath.fsum(weight(k) for k in range(first, max(first, 0) + far))
        shifted = range(first + step, max(first + step, 0) + far)
        lower = mpmath.fsum(weight(k) for k in shifted)
        return (upper - mpmath.exp(e) * lower) / total


def brute_delta(variance: float, shift: tuple[int, ...], epsilon: float) -> float:
    """The hockey-stick divergence between independent discrete Gaussians moved by `shift`."""
    import itertools

    far = math.ceil(12 * math.sqrt(variance)) + max(shift)
    reach = range(-far, far + 1)
    weight = {k: math.exp(-k * k / (2 * variance)) for k in range(-2 * far, 2 * far + 1)}
    total = sum(weight[k] for k in reach)
    terms = []
    for point in itertools.product(reach, repeat=len(shift)):
        here = math.prod(weight[z] / total for z in point)
        there = math.prod(weight[z + s] / total for z, s in zip(point, shift, strict=True))
        terms.append(max(0.0, here - math.exp(epsilon) * there))
    return math.fsum(terms)


def test_zcdp_is_exact() -> None:
    # rho = Delta2^2/(2 sigma^2) (Bun-Steinke 2016)
    mechanism = DiscreteGaussian.for_zcdp(one, Fraction("0.5"))
    assert mechanism.sigma_squared == 1
    assert mechanism.name == "discrete_gaussian"
    # Tumult 0.21.0 reports sigma^2 375 for 3 groups of 5 rows at rho 0.1
    assert DiscreteGaussian.for_zcdp(Fraction(75), Fraction("0.1")).sigma_squared == 375
    assert DiscreteGaussian(Fraction(375)).rho(Fraction(75)) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "expected"),
    # CKS 2020 Thm 7: delta = P[Y>eps s^2/D - D/2] - e^eps P[Y>eps s^2/D + D/2];
    # dp_accounting_pld 6.934370347517872e-09 and 0.02481105182252767
    [(10, "0.5", 6.9343703475178676e-09), (1, "2", 0.024811051822527668)],
)
def test_delta_matches_reference(sigma: int, epsilon: str, expected: float) -> None:
    found = DiscreteGaussian(Fraction(sigma**2)).delta(Fraction(epsilon), 1, one)
    assert expected <= found <= expected * (1 + 1e-10)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    # Balle & Wang 2018 Thm 8 (exact calibration) of the continuous law; dp_accounting agrees
    [("1", "1e-5", 3.730631634815942), ("0.1", "1e-6", 36.30469042619578)],
)
@pytest.mark.parametrize("l0", [1, 3, 100_000])
def test_on_a_fine_grid_it_needs_no_more_noise_than_the_continuous_law(
    epsilon: str, delta: str, expected: float, l0: int
) -> None:
    grid = 2**30
    mechanism = DiscreteGaussian.for_approx(
        l0, Fraction(grid**2), Fraction(epsilon), Fraction(delta)
    )
    assert expected < mechanism.sigma / grid < expected * (1 + 1e-6)


@pytest.mark.parametrize("step", [1, 3, 32])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        ("1", "1e-6"),
        pytest.param("0.5", "1e-8", marks=pytest.mark.slow),
        pytest.param("0.1", "1e-9", marks=pytest.mark.slow),
        ("4", "1e-20"),
        ("0.02", "0.1"),
        ("9", "0.3"),
    ],
)
def test_calibration_is_sound_and_tight_for_one_entry(step: int, epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    found = DiscreteGaussian.for_approx(1, Fraction(step**2), e, d).sigma_squared
    assert exact_delta(found, step, e) <= mpmath.mpf(d.numerator) / d.denominator
    less = found * (1 - Fraction(1, 10**6))
    assert exact_delta(less, step, e) > mpmath.mpf(d.numerator) / d.denominator


@pytest.mark.parametrize("sigma", [0.4, 1.3, 2.7])
@pytest.mark.parametrize("shift", [(1,), (2,), (1, 1), (2, 1)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_delta_is_never_below_the_truth(
    sigma: float, shift: tuple[int, ...], epsilon: float
) -> None:
    variance = Fraction(sigma**2)
    truth = brute_delta(float(variance), shift, epsilon)
    l2_squared = Fraction(sum(s * s for s in shift))
    bound = DiscreteGaussian(variance).delta(Fraction(epsilon), len(shift), l2_squared)
    assert truth * (1 - 1e-9) <= bound <= 1
    if len(shift) == 1:
        assert bound <= truth * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("sigma", [0.7, 0.9, 1.3, 2.7])
@pytest.mark.parametrize("entries", [2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_entries_that_move_by_1_are_known_but_for_a_ripple(
    sigma: float, entries: int, epsilon: float
) -> None:
    """Against the sum over all outcomes, of noise that is not wide at all."""
    variance = Fraction(sigma**2)
    if entries == 3 and sigma > 1:
        return  # too many outcomes
    truth = brute_delta(float(variance), (1,) * entries, epsilon)
    law, wide = DiscreteGaussian(variance), Fraction(entries)
    bound = law.delta(Fraction(epsilon), entries, wide, Fraction(1))
    assert truth * (1 - 1e-9) <= bound <= law.delta(Fraction(epsilon), entries, wide)
    if sigma > 1:
        assert bound <= truth * (1 + 1e-3) + 1e-14


@pytest.mark.parametrize("entries", [2, 7, 40])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_entries_that_move_by_1_need_no_more_noise_than_their_losses_ask_for(
    entries: int, epsilon: str
) -> None:
    """Composed losses of as many entries, on the values that they take, as a reference."""
    from dpframe.accounting import DiscreteGaussianEvent, PrivacyLossAccountant

    e, d = Fraction(epsilon), Fraction(1, 10**7)
    found = DiscreteGaussian.for_approx(entries, Fraction(entries), e, d, Fraction(1))
    without = DiscreteGaussian.for_approx(entries, Fraction(entries), e, d)
    assert found.sigma_squared < without.sigma_squared

    def delta(variance: Fraction) -> float:
        sigma = Fraction(math.sqrt(variance))
        return PrivacyLossAccountant([DiscreteGaussianEvent(sigma)] * entries).delta(epsilon)

    assert delta(found.sigma_squared) <= 1e-7 * (1 + 1e-6)
    assert delta(found.sigma_squared * Fraction(9999, 10000)) > 1e-7


@given(
    st.integers(1, 10**6),
    st.integers(1, 2**62),
    st.fractions("1/1000000", 1000, max_denominator=10**6),
    st.integers(1, 60).flatmap(lambda d: st.fractions(0, 1).map(lambda f: (f + 1) / 2 / 10**d)),
)
@settings(max_examples=100, deadline=None)
def test_what_was_calibrated_keeps_its_promise(
    l0: int, l2_squared: int, epsilon: Fraction, delta: Fraction
) -> None:
    wide = Fraction(l2_squared)
    mechanism = DiscreteGaussian.for_approx(l0, wide, epsilon, delta)
    assert mechanism.delta(epsilon, l0, wide) <= float(delta) * (
        1 + 1e-9
    )  # either is an upper bound
    # and more noise or more epsilon never costs more; but where next to all noise is 0, a step of 1
    # is the likelier the more noise there is
    more = DiscreteGaussian(mechanism.sigma_squared * 2)
    if mechanism.sigma_squared >= 1:
        assert more.delta(epsilon, l0, wide) <= mechanism.delta(epsilon, l0, wide) * (1 + 1e-9)
    assert mechanism.delta(2 * epsilon, l0, wide) <= mechanism.delta(epsilon, l0, wide) * (1 + 1e-9)


@given(
    st.integers(1, 1000),
    st.fractions("1/1000", 20, max_denominator=1000),
    st.integers(1, 30),
)
@settings(max_examples=80, deadline=None)
def test_never_worse_than_through_zcdp(l0: int, epsilon: Fraction, digits: int) -> None:
    """CKS 2020, Proposition 12, at the best of many orders."""
    delta = Fraction(1, 10**digits)
    variance = DiscreteGaussian.for_approx(l0, Fraction(l0), epsilon, delta).sigma_squared
    rho = l0 / (2 * float(variance))
    orders = [1 + 10 ** (x / 20) for x in range(-80, 120)]
    best = min(
        a * rho + math.log1p(-1 / a) - (math.log(float(delta)) + math.log(a)) / (a - 1)
        for a in orders
    )
    assert best >= float(epsilon) * (1 - 1e-4)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    # Canonne-Kamath-Steinke 2020 Prop 12: inf_a a*rho + ln(1-1/a) - ln(delta*a)/(a-1)
    [
        (0.005, 1e-6, 0.4299414688369493),
        (0.005, 1e-9, 0.564893284302036),
        (0.05, 1e-6, 1.471594750532416),
        (0.1, 1e-9, 2.715481886730502),
        (0.5, 1e-6, 5.221534444530169),
        (1.0, 1e-9, 9.521463671792231),
    ],
)
def test_conversion_from_zcdp_matches_reference(rho: float, delta: float, epsilon: float) -> None:
    from dpframe.accounting.gaussian_noise import largest_rho, log_delta_zcdp

    found = log_delta_zcdp(Fraction(rho), Fraction(epsilon))
    assert math.exp(found) == pytest.approx(delta, rel=1e-5)
    assert float(largest_rho(Fraction(epsilon), math.log(delta))) == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize("a", [-5.0, -1.0, 0.0, 1.0, 3.9, 4.0, 7.9, 8.0, 20.0, 38.0, 1e4])
def test_mills_ratio(a: float) -> None:
    from dpframe.accounting.gaussian_noise import mills

    with mpmath.workdps(60):
        tail = mpmath.erfc(mpmath.mpf(a) / mpmath.sqrt(2)) / 2
        exact = tail * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(mpmath.mpf(a) ** 2 / 2)
        assert abs(mills(a) / exact - 1) < 1e-14


@given(st.floats(-5.0, 12.0), st.floats(-12.0, 1.5))
def test_bound_of_the_continuous_law(a: float, log_d: float) -> None:
    """Balle and Wang 2018, Theorem 8, to 80 digits: never below, and tight."""
    from dpframe.accounting.gaussian_noise import log_delta_normal

    d = 10.0**log_d
    epsilon = d * (a + d / 2)
    if epsilon <= 0:
        return
    with mpmath.workdps(80):
        dd, ee = mpmath.mpf(d), mpmath.mpf(epsilon)

        def tail(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        exact = mpmath.log(tail(ee / dd - dd / 2) - mpmath.exp(ee) * tail(ee / dd + dd / 2))
        found = log_delta_normal(d, epsilon)
        assert exact <= found <= exact + 1e-5


@pytest.mark.parametrize(
    ("sigma", "confidence", "expected"),
    [
        (10, "0.95", 20),  # smallest integer a with P(|X|>a)<=alpha (exact series)
        # OpenDP 0.14.2 discrete_gaussian_scale_to_accuracy is one more: P(|X|>=x)<=alpha
        (1, "0.95", 2),
        (10, "0.99", 26),
        (150, "0.99", 386),
    ],
)
def test_quantile_matches_reference(sigma: int, confidence: str, expected: int) -> None:
    assert DiscreteGaussian(Fraction(sigma**2)).quantile(Fraction(confidence)) == expected


def exact_tail(variance: Fraction, a: int) -> mpmath.mpf:
    with mpmath.workdps(40):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        far = a + math.ceil(20 * math.sqrt(variance)) + 3
        w = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * v)) for k in range(far)]
        return 2 * mpmath.fsum(w[a + 1 :]) / (2 * mpmath.fsum(w) - 1)


@pytest.mark.parametrize("sigma", ["0.2", "1", "7.3", "100"])
@pytest.mark.parametrize("confidence", [0.05, 0.6, 0.95, 0.99999])
@pytest.mark.parametrize("cells", [1, 50, 10**6])
def test_quantile_is_the_smallest(sigma: str, confidence: float, cells: int) -> None:
    variance = Fraction(sigma) ** 2
    a = DiscreteGaussian(variance).quantile(confidence, cells)
    assert (1 - exact_tail(variance, a)) ** cells >= confidence
    assert a == 0 or (1 - exact_tail(variance, a - 1)) ** cells < confidence


def test_a_quantile_beyond_64_bits_is_an_integer_all_the_same() -> None:
    assert DiscreteGaussian(Fraction(2**112)).quantile(0.95, 10**9) > 2**58


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0, 3.99, 4.0, 10.0])
def test_variance_by_the_series(sigma: float) -> None:
    variance = Fraction(sigma) ** 2
    w = [math.exp(-k * k / (2 * float(variance))) for k in range(200)]
    exact = 2 * sum(k * k * x for k, x in enumerate(w)) / (2 * sum(w) - 1)
    found = DiscreteGaussian(variance).variance()
    assert found == pytest.approx(exact, rel=1e-12)
    # CKS 2020 (Var<=sigma^2; exact series): 4 at sigma 2, 100 at sigma 10
    assert found <= float(variance) * (1 + 1e-15)


def test_a_sum_of_draws_is_bounded_as_if_it_were_normal() -> None:
    """exp(-x**2 / (2 n sigma**2)) is the probability, here exp(-2) of 9 draws with sigma 2."""
    assert DiscreteGaussian(Fraction(4)).bound_of_sum(9, math.exp(-2)) == pytest.approx(12)


def test_small_and_large_parameters() -> None:
    assert DiscreteGaussian(Fraction(1, 2**30)).sigma_squared == Fraction(1, 2**20)
    assert DiscreteGaussian(Fraction(1, 2**30)).variance() == 0.0
    with pytest.raises(InvalidBudget, match="instead"):
        DiscreteGaussian(Fraction(2**112 + 1))
    with pytest.raises(InvalidBudget, match="instead"):
        DiscreteGaussian.for_zcdp(Fraction(2**100), Fraction(1, 2**20))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(2), Fraction(-1)])
def test_delta_must_lie_between_0_and_1(delta: Fraction) -> None:
    with pytest.raises(InvalidBudget):
        DiscreteGaussian.for_approx(1, one, one, delta)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(InvalidBudget):
        DiscreteGaussian.for_approx(1, one, Fraction(0), Fraction(1, 100))
    with pytest.raises(ValueError, match="l0"):
        DiscreteGaussian.for_approx(0, one, one, Fraction(1, 100))
    with pytest.raises(ValueError, match="NoNoise"):
        DiscreteGaussian.for_zcdp(Fraction(0), one)
    with pytest.raises(InvalidBounds):
        DiscreteGaussian(one).quantile(1.5)
    with pytest.raises(ValueError, match="cell"):
        DiscreteGaussian(one).quantile(0.5, 0)
    assert DiscreteGaussian(one).delta(one, 1, Fraction(0)) == 0.0


def test_a_delta_that_underflows_is_not_zero() -> None:
    assert 0 < DiscreteGaussian(Fraction(10**9)).delta(one, 1, one) < 1e-200


def test_draw() -> None:
    drawn = draw_noise(DiscreteGaussian(Fraction(9)).kernel_law, 1000)
    assert drawn.dtype == "int64"
    assert abs(drawn).max() < 3 * 13  # P(|x| > 13 sigma) < 1e-37


@pytest.mark.parametrize("grid", [1, 10, 300, 2**30])
def test_calibration_is_a_search_of_few_steps(grid: int) -> None:
    """A few milliseconds, that is, however fine the grid is."""
    for cached in (variance_for, delta_bound, least_covering):
        cached.cache_clear()

    def calibrate() -> None:
        sensitivity = Fraction(grid**2)
        found = DiscreteGaussian.for_approx(1, sensitivity, Fraction("0.5"), Fraction("1e-9"))
        found.quantile(0.95)

    assert entered(calibrate) < 1000


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [  # sqrt(2 ln(1.25 / delta)) / epsilon: Dwork and Roth 2014; diffprivlib and Qrlew agree
        ("1", "1e-6", 5.298802526850474),
        ("1", "1e-5", 4.844805262605389),
        ("0.5", "1e-5", 9.689610525210778),
        ("0.1", "1e-6", 52.98802526850474),
    ],
)
def test_the_classic_formula_for_comparison(epsilon: str, delta: str, sigma: float) -> None:
    one = Fraction(1)
    classic = DiscreteGaussian.classic(1, one, Fraction(epsilon), Fraction(delta))
    assert classic.sigma == pytest.approx(sigma, rel=1e-12)
    assert classic.delta(Fraction(epsilon), 1, one) <= float(delta)
    tight = DiscreteGaussian.for_approx(1, one, Fraction(epsilon), Fraction(delta))
    assert tight.sigma_squared < classic.sigma_squared


@pytest.mark.parametrize(("epsilon", "delta"), [("1.5", "1e-5"), ("8", "1e-5"), ("1", "2")])
def test_the_classic_formula_is_refused_where_it_is_not_valid(epsilon: str, delta: str) -> None:
    with pytest.raises(InvalidBudget, match="not valid"):
        DiscreteGaussian.classic(1, Fraction(1), Fraction(epsilon), Fraction(delta))
