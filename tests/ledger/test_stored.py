"""Budgets in a file or on a server: exact, created once, shared by everybody who opens them."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.ledger import chain
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.record import Draft
from tests.ledger.ledgers import (
    TENTH,
    UNIT,
    Place,
    filled,
    fresh,
    in_memory,
    opened,
    sql,
    store_at,
    verify,
)


def test_ten_tenths_fit_and_the_eleventh_is_refused(place: Place) -> None:
    for i in range(10):
        number = opened(place).charge(TENTH, str(i))
        opened(place).settle(number, "released")
    ledger = opened(place)
    assert ledger.spent == ledger.budget == dp.PureDP(1)
    with pytest.raises(dp.BudgetExceeded, match="the budget of epsilon 1 has epsilon 0 left"):
        ledger.charge(TENTH, "11")
    assert [e.fingerprint for e in opened(place).entries] == [str(i) for i in range(10)]
    ledger.verify()


numbers = itertools.count()
amounts = st.fractions(0, 1, max_denominator=1000)
actions = st.lists(
    st.tuples(amounts, amounts, st.sampled_from([None, "released", "failed"])), max_size=8
)


@pytest.mark.parametrize(
    "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
@settings(suppress_health_check=[*HealthCheck])
@given(taken=actions)
def test_does_what_the_ledger_in_memory_does(taken: list[Any], place: Place) -> None:
    place, budget = fresh(place, next(numbers)), dp.ApproxDP(2, "0.9")
    memory = in_memory(budget)
    for epsilon, delta, status in taken:
        file = opened(place, budget)
        cost = dp.ApproxDP(epsilon, min(delta, Fraction(99, 100)))
        try:
            number = memory.charge(cost, "f")
        except dp.BudgetExceeded as refusal:
            words = str(refusal)
            with pytest.raises(dp.BudgetExceeded, match=re.escape(words)):
                file.charge(cost, "f")
            continue
        charged = file.charge(cost, "f")
        if status is not None:
            memory.settle(number, status)
            file.settle(charged, status)
    found = opened(place, budget)
    assert found.spent == memory.spent
    assert [(e.cost, e.status) for e in found.entries] == [
        (e.cost, e.status) for e in memory.entries
    ]
    found.verify()


def test_amounts_are_stored_as_exact_fractions(place: Place) -> None:
    ledger = opened(place, dp.PureDP("1e300"))
    for amount in ("1/3", "0.1", "1e-300", "123456789123456789"):
        ledger.charge(dp.PureDP(amount), "f")
    stored = sql(place, "SELECT main FROM records WHERE act = 'charged'")
    assert stored == [("1/3",), ("1/10",), ("1/1" + "0" * 300,), ("123456789123456789",)]
    total = sum(map(Fraction, ("1/3", "0.1", "1e-300", "123456789123456789")))
    assert opened(place, dp.PureDP("1e300")).spent.main == total


def test_an_amount_that_is_too_long_is_refused(place: Place) -> None:
    with pytest.raises(dp.LedgerError, match="digits"):
        opened(place, dp.PureDP(Fraction(10**4100)))
    ledger = opened(place)
    with pytest.raises(dp.LedgerError, match="digits"):
        ledger.charge(dp.PureDP(Fraction(1, 10**4100)), "f")
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "other",
    [
        dp.PureDP(2),
        dp.PureDP("1.0000000000000001"),
        dp.ApproxDP(1, 0),
        dp.ApproxDP(1, "1e-9"),
        dp.ZCDP(1),
    ],
    ids=repr,
)
def test_another_budget_is_refused(place: Place, other: Any) -> None:
    opened(place).charge(TENTH, "f")
    with pytest.raises(dp.LedgerError, match="was opened with epsilon 1 in pure DP"):
        opened(place, other)
    opened(place, other, name="other")
    assert opened(place).spent == TENTH


def test_the_unit_is_recorded_at_the_first_charge(place: Place) -> None:
    opened(place).charge(TENTH, "f", UNIT)
    ledger = opened(place)
    for unit in ("rows, change-one", "identifier"):
        with pytest.raises(dp.LedgerError, match="do not add up"):
            ledger.require_unit(unit)
        with pytest.raises(dp.LedgerError, match="do not add up"):
            ledger.charge(TENTH, "f", unit)
    assert ledger.charge(TENTH, "g", UNIT)
    assert ledger.spent == dp.PureDP("0.2")


def test_budgets_of_one_place_do_not_mix(place: Place) -> None:
    filled(place)
    assert opened(place).spent == dp.PureDP("0.3")
    second = opened(place, dp.ApproxDP(2, "1e-6"), name="second")
    assert second.spent == dp.ApproxDP("1/3", "1e-7")
    assert [e.status for e in opened(place).entries] == ["released", "failed", "charged"]
    assert [e.status for e in second.entries] == ["charged"]


def test_a_charge_is_settled_once(place: Place) -> None:
    ledger = opened(place)
    number = ledger.charge(TENTH, "f")
    ledger.settle(number, "failed")
    for wrong in (number, number + 1, 0, -1, 1):
        with pytest.raises(dp.LedgerError, match="ends a charge that is not open"):
            ledger.settle(wrong, "released")
    assert [e.status for e in opened(place).entries] == ["failed"]
    verify(place)


def before_there_were_rules(place: Place, name: str) -> None:
    """A budget of a name that no new one may have."""
    store_at(place).append(lambda _: Draft(name, "opened", amount=dp.PureDP(1)))


ODD = [
    "a b",
    "a/b",
    "../x",
    "'; DROP TABLE records; --",
    "Łódź 🦀",
    "\n",
    "a\x00b",
    "%s",
    "x" * 5000,
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_names_may_be_any_text(place: Place, name: str) -> None:
    if not name.strip():
        with pytest.raises(dp.LedgerError, match="not empty"):
            opened(place, name=name)
        return
    if "\0" in name and not isinstance(place, Path):
        with pytest.raises(dp.LedgerError, match="without NUL"):
            before_there_were_rules(place, name)
        return
    before_there_were_rules(place, name)
    opened(place, name=name).charge(TENTH, "f")
    before_there_were_rules(place, name + "2")
    opened(place, name=name + "2").charge(TENTH + TENTH, "f")
    assert opened(place, name=name).spent == TENTH
    verify(place)


@pytest.mark.parametrize("name", ["", " ", 5, b"x", "\ud800"], ids=ascii)
def test_names_that_are_not_text_are_refused(place: Place, name: Any) -> None:
    with pytest.raises(dp.LedgerError, match="name"):
        opened(place, name=name)


def test_threads_share_one_budget(place: Place) -> None:
    refused: list[int] = []
    shared = opened(place)

    def spend(ledger: Any) -> None:
        for i in range(10):
            try:
                ledger.settle(ledger.charge(dp.PureDP("0.02"), "f"), "released")
            except dp.BudgetExceeded:
                refused.append(i)

    ledgers = [shared, shared, shared, opened(place), opened(place), opened(place)]
    threads = [threading.Thread(target=spend, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened(place).spent == dp.PureDP(1)
    assert len(refused) == 10
    assert {e.status for e in shared.entries} == {"released"}
    verify(place)


@pytest.mark.parametrize("memory", [False, True])
def test_a_charge_gets_its_own_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: bool
) -> None:
    """Also where another thread charges between the end of its transaction and its return."""
    ledger = in_memory(dp.PureDP(1)) if memory else opened(tmp_path / "budget.db")
    store, real = ledger._store, ledger._store.write
    others: list[int] = []

    def overtaken(*given: Any, **more: Any) -> Any:
        found = real(*given, **more)
        monkeypatch.setattr(store, "write", real)
        others.append(ledger.charge(TENTH, "other", UNIT))
        return found

    monkeypatch.setattr(store, "write", overtaken)
    number = ledger.charge(TENTH, "own", UNIT)
    plans = {entry.number: entry.fingerprint for entry in ledger.entries}
    assert plans == {number: "own", others[0]: "other"}


def test_a_clock_that_goes_backwards_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    ledger = opened(place)
    for day in range(5):

        class Clock:
            @staticmethod
            def now(_: object, day: int = day) -> datetime:
                return start - timedelta(days=400 * day)

            fromisoformat = datetime.fromisoformat

        monkeypatch.setattr(chain, "datetime", Clock)
        ledger.charge(TENTH, str(day))
    monkeypatch.undo()
    entries = opened(place).entries
    assert [e.fingerprint for e in entries] == ["0", "1", "2", "3", "4"]
    assert entries[0].time == start > entries[-1].time
    assert opened(place).spent == dp.PureDP("0.5")
    verify(place)


def test_two_sessions_see_each_others_charges_at_once(place: Place) -> None:
    first, second = opened(place), opened(place)
    for i in range(1, 6):
        first.charge(TENTH, "first")
        assert second.spent.main * 10 == 2 * i - 1
        second.charge(TENTH, "second")
        assert first.spent.main * 10 == 2 * i
    with pytest.raises(dp.BudgetExceeded):
        first.charge(dp.PureDP("1e-9"), "f")


def test_words_are_of_full_precision(place: Place) -> None:
    ledger = opened(place)
    ledger.charge(dp.PureDP("0.123456789012"), "f")
    with pytest.raises(dp.BudgetExceeded) as caught:
        ledger.charge(dp.PureDP("0.9"), "f")
    assert exact_words(dp.PureDP("0.876543210988")) in str(caught.value)
    assert "epsilon 0.023456789012 too much" in str(caught.value)


def test_the_hash_can_be_computed_by_anybody(place: Place) -> None:
    """What docs/ledger.md says of the format, without the code of the package."""
    filled(place)
    previous = ""
    for row in sql(place, "SELECT * FROM records ORDER BY seq"):
        assert row[-2] == previous
        text = json.dumps(["dpframe ledger 1", "record", *row[:-1]], separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert row[-1] == previous
    ((_, seq, tip, seal),) = sql(place, "SELECT * FROM head")
    assert tip == previous
    text = json.dumps(["dpframe ledger 1", "head", seq, tip], separators=(",", ":"))
    assert seal == hashlib.sha256(text.encode()).hexdigest()
