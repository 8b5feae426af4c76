"""`dpframe explain`, `diff` and `approve`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger.approvals import KEY_VARIABLE, ApprovalKey, new_pair
from tests.cli.commands import Run, plan_file, toml_job
from tests.ledger.ledgers import opened, store_at
from tests.plan.documents import of_version_1


def test_explain_shows_a_plan_and_names_it(run: Run, folder: Path) -> None:
    plan = plan_file(folder)
    for form in ("text", "markdown"):
        done = run("explain", "plan.json", "--format", form)
        assert done.code == 0
        assert plan.explain(form) in done.out  # type: ignore[arg-type]
        assert done.out.endswith(f"\n\nfingerprint {plan.fingerprint}\n")
    assert dp.Plan.from_json(run("explain", "plan.json", "--json").out) is not None


def test_explain_charges_a_job_nothing(run: Run, folder: Path) -> None:
    done = run("explain", toml_job(folder), "--output", "new.json")
    assert done.code == 0
    plan = dp.Plan.from_json(folder / "new.json")
    assert f"wrote the plan {plan.fingerprint} to new.json" in done.err
    assert plan.fingerprint == plan_file(folder).fingerprint
    assert opened(folder / "budget.db").spent.is_zero


def test_explain_warns_of_noise_that_is_large_for_a_guess(run: Run, folder: Path) -> None:
    plan = plan_file(folder)
    for form in ("text", "markdown", "html"):
        done = run("explain", "plan.json", "--size", 50, "--format", form)
        assert done.code == 0
        assert plan.explain(form, size=50) in done.out  # type: ignore[arg-type]
        assert "the most that 50 individuals can add" in done.out
        assert "more than a tenth" not in run("explain", "plan.json", "--format", form).out
    assert (
        "the most that 50 individuals can add" in run("explain", toml_job(folder), "--size", 50).out
    )
    for size in (0, -3):
        done = run("explain", "plan.json", "--size", size)
        assert (done.code, done.out) == (5, "")
        assert "is a positive integer" in done.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "this is not the JSON of a plan"),
        (b"[1, 2]", "this is not the JSON of a plan"),
        (b"\xff\xfe\x00", "this is not the JSON of a plan"),
        (b"[" * 100_000, "this is not the JSON of a plan"),
        (b'{"schema_version": 99}', "schema version 99"),
        (b'{"schema_version": 1}', "fields are missing"),
    ],
)
def test_a_file_that_is_no_plan_is_5(run: Run, folder: Path, content: bytes, words: str) -> None:
    plan_file(folder)
    (folder / "other.json").write_bytes(content)
    commands = [
        ("explain", "other.json"),
        ("diff", "other.json", "plan.json"),
        ("diff", "plan.json", "other.json"),
        ("approve", "other.json", "--by", "Ann", "--ledger", "budget.db"),
    ]
    for command in commands:
        done = run(*command, "--json")
        assert done.code == 5
        assert words in done.json["message"]
        assert "in: other.json" in done.err
    assert not (folder / "budget.db").exists()


@pytest.mark.parametrize("command", ["explain", "diff", "approve", "run", "inspect", "demo"])
def test_a_file_that_is_not_there_is_5(run: Run, folder: Path, command: str) -> None:
    plan_file(folder)
    rest = {
        "diff": ["plan.json"],
        "approve": ["--by", "Ann", "--ledger", "b.db"],
    }.get(command, [])
    before = ["--data"] if command == "demo" else []
    done = run(command, *before, "missing.json", *rest)
    assert (done.code, done.out) == (5, "")
    assert "this file does not exist" in done.err
    assert "this is a folder, not a file" in run(command, *before, ".", *rest).err


def test_where_a_plan_cannot_be_written(run: Run, folder: Path) -> None:
    plan_file(folder)
    done = run("explain", "plan.json", "--output", "nowhere/plan.json")
    assert (done.code, done.out) == (5, "")
    assert "the plan cannot be written: No such file" in done.err


@pytest.mark.parametrize("there", ["budget.db", "job.toml", "people.parquet", "list.json"])
def test_a_plan_replaces_plans_only(run: Run, folder: Path, there: str) -> None:
    job = toml_job(folder)
    assert run("run", job).code == 0
    (folder / "list.json").write_text("[]")
    before = (folder / there).read_bytes()
    done = run("explain", job, "--output", there)
    assert (done.code, done.out) == (5, "")
    assert "the file exists and is not a plan, so it is not replaced" in done.err
    assert (folder / there).read_bytes() == before
    for _ in range(2):
        assert run("explain", job, "--output", "plan.json").code == 0


def test_approving_again_says_what_is_different(run: Run, folder: Path) -> None:
    plan = plan_file(folder, "a.json")
    plan_file(folder, "b.json", "0.5")
    options = ("--by", "Ann", "--ledger", "budget.db")
    first = run("approve", "a.json", "--create", *options).out
    assert f"approved {plan.fingerprint}, unsigned, for budget 'default', by Ann\n" in first
    assert "of epsilon 1 in pure DP; epsilon 1 remains, in " in first
    second = run("approve", "b.json", "--create", *options).out
    assert f"compared with {plan.fingerprint[:16]}, approved before:" in second
    assert "    epsilon of the plan 0.25 -> 0.5" in second
    assert "new ledger" not in second
    assert "Ann approved it before" in run("approve", "b.json", "--create", *options).out
    other = run("approve", "b.json", "--create", *options, "--name", "census", "--json")
    fingerprint = dp.Plan.from_json(folder / "b.json").fingerprint
    shown = other.json
    assert "one row is protected" in shown.pop("risks")[0]
    assert "exactly one row" in shown.pop("questions")[0]
    assert shown == {
        "approved": fingerprint,
        "plan": fingerprint,
        "parameters": {},
        "remaining": {"measure": "pure DP", "epsilon": "1", "delta": "0"},
        "remaining_decimal": {"epsilon": 1.0, "delta": 0.0},
        "by": "Ann",
        "name": "census",
        "ledger": str(folder / "budget.db"),
        "budget": "epsilon 1 in pure DP",
        "cost": "epsilon 0.5",
        "signed": False,
        "runs": None,
        "until": None,
        "opened": [
            {
                "name": "census",
                "budget": "epsilon 1",
                "ledger": str(folder / "budget.db"),
                "new_ledger": False,
            }
        ],
    }
    assert len(store_at(folder / "budget.db").read().approvals["census"]) == 1


def test_what_approve_needs(run: Run, folder: Path) -> None:
    plan_file(folder)
    done = run("approve", "plan.json", "--create")
    assert done.code == 2
    assert "missing: --by WHO, --ledger WHERE" in done.err
    for by in ("", " ", "Ann\nBob"):
        done = run("approve", "plan.json", "--create", "--by", by, "--ledger", "budget.db")
        assert (done.code, done.out) == (6, "")
        assert "--by" in done.err


def test_new_keys_sign_and_verify(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_file(folder)
    made = run("approve", "--new-key", "--json").json
    shown = run("approve", "--new-key").out
    assert shown.count(f"{KEY_VARIABLE}=ed25519") == 2
    monkeypatch.setenv(KEY_VARIABLE, made["private"])
    done = run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db", "--json")
    assert done.json["signed"] is True
    (approval,) = opened(folder / "budget.db").approvals
    signed = (approval.signature, *approval.signed_fields())
    assert {"default", plan.fingerprint, "Ann"} <= {f for f in signed if isinstance(f, str)}
    assert ApprovalKey.parse(made["public"]).verifies(*signed)
    assert not ApprovalKey.parse(new_pair()[1]).verifies(*signed)


@pytest.mark.parametrize("garbled", ["", "hmac:short", "nonsense"])
def test_a_key_that_is_none_approves_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, garbled: str
) -> None:
    plan_file(folder)
    monkeypatch.setenv(KEY_VARIABLE, garbled)
    done = run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db", "--json")
    assert done.code == 6
    assert done.json["error"] == "LedgerError"
    assert "dpframe approve --new-key" in done.err
    assert not (folder / "budget.db").exists()


def test_the_document_in_the_ledger_is_the_plan(run: Run, folder: Path) -> None:
    plan = plan_file(folder)
    run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db")
    (approval,) = opened(folder / "budget.db").approvals
    assert json.loads(approval.document) == json.loads(plan.to_json())


def test_a_guess_of_what_is_typical_is_for_people(run: Run, folder: Path) -> None:
    frame = pl.LazyFrame(schema={"hours": pl.Float64})
    people = dp.Session(epsilon=1).protect(frame, unit=dp.Rows(), name="people")
    plan = people.agg(dp.sum("hours", (0, 80)).alias("s")).plan(epsilon="0.25")
    (folder / "plan.json").write_text(plan.to_json())
    shown = run("explain", "plan.json", "--typical", "hours=0.001")
    assert (shown.code, "1 risk" in shown.out) == (0, True)
    assert "80,000 times the typical 0.001" in shown.out
    assert "no risks" in run("explain", "plan.json").out
    for wrong in ("hours", "=3"):
        done = run("explain", "plan.json", "--typical", wrong)
        assert (done.code, "write COLUMN=VALUE" in done.err) == (2, True)
    assert run("explain", "plan.json", "--typical", "hours=much").code == 5
    assert run("explain", "plan.json", "--json", "--typical", "hours=3").code == 2


def test_json_states_risks_that_reading_finds_anew(run: Run, folder: Path) -> None:
    frame = pl.LazyFrame(schema={"patient": pl.Int64})
    plan = dp.Session(epsilon=1).protect(frame, dp.Rows(), name="visits").dp_count().plan(epsilon=1)
    (folder / "plan.json").write_text(plan.to_json())
    made = run("explain", "plan.json", "--json").json
    assert made["risks"] == list(plan.risks)
    assert "one row is protected, and 'patient'" in made["risks"][0]
    read = dp.Plan.from_json(json.dumps(made | {"risks": []}))
    assert read.fingerprint == plan.fingerprint
    assert read.risks == plan.risks


def test_verify_says_what_the_kernel_verified(run: Run, folder: Path) -> None:
    plan = plan_file(folder)
    done = run("verify", "plan.json")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{dp.verify(plan)}\n"
    record = json.loads(run("verify", "plan.json", "--json").out)
    assert record["verified"] is True
    assert (record["fingerprint"], record["cost"]) == (plan.fingerprint, plan.cost.words())
    assert record["statements"] == list(dp.verify(plan).statements)


def test_verify_reads_standard_input(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_file(folder)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(plan.to_json().encode())))
    assert run("verify", "-").out == f"{dp.verify(plan)}\n"


def test_verify_names_the_first_statement_that_does_not_follow(run: Run, folder: Path) -> None:
    plan = plan_file(folder)
    text = plan.to_json()
    (folder / "plan.json").write_text(text.replace('"contributions": 1', '"contributions": 2'))
    done = run("verify", "plan.json")
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith("Unsound: the plan does not hold: draw 0 costs more than the plan")
    assert json.loads(run("verify", "plan.json", "--json").out)["error"] == "Unsound"
    (folder / "plan.json").write_text(text.replace('"composition": "sum"', '"composition": "zcdp"'))
    assert run("verify", "plan.json").code == 5
    assert run("verify", "no.json").code == 5


def test_verify_does_not_pass_a_plan_of_version_1(run: Run, folder: Path) -> None:
    (folder / "plan.json").write_text(of_version_1(plan_file(folder)))
    done = run("verify", "plan.json")
    assert done.code == 1
    assert done.out.startswith("NOT VERIFIED: the document has schema version 1")
    assert json.loads(run("verify", "plan.json", "--json").out)["verified"] is False
