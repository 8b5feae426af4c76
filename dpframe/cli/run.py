"""``dpframe run`` and ``dpframe inspect``: jobs, and the files that they leave."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dpframe.api.files import destination, inspect, write
from dpframe.api.query import Release
from dpframe.cli import toml_job
from dpframe.cli.input import BadInput, existing
from dpframe.cli.job import Job, read_job
from dpframe.errors import DPFrameError

_RUN = """\
Run a job: check the budget (and the approval, where the session asks for it), charge, release.

A Python job is a file that defines `query`, a private query, and `spend`, a dict such as
{"epsilon": 0.5}; `session` too where the query belongs to none. A TOML job needs no code:

"""


def add_commands(commands: Any) -> None:
    """Add the commands."""
    form = toml_job.__doc__ or ""
    added = commands.add_parser(
        "run",
        help="run a job: a Python file, or TOML",
        description=_RUN + form.partition("::")[2].strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("job", type=existing, metavar="JOB")
    added.add_argument("--output", type=Path, metavar="FILE", help=".parquet or .csv")
    added.add_argument("--json", action="store_true", help="print plan, cost and result as JSON")
    added.set_defaults(run=_run)
    shown = commands.add_parser(
        "inspect",
        help="the plan that a result was released by",
        description="Show the plan, cost and fingerprint that a result carries, and whether its "
        "contents are those that were written with it. Exit code 5 if not.",
    )
    shown.add_argument("file", type=existing, metavar="FILE", help=".parquet or .csv")
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.set_defaults(run=_inspect)


def _run(parsed: argparse.Namespace) -> int:
    job = read_job(parsed.job)
    path: Path | None = parsed.output or job.output
    release = job.release() if path is None else _written(job, path)
    if parsed.json:
        print(json.dumps(_record(release, path), indent=2))
        return 0
    if path is None:
        print(release.frame)
    where = "" if path is None else f" to {path}"
    print(
        f"released{where}: cost {release.cost.words()}, plan {release.plan.fingerprint}",
        file=sys.stderr,
    )
    return 0


def _written(job: Job, path: Path) -> Release:
    """The release, in a file; on the terminal if that fails, because it is paid for."""
    with destination(path) as made:
        release = job.release()
        try:
            write(release.frame, release.plan, path, made)
        except DPFrameError:
            print(release.frame.write_json())
            raise
    return release


def _record(release: Release, path: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fingerprint": release.plan.fingerprint,
        "cost": release.cost.words(),
        "output": None if path is None else str(path),
    }
    if path is None:
        found["result"] = json.loads(release.frame.write_json())
    return found


def _inspect(parsed: argparse.Namespace) -> int:
    try:
        found = inspect(parsed.file)
    except DPFrameError as error:
        raise BadInput(error, parsed.file) from None
    words = "as it was released" if found.unchanged else "CHANGED since it was released"
    if parsed.json:
        record = {
            "fingerprint": found.plan.fingerprint,
            "cost": found.plan.cost.words(),
            "released": found.released.isoformat(),
            "unchanged": found.unchanged,
            "plan": json.loads(found.plan.to_json()),
        }
        print(json.dumps(record, indent=2))
    else:
        print(found.plan.explain())
        print(f"\nfingerprint {found.plan.fingerprint}")
        print(f"released {found.released:%Y-%m-%d %H:%M:%S} UTC; the file is {words}")
    return 0 if found.unchanged else 5
