"""Streams in many processes, and in processes that are killed: each row is drawn once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger import chain as checkpoints
from dpframe.ledger import contents
from dpframe.ledger import store as transactions
from dpframe.ledger.chain import Chain, row_of
from dpframe.ledger.record import Draft, Seal, sealed
from dpframe.ledger.sqlite import SqliteStore
from dpframe.ledger.store import Tables
from tests.ledger.ledgers import Place, sql, store_at, verify
from tests.streams.child import DATA, PERIODS, opened, session_of, totals
from tests.streams.nights import day

PATIENCE = 300
"""Seconds for a process on a busy machine."""


def child(place: Place, what: str, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.streams.child", str(place), what, str(file)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def spent(place: Place) -> dp.Budget:
    return session_of(place).spent


def acts(place: Place) -> list[str]:
    table = "records" if isinstance(place, Path) else "dpframe_ledger.records"
    return [row[0] for row in sql(place, f"SELECT act FROM {table} ORDER BY seq")]


def handed_out(file: Path) -> list[tuple[int, int]]:
    """Whole lines, for a process may be killed while it writes one."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [(int(n), int(total)) for n, total in (line.split() for line in lines)]


def test_four_schedulers_hand_out_the_same(place: Place, tmp_path: Path) -> None:
    """Opened by four at once, released by four at once: one charge, and one number for each
    period.
    """
    files = [tmp_path / f"seen {number}" for number in range(4)]
    children = [child(place, str(number), file) for number, file in enumerate(files)]
    assert [one.wait(PATIENCE) for one in children] == [0] * 4
    final = totals(opened(place), PERIODS)
    seen = [pair for file in files for pair in handed_out(file)]
    assert len(seen) > 15
    assert all(final[n] == total for n, total in seen)
    assert spent(place) == dp.ZCDP("0.5")
    assert acts(place).count("stream") == acts(place).count("charged") == 1
    verify(place)


@pytest.mark.parametrize("point", ["before", "content", "record"])
def test_killed_at_each_point(place: Place, point: str, tmp_path: Path) -> None:
    """Before anything is kept, between content and record, and after the record: the next process
    goes on, and what was handed out is what it hands out.
    """
    first = totals(opened(place), 2)
    assert child(place, point, tmp_path / "none").wait(PATIENCE) == -signal.SIGKILL
    left = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    drawn = acts(place).count("drawn")
    assert drawn == (3 if point == "record" else 2)
    assert not isinstance(place, Path) or len(left) == (2 if point == "before" else 3)
    found = totals(opened(place), 4)
    assert found[:2] == first
    assert all(path.read_bytes() == content for path, content in left.items())
    stream = opened(place)
    assert stream.periods["drawn"].sum() == 4
    assert not stream.periods["lost"].any()
    assert totals(stream, 4) == found
    assert spent(place) == dp.ZCDP("0.5")
    verify(place)


def test_killed_at_random_points(tmp_path: Path) -> None:
    """Whatever was handed out before is handed out for ever."""
    place, handed = tmp_path / "b.db", tmp_path / "handed"
    chosen = random.Random(5)
    for number in range(5):
        one = child(place, str(number), handed)
        until = len(handed_out(handed)) + chosen.randrange(4)
        while len(handed_out(handed)) <= until and one.poll() is None:
            time.sleep(0.01)
        time.sleep(chosen.uniform(0.0, 0.1))
        one.kill()
        one.wait()
    final = totals(opened(place), PERIODS)
    assert all(final[n] == total for n, total in handed_out(handed))
    assert len(handed_out(handed)) > 2
    assert spent(place) == dp.ZCDP("0.5")
    verify(place)
    assert not list(tmp_path.rglob("*.part"))


def test_folders_without_nameless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_nameless", lambda folder: None)
    found = contents.FolderContents(tmp_path / "f")
    assert found.rows(1, [2]) == [None]
    assert found.keep_rows(1, 2, b"one") == b"one"
    assert [found.keep_rows(1, 2, b"two")] == found.rows(1, [2]) == [b"one"]
    assert [path.name for path in found.streams.iterdir()] == ["000000001-000002.json"]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    place = tmp_path / "b.db"
    totals(opened(place), 3)
    return place


FORGED: dict[str, Callable[[], Draft]] = {
    "a row drawn twice": lambda: Draft(
        "default", "drawn", 3, "0" * 64, why='{"first": 2, "last": 2}'
    ),
    "a row left out": lambda: Draft("default", "drawn", 3, "0" * 64, why='{"first": 4, "last": 4}'),
    "rows that end before they begin": lambda: Draft(
        "default", "drawn", 3, "0" * 64, why='{"first": 3, "last": 2}'
    ),
    "more rows than there are": lambda: Draft(
        "default", "drawn", 3, "0" * 64, why='{"first": 3, "last": 8}'
    ),
    "a row of no stream": lambda: Draft(
        "default", "drawn", 2, "0" * 64, why='{"first": 3, "last": 3}'
    ),
    "no digest": lambda: Draft("default", "drawn", 3, "0", why='{"first": 3, "last": 3}'),
    "a row of another budget": lambda: Draft(
        "other", "drawn", 3, "0" * 64, why='{"first": 3, "last": 3}'
    ),
    "a stream of that name": lambda: Draft(
        "default",
        "stream",
        fingerprint="0" * 64,
        why='{"stream": "s", "definition": "' + "0" * 64 + '", "periods": 3}',
    ),
    "a stream without periods": lambda: Draft(
        "default",
        "stream",
        fingerprint="0" * 64,
        why='{"stream": "t", "definition": "' + "0" * 64 + '", "periods": 0}',
    ),
    "a stream that nobody pays for": lambda: Draft(
        "default",
        "stream",
        fingerprint="0" * 64,
        why='{"stream": "t", "definition": "' + "0" * 64 + '", "periods": 3}',
    ),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.always] * (case == "a stream of that name"))
        for case in FORGED
    ],
)
def test_forged_records_are_refused(filled: Path, case: str) -> None:
    """Without a key anyone can write records whose hashes are right."""
    dp.Session(rho=1, ledger=filled, name="other")
    store = store_at(filled)
    store.read()
    drafts = [FORGED[case]()]
    if case == "a stream that nobody pays for":
        drafts.append(Draft("default", "drawn", 3, "0" * 64, why='{"first": 3, "last": 3}'))
    seal = Seal(None)

    def forging(tables: Tables, chain: Chain, _: object) -> None:
        seq, tip = chain.length, chain.tip
        for draft in drafts:
            record = sealed(draft, seq + 1, "2027-01-01T00:00:00+00:00", tip, seal)
            tables.append([row_of(record)], seal.head(record.seq, record.hash))
            seq, tip = record.seq, record.hash

    store.write(forging)
    fresh = SqliteStore(filled, Seal(None))
    with pytest.raises(dp.LedgerError, match="does not verify"):
        fresh.read()


def test_streams_outlive_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checkpoints, transactions):
        monkeypatch.setattr(module, "EVERY", 5)
    monkeypatch.setattr(transactions, "LISTED", 5)
    place = tmp_path / "b.db"
    found = totals(opened(place), 4)
    session = dp.Session(rho=1, ledger=place)
    query = session.protect(DATA, unit=dp.Rows(), name="v").dp_count()
    for _ in range(12):
        query.collect(rho="0.01")
    assert acts(place).count("checkpoint") >= 2
    stream = opened(place)
    assert totals(stream, 4) == found
    assert stream.release(day(5)).height == 1
    assert totals(opened(place), 4) == found
    verify(place)
