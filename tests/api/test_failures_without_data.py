"""What is said when something fails after data was read: nothing of the data, anywhere.

Each case is shown to have had something to say: the data hold marks, and what fails quotes them.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe import pipeline, runner

NUMBER, TEXT, REAL = 918273645, "Zanzibar-Quux", 7733.991177
MARKS = (str(NUMBER), TEXT, str(REAL), f"{NUMBER:_}", f"{NUMBER:,}", "9.18273645e8")
OURS = Path(pipeline.__file__).parent
ROWS = pl.DataFrame(
    {
        "age": [NUMBER] * 3 + [31],
        "city": [TEXT, TEXT, "x", "y"],
        "pay": [REAL, 1.0, 2.0, 3.0],
    }
)


def marks_in(text: object) -> list[str]:
    return [mark for mark in MARKS if mark in str(text)]


def whole(error: BaseException | None, seen: set[int] | None = None) -> Iterator[str]:
    """All that can be read of an error: texts, fields, notes, what it came from, and the values
    that dpframe's frames hold in its traceback.
    """
    seen = set() if seen is None else seen
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield from (str(error), repr(error), repr(error.args), repr(error.__dict__))
    yield from getattr(error, "__notes__", [])
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename).is_relative_to(OURS):
            yield from (f"{name}={value!r}" for name, value in frame.f_locals.items())
    for inner in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        yield from whole(inner, seen)


def failing_source(*_: Any) -> Iterator[pl.DataFrame]:
    yield ROWS
    raise ValueError(f"{TEXT} {NUMBER} {REAL}")


def strict_cast() -> pl.LazyFrame:
    return ROWS.lazy().with_columns(age=pl.col("city").cast(pl.Int64, strict=True))


def strict_parse() -> pl.LazyFrame:
    return ROWS.lazy().with_columns(age=pl.col("city").str.to_integer(strict=True))


def python_step() -> pl.LazyFrame:
    def refuse(value: int) -> int:
        raise KeyError(f"{value} {TEXT}")

    return ROWS.lazy().with_columns(age=pl.col("age").map_elements(refuse, return_dtype=pl.Int64))


def broken_batches() -> pl.LazyFrame:
    return register_io_source(failing_source, schema=ROWS.schema)


FRAMES: dict[str, Callable[[], Any]] = {
    "a strict cast": strict_cast,
    "a strict parse": strict_parse,
    "a function of the owner": python_step,
    "a source that stops": broken_batches,
}


class Watch:
    """What one failure leaves behind in all places that people or programs read."""

    def __init__(self, caplog: Any, capfd: Any, recwarn: Any, ledger: Path) -> None:
        self._caplog, self._capfd, self._recwarn, self._ledger = caplog, capfd, recwarn, ledger
        caplog.set_level(logging.DEBUG)

    def require_silence(self, error: BaseException, session: dp.Session) -> None:
        printed = self._capfd.readouterr()
        logged = [
            f"{record.getMessage()} {record.exc_info} {record.args}"
            for record in self._caplog.records
        ]
        warned = [str(warning.message) for warning in self._recwarn.list]
        history = [str(session.history.to_dicts()), repr(session), session._repr_html_()]
        stored = [f.read_bytes().decode("latin-1") for f in self._ledger.parent.glob("budget*")]
        everything = [*whole(error), *logged, *warned, *history, *stored, *printed]
        assert [mark for text in everything for mark in marks_in(text)] == []


@pytest.fixture
def watch(caplog: Any, capfd: Any, recwarn: Any, tmp_path: Path) -> Watch:
    return Watch(caplog, capfd, recwarn, tmp_path / "budget.db")


def asked(frame: Any, ledger: Path, **options: Any) -> tuple[dp.Session, dp.PrivateQuery]:
    session = dp.Session(epsilon=1, ledger=ledger, **options)
    people = session.protect(frame, unit=dp.Rows())
    grouped = people.group_by("city", keys=["x", "y"])
    return session, grouped.agg(n=dp.count(), total=dp.sum("age", (0, 99)))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_that_fails_on_its_rows(
    watch: Watch, tmp_path: Path, name: str, engine: str, capfd: Any
) -> None:
    frame = FRAMES[name]()
    with pytest.raises(Exception, match=TEXT) as raw:
        frame.collect(engine=engine)
    assert marks_in(raw.value), "without dpframe it says so"
    capfd.readouterr()
    session, query = asked(FRAMES[name](), tmp_path / "budget.db")
    with pytest.raises(dp.EngineError) as failed:
        query.collect(epsilon="0.5", engine=engine)
    assert session.history["status"].to_list() == ["failed"], "it was charged, so data was read"
    watch.require_silence(failed.value, session)


@pytest.mark.parametrize(
    "kind", [ValueError, MemoryError, KeyError, OSError, RuntimeError, AssertionError]
)
@pytest.mark.parametrize("stage", ["draw", "assemble"])
def test_a_stage_that_fails_on_exact_tables(
    watch: Watch, tmp_path: Path, monkeypatch: Any, stage: str, kind: type[Exception]
) -> None:
    def broken(*arguments: Any) -> Any:
        raise kind(f"{arguments} {TEXT} {NUMBER}") from ValueError(f"{REAL}")

    session, query = asked(ROWS, tmp_path / "budget.db")
    monkeypatch.setattr(runner, stage, broken)
    with pytest.raises(dp.EngineError) as failed:
        query.collect(epsilon="0.5")
    assert session.history["status"].to_list() == ["failed"]
    watch.require_silence(failed.value, session)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_its_text_behind(
    watch: Watch, tmp_path: Path, monkeypatch: Any, kind: type[BaseException]
) -> None:
    def broken(*_: Any) -> Any:
        raise kind(f"{TEXT} {NUMBER}")

    session, query = asked(ROWS, tmp_path / "budget.db")
    monkeypatch.setattr(runner, "assemble", broken)
    with pytest.raises(kind) as failed:
        query.collect(epsilon="0.5")
    watch.require_silence(failed.value, session)


def test_a_ledger_that_fails_after_the_data_was_read(
    watch: Watch, tmp_path: Path, monkeypatch: Any
) -> None:
    session, query = asked(ROWS, tmp_path / "budget.db")

    def refuse(*_: Any) -> None:
        raise dp.LedgerError("the disk is full")

    monkeypatch.setattr(session._payer.ledger, "settle", refuse)
    with pytest.raises(dp.LedgerError) as failed:
        query.collect(epsilon="0.5")
    assert session.history["status"].to_list() == ["charged"]
    watch.require_silence(failed.value, session)


@pytest.mark.parametrize(
    ("kind", "said"), [(ValueError, dp.EngineError), (KeyboardInterrupt, KeyboardInterrupt)]
)
def test_a_failure_is_what_is_said_where_the_ledger_fails_too(
    watch: Watch,
    tmp_path: Path,
    monkeypatch: Any,
    kind: type[BaseException],
    said: type[BaseException],
) -> None:
    """An interrupt ends the program also then, and the charge counts as before."""

    def broken(*_: Any) -> Any:
        raise kind(f"{TEXT} {NUMBER}")

    def refuse(*_: Any) -> None:
        raise dp.LedgerError("the disk is full")

    session, query = asked(ROWS, tmp_path / "budget.db")
    monkeypatch.setattr(runner, "draw", broken)
    monkeypatch.setattr(session._payer.ledger, "settle", refuse)
    with pytest.raises(said) as failed:
        query.collect(epsilon="0.5")
    assert session.history["status"].to_list() == ["charged"]
    assert session.spent == dp.PureDP("0.5")
    watch.require_silence(failed.value, session)


def test_refusals_after_data_was_read(watch: Watch, tmp_path: Path) -> None:
    """Over budget, not approved: by a session that has answered from the same frame."""
    session, query = asked(ROWS, tmp_path / "budget.db")
    query.collect(epsilon="0.5")
    with pytest.raises(dp.BudgetExceeded) as over:
        query.collect(epsilon=2)
    watch.require_silence(over.value, session)
    session._payer.needs_approval = True
    with pytest.raises(dp.PlanMismatch) as unapproved:
        query.collect(epsilon="0.1")
    watch.require_silence(unapproved.value, session)
    with pytest.raises(dp.UnknownColumn) as unknown:
        session.protect(ROWS, unit=dp.Rows()).dp_sum("agee", (0, 1))
    watch.require_silence(unknown.value, session)


def test_an_executor_that_fails_or_returns_rows(watch: Watch, tmp_path: Path) -> None:
    def fails(frame: pl.LazyFrame) -> pl.DataFrame:
        raise RuntimeError(f"{TEXT} {frame.collect()} {ROWS}")

    def returns(_: pl.LazyFrame) -> Any:
        return ROWS

    session, query = asked(ROWS, tmp_path / "budget.db")
    executors: list[Any] = [fails, returns, lambda _: [NUMBER, TEXT]]
    for executor in executors:
        with pytest.raises(dp.EngineError) as failed:
            query.collect(epsilon="0.1", engine=executor)
        watch.require_silence(failed.value, session)
    assert set(session.history["status"]) == {"failed"}


def test_a_relation_that_fails_on_its_rows(watch: Watch, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows", ROWS.to_arrow())
    relation = connection.sql("SELECT CAST(city AS INTEGER) AS age, city FROM rows")
    with pytest.raises(duckdb.Error) as raw:
        relation.fetchall()
    assert marks_in(raw.value)
    session, query = asked(relation, tmp_path / "budget.db")
    with pytest.raises(dp.EngineError) as failed:
        query.collect(epsilon="0.5")
    assert session.history["status"].to_list() == ["failed"]
    watch.require_silence(failed.value, session)
