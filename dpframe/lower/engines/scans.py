"""What a Polars plan reads from, and that no statistic of what is stored decides which rows it has.

Writers of Parquet leave NaN out of the minimum and maximum of a row group, cut long texts off, and
state orders that nobody checked; what stands in a footer or in the log of a table may be stale or
wrong. A reader that skips rows by that makes the value of one row depend on others. Decision 23
(docs/decisions) says what each reader does, why this border holds and what it costs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from glob import escape, glob
from io import BytesIO
from typing import Any, Final, Literal

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.datasets import require_readable, without_filter
from dpframe.rows.broadcast import unordered
from dpframe.rows.failures import FAILURES
from dpframe.rows.optimizations import NOTHING_PUSHED

__all__ = ["guarded", "kinds_of", "require_no_pushdown"]

_READS: Final = re.compile(r"^\s*(DF|\w+(?= SCAN)) ", re.MULTILINE)
"""What a plan says that it reads from."""
_STEP: Final = re.compile(r"^(?! )(?!\w+ SCAN |PROJECT|ESTIMATED)", re.MULTILINE)
"""What a plan that only scans files says nothing of."""
_MEMORY: Final = {"df"}
_FILES: Final = {"parquet", "ipc", "csv", "ndjson", "lines"}
"""Files that Polars itself reads."""
_BELIEVES, _DOUBTS = b"\xaeuse_statistics\xc3", b"\xaeuse_statistics\xc2"
"""A field of the scan of Parquet, true and false, in the MessagePack form of a plan."""
_NO_TYPES: Final = b"\xa6schema\xc0\xaftry_parse_dates"
"""Of a scan that states no types of columns in the names of folders, in that form."""
_WHERE: Final = "session.protect(frame, ...)"
_MOST_FILES: Final = 1_000
"""Of which the footers are looked at when a frame is protected."""


def kinds_of(frame: pl.LazyFrame) -> set[str]:
    """What a plan reads from, in lower case: ``"df"`` for frames in memory."""
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    told = frame.clone().explain(optimized=False)
    return {kind.lower() for kind in _READS.findall(told)}


def guarded(frame: pl.LazyFrame) -> tuple[pl.LazyFrame, bool]:
    """The frame without what could let statistics decide which rows it has, and whether filters may
    be handed to what it reads from.

    Frames in memory have no statistics. Polars' own scan of Parquet is told to use none. All other
    sources, and all plans of which it is not certain, are read with no filter handed to them,
    neither one of a query nor one that the owner wrote before.

    Raises
    ------
    UnsupportedOperation
        For a source in which another engine runs a query of the owner's, for files that state an
        order of their rows that earlier steps of the frame would have believed, and for columns in
        the names of folders whose types are guessed.
    """
    kinds = kinds_of(frame)
    if kinds and kinds <= _MEMORY:
        return frame, True
    _require_readable_sources(frame, kinds)
    _require_types_of_folders(frame, kinds)
    frame = _without_order(frame, kinds)
    if not kinds or not kinds <= _FILES:
        return frame, False
    if "parquet" not in kinds:
        return frame, True
    doubting = _without_statistics(frame)
    return (frame, False) if doubting is None else (doubting, True)


def _without_statistics(frame: pl.LazyFrame) -> pl.LazyFrame | None:
    """The same plan without statistics in the scans of Parquet; None where that is not certain."""
    try:
        if _uses_statistics(frame):
            written = frame.clone().serialize()
            frame = pl.LazyFrame.deserialize(BytesIO(written.replace(_BELIEVES, _DOUBTS)))
        return None if _uses_statistics(frame) else frame
    except FAILURES:  # a function of Python that cannot be written, a newer Polars
        return None


def _uses_statistics(frame: pl.LazyFrame) -> bool:
    """Whether a scan of Parquet uses statistics, or does not say that it uses none."""
    for node in _leaves(frame):
        if type(node).__name__ != "Scan":
            return True
        kind, options, *_ = node.scan_type
        if kind == "parquet" and '"use_statistics":false' not in options:
            return True
    return False


def _leaves(frame: pl.LazyFrame) -> Iterator[Any]:
    """The nodes of a plan that read something."""
    nodes: Any = frame.clone()._ldf.visit()
    waiting = [nodes.get_node()]
    while waiting:
        nodes.set_node(waiting.pop())
        inputs = nodes.get_inputs()
        waiting += inputs
        if not inputs:
            yield nodes.view_current_node()


def _require_types_of_folders(frame: pl.LazyFrame, kinds: set[str]) -> None:
    """Refuse a scan of folders such as ``year=2026`` that states no types for them: Polars guesses
    these from the names, so one row with a folder of its own could change the type of a column.
    """
    if "parquet" not in kinds or "pythondataset" in kinds:
        return
    try:
        guessed = any(
            getattr(leaf, "hive_parts", None) is not None
            and (leaf.file_options.hive_options or {}).get("schema") is None
            for leaf in _leaves(frame)
        )
    except NotImplementedError as error:  # Polars 1.32 shows no scan of folders
        guessed = "hive" in str(error) and _NO_TYPES in frame.clone().serialize()
    except FAILURES:
        return
    if guessed:
        raise UnsupportedOperation(
            "the types of columns in the names of folders are guessed from these names, so one row "
            "could change them",
            where=_WHERE,
            remedy="state them: pl.scan_parquet(folder, hive_schema={column: dtype}), or protect "
            "the folder's path with schema={column: dtype}",
        )


# -- orders that files state ----------------------------------------------------------------------


def _without_order(frame: pl.LazyFrame, kinds: set[str]) -> pl.LazyFrame:
    """The frame without the marks of sorted columns that Polars takes from footers of Parquet, for
    integers and without a look at the rows. Nothing is done for files that state no order.

    Raises
    ------
    UnsupportedOperation
        Where files state one and the frame has steps already, which have believed it.
    """
    if not kinds & {"parquet", "pythondataset"}:
        return frame
    states = _state_order(frame, kinds)
    if states is False:
        return frame
    told = frame.clone().explain(optimized=False)
    if states and _STEP.search(told.strip()):
        raise UnsupportedOperation(
            "the Parquet files state that their rows are in order, which Polars believes without "
            "looking, and the frame has steps that may have used it",
            where=_WHERE,
            remedy="protect the path of the files and write the steps on the private frame, or "
            "write the files without sorting_columns",
        )
    names = [n for n, dtype in frame.collect_schema().items() if dtype.is_integer()]
    return frame.with_columns(unordered(pl, pl.col(name)).alias(name) for name in names)


def _state_order(frame: pl.LazyFrame, kinds: set[str]) -> bool | None:
    """Whether footers of a frame's files state an order; None where they are not looked at: in a
    store, in a table of Delta or Iceberg, or because there are too many.
    """
    if "pythondataset" in kinds:  # Polars would wait for Python, and Python for Polars
        return None
    try:
        paths = [str(path) for leaf in _leaves(frame) for path in getattr(leaf, "paths", ())]
    except (NotImplementedError, *FAILURES):  # beside a scan of IPC
        return None
    files = [file for path in paths for file in _files_of(path)]
    if not files or len(files) > _MOST_FILES or any("://" in path for path in paths):
        return None
    return any(map(_states_order, files))


def _files_of(path: str) -> Sequence[str]:
    place = os.path.expanduser(path)
    if os.path.isdir(place):
        return glob(os.path.join(escape(place), "**", "*.parquet"), recursive=True)
    return [place] if os.path.isfile(place) else glob(place, recursive=True)


def _states_order(file: str) -> bool:
    try:
        status = os.stat(file)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    return _footer_states_order(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4 * _MOST_FILES)
def _footer_states_order(file: str, changed: int, size: int) -> bool:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        footer = pq.read_metadata(file)
    except FAILURES:  # no Parquet; whoever reads it says so
        return False
    groups = range(footer.num_row_groups)
    return any(footer.row_group(i).sorting_columns for i in groups)


# -- sources of Python ----------------------------------------------------------------------------


def _require_readable_sources(frame: pl.LazyFrame, kinds: set[str]) -> None:
    """Refuse a lazy frame behind which DuckDB runs a relation: what its optimiser makes of the
    owner's own conditions cannot be ruled out from here. Refuse datasets that a row can stop.
    """
    if "python" not in kinds or "pythondataset" in kinds:
        return
    try:
        functions = [f for leaf in _leaves(frame) for f in _functions_of(leaf)]
    except (NotImplementedError, *FAILURES):
        return
    for function in functions:
        for dataset in getattr(function, "args", ()):
            if _package_of(type(dataset)) == "pyarrow" and hasattr(dataset, "get_fragments"):
                _require_whole_dataset(dataset)
    if any(_package_of(function) in ("duckdb", "_duckdb") for function in functions):
        raise UnsupportedOperation(
            "the frame is a query of DuckDB that Polars starts, and DuckDB may decide by "
            "statistics of stored data which rows it has",
            where=_WHERE,
            remedy="protect the relation itself: session.protect(relation, ...)",
        )


def _require_whole_dataset(dataset: Any) -> None:
    """Refuse a scan of a dataset that its owner filtered: pyarrow skips rows by statistics there.
    And one that a row can stop.
    """
    rows, condition = without_filter(dataset)
    if condition is not None:
        raise UnsupportedOperation(
            "the frame scans a dataset of pyarrow with a filter, and pyarrow decides by statistics "
            "of stored data which rows that has",
            where=_WHERE,
            remedy="protect the dataset itself: session.protect(dataset, ...)",
        )
    require_readable(rows)


def _functions_of(leaf: Any) -> Iterator[object]:
    """The function of a source, and those that it calls as far as that is told."""
    if type(leaf).__name__ != "PythonScan":
        return
    function = leaf.options[0]
    yield function
    yield getattr(function, "io_source", None)
    for cell in getattr(function, "__closure__", None) or ():
        yield cell.cell_contents


def _package_of(function: object) -> str:
    return str(getattr(function, "__module__", "")).partition(".")[0]


@cache
def require_no_pushdown() -> None:
    """Refuse a version of Polars that hands filters to a source although it is told not to: tried
    once, on constants, before the first such source is used.

    Raises
    ------
    UnsupportedOperation
        Naming the version.
    """
    handed: list[bool] = []
    schema = pl.Schema({"a": pl.Int64, "b": pl.Float64})

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        handed.append(predicate is not None)
        made: Any = pl.DataFrame({"a": [1, 2, 2], "b": [0.5, 2.0, None]}, schema=schema)
        made = made if columns is None else made.select(columns)
        yield made if predicate is None else made.filter(predicate)

    source = register_io_source(read, schema=schema)
    b = pl.col("b")
    few = pl.LazyFrame({"a": [2]}, schema={"a": pl.Int64})
    queries = [
        source.filter(b > 1).select(pl.len()),
        source.filter(b > 1).filter(pl.col("a") == 2).group_by("a").len(),
        source.with_columns(c=b * 2).filter(pl.col("c") > 1).select("a"),
        source.join(few, on="a").filter(b > 1).select("a"),
        source.join(few, on="a", how="semi").select("b"),
        pl.concat([source, source.filter(b.is_null())]).unique(),
        source.sort("b").head(1),
        source.top_k(1, by="b"),
    ]
    modes: tuple[Literal["in-memory", "streaming"], ...] = ("in-memory", "streaming")
    for mode in modes:
        for query in queries:
            query.collect(engine=mode, optimizations=NOTHING_PUSHED)
    pl.collect_all(queries, optimizations=NOTHING_PUSHED)
    if any(handed) or len(handed) < len(queries):
        raise UnsupportedOperation(
            f"Polars {pl.__version__} hands filters to what reads the rows although it is told not "
            "to, so statistics of stored data could decide which rows a frame has",
            where=_WHERE,
            remedy="protect the path of Parquet files, or a frame in memory",
        )
