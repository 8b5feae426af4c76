"""Jobs in Python: what makes one, and what each mistake says."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from tests.cli.commands import PYTHON_JOB, Run, python_job
from tests.ledger.ledgers import opened

GOOD = PYTHON_JOB.format(approval=False, epsilon="0.25")


def job(folder: Path, text: str, name: str = "job.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`query` is missing"),
        ("query = 3", "`query` is a int, not a private query"),
        (GOOD.replace("spend =", "cost ="), "`spend` is missing"),
        (GOOD + "spend = {}", "`spend` is a dict, not a dict of amounts"),
        (GOOD + "spend = 0.5", "`spend` is a float"),
        (GOOD + "spend = {'epsilom': 1}", "`spend` does not take 'epsilom'"),
        (GOOD + "spend = {1: 1}", "`spend` does not take 1"),
        (GOOD + "output = 3", "`output` is a int, not a path"),
        ("raise ValueError('Mrs Hidden has 3')", "it failed with ValueError in line 1"),
        ("\n\nimport nothing_of_that_name", "it failed with ModuleNotFoundError in line 3"),
        ("query = (", "it failed with SyntaxError in line 1"),
        ("import sys\nsys.exit('Mrs Hidden')", "it called sys.exit()"),
        ("\0", "it failed with "),
        (
            "import polars as pl, dpframe as dp\n"
            "query = pl.DataFrame({'a': [1]}).dp_count(unit=dp.Rows())\nspend = {'epsilon': 1}",
            "the query belongs to no session, and `session` is missing",
        ),
    ],
)
def test_what_is_no_job_is_5_and_says_why(run: Run, folder: Path, text: str, words: str) -> None:
    job(folder, text)
    for command in ("run", "explain"):
        done = run(command, "job.py")
        assert (done.code, done.out) == (5, "")
        assert words in done.err
        assert "in: job.py" in done.err
        assert "Hidden" not in done.err
    assert not (folder / "budget.db").exists() or opened(folder / "budget.db").spent.is_zero


@pytest.mark.parametrize(
    ("spend", "words"),
    [
        ("{'epsilon': 'much'}", "InvalidBudget"),
        ("{'epsilon': []}", "InvalidBudget"),
        ("{'epsilon': -1}", "InvalidBudget"),
        ("{'rho': 1}", "InvalidBudget"),
        ("{'epsilon': 0.1, 'split': []}", "InvalidBudget"),
        ("{'accuracy': {'nobody': 3}}", "UnknownColumn"),
        ("{'epsilon': 0.1, 'interval': 2}", ""),
    ],
)
def test_a_spend_that_makes_no_sense_is_5_and_charges_nothing(
    run: Run, folder: Path, spend: str, words: str
) -> None:
    job(folder, GOOD + f"spend = {spend}")
    done = run("run", "job.py")
    assert (done.code, done.out) == (5, "")
    assert done.said.startswith(words)
    assert opened(folder / "budget.db").spent.is_zero


def test_what_the_job_refuses_itself_is_what_it_says(run: Run, folder: Path) -> None:
    job(folder, GOOD.replace('"age"', '"aeg"'))
    done = run("run", "job.py")
    assert done.code == 5
    assert done.said.startswith("UnknownColumn: the frame has no column 'aeg'")
    (folder / "people.parquet").unlink()
    done = run("run", python_job(folder))
    assert done.code == 5
    assert "there is no file 'people.parquet'" in done.err


def test_what_the_job_prints_is_not_the_result(run: Run, folder: Path) -> None:
    job(folder, "print('loading')\n" + GOOD)
    done = run("run", "job.py", "--json")
    assert done.code == 0
    assert [row["sex"] for row in done.json["result"]] == ["f", "m"]
    assert "loading" in done.err
    assert dp.Plan.from_json(run("explain", "job.py", "--json").out)


def test_a_job_may_use_its_neighbours_and_folders(run: Run, folder: Path) -> None:
    inner = folder / "jobs"
    inner.mkdir()
    job(inner, "AGE = 40\n", "ages_of_a_test.py")
    job(inner, "import ages_of_a_test\n" + GOOD)
    before = list(sys.path)
    assert run("run", "jobs/job.py").code == 0
    assert sys.path == before
    sys.modules.pop("ages_of_a_test", None)


def test_a_job_that_cleans_the_path_itself(run: Run, folder: Path) -> None:
    job(folder, "import sys\nsys.path.pop(0)\n" + GOOD)
    assert run("run", "job.py").code == 0


def test_a_job_does_not_think_that_it_is_run_by_itself(run: Run, folder: Path) -> None:
    job(folder, GOOD + "\nif __name__ == '__main__':\n    raise SystemExit(9)\n")
    assert run("run", "job.py").code == 0


def test_a_query_of_no_session_runs_in_the_job_s(run: Run, folder: Path) -> None:
    free = "query = pl.read_parquet('people.parquet').dp_count(unit=dp.Rows())\n"
    job(folder, GOOD + free)
    done = run("run", "job.py", "--json")
    assert done.code == 0
    assert list(done.json["result"][0]) == ["len"]
    assert opened(folder / "budget.db").spent == dp.PureDP("0.25")


def test_options_of_the_spend(run: Run, folder: Path) -> None:
    job(folder, GOOD + "spend = {'epsilon': 0.5, 'interval': 0.9, 'split': 'equal'}")
    assert list(run("run", "job.py", "--json").json["result"][0]) == ["sex", "n", "n_low", "n_high"]
    assert run("explain", "job.py").code == 0
    job(folder, GOOD + "spend = {'accuracy': {'n': 20}}")
    assert run("run", "job.py").code == 0


def test_where_the_output_goes(run: Run, folder: Path) -> None:
    job(folder, GOOD + "from pathlib import Path\noutput = Path('a.parquet')\n")
    assert run("run", "job.py").code == 0
    assert (folder / "a.parquet").exists()
    assert run("run", "job.py", "--output", "b.csv").code == 0
    assert pl.read_csv(folder / "b.csv").columns == ["sex", "n"]
    assert (folder / "b.csv.plan.json").exists()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("result.xlsx", "written as .parquet or .csv, not as '.xlsx'"),
        ("result", "not as 'a file without an ending'"),
        ("nowhere/result.csv", "nothing can be written there: No such file"),
        ("job.py/result.csv", "nothing can be written there: Not a directory"),
        ("folder.parquet", "nothing can be written there: it is a folder"),
    ],
)
def test_an_output_that_cannot_be_is_found_out_before_anything_is_charged(
    run: Run, folder: Path, output: str, words: str
) -> None:
    (folder / "folder.parquet").mkdir()
    python_job(folder)
    done = run("run", "job.py", "--output", output)
    assert (done.code, done.out) == (5, "")
    assert words in done.err
    assert opened(folder / "budget.db").spent.is_zero


SCANNED = GOOD.replace('protect("people.parquet"', 'protect(pl.scan_parquet("people.parquet")')


@pytest.mark.parametrize(
    ("output", "there"),
    [
        ("people.parquet", "people.parquet"),
        ("notes.parquet", "notes.parquet"),
        ("notes.csv", "notes.csv"),
        ("new.csv", "new.csv.plan.json"),
    ],
)
def test_only_results_are_replaced(run: Run, folder: Path, output: str, there: str) -> None:
    """A job may scan a file by itself, and nobody can tell that it is the source."""
    assert "scan_parquet" in SCANNED
    job(folder, SCANNED)
    if not (folder / there).exists():
        (folder / there).write_text("nobody has this twice")
    before = (folder / there).read_bytes()
    done = run("run", "job.py", "--output", output)
    assert (done.code, done.out) == (5, "")
    source = "the result would replace the data that it is made from"
    other = f"{there!r} is not a result of dpframe"
    assert (source if output == "people.parquet" else other) in done.err
    assert (folder / there).read_bytes() == before
    assert opened(folder / "budget.db").spent.is_zero
    (folder / there).unlink()
    if there != "people.parquet":
        for _ in range(2):
            assert run("run", "job.py", "--output", output).code == 0


def test_a_disk_that_is_full_after_the_charge_loses_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_job(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpframe.api.files.os.replace", full)
    for name in ("result.parquet", "result.csv"):
        done = run("run", "job.py", "--output", name)
        assert done.code == 5
        assert [row["sex"] for row in done.json] == ["f", "m"]
        assert "No space left on device" in done.err
    assert [p.name for p in folder.iterdir() if "result" in p.name or p.name[0] == "."] == []
    assert opened(folder / "budget.db").spent == dp.PureDP("0.5")


@pytest.mark.parametrize("name", ["job.txt", "job", "missing.py", "."])
def test_a_file_that_cannot_be_a_job(run: Run, folder: Path, name: str) -> None:
    job(folder, GOOD, "job.txt")
    job(folder, GOOD, "job")
    done = run("run", name)
    assert (done.code, done.out) == (5, "")


def test_every_row_and_column_of_a_table_is_printed(run: Run, folder: Path) -> None:
    job(
        folder,
        GOOD.replace('"sex", keys=["f", "m"]', '"age", keys=list(range(100, 160))')
        + "\nquery = grouped.agg(**{f'column_{i}': dp.count() for i in range(30)})\n",
    )
    done = run("run", "job.py")
    assert done.code == 0
    assert "…" not in done.out
    assert len([line for line in done.out.splitlines() if line.startswith("│ 1")]) == 60
    assert all(f"column_{i} " in done.out for i in range(30))


@pytest.mark.parametrize("where", ["memory", "ledger"])
def test_who_runs_a_job_can_require_approval(run: Run, folder: Path, where: str) -> None:
    text = GOOD if where == "ledger" else GOOD.replace('ledger="budget.db", ', "")
    job(folder, text.replace("require_approval=False, ", ""))
    assert run("run", "job.py", "--require-approval").code == 4
    assert run("explain", "job.py", "--output", "plan.json").code == 0
    assert run("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db").code == 0
    done = run("run", "job.py", "--require-approval")
    assert done.code == (0 if where == "ledger" else 4)
    job(folder, text + "session = dp.Session(epsilon=1, ledger='other.db')\n")
    assert (
        run("run", "job.py", "--require-approval", "--create").code == done.code
    )  # the query's session


def test_a_result_that_json_cannot_have_is_printed_as_text(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(_: pl.DataFrame) -> str:
        raise pl.exceptions.PanicException("not yet implemented")

    python_job(folder)
    monkeypatch.setattr(pl.DataFrame, "write_json", panics)
    done = run("run", "job.py", "--json")
    assert done.code == 0
    assert [row["sex"] for row in done.json["result"]] == ["f", "m"]
