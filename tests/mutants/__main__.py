"""`python -m tests.mutants`: plant mistakes, run the tests that reach them, list who survives.

Mistakes are drawn at random from what decides privacy or money. Each is planted alone in a copy of
the project and meets the quick tests that run its line, the quickest first, up to a number of
seconds; what survives meets all of them. `survivors.toml` beside this file explains those that no
test can or need see. Exit code 1 when there is one without an explanation.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.reached import Reached, measure, read, summary

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".mutants"
EXPLAINED = Path(__file__).parent / "survivors.toml"
PACKAGES = (
    *("parse", "rows", "frames", "aggregates", "mechanisms", "samplers", "optimise", "accounting"),
    *("charge.py", "ledger", "release", "lower", "core", "workloads", "kernel"),
    *("pipeline.py", "runner.py", "soundness.py", "streaming.py"),
)
_LEFT = ("site", "dist", "__pycache__")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: `killed`, `survived`, or `unreached` when no test runs its line."""

    mutant: Mutant
    fate: str
    tests: int
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=1500, help="how many are drawn (1500)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="only in paths that contain this")
    parser.add_argument("--seconds", type=float, default=8.0, help="of tests per mutant at first")
    parser.add_argument("--most", type=float, default=40.0, help="of tests for one that survives")
    parser.add_argument("--deeper", action="store_true", help="try earlier survivors again")
    parser.add_argument("--again", action="store_true", help="measure anew which tests run what")
    parser.add_argument("--names", type=Path, help="a file of mutants, to plant these only")
    parser.add_argument("--tests", nargs="+", help="with --names, against these paths")
    asked = parser.parse_args()
    named = [] if asked.names is None else _named(asked.names)
    if named and asked.tests:
        return _plant(named, asked.tests)
    if asked.again or not (FOLDER / "durations.xml").exists():
        measure(ROOT, FOLDER, asked.jobs)
    reached = read(ROOT, FOLDER)
    print("measured", summary(reached), flush=True)
    drawn = named or _drawn(asked.number, asked.seed, asked.only)
    return _report(_judged(drawn, reached, asked))


def _named(file: Path) -> list[Mutant]:
    """The mutants that a file names, one on each line; those that exist no more are said."""
    wanted = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    files = dict.fromkeys(ROOT / name.split(" ")[0] for name in wanted if name)
    there = [path for path in files if path.exists()]
    found = {mutant.name: mutant for path in there for mutant in mutants_of(path, ROOT)}
    for name in wanted:
        if name and name not in found:
            print("gone    ", name, flush=True)
    return [found[name] for name in wanted if name in found]


def _plant(wanted: Sequence[Mutant], tests: Sequence[str]) -> int:
    """Plant these mutants in turn, and see whether these tests notice them."""
    bench = _Bench(_copy(FOLDER / f"copy-{os.getpid()}"))
    survived = 0
    try:
        if bench.fails(tests, 120):
            raise SystemExit("the tests fail without any mistake")
        for mutant in wanted:
            with _planted(mutant, bench.copy):
                killed = bench.fails(tests, 120)
            print("killed  " if killed else "survived", mutant.name, flush=True)
            survived += not killed
    finally:
        shutil.rmtree(bench.copy)
    return 1 if survived else 0


@contextmanager
def _planted(mutant: Mutant, copy: Path) -> Iterator[None]:
    path = copy / mutant.path
    true = path.read_text(encoding="utf-8")
    path.write_text(mutant.applied(true), encoding="utf-8")
    stamp = time.time_ns()
    os.utime(path, ns=(stamp, stamp))
    try:
        yield
    finally:
        path.write_text(true, encoding="utf-8")


def _drawn(number: int, seed: int, only: str) -> list[Mutant]:
    files = [path for path in _files() if only in str(path)]
    every = [mutant for path in files for mutant in mutants_of(path, ROOT)]
    print(f"{len(every)} mutants in {len(files)} files", flush=True)
    return random.Random(seed).sample(every, min(number, len(every)))


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        pattern = package if package.endswith(".py") else f"{package}/**/*.py"
        yield from sorted((ROOT / "dpframe").glob(pattern))


def _judged(drawn: Sequence[Mutant], reached: Reached, asked: argparse.Namespace) -> list[Verdict]:
    """All verdicts; those of an earlier run that was stopped are kept."""
    log = FOLDER / "verdicts.jsonl"
    known = {} if asked.names else _known(log)
    if asked.deeper:
        known = {name: row for name, row in known.items() if row[0] == "killed"}
    benches: SimpleQueue[_Bench] = SimpleQueue()
    for number in range(asked.jobs):
        benches.put(_Bench(_copy(FOLDER / f"copy-{number}")))
    todo = [m for m in drawn if m.name not in known]
    done = [Verdict(m, *known[m.name]) for m in drawn if m.name in known]

    def judge(mutant: Mutant) -> Verdict:
        bench = benches.get()
        try:
            return _verdict(mutant, reached, bench, asked.seconds, asked.most)
        finally:
            benches.put(bench)

    with ThreadPoolExecutor(asked.jobs) as pool, log.open("a") as kept:
        for number, verdict in enumerate(pool.map(judge, todo), len(done) + 1):
            row = [verdict.mutant.name, verdict.fate, verdict.tests, round(verdict.seconds, 1)]
            kept.write(json.dumps(row) + "\n")
            kept.flush()
            if verdict.fate != "killed":
                line = verdict.mutant.line
                print(f"{number}/{len(drawn)} {verdict.fate}: {verdict.mutant.name} (line {line})")
                sys.stdout.flush()
            done.append(verdict)
    return done


def _known(log: Path) -> dict[str, tuple[str, int, float]]:
    if not log.exists():
        return {}
    rows = (json.loads(line) for line in log.read_text().splitlines())
    return {name: (fate, tests, seconds) for name, fate, tests, seconds in rows}


def _copy(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for source in ROOT.iterdir():
        if source.name.startswith(".") or source.name in _LEFT:
            continue
        if source.is_dir():
            shutil.copytree(source, place / source.name, ignore=shutil.ignore_patterns(*_LEFT))
        else:
            shutil.copy(source, place / source.name)
    return place


class _Bench:
    """A copy of the project, and the process that runs tests in it."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self._runner = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "runner.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fails(self, tests: Sequence[str], seconds: float) -> bool:
        """Whether one of the tests fails, or hangs."""
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        asked = {"copy": str(self.copy), "tests": list(tests), "seconds": 30 + 5 * seconds}
        self._runner.stdin.write(json.dumps(asked) + "\n")
        self._runner.stdin.flush()
        answer = self._runner.stdout.readline().strip()
        if answer not in ("passed", "failed"):
            raise RuntimeError("the process that runs the tests has ended")
        return answer == "failed"


def _verdict(mutant: Mutant, reached: Reached, bench: _Bench, first: float, most: float) -> Verdict:
    tests = _ordered(mutant, reached)
    if not tests:
        return Verdict(mutant, "unreached", 0, 0.0)
    started = time.monotonic()
    with _planted(mutant, bench.copy):
        few = _within(tests, reached, first)
        killed = bench.fails(few, first)
        if not killed and most and len(few) < len(tests):
            rest = _within(tests[len(few) :], reached, most)
            killed = bench.fails(rest, most)
            few = [*few, *rest]
    fate = "killed" if killed else "survived"
    return Verdict(mutant, fate, len(few), time.monotonic() - started)


def _ordered(mutant: Mutant, reached: Reached) -> list[str]:
    """The tests that run its line: those of its own folder first, then the quickest."""
    own = "tests/" + str(Path(mutant.path).parent).removeprefix("dpframe").lstrip("/")
    tests = reached.tests_of(mutant.path, mutant.line)
    return sorted(tests, key=lambda test: not test.startswith(own + "/"))


def _within(tests: Sequence[str], reached: Reached, seconds: float) -> list[str]:
    found: list[str] = []
    left = seconds
    for test in tests:
        left -= reached.seconds.get(test, 1.0)
        if found and left < 0:
            break
        found.append(test)
    return found


def _report(verdicts: Sequence[Verdict]) -> int:
    explained = {row["mutant"]: row["why"] for row in _explained()}
    fates = Counter(verdict.fate for verdict in verdicts)
    open_ones = [v for v in verdicts if v.fate != "killed" and v.mutant.name not in explained]
    print(f"\n{len(verdicts)} mutants: {dict(fates)}, {len(open_ones)} without an explanation")
    for verdict in sorted(open_ones, key=lambda v: v.mutant.name):
        print(f"  {verdict.fate}: {verdict.mutant.name} (line {verdict.mutant.line})")
    return 1 if open_ones else 0


def _explained() -> list[dict[str, str]]:
    if not EXPLAINED.exists():
        return []
    found: list[dict[str, str]] = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["survivor"]
    return found


if __name__ == "__main__":
    sys.exit(main())
