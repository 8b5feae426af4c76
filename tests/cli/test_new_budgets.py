"""Which commands open a budget, and what they leave on disk where they do not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.ledger.record import close_names
from tests.cli.commands import COMMAND, Run, environment, python_job, toml_job
from tests.ledger.ledgers import Place, store_at

Jobs = Callable[[Path], Path]


def without_create(job: Path) -> Path:
    """The job as most people write it."""
    text = job.read_text().replace(", create=True", "").replace("create = true\n", "")
    job.write_text(text)
    return job


@pytest.fixture(params=[python_job, toml_job])
def job(request: pytest.FixtureRequest, folder: Path) -> Path:
    return without_create(request.param(folder))


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in found}


def create(run: Run, name: str, ledger: str = "budget.db") -> None:
    done = run("ledger", "create", "--ledger", ledger, "--name", name, "--epsilon", 1, "--by", "A")
    assert done.code == 0, done.err


def named(job: Path, name: str) -> Path:
    text = job.read_text().replace('ledger="budget.db"', f'ledger="budget.db", name="{name}"')
    job.write_text(text.replace('ledger = "budget.db"', f'ledger = "budget.db"\nname = "{name}"'))
    return job


def test_a_run_without_its_ledger_is_refused_and_leaves_nothing(
    run: Run, job: Path, folder: Path
) -> None:
    before = files(folder)
    done = run("run", job, "--output", "result.parquet")
    assert (done.code, done.out) == (9, "")
    assert done.err.startswith(f"NoBudget: there is no ledger '{folder / 'budget.db'}'")
    assert "--create" in done.err
    assert "--create" in done.err
    assert files(folder) == before


def test_a_misspelt_folder_is_not_made(run: Run, job: Path, folder: Path) -> None:
    job.write_text(job.read_text().replace("budget.db", "ledgers/budget.db"))
    before = files(folder)
    assert run("run", job).code == 9
    assert run("explain", job).code == 0
    assert files(folder) == before


@pytest.mark.parametrize("key", [None, "k" * 32])
def test_a_misspelt_name_is_refused_and_the_meant_one_is_named(
    run: Run, job: Path, folder: Path, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        monkeypatch.setenv("DPFRAME_LEDGER_KEY", key)
    create(run, "visits-2027")
    create(run, "census")
    before = files(folder)
    done = run("run", named(job, "vists-2027"), "--json")
    assert done.code == 9
    assert done.json["error"] == "NoBudget"
    message = done.json["message"]
    assert f"the ledger '{folder / 'budget.db'}' has no budget 'vists-2027'" in message
    assert "instead: write name='visits-2027'\n" in message
    assert files(folder) == before | {job.name: job.read_bytes()}
    job.write_text(job.read_text().replace("vists", "visits"))
    assert run("run", job).code == 0


@pytest.mark.parametrize("name", ["Census", "census ", "cen\u200bsus"])
def test_a_name_that_looks_the_same_is_no_budget_either(run: Run, job: Path, name: str) -> None:
    create(run, "census")
    done = run("run", named(job, name))
    assert done.code == 9
    assert "write name='census'" in done.err


def test_an_empty_file_is_no_ledger(run: Run, job: Path, folder: Path) -> None:
    (folder / "budget.db").touch()
    before = files(folder)
    done = run("run", job)
    assert done.code == 9
    assert "it has no budget yet" in done.err
    assert run("explain", job).code == 0
    assert files(folder) == before
    assert run("run", job, "--create").code == 0


def test_a_lost_ledger_is_not_begun_anew(run: Run, job: Path, folder: Path) -> None:
    assert run("run", job, "--create").code == 0
    (folder / "budget.db").unlink()
    before = files(folder)
    assert run("run", job).code == 9
    assert files(folder) == before


def test_create_opens_it_once(run: Run, job: Path, folder: Path) -> None:
    first = run("run", job, "--create")
    assert first.code == 0
    assert first.err.startswith("new budget 'default' of epsilon 1 in the new ledger")
    second = run("run", job, "--create")
    assert second.code == 0
    assert "new budget" not in second.err
    assert run("run", job).code == 0
    assert dp.Session(epsilon=1, ledger=folder / "budget.db").spent == dp.PureDP("0.75")
    assert run("run", job, "--create", "--must-exist").code == 2


@pytest.mark.parametrize("made", [python_job, toml_job])
def test_who_runs_a_job_overrules_it(run: Run, folder: Path, made: Jobs) -> None:
    before_job = made(folder)
    before = files(folder)
    assert run("run", before_job, "--must-exist").code == 9
    assert files(folder) == before
    assert run("run", before_job).code == 0  # it says create = true


def test_a_session_that_must_exist_is_not_opened_by_create(
    run: Run, job: Path, folder: Path
) -> None:
    text = job.read_text().replace('ledger="budget.db"', 'ledger="budget.db", must_exist=True')
    job.write_text(text.replace("[session]", "[session]\nmust_exist = true"))
    before = files(folder)
    done = run("run", job, "--create")
    assert done.code == 9
    assert "--create" not in done.err
    assert files(folder) == before


def test_both_at_once_make_no_sense() -> None:
    with pytest.raises(dp.LedgerError, match="contradict each other"):
        dp.Session(epsilon=1, ledger="never.db", must_exist=True, create=True)


def test_a_job_in_toml_that_makes_no_sense_opens_nothing(run: Run, folder: Path) -> None:
    job = toml_job(folder)
    job.write_text(job.read_text().replace('"count"', '"sum"\nof = "hours"'))
    before = files(folder)
    assert run("run", job).code == 5
    assert run("run", job, "--create").code == 5
    assert files(folder) == before


@pytest.mark.parametrize("create", [True, False])
def test_commands_that_only_plan_create_nothing(
    run: Run, job: Path, folder: Path, create: bool
) -> None:
    if create:  # what runs may open, planning does not
        text = job.read_text().replace("[session]", "[session]\ncreate = true")
        job.write_text(text.replace('ledger="budget.db"', 'ledger="budget.db", create=True'))
    before = files(folder)
    explained = run("explain", job, "--json")
    assert explained.code == 0
    assert explained.err.startswith(
        f"there is no ledger '{folder / 'budget.db'}'; this command plans"
    )
    assert run("diff", job, job).code == 0
    audited = run("audit", job, "--runs", "100", "--json")
    assert "there is no ledger" in audited.json["missing"][0]
    assert files(folder) == before
    for command in ("show", "verify", "export", "metrics"):
        assert run("ledger", command, "--ledger", "budget.db").code == 9
    assert files(folder) == before


def test_the_plan_without_a_ledger_is_the_one_that_runs(run: Run, job: Path) -> None:
    planned = json.loads(run("explain", job, "--json", "--output", "plan.json").out)
    stated = dp.Plan.from_json(Path("plan.json")).budget
    assert stated is not None
    assert (stated.name, stated.ledger) == ("default", None)
    assert (
        "budget 'default' of epsilon 1, which does not exist yet"
        in run("explain", job, "--details").out
    )
    done = run("run", job, "--create", "--json")
    assert done.json["fingerprint"] == planned["fingerprint"]
    assert json.loads(run("explain", job, "--json").out)["fingerprint"] == planned["fingerprint"]


def test_code_that_charges_while_it_is_planned_is_refused(run: Run, folder: Path) -> None:
    """Nothing is released that is not on record."""
    job = without_create(python_job(folder))
    job.write_text(job.read_text() + "print(query.collect(epsilon='0.1'))\n")
    before = files(folder)
    done = run("explain", job)
    assert (done.code, done.out) == (9, "")
    assert files(folder) == before


def test_approve_opens_only_what_it_is_told_to(run: Run, job: Path, folder: Path) -> None:
    assert run("explain", job, "--output", "plan.json").code == 0
    before = files(folder)
    approve = ("approve", "plan.json", "--by", "Ann", "--ledger", "budget.db")
    done = run(*approve)
    assert done.code == 9
    assert "--create" in done.err
    assert files(folder) == before
    assert run(*approve, "--create").code == 0
    assert run("run", job, "--require-approval").code == 0


def test_an_approval_opens_the_windows_that_the_plan_states(run: Run, folder: Path) -> None:
    job = folder / "job.py"
    job.write_text(WINDOWS)
    assert run("explain", job, "--output", "plan.json").code == 0
    approve = ("approve", "plan.json", "--by", "Ann", "--ledger", "budget.db", "--create")
    assert run(*approve).code == 0
    assert run("run", job, "--require-approval").code == 0


WINDOWS = """
import datetime as dt
import polars as pl
import dpframe as dp

month = dp.parameter("month", pl.Int64, default=1)
session = dp.Session(epsilon=1, ledger="budget.db", per="1mo")
days = [dt.datetime(2026, month.value, day) for day in (1, 2, 3)]
frame = pl.DataFrame({"user": [1, 2, 3], "at": days})
people = session.protect(frame, dp.Identifier("user", window="1mo", time="at"), name="people")
at = dt.datetime(2026, month.value, 1), dt.datetime(2026, month.value, 28)
query = people.filter(pl.col("at").is_between(*at)).limit_rows(1).agg(n=dp.count())
spend = {"epsilon": "0.8"}
"""


def test_another_month_is_no_new_budget(run: Run, folder: Path) -> None:
    job = folder / "job.py"
    job.write_text(WINDOWS)
    assert run("run", job).code == 9
    create = ("--ledger", "budget.db", "--epsilon", "1", "--per", "1mo", "--by", "Ann")
    assert run("ledger", "create", *create).code == 0
    assert run("run", job).code == 0
    assert run("run", job, "--param", "month=2").code == 0
    assert run("run", job, "--param", "month=2").code == 3


STREAM = """
import datetime as dt
import polars as pl
import dpframe as dp

session = dp.Session(rho=1, ledger="budget.db")
first = dt.date(2026, 1, 1)
frame = pl.DataFrame({"day": [first, dt.date(2026, 1, 2)]})
people = session.protect(frame, dp.Rows(), name="people")
query = people.agg(n=dp.count())
stream = session.stream("s", query, by="day", start=first, periods=4, rho="0.5")
spend = {"rho": "0.125"}
"""


def test_a_stream_opens_no_budget(run: Run, folder: Path) -> None:
    job = folder / "job.py"
    job.write_text(STREAM)
    before = files(folder)
    for command in ("run", "explain"):  # a stream is charged when it is opened
        done = run(command, job)
        assert (done.code, done.out) == (9, "")
        assert files(folder) == before
    assert run("run", job, "--create").code == 0
    assert run("run", job).code == 0
    assert run("explain", job).code == 0
    assert dp.Session(rho=1, ledger="budget.db").spent == dp.ZCDP("0.75")


def test_two_runs_that_create_at_once_open_one_budget(folder: Path) -> None:
    job = without_create(python_job(folder, epsilon="0.125"))
    command = [*COMMAND, "run", str(job), "--create", "--json"]
    started = [
        subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=180) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    chain = store_at(folder / "budget.db").read(whole=True)
    assert list(chain.accounts) == ["default"]
    account = chain.account("default")
    assert (len(account.grants), account.spent) == (1, dp.PureDP("0.375"))
    assert sum("opened" in json.loads(out) for out, _ in said) == 1


@pytest.mark.parametrize("made", [python_job, toml_job])
def test_at_every_place(run: Run, folder: Path, place: Place, made: Jobs) -> None:
    """In a file and in PostgreSQL: refused, planned, refused again, opened, refused by name."""
    job = without_create(made(folder))
    job.write_text(job.read_text().replace("budget.db", str(place)))
    assert run("run", job).code == 9
    assert run("explain", job).code == 0
    done = run("run", job)
    assert done.code == 9
    assert "there is no ledger" in done.err
    assert run("run", job, "--create").code == 0
    text = job.read_text().replace('"\nrequire', '"\nname = "defualt"\nrequire')
    job.write_text(text.replace(", require", ', name="defualt", require'))
    done = run("run", job)
    assert done.code == 9
    assert "write name='default'" in done.err
    assert list(store_at(place).read().accounts) == ["default"]


@given(name=st.text(max_size=12), known=st.lists(st.text(max_size=12), max_size=6, unique=True))
@example(name="census", known=["Census", "CENSUS", "census ", "visits"])
def test_close_names_are_names_that_exist(name: str, known: list[str]) -> None:
    close = close_names(name, known)
    assert set(close) <= set(known)
    assert len(close) == len(set(close)) <= 3
    if name in known and name:
        assert close
