"""Interrupts at every place where a lock is acquired or released: nothing stays held.

An exception is raised before one instruction after another, while work runs, until it runs to its
end. Each time the exception is kept, with all frames of its traceback, and then another thread and
somebody with an open file of their own, as other processes have, get the lock at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

import dpframe as dp
from dpframe.ledger import head_file, sqlite
from dpframe.ledger import store as transactions
from dpframe.ledger.contents import FolderContents, is_held
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.locks import REGISTER, Exclusive, Turn, _fork
from dpframe.ledger.record import Draft, Seal
from dpframe.ledger.sqlite import lock_of
from tests.ledger.ledgers import TENTH, UNIT, Place, in_memory, opened, store_at, verify
from tests.postgres import Server

fcntl = pytest.importorskip("fcntl")

SOON = 30.0
"""Seconds in which anything happens that is going to happen."""

ALL = "dpframe/ledger/"
LOCKING = tuple(
    ALL + name for name in ("locks.py", "head_file.py", "store.py", "sqlite.py", "postgres.py")
)


class Stop(KeyboardInterrupt):
    """An interrupt of this test."""


class _Tracer:
    """Raises before an instruction or line with a number, in files of some names."""

    def __init__(self, number: int, files: tuple[str, ...], opcodes: bool) -> None:
        self.number = number
        self.files = files
        self.opcodes = opcodes
        self.seen = 0

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not any(part in name for part in self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = self.opcodes, not self.opcodes
        return self._within

    def _within(self, frame: Any, event: str, _: Any) -> Any:
        if event == ("opcode" if self.opcodes else "line"):
            self.seen += 1
            if self.seen == self.number:
                raise Stop
        return self._within


def handling(work: Callable[[], object]) -> None:
    """Do some work while an exception is handled.

    Python may go on to handle an exception for ever if it is interrupted at the last instructions
    of its handler. It stops when a handler around that ends.
    """
    try:
        raise LookupError
    except LookupError:
        work()


@pytest.fixture(autouse=True)
def _no_exception_is_handled_afterwards() -> Iterator[None]:
    yield
    assert sys.exc_info()[1] is None


def interrupts(
    work: Callable[[], object],
    files: tuple[str, ...] = (ALL,),
    *,
    opcodes: bool = True,
    every: int = 1,
) -> Iterator[BaseException]:
    """What was raised where work was interrupted, at one place after another."""
    number = 1
    while True:
        tracer = _Tracer(number, files, opcodes)
        raised: BaseException | None = None
        sys.settrace(tracer)
        try:
            handling(work)
        except (Stop, dp.DPFrameError) as error:
            raised = error
        finally:
            sys.settrace(None)
        if tracer.seen < number:
            assert number > 20  # there was something to interrupt
            return
        if raised is not None:  # a hook of a fork raises nothing
            yield raised
        number += every


def elsewhere(work: Callable[[], object]) -> None:
    """Another thread does it, soon."""
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(SOON)
    assert len(done) == 1


@pytest.fixture(params=[True, False], ids=["by description", "beside"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param and not sqlite.BY_DESCRIPTION:
        pytest.skip("this system has no locks of open file descriptions")
    monkeypatch.setattr(sqlite, "BY_DESCRIPTION", request.param)


def nothing() -> None:
    """No work."""


def refused() -> None:
    """Work that is refused."""
    raise dp.BudgetExceeded("too much")


def free(path: Path) -> None:
    """Somebody else gets both bytes of a file, or the file beside it."""
    beside = path.with_name(path.name + ".lock")
    if not sqlite.BY_DESCRIPTION and not beside.exists():
        return
    file = os.open(path if sqlite.BY_DESCRIPTION else beside, os.O_RDWR)
    try:
        if sqlite.BY_DESCRIPTION:
            sqlite._set(file, fcntl.F_WRLCK, sqlite.GATE, length=2)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(file)


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(("work", "writing"), [(nothing, True), (refused, False)])
def test_the_lock_of_a_file(tmp_path: Path, work: Any, writing: bool) -> None:
    path = tmp_path / "budget.db"
    path.touch()
    lock = lock_of(path, create=False)

    def twice() -> None:
        lock.run(lambda: lock.run(work, writing=False, timeout=0), writing=writing, timeout=0)

    for _ in interrupts(twice):
        free(path)
        elsewhere(lambda: lock.run(nothing, writing=True, timeout=0))


@pytest.mark.parametrize("make", [Exclusive, Turn])
@pytest.mark.parametrize("work", [nothing, refused])
def test_the_turn_of_a_thread(make: Any, work: Any) -> None:
    turn = make()

    def twice() -> None:
        turn.run(lambda: turn.run(work))

    for _ in interrupts(twice):
        elsewhere(lambda: turn.run(nothing))


def test_a_turn_that_waits() -> None:
    turn = Turn()
    for _ in interrupts(lambda: turn.run(lambda: turn.pause(nothing))):
        elsewhere(lambda: turn.run(nothing))
        turn.before_fork()
        turn.after_fork()


@pytest.mark.parametrize("which", range(3))
def test_each_interrupt_of_a_fork(which: int) -> None:
    """Python shows what a hook raises, and forks all the same."""
    hooks = (_fork.before, _fork.let_go, _fork.let_go)  # as they are registered
    turn, number, found = Turn(), 0, True
    while found:
        number += 1
        tracer = _Tracer(number, (ALL,), opcodes=True)
        for place, hook in enumerate(hooks):
            sys.settrace(tracer if place == which else None)
            with suppress(Stop):
                handling(hook)
            sys.settrace(None)
        found = tracer.seen >= number
        elsewhere(lambda: REGISTER.run(nothing))
        elsewhere(lambda: turn.run(nothing))
    assert number > 20


def test_a_head_file(tmp_path: Path) -> None:
    head = HeadFile(tmp_path / "h", Seal(None), alone=True)
    seen = Seen(1, "ab" * 32, "cd" * 16)
    head.reset(seen)

    def using() -> None:
        assert head.read() == seen
        head.reset(seen)

    for _ in interrupts(using):
        file = os.open(tmp_path / "h", os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        os.write(file, head._line(seen))
        os.close(file)


def test_who_computes_a_result(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path / "b")
    contents.prepare()
    token = "1" * 32

    def computing() -> None:
        contents.present(token, lambda: contents.write(7, [b"one", b"two"]))

    for _ in interrupts(computing):
        for name in os.listdir(contents.releases):
            assert not is_held(contents.releases / name)


def test_where_ledgers_are() -> None:
    try:
        for _ in interrupts(lambda: head_file.claim("1", "here", "here", lambda: True)):
            elsewhere(lambda: head_file.claim("1", "here", "here", lambda: True))
    finally:
        head_file._USED.pop("1", None)


@pytest.mark.parametrize(
    ("files", "opcodes"),
    [
        (("locks.py",), True),
        (("store.py", "chain.py", "ledger.py"), False),
        pytest.param(("store.py",), True, marks=pytest.mark.slow),
    ],
)
def test_a_budget_in_memory(files: tuple[str, ...], opcodes: bool) -> None:
    """What is interrupted may count, and what came out has."""
    ledger, released = in_memory(dp.PureDP(1000)), 0

    def charging() -> None:
        nonlocal released
        ledger.charge(TENTH, "f", UNIT)
        released += 1

    for _ in interrupts(charging, tuple(ALL + name for name in files), opcodes=opcodes):
        elsewhere(lambda: ledger.charge(dp.PureDP(0), "f"))
        assert ledger.spent.main >= released * TENTH.main
    assert sum((entry.cost.main for entry in ledger.entries), Fraction(0)) == ledger.spent.main
    ledger.verify()


def assert_usable(place: Place, ledger: Any) -> None:
    """Another thread and another store, as of another process, write at once."""
    elsewhere(lambda: ledger.charge(dp.PureDP(0), "f"))
    if isinstance(place, Path):
        free(place)
    else:
        with psycopg.connect(place) as connection:
            connection.execute("SET statement_timeout = 5000")
            connection.execute("LOCK TABLE dpframe_ledger.head IN EXCLUSIVE MODE")


@pytest.mark.parametrize("act", ["charge", "refuse", "read"])
def test_a_ledger(place: Place, act: str) -> None:
    ledger = opened(place, dp.PureDP(1000))
    ledger.charge(TENTH, "f", UNIT)

    def using() -> None:
        if act == "read":
            ledger._store.read()
        else:
            ledger.charge(TENTH if act == "charge" else dp.PureDP(10**6), "f", UNIT)

    every = 9 if isinstance(place, Path) else 40  # each instruction in the slow suite
    for _ in interrupts(using, LOCKING, opcodes=False, every=every):
        assert_usable(place, ledger)
    charges = len(ledger.entries)
    fresh = opened(place, dp.PureDP(1000))
    assert len(fresh.entries) == charges
    assert fresh.spent == ledger.spent
    verify(place)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["charge", "read"])
def test_a_ledger_at_each_instruction(place: Place, act: str) -> None:
    ledger = opened(place, dp.PureDP(10000))

    def using() -> None:
        ledger._store.read() if act == "read" else ledger.charge(TENTH, "f", UNIT)

    for _ in interrupts(using, LOCKING):
        assert_usable(place, ledger)
    assert opened(place, dp.PureDP(10000)).spent == ledger.spent
    verify(place)


def test_who_computes_a_result_of_a_server(server: Server) -> None:
    url = server.empty()
    opened(url)
    contents, asking = store_at(url).contents, store_at(url).contents
    contents.prepare()
    token = "2" * 32
    files = (ALL + "postgres.py", ALL + "locks.py")
    for _ in interrupts(lambda: contents.present(token, nothing), files, every=9):
        assert not asking.is_present(token)


def test_records_of_others_that_were_read_by_half_are_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of the chain in memory is trusted once all new records are in it."""
    monkeypatch.setattr(transactions, "SHORT", 0)  # else everything is read again in any case
    ledger = opened(place, dp.PureDP(1000))
    ledger.charge(TENTH, "f", UNIT)
    chain_type = type(ledger._store.read())
    real, at = chain_type._apply, 0
    for at in range(3):
        other = opened(place, dp.PureDP(1000))
        for _ in range(2):
            other.charge(TENTH, "f", UNIT)
        seen = 0

        def interrupted(self: Any, record: Any, at: int = at) -> None:
            nonlocal seen
            real(self, record)
            seen += 1
            if seen == at + 1:
                raise Stop

        monkeypatch.setattr(chain_type, "_apply", interrupted)
        with suppress(Stop):
            ledger._store.read()
        monkeypatch.setattr(chain_type, "_apply", real)
        assert ledger.spent == other.spent == opened(place, dp.PureDP(1000)).spent
    assert len(ledger.entries) == 7


@pytest.mark.parametrize("applied", [False, True])
def test_an_own_record_that_was_added_by_half_is_read_again(
    place: Place, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the tables already, where the copy of the chain in memory may lack it."""
    monkeypatch.setattr(transactions, "SHORT", 0)  # else everything is read again in any case
    ledger = opened(place, dp.PureDP(1000))
    ledger.charge(TENTH, "f", UNIT)
    chain_type = type(ledger._store.read())
    real = chain_type._apply

    def interrupted(self: Any, record: Any) -> None:
        if applied:
            real(self, record)
        raise Stop

    monkeypatch.setattr(chain_type, "_apply", interrupted)
    with pytest.raises(Stop):
        ledger.charge(TENTH, "f", UNIT)
    monkeypatch.setattr(chain_type, "_apply", real)
    assert ledger.spent == opened(place, dp.PureDP(1000)).spent
    ledger.charge(TENTH, "f", UNIT)
    assert ledger.spent == opened(place, dp.PureDP(1000)).spent
    verify(place)


CHILD = """
import sys, threading
from pathlib import Path
import dpframe as dp
from tests.ledger.ledgers import TENTH, UNIT, opened

ledger = opened(Path(sys.argv[1]), dp.PureDP(100000), timeout=30)
released = 0

def charging():
    global released
    while True:
        ledger.settle(ledger.charge(TENTH, "f", UNIT), "released")
        released += 1

print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    try:
        charging()
    except KeyboardInterrupt as error:
        kept = error
    thread = threading.Thread(target=lambda: ledger.charge(TENTH, "f", UNIT), daemon=True)
    thread.start()
    thread.join(30)
    print("stuck" if thread.is_alive() else "free", flush=True)
print(released, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals are sent")
@pytest.mark.parametrize("times", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_process_that_is_interrupted(tmp_path: Path, times: int) -> None:
    path = tmp_path / "budget.db"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(times)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        for number in range(times):
            threading.Event().wait(0.01 + number % 7 * 0.003)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "free\n"
        released = int(process.stdout.readline())
        ledger = opened(path, dp.PureDP(100000))  # while the other one lives
        ledger.charge(TENTH, "f", UNIT)
        assert ledger.spent.main >= (released + times + 1) * TENTH.main
        verify(path)
    finally:
        process.stdin.close()
        process.wait(SOON)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_a_fork_does_not_wait_for_who_waits_for_a_lock(place: Place) -> None:
    """Only for who reads or writes; the child has the ledger at once."""
    ledger, waits = opened(place, timeout=SOON), threading.Event()
    store, holding, leave = store_at(place, timeout=SOON), threading.Event(), threading.Event()
    real = Turn.pause

    def pausing(self: Turn, work: Any) -> Any:
        if self is ledger._store.turn:
            waits.set()
        return real(self, work)

    def held(_: object) -> Draft:
        holding.set()
        assert leave.wait(SOON)
        return Draft("default", "charged", None, "f", UNIT, TENTH)

    if isinstance(place, Path):
        program = HOLDER.format(path=str(place))
        holder = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        release = holder.stdin.close
    else:
        threading.Thread(target=lambda: store.append(held), daemon=True).start()
        assert holding.wait(SOON)
        release = leave.set
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turn, "pause", pausing)
        thread = threading.Thread(target=lambda: ledger.charge(TENTH, "f", UNIT), daemon=True)
        thread.start()
        assert waits.wait(SOON)
        if not isinstance(place, Path):
            store.turn.in_child()  # the other one is another process's
        child = os.fork()
        if not child:
            code = 1
            with suppress(BaseException):
                assert not ledger._store.turn.is_own
                ledger._store.turn.run(nothing)
                code = 0
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert thread.is_alive()
        release()
        thread.join(SOON)
    assert not thread.is_alive()
    verify(place)


HOLDER = """
import sys
from pathlib import Path
from dpframe.ledger.sqlite import lock_of

def held():
    print("held", flush=True)
    sys.stdin.read()

lock_of(Path({path!r}), create=False).run(held, writing=True, timeout=5)
"""
