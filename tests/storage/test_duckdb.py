"""The law of storage on DuckDB."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe.api.frame import rows_of
from dpframe.api.query import parts
from dpframe.errors import UnsupportedOperation
from tests.engines.running import one_hash
from tests.laws.neighbours import same, tables_of
from tests.storage import law
from tests.storage.duckdb_readers import READERS
from tests.storage.law import VIEWS, Found, check, in_memory
from tests.storage.queries import _CONDITIONS as CONDITIONS
from tests.storage.queries import _NAMES as NAMES
from tests.storage.queries import Asked
from tests.storage.rows import SCHEMA, draw_frame
from tests.storage.writers import Writer, installed

__all__ = ["one_hash"]


def _check_conditions(folder: Path, trials: int, seed: int) -> Found:
    """Readers and writers in turn, all conditions at once, each counted by itself."""
    writers = [w for w in _writers() if w.name.startswith(("Polars", "pyarrow", "DuckDB"))]
    asked, found = _conditions(), Found()
    rng = random.Random(seed)
    rng.shuffle(writers)
    for number in range(trials):
        writer = writers[number % len(writers)]
        reader = READERS[(number + seed) % len(READERS)]
        view = rng.choice(reader.views)
        place = folder / f"{seed}-{number}"
        place.mkdir()
        frame = draw_frame(rng)
        stored = writer.write(place, frame, rng)
        data, options = reader.read(stored, VIEWS[view])
        source: Any = rows_of(dp.Session(epsilon=1).protect(data, dp.Rows(), **options)).source
        query = asked.query
        tables = source.opened(asked.token).run(query.relation, query.groups, asked.tables)
        expected = in_memory(frame, stored, view, [asked])[asked.text]
        found.broken += [
            f"{seed}, {number}: {writer.name} / {reader.name} / {view}: {table}"
            for table, counts in expected.items()
            if not same({table: tables[table]}, {table: counts})
        ]
        found.cases += len(tables)
    return found


@pytest.mark.always
def test_conditions_hold_for_rows_however_they_are_stored(tmp_path: Path) -> None:
    _check_conditions(tmp_path, 21, 0).verdict(1_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_conditions_hold_often(seed: int, tmp_path: Path) -> None:
    _check_conditions(tmp_path, 50, seed).verdict(2_400)


def _writers() -> list[Writer]:
    """Without the one who says that all values are null. DuckDB 2 decodes no values of which a
    footer says that, whatever the query: the file holds other rows to it (decision 24).
    """
    return [writer for writer in installed() if writer.name != "pyarrow, nulls stated"]


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law, "installed", _writers)


@cache
def _conditions() -> Asked:
    """The conditions that DuckDB supports as sums of one query."""
    session = dp.Session(epsilon=1)
    rows = session.protect(pl.LazyFrame(schema=dict(SCHEMA)), dp.Rows())
    empty = duckdb.connect().from_arrow(pl.DataFrame(schema=dict(SCHEMA)).to_arrow())
    engine: Any = rows_of(session.protect(empty, dp.Rows())).source
    outputs = {}
    for number, text in enumerate(CONDITIONS):
        ones = pl.when(eval(text, {**NAMES})).then(2).otherwise(1)
        output = dp.sum(ones, (0, 2)).alias(f"c{number}")
        query = parts(rows.agg(output))[0]
        try:
            place = engine.blueprint(query.relation.token)
            place.require_runs(query.relation, query.groups, tables_of(query))
        except UnsupportedOperation:
            continue
        outputs[f"c{number}"] = output
    query = parts(rows.agg(*outputs.values()))[0]
    return Asked("conditions", query, tables_of(query), frozenset(SCHEMA))


@pytest.mark.always
@pytest.mark.usefixtures("one_hash", "writers")
def test_how_rows_are_stored_decides_nothing(tmp_path: Path) -> None:
    found = check(READERS, tmp_path, trials=8, queries_each=3)
    found.verdict(25)
    assert not found.refused


@pytest.mark.slow
@pytest.mark.usefixtures("one_hash", "writers")
@pytest.mark.parametrize("seed", range(1, 7))
def test_how_rows_are_stored_decides_nothing_often(seed: int, tmp_path: Path) -> None:
    found = check(READERS, tmp_path, trials=60, seed=seed)
    found.verdict(700)
    assert not found.refused
    assert found.readers == {reader.name for reader in READERS}
