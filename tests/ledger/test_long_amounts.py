"""Amounts with many digits: no number of charges makes totals that are too long, or too small."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.windows import Windows
from dpframe.ledger.amounts import add_up
from dpframe.ledger.scopes import Division, Timeline

SHORT = st.fractions(0, 10, max_denominator=10**30)
LONG = st.builds(Fraction, st.integers(0, 10**300), st.integers(10**299, 10**300))
AMOUNTS = st.lists(st.one_of(SHORT, LONG), max_size=14)


@given(AMOUNTS, st.booleans())
def test_a_total_is_never_too_small_and_never_long(amounts: list[Fraction], swap: bool) -> None:
    total, exact = dp.ApproxDP(0, 0), Fraction(0)
    for amount in amounts:
        cost = dp.ApproxDP(0, amount / 10**4) if swap else dp.ApproxDP(amount, 0)
        total, exact = add_up(total, cost), exact + cost.main + cost.slack
        found = total.main + total.slack
        assert exact <= found <= exact + Fraction(len(amounts), 1 << 1024)
        assert found.denominator.bit_length() <= 2048
        if exact.denominator.bit_length() <= 2048:
            assert found == exact


def costs(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, Fraction]]]:
    return st.lists(st.tuples(keys, st.one_of(SHORT, LONG)), max_size=14)


ends = st.one_of(st.none(), st.integers(-2, 2))
windows = st.builds(Windows, st.just("1mo"), ends, ends, st.booleans())


@given(costs(windows))
def test_no_window_is_charged_too_little(charges: list[tuple[Windows, Fraction]]) -> None:
    """What the whole budget pays covers the largest exact total of a window, and hardly more."""
    timeline, paid, zero = Timeline("1mo", dp.PureDP(0)), dp.PureDP(0), Fraction(0)
    exact: dict[int | None, Fraction] = dict.fromkeys([*range(-3, 4), None], zero)
    for some, amount in charges:
        paid = add_up(paid, timeline.increase(some, dp.PureDP(amount)))
        timeline.add(some, dp.PureDP(amount))
        for number in exact:
            inside = some.without if number is None else _contains(some, number)
            exact[number] += amount if inside else zero
        assert max(exact.values()) <= timeline.spent.main <= paid.main
        assert paid.main <= max(exact.values()) + Fraction(1, 1 << 1000)
    state = json.loads(json.dumps(timeline.state()))
    assert Timeline.restored("1mo", dp.PureDP(0), state).spent == timeline.spent


def _contains(some: Windows, number: int) -> bool:
    after_first = some.first is None or some.first <= number
    return after_first and (some.last is None or number <= some.last)


@given(st.integers(1, 3), costs(st.sampled_from("abcd")))
def test_no_part_is_charged_too_little(touched: int, charges: list[tuple[str, Fraction]]) -> None:
    division, paid, exact = Division(dp.PureDP(0), touched), dp.PureDP(0), dict[str, Fraction]()
    for key, amount in charges:
        paid = add_up(paid, division.increase(key, dp.PureDP(amount)))
        division.add(key, dp.PureDP(amount))
        exact[key] = exact.get(key, Fraction(0)) + amount
        most = sum(sorted(exact.values(), reverse=True)[:touched], Fraction(0))
        assert most <= paid.main <= most + Fraction(1, 1 << 1000)
        assert all(division.spent(part).main >= total for part, total in exact.items())


def test_a_total_of_decimals_is_exact() -> None:
    total = dp.PureDP(0)
    for number in range(1, 400):
        total = add_up(total, dp.PureDP(f"0.{number:0300d}"))
    assert total.main == sum((Fraction(n, 10**300) for n in range(1, 400)), Fraction(0))


@pytest.mark.parametrize("place", [None, "budget.db"])
def test_no_charges_make_a_ledger_unusable(place: str | None, tmp_path: Path) -> None:
    """Windows are charged apart, so one of their totals may be longer than the largest."""
    more: dict[str, Any] = {} if place is None else {"ledger": tmp_path / place}
    session = dp.Session(epsilon=1000, per="1d", **more)
    rows = pl.DataFrame({"who": [1, 2], "day": [date(2026, 1, 1), date(2026, 1, 2)]})
    unit = dp.Identifier("who", window="1d", time="day")
    people = session.protect(rows, unit=unit).limit_rows(1)
    one, two, both = (
        people.filter(
            pl.col("day").is_between(date(2026, 1, first), date(2026, 1, last))
        ).dp_count()
        for first, last in ((1, 1), (2, 2), (1, 2))
    )
    odd = (Fraction(1, 100) + Fraction(1, 10**99 + 2 * number + 1) for number in range(100))
    for _ in range(48):
        one.collect(epsilon=next(odd))
    two.collect(epsilon=2)
    both.collect(epsilon=next(odd))
    two.collect(epsilon=Fraction(1, 3))
    assert session.history.height == 51
    assert 2 < session.spent.epsilon < 3
    assert len(one.plan(epsilon=1).to_json()) > 0
    if place is not None:
        assert dp.Session(epsilon=5, name="another", **more).spent == dp.PureDP(0)


def test_results_are_kept_whatever_is_left() -> None:
    session = dp.Session(epsilon=1000, keep_releases=True)
    count = session.protect(pl.DataFrame({"a": [1, 2]}), unit=dp.Rows()).dp_count()
    for number in range(50):
        count.collect(epsilon=Fraction(1, 100) + Fraction(1, 10**99 + 2 * number + 1))
    assert set(session.history["status"]) == {"released"}
