"""Another key for a ledger: what was before is verified with the new one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger import chain, store
from dpframe.ledger.head_file import HeadFile
from dpframe.ledger.owners import rekey
from dpframe.ledger.record import Seal
from dpframe.ledger.store import Store
from tests.ledger.ledgers import TENTH, Place, filled, in_child, opened, sql, store_at, verify

OLD, NEW, THIRD = "the first key of the owner", "the second key of the owner", "a third key of it"


def rekeyed(place: Place, old: str | None, new: str) -> None:
    rekey(store_at(place, old, create=False), Seal.of(new), "Ann")


@pytest.fixture(params=[None, OLD], ids=["unkeyed", "keyed"])
def old(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.mark.parametrize("length", ["short", "long"])
def test_the_new_key_verifies_everything(
    place: Place, old: str | None, length: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if length == "long":
        for module in (chain, store):
            monkeypatch.setattr(module, "EVERY", 4)
        monkeypatch.setattr(store, "STEP", 3)
    filled(place, old)
    running = opened(place, key=old)
    rekeyed(place, old, NEW)
    verify(place, NEW)
    ledger = opened(place, key=NEW)
    assert ledger.spent == dp.PureDP("0.3")
    assert [e.status for e in ledger.entries] == ["released", "failed", "charged"]
    ledger.settle(ledger.entries[2].number, "released")
    ledger.charge(TENTH, "f")
    verify(place, NEW)
    for use in (
        lambda: running.charge(TENTH, "f"),
        lambda: opened(place, key=old),
        lambda: verify(place, old),
    ):
        with pytest.raises(dp.LedgerError, match="does not verify"):
            use()
    rekeyed(place, NEW, THIRD)
    verify(place, THIRD)
    ledger = opened(place, key=THIRD)
    for _ in range(6):
        ledger.charge(TENTH, "f")
    assert opened(place, key=THIRD).spent == dp.PureDP(1)
    verify(place, THIRD)
    assert len(opened(place, key=THIRD).entries) == 10


@pytest.mark.parametrize("seq", range(1, 10))
def test_an_edit_before_the_new_key_is_found_with_it(
    tmp_path: Path, old: str | None, seq: int
) -> None:
    """Also by who has the old key, and hashes everything again with it."""
    path = tmp_path / "budget.db"
    filled(path, old)
    rekeyed(path, old, NEW)
    sql(path, "UPDATE records SET time = '2020-01-01T00:00:00+00:00' WHERE seq = ?", seq)
    seal, previous = Seal(old), ""
    with pytest.raises(dp.LedgerError, match="does not verify"):
        verify(path, NEW)
    for row in sql(path, "SELECT * FROM records WHERE seq < 10 ORDER BY seq"):
        digest = seal.record([*row[:-2], previous])
        sql(path, "UPDATE records SET previous=?, hash=? WHERE seq=?", previous, digest, row[0])
        previous = digest
    for use in (lambda: verify(path, NEW), lambda: opened(path, key=NEW)):
        with pytest.raises(dp.LedgerError, match="does not verify"):
            use()


def test_only_a_key_takes_the_place_of_one(place: Place, old: str | None) -> None:
    filled(place, old)
    for wrong in ("", " " * 20, "short"):
        with pytest.raises(dp.LedgerError, match=r"too short|empty"):
            rekeyed(place, old, wrong)
    with pytest.raises(dp.LedgerError, match="does not verify"):
        rekeyed(place, "not the key that it has", NEW)
    verify(place, old)


def test_who_waits_meanwhile_is_refused(tmp_path: Path, old: str | None) -> None:
    """A short key that an earlier version took can be replaced, and that is all it is good for."""
    path = tmp_path / "budget.db"
    filled(path, "short")
    rekeyed(path, "short", NEW)
    opened(path, key=NEW).charge(TENTH, "f")
    verify(path, NEW)


@pytest.mark.parametrize("when", ["before the commit", "before the head file"])
def test_a_crash_between_two_keys_leaves_a_ledger_with_one_of_them(
    tmp_path: Path, old: str | None, when: str
) -> None:
    path = tmp_path / "budget.db"
    filled(path, old)

    def crash() -> int:
        used: Store = store_at(path, old)
        commit, write = used._commit, HeadFile.write

        def die_at_commit() -> None:
            if sql_count(used) > 9:
                os.kill(os.getpid(), signal.SIGKILL)
            commit()

        def die_at_head(*_: Any, **__: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        if when == "before the commit":
            used._commit = die_at_commit  # type: ignore[method-assign]
        else:
            HeadFile.write = die_at_head  # type: ignore[method-assign]
        rekey(used, Seal.of(NEW), "Ann")
        HeadFile.write = write  # type: ignore[method-assign]
        return 0

    def sql_count(used: Any) -> int:
        found = used._connection.execute("SELECT count(*) FROM records").fetchone()
        return int(found[0])

    assert in_child(crash) == -signal.SIGKILL
    now = old if when == "before the commit" else NEW
    verify(path, now)
    opened(path, key=now).charge(TENTH, "f")
    assert opened(path, key=now).spent == dp.PureDP("0.4")
    verify(path, now)
    with pytest.raises(dp.LedgerError, match="does not verify"):
        verify(path, NEW if now == old else old)
