"""People in buckets: the tables of all at once, in less memory, and nothing that is left behind."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.measurement import CellCounts
from dpframe.api import source
from dpframe.api.source import Source, protected_source
from dpframe.errors import EngineError, InvalidBounds, UnsupportedOperation
from dpframe.frames.relation import frames_of
from dpframe.lower import Execution, buckets, tables
from dpframe.lower.buckets import Sink, Spill, can_sink, can_spill
from dpframe.lower.engines import polars_engine
from dpframe.lower.engines.polars_engine import (
    POLARS,
    PolarsEngine,
    Room,
    bytes_of,
    has_disk,
    room_for,
)
from dpframe.rows.failures import OPTIMIZATIONS
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
    pytest.param(name, room, marks=[] if (i + j) % 3 == 0 else [pytest.mark.slow])
    for i, name in enumerate(OF_PEOPLE)
    for j, room in enumerate([Room(4), Room(3, spills=False), Room(5, held=10**9)])
]
"""Of each plan one way in every run, and the others in slow ones."""


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
    held=st.sampled_from([0, 700, 10**9]),
    count=st.integers(1, 7),
)
@settings(max_examples=6)
def test_layouts_and_types_of_identifiers_make_no_difference(
    kind: str, rows: list[tuple[int, int, int]], cut: int, spills: bool, held: int, count: int
) -> None:
    dtype, people = KINDS[kind]
    columns = {
        "who": pl.Series([people[who] for who, _, _ in rows], dtype=dtype),
        "g": pl.Series([g for _, g, _ in rows], dtype=pl.Int32),
        "x": pl.Series([x / 4 for _, _, x in rows], dtype=pl.Float64),
    }
    frame = pl.DataFrame(columns)
    chunked = pl.concat([frame[:cut], frame[cut:]], rechunk=False)
    whole, parts = (_tables(f, r) for f, r in [(frame, None), (chunked, Room(count, spills, held))])
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
    return [np.asarray(found.dense(1, 0, 3)).tolist() for found in _counted(asked, frame, room)]


def _counted(asked: Any, frame: pl.DataFrame | pl.LazyFrame, room: Room | None) -> list[CellCounts]:
    query, rows = asked._query, frame.lazy()
    relation = replace(query.relation, salt=7)
    execution = Execution(
        PolarsEngine(room=room), {relation.token: rows}, {relation.token: rows.collect_schema()}
    )
    tables = tables_of(query)
    found = execution.run(relation, query.groups, tables)
    return [found[table] for table in tables]


X = pl.col("x")
KEYS = [0, 1, 2]
QUERIES: dict[str, Any] = {
    "rows": lambda f: f.limit_rows(3).agg(dp.count()),
    "rows of groups": lambda f: f.limit_rows(3).group_by("g", keys=KEYS).agg(dp.count()),
    "a histogram": lambda f: f.limit_rows(3).dp_histogram("x", bins=[-1, 0, 1, 2], other=True),
    "many bins": lambda f: f.limit_rows(3).dp_histogram("x", bins=list(range(5))),
    "histograms of groups": lambda f: (
        f.limit_rows(3).group_by("g", keys=KEYS).agg(dp.histogram("x", bins=[-1, 0, 1, 2]))
    ),
    "many bins of groups": lambda f: (
        f.limit_rows(3).group_by("g", keys=KEYS).agg(dp.histogram("x", bins=list(range(5))))
    ),
    "a histogram, a count": lambda f: f.limit_rows(3).agg(
        dp.histogram("x", bins=[-1, 0, 1, 2]), dp.count().alias("n")
    ),
    "a distribution function": lambda f: f.limit_rows(3).dp_cdf("x", bins=[-1, 0, 1, 2]),
    "a median": lambda f: f.limit_rows(3).agg(dp.median("x", (-1, 2))),
    "totals of people": lambda f: (
        f.limit_rows(3, by="g")
        .limit_groups(2, by="g")
        .group_by("g", keys=KEYS)
        .agg(
            dp.n_unique("who").alias("n"),
            dp.sum("x", (-1, 2), per="unit"),
            dp.n_unique("x").alias("d"),
        )
    ),
    "means of pairs": lambda f: (
        f.limit_groups(2, by="g")
        .limit_rows(2, by="g")
        .group_by("g", keys=KEYS)
        .agg(dp.mean("x", (-1, 2)))
    ),
    "a choice": lambda f: f.limit_rows(1).agg(dp.argmax("g", candidates=KEYS)),
    "weights": lambda f: f.limit_norm(2).group_by("g", keys=KEYS).agg(dp.count()),
}


@pytest.mark.parametrize("name", QUERIES)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 40]), max_size=5),
    spills=st.booleans(),
    held=st.sampled_from([0, 1, 700, 2500, 10**9]),
    count=st.integers(1, 7),
    stored=st.sampled_from(["rows", "steps", "file"]),
)
@example(sizes=[1, 1, 1], spills=True, held=10**9, count=6, stored="file")  # empty buckets
@example(sizes=[40, 1], spills=True, held=0, count=6, stored="rows")  # beside read ones
@example(sizes=[40, 1, 1, 1, 1], spills=True, held=700, count=6, stored="rows")  # one is too large
@settings(max_examples=12)
def test_sizes_of_people_and_buckets_make_no_difference(
    name: str, sizes: list[int], spills: bool, held: int, count: int, stored: str
) -> None:
    """An empty bucket, one in memory and one that is read have tables of one form, so no number of
    rows of a person makes a query fail, or changes its tables.
    """
    who = [person for person, rows in enumerate(sizes) for _ in range(rows)]
    rows = range(len(who))
    frame = pl.DataFrame(
        {"who": who, "g": [n % 4 for n in rows], "x": [n % 7 / 2 - 1 for n in rows]},
        schema={"who": pl.Int64, "g": pl.Int32, "x": pl.Float64},
    )
    asked = QUERIES[name](dp.Session(epsilon=1).protect(frame, "who"))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_MANY", 1 if name.startswith("many") else 1 << 17)
        frame.write_parquet(f"{folder}/rows.parquet")
        source = {
            "rows": frame.lazy(),
            "steps": frame.lazy().filter(pl.lit(True)),
            "file": pl.scan_parquet(f"{folder}/rows.parquet"),
        }[stored]
        parts = _counted(asked, source, Room(count, spills, held))
    assert _listed(parts) == _listed(_counted(asked, frame, None))


def _listed(tables: list[CellCounts]) -> list[Any]:
    """The integers of some tables that are not 0, by group and cell."""
    return [
        sorted(
            (group, cell, value)
            for group, cell, value in zip(
                np.broadcast_to(table.groups, table.values.shape).tolist(),
                np.zeros_like(table.values).tolist()
                if table.cells is None
                else table.cells.tolist(),
                table.values.tolist(),
                strict=True,
            )
            if value
        )
        for table in tables
    ]


# -- files --------------------------------------------------------------------------------------


KINDS_OF_FILES = [
    pytest.param(Sink, marks=pytest.mark.skipif(not can_sink(), reason="Polars writes no parts")),
    pytest.param(
        Spill,
        marks=pytest.mark.skipif(
            not hasattr(pl.LazyFrame, "collect_batches"), reason="this Polars hands out no pieces"
        ),
    ),
]
each_kind = pytest.mark.parametrize("kind", KINDS_OF_FILES)


def _spilled(kind: type[Sink | Spill], count: int = 3) -> Sink | Spill:
    frame = pl.LazyFrame({"who": list(range(100)), "x": [1.5] * 100, "secret": ["a"] * 100})
    made = kind(frame.collect_schema(), count)
    made.write(frame, pl.col("who") % count, ["who", "x"], OPTIMIZATIONS)
    return made


def _files(made: Sink | Spill) -> list[IO[bytes]]:
    if isinstance(made, Sink):
        return [file for files in made.files for file in files]
    return [pieces.file for pieces in made._files]


@each_kind
def test_each_row_is_in_one_bucket_and_no_column_too_many(kind: type[Sink | Spill]) -> None:
    with _spilled(kind) as made:
        parts = [made.bucket(k).select("who", "x").collect() for k in range(3)]
        assert [sorted(part["who"]) for part in parts] == [
            [n for n in range(100) if n % 3 == k] for k in range(3)
        ]
        assert made.bucket(0).select("x").head(5).collect().height == 5
        found = made.bucket(1).filter(pl.col("who") > 50).select("x").collect()
        assert found.height == sum(n % 3 == 1 for n in range(51, 100))
        if isinstance(made, Spill):
            with pytest.raises(pl.exceptions.PolarsError):
                made.bucket(0).select("secret").collect()
        else:
            for rows in (made.bucket(0), made.hold(0)):
                assert rows.collect_schema() == made.schema
                assert rows.collect()["secret"].null_count() == 34


@pytest.mark.skipif(not can_sink(), reason="Polars writes no parts")
def test_a_bucket_in_memory_is_a_frame_without_steps() -> None:
    """So queries are lowered as for frames in memory, and a bucket that nobody is in is one too."""
    with Sink(pl.Schema({"who": pl.Int64, "t": pl.String}), 3) as made:
        frame = pl.LazyFrame({"who": [3, None, 6], "t": ["a", "b", "c"]}, schema=made.schema)
        made.write(
            frame.filter(pl.col("who").is_not_null()), pl.col("who") % 3, ["who"], OPTIMIZATIONS
        )
        for number, rows in enumerate([2, 0, 0]):
            held = made.hold(number)
            assert held.explain(optimized=False).startswith("DF [")
            assert held.collect().height == made.bucket(number).collect().height == rows
            assert (made.size(number) > 0) == (rows > 0)


@each_kind
def test_files_have_no_names(
    kind: type[Sink | Spill], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _spilled(kind) as made:
        assert list(tmp_path.iterdir()) == []
        files = [os.fstat(file.fileno()) for file in _files(made)]
        assert len(files) == 3
        assert all(found.st_size > 0 for found in files)
        assert all(found.st_nlink == 0 and not found.st_mode & 0o077 for found in files)
    assert all(file.closed for file in _files(made))


_KILLED = """
import os, signal, sys, tempfile
import polars as pl
from dpframe.lower.buckets import Sink
from dpframe.lower.buckets import Spill
tempfile.tempdir = sys.argv[1]

def late(rows):
    if (rows["who"] == 999_999).any():
        os.kill(os.getpid(), signal.SIGKILL)
    return rows

frame = pl.LazyFrame({"who": list(range(1_000_000))})
made = {"Sink": Sink, "Spill": Spill}[sys.argv[2]](frame.collect_schema(), 4)
if sys.argv[3] == "while written":
    frame = frame.map_batches(late, streamable=True)
made.write(frame, pl.col("who") % 4, ["who"], pl.QueryOptFlags())
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["while written", "afterwards"])
@each_kind
def test_nothing_is_left_after_a_kill(kind: type[Sink | Spill], when: str, tmp_path: Path) -> None:
    arguments = [str(tmp_path), kind.__name__, when]
    done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def _file(folder: Path) -> Path:
    path = folder / "visits.parquet"
    pl.DataFrame({"who": [1, 2, 3], "g": ["a", "b", "a"]}).write_parquet(path)
    return path


@each_kind
def test_files_are_closed_after_an_error(
    kind: type[Sink | Spill], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Sink | Spill]()

    def watched(schema: pl.Schema, count: int) -> Sink | Spill:
        made.append(kind(schema, count))
        return made[-1]

    def fail(asked: Any, frames: Any, *, rehearsed: bool = False) -> Any:
        if len(made) == 2:  # one was rehearsed
            raise OSError("no space is left on the device with 'a' and 'b'")
        return collect(asked, frames, rehearsed=rehearsed)

    session, collect = dp.Session(epsilon=1), PolarsEngine.collect
    monkeypatch.setattr(polars_engine, "_SMALLEST", 500)
    monkeypatch.setattr(source, "has_disk", lambda sizes, schema: True)
    people = session.protect(_file(tmp_path), "who", memory=1000)
    monkeypatch.setattr(buckets, "put_aside", watched)
    monkeypatch.setattr(buckets, "can_spill", lambda: True)
    asked = people.limit_groups(1, by="g").group_by("g", keys=["a"]).agg(dp.n_unique("who"))
    monkeypatch.setattr(PolarsEngine, "collect", fail)
    with pytest.raises(EngineError) as caught:
        asked.collect(epsilon="0.5")
    assert "space" not in str(caught.value)
    assert len(made) == 2
    assert _files(made[1])
    assert all(file.closed for one in made for file in _files(one))
    assert session.spent == dp.PureDP("0.5")


# -- how much -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("9kB", 9_000),
        ("3 KiB", 3 * 2**10),
        ("20mb", 2 * 10**7),
        ("512 MiB", 512 * 2**20),
        ("2GB", 2 * 10**9),
        ("1.5gb", 1_500_000_000),
        ("1.5GiB", 3 * 2**29),
        ("1TB", 10**12),
        ("1 TiB", 2**40),
        (7, 7),
    ],
)
def test_amounts_of_memory(memory: object, expected: int) -> None:
    assert bytes_of(memory) == expected


def test_the_machine_has_some() -> None:
    assert bytes_of("auto") > 10**8


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("4:memory:/a/b\n0::/", {"memory/a/memory.limit_in_bytes": "3000"}, 3000),
        ("4:memory:/a/b\n0::/", {"memory/a/b/memory.limit_in_bytes": "2000"}, 2000),
        ("0::/slice/a", {"slice/memory.max": "max", "slice/a/memory.max": "5000"}, 5000),
        ("0::/slice/a", {"memory.max": "4000", "slice/a/memory.max": "5000"}, 4000),
        ("0::/../..", {"memory/memory.limit_in_bytes": "6000"}, 6000),
        (None, {"memory.max": "7000"}, 7000),
        ("3:cpu:/a", {"cpu/a/memory.max": "1"}, None),
    ],
)
def test_control_groups_say_what_there_is(
    own: str | None,
    limits: dict[str, str],
    expected: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    if own is not None:
        (tmp_path / "own").write_text(own)
    monkeypatch.setattr(polars_engine, "_OWN", tmp_path / "own")
    monkeypatch.setattr(polars_engine, "_CGROUPS", tmp_path)
    found = bytes_of("auto")
    assert found > 10**8 if expected is None else found == expected * 3 // 4


@pytest.mark.parametrize("memory", ["lots", "", "0GB", "-1GB", "2", 0, -5, True, 1.5, "1e9GB"])
def test_other_amounts_are_refused(memory: object) -> None:
    with pytest.raises(InvalidBounds, match="is not an amount of memory"):
        dp.Session(epsilon=1).protect(FRAMES["f"], "u", memory=memory)  # type: ignore[arg-type]


def test_the_number_of_buckets_follows_from_sizes_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"x" * 1000)
    assert room_for(2 * 10**9, [file], spills=True) is None
    assert room_for(2 * 10**9, [10**9], spills=True) == Room(6, spills=False)
    assert room_for(2 * 10**9, [], spills=False) == Room(32, spills=False)
    assert room_for(2 * 10**9, [tmp_path / "gone"], spills=True) == Room(32)
    assert room_for(1, [10**15], spills=True) == Room(512)


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("/dev/vda / ext4 rw 0 0", True),
        ("/dev/vda / ext4 rw 0 0\nnone /tmp tmpfs rw 0 0", False),
        ("tmpfs / tmpfs rw 0 0\n/dev/vdb /tmp ext4 rw 0 0", True),
        ("/dev/vda / ext4 rw 0 0\nnone /tm tmpfs rw 0 0", True),
    ],
)
def test_rows_are_put_aside_on_disks_with_room(
    mounts: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mounts"
    place.write_text(mounts)
    monkeypatch.setattr(polars_engine, "_MOUNTS", place)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    whole = pl.Schema({"who": pl.Int64, "at": pl.Date, "is": pl.Boolean, "x": pl.Float32})
    text = pl.Schema({**whole, "t": pl.String})
    assert has_disk([1000], whole) == has_disk([1000], text) == expected
    assert not has_disk([10**18], whole)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=8_000))
    assert has_disk([1000], whole) == expected
    assert not has_disk([1000], text)
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert not has_disk([1000], whole)


def test_where_nothing_is_stated_there_is_what_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path)
    frames = [path, pl.scan_parquet(path), pl.scan_parquet(path).filter(pl.col("who") > 0)]
    whole = [protected_source(frame).within(None, spill=True) for frame in frames]
    assert all(made.engine is POLARS for made in whole)
    monkeypatch.setattr(polars_engine, "_of_machine", lambda: 1000)
    monkeypatch.setattr(polars_engine, "_SMALLEST", 500)
    for made in (protected_source(frame).within(None, spill=False) for frame in frames):
        assert isinstance(made.engine, PolarsEngine)
        assert made.engine.room is not None
        assert made.engine.room.buckets > 1
        assert not made.engine.room.spills
    for frame in (
        FRAMES["f"],
        FRAMES["f"].lazy(),
        pl.concat([frames[1], frames[1].collect().lazy()]),
    ):
        engine = protected_source(frame).within(None, spill=True).engine
        assert isinstance(engine, PolarsEngine)
        assert engine.room is None


def test_engines_with_limits_of_their_own_are_left_to_them() -> None:
    elsewhere: Any = SimpleNamespace(label="DuckDB", name="duckdb")
    made = Source(None, elsewhere, pl.Schema({"u": pl.Int64}))
    assert made.within(None, spill=True) is made
    with pytest.raises(UnsupportedOperation, match="DuckDB keeps within a limit of its own"):
        made.within("1GB", spill=True)


def test_whether_rows_are_spilled_is_said_by_true_or_false() -> None:
    with pytest.raises(UnsupportedOperation, match="neither True nor False"):
        dp.Session(epsilon=1).protect(FRAMES["f"], "u", memory="1GB", spill="no")  # type: ignore[arg-type]


def test_buckets_that_polars_writes_are_more_and_taken_into_memory() -> None:
    found = room_for(2 * 10**9, [10**9], spills=True, sinks=True)
    assert found == Room(12)
    assert found is not None
    assert found.held == 250 * 10**6
    assert room_for(2 * 10**9, [10**9], spills=False, sinks=True) == Room(6, spills=False)
    assert room_for(2 * 10**9, [10**8], spills=True, sinks=True) is None
    assert room_for(1, [10**15], spills=True, sinks=True) == Room(512)


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
    monkeypatch.setattr(polars_engine, "_SMALLEST", 500)
    monkeypatch.setattr(source, "has_disk", lambda sizes, schema: True)
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


def test_a_function_that_takes_all_buckets_is_given_them_at_once() -> None:
    class Elsewhere:
        """Runs what was written and read again, as on another machine."""

        def __init__(self) -> None:
            self.numbers = list[int]()
            self.lost = 0

        def __call__(self, frame: pl.LazyFrame) -> pl.DataFrame:
            return self.collect_all([frame])[0]

        def collect_all(self, frames: list[pl.LazyFrame]) -> list[pl.DataFrame]:
            self.numbers.append(len(frames))
            sent = [pl.LazyFrame.deserialize(io.BytesIO(frame.serialize())) for frame in frames]
            return pl.collect_all(sent)[self.lost :]

    run = Elsewhere()
    people = dp.Session(epsilon=10**9).protect(FRAMES["f"].lazy().filter(True), "u", memory=1000)
    asked = (
        people.limit_groups(100, by="s")
        .group_by("s", keys=["a", "b"])
        .agg(dp.n_unique("u").alias("n"))
    )
    found = asked.collect(epsilon=10**8, engine=run)
    assert run.numbers == [32]
    assert found.equals(asked.collect(epsilon=10**8))
    run.lost = 1
    with pytest.raises(EngineError):
        asked.collect(epsilon=10**8, engine=run)
