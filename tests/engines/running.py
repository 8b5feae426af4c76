"""Exact tables of plans on any engine, with one hash for all: so that samples are the same too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.core.dtypes import DType
from dpframe.frames import sampling
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.execution import Execution, TablesWanted
from tests.engines.plans import FRAMES, PLANS, query
from tests.laws.neighbours import tables_of

_PRIME = 2**31 - 1


def portable_hash(ns: Any, values: Mapping[str, Any], types: Mapping[str, DType], salt: int) -> Any:
    """The fifth power modulo a prime of what the whole numbers of a row make together."""
    mixed = ns.lit(salt % _PRIME, dtype=pl.Int64)
    for name, value in values.items():
        if types[name].is_integer:
            number = value.cast(pl.Int64).fill_null(77) % _PRIME
            mixed = (mixed * 48271 + number) % _PRIME
    square = mixed * mixed % _PRIME
    return square * square % _PRIME * mixed % _PRIME


@pytest.fixture
def one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "row_hash", portable_hash)


class _All:
    """Chooses every group with two rows or more."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def rounds(self) -> tuple[_All]:
        """One."""
        return (self,)

    def keep(self, counts: Any) -> Any:
        return counts >= 2, None


def exact(asked: Query, tokens: Mapping[int, str], engine: Engine, data: Mapping[str, Any]) -> Any:
    """The exact tables as plain lists, and the keys that were found."""
    schemas = {token: FRAMES[name].schema for token, name in tokens.items()}
    execution = Execution(engine, {token: data[name] for token, name in tokens.items()}, schemas)
    tables = tables_of(asked)
    execution.require_runs(asked.relation, asked.groups, tables)
    if engine.name != "spark":  # where building takes seconds each time
        execution.rehearse(asked.relation, asked.groups, tables)
    if asked.groups is None or not asked.groups.discovered:
        return _plain(execution.run(asked.relation, asked.groups, tables), tables)
    chooser = _All(tables[0])
    wanted = TablesWanted(asked.relation, asked.groups, tables, chooser)
    (found,) = execution.run_all([wanted])
    assert found.groups is not None
    return [_plain(found.tables, tables), found.groups.keys.rows()]


def _plain(counted: Mapping[Table, CellCounts], tables: list[Table]) -> list[Any]:
    return [
        [
            part if part is None or isinstance(part, int) else np.asarray(part).tolist()
            for part in (found.groups, found.cells, found.values, found.size)
        ]
        for found in (counted[table] for table in tables)
    ]


def on_polars(name: str, mode: Any = "in-memory") -> Any:
    """The tables of a plan by Polars, which others are compared with."""
    asked, tokens = query(PLANS[name])
    engine = PolarsEngine(mode)
    return exact(asked, tokens, engine, {n: frame.lazy() for n, frame in FRAMES.items()})


def digests() -> dict[str, str]:
    """A digest of the tables of each plan, for another process to compare."""
    sampling.row_hash = portable_hash
    return {
        name: hashlib.sha256(json.dumps(on_polars(name), default=str).encode()).hexdigest()
        for name in PLANS
    }


if __name__ == "__main__":
    print(json.dumps(digests()))
