"""What a refusal of a job or a command says to write leads to a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import Run
from tests.cli.test_toml_job import GOOD, job

JOBS = [
    # what is replaced, the mistake, what the message says, and what its reader writes
    ('epsilon = "0.25"', "", "epsilon = 0.5", "epsilon = 0.5"),
    ('epsilon = "0.25"', "epsilom = 0.5", "did you mean 'epsilon'?", "epsilon = 0.5"),
    ("[spend]", "[spent]", "did you mean 'spend'?", "[spend]"),
    ("unit = {}", "unit = 3", "unit = {contributions = 1}", "unit = {contributions = 1}"),
    ("unit = {}", "", 'unit = "user_id"', 'unit = "person"'),
    (
        "unit = {}",
        "unit = {}\nengines = 'x'",
        "did you mean 'engine'?",
        "unit = {}\nengine = 'polars'",
    ),
    (
        "unit = {}",
        "unit = {}\nbounds = 3",
        "bounds = {age = [0, 120]}",
        "unit = {}\nbounds = {age = [0, 120]}",
    ),
    ('group_by = "sex"', "group_by = 3", 'group_by = ["city"]', 'group_by = ["sex"]'),
    ('group_by = "sex"', "", "group_by = [...]", 'group_by = ["sex"]'),
    ('aggregate = "count"', 'aggregate = "len"', "did you mean 'count'?", 'aggregate = "count"'),
    (
        'aggregate = "count"',
        'aggregate = "avg"\nof = "age"\nbounds = [0, 120]',
        "did you mean 'mean'?",
        'aggregate = "mean"\nof = "age"\nbounds = [0, 120]',
    ),
    (
        'aggregate = "count"',
        'aggregate = "sum"\nbounds = [0, 120]',
        'of = "income"',
        'aggregate = "sum"\nof = "age"\nbounds = [0, 120]',
    ),
    ('filter = "age >= 40"', "filter = 3", '"age >= 18"', 'filter = "age >= 18"'),
    ('filter = "age >= 40"', "filters = 'age > 3'", "did you mean 'filter'?", "filter = 'age > 3'"),
    ("[session]", "output = 3\n[session]", 'output = "..."', 'output = "result.csv"\n[session]'),
]


@pytest.mark.parametrize(("old", "mistake", "says", "repair"), JOBS)
def test_a_job_is_right_after_one_message(
    run: Run, folder: Path, old: str, mistake: str, says: str, repair: str
) -> None:
    assert old in GOOD
    job(folder, GOOD.replace(old, mistake, 1))
    refused = run("run", "job.toml")
    assert refused.code == 5
    assert says in refused.err.partition("instead:")[2]
    job(folder, GOOD.replace(old, repair, 1))
    done = run("run", "job.toml", "--create")
    assert done.code == 0, done.err


COMMANDS = [
    (("run", "job.toml", "--again"), 5, "add --once", ("run", "job.toml", "--once", "--again")),
    (
        ("run", "job.toml", "--run-id", " "),
        5,
        "--run-id 2026-11-22",
        ("run", "job.toml", "--run-id", "2026-11-22"),
    ),
    (
        ("run", "job.toml", "--name", "census"),
        6,
        "--name default",
        ("run", "job.toml", "--name", "default"),
    ),
    (
        ("run", "job.toml", "--ledger", "other.db"),
        6,
        "as the job has it",
        ("run", "job.toml", "--ledger", "budget.db"),
    ),
    (("explain", "job.toml", "--param", "day"), 5, "--param day=", ("explain", "job.toml")),
    (("explain", "jobs.toml"), 5, "a file that exists", ("explain", "job.toml")),
    (("explain", "."), 5, "a file that exists", ("explain", "job.toml")),
    (
        ("explain", "job.toml", "--output", "no/plan.json"),
        5,
        "a folder that exists",
        ("explain", "job.toml", "--output", "plan.json"),
    ),
    (
        ("explain", "job.toml", "--output", "job.toml"),
        5,
        "another file",
        ("explain", "job.toml", "--output", "plan.json"),
    ),
    (
        ("approve", "job.toml", "--ledger", "budget.db", "--by", ""),
        6,
        '--by "Ada Lovelace"',
        ("approve", "job.toml", "--ledger", "budget.db", "--by", "Ada Lovelace"),
    ),
    (
        ("approve", "job.toml", "--ledger", "budget.db", "--by", "Ada", "--runs", "0"),
        6,
        "--runs 1",
        ("approve", "job.toml", "--ledger", "budget.db", "--by", "Ada", "--runs", "1"),
    ),
    (
        ("ledger", "show", "--ledger", "none.db"),
        9,
        "a ledger that exists",
        ("ledger", "show", "--ledger", "budget.db"),
    ),
    (
        ("ledger", "check", "--ledger", "budget.db", "--name", "defualt", "--at-least", "0.1"),
        9,
        "name='default'",
        ("ledger", "check", "--ledger", "budget.db", "--name", "default", "--at-least", "0.1"),
    ),
    (
        (
            "ledger",
            "grant",
            "--ledger",
            "budget.db",
            "--name",
            "default",
            "--rho",
            "1",
            "--by",
            "Ada",
            "--reason",
            "more",
        ),
        5,
        "--epsilon MORE",
        (
            "ledger",
            "grant",
            "--ledger",
            "budget.db",
            "--name",
            "default",
            "--epsilon",
            "1",
            "--by",
            "Ada",
            "--reason",
            "more",
        ),
    ),
    (
        ("ledger", "create", "--ledger", "budget.db", "--epsilon", "1", "--by", "Ada"),
        6,
        "choose another name",
        (
            "ledger",
            "create",
            "--ledger",
            "budget.db",
            "--name",
            "second",
            "--epsilon",
            "1",
            "--by",
            "Ada",
        ),
    ),
]


@pytest.mark.parametrize(("command", "code", "says", "repaired"), COMMANDS)
def test_a_command_is_right_after_one_message(
    run: Run,
    folder: Path,
    command: tuple[str, ...],
    code: int,
    says: str,
    repaired: tuple[str, ...],
) -> None:
    job(folder, GOOD)
    assert run("run", "job.toml", "--create").code == 0
    refused = run(*command)
    assert refused.code == code, refused.err
    assert says in refused.err.partition("instead:")[2]
    done = run(*repaired)
    assert done.code == 0, done.err
