"""Which frames may stand in for protected ones: public ones that fit, and nothing private."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from tests.simulate.frames import public, trapped

PUBLIC = public()


def simulated(query: dp.PrivateQuery, frame: Any) -> pl.DataFrame:
    return query.simulate(frame, epsilon=0.5, runs=2).errors


PRIVATE: dict[str, Callable[[dp.PrivateFrame], Any]] = {
    "private frame": lambda people: people,
    "another private frame": lambda people: trapped()[0],
    "private group-by": lambda people: people.group_by("city", keys=["a"]),
    "private query": lambda people: people.dp_count(),
    "source": lambda people: people._source,
}


@pytest.mark.parametrize("made", PRIVATE.values(), ids=PRIVATE)
@pytest.mark.parametrize("mapped", [False, True])
def test_private_objects_are_refused(made: Callable[[dp.PrivateFrame], Any], mapped: bool) -> None:
    people, trap = trapped()
    given = {"people": made(people)} if mapped else made(people)
    with pytest.raises(dp.UnsupportedOperation, match="is private"):
        simulated(people.dp_count(), given)
    assert not trap.sprung


KINDS: dict[str, Callable[[], Any]] = {
    "DataFrame": lambda: PUBLIC.clone(),
    "LazyFrame": PUBLIC.lazy,
    "pyarrow.Table": PUBLIC.to_arrow,
}


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_the_protected_object_itself_is_refused(made: Callable[[], Any]) -> None:
    frame = made()
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="protected frame itself"):
        simulated(people.dp_count(), frame)
    assert simulated(people.dp_count(), public())["plain"].item() == len(PUBLIC)


@pytest.mark.parametrize("written", ["data.parquet", "{0}/data.parquet", "{0}/./*.parquet"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_protected_file_is_refused_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, kind: Callable[[str], Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    PUBLIC.write_parquet("data.parquet")
    people = dp.Session(epsilon=1).protect(tmp_path / "data.parquet", dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="protected frame itself"):
        simulated(people.dp_count(), kind(written.format(tmp_path)))
    (tmp_path / "public").mkdir()
    PUBLIC.write_parquet("public/data.parquet")
    found = simulated(people.dp_count(), kind("public/data.parquet"))
    assert found["plain"].item() == len(PUBLIC)


SPELLINGS: dict[str, Callable[[Path], Any]] = {
    "path": lambda at: at / "a.{0}",
    "text": lambda at: str(at / "a.{0}"),
    "relative": lambda at: os.path.relpath(at / "a.{0}"),
    "with a detour": lambda at: str(at / ".." / at.name / "a.{0}"),
    "pattern": lambda at: str(at / "*.{0}"),
    "link": lambda at: at / "link.{0}",
    "hard link": lambda at: at / "same.{0}",
    "URL": lambda at: f"file://{at}/a.{{0}}",
}
SCANS: dict[str, Callable[[Any], pl.LazyFrame]] = {
    "parquet": pl.scan_parquet,
    "ipc": pl.scan_ipc,
    "csv": pl.scan_csv,
    "ndjson": pl.scan_ndjson,
}


_REFUSED = (
    r"rows of it|is lazy, so its rows|runs on a public frame of Polars"  # the last: text by path
)


@pytest.mark.parametrize("suffix", SCANS)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_protected_file_is_refused_however_it_is_read(
    tmp_path: Path, suffix: str, spelling: Callable[[Path], Any]
) -> None:
    """Each way of reading it is protected, each other one is given."""
    frame = PUBLIC.select(pl.col(pl.Int64))
    file, scan = tmp_path / f"a.{suffix}", SCANS[suffix]
    getattr(frame, f"write_{suffix}")(file)
    (tmp_path / f"link.{suffix}").symlink_to(file)
    (tmp_path / f"same.{suffix}").hardlink_to(file)
    where = type(spelling(tmp_path))(str(spelling(tmp_path)).format(suffix))
    ways = {
        "path": where,
        "scan": scan(str(where)),
        "changed scan": scan(file).filter(pl.col(frame.columns[0]) > 0).with_columns(x=1),
        "joined": pl.concat([frame.lazy(), scan(file)]),
    }
    for protected in (where, file, ways["scan"], ways["changed scan"]):
        is_text = suffix in ("csv", "ndjson") and not isinstance(protected, pl.LazyFrame)
        declared: Any = {"schema": frame.schema} if is_text else {}
        people = dp.Session(epsilon=1).protect(protected, dp.Rows(), **declared)
        for way, given in ways.items():
            with pytest.raises(dp.UnsupportedOperation, match=_REFUSED):
                simulated(people.dp_count(), given), way
        other = frame.with_columns(x=1).lazy()
        assert simulated(people.dp_count(), other)["plain"].item() == frame.height


@pytest.mark.parametrize(
    "given",
    [
        lambda frame: frame.lazy(),
        lambda frame: frame.clone(),
        lambda frame: frame.lazy().filter(pl.col("age") > 3),
        lambda frame: frame.with_columns(age=pl.lit(1, pl.Int64)),
        lambda frame: frame.slice(1),
        lambda frame: pl.concat([PUBLIC.select(frame.columns), frame]),
        lambda frame: frame.lazy().join(PUBLIC.lazy().select("age").unique(), on="age"),
        lambda frame: frame.lazy().map_batches(lambda batch: batch),
    ],
)
def test_frames_that_share_memory_with_the_protected_one_are_refused(
    given: Callable[[pl.DataFrame], Any],
) -> None:
    frame = public().select("age", "city")
    for protected in (frame, frame.lazy(), frame.lazy().with_columns(x=1)):
        people = dp.Session(epsilon=1).protect(protected, dp.Rows())
        with pytest.raises(dp.UnsupportedOperation, match="rows of it"):
            simulated(people.select("age").dp_count(), given(frame))


def test_frames_that_are_alike_share_no_memory() -> None:
    """Nulls, zeros and empty columns are not taken for the same rows."""
    makers = {"none": [None] * 9, "zero": [0] * 9, "no": [False] * 9, "text": [""] * 9}
    for values in (makers, {name: [] for name in makers}, {"text": ["a" * 99] * 9}):
        one, other = pl.DataFrame(values), pl.DataFrame(values)
        people = dp.Session(epsilon=1).protect(one, dp.Rows())
        assert simulated(people.dp_count(), other)["plain"].item() == one.height
        assert simulated(people.dp_count(), other.lazy())["plain"].item() == one.height


def test_a_public_frame_of_which_nobody_can_tell_where_it_is_from(tmp_path: Path) -> None:
    people, _ = trapped()
    scan = register_io_source(lambda *_: iter([PUBLIC]), schema=PUBLIC.schema)
    with pytest.raises(dp.UnsupportedOperation, match="is lazy, so its rows") as refused:
        simulated(people.dp_count(), scan)
    assert "collect it" in str(refused.value)
    assert simulated(people.dp_count(), scan.collect())["plain"].item() == len(PUBLIC)


@pytest.mark.parametrize("other", [None, 3, "people.csv", [1, 2], dp.Session(epsilon=1)])
def test_other_things_are_no_frames(other: Any) -> None:
    people, _ = trapped()
    with pytest.raises(dp.UnsupportedOperation, match="runs on a public frame"):
        simulated(people.dp_count(), other)


def test_columns_have_to_be_there_and_of_the_same_type() -> None:
    people, _ = trapped()
    with pytest.raises(dp.UnknownColumn, match="no column 'age'"):
        simulated(people.dp_count(), PUBLIC.drop("age"))
    with pytest.raises(dp.UnsupportedOperation, match=r"'age' .* has type Int8, .* Int64"):
        simulated(people.dp_count(), PUBLIC.with_columns(pl.col("age").cast(pl.Int8)))
    more = PUBLIC.select(pl.lit(0).alias("other"), *reversed(PUBLIC.columns))
    assert simulated(people.dp_count(), more)["plain"].item() == len(PUBLIC)


def joined() -> tuple[dp.PrivateQuery, dp.Session]:
    session = dp.Session(epsilon=1)
    visits = pl.LazyFrame(schema={"person": pl.Int64, "city": pl.String})
    people = pl.LazyFrame(schema={"person": pl.Int64, "age": pl.Int64})
    one = session.protect(visits, "person", name="visits").limit_rows(2)
    other = session.protect(people, "person", name="people").limit_rows(1)
    return one.join(other).agg(dp.count(), dp.sum("age", (0, 50))), session


VISITS = pl.DataFrame({"person": [1, 1, 1, 2], "city": ["a", "b", "c", "a"]})
PEOPLE = pl.DataFrame({"person": [1, 2], "age": [20, 60]})


def test_several_frames_are_given_by_name() -> None:
    query, session = joined()
    found = simulated(query, {"visits": VISITS, "people": PEOPLE})
    assert found["plain"].to_list() == [4, 120]
    assert found["exact"].to_list() == [3, 90]
    assert session.spent == dp.PureDP(0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (VISITS, "over 2 private frames"),
        ({"visits": VISITS}, "given for 'visits'"),
        ({"visits": VISITS, "persons": PEOPLE}, "given for 'visits', 'persons'"),
        ({}, "given for none"),
    ],
)
def test_every_private_frame_needs_a_public_one(given: Any, says: str) -> None:
    query, _ = joined()
    with pytest.raises(dp.UnsupportedOperation, match=says):
        simulated(query, given)


def test_frames_of_one_name_cannot_be_told_apart() -> None:
    session = dp.Session(epsilon=1)
    both = [session.protect(VISITS.lazy(), "person", name="v").limit_rows(1) for _ in range(2)]
    with pytest.raises(dp.UnsupportedOperation, match="named 'v'"):
        simulated(both[0].concat(both[1]).dp_count(), {"v": VISITS})


def test_one_frame_used_twice_needs_one_public_frame() -> None:
    people = dp.Session(epsilon=1).protect(VISITS.lazy(), "person", name="v")
    parts = [people.filter(pl.col("city") == city).limit_rows(1) for city in ("a", "b")]
    alike = pl.DataFrame(VISITS.to_dict(as_series=False))
    found = simulated(parts[0].concat(parts[1]).dp_count(), alike)
    assert found["plain"].item() == 3


def test_parts_of_a_partition_can_be_simulated() -> None:
    people, trap = trapped()
    session = people._session
    assert session is not None
    parts = session.partition(people, "city", keys=["a", "b"])
    found = simulated(parts["a"].dp_count(), PUBLIC)
    assert found["plain"].item() == PUBLIC.filter(city="a").height
    assert not trap.sprung
    assert session.spent == dp.ApproxDP(0, 0)


def test_a_failing_public_frame_is_an_engine_error() -> None:
    people, _ = trapped()

    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        raise ValueError("broken")

    broken = PUBLIC.lazy().map_batches(fail, schema=PUBLIC.schema)
    with pytest.raises(dp.EngineError):
        simulated(people.dp_count(), broken)
