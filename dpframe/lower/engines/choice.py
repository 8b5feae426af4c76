"""The engine of a frame, recognised by its module's name, so that no engine is imported without
need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from dpframe.errors import UnsupportedOperation, location
from dpframe.lower.engines.engine import Engine, OfEngine
from dpframe.lower.engines.polars_engine import POLARS, PolarsEngine
from dpframe.lower.text_files import TextFiles, text_kind

ENGINES = ("polars", "duckdb", "spark")
_EXTRAS = {"duckdb": ("duckdb", "narwhals"), "spark": ("pyspark", "narwhals")}
_SUFFIXES = {".parquet": "parquet"}


def native_engine(frame: object) -> str | None:
    """The engine whose own frame this is; None for anything else."""
    module = type(frame).__module__.split(".")[0]
    name = type(frame).__name__
    if module in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
        return "duckdb"
    if module == "pyspark" and name == "DataFrame":
        return "spark"
    return None


def placed(
    frame: OfEngine, engine: str | None, names: Sequence[str] | None = None
) -> tuple[Engine, OfEngine, pl.Schema]:
    """The engine of a relation, a Spark DataFrame or files; its own frame, and the columns: of
    files `names` alone, where these are given and all there.

    Raises
    ------
    UnsupportedOperation
        When the frame does not run on the engine that is requested, or that is not installed.
    """
    name = native_engine(frame) or engine
    if engine is not None and engine != name:
        raise UnsupportedOperation(
            f"a frame of {name} does not run on {engine}",
            where=f"session.protect(frame, engine={engine!r})",
            remedy=("leave engine= out", "protect the path of the files that it reads"),
        )
    assert name is not None
    made: DuckDBEngine | SparkEngine
    with _refuse_if_missing(name):
        if name == "duckdb":
            from dpframe.lower.engines.duckdb_engine import (
                DuckDBEngine,
                scanned,
                select_columns,
                streamed,
            )

            declared = {}
            if isinstance(frame, TextFiles):
                data, connection = streamed(frame)
                declared = {n: t for n, t in frame.schema.items() if isinstance(t, pl.Enum)}
            elif native_engine(frame) is not None:
                data, connection = frame, None
            else:
                data, connection = scanned(frame, _kind(frame, name), names or ())
            if names is not None and set(names) <= set(data.columns):
                data = select_columns(data, names)
            made = DuckDBEngine(data, connection, declared)
        else:
            from dpframe.lower.engines.spark_engine import SparkEngine, read

            data = frame if native_engine(frame) else read(frame, _kind(frame, name), names or ())
            if names is not None and set(names) <= set(data.columns):
                data = data.select(*("`" + n.replace("`", "``") + "`" for n in names))
            made = SparkEngine(data)
    return made, data, pl.Schema(made.schema_of(data))


def planning_engine(path: str | Path, engine: str | None) -> Engine:
    """The engine that plans what will run on files whose columns are stated, and that are not
    looked at.

    Raises
    ------
    UnsupportedOperation
        When it is not installed, or does not read files of such a name.
    """
    if engine in (None, "polars"):
        return POLARS
    assert engine is not None
    if text_kind(path) is None:
        _kind(path, engine)
    with _refuse_if_missing(engine):
        if engine == "duckdb":
            from dpframe.lower.engines.duckdb_engine import engine_without_files

            return engine_without_files()
        from dpframe.lower.engines.spark_engine import SparkEngine, active_session

        return SparkEngine(active_session().range(1))


@contextmanager
def _refuse_if_missing(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        if error.name not in _EXTRAS[name]:
            raise
        raise UnsupportedOperation(
            f"frames of {name} need {error.name}, which is not installed",
            where=f"session.protect(frame, engine={name!r})",
            remedy=f'pip install "dpframe[{name}]"',
        ) from None


def _kind(frame: object, engine: str) -> str:
    """How files are read."""
    if isinstance(frame, (str, Path)) and Path(frame).suffix in _SUFFIXES:
        return _SUFFIXES[Path(frame).suffix]
    first, what = "leave engine= out", f"a {type(frame).__name__}"
    if isinstance(frame, TextFiles):
        what = f"{frame.kind} files"
    elif isinstance(frame, (str, Path)):
        first, what = f"protect a frame of {engine}", f"files named like {location(frame)!r}"
    raise UnsupportedOperation(
        f"{what} cannot be read by {engine}",
        where=f"session.protect(frame, engine={engine!r})",
        remedy=(first, "write the rows to a Parquet file, and protect its path"),
    )


def of_one(engines: list[Engine]) -> Engine:
    """The engine of frames that are joined.

    Raises
    ------
    UnsupportedOperation
        When they are on different ones, or on different connections.
    """
    first = engines[0]
    for other in engines[1:]:
        if not first.shares(other):
            where = f"{first.label} and {other.label}"
            raise UnsupportedOperation(
                f"the frames are on different engines or connections ({where})",
                remedy=("protect frames of one connection", "protect both as Polars frames"),
            )
    most = max(engines, key=_buckets)
    if isinstance(most, PolarsEngine) and most.pushes:
        pushes = all(isinstance(engine, PolarsEngine) and engine.pushes for engine in engines)
        return most if pushes else PolarsEngine(room=most.room, pushes=False)
    return most


def _buckets(engine: Engine) -> int:
    """How many buckets its queries are divided into."""
    room = engine.room if isinstance(engine, PolarsEngine) else None
    return 1 if room is None else room.buckets


__all__ = ["ENGINES", "POLARS", "native_engine", "of_one", "placed", "planning_engine"]
