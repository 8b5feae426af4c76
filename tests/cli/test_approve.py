"""`dpframe approve`: what a reviewer sees is what may run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.budget import GDP, ZCDP
from dpframe.ledger import budgets
from dpframe.ledger.approvals import KEY_VARIABLE, new_pair
from tests.cli.commands import Run, plan_file, python_job, toml_job

BY = ("--by", "Ann", "--ledger", "budget.db")
MORE = ("--name", "default", "--by", "Bob", "--reason", "more")
TOMORROW = datetime.now(UTC).date() + timedelta(days=1)


@pytest.fixture
def job(folder: Path) -> Path:
    return toml_job(folder, approval=True)


def planned(run: Run, job: Path) -> dp.Plan:
    assert run("explain", job, "--output", "plan.json").code == 0
    return dp.Plan.from_json(Path("plan.json"))


def test_the_budget_that_was_seen_is_the_one_that_is_spent(run: Run, job: Path) -> None:
    """A plan of 0.25 of 1 is not for a budget of a million."""
    run("ledger", "create", "--ledger", "budget.db", "--epsilon", "1", "--by", "Bob")
    plan = planned(run, job)
    assert plan.budget is not None
    assert (plan.budget.name, plan.budget.whole) == ("default", dp.PureDP(1))
    assert "charged to the budget 'default' of epsilon 1 in the ledger" in plan.explain(
        details=True
    )
    done = run("approve", "plan.json", "--create", *BY)
    assert done.code == 0
    where = Path("budget.db").resolve()
    assert f"  of epsilon 1 in pure DP; epsilon 1 remains, in {where}\n" in done.out
    assert run("run", job).code == 0
    assert run("ledger", "grant", "--ledger", "budget.db", *MORE, "--epsilon", "999999").code == 0
    done = run("run", job)
    assert done.code == 4
    assert "is for epsilon 1 in pure DP, and the budget is now epsilon 1000000" in done.err
    done = run("approve", "plan.json", "--create", *BY)
    assert done.code == 4
    assert "the plan was made for a budget of epsilon 1 in pure DP, and 'default' in" in done.err


def test_a_plan_that_states_another_budget_is_refused(run: Run, folder: Path) -> None:
    plan_file(folder)  # of a budget in memory, of epsilon 1
    run("ledger", "create", "--ledger", "budget.db", "--epsilon", "1000", "--by", "Bob")
    done = run("approve", "plan.json", "--create", *BY)
    assert (done.code, done.out) == (4, "")
    assert "the plan was made for a budget of epsilon 1 in pure DP" in done.err
    assert (
        run("ledger", "show", "--ledger", "budget.db", "--json").json["default"]["approvals"] == []
    )


def test_a_plan_for_another_ledger_or_name_is_refused(run: Run, job: Path) -> None:
    run("ledger", "create", "--ledger", "budget.db", "--epsilon", "1", "--by", "Bob")
    planned(run, job)
    run("ledger", "create", "--ledger", "other.db", "--epsilon", "1", "--by", "Bob")
    done = run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "other.db")
    assert done.code == 4
    assert "was made for another ledger" in done.err
    done = run("approve", "plan.json", "--create", *BY, "--name", "census")
    assert done.code == 4
    assert "names the budget 'default', and the command 'census'" in done.err


def test_a_budget_that_is_new_is_created_as_the_plan_states_it(run: Run, folder: Path) -> None:
    plan_file(folder)
    done = run("approve", "plan.json", "--create", *BY)
    assert done.code == 0
    assert done.err.startswith("new budget 'default' of epsilon 1 in the new ledger ")
    with pytest.raises(dp.LedgerError, match="was opened with epsilon 1"):
        dp.Session(epsilon=10**6, ledger="budget.db")
    assert run("run", python_job(folder, approval=True)).code == 0


def test_the_name_of_a_session_in_memory_is_no_budget(run: Run, folder: Path) -> None:
    session = dp.Session(epsilon=1, name="draft")
    query = session.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows(), name="people").dp_count()
    Path("plan.json").write_text(query.plan(epsilon="0.1").to_json())
    assert run("approve", "plan.json", "--create", *BY, "--json").json["name"] == "default"
    assert (
        run("approve", "plan.json", "--create", *BY, "--name", "census", "--json").json["name"]
        == "census"
    )
    kept = dp.Session(epsilon=1, ledger="budget.db", require_approval=True, must_exist=True)
    people = kept.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows(), name="people")
    people.dp_count().collect(epsilon="0.1")


def test_the_name_is_that_of_the_plan(run: Run, job: Path) -> None:
    job.write_text(job.read_text().replace("[session]", '[session]\nname = "census"'))
    planned(run, job)
    assert run("approve", "plan.json", "--create", *BY, "--json").json["name"] == "census"
    assert run("run", job).code == 0


def test_a_plan_of_no_session_needs_a_budget(run: Run, folder: Path) -> None:
    plan_file(folder)
    document = dp.Plan.from_json(Path("plan.json"))
    Path("plan.json").write_text(replace(document, budget=None).to_json())
    done = run("approve", "plan.json", "--create", *BY)
    assert done.code == 6
    assert "the plan states no amount" in done.err
    run("ledger", "create", "--ledger", "budget.db", "--epsilon", "3", "--by", "Bob")
    done = run("approve", "plan.json", "--create", *BY, "--json")
    assert done.json["budget"] == "epsilon 3 in pure DP"


@pytest.mark.parametrize(("composition", "measure"), [("zcdp", ZCDP.measure), ("gdp", GDP.measure)])
def test_a_budget_that_adds_up_something_else_is_created_and_told_apart(
    run: Run, folder: Path, composition: Any, measure: str
) -> None:
    session = dp.Session(epsilon=1, delta="1e-6", composition=composition)
    query = session.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows()).dp_count()
    Path("plan.json").write_text(query.plan(epsilon="0.1").to_json())
    assert run("approve", "plan.json", "--create", *BY).code == 0
    kept = dp.Session(epsilon=1, delta="1e-6", composition=composition, ledger="budget.db")
    assert kept.remaining.measure == measure
    run("ledger", "create", "--ledger", "b.db", "--epsilon", "1", "--delta", "1e-6", "--by", "B")
    done = run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "b.db")
    assert done.code == 4
    assert f"through {measure}" in done.err
    assert run("ledger", "check", "--ledger", "budget.db", "--at-least", "0.0001").code == 0
    assert run("ledger", "check", "--ledger", "budget.db", "--at-least", "5").code == 3


@pytest.mark.parametrize("wrong", ["0", "-1"])
def test_terms_that_make_no_sense_create_nothing(run: Run, folder: Path, wrong: str) -> None:
    plan_file(folder)
    assert run("approve", "plan.json", "--create", *BY, "--runs", wrong).code == 6
    assert run("approve", "plan.json", "--create", *BY, "--until", "tomorrow").code == 2
    assert (
        run("approve", "plan.json", "--create", "--by", "A\nB", "--ledger", "budget.db").code == 6
    )
    assert not Path("budget.db").exists()


def test_runs_and_days(run: Run, job: Path) -> None:
    planned(run, job)
    done = run("approve", "plan.json", "--create", *BY, "--runs", "2", "--until", f"{TOMORROW}")
    assert f"  may run 2 times until {TOMORROW}\n" in done.out
    assert [run("run", job).code for _ in range(3)] == [0, 0, 4]
    shown = run("ledger", "show", "--ledger", "budget.db").out
    assert f", for epsilon 1, 2 of 2 runs, until {TOMORROW}\n" in shown
    found = run("ledger", "show", "--ledger", "budget.db", "--json").json["default"]["approvals"]
    assert [(a["runs"], a["used"], a["until"]) for a in found] == [(2, 2, f"{TOMORROW}")]
    assert (
        run(
            "approve", "plan.json", "--create", *BY, "--until", f"{TOMORROW - timedelta(days=2)}"
        ).code
        == 0
    )
    done = run("run", job)
    assert done.code == 4
    assert "ended after" in done.err


def test_a_plan_is_revoked_for_the_budget_that_it_is_approved_for(run: Run, folder: Path) -> None:
    """Whose name the plan states, so that nobody need repeat it."""
    session = dp.Session(epsilon=1, ledger="budget.db", name="mine")
    plan = session.protect(pl.DataFrame({"x": [1]}), unit=dp.Rows()).dp_count().plan(epsilon=0.25)
    Path("plan.json").write_text(plan.to_json())
    assert run("approve", "plan.json", *BY).code == 0
    done = run("approve", "--revoke", plan.fingerprint, *BY)
    assert done.out == f"revoked {plan.fingerprint}, for budget 'mine', by Ann\n"
    assert "no approved plan" in run("approve", "--revoke", plan.fingerprint, *BY).err


def test_what_was_revoked_for_one_budget_is_revoked_for_the_other(run: Run, folder: Path) -> None:
    """Of two budgets that a plan was approved for, one is left, which need not be named."""
    for name in ("mine", "yours"):
        dp.Session(epsilon=1, ledger="budget.db", name=name)
    frame = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), unit=dp.Rows())
    plan = frame.dp_count().plan(epsilon=0.25)
    Path("plan.json").write_text(plan.to_json())
    for name in ("mine", "yours"):
        assert run("approve", "plan.json", *BY, "--name", name).code == 0
    both = run("approve", "--revoke", plan.fingerprint, *BY)
    assert "approved for several budgets: 'mine', 'yours'" in both.err
    assert run("approve", "--revoke", plan.fingerprint, *BY, "--name", "mine").code == 0
    done = run("approve", "--revoke", plan.fingerprint, *BY)
    assert done.out == f"revoked {plan.fingerprint}, for budget 'yours', by Ann\n"


def test_revoked(run: Run, job: Path) -> None:
    plan = planned(run, job)
    run("approve", "plan.json", "--create", *BY)
    assert run("run", job).code == 0
    done = run("approve", "--revoke", plan.fingerprint[:16], *BY, "--reason", "wrong keys")
    assert done.out == f"revoked {plan.fingerprint}, for budget 'default', by Ann\n"
    done = run("run", job)
    assert done.code == 4
    assert "was revoked by Ann" in done.err
    assert "revoked by Ann\n" in run("ledger", "show", "--ledger", "budget.db").out
    assert run("approve", "--revoke", "f" * 16, *BY, "--json").code == 6
    assert run("approve", "--revoke", "f" * 16).code == 2


def test_a_grant_may_keep_approvals(run: Run, job: Path) -> None:
    planned(run, job)
    run("approve", "plan.json", "--create", *BY, "--runs", "2")
    assert run("run", job).code == 0
    grant = ("ledger", "grant", "--ledger", "budget.db", *MORE, "--epsilon", "1")
    assert run(*grant, "--keep-approvals").code == 0
    assert [run("run", job).code for _ in range(2)] == [0, 4], "one run was left, and still is"
    found = run("ledger", "show", "--ledger", "budget.db", "--json").json["default"]["approvals"]
    assert [(a["by"], a["runs"]) for a in found] == [("Ann", 2), ("Bob", 1)]


def test_runs_that_are_used_or_kept_by_others_meanwhile_are_not_kept_again(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(run, job)
    run("approve", "plan.json", "--create", *BY, "--runs", "2")
    grant = ("ledger", "grant", "--ledger", "budget.db", *MORE, "--epsilon", "1")
    real = budgets.grant

    def late(*given: Any) -> Any:
        """Others are faster: one runs the plan, one grants."""
        monkeypatch.setattr(budgets, "grant", real)
        assert run("run", job).code == 0
        assert run(*grant, "--keep-approvals").code == 0
        return real(*given)

    monkeypatch.setattr(budgets, "grant", late)
    assert run(*grant, "--keep-approvals").code == 0
    assert [run("run", job).code for _ in range(2)] == [0, 4], "one of two was left"


def test_signed_approvals_are_kept_by_who_can_sign(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, public = new_pair()
    planned(run, job)
    monkeypatch.setenv(KEY_VARIABLE, private)
    run("approve", "plan.json", "--create", *BY)
    grant = ("ledger", "grant", "--ledger", "budget.db", *MORE, "--epsilon", "1")
    for key in (None, public):
        if key is None:
            monkeypatch.delenv(KEY_VARIABLE)
        else:
            monkeypatch.setenv(KEY_VARIABLE, key)
        assert run(*grant, "--keep-approvals").code == 6
        assert dp.Session(epsilon=1, ledger="budget.db").budget == dp.PureDP(1), "nor granted"
    monkeypatch.setenv(KEY_VARIABLE, private)
    assert run(*grant, "--keep-approvals").code == 0
    monkeypatch.setenv(KEY_VARIABLE, public)
    assert run("run", job).code == 0


def test_nothing_is_approved_for_a_closed_budget(run: Run, job: Path) -> None:
    planned(run, job)
    run("ledger", "create", "--ledger", "budget.db", "--epsilon", "1", "--by", "Bob")
    run("ledger", "close", "--ledger", "budget.db", *MORE)
    assert run("approve", "plan.json", "--create", *BY).code == 3


# -- ranges of parameters -------------------------------------------------------------------------

RANGED = """
[session]
epsilon = "1"
ledger = "budget.db"
create = true
require_approval = true

[source]
path = "people.parquet"
name = "people"
unit = {}

[parameters]
least = {type = "int", default = 40}
sexes = {type = "list[string]", default = ["f", "m"]}

[query]
filter = ["age >= :least", "sex IN (:sexes)"]

[query.outputs.n]
aggregate = "count"

[spend]
epsilon = "0.1"
"""


def test_an_approval_of_a_range_covers_each_value_in_it(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(RANGED)
    ranges = ("--param", "least=20..60", "--param", "sexes=any")
    done = run(
        "approve", "job.toml", "--create", "--by", "Ann", "--ledger", "budget.db", "--json", *ranges
    )
    assert done.code == 0, done.err
    assert done.json["parameters"] == {"least": "20..60", "sexes": "any"}
    assert done.json["approved"] != done.json["plan"]
    for given in (("least=20",), ("least=60", 'sexes=["f"]'), ("least=+33", "sexes=x,y,z")):
        options = [part for text in given for part in ("--param", text)]
        ran = run("run", "job.toml", *options)
        assert ran.code == 0, ran.err
    outside = run("run", "job.toml", "--param", "least=61")
    assert outside.code == 4
    assert "least is 61, and the approval is for 20..60" in outside.err
    (folder / "job.toml").write_text(RANGED.replace('"0.1"', '"0.2"'))
    assert run("run", "job.toml").code == 4
    (folder / "job.toml").write_text(RANGED.replace("age >=", "hours >="))
    refused = run("run", "job.toml", "--param", "least=30")
    assert refused.code == 4
    assert 'filter(col("age") >= :least) -> filter(col("hours") >= :least)' in refused.err
    shown = run("ledger", "show", "--ledger", "budget.db")
    assert "least 20..60, sexes any" in shown.out
    assert run("ledger", "verify", "--ledger", "budget.db").code == 0


def test_a_plan_may_be_approved_for_a_range_too(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(RANGED)
    run("explain", "job.toml", "--output", "plan.json")
    options = ("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db")
    for given, code, words in [
        (("--param", "most=1..2"), 5, "no parameter 'most'"),
        (("--param", "least=41"), 5, "made for least = 40"),
        (("--param", "least=a..b"), 5, "are not values"),
        (("--param", "least=60..20"), 5, "are not values"),
        (("--param", "least"), 5, "NAME=VALUE"),
    ]:
        done = run(*options, *given)
        assert (done.code, done.out) == (code, "")
        assert words in done.err
    assert run("run", "job.toml").code == 4
    assert run(*options, "--param", "least=30,40", "--runs", "2").code == 0
    assert run("run", "job.toml", "--param", "least=30").code == 0
    assert run("run", "job.toml", "--param", "least=35").code == 4
    assert run("run", "job.toml", "--param", "least=40", "--param", "sexes=f").code == 4
    assert run("run", "job.toml", "--param", "least=40").code == 0
    used_up = run("run", "job.toml", "--param", "least=30")
    assert used_up.code == 4
    assert "was for 2 runs" in used_up.err


def test_a_job_with_one_value_is_approved_as_its_plan(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(RANGED)
    done = run(
        "approve",
        "job.toml",
        "--create",
        "--by",
        "A",
        "--ledger",
        "budget.db",
        "--json",
        "--param",
        "least=50",
    )
    assert done.json["approved"] == done.json["plan"]
    assert run("run", "job.toml", "--param", "least=50").code == 0
    assert run("run", "job.toml").code == 4


def test_any_value_needs_one_to_plan_with(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(RANGED.replace('int", default = 40', 'int"'))
    options = ("approve", "job.toml", "--create", "--by", "Ann", "--ledger", "budget.db", "--param")
    done = run(*options, "least=any")
    assert done.code == 5
    assert "has no value, and no default" in done.err
    assert run(*options, "least=5..").code == 0
    assert run("run", "job.toml", "--param", "least=7").code == 0
