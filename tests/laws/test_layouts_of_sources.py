"""The same rows, from all that can be protected: files, Arrow's encodings, frames in pieces."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe.rows.fold import lower
from tests.api.exactly import ENOUGH, protected
from tests.laws.checking import tree_of
from tests.laws.frames import wide_columns
from tests.laws.layouts import stored

ENGINES = ["in-memory", "streaming"]


def rows() -> pl.DataFrame:
    """Everyday numbers, of which some columns hold one value in most rows."""
    rng = random.Random(3)
    number = 60
    return pl.DataFrame(
        {
            "k": [0] * 30 + [1] * 20 + [2] * 10,
            "g": ["a"] * 45 + ["b", "c", None] * 5,
            "x": [rng.choice([49.0, 7.0, 0.1, 98.0, 3.3, None]) for _ in range(number)],
            "y": [0.0] * 50 + [1.5] * 10,
            "z": [0.0] * number,
            "n": [rng.choice([0, 1, 49, 7, 10]) for _ in range(number)],
            "m": [10] * 59 + [None],
        },
        schema={
            "k": pl.Int64, "g": pl.String, "x": pl.Float64, "y": pl.Float64, "z": pl.Float64,
            "n": pl.Int64, "m": pl.Int64,
        },
    )  # fmt: skip


ROWS = rows()


def _partitioned(at: Path, frame: pl.DataFrame) -> Any:
    for (value,), part in frame.partition_by("k", as_dict=True).items():
        folder = at / f"k={value}"
        folder.mkdir()
        part.drop("k").write_parquet(folder / "part.parquet")
    files = pl.scan_parquet(at, hive_partitioning=True, hive_schema={"k": pl.String})
    return files.with_columns(pl.col("k").cast(pl.Int64, strict=False))


def _file(**options: Any) -> Callable[[Path, pl.DataFrame], Any]:
    def write(at: Path, frame: pl.DataFrame) -> Any:
        pq.write_table(frame.to_arrow(), at / "rows.parquet", **options)
        return at / "rows.parquet"

    return write


def _files(at: Path, frame: pl.DataFrame) -> Any:
    """A row each, in which every column is constant and statistics say so."""
    for i in range(frame.height):
        frame[i].write_parquet(at / f"{i:03}.parquet", statistics="full")
    return str(at / "*.parquet")


def _encoded(at: Path, frame: pl.DataFrame) -> Any:
    """Numbers coded by dictionaries, in batches that have dictionaries of their own."""
    batches = []
    for part in (frame[:7], frame[7:8], frame[8:]):
        table = part.with_columns(pl.col("g").cast(pl.String)).to_arrow()
        kinds = [(name, _small(table.schema.field(name).type)) for name in table.column_names]
        table = table.cast(pa.schema(kinds))
        columns = {
            name: column.combine_chunks().dictionary_encode() if name in ("x", "n") else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        batches.append(pa.table(columns))
    return pa.concat_tables(batches, promote_options="permissive")


def _small(kind: Any) -> Any:
    return pa.string() if pa.types.is_large_string(kind) else kind


def _runs(at: Path, frame: pl.DataFrame) -> Any:
    """Runs of equal values, in two batches."""
    table = frame.with_columns(pl.col("g").cast(pl.String)).to_arrow()
    runs = [
        pa.chunked_array(
            [
                pc.run_end_encode(piece[:7].combine_chunks()),
                pc.run_end_encode(piece[7:].combine_chunks()),
            ]
        )
        for piece in table.drop_columns(["g"]).columns
    ]
    names = [name for name in table.column_names if name != "g"]
    return pa.table({**dict(zip(names, runs, strict=True)), "g": table["g"]}).select(frame.columns)


def _run_batches(at: Path, frame: pl.DataFrame) -> Any:
    table = _runs(at, frame)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=9))


def _dataset(at: Path, frame: pl.DataFrame) -> Any:
    table = frame.to_arrow()
    ds.write_dataset(table, at, format="parquet", partitioning=["k"], partitioning_flavor="hive")
    schema = pa.schema([("k", pa.int64())])
    return ds.dataset(at, format="parquet", partitioning=ds.partitioning(schema, flavor="hive"))


def _batches(at: Path, frame: pl.DataFrame) -> Any:
    table = frame.to_arrow()
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))


def _lazy_pieces(at: Path, frame: pl.DataFrame) -> Any:
    """Pieces of which most say what is constant in them."""
    pieces = []
    for (y,), part in frame.partition_by("y", as_dict=True, maintain_order=True).items():
        known = [pl.lit(y, dtype=pl.Float64).alias("y"), pl.lit(0.0).alias("z")]
        pieces.append(part.drop("y", "z").lazy().with_columns(known).select(frame.columns))
    return pl.concat(pieces)


def _eager_pieces(at: Path, frame: pl.DataFrame) -> Any:
    return pl.concat([frame[i] for i in range(frame.height)], rechunk=False)


def _selected(at: Path, frame: pl.DataFrame) -> Any:
    return frame.lazy().filter(pl.col("k") >= 0).with_row_index("row").sort("row").drop("row")


SOURCES: dict[str, Callable[[Path, pl.DataFrame], Any]] = {
    "hive partitions": _partitioned,
    "a file with dictionaries": _file(use_dictionary=True, row_group_size=7),
    "a file without": _file(use_dictionary=False, write_statistics=False),
    "groups of one row": _file(use_dictionary=True, row_group_size=1),
    "a file for each row": _files,
    "dictionaries in batches": _encoded,
    "runs": _runs,
    "batches of runs": _run_batches,
    "a dataset": _dataset,
    "batches of one row": _batches,
    "lazy pieces": _lazy_pieces,
    "pieces of one row": _eager_pieces,
    "a query": _selected,
    **{f"stored {seed}": lambda at, f, seed=seed: stored(f, seed) for seed in range(4)},  # type: ignore[misc]
}
EXPRESSIONS = [
    "(pl.col('z') + pl.col('x')) / 49.0",
    "(pl.col('z') + pl.col('y') + pl.col('x')) / 49.0",
    "(pl.col('k') + pl.col('n')) / 49",
    "(pl.col('x') + pl.col('k')) // 49.0",
    "(pl.col('y') + pl.col('x')) % 49.0",
    "pl.mean_horizontal('y', 'x', 'k', ignore_nulls=False)",
    "pl.mean_horizontal('y', 'x', 'm')",
    "(pl.col('n') + pl.col('m')).log(3)",
    "pl.col('x') / pl.col('m')",
    "pl.col('x') ** pl.col('k')",
    "(pl.col('k') == 1).cast(pl.Float64) * 49 / 49",
    "pl.when(pl.col('g') == 'a').then(pl.col('x')).otherwise('y') / (pl.col('m') * 4.9)",
    "pl.col('g').fill_null('-').str.len_bytes() * 49.0 / 49.0",
]


def summary(people: dp.PrivateFrame, engine: Any, most: int) -> list[Any]:
    """For each expression, in how many rows it has the value that a row has alone, for so many of
    the values; and its sums by group.
    """
    found: list[Any] = []
    for text, values in ALONE.items():
        made = people.with_columns(made=eval(text, {"pl": pl}))
        counted = [
            made.filter(pl.col("made").eq_missing(pl.lit(value))).dp_count()
            for value in list(dict.fromkeys(values))[:most]
        ]
        grouped = people.group_by("g", "k", keys={"g": ["a", "b", "c", None], "k": [0, 1, 2]})
        total = grouped.agg(s=eval(text, {"pl": pl}).dp_sum((-9, 9)), n=dp.count())
        for query in [*counted, total]:
            result = people.session.collect(query, epsilon=ENOUGH, engine=engine)
            found.append([list(row) for row in result.rows()])
    return found


def alone(text: str) -> list[Any]:
    """What an expression gives for each row."""
    made = lower(tree_of(text, ROWS.schema), wide_columns(ROWS)).alias("made")
    return [ROWS[i].select(made)["made"].item() for i in range(ROWS.height)]


ALONE = {text: alone(text) for text in EXPRESSIONS}


def plain(most: int) -> list[Any]:
    """The summary of plain rows in memory, whose counts are those of the rows alone."""
    found = summary(protected(ROWS), "in-memory", most)
    listed = {text: list(dict.fromkeys(values))[:most] for text, values in ALONE.items()}
    counts = [[[ALONE[text].count(v)]] for text, values in listed.items() for v in values]
    assert [f for f in found if len(f) == 1] == counts
    return found


@pytest.fixture(scope="module")
def some() -> list[Any]:
    return plain(2)


@pytest.fixture(scope="module")
def all_of_them() -> list[Any]:
    return plain(100)


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_rows_from_any_source(source: str, some: list[Any], tmp_path: Path) -> None:
    people = protected(SOURCES[source](tmp_path, ROWS))
    engine = ENGINES[list(SOURCES).index(source) % 2]
    assert summary(people, engine, 2) == some


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("source", SOURCES)
def test_all_values_from_any_source(
    source: str, engine: str, all_of_them: list[Any], tmp_path: Path
) -> None:
    people = protected(SOURCES[source](tmp_path, ROWS))
    assert summary(people, engine, 100) == all_of_them
