"""What can be protected, and the dp methods of raw Polars frames."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pads  # type: ignore[import-untyped]
import pytest

import dpframe as dp
from dpframe.api import readers
from dpframe.api.source import UNKNOWN, origins_of
from tests.api.exactly import ENOUGH, exactly, protected

FRAME = pl.DataFrame(
    {"age": [30, 41, None], "name": ["a", "b", "a"], "member": [True, None, False]}
)


def batches() -> Any:
    table = FRAME.to_arrow()
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


SOURCES: dict[str, Callable[[], Any]] = {
    "DataFrame": lambda: FRAME,
    "LazyFrame": FRAME.lazy,
    "pyarrow.Table": FRAME.to_arrow,
    "pyarrow.RecordBatch": lambda: FRAME.to_arrow().to_batches()[0],
    "pyarrow.RecordBatchReader": batches,
    "pyarrow.dataset.Dataset": lambda: pads.dataset(FRAME.to_arrow()),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_kind_of_frame_gives_the_same_results(source: Callable[[], Any]) -> None:
    people = protected(source())
    assert people.schema == FRAME.schema
    query = people.filter(pl.col("age") > 1).agg(dp.count(), dp.sum("age", (0, 99)))
    assert exactly(query).rows() == [(2, 71)]


def test_a_batch_reader_can_be_queried_again() -> None:
    session = dp.Session(epsilon=ENOUGH)
    people = session.protect(batches(), dp.Rows())
    assert [people.dp_count().collect(epsilon=10**6).item() for _ in range(3)] == [3, 3, 3]


def test_batches_are_not_held_in_memory_and_their_file_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alive: list[weakref.ref[Any]] = []

    def some() -> Iterator[Any]:
        for i in range(5):
            batch = pa.record_batch({"x": [i] * 1000, "g": ["a", None] * 500})
            alive.append(weakref.ref(batch))
            yield batch

    schema = pa.schema({"x": pa.int64(), "g": pa.string()})
    people = protected(pa.RecordBatchReader.from_batches(schema, some()))
    gc.collect()
    assert not any(batch() for batch in alive)
    assert not list(tmp_path.iterdir())
    assert exactly(people.dp_sum("x", (0, 9))).item() == 10_000
    assert exactly(people.dp_count("g")).item() == 2_500


def test_the_file_of_batches_is_closed_with_their_frame() -> None:
    def files() -> int:
        return len([n for n in os.listdir("/proc/self/fd") if _target(n).endswith("(deleted)")])

    before = files()
    people = protected(batches())
    assert exactly(people.dp_count()).item() == 3
    assert files() > before
    del people
    gc.collect()
    assert files() == before


def _target(number: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{number}")
    return ""


_HOLDING = """
import sys, time
import pyarrow as pa
import dpframe as dp

batch = pa.record_batch({"name": ["Hidden-4711"] * 100_000})
def some():
    for i in range(20):
        yield batch
        if i == 10 and sys.argv[1] == "writing":
            print("ready", flush=True)
            time.sleep(60)
session = dp.Session(epsilon=1)
people = session.protect(pa.RecordBatchReader.from_batches(batch.schema, some()), dp.Rows())
people.dp_count().collect(epsilon=0.1)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("writing", signal.SIGKILL),
        pytest.param("writing", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("protected", signal.SIGKILL, marks=pytest.mark.slow),
        pytest.param("protected", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_killed_process_leaves_no_rows(tmp_path: Path, moment: str, number: int) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", _HOLDING, moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"ready\n"
        assert not list(tmp_path.iterdir())
        held.send_signal(number)
        held.wait()
    assert not list(tmp_path.iterdir())


_FORKING = """
import multiprocessing, os
import pyarrow as pa
import dpframe as dp

def child(holding):
    del holding

batch = pa.record_batch({"x": [1, 2, 3]})
reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
session = dp.Session(epsilon=2 * 10**6)
people = session.protect(reader, dp.Rows())
started = multiprocessing.get_context("fork").Process(target=child, args=(people,))
started.start()
started.join()
if os.fork() == 0:
    raise SystemExit(0)
os.wait()
print(people.dp_count().collect(epsilon=10**6).item())
"""


def test_the_end_of_a_forked_process_does_not_disturb_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKING], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "3\n", done.stderr


def test_batches_with_dictionaries_that_differ() -> None:
    parts = [pa.array(v).dictionary_encode() for v in (["a", "b"], ["c"])]
    made = [pa.record_batch({"g": part}) for part in parts]
    people = protected(pa.RecordBatchReader.from_batches(made[0].schema, made))
    grouped = people.group_by("g", keys=["a", "c"]).agg(dp.count())
    assert exactly(grouped)["len"].to_list() == [1, 1]


def test_batches_that_fail_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def some() -> Iterator[Any]:
        yield pa.record_batch({"x": [1]})
        raise ValueError("secret-ssn-123")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), some())
    with pytest.raises(dp.EngineError) as caught:
        protected(reader)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert not list(tmp_path.iterdir())


def test_dictionaries_that_fail_say_nothing() -> None:
    first = pa.record_batch({"g": pa.array(["a"]).dictionary_encode()})

    def some() -> Iterator[Any]:
        yield first
        raise ValueError("secret-ssn-123")

    with pytest.raises(dp.EngineError) as caught:
        protected(pa.RecordBatchReader.from_batches(first.schema, some()))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_filters_of_datasets_are_those_of_polars() -> None:
    frame = pl.DataFrame({"x": [1.0, float("nan"), 3.0, None], "k": [5, -5, 0, None]})
    for condition in (
        pl.col("x") > 2,
        pl.col("x") <= float("inf"),
        pl.col("x") == float("nan"),
        (pl.col("x") > 2) | (pl.col("k") > 3),
        pl.col("k") * 2 > 3,
    ):
        plain, dataset = (
            exactly(protected(given).filter(condition).dp_count()).item()
            for given in (frame, pads.dataset(frame.to_arrow()))
        )
        assert plain == dataset, str(condition)


def test_datasets_of_several_batches(tmp_path: Path) -> None:
    for i, names in enumerate((["a", "b", None], ["c", "a", "a"])):
        table = pa.table({"g": pa.array(names).dictionary_encode(), "x": [i, 2, 3]})
        with pa.ipc.new_file(tmp_path / f"{i}.arrow", table.schema) as writer:
            writer.write_table(table)
    people = protected(pads.dataset(tmp_path, format="ipc"))
    assert exactly(people.dp_count()).item() == 6
    grouped = people.filter(pl.col("x") > 0).group_by("g", keys=["a", "c", None])
    assert exactly(grouped.agg(dp.count()))["len"].to_list() == [2, 1, 1]


def test_delta_tables_need_their_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    with pytest.raises(dp.UnsupportedOperation, match="deltalake is not installed"):
        protected(tmp_path / "table")


def test_where_the_rows_of_a_scan_of_delta_come_from_is_not_asked_of_polars(tmp_path: Path) -> None:
    """Polars would wait for Python, and Python for Polars, for ever."""
    FRAME.write_delta(tmp_path / "table")
    found = origins_of(pl.scan_delta(str(tmp_path / "table")))
    assert found == UNKNOWN or found.files  # Polars 1 scans the table's files by itself


def test_delta_tables_are_read_as_they_are(tmp_path: Path) -> None:
    table = tmp_path / "table"
    FRAME.write_delta(table)
    FRAME.write_delta(table, mode="append")
    deltalake.DeltaTable(table).delete("age > 35")
    for given in (table, str(table), deltalake.DeltaTable(table)):
        people = protected(given)
        assert exactly(people.dp_count()).item() == 4
        assert exactly(people.dp_sum("age", (0, 99))).item() == 60


def test_scanned_files_are_read_when_a_query_runs(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "1.parquet")
    FRAME.write_csv(tmp_path / "1.csv")
    for scanned in (
        pl.scan_parquet(tmp_path / "*.parquet"),
        pl.scan_csv(tmp_path / "1.csv"),
        pads.dataset(tmp_path / "1.parquet"),
    ):
        assert exactly(protected(scanned).dp_sum("age", (0, 99))).item() == 71


def test_several_chunks_are_one_frame() -> None:
    chunked = pl.concat([FRAME, FRAME, FRAME.clear()], rechunk=False)
    assert exactly(protected(chunked).dp_count()).item() == 6
    assert exactly(protected(chunked.to_arrow()).dp_count("age")).item() == 4


def test_a_frame_that_changes_afterwards_is_protected_as_it_was() -> None:
    frame = pl.DataFrame({"age": [1]})
    people = protected(frame)
    frame.insert_column(0, pl.Series("name", ["b"]))
    frame.extend(pl.DataFrame({"name": ["a"], "age": [2]}))
    assert people.columns == ["age"]
    assert exactly(people.dp_count()).item() == 1


def test_types_without_rules_matter_only_where_they_are_used() -> None:
    strange = FRAME.with_columns(
        lists=pl.Series([[[1]], [], None]),
        objects=pl.Series([object(), object(), None], dtype=pl.Object),
        nothing=pl.lit(None),
        bytes=pl.lit(b"x"),
        large=pl.lit(1, dtype=pl.Int128),
    )
    people = protected(strange)
    assert set(strange.columns) == set(people.columns)
    assert exactly(people.filter(pl.col("age") > 1).agg(dp.sum("age", (0, 99)))).item() == 71
    kept = people.drop("objects").with_columns(double=pl.col("age") * 2)
    assert exactly(kept.agg(dp.sum("double", (0, 200)))).item() == 142
    with pytest.raises(dp.UnsupportedOperation):
        people.agg(dp.n_unique("lists"))
    with pytest.raises(dp.UnsupportedOperation):
        people.agg(dp.count("objects"))
    with pytest.raises(dp.UnsupportedOperation):
        people.group_by("lists", keys=[[1]])


# -- raw frames -------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["DataFrame", "LazyFrame"])
def test_raw_frames_make_queries_for_any_session(frame: Any) -> None:
    session = dp.Session(epsilon=ENOUGH)
    unit = dp.Rows()
    queries = [
        (frame.dp_count(unit=unit), [(3,)]),
        (frame.dp_count("age", unit=unit), [(2,)]),
        (frame.dp_sum("age", (0, 35), unit=unit), [(65,)]),
        (frame.dp_histogram("name", ["b", "a"], unit=unit), [("b", 1), ("a", 2)]),
        (frame.dp_argmax("name", candidates=["b", "a"], unit=unit), [("a",)]),
        (
            frame.dp_argmax("name", pl.col("age").clip(0, 50), candidates=["b", "a"], unit=unit),
            [("b",)],
        ),
    ]
    for query, expected in queries:
        assert session.collect(query, epsilon=10**6).rows() == expected
    assert session.history.height == len(queries)


def test_a_query_without_session_needs_one() -> None:
    query = FRAME.dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    for use in (query.collect, query.plan, query.explain, query.release):
        with pytest.raises(dp.InvalidBudget, match=r"session\.collect"):
            use(epsilon=1)
    session = dp.Session(epsilon=1)
    assert session.plan(query, epsilon=1).cost == dp.PureDP(1)
    assert session.history.is_empty()
    assert session.release(query, epsilon=1).frame.columns == ["len"]
    assert dp.Session(rho=1).plan(query, rho=1).cost == dp.ZCDP(1)


def test_dp_protect_is_protect() -> None:
    session = dp.Session(epsilon=ENOUGH)
    declared = FRAME.dp_protect(session, dp.Rows(), name="people", bounds={"age": (0, 99)})  # type: ignore[attr-defined]
    assert isinstance(declared, dp.PrivateFrame)
    assert exactly(declared.dp_sum("age")).item() == 71
    assert FRAME.lazy().dp_protect(session, dp.Rows()).columns == FRAME.columns  # type: ignore[attr-defined]


def test_polars_itself_is_not_changed() -> None:
    assert FRAME.lazy().select(pl.len()).collect().item() == 3
    assert FRAME.select(pl.col("age").sum()).item() == 71
    assert not [name for name in vars(pl.DataFrame) if name.startswith("dp") and "_" not in name]


def test_frames_are_named_in_plans() -> None:
    session = dp.Session(epsilon=1)
    first, second = (session.protect(FRAME, dp.Rows()) for _ in range(2))
    named = session.protect(FRAME, dp.Rows(), name="people")
    sources = [frame.dp_count().plan(epsilon=1).source for frame in (first, second, named)]
    assert sources == ["data", "data", "people"]
    census = dp.Session(epsilon=1, name="census")
    assert census.protect(FRAME, dp.Rows()).dp_count().plan(epsilon=1).source == "census"
    both = census.protect(FRAME, dp.Rows()).concat(census.protect(FRAME, dp.Rows()))
    plan = both.dp_count().plan(epsilon=1)
    assert (plan.source, plan.others) == (
        "census",
        ("census 2: adding or removing one row of one individual",),
    )


def _of_two(session: dp.Session, *names: str | None) -> list[dp.PrivateFrame]:
    return [session.protect(FRAME, dp.Rows(), name=name) for name in names]


def test_protecting_again_changes_no_fingerprint() -> None:
    """So approvals hold for who protects in a notebook, cell by cell."""
    session = dp.Session(epsilon=1)
    once, other = _of_two(session, None, None)
    query = once.concat(other).agg(dp.count().alias("n"))
    plan = query.plan(epsilon="0.1")
    again, third = _of_two(session, None, None)
    for one, two in ((again, third), (other, once), (third, other)):
        same = one.concat(two).agg(dp.count().alias("n"))
        assert same.plan(epsilon="0.1").fingerprint == plan.fingerprint
    counts = [frame.dp_count() for frame in (once, other)]
    several = session.plan(counts, epsilon="0.1").fingerprint
    later = [frame.dp_count() for frame in (third, again)]
    assert session.plan(later, epsilon="0.1").fingerprint == several


def test_frames_without_a_name_are_told_apart_in_one_plan() -> None:
    session = dp.Session(epsilon=1)
    one, two = _of_two(session, None, None)
    taken, _ = _of_two(session, "data", "data 3")
    itself, both = (one.concat(frame).agg(dp.count().alias("n")) for frame in (one, two))
    assert itself.plan(epsilon=1).fingerprint != both.plan(epsilon=1).fingerprint
    assert both.plan(epsilon=1).steps[0].words == "concat(data 2)"
    three = one.concat(taken).concat(two).filter(pl.col("age") > 7)
    plan = three.dp_count().plan(epsilon=1)
    assert plan.source == "data 2"
    assert [words.partition(":")[0] for words in plan.others] == ["data", "data 3"]
    nested = two.concat(one.concat(two))
    assert nested.dp_count().plan(epsilon=1).steps[0].words == "concat(data 2.concat(data))"
    plan = session.plan([one.dp_count(), two.dp_count(), one.dp_sum("age", (0, 9))], epsilon=1)
    assert [block.source for block in plan.blocks] == ["data", "data 2"]
    assert nested.dp_count().collect(epsilon=1, engine="auto").height == 1


def test_a_name_that_stands_for_nothing_is_kept() -> None:
    """A second frame of one name has that name in plans, and is not found again by it."""
    session = dp.Session(epsilon=1)
    other = session.protect(FRAME.head(2), dp.Rows(), name="people")
    (mine,) = _of_two(session, "people")
    assert mine.dp_count().plan(epsilon=1).source == "people"
    assert other.dp_count().plan(epsilon=1).source == "people"


def test_declared_bounds_and_categories_are_used_and_never_trusted() -> None:
    people = protected(FRAME, bounds={"age": (0, 35)}, categories={"name": ["a", "c"]})
    assert exactly(people.dp_sum("age")).item() == 65
    assert exactly(people.dp_histogram("name")).rows() == [("a", 2), ("c", 0)]
    assert exactly(people.dp_histogram("name", other=True)).rows()[-1] == (None, 1)
    (release,) = people.dp_sum("age").plan(epsilon=1).releases
    assert release.sensitivity.l1 == 35


def test_paths_patterns_and_urls_of_files(tmp_path: Path) -> None:
    inner = tmp_path / "2025" / "01"
    inner.mkdir(parents=True)
    FRAME.write_parquet(tmp_path / "1.parquet")
    FRAME.write_parquet(inner / "2.parquet")
    FRAME.write_csv(tmp_path / "1.csv")
    FRAME.write_ndjson(tmp_path / "1.ndjson")
    FRAME.write_ipc(tmp_path / "1.arrow")
    for path in (
        tmp_path / "1.parquet",
        str(tmp_path / "*.parquet"),
        str(tmp_path / "**" / "2.parquet"),
        f"file://{tmp_path}/1.parquet",
        tmp_path / "1.csv",
        tmp_path / "1.ndjson",
        tmp_path / "1.arrow",
    ):
        text = str(path).endswith(("csv", "ndjson"))
        schema = dict(FRAME.schema) if text else None
        people = dp.Session(epsilon=10**6).protect(path, unit=dp.Rows(), schema=schema)
        assert people.columns == FRAME.columns
        counted = people.dp_count().collect(epsilon=10**5)
        assert counted.item() == FRAME.height


def test_a_path_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    FRAME.write_parquet(tmp_path / "1.parquet")
    assert dp.Session(epsilon=1).protect("~/1.parquet", unit=dp.Rows()).columns == FRAME.columns


@pytest.mark.parametrize("path", ["missing.parquet", "*/missing.csv", "people.xlsx", "", "folder"])
def test_paths_of_nothing(tmp_path: Path, path: str) -> None:
    with pytest.raises(dp.UnsupportedOperation):
        dp.Session(epsilon=1).protect(str(tmp_path / path), unit=dp.Rows())


def test_a_file_that_cannot_be_read_says_nothing_of_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_bytes(b"PAR1 Mrs Hidden")
    with pytest.raises(dp.EngineError) as failed:
        dp.Session(epsilon=1).protect(tmp_path / "1.parquet", unit=dp.Rows())
    assert "Hidden" not in str(failed.value)


@pytest.mark.parametrize("name", [3, b"people", ["people"]])
def test_names_are_text(name: object) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="name of a frame is text"):
        dp.Session(epsilon=1).protect(FRAME, unit=dp.Rows(), name=name)  # type: ignore[arg-type]
    with pytest.raises(dp.LedgerError, match="name must be text"):
        dp.Session(epsilon=1, name=name)  # type: ignore[arg-type]
