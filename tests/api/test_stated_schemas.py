"""Files whose columns are stated: planned without the data, and checked when a query runs."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from tests.api.exactly import exactly, protected

ZONED = pl.Datetime("ms", "Europe/Oslo")
TYPES: dict[str, tuple[Any, Any]] = {  # as it is written in a job, and a value
    "Int8": (pl.Int8, 1),
    "Int64": (pl.Int64, 2),
    "Int128": (pl.Int128, 3),
    "UInt64": (pl.UInt64, 4),
    "Float32": (pl.Float32, 1.5),
    "Float64": (pl.Float64, None),
    "Boolean": (pl.Boolean, True),
    "String": (pl.String, "a"),
    "Binary": (pl.Binary, b"a"),
    "Date": (pl.Date, dt.date(2026, 1, 2)),
    "Time": (pl.Time, dt.time(3)),
    "Categorical": (pl.Categorical(), "a"),
    "Decimal(10, 2)": (pl.Decimal(10, 2), Decimal("1.25")),
    "Datetime": (pl.Datetime("us"), dt.datetime(2026, 1, 2)),
    "Datetime(ns)": (pl.Datetime("ns"), None),
    "Datetime(ms, Europe/Oslo)": (ZONED, None),
    "Duration(us)": (pl.Duration("us"), dt.timedelta(hours=1)),
    "List(Int64)": (pl.List(pl.Int64), [1, 2]),
    "List(Datetime(ms, Europe/Oslo))": (pl.List(ZONED), []),
    "Array(Float64, 2)": (pl.Array(pl.Float64, 2), [1.0, 2.0]),
    'Struct({a: Int64, "b c": List(String)})': (
        pl.Struct({"a": pl.Int64, "b c": pl.List(pl.String)}),
        {"a": 1, "b c": ["x"]},
    ),
}
ENUM = pl.Enum(["x", "y"])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_law_a_true_schema_gives_the_plan_of_the_file(suffix: str, data: st.DataObject) -> None:
    """Document and fingerprint, byte for byte; in the order of the file, or another one, and with
    columns that the schema leaves out.
    """
    written = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=5))
    columns = {f"c{i}": name for i, name in enumerate(written)}
    schema = pl.Schema({n: TYPES[t][0] for n, t in columns.items()} | {"who": pl.Int64, "e": ENUM})
    row = {n: TYPES[t][1] for n, t in columns.items()} | {"who": 1, "e": "x"}
    names = data.draw(st.permutations(list(schema)))
    left_out = data.draw(st.sets(st.sampled_from(list(columns))))
    stated = {**columns, "who": "Int64", "e": ["x", "y"]}
    stated = {n: stated[n] for n in names if n not in left_out}
    unit: Any = data.draw(st.sampled_from([dp.Rows(), "who"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{suffix}")
        session = dp.Session(epsilon=10**6)
        before = session.protect(path, unit, schema=stated, name="rows")
        plans = [[query.plan(epsilon=10) for query in _queries(before, unit, stated)]]
        # by columns: of rows, Polars 1.32 makes decimals of unknown precision, and writes 38
        frame = pl.DataFrame({n: [value] * 3 for n, value in row.items()}, schema=schema)
        assert frame.schema == schema
        (frame.write_parquet if suffix == "parquet" else frame.write_ipc)(path)
        file = dp.Session(epsilon=10**6).protect(path, unit, name="rows")
        plans.append([query.plan(epsilon=10) for query in _queries(file, unit, stated)])
        for one, other in zip(*plans, strict=True):
            assert one.to_json() == other.to_json()
            assert one.fingerprint == other.fingerprint
        next(_queries(before, unit, stated)).collect(epsilon=10)
        assert before.columns == list(stated)


def _queries(
    frame: dp.PrivateFrame, unit: object, stated: dict[str, Any]
) -> Iterator[dp.PrivateQuery]:
    rows = frame.limit_rows(2) if unit == "who" else frame
    yield rows.group_by("e").agg(dp.count())
    for name in stated:
        yield rows.filter(pl.col(name).is_not_null()).dp_count()


def test_an_approval_without_the_data_counts_for_the_run(tmp_path: Path) -> None:
    path, ledger = tmp_path / "later.parquet", tmp_path / "b.db"
    how: dict[str, Any] = {"unit": dp.Rows(), "schema": {"x": pl.Int64}, "name": "rows"}
    planned = dp.Session(epsilon=1, ledger=ledger).protect(path, **how).dp_count().plan(epsilon=1)
    pl.DataFrame({"more": ["a"], "x": [1]}).write_parquet(path)
    session = dp.Session(epsilon=1, ledger=ledger)
    query = session.protect(path, **how).dp_count()
    assert query.plan(epsilon=1).to_json() == planned.to_json()
    query.collect(epsilon=1)
    assert session.history["fingerprint"].to_list() == [planned.fingerprint]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize(
    ("stated", "error", "words"),
    [
        ({"x": "Int32"}, dp.UnsupportedOperation, "'x' is Int64, and stated as Int32"),
        ({"x": "Int64", "t": "Datetime(us)"}, dp.UnsupportedOperation, "'t' is Datetime"),
        (
            {"d": "Decimal(10, 3)"},
            dp.UnsupportedOperation,
            "'d' is Decimal(10, 2), and stated as Decimal(10, 3)",
        ),
        (
            {"d": "Decimal(38, 2)"},
            dp.UnsupportedOperation,
            "'d' is Decimal(10, 2), and stated as Decimal(38, 2)",
        ),
        ({"nothing": "Int64", "none": "Date"}, dp.UnknownColumn, "no column 'nothing', 'none'"),
    ],
)
def test_other_columns_are_refused_before_the_charge(
    stated: dict[str, str], error: type[Exception], words: str, engine: Any, tmp_path: Path
) -> None:
    types = {"x": pl.Int64, "t": pl.Datetime("us", "UTC"), "d": pl.Decimal(10, 2)}
    values = {"x": [77_001], "t": [None], "d": [Decimal("1.25")]}
    pl.DataFrame(values, schema=types).write_parquet(tmp_path / "a.parquet")
    session = dp.Session(epsilon=1)
    frame = session.protect(tmp_path / "a.parquet", dp.Rows(), schema=stated, engine=engine)
    query = frame.dp_count()
    query.plan(epsilon=1)
    for _ in range(2):
        with pytest.raises(error) as caught:
            query.collect(epsilon=1)
        assert words in str(caught.value)
        assert "77" not in str(caught.value)
    assert session.history.is_empty()


def test_categories_of_the_file_are_not_quoted(tmp_path: Path) -> None:
    pl.DataFrame({"e": ["x"]}, schema={"e": ENUM}).write_parquet(tmp_path / "a.parquet")
    frame = protected(tmp_path / "a.parquet", schema={"e": ["p", "q"]})
    with pytest.raises(dp.UnsupportedOperation, match="another Enum of 2 categories") as caught:
        exactly(frame.dp_count())
    assert "'x'" not in str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "Integer",
        "List",
        "List()",
        "List(Int64",
        "Datetime(day)",
        "Decimal(99, 1)",
        "Decimal(2, 3)",
        "Array(Int64)",
        "Struct({})",
        "Struct({a})",
        "Int64)",
        "Object",
        "Enum",
        "List(" * 30,
        3,
        "Datetime(us, Mars/Base)",
    ],
)
def test_what_is_no_type_is_refused(written: Any, tmp_path: Path) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="type"):
        protected(tmp_path / "a.parquet", schema={"x": written})


@pytest.fixture
def unreadable() -> Iterator[Path]:
    """A folder with a file that this user may not read, nor the superuser in its place."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        closed = Path(folder, "closed")
        closed.mkdir()
        pl.DataFrame({"x": [1]}).write_parquet(closed / "a.parquet")
        pl.DataFrame({"x": [1]}).write_csv(closed / "a.csv")
        for file in closed.iterdir():
            file.chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield closed
        finally:
            os.seteuid(user)
            closed.chmod(0o700)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize(
    "name", ["a.parquet", "*.parquet", "a.csv", "none.parquet", "no/*.parquet"]
)
@pytest.mark.parametrize("folder", [False, True])
def test_what_may_not_be_read_is_refused_with_what_to_write(
    unreadable: Path, name: str, folder: bool, engine: Any
) -> None:
    if folder:
        user = os.geteuid()
        if user == 65534:
            os.seteuid(0)
        unreadable.chmod(0)
        os.seteuid(user)
    with pytest.raises(dp.UnsupportedOperation) as caught:
        protected(unreadable / name, engine=engine)
    assert "[source.schema]" in str(caught.value)
    assert 'schema={"age": "Int64"' in str(caught.value)
    assert protected(unreadable / name, schema={"x": "Int64"}, engine=engine).columns == ["x"]


def test_a_folder_and_a_store_that_cannot_be_read(unreadable: Path) -> None:
    if os.geteuid() == 65534:
        os.seteuid(0)
    unreadable.chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)
    with pytest.raises(dp.UnsupportedOperation, match="may not read") as caught:
        protected(unreadable)
    assert "[source.schema]" in str(caught.value)


def test_a_stated_frame_joins_and_knows_whose_rows_are(tmp_path: Path) -> None:
    session = dp.Session(epsilon=10**6)
    orders = session.protect(
        tmp_path / "orders.parquet", "who", schema={"order": "Int64", "who": "String"}
    )
    items = session.protect(
        tmp_path / "items.parquet",
        dp.Through(orders, on="order"),
        schema={"order": "Int64", "price": "Int64"},
    )
    query = items.limit_rows(5).agg(dp.sum("price", (0, 100)))
    planned = query.plan(epsilon=1).fingerprint
    pl.DataFrame({"order": [1, 2], "who": ["a", "b"]}).write_parquet(tmp_path / "orders.parquet")
    pl.DataFrame({"order": [1, 1, 3], "price": [5, 7, 9]}).write_parquet(tmp_path / "items.parquet")
    assert query.plan(epsilon=1).fingerprint == planned
    assert exactly(query).item() == 12
