"""Jobs in TOML that are planned by people who may not read the data."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from tests.cli.commands import Run

JOB = """
[session]
epsilon = 1
ledger = "budget.db"
create = true
require_approval = true

[source]
path = "{path}"
unit = "person"
{more}
[query]
filter = ["x > 1"]
limit_rows = {{n = 2}}
group_by = ["g"]
keys = ["a", "b"]

[query.outputs.total]
aggregate = "sum"
of = "x"
bounds = [0, 5]

[spend]
epsilon = "0.5"
"""
SCHEMA = """
[source.schema]
person = "Int64"
g = "String"
x = "Float64"
"""


def _write(path: Path, x: type[pl.DataType] = pl.Float64) -> None:
    rows = {"person": [1, 2], "g": ["a", "b"], "x": [1, 2], "more": [None, None]}
    frame = pl.DataFrame(rows, schema_overrides={"x": x})
    getattr(frame, {".csv": "write_csv", ".arrow": "write_ipc"}.get(path.suffix, "write_parquet"))(
        path
    )


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("people.parquet", ""),
        ("people.parquet", 'engine = "duckdb"'),
        ("people.arrow", ""),
        ("people.csv", ""),
        ("people.csv", 'engine = "duckdb"'),
    ],
)
def test_an_approval_without_the_data_counts(run: Run, folder: Path, name: str, more: str) -> None:
    (folder / "people.parquet").unlink(missing_ok=True)
    (folder / "job.toml").write_text(JOB.format(path=f"new-{name}", more=more + SCHEMA))
    explained = run("explain", "job.toml", "--output", "plan.json")
    assert explained.code == 0, explained.err
    approved = run("approve", "job.toml", "--by", "ann", "--ledger", "budget.db", "--create")
    assert approved.code == 0, approved.err
    assert run("diff", "plan.json", "job.toml").code == 0
    missing = run("run", "job.toml")
    assert missing.code == 5
    assert "there is no file" in missing.err
    _write(folder / f"new-{name}")
    done = run("run", "job.toml")
    assert done.code == 0, done.err
    fingerprints = [r.out.splitlines()[-1] for r in (explained, run("explain", "job.toml"))]
    assert fingerprints[0] == fingerprints[1]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_another_type_is_refused_before_the_charge(run: Run, folder: Path, engine: str) -> None:
    more = f'engine = "{engine}"' + SCHEMA
    text = JOB.format(path="other.parquet", more=more).replace("require_approval = true", "")
    (folder / "job.toml").write_text(text)
    _write(folder / "other.parquet", pl.Int32)
    done = run("run", "job.toml")
    assert done.code == 5
    assert "'x' is Int32, and stated as Float64; nothing was charged" in done.err
    history = dp.Session(epsilon=1, ledger=folder / "budget.db").history
    assert history.is_empty()


@pytest.mark.parametrize("path", ["none.parquet", "none/*.parquet", "none.csv", "none/*.arrow"])
def test_without_a_schema_it_says_what_to_write(run: Run, folder: Path, path: str) -> None:
    (folder / "job.toml").write_text(JOB.format(path=path, more=""))
    refused = run("explain", "job.toml")
    assert refused.code == 5
    assert "[source.schema]" in refused.err
    assert 'age = "Int64"' in refused.err
    assert "Traceback" not in refused.err
