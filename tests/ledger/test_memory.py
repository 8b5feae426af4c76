"""The ledger in memory: exact sums, nothing beyond the budget, entries that stay."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.exact import exact
from dpframe.ledger.amounts import exact_amount, exact_words
from dpframe.ledger.streams import StreamIsOpen, StreamOpening
from tests.ledger.ledgers import UNIT, in_memory, opened

amounts = st.fractions(0, 1, max_denominator=1000)


@given(costs=st.lists(st.tuples(amounts, amounts), max_size=12))
def test_what_is_spent_is_the_sum_of_what_was_admitted(
    costs: list[tuple[Fraction, Fraction]],
) -> None:
    budget = dp.ApproxDP(2, "0.9")
    ledger = in_memory(budget)
    epsilon = delta = Fraction(0)
    for more_epsilon, more_delta in costs:
        fits = epsilon + more_epsilon <= 2 and delta + more_delta <= Fraction(9, 10)
        cost = dp.ApproxDP(more_epsilon, min(more_delta, Fraction(99, 100)))
        if not fits:
            with pytest.raises(dp.BudgetExceeded):
                ledger.charge(cost, "f")
            continue
        ledger.charge(cost, "f")
        epsilon, delta = epsilon + more_epsilon, delta + more_delta
    assert ledger.spent == dp.ApproxDP(epsilon, delta)
    assert sum((e.cost for e in ledger.entries), dp.ApproxDP(0, 0)) == ledger.spent
    assert ledger.budget == budget


def test_no_float_is_in_the_ledger() -> None:
    ledger = in_memory(dp.PureDP(1.0))
    for _ in range(3):
        ledger.charge(dp.PureDP(0.1), "f")
    ledger.charge(dp.PureDP("1/3"), "f")
    spent = ledger.spent
    assert spent.exact_epsilon == Fraction(3, 10) + Fraction(1, 3)
    held = [spent.main, spent.slack, ledger.budget.main]
    held += [part for entry in ledger.entries for part in (entry.cost.main, entry.cost.slack)]
    assert {type(number) for number in held} == {Fraction}


def test_a_refused_charge_leaves_no_trace() -> None:
    ledger = in_memory(dp.ZCDP(1, "1e-6"))
    ledger.charge(dp.ZCDP("0.5"), "first")
    for cost in (dp.ZCDP("0.5000001"), dp.ZCDP("0.1", "1.1e-6")):
        with pytest.raises(dp.BudgetExceeded):
            ledger.charge(cost, "too much")
    assert [entry.fingerprint for entry in ledger.entries] == ["first"]
    assert ledger.spent == dp.ZCDP("0.5")


def test_an_entry_settles_once_it_is_known_how_it_ended() -> None:
    ledger = in_memory(dp.PureDP(1))
    numbers = [ledger.charge(dp.PureDP("0.25"), name) for name in "abc"]
    assert {entry.status for entry in ledger.entries} == {"charged"}
    ledger.settle(numbers[2], "failed")
    ledger.settle(numbers[0], "released")
    assert [entry.status for entry in ledger.entries] == ["released", "charged", "failed"]
    assert ledger.spent == dp.PureDP("0.75")
    assert all(entry.time.tzinfo is UTC for entry in ledger.entries)
    times = [entry.time for entry in ledger.entries]
    assert times == sorted(times)


def test_a_stream_is_paid_for_once() -> None:
    ledger = in_memory(dp.PureDP(1))
    opening, plan = StreamOpening("visits", "ab" * 32, 3), "cd" * 32
    number = ledger.charge(dp.PureDP("0.1"), plan, stream=opening)
    found = ledger.streams.find("visits")
    assert found == opening.opened(number - 1)  # its record is before that of the charge
    with pytest.raises(StreamIsOpen):
        ledger.charge(dp.PureDP("0.1"), plan, stream=opening)
    assert ledger.spent == dp.PureDP("0.1")


def test_entries_and_sums_cannot_be_changed_from_outside() -> None:
    ledger = in_memory(dp.PureDP(1))
    ledger.charge(dp.PureDP("0.5"), "f")
    (entry,) = ledger.entries
    with pytest.raises(AttributeError):
        entry.cost = dp.PureDP(0)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ledger.spent = dp.PureDP(0)  # type: ignore[misc]
    assert isinstance(ledger.entries, tuple)
    assert ledger.spent == dp.PureDP("0.5")


def test_threads_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is stopped between the comparison and the charge, so that others could come between."""
    ledger, real = in_memory(dp.PureDP(1)), dp.PureDP.covers
    results: list[str] = []

    def slowly(budget: Any, cost: Any) -> bool:
        found = real(budget, cost)
        time.sleep(0.0005)
        return found

    monkeypatch.setattr(dp.PureDP, "covers", slowly)

    def spend() -> None:
        for _ in range(15):
            try:
                ledger.charge(dp.PureDP("0.02"), "f")
                results.append("charged")
            except dp.BudgetExceeded:
                results.append("refused")

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == dp.PureDP(1)
    assert len(ledger.entries) == results.count("charged") == 50
    assert results.count("refused") == 70


@pytest.mark.parametrize(
    ("budget", "spent", "cost", "words"),
    [
        (dp.PureDP(1), "0.7", dp.PureDP("0.5"), ["epsilon 0.5", "has epsilon 0.3 left", "0.2 too"]),
        (dp.PureDP(1), 1, dp.PureDP("0.5"), ["has epsilon 0 left", "0.5 too much", "more budget"]),
        (
            dp.ApproxDP(1, "1e-6"),
            0,
            dp.ApproxDP(1, "2e-6"),
            ["epsilon 1 and delta 2e-6", "delta 1e-6 too much"],
        ),
        (dp.ZCDP(1), "0.5", dp.ZCDP("0.75"), ["rho 0.75", "rho 0.25 too much"]),
    ],
)
def test_a_refusal_names_all_amounts(budget: Any, spent: Any, cost: Any, words: list[str]) -> None:
    ledger = in_memory(budget)
    ledger.charge(budget.of(exact(spent)), "f")
    with pytest.raises(dp.BudgetExceeded) as caught:
        ledger.charge(cost, "f")
    for part in words:
        assert part in str(caught.value)
    assert "for this part" not in str(caught.value)


@given(spent=st.fractions(0, 1, max_denominator=10**12).filter(lambda f: f < 1))
def test_what_is_said_to_remain_can_be_spent(spent: Fraction) -> None:
    ledger = in_memory(dp.PureDP(1))
    ledger.charge(dp.PureDP(spent), "f")
    said = exact_words(dp.PureDP(1 - spent)).removeprefix("epsilon ")
    ledger.charge(dp.PureDP(said), "f")
    assert exact(said) <= 1 - spent


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 3), "0.33333333333333333"),
        (Fraction(2, 3), "0.66666666666666666"),
        (Fraction(10), "10"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(10**20), "1e20"),
        (Fraction(0), "0"),
        (Fraction("1.0000000001"), "1.0000000001"),
    ],
)
def test_amounts_are_shown_so_that_they_can_be_written_back(value: Fraction, words: str) -> None:
    assert exact_amount(value) == words


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows")
@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_fork_with_the_number_of_its_parent_is_another_process(
    is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system gives the number of a process that has ended to another one. A fork may spend what
    is in a file, where its parent sees it, and nothing of what is in memory.
    """
    monkeypatch.setattr(os, "getpid", lambda: 7)
    ledger = opened(tmp_path / "budget.db") if is_shared else in_memory(dp.PureDP(1))
    ledger.settle(ledger.charge(dp.PureDP("0.5"), "f", UNIT), "released")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            ledger.charge(dp.PureDP("0.25"), "f", UNIT)
            os.write(write, b"charged")
        except BaseException as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        assert ("charged" if is_shared else "was forked from it") in answer.read()
    assert ledger.spent == dp.PureDP("0.75" if is_shared else "0.5")
