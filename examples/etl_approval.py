"""A nightly job that runs only what a reviewer approved, until the budget is spent.

    python examples/etl_approval.py

Everything happens on the command line, in a temporary folder: the job is a TOML file, its budget
is kept in a ledger, and a scheduler would act on the exit codes, which are shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from dpframe.cli import main as dpframe

DATA = Path(__file__).parent / "data" / "adult.parquet"
JOB = """\
output = "hours.parquet"

[session]
epsilon = "1"
ledger = "budget.db"
name = "hours"
require_approval = true

[source]
path = "people.parquet"
unit = {adjacency = "add-remove"}

[query]
filter = ["age >= 18"]
group_by = ["sex"]
keys = {sex = ["Female", "Male"]}

[query.outputs.n]
aggregate = "count"

[query.outputs.mean_hours]
aggregate = "mean"
of = "hours_per_week"
bounds = [0, 60]

[spend]
epsilon = "0.4"
interval = 0.95
"""
"""The data are where the job is, and so is what it writes."""
NIGHTS = 3


def main() -> None:
    """From a new job to one that has spent its budget."""
    with folder():
        Path("nightly.toml").write_text(JOB, encoding="utf-8")
        pl.read_parquet(DATA).write_parquet("people.parquet")  # what the night's load leaves

        say("The data owner opens the budget: jobs can use no other")
        run("ledger create --ledger budget.db --name hours --epsilon 1 --by owner")

        say("The first night: the job is not approved, so nothing is charged and nothing runs")
        run("run nightly.toml")

        say("The analyst writes the plan; this reads no data")
        run("explain nightly.toml --output plan.json", lines=6)

        say("A reviewer reads it, and approves it for the budget that it is charged to")
        run("approve plan.json --by reviewer --ledger budget.db --name hours")

        say("From now on it runs each night, until the budget is spent: then the code is 3")
        for _ in range(NIGHTS):
            if run("run nightly.toml"):
                break
            with pl.Config(tbl_formatting="NOTHING", tbl_hide_dataframe_shape=True):
                print(pl.read_parquet("hours.parquet"), "\n")

        say("The last result is still there, and carries its plan")
        run("inspect hours.parquet", lines=-2)

        say("A bound and the spend are raised: that is another plan, and needs a new approval")
        changed = JOB.replace("bounds = [0, 60]", "bounds = [0, 99]").replace('"0.4"', '"0.2"')
        Path("nightly.toml").write_text(changed, encoding="utf-8")
        run("run nightly.toml")

        say("What the ledger has on record")
        run("ledger show --ledger budget.db")
        run("ledger verify --ledger budget.db")


def run(command: str, lines: int | None = None) -> int:
    """One command as it would be typed, its exit code, and the first or last lines it prints."""
    print(f"$ dpframe {command}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = dpframe(command.split())
    found = printed.getvalue().rstrip().splitlines()
    some = found if lines is None else found[:lines] if lines > 0 else found[lines:]
    print("\n".join(f"  {line}" for line in some))
    if len(some) < len(found):
        print(f"  ... {len(found) - len(some)} more lines")
    print(f"  -> exit code {code}\n")
    return code


def say(what: str) -> None:
    """A heading."""
    print(f"--- {what}\n")


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """A temporary folder to work in."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        try:
            yield
        finally:
            os.chdir(before)


if __name__ == "__main__":
    main()
