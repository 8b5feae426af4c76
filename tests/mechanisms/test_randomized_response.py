"""Randomised response: exact probabilities, unbiased counts, costs, and where it is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe.mechanisms import RandomizedResponse
from dpframe.mechanisms.noise import report
from dpframe.samplers import randomized_responses
from dpframe.samplers.responses import _decide, _floor
from tests.samplers.scripted import Script

ONE = dp.Rows("change-one")


def truth(epsilon: Fraction, categories: int) -> mpmath.mpf:
    e = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    return (1 - e) / (1 + (categories - 1) * e)


@pytest.mark.parametrize("epsilon", ["1/1000000", "0.1", "1", "5", "40"])
@pytest.mark.parametrize("categories", [2, 3, 1000])
@pytest.mark.parametrize("precision", [64, 128, 192])
def test_the_boundary_of_the_truth_is_exact(epsilon: str, categories: int, precision: int) -> None:
    with mpmath.workprec(600):
        expected = int(
            mpmath.floor(truth(Fraction(epsilon), categories) * mpmath.mpf(2) ** precision)
        )
    assert _floor(Fraction(epsilon), categories, precision) == expected


def test_ties_are_settled_by_further_bits() -> None:
    first, second = _floor(Fraction(1), 3, 64), _floor(Fraction(1), 3, 128) % 2**64
    assert _decide(first, Fraction(1), 3, Script(single=[second - 1]))
    assert not _decide(first, Fraction(1), 3, Script(single=[second + 1]))


def test_privacy_by_enumeration() -> None:
    """The two probabilities of a report differ by a factor of e**epsilon, and add up to 1."""
    for epsilon in (0.1, 1.0, 3.0):
        for categories in (2, 5):
            g = RandomizedResponse(Fraction(str(epsilon)), categories).truthful
            same, other = g + (1 - g) / categories, (1 - g) / categories
            assert math.isclose(same / other, math.exp(epsilon), rel_tol=1e-12)
            assert math.isclose(same + (categories - 1) * other, 1, rel_tol=1e-12)


def test_reports_have_their_law() -> None:
    """400 000 rows of each of three categories, one at a time; chance fails once in 10**7."""
    rows, epsilon = 400_000, Fraction(3, 2)
    g = RandomizedResponse(epsilon, 3).truthful
    for category in range(3):
        counts = np.zeros(3, np.int64)
        counts[category] = rows
        expected = np.full(3, (1 - g) / 3) + g * (np.arange(3) == category)
        reports = randomized_responses(counts, epsilon)
        assert reports.sum() == rows
        assert stats.chisquare(reports, expected * rows).pvalue > 3e-8


def test_estimates_are_unbiased_and_as_accurate_as_stated() -> None:
    counts, runs = np.array([900, 90, 0, 10], np.int64), 800
    mechanism = RandomizedResponse(Fraction(2), 4)
    errors = np.array([report(mechanism.kernel_law, counts) for _ in range(runs)]) - counts
    deviation = errors.std(axis=0)
    assert (np.abs(errors.mean(axis=0)) < 7 * deviation / runs**0.5).all()
    assert (np.abs(errors) <= mechanism.error(0.95, 1000)).mean() >= 0.95
    together = (np.abs(errors) <= mechanism.error(0.95, 1000, cells=4)).all(axis=1)
    assert together.mean() >= 0.95


def true_error(mechanism: RandomizedResponse, count: int, rows: int, miss: float) -> float:
    """The 95% error for one count, by SciPy's binomials, all of them added up."""
    e, k = math.exp(float(mechanism.row_epsilon)), mechanism.categories
    p, q = e / (e + k - 1), 1 / (e + k - 1)
    one = stats.binom.pmf(np.arange(count + 1), count, p)
    other = stats.binom.pmf(np.arange(rows - count + 1), rows - count, q)
    mass = np.convolve(one, other)
    away = np.abs(np.arange(mass.size) - count * p - (rows - count) * q)
    points = np.unique(away)
    beyond = np.array([mass[away > point + 1e-9].sum() for point in points])
    return float(points[np.argmax(beyond <= miss)]) / (p - q)


@pytest.mark.parametrize("rows", [1, 2, 30, 200, 201, 1000])
@pytest.mark.parametrize(("epsilon", "categories"), [("0.1", 2), ("1", 2), ("1", 5), ("6", 30)])
def test_the_error_is_that_of_the_worst_count(rows: int, epsilon: str, categories: int) -> None:
    """No count has a larger error, and the worst of them one not much smaller."""
    mechanism = RandomizedResponse(Fraction(epsilon), categories)
    said = mechanism.error(0.95, rows)
    true = [
        true_error(mechanism, count, rows, 0.05) + 1
        for count in sorted({0, 1, rows // 7, rows // 2, rows - 1, rows})
    ]
    report = 1 / mechanism.truthful
    assert max(true) * (1 - 1e-9) <= said <= max(true) + 1.5 * report
    assert mechanism.error(0.95, rows, cells=categories) >= said


def test_the_error_of_many_rows_is_that_of_the_normal_law() -> None:
    mechanism = RandomizedResponse(Fraction(1), 4)
    for rows in (10**6, 10**7, 10**7 + 1, 10**12):
        said = mechanism.error(0.95, rows)
        assert said == pytest.approx(mechanism.error_per_root(0.95) * math.sqrt(rows), rel=0.01)
    assert mechanism.error_per_root(0.95, 4) == pytest.approx(
        mechanism.error_per_root(0.9875), rel=1e-12
    )


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
def test_noise_is_the_number_of_reports_per_truth(epsilon: str) -> None:
    """(e**epsilon + k - 1) / (e**epsilon - 1) of k categories."""
    for categories in (2, 9):
        weight = math.exp(float(epsilon))
        law = RandomizedResponse(Fraction(epsilon), categories)
        expected = (weight + categories - 1) / (weight - 1)
        assert math.exp(law.log_noise(categories)) == pytest.approx(expected)


def test_costs_add_up_over_the_rows_of_an_individual() -> None:
    mechanism = RandomizedResponse.for_pure(3, Fraction("0.6"), 4)
    assert mechanism.row_epsilon == Fraction(1, 5)
    assert mechanism.epsilon(3) == Fraction(3, 5)
    one = 0.2 * (math.exp(0.2) - 1) / (math.exp(0.2) + 3)  # the mean loss of one report
    assert float(mechanism.rho(3)) == pytest.approx(3 * one, rel=1e-14)
    assert mechanism.scale == 5
    for wrong in (
        lambda: RandomizedResponse(Fraction(1), 1),
        lambda: RandomizedResponse(Fraction(0), 2),
    ):
        with pytest.raises(Exception, match=r"two categories|above 0"):
            wrong()


FRAME = pl.DataFrame({"c": ["a"] * 600 + ["b"] * 300 + [None] * 100, "x": [1.5] * 1000})


def query(frame: dp.PrivateFrame, **options: Any) -> dp.PrivateQuery:
    answers = pl.col("c").dp_histogram(["a", "b"], mechanism="randomized_response", **options)
    return frame.agg(answers)


@pytest.mark.parametrize("budget", [dp.PureDP(10**6), dp.ApproxDP(10**6, 1e-6), dp.ZCDP(10**6)])
def test_a_histogram_of_responses(budget: Any) -> None:
    session = dp.Session(budget)
    spend: dict[str, Any] = {"rho": 200} if isinstance(budget, dp.ZCDP) else {"epsilon": 30}
    made = query(session.protect(FRAME, ONE), other=True)
    released = made.collect(**spend)
    assert released["c"].to_list() == ["a", "b", None]
    assert released["count"].to_list() == pytest.approx([600, 300, 100], abs=8)
    (release,) = made.plan(**spend).releases
    assert release.mechanism == "randomized_response"
    assert release.cost == made.plan(**spend).cost == session.spent


def test_rows_elsewhere_report_too_so_that_their_number_tells_nothing() -> None:
    session = dp.Session(epsilon=10**6)
    released = query(session.protect(FRAME, ONE)).collect(epsilon=30)
    assert released["c"].to_list() == ["a", "b"]
    bins = session.protect(FRAME, ONE).agg(
        pl.col("x").dp_histogram([0, 1, 2], mechanism="randomized_response")
    )
    assert bins.collect(epsilon=30)["count"].to_list() == pytest.approx([0, 1000], abs=8)


def test_the_error_needs_a_number_of_rows() -> None:
    plan = query(dp.Session(epsilon=1).protect(FRAME, ONE)).plan(epsilon=1)
    assert plan.accuracy("c", count=1000) < plan.accuracy("c", count=1000, simultaneous=True)
    for asked in (lambda: plan.accuracy("c"), plan.releases[0].accuracy):
        with pytest.raises(dp.UnsupportedOperation, match=r"count="):
            asked()
    assert "root of the number of rows" in plan.explain(details=True)


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda s: query(s.protect(FRAME, dp.Rows())), "change-one"),
        (lambda s: query(s.protect(FRAME, ONE).filter(pl.col("x") > 1)), "pl.when"),
        (lambda s: query(s.protect(FRAME, ONE).drop_nulls()), "pl.when"),
        (
            lambda s: (
                s.protect(FRAME, ONE)
                .group_by(g=pl.col("x") > 1, keys=[True])
                .agg(pl.col("c").dp_histogram(["a"], mechanism="randomized_response"))
            ),
            "part of the category",
        ),
    ],
)
def test_where_the_number_of_reports_would_tell_something_it_is_refused(
    make: Any, remedy: str
) -> None:
    with pytest.raises(dp.UnsupportedOperation, match=remedy):
        make(dp.Session(epsilon=1))
