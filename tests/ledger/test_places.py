"""Which ledger it is: copies are refused, and a ledger is moved so that one of two can be spent."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.errors import Unsound
from dpframe.ledger import head_file
from dpframe.ledger.chain import Chain, row_of
from dpframe.ledger.head_file import HeadFile
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.owners import adopt, move
from dpframe.ledger.record import Draft, Seal
from dpframe.ledger.sqlite import SqliteStore, SqliteTables
from dpframe.ledger.store import Store
from tests.ledger.ledgers import (
    TENTH,
    UNIT,
    Place,
    filled,
    in_child,
    opened,
    sql,
    store_at,
    verify,
)
from tests.postgres import Server

KEY = "a key of the data owner"


@pytest.fixture(params=[None, KEY], ids=["unkeyed", "keyed"])
def key(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.fixture
def path(tmp_path: Path, key: str | None) -> Path:
    made = tmp_path / "budget.db"
    filled(made, key)
    return made


def refused_elsewhere(path: Path, key: str | None) -> bytes:
    """What another process says who spends on it, and nothing is."""
    reading, writing = os.pipe()

    def spend() -> int:
        head_file._USED.clear()  # as a process that has used no other
        try:
            opened(path, key=key).charge(TENTH, "f")
        except dp.LedgerError as error:
            os.write(writing, str(error).encode()[:4000])
            return 7
        return 0

    code = in_child(spend)
    os.close(writing)
    said = os.read(reading, 5000)
    os.close(reading)
    assert (code == 7) == bool(said)
    return said


# -- copies -----------------------------------------------------------------------------------


def test_a_ledger_says_which_one_it_is(place: Place) -> None:
    filled(place)
    ((seq, name, found),) = sql(
        place, "SELECT seq, name, fingerprint FROM records WHERE act = 'identified'"
    )
    assert (seq, name, len(found)) == (1, "", 32)
    chain = store_at(place).read()
    assert chain.identity == found
    if isinstance(place, Path):
        assert Path(f"{place}.head").read_text().split()[2] == found


@pytest.mark.always
def test_ten_copies_answer_nothing(path: Path, key: str | None) -> None:
    for n in range(10):
        copy = path.parent / f"{n}" / "budget.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        assert b"head file 'budget.db.head' is missing" in refused_elsewhere(copy, key)
        with pytest.raises(dp.LedgerError, match="is missing"):
            opened(copy, name="a new one", key=key)


def test_a_copy_with_its_head_file_in_the_same_place_is_refused(
    path: Path, key: str | None
) -> None:
    copy = path.with_name("copy.db")
    for suffix in ("", ".head"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    assert b"are copies of one ledger" in refused_elsewhere(copy, key)
    assert b"are copies of one ledger" in refused_elsewhere(path, key)
    Path(f"{copy}.head").unlink()
    assert refused_elsewhere(path, key) == b""


def test_a_copy_is_found_among_many_files_that_are_none(path: Path, key: str | None) -> None:
    """What cannot be read, or has no ledger beside it, says nothing; a copy does, however named."""
    filled(path, key)
    folder = path.parent
    for i in range(300):
        line = f"{i:020d} {'a' * 64} {i:064x} {'c' * 64}\n"
        (folder / f"other{i}.db").write_bytes(b"x")
        (folder / f"other{i}.db.head").write_text(line)
    head = Path(f"{path}.head")
    shutil.copy(head, folder / "gone.db.head")
    shutil.copy(head, folder / ".head")
    shutil.copy(head, folder / "empty.db.head")
    (folder / "empty.db").touch()
    (folder / "folder.db.head").mkdir()
    os.mkfifo(folder / "pipe.db.head")
    (folder / "nowhere.db.head").symlink_to(folder / "nothing")
    assert opened(path, key=key).spent.main
    shutil.copy(path, folder / ".copy.db")
    shutil.copy(head, folder / ".copy.db.head")
    with pytest.raises(dp.LedgerError, match=r"\.copy\.db'.* are copies of one ledger"):
        opened(path, key=key)


def test_a_copy_that_the_same_process_uses_is_refused(path: Path, key: str | None) -> None:
    ledger = opened(path, key=key)
    copy = path.parent / "elsewhere" / "budget.db"
    copy.parent.mkdir()
    for suffix in ("", ".head"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with pytest.raises(dp.LedgerError, match="are copies of one ledger"):
        opened(copy, key=key)
    ledger.charge(TENTH, "f")


def test_a_file_that_is_moved_with_its_head_file_goes_on(path: Path, key: str | None) -> None:
    opened(path, key=key).charge(TENTH, "f")
    there = path.parent / "elsewhere" / "other.db"
    there.parent.mkdir()
    for suffix in ("", ".head"):
        Path(f"{path}{suffix}").rename(f"{there}{suffix}")
    opened(there, key=key).charge(TENTH, "f")
    verify(there, key)
    assert opened(there, key=key).spent == dp.PureDP("0.5")


def test_the_head_file_of_another_ledger_is_refused(path: Path, key: str | None) -> None:
    other = path.parent / "other" / "budget.db"
    other.parent.mkdir()
    filled(other, key)
    shutil.copy(f"{other}.head", f"{path}.head")
    with pytest.raises(dp.LedgerError, match=r"not the one that was there|of another ledger"):
        opened(path, key=key)
    with pytest.raises(dp.LedgerError, match=r"not the one that was there|of another ledger"):
        verify(path, key)


def test_two_copies_on_one_server_are_noticed(server: Server) -> None:
    url = server.empty()
    filled(url)
    head_file._USED.clear()
    ((identity,),) = sql(url, "SELECT fingerprint FROM records WHERE seq = 1")
    head_file.claim(identity, (1, 2), "postgresql://other", lambda: True)
    with pytest.raises(dp.LedgerError, match="are copies of one ledger"):
        opened(url)
    head_file._USED.clear()
    opened(url).charge(TENTH, "f")


# -- a head file elsewhere --------------------------------------------------------------------


def test_a_pinned_head_stops_a_copy_with_its_head_file(path: Path, key: str | None) -> None:
    pin, seal = path.parent / "pinned" / "head", Seal(key)
    pin.parent.mkdir()
    copy = path.parent / "copied" / "budget.db"
    copy.parent.mkdir()
    for suffix in ("", ".head"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    budget = dp.PureDP(1)
    ledger = Ledger(SqliteStore(path, seal, pin=pin), "default", budget)
    ledger.charge(TENTH, "f")
    head_file._USED.clear()
    with pytest.raises(dp.LedgerError, match="ends at record 9, and once had 10"):
        Ledger(SqliteStore(copy, seal, pin=pin), "default", budget)
    head_file._USED.clear()
    without = Ledger(SqliteStore(copy, seal), "default", budget)
    for _ in range(3):
        without.charge(TENTH, "f")
    head_file._USED.clear()
    with pytest.raises(dp.LedgerError, match="not the one that was there before"):
        Ledger(SqliteStore(copy, seal, pin=pin), "default", budget)


def test_the_environment_pins_a_head(path: Path, key: str | None, monkeypatch: Any) -> None:
    pin = path.with_name("pinned")
    monkeypatch.setenv("DPFRAME_LEDGER_HEAD", str(pin))
    if key is not None:
        monkeypatch.setenv("DPFRAME_LEDGER_KEY", key)
    session = dp.Session(epsilon=1, ledger=path)
    session._payer.ledger.charge(TENTH, "f")
    assert pin.read_bytes() == Path(f"{path}.head").read_bytes()


# -- a head file that is lost -----------------------------------------------------------------


def test_a_lost_head_file_is_given_up_on_record(path: Path, key: str | None) -> None:
    beside = Path(f"{path}.head")
    with pytest.raises(dp.LedgerError, match="has its head file"):
        adopt(store_at(path, key), "Ann", "none")
    beside.unlink()
    with pytest.raises(dp.LedgerError, match="not empty"):
        adopt(store_at(path, key), "Ann", " ")
    head = adopt(store_at(path, key), "Ann", "the disk of head files was lost")
    assert head.seq == 10
    ((who, why),) = sql(path, "SELECT who, why FROM records WHERE act = 'adopted'")
    assert (who, why) == ("Ann", "the disk of head files was lost")
    ledger = opened(path, key=key)
    ledger.charge(TENTH, "f")
    assert ledger.spent == dp.PureDP("0.4")
    verify(path, key)


def test_what_a_head_file_elsewhere_says_is_not_given_up(path: Path, key: str | None) -> None:
    """An old copy without its head file, where another machine remembers more."""
    pin, seal = path.with_name("pinned"), Seal(key)
    old = path.read_bytes()
    store = SqliteStore(path, seal, pin=pin)
    Ledger(store, "default", dp.PureDP(1)).charge(TENTH, "f")
    del store
    path.write_bytes(old)
    Path(f"{path}.head").unlink()
    remembered = pin.read_bytes()
    with pytest.raises(dp.LedgerError, match="ends at record 9, and once had 10"):
        adopt(SqliteStore(path, seal, pin=pin), "Ann", "lost")
    assert pin.read_bytes() == remembered
    assert adopt(store_at(path, key), "Ann", "lost").seq == 10


def test_a_ledger_on_a_server_has_nothing_to_adopt(server: Server, key: str | None) -> None:
    url = server.empty()
    opened(url, key=key)
    with pytest.raises(dp.LedgerError, match="needs no head file"):
        adopt(store_at(url, key), "Ann", "lost")


def test_nothing_is_adopted_that_does_not_verify(path: Path, key: str | None) -> None:
    Path(f"{path}.head").unlink()
    sql(path, "UPDATE records SET main = '0' WHERE seq = 4")
    with pytest.raises(dp.LedgerError, match="record 4 was changed"):
        adopt(store_at(path, key), "Ann", "lost")
    with pytest.raises(dp.LedgerError, match="no ledger"):
        adopt(store_at(path.with_name("new.db"), key), "Ann", "lost")


# -- ledgers of earlier versions --------------------------------------------------------------


def old_ledger(path: Path, key: str | None, *, head: bool = True) -> None:
    """Without an identity, and with a head file that names none."""
    seal = Seal(key)
    chain = Chain(seal)
    connection = sqlite3.connect(path, isolation_level=None)
    tables = SqliteTables(connection, path)
    tables.create()
    for draft in (
        Draft("default", "opened", amount=dp.PureDP(1)),
        Draft("default", "charged", None, "f", UNIT, TENTH),
        Draft("default", "released", refers=2),
    ):
        record = chain.next(draft)
        chain.extend(record)
        tables.append([row_of(record)], chain.head(), new=record.seq == 1)
    connection.close()
    made = chain.head()
    if head:
        Path(f"{path}.head").write_text(f"{made.seq:020d} {made.hash} {made.seal}\n")


def test_a_ledger_of_an_earlier_version_is_given_an_identity(
    tmp_path: Path, key: str | None
) -> None:
    path = tmp_path / "budget.db"
    old_ledger(path, key)
    before = Path(f"{path}.head").read_bytes()
    verify(path, key)
    ledger = opened(path, key=key)
    assert ledger.spent == TENTH
    assert Path(f"{path}.head").read_bytes() == before  # reading writes nothing
    ledger.charge(TENTH, "g")
    acts = [act for (act,) in sql(path, "SELECT act FROM records ORDER BY seq")]
    assert acts == ["opened", "charged", "released", "identified", "charged"]
    assert len(Path(f"{path}.head").read_text().split()) == 4
    Path(f"{path}.head").write_bytes(before)  # as after a crash on the way
    assert opened(path, key=key).spent == dp.PureDP("0.2")
    opened(path, key=key).charge(TENTH, "h")
    verify(path, key)


def test_a_ledger_of_an_earlier_version_without_head_file_is_refused(
    tmp_path: Path, key: str | None
) -> None:
    path = tmp_path / "budget.db"
    old_ledger(path, key, head=False)
    with pytest.raises(dp.LedgerError, match="is missing"):
        opened(path, key=key)
    adopt(store_at(path, key), "Ann", "it never had one")
    assert opened(path, key=key).spent == TENTH


# -- moving -----------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        (tmp_path / "there").mkdir()
        return tmp_path / "there" / "budget.db"
    server: Server = request.getfixturevalue("server")
    return server.empty()


def moved(path: Place, there: Place, key: str | None) -> int:
    """How many records it then has."""
    return move(store_at(path, key, create=False), store_at(there, key), "Ann").seq


def test_a_ledger_goes_on_where_it_was_moved_to(path: Path, there: Place, key: str | None) -> None:
    ledger = opened(path, key=key)
    before = ledger.entries
    moved(path, there, key)
    verify(there, key)
    verify(path, key)
    other = opened(there, key=key)
    assert other.entries == before
    assert other.spent == dp.PureDP("0.3")
    other.settle(before[2].number, "released")
    for use in (
        lambda: ledger.charge(TENTH, "f"),
        lambda: opened(path, key=key).charge(TENTH, "f"),
        lambda: opened(path, name="new", key=key),
        lambda: moved(path, path.with_name("third.db"), key),
    ):
        with pytest.raises(dp.LedgerError, match="the ledger was moved to"):
            use()
    assert opened(path, key=key).spent == dp.PureDP("0.3")  # it can be read
    for _ in range(7):
        other.charge(TENTH, "f")
    with pytest.raises(dp.BudgetExceeded):
        other.charge(TENTH, "f")
    first, second = store_at(path, key).read(), store_at(there, key).read()
    assert first.identity != second.identity
    assert first.moved is not None
    assert first.moved.fingerprint == second.identity
    ((who, why),) = sql(there, "SELECT who, why FROM records WHERE act = 'identified' AND seq > 1")
    assert (who, json.loads(why)["from"]) == ("Ann", first.identity)
    verify(there, key)


def test_a_ledger_is_moved_only_to_an_empty_place(
    path: Path, there: Place, key: str | None
) -> None:
    opened(there, name="other", key=key)
    with pytest.raises(dp.LedgerError, match="has a ledger already"):
        moved(path, there, key)
    opened(path, key=key).charge(TENTH, "f")
    with pytest.raises(Unsound, match="same key"):
        move(store_at(path, key), store_at(there, None if key else KEY), "Ann")
    sql(path, "UPDATE records SET main = '0' WHERE seq = 4")
    with pytest.raises(dp.LedgerError, match="record 4 was changed"):
        moved(path, there, key)


def test_what_was_not_there_is_not_moved(tmp_path: Path) -> None:
    with pytest.raises(dp.LedgerError, match="no ledger"):
        moved(tmp_path / "none.db", tmp_path / "there.db", None)


def then(destination: Store, work: Callable[[], object]) -> None:
    """Do something once the place is kept for a ledger."""
    real = destination.promise

    def promise(origin: str) -> str:
        made = real(origin)
        work()
        return made

    destination.promise = promise  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "when", ["its place is kept", "the old one is closed", "it is in its head file"]
)
def test_a_move_that_is_interrupted_goes_on_to_the_same_place(
    path: Path, there: Place, key: str | None, when: str
) -> None:
    def interrupted() -> int:
        destination = store_at(there, key)

        def die(*_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        if when == "its place is kept":
            then(destination, die)
        elif when == "the old one is closed":
            then(destination, lambda: setattr(destination, "_commit", die))
        else:
            destination.forget = die  # type: ignore[method-assign]
        with suppress(dp.LedgerError):
            move(store_at(path, key), destination, "Ann")
        return 0

    assert in_child(interrupted) == -signal.SIGKILL
    if when == "its place is kept":
        opened(path, key=key).charge(TENTH, "f")
    else:
        with pytest.raises(dp.LedgerError, match="the ledger was moved to"):
            opened(path, key=key).charge(TENTH, "f")
        with pytest.raises(dp.LedgerError, match="the ledger was moved to"):
            moved(path, path.with_name("third.db"), key)
    if when != "it is in its head file":
        with pytest.raises(dp.LedgerError, match="a move of a ledger to this place was started"):
            opened(there, key=key)  # nobody begins another one meanwhile
        other = path.with_name("other.db")
        filled(other, key)
        with pytest.raises(dp.LedgerError, match="a move of a ledger to this place was started"):
            moved(other, there, key)
        moved(path, there, key)
    with pytest.raises(dp.LedgerError, match="was moved to"):
        moved(path, there, key)
    spent = opened(there, key=key).spent
    assert spent == dp.PureDP("0.4" if when == "its place is kept" else "0.3")
    opened(there, key=key).charge(TENTH, "f")
    verify(there, key)


def test_what_was_moved_once_is_not_moved_again(path: Path, there: Place, key: str | None) -> None:
    """Also if nothing is there any more: it may be elsewhere, and spent."""
    moved(path, there, key)
    if isinstance(there, Path):
        elsewhere = path.parent / "elsewhere"
        elsewhere.mkdir()
        for suffix in ("", ".head"):
            Path(f"{there}{suffix}").rename(elsewhere / f"budget.db{suffix}")
    else:
        sql(there, "DROP SCHEMA dpframe_ledger CASCADE")
    with pytest.raises(dp.LedgerError, match="was moved to"):
        moved(path, there, key)


def test_two_who_move_a_ledger_at_once_make_one(path: Path, there: Place, key: str | None) -> None:
    other, destination, codes = path.with_name("other.db"), store_at(there, key), []
    then(destination, lambda: codes.append(in_child(lambda: moved(path, other, key))))
    with pytest.raises(dp.LedgerError, match="another process is moving the ledger"):
        move(store_at(path, key), destination, "Ann")
    assert codes == [10]
    with pytest.raises(dp.LedgerError, match="a move of a ledger to this place was started"):
        opened(there, key=key)
    opened(other, key=key).charge(TENTH, "f")


def test_two_at_once_cannot_both_be_spent(path: Path, there: Place, key: str | None) -> None:
    """A process that waits for the lock meanwhile finds the ledger gone."""
    ledger = opened(path, key=key)
    destination = store_at(there, key)
    real, codes = destination._commit, []

    def then_another_tries() -> None:
        codes.append(in_child(lambda: bool(refused_by(ledger))))
        real()

    def refused_by(used: Ledger) -> str:
        used._store._timeout = 0.05  # type: ignore[attr-defined]
        try:
            used.charge(TENTH, "f")
        except dp.LedgerError as error:
            return str(error)
        return ""

    then(destination, lambda: setattr(destination, "_commit", then_another_tries))
    move(store_at(path, key), destination, "Ann")
    assert codes
    assert set(codes) == {1}
    assert opened(there, key=key).spent == opened(path, key=key).spent == dp.PureDP("0.3")


def test_no_record_follows_the_one_that_a_ledger_was_moved_by(path: Path, key: str | None) -> None:
    """Whoever sealed it."""
    there = path.parent / "there" / "budget.db"
    there.parent.mkdir()
    moved(path, there, key)
    with pytest.raises(dp.LedgerError, match="written after the ledger had been moved"):
        store_at(path, key).read().next(Draft("default", "charged", amount=TENTH))


def test_a_head_file_of_a_ledger_that_was_only_begun_is_refused(
    path: Path, key: str | None
) -> None:
    """It names no record that could be compared."""
    beside = Path(f"{path}.head")
    beside.unlink()
    HeadFile(beside, Seal(key), alone=True).begin("0" * 32)
    with pytest.raises(dp.LedgerError, match="is of another ledger"):
        opened(path, key=key)
