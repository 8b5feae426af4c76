"""Equal values give equal results, however they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import column_names
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import lower
from tests.api.exactly import ENOUGH, protected
from tests.laws.checking import Engine, tree_of
from tests.laws.frames import nasty_frame, wide_columns

ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
COLUMNS = wide_columns(nasty_frame(0))


def exactly(query: dp.PrivateQuery, engine: Engine) -> pl.DataFrame:
    return query.collect(epsilon=ENOUGH, engine=engine)


@ENGINES
def test_a_sum_with_a_constant_before_a_division(engine: Engine) -> None:
    """One row of 49 more adds at most 1, whatever the constant beside it is kept as."""
    found = []
    for numbers in ([49.0], [49.0, 49.0]):
        people = protected(pl.DataFrame({"x": numbers})).with_columns(k=pl.lit(0.0))
        one = pl.when((pl.col("k") + pl.col("x")) / 49.0 == 1.0).then(1).otherwise(-1)
        found.append(exactly(people.agg(dp.sum(one, (-1, 1)).alias("n")), engine).item())
    assert found == [1, 2]


@ENGINES
@pytest.mark.parametrize("limited", [True, False])
def test_a_constant_that_one_individual_makes_a_column(engine: Engine, limited: bool) -> None:
    found = []
    for ann in (False, True):
        names = [f"u{i}" for i in range(999)] + ["Ann" if ann else "u999"]
        rows = pl.DataFrame({"name": names, "x": [49.0] * 999 + [48.0 if ann else 49.0]})
        people = protected(rows, dp.Identifier("name") if limited else dp.Rows())  # type: ignore[arg-type]
        other = people.filter(pl.col("name") == "Ann").with_columns(k=1)
        both = people.with_columns(k=0).concat(other)
        both = both.limit_rows(1) if limited else both
        equal = both.filter((pl.col("k") + pl.col("x")) / 49 == 1)
        found.append(exactly(equal.dp_count(), engine).item())
    # Ann's row gives 48 / 49 with k = 0 and 1 with k = 1; a limit keeps one of the two
    assert found[0] == 1000
    assert found[1] in ((999, 1000) if limited else (1000,))


@ENGINES
def test_groups_by_a_quotient_over_pieces_of_one_row(engine: Engine) -> None:
    """Polars keeps a column of equal pieces of one row as one value."""
    found = []
    for more in ([], [(1.0, 999.0)]):
        rows = [(0.0, 49.0)] * 50 + [(0.0, 7.0)] * 50 + more
        pieces = [pl.DataFrame({"base": [base], "x": [x]}) for base, x in rows]
        people = protected(pl.concat(pieces, rechunk=False))
        key = ((pl.col("base") + pl.col("x")) // 49.0).cast(pl.Int64)
        grouped = people.group_by(key.alias("key"), keys=[0, 1, 2])
        found.append(exactly(grouped.agg(dp.count().alias("n")), engine)["n"].to_list())
    assert found == [[50, 50, 0], [50, 50, 0]]


def stored(kept: dict[str, Any]) -> Iterator[pl.DataFrame]:
    """Three equal rows, with each of the columns kept as one value or as rows."""
    plain = pl.DataFrame({name: [value] * 3 for name, value in kept.items()})
    for i in range(2 ** len(kept)):
        frame = pl.DataFrame({"row": range(3)})
        for j, (name, value) in enumerate(kept.items()):
            frame = frame.with_columns(pl.lit(value).alias(name) if i >> j & 1 else plain[name])
        yield frame


QUOTIENTS = {
    "(pl.col('f64') + pl.col('f64b')) / 49.0": {"f64": 0.0, "f64b": 49.0},
    "(pl.col('f64') + pl.col('f64b')) // 49.0": {"f64": 0.0, "f64b": 49.0},
    "(pl.col('f64') + pl.col('f64b')) % 49.0": {"f64": 0.0, "f64b": 49.0},
    "(pl.col('f64') * pl.col('f64b')).log(3)": {"f64": 1.0, "f64b": 5.0},
    "pl.mean_horizontal('f64', 'f64b', 'f64b', ignore_nulls=False)": {"f64": 0.3, "f64b": 0.1},
    "pl.mean_horizontal('f64', 'f64b', pl.col('f64') * 7)": {"f64": 0.3, "f64b": 0.1},
    # comparing makes rows of one value, is_null does not, or the other way round
    "(pl.col('i64') == 48).cast(pl.Float64) * 49.0 / 49.0": {"i64": 48},
    "pl.col('i64').replace_strict([1], [49.0], default=49.0) / 49.0": {"i64": 1},
    "pl.when(pl.col('s') == 'a').then(pl.col('f64')) / pl.col('f64b')": {
        "s": "a", "f64": 49.0, "f64b": 49.0,
    },
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_of_values_kept_as_one_or_as_rows(text: str, engine: Engine) -> None:
    tree = tree_of(text)
    assert set(column_names(tree)) == set(QUOTIENTS[text])
    made = lower(tree, COLUMNS).alias("x")
    alone = pl.DataFrame({name: [value] for name, value in QUOTIENTS[text].items()})
    expected = alone.select(made).item()
    for frame in stored(QUOTIENTS[text]):
        result = frame.lazy().with_columns(made).collect(engine=engine, optimizations=OPTIMIZATIONS)
        assert result["x"].to_list() == [expected] * 3


@ENGINES
def test_an_exclusive_or_with_null(engine: Engine) -> None:
    made = lower(tree_of("pl.col('b') ^ pl.col('bb')"), COLUMNS).alias("x")
    for one in (True, False, None):
        frame = pl.DataFrame({"b": [one] * 3}, schema={"b": pl.Boolean})
        frame = frame.with_columns(bb=pl.lit(None, dtype=pl.Boolean))
        assert frame.lazy().select(made).collect(engine=engine)["x"].to_list() == [None] * 3


@ENGINES
def test_what_lists_in_pieces_contain(engine: Engine) -> None:
    lists = [[1, 2, 3], None, [2, None, 2], [1], [], [None], [5, 1]]
    types = {"li": pl.List(pl.Int64), "i64": pl.Int64}
    rows = pl.DataFrame({"li": lists, "i64": [1] * 7}, schema=types)
    pieces = pl.concat([rows[i] for i in range(7)], rechunk=False)
    for item in ("1", "None", "pl.col('i64')"):
        made = lower(tree_of(f"pl.col('li').list.contains({item})"), COLUMNS).alias("x")
        expected = [None if xs is None else (None if item == "None" else 1) in xs for xs in lists]
        for frame in (rows, pieces):
            assert frame.lazy().select(made).collect(engine=engine)["x"].to_list() == expected


@ENGINES
@pytest.mark.parametrize(
    "text",
    [
        "(pl.lit(3.0) / pl.lit(7.0)).replace([0.0], [1.0])",
        "(pl.lit(7.0) / pl.lit(7.0)).replace_strict([1.0], [2], default=3)",
        "pl.datetime(pl.lit(2000) + 1, 1, 1).cast(pl.Date).replace([date(2001, 1, 1)], [None])",
        "pl.lit(7.0) // pl.lit(2.0) + pl.lit(8).log(2)",
    ],
)
def test_constants_that_are_computed(text: str, engine: Engine) -> None:
    """They are one value for as many rows as there are."""
    made = lower(tree_of(text), COLUMNS).alias("x")
    one = nasty_frame(1).select(made)["x"]
    for height in (0, 1, 5):
        lazy = nasty_frame(height).lazy().with_columns(made).select("x")
        found = lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)["x"]
        assert found.equals(one.head(0).extend(one.gather([0] * height)), null_equal=True)
