"""Warnings at a guessed size: they are there exactly when noise or delta are too large for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.report.errors import about, warnings_at

ROWS = pl.LazyFrame(
    schema={"who": pl.String, "age": pl.Int64, "city": pl.String, "sex": pl.Enum(["f", "m"])}
)


def people(unit: Any = None, **budget: Any) -> dp.PrivateFrame:
    return dp.Session(**(budget or {"epsilon": 9})).protect(ROWS, unit or dp.Rows())


def warned(plan: dp.Plan, size: int) -> list[str]:
    return list(warnings_at(plan, size))


def least_size(plan: dp.Plan) -> int:
    """The least size without a warning."""
    low, high = 0, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if not warned(plan, middle) else (middle, high)
    return high


def test_a_count_needs_ten_times_its_error() -> None:
    plan = people().dp_count().plan(epsilon="0.5")
    assert plan.releases[0].accuracy() == 6
    assert least_size(plan) == 60
    (warning,) = warned(plan, 59)
    assert warning == (
        "len [count]: the noise may be 6 (95%), more than a tenth of 59, the most that 59 "
        "individuals can add"
    )


@pytest.mark.parametrize("bounds", [(0, 1), (0, 50), (-20, 10)])
def test_sums_are_seen_against_the_most_that_they_can_be(bounds: tuple[int, int]) -> None:
    plan = people().dp_sum("age", bounds).plan(epsilon="0.5")
    (release,) = plan.releases
    most = max(abs(b) for b in bounds)
    size = least_size(plan)
    assert Fraction(release.accuracy()) <= Fraction(size * most, 10)
    assert Fraction(release.accuracy()) > Fraction((size - 1) * most, 10)


def test_chosen_scores_are_seen_against_the_highest() -> None:
    plan = people().dp_argmax("sex").plan(epsilon="0.5")
    size = least_size(plan)
    assert plan.releases[0].accuracy() <= size / 10
    (warning,) = warned(plan, size - 1)
    assert "the chosen score may be" in warning
    assert "below the best (95%)" in warning


def test_randomised_responses_need_many() -> None:
    changed = people(dp.Rows("change-one"))
    plan = changed.dp_histogram("sex", mechanism="randomized_response").plan(epsilon=1)
    size = least_size(plan)
    assert plan.accuracy("sex", count=size) <= size / 10
    assert plan.accuracy("sex", count=size - 1) > (size - 1) / 10


def test_groups_that_may_be_missing() -> None:
    limited = people("who", epsilon=9, delta="1e-3").limit_rows(1)
    plan = limited.group_by("city").agg(dp.n_unique("who")).plan(epsilon=1, delta="1e-7")
    (keys, _) = plan.releases
    sure = int(keys.accuracy())
    assert not any("may well be missing" in w for w in warned(plan, sure))
    assert any("may well be missing" in w for w in warned(plan, sure - 1))


def test_delta_is_seen_against_all_individuals() -> None:
    frame = people(epsilon=9, delta="1e-3")
    noisy = dp.count(mechanism="discrete_gaussian")
    plan = frame.agg(noisy).plan(epsilon=9, delta="1e-4")
    assert any("delta 0.0001" in w for w in warned(plan, 10_001))
    assert not any("delta" in w for w in warned(plan, 10_000))
    grouped = frame.group_by("sex").agg(noisy).plan(epsilon=9, delta="1e-4")
    assert any("delta 0.0001" in w for w in warned(grouped, 5_001))
    assert not any("delta" in w for w in warned(grouped, 5_000))


def test_what_is_exact_is_never_too_noisy() -> None:
    plan = people(dp.Rows("change-one")).dp_count().plan(epsilon=1)
    assert warned(plan, 1) == []


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_they_stand_among_the_others_when_asked_for(format: Any) -> None:
    query = people().dp_count()
    said = query.explain(epsilon=20, format=format, size=1)
    assert "it protects nobody in practice" in said
    assert "more than a tenth" not in query.explain(epsilon=20, format=format)
    low = query.explain(epsilon="0.5", format=format, size=1)
    assert "more than a tenth" in low
    assert query.plan(epsilon="0.5").explain(format, size=1) == low


@pytest.mark.parametrize("size", [0, -1, 2.5, "100", True, float("nan")])
def test_a_guess_is_a_positive_whole_number(size: Any) -> None:
    with pytest.raises(dp.InvalidBounds, match="positive integer"):
        people().dp_count().explain(epsilon=1, size=size)


@pytest.mark.parametrize("value", [1e-5, 0.12345, 6.0, 1318.4, 10**20])
def test_errors_are_rounded_up_for_people(value: float) -> None:
    assert float(about(value)) >= value * (1 - 1e-3 if value < 1e-4 or value >= 1e15 else 1)
