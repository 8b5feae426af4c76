"""The law of storage on Spark.

A query of dpframe takes Spark a second, of which conditions are a small part, so most cases are
conditions by themselves: the number of rows that pass one behind the border, many in one job.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.engines.running import one_hash
from tests.engines.spark import session
from tests.storage.law import VIEWS, check
from tests.storage.rows import add_row, draw_frame
from tests.storage.spark_readers import readers
from tests.storage.writers import WRITERS

__all__ = ["one_hash", "session"]

pytestmark = pytest.mark.spark

_LONG = "a" * 70
CONDITIONS: dict[str, tuple[str, pl.Expr]] = {
    "x > 5": ("x", pl.col("x") > 5),
    "x < 5": ("x", pl.col("x") < 5),
    "x >= 1": ("x", pl.col("x") >= 1),
    "x = 1": ("x", pl.col("x") == 1),
    "x <> 1": ("x", pl.col("x") != 1),
    "NOT (x <= 5)": ("x", ~(pl.col("x") <= 5)),
    "isnan(x)": ("x", pl.col("x").is_nan()),
    "x IS NULL": ("x", pl.col("x").is_null()),
    "x IS NOT NULL": ("x", pl.col("x").is_not_null()),
    "x IN (1.0D, 10.0D)": ("x", pl.col("x").is_in([1.0, 10.0])),
    "x = double('infinity')": ("x", pl.col("x") == float("inf")),
    "x > y": ("x y", pl.col("x") > pl.col("y")),
    "x > 5 OR i = 7": ("x i", (pl.col("x") > 5) | (pl.col("i") == 7)),
    "x > 0 AND b": ("x b", (pl.col("x") > 0) & pl.col("b")),
    "y = 0": ("y", pl.col("y") == 0),
    "z > 0.5F": ("z", pl.col("z") > 0.5),
    "z <> 1": ("z", pl.col("z") != 1),
    "i > 5": ("i", pl.col("i") > 5),
    "i = 7": ("i", pl.col("i") == 7),
    "i IS NULL": ("i", pl.col("i").is_null()),
    "k < 1": ("k", pl.col("k") < 1),
    "NOT b": ("b", ~pl.col("b")),
    f"s > '{_LONG}a'": ("s", pl.col("s") > _LONG + "a"),
    f"s LIKE '{_LONG}%'": ("s", pl.col("s").str.starts_with(_LONG)),
    "s <> 'a'": ("s", pl.col("s") != "a"),
    "g = '7'": ("g", pl.col("g") == "7"),
    "d > DATE '1970-01-01'": ("d", pl.col("d") > date(1970, 1, 1)),
    "t < TIMESTAMP_NTZ '1970-01-01 00:00:00'": ("t", pl.col("t") < datetime(1970, 1, 1)),
    "dec > 1": ("dec", pl.col("dec") > 1),
}


@pytest.fixture
def empty_cache(session: Any) -> Iterator[None]:
    yield
    session.catalog.clearCache()


def _compare(
    session: Any, folder: Path, trials: int, border: Callable[[Any], Any] | None = None
) -> tuple[int, int]:
    """How many numbers of rows were compared with those of Polars, and how many differ."""
    from dpframe.lower.engines import spark_engine

    border = border or spark_engine.border
    ways = readers(session)
    rng = random.Random(0)
    cases = wrong = 0
    for number in range(trials):
        reader = ways[number % len(ways)]
        fitting = [w for name, w in WRITERS.items() if _form(name) in reader.forms]
        writer = fitting[number % len(fitting)]
        view = rng.choice(reader.views)
        frame = draw_frame(rng)
        counted: list[Any] = []
        expected: list[int] = []
        for side, rows in enumerate((frame, add_row(frame, rng))):
            place = folder / f"{number}-{side}"
            place.mkdir()
            stored = writer.write(place, rows, rng)
            data, _ = reader.read(stored, VIEWS[view])
            data = border(data)
            plain = VIEWS[view].polars(rows.lazy()).collect()
            for sql, (names, condition) in CONDITIONS.items():
                if set(names.split()) <= set(stored.columns) and rng.random() < 0.5:
                    counted.append(data.filter(sql).selectExpr(f"{len(expected)} AS i"))
                    expected.append(plain.filter(condition).height)
        together = reduce(lambda one, other: one.union(other), counted).groupBy("i").count()
        numbers = {row.i: row["count"] for row in together.collect()}
        wrong += sum(numbers.get(i, 0) != number for i, number in enumerate(expected))
        cases += len(expected)
    return cases, wrong


def _form(writer: str) -> str:
    word = writer.replace(",", "").split()[0]
    return {"hive": "hive", "ORC": "orc"}.get(
        word, "other" if word in ("Delta", "Iceberg", "IPC", "feather", "CSV") else "parquet"
    )


@pytest.mark.usefixtures("empty_cache")
def test_conditions_see_the_rows_that_are_stored(session: Any, tmp_path: Path) -> None:
    cases, wrong = _compare(session, tmp_path, 6)
    assert cases >= 150
    assert not wrong


@pytest.mark.slow
@pytest.mark.usefixtures("empty_cache")
def test_without_the_border_numbers_of_rows_are_wrong(session: Any, tmp_path: Path) -> None:
    """So the tests here can fail: the same files, readers and conditions, and no border."""
    cases, wrong = _compare(session, tmp_path, 6, lambda frame: frame)
    assert cases >= 150
    assert wrong


@pytest.mark.usefixtures("one_hash", "empty_cache")
def test_how_rows_are_stored_decides_nothing(session: Any, tmp_path: Path) -> None:
    check(readers(session), tmp_path, trials=3, queries_each=3, together=True).verdict(8)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_cache")
def test_many_conditions_see_the_rows_that_are_stored(session: Any, tmp_path: Path) -> None:
    cases, wrong = _compare(session, tmp_path, 2_000)
    assert cases >= 50_000
    assert not wrong


@pytest.mark.slow
@pytest.mark.usefixtures("one_hash", "empty_cache")
def test_how_rows_are_stored_decides_nothing_at_length(session: Any, tmp_path: Path) -> None:
    check(readers(session), tmp_path, trials=120, queries_each=6, together=True).verdict(600)
