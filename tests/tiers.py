"""`python -m tests.tiers DURATIONS.xml ...`: choose which tests wait for the night.

`make test` runs in a few minutes because it leaves out tests that take long. Which these are is
measured: run all of them once,

    .venv/bin/python -m pytest -q -n 2 -m 'not slow and not spark' --doctest-modules dpframe tests \
        --junitxml=DURATIONS.xml

and the tests of Spark apart, with ``-m spark tests/engines tests/storage`` and another file. Hand
the files to this program, which writes `nightly.txt` beside itself. Of several files the
shortest time of a test counts, as a machine may be busy. A test that no file has keeps its place.
`conftest.py` marks the tests in that list `nightly`, and `make test-nightly` runs them. A test that
is not in the list, such as a new one, is part of `make test`.

A case of a test function waits where it takes more than a 450,000th of the time of all tests. The
quickest case of each function stays unless it takes more than a 14,000th, or a 7,000th where the
function tests what privacy or a budget rests on. So a mistake that only one function sees is seen
at once, unless the function is slow. Shares of the sum are the same on fast and slow machines. A
skipped test has no duration. A test with the mark `always` stays however long it takes: it checks a
promise that no other checks.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

NIGHTLY = Path(__file__).with_name("nightly.txt")
ROOT = Path(__file__).parents[1]
SHORT, LONG, LONG_OF_LAWS = 1 / 450_000, 1 / 14_000, 1 / 7_000
"""The largest shares of the time of all tests: of a case, and of the quickest case of a function,
elsewhere and in `LAWS`.
"""
SHORT_OF_SPARK, LONG_OF_SPARK = 1 / 400, 1 / 12
"""The same of the tests that need Spark, each of which takes seconds."""
LAWS = frozenset(
    {
        "aggregates",
        "charge",
        "kernel",
        "laws",
        "ledger",
        "mechanisms",
        "optimise",
        "plan",
        "release",
        "storage",
        "streams",
    }
)
"""The folders of tests of what privacy or a budget rests on."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=__doc__)
    parser.add_argument("durations", type=Path, nargs="+", help="what pytest --junitxml wrote")
    parser.add_argument("--spark", type=Path, nargs="*", default=[], help="the same of Spark alone")
    files = parser.parse_args()
    measured = read_durations([*files.durations, *files.spark])
    names = {n for n in nightly_names() if n not in measured and is_defined(n)}
    for what, durations, limits in (
        ("tests", files.durations, (SHORT, LONG, LONG_OF_LAWS)),
        ("tests of Spark", files.spark, (SHORT_OF_SPARK, LONG_OF_SPARK, LONG_OF_SPARK)),
    ):
        known = {n: s for n, s in read_durations(durations).items() if is_defined(n)}
        nightly = choose_nightly(known, *limits)
        names |= nightly
        left = sum(seconds for name, seconds in known.items() if name not in nightly)
        print(f"{len(nightly)} of {len(known)} {what} wait for the night")
        print(f"{left:.0f} of {sum(known.values()):.0f} seconds are left")
    NIGHTLY.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def read_durations(files: Iterable[Path]) -> dict[str, float]:
    """The seconds of each test, by a name that `name_of` gives too."""
    durations: dict[str, float] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            if case.find("skipped") is not None:
                continue
            name = f"{case.get('classname')}::{case.get('name')}"
            seconds = float(case.get("time", 0))
            durations[name] = min(seconds, durations.get(name, seconds))
    return durations


def choose_nightly(
    durations: Mapping[str, float], short: float, long: float, long_of_laws: float
) -> set[str]:
    """The tests that wait for the night, by the largest shares of the time of all."""
    cases: dict[str, list[str]] = defaultdict(list)
    for name in durations:
        cases[_function(name)].append(name)
    quickest = {min(names, key=lambda n: (durations[n], n)) for names in cases.values()}
    every = sum(durations.values())

    def most(name: str) -> float:
        if name not in quickest:
            return short
        return long_of_laws if LAWS & {*name.split(".")[1:2]} else long

    return {name for name, seconds in durations.items() if seconds > most(name) * every}


def name_of(node: str) -> str:
    """The name of a test in `nightly.txt`, from pytest's own."""
    path, _, rest = node.partition("::")
    return path.removesuffix(".py").replace("/", ".") + "::" + rest.replace("::", ".")


def is_defined(name: str) -> bool:
    """Whether the file of a test still defines it."""
    module, _, test = name.partition("[")[0].partition("::")
    file = ROOT / (module.replace(".", "/") + ".py")
    if not module.startswith("tests."):  # doctests
        return file.exists() or (file.with_suffix("") / "__init__.py").exists()
    return file.exists() and f"def {test.rpartition('.')[2]}(" in _text(file)


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def in_shard(node: str, shard: str) -> bool:
    """Whether a test is in part ``"k/n"`` of all, which a checksum of its name decides."""
    part, _, parts = shard.partition("/")
    return zlib.crc32(node.encode()) % int(parts) == int(part) - 1


def nightly_names() -> frozenset[str]:
    """The list."""
    return frozenset(NIGHTLY.read_text(encoding="utf-8").splitlines())


def _function(name: str) -> str:
    """The test function of a case."""
    return name.partition("[")[0]


if __name__ == "__main__":
    main()
