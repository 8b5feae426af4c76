"""Jobs of several queries: one plan, one charge, a file for each result."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import dpframe as dp
from tests.cli.commands import PYTHON_JOB, Run
from tests.ledger.ledgers import opened

JOB = PYTHON_JOB.format(approval=False, epsilon="0.25") + "\nquery = [query, query]\n"


def test_each_result_has_a_file_of_its_own(run: Run, folder: Path) -> None:
    (folder / "job.py").write_text(JOB)
    done = run("run", "job.py", "--output", "found.parquet", "--json")
    assert done.code == 0, done.err
    assert done.json["output"] == ["found-1.parquet", "found-2.parquet"]
    one, other = (pl.read_parquet(folder / name) for name in done.json["output"])
    assert one.equals(other)
    shown = run("inspect", "found-2.parquet")
    assert shown.code == 0
    assert "the result of query 2 of 2" in shown.out
    assert run("inspect", "found-2.parquet", "--json").json["query"] == 2
    assert opened(folder / "budget.db").spent == dp.PureDP("0.25")


def test_results_are_printed_one_after_another(run: Run, folder: Path) -> None:
    (folder / "job.py").write_text(JOB)
    explained = run("explain", "job.py", "--details")
    assert "several queries, one plan and one charge" in explained.out
    done = run("run", "job.py", "--json")
    assert done.code == 0, done.err
    assert len(done.json["result"]) == 2
    assert done.json["fingerprint"] in explained.out


def test_lists_without_queries_and_weights_of_one_are_5(run: Run, folder: Path) -> None:
    for text, words in (
        (JOB + "query = []", "belongs to no session"),
        (JOB + "query = [query, query]", "not nested"),
        (JOB + "query, spend = query[0], {**spend, 'weights': [1]}", "this is one"),
        (JOB + "spend = {**spend, 'weights': [1]}", "one weight for each"),
    ):
        (folder / "job.py").write_text(text)
        done = run("run", "job.py")
        assert done.code == 5, (text, done.err)
        assert words in done.err or "is empty" in done.err or "is a list" in done.err
    assert opened(folder / "budget.db").spent.is_zero


TOML = """
[session]
epsilon = "1"
[source]
path = "people.csv"
unit = {}
schema = {age = "Int64", sex = "String"}
[[query]]
[query.outputs.n]
aggregate = "count"
[[query]]
group_by = "sex"
keys = ["f", "m"]
[query.outputs.n]
aggregate = "count"
[spend]
epsilon = "0.5"
weights = [1, 3]
"""


def test_a_toml_job_has_several_queries(run: Run, folder: Path) -> None:
    pl.DataFrame({"age": [31, 64], "sex": ["f", "m"]}).write_csv(folder / "people.csv")
    (folder / "job.toml").write_text(TOML)
    done = run("run", "job.toml", "--json")
    assert done.code == 0, done.err
    one, other = done.json["result"]
    assert [*one[0]] == ["n"]
    assert [row["sex"] for row in other] == ["f", "m"]
    audited = run("audit", "job.toml")
    assert audited.code == 5
    assert "an audit is of one" in audited.err
