"""Integers beyond 64 bits on DuckDB: as on Polars, or refused when the query is built."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("narwhals")

H, I = pl.col("h"), pl.col("i")  # noqa: E741
EDGES = [0, 1, 7, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 12345678901234567890, None]
FRAME = pl.DataFrame(
    {"h": pl.Series(EDGES, dtype=pl.UInt64), "i": [5, -7, 3, 0, 2, -1, 9, -(2**63), 4]}
)
RIGHT: list[pl.Expr] = [
    H % 10 == 3,
    H % 10 == 8,
    H // 10 > 5,
    H % I == 1,
    H % 2**63 == 1,
    H / 3 > 1e18,
    H.cast(pl.Float64) > 1e19,
    H > 2**63,
    H.is_in([2**64 - 1]),
    H.clip(5, 100) > 5,
    H.sign() == 1,
    H.cast(pl.String) == "9223372036854775808",
]
REFUSED: list[pl.Expr] = [H // I < 0, H + 1 > 2**63, H - I > 0, (H * 31 + 7) % 100 < 50, H & 7 == 7]


def on_duckdb() -> dp.PrivateFrame:
    table = duckdb.connect()
    table.register("arrow", FRAME.to_arrow())
    table.execute("create table t as select * from arrow")
    return protected(table.table("t"))


@pytest.mark.parametrize("condition", RIGHT, ids=str)
def test_conditions_are_those_of_polars(condition: pl.Expr) -> None:
    found = [exactly(f.filter(condition).dp_count()) for f in (on_duckdb(), protected(FRAME))]
    assert found[0].equals(found[1])
    assert found[0].item() == FRAME.filter(condition).height


@pytest.mark.parametrize("condition", REFUSED, ids=str)
def test_what_duckdb_has_no_type_for_is_refused(condition: pl.Expr) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="DuckDB"):
        on_duckdb().filter(condition).dp_count().plan(epsilon=1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.dp_sum("h", (0, 2**64)),
        lambda f: f.dp_sum("i", (-(2**62), 2**62)),
        lambda f: f.dp_mean("h", (2**63 - 1000, 2**63 + 1000)),
        lambda f: f.dp_std("h", (0, 2**64)),
        lambda f: f.dp_n_unique("h"),
        lambda f: f.dp_histogram("h", [0, 5, 2**62]),
        lambda f: f.group_by(k=H % 3, keys=[0, 1, 2]).dp_count(),
        lambda f: f.group_by("h", keys=[2**64 - 1, 1]).dp_count(),
    ],
)
def test_aggregates_are_those_of_polars(ask: Any) -> None:
    assert exactly(ask(on_duckdb())).equals(exactly(ask(protected(FRAME))))


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.dp_histogram("h", [0, 2**63, 2**64]),
        lambda f: f.dp_histogram("i", 100, bounds=(2**63 - 1, 2**64), other=True),
        lambda f: f.dp_cdf("i", [0, 2**63]),
        lambda f: f.dp_quantile("h", 0.5, candidates=[0, 2**63]),
    ],
)
def test_edges_beyond_64_bits_are_refused_when_the_query_is_built(ask: Any) -> None:
    with pytest.raises((dp.InvalidBounds, dp.UnsupportedOperation)) as refused:
        ask(on_duckdb())
    assert refused.value.remedy
