"""Published numbers: the table that compares methods at delta 1e-6, from 60-digit arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import accounting as a
from dpframe.accounting.events import AnyEvent
from tests.entered import entered

DELTA = 1e-6
TABLE = {
    "laplace": (
        [a.LaplaceEvent(10)] * 100,
        {
            "basic": 10.0,
            "advanced": 6.308230950513408,
            "Kairouz-Oh-Viswanath, closed form": 5.756105519,
            "Kairouz-Oh-Viswanath": 4.7745675881079865,
            "zCDP, loose": 5.75652177,
            "zCDP, tight": 5.221534444530169,
            "Renyi": 4.98417,
            "privacy loss distribution": 4.692667,
        },
    ),
    "discrete laplace": (
        [a.DiscreteLaplaceEvent(10)] * 100,
        {
            "basic": 10.0,
            "Kairouz-Oh-Viswanath": 4.774568,
            "zCDP, tight": 5.221534444530169,
            "privacy loss distribution": 4.774568,
        },
    ),
    "gaussian": (
        [a.GaussianEvent(10)] * 100,
        {
            "basic": 49.29,
            "advanced": 59.62,
            "Kairouz-Oh-Viswanath": 34.14,
            "zCDP, loose": 5.75652177,
            "zCDP, tight": 5.221534444530169,
            "Renyi": 5.221534444530169,
            "Gaussian DP": 4.886554117462212,
            "privacy loss distribution": 4.886554117462212,
        },
    ),
    "exponential": (
        [a.ExponentialEvent("0.1")] * 100,
        {"basic": 10.0, "Kairouz-Oh-Viswanath": 4.7745675881079865, "zCDP, tight": 2.41909},
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_methods(name: str) -> None:
    events, expected = TABLE[name]
    found = dp.accounting.compare(events, DELTA)
    assert found.columns == ["method", "epsilon", "delta", "valid_for"]
    assert found.schema["epsilon"] == pl.Float64
    rows = dict(zip(found["method"], found["epsilon"], strict=True))
    for method, epsilon in expected.items():
        digits = len(str(epsilon).split(".")[1])
        assert rows[method] == pytest.approx(epsilon, abs=max(0.6 * 10**-digits, 2e-7)), method
    assert set(found["valid_for"]) == {"within one plan", "across plans"}
    assert found["delta"].to_list() == [DELTA] * len(found)


def test_a_hundred_counts() -> None:
    pure = [a.DiscreteLaplaceEvent(10)] * 100
    assert a.best(pure, DELTA).epsilon == pytest.approx(4.774568, abs=5e-7)
    assert a.best(pure, DELTA).epsilon >= 4.774567588107986
    fine = [a.DiscreteLaplaceEvent(10 * 2**30, 2**30)] * 100
    assert a.best(fine, DELTA).epsilon == pytest.approx(4.692667, abs=6e-7)
    assert a.best([a.LaplaceEvent(10)] * 100, DELTA).epsilon == pytest.approx(4.692667, abs=6e-7)


def test_concentrated_privacy_pays_from_24_counts_on() -> None:
    for k, better in ((23, False), (24, True)):
        events = [a.DiscreteLaplaceEvent(10)] * k
        tight = a.ZCDPAccountant(events).epsilon(DELTA)
        assert (tight < a.BasicAccountant(events).epsilon(DELTA)) == better


def test_the_best_bound_depends_on_who_chooses() -> None:
    events = [a.DiscreteLaplaceEvent(10)] * 100
    within, across = a.best(events, DELTA), a.best(events, DELTA, valid_for="across plans")
    assert within.epsilon < across.epsilon
    assert (across.method, across.valid_for) == ("Renyi", "across plans")
    few = a.best(events[:5], DELTA, valid_for="across plans")
    assert few.epsilon <= 0.5
    with pytest.raises(dp.InvalidBudget):
        a.best(events, DELTA, valid_for="ever")  # type: ignore[arg-type]


def test_disjoint_parts_cost_their_maximum() -> None:
    parts = [[a.DiscreteLaplaceEvent(10)] * 3, [a.DiscreteLaplaceEvent(5)], [a.GaussianEvent(50)]]
    assert a.parallel(parts, DELTA) == a.best(parts[0], DELTA)
    assert a.parallel(parts, DELTA).epsilon == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(dp.InvalidBudget):
        a.parallel([], DELTA)


def test_bounds_that_do_not_apply_have_no_row() -> None:
    mixed: list[AnyEvent] = [a.LaplaceEvent(10), a.ZCDPEvent("0.01")]
    methods = set(a.compare(mixed, DELTA)["method"])
    assert "Gaussian DP" not in methods
    assert "privacy loss distribution" not in methods
    with pytest.raises(dp.UnsupportedOperation, match="ZCDPEvent"):
        a.PrivacyLossAccountant(mixed)
    pure = a.compare([a.LaplaceEvent(10)], 0)
    assert set(pure["method"]) == {"basic"}
    with pytest.raises(dp.InvalidBudget):
        a.best([a.GaussianEvent(10)], 0)


def test_no_events_cost_nothing() -> None:
    assert set(a.compare([], DELTA)["epsilon"]) == {0.0}
    assert a.BasicAccountant([]).delta(0) == 0.0


@pytest.mark.parametrize("delta", [-1e-9, 1, 2.5, "small", float("nan"), None])
def test_a_delta_is_a_probability(delta: object) -> None:
    with pytest.raises(dp.InvalidBudget):
        a.compare([a.LaplaceEvent(10)], delta)  # type: ignore[arg-type]


def test_only_events_are_counted() -> None:
    with pytest.raises(dp.InvalidBudget):
        a.compare([0.1], DELTA)  # type: ignore[list-item]


def test_basic_composition_is_exact() -> None:
    assert a.BasicAccountant([a.LaplaceEvent(10)] * 100).epsilon(0) == 10.0
    assert a.BasicAccountant([a.PermuteAndFlipEvent(0.1)] * 3).epsilon(0) == 0.3
    assert a.BasicAccountant([a.ApproxEvent(0.1, "1e-9")] * 3).delta("0.3") == 3e-9
    assert a.BasicAccountant([a.ApproxEvent(0.1, "1e-9")] * 3).epsilon("2e-9") == math.inf


def test_tiny_deltas_keep_their_meaning() -> None:
    """Where transforms lose small numbers in rounding, bounds must not."""
    found = a.PrivacyLossAccountant([a.GaussianEvent(10)] * 100)
    exact = a.GaussianDPAccountant([a.GaussianEvent(10)] * 100)
    for delta in (1e-9, 1e-12, 1e-15, 1e-20, 1e-30):
        assert found.epsilon(delta) == pytest.approx(exact.epsilon(delta), rel=1e-6)


HUGE: list[AnyEvent] = [a.LaplaceEvent(1, 10**4), a.ApproxEvent(800, 0.3), a.ZCDPEvent(10**9)]


@pytest.mark.parametrize("event", HUGE)
def test_huge_losses_are_no_reason_to_fail(event: AnyEvent) -> None:
    found = a.compare([event] * 3, "0.9999")
    assert found["epsilon"].is_finite().all()
    tiny = a.compare([a.LaplaceEvent(10**12), a.GaussianEvent(10**9)] * 2, DELTA)
    assert tiny["epsilon"].min() >= 0  # type: ignore[operator]


def test_noise_of_all_sizes_composes() -> None:
    """A law that is narrow against the grid is still counted in full."""
    events = [a.ExponentialEvent(300), a.GaussianEvent(10**8), a.LaplaceEvent(10**9)]
    together = a.PrivacyLossAccountant(events)
    for epsilon in (0, 1, 100, 290):
        alone = (1 - math.exp((epsilon - 300) / 2)) ** 2  # of bounded range 300
        assert alone * (1 - 1e-12) <= together.delta(epsilon) <= alone * (1 + 1e-4)
    assert together.epsilon(DELTA) == pytest.approx(299.998, rel=1e-5)


def test_bounds_on_many_events_are_as_much_work_as_those_on_few_of_the_same_kinds() -> None:
    def work(scale: int, times: int) -> int:
        events = [a.DiscreteLaplaceEvent(scale), a.ExponentialEvent(Fraction(1, 50))]
        return entered(lambda: a.compare(events * times, DELTA))

    work(99, 1)  # which imports what it needs
    assert work(100, 1000) < 1.5 * work(101, 10)


def test_losses_never_add_up_to_more_than_the_sum_of_epsilons() -> None:
    """Where delta is next to nothing the largest loss decides, between two points of the grid."""
    events = [a.DiscreteLaplaceEvent(500, 1000), a.DiscreteLaplaceEvent(42_000, 1000)]
    accountant, whole = a.PrivacyLossAccountant(events), 2 + 1000 / 42_000
    for delta in ("1e-15", "1e-12", "1.25e-12", "1e-9"):
        assert whole * (1 - 1e-6) < accountant.epsilon(delta) <= whole * (1 + 1e-15)
    assert accountant.epsilon("1e-3") < whole * (1 - 1e-4)


def test_the_sum_of_epsilons_holds_beside_what_may_fail() -> None:
    """It is no bound below the delta that an event has of its own."""
    accountant = a.PrivacyLossAccountant([a.ApproxEvent(1, "1e-6"), a.ApproxEvent(1, "1e-6")])
    assert accountant.epsilon("1e-6") > 2
    assert accountant.epsilon("3e-6") <= 2


def test_of_very_many_kinds_of_events_only_the_sum_is_known() -> None:
    accountant = a.PrivacyLossAccountant([a.LaplaceEvent(1000 + i) for i in range(1001)])
    whole = sum(1 / (1000 + i) for i in range(1001))
    assert accountant.delta(whole * 0.99) == 1
    assert accountant.delta(whole * 1.01) == 0
    assert accountant.epsilon(DELTA) == pytest.approx(whole, rel=1e-12)
