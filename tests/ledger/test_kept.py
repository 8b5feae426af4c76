"""Records of results: what may follow what, also for who can seal records."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

import dpframe as dp
from dpframe.ledger import chain as checkpoints
from dpframe.ledger import store as tables
from dpframe.ledger import store as transactions
from dpframe.ledger.budgets import close
from dpframe.ledger.chain import Chain, row_of
from dpframe.ledger.contents import FolderContents, locked, removed_if_left
from dpframe.ledger.kept import Attempt, Begun, Identity, Overtaken, run_key, same_key
from dpframe.ledger.ledger import Beginning, Keeping
from dpframe.ledger.owners import move, prune, rekey
from dpframe.ledger.record import Draft, Record, Seal, sealed
from dpframe.ledger.store import Store, Tables
from tests.ledger.ledgers import TENTH, UNIT, Place, fresh, opened, sql, store_at, verify
from tests.postgres import Server

PRINT = "ab" * 32
CONTENT = "cd" * 32
IDENTITY = Identity(PRINT, ("people",), (("n",),))


def begun(run: str | None = None, token: str = "0" * 32, **parts: Any) -> Begun:
    return Begun(Identity(PRINT, ("people",), (("n",),), **parts), "people.agg()", token, run)


def charged(place: Place, given: Begun, *, after: int | None = None, once: bool = True) -> int:
    key = None if not once else run_key(given.run) if given.run else same_key(given.identity)
    beginning = Beginning(given, TENTH, key, after)
    return opened(place).charge(TENTH, PRINT, UNIT, beginning=beginning)


def attempts(place: Place) -> Any:
    return store_at(place).read(whole=True).results.of("default")


def test_a_run_is_begun_once(place: Place) -> None:
    number = charged(place, begun("monday"))
    with pytest.raises(Overtaken):
        charged(place, begun("monday"))
    other = charged(place, begun("tuesday"))
    with pytest.raises(Overtaken):  # the same, whatever run it was for
        charged(place, begun())
    with pytest.raises(Overtaken):
        charged(place, begun("monday"), after=other)
    again = charged(place, begun("monday"), after=number)
    with pytest.raises(Overtaken):
        charged(place, begun("monday"), after=number)
    ledger = opened(place)
    assert ledger.spent == dp.PureDP("0.3")
    assert [e.status for e in ledger.entries] == ["failed", "charged", "charged"]
    assert attempts(place).newest(run_key("monday"), IDENTITY).number == again
    verify(place)


def test_what_does_not_fit_is_not_begun(place: Place) -> None:
    ledger = opened(place)
    ledger.charge(dp.PureDP(1), "f", UNIT)
    with pytest.raises(dp.BudgetExceeded):
        charged(place, begun("monday"))
    assert attempts(place).newest(run_key("monday"), IDENTITY) is None


def test_a_result_is_recorded_once(place: Place) -> None:
    number = charged(place, begun())
    ledger = opened(place)
    ledger.settle(number, "released", CONTENT)
    ledger.settle(number, "released", CONTENT)  # who finished it and who computed it
    assert attempts(place).by_number[number].content == CONTENT
    with pytest.raises(dp.LedgerError, match="ended before"):
        ledger.settle(number, "released", "ef" * 32)
    assert [e.status for e in ledger.entries] == ["released"]
    failed = charged(place, begun(period="2"))
    ledger.settle(failed, "failed")
    with pytest.raises(dp.LedgerError, match="ended before"):
        ledger.settle(failed, "released", CONTENT)
    verify(place)


def forged(place: Place, drafts: Callable[[int], Sequence[Draft]]) -> None:
    """Append what no ledger writes, with right hashes, as who can write to an unkeyed one may."""
    store = store_at(place)

    def forging(rows: Tables, chain: Chain, _: object) -> tuple[int, str]:
        seq, tip = chain.length, chain.tip
        for draft in drafts(seq):
            record = sealed(draft, seq + 1, "2026-11-22T03:00:00+00:00", tip, Seal(None))
            rows.append([row_of(record)], Seal(None).head(record.seq, record.hash))
            seq, tip = record.seq, record.hash
        return seq, tip

    seq, tip = store.write(forging)
    if isinstance(place, Path):
        head = place.with_name(place.name + ".head")
        words = head.read_text().split(" ")
        made = Seal(None).head_file(seq, tip, words[2])
        head.write_text(f"{seq:020d} {tip} {words[2]} {made}\n")


def charge(**others: Any) -> Draft:
    why = json.dumps(dict.fromkeys(("host", "process", "job", "run")))
    return Draft("default", "charged", fingerprint=PRINT, amount=TENTH, why=why, **others)


def first(**changes: Any) -> Draft:
    made = begun().draft("default", TENTH)
    said = json.loads(made.why or "") | changes
    return Draft("default", "begun", None, PRINT, amount=TENTH, why=json.dumps(said))


RIGHT: Callable[[int], Sequence[Draft]] = lambda seq: [  # noqa: E731
    first(),
    charge(),
    Draft("default", "kept", seq + 2, PRINT, why=CONTENT),
    Draft("default", "released", refers=seq + 2),
]

WRONG: dict[str, Callable[[int], Sequence[Draft]]] = {
    "begun, and another charge": lambda n: [
        first(),
        Draft("default", "charged", fingerprint="ef" * 32, amount=TENTH, why=charge().why),
    ],
    "begun, and no charge": lambda n: [first(), Draft("default", "closed", who="A", why="B")],
    "kept, and not released": lambda n: [*RIGHT(n)[:3], charge()],
    "kept, and another released": lambda n: [
        charge(),
        first(),
        charge(),
        Draft("default", "kept", n + 3, PRINT, why=CONTENT),
        Draft("default", "released", refers=n + 1),
    ],
    "kept, and failed": lambda n: [*RIGHT(n)[:3], Draft("default", "failed", refers=n + 2)],
    "kept twice": lambda n: [*RIGHT(n), *RIGHT(n)[2:]],
    "kept after it had failed": lambda n: [
        *RIGHT(n)[:2],
        Draft("default", "failed", refers=n + 2),
        *RIGHT(n)[2:],
    ],
    "kept, and never begun": lambda n: [
        charge(),
        Draft("default", "kept", n + 1, PRINT, why=CONTENT),
        Draft("default", "released", refers=n + 1),
    ],
    "kept of another plan": lambda n: [
        *RIGHT(n)[:2],
        Draft("default", "kept", n + 2, "ef" * 32, why=CONTENT),
        *RIGHT(n)[3:],
    ],
    "kept, without a digest": lambda n: [
        *RIGHT(n)[:2],
        Draft("default", "kept", n + 2, PRINT, why="x"),
        *RIGHT(n)[3:],
    ],
    "begun with a field missing": lambda n: [
        Draft("default", "begun", None, PRINT, amount=TENTH, why="{}"),
        charge(),
    ],
    "begun with a token that names another file": lambda n: [first(token="../x"), charge()],
    "begun with frames that are numbers": lambda n: [first(frames=[1]), charge()],
    "begun with outputs that are no lists": lambda n: [first(outputs=[1]), charge()],
    "begun with a parameter that is a number": lambda n: [first(parameters={"a": 1}), charge()],
    "begun in another measure": lambda n: [
        Draft("default", "begun", None, PRINT, amount=dp.ZCDP(1), why=first().why),
        charge(),
    ],
    "begun anew after nothing": lambda n: [
        Draft("default", "begun", n, PRINT, amount=TENTH, why=first().why),
        charge(),
    ],
    "begun of an unknown budget": lambda n: [
        Draft("other", "begun", None, PRINT, amount=TENTH, why=first().why)
    ],
}


def test_what_ledgers_write_verifies(place: Place) -> None:
    opened(place)
    forged(place, RIGHT)
    verify(place)
    (found,) = attempts(place).by_number.values()
    assert found.content == CONTENT


@pytest.mark.parametrize("made", WRONG)
def test_what_no_ledger_writes_does_not_verify(tmp_path: Path, made: str) -> None:
    place = tmp_path / "budget.db"
    opened(place)
    forged(place, WRONG[made])
    with pytest.raises(dp.LedgerError, match="does not verify: record"):
        verify(place)
    with pytest.raises(dp.LedgerError, match="does not verify: record"):
        opened(place).charge(TENTH, "f", UNIT)


def test_checkpoints_know_what_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who begins at one finds runs and results of before, and open charges."""
    every = 20
    for where in (checkpoints, transactions):
        monkeypatch.setattr(where, "EVERY", every)
    monkeypatch.setattr(transactions, "LISTED", every)
    monkeypatch.setattr(transactions, "SHORT", 5)
    monkeypatch.setattr(transactions, "STEP", 7)
    monkeypatch.setattr(tables, "STEP", 7)
    ledger = opened(place, dp.PureDP(100))

    def run(name: str) -> int:
        beginning = Beginning(begun(name, period=name), TENTH, run_key(name))
        return opened(place, dp.PureDP(100)).charge(TENTH, PRINT, UNIT, beginning=beginning)

    kept, lost, failed = run("kept"), run("lost"), run("failed")
    ledger.settle(kept, "released", CONTENT)
    ledger.settle(failed, "failed")
    for number in range(3 * every):
        ledger.settle(ledger.charge(TENTH, f"{number}", UNIT), "released")
    store = store_at(place)
    chain = store.read()
    assert isinstance(chain, Chain)
    assert not chain.whole
    assert chain.checkpoint > failed
    assert list(chain.results.of("default").by_number) == [lost]  # the others are looked up
    found = Keeping(store, "default")
    assert_found(found, kept, CONTENT)
    assert_found(found, lost, None)
    assert_found(found, failed, None)
    assert found.newest(run_key("other"), IDENTITY) is None
    assert found.attempt(kept + 1) is None
    assert found.is_open(lost)
    assert not found.is_open(failed)
    for name in ("failed", "kept"):
        with pytest.raises(Overtaken):
            run(name)
    with pytest.raises(dp.LedgerError, match="ended before"):
        found.finish(failed, CONTENT)
    found.finish(kept, CONTENT)  # as it is
    found.finish(lost, CONTENT)
    assert not Keeping(store_at(place), "default").is_open(lost)
    assert [one.number for one in found.every()] == [kept, lost, failed]
    verify(place)

    rekey(store_at(place), Seal("k" * 32), "Ann")  # hashes of before are of no key
    keyed = opened(place, dp.PureDP(100), key="k" * 32)
    later = keyed.charge(
        TENTH, PRINT, UNIT, beginning=Beginning(begun("later"), TENTH, run_key("later"))
    )
    keyed.settle(later, "released", CONTENT)
    for number in range(3 * every):
        keyed.settle(keyed.charge(TENTH, f"{number}", UNIT), "released")
    store = store_at(place, "k" * 32)
    assert sorted(store.read().results.of("default").by_number) == [kept, lost, failed]
    found = Keeping(store, "default")
    for number in (kept, lost, later):
        assert_found(found, number, CONTENT)
    assert prune(store, None, "Ann", date(2999, 1, 1))[0].attempts[0].number == kept
    for number in range(3 * every):
        keyed.settle(keyed.charge(TENTH, f"{number}", UNIT), "released")
    found = Keeping(store_at(place, "k" * 32), "default")
    for number in (kept, lost, later):
        assert "by Ann" in str(assert_found(found, number, CONTENT).pruned)
    assert prune(store_at(place, "k" * 32), None, "Ann", date(2999, 1, 1)) == []
    verify(place, "k" * 32)


def test_results_of_the_edition_before_are_found_behind_a_checkpoint(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It recorded as the fingerprint what is the digest of what is released now."""
    every = 20
    for where in (checkpoints, transactions):
        monkeypatch.setattr(where, "EVERY", every)
    ledger = opened(place, dp.PureDP(100))
    beginning = Beginning(begun(), TENTH, same_key(IDENTITY))
    number = ledger.charge(TENTH, PRINT, UNIT, beginning=beginning)
    ledger.settle(number, "released", CONTENT)
    for other in range(3 * every):
        ledger.settle(ledger.charge(TENTH, f"{other}", UNIT), "released")
    store = store_at(place)
    chain = store.read()
    assert isinstance(chain, Chain)
    assert chain.checkpoint > number
    assert not chain.results.of("default").by_number
    keeping = Keeping(store, "default")
    today = replace(IDENTITY, fingerprint="ef" * 32, release=PRINT)
    found = keeping.newest(same_key(today), today)
    assert found is not None
    assert found.number == number
    other_release = replace(today, release="12" * 32)
    assert keeping.newest(same_key(other_release), other_release) is None


def assert_found(keeping: Keeping, number: int, content: str | None) -> Attempt:
    attempt = keeping.attempt(number)
    assert attempt is not None
    assert attempt.content == content
    run, identity = attempt.begun.run, attempt.begun.identity
    assert run is not None
    for key in (run_key(run), run_key(run, "ab" * 32), same_key(identity)):
        assert keeping.newest(key, identity) == attempt
    return attempt


def test_the_first_use_reads_no_results(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are kept: a checkpoint names those alone that are under way."""
    for where in (checkpoints, transactions):
        monkeypatch.setattr(where, "EVERY", 20)
    monkeypatch.setattr(transactions, "LISTED", 20)
    ledger = opened(place, dp.PureDP(1000))
    sizes = []
    for number in range(60):
        name = f"{number}"
        beginning = Beginning(begun(name, period=name), TENTH, run_key(name))
        made = ledger.charge(TENTH, PRINT, UNIT, beginning=beginning)
        ledger.settle(made, "released", CONTENT)
        if number % 20 == 19:
            chain = store_at(place).read()
            sizes.append(len(checkpoints.kept_numbers(checkpoint_of(place))))
            assert not chain.whole
    assert sizes[0] == sizes[1] == sizes[2] < 5
    verify(place)


def checkpoint_of(place: Place) -> Record:
    table = "records" if isinstance(place, Path) else "dpframe_ledger.records"
    last = f"SELECT * FROM {table} WHERE act = 'checkpoint' ORDER BY seq DESC LIMIT 1"
    return Record(*sql(place, last)[0])


def test_checkpoints_of_earlier_versions_name_all_results(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (checkpoints, transactions):
        monkeypatch.setattr(where, "EVERY", 20)
    monkeypatch.setattr(transactions, "LISTED", 20)
    ledger = opened(place, dp.PureDP(1000))

    def kept(name: str) -> int:
        beginning = Beginning(begun(name, period=name), TENTH, run_key(name))
        made = ledger.charge(TENTH, PRINT, UNIT, beginning=beginning)
        ledger.settle(made, "released", CONTENT)
        return made

    with monkeypatch.context() as patch:
        state_of = checkpoints.state_of
        patch.setattr("dpframe.ledger.store.state_of", lambda c, s, _: state_of(c, s, None))
        numbers = [kept(f"{number}") for number in range(15)]
    chain = store_at(place).read()
    assert chain.checkpoint
    assert "results" not in json.loads(str(checkpoint_of(place).why))
    assert sorted(chain.results.of("default").by_number) == numbers
    numbers += [kept(f"{number}") for number in range(15, 40)]
    assert "results" in json.loads(str(checkpoint_of(place).why))
    found = Keeping(store_at(place), "default")
    for number in numbers:
        assert_found(found, number, CONTENT)
    verify(place)


def test_a_result_of_long_ago_that_was_edited_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (checkpoints, transactions):
        monkeypatch.setattr(where, "EVERY", 20)
    monkeypatch.setattr(transactions, "LISTED", 20)
    place = tmp_path / "b.db"
    ledger = opened(place, dp.PureDP(1000))
    numbers = []
    for number in range(20):
        name = f"{number}"
        beginning = Beginning(begun(name, period=name), TENTH, run_key(name))
        numbers.append(ledger.charge(TENTH, PRINT, UNIT, beginning=beginning))
        ledger.settle(numbers[-1], "released", CONTENT)
    edit = "UPDATE records SET why = ? WHERE act = 'kept' AND refers = ?"
    sql(place, edit, "ef" * 32, numbers[0])
    found = Keeping(store_at(place), "default")
    assert_found(found, numbers[1], CONTENT)
    with pytest.raises(dp.LedgerError, match="was changed"):
        found.attempt(numbers[0])
    with pytest.raises(dp.LedgerError, match="does not verify"):
        verify(place)


def test_parts_of_a_frame_are_begun_at_the_cost_of_the_plan(tmp_path: Path) -> None:
    frame = pl.DataFrame({"k": ["a", "b"]})
    of = dp.Session(epsilon=1, ledger=tmp_path / "budget.db", keep_releases=True)
    private = of.protect(frame, unit=dp.Rows(), name="people")
    for part in of.partition(private, "k", keys=["a", "b"]).values():
        part.dp_count().collect(epsilon=1, reuse="same")
    assert of.spent == dp.PureDP(1)
    assert of.releases()["cost"].to_list() == ["epsilon 1", "epsilon 1"]
    of._payer.ledger.verify()


def kept_in(place: Place) -> pl.DataFrame:
    of = dp.Session(epsilon=1, ledger=str(place), keep_releases=True)
    people = of.protect(pl.DataFrame({"x": [1]}), unit=dp.Rows(), name="people")
    return people.dp_count().collect(epsilon=1, reuse="same")


def test_results_move_with_their_ledger(place: Place, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    there.mkdir()
    first = kept_in(place)
    source = store_at(place)
    move(source, store_at(there / "moved.db"), "Ann")
    assert kept_in(there / "moved.db").equals(first)
    for file in (there / "moved.db.releases").iterdir():
        file.unlink()
    with pytest.raises(dp.LedgerError, match="missing"):
        kept_in(there / "moved.db")
    move(store_at(place), store_at(there / "moved.db"), "Ann")  # as after an interruption
    assert kept_in(there / "moved.db").equals(first)
    with pytest.raises(dp.LedgerError, match="was moved to"):
        move(store_at(place), store_at(there / "moved.db"), "Ann")


def test_results_move_to_a_server(server: Any, tmp_path: Path) -> None:
    file = tmp_path / "budget.db"
    first = kept_in(file)
    move(store_at(file), store_at(server.empty()), "Ann")
    assert kept_in(server.url()).equals(first)


def test_results_are_kept_under_another_key(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_in(place)
    rekey(store_at(place), Seal("k" * 32), "Ann")
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", "k" * 32)
    assert kept_in(place).equals(first)


def test_the_table_is_made_when_it_is_needed(server: Any) -> None:
    url = server.empty()
    names = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM "
    names += "pg_namespace WHERE nspname = 'dpframe_ledger') ORDER BY 1"
    dp.Session(epsilon=1, ledger=url)
    assert sql(url, names) == [("head",), ("records",)]
    kept_in(url)
    assert sql(url, names) == [("head",), ("records",), ("releases",)]
    verify(url)
    sql(url, "ALTER TABLE dpframe_ledger.releases ADD COLUMN more text")
    with pytest.raises(dp.LedgerError, match="its tables were changed"):
        verify(url)


def test_rights_are_looked_at_before_the_charge(server: Any) -> None:
    url = server.empty()
    kept_in(url)
    sql(url, "DROP ROLE IF EXISTS clerk")
    sql(url, "CREATE ROLE clerk LOGIN")
    sql(url, "GRANT USAGE ON SCHEMA dpframe_ledger TO clerk")
    sql(url, "GRANT SELECT, INSERT ON dpframe_ledger.records TO clerk")
    sql(url, "GRANT SELECT, UPDATE ON dpframe_ledger.head TO clerk")

    def ask() -> dp.Release:
        of = dp.Session(epsilon=1, ledger=server.url(user="clerk"), name="c", keep_releases=True)
        people = of.protect(pl.DataFrame({"x": [1]}), unit=dp.Rows(), name="people")
        return people.dp_count().release(epsilon=1, reuse="same")

    try:
        with pytest.raises(dp.LedgerError, match="this role may not keep"):
            ask()
        sql(url, "GRANT SELECT, INSERT ON dpframe_ledger.releases TO clerk")
        assert [ask().reused, ask().reused] == [False, True]
    finally:
        sql(url, "DROP OWNED BY clerk")
        sql(url, "DROP ROLE clerk")


def test_who_is_there_is_seen(place: Place) -> None:
    token, other = "1" * 32, "2" * 32
    store: Store = store_at(place)
    opened(place)
    contents = store.contents
    contents.prepare()
    assert not contents.is_present(token)

    def looked_for() -> None:
        for seen in (contents, store_at(place).contents):
            assert seen.is_present(token)
            assert not seen.is_present(other)

    contents.present(token, looked_for)
    assert not store_at(place).contents.is_present(token)
    assert fresh(place, 1) is not None


def test_leftovers_of_the_dead_are_removed_and_of_the_living_not(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path / "b")
    contents.prepare()
    dead = contents.releases / ".000000001-1.parquet.part"
    dead.write_bytes(b"half")
    left = contents.releases / f".{'3' * 32}.lock"
    left.touch()
    living = locked(contents.releases / ".000000002-1.parquet.part", [])
    kept = contents.releases / "000000003-1.parquet"
    kept.write_bytes(b"whole")
    contents.prepare()
    assert not dead.exists()
    assert not left.exists()
    assert (contents.releases / ".000000002-1.parquet.part").exists()
    assert kept.exists()
    living.close()
    assert removed_if_left(contents.releases / ".000000002-1.parquet.part")


def test_an_incomplete_content_is_none(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path / "b")
    contents.write(7, [b"one", b"two"])
    assert contents.read(7, 2) == [b"one", b"two"]
    (contents.releases / "000000007-2.parquet").unlink()
    assert contents.read(7, 2) is None


def test_a_result_is_kept_also_when_its_budget_was_closed_meanwhile(place: Place) -> None:
    number = charged(place, begun())
    close(store_at(place), "default", "Ann", "over")
    opened(place).settle(number, "released", CONTENT)
    assert attempts(place).by_number[number].content == CONTENT
    with pytest.raises(dp.BudgetExceeded):
        charged(place, begun("monday"))
    verify(place)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_children_do_not_keep_what_a_killed_process_held(place: Place) -> None:
    """Neither its lock, nor the right to give it up."""
    opened(place)
    token = "4" * 32
    reading, writing = os.pipe()

    def computing() -> int:
        contents = store_at(place).contents
        contents.prepare()

        def forking() -> int:
            child = os.fork()
            if not child:
                time.sleep(30)
                os._exit(0)
            os.write(writing, f"{child}\n".encode())
            time.sleep(30)
            return 0

        return contents.present(token, forking)

    process = os.fork()
    if not process:
        os._exit(computing())
    child = int(os.read(reading, 100))
    contents = store_at(place).contents
    try:
        assert contents.is_present(token)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        deadline = time.monotonic() + 20
        while contents.is_present(token):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_a_child_that_ends_leaves_its_parent_where_it_is(place: Place) -> None:
    """One that leaves the block, as by an error, does not give up what is not its own."""
    opened(place)
    contents, token = store_at(place).contents, "5" * 32
    contents.prepare()
    children: list[int] = []

    def inner() -> None:
        children.append(os.fork())
        if children[0]:
            os.waitpid(children[0], 0)
            assert store_at(place).contents.is_present(token)
            assert store_at(place).contents.is_present("6" * 32)

    def outer() -> None:
        contents.present("6" * 32, inner)
        if not children[0]:
            os._exit(0)
        assert not store_at(place).contents.is_present("6" * 32)

    contents.present(token, outer)
    assert not store_at(place).contents.is_present(token)


def test_who_has_ended_is_not_there_at_once(place: Place) -> None:
    """A server gives up what a connection held some time after it was closed."""
    opened(place)
    contents, token = store_at(place).contents, "7" * 32
    contents.prepare()
    asking = store_at(place).contents
    for _ in range(20):
        assert contents.present(token, lambda: asking.is_present(token))
        assert not asking.is_present(token)


@pytest.mark.parametrize("parts", [range(1, 4), (1, 2**31 - 1)])
def test_rows_that_somebody_inserts_keep_no_result_from_being_stored(
    server: Server, parts: Sequence[int]
) -> None:
    """Whoever may insert, and nothing else, comes before the charge and after it."""
    url = server.empty()

    def counted(reuse: str, epsilon: str) -> dp.Release:
        session = dp.Session(epsilon=1, ledger=url, keep_releases=True)
        frame = session.protect(pl.DataFrame({"x": [1, 2]}), unit=dp.Rows(), name="v")
        return frame.dp_count().release(epsilon=epsilon, reuse=reuse)  # type: ignore[arg-type]

    counted("never", "0.2")

    def insert() -> None:
        for number in range(1, 30):
            for part in parts:
                with suppress(psycopg.errors.UniqueViolation):
                    sql(
                        url,
                        "INSERT INTO dpframe_ledger.releases VALUES (%s, %s, %s)",
                        number,
                        part,
                        b"junk",
                    )

    insert()
    first = counted("same", "0.1")
    assert not first.remark
    insert()
    again = counted("same", "0.1")
    assert again.reused
    assert again.frame.equals(first.frame)
    verify(url)
