"""Budgets of disjoint parts: the whole pays for the dearest, and never for less."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.place import open_ledger
from dpframe.ledger.store import MemoryStore
from tests.ledger.ledgers import divided, in_memory
from tests.ledger.test_processes import in_child

UNIT = "rows, add-remove"
MEASURES: list[type[Budget]] = [dp.PureDP, dp.ApproxDP, dp.ZCDP]


def dearest(totals: list[Budget], touched: int, zero: Budget) -> Budget:
    """By trying every set of parts that neighbours could differ in."""
    chosen = list(combinations(totals, min(touched, len(totals))))
    return zero.of(
        max(sum((t.main for t in some), Fraction(0)) for some in chosen),
        max(sum((t.slack for t in some), Fraction(0)) for some in chosen),
    )


amounts = st.fractions(0, Fraction(1, 3), max_denominator=12)


@st.composite
def stories(draw: st.DrawFn) -> tuple[type[Budget], int, int, list[tuple[int, Budget]]]:
    measure, parts = draw(st.sampled_from(MEASURES)), draw(st.integers(1, 5))
    touched = draw(st.integers(1, parts))
    costs = st.builds(measure.of, amounts, amounts.map(lambda d: d / 10**6))
    charges = draw(st.lists(st.tuples(st.integers(-1, parts - 1), costs), max_size=25))
    return measure, parts, touched, charges


@given(story=stories())
def test_the_whole_is_charged_the_dearest_parts_and_everything_else(story: Any) -> None:
    """Part -1 is a query of the whole frame in between."""
    measure, parts, touched, charges = story
    budget = measure.of(Fraction(1), Fraction(1, 10**6))
    parent = in_memory(budget)
    ledgers = divided(parent, parts, touched)
    zero = measure.of(Fraction(0))
    own, totals = zero, [zero] * parts
    for part, cost in charges:
        after = [t + cost if i == part else t for i, t in enumerate(totals)]
        total = own + cost if part < 0 else own
        fits = budget.covers(total + dearest(after, touched, zero))
        ledger: Ledger = parent if part < 0 else ledgers[part]
        assert (ledger.budget - ledger.spent).covers(cost) == fits
        before = (parent.spent, len(parent.entries))
        if fits:
            ledger.charge(cost, "f", UNIT)
            own, totals = total, after
        else:
            with pytest.raises(dp.BudgetExceeded):
                ledger.charge(cost, "f", UNIT)
            assert (parent.spent, len(parent.entries)) == before
        assert parent.spent == own + dearest(totals, touched, zero)
        assert [ledger.spent for ledger in ledgers] == totals


@given(story=stories())
def test_parts_of_parts_are_never_counted_too_low(story: Any) -> None:
    """Each part is divided again; neighbours differ in `touched` parts of parts at most."""
    measure, parts, touched, charges = story
    parent = in_memory(measure.of(Fraction(20), Fraction(1, 10)))
    nested = [divided(ledger, 2, min(2, touched)) for ledger in divided(parent, parts, touched)]
    zero = measure.of(Fraction(0))
    totals = {(i, j): zero for i in range(parts) for j in range(2)}
    for n, (part, cost) in enumerate(charges):
        place = (max(part, 0), n % 2)
        nested[place[0]][place[1]].charge(cost, "f", UNIT)
        totals[place] = totals[place] + cost
    assert parent.spent.covers(dearest([*totals.values()], touched, zero))


def test_a_part_may_come_to_what_the_dearest_has_for_free() -> None:
    parent = in_memory(dp.PureDP(1))
    a, b, _ = divided(parent, 3, 1)
    a.charge(dp.PureDP("0.6"), "f")
    assert (a.budget, b.budget) == (dp.PureDP(1), dp.PureDP(1))
    assert b.budget - b.spent == dp.PureDP(1)
    parent.charge(dp.PureDP("0.3"), "f")
    assert a.budget - a.spent == dp.PureDP("0.1")
    assert b.budget - b.spent == dp.PureDP("0.7")
    b.charge(dp.PureDP("0.6"), "f")
    assert parent.spent == dp.PureDP("0.9")
    assert [entry.cost for entry in parent.entries] == [
        dp.PureDP("0.6"),
        dp.PureDP("0.3"),
        dp.PureDP(0),
    ]
    assert [entry.cost for entry in b.entries] == [dp.PureDP("0.6")]


def test_a_refusal_speaks_of_the_part() -> None:
    parent = in_memory(dp.PureDP(1))
    a, b = divided(parent, 2, 1)
    a.charge(dp.PureDP("0.6"), "f")
    parent.charge(dp.PureDP("0.3"), "f")
    with pytest.raises(dp.BudgetExceeded) as refusal:
        b.charge(dp.PureDP("0.8"), "f")
    assert str(refusal.value) == (
        "the plan costs epsilon 0.8, which is epsilon 0.1 too much\n"
        "  why: the budget of epsilon 0.7 for this part has epsilon 0.7 left\n"
        "  instead: spend at most epsilon 0.7"
    )
    assert b.spent == dp.PureDP(0)
    b.charge(dp.PureDP("0.7"), "f")
    assert parent.spent == dp.PureDP(1)


class Interrupted(Ledger):
    """Fails once, before or after the charge is recorded."""

    def __init__(self, budget: Budget, after: bool) -> None:
        super().__init__(MemoryStore(), "default", budget)
        self.after, self.broken = after, False

    def charge(self, cost: Budget, fingerprint: str, *rest: Any) -> int:
        if self.broken and not self.after:
            raise KeyboardInterrupt
        number = super().charge(cost, fingerprint, *rest)
        if self.broken:
            raise KeyboardInterrupt
        return number


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_charge_leaves_too_much_counted_or_nothing(after: bool) -> None:
    parent = Interrupted(dp.PureDP(1), after)
    a, b = divided(parent, 2, 1)
    a.charge(dp.PureDP("0.2"), "f")
    parent.broken = True
    with pytest.raises(KeyboardInterrupt):
        a.charge(dp.PureDP("0.3"), "f")
    parent.broken = False
    assert a.spent == dp.PureDP("0.5" if after else "0.2")
    b.charge(dp.PureDP("0.4"), "f")
    assert parent.spent == dp.PureDP("0.5" if after else "0.4")


def test_another_unit_is_refused_and_charges_nothing() -> None:
    parent = in_memory(dp.PureDP(1))
    a, _ = divided(parent, 2, 1)
    a.charge(dp.PureDP("0.1"), "f", UNIT)
    with pytest.raises(dp.LedgerError, match="do not add up"):
        a.charge(dp.PureDP("0.1"), "f", "rows, change-one")
    with pytest.raises(dp.LedgerError, match="do not add up"):
        a.require_unit("rows, change-one")
    assert a.spent == parent.spent == dp.PureDP("0.1")


@pytest.mark.parametrize("stored", [False, True])
def test_threads_count_every_charge(tmp_path: Path, stored: bool) -> None:
    place = tmp_path / "budget.db" if stored else None
    parent = open_ledger(place, None, dp.PureDP(1000))
    ledgers = divided(parent, 4, 2)
    rounds = 5 if stored else 100

    def spend(i: int) -> None:
        for _ in range(rounds):
            ledgers[i % 4].charge(dp.PureDP(Fraction(1 + i % 3, 100)), "f", UNIT)

    threads = [threading.Thread(target=spend, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    totals = [ledger.spent for ledger in ledgers]
    assert sum(t.main for t in totals) == Fraction(rounds * (1 + 2 + 3 + 1 + 2 + 3 + 1 + 2), 100)
    assert parent.spent == dearest(totals, 2, dp.PureDP(0))
    assert sum(len(ledger.entries) for ledger in ledgers) == 8 * rounds


def test_a_forked_process_counts_on_what_the_ledger_says(tmp_path: Path) -> None:
    """In memory each process would spend in one part what the other's part has paid for."""
    path = tmp_path / "budget.db"
    parent = open_ledger(path, None, dp.PureDP(1))
    a, b = divided(parent, 2, 1)
    a.charge(dp.PureDP("0.5"), "f")
    c, d = divided(in_memory(dp.PureDP(1)), 2, 1)
    c.charge(dp.PureDP("0.5"), "f")

    def refused(use: Callable[[], object]) -> bool:
        try:
            use()
        except dp.LedgerError as error:
            return "forked" in str(error)
        return False

    def spend() -> int:
        uses: list[Callable[[], object]] = [
            lambda: d.charge(dp.PureDP("0.5"), "child"),
            lambda: d.spent,
            lambda: d.budget,
            lambda: d.share(dp.PureDP(1)),
        ]
        if not all(refused(use) for use in uses):
            return 1
        b.charge(dp.PureDP("0.3"), "child")
        return 0

    assert in_child(spend) == 0
    assert b.spent == dp.PureDP("0.3")
    b.charge(dp.PureDP("0.4"), "f")
    assert parent.spent == dp.PureDP("0.7")


def test_ends_are_recorded_in_both() -> None:
    parent = in_memory(dp.PureDP(1))
    a, _ = divided(parent, 2, 1)
    parent.charge(dp.PureDP("0.1"), "f")
    number = a.charge(dp.PureDP("0.1"), "f")
    a.settle(number, "failed")
    assert [entry.status for entry in parent.entries] == ["charged", "failed"]
    assert [entry.status for entry in a.entries] == ["failed"]


def test_what_a_plan_would_add_is_said_for_the_whole() -> None:
    parent = in_memory(dp.PureDP(1))
    a, b = divided(parent, 2, 1)
    c, d = divided(b, 2, 2)
    a.charge(dp.PureDP("0.5"), "f")
    assert a.share(dp.PureDP("0.2")).charged == dp.PureDP("0.2")
    assert b.share(dp.PureDP("0.2")).charged == dp.PureDP(0)
    assert c.share(dp.PureDP("0.6")).charged == dp.PureDP("0.1")
    c.charge(dp.PureDP("0.2"), "f")
    d.charge(dp.PureDP("0.2"), "f")
    share = c.share(dp.PureDP("0.2"))
    assert (share.parts, share.touched, share.charged) == (2, 2, dp.PureDP("0.1"))
    assert parent.spent == dp.PureDP("0.5")
