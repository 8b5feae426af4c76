"""`dpframe ledger create | close | check`, and what a run may use."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger.record import Draft
from tests.cli.commands import PEOPLE, Run, python_job, toml_job
from tests.ledger.ledgers import store_at

LEDGER = ("--ledger", "budget.db")


def query(**options: object) -> dp.PrivateQuery:
    session = dp.Session(epsilon=1, ledger="budget.db", **options)  # type: ignore[arg-type]
    return session.protect(PEOPLE, unit=dp.Rows()).dp_count()


def test_create_fixes_amount_and_unit(run: Run) -> None:
    done = run("ledger", "create", *LEDGER, "--name", "census", "--epsilon", "1", "--by", "Ann")
    where = str(Path("budget.db").resolve())
    assert done.code == 0
    assert done.err == f"new budget 'census' of epsilon 1 in the new ledger {where!r}\n"
    assert done.out == "census: epsilon 1; epsilon 1 remains\n"
    query(name="census", must_exist=True).collect(epsilon="0.25")
    with pytest.raises(dp.LedgerError, match="was opened with epsilon 1"):
        dp.Session(epsilon=1000, ledger="budget.db", name="census")
    again = run("ledger", "create", *LEDGER, "--name", "census", "--epsilon", "1", "--by", "Ann")
    assert again.code == 6
    assert "the ledger has the budget 'census' already" in again.err
    shown = run("ledger", "show", *LEDGER).out
    assert "opened    epsilon 1 by Ann" in shown


@pytest.mark.parametrize(
    ("arguments", "unit"),
    [
        ((), None),
        (("--unit", "rows"), "rows, add-remove"),
        (("--unit", "rows", "--adjacency", "change-one"), "rows, change-one"),
        (("--adjacency", "change-one"), "rows, change-one"),
        (("--unit", "identifier"), "identifier"),
        (("--unit", "identifier", "--adjacency", "add-remove"), "identifier"),
    ],
)
def test_create_fixes_the_unit(run: Run, arguments: tuple[str, ...], unit: str | None) -> None:
    made = run("ledger", "create", *LEDGER, "--epsilon", "1", "--by", "Ann", *arguments)
    assert made.code == 0
    assert run("ledger", "show", *LEDGER, "--json").json["default"]["unit"] == unit
    if unit not in (None, "rows, add-remove"):
        with pytest.raises(dp.LedgerError, match="the budget is for the unit"):
            query().collect(epsilon="0.1")


def test_create_knows_every_kind_of_budget(run: Run) -> None:
    kinds = {
        "approximate": ("--epsilon", "1", "--delta", "1e-6"),
        "rho": ("--rho", "0.1"),
        "filtered": ("--epsilon", "1", "--delta", "1e-6", "--composition", "zcdp"),
    }
    for name, given in kinds.items():
        made = run("ledger", "create", *LEDGER, "--name", name, "--by", "Ann", "--json", *given)
        assert made.code == 0, made.err
        assert made.json["name"] == name
        assert made.json["opened"][0]["name"] == name
        assert made.json["opened"][0]["new_ledger"] is (name == "approximate")
    kept = {"ledger": "budget.db", "must_exist": True}
    dp.Session(epsilon=1, delta="1e-6", name="approximate", **kept)  # type: ignore[arg-type]
    dp.Session(rho="0.1", name="rho", **kept)  # type: ignore[arg-type]
    dp.Session(epsilon=1, delta="1e-6", composition="zcdp", name="filtered", **kept)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--epsilon", "0"),
        ("--epsilon", "-1"),
        ("--epsilon", "much"),
        ("--epsilon", "1", "--rho", "1"),
        ("--epsilon", "1", "--composition", "zcdp"),
        ("--epsilon", "1", "--unit", "identifier", "--adjacency", "change-one"),
    ],
)
def test_create_refuses_what_makes_no_sense(run: Run, arguments: tuple[str, ...]) -> None:
    done = run("ledger", "create", *LEDGER, "--by", "Ann", *arguments)
    assert (done.code, done.out) == (5, "")
    assert not Path("budget.db").exists() or run("ledger", "show", *LEDGER).out == "no budgets\n"


def test_close_ends_a_budget_on_record(run: Run) -> None:
    asked = query()
    asked.collect(epsilon="0.25")
    words = ("--by", "Ann", "--reason", "study over")
    done = run("ledger", "close", *LEDGER, "--name", "default", *words)
    assert done.code == 0
    assert done.out == "default: epsilon 1; epsilon 0 remains, and is closed\n"
    for other in (asked, query()):
        with pytest.raises(dp.BudgetExceeded, match=r"was closed on .* by Ann: study over"):
            other.collect(epsilon="0.25")
    assert dp.Session(epsilon=1, ledger="budget.db").remaining == dp.PureDP(0)
    assert run("ledger", "close", *LEDGER, "--name", "default", *words).code == 3
    more = ("--name", "default", "--epsilon", "1", *words)
    assert run("ledger", "grant", *LEDGER, *more).code == 3
    assert "closed    by Ann: study over" in run("ledger", "show", *LEDGER).out
    assert run("ledger", "show", *LEDGER, "--json").json["default"]["closed"]["by"] == "Ann"
    assert run("ledger", "verify", *LEDGER).code == 0
    assert run("run", str(python_job(Path(".")))).code == 3


def test_a_release_that_runs_while_its_budget_is_closed_is_settled(run: Run) -> None:
    session = dp.Session(epsilon=1, ledger="budget.db")
    number = session._payer.ledger.charge(dp.PureDP("0.5"), "f")
    run("ledger", "close", *LEDGER, "--name", "default", "--by", "A", "--reason", "b")
    session._payer.ledger.settle(number, "released")
    assert session.history["status"].to_list() == ["released"]
    assert run("ledger", "verify", *LEDGER).code == 0


def test_records_after_the_end_of_a_budget_do_not_verify(run: Run) -> None:
    query()
    run("ledger", "close", *LEDGER, "--name", "default", "--by", "A", "--reason", "b")
    for act in ("charged", "granted", "closed"):
        with pytest.raises(dp.LedgerError, match="after its budget was closed"):
            store_at(Path("budget.db")).append(
                lambda _, a=act: Draft("default", a, amount=dp.PureDP("0.1"))  # type: ignore[misc]
            )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--at-least", "0.75"), 0),
        (("--at-least", "3/4"), 0),
        (("--at-least", "0"), 0),
        (("--at-least", "0.7500001"), 3),
        (("--at-least", "0.5", "--delta", "1e-9"), 3),
        (("--at-least", "much"), 5),
        (("--at-least", "-1"), 5),
        (("--at-least", "0.5", "--name", "other"), 9),
        ((), 2),
    ],
)
def test_check_says_by_its_exit_code_whether_enough_is_left(
    run: Run, arguments: tuple[str, ...], code: int
) -> None:
    query().collect(epsilon="0.25")
    assert run("ledger", "check", *LEDGER, *arguments).code == code
    if code in (0, 3):
        found = run("ledger", "check", *LEDGER, *arguments, "--json")
        assert found.code == code
        assert found.json["enough"] is (code == 0)
        assert found.json["remaining"]["epsilon"] == "3/4"


def test_check_of_no_ledger_or_a_closed_budget(run: Run) -> None:
    assert run("ledger", "check", *LEDGER, "--at-least", "0.1").code == 9
    assert not Path("budget.db").exists()
    query()
    run("ledger", "close", *LEDGER, "--name", "default", "--by", "A", "--reason", "b")
    done = run("ledger", "check", *LEDGER, "--at-least", "0.1")
    assert done.code == 3
    assert "it was closed" in done.out


# -- what must exist --------------------------------------------------------------------------


def test_must_exist_creates_nothing(run: Run, folder: Path) -> None:
    with pytest.raises(dp.LedgerError, match="there is no ledger") as refused:
        query(must_exist=True)
    assert str(folder / "budget.db") in str(refused.value)
    assert str(folder) in str(refused.value.why)
    assert not (folder / "budget.db").exists()
    query(name="census")
    with pytest.raises(
        dp.LedgerError, match=r"no budget 'cenus'\n(.*\n)?.*why: its budgets are 'census'"
    ):
        query(name="cenus", must_exist=True)
    query(name="census", must_exist=True)
    with pytest.raises(dp.LedgerError, match="in memory is new each time"):
        dp.Session(epsilon=1, must_exist=True)


@pytest.mark.parametrize("made", [python_job, toml_job])
def test_jobs_run_only_on_what_exists(run: Run, folder: Path, made: object) -> None:
    job = str(made(folder))  # type: ignore[operator]
    for command in ("run", "explain"):
        assert run(command, job, "--must-exist").code == 9
        assert not (folder / "budget.db").exists()
    done = run("run", job)
    assert done.code == 0
    assert done.err.splitlines()[0] == (
        f"new budget 'default' of epsilon 1 in the new ledger {str(folder / 'budget.db')!r}"
    )
    done = run("run", job, "--must-exist")
    assert done.code == 0
    assert "new budget" not in done.err


def test_a_job_in_toml_may_ask_for_it(run: Run, folder: Path) -> None:
    job = toml_job(folder)
    job.write_text(job.read_text().replace("create = true", "must_exist = true"))
    assert run("run", job).code == 9
    run("ledger", "create", *LEDGER, "--epsilon", "1", "--by", "Ann")
    assert run("run", job).code == 0


def test_a_new_budget_is_in_the_json_of_a_run_also_when_it_fails(run: Run, folder: Path) -> None:
    done = run("run", python_job(folder), "--json")
    assert done.json["opened"] == [
        {
            "name": "default",
            "budget": "epsilon 1",
            "ledger": str(folder / "budget.db"),
            "new_ledger": True,
        }
    ]
    assert "opened" not in run("run", python_job(folder), "--json").json
    (folder / "budget.db").unlink()
    (folder / "budget.db.head").unlink()
    done = run("run", python_job(folder, approval=True), "--json")
    assert done.code == 4
    assert done.json["opened"][0]["name"] == "default"


def test_a_new_name_is_shown_beside_those_that_the_ledger_has(run: Run, folder: Path) -> None:
    for n in range(7):
        run("ledger", "create", *LEDGER, "--name", f"b{n}", "--epsilon", "1", "--by", "Ann")
    done = run("run", python_job(folder))
    assert done.err.splitlines()[0].endswith(", which has 'b0', 'b1', 'b2', 'b3', 'b4' and 2 more")


@pytest.mark.parametrize("made", [python_job, toml_job])
def test_a_run_is_kept_to_its_ledger_and_name(run: Run, folder: Path, made: object) -> None:
    job = str(made(folder))  # type: ignore[operator]
    run("ledger", "create", *LEDGER, "--epsilon", "1", "--by", "Ann")
    for pin in (("--ledger", "other.db"), ("--name", "census")):
        for command in ("run", "explain"):
            done = run(command, job, *pin)
            assert (done.code, done.out) == (6, "")
            assert "and the command names" in done.err
    assert not Path("other.db").exists()
    assert run("ledger", "show", *LEDGER, "--json").json["default"]["charges"] == []
    assert run("run", job, *LEDGER, "--name", "default").code == 0
    assert run("run", job, "--ledger", f"sqlite:///{folder / 'budget.db'}").code == 0


@pytest.mark.parametrize("pin", [LEDGER, ("--must-exist",), ("--name", "census")])
def test_a_job_in_memory_is_refused_where_the_run_says_what_may_be_used(
    run: Run, folder: Path, pin: tuple[str, ...]
) -> None:
    job = toml_job(folder)
    job.write_text(job.read_text().replace('ledger = "budget.db"', ""))
    assert run("run", job, *pin).code == 6


# -- who was charged --------------------------------------------------------------------------


def test_a_charge_says_who_ran_what(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = python_job(folder)
    assert run("run", job, "--run-id", "night 7").code == 0
    monkeypatch.setenv("DPFRAME_RUN_ID", "x" * 5000)
    monkeypatch.setenv("DPFRAME_JOB", "a\nb\u202e\x1b[2K")
    query().collect(epsilon="0.25")
    first, second = run("ledger", "show", *LEDGER, "--json").json["default"]["charges"]
    assert first["job"] == str(job.resolve())
    assert (first["run"], first["process"]) == ("night 7", os.getpid())
    assert first["host"] == socket.gethostname()
    assert first["user"]
    assert second["job"] == "a\nb\u202e\x1b[2K"
    assert second["run"] == "x" * 200
    shown = run("ledger", "show", *LEDGER).out
    assert f"process {os.getpid()}, job {job.resolve()}, run night 7\n" in shown
    assert "job a\\nb\\u202e\\x1b[2K, run x" in shown
    history = dp.Session(epsilon=1, ledger="budget.db").history
    assert history["run"].to_list() == ["night 7", "x" * 200]
    records = [json.loads(line) for line in run("ledger", "export", *LEDGER).out.splitlines()]
    assert json.loads(records[2]["why"])["run"] == "night 7"


# -- nothing forges lines ---------------------------------------------------------------------

EVIL = "x\n  remaining  epsilon 100\x1b[2K\r\u202e\u2066\x07\x85\u2028y"


def test_what_people_wrote_cannot_forge_lines(run: Run) -> None:
    """Names from before there were rules, and reasons, reach the terminal escaped."""
    place = Path("budget.db")
    store_at(place).append(
        lambda _: Draft(EVIL, "opened", amount=dp.PureDP(1), who=EVIL, unit=EVIL)
    )
    grant = ("--name", EVIL, "--epsilon", "1", "--by", EVIL, "--reason", EVIL)
    outputs = [
        run("ledger", "grant", *LEDGER, *grant),
        run("ledger", "show", *LEDGER),
        run("ledger", "show", *LEDGER, "--name", EVIL),
        run("ledger", "check", *LEDGER, "--name", EVIL, "--at-least", "9"),
        run("ledger", "check", *LEDGER, "--name", EVIL + "z", "--at-least", "9"),
        run("ledger", "verify", *LEDGER, "--name", EVIL + "z"),
        run("ledger", "close", *LEDGER, "--name", EVIL, "--by", EVIL, "--reason", EVIL),
        run("ledger", "close", *LEDGER, "--name", EVIL, "--by", EVIL, "--reason", EVIL),
        run("ledger", "show", *LEDGER),
        run("ledger", "create", "--ledger", EVIL, "--epsilon", "1", "--by", EVIL),
        run("explain", EVIL),
        run("run", EVIL),
    ]
    for done in outputs:
        for line in (done.out + done.err).split("\n"):
            assert line.isprintable(), ascii(line)
            assert not line.startswith("  remaining  epsilon 100"), ascii(line)
    assert "remaining  epsilon 2" in outputs[1].out
    records = run("ledger", "show", *LEDGER, "--json").json[EVIL]
    assert records["grants"][1]["reason"] == EVIL, "it is stored as it was given"


def test_messages_of_sessions_escape_names(run: Run) -> None:
    store_at(Path("budget.db")).append(lambda _: Draft(EVIL, "opened", amount=dp.PureDP(1)))
    session = dp.Session(epsilon=1, ledger="budget.db", name=EVIL)
    assert repr(session).isprintable()
    with pytest.raises(dp.LedgerError) as refused:
        dp.Session(epsilon=2, ledger="budget.db", name=EVIL)
    assert refused.value.what.isprintable()
    frame = session.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows())
    for line in frame.dp_count().explain(details=True, epsilon=1).split("\n"):
        assert line.isprintable()
