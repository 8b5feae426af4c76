"""Groups by packed numbers are the groups by the numbers, whatever their size and type."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.lower import lower_query
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.pairs import group_packed
from tests.laws.amounts import examples
from tests.laws.neighbours import tables_of

INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
EDGES = [0, 1, 2, -1, 127, -128, 2**15 - 1, 2**15, 2**30 - 1, 2**30, 2**33 - 1, 2**33]
EDGES += [2**10 - 1, 2**10, 2**63 - 1, -(2**63), 2**64 - 1]


def number(dtype: Any) -> st.SearchStrategy[int | None]:
    least, most = pl.select(a=dtype.min(), b=dtype.max()).row(0)
    return st.sampled_from([None, *(edge for edge in EDGES if least <= edge <= most)])


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    types = draw(st.lists(st.sampled_from(INTEGERS), min_size=2, max_size=4))
    schema = {f"c{i}": dtype for i, dtype in enumerate(types)}
    row = st.tuples(*map(number, types))
    rows = draw(st.lists(row, max_size=12))
    again = draw(st.lists(st.sampled_from(rows), max_size=12)) if rows else []
    return pl.DataFrame(rows + again, schema=schema, orient="row").with_row_index("x")


def sizes(frame: pl.DataFrame, names: list[str]) -> dict[Any, tuple[int, int]]:
    found: dict[Any, tuple[int, int]] = {}
    for x, *key in frame.select("x", *names).rows():
        many, total = found.get(tuple(key), (0, 0))
        found[tuple(key)] = (many + 1, total + x)
    return found


@examples(50, 400)
@given(frames(), st.sampled_from(["in-memory", "streaming"]))
def test_groups_are_those_of_the_numbers(frame: pl.DataFrame, way: Any) -> None:
    names = frame.columns[1:]
    made = [pl.len().alias("n"), pl.col("x").sum().cast(pl.Int64).alias("total")]
    result = group_packed(frame.lazy(), names, made).collect(engine=way)
    assert result.columns == [*names, "n", "total"]
    assert [result.schema[name] for name in names] == [frame.schema[name] for name in names]
    assert {tuple(row[:-2]): row[-2:] for row in result.rows()} == sizes(frame, names)
    assert result.height == len(sizes(frame, names))


def later(steps: str, frame: Any, by: str = '"g"', unit: str = "id") -> Any:
    """What groups the rows of a query in memory, if anything does."""
    private = dp.Session(epsilon=1, delta=0.1).protect(frame, unit=unit)
    names: dict[str, Any] = {"f": private, "pl": pl, "dp": dp, "unit": unit}
    text = f"{steps}.limit_groups(2, by={by}).group_by({by}).agg(n=dp.n_unique(unit))"
    query = eval(text, names)._query
    (lowered,) = lower_query(
        query.relation,
        query.groups,
        tables_of(query),
        pl.LazyFrame(frame) if isinstance(frame, pl.DataFrame) else frame,
    )
    assert (lowered.later is None) == ("AGGREGATE" in lowered.frame.explain(optimized=False))
    return lowered.later


FRAME = pl.DataFrame({"id": [1, 2], "g": [3, 4], "x": [0.5, 1.5], "t": ["a", "b"]})


@pytest.mark.parametrize(
    "steps",
    ["f", 'f.filter(pl.col("x") > 1)', 'f.limit_rows(2, by="g")', 'f.with_columns(x=pl.col("g"))'],
)
def test_rows_in_memory_are_grouped_there(steps: str, tmp_path: Any) -> None:
    assert later(steps, FRAME).packed
    FRAME.write_parquet(tmp_path / "f.parquet")
    assert later(steps, pl.scan_parquet(tmp_path / "f.parquet")) is None


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_a_rehearsal_has_the_form_of_the_run(
    kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what an engine refuses could be found after the charge."""
    FRAME.write_parquet(tmp_path / "f.parquet")
    frame = FRAME.lazy() if kind == "frame" else pl.scan_parquet(tmp_path / "f.parquet")
    grouped = []

    def noted(self: PolarsEngine, frames: Any, **options: Any) -> Any:
        grouped.append("AGGREGATE" in frames[0].explain(optimized=False))
        return collect(self, frames, **options)

    collect = PolarsEngine.collect
    monkeypatch.setattr(PolarsEngine, "collect", noted)
    people = dp.Session(epsilon=1).protect(frame, unit="id")
    people.limit_groups(2, by="g").group_by("g", keys=[3, 4]).agg(dp.n_unique("id")).collect(
        epsilon=1
    )
    assert grouped == ([False, True] * 2 if kind == "frame" else [True, True])


def test_only_numbers_are_packed() -> None:
    assert not later("f", FRAME, by='"t"').packed
    assert later("f", FRAME, unit="t") is None
    wide = FRAME.with_columns(pl.col("g").cast(pl.Int128))
    assert not later("f", wide).packed
    assert later("f", FRAME.with_columns(pl.col("id").cast(pl.Int128))) is None
