"""Approvals are records of the chain: none is added, altered or dropped without notice."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger import chain, report
from dpframe.ledger.approvals import (
    KEY_VARIABLE,
    Approval,
    ApprovalKey,
    Bound,
    new_pair,
    read_approval,
    signed,
    valid,
)
from dpframe.ledger.owners import approve
from dpframe.ledger.record import COLUMNS, Draft, Record, Seal, sealed
from tests.ledger.ledgers import (
    TENTH,
    UNIT,
    Place,
    divided,
    filled,
    in_child,
    in_memory,
    opened,
    sql,
    store_at,
    verify,
)

KEY = ApprovalKey.parse("hmac:a secret of reviewers")
PRINT = "a" * 64
DOCUMENT = '{"schema_version": 1, "plan": "of a test"}'


def approved(
    place: Place,
    fingerprint: str = PRINT,
    *,
    name: str = "default",
    by: str = "Ann",
    key: ApprovalKey | None = None,
) -> None:
    opened(place, name=name)
    approve(store_at(place), name, fingerprint, DOCUMENT, by, key)


def old(
    place: Place, *, name: str = "default", by: str = "Ann", signature: str | None = None
) -> None:
    """An approval from when they named neither ledger nor amount."""
    why = json.dumps({"plan": DOCUMENT, "signature": signature})
    store_at(place).append(lambda _: Draft(name, "approved", fingerprint=PRINT, who=by, why=why))


def approvals(place: Place, name: str = "default") -> list[Approval]:
    return store_at(place, create=False).read().approvals.get(name, [])


def test_an_approval_is_read_as_it_was_recorded(place: Place) -> None:
    approved(place, key=KEY)
    (found,) = approvals(place)
    assert (found.name, found.fingerprint, found.by, found.document) == (
        "default",
        PRINT,
        "Ann",
        DOCUMENT,
    )
    assert found.signature == KEY.sign(*found.signed_fields())
    assert found.bound == Bound(dp.PureDP(1), "pure DP")
    assert found.ledger == store_at(place).read().identities[-1]
    assert (found.runs, found.until, found.used, found.revoked) == (None, None, 0, None)
    assert found.time.utcoffset() is not None
    verify(place)


def test_approvals_stand_among_charges(place: Place) -> None:
    with pytest.raises(dp.LedgerError, match="has no budget 'default'"):
        approve(store_at(place), "default", PRINT, DOCUMENT, "Ann", None)
    approved(place, "1" * 64)
    ledger = opened(place)
    approved(place, "2" * 64)
    number = ledger.charge(TENTH, "1" * 64, UNIT)
    approved(place, "3" * 64)
    ledger.settle(number, "released")
    assert [a.fingerprint[0] for a in ledger.approvals] == ["1", "2", "3"]
    assert ledger.spent == TENTH
    ledger.verify()


def test_names_are_kept_apart(place: Place) -> None:
    approved(place, "1" * 64)
    approved(place, "2" * 64, name="census")
    assert [a.fingerprint[0] for a in opened(place).approvals] == ["1"]
    assert [a.fingerprint[0] for a in opened(place, name="census").approvals] == ["2"]
    assert opened(place, name="third").approvals == ()


def test_a_part_has_the_approvals_of_the_whole_and_memory_none(place: Place) -> None:
    whole = opened(place)
    approved(place)
    part = divided(whole, 3, 1)[0]
    nested = divided(part, 2, 1)[1]
    assert part.approvals == nested.approvals == whole.approvals != ()
    assert in_memory(dp.PureDP(1)).approvals == ()


def test_ledgers_without_approvals_are_read_as_before(place: Place) -> None:
    filled(place)
    assert opened(place).approvals == ()
    approved(place)
    assert len(opened(place).approvals) == 1
    assert len(opened(place).entries) == 3


@pytest.mark.parametrize("by", ["", "  ", "Ann\nBob", "Ann\x1b[2K", "\ud800"])
def test_who_approves_is_on_one_line(place: Place, by: str) -> None:
    with pytest.raises(dp.LedgerError, match="--by"):
        approved(place, by=by)


def test_what_can_be_said_of_a_signature(place: Place) -> None:
    approved(place, "1" * 64)
    approved(place, "2" * 64, key=KEY)
    plain, made = approvals(place)
    other = ApprovalKey.parse("hmac:a secret of somebody else")
    assert [signed(plain, key) for key in (None, KEY)] == ["unsigned", "unsigned"]
    assert [signed(made, key) for key in (None, KEY, other)] == [
        "signed, not checked",
        "signed",
        "signature is wrong",
    ]
    assert list(valid([plain, made], None)) == [plain, made]
    assert list(valid([plain, made], KEY)) == [made]
    assert list(valid([plain, made], other)) == []


def test_what_is_shown(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old(place, name="early", by="Ann, signed")
    opened(place)
    approved(place, key=KEY)
    monkeypatch.setenv(KEY_VARIABLE, "hmac:a secret of reviewers")
    shown = "\n".join(report.show(store_at(place), None))
    assert "early: not opened yet" in shown
    assert "plan aaaaaaaaaaaaaaaa  unsigned, by Ann, signed" in shown
    assert "plan aaaaaaaaaaaaaaaa  signed, by Ann, for epsilon 1\n" in shown
    assert "not opened yet" in "\n".join(report.show(store_at(place), "early"))
    found = report.record(store_at(place), None)
    assert [a["signature"] for a in found["default"]["approvals"]] == ["signed"]
    early = {"opened": False, "ledger": [], "approvals": found["early"]["approvals"]}
    assert found["early"] == early
    monkeypatch.delenv(KEY_VARIABLE)
    assert "signed, not checked, by Ann" in "\n".join(report.show(store_at(place), "default"))


# -- tampering ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("column", ["name", "act", "fingerprint", "who", "why", "time"])
def test_an_edit_of_an_approval_is_noticed(
    place: Place, column: str, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a key of the owner" if keyed else None
    opened(place, key=key)
    store = store_at(place, key)
    approve(store, "default", PRINT, DOCUMENT, "Ann", KEY)
    ((value,),) = sql(place, f"SELECT {column} FROM records WHERE seq = 3")
    edits = {
        "act": "granted",
        "why": value.replace("of a test", "of another"),
        "time": value.replace("20", "21", 1),
    }
    sql(place, f"UPDATE records SET {column} = ? WHERE seq = 3", edits.get(column, value + "b"))
    for work in (lambda: verify(place, key), lambda: opened(place, key=key)):
        with pytest.raises(dp.LedgerError, match="does not verify: record 3 was changed"):
            work()


def test_a_dropped_approval_is_noticed(place: Place) -> None:
    opened(place)
    approved(place)
    sql(place, "DELETE FROM records WHERE seq = 3")
    with pytest.raises(dp.LedgerError, match="ends at record 2, but its head names record 3"):
        verify(place)


def forged(place: Place, record: Record) -> None:
    """Append a record with right hashes, as anybody can who may write where there is no key."""
    seal = Seal(None)
    values = [getattr(record, column) for column in COLUMNS]
    marks = ", ".join("?" for _ in values)
    sql(place, f"INSERT INTO records ({', '.join(COLUMNS)}) VALUES ({marks})", *values)
    head = seal.head(record.seq, record.hash)
    sql(place, "UPDATE head SET seq = ?, hash = ?, seal = ?", head.seq, head.hash, head.seal)


def next_record(place: Place, **changes: object) -> Record:
    """What would follow, with other contents and a right hash."""
    chain = store_at(place).read()
    why = json.dumps({"plan": DOCUMENT, "signature": None})
    draft = Draft("default", "approved", fingerprint=PRINT, who="Ann", why=why)
    made = sealed(draft, chain.length + 1, "2026-01-01T00:00:00+00:00", chain.tip, Seal(None))
    values = {c: getattr(made, c) for c in COLUMNS if c != "hash"} | changes
    return Record(**values, hash=Seal(None).record(list(values.values())))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"why": None},
        {"why": ""},
        {"why": "[]"},
        {"why": "{}"},
        {"why": '{"plan": 1, "signature": null}'},
        {"why": '{"plan": "", "signature": 1}'},
        {"why": '{"plan": "", "signature": null, "more": 1}'},
        {"why": "[" * 100_000},
        {"fingerprint": None},
        {"fingerprint": ""},
        {"who": None},
        {"time": "yesterday"},
    ],
)
def test_an_approval_that_makes_no_sense_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    place = tmp_path / "budget.db"
    opened(place)
    forged(place, next_record(place, **changes))
    with pytest.raises(dp.LedgerError, match="record 3 cannot be read"):
        opened(place)


def test_without_a_key_a_record_can_be_forged_and_with_one_for_approvals_it_does_not_count(
    tmp_path: Path,
) -> None:
    place = tmp_path / "budget.db"
    opened(place)
    forged(place, next_record(place))
    found = opened(place).approvals
    assert len(found) == 1  # why unsigned approvals need a keyed ledger
    assert list(valid(found, KEY)) == []


def test_a_signature_counts_for_nothing_else(place: Place) -> None:
    """Copied to another plan, another name of a budget or another reviewer."""
    private, public = map(ApprovalKey.parse, new_pair())
    approved(place, key=private)
    (genuine,) = approvals(place)
    for name, fingerprint, who in (
        ("census", PRINT, "Ann"),
        ("default", "b" * 64, "Ann"),
        ("default", PRINT, "Bob"),
    ):
        copied = replace(genuine, name=name, fingerprint=fingerprint, by=who)
        assert list(valid([copied], public)) == []
    assert list(valid([genuine], public)) == [genuine]


def test_an_approval_of_a_keyed_ledger_needs_its_key(place: Place) -> None:
    opened(place, key="a key of the owner")
    with pytest.raises(dp.LedgerError, match="does not verify"):
        approved(place)


# -- many, and at once ----------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_two_processes_approve_and_spend(place: Place) -> None:
    ledger = opened(place, dp.PureDP(100))

    def approve_some() -> int:
        for n in range(10):
            approve(store_at(place), "default", f"{n}" * 64, DOCUMENT, "Ann", None)
        return 0

    def spend_some() -> int:
        theirs = opened(place, dp.PureDP(100))
        for n in range(10):
            theirs.settle(theirs.charge(TENTH, f"{n}" * 64, UNIT), "released")
        return 0

    child = os.fork()
    if not child:
        os._exit(approve_some())
    assert in_child(spend_some) == 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(ledger.approvals) == len(ledger.entries) == 10
    ledger.verify()


def test_each_of_many_approvals_is_read_as_often_as_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, numbers = tmp_path / "budget.db", list[int]()
    opened(place)
    store = store_at(place)
    document = json.dumps({"plan": "x" * 10_000})
    for n in range(300):
        approve(store, "default", f"{n:064}", document, "Ann", KEY)

    def read(record: Record) -> Approval:
        numbers.append(record.seq)
        return read_approval(record)

    monkeypatch.setattr(chain, "read_approval", read)
    assert len(opened(place).approvals) == 300
    assert len(set(numbers)) == 300
    assert len(numbers) <= 2 * 300  # once to see whether it is one, and once to keep it
