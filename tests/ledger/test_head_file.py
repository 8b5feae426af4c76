"""The head file: compared at every use, and never written backwards."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger import head_file
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.record import Seal
from tests.ledger.ledgers import TENTH, filled, in_child, opened, sql

SEAL = Seal(None)


IDENTITY = "5" * 32


def head(seq: int, tip: str = "a", identity: str | None = IDENTITY) -> Seen:
    return Seen(seq, tip * 64, identity)


def written(to: HeadFile, made: Seen) -> None:
    with to.open() as file:
        to.write(file, made)


def line(made: Seen) -> bytes:
    """What docs/ledger.md says of the format, without the code of the package."""
    first = ["head"] if made.identity is None else ["head file"]
    last = [] if made.identity is None else [made.identity]
    text = json.dumps(
        ["dpframe ledger 1", *first, made.seq, made.hash, *last], separators=(",", ":")
    )
    words = [f"{made.seq:020d}", made.hash, *last, hashlib.sha256(text.encode()).hexdigest()]
    return f"{' '.join(words)}\n".encode()


def identity_of(path: Path) -> str:
    ((found,),) = sql(path, "SELECT fingerprint FROM records WHERE act = 'identified'")
    return str(found)


# -- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False])
def test_the_newest_head_is_there(tmp_path: Path, alone: bool) -> None:
    made = HeadFile(tmp_path / "head", SEAL, alone=alone)
    assert made.read() is None
    for seq in (1, 2, 7):
        written(made, head(seq))
        assert made.read() == HeadFile(tmp_path / "head", SEAL, alone=alone).read() == head(seq)


def test_it_does_not_go_back(tmp_path: Path) -> None:
    """On a server another process of this machine may have charged later, and written first."""
    made = HeadFile(tmp_path / "head", SEAL, alone=False)
    written(made, head(7))
    written(made, head(6))
    written(made, head(7))
    assert made.read() == head(7)


@pytest.mark.parametrize("seq", [6, 7])
def test_with_a_file_nobody_else_may_have_written(tmp_path: Path, seq: int) -> None:
    made = HeadFile(tmp_path / "head", SEAL, alone=True)
    written(made, head(7))
    with pytest.raises(dp.LedgerError, match="written by another ledger"):
        written(made, head(seq, "b"))
    assert made.read() == head(7)


def test_another_record_of_the_same_number_is_refused(tmp_path: Path) -> None:
    made = HeadFile(tmp_path / "head", SEAL, alone=False)
    written(made, head(7))
    with pytest.raises(dp.LedgerError, match="written by another ledger"):
        written(made, head(7, "b"))


def test_it_is_not_read_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = HeadFile(tmp_path / "head", SEAL, alone=True)
    written(made, head(7))
    monkeypatch.setattr(head_file, "TIMEOUT", 0.02)
    with (tmp_path / "head").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(dp.LedgerError, match=r"head file .* is locked"):
            made.read()
        fcntl.flock(file, fcntl.LOCK_SH)
        assert made.read() == head(7)
        with pytest.raises(dp.LedgerError, match=r"head file .* is locked"):
            written(made, head(8))
    written(made, head(8))
    assert made.read() == head(8)


# -- beside a ledger --------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "budget.db"
    filled(made)
    return made


def test_a_head_that_is_ahead_is_noticed_by_who_uses_the_ledger_already(path: Path) -> None:
    """The version of the file has not changed, and its own head neither."""
    ledger, beside = opened(path), Path(f"{path}.head")
    ledger.charge(TENTH, "f")
    right = beside.read_bytes()
    beside.write_bytes(line(head(100, identity=identity_of(path))))
    for _ in range(2):
        with pytest.raises(dp.LedgerError, match="ends at record 10, and once had 100"):
            ledger.charge(TENTH, "f")
        with pytest.raises(dp.LedgerError, match="ends at record 10, and once had 100"):
            _ = ledger.spent
    beside.write_bytes(right)
    ledger.charge(TENTH, "f")


@pytest.mark.parametrize("seq", [3, 10])
def test_a_head_of_another_ledger_is_noticed_by_who_uses_the_ledger(path: Path, seq: int) -> None:
    ledger, beside = opened(path), Path(f"{path}.head")
    ledger.charge(TENTH, "f")
    beside.write_bytes(line(head(seq, identity=identity_of(path))))
    for _ in range(2):
        with pytest.raises(dp.LedgerError, match=r"does not belong|is not the one that"):
            ledger.charge(TENTH, "f")


def test_a_head_that_is_behind_is_brought_up_by_the_next_charge(path: Path) -> None:
    """So it is after a crash between the commit and the head file."""
    ledger, beside = opened(path), Path(f"{path}.head")
    before = beside.read_bytes()
    ledger.charge(TENTH, "f")
    beside.write_bytes(before)
    assert ledger.spent == opened(path).spent == dp.PureDP("0.4")
    assert beside.read_bytes() == before
    opened(path).charge(TENTH, "f")
    ((seq, tip),) = sql(path, "SELECT seq, hash FROM head")
    assert beside.read_bytes() == line(Seen(seq, tip, identity_of(path)))
    assert ledger.spent == dp.PureDP("0.5")


def test_a_head_that_can_only_be_read_is_found_before_the_charge() -> None:
    place = Path(tempfile.mkdtemp())  # everybody may enter its parents
    try:
        path = place / "budget.db"
        filled(path)
        place.chmod(0o777)
        path.chmod(0o666)
        Path(f"{path}-journal").unlink(missing_ok=True)
        Path(f"{path}.head").chmod(0o444)

        def charge() -> int:
            if not os.geteuid():
                os.setgid(65534)
                os.setuid(65534)
            ledger = opened(path)
            try:
                ledger.charge(TENTH, "f")
            except dp.LedgerError as error:
                return 7 if "Permission denied" in str(error) else 8
            return 0

        assert in_child(charge) == 7
        assert opened(path).spent == dp.PureDP("0.3")
    finally:
        shutil.rmtree(place)
