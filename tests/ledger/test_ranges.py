"""Approvals of ranges: what parameters may be, and which charges may name such an approval."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.parameters import NotAValue, Parameter, ParameterType, read_type
from dpframe.ledger import report
from dpframe.ledger.account import NOBODY
from dpframe.ledger.approvals import (
    Allowed,
    Approval,
    ApprovalKey,
    Covered,
    Planned,
    Range,
    Requirement,
    allowed_fields,
    read_allowed,
    read_range,
    signed,
)
from dpframe.ledger.chain import Charge
from dpframe.ledger.owners import Terms, approve, renewals, revoke
from dpframe.ledger.record import Draft
from tests.ledger.ledgers import TENTH, UNIT, Place, divided, opened, store_at, verify

DATE = read_type("date")
YEAR = Range("date", "2027-01-01..2027-12-31")
TEMPLATE = "7" * 64
DOCUMENT = '{"schema_version": 1, "plan": "of a test"}'


# -- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("date", "any", "any"),
        ("date", " 2027-01-01 .. 2027-12-31", "2027-01-01..2027-12-31"),
        ("date", "2027-01-01..", "2027-01-01.."),
        ("int", "..+10", "..10"),
        ("int", "3, 1, 2, 1", '["1", "2", "3"]'),
        ("int", "[10]", '["10"]'),
        ("string", "b,a", '["a", "b"]'),
        ("string", '["a, b"]', '["a, b"]'),
        ("bool", "[true, false]", '["false", "true"]'),
        ("list[int]", "[[2, 1], [3]]", '["[\\"2\\", \\"1\\"]", "[\\"3\\"]"]'),
        ("list[string]", "any", "any"),
        ("datetime[UTC]", "2027-01-01..", "2027-01-01T00:00:00+00:00.."),
    ],
)
def test_what_people_write(kind: str, text: str, words: str) -> None:
    found = read_range(text, read_type(kind))
    assert found is not None
    assert found.words == words
    assert Range(kind, words) == found
    example = found.example()
    if example is not None:
        assert found.covers(Parameter.of("x", read_type(kind), example))


@pytest.mark.parametrize(
    ("kind", "text"),
    [("date", "2027-01-01"), ("string", "a..b"), ("list[int]", "1,2"), ("list[int]", "[1, 2]")],
)
def test_one_value_is_no_range(kind: str, text: str) -> None:
    assert read_range(text, read_type(kind)) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", ".."),
        ("date", "2027-12-31..2027-01-01"),
        ("date", "2027-01-01..2027"),
        ("int", "1..2..3"),
        ("int", "1,x"),
        ("int", "[]"),
        ("int", "[1"),
        ("int", "[null]"),
        ("string", "[1, {}]"),
    ],
)
def test_what_is_no_range(kind: str, text: str) -> None:
    with pytest.raises(NotAValue):
        read_range(text, read_type(kind))


@pytest.mark.parametrize(
    "words", ["2027-1-1..", "Any", "", '["2027-01-02", "2027-01-01"]', "[]", "2027-01-01"]
)
def test_a_range_has_one_form(words: str) -> None:
    with pytest.raises(NotAValue):
        Range("date", words)


@given(st.dates(), st.dates(), st.dates())
def test_a_range_covers_what_lies_in_it(low: date, high: date, day: date) -> None:
    low, high = min(low, high), max(low, high)
    given_day = Parameter.of("day", DATE, day)
    found = Range("date", f"{low}..{high}")
    assert found.covers(given_day) == (low <= day <= high)
    assert Range("date", f"{low}..").covers(given_day) == (low <= day)
    assert Range("date", f"..{high}").covers(given_day) == (day <= high)
    several = read_range(json.dumps([str(low), str(high)]), DATE)
    assert several is not None
    assert several.covers(given_day) == (day in (low, high))
    assert Range("date", "any").covers(given_day)


@given(st.integers(-100, 100), st.integers(-100, 100))
def test_numbers_are_compared_as_numbers(low: int, value: int) -> None:
    for kind in (ParameterType("int"), ParameterType("float"), ParameterType("decimal", scale=1)):
        found = read_range(f"{low}..", kind)
        assert found is not None
        assert found.covers(Parameter.of("x", kind, kind.of(value))) == (low <= value)


def test_moments_are_compared_as_moments() -> None:
    zurich = read_type("datetime[Europe/Zurich]")
    found = read_range("2026-10-25T02:30:00+02:00..2026-10-25T02:30:00+01:00", zurich)
    assert found is not None
    for text, inside in [
        ("2026-10-25T02:15:00+02:00", False),
        ("2026-10-25T02:45:00+02:00", True),
        ("2026-10-25T02:15:00+01:00", True),
        ("2026-10-25T02:45:00+01:00", False),
    ]:
        assert found.covers(Parameter.of("x", zurich, zurich.read(text))) is inside


def test_another_type_is_not_covered() -> None:
    assert not Range("date", "any").covers(Parameter("x", "string", "2027-01-01"))
    assert not Range("int", "any").covers(Parameter("x", "list[int]", '["1"]'))


def test_ranges_are_read_as_they_were_written() -> None:
    allowed = (("day", YEAR), ("n", Range("int", "any")))
    assert read_allowed(allowed_fields(allowed)) == allowed
    for wrong in (
        {},
        [],
        {"day": {"type": "date"}},
        {"day": {"type": "date", "values": 1}},
        {"day": {"type": "date", "values": "2027"}},
        {"1": {"type": "date", "values": "any"}},
        {"day": {"type": "day", "values": "any"}},
    ):
        with pytest.raises((TypeError, ValueError)):
            read_allowed(wrong)


# -- approvals ------------------------------------------------------------------------------------


def plan(day: str, template: str = TEMPLATE, **more: str) -> Planned:
    """A plan that has a day, and perhaps other parameters, with this template."""
    given = [Parameter("day", "date", day), *(Parameter(n, "int", v) for n, v in more.items())]

    def of(allowed: Mapping[str, str]) -> str:
        return template if dict(allowed) == {"day": YEAR.words} else "0" * 64

    return Planned(tuple(given), of, lambda _: False)


def fingerprint(day: str) -> str:
    return day.replace("-", "").ljust(64, "e")


def approved(
    place: Place,
    allowed: Allowed = (("day", YEAR),),
    key: ApprovalKey | None = None,
    terms: Terms | None = None,
) -> None:
    opened(place)
    approve(store_at(place), "default", TEMPLATE, DOCUMENT, "Ann", key, terms or Terms(), allowed)


def charge(place: Place, day: str, planned: Planned | None = None) -> int:
    needed = Requirement(None, plan(day) if planned is None else planned)
    return opened(place).charge(TENTH, fingerprint(day), UNIT, needed)


def only(place: Place) -> Approval:
    (found,) = opened(place).approvals
    return found


def test_each_value_in_the_range_is_covered_and_no_other(place: Place) -> None:
    approved(place)
    for day in ("2027-01-01", "2027-06-15", "2027-12-31"):
        charge(place, day)
    for day in ("2026-12-31", "2028-01-01"):
        with pytest.raises(dp.PlanMismatch, match="is not approved"):
            charge(place, day)
    with pytest.raises(dp.PlanMismatch):
        charge(place, "2027-06-15", plan("2027-06-15", template="8" * 64))
    with pytest.raises(dp.PlanMismatch):  # a plan that says nothing of parameters
        opened(place).charge(TENTH, TEMPLATE, UNIT, Requirement(None))
    assert opened(place).spent == dp.PureDP("0.3")
    assert only(place).used == 3
    verify(place)


def test_runs_count_over_all_values(place: Place) -> None:
    approved(place, terms=Terms(runs=2))
    charge(place, "2027-01-01")
    charge(place, "2027-01-02")
    with pytest.raises(dp.PlanMismatch, match="was for 2 runs"):
        charge(place, "2027-01-03")
    verify(place)


def test_it_is_bound_to_ledger_and_budget_and_can_be_revoked(place: Place) -> None:
    approved(place)
    found = only(place)
    needed = Requirement(None, plan("2027-01-01"))
    bound = opened(place).bound
    assert needed.why_not(found, [str(found.ledger)], bound) is None
    assert needed.why_not(found, ["another"], bound) == "is for another ledger"
    revoke(store_at(place), "default", TEMPLATE[:8], "Bob", None)
    with pytest.raises(dp.PlanMismatch, match="was revoked by Bob"):
        charge(place, "2027-01-01")
    verify(place)


def test_parts_are_covered_as_the_whole(place: Place) -> None:
    approved(place)
    part = divided(opened(place), 2, 1)[0]
    part.charge(TENTH, fingerprint("2027-01-01"), UNIT, Requirement(None, plan("2027-01-01")))
    with pytest.raises(dp.PlanMismatch):
        part.charge(TENTH, fingerprint("2028-01-01"), UNIT, Requirement(None, plan("2028-01-01")))
    assert only(place).used == 1


def test_the_signature_covers_the_range(place: Place) -> None:
    key = ApprovalKey.parse("hmac:a secret of reviewers")
    approved(place, key=key)
    found = only(place)
    assert signed(found, key) == "signed"
    wider = replace(found, allowed=(("day", Range("date", "any")),))
    assert signed(wider, key) == "signature is wrong"
    assert signed(replace(found, allowed=()), key) == "signature is wrong"


def test_a_renewal_has_the_same_range(place: Place) -> None:
    approved(place, terms=Terms(runs=3))
    charge(place, "2027-01-01")
    chain = store_at(place).read()
    (draft,) = renewals(chain, opened(place).bound, "default", "Bob", None)
    why = json.loads(str(draft.why))
    assert why["parameters"] == {"day": {"type": "date", "values": YEAR.words}}
    assert (draft.fingerprint, why["runs"]) == (TEMPLATE, 2)


def test_reports_show_it(place: Place) -> None:
    approved(place)
    lines = "\n".join(report.show(store_at(place), None))
    assert "day 2027-01-01..2027-12-31" in lines
    found = report.record(store_at(place), None)["default"]["approvals"]
    assert found[0]["parameters"] == {"day": YEAR.words}


@pytest.mark.parametrize(
    ("approval", "covered"),
    [
        (True, None),
        (True, Covered("8" * 64, (Parameter("day", "date", "2027-01-01"),))),
        (True, Covered(TEMPLATE, (Parameter("day", "date", "2028-01-01"),))),
        (True, Covered(TEMPLATE, (Parameter("day", "string", "2027-01-01"),))),
        (True, Covered(TEMPLATE, (Parameter("n", "int", "1"),))),
        (True, Covered(TEMPLATE, ())),
        (False, Covered(TEMPLATE, (Parameter("day", "date", "2027-01-01"),))),
    ],
)
def test_a_charge_that_its_approval_does_not_cover_breaks_the_chain(
    place: Place, approval: bool, covered: Covered | None
) -> None:
    approved(place)
    number = only(place).number if approval else None
    why = Charge(NOBODY, TENTH, None, covered).text()
    draft = Draft("default", "charged", number, fingerprint("2027-01-01"), UNIT, TENTH, None, why)
    with pytest.raises(dp.LedgerError, match="does not allow it"):
        _appended(place, draft)


def test_an_approval_of_one_plan_covers_no_template(place: Place) -> None:
    opened(place)
    approve(store_at(place), "default", TEMPLATE, DOCUMENT, "Ann", None)
    number = only(place).number
    covered = Covered(TEMPLATE, (Parameter("day", "date", "2027-01-01"),))
    why = Charge(NOBODY, TENTH, None, covered).text()
    for print_ in (TEMPLATE, fingerprint("2027-01-01")):
        draft = Draft("default", "charged", number, print_, UNIT, TENTH, None, why)
        with pytest.raises(dp.LedgerError):
            _appended(place, draft)


def _appended(place: Place, draft: Draft) -> None:
    store_at(place).append(lambda _: draft)
    verify(place)


@pytest.mark.parametrize(
    "parameters", [{}, {"day": {"type": "date", "values": "2027"}}, "day", {"day": YEAR.words}]
)
def test_an_approval_with_ranges_that_are_none_makes_no_sense(
    place: Place, parameters: object
) -> None:
    approved(place)
    record = store_at(place).read().kept[-1]
    why = json.loads(str(record.why)) | {"parameters": parameters, "id": "f" * 32}
    draft = Draft("default", "approved", fingerprint=TEMPLATE, who="Ann", why=json.dumps(why))
    with pytest.raises((TypeError, ValueError)):  # before anything is written
        _appended(place, draft)
    verify(place)
