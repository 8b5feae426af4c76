"""The border between what Spark has stored and what is computed from it.

Spark pushes conditions into every data source. Readers of Parquet and ORC skip row groups by their
minimum and maximum, cached frames do so by batch, and databases and table formats do it too.
Statistics can omit values (NaN, truncated text) or be stale, and then other rows decide whether a
row is read. So directly above each source stands a filter that every row passes, with a condition
that Spark considers non-deterministic. Spark moves no condition across such a filter, so no source
gets one, neither from dpframe nor from the owner of the frame. No setting is read or changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.spark_cluster import is_local

__all__ = ["border", "holds"]

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


def border(frame: Any) -> Any:
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


def is_connect(of_spark: Any) -> bool:
    """Whether a frame or session is one of Spark Connect, whose plans are on a server."""
    return type(of_spark).__module__.startswith("pyspark.sql.connect")


def holds(session: Any) -> bool:
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


def _reads_files_here(session: Any) -> bool:
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

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._machine = frame.sparkSession._jvm
        self._catalyst = self._machine.org.apache.spark.sql.catalyst.plans.logical
        every = frame.sparkSession.range(1).filter(_EVERY)
        self._every = every._jdf.queryExecution().analyzed().condition()

    def frame(self) -> Any:
        """The frame of the new plan."""
        return self._of(self._with_border(self._plan(), []))

    def _of(self, plan: Any) -> Any:
        frame = self._frame._jdf
        dataset = self._machine
        for part in frame.getClass().getName().split("."):
            dataset = getattr(dataset, part)
        made = dataset.ofRows(frame.sparkSession(), plan)
        return type(self._frame)(made, self._frame.sparkSession)

    def _plan(self) -> Any:
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

    def _with_border(self, plan: Any, conditions: list[Any]) -> Any:
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

    def _in_folders(self, leaf: Any, conditions: list[Any]) -> Any:
        folders = _folder_columns(leaf)
        for condition in conditions:
            columns = {_id(column) for column in _items(condition.references().toSeq())}
            if columns and columns <= folders and condition.deterministic():
                leaf = self._catalyst.Filter(condition, leaf)
        return leaf


def _name(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _parts(condition: Any) -> list[Any]:
    """The conditions that hold where one holds."""
    if _name(condition) != "And":
        return [condition]
    return [*_parts(condition.left()), *_parts(condition.right())]


def _folder_columns(leaf: Any) -> set[int]:
    """The columns of files that are read off the names of their folders."""
    if _name(leaf) != "LogicalRelation" or _name(leaf.relation()) != "HadoopFsRelation":
        return set()
    names = set(leaf.relation().partitionSchema().fieldNames())
    return {_id(column) for column in _items(leaf.output()) if column.name() in names}


def _guesses(session: Any) -> bool:
    return str(session.conf.get(_GUESSES, "true")).lower() != "false"


def _require_stated_folders(plan: Any, *, guesses: bool) -> None:
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


def _index_of(leaf: Any) -> Any:
    """What knows the folders of the files that a plan reads; None for anything else."""
    if _name(leaf) == "LogicalRelation" and _name(leaf.relation()) == "HadoopFsRelation":
        return leaf.relation().location()
    if _name(leaf) == "DataSourceV2Relation" and _class_above(leaf.table(), "FileTable"):
        return leaf.table().fileIndex()
    return None


def _stated_in(index: Any) -> set[str] | None:
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


def _class_above(value: Any, name: str) -> Any:
    """The class of that name among those of a value of the virtual machine, if it is one."""
    kind = value.getClass()
    while kind is not None and kind.getSimpleName() != name:
        kind = kind.getSuperclass()
    return kind


def _require_no_folders(frame: Any) -> None:
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


def _kept_in(plan: Any) -> Iterator[Any]:
    """The plans of what Spark has cached of a plan."""
    if _name(plan) == "InMemoryRelation":
        yield plan.cacheBuilder().logicalPlan()
    for below in _items(plan.children()):
        yield from _kept_in(below)


def _holds_all_rows(plan: Any) -> bool:
    below = _items(plan.children())
    return (not below or _name(plan) in _ALL_ROWS) and all(map(_holds_all_rows, below))


def _require_own_rows(plan: Any) -> None:
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


def _require_all_rows(frame: Any) -> None:
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
