"""``dpframe audit``: what runs on worst-case neighbours prove about a job's plan."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpframe.audit import Audit
from dpframe.cli.job import read_job
from dpframe.cli.output import BadInput
from dpframe.cli.pins import JOB, JSON, PINS, Commands, add_command, option, pin, read_parameters
from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES

_PLOTS = (".html", ".json", ".png", ".svg")


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_command(
        commands,
        _audit,
        "audit",
        "try to refute a job's plan on worst-case data that is made for it",
        "Make two frames that differ in one individual and whose exact results differ "
        "as much as a search can find. Run the job's plan many times on both, and show the "
        "largest epsilon that these runs prove next to the epsilon that the plan claims. Nothing "
        "is charged or created, and no data is read. Exit code 1 if the claim is refuted.",
        JOB,
        option(
            "--runs", "N", "number of runs on each frame (default: 10000)", type=int, default=10_000
        ),
        option(
            "--confidence", "C", "confidence of the lower bound (default: 0.95)", default="0.95"
        ),
        option("--plot", "FILE", f"write a chart to this file: {', '.join(_PLOTS)}", type=Path),
        *PINS,
        JSON,
    )


def _audit(parsed: argparse.Namespace) -> int:
    if parsed.plot is not None:
        _require_place(parsed.plot)
    with pin(parsed):
        job = read_job(parsed.job, read_parameters(parsed))
        found = job.audit(parsed.runs, parsed.confidence)
        left = job.left()
    if parsed.plot is not None:
        _save(found, parsed.plot)
    record = _record(found) | left | parsed.announced
    print(json.dumps(record, indent=2) if parsed.json else found.words())
    return 1 if found.refuted else 0


def _record(found: Audit) -> dict[str, object]:
    return {
        "fingerprint": found.plan.fingerprint,
        "claimed": found.claimed,
        "proved": found.proved,
        "delta": found.delta,
        "confidence": found.confidence,
        "runs": found.runs,
        "refuted": found.refuted,
        "neighbours": found.neighbours,
        "reach": found.reach.to_dicts(),
    }


def _require_place(path: Path) -> None:
    if path.suffix not in _PLOTS or path.exists():
        what = "the file exists already" if path.exists() else "the name does not end as charts do"
        raise BadInput(
            UnsupportedOperation(what, remedy=f"name a new file that ends in {', '.join(_PLOTS)}"),
            path,
        )


def _save(found: Audit, path: Path) -> None:
    chart = found.plot()
    try:
        chart.save(str(path))
        return
    except FAILURES as error:
        kind = type(error).__name__
    refusal = UnsupportedOperation(
        f"the chart cannot be written there ({kind})",
        remedy=(
            "write it as .html, in a folder that exists",
            'install what .png and .svg need: pip install "dpframe[plot]"',
        ),
    )
    raise BadInput(refusal, path)
