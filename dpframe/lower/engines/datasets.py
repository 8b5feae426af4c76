"""The datasets of pyarrow that can be read for any values.

pyarrow reads the rows of a dataset while a query runs, which is after its charge. It stops at a
line of text that does not fit the types of its columns, and at a value that does not fit the type
of the whole dataset. It also stops at differences of 32-bit integers that DuckDB writes with more
than 32 bits. One row decides each of these, so such datasets are refused before anything is
charged. The checks look at formats, types, writers and versions, which no value of a row decides.
"""

from __future__ import annotations

from typing import Any, Final

from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.rows.failures import FAILURES

__all__ = ["require_readable", "without_filter"]

_WHERE: Final = "session.protect(dataset, ...)"
_TYPED: Final = {"parquet", "arrow", "orc"}
"""Formats whose files say the types of their columns, as pyarrow calls them."""
_WRAPS: Final = "parquet-cpp"
"""The writer whose differences of 32-bit integers have 32 bits: pyarrow itself."""


def require_readable(dataset: Any) -> None:
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
            where=_WHERE,
            why="the message is withheld because it may quote private data",
            remedy="read the dataset without dpframe, which shows the message",
        )
    if reasons:
        what, remedy = min(reasons)
        raise UnsupportedOperation(
            f"{what}, so one row could make a query fail that is paid for",
            where=_WHERE,
            remedy=remedy,
        )


def without_filter(dataset: Any) -> tuple[Any, Any]:
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
        where=_WHERE,
        remedy="protect the dataset without a filter, and filter the private frame",
    )


def _require_stated_folders(dataset: Any) -> None:
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
                where=_WHERE,
                remedy="protect a dataset of one folder, with "
                "partitioning=ds.partitioning(schema, ...)",
            )
    values = getattr(getattr(dataset, "partitioning", None), "dictionaries", None) or ()
    if any(value is not None for value in values):
        raise UnsupportedOperation(
            "pyarrow guesses the types of columns in the names of folders, so one row "
            "could change them",
            where=_WHERE,
            remedy='write ds.dataset(folder, partitioning=ds.partitioning(pa.schema([("year", '
            'pa.string())]), flavor="hive"))',
        )


def _stops(fragment: Any, dataset: Any) -> set[tuple[str, str]]:
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


def _shared(schema: Any, dataset: Any) -> list[str]:
    return [name for name in schema.names if name in dataset.schema.names]


def _fits(stored: Any, stated: Any) -> bool:
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
