"""No statistic of stored values decides about rows on DuckDB: its optimiser is off for a query."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe.api.query import parts
from dpframe.lower.engines import duckdb_engine
from dpframe.lower.engines.duckdb_engine import Border, DuckDBEngine
from dpframe.optimise.measurements import measurements_of

c = dp.col
BASE = [math.nan] * 1000 + [1.0]
ONE = 2**27
"""What 1 adds to a sum of values in (0, 5): sums are of whole numbers."""


def _ones(condition: pl.Expr) -> Any:
    return dp.sum(pl.when(condition).then(5).otherwise(0), (0, 5))


OUTPUTS: dict[str, tuple[Any, list[int], list[int]]] = {
    "count": (c("x").dp_count(), [1], [2]),
    "greater": (_ones(c("x") > 5), [5000], [5005]),
    "unequal": (_ones(c("x") != 1), [5000], [5005]),
    "nan": (_ones(c("x").is_nan()), [5000], [5000]),
    "sum": (c("x").dp_sum((0, 5)), [ONE], [6 * ONE]),
    "bins": (c("x").dp_histogram([0, 1, 5], other=True), [1, 1000], [1, 1001]),
}
"""Aggregates of the rows, and their exact tables without and with a row 10.0."""


_CONNECTIONS: list[Any] = []
"""Before version 2 a relation does not keep its connection open."""


def _connect() -> Any:
    _CONNECTIONS.append(duckdb.connect())
    return _CONNECTIONS[-1]


def _by_polars(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


def _by_pyarrow(frame: pl.DataFrame, path: Path) -> None:
    pq.write_table(frame.to_arrow(), path)


def _view(path: Path) -> Any:
    connection = _connect()
    connection.execute(f"CREATE VIEW a AS FROM '{path}'")
    connection.execute("CREATE VIEW b AS SELECT *, x > 5 AS large FROM a")
    return connection.table("b")


RELATIONS: dict[str, Callable[[Path], Any]] = {
    "files": lambda path: _connect().read_parquet(str(path)),
    "views over views": _view,
    "Float32": lambda path: _connect().sql(f"SELECT x::FLOAT AS x FROM '{path}'"),
    "once filtered": lambda path: _connect().sql(f"FROM '{path}' WHERE x >= 1"),
}


def _exact(query: Any) -> list[list[int]]:
    """The exact tables of a query."""
    asked, source, _ = parts(query)
    tables = dict.fromkeys(t for use in measurements_of(asked) for t in use.part.tables)
    found = source.opened(asked.relation.token).run(asked.relation, asked.groups, list(tables))
    return [found[table].values.tolist() for table in tables]


@pytest.mark.parametrize("write", [_by_polars, _by_pyarrow])
@pytest.mark.parametrize("relation", RELATIONS)
def test_one_more_row_moves_no_other(
    write: Callable[[pl.DataFrame, Path], None], relation: str, tmp_path: Path
) -> None:
    for side, rows in ((1, BASE), (2, [*BASE, 10.0])):
        path = tmp_path / f"{side}.parquet"
        write(pl.DataFrame({"x": rows}), path)
        frame = dp.Session(epsilon=1).protect(RELATIONS[relation](path), dp.Rows())
        found = _exact(frame.agg(**{name: one[0] for name, one in OUTPUTS.items()}))
        assert found == [one[side] for one in OUTPUTS.values()]
        assert _exact(frame.filter(c("x") > 5).dp_count()) == [[999 + side]]
        grouped = frame.group_by(z=c("x") > 5, keys=[True, False]).agg(dp.count())
        assert _exact(grouped) == [[999 + side, 1]]


def test_rows_that_the_owner_filtered_are_those_of_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    _by_polars(pl.DataFrame({"x": BASE}), path)
    relation = _connect().sql(f"FROM '{path}' WHERE x > 5")
    frame = dp.Session(epsilon=1).protect(relation, dp.Rows())
    assert _exact(frame.dp_count()) == [[1000]]


# -- the setting ---------------------------------------------------------------------------------


def _is_on(connection: Any) -> bool:
    return Border(connection.sql("SELECT 1 AS one"))._is_on()


@pytest.mark.parametrize("on", [True, False])
def test_the_optimiser_is_afterwards_as_it_was(on: bool) -> None:
    connection = duckdb.connect()
    if not on:
        connection.execute("PRAGMA disable_optimizer")
    border = Border(connection.sql("SELECT 1 AS one"))
    assert border.run(lambda: _is_on(connection.cursor())) is True  # of each other connection
    assert border.run(lambda: border._is_on()) is False
    assert _is_on(connection) is on
    with pytest.raises(ZeroDivisionError):
        border.run(lambda: 1 // 0)
    assert _is_on(connection) is on
    left = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    assert connection.sql(left).fetchall() == [(0,)]


def test_whoever_turns_it_on_meanwhile_gets_no_result() -> None:
    connection = duckdb.connect()
    border = Border(connection.sql("SELECT 1 AS one"))
    with pytest.raises(dp.UnsupportedOperation, match="turned on while a query ran"):
        border.run(lambda: connection.execute("PRAGMA enable_optimizer"))


def test_a_relation_that_cannot_be_read_any_more_leaves_it_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    _by_polars(pl.DataFrame({"x": BASE}), path)
    connection = duckdb.connect()
    query = dp.Session(epsilon=1).protect(connection.read_parquet(str(path)), dp.Rows()).dp_count()
    asked, source, _ = parts(query)
    path.unlink()
    table = measurements_of(asked)[0].part.tables
    with pytest.raises(dp.EngineError):
        source.opened(asked.relation.token).run(asked.relation, asked.groups, table)
    assert _is_on(connection)


def test_an_aborted_transaction_is_said() -> None:
    connection = duckdb.connect()
    border = Border(connection.sql("SELECT 1 AS one"))
    connection.execute("BEGIN")
    with (
        pytest.warns(RuntimeWarning, match="run ROLLBACK"),
        pytest.raises(duckdb.Error),
    ):
        border.run(lambda: border.fetch("SELECT error('x')"))


def test_interruptions_do_not_keep_it_off() -> None:
    connection = duckdb.connect()
    border = Border(connection.sql("SELECT 1 AS one"))
    asked: list[str] = []
    ask = duckdb_engine._ask

    def interrupted(relation: Any, sql: str) -> Any:
        asked.append(sql)
        if sql == "PRAGMA enable_optimizer" and asked.count(sql) < 4:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
        return ask(relation, sql)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(duckdb_engine, "_ask", interrupted)
        border.run(lambda: None)
    assert _is_on(connection)


def test_threads_on_one_connection_take_turns() -> None:
    """Otherwise one would turn it on while another has it off."""
    connection = duckdb.connect()
    inside, most = 0, 0
    results: list[bool] = []

    def work(border: Border) -> bool:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        off = not border._is_on()
        inside -= 1
        return off

    def run() -> None:
        with turn:
            border = Border(connection.sql("SELECT 1 AS one"))
        ready.wait()
        results.append(border.run(lambda: work(border)))

    turn, ready = threading.Lock(), threading.Barrier(4)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    assert most == 1


def test_a_locked_configuration_is_refused_unless_it_is_off() -> None:
    connection = duckdb.connect()
    connection.execute("SET lock_configuration = true")
    session = dp.Session(epsilon=1)
    if int(duckdb.__version__.split(".")[0]) >= 2:  # before, the pragma was no setting
        with pytest.raises(dp.UnsupportedOperation, match="PRAGMA disable_optimizer before SET"):
            session.protect(connection.sql("SELECT 1 AS x"), dp.Rows())
    connection = duckdb.connect()
    connection.execute("PRAGMA disable_optimizer")
    connection.execute("SET lock_configuration = true")
    session.protect(connection.sql("SELECT 1 AS x"), dp.Rows()).dp_count().collect(epsilon=1)


# -- what is tried first ---------------------------------------------------------------------------


@pytest.fixture
def nothing_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_engine, "_ACCEPTED", set())


@pytest.mark.usefixtures("nothing_accepted")
def test_a_connection_on_which_it_means_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Border, "_turn_off", lambda self: None)
    monkeypatch.setattr(Border, "_is_on", lambda self: False)
    with pytest.raises(dp.UnsupportedOperation, match="statistics still decide about rows"):
        dp.Session(epsilon=1).protect(_connect().sql("SELECT 1 AS x"), dp.Rows())


@pytest.mark.usefixtures("nothing_accepted")
def test_a_connection_that_reads_no_files_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("SET enable_external_access = false")
    with pytest.raises(dp.UnsupportedOperation, match="cannot read a temporary file"):
        dp.Session(epsilon=1).protect(connection.sql("SELECT 1 AS x"), dp.Rows())


@pytest.mark.skipif(duckdb.__version__ < "2", reason="older versions are not asked")
@pytest.mark.parametrize(
    "sql",
    ["FROM a, b WHERE a.id = b.id", "FROM a WHERE EXISTS (FROM b WHERE b.id = a.id AND b.x > 1)"],
)
def test_joins_that_only_the_optimiser_would_make_are_refused(sql: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT range AS id FROM range(9)")
    connection.execute("CREATE TABLE b AS SELECT range AS id, range AS x FROM range(9)")
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="JOIN b ON"):
        session.protect(connection.sql(f"SELECT a.id {sql}"), dp.Rows())
    for join in ("JOIN b ON a.id = b.id", "SEMI JOIN b ON a.id = b.id", ", b WHERE a.id <> b.id"):
        session.protect(connection.sql(f"SELECT a.id FROM a {join}"), dp.Rows())


# -- what else changes without an optimiser --------------------------------------------------------


def test_only_columns_that_are_asked_for_are_read() -> None:
    read: list[str] = []

    class Relation(DuckDBEngine):
        def narrow(self, data: Any, columns: Any) -> Any:
            read.extend(columns)
            return super().narrow(data, columns)

    columns = {"x": [1, 2, 3], "y": [4.0, 5.0, 6.0], "a b": ["p", "q", None]}
    relation = _connect().from_arrow(pl.DataFrame(columns).to_arrow())
    frame = dp.Session(epsilon=1).protect(relation, dp.Rows())
    asked, source, _ = parts(frame.filter(c("a b") == "p").dp_sum("x", (0, 4)))
    source.engine = Relation(relation)
    tables = measurements_of(asked)[0].part.tables
    source.opened(asked.relation.token).run(asked.relation, asked.groups, tables)
    assert read == ["x", "a b"]


def test_a_rehearsal_reads_nothing_of_the_relation() -> None:
    relation = _connect().sql("SELECT max(CAST(t AS INTEGER)) AS x FROM (VALUES ('a')) v(t)")
    frame = dp.Session(epsilon=1).protect(relation, dp.Rows())
    asked, source, _ = parts(frame.dp_sum("x", (0, 4)))
    tables = measurements_of(asked)[0].part.tables
    opened = source.opened(asked.relation.token)
    opened.rehearse(asked.relation, asked.groups, tables)
    with pytest.raises(dp.EngineError):
        opened.run(asked.relation, asked.groups, tables)


# -- labels ----------------------------------------------------------------------------------------


def test_labels_of_an_enum_are_not_declared() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT unnest(['p', 'q', 'p']) AS g")
    connection.execute("CREATE TYPE labels AS ENUM (SELECT DISTINCT g FROM a)")
    arrow = pl.DataFrame({"g": ["p", "q", "p"]}, schema={"g": pl.Categorical}).to_arrow()
    for relation in (connection.sql("SELECT g::labels AS g FROM a"), connection.from_arrow(arrow)):
        session = dp.Session(epsilon=100)
        frame = session.protect(relation, dp.Rows())
        with pytest.raises(dp.MissingKeys, match="not known without reading"):
            frame.group_by("g").agg(dp.count())
        with pytest.raises(dp.MissingKeys, match="not known, and they may not be read"):
            frame.dp_histogram("g")
        declared = session.protect(relation, dp.Rows(), categories={"g": ["p", "z"]})
        assert _exact(declared.group_by("g").agg(dp.count())) == [[2, 0]]


def test_labels_that_a_schema_of_text_declares_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("g\np\np\nz\n")
    schema = {"g": pl.Enum(["p", "q"])}
    session = dp.Session(epsilon=1)
    frame = session.protect(path, dp.Rows(), engine="duckdb", schema=schema)
    assert _exact(frame.group_by("g").agg(dp.count())) == [[2, 0]]
