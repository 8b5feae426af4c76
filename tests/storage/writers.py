"""Writers of stored rows, by name: with statistics, without, with some that are stale or wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq

from tests.storage import footers
from tests.storage.rows import SCHEMA


@dataclass(frozen=True)
class Stored:
    """Rows that a writer has stored.

    Parameters
    ----------
    form
        ``"parquet"``, ``"hive"``, ``"delta"``, ``"iceberg"``, ``"ipc"``, ``"orc"`` or ``"csv"``.
    path
        A file, a pattern of files, or a folder.
    columns
        The columns of `SCHEMA` that it holds.
    hive
        Those of them that are in the names of folders.
    table
        What the writer itself has of it: the table of pyiceberg.
    """

    form: str
    path: str
    columns: tuple[str, ...] = tuple(SCHEMA)
    hive: tuple[str, ...] = ()
    table: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Writer:
    """A way to store rows.

    Parameters
    ----------
    write
        Stores a frame in a folder that is empty.
    """

    name: str
    write: Callable[[Path, pl.DataFrame, random.Random], Stored] = field(compare=False)


def _rows_of_group(frame: pl.DataFrame, rng: random.Random) -> int:
    return rng.choice([1, 2, 5, max(frame.height, 1)])


def _polars(**options: Any) -> Callable[..., Stored]:
    def write(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        path = folder / "rows.parquet"
        frame.write_parquet(path, row_group_size=_rows_of_group(frame, rng), **options)
        return Stored("parquet", str(path))

    return write


def _pyarrow(
    change: Callable[[footers.Fields], None] | None = None, **options: Any
) -> Callable[..., Stored]:
    def write(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        path = folder / "rows.parquet"
        pq.write_table(frame.to_arrow(), path, row_group_size=_rows_of_group(frame, rng), **options)
        if change is not None:
            footers.edit(path, change)
        return Stored("parquet", str(path))

    return write


def _stale(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    """With the statistics of the first half of the rows."""
    path, earlier = folder / "rows.parquet", folder / "earlier"
    pq.write_table(frame[: frame.height // 2 or 1].to_arrow(), earlier)
    pq.write_table(frame.to_arrow(), path, row_group_size=_rows_of_group(frame, rng))
    footers.edit(path, lambda footer: footers.copy_statistics(footer, earlier))
    earlier.unlink()
    return Stored("parquet", str(path))


def _pandas(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    path = folder / "rows.parquet"
    kept = frame.to_arrow().to_pandas(types_mapper=_pandas_type)
    kept.to_parquet(path, row_group_size=_rows_of_group(frame, rng), index=False)
    return Stored("parquet", str(path))


def _pandas_type(kind: Any) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)


def _duckdb(options: str = "") -> Callable[..., Stored]:
    def write(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        path = folder / "rows.parquet"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("stored", frame.to_arrow())
            connection.execute(f"COPY (FROM stored) TO '{path}' (FORMAT parquet{options})")
        return Stored("parquet", str(path))

    return write


def _files(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    """In several files, some of one row, by writers of two kinds."""
    start = number = 0
    while start < frame.height or not number:
        part = frame[start : start + rng.choice([1, 2, 7, 30])]
        path = folder / f"{number:03}.parquet"
        if rng.random() < 0.5:
            pq.write_table(part.to_arrow(), path)
        else:
            part.write_parquet(path, statistics="full")
        start, number = start + part.height, number + 1
    return Stored("parquet", str(folder / "*.parquet"))


def _hive(by: Sequence[str], write: Callable[[pl.DataFrame, Path], None]) -> Callable[..., Stored]:
    def made(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        for values, part in frame.partition_by(list(by), as_dict=True).items():
            names = [f"{n}={_folder_name(v)}" for n, v in zip(by, values, strict=True)]
            place = folder.joinpath(*names)
            place.mkdir(parents=True)
            write(part.drop(by), place / "part.parquet")
        columns = [name for name in SCHEMA if name not in by]
        return Stored("hive", str(folder), (*columns, *by), tuple(by))

    return made


def _folder_name(value: object) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe="")


def _by_pyarrow(part: pl.DataFrame, path: Path) -> None:
    pq.write_table(part.to_arrow(), path)


def _dataset(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    """As pyarrow divides rows into folders itself."""
    table = frame.to_arrow()
    ds.write_dataset(
        table, folder, format="parquet", partitioning=["g"], partitioning_flavor="hive"
    )
    return Stored("hive", str(folder), tuple(SCHEMA), ("g",))


def _delta(**options: Any) -> Callable[..., Stored]:
    def write(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        half = rng.randint(0, frame.height)
        for part in (frame[:half], frame[half:]):
            if part.height or not half:
                part.write_delta(str(folder), mode="append", delta_write_options=options)
        return Stored("delta", str(folder), hive=tuple(options.get("partition_by", ())))

    return write


def _wrong_delta(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    """With statistics in the log by which all numbers are small, all texts are early."""
    stored = _delta()(folder, frame, rng)
    for log in (folder / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "add" in line and line["add"].get("stats"):
                stats = json.loads(line["add"]["stats"])
                for name in ("minValues", "maxValues"):
                    stats[name] = {
                        column: _small(value) for column, value in stats.get(name, {}).items()
                    }
                stats["nullCount"] = dict.fromkeys(stats.get("nullCount", {}), 0)
                line["add"]["stats"] = json.dumps(stats)
        log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return stored


def _small(value: object) -> object:
    match value:
        case bool():
            return False
        case int() | float():
            return type(value)(-1000)
        case str() if value[:1].isdigit() and "-" in value:
            return value.replace(value[:4], "1800", 1)
        case str():
            return ""
    return value


def _iceberg(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    from pyiceberg.catalog.sql import SqlCatalog

    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("laws", **place)
    catalog.create_namespace("laws")
    rows = frame.to_arrow()
    table = catalog.create_table("laws.rows", rows.schema)
    half = rng.randint(0, frame.height)
    for part in (rows[:half], rows[half:]):
        if part.num_rows:
            table.append(part)
    return Stored("iceberg", table.metadata_location, table=table)


def _ipc(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    path = folder / "rows.arrow"
    if "record_batch_size" in signature(pl.DataFrame.write_ipc).parameters:
        frame.write_ipc(path, record_batch_size=_rows_of_group(frame, rng))
    else:  # Polars 1.32
        frame.write_ipc(path)
    return Stored("ipc", str(path))


def _marked_ipc(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    """Sorted, and the file says so."""
    path = folder / "rows.arrow"
    frame.sort("x", nulls_last=rng.random() < 0.5).write_ipc(path)
    return Stored("ipc", str(path))


def _feather(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    path = folder / "rows.feather"
    feather.write_feather(frame.to_arrow(), str(path), chunksize=_rows_of_group(frame, rng))
    return Stored("ipc", str(path))


def _orc(**options: Any) -> Callable[..., Stored]:
    def write(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
        names = tuple(name for name in SCHEMA if name not in ("t", "tz"))
        path = folder / "rows.orc"
        orc.write_table(frame.select(names).to_arrow(), path, **options)
        return Stored("orc", str(path), names)

    return write


def _csv(folder: Path, frame: pl.DataFrame, rng: random.Random) -> Stored:
    names = ("u", "i", "k", "x", "y", "z", "d", "dec")
    path = folder / "rows.csv"
    frame.select(names).write_csv(path)
    return Stored("csv", str(path), names)


WRITERS: Mapping[str, Writer] = {
    name: Writer(name, write)
    for name, write in {
        "Polars": _polars(),
        "Polars, all statistics": _polars(statistics="full"),
        "Polars, no statistics": _polars(statistics=False),
        "Polars, small pages": _polars(data_page_size=1, compression="uncompressed"),
        "pyarrow": _pyarrow(),
        "pyarrow, no statistics": _pyarrow(write_statistics=False),
        "pyarrow, no dictionaries": _pyarrow(use_dictionary=False),
        "pyarrow, page index": _pyarrow(
            write_page_index=True, data_page_size=1, write_batch_size=1, data_page_version="2.0"
        ),
        "pyarrow, bloom filters": _pyarrow(
            bloom_filter_options={name: {"ndv": 50} for name in ("i", "x", "s", "g")}
        ),
        "pyarrow, too large statistics": _pyarrow(
            lambda footer: footers.state_extremes(footer, low=False, high=True)
        ),
        "pyarrow, too small statistics": _pyarrow(
            lambda footer: footers.state_extremes(footer, low=True, high=False)
        ),
        "pyarrow, too wide statistics": _pyarrow(
            lambda footer: footers.state_extremes(footer, low=True, high=True)
        ),
        "pyarrow, nulls stated": _pyarrow(footers.state_nulls),
        "pyarrow, order stated": _pyarrow(
            lambda footer: footers.state_order(footer, 3, descending=False)
        ),
        "pyarrow, stale statistics": _stale,
        "pandas": _pandas,
        "DuckDB": _duckdb(),
        "DuckDB, small dictionaries": _duckdb(", DICTIONARY_SIZE_LIMIT 1"),
        "files": _files,
        "hive by text": _hive(["g"], _by_pyarrow),
        "hive by a number": _hive(["k"], _by_pyarrow),
        "hive by both": _hive(["g", "k"], lambda part, path: part.write_parquet(path)),
        "hive of pyarrow": _dataset,
        "Delta": _delta(),
        "Delta, partitions": _delta(partition_by=["g"]),
        "Delta, wrong statistics": _wrong_delta,
        "Iceberg": _iceberg,
        "IPC": _ipc,
        "IPC, sorted": _marked_ipc,
        "feather": _feather,
        "ORC": _orc(),
        "ORC, bloom filters": _orc(bloom_filter_columns=[0, 1, 3], row_index_stride=10_000),
        "CSV": _csv,
    }.items()
}


COSTLY = frozenset({"Iceberg"})
"""Writers that take seconds, of which a quick run tries one trial."""
_NEEDS = {"pandas": "pandas", "Iceberg": "pyiceberg"} | {
    name: "deltalake" for name in WRITERS if name.startswith("Delta")
}


def installed() -> list[Writer]:
    """The writers whose packages are installed."""
    return [w for name, w in WRITERS.items() if find_spec(_NEEDS.get(name, "polars")) is not None]
