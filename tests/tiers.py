"""`python -m tests.tiers DURATIONS.xml ...`: choose which tests wait for the night.

`make test` runs in a few minutes because it leaves out tests that take long. Which these are is
measured: run all of them once,

    .venv/bin/python -m pytest -q -n 2 -m 'not slow and not spark' --doctest-modules dpframe tests \
        --junitxml=DURATIONS.xml

and hand the file to this program, which writes `nightly.txt` beside itself. Of several files the
shortest time of a test counts, as a machine may be busy. `conftest.py` marks the tests in that list
`nightly`, and `make test-nightly` runs them. A test that is not in the list, such as a new one, is
part of `make test`.

A case of a test function waits where it takes more than a 150,000th of what all tests take
together. Of each function the quickest case stays unless it takes more than a 3,000th: a mistake
that only one function sees is then mostly seen at once. Shares of the sum are the same on fast and
slow machines. A test with the mark `always` stays however long it takes: it alone stands for a
promise that no other test checks.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

NIGHTLY = Path(__file__).with_name("nightly.txt")
SHORT, LONG = 1 / 150_000, 1 / 3_000
"""The largest shares of the time of all tests that a case may take, and the quickest case of its
function.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=__doc__)
    parser.add_argument("durations", type=Path, nargs="+", help="what pytest --junitxml wrote")
    asked = parser.parse_args()
    durations = read_durations(asked.durations)
    nightly = choose_nightly(durations)
    NIGHTLY.write_text("".join(f"{name}\n" for name in sorted(nightly)), encoding="utf-8")
    left = sum(seconds for name, seconds in durations.items() if name not in nightly)
    print(f"{len(nightly)} of {len(durations)} tests wait for the night")
    print(f"{left:.0f} of {sum(durations.values()):.0f} seconds are left")


def read_durations(files: Iterable[Path]) -> dict[str, float]:
    """The seconds of each test, by a name that `name_of` gives too."""
    durations: dict[str, float] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            seconds = float(case.get("time", 0))
            durations[name] = min(seconds, durations.get(name, seconds))
    return durations


def choose_nightly(durations: Mapping[str, float]) -> set[str]:
    """The tests that wait for the night."""
    cases: dict[str, list[str]] = defaultdict(list)
    for name in durations:
        cases[_function(name)].append(name)
    quickest = {min(names, key=lambda n: (durations[n], n)) for names in cases.values()}
    every = sum(durations.values())
    return {
        name
        for name, seconds in durations.items()
        if seconds > (LONG if name in quickest else SHORT) * every
    }


def name_of(node: str) -> str:
    """The name of a test in `nightly.txt`, from pytest's own."""
    path, _, rest = node.partition("::")
    return path.removesuffix(".py").replace("/", ".") + "::" + rest.replace("::", ".")


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
