"""``--log json``: what commands that run jobs write into a log."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpframe.api.release import Releases
from dpframe.cli.job import Job
from dpframe.cli.lines import Log, is_logged, log_event, warn, writing
from dpframe.ledger.account import RUN_VARIABLE
from dpframe.ledger.amounts import decimals, exact_fields
from dpframe.ledger.ledger import watched

FORMS = ("text", "json")


def add_log(parser: Any) -> None:
    """Add ``--log`` to a command that runs jobs."""
    parser.add_argument(
        "--log",
        choices=FORMS,
        default="text",
        help="text (the default), or json: one object per line on standard error, for the events "
        "start, plan, charge, release, warning, written, end and failure",
    )


@contextmanager
def logged(parsed: argparse.Namespace, job: str) -> Iterator[None]:
    """Within this, a log is written if the command has `--log`."""
    if parsed.log != "json":
        yield
        return
    log = parsed.logged = Log(job, parsed.run_id or os.environ.get(RUN_VARIABLE) or None)
    with writing(log), watched(log.say):
        log_event("start")
        yield


def log_plan(job: Job) -> None:
    """Write the line about a plan, before anything is charged."""
    if not is_logged():
        return
    plan = job.plan()
    log_event(
        "plan",
        fingerprint=plan.fingerprint,
        parameters={parameter.name: parameter.value for parameter in plan.parameters},
        budget=None if plan.budget is None else plan.budget.name,
        ledger=None if plan.budget is None else plan.budget.ledger,
        cost=exact_fields(plan.cost),
        cost_decimal=decimals(plan.cost, up=True),
        **job.left(),
    )


def log_end(job: Job, releases: Releases, paths: Sequence[Path] | None) -> None:
    """Write where results are, and what is left of the budget."""
    if not is_logged():
        return
    for sentence in dict.fromkeys(said for release in releases for said in release.warnings):
        warn(sentence)
    if paths is not None:
        log_event("written", outputs=[str(path) for path in paths])
    log_event("end", code=0, reused=releases.reused, **job.left())
