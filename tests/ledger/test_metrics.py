"""What monitoring reads of ledgers, and amounts as decimals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.windows import Windows, number_of
from dpframe.ledger.amounts import decimal, decimals, exact_fields, left_fields
from dpframe.ledger.budgets import close
from dpframe.ledger.ledger import Ledger, happened, watched
from dpframe.ledger.report import metrics
from dpframe.ledger.scopes import WindowScope
from tests.ledger.ledgers import TENTH, UNIT, Place, filled, opened, store_at
from tests.ledger.openmetrics import Family, read


def exposed(
    place: Place, name: str | None = None, now: datetime | None = None
) -> dict[str, Family]:
    lines = metrics(store_at(place, create=False), name, now)
    return read("".join(f"{line}\n" for line in lines))


def of(family: Family, **labels: str) -> float:
    return family.samples[tuple(sorted(labels.items()))]


def test_what_is_exposed(place: Place) -> None:
    filled(place)
    later = datetime.now(UTC) + timedelta(hours=1)
    found = exposed(place, now=later)
    assert {family.type for family in found.values()} == {"gauge"}
    assert all(family.help for family in found.values())
    assert of(found["dpframe_budget"], name="default", amount="epsilon") == 1
    assert of(found["dpframe_spent"], name="default", amount="epsilon") == 0.3
    assert of(found["dpframe_remaining"], name="default", amount="epsilon") == 0.7
    assert of(found["dpframe_remaining"], name="second", amount="delta") == 9e-7
    for status in ("charged", "released", "failed"):
        assert of(found["dpframe_charges"], name="default", status=status) == 1
    assert of(found["dpframe_budget_closed"], name="second") == 0
    age = dict(found["dpframe_open_charge_age_seconds"].samples)
    assert {dict(labels)["name"] for labels in age} == {"default", "second"}
    assert all(3500 < seconds < 3700 for seconds in age.values())
    release = found["dpframe_last_release_timestamp_seconds"]
    assert len(release.samples) == 1  # the second budget has none
    assert 0 < later.timestamp() - of(release, name="default") < 3700
    assert of(found["dpframe_ledger_records"]) == 9


def monthly(place: Place) -> Ledger:
    return Ledger(store_at(place), "default", dp.PureDP(1), per="1mo")


def test_the_current_window_has_what_is_left_of_it(place: Place) -> None:
    december = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    number = number_of("1mo", december.date())
    for at, cost in ((number - 1, "0.7"), (number, "0.25")):
        scope = WindowScope(Windows("1mo", at, at, without=False))
        monthly(place).charge(dp.PureDP(cost), "f" * 64, UNIT, scope=scope)
    found = exposed(place, now=december)
    labels = {"name": "default", "window": "2026-12", "amount": "epsilon"}
    assert of(found["dpframe_window_remaining"], **labels) == 0.75
    assert of(found["dpframe_window_spent"], **labels) == 0.25
    assert of(found["dpframe_remaining"], name="default", amount="epsilon") == 0.3
    eastern = december.astimezone(timezone(timedelta(hours=9)))  # where it is next year
    assert exposed(place, now=eastern)["dpframe_window_spent"] == found["dpframe_window_spent"]
    renewed = exposed(place, now=december + timedelta(hours=1))["dpframe_window_remaining"]
    assert of(renewed, **labels | {"window": "2027-01"}) == 1
    assert len(renewed.samples) == 2
    close(store_at(place), "default", "Ann", "the end")
    closed = exposed(place, now=december + timedelta(hours=1))["dpframe_window_remaining"]
    assert of(closed, **labels | {"window": "2027-01"}) == 0


def test_budgets_for_all_time_have_no_window(place: Place) -> None:
    filled(place)
    assert not exposed(place)["dpframe_window_remaining"].samples


def test_one_budget_and_one_that_is_not_there(place: Place) -> None:
    filled(place)
    found = exposed(place, "second")
    assert {dict(labels)["name"] for labels in found["dpframe_budget"].samples} == {"second"}
    with pytest.raises(dp.LedgerError, match="no budget"):
        exposed(place, "third")


def test_a_budget_that_was_closed_has_nothing_left(place: Place) -> None:
    opened(place).charge(TENTH, "1" * 64, UNIT)
    close(store_at(place), "default", "Ann", "the end")
    found = exposed(place)
    assert of(found["dpframe_budget_closed"], name="default") == 1
    assert of(found["dpframe_remaining"], name="default", amount="epsilon") == 0


@pytest.mark.parametrize("name", ['a"b', "a\\b", 'x"} 1 # EOF', "é 🙂", "a,b={}"])
def test_names_cannot_forge_samples(place: Place, name: str) -> None:
    opened(place, name=name)
    found = exposed(place)
    assert of(found["dpframe_budget"], name=name, amount="epsilon") == 1
    assert len(found["dpframe_budget"].samples) == 2


def test_names_on_several_lines_are_one_line() -> None:
    from dpframe.ledger.report import _line

    line = _line("m", {"name": 'a\n"b\\n'}, 1.0)
    assert "\n" not in line
    found = read(f"# TYPE m gauge\n{line}\n# EOF\n")
    assert of(found["m"], name='a\n"b\\n') == 1


def test_a_ledger_that_does_not_verify_exposes_nothing(place: Place) -> None:
    from tests.ledger.ledgers import sql

    filled(place)
    sql(place, "UPDATE records SET name = 'x' WHERE seq = 3")
    with pytest.raises(dp.LedgerError, match="does not verify"):
        exposed(place)


# -- decimals -------------------------------------------------------------------------------------


@given(st.fractions(0, 10**6, max_denominator=10**9))
def test_decimals_never_say_more_is_left_or_less_spent_than_is(value: Fraction) -> None:
    down, up = decimal(value), decimal(value, up=True)
    assert Fraction(repr(down)) <= value <= Fraction(repr(up))
    assert up - down <= 4e-16 * max(up, 1e-300)


@given(st.decimals(0, 100, places=6))
def test_what_has_few_digits_is_written_with_them(value: object) -> None:
    exact = Fraction(str(value))
    assert Fraction(repr(decimal(exact))) == exact == Fraction(repr(decimal(exact, up=True)))


def test_amounts_by_name() -> None:
    third = dp.ApproxDP("1/3", "1e-7")
    assert decimals(third) == {"epsilon": 0.3333333333333333, "delta": 1e-7}
    assert decimals(third, up=True)["epsilon"] == 0.33333333333333337
    assert decimals(dp.ZCDP("0.5")) == {"rho": 0.5, "delta": 0.0}
    assert exact_fields(third)["epsilon"] == "1/3"
    assert left_fields(third)["remaining"] == exact_fields(third)


# -- what happens, told ---------------------------------------------------------------------------


def test_charges_and_their_ends_are_told_to_who_watches(place: Place) -> None:
    seen = []
    ledger = opened(place)
    with watched(lambda event, facts: seen.append((event, facts))):
        number = ledger.charge(TENTH, "1" * 64, UNIT)
        ledger.settle(number, "released")
        other = ledger.charge(TENTH, "2" * 64, UNIT)
        ledger.settle(other, "failed")
        with pytest.raises(dp.BudgetExceeded):
            ledger.charge(dp.PureDP(1), "3" * 64, UNIT)
    ledger.charge(TENTH, "4" * 64, UNIT)
    happened("unheard")
    assert [event for event, _ in seen] == ["charge", "release", "charge", "failed"]
    assert seen[0][1] == {
        "budget": "default",
        "record": number,
        "fingerprint": "1" * 64,
        "cost": exact_fields(TENTH),
        "cost_decimal": {"epsilon": 0.1, "delta": 0.0},
    }
    assert seen[1][1] == {"record": number}
