"""``dpframe run`` and ``dpframe inspect``: jobs, and the files that they leave."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.api.files import destination, inspect, require_result, write
from dpframe.api.release import Releases
from dpframe.api.reuse import ONCE_MORE, ReusePolicy
from dpframe.cli import job as toml_job
from dpframe.cli.job import Job, read_job
from dpframe.cli.output import (
    BadInput,
    Log,
    NotWritten,
    is_logged,
    log_event,
    require_file,
    say,
    warn,
    writing,
)
from dpframe.cli.pins import (
    JOB,
    JSON,
    LEDGER_AND_NAME,
    PARAMETERS,
    Commands,
    add_command,
    add_options,
    option,
    pin,
    read_parameters,
    switch,
)
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.ledger import budgets
from dpframe.ledger.account import LONGEST, RUN_VARIABLE, running
from dpframe.ledger.amounts import decimals, exact_fields
from dpframe.ledger.ledger import watched
from dpframe.rows.failures import FAILURES

# ``--log json``: what commands that run jobs write into a log.


@contextmanager
def log_run(parsed: argparse.Namespace, job: str) -> Iterator[None]:
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


_WHOLE: dict[str, Any] = {
    "tbl_rows": -1,
    "tbl_cols": -1,
    "tbl_width_chars": 60_000,  # Polars takes no more
    "fmt_str_lengths": 1_000_000,
    "fmt_table_cell_list_len": -1,
}
"""Nothing of a table is left out: it is printed once, and paid for."""

_RUN = """\
Run a job: check the budget (and the approval, if the session requires it), charge, release.

A Python job is a file that defines `query`, a private query or a list of them, and `spend`, a dict
such as {"epsilon": 0.5}. It also defines `session` if the query has none, and may define `output`.
Each query of a list gets its own file: result-1.parquet, result-2.parquet, ... The job's own
prints go to standard error. A TOML job needs no code:

"""


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    form = toml_job.__doc__ or ""
    added = add_command(
        commands,
        _run,
        "run",
        "run a job: a Python file, or TOML",
        _RUN + form.partition("::")[2].strip("\n"),
        JOB,
        option("--output", "FILE", "file for the result: .parquet or .csv", type=Path),
        switch(
            "--require-approval",
            "run only an approved plan, even if the job does not require approval",
        ),
        *LEDGER_AND_NAME,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(
        added.add_mutually_exclusive_group(),
        switch(
            "--must-exist",
            "refuse a budget that does not exist, even if the job has create = true",
        ),
        switch("--create", "create the job's budget and its ledger if they do not exist"),
    )
    add_options(added, PARAMETERS)
    add_options(
        added.add_mutually_exclusive_group(),
        option(
            "--run-id",
            "ID",
            "name of a run that is made only once: a second run gets the result of the first, "
            "which is kept in the ledger's folder",
        ),
        switch(
            "--once",
            "release the same plan with the same parameters only once: a second run gets the "
            "result of the first",
        ),
    )
    log = (
        "text (the default), or json: one object per line on standard error, for the events "
        "start, plan, charge, release, warning, written, end and failure"
    )
    add_options(
        added,
        switch(
            "--again",
            "with --run-id or --once: pay again for a result that was charged and is lost",
        ),
        option("--log", None, log, choices=("text", "json"), default="text"),
        switch("--json", "print plan, cost and result as JSON"),
    )
    add_command(
        commands,
        _inspect,
        "inspect",
        "show the plan that a result was released with",
        "Show the plan, cost and fingerprint in a result file, and check that its "
        "contents were not changed since it was written. Exit code 5 if they were.",
        option("file", "FILE", "a result: .parquet or .csv", type=Path),
        JSON,
    )


def _run(parsed: argparse.Namespace) -> int:
    job = str(parsed.job.resolve())
    with (
        log_run(parsed, job),
        pin(parsed),
        running(job, parsed.run_id),
    ):
        return _release(parsed)


def _read(parsed: argparse.Namespace) -> Job:
    """The job, whose budget exists from then on. A job in TOML that may open one is planned before,
    so that one that makes no sense opens none; one in Python is code, and runs once.
    """
    given = read_parameters(parsed)
    if parsed.job.suffix != ".toml":
        return read_job(parsed.job, given)
    with budgets.postpone() as absent:
        job = read_job(parsed.job, given)
    if not absent:
        return job
    job.plan()
    return read_job(parsed.job, given)


def _release(parsed: argparse.Namespace) -> int:
    job = _read(parsed)
    if parsed.require_approval:
        job.require_approval()
    paths = job.places(parsed.output or job.output)
    for path in paths or ():
        job.require_other(path)
    repeat = _repeat(parsed)
    if repeat is not ONCE_MORE:
        job.keep()
    log_plan(job)
    releases = job.release(repeat) if paths is None else _write_results(job, paths, repeat)
    if parsed.json:
        said = {} if repeat is ONCE_MORE else {"reused": releases.reused}
        print(json.dumps(_record(job, releases, paths) | said | parsed.announced, indent=2))
        _remark(releases)
        log_end(job, releases, paths)
        return 0
    if paths is None:
        with pl.Config(**_WHOLE):
            for release in releases:
                print(release.frame)
    where = "" if paths is None else f" to {' and '.join(map(str, paths))}"
    done = "released before, and returned" if releases.reused else "released"
    say(
        f"{done}{where}: cost {releases.cost.words()}, plan {releases.plan.fingerprint}",
        to_errors=True,
    )
    _remark(releases)
    log_end(job, releases, paths)
    return 0


def _remark(releases: Releases) -> None:
    if releases.remark:
        say(releases.remark, to_errors=True)


def _repeat(parsed: argparse.Namespace) -> ReusePolicy:
    """What is to be done if it was run before. Raises `UnsupportedOperation` when the name of the
    run is invalid, or there is nothing that `--again` could repeat.
    """
    if parsed.run_id is None and not parsed.once:
        if parsed.again:
            raise UnsupportedOperation(
                "without a run name it is unknown which result was lost",
                where="--again",
                remedy=("add --run-id ID, with the name that the run had", "add --once"),
            )
        return ONCE_MORE
    if parsed.once:
        return ReusePolicy("same", again=parsed.again)
    name = str(parsed.run_id)
    if not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise UnsupportedOperation(
            f"the name of a run has 1 to {LONGEST} visible characters on one line",
            where=f"--run-id {name[:LONGEST]}",
            remedy="write for example --run-id 2026-11-22",
        )
    return ReusePolicy(run=name, again=parsed.again)


def _write_results(job: Job, paths: Sequence[Path], repeat: ReusePolicy) -> Releases:
    """The releases, in files; what cannot be written is handed on, because it is paid for."""
    releases = None
    try:
        with ExitStack() as stack:
            made = [stack.enter_context(destination(path)) for path in paths]
            for path in paths:
                require_result(path)
            releases = job.release(repeat)
            for one, path, place in zip(releases, paths, made, strict=True):
                write(one.frame, one.plan, path, place, one.query, one.released)
    except DPFrameError as error:
        if releases is None:
            raise
        results = _results(job, releases)
        raise NotWritten(error, paths[0], json.dumps(results)) from None
    return releases


def _results(job: Job, releases: Releases) -> Any:
    """The rows for JSON, of a list of queries one after another."""
    found = [_rows(release.frame) for release in releases]
    return found if job.is_list else found[0]


def _rows(frame: pl.DataFrame) -> Any:
    """The rows for JSON; as text what Polars does not write so, because it is paid for."""
    try:
        return json.loads(frame.write_json())
    except FAILURES:
        return json.loads(json.dumps(frame.to_dicts(), default=str))


def _record(job: Job, releases: Releases, paths: Sequence[Path] | None) -> dict[str, object]:
    found: dict[str, object] = {
        "fingerprint": releases.plan.fingerprint,
        "cost": releases.cost.words(),
        "cost_decimal": decimals(releases.cost, up=True),
        **job.left(),
    }
    if paths is None:
        return found | {"output": None, "result": _results(job, releases)}
    places = [str(path) for path in paths]
    return found | {"output": places if job.is_list else places[0]}


def _inspect(parsed: argparse.Namespace) -> int:
    require_file(parsed.file)
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
            **({} if found.query is None else {"query": found.query}),
            "risks": list(found.plan.risks),
            "notes": list(found.plan.notes),
            "plan": json.loads(found.plan.to_json()),
        }
        print(json.dumps(record, indent=2))
    else:
        print(found.plan.explain())
        print(f"\nfingerprint {found.plan.fingerprint}")
        if found.query is not None:
            print(f"the result of query {found.query} of {len(found.plan.queries)}")
        print(f"released {found.released:%Y-%m-%d %H:%M:%S} UTC; the file is {words}")
    return 0 if found.unchanged else 5
