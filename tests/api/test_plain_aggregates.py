"""Aggregates as Polars has them: read as private ones where they mean the same, else refused."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from tests.api.exactly import exactly, protected

SCHEMA = {"x": pl.Float64, "n": pl.Int64, "u": pl.UInt8, "b": pl.Boolean, "g": pl.String}
X, N, B, G = pl.col("x"), pl.col("n"), pl.col("b"), pl.col("g")

NUMBERS = st.none() | st.integers(-8, 8)
ROWS = st.lists(
    st.tuples(
        NUMBERS.map(lambda v: None if v is None else v / 2),
        NUMBERS,
        st.none() | st.integers(0, 255),
        st.none() | st.booleans(),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=12,
)

SAME = [
    pl.len(),
    N.len(),
    N.count(),
    X.count(),
    N.clip(-3, 5).sum(),
    X.clip(-1, 2).sum(),
    pl.sum("u"),
    B.sum(),
    B.mean(),
    (N > 2).sum(),
    (N > 2).mean(),
    X.clip(-1, 2).mean(),
    N.null_count(),
    N.filter(B).len(),
    N.filter(B).count(),
    N.clip(0, 4).filter(B).sum(),
    N.filter(B).clip(0, 4).mean(),
    (N.filter(B) * 2 + 1).clip(0, 9).sum(),
    N.filter(G == "a", N > 1).len(),
    N.drop_nulls().n_unique(),
    N.drop_nulls().len(),
    N.drop_nulls().fill_null(3).len(),
    N.fill_null(3).drop_nulls().clip(0, 5).sum(),
    N.fill_null(3).n_unique(),
    N.filter(B).drop_nulls().n_unique(),
    X.drop_nans().len(),
    X.drop_nans().count(),
    X.drop_nulls().drop_nans().n_unique(),
    N.cast(pl.Float64).clip(0, 4).filter(B).mean(),
    N.filter(B).cast(pl.Float64).clip(0, 4).sum(),
    N.filter(B.is_null()).len(),
    B.filter(G == "b").mean(),
    B.filter(G == "b").sum(),
    B.sum() / pl.len(),
    100 * B.sum() + 3,
    -N.clip(0, 4).sum(),
    (X.clip(-1, 2).sum() * 2).round(1),
    N.clip(-4, 4).sum().abs(),
    B.sum().clip(1, 3),
    N.count().alias("there"),
    N.clip(0, 4).sum().name.suffix("_total"),
    pl.col("n", "x").clip(0, 4).sum(),
    pl.col("n", "x").clip(0, 4).mean().name.prefix("mean_"),
    pl.selectors.float().clip(0, 4).filter(B).sum(),
]


@pytest.mark.parametrize("expression", SAME, ids=str)
@settings(max_examples=8)
@given(ROWS)
def test_what_is_read_means_what_it_means_in_polars(expression: pl.Expr, rows: list) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    expected = frame.select(expression)
    found = exactly(protected(frame).agg(expression))
    assert found.columns == expected.columns
    assert exactly(protected(frame).select(expression)).equals(found)
    for mine, theirs in zip(found.row(0), expected.row(0), strict=True):
        if theirs is None or not math.isfinite(theirs):  # 0 / 0 is what the noisy parts say
            continue
        assert mine == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("expression", [X.clip(0, 2).mean(), N.clip(0, 4).var(), B.mean()], ids=str)
def test_means_and_variances_of_nothing_are_null(expression: pl.Expr) -> None:
    frame = pl.DataFrame([(None, None, None, None, None)], schema=SCHEMA, orient="row")
    assert exactly(protected(frame).agg(expression)).item() is None
    assert frame.select(expression).item() is None


@pytest.mark.parametrize("expression", [X, N.cast(pl.Float64)], ids=str)
def test_spread_and_quantiles(expression: pl.Expr) -> None:
    values = [float(i % 101) for i in range(5000)]
    frame = pl.DataFrame({"x": values, "n": [int(v) for v in values]})
    asked = [
        expression.clip(0, 100).std().alias("std"),
        expression.clip(0, 100).std(ddof=0).alias("std0"),
        expression.clip(0, 100).var().alias("var"),
        expression.clip(0, 100).median().alias("median"),
        expression.clip(0, 100).quantile(0.9).alias("q"),
        expression.clip(0, 100).quantile(0.1, interpolation="linear").alias("q1"),
    ]
    found = exactly(protected(frame).agg(asked)).row(0, named=True)
    expected = frame.select(asked).row(0, named=True)
    for name, value in expected.items():
        assert found[name] == pytest.approx(
            value, abs=1.01 if name in ("median", "q", "q1") else 0.01
        )


PAIRS = [
    (pl.len(), dp.count()),
    (N.count(), N.dp_count()),
    (N.clip(0, 9).sum(), N.clip(0, 9).dp_sum()),
    (X.clip(0, 9).mean(), X.clip(0, 9).dp_mean()),
    (X.clip(0, 9).filter(B).mean(), pl.when(B).then(X.clip(0, 9)).dp_mean()),
    (X.clip(0, 9).filter(B).mean(), X.clip(0, 9).filter(B).dp_mean()),
    (X.filter(B).clip(0, 9).sum(), X.filter(B).clip(0, 9).dp_sum()),
    (N.filter(B).drop_nulls().count(), N.filter(B).dp_count()),
    (X.clip(0, 9).std(ddof=0), X.clip(0, 9).dp_std(ddof=0)),
    (X.clip(0, 9).median(), X.clip(0, 9).dp_median()),
    (X.clip(0, 9).quantile(0.25), X.clip(0, 9).dp_quantile(0.25)),
    (N.drop_nulls().n_unique(), N.dp_n_unique()),
    (B.sum() / pl.len(), B.dp_sum() / dp.count()),
    ((N > 3).mean(), (N > 3).dp_mean()),
]


@pytest.mark.parametrize(("plain", "private"), PAIRS, ids=str)
def test_plans_are_those_of_the_dp_methods(plain: pl.Expr, private: pl.Expr) -> None:
    """So whatever is proved of these holds of them, and plans say what was understood."""
    name = pl.DataFrame(schema=SCHEMA).select(plain).columns[0]
    for frame in (pl.DataFrame(schema=SCHEMA), pl.DataFrame(schema=SCHEMA).with_columns(p=1)):
        unit: dp.Rows | dp.Identifier = dp.Identifier("p") if "p" in frame.columns else dp.Rows()
        people = dp.Session(epsilon=1).protect(frame, unit=unit, name="f")
        if "p" in frame.columns:
            people = people.limit_rows(3)
        grouped = people.group_by("g", keys=["a", "b"])
        for place in (people, grouped):
            asked = place.agg(plain).plan(epsilon=1)
            assert asked.fingerprint == place.agg(private.alias(name)).plan(epsilon=1).fingerprint
        assert people.select(plain).plan(epsilon=1).fingerprint == (
            people.agg(private.alias(name)).plan(epsilon=1).fingerprint
        )


def test_the_identifier_has_no_nulls() -> None:
    frame = pl.DataFrame({"p": ["a", "a", "b", None]})
    people = protected(frame, dp.Identifier("p"))
    assert exactly(people.agg(pl.col("p").n_unique())).item() == 2


def test_groups_and_keywords() -> None:
    frame = pl.DataFrame({"g": ["a", "a", "b"], "x": [1.0, 2.0, None]})
    people = protected(frame).group_by("g", keys=["a", "b", "c"])
    found = exactly(people.agg(n=pl.len(), total=X.clip(0, 9).sum(), mean=X.clip(0, 9).mean()))
    assert found.rows() == [("a", 2, 3.0, 1.5), ("b", 1, 0.0, None), ("c", 0, 0.0, None)]


REFUSED = [
    (X.sum(), 'write pl.col("x").clip(low, high).sum()'),
    (X.quantile(0.9), 'write pl.col("x").clip(low, high).quantile(0.9)'),
    (X.std(ddof=0), 'write pl.col("x").clip(low, high).std(ddof=0)'),
    (
        X.filter(G == "a").mean(),
        'write pl.col("x").filter(pl.col("g") == "a").clip(low, high).mean()',
    ),
    ((X * 2).sum(), 'write (pl.col("x") * 2).clip(low, high).sum()'),
    (N.n_unique(), 'write pl.col("n").drop_nulls().n_unique()'),
    (X.drop_nulls().n_unique(), "drop_nans().n_unique()"),
    (X.max(), "dp_quantile(0.99"),
    (X.min(), "dp_quantile(0.01"),
    (X.first(), "dp_"),
    (X.clip(0, 1).quantile(0.5, interpolation="lower"), "leave the interpolation out"),
    (X.clip(0, 1).quantile(pl.col("n").mean()), "quantile"),
    (X - X.clip(0, 1).mean(), "aggregate both sides"),
    (pl.len() > 5, "released numbers"),
    (pl.when(pl.len() > 5).then(1), "released numbers"),
    (X.clip(0, 1).sum().cast(pl.Int64), "released numbers"),
    (X.clip(0, 1).sum().fill_null(0), "released numbers"),
    (X.clip(0, 1).sum() + pl.lit("a"), "released numbers"),
    (pl.lit(1).sum(), "pl.len()"),
    (X.unique().len(), "dp_n_unique"),
    (X.sort().clip(0, 1).sum(), "sort"),
    (X.filter(B).filter(N > 1).len(), "one .filter(...)"),
    ((X.filter(B) + N).clip(0, 1).sum(), "one .filter(...)"),
    ((X.filter(B) + N.filter(B)).clip(0, 1).sum(), "one .filter(...)"),
    (pl.when(B).then(X.filter(B)).clip(0, 1).sum(), "one .filter(...)"),
    (X.filter(N.mean() < N).len(), "dp_mean"),
    (X.filter(N).len(), "!= 0"),
    ((X - X.mean()).clip(0, 1).sum(), "dp_mean"),
    (X.clip(0, X.max()).sum(), "dp_quantile"),
    (pl.len() / pl.len().sum(), 'pl.col("len") / pl.col("len").sum()'),
    (X.clip(0, 1).sum().sum(), "released numbers"),
    (X.filter(B).dp_histogram([0, 1], other=True), "filter the frame"),
]


@pytest.mark.parametrize(("expression", "said"), REFUSED, ids=[str(e) for e, _ in REFUSED])
def test_everything_else_is_refused_with_what_to_write(expression: pl.Expr, said: str) -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame(schema=SCHEMA), unit=dp.Rows())
    with pytest.raises(dp.DPFrameError) as refusal:
        people.agg(expression)
    assert said in str(refusal.value)
    assert refusal.value.where is not None


@pytest.mark.parametrize("expression", [e for e, s in REFUSED if s.startswith("write ")], ids=str)
def test_the_line_to_write_works(expression: pl.Expr) -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame(schema=SCHEMA), unit=dp.Rows())
    with pytest.raises(dp.DPFrameError) as refusal:
        people.agg(expression)
    (line,) = re.findall(
        r"write (.*?)(?: with the range|$)", (refusal.value.remedy or "").split("\n")[0]
    )
    assert people.agg(eval(line, {"pl": pl, "low": 0, "high": 100})).plan(epsilon=1).releases
    if "low" in line:
        with pytest.raises(NameError):  # bounds that nobody chose do not run
            eval(line, {"pl": pl})


def test_rows_stay_rows_elsewhere() -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame(schema=SCHEMA), unit=dp.Rows())
    assert isinstance(people.select("x", N + 1), dp.PrivateFrame)
    for refused in (
        lambda: people.select("x", N.clip(0, 1).sum()),
        lambda: people.filter(pl.len() > 3),
        lambda: people.with_columns(N - N.clip(0, 1).mean()),
        lambda: people.group_by(pl.len()),
    ):
        with pytest.raises(dp.UnsupportedOperation):
            refused()


def test_names_of_results_are_made_from_those_of_columns() -> None:
    people = protected(pl.DataFrame({"x": [1.0], "n": [2]}))
    both = pl.col("x", "n").dp_sum((0, 9))
    assert exactly(people.agg(both.name.suffix("_sum"))).columns == ["x_sum", "n_sum"]
    assert exactly(people.agg(both.name.prefix("a_").name.suffix("_b"))).columns == [
        "a_x_b",
        "a_n_b",
    ]
    one = X.dp_sum((0, 9)).alias("y")
    assert exactly(people.agg(one.name.suffix("_s"))).columns == ["y_s"]
    assert exactly(people.agg(one.name.keep())).columns == ["x"]
    assert exactly(people.agg((one.name.suffix("_s") / 2).round(1))).columns == ["y_s"]
    for wrong in (lambda: one.name.map(str.upper), lambda: one.name.suffix(3)):  # type: ignore[arg-type]
        with pytest.raises(dp.UnsupportedOperation, match="suffix"):
            wrong()
