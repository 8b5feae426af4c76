"""What a Polars plan reads from, and that no statistic of what is stored decides which rows it has.

Writers of Parquet leave NaN out of the minimum and maximum of a row group, cut long texts off,
and state orders without checking them. The footer, or the log of a table, may be stale or wrong.
A reader that skips rows by that makes the value of one row depend on others. Decision 23
(docs/decisions) describes each reader, why this border holds and what it costs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from glob import escape, glob
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.rows.failures import FAILURES, NOTHING_PUSHED
from dpframe.rows.layouts import unordered

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.dataset import Dataset, Fragment  # type: ignore[import-untyped]

# The datasets of pyarrow that can be read for any values.
#
# pyarrow reads the rows of a dataset while a query runs, which is after its charge. It stops at a
# line of text that does not fit the types of its columns, and at a value that does not fit the type
# of the whole dataset. It also stops at differences of 32-bit integers that DuckDB writes with more
# than 32 bits. One row decides each of these, so such datasets are refused before anything is
# charged. The checks look at formats, types, writers and versions, which no value of a row decides.

_OF_DATASETS: Final = "session.protect(dataset, ...)"
_TYPED: Final = {"parquet", "arrow", "orc"}
"""Formats whose files say the types of their columns, as pyarrow calls them."""
_WRAPS: Final = "parquet-cpp"
"""The writer whose differences of 32-bit integers have 32 bits: pyarrow itself."""


def require_readable(dataset: Dataset) -> None:
    """Refuse a dataset in which one row can stop pyarrow.

    Raises
    ------
    UnsupportedOperation
        With what to protect instead.
    EngineError
        Where its files cannot be read.
    """
    _require_stated_folders(dataset)
    try:
        reasons = {reason for part in dataset.get_fragments() for reason in _stops(part, dataset)}
        failed = ""
    except FAILURES as error:
        reasons, failed = set(), type(error).__name__
    if failed:
        raise EngineError(
            f"the files of the dataset cannot be read ({failed})",
            where=_OF_DATASETS,
            why="the message is withheld because it may quote private data",
            remedy="read the dataset without dpframe, which shows the message",
        )
    if reasons:
        what, remedy = min(reasons)
        raise UnsupportedOperation(
            f"{what}, so one row could make a query fail that is paid for",
            where=_OF_DATASETS,
            remedy=remedy,
        )


def without_filter(dataset: Dataset) -> tuple[Dataset, Any]:
    """A dataset without the filter that its owner gave it, and that filter: pyarrow skips rows by
    statistics where it reads, and decides for each row alone where that is in memory.

    Raises
    ------
    UnsupportedOperation
        If it is unknown whether there is one.
    """
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    stated = getattr(dataset, "_scan_options", None)
    if stated == {}:
        return dataset, None
    if isinstance(stated, dict) and stated.keys() == {"filter"}:
        rows = dataset.filter(pc.scalar(True))  # a copy, which has a dict of its own
        if isinstance(rows._scan_options, dict) and rows._scan_options is not stated:
            rows._scan_options.clear()
            return rows, stated["filter"]
    raise UnsupportedOperation(
        "this version of pyarrow does not show how the dataset is filtered",
        where=_OF_DATASETS,
        remedy="protect the dataset without a filter, and filter the private frame",
    )


def _require_stated_folders(dataset: Dataset) -> None:
    """Refuse a dataset of pyarrow that guesses types of columns from the names of its folders: only
    such a one has values of these columns at hand.

    Raises
    ------
    UnsupportedOperation
        Saying how to state them.
    """
    for part in getattr(dataset, "children", None) or ():
        if any(str(one.partition_expression) != "true" for one in part.get_fragments()):
            raise UnsupportedOperation(
                "a dataset made of others does not say whether pyarrow guessed the "
                "types of columns in the names of folders",
                where=_OF_DATASETS,
                remedy="protect a dataset of one folder, with "
                "partitioning=ds.partitioning(schema, ...)",
            )
    values = getattr(getattr(dataset, "partitioning", None), "dictionaries", None) or ()
    if any(value is not None for value in values):
        raise UnsupportedOperation(
            "pyarrow guesses the types of columns in the names of folders, so one row "
            "could change them",
            where=_OF_DATASETS,
            remedy='write ds.dataset(folder, partitioning=ds.partitioning(pa.schema([("year", '
            'pa.string())]), flavor="hive"))',
        )


def _stops(fragment: Fragment, dataset: Dataset) -> set[tuple[str, str]]:
    """Why a row of a part of a dataset can stop pyarrow, and what to protect instead."""
    kind = getattr(getattr(fragment, "format", None), "default_extname", None)
    if kind is not None and kind not in _TYPED:
        return {
            (
                f"pyarrow stops at a line of {kind} that does not fit the types of its columns",
                "protect the path, with the types of its columns: schema={column: dtype}",
            )
        }
    schema = fragment.physical_schema
    pairs = [(schema.field(n).type, dataset.schema.field(n).type) for n in _shared(schema, dataset)]
    if not all(_fits(stored, stated) for stored, stated in pairs):
        return {
            (
                "files of the dataset have columns of other types than the dataset, and pyarrow "
                "stops at values that do not fit",
                "protect a dataset of files of the same types, and cast columns on the private "
                "frame",
            )
        }
    if kind == "parquet" and _takes_differences(fragment.metadata):
        return {
            (
                "the Parquet files may have differences of 32-bit integers with more than 32 bits, "
                "which DuckDB writes with PARQUET_VERSION V2 and pyarrow does not read",
                "protect the path of the files: session.protect(path, ...)",
            )
        }
    return set()


def _shared(schema: pa.Schema, dataset: Dataset) -> list[str]:
    return [name for name in schema.names if name in dataset.schema.names]


def _fits(stored: pa.DataType, stated: pa.DataType) -> bool:
    """Whether all values of a type are values of another one."""
    import pyarrow.types as types  # type: ignore[import-untyped]

    if stored.equals(stated) or types.is_null(stored):
        return True
    if types.is_dictionary(stored) or types.is_dictionary(stated):
        values = (t.value_type if types.is_dictionary(t) else t for t in (stored, stated))
        return not types.is_dictionary(stated) and _fits(*values)
    texts = ("string", "large_string", "string_view")
    if str(stored) in texts:
        return str(stated) in texts
    signs = (types.is_signed_integer, types.is_unsigned_integer, types.is_floating)
    same = any(is_it(stored) and is_it(stated) for is_it in signs)
    return same and bool(stored.bit_width <= stated.bit_width)


def _takes_differences(footer: Any) -> bool:
    """Whether a column of 32-bit integers is, or with other values would be, stored as differences
    by a writer that may use more bits for them.

    DuckDB takes a dictionary in their place where values are few. In files of version 1 it calls
    that encoding by another name, so the name shows the version, for any values.
    """
    writer = footer.created_by or ""
    if writer.startswith(_WRAPS):
        return False
    refused = {"DELTA_BINARY_PACKED"} | (
        {"RLE_DICTIONARY"} if writer.startswith("DuckDB") else set()
    )
    narrow = [
        i for i in range(footer.num_columns) if footer.schema.column(i).physical_type == "INT32"
    ]
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    return any(refused & set(group.column(i).encodings) for group in groups for i in narrow)


_READS: Final = re.compile(r"^\s*(DF|\w+(?= SCAN)) ", re.MULTILINE)
"""What a plan says that it reads from."""
_STEP: Final = re.compile(r"^(?! )(?!\w+ SCAN |PROJECT|ESTIMATED)", re.MULTILINE)
"""What a plan that only scans files says nothing of."""
_MEMORY: Final = {"df"}
_FILES: Final = {"parquet", "ipc", "csv", "ndjson", "lines"}
"""Files that Polars itself reads."""
_BELIEVES, _DOUBTS = b"\xaeuse_statistics\xc3", b"\xaeuse_statistics\xc2"
"""A field of the scan of Parquet, true and false, in the MessagePack form of a plan."""
_FOLDERS: Final = re.compile(
    rb"\xa7enabled([\xc0\xc2\xc3])\xaehive_start_idx(?s:.){1,9}?"
    rb"\xa6schema(?:\xc0\xaftry_parse_dates|[\x81\x82]\xa6fields(.))",
    re.DOTALL,
)
"""The entry of a scan about columns in the names of folders, in that form: whether it reads them,
and how many types are stated, if any are.
"""
_DATASET: Final = re.compile(rb"python_?dataset", re.IGNORECASE)
"""A scan of Delta or Iceberg, in that form. Columns and constants may have that name too, so it
only chooses between two refusals.
"""
_READ, _NOT_READ = b"\xc3", b"\xc2"
_STRING: Final = b"\xa6String"
_OF_FOLDERS: Final = re.compile(r"[\\/][^\\/=]+=[^\\/]*[\\/]")
"""A folder such as ``year=2026`` within a path."""
_OF_FRAMES: Final = "session.protect(frame, ...)"
_TEXT: Final = (
    'protect the path of the folder with schema={"x": "Int64", "year": "Int64"}, which makes other '
    "folder names null",
    'scan it with hive_schema={"year": pl.String}, and cast the column of the private frame',
)
_MOST_FILES: Final = 1_000
"""The number of files whose footers are checked when a frame is protected."""


def kinds_of(frame: pl.LazyFrame) -> set[str]:
    """What a plan reads from, in lower case: ``"df"`` for frames in memory."""
    # explains a copy, because Polars 1.32 lets no other thread use a frame meanwhile
    told = frame.clone().explain(optimized=False)
    return {kind.lower() for kind in _READS.findall(told)}


def guarded(frame: pl.LazyFrame) -> tuple[pl.LazyFrame, bool]:
    """The frame, changed so that statistics cannot decide which rows it has, and whether its source
    may get filters.

    Frames in memory have no statistics. Polars' own scan of Parquet is set not to use them. All
    other sources, and all uncertain plans, get no filter: neither one of a query nor one that the
    owner wrote before.

    Raises
    ------
    UnsupportedOperation
        When another engine runs a query of the owner's in a source, or columns in the names of
        folders are not read as text. Also when files state an order of their rows, which earlier
        steps of the frame would have relied on.
    """
    try:
        kinds = kinds_of(frame)
    except FAILURES:  # perhaps for the name of a folder; refused in any case
        if not _mentions_a_table(frame):
            _require_text_as_written(frame, in_folders=False)
        raise
    _require_tables_alone(kinds)
    if kinds and kinds <= _MEMORY:
        return frame, True
    _require_readable_sources(frame, kinds)
    _require_text_of_folders(frame, kinds)
    frame = _with_a_column(_without_order(frame, kinds), kinds)
    if not kinds or not kinds <= _FILES:
        return frame, False
    if "parquet" not in kinds:
        return frame, True
    doubting = _without_statistics(frame)
    return (frame, False) if doubting is None else (doubting, True)


def _require_tables_alone(kinds: set[str]) -> None:
    """Refuse a scan of Delta or Iceberg together with files or other sources in one frame. Polars
    would wait for itself if it listed the files of such a plan, so their folders go unchecked.
    """
    if "pythondataset" in kinds and kinds - _MEMORY - {"pythondataset"}:
        raise UnsupportedOperation(
            "a table of Delta or Iceberg and files are scanned in one frame",
            where=_OF_FRAMES,
            why="how the files are read cannot be checked there",
            remedy="protect each separately, and use concat or join on the private frames",
        )


def _mentions_a_table(frame: pl.LazyFrame) -> bool:
    """Whether a plan that cannot be explained may scan Delta or Iceberg."""
    try:
        return _DATASET.search(frame.clone().serialize()) is not None
    except FAILURES:
        return False


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


# -- columns in the names of folders --------------------------------------------------------------


def _require_text_of_folders(frame: pl.LazyFrame, kinds: set[str]) -> None:
    """Refuse a scan that reads columns off the names of folders such as ``year=2026`` as anything
    but text. One row may have a folder of its own: a type that Polars guesses from all names would
    be another one, and a name that is no value of a stated type makes Polars fail.
    """
    if not kinds & {"parquet", "ipc"} or "pythondataset" in kinds:
        return
    try:
        for leaf in _leaves(frame):
            if getattr(leaf, "hive_parts", None) is not None:
                types = (leaf.file_options.hive_options or {}).get("schema")
                if types is None:
                    raise _guessed()
                if any(dtype != pl.String for dtype in types.values()):
                    raise _no_text()
    except NotImplementedError as error:  # Polars shows no scan of IPC, and 1.32 none of folders
        told = frame.clone().explain(optimized=False)
        in_folders = "hive" in str(error) or _OF_FOLDERS.search(told) is not None
        _require_text_as_written(frame, in_folders=in_folders)


def _require_text_as_written(frame: pl.LazyFrame, *, in_folders: bool) -> None:
    """The same by the form in which Polars writes plans, for which it looks at no folder.

    Parameters
    ----------
    in_folders
        Whether files are in such folders, which scans without stated types read by default.
    """
    try:
        written = frame.clone().serialize()
    except FAILURES:  # a function of Python that cannot be written
        if in_folders:
            raise _guessed() from None
        return
    for said in _FOLDERS.finditer(written):
        reads, number = said.groups()
        if reads == _NOT_READ:
            continue
        if number is None and (in_folders or reads == _READ):
            raise _guessed()
        if number is not None and not _are_strings(written, said.end(), number[0] - 0x80):
            raise _no_text()


def _are_strings(written: bytes, start: int, number: int) -> bool:
    """Whether this many pairs of a short name and a type, in the MessagePack form, are of
    text."""
    if number > 0xF:
        return False
    for _ in range(number):
        length = written[start] - 0xA0
        start += 1 + length
        if not 0 <= length < 0x20 or not written.startswith(_STRING, start):
            return False
        start += len(_STRING)
    return True


def _guessed() -> UnsupportedOperation:
    return UnsupportedOperation(
        "Polars guesses the types of columns in the names of folders from these names",
        where=_OF_FRAMES,
        why="one row could change them",
        remedy=_TEXT,
    )


def _no_text() -> UnsupportedOperation:
    return UnsupportedOperation(
        "columns in the names of folders have other types than String",
        where=_OF_FRAMES,
        why="a row in a folder whose name is not a value of that type makes Polars fail",
        remedy=_TEXT,
    )


# -- scans without a column -----------------------------------------------------------------------


def _with_a_column(frame: pl.LazyFrame, kinds: set[str]) -> pl.LazyFrame:
    """The frame, where a number of rows reads a column too. Polars 2.1 finds no rows in a Delta
    table that it reads through pyarrow if it needs no column. The condition holds for each row, and
    pyarrow does not know it, so no statistics decide it.
    """
    names = frame.collect_schema().names() if "pythondataset" in kinds else []
    return frame.filter(pl.col(names[0]).hash() >= 0) if names else frame


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
            "the Parquet files state that their rows are sorted, and the frame has steps that may "
            "have used it",
            where=_OF_FRAMES,
            why="Polars believes the statement without checking it",
            remedy=(
                "protect the path of the files, and write the steps on the private frame",
                "write the files without sorting_columns",
            ),
        )
    names = [n for n, dtype in frame.collect_schema().items() if dtype.is_integer()]
    return frame.with_columns(unordered(pl, pl.col(name)).alias(name) for name in names)


def _state_order(frame: pl.LazyFrame, kinds: set[str]) -> bool | None:
    """Whether footers of a frame's files state an order. None where they are not read: in a store,
    in a table of Delta or Iceberg, or because there are too many.
    """
    if "pythondataset" in kinds:  # Polars would wait for Python, and Python for Polars
        return None
    try:
        paths = [str(path) for leaf in _leaves(frame) for path in getattr(leaf, "paths", ())]
    except (NotImplementedError, *FAILURES):  # in a plan with a scan of IPC
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
    except FAILURES:  # not Parquet; the query that reads it raises the error
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
            "the frame is a query of DuckDB that Polars starts",
            where=_OF_FRAMES,
            why="DuckDB may decide by statistics of stored data which rows it has",
            remedy="protect the relation itself: session.protect(relation, ...)",
        )


def _require_whole_dataset(dataset: Dataset) -> None:
    """Refuse a scan of a dataset that its owner filtered: pyarrow skips rows by statistics there.
    And one that a row can stop.
    """
    rows, condition = without_filter(dataset)
    if condition is not None:
        raise UnsupportedOperation(
            "the frame scans a dataset of pyarrow with a filter",
            where=_OF_FRAMES,
            why="pyarrow decides by statistics of stored data which rows the filter keeps",
            remedy="protect the dataset itself: session.protect(dataset, ...)",
        )
    require_readable(rows)


def _functions_of(leaf: Any) -> Iterator[object]:
    """The function of a source, and the functions that it is known to call."""
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
    """Refuse a version of Polars that hands filters to a source despite its settings: tried once,
    on constants, before the first such source is used.

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
        made = pl.DataFrame({"a": [1, 2, 2], "b": [0.5, 2.0, None]}, schema=schema)
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
            f"Polars {pl.__version__} passes filters to what reads the rows, against its settings",
            where=_OF_FRAMES,
            why="statistics of stored data could decide which rows a frame has",
            remedy=("protect the path of Parquet files", "protect a frame in memory"),
        )
