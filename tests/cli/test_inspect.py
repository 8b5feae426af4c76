"""Results as files, and what `dpframe inspect` reads in them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.files import inspect
from dpframe.api.release import Release
from tests.cli.commands import PEOPLE, Run, plan_file

TYPES: dict[str, pl.Series] = {
    "enum": pl.Series(["x", None], dtype=pl.Enum(["x", "y"])),
    "categorical": pl.Series(["x", "y"], dtype=pl.Categorical),
    "decimal": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(10, 2)),
    "zoned": pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ns", "Europe/Paris")),
    "moment": pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ms")),
    "date": pl.Series([date(2020, 1, 1), None]),
    "time": pl.Series([time(1, 2, 3), None]),
    "duration": pl.Series([timedelta(1), None]),
    "list": pl.Series([[1, None], []], dtype=pl.List(pl.Int8)),
    "array": pl.Series([[1.5, 2.5], None], dtype=pl.Array(pl.Float32, 2)),
    "struct": pl.Series([{"a": 1, "b": ["x"]}, None]),
    "nested": pl.Series(
        [[{"e": "x", "n": 0.1}], []],
        dtype=pl.List(pl.Struct({"e": pl.Enum(["x"]), "n": pl.Float64})),
    ),
    "float": pl.Series([float("nan"), -float("inf")]),
    "text": pl.Series(['é,"\n', ""]),
    "whole": pl.Series([2**64 - 1, 0], dtype=pl.UInt64),
    "boolean": pl.Series([True, None]),
    "none": pl.Series([None, None]),
}


def released(frame: pl.DataFrame | None = None) -> Release:
    people = dp.Session(epsilon=1).protect(PEOPLE, unit=dp.Rows())
    made = people.group_by("sex", keys=["f", "m"]).agg(dp.count()).release(epsilon=0.5)
    return made if frame is None else Release(frame, made.plan, made.cost)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_read_back_unchanged(tmp_path: Path, name: str) -> None:
    path = tmp_path / "result.parquet"
    released(TYPES[name].alias("x").to_frame()).write(path)
    assert inspect(path).unchanged
    other = TYPES[name].alias("x").to_frame().reverse()
    if not other.equals(TYPES[name].alias("x").to_frame()):
        other.write_parquet(path, metadata=pl.read_parquet_metadata(path))
        assert not inspect(path).unchanged


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_result_carries_its_plan(run: Run, folder: Path, suffix: str) -> None:
    before, release = datetime.now(UTC), released()
    release.write(folder / f"result{suffix}")
    found = inspect(folder / f"result{suffix}")
    assert found.plan.fingerprint == release.plan.fingerprint
    assert found.unchanged
    assert timedelta(seconds=-1) < found.released - before < timedelta(seconds=60)
    done = run("inspect", f"result{suffix}")
    assert done.code == 0
    assert release.plan.explain() in done.out
    assert f"fingerprint {release.plan.fingerprint}" in done.out
    assert "the file is as it was released" in done.out
    record = run("inspect", f"result{suffix}", "--json").json
    assert record["cost"] == "epsilon 0.5"


def test_what_is_in_a_result_is_the_released_frame_and_its_plan(tmp_path: Path) -> None:
    release = released()
    release.write(tmp_path / "a.parquet")
    release.write(tmp_path / "a.csv")
    assert pl.read_parquet(tmp_path / "a.parquet").equals(release.frame)
    assert pl.read_csv(tmp_path / "a.csv").equals(release.frame)
    beside = json.loads((tmp_path / "a.csv.plan.json").read_text())
    assert beside.keys() == {"fingerprint", "cost", "released", "plan", "content"}
    metadata = json.loads(pl.read_parquet_metadata(tmp_path / "a.parquet")["dpframe"])
    assert metadata.keys() == beside.keys()
    written = json.loads(release.plan.to_json())
    assert metadata["plan"] == beside["plan"] == written


def test_contents_that_cannot_be_read_are_not_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    released().write(path)
    beside = tmp_path / "a.csv.plan.json"
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"content": None}))
    path.unlink()
    assert not inspect(path).unchanged


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_changed_contents_are_5(run: Run, folder: Path, suffix: str) -> None:
    path = folder / f"result{suffix}"
    released().write(path)
    if suffix == ".csv":
        path.write_text(path.read_text().replace("f,", "f,1"))
    else:
        frame = pl.read_parquet(path).with_columns(pl.col("len") + 1)
        frame.write_parquet(path, metadata=pl.read_parquet_metadata(path))
    done = run("inspect", path.name)
    assert done.code == 5
    assert "the file is CHANGED since it was released" in done.out
    as_json = run("inspect", path.name, "--json")
    assert (as_json.code, as_json.json["unchanged"]) == (5, False)


def metadata(folder: Path, **changes: Any) -> Path:
    """A result whose record was changed."""
    path = folder / "result.parquet"
    released().write(path)
    frame, found = pl.read_parquet(path), pl.read_parquet_metadata(path)
    record = json.loads(found["dpframe"]) | changes
    frame.write_parquet(path, metadata={"dpframe": json.dumps(record)})
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": None},
        {"plan": []},
        {"plan": {}},
        {"released": None},
        {"released": "yesterday"},
    ],
)
def test_a_record_that_makes_no_sense_is_5(run: Run, folder: Path, changes: dict[str, Any]) -> None:
    done = run("inspect", metadata(folder, **changes).name)
    assert (done.code, done.out) == (5, "")
    assert "in: result.parquet" in done.err


def test_an_edited_plan_is_5(run: Run, folder: Path) -> None:
    plan = json.loads(plan_file(folder).to_json())
    plan["plan"]["source"] = "another"
    done = run("inspect", metadata(folder, plan=plan).name)
    assert done.code == 5
    assert done.err.startswith("PlanMismatch: the plan was edited")


@pytest.mark.parametrize("content", [None, "", 3])
def test_a_digest_that_is_none_is_a_change(run: Run, folder: Path, content: object) -> None:
    assert run("inspect", metadata(folder, content=content).name).code == 5


def test_files_of_others_carry_no_plan(run: Run, folder: Path) -> None:
    PEOPLE.write_csv(folder / "people.csv")
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    (folder / "notes.txt").write_text("hello")
    (folder / "garbage.csv").write_text("a")
    (folder / "garbage.csv.plan.json").write_text("[" * 100_000)
    PEOPLE.write_parquet(folder / "foreign.parquet", metadata={"dpframe": "[]"})
    names = ["people.parquet", "people.csv", "broken.parquet", "notes.txt"]
    for name in [*names, "garbage.csv", "foreign.parquet"]:
        done = run("inspect", name)
        assert (done.code, done.out) == (5, "")
        assert "the file holds no plan of dpframe" in done.err


def test_a_csv_without_the_file_beside_it(run: Run, folder: Path) -> None:
    released().write(folder / "result.csv")
    (folder / "result.csv.plan.json").unlink()
    done = run("inspect", "result.csv")
    assert done.code == 5
    assert ".plan.json added to its name" in done.err


def test_a_result_replaces_another_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.parquet"
    first = released()
    first.write(path)
    lists = pl.DataFrame({"x": [[1]]})
    with pytest.raises(dp.UnsupportedOperation, match="cannot be written as"):
        released(lists).write(tmp_path / "result.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["result.parquet"]
    second = released()
    second.write(path)
    assert pl.read_parquet(path).equals(second.frame)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["result.txt", "result", "nowhere/result.csv"])
def test_where_a_result_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(dp.UnsupportedOperation):
        released().write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
