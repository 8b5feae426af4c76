"""Files and Delta tables in an object store, and that credentials are seen nowhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pytest

import dpframe as dp
from tests.api import s3

FRAME = pl.DataFrame({"x": range(1_000), "g": ["a", "b"] * 500})
WRONG = "n0t/the+secret=at/all"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("table")
    for rows in (FRAME[:600], FRAME[600:]):
        deltalake.write_deltalake(folder, rows.to_arrow(), mode="append")
    objects = {
        f"bucket/{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        for name in ("visits", "visits.delta")
    }
    for name, rows in {"one": FRAME, "many/1": FRAME[:300], "many/2": FRAME[300:]}.items():
        written = BytesIO()
        rows.write_parquet(written)
        objects[f"bucket/{name}.parquet"] = written.getvalue()
    with s3.serving(objects) as found:
        yield found


def count(people: dp.PrivateFrame) -> int:
    return int(people.dp_count().collect(epsilon=2**20)["len"].item())


@pytest.mark.parametrize(
    "path",
    ["one.parquet", "many/*.parquet", "visits", "visits/", "visits.delta"],
)
def test_what_is_in_a_store_is_read_with_its_options(path: str, port: int) -> None:
    session = dp.Session(epsilon=2**21)
    people = session.protect(f"s3://bucket/{path}", dp.Rows(), storage_options=s3.options(port))
    assert people.schema == FRAME.schema
    assert count(people) == FRAME.height


def test_credentials_are_seen_nowhere(
    port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    given = s3.options(port)
    ledger = tmp_path / "ledger.db"
    session = dp.Session(epsilon=2**21, ledger=ledger)
    people = session.protect("s3://bucket/one.parquet", dp.Rows(), storage_options=given)
    query = people.filter(pl.col("x") > 3).dp_count()
    plan = query.plan(epsilon=1)
    query.collect(epsilon=1)
    shown: list[Any] = [
        plan.to_json(),
        plan.explain(details=True),
        plan.explain(format="html"),
        plan,
        query,
    ]
    shown += [people, session, people.explain_unit(), session.history.to_dicts(), caplog.text]
    shown += [*capfd.readouterr(), *(f.read_bytes() for f in tmp_path.iterdir())]
    for place in map(repr, shown):
        assert s3.SECRET not in place
        assert s3.KEY not in place
    assert plan.fingerprint == _local(tmp_path).fingerprint


def _local(folder: Path) -> dp.Plan:
    FRAME.write_parquet(folder / "one.parquet")
    people = dp.Session(epsilon=1).protect(folder / "one.parquet", dp.Rows())
    return people.filter(pl.col("x") > 3).dp_count().plan(epsilon=1)


@pytest.mark.parametrize(
    "path", ["one.parquet", "many/*.parquet", "visits", "absent", "absent.parquet"]
)
def test_a_store_that_refuses_is_an_error_without_credentials(path: str, port: int) -> None:
    given = {**s3.options(port, secret=WRONG), "max_retries": "0"}
    with pytest.raises(dp.EngineError) as caught:
        dp.Session(epsilon=1).protect(f"s3://bucket/{path}", dp.Rows(), storage_options=given)
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__cause__ is None
    assert error.__context__ is None
    assert WRONG not in str(error)
    assert s3.KEY not in str(error)


@pytest.mark.parametrize(
    "given", [{"aws_secret_access_key": 5}, {5: WRONG}, [("aws_secret_access_key", WRONG)], WRONG]
)
def test_options_that_are_no_texts_are_refused_unquoted(given: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation) as caught:
        dp.Session(epsilon=1).protect("s3://bucket/a.parquet", dp.Rows(), storage_options=given)
    assert WRONG not in str(caught.value)
    assert "storage_options= is a dict of texts" in str(caught.value)


def test_options_are_refused_where_they_would_do_nothing() -> None:
    session, given = dp.Session(epsilon=1), {"aws_secret_access_key": WRONG}
    relation = duckdb.connect().sql("SELECT 1 AS x")
    frames: list[tuple[Any, dict[str, Any]]] = [
        (FRAME, {}),
        (FRAME.lazy(), {}),
        (relation, {}),
        ("s3://bucket/a.csv", {}),
        ("s3://bucket/a.parquet", {"engine": "duckdb"}),
    ]
    for frame, more in frames:
        with pytest.raises(
            dp.UnsupportedOperation, match="storage options are for paths"
        ) as caught:
            session.protect(frame, dp.Rows(), storage_options=given, **more)
        assert WRONG not in str(caught.value)
