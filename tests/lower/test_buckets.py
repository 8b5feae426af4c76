"""People in buckets: the tables of all at once, in less memory, and nothing that is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.source import Source
from dpframe.errors import EngineError, InvalidBounds, UnsupportedOperation
from dpframe.frames.binary import frames_of
from dpframe.lower import Execution, buckets, spill
from dpframe.lower.engines import room
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.engines.room import Room, bytes_of, room_for
from dpframe.lower.spill import Spill, can_spill
from tests.engines.plans import FRAMES, PLANS, query
from tests.engines.running import exact, on_polars, one_hash
from tests.laws.neighbours import tables_of

__all__ = ["one_hash"]

OF_PEOPLE = [
    name
    for name in PLANS
    if all(
        frame.source.identifier is not None for frame in frames_of(query(PLANS[name])[0].relation)
    )
]
needs_pieces = pytest.mark.skipif(not can_spill(), reason="this Polars hands out no pieces")


def in_parts(name: str, room: Room) -> Any:
    """The tables of a plan, of a bucket of people at a time."""
    asked, tokens = query(PLANS[name])
    engine = PolarsEngine("in-memory", room)
    return exact(asked, tokens, engine, {n: frame.lazy() for n, frame in FRAMES.items()})


def test_most_plans_are_of_people() -> None:
    assert len(OF_PEOPLE) >= 30


BOTH_WAYS = [
    pytest.param(name, room, marks=[] if (i + j) % 2 else [pytest.mark.slow])
    for i, name in enumerate(OF_PEOPLE)
    for j, room in enumerate([Room(4), Room(3, spills=False)])
]
"""Of each plan one way in every run, and the other in slow ones."""


@pytest.mark.parametrize(("name", "room"), BOTH_WAYS)
@pytest.mark.usefixtures("one_hash")
def test_tables_are_those_of_all_people_at_once(name: str, room: Room) -> None:
    assert in_parts(name, room) == on_polars(name)


KINDS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pl.String, ["ann", "bob", "", "zoë", None]),
    "category": (pl.Categorical, ["ann", "bob", "", "cy", None]),
    "enum": (pl.Enum(["q", "p", "r"]), ["p", "q", "r", "p", None]),
    "small": (pl.Int8, [-128, 0, 1, 127, None]),
    "large": (pl.UInt64, [2**64 - 1, 2**63, 0, 2**63 + 1, None]),
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-5, 9)), max_size=60),
    cut=st.integers(0, 60),
    spills=st.booleans(),
    count=st.integers(1, 7),
)
@settings(max_examples=4)
def test_layouts_and_types_of_identifiers_make_no_difference(
    kind: str, rows: list[tuple[int, int, int]], cut: int, spills: bool, count: int
) -> None:
    dtype, people = KINDS[kind]
    columns = {
        "who": pl.Series([people[who] for who, _, _ in rows], dtype=dtype),
        "g": pl.Series([g for _, g, _ in rows], dtype=pl.Int32),
        "x": pl.Series([x / 4 for _, _, x in rows], dtype=pl.Float64),
    }
    frame = pl.DataFrame(columns)
    chunked = pl.concat([frame[:cut], frame[cut:]], rechunk=False)
    whole, parts = (_tables(f, r) for f, r in [(frame, None), (chunked, Room(count, spills))])
    assert parts == whole


def _tables(frame: pl.DataFrame, room: Room | None) -> list[list[Any]]:
    """Exact tables of a query with limits, with a known salt."""
    people = dp.Session(epsilon=1).protect(frame, "who")
    asked = (
        people.filter(pl.col("x") > -1)
        .limit_rows(3, by="g")
        .limit_groups(2, by="g")
        .group_by("g", keys=[0, 1, 2])
        .agg(
            dp.n_unique("who").alias("n"),
            pl.col("x").dp_sum((-1, 2), per="unit"),  # type: ignore[attr-defined]
            dp.count(),
            pl.col("x").dp_n_unique().alias("d"),  # type: ignore[attr-defined]
        )
    )
    return _of(asked, frame, room)


def _of(asked: Any, frame: pl.DataFrame, room: Room | None) -> list[list[Any]]:
    query = asked._query
    relation = replace(query.relation, salt=7)
    execution = Execution(
        PolarsEngine(room=room), {relation.token: frame.lazy()}, {relation.token: frame.schema}
    )
    tables = tables_of(query)
    found = execution.run(relation, query.groups, tables)
    return [np.asarray(found[table].dense(1, 0, 3)).tolist() for table in tables]


# -- files --------------------------------------------------------------------------------------


def _spilled(count: int = 3) -> Spill:
    frame = pl.LazyFrame({"who": list(range(100)), "x": [1.5] * 100, "secret": ["a"] * 100})
    made = Spill(frame.collect_schema(), count)
    made.write(frame, pl.col("who") % count, ["who", "x"])
    return made


@needs_pieces
def test_each_row_is_in_one_bucket_and_no_column_too_many() -> None:
    with _spilled() as made:
        parts = [made.bucket(k).select("who", "x").collect() for k in range(3)]
        assert [sorted(part["who"]) for part in parts] == [
            [n for n in range(100) if n % 3 == k] for k in range(3)
        ]
        assert made.bucket(0).select("x").head(5).collect().height == 5
        found = made.bucket(1).filter(pl.col("who") > 50).select("x").collect()
        assert found.height == sum(n % 3 == 1 for n in range(51, 100))
        with pytest.raises(pl.exceptions.PolarsError):
            made.bucket(0).select("secret").collect()


@needs_pieces
def test_files_have_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _spilled() as made:
        assert list(tmp_path.iterdir()) == []
        files = [os.fstat(pieces.file.fileno()) for pieces in made._files]
        assert all(found.st_size > 0 for found in files)
        assert all(found.st_nlink == 0 and not found.st_mode & 0o077 for found in files)
    assert all(pieces.file.closed for pieces in made._files)


_KILLED = """
import os, signal, sys, tempfile
import polars as pl
from dpframe.lower.spill import Spill
tempfile.tempdir = sys.argv[1]
frame = pl.LazyFrame({"who": list(range(1000))})
made = Spill(frame.collect_schema(), 4)
made.write(frame, pl.col("who") % 4, ["who"])
os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_pieces
def test_nothing_is_left_after_a_kill(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def _file(folder: Path) -> Path:
    path = folder / "visits.parquet"
    pl.DataFrame({"who": [1, 2, 3], "g": ["a", "b", "a"]}).write_parquet(path)
    return path


@needs_pieces
def test_files_are_closed_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Spill]()

    class Watched(Spill):
        __slots__ = ()

        def write(self, frame: pl.LazyFrame, bucket: pl.Expr, columns: Sequence[str]) -> None:
            super().write(frame, bucket, columns)
            made.append(self)

    def fail(pieces: Any) -> Any:
        if pieces.places:
            raise OSError("no space is left on the device with 'a' and 'b'")
        yield from ()

    session = dp.Session(epsilon=1)
    monkeypatch.setattr(room, "_SMALLEST", 500)
    people = session.protect(_file(tmp_path), "who", memory=1000)
    monkeypatch.setattr(buckets, "Spill", Watched)
    asked = people.limit_groups(1, by="g").group_by("g", keys=["a"]).agg(dp.n_unique("who"))
    monkeypatch.setattr(spill, "_gathered", fail)
    with pytest.raises(EngineError) as caught:
        asked.collect(epsilon="0.5")
    assert "space" not in str(caught.value)
    assert len(made) == 2  # one was rehearsed
    assert all(pieces.file.closed for one in made for pieces in one._files)
    assert session.spent == dp.PureDP("0.5")


# -- how much -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "expected"),
    [("2GB", 2 * 10**9), ("512 MiB", 512 * 2**20), ("1.5gb", 1_500_000_000), (7, 7)],
)
def test_amounts_of_memory(memory: object, expected: int) -> None:
    assert bytes_of(memory) == expected


def test_the_machine_has_some() -> None:
    assert bytes_of("auto") > 10**8


@pytest.mark.parametrize("memory", ["lots", "", "0GB", "-1GB", "2", 0, -5, True, 1.5, "1e9GB"])
def test_other_amounts_are_refused(memory: object) -> None:
    with pytest.raises(InvalidBounds, match="no amount of memory"):
        dp.Session(epsilon=1).protect(FRAMES["f"], "u", memory=memory)  # type: ignore[arg-type]


def test_the_number_of_buckets_follows_from_sizes_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"x" * 1000)
    assert room_for(2 * 10**9, [file], spills=True) is None
    assert room_for(2 * 10**9, [10**9], spills=True) == Room(6, spills=False)
    assert room_for(2 * 10**9, [], spills=False) == Room(32, spills=False)
    assert room_for(2 * 10**9, [tmp_path / "gone"], spills=True) == Room(32)
    assert room_for(1, [10**15], spills=True) == Room(512)


def test_engines_with_limits_of_their_own_are_left_to_them() -> None:
    elsewhere: Any = SimpleNamespace(label="DuckDB", name="duckdb")
    source = Source(None, elsewhere, pl.Schema({"u": pl.Int64}))
    assert source.within(None, spill=True) is source
    with pytest.raises(UnsupportedOperation, match="DuckDB keeps within a limit of its own"):
        source.within("1GB", spill=True)


def test_whether_rows_are_spilled_is_said_by_true_or_false() -> None:
    with pytest.raises(UnsupportedOperation, match="neither True nor False"):
        dp.Session(epsilon=1).protect(FRAMES["f"], "u", memory="1GB", spill="no")  # type: ignore[arg-type]


def test_few_buckets_are_scans_of_their_own() -> None:
    sizes = {8: 1_300_000_000, 9: 1_400_000_000}
    for number, size in sizes.items():
        assert room_for(2 * 10**9, [size], spills=True) == Room(number, spills=number > 8)
        assert room_for(2 * 10**9, [size], spills=False) == Room(number, spills=False)


def test_rows_without_individuals_are_counted_at_once() -> None:
    frame = dp.Session(epsilon=10**6).protect(FRAMES["f"], dp.Rows(), memory=1000)
    assert abs(frame.agg(dp.count()).collect(epsilon=10**6)["len"].item() - FRAMES["f"].height) <= 1


@needs_pieces
def test_results_do_not_tell_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path)
    plans = []
    monkeypatch.setattr(room, "_SMALLEST", 500)
    for options in ({}, {"memory": "1KB"}, {"memory": "1KB", "spill": False}):
        people = dp.Session(epsilon=10**9).protect(path, "who", **options)  # type: ignore[arg-type]
        asked = (
            people.limit_groups(1, by="g")
            .group_by("g", keys=["a", "b"])
            .agg(dp.n_unique("who").alias("n"))
        )
        release = asked.release(epsilon=10**8)
        plans.append(release.plan.fingerprint)
        assert release.frame["n"].to_list() == [2, 1]
    assert len(set(plans)) == 1


def test_a_function_that_runs_queries_is_asked_for_each_bucket() -> None:
    asked = list[pl.LazyFrame]()

    def run(frame: pl.LazyFrame) -> pl.DataFrame:
        asked.append(frame)
        return frame.collect()

    people = dp.Session(epsilon=10**9).protect(FRAMES["f"].lazy().filter(True), "u", memory=1000)
    counted = people.limit_groups(1, by="s").group_by("s", keys=["a"]).agg(dp.n_unique("u"))
    counted.collect(epsilon=10**8, engine=run)
    assert len(asked) == 32
