"""Cells that are counted from rows, against the same by a group-by and in fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.lower import Execution, tables
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.tables import CountedRows
from tests.laws.layouts import stored
from tests.laws.neighbours import exact_tables, query_of, tables_of

X = [0.0, -0.0, 0.25, 1.0, 7.0, -3.0, math.nan, math.inf, -math.inf, None]
COLUMNS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "text": (pl.String, ["a", "b", "", "z", None], ["b", "a", None]),
    "categories": (pl.Categorical, ["a", "b", "", "z", None], ["b", "a", ""]),
    "enum": (pl.Enum(["a", "b", "z"]), ["a", "b", "z", None], ["z", "a", None]),
    "integers": (pl.Int32, [-1, 0, 5, 2**31 - 1, None], [5, -1, None]),
    "sparse integers": (pl.Int64, [-(2**63), 0, 2**63 - 1, None], [2**63 - 1, -(2**63)]),
    "flags": (pl.Boolean, [True, False, None], [None, True]),
}
Ask = Callable[[dp.PrivateFrame], dp.PrivateQuery]
ASKED: dict[str, Ask] = {
    "median": lambda f: f.agg(dp.median("x", (0, 1))),
    "candidates": lambda f: f.filter(pl.col("x") > 0).agg(
        dp.quantile("x", 0.1, candidates=[0, 0.5, 1])
    ),
    "bins": lambda f: f.dp_histogram("x", bins=[-3, 0, 1, 7], other=True),
    "equal bins": lambda f: f.dp_histogram("x", bins=50, bounds=(-3, 7)),
    "steps": lambda f: f.dp_cdf("x", bins=[-3, 0.25, 1]),
    "equal steps": lambda f: f.dp_cdf("x", bins=40, bounds=(-3, 7)),
    "bins and a count": lambda f: f.agg(dp.histogram("x", bins=[-3, 0, 1, 7]), dp.count()),
    "of a constant": lambda f: f.agg(dp.histogram(pl.lit(0.25), [-3, 0.25, 1]).alias("c")),
    "of what is computed": lambda f: f.agg(dp.histogram(pl.col("x") * 2 + 1, 30, bounds=(-3, 7))),
}


def _general(*asked: Any) -> None:
    """Rows are grouped, whatever is asked for."""


def listed(found: Any) -> list[Any]:
    return [(t.groups.tolist(), t.cells.tolist(), t.values.tolist(), t.size) for t in found]


def by_group(frame: pl.DataFrame, asked: Any) -> list[Any]:
    """The exact tables by a group-by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "counted_rows", _general)
        return by_rows(frame, asked)


def by_rows(frame: pl.DataFrame, asked: Any) -> list[Any]:
    """The exact tables from rows in memory, where the plan says so."""
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    found = exact_tables(query_of(asked(people)), frame)
    return listed(t for t in found.values() if t.cells is not None)


@pytest.mark.parametrize("dense", [1, 2**30])
@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_the_same_tables_by_groups(dense: int, name: str, data: st.DataObject) -> None:
    dtype, values, keys = COLUMNS[name]
    row = st.tuples(st.sampled_from(values), st.sampled_from(X))
    rows = data.draw(st.lists(row, max_size=30))
    frame = pl.DataFrame(rows, schema={"g": dtype, "x": pl.Float64}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_MANY", 1)
        patch.setattr(tables, "_DENSE", dense)
        patch.setattr(tables, "_ROWS", 5)
        asked: list[Ask] = [
            lambda f: f.group_by("g", keys=keys).agg(
                dp.histogram("x", bins=[-3, 0, 1, 7], other=True)
            )
        ]
        if dense == 1:
            asked.append(lambda f: f.group_by("g", keys=keys).agg(dp.median("x", (0, 1))))
        for one in asked:
            assert by_rows(frame, one) == by_group(frame, one)


@pytest.mark.parametrize("name", ASKED)
@given(values=st.lists(st.sampled_from(X), max_size=30))
def test_the_same_tables_of_all(name: str, values: list[float | None]) -> None:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    assert by_rows(frame, ASKED[name]) == by_group(frame, ASKED[name])


@given(
    values=st.lists(
        st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53, 2**53 + 1]) | st.none()
    )
)
def test_the_same_tables_of_integers(values: list[int | None]) -> None:
    edges = [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**63 - 1]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)})
    for asked in (
        lambda f: f.dp_histogram("x", bins=edges, other=True),
        lambda f: f.dp_histogram("x", bins=[-0.5, 0.5, 1e18]),
        lambda f: f.dp_cdf("x", bins=edges),
        lambda f: f.agg(dp.quantile("x", 0.5, candidates=edges[1:])),
        lambda f: f.agg(dp.median("x", (-(2**62), 2**62))),
    ):
        assert by_rows(frame, asked) == by_group(frame, asked)


@pytest.mark.parametrize(
    ("dtype", "values", "edges"),
    [
        (pl.Float32, [0.1, 0.2, None, math.nan, math.inf, 16777216.0], [0.1, 0.2, 1, 16777217]),
        (pl.UInt64, [0, 1, 2**63 - 1, 2**63, 2**64 - 1, None], [0, 1, 2**62, 2**63 - 2]),
        (pl.Int128, [0, -(2**100), 2**63, 2**100, None], [-1, 0, 1, 2**62]),
        (pl.Decimal(20, 2), ["0.01", "1.50", "-3.00", None, "99999999.99"], [0, 1, 1.5, 2]),
    ],
)
def test_the_same_tables_of_other_types(dtype: Any, values: list[Any], edges: list[Any]) -> None:
    column = pl.Series("x", values, dtype=pl.String if isinstance(dtype, pl.Decimal) else dtype)
    frame = column.cast(dtype).to_frame()
    for asked in (
        lambda f: f.dp_histogram("x", bins=edges, other=True),
        lambda f: f.dp_cdf("x", bins=edges),
        lambda f: f.agg(dp.quantile("x", 0.5, candidates=edges)),
        lambda f: f.agg(dp.median("x", (0, 3))),
    ):
        assert by_rows(frame, asked) == by_group(frame, asked)


# -- files, piece by piece -------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> tuple[pl.DataFrame, Path]:
    many = [X[i * i % 7] if i % 5 else X[-1 - i % 3] for i in range(2000)]
    frame = pl.DataFrame({"x": pl.Series(many, dtype=pl.Float64)}).with_columns(
        g=pl.Series(["a", "b", None, "c"] * 500)
    )
    path = tmp_path / "rows.parquet"
    frame.write_parquet(path, row_group_size=100)
    return frame, path


def of_file(source: pl.LazyFrame, asked: Ask, mode: Any) -> tuple[list[Any], int]:
    """The exact tables as they are computed after a charge, and how many queries went by pieces."""
    people = dp.Session(epsilon=1).protect(source, dp.Rows())
    query = query_of(asked(people))
    engine, seen = PolarsEngine(mode), list[int]()
    batches = engine.batches

    def noted(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        seen.append(0)
        yield from batches(frame)

    engine.batches = noted  # type: ignore[method-assign]
    token = query.relation.token
    execution = Execution(engine, {token: source}, {token: source.collect_schema()})
    wanted = tables_of(query)
    execution.rehearse(query.relation, query.groups, wanted)
    rehearsed = len(seen)
    seen.clear()
    found = execution.run(query.relation, query.groups, wanted)
    assert rehearsed == len(seen)
    return listed(t for t in found.values() if t.cells is not None), len(seen)


@pytest.mark.parametrize("mode", ["auto", "streaming", "in-memory"])
@pytest.mark.parametrize("name", [*ASKED, "by groups"])
def test_the_same_tables_of_files(file: tuple[pl.DataFrame, Path], name: str, mode: Any) -> None:
    frame, path = file
    asked = ASKED.get(
        name, lambda f: f.group_by("g", keys=["a", None, "z"]).agg(dp.median("x", (0, 1)))
    )
    expected = by_group(frame, asked)
    derived = frame.lazy().with_columns(pl.col("x") * 1.0)
    for source in (pl.scan_parquet(path), derived, pl.scan_parquet(path).filter(pl.lit(True))):
        found, pieces = of_file(source, asked, mode)
        assert found == expected
        assert pieces == (name != "bins and a count")


def test_a_function_gets_what_groups_rows(file: tuple[pl.DataFrame, Path]) -> None:
    """Rows of a file do not come back from wherever a function sends its query."""
    heights = list[int]()

    def elsewhere(frame: pl.LazyFrame) -> pl.DataFrame:
        found = frame.collect()
        heights.append(found.height)
        return found

    frame, path = file
    found, pieces = of_file(pl.scan_parquet(path), ASKED["bins"], elsewhere)
    assert found == by_group(frame, ASKED["bins"])
    assert not pieces
    assert max(heights) < 10


def test_several_tables_of_a_file_are_read_once(file: tuple[pl.DataFrame, Path]) -> None:
    frame, path = file

    def asked(people: dp.PrivateFrame) -> dp.PrivateQuery:
        return people.agg(dp.median("x", (0, 1)), h=dp.histogram("x", bins=[0, 1, 7]))

    found, pieces = of_file(pl.scan_parquet(path), asked, "auto")
    assert found == by_group(frame, asked)
    assert not pieces


def test_buckets_add_up() -> None:
    """Counts of disjoint rows may be added and put in any order."""
    one = pl.DataFrame({"place": [0, 7, 9], "v0": [1, 2, 3]})
    other = pl.DataFrame({"place": [3, 7], "v0": [1, 5]})
    both = pl.concat([one, other]).group_by("place").agg(pl.col("v0").sum()).sort("place")
    rising, falling = (tables.counts_of_places(f, 4, 3) for f in (both, both.reverse()))
    assert listed([rising]) == listed([falling])
    assert listed([rising]) == [([0, 0, 1, 2], [0, 3, 3, 1], [1, 1, 7, 3], 3)]


@given(st.lists(st.lists(st.integers(0, 2**33), max_size=12), max_size=6))
def test_places_that_come_in_pieces(pieces: list[list[int]]) -> None:
    rows = [pl.DataFrame({"place": piece}, schema={"place": pl.Int64}) for piece in pieces]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_ROWS", 7)
        found = tables.PlacedRows(2**34).count(rows)
    together = sorted(itertools.chain(*pieces))
    assert found.rows() == [(p, together.count(p)) for p in dict.fromkeys(together)]


def test_what_is_counted_from_rows_follows_from_the_plan() -> None:
    frame = pl.DataFrame({"x": [1.0], "g": ["a"]})
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    found = {}
    for name, asked in ASKED.items():
        query = query_of(asked(people))
        for height in (0, 1):
            lowered = tables.lower_query(
                query.relation, query.groups, tables_of(query), frame.head(height).lazy()
            )
            ways = [type(one.later).__name__ for one in lowered if one.cells is not None]
            assert found.setdefault(name, ways) == ways
            assert all(isinstance(one.later, CountedRows) for one in lowered if one.cells)


# -- in fractions, through what analysts call ------------------------------------------------------

BIG = 2**53
EDGES: dict[str, Sequence[Any]] = {
    "few floats": [-3.0, -0.0, 0.1, 0.25, 7.0],
    "thirds": [n / 3 for n in range(-40, 41)],
    "unequal": [0.0, *(1.1**n for n in range(40))],
    "beside each other": [0.1, math.nextafter(0.1, 1), *(float(n) for n in range(1, 30))],
    "beyond 2**53": [float(BIG + 2 * n) for n in range(30)],
    "integers": [0, 1, 7, BIG, BIG + 1, BIG + 2, 2**62],
    "many integers": [BIG - 20 + n for n in range(60)],
}


def around(edges: Sequence[Any]) -> list[Any]:
    """Edges, what is beside them, zeros, what is far, and no numbers."""
    if isinstance(edges[0], int):
        found = {e + d for e in edges for d in (-1, 0, 1)} | {0, -(2**63), 2**63 - 1}
        return [*sorted(found), None]
    beside = [math.nextafter(e, to) for e in edges for to in (-math.inf, math.inf)]
    return [*edges, *beside, 0.0, -0.0, 5e-324, math.inf, -math.inf, math.nan, None]


def known(values: Sequence[Any]) -> list[Fraction | float]:
    """The numbers, exactly."""
    numbers = [x for x in values if x is not None and not math.isnan(x)]
    return [x if isinstance(x, float) and math.isinf(x) else Fraction(x) for x in numbers]


@pytest.fixture(params=["memory", "file"])
def protect(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., dp.PrivateFrame]:
    """Rows at a budget that leaves no noise, in memory or in a file."""

    def made(values: Sequence[Any]) -> dp.PrivateFrame:
        whole = all(x is None or isinstance(x, int) for x in values)
        column = pl.Series("x", values, dtype=pl.Int64 if whole else pl.Float64)
        source: Any = stored(column.to_frame())
        if request.param == "file":
            source.write_parquet(tmp_path / "x.parquet", row_group_size=16)
            source = pl.scan_parquet(tmp_path / "x.parquet")
        return dp.Session(epsilon=10**9).protect(source, dp.Rows())

    return made


@pytest.mark.parametrize("name", EDGES)
def test_bins_in_fractions(name: str, protect: Callable[..., dp.PrivateFrame]) -> None:
    edges = EDGES[name]
    values = around(edges)
    found = protect(values).dp_histogram("x", bins=edges, other=True).collect(epsilon=10**6)
    numbers, exact = known(values), [Fraction(e) for e in edges]
    ends = [*exact[1:-1], math.inf]
    counts = [
        sum(a <= x < b and x <= exact[-1] for x in numbers)
        for a, b in zip(exact[:-1], ends, strict=True)
    ]
    assert found["count"].to_list() == [*counts, len(values) - sum(counts)]


@pytest.mark.parametrize("bins", [7, 49, 200])
def test_equal_bins_in_fractions(bins: int, protect: Callable[..., dp.PrivateFrame]) -> None:
    lo, hi = Fraction(-1, 10), Fraction(1, 3)
    # edges are those of the column's type: the floats nearest to the exact ones
    edges = [float(lo + (hi - lo) * i / bins) for i in range(bins + 1)]
    values = around(edges)
    rows = protect(values)
    found = rows.dp_histogram("x", bins=bins, bounds=(lo, hi)).collect(epsilon=10**6)
    numbers = known(values)
    exact = [Fraction(e) for e in edges]
    assert found["count"].to_list() == [
        sum(a <= x < b or x == b == exact[-1] for x in numbers)
        for a, b in itertools.pairwise(exact)
    ]


@pytest.mark.parametrize("name", EDGES)
def test_steps_in_fractions(name: str, protect: Callable[..., dp.PrivateFrame]) -> None:
    edges = EDGES[name]
    values = around(edges)
    found = protect(values).dp_cdf("x", bins=edges).collect(epsilon=10**8)
    numbers = known(values)
    assert found["count"].to_list() == [sum(x <= Fraction(e) for x in numbers) for e in edges]


@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize("name", ["few floats", "thirds", "integers", "many integers"])
def test_quantiles_in_fractions(
    name: str, q: Fraction, protect: Callable[..., dp.PrivateFrame]
) -> None:
    edges = EDGES[name]
    values = around(edges)
    found = protect(values).agg(dp.quantile("x", q, candidates=edges)).collect(epsilon=10**6)
    numbers = known(values)

    def score(candidate: Any) -> Fraction:
        c, target = Fraction(candidate), q * len(numbers)
        under, upto = sum(x < c for x in numbers), sum(x <= c for x in numbers)
        return -max(target - upto, under - target, Fraction(0))

    assert score(found.item()) == max(map(score, edges))
