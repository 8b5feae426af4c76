"""The line of a long run: there for whoever looks at a terminal, gone at the end, silent else."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe import progress

RUN = """
import time
import polars as pl
import dpframe as dp
frame = pl.DataFrame({"x": [1, 2, 3]})
def slow(rows):
    print("reading", flush=True)
    time.sleep(SECONDS)
    return rows
session = dp.Session(epsilon=1)
people = session.protect(frame.lazy().map_batches(slow, schema=frame.schema), dp.Rows())
try:
    people.dp_count().collect(epsilon=0.5)
except BaseException as error:
    print(type(error).__name__, flush=True)
print("spent", session.spent.epsilon, flush=True)
import threading
print("threads", [t.name for t in threading.enumerate() if "dpframe" in t.name], flush=True)
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[str]:
    return [line.strip() for line in stream.getvalue().split("\r") if line.strip()]


def seen(text: str) -> str:
    """What a terminal shows of one line at the end."""
    shown: list[str] = []
    for line in text.split("\r"):
        shown[: len(line)] = line
    return "".join(shown).strip()


def test_stages_are_shown_and_erased() -> None:
    stream = io.StringIO()
    with progress.Progress(stream, first=0.01, every=0.01) as line:
        line.stage("reading the data, which takes long")
        time.sleep(0.2)
        line.stage("adding noise")
        time.sleep(0.2)
    found = lines(stream)
    assert found[0] == "dpframe: reading the data, which takes long, 0 s"
    assert found[-1] == "dpframe: adding noise, 0 s"
    assert seen(stream.getvalue()) == ""
    assert not [t for t in threading.enumerate() if t.name.startswith("dpframe")]


def test_short_runs_show_nothing() -> None:
    stream = io.StringIO()
    with progress.Progress(stream, first=10**5) as line:  # the end does not wait for the line
        line.stage("reading the data")
    assert stream.getvalue() == ""


def test_a_failure_erases_the_line_too() -> None:
    stream = io.StringIO()

    def interrupted() -> None:
        with progress.Progress(stream, first=0.01, every=0.01) as line:
            line.stage("reading the data")
            time.sleep(0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert lines(stream)
    assert seen(stream.getvalue()) == ""
    assert not [t for t in threading.enumerate() if t.name.startswith("dpframe")]


def test_a_broken_stream_breaks_no_run() -> None:
    class Broken(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    with progress.Progress(Broken(), first=0.01, every=0.01):
        time.sleep(0.1)
    assert not [t for t in threading.enumerate() if t.name.startswith("dpframe")]


def test_only_terminals_and_notebooks_are_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert progress._stream() is terminal
    monkeypatch.setenv(progress.VARIABLE, "off")
    assert progress._stream() is None
    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress._stream() is None
    monkeypatch.setattr(sys, "stderr", None)
    assert progress._stream() is None


def test_a_notebook_is_told_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        kernel: object = object()

    class IPython:
        shell: Shell | None = Shell()

        @classmethod
        def get_ipython(cls) -> Shell | None:
            return cls.shell

    plain = io.StringIO()
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "stderr", plain)
    monkeypatch.setitem(sys.modules, "IPython", IPython)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "ipykernel", io)
    assert progress._stream() is plain
    IPython.shell = None
    assert progress._stream() is None


def run(seconds: float, *, interrupt: bool = False, **environment: str) -> tuple[str, str]:
    """What a script prints, and what its terminal got."""
    master, slave = pty.openpty()
    root = str(Path(__file__).parents[1])
    known = {k: v for k, v in os.environ.items() if k != progress.VARIABLE}
    child = subprocess.Popen(
        [sys.executable, "-c", RUN.replace("SECONDS", str(seconds))],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**known, "PYTHONPATH": root, **environment},
        text=True,
    )
    os.close(slave)
    terminal = b""
    sent = False
    until = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < until:
        terminal += _available(master)
        if interrupt and not sent and b"reading the data" in terminal:
            child.send_signal(signal.SIGINT)
            sent = True
    printed, _ = child.communicate(timeout=60)
    terminal += _available(master)
    os.close(master)
    return printed, terminal.decode()


def _available(master: int) -> bytes:
    ready, _, _ = select.select([master], [], [], 0.1)
    if not ready:
        return b""
    try:
        return os.read(master, 4096)
    except OSError:  # the other end is closed
        time.sleep(0.01)
        return b""


def test_a_long_run_on_a_terminal_says_what_it_does() -> None:
    printed, terminal = run(3.2)
    seconds = [int(s) for s in re.findall(r"dpframe: reading the data, (\d+) s", terminal)]
    assert seconds, "nothing was shown"  # a busy machine may skip one
    assert 2 <= seconds[0] < seconds[-1] or seconds[0] > 2
    assert seconds == sorted(seconds)
    assert seen(terminal) == ""
    assert "spent 0.5" in printed
    assert "threads []" in printed


def test_a_long_run_can_be_silenced() -> None:
    _, terminal = run(2.6, DPFRAME_PROGRESS="off")
    assert terminal == ""


def test_a_long_run_without_a_terminal_is_silent() -> None:
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", RUN.replace("SECONDS", "2.6")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
        check=True,
    )
    assert done.stderr == ""
    assert "spent 0.5" in done.stdout


def test_an_interrupt_erases_the_line_and_keeps_the_charge() -> None:
    printed, terminal = run(4, interrupt=True)
    assert "reading the data" in terminal
    assert seen(terminal) == ""
    assert "KeyboardInterrupt" in printed or "EngineError" in printed
    assert "spent 0.5" in printed
    assert "threads []" in printed


def test_parts_are_those_of_the_run_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    progress.part("nothing", 1, 2)
    with progress.progress() as line:
        progress.part("reading the data", 2, 5)
        assert line._stage == "reading the data, part 2 of 5"
        with progress.progress() as inner:
            progress.part("inside", 1, 1)
            assert inner._stage == "inside, part 1 of 1"
        progress.part("reading the data", 3, 5)
        assert line._stage == "reading the data, part 3 of 5"
    progress.part("nothing", 2, 2)
    assert line._stage == "reading the data, part 3 of 5"


def test_buckets_of_people_are_shown_as_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(progress.Progress, "stage", lambda _, words: said.append(words))
    frame = pl.LazyFrame({"who": [1, 2, 3], "x": [1, 2, 3]})
    people = dp.Session(epsilon=1).protect(frame.filter(True), "who", memory="1GB", spill=False)
    people.agg(dp.n_unique("who")).collect(epsilon=0.5)
    parts = [words for words in said if "part" in words]
    assert parts == [f"reading the data, part {k} of 32" for k in range(1, 33)]
    assert said[0] == "charging the budget"
    assert said[-1] == "adding noise"
