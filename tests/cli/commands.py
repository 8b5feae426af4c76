"""Runs the command as a process of its own, as a schedule or a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import cli

ROOT = Path(__file__).parents[2]
PEOPLE = pl.DataFrame(
    {
        "person": ["p1", "p1", "p2", "p3", "p4", "p5"],
        "age": [31, 31, 64, 20, 45, 80],
        "sex": ["f", "f", "m", "f", "m", "f"],
        "hours": [20.0, 45.0, 40.0, 38.5, 60.0, 0.0],
    }
)
COMMAND = [sys.executable, "-c", "import sys; from dpframe.cli import main; sys.exit(main())"]


@dataclass(frozen=True)
class Done:
    """How a process ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The standard error without the first line where a budget was created."""
        first, _, rest = self.err.partition("\n")
        return rest if first.startswith("new budget ") else self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]
"""Runs the command in a folder."""


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DPFRAME_")}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)} | dict(given or {})


def dpframe(*arguments: object, at: Path, env: Mapping[str, str] | None = None) -> Done:
    """The command with these arguments, in a folder."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=at,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=180,  # seconds of a machine that does other things too
    )
    return Done(done.returncode, done.stdout, done.stderr)


def in_process(arguments: Iterable[object], capsys: pytest.CaptureFixture[str]) -> Done:
    """The command in this process: one of its own takes long to start."""
    try:
        code = cli.main([str(a) for a in arguments])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return Done(code, *capsys.readouterr())


PYTHON_JOB = """
import polars as pl
import dpframe as dp

session = dp.Session(epsilon=1, ledger="budget.db", require_approval={approval}, create=True)
people = session.protect("people.parquet", unit=dp.Rows(), name="people")
grouped = people.filter(pl.col("age") >= 40).group_by("sex", keys=["f", "m"])
query = grouped.agg(dp.count().alias("n"))
spend = {{"epsilon": "{epsilon}"}}
"""

TOML_JOB = """
[session]
epsilon = "1"
ledger = "budget.db"
require_approval = {approval}
create = true

[source]
path = "people.parquet"
name = "people"
unit = {{}}

[query]
filter = "age >= 40"
group_by = "sex"
keys = ["f", "m"]

[query.outputs.n]
aggregate = "count"

[spend]
epsilon = "{epsilon}"
"""


def python_job(folder: Path, *, approval: bool = False, epsilon: str = "0.25") -> Path:
    path = folder / "job.py"
    path.write_text(PYTHON_JOB.format(approval=approval, epsilon=epsilon))
    return path


def toml_job(folder: Path, *, approval: bool = False, epsilon: str = "0.25") -> Path:
    path = folder / "job.toml"
    path.write_text(TOML_JOB.format(approval=str(approval).lower(), epsilon=epsilon))
    return path


def plan_file(folder: Path, name: str = "plan.json", epsilon: str = "0.25") -> dp.Plan:
    """The plan of the jobs above, in a file."""
    people = dp.Session(epsilon=1).protect(PEOPLE, unit=dp.Rows(), name="people")
    query = people.filter(pl.col("age") >= 40).group_by("sex", keys=["f", "m"])
    plan = query.agg(dp.count().alias("n")).plan(epsilon=epsilon)
    (folder / name).write_text(plan.to_json())
    return plan
