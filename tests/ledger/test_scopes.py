"""Charges that fall on parts or windows: what the whole pays, and what ledgers keep of it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.core.windows import Every, Windows, number_of, window_words
from dpframe.errors import Unsound
from dpframe.ledger import chain as checkpoints
from dpframe.ledger.account import NOBODY, Caller
from dpframe.ledger.chain import Chain, Charge, read_charge
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.record import Draft, Record, Seal, sealed
from dpframe.ledger.scopes import (
    Clock,
    Division,
    Level,
    PartScope,
    Scope,
    Timeline,
    Totals,
    WindowScope,
    amounts_of,
    as_every,
    per_text,
)
from tests.ledger.ledgers import UNIT, divided, in_memory, opened, store_at, verify

ZERO = dp.ApproxDP(0, 0)
KEYS = ["a", "b", "c", "d"]
amounts = st.builds(
    dp.ApproxDP,
    st.fractions(0, 2, max_denominator=6),
    st.fractions(0, Fraction(1, 10), max_denominator=40),
)


def largest(totals: list[Budget], n: int) -> Budget:
    mains = sorted((t.main for t in totals), reverse=True)[:n]
    slacks = sorted((t.slack for t in totals), reverse=True)[:n]
    return ZERO.of(sum(mains, Fraction(0)), min(Fraction(99, 100), sum(slacks, Fraction(0))))


def test_a_division_keeps_the_number_of_parts_that_neighbours_differ_in() -> None:
    """A smaller one would pay for one part where two may change."""
    totals, cost = Totals(ZERO), dp.ApproxDP(1, 0)
    PartScope((Level("years", 2, "a"),)).add(totals, [ZERO, cost])
    with pytest.raises(ValueError, match=r"^$"):
        PartScope((Level("years", 1, "b"),)).amounts(totals, cost)
    assert PartScope((Level("years", 2, "b"),)).amounts(totals, cost) == (cost, cost)


@given(
    touched=st.integers(1, 5),
    charges=st.lists(st.tuples(st.sampled_from(KEYS), amounts), max_size=9),
    asked=st.tuples(st.sampled_from([*KEYS, "new"]), amounts),
)
def test_the_sum_of_the_largest_is_what_sorting_says(
    touched: int, charges: Any, asked: Any
) -> None:
    division, totals, paid = Division(ZERO, touched), dict.fromkeys(KEYS, ZERO), ZERO
    for key, cost in charges:
        paid = paid + division.increase(key, cost)
        division.add(key, cost)
        totals[key] = totals[key] + cost
        assert paid == largest([*totals.values()], touched)
        assert {k: division.spent(k) for k in KEYS} == totals
    key, cost = asked
    after = totals | {key: totals.get(key, ZERO) + cost}
    assert paid + division.increase(key, cost) == largest([*after.values()], touched)
    again = Division.restored(ZERO, json.loads(json.dumps(division.state())))
    assert again.state() == division.state()
    assert again.increase(key, cost) == division.increase(key, cost)


ends = st.one_of(st.none(), st.integers(-4, 4))
windows = st.builds(Windows, st.just("1mo"), ends, ends, st.booleans())


def within(some: Windows) -> list[int | None]:
    """Windows from -6 to 6, which stand for all before and after, and rows without a time."""
    found: list[int | None] = [
        n
        for n in range(-6, 7)
        if (some.first is None or n >= some.first) and (some.last is None or n <= some.last)
    ]
    return found + ([None] if some.without else [])


@given(charges=st.lists(st.tuples(windows, amounts), max_size=8), asked=windows)
def test_windows_are_charged_each_by_itself(charges: Any, asked: Windows) -> None:
    timeline = Timeline("1mo", ZERO)
    totals: dict[int | None, Budget] = dict.fromkeys([*range(-6, 7), None], ZERO)
    for some, cost in charges:
        timeline.add(some, cost)
        for number in within(some):
            totals[number] = totals[number] + cost
        assert timeline.spent == largest([*totals.values()], 1)
    assert timeline.largest(asked) == largest([totals[n] for n in within(asked)], 1)
    charged: dict[int | None, Budget] = dict.fromkeys(totals, ZERO)
    for some, total in timeline.charged():
        for number in within(some):
            assert charged[number].is_zero
            charged[number] = total
    assert charged == totals
    again = Timeline.restored("1mo", ZERO, json.loads(json.dumps(timeline.state())))
    assert (again.state(), again.spent) == (timeline.state(), timeline.spent)


@given(day=st.dates(dt.date(1, 1, 2)), every=st.sampled_from(get_args(Every)))
def test_each_day_is_in_one_window_and_windows_have_no_gaps(day: dt.date, every: Every) -> None:
    before = day - dt.timedelta(days=1)
    number, earlier = number_of(every, day), number_of(every, before)
    starts = {
        "1d": True,
        "1w": day.weekday() == 0,
        "1mo": day.day == 1,
        "1q": (day.day, day.month % 3) == (1, 1),
        "1y": (day.day, day.month) == (1, 1),
    }
    assert number - earlier == int(starts[every])
    assert window_words(every, number)


def test_windows_are_written_as_people_do() -> None:
    day = dt.date(2026, 11, 22)
    assert [window_words(every, number_of(every, day)) for every in get_args(Every)] == [
        "2026-11-22",
        "week of 2026-11-16",
        "2026-11",
        "2026-Q4",
        "2026",
    ]
    month = number_of("1mo", day)
    assert Windows("1mo", month - 1, month, without=False).words() == "2026-10 and 2026-11"
    assert Windows("1mo", month - 2, month, without=False).words() == "2026-09 to 2026-11"
    assert Windows("1mo").words() == "all months and rows without a time"
    assert Windows("1mo", None, month, without=False).words() == "all months up to 2026-11"
    assert Windows("1mo", 1, 0, without=True).words() == "rows without a time"
    assert window_words("1d", 10**9) == "day 1000000000"
    with pytest.raises(dp.InvalidBudget, match="'2mo' is not a length of windows"):
        as_every("2mo")


# -- as records -----------------------------------------------------------------------------------

levels = st.builds(Level, st.sampled_from(["x", "y"]), st.integers(1, 3), st.sampled_from(KEYS))
scopes = st.one_of(
    st.none(),
    st.builds(lambda level: PartScope((level,)), levels),
    st.builds(WindowScope, windows),
)


def record_of(charge: Charge, amount: Budget) -> Record:
    draft = Draft("default", "charged", amount=amount, why=charge.text())
    return sealed(draft, 1, "2026-11-22T00:00:00", "", Seal(None))


@given(scope=scopes, cost=amounts)
def test_what_is_recorded_is_read_back(scope: Scope | None, cost: Budget) -> None:
    charge = Charge(NOBODY, cost, scope)
    found = read_charge(record_of(charge, cost))
    normal = scope
    if isinstance(scope, WindowScope):
        normal = WindowScope(Windows.read(scope.windows.fields()))
    assert found == Charge(NOBODY, cost, normal)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "others"},
        {"where": []},
        {"where": [["x", 0, "a"]]},
        {"where": [["x", True, "a"]]},
        {"where": [["x", 1, 2]]},
        {"where": [["x", 1, "a"], ["x", 1, "b"]]},
        {"where": [["x", 1]]},
        {"cost": ["1/2", "0/1"]},
        {"cost": ["-1/1", "0/1"]},
        {"cost": ["2/2", "0/1"]},
        {"cost": 1},
        {"more": 1},
    ],
    ids=str,
)
def test_other_scopes_are_refused(change: dict[str, Any]) -> None:
    scope = PartScope((Level("x", 1, "a"),))
    good = json.loads(Charge(NOBODY, dp.PureDP(1), scope).text())
    read_charge(record_of(Charge(NOBODY, dp.PureDP(1), scope), dp.PureDP(1)))
    bad = json.dumps(good | {"scope": good["scope"] | change})
    record = replace(record_of(Charge(NOBODY, dp.PureDP(1)), dp.PureDP(1)), why=bad)
    if change.get("cost") == ["1/2", "0/1"]:  # another cost is another charge
        assert read_charge(record).cost == dp.PureDP("0.5")
        return
    with pytest.raises((ValueError, TypeError, KeyError, ArithmeticError, dp.InvalidBudget)):
        read_charge(record)


@pytest.mark.parametrize("who", [None, "ann"])
def test_a_charge_that_says_no_more_is_of_its_user(who: str | None) -> None:
    draft = Draft("default", "charged", amount=dp.PureDP(1), who=who)
    found = read_charge(sealed(draft, 1, "2026-11-22T00:00:00", "", Seal(None)))
    assert found == Charge(Caller(who), dp.PureDP(1))


@pytest.mark.parametrize(
    "covered",
    [
        7,
        {"template": "t"},
        {"template": 7, "parameters": {}},
        {"template": "t", "parameters": []},
        {"template": "t", "parameters": {"day": {"type": "date"}}},
    ],
    ids=str,
)
def test_a_range_that_is_none_covers_no_charge(covered: object) -> None:
    good = json.loads(Charge(NOBODY, dp.PureDP(1)).text())
    record = record_of(Charge(NOBODY, dp.PureDP(1)), dp.PureDP(1))
    with pytest.raises((ValueError, TypeError)):
        read_charge(replace(record, why=json.dumps(good | {"covered": covered})))


# -- in ledgers -----------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(checkpoints, "EVERY", 4)
    monkeypatch.setattr("dpframe.ledger.store.EVERY", 4)
    monkeypatch.setattr("dpframe.ledger.store.LISTED", 4)
    return iter(())


def test_what_parts_were_charged_outlives_their_process(path: Path) -> None:
    divided(opened(path), 2, 1, "days")[0].charge(dp.PureDP("0.4"), "f", UNIT)
    first, second, third = divided(opened(path), 3, 1, "days")
    assert [part.spent for part in (first, second, third)] == [
        dp.PureDP("0.4"),
        dp.PureDP(0),
        dp.PureDP(0),
    ]
    third.charge(dp.PureDP("0.5"), "f", UNIT)
    assert opened(path).spent == dp.PureDP("0.5")
    assert [entry.cost for entry in first.entries] == [dp.PureDP("0.4")]
    divided(opened(path), 1, 1, "others")[0].charge(dp.PureDP("0.5"), "f", UNIT)
    assert opened(path).remaining == dp.PureDP(0)
    assert divided(opened(path), 1, 1, "days")[0].remaining == dp.PureDP("0.1")
    verify(path)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("key", [None, "a key of the ledger"])
def test_checkpoints_have_the_totals(path: Path, key: str | None) -> None:
    def months(first: int) -> WindowScope:
        clocks = (Clock("v", "t", "UTC"), Clock("w", "at", ""))
        return WindowScope(Windows("1mo", first, first + 1, without=False), clocks)

    def windowed() -> Ledger:
        return Ledger(store_at(path, key), "monthly", dp.PureDP(1), per="1mo")

    for n in range(9):
        part = divided(opened(path, dp.PureDP(3), key=key), 3, 2, "days")[n % 3]
        part.charge(dp.PureDP(Fraction(1 + n % 2, 10)), "f", UNIT)
        inner = divided(part, 2, 1, f"hours {n % 3}")[n % 2]
        inner.charge(dp.PureDP("0.05"), "f", UNIT)
        windowed().charge(dp.PureDP("0.1"), "f", "w", scope=months(2 * (n // 3)))
    chain = store_at(path, key).read()
    assert chain.checkpoint > 0
    assert not chain.whole
    whole = store_at(path, key).read(whole=True)
    for name in ("default", "monthly"):
        mine, other = chain.account(name), whole.account(name)
        assert (mine.spent, mine.scopes.state()) == (other.spent, other.scopes.state())
    assert windowed().spent == dp.PureDP("0.3")
    assert windowed().in_scope(months(6)).left == dp.PureDP(1)
    assert windowed().in_scope(months(5)).left == dp.PureDP("0.7")
    assert [*chain.account("monthly").scopes.clocks] == ["v", "w"]
    other = WindowScope(months(8).windows, (Clock("v", "t", "Asia/Tokyo"),))
    with pytest.raises(dp.LedgerError, match="convert_time_zone"):
        windowed().charge(dp.PureDP("0.1"), "f", "w", scope=other)
    verify(path, key)


def test_a_record_that_charges_less_than_it_adds_is_refused(path: Path) -> None:
    """Whoever can write to a ledger without a key can seal any record, but not any sum."""
    part = divided(opened(path), 2, 1, "days")[0]
    part.charge(dp.PureDP("0.2"), "f", UNIT)
    store = store_at(path)
    text = Charge(NOBODY, dp.PureDP("0.3"), part.scope).text()
    for amount in ("0.2", "0.4", "0"):
        with pytest.raises(dp.LedgerError, match="charges another amount than its cost adds"):
            store.append(
                lambda chain, a=amount: Draft(  # type: ignore[misc]
                    "default", "charged", None, "f", UNIT, dp.PureDP(a), None, text
                )
            )
    other = PartScope((Level("days", 2, "[0]"),))  # the same parts with other neighbours
    text = Charge(NOBODY, dp.PureDP("0.3"), other).text()
    with pytest.raises(dp.LedgerError, match="cannot be read"):
        _written(path, text, dp.PureDP("0.3"))
    assert opened(path).spent == dp.PureDP("0.2")


def _written(path: Path, text: str, amount: Budget) -> None:
    """A record as somebody else would seal it, read as all others."""
    chain = Chain(Seal(None))
    rows = [*store_at(path).rows()]
    chain.read(rows, {})
    draft = Draft("default", "charged", None, "f", UNIT, amount, None, text)
    made = sealed(draft, chain.length + 1, "2026-11-22T00:00:00+00:00", chain.tip, Seal(None))
    chain.read([tuple(getattr(made, c) for c in made.__slots__)], {})


def test_windows_have_a_budget_each(path: Path) -> None:
    november = number_of("1mo", dt.date(2026, 11, 1))
    stored = Ledger(store_at(path), "default", dp.PureDP(1), per="1mo")
    for ledger in (stored, in_memory(dp.PureDP(1), per="1mo")):
        one = WindowScope(Windows("1mo", november, november, without=False))
        both = WindowScope(Windows("1mo", november - 1, november, without=False))
        ledger.charge(dp.PureDP("0.6"), "f", "w", scope=one)
        ledger.charge(dp.PureDP("0.3"), "f", "w", scope=both)
        assert ledger.spent == dp.PureDP("0.9")
        assert ledger.in_scope(both, dp.PureDP("0.1")).increase == dp.PureDP("0.1")
        before = WindowScope(Windows("1mo", november - 1, november - 1, without=False))
        assert ledger.in_scope(before).left == dp.PureDP("0.7")
        assert ledger.in_scope(before, dp.PureDP("0.7")).increase == dp.PureDP("0.1")
        with pytest.raises(dp.BudgetExceeded, match=r"budget of epsilon 1 for 2026-10 and"):
            ledger.charge(dp.PureDP("0.2"), "f", "w", scope=both)
        with pytest.raises(Unsound, match="charged for the windows that a query reads"):
            ledger.charge(dp.PureDP("0.01"), "f", "w")
        with pytest.raises(ValueError, match=r"^$"):
            ledger.charge(
                dp.PureDP("0.01"), "f", "w", scope=WindowScope(Windows("1w", 1, 1, without=False))
            )
    with pytest.raises(
        dp.LedgerError, match="opened for each month, and this session opens it for all time"
    ):
        opened(path)
    with pytest.raises(
        dp.LedgerError, match="opened for each month, and this session opens it for each week"
    ):
        Ledger(store_at(path), "default", dp.PureDP(1), per="1w")
    verify(path)


def test_a_closed_budget_has_nothing_left_in_any_window(path: Path) -> None:
    ledger = Ledger(store_at(path), "default", dp.PureDP(1), per="1d")
    ledger.charge(dp.PureDP("0.5"), "f", "w", scope=WindowScope(Windows("1d", 1, 1, without=False)))
    store_at(path).append(lambda chain: Draft("default", "closed", who="ann", why="over"))
    other = WindowScope(Windows("1d", 2, 2, without=False))
    assert ledger.in_scope(other).left == dp.PureDP(0)
    with pytest.raises(dp.BudgetExceeded, match="was closed"):
        ledger.charge(dp.PureDP("0.1"), "f", "w", scope=other)


def test_budgets_for_all_time_have_no_windows(path: Path) -> None:
    scope = WindowScope(Windows("1d", 1, 1, without=False))
    with pytest.raises(ValueError, match=r"^$"):
        opened(path).charge(dp.PureDP("0.1"), "f", scope=scope)
    with pytest.raises(ValueError, match=r"^$"):
        amounts_of(scope, Totals(dp.PureDP(0)), dp.PureDP(1))
    assert per_text(None) is None
