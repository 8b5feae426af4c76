"""Apache Spark: DataFrames of one session.

No setting of the session is changed: expressions mean the same with ANSI on and off, and in every
time zone, because those that do not are refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import DType
from dpframe.core.interval import interval
from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.lower.engines.dialect import COMMON_TYPES, Dialect
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.frames import EngineFrame
from dpframe.lower.engines.namespace import EngineNamespace
from dpframe.lower.engines.results import as_declared
from dpframe.lower.engines.spark_border import border, holds, is_connect
from dpframe.lower.engines.spark_cluster import Watch
from dpframe.rows.operands import INT64_LIMITS
from dpframe.rows.polars_dtypes import from_polars

_sql: Any = import_module("pyspark.sql")  # checked types do not need hundreds of megabytes
_functions: Any = import_module("pyspark.sql.functions")
_types: Any = import_module("pyspark.sql.types")

_TYPES: Mapping[str, Any] = {
    "boolean": pl.Boolean(),
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "date": pl.Date(),
    "timestamp_ntz": pl.Datetime("us"),
    "timestamp": pl.Datetime("us", "UTC"),
    "binary": pl.Binary(),
}
_NATIVE: Mapping[str, Any] = {
    "Boolean": _types.BooleanType(),
    "Int8": _types.ByteType(),
    "Int16": _types.ShortType(),
    "Int32": _types.IntegerType(),
    "Int64": _types.LongType(),
    "Float32": _types.FloatType(),
    "Float64": _types.DoubleType(),
    "String": _types.StringType(),
    "Enum": _types.StringType(),
    "Date": _types.DateType(),
    "Datetime": _types.TimestampNTZType(),
}


COMBINE: Final = "spark.dpframe.pairs.combine"
"""The setting of a session that says whether each task adds up what it has of an individual in a
group before a limit on groups shuffles anything.
"""
_ACCEPTED: WeakSet[Any] = WeakSet()
"""Sessions that gave what Polars gives."""
_WITHHELD: ContextVar[bool] = ContextVar("dpframe_spark_withheld", default=False)


class _Withheld(logging.Filter):
    """Passes what PySpark logs, but for what it logs of dpframe's own queries."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _WITHHELD.get()


def _listen() -> None:
    """Since version 4 PySpark prints an error, with the values that it quotes, on standard error
    before it raises it.
    """
    if find_spec("pyspark.logger") is None:
        return
    of: Any = import_module("pyspark.logger").PySparkLogger
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        of.getLogger(name).addFilter(_Withheld())


_listen()


@contextmanager
def _withheld() -> Iterator[None]:
    """Nothing that Spark says in here is printed by PySpark; what the JVM logs is Spark's."""
    before = _WITHHELD.set(True)
    try:
        yield
    finally:
        _WITHHELD.reset(before)


class SparkDialect(Dialect):
    """Expressions for Spark; wide numbers are decimals of 38 digits."""

    label = "Spark"
    types = COMMON_TYPES
    hashes = interval(*INT64_LIMITS)
    quotient = "div"
    octets = "octet_length"
    divides_wide = False
    sums_wide = False

    def __init__(self, session: Any) -> None:
        self._session = session

    @property
    def wide_type(self) -> Any:
        return nw.Decimal(38, 0)

    def moment(self, value: Any, dtype: DType) -> nw.Expr:
        """From text, in which no time zone has a part."""
        return nw.lit(value.isoformat()).cast(self.native_type(dtype))

    def from_micros(self, number: str) -> str:
        tick = "INTERVAL '0 00:00:00.000001' DAY TO SECOND"
        return f"TIMESTAMP_NTZ '1970-01-01 00:00:00' + {tick} * {number}"

    @property
    def microsecond(self) -> Callable[[str], str]:
        return "CAST(extract(SECOND FROM {}) * 1000000 AS BIGINT) % 1000000".format

    def native_frame(self, frame: pl.DataFrame) -> Any:
        fields = []
        for name, dtype in frame.schema.items():
            found = from_polars(dtype)
            fields.append(_types.StructField(name, _NATIVE[found.name]))
        return self._session.createDataFrame(frame.rows(), _types.StructType(fields))

    def positional(self, native: Any, names: Sequence[str]) -> Any:
        return native.toDF(*names)

    def with_hash(self, native: Any, name: str, parts: Sequence[str], salt: int) -> Any:
        signed = (salt + 2**63) % 2**64 - 2**63
        return native.withColumn(
            name, _functions.xxhash64(*map(_functions.col, parts), _functions.lit(signed))
        )

    def with_written(self, native: Any, columns: Mapping[str, str]) -> Any:
        return native.selectExpr("*", *(f"{sql} AS {name}" for name, sql in columns.items()))

    def with_position(
        self, native: Any, name: str, within: Sequence[str], order: Sequence[str]
    ) -> Any:
        window = _sql.Window.partitionBy(*within).orderBy(*order)
        place = _functions.row_number().over(window)
        # cast, or Spark sorts once more before the shuffle, to drop few: pairs are spread already
        return native.withColumn(name, place.cast("bigint"))

    def gathered(self, native: Any, names: Sequence[str]) -> Any:
        """Shuffled once by these columns: their group-by with others needs no shuffle then, nor do
        positions within them. Spark on its own shuffles by all columns first, and by these later.
        """
        if self._session.conf.get(COMBINE, "false").lower() == "true":
            return native
        return native.repartition(*names)


class SparkEngine(Engine):
    """Runs plans on the session of a DataFrame."""

    name = "spark"
    label = "Spark"

    def __init__(self, frame: Any) -> None:
        self._session = frame.sparkSession
        _require_silence(self._session)
        self._process = os.getpid()
        self._ns = EngineNamespace(SparkDialect(self._session))
        if len(set(frame.columns)) < len(frame.columns):
            raise UnsupportedOperation(
                "two columns have the same name",
                where="session.protect(frame, ...)",
                remedy="rename one of them first",
            )
        with _withheld():
            border(frame)  # refused here, and not by a query

    @property
    def ns(self) -> EngineNamespace:
        return self._ns

    @property
    def is_accepted(self) -> bool:
        return self._session in _ACCEPTED

    def accept(self) -> None:
        _ACCEPTED.add(self._session)

    @staticmethod
    def schema_of(data: Any) -> dict[str, Any]:
        """Names and Polars types of a DataFrame's columns."""
        fields = data.schema.fields
        return {field.name: _from_spark(field.dataType.simpleString()) for field in fields}

    def has_border(self) -> bool:
        with _withheld():
            return holds(self._session)

    def frame(self, data: Any) -> EngineFrame:
        with _withheld():
            return self._ns.frame(border(data), self.schema_of(data))

    def empty(self, data: Any, schema: pl.Schema) -> EngineFrame:
        self.require_process()
        with _withheld():
            return self._ns.frame(border(data).limit(0), self.schema_of(data))

    def require_process(self) -> None:
        """Refuse a forked process, which would talk to Spark on the connection of its parent."""
        if self._process != os.getpid():
            raise EngineError(
                "this process was forked from the one that opened the Spark session; nothing was "
                "charged",
                why="it would read the answers of that process",
                remedy="protect the frame and run the query in the process that opened the session",
            )

    def collect(
        self, frames: Sequence[EngineFrame], *, rehearsed: bool = False
    ) -> list[pl.DataFrame]:
        with _withheld(), Watch(self._session) as watch:
            return [as_declared(frame, _table(frame)) for frame in frames]
        raise watch.lost()

    def shares(self, other: Engine) -> bool:
        return isinstance(other, SparkEngine) and other._session is self._session


def _require_silence(session: Any) -> None:
    """Refuse a session whose virtual machine belongs to this process, classic or Connect, and
    prints on its standard error: what it prints of a failed task quotes values of rows.
    """
    machine = getattr(import_module("pyspark").SparkContext, "_jvm", None)
    if machine is None:
        return  # a server elsewhere: what it logs is its owner's
    level = machine.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    if level != "OFF":
        raise UnsupportedOperation(
            f"Spark logs to the standard error of this process at level {level}",
            where="session.protect(frame, ...)",
            why="what it logs about failures quotes private data",
            remedy='make the session with .config("spark.log.level", "OFF")'
            + ("" if is_connect(session) else ', or call spark.sparkContext.setLogLevel("OFF")'),
        )


def _table(frame: EngineFrame) -> Any:
    native = frame.native
    if hasattr(native, "toArrow"):
        return native.toArrow()
    columns = list(zip(*native.collect(), strict=True)) or [() for _ in frame.names]
    return pl.DataFrame(dict(zip(native.columns, columns, strict=True))).to_arrow()


def active_session() -> Any:
    """The session that is active.

    Raises
    ------
    UnsupportedOperation
        If none exists.
    """
    session = _sql.SparkSession.getActiveSession()
    if session is None:
        raise UnsupportedOperation(
            "no Spark session is active",
            where="session.protect(path, engine='spark')",
            remedy="start one: SparkSession.builder.getOrCreate()",
        )
    return session


def read(path: str | Path, kind: str, names: Sequence[str] = ()) -> Any:
    """Files as a DataFrame of the session that is active.

    Folders name no columns, but for those of `names`, which are text: Spark guesses types from all
    names of folders, so one row could change them.

    Raises
    ------
    UnsupportedOperation
        Where there is no session, or types would be guessed from the names of folders.
    """
    session = active_session()
    with _withheld():
        frame = session.read.format(kind).load(str(path))
        files = session.read.format(kind).option("recursiveFileLookup", "true").load(str(path))
    folders = [name for name in frame.columns if name not in files.columns]
    if folders and names:
        text = [_types.StructField(name, _types.StringType()) for name in folders]
        fields = _types.StructType([*files.schema.fields, *text])
        with _withheld():
            return session.read.format(kind).schema(fields).load(str(path))
    if folders:
        raise UnsupportedOperation(
            f"Spark guesses the types of the columns {folders} from the names of folders",
            where="session.protect(path, engine='spark')",
            why="one row could change such a type",
            remedy=(
                "state the columns that are read: "
                'schema={"x": "Int64", "year": "String"}, with String for those of '
                "folders",
                "protect a DataFrame with stated types: spark.read.schema(...).parquet(path)",
            ),
        )
    return frame


def _from_spark(written: str) -> Any:
    """The Polars type of a Spark type; one that no operation knows if none exists."""
    if written.startswith("decimal("):
        precision, scale = written.removeprefix("decimal(").removesuffix(")").split(",")
        return pl.Decimal(int(precision), int(scale))
    return _TYPES.get(written, pl.Object())
