"""Apache Spark: DataFrames of one session.

No setting of the session is changed: expressions mean the same with ANSI on and off, and in every
time zone, because those that do not are refused.
"""

from __future__ import annotations

import logging
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from uuid import uuid4
from weakref import WeakSet

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import DType
from dpframe.core.interval import interval
from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.lower.engines.engine import ClusterLost, Engine
from dpframe.lower.engines.engine_expr import COMMON_TYPES, Dialect
from dpframe.lower.engines.frames import EngineFrame, EngineNamespace, as_declared
from dpframe.rows.operands import INT64_LIMITS
from dpframe.rows.polars_dtypes import from_polars

OfSpark: TypeAlias = Any
"""An object of PySpark, whose types are hundreds of megabytes, or of its virtual machine."""

# Clusters that lose their executors: Spark waits for new ones for ever, dpframe does not.
#
# How long it waits depends on how many executors there are, and on nothing that rows say.

WAIT: Final = "spark.dpframe.executors.wait"
"""The setting of a session that says for how many seconds queries wait without any executor."""
_SECONDS: Final = 300.0
"""How long where it is not set."""
_LEAST: Final = 1.0
_PAUSE: Final = 0.5
"""How often executors are counted, in seconds, at most; and at least four times in the wait."""


class Watch:
    """Ends the queries that run in it where the cluster has no executor for too long.

    Where Spark runs in the driver's own process, or on a server elsewhere (Connect), nothing is
    watched. As a context it keeps back the failure of queries that it ended; what follows it says
    why they failed.

    Parameters
    ----------
    session
        Whose queries run in it.
    """

    def __init__(self, session: OfSpark) -> None:
        self._context = _cluster_of(session)
        self._tag = f"dpframe-{uuid4().hex}"
        self._over = threading.Event()
        self._is_lost = False
        if self._context is not None:
            self._wait = _seconds(session)
            self._thread = threading.Thread(target=self._run, name="dpframe-executors", daemon=True)

    def __enter__(self) -> Self:
        if self._context is not None:
            self._context.addJobTag(self._tag)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._context is None:
            return False
        self._over.set()
        self._thread.join()
        with suppress(Exception):  # a driver that is gone has no tags either
            self._context.removeJobTag(self._tag)
        # the lost cluster explains the failure, so Spark's own error is not shown
        return self._is_lost and kind is not None and issubclass(kind, Exception)

    def lost(self) -> ClusterLost:
        """What to raise after queries that ended in it."""
        return ClusterLost(self._wait)

    def _run(self) -> None:
        gone = 0.0
        every = min(_PAUSE, self._wait / 4)
        with suppress(Exception):  # then the driver is gone, which ends the queries as well
            while not self._over.wait(every):
                gone = 0.0 if _executors(self._context) else gone + every
                if gone >= self._wait:
                    self._is_lost = True
                    self._context.cancelJobsWithTag(self._tag)
                    return


def _cluster_of(session: OfSpark) -> OfSpark:
    """The context of a session whose executors are processes of their own."""
    try:
        context = session.sparkContext
    except Exception:  # a session of Connect has none, and says so in several ways
        return None
    return None if is_local(str(context.master)) else context


def is_local(master: str) -> bool:
    """Whether Spark runs in the driver's own process alone."""
    return master == "local" or master.startswith("local[")


def _seconds(session: OfSpark) -> float:
    """How long the session waits; the default for what is no number of seconds."""
    try:
        found = float(session.conf.get(WAIT, str(_SECONDS)))
    except ValueError:
        return _SECONDS
    return max(_LEAST, found) if math.isfinite(found) else _SECONDS


def _executors(context: OfSpark) -> int:
    """How many executors there are, the driver not counted."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


# The border between what Spark has stored and what is computed from it.
#
# Spark pushes conditions into every data source. Readers of Parquet and ORC skip row groups by
# their minimum and maximum, cached frames do so by batch, and databases and table formats do it
# too. Statistics can omit values (NaN, truncated text) or be stale, and then other rows decide
# whether a row is read. So directly above each source stands a filter that every row passes, with a
# condition that Spark considers non-deterministic. Spark moves no condition across such a filter,
# so no source gets one, neither from dpframe nor from the owner of the frame. No setting is read or
# changed.


_EVERY: Final = "spark_partition_id() >= 0"
"""True of every row; Spark takes it for not deterministic, and knows nothing of the number."""
_ALL_ROWS: Final = frozenset(
    {
        *("HiveTableRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"),
        *("Relation", "RelationV2", "Project", "RebalancePartitions", "Repartition"),
        *("RepartitionByExpression", "Sort", "SubqueryAlias", "Union", "View"),
    }
)
"""Nodes of plans that have a row for each row below, so that Spark has no condition to move."""
_ONE_BELOW: Final = frozenset(["Filter", "Project", "SubqueryAlias", "View"])
"""Nodes through which a condition on a column means the same."""
_ROW_NUMBER: Final = 3
_GUESSES: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""The setting by which a session guesses types from the names of folders, on by default."""
_LISTS_FOLDERS: Final = "PartitioningAwareFileIndex"
"""The class of what finds folders and their columns when a frame is made. Catalogs and tables of
other formats keep the types of these columns themselves.
"""


def border(frame: OfSpark) -> OfSpark:
    """The same rows, with a filter above each source that no condition crosses.

    Raises
    ------
    UnsupportedOperation
        For a frame whose sources are hidden behind earlier operations, or with types of columns
        that are guessed from the names of folders.
    """
    if is_connect(frame):
        _require_all_rows(frame)
        _require_no_folders(frame)
        return frame.filter(_EVERY)
    return _Plans(frame).frame()


def is_connect(of_spark: OfSpark) -> bool:
    """Whether a frame or session is one of Spark Connect, whose plans are on a server."""
    return type(of_spark).__module__.startswith("pyspark.sql.connect")


def holds(session: OfSpark) -> bool:
    """Whether the border does what it is for on a session: rows with NaN, which no statistic
    knows of, pass a filter that they should pass. Each kind of store is tried, and a filter of
    the owner of the frame where the session can see it.
    """
    values = [math.nan] * _ROW_NUMBER + [1.0]
    with TemporaryDirectory(prefix="dpframe-") as folder:
        cached = session.createDataFrame([(value,) for value in values], "x double").cache()
        try:
            frames = [cached]
            if _reads_files_here(session):
                file = Path(folder, "x.parquet")
                pl.DataFrame({"x": values}).write_parquet(file)
                frames.append(session.read.schema("x double").parquet(file.as_uri()))
            above = "x > 5"
            tried = [border(frame).filter(above) for frame in frames]
            if not is_connect(session):
                tried += [border(frame.filter(above)) for frame in frames]
            number: int = reduce(lambda one, other: one.union(other), tried).count()
        finally:
            cached.unpersist()
    return number == _ROW_NUMBER * len(tried)


def _reads_files_here(session: OfSpark) -> bool:
    """Whether Spark runs in a virtual machine of this process, and nowhere else."""
    if getattr(import_module("pyspark").SparkContext, "_jvm", None) is None:
        return False
    return is_local(session.conf.get("spark.master", ""))


class _Plans:
    """The plan of a frame, written once more with a border.

    Parameters
    ----------
    frame
        A DataFrame whose plan is in this process's virtual machine.
    """

    def __init__(self, frame: OfSpark) -> None:
        self._frame = frame
        self._machine = frame.sparkSession._jvm
        self._catalyst = self._machine.org.apache.spark.sql.catalyst.plans.logical
        every = frame.sparkSession.range(1).filter(_EVERY)
        self._every = every._jdf.queryExecution().analyzed().condition()

    def frame(self) -> OfSpark:
        """The frame of the new plan."""
        return self._of(self._with_border(self._plan(), []))

    def _of(self, plan: OfSpark) -> OfSpark:
        frame = self._frame._jdf
        dataset = self._machine
        for part in frame.getClass().getName().split("."):
            dataset = getattr(dataset, part)
        made = dataset.ofRows(frame.sparkSession(), plan)
        return type(self._frame)(made, self._frame.sparkSession)

    def _plan(self) -> OfSpark:
        """What the frame is made of. Where Spark has kept something of it, from there if the kept
        rows are all rows of their sources, and else from the sources: what was kept was computed
        without a border.
        """
        plan = self._frame._jdf.queryExecution().analyzed()
        if not plan.subqueriesAll().isEmpty():
            raise _refused(
                "the frame has a query inside an expression (IN, EXISTS or a value), which Spark "
                "may answer by statistics of files",
                "write it as a join, such as a LEFT SEMI JOIN for IN",
            )
        _require_own_rows(plan)
        _require_stated_folders(plan, guesses=_guesses(self._frame.sparkSession))
        kept = self._of(plan)._jdf.queryExecution().withCachedData()
        return kept if all(map(_holds_all_rows, _kept_in(kept))) else plan

    def _with_border(self, plan: OfSpark, conditions: list[OfSpark]) -> OfSpark:
        """The plan with a border above each leaf. Conditions from above that only read the folder
        of a file stay below: a folder's values are the same for any other rows, and without them
        each query would read all files.
        """
        below = _items(plan.children())
        if not below:
            return self._catalyst.Filter(self._every, self._in_folders(plan, conditions))
        name = _name(plan)
        passed = conditions if name in _ONE_BELOW else []
        if name == "Filter":
            passed = [*_parts(plan.condition()), *passed]  # in the order in which they are tried
        made = [self._with_border(one, passed) for one in below]
        sequence = self._machine.org.apache.spark.api.python.PythonUtils.toSeq(made)
        return plan.withNewChildren(sequence)

    def _in_folders(self, leaf: OfSpark, conditions: list[OfSpark]) -> OfSpark:
        folders = _folder_columns(leaf)
        for condition in conditions:
            columns = {_id(column) for column in _items(condition.references().toSeq())}
            if columns and columns <= folders and condition.deterministic():
                leaf = self._catalyst.Filter(condition, leaf)
        return leaf


def _name(plan: OfSpark) -> str:
    return str(plan.getClass().getSimpleName())


def _items(sequence: OfSpark) -> list[OfSpark]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _id(attribute: OfSpark) -> int:
    return int(attribute.exprId().id())


def _parts(condition: OfSpark) -> list[OfSpark]:
    """The conditions that hold where one holds."""
    if _name(condition) != "And":
        return [condition]
    return [*_parts(condition.left()), *_parts(condition.right())]


def _folder_columns(leaf: OfSpark) -> set[int]:
    """The columns of files that are read off the names of their folders."""
    if _name(leaf) != "LogicalRelation" or _name(leaf.relation()) != "HadoopFsRelation":
        return set()
    names = set(leaf.relation().partitionSchema().fieldNames())
    return {_id(column) for column in _items(leaf.output()) if column.name() in names}


def _guesses(session: OfSpark) -> bool:
    return str(session.conf.get(_GUESSES, "true")).lower() != "false"


def _require_stated_folders(plan: OfSpark, *, guesses: bool) -> None:
    """Refuse files with columns in the names of folders (``year=2026``) whose types were not
    stated when the frame was made: one row with a folder of its own could change them.
    """
    below = _items(plan.children())
    for part in below:
        _require_stated_folders(part, guesses=guesses)
    index = None if below else _index_of(plan)
    if index is None or (stated := _stated_in(index)) is None:
        return
    for field in _items(index.partitionSchema().toSeq()):
        is_text = field.dataType().simpleString() == "string"
        if field.name().casefold() not in stated and (guesses or not is_text):
            raise _guessed(f"Spark guessed the type of the column {field.name()!r}")


def _index_of(leaf: OfSpark) -> OfSpark:
    """What knows the folders of the files that a plan reads; None for anything else."""
    if _name(leaf) == "LogicalRelation" and _name(leaf.relation()) == "HadoopFsRelation":
        return leaf.relation().location()
    if _name(leaf) == "DataSourceV2Relation" and _class_above(leaf.table(), "FileTable"):
        return leaf.table().fileIndex()
    return None


def _stated_in(index: OfSpark) -> set[str] | None:
    """The columns whose types the owner stated; None where a catalog has all types."""
    lists = _class_above(index, _LISTS_FOLDERS)
    if lists is None:
        return None
    field = lists.getDeclaredField("userSpecifiedSchema")
    field.setAccessible(True)
    schema = field.get(index)
    if schema.isEmpty():
        return set()
    return {str(name).casefold() for name in schema.get().fieldNames()}


def _class_above(value: OfSpark, name: str) -> OfSpark:
    """The class of that name among those of a value of the virtual machine, if it is one."""
    kind = value.getClass()
    while kind is not None and kind.getSimpleName() != name:
        kind = kind.getSuperclass()
    return kind


def _require_no_folders(frame: OfSpark) -> None:
    """The same on Spark Connect, which does not show stated types: no folder at all."""
    if _guesses(frame.sparkSession) and any("=" in path for path in frame.inputFiles()):
        raise _guessed("on Spark Connect, Spark may have guessed the types of columns")


def _guessed(what: str) -> UnsupportedOperation:
    return _refused(
        f"{what} in the names of folders from all of these names, so one row may change it",
        (
            "state the types: spark.read.schema(...).parquet(folder)",
            f'make the frame after spark.conf.set("{_GUESSES}", "false")',
        ),
    )


def _kept_in(plan: OfSpark) -> Iterator[OfSpark]:
    """The plans of what Spark has cached of a plan."""
    if _name(plan) == "InMemoryRelation":
        yield plan.cacheBuilder().logicalPlan()
    for below in _items(plan.children()):
        yield from _kept_in(below)


def _holds_all_rows(plan: OfSpark) -> bool:
    below = _items(plan.children())
    return (not below or _name(plan) in _ALL_ROWS) and all(map(_holds_all_rows, below))


def _require_own_rows(plan: OfSpark) -> None:
    """Refuse rows of an RDD that is computed from another frame: its plan is not seen any more."""
    for below in _items(plan.children()):
        _require_own_rows(below)
    if _name(plan) not in ("LogicalRDD", "ExternalRDD"):
        return
    seen: set[int] = set()
    rest = [plan.rdd()]
    while rest:
        rdd = rest.pop()
        if rdd.id() in seen:
            continue
        seen.add(rdd.id())
        if _name(rdd) == "SQLExecutionRDD":
            raise _refused(
                "the frame was made of an RDD of another frame, so Spark may have filtered it by "
                "statistics of files",
                "protect a frame that was made without .rdd, by methods of DataFrames alone",
            )
        rest += [one.rdd() for one in _items(rdd.dependencies())]


def _require_all_rows(frame: OfSpark) -> None:
    """Refuse a frame whose plan, which is on a server, has a step after which rows are missing."""
    text: str = frame._explain_string(extended=True)
    _, _, rest = text.partition("== Analyzed Logical Plan ==\n")
    plan, end, _ = rest.partition("\n\n== Optimized Logical Plan ==")
    _, *lines = plan.split("\n")  # the first has the columns
    names = {re.sub(r"\W.*", "", line.lstrip(" :+-")) for line in lines}
    if end and lines and names <= _ALL_ROWS:
        return
    raise _refused(
        "on Spark Connect, rows of the frame were filtered, joined or grouped already, which the "
        "server may do by statistics of files",
        (
            "protect the stored table, and filter, join and group with dpframe",
            "make the frame in a session without Connect",
        ),
    )


def _refused(what: str, remedy: str | tuple[str, str]) -> UnsupportedOperation:
    return UnsupportedOperation(what, where="session.protect(frame, ...)", remedy=remedy)


_sql: OfSpark = import_module("pyspark.sql")
_functions: OfSpark = import_module("pyspark.sql.functions")
_types: OfSpark = import_module("pyspark.sql.types")

_TYPES: Mapping[str, pl.DataType] = {
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
_NATIVE: Mapping[str, OfSpark] = {
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
_ACCEPTED: WeakSet[OfSpark] = WeakSet()
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
    of: OfSpark = import_module("pyspark.logger").PySparkLogger
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

    def __init__(self, session: OfSpark) -> None:
        self._session = session

    @property
    def wide_type(self) -> nw.Decimal:
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

    def native_frame(self, frame: pl.DataFrame) -> OfSpark:
        fields = []
        for name, dtype in frame.schema.items():
            found = from_polars(dtype)
            fields.append(_types.StructField(name, _NATIVE[found.name]))
        return self._session.createDataFrame(frame.rows(), _types.StructType(fields))

    def positional(self, native: OfSpark, names: Sequence[str]) -> OfSpark:
        return native.toDF(*names)

    def with_hash(self, native: OfSpark, name: str, parts: Sequence[str], salt: int) -> OfSpark:
        signed = (salt + 2**63) % 2**64 - 2**63
        return native.withColumn(
            name, _functions.xxhash64(*map(_functions.col, parts), _functions.lit(signed))
        )

    def with_written(self, native: OfSpark, columns: Mapping[str, str]) -> OfSpark:
        return native.selectExpr("*", *(f"{sql} AS {name}" for name, sql in columns.items()))

    def with_position(
        self, native: OfSpark, name: str, within: Sequence[str], order: Sequence[str]
    ) -> OfSpark:
        window = _sql.Window.partitionBy(*within).orderBy(*order)
        place = _functions.row_number().over(window)
        # cast, or Spark sorts once more before the shuffle, to drop few: pairs are spread already
        return native.withColumn(name, place.cast("bigint"))

    def gathered(self, native: OfSpark, names: Sequence[str]) -> OfSpark:
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

    def __init__(self, frame: OfSpark) -> None:
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
    def schema_of(data: OfSpark) -> dict[str, pl.DataType]:
        """Names and Polars types of a DataFrame's columns."""
        fields = data.schema.fields
        return {field.name: _from_spark(field.dataType.simpleString()) for field in fields}

    def has_border(self) -> bool:
        with _withheld():
            return holds(self._session)

    def frame(self, data: OfSpark) -> EngineFrame:
        with _withheld():
            return self._ns.frame(border(data), self.schema_of(data))

    def empty(self, data: OfSpark, schema: pl.Schema) -> EngineFrame:
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


def _require_silence(session: OfSpark) -> None:
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


def _table(frame: EngineFrame) -> object:
    native = frame.native
    if hasattr(native, "toArrow"):
        return native.toArrow()
    columns = list(zip(*native.collect(), strict=True)) or [() for _ in frame.names]
    return pl.DataFrame(dict(zip(native.columns, columns, strict=True))).to_arrow()


def active_session() -> OfSpark:
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


def read(path: str | Path, kind: str, names: Sequence[str] = ()) -> OfSpark:
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


def _from_spark(written: str) -> pl.DataType:
    """The Polars type of a Spark type; one that no operation knows if none exists."""
    if written.startswith("decimal("):
        precision, scale = written.removeprefix("decimal(").removesuffix(")").split(",")
        return pl.Decimal(int(precision), int(scale))
    return _TYPES.get(written, pl.Object())
