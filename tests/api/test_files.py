"""Who may read files that results are written to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import main

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")


@pytest.fixture(params=[0o022, 0o027, 0o077, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path) -> None:
    frame = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1, 2]}), dp.Rows())
    frame.dp_count().release(epsilon=1).write(path)


@pytest.mark.parametrize("name", ["result.parquet", "result.csv"])
def test_a_new_file_is_as_readable_as_any_other(tmp_path: Path, umask: int, name: str) -> None:
    path = tmp_path / name
    write(path)
    plain = tmp_path / "plain"
    plain.touch()
    assert mode(path) == mode(plain) == 0o666 & ~umask
    beside = tmp_path / f"{name}.plan.json"
    assert not beside.exists() or mode(beside) == mode(plain)


@pytest.mark.parametrize("before", [0o644, 0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_who_may_read_it(
    tmp_path: Path, umask: int, before: int
) -> None:
    path = tmp_path / "result.csv"
    write(path)
    beside = tmp_path / "result.csv.plan.json"
    path.chmod(before)
    beside.chmod(before)
    write(path)
    assert mode(path) == mode(beside) == before
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, beside.name]


def test_commands_write_files_that_others_may_read(tmp_path: Path, umask: int) -> None:
    pl.DataFrame({"x": [1, 2]}).write_parquet(tmp_path / "rows.parquet")
    job = tmp_path / "job.py"
    job.write_text(
        "import dpframe as dp\n"
        "session = dp.Session(epsilon=1)\n"
        f"people = session.protect({str(tmp_path / 'rows.parquet')!r}, dp.Rows())\n"
        "query = people.dp_count()\n"
        'spend = {"epsilon": 1}\n'
    )
    output = tmp_path / "out.parquet"
    assert main(["run", str(job), "--output", str(output)]) == 0
    assert mode(output) == 0o666 & ~umask
