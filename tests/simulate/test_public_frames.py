"""Which frames may stand in for protected ones: public ones that fit, and nothing private."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

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
    assert simulated(people.dp_count(), PUBLIC)["plain"].item() == len(PUBLIC)


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
    found = simulated(parts[0].concat(parts[1]).dp_count(), VISITS)
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
