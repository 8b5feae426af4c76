"""An approval counts for what its reviewer saw: plan, budget, ledger, amount, runs and days."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger.approvals import (
    Approval,
    ApprovalKey,
    Bound,
    Requirement,
    new_pair,
    read_approval,
    signed,
)
from dpframe.ledger.budgets import grant
from dpframe.ledger.owners import Terms, approve, revoke
from dpframe.ledger.record import Draft
from tests.ledger.ledgers import (
    TENTH,
    UNIT,
    Place,
    divided,
    fresh,
    in_child,
    in_memory,
    opened,
    store_at,
    verify,
)

PRINT = "a" * 64
PRIVATE, PUBLIC = map(ApprovalKey.parse, new_pair())


def approved(place: Place, key: ApprovalKey | None = None, **terms: Any) -> Approval:
    approve(store_at(place), "default", PRINT, "{}", "Ann", key, Terms(**terms))
    return store_at(place).read().approvals["default"][-1]


def charge(place: Place, key: ApprovalKey | None = None, fingerprint: str = PRINT) -> int:
    return opened(place, dp.PureDP(1)).charge(TENTH, fingerprint, UNIT, Requirement(key))


def refused(place: Place, words: str, key: ApprovalKey | None = None) -> None:
    """That nothing is charged, and why."""
    before = opened(place).entries
    with pytest.raises(dp.PlanMismatch, match=words):
        charge(place, key)
    assert opened(place).entries == before


def granted(place: Place, more: str = "0.5") -> None:
    grant(store_at(place), "default", {"epsilon": more}, "Bob", "more", lambda _: dp.PureDP(0).main)


def test_a_grant_asks_for_approval_again(place: Place) -> None:
    opened(place)
    approved(place)
    charge(place)
    granted(place)
    refused(place, r"is for epsilon 1 in pure DP, and the budget is now epsilon 1\.5 in pure DP")
    approved(place)
    charge(place)
    verify(place)


def test_runs_are_counted_with_the_charge(place: Place) -> None:
    opened(place)
    approved(place, runs=2)
    numbers = [charge(place) for _ in range(2)]
    refused(place, "was for 2 runs")
    (found,) = opened(place).approvals
    assert (found.used, found.left) == (2, 0)
    assert [list(store_at(place).rows())[n - 1][4] for n in numbers] == [found.number] * 2
    approved(place, runs=1)
    charge(place)
    refused(place, "was for 1 run, already used; 1 earlier")
    verify(place)


def test_a_run_is_used_up_also_when_it_fails(place: Place) -> None:
    ledger = opened(place)
    approved(place, runs=1)
    ledger.settle(charge(place), "failed")
    refused(place, "was for 1 run")


def test_what_is_over_budget_uses_no_run(place: Place) -> None:
    opened(place)
    approved(place, runs=1)
    with pytest.raises(dp.BudgetExceeded):
        opened(place).charge(dp.PureDP(2), PRINT, UNIT, Requirement(None))
    charge(place)


def test_an_approval_without_limit_is_used_before_one_that_counts(place: Place) -> None:
    opened(place)
    approved(place, runs=1)
    approved(place)
    for _ in range(3):
        charge(place)
    assert [a.used for a in opened(place).approvals] == [0, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_processes_share_the_runs(place: Place) -> None:
    opened(place)
    approved(place, runs=5)

    def spend() -> int:
        done = 0
        for _ in range(3):
            try:
                charge(place)
                done += 1
            except dp.PlanMismatch:
                continue
        return done

    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            code = 99
            try:
                code = spend()
            finally:
                os._exit(code)
        children.append(child)
    done = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sum(done) == 5
    assert len(opened(place).entries) == 5
    assert in_child(spend) == 0
    verify(place)


def test_the_last_day_is_one_of_them(place: Place) -> None:
    today = datetime.now(UTC).date()
    opened(place)
    approved(place, until=datetime.now(UTC).date())
    charge(place)
    revoke(store_at(place), "default", PRINT, "Ann", None)
    approved(place, until=today - timedelta(days=1))
    refused(place, "ended after")
    approved(place, until=today + timedelta(days=2))
    charge(place)


def test_what_is_revoked_needs_approval_again(place: Place) -> None:
    opened(place)
    approved(place)
    approved(place, runs=3)
    charge(place)
    assert revoke(store_at(place), "default", PRINT[:8], "Bob", "a mistake") == PRINT
    refused(place, "was revoked by Bob; 1 earlier")
    for wrong in (PRINT, "b" * 64, PRINT[:7], ""):
        with pytest.raises(dp.LedgerError, match="has no approved plan"):
            revoke(store_at(place), "default", wrong, "Bob", None)
    approved(place)
    charge(place)
    verify(place)


def test_a_short_fingerprint_means_one_plan(place: Place) -> None:
    opened(place)
    for last in "01":
        approve(store_at(place), "default", "a" * 63 + last, "{}", "Ann", None)
    with pytest.raises(dp.LedgerError, match="several plans"):
        revoke(store_at(place), "default", "a" * 20, "Bob", None)


def test_an_approval_is_for_one_ledger(place: Place) -> None:
    opened(place)
    made = approved(place, PRIVATE)
    record = list(store_at(place).rows())[-1]
    other = fresh(place, 2)
    opened(other)
    store_at(other).append(lambda _: _copied(record))
    (found,) = opened(other).approvals
    assert found.ledger == made.ledger != store_at(other).read().identities[-1]
    assert signed(found, PUBLIC) == "signed"
    for key in (None, PUBLIC):
        refused(other, "is for another ledger", key)


def _copied(row: tuple[Any, ...]) -> Draft:
    return Draft(row[2], "approved", fingerprint=row[5], who=row[10], why=row[11])


def test_a_copy_of_an_approval_allows_no_further_runs(place: Place) -> None:
    opened(place)
    approved(place, PRIVATE, runs=1)
    record = list(store_at(place).rows())[-1]
    charge(place, PUBLIC)
    with pytest.raises(dp.LedgerError, match="repeats an approval"):
        store_at(place).append(lambda _: _copied(record))
    refused(place, "was for 1 run", PUBLIC)


CHANGES: dict[str, Any] = {
    "name": "census",
    "fingerprint": "b" * 64,
    "by": "Bob",
    "id": "0" * 32,
    "ledger": "0" * 64,
    "bound": Bound(dp.PureDP(2), "pure DP"),
    "runs": 31,
    "until": date(2099, 1, 1),
}


@pytest.mark.parametrize("key", ["hmac", "ed25519"])
@pytest.mark.parametrize("field", CHANGES)
def test_a_signature_covers_all_that_is_approved(tmp_path: Any, field: str, key: str) -> None:
    place = tmp_path / "budget.db"
    opened(place)
    secret = ApprovalKey.parse("hmac:a secret of reviewers")
    signing, verifying = (secret, secret) if key == "hmac" else (PRIVATE, PUBLIC)
    made = approved(place, signing, runs=30, until=date(2027, 1, 1))
    assert signed(made, verifying) == "signed"
    changed = replace(made, **{field: CHANGES[field]})
    assert signed(changed, verifying) == "signature is wrong"
    if field in ("runs", "until"):
        assert signed(replace(made, **dict.fromkeys([field])), verifying) == "signature is wrong"


def test_measures_and_ways_to_count_are_told_apart(place: Place) -> None:
    budget, within = dp.ZCDP("0.1"), dp.ApproxDP(1, "1e-6")
    seen = {
        json.dumps(bound.fields())
        for bound in (
            Bound(dp.PureDP(1), "pure DP"),
            Bound(dp.ApproxDP(1, "1e-6"), "approximate DP"),
            Bound(within, budget.measure),
            Bound(dp.ZCDP(1), budget.measure),
        )
    }
    assert len(seen) == 4
    for text in seen:
        assert Bound.read(json.loads(text)).fields() == json.loads(text)


@pytest.mark.parametrize("field", ["measure", "main", "slack", "counted"])
def test_an_amount_in_another_form_is_none(field: str) -> None:
    """Of one amount there is one form, which a signature covers."""
    fields = Bound(dp.ApproxDP(1, 0), "approximate DP").fields()
    for other in (fields | {field: 1}, {**fields, "more": "1"}, [fields]):
        with pytest.raises((TypeError, ValueError)):
            Bound.read(other)


# -- from when approvals named no amount --------------------------------------------------------


def old(place: Place, signature: str | None = None) -> None:
    why = json.dumps({"plan": "{}", "signature": signature})
    store_at(place).append(
        lambda _: Draft("default", "approved", fingerprint=PRINT, who="Ann", why=why)
    )


def test_an_old_approval_is_for_the_amount_of_its_time(place: Place) -> None:
    opened(place)
    old(place)
    charge(place)
    granted(place)
    refused(place, r"is for epsilon 1 in pure DP, and the budget is now epsilon 1\.5")


def test_an_old_approval_from_before_its_budget_does_not_count(place: Place) -> None:
    old(place)
    opened(place)
    refused(place, "names no amount")


def test_an_old_signature_does_not_count(place: Place) -> None:
    opened(place)
    signature = ApprovalKey.parse("hmac:a secret of reviewers").sign("default", PRINT, "Ann")
    old(place, signature)
    key = ApprovalKey.parse("hmac:a secret of reviewers")
    refused(place, "was signed when signatures did not name the amount", key)
    (found,) = opened(place).approvals
    assert signed(found, key) == "signed without the amount"


# -- forged -------------------------------------------------------------------------------------


def test_a_charge_by_an_approval_that_does_not_allow_it_does_not_verify(place: Place) -> None:
    opened(place)
    allowed = approved(place, runs=1).number
    charge(place)

    def forged(refers: int, fingerprint: str) -> Draft:
        return Draft("default", "charged", refers, fingerprint, UNIT, TENTH)

    for refers, fingerprint in ((allowed, PRINT), (allowed, "b" * 64), (1, PRINT), (99, PRINT)):
        with pytest.raises(dp.LedgerError, match=r"approved runs|does not allow it"):
            store_at(place).append(lambda _, r=refers, f=fingerprint: forged(r, f))  # type: ignore[misc]
    with pytest.raises(dp.LedgerError, match="revokes an approval that does not exist"):
        store_at(place).append(lambda _: Draft("default", "revoked", fingerprint="b" * 64))


@pytest.mark.parametrize(
    "change",
    [
        {"runs": 0},
        {"runs": True},
        {"runs": "3"},
        {"until": "tomorrow"},
        {"until": 3},
        {"id": None},
        {"ledger": None},
        {"budget": None},
        {"budget": {}},
        {"budget": {"measure": "pure DP", "main": "1", "slack": "0", "counted": "euros"}},
        {"budget": {"measure": "pure DP", "main": "1/0", "slack": "0", "counted": "pure DP"}},
        {"budget": {"measure": "pure DP", "main": 1, "slack": "0", "counted": "pure DP"}},
        {"more": 1},
    ],
    ids=str,
)
def test_an_approval_that_makes_no_sense_is_refused(tmp_path: Any, change: dict[str, Any]) -> None:
    place = tmp_path / "budget.db"
    opened(place)
    approved(place)
    chain = store_at(place).read()
    made = chain.next(_other(place))
    why = json.dumps(json.loads(made.why or "") | change)
    with pytest.raises((ArithmeticError, KeyError, TypeError, ValueError)):
        read_approval(replace(made, why=why))


def _other(place: Place) -> Draft:
    row = list(store_at(place).rows())[-1]
    why = json.dumps(json.loads(row[11]) | {"id": "another"})
    return Draft(row[2], "approved", fingerprint=row[5], who=row[10], why=why)


# -- other ledgers ------------------------------------------------------------------------------


def test_parts_use_the_runs_of_the_whole(place: Place) -> None:
    whole = opened(place)
    approved(place, runs=2)
    first, second = divided(whole, 2, 1)
    nested = divided(first, 2, 1)[1]
    nested.charge(TENTH, PRINT, UNIT, Requirement(None))
    second.charge(TENTH, PRINT, UNIT, Requirement(None))
    with pytest.raises(dp.PlanMismatch):
        second.charge(TENTH, PRINT, UNIT, Requirement(None))
    assert nested.identities == whole.identities
    assert nested.bound == whole.bound


def test_nothing_is_approved_in_memory() -> None:
    ledger = in_memory(dp.PureDP(1))
    with pytest.raises(dp.PlanMismatch):
        ledger.charge(TENTH, PRINT, UNIT, Requirement(None))
    assert ledger.identities == ()
    assert ledger.spent.is_zero


@pytest.mark.slow
def test_runs_are_counted_over_a_long_history(tmp_path: Any) -> None:
    """However few records a new process reads."""
    place = tmp_path / "budget.db"
    ledger = opened(place, dp.PureDP(1000))
    approved(place, runs=2)
    needed = Requirement(None)
    for n in range(1200):
        ledger.charge(TENTH, PRINT, UNIT, needed if n in (0, 600) else None)
    assert [a.used for a in opened(place, dp.PureDP(1000)).approvals] == [2]
    with pytest.raises(dp.PlanMismatch, match="was for 2 runs"):
        opened(place, dp.PureDP(1000)).charge(TENTH, PRINT, UNIT, needed)
    verify(place)
