"""Checkpoints: a new process begins at the last one, and a full check finds one that is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger import chain as checkpoints
from dpframe.ledger import head_file, report
from dpframe.ledger import store as tables
from dpframe.ledger import store as transactions
from dpframe.ledger.account import Account
from dpframe.ledger.budgets import close, grant
from dpframe.ledger.chain import Chain, state_of
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.owners import approve
from dpframe.ledger.record import COLUMNS, Draft, Record, Seal
from dpframe.ledger.sqlite import SqliteStore
from tests.ledger.ledgers import TENTH, UNIT, Place, in_child, opened, sql, store_at, verify
from tests.ledger.test_processes import killed_at
from tests.ledger.test_tampering import KEY, put

EVERY = 20
BUDGET = dp.PureDP(10)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", EVERY)
    monkeypatch.setattr(transactions, "EVERY", EVERY)
    monkeypatch.setattr(transactions, "LISTED", EVERY)
    monkeypatch.setattr(transactions, "STEP", 7)
    monkeypatch.setattr(tables, "STEP", 7)
    monkeypatch.setattr(transactions, "SHORT", 5)


@pytest.fixture(params=[None, KEY], ids=["unkeyed", "keyed"])
def key(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


def used(place: Place, key: str | None, rounds: int = 40) -> None:
    """Budgets of all measures, with grants, approvals and charges of each status."""
    store = store_at(place, key)
    rho = Ledger(store, "rho", dp.ZCDP(1))
    composed = Ledger(store, "composed", dp.ZCDP("0.1"), dp.ApproxDP(1, "1e-6"))
    pair = Ledger(store, "pair", dp.ApproxDP(2, "1e-3"))
    plain = Ledger(store, "plain", BUDGET)
    chosen = random.Random(1)
    for n in range(rounds):
        cost = Fraction(1, chosen.choice([7, 100, 1000, 10**9]))
        rest = [] if n > 10 else [(rho, dp.ZCDP(cost / 100))]
        ledger, paid = chosen.choice(
            [
                *rest,
                (composed, dp.ZCDP(cost / 1000)),
                (pair, dp.ApproxDP(cost / 10, "1e-6")),
                (plain, dp.PureDP(cost)),
            ]
        )
        number = ledger.charge(paid, f"{n % 3}" * 64, UNIT)
        if n % 3:
            ledger.settle(number, "released" if n % 2 else "failed")
        if n == 10:
            close(store, "rho", "Ann", "done")
        if n == 3:
            grant(store, "plain", {"epsilon": 1}, "Ann", "more", lambda _: Fraction(0))
            approve(store, "plain", "0" * 64, '{"plan": 1}', "Ann", None)
        if n == rounds - 2:
            approve(store, "pair", "1" * 64, '{"plan": 2}', "Ann", None)
        if n in (5, 9, rounds - 1):  # runs that an approval counts
            (found,) = store.read().approvals["plain"]
            run = Draft("plain", "charged", found.number, found.fingerprint, UNIT, TENTH)
            store.append(lambda _, run=run: run)  # type: ignore[misc]


def seen(account: Account) -> tuple[Any, ...]:
    return (
        account.name,
        account.budget,
        account.totals,
        account.grants,
        account.spent,
        account.within,
        account.unit,
        account.closed,
        account.charges,
        account.open,
    )


def everything(chain: Chain) -> tuple[Any, ...]:
    accounts = [seen(account) for account in chain.accounts.values()]
    return chain.length, chain.tip, chain.identity, chain.kept, chain.approvals, accounts


def replayed(place: Place, key: str | None) -> Chain:
    """Everything from the first record on, without what stores do."""
    chain = Chain(Seal(key))
    columns = ", ".join(COLUMNS)
    chain.read(sql(place, f"SELECT {columns} FROM records ORDER BY seq"), {})
    return chain


def checkpoint_numbers(place: Place) -> list[int]:
    found = sql(place, "SELECT seq FROM records WHERE act = 'checkpoint' ORDER BY seq")
    return [seq for (seq,) in found]


def test_a_new_process_knows_what_one_knows_that_read_everything(
    place: Place, key: str | None
) -> None:
    used(place, key)
    assert len(checkpoint_numbers(place)) >= 3
    chain, whole = store_at(place, key).read(), replayed(place, key)
    assert not chain.whole
    assert whole.whole
    assert everything(chain) == everything(whole)
    assert [a.used for a in chain.approvals["plain"]] == [3]
    assert state_of(chain, chain.seal, 0) == state_of(whole, whole.seal, 0)
    entries = store_at(place, key).read(whole=True).accounts["plain"].entries
    assert entries == whole.accounts["plain"].entries
    verify(place, key)


def test_it_reads_what_came_since_only(place: Place, key: str | None) -> None:
    used(place, key)
    last = checkpoint_numbers(place)[-1]
    ((length,),) = sql(place, "SELECT seq FROM head")
    read: list[int] = []
    real = Chain._verified

    def noted(chain: Chain, row: tuple[Any, ...]) -> Record:
        read.append(row[0])
        return real(chain, row)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Chain, "_verified", noted)
        store_at(place, key).read()
    assert set(read) == set(range(last, length + 1))


def test_everybody_goes_on_from_a_checkpoint(place: Place, key: str | None) -> None:
    """Whoever wrote it, who opened before it, and who opens after it."""
    first = opened(place, BUDGET, key=key)
    others = [first]
    rounds = 3 * EVERY // 2
    for n in range(1, rounds + 1):
        ledger = others[n % len(others)]
        number = ledger.charge(TENTH, "f", UNIT)
        others[n % 2].settle(number, "released") if len(others) > 1 else None
        if n % 10 == 0:
            others.append(opened(place, BUDGET, key=key))
        assert {other.spent for other in others} == {TENTH.of(TENTH.main * n)}
    assert len(checkpoint_numbers(place)) == 2
    assert len(first.entries) == len(others[-1].entries) == rounds
    assert first.entries == others[-1].entries
    with pytest.raises(dp.LedgerError, match="other"):
        others[-1].require_unit("other")
    verify(place, key)


def test_an_open_charge_before_a_checkpoint_is_settled_after_it(
    place: Place, key: str | None
) -> None:
    number = opened(place, BUDGET, key=key).charge(TENTH, "f", UNIT)
    other = opened(place, BUDGET, key=key)
    for _ in range(2 * EVERY):
        other.charge(TENTH.of(0), "f", UNIT)
    ledger = opened(place, BUDGET, key=key)
    ledger.settle(number, "failed")
    for wrong in (number, 1, 0, 10**6):
        with pytest.raises(dp.LedgerError, match="ends a charge that is not open"):
            ledger.settle(wrong, "released")
    assert opened(place, BUDGET, key=key).entries[0].status == "failed"


# -- tampering --------------------------------------------------------------------------------


def rehashed(place: Place, seal: Seal, start: int) -> None:
    """Hashes computed again from a record on, and the head, as who has no key can."""
    rows = sql(place, f"SELECT {', '.join(COLUMNS)} FROM records ORDER BY seq")
    previous = rows[start - 2][-1] if start > 1 else ""
    for row in rows[start - 1 :]:
        digest = seal.record([*row[:-2], previous])
        sql(
            place,
            "UPDATE records SET previous = ?, hash = ? WHERE seq = ?",
            previous,
            digest,
            row[0],
        )
        previous = digest
    head = seal.head(rows[-1][0], previous)
    sql(place, "UPDATE head SET hash = ?, seal = ?", head.hash, head.seal)
    if isinstance(place, Path):
        ((identity,),) = sql(place, "SELECT fingerprint FROM records WHERE seq = 1")
        sealed = seal.head_file(head.seq, previous, identity)
        text = f"{head.seq:020d} {previous} {identity} {sealed}\n"
        Path(f"{place}.head").write_text(text)


def lie(place: Place) -> int:
    """A checkpoint that says that nothing was spent."""
    seq = checkpoint_numbers(place)[-1]
    ((why,),) = sql(place, "SELECT why FROM records WHERE seq = ?", seq)
    state = json.loads(why)
    for sums in state["spent"].values():
        sums[0] = "0/1"
    text = json.dumps(state, separators=(",", ":"))
    sql(place, "UPDATE records SET why = ? WHERE seq = ?", text, seq)
    return seq


def test_an_edited_checkpoint_is_refused_by_everybody(place: Place, key: str | None) -> None:
    used(place, key)
    seq = lie(place)
    for use in (lambda: verify(place, key), lambda: opened(place, BUDGET, name="plain", key=key)):
        with pytest.raises(dp.LedgerError, match=f"record {seq} was changed"):
            use()


def test_a_checkpoint_that_lies_is_found_by_a_full_check(place: Place) -> None:
    """Who can write and knows no key can hash everything again; a key prevents it."""
    used(place, None)
    seq = lie(place)
    rehashed(place, Seal(None), seq)
    with pytest.raises(dp.LedgerError, match=f"record {seq} states other totals"):
        verify(place)
    used(fresh := other(place), KEY)
    seq = lie(fresh)
    rehashed(fresh, Seal(None), seq)
    with pytest.raises(dp.LedgerError, match="another key"):
        store_at(fresh, KEY).read()


def other(place: Place) -> Place:
    if isinstance(place, Path):
        (place.parent / "other").mkdir()
        return place.parent / "other" / "budget.db"
    sql(place, "DROP SCHEMA dpframe_ledger CASCADE")
    return place


@pytest.mark.parametrize("act", ["opened", "granted", "approved", "closed"])
def test_what_a_checkpoint_refers_to_cannot_be_edited(
    place: Place, key: str | None, act: str
) -> None:
    used(place, key, 60)
    last = checkpoint_numbers(place)[-1]
    ((seq,),) = sql(place, "SELECT min(seq) FROM records WHERE act = ?", act)
    assert seq < last
    sql(place, "UPDATE records SET time = '2020-01-01T00:00:00+00:00' WHERE seq = ?", seq)
    with pytest.raises(dp.LedgerError, match="what it refers to was changed"):
        store_at(place, key).read()
    with pytest.raises(dp.LedgerError, match=f"record {seq} was changed"):
        verify(place, key)
    sql(place, "DELETE FROM records WHERE seq = ?", seq)
    with pytest.raises(dp.LedgerError, match="what it refers to was changed"):
        store_at(place, key).read()


def test_an_old_charge_that_is_edited_gives_nobody_more_budget(
    place: Place, key: str | None
) -> None:
    used(place, key)
    before = store_at(place, key).read().accounts["plain"].spent
    ((seq,),) = sql(place, "SELECT min(seq) FROM records WHERE act = 'charged' AND name = 'plain'")
    sql(place, "UPDATE records SET main = '0' WHERE seq = ?", seq)
    assert store_at(place, key).read().accounts["plain"].spent == before
    for use in (lambda: verify(place, key), lambda: store_at(place, key).read(whole=True)):
        with pytest.raises(dp.LedgerError, match=f"record {seq} was changed"):
            use()


def test_records_since_a_checkpoint_cannot_be_dropped(place: Place, key: str | None) -> None:
    used(place, key)
    last = checkpoint_numbers(place)[-1]
    sql(place, "DELETE FROM records WHERE seq > ?", last)
    ((tip,),) = sql(place, "SELECT hash FROM records WHERE seq = ?", last)
    with pytest.raises(dp.LedgerError, match="but its head names record"):
        store_at(place, key).read()
    head = Seal(None).head(last, tip)
    sql(place, "UPDATE head SET seq = ?, hash = ?, seal = ?", head.seq, head.hash, head.seal)
    if key is not None or isinstance(place, Path):
        with pytest.raises(dp.LedgerError, match=r"once had|its head was changed"):
            store_at(place, key).read()


def test_checkpoints_of_a_copy_vouch_for_nothing_that_a_head_file_remembers(
    tmp_path: Path, key: str | None
) -> None:
    """Also if the one record that it names is put into the copy."""
    seal, pin = Seal(key), tmp_path / "pinned"
    path, copy = tmp_path / "budget.db", tmp_path / "copy" / "budget.db"
    copy.parent.mkdir()

    def of(place: Path, pin: Path | None) -> Ledger:
        head_file._USED.clear()  # as another process
        return Ledger(SqliteStore(place, seal, pin=pin), "default", BUDGET)

    of(path, pin).charge(TENTH, "f", UNIT)
    for suffix in ("", ".head"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    of(path, pin).charge(TENTH, "a", UNIT)
    remembered = sql(path, "SELECT * FROM records ORDER BY seq DESC LIMIT 1")[0]
    without = of(copy, None)
    for _ in range(3 * EVERY):
        without.charge(TENTH.of(0), "f", UNIT)
    del without
    with pytest.raises(dp.LedgerError, match="not the one that was there before"):
        of(copy, pin)
    marks = ", ".join("?" * len(remembered))
    sql(copy, f"INSERT OR REPLACE INTO records VALUES ({marks})", *remembered)
    of(copy, None)  # which has nothing to remember
    with pytest.raises(dp.LedgerError, match="does not follow the one before it"):
        of(copy, pin)


# -- while others write -----------------------------------------------------------------------


def test_a_full_check_does_not_keep_others_out(place: Place, key: str | None) -> None:
    """Between two of its steps another process charges, and the check takes that in."""
    used(place, key)
    checking, other = store_at(place, key), opened(place, BUDGET, name="plain", key=key)
    before = other.spent
    real, charged, process = Chain.read, [], os.getpid()

    def then_charge(chain: Chain, *arguments: Any) -> None:
        if os.getpid() == process and len(charged) < 3:
            charged.append(in_child(lambda: 7 if other.charge(TENTH, "f", UNIT) else 8))
        real(chain, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Chain, "read", then_charge)
        head = checking.verify()
    assert charged == [7] * 3
    assert other.spent.main == before.main + 3 * TENTH.main
    assert head.seq == sql(place, "SELECT seq FROM head")[0][0]


def test_a_long_ledger_without_checkpoints_is_given_one(place: Place, key: str | None) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoints, "EVERY", 10**6)
        used(place, key)
    assert not checkpoint_numbers(place)
    assert everything(store_at(place, key).read()) == everything(replayed(place, key))
    opened(place, BUDGET, name="new", key=key)
    ((length,),) = sql(place, "SELECT seq FROM head")
    assert checkpoint_numbers(place) == [length - 1]
    assert everything(store_at(place, key).read()) == everything(replayed(place, key))
    verify(place, key)


@pytest.mark.parametrize("stride", [307, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_line_of_a_charge_with_a_checkpoint(tmp_path: Path, stride: int) -> None:
    step, kills, code = 1, 0, -signal.SIGKILL
    path = tmp_path / "budget.db"
    ledger = opened(path, BUDGET)
    for _ in range(EVERY - 2):
        ledger.charge(TENTH, "f", UNIT)
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    del ledger
    while code == -signal.SIGKILL:
        put(path, files)

        def work(step: int = step) -> int:
            sys.settrace(killed_at(step))
            opened(path, BUDGET).charge(TENTH, "f", UNIT)
            return 0

        code = in_child(work)
        verify(path)
        spent = opened(path, BUDGET).spent.main / TENTH.main
        assert spent in ((EVERY - 2, EVERY - 1) if code else (EVERY - 1,))
        opened(path, BUDGET).charge(TENTH, "g", UNIT)
        verify(path)
        assert len(checkpoint_numbers(path)) == 1
        step += stride
        kills += 1
    assert kills > 2000 // stride


def test_a_running_process_notices_another_history_before_a_checkpoint(place: Place) -> None:
    """One that somebody hashed again, and that has a checkpoint after what this process knows."""
    ledger = opened(place, BUDGET)
    ledger.charge(TENTH, "f", UNIT)
    other = opened(place, BUDGET)
    for _ in range(2 * EVERY):
        other.charge(TENTH.of(0), "f", UNIT)
    sql(place, "UPDATE records SET fingerprint = 'g' WHERE seq = 3")
    rehashed(place, Seal(None), 3)
    assert checkpoint_numbers(place)[-1] > 3
    for _ in range(3):
        with pytest.raises(dp.LedgerError, match="does not verify"):
            ledger.charge(TENTH, "f", UNIT)
    assert opened(place, BUDGET).spent == TENTH  # only a key prevents that


def test_what_people_read_has_every_charge(place: Place, key: str | None) -> None:
    """A new process begins at a checkpoint, and lists all that came before it too."""
    used(place, key)
    shown = [line for line in report.show(store_at(place, key), None) if "  plan " in line]
    charges = [line for line in shown if "  approved  " not in line]
    kept = report.record(store_at(place, key), None).values()
    listed = [charge for budget in kept if budget["opened"] for charge in budget["charges"]]
    assert len(charges) == len(listed) == 40 + 3  # of each round, and of approved runs


def test_who_uses_a_ledger_reads_on_in_steps(place: Place, key: str | None) -> None:
    """However much others added to it."""
    used(place, key)
    mine, other = opened(place, BUDGET, name="plain", key=key), opened(place, name="new", key=key)
    spent = mine.spent
    for n in range(4 * tables.STEP):
        other.charge(dp.PureDP(Fraction(1, 100)), f"{n % 10}" * 64, UNIT)
    mine.charge(TENTH, "f" * 64, UNIT)
    assert mine.spent == spent + TENTH
    assert opened(place, name="new", key=key).spent == other.spent == dp.PureDP(Fraction(28, 100))
    verify(place, key)
