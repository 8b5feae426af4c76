"""Which tests run which lines, and how long each takes: measured once, kept in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

_SKIP = (
    *("tests/test_docs.py", "tests/test_pages.py", "tests/test_notebooks.py"),
    "tests/api/test_stated_schemas.py",
)
"""Documentation is checked apart: a page fails for other reasons than a wrong rule. Tests of what
may not be read run as a user who may not write what is measured either.
"""


@dataclass(frozen=True, slots=True)
class Reached:
    """Tests by what they run.

    Parameters
    ----------
    lines
        For each file, the tests that run each line.
    seconds
        How long each test took, while it was measured.
    """

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests_of(self, path: str, line: int) -> list[str]:
        """The tests that run a line, the quickest first; of a line that runs on import, all that
        run any line of the file.
        """
        here = self.lines.get(path, {})
        found = here.get(line) or sorted({test for tests in here.values() for test in tests})
        return sorted((t for t in found if t in self.seconds), key=lambda t: self.seconds[t])


def measure(root: Path, folder: Path, jobs: int) -> None:
    """Run the quick tests once, and keep which lines each runs."""
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "-p", "no:cacheprovider"),
            *("--cov=dpframe", "--cov-context=test", "--cov-report=", "tests"),
            *(f"--ignore={path}" for path in _SKIP),
            f"--junitxml={folder / 'durations.xml'}",
        ],
        cwd=root,
        env=_environment(folder),
        check=False,
    )


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"COVERAGE_FILE": str(folder / "coverage")}


def read(root: Path, folder: Path) -> Reached:
    """What was measured."""
    from coverage import CoverageData

    data = CoverageData(str(folder / "coverage"))
    data.read()
    lines: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        found = data.contexts_by_lineno(file)
        path = str(Path(file).relative_to(root))
        lines[path] = {
            line: sorted({test for context in contexts if (test := _test(context))})
            for line, contexts in found.items()
        }
    return Reached(lines, _durations(folder / "durations.xml"))


def _test(context: str) -> str:
    """The test of a context such as `tests/core/test_grid.py::test_x[1]|run`."""
    return context.partition("|")[0]


def _durations(report: Path) -> dict[str, float]:
    """Of tests that passed: what fails without a mistake says nothing of one."""
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            continue
        path = case.get("classname", "").replace(".", "/")
        found[f"{path}.py::{case.get('name')}"] = float(case.get("time", "1"))
    return found


def summary(reached: Reached) -> str:
    """How much was measured."""
    return json.dumps({"files": len(reached.lines), "tests": len(reached.seconds)})
