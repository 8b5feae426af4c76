"""Many processes, and processes that are killed: never more is released than was charged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dpframe as dp
from tests.ledger.ledgers import (
    TENTH,
    UNIT,
    Place,
    exists,
    fresh,
    in_child,
    in_memory,
    opened,
    sql,
    verify,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")

MANY = dp.PureDP(10**6)


def started(work: Callable[[], int]) -> int:
    """A forked process that does this; its number."""
    process = os.fork()
    if not process:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return process


@pytest.mark.parametrize(
    ("processes", "spends", "fits"),
    [
        (2, 10, 15),
        (8, 10, 50),
        pytest.param(16, 200, 2000, marks=pytest.mark.slow),
        pytest.param(16, 200, 3200, marks=pytest.mark.slow),
    ],
)
def test_processes_are_granted_exactly_what_fits(
    place: Place, processes: int, spends: int, fits: int
) -> None:
    budget = TENTH.of(TENTH.main * fits)

    def spend() -> int:
        ledger = opened(place, budget, timeout=300)  # each creates it, if it is the first
        released = 0
        for _ in range(spends):
            try:
                ledger.settle(ledger.charge(TENTH, str(os.getpid()), UNIT), "released")
                released += 1
            except dp.BudgetExceeded:
                continue
        return released

    running = [started(spend) for _ in range(processes)]
    released = [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in running]
    assert sum(released) == fits
    ledger = opened(place, budget)
    assert ledger.spent == budget
    assert len(ledger.entries) == fits
    assert {e.status for e in ledger.entries} == {"released"}
    by_process = [sum(e.fingerprint == str(p) for e in ledger.entries) for p in running]
    assert by_process == released
    ledger.verify()


def test_a_forked_process_shares_the_budget_of_its_parent(place: Place) -> None:
    ledger = opened(place)
    ledger.charge(TENTH, "parent")

    def spend() -> int:
        for _ in range(3):
            ledger.settle(ledger.charge(TENTH, "child"), "released")
        return 0

    for _ in range(3):
        assert in_child(spend) == 0
    assert ledger.spent == dp.PureDP(1)
    with pytest.raises(dp.BudgetExceeded):
        ledger.charge(TENTH, "parent")
    ledger.verify()


def test_a_budget_in_memory_does_not_survive_a_fork() -> None:
    ledger = in_memory(dp.PureDP(1))
    ledger.charge(TENTH, "parent")

    def spend() -> int:
        try:
            ledger.charge(TENTH, "child")
        except dp.LedgerError as error:
            return 7 if "forked" in str(error) else 8
        return 0

    assert in_child(spend) == 7
    ledger.charge(TENTH, "parent")


# -- killed -----------------------------------------------------------------------------------


def release(place: Place, report: int) -> int:
    """What a release does: charge, read, settle, and only then show what came out."""
    ledger = opened(place, MANY)
    number = ledger.charge(TENTH, "f", UNIT)
    os.write(report, b"read ")
    ledger.settle(number, "released")
    os.write(report, b"released ")
    return 0


def killed_at(step: int) -> Callable[[FrameType, str, Any], Any]:
    """Counts the lines of the ledger's code that are run, and ends the process at one."""
    left = step

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if "/dpframe/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def require_counted(place: Place, before: int, reported: bytes) -> None:
    """The ledger verifies, and counts whatever came out."""
    if exists(place):
        verify(place)
    ledger = opened(place, MANY)
    entries = ledger.entries
    assert before + reported.count(b"read") <= len(entries) <= before + 1
    assert ledger.spent.main == TENTH.main * len(entries)
    settled = sum(e.status == "released" for e in entries)
    assert settled >= reported.count(b"released")


@pytest.mark.always
@pytest.mark.parametrize("new", [True, False], ids=["a new ledger", "a ledger in use"])
@pytest.mark.parametrize("stride", [151, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_line(place: Place, new: bool, stride: int) -> None:
    kills, step = 0, 1
    if not isinstance(place, Path):  # a kill takes longer there
        stride *= 2 if stride > 1 else 3
        step = random.SystemRandom().randint(1, stride)
    while step < 10_000:
        at = fresh(place, step)
        if not new:
            opened(at, MANY).charge(TENTH, "first", UNIT)
        reading, writing = os.pipe()

        def work(at: Place = at, step: int = step, writing: int = writing) -> int:
            sys.settrace(killed_at(step))
            return release(at, writing)

        code = in_child(work)
        os.close(writing)
        reported = os.read(reading, 1000)
        os.close(reading)
        require_counted(at, 0 if new else 1, reported)
        if code == 0:
            assert b"released" in reported
            break
        assert code == -signal.SIGKILL
        kills += 1
        step += stride
    assert 400 // stride < kills < 9_000 // stride


@pytest.mark.parametrize("kills", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_killed_at_any_moment(place: Place, kills: int) -> None:
    """Also within SQLite, between its writes, and while a server commits."""
    read = released = 0
    wait = random.Random(1)
    opened(place, MANY)
    for _ in range(kills):
        reading, writing = os.pipe()

        def work(writing: int = writing) -> int:
            while True:
                release(place, writing)

        process = started(work)
        os.close(writing)
        assert os.read(reading, 1)  # it has begun
        time.sleep(wait.uniform(0, 0.02))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        reported = b"."
        while part := os.read(reading, 1 << 16):
            reported += part
        os.close(reading)
        read += reported.count(b"read") + (reported[:5] == b".ead ")
        released += reported.count(b"released")
        verify(place)
        ledger = opened(place, MANY)
        assert ledger.spent.main == TENTH.main * len(ledger.entries)
        assert read <= len(ledger.entries)
        assert released <= sum(e.status == "released" for e in ledger.entries)
    assert read <= len(opened(place, MANY).entries) <= read + kills
    if isinstance(place, Path):
        assert sql(place, "PRAGMA integrity_check") == [("ok",)]


RELEASE = """
import sys, polars as pl, dpframe as dp
session = dp.Session(epsilon=1000000, ledger=sys.argv[1])
query = session.protect(pl.DataFrame({"a": [1, 2, 3]}), dp.Rows()).dp_count()
while True:
    query.collect(epsilon=0.1)
    print("released", flush=True)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_during_whole_releases(place: Place, kills: int) -> None:
    released = 0
    wait = random.Random(2)
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", RELEASE, str(place)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        released += process.stdout.readline().count(b"released")
        time.sleep(wait.uniform(0, 0.1))
        process.kill()
        released += process.communicate()[0].count(b"released")
        ledger = opened(place, MANY)
        ledger.verify()
        statuses = [e.status for e in ledger.entries]
        assert released <= statuses.count("released")
        assert ledger.spent.main == TENTH.main * len(statuses)
        assert "failed" not in statuses
    assert released >= kills
