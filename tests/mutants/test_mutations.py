"""The program that plants mistakes makes the ones that it should, and leaves texts alone."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.__main__ import EXPLAINED, PACKAGES, ROOT
from tests.mutants.mutations import mutants_of, numbered
from tests.mutants.reached import Reached

SOURCE = '''"""Not 1 < 2."""

from __future__ import annotations

LIMIT = 3


class Counter:
    """Counts 1 + 1."""

    rows: int | None = None

    def words(self) -> str:
        return "1 < 2" if 1 < 2 else ""

    def add(self, x: int, strict: bool = True) -> int:
        if x < LIMIT and not strict:
            raise ValueError(f"{x + 1} is too small")
        with self.lock:
            self.rows += x
            self.note(x)
        return -min(x, 2) * sqrt_up(x)
'''
EXPECTED = {
    "module: 3 -> 4",
    "module: 3 -> 2",
    "Counter.add: True -> False",
    "Counter.add: x < LIMIT and not strict -> (not (x < LIMIT and not strict))",
    "Counter.add: and -> or",
    "Counter.add: < -> <=",
    "Counter.add: < -> >=",
    "Counter.add: not strict -> strict",
    'Counter.add: raise ValueError(f"{x + 1} is too small") -> pass',
    "Counter.add: self.lock -> __import__('contextlib').nullcontext()",
    "Counter.add: self.rows += x -> pass",
    "Counter.add: self.note(x) -> pass",
    "Counter.add: * -> /",
    "Counter.add: -min(x, 2) -> min(x, 2)",
    "Counter.add: min -> max",
    "Counter.add: 2 -> 3",
    "Counter.add: 2 -> 1",
    "Counter.add: sqrt_up -> __import__('dpframe.core.exact', fromlist=['x']).sqrt_down",
}


def test_mistakes_are_those_that_one_expects(tmp_path: Path) -> None:
    path = tmp_path / "counter.py"
    path.write_text(SOURCE)
    found = mutants_of(path, tmp_path)
    assert {mutant.name.removeprefix("counter.py ") for mutant in found} == EXPECTED
    for mutant in found:
        changed = mutant.applied(SOURCE)
        assert changed != SOURCE
        ast.parse(changed)
        before, after = SOURCE.splitlines(), changed.splitlines()
        differing = [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
        assert differing == [mutant.line]


def test_equal_mistakes_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text("def f(a, b):\n    return a < b, b < a\n")
    names = [mutant.name for mutant in mutants_of(path, tmp_path)]
    assert len(set(names)) == len(names) == 4


def test_the_quickest_tests_come_first_and_imported_lines_have_those_of_the_file() -> None:
    reached = Reached(
        {"a.py": {3: ["slow", "quick"], 1: [], 9: ["other"]}},
        {"slow": 9.0, "quick": 0.1, "other": 1.0},
    )
    assert reached.tests_of("a.py", 3) == ["quick", "slow"]
    assert reached.tests_of("a.py", 1) == ["quick", "other", "slow"]
    assert reached.tests_of("b.py", 1) == []


@cache
def _explained() -> dict[str, list[tuple[str, str]]]:
    """The names of survivors and why they may be, by file."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for entry in tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["survivor"]:
        found[entry["mutant"].split(" ")[0]].append((entry["mutant"], entry["why"]))
    return found


@pytest.mark.parametrize("file", _explained())
def test_every_explained_survivor_is_a_mistake_that_can_be_made(file: str) -> None:
    package, _, rest = file.removeprefix("dpframe/").partition("/")
    assert file.startswith("dpframe/")
    assert package in PACKAGES, f"no mistakes are made in {file}"
    assert (ROOT / file).exists(), f"there is no {file} (any more): {rest}"
    there = {mutant.name: mutant for mutant in numbered(ROOT / file, ROOT)}
    names = [name for name, _ in _explained()[file]]
    assert [name for name in names if name not in there] == []
    text = (ROOT / file).read_text(encoding="utf-8")
    for name in names:
        ast.parse(there[name].applied(text))


def test_survivors_are_explained_once_each_and_with_a_reason() -> None:
    entries = [entry for found in _explained().values() for entry in found]
    assert len({name for name, _ in entries}) == len(entries)
    assert all(why.strip() for _, why in entries)
