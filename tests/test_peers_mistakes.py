"""Mistakes that other libraries for differential privacy made, each as a test that fails if we do.

A spend so large that the noise is 0 but once in e**1000 makes results exact and repeatable.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe.aggregates.statistics import GridSum
from dpframe.rows.failures import OPTIMIZATIONS

QUIET = 10**9
"""An epsilon at which noise on whole numbers is 0."""
CHANGE_ONE = dp.Rows("change-one")


def protect(frame: Any, unit: dp.Rows | None = None, **options: Any) -> Any:
    """A private frame of its own session, typed loosely for `eval`."""
    return dp.Session(epsilon=10**12).protect(frame, unit or dp.Rows(), **options)


def written(text: str) -> Any:
    """The value of an expression; what Polars itself will no longer have is not our concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return eval(text, {"pl": pl, "dp": dp, "date": date})


# ==================================================== 1. claims about values, used for soundness

ROWS = pl.DataFrame(
    {
        "i": [0, 1, -1, 300, 2**63 - 1, -(2**63), None, 7],
        "f": [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, None, -2.0],
        "s": ["", "12", "abc", None, "2020-01-01", "-0", "é", "1.5"],
        "d": pl.Series([0, 1, 2**31 - 1, -(2**31), None, 18262, 5, 7], dtype=pl.Int32).cast(
            pl.Date
        ),
        "b": [True, False, None, True, False, True, False, True],
    }
)
FILLED = """f.with_columns(
    pl.col("i").fill_null(0),
    pl.col("f").fill_null(0.0).fill_nan(0.0),
    pl.col("s").fill_null(""),
    pl.col("d").fill_null(date(2000, 1, 1)),
    pl.col("b").fill_null(False),
)"""
"""After this neither null nor NaN is left, and all rows are."""

MAY_BE_NULL = [
    'pl.col("i").cast(pl.Int8)',
    'pl.col("i").cast(pl.Int8, strict=False)',
    'pl.col("i").cast(pl.UInt64)',
    'pl.col("f").cast(pl.Int64)',
    'pl.col("s").cast(pl.Int64)',
    'pl.col("s").cast(pl.Float64, strict=False)',
    'pl.col("s").str.to_integer(strict=False)',
    'pl.col("s").str.to_date("%Y-%m-%d", strict=False)',
    'pl.col("i") % 0',
    'pl.col("i") // 0',
    'pl.col("i") % pl.col("i")',
    'pl.col("i") // pl.col("i")',
    'pl.col("i").replace_strict({1: 2}, default=None)',
    'pl.when(pl.col("b")).then(1)',
    'pl.col("d").dt.offset_by("1mo")',
    'pl.col("i").cast(pl.Date)',
]
MAY_BE_NAN = [
    'pl.col("f").fill_null(float("nan")) / 0',
    'pl.col("f") / pl.col("f")',
    'pl.col("f") - pl.col("f")',
    'pl.col("f") * 0.0',
    'pl.col("f") % 0.0',
    'pl.col("f").log()',
    'pl.col("f").sqrt()',
    'pl.col("f") ** 0.5',
]
ALWAYS_A_VALUE = [
    'pl.col("i")',
    'pl.col("i") + 1',
    'pl.col("f").clip(0, 1)',
    'pl.col("f").cut([0, 1])',
    'pl.col("f").round(2)',
    'pl.col("f").cast(pl.Float32)',
    'pl.coalesce("i", 1)',
    'pl.col("s").str.slice(0, 1)',
    'pl.col("s").str.len_chars()',
    'pl.col("b").cast(pl.Int8)',
    'pl.col("i").is_between(0, 9)',
]


def count_release(text: str, steps: str = FILLED) -> dp.NoisyAggregate:
    frame = eval(steps, {"f": protect(ROWS, CHANGE_ONE), "pl": pl, "date": date})
    (release,) = frame.agg(written(text).dp_count().alias("n")).plan(epsilon=1).releases
    return release


@pytest.mark.parametrize("text", [*MAY_BE_NULL, *MAY_BE_NAN])
def test_1_a_count_is_not_free_where_an_operation_makes_nulls(text: str) -> None:
    """A peer released such counts without noise at epsilon 0, taking the result for non-null."""
    release = count_release(text)
    assert release.mechanism == "discrete_laplace"
    assert release.sensitivity == dp.Sensitivity(1, 1.0, 1.0, 1.0)
    assert not release.cost.is_zero


@pytest.mark.parametrize("text", ALWAYS_A_VALUE)
def test_1_a_count_that_is_free_counts_all_rows(text: str) -> None:
    """What is thought to be neither null nor NaN is so in plain Polars, on awkward rows."""
    assert count_release(text).mechanism == "none"
    plain = eval(FILLED, {"f": ROWS, "pl": pl, "date": date}).select(written(text)).to_series()
    assert plain.null_count() == 0
    assert not (plain.dtype.is_float() and plain.is_nan().any())


@pytest.mark.parametrize(
    "text",
    [
        'pl.col("i")',
        'pl.col("f")',
        'pl.col("f").cut([0, 1])',
        'pl.col("f").fill_null(float("nan"))',
        'pl.col("f").fill_null(0.0)',
        'pl.col("f").fill_nan(None)',
    ],
)
def test_1_nulls_and_nan_of_the_data_are_not_assumed_away(text: str) -> None:
    assert count_release(text, "f").mechanism == "discrete_laplace"


def test_1_filling_with_nan_does_not_make_values() -> None:
    """`fill_null(NaN)` leaves no null, and yet nothing that may be summed or counted."""
    filled = protect(ROWS).with_columns(pl.col("f").fill_null(float("nan")).clip(-10, 10))
    result = filled.agg(
        pl.col("f").dp_count().alias("n"), pl.col("f").dp_sum((-10, 10)).alias("s")
    ).collect(epsilon=QUIET)
    assert result["n"].to_list() == [6]
    assert result["s"].to_list() == [pytest.approx(0 - 0 + 10 - 10 + 1.5 - 2, abs=1e-6)]


def test_1_bounds_of_float32_are_those_of_its_own_rounding() -> None:
    """The Float32 nearest to 0.1 is above 0.1; bounds that were inferred must contain it."""
    tenths = pl.DataFrame({"x": [0.1] * 1000})
    private = protect(tenths).with_columns(y=pl.col("x").clip(0, 0.1).cast(pl.Float32))
    inferred = private._relation.facts.columns["y"].bounds
    assert inferred is not None
    assert inferred[1] >= Fraction(0.10000000149011612) > Fraction(1, 10)
    total = private.agg(pl.col("y").dp_sum()).collect(epsilon=QUIET).item()
    assert total == pytest.approx(1000 * 0.10000000149011612, rel=1e-8)


def test_1_float32_sums_do_not_round_in_float32() -> None:
    """2**24 + 1 is no Float32: a peer's sum of ones stopped growing there."""
    frame = pl.DataFrame({"x": [2.0**24, 1.0, 1.0]}, schema={"x": pl.Float32})
    assert protect(frame).agg(pl.col("x").dp_sum((0, 2**24))).collect(
        epsilon=QUIET
    ).item() == pytest.approx(2**24 + 2, abs=0.5)


def after_steps(private: Any, source: pl.DataFrame) -> pl.DataFrame:
    """The rows of a private frame, by the lowering that releases use."""
    lazy = source.lazy()
    for step, before in private._relation.steps:
        lazy = step.lower(lazy, before, pl, salt=0)
    return lazy.collect(optimizations=OPTIMIZATIONS)


LIMITS: dict[Any, list[int]] = {
    pl.Int8: [-(2**7), 2**7 - 1],
    pl.Int32: [-(2**31), 2**31 - 1],
    pl.UInt8: [0, 2**8 - 1],
    pl.UInt32: [0, 2**32 - 1],
    pl.Date: [-(2**31), 2**31 - 1],
}


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ('pl.col("x") + pl.col("x")', pl.Int32),
        ('pl.col("x") * pl.col("x")', pl.Int32),
        ('pl.col("x").abs()', pl.Int8),
        ('-pl.col("x")', pl.Int8),
        ('pl.col("x") - 1', pl.UInt8),
        ('pl.col("x") * 3', pl.UInt32),
        ('pl.col("x") + pl.duration(days=1)', pl.Date),
        ('pl.col("x") - pl.duration(days=10_000)', pl.Date),
        ('pl.col("x").dt.offset_by("1d")', pl.Date),
        ('pl.col("x").cast(pl.Int64)', pl.Date),
    ],
)
def test_1_values_lie_where_they_are_said_to(text: str, dtype: Any) -> None:
    """Integers wrap in their own width, dates as well; a peer took them for numbers without end."""
    ends = pl.Series("x", LIMITS[dtype], dtype=pl.Int64).cast(
        pl.Int32 if dtype == pl.Date else dtype
    )
    frame = pl.DataFrame([ends.cast(dtype)])
    try:
        private = protect(frame).with_columns(y=written(text))
    except dp.UnsupportedOperation:
        return
    known = private._relation.facts.columns["y"].interval
    for value in after_steps(private, frame)["y"].to_physical().drop_nulls().to_list():
        assert known.contains(value)


def test_1_dates_at_the_ends_are_clamped_like_others() -> None:
    """Days are integers that wrap: the mean of extreme dates stays within its bounds."""
    ends = pl.Series("d", LIMITS[pl.Date], dtype=pl.Int32).cast(pl.Date)
    mean = dp.mean("d", (date(2000, 1, 1), date(2000, 1, 31)))
    for days in (ends, ends[:1], ends[1:]):
        released = protect(pl.DataFrame([days])).agg(mean).collect(epsilon=QUIET).item()
        assert date(2000, 1, 1) <= released <= date(2000, 1, 31)


# ============================================ 2. groups and limits that are not what they were


@pytest.mark.parametrize("how", ["group", "histogram", "argmax", "n_unique"])
def test_2_nothing_depends_on_the_order_of_rows(how: str) -> None:
    """Categories are numbered in order of appearance: their numbers are not public, texts are."""
    rows = ["b"] * 1 + ["a"] * 2 + ["c"] * 5 + [None] * 3
    results = []
    for text in (rows, rows[::-1], sorted(rows, key=str)):
        frame = protect(pl.DataFrame({"c": pl.Series(text, dtype=pl.Categorical)}))
        match how:
            case "group":
                query = frame.group_by("c", keys=["c", "a", "b", None]).agg(dp.count().alias("n"))
                expected: list[Any] = [5, 2, 1, 3]
            case "histogram":
                query = frame.dp_histogram("c", ["c", "b", "zz", "a"])
                expected = [5, 1, 0, 2]
            case "argmax":
                query = frame.dp_argmax("c", candidates=["a", "b", "c"])
                expected = ["c"]
            case _:
                query = frame.dp_n_unique("c")
                expected = [3]
        results.append(query.collect(epsilon=QUIET).to_series(-1).to_list())
        assert results[-1] == expected
    assert results[0] == results[1] == results[2]


def test_2_a_redefined_column_has_its_new_facts() -> None:
    """Facts hold of the column that they were learned of, not of its name."""
    frame = protect(pl.DataFrame({"x": [1, 2, 50], "y": [100, 2000, -7], "g": ["a", "a", "b"]}))
    narrow = frame.filter(pl.col("x").is_between(0, 100))
    swapped = narrow.with_columns(x=pl.col("y"))
    with pytest.raises(dp.UnboundedSensitivity):
        swapped.dp_sum("x")
    doubled = narrow.with_columns(x=pl.col("x") * 2)
    assert doubled.dp_sum("x").plan(epsilon=1).releases[0].sensitivity.l1 == 200
    renamed = narrow.rename({"x": "y", "y": "x"})
    with pytest.raises(dp.UnboundedSensitivity):
        renamed.dp_sum("x")
    assert renamed.dp_sum("y").plan(epsilon=1).releases[0].sensitivity.l1 == 100
    # keys are those of the column as it is now
    grouped = narrow.with_columns(g=pl.lit("b")).group_by("g", keys=["a", "b"])
    assert grouped.agg(dp.count()).collect(epsilon=QUIET)["len"].to_list() == [0, 3]


@pytest.mark.parametrize(
    "keys", [["a"], {"g": ["a"]}, pl.DataFrame({"g": ["a"]}), pl.Series("g", ["a"])]
)
def test_2_keys_cover_every_grouping_column(keys: Any) -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(pl.DataFrame({"g": ["a", "b"], "h": [1, 2]}), dp.Rows())
    with pytest.raises(dp.DPFrameError) as caught:
        frame.group_by("g", "h", keys=keys).agg(dp.count()).collect(epsilon=1)
    assert "h" in str(caught.value)
    assert session.spent.is_zero


def test_2_groups_that_only_the_data_has_are_not_shown() -> None:
    frame = pl.DataFrame({"g": ["a", "b", "b", "secret", None]})
    query = protect(frame).group_by("g", keys=["never", "b"]).agg(dp.count().alias("n"))
    assert query.collect(epsilon=QUIET).rows() == [("never", 0), ("b", 2)]


LIMITED = pytest.mark.skipif(
    not hasattr(dp.PrivateFrame, "limit_groups"), reason="frames have no contribution limits yet"
)


@LIMITED
@pytest.mark.parametrize("k", [1, 2, 3])
def test_2_as_many_groups_are_kept_as_are_paid_for(k: int) -> None:
    """A peer kept k - 1 groups per person and paid for k."""
    frame = pl.DataFrame({"id": [7] * 5, "g": list("abcde")})
    private: Any = dp.Session(epsilon=10**12).protect(frame, "id")
    grouped = (
        private.limit_groups(k, by="g").limit_rows(1, by="g").group_by("g", keys=list("abcde"))
    )
    query = grouped.agg(dp.count().alias("n"))
    (release,) = query.plan(epsilon=1).releases
    assert release.sensitivity.l1 == k
    assert query.collect(epsilon=QUIET)["n"].sum() == k


@LIMITED
def test_2_a_limit_holds_for_the_groups_it_was_set_on() -> None:
    """Redefining the column afterwards spreads a person over other groups."""
    frame = pl.DataFrame({"id": [7] * 5, "g": ["a"] * 5, "h": list("abcde")})
    private: Any = dp.Session(epsilon=10**12).protect(frame, "id")
    limited = private.limit_groups(1, by="g").limit_rows(5, by="g").with_columns(g=pl.col("h"))
    query = limited.group_by("g", keys=list("abcde")).agg(dp.count().alias("n"))
    (release,) = query.plan(epsilon=1).releases
    moved = query.collect(epsilon=QUIET)["n"]
    assert release.sensitivity.l0 >= (moved != 0).sum()
    assert release.sensitivity.l1 >= moved.sum()
    assert release.sensitivity.l2 >= math.sqrt((moved**2).sum())


def test_2_what_an_engine_refuses_is_refused_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A peer took the budget, and then its truncation did not run."""
    session = dp.Session(epsilon=1)
    query = session.protect(pl.DataFrame({"x": [1]}), dp.Rows()).agg(pl.col("x").dp_sum((0, 9)))
    monkeypatch.setattr(GridSum, "row", lambda *_: pl.col("no such column"))
    with pytest.raises(dp.UnsupportedOperation, match="nothing was charged"):
        query.collect(epsilon=1)
    assert session.spent.is_zero
    assert session.history.is_empty()


# ================================================================== 3. nulls, NaN, empty groups

HOLES = pl.DataFrame({"x": [10.0, None, 20.0, math.nan, 30.0, None], "i": [1, None, 2, 3, None, 4]})


def test_3_nulls_and_nan_add_nothing_to_sums() -> None:
    """A peer put the middle of the bounds in their place: this sum would be 210."""
    result = (
        protect(HOLES)
        .agg(
            pl.col("x").dp_sum((0, 100)).alias("sum"),
            pl.col("i").dp_sum((0, 100)).alias("whole"),
            pl.col("x").dp_count().alias("count"),
            pl.col("x").dp_mean((0, 100)).alias("mean"),
            pl.col("i").dp_mean((0, 100)).alias("mean of integers"),
            pl.col("x").dp_std((0, 100)).alias("std"),
            pl.col("x").dp_quantile(0.5, candidates=[10, 20, 30, 50]).alias("median"),
            pl.col("x").dp_n_unique().alias("values"),
        )
        .collect(epsilon=QUIET)
        .row(0)
    )
    assert result == pytest.approx((60, 10, 3, 20, 2.5, 10, 20, 3), abs=1e-4)


@pytest.mark.parametrize(
    "rows", [[math.nan], [math.nan] * 9, [1.0, math.nan], [math.inf, -math.inf]]
)
def test_3_one_nan_does_not_make_the_result_nan(rows: list[float]) -> None:
    """A NaN that comes out exactly says that a NaN was there."""
    for grouped in (False, True):
        frame = protect(pl.DataFrame({"x": rows, "g": ["a"] * len(rows)}))
        asked = frame.group_by("g", keys=["a", "b"]) if grouped else frame
        result = asked.agg(
            pl.col("x").dp_sum((-5, 5)).alias("sum"),
            pl.col("x").dp_mean((-5, 5)).alias("mean"),
            pl.col("x").dp_var((-5, 5)).alias("var"),
            pl.col("x").dp_std((-5, 5)).alias("std"),
            pl.col("x").dp_median((-5, 5)).alias("median"),
            (pl.col("x").dp_sum((-5, 5)) / 2).alias("half"),
        ).collect(epsilon=6)
        for column in result.select(pl.selectors.float()).iter_columns():
            assert not column.is_nan().any()
            assert not column.is_infinite().any()
        assert result["sum"].null_count() == 0


def test_3_means_of_empty_groups_are_null_or_within_the_bounds() -> None:
    """A peer's were -160 for bounds (0, 10)."""
    frame = protect(pl.DataFrame({"g": ["a"], "x": [5.0]}))
    grouped = frame.group_by("g", keys=[f"k{i}" for i in range(300)])
    for epsilon in (0.01, 1, 100):
        result = grouped.agg(
            pl.col("x").dp_mean((0, 10)).alias("mean"),
            pl.col("x").dp_var((0, 10)).alias("var"),
            pl.col("x").dp_std((0, 10)).alias("std"),
        ).collect(epsilon=epsilon)
        assert result["mean"].drop_nulls().is_between(0, 10).all()
        assert (result["var"].drop_nulls() >= 0).all()
        assert (result["std"].drop_nulls() >= 0).all()
    exact = grouped.agg(pl.col("x").dp_mean((0, 10))).collect(epsilon=QUIET)
    assert exact["x"].null_count() == 300


# ========================================================= 6. what was asked is what is computed


def test_6_distinct_values_are_distinct() -> None:
    """A peer dropped the DISTINCT from its SQL."""
    frame = protect(pl.DataFrame({"x": [3, 3, 3, 4, None], "f": [0.0, -0.0, math.nan, 1, 1]}))
    result = frame.agg(pl.col("x").dp_n_unique(), pl.col("f").dp_n_unique(), dp.count()).collect(
        epsilon=QUIET
    )
    assert result.row(0) == (2, 2, 5)


@pytest.mark.parametrize(
    "use",
    [
        lambda f: f.dp_sum("x", (9, 0)),
        lambda f: f.dp_mean("x", (9, 0)),
        lambda f: f.dp_var("x", (9, 0)),
        lambda f: f.dp_median("x", (9, 0)),
        lambda f: f.dp_histogram("x", 3, bounds=(9, 0)),
        lambda f: f.dp_histogram("x", [9, 5, 0]),
        lambda f: f.filter(pl.col("x") > 0).dp_argmax("s", score=pl.col("x").dp_sum((9, 0)),
                                                      candidates=["a"]),
    ],
)  # fmt: skip
def test_6_reversed_bounds_are_refused(use: Any) -> None:
    raw = pl.DataFrame({"x": [1, 2], "s": ["a", "b"]})
    with pytest.raises(dp.InvalidBounds):
        use(protect(raw))


def test_6_reversed_declared_bounds_are_refused() -> None:
    with pytest.raises(dp.InvalidBounds):
        protect(pl.DataFrame({"x": [1, 2]}), bounds={"x": (9, 0)})


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_6_an_unknown_range_is_refused_and_not_guessed(dtype: Any) -> None:
    """A peer took 2**50 for it."""
    frame = protect(pl.LazyFrame(schema={"x": dtype}))
    for text in (
        'pl.col("x").dp_sum()',
        'pl.col("x").dp_mean()',
        'pl.col("x").dp_std()',
        'pl.col("x").dp_median()',
        'pl.col("x").dp_histogram(10)',
        '(pl.col("x") * 2).dp_sum()',
        'pl.col("x").clip(lower_bound=0).dp_sum()',
    ):
        with pytest.raises(dp.UnboundedSensitivity) as caught:
            frame.agg(written(text))
        assert "x" in str(caught.value)
        assert "bounds" in str(caught.value)


def test_6_no_row_is_dropped_without_a_word() -> None:
    """A peer dropped 57 % of rows. Here all count, and a plan says which a table leaves out."""
    n = 5000
    frame = pl.DataFrame({"x": [i % 250 for i in range(n)], "g": [str(i % 7) for i in range(n)]})
    for unit in (dp.Rows(), dp.Rows(contributions=3), CHANGE_ONE):
        private = protect(frame, unit)
        result = private.agg(
            dp.count().alias("n"), pl.col("x").dp_sum((0, 249)).alias("s")
        ).collect(epsilon=QUIET)
        assert result.row(0) == (n, frame["x"].sum())
        grouped = private.group_by("g", keys=[str(i) for i in range(7)]).agg(dp.count())
        assert grouped.collect(epsilon=QUIET)["len"].sum() == n
    histogram = protect(frame).dp_histogram("g", ["0", "1"])
    assert "rows whose value is not listed" in histogram.explain(epsilon=1)
    kept = protect(frame).dp_histogram("g", ["0", "1"], other=True)
    assert kept.collect(epsilon=QUIET)["count"].sum() == n
    clamped = protect(frame).dp_sum("x", (0, 100))
    assert "clamped to 0..100" in clamped.explain(epsilon=1)


# ======================================================================================= 7. errors

SECRET = "Zanzibar-918273"


def failing(error: BaseException) -> pl.LazyFrame:
    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise error
        yield

    return register_io_source(read, schema={"age": pl.Int64})


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"conversion failed for value {SECRET}"),
        pl.exceptions.InvalidOperationError(SECRET),
        pl.exceptions.PanicException(f"this is probably a bug: {SECRET}"),
        MemoryError(SECRET),
    ],
)
def test_7_engines_fail_without_their_text(error: BaseException) -> None:
    query = dp.Session(epsilon=1).protect(failing(error), dp.Rows()).agg(dp.count())
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=1)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "panic" not in str(caught.value).lower()


MISUSES: dict[str, list[str]] = {
    'f.dp_sum("agee", (0, 9))': ["agee", "age"],
    'f.dp_sum("name", (0, 9))': ["name", "String"],
    'f.dp_mean("age")': ["age", "bounds"],
    'f.dp_histogram("name")': ["name"],
    'f.dp_quantile("age", 1.5, (0, 9))': ["age", "1.5"],
    'f.filter(pl.col("age"))': ["age", "Boolean"],
    'f.filter(pl.col("agee") > 3)': ["agee"],
    'f.with_columns(pl.col("age").map_elements(lambda x: x))': ["Python"],
    'f.with_columns(pl.col("age") - pl.col("age").mean())': ["age", "mean"],
    'f.group_by("name").agg(dp.count())': ["name", "keys"],
    'f.group_by("nam", keys=["a"]).agg(dp.count())': ["nam", "name"],
    'f.agg(pl.col("age").sum())': ["age", "sum"],
    "f.dp_count().collect(epsilon=-1)": ["epsilon", "negative"],
    'f.dp_count().collect(epsilon=float("inf"))': ["epsilon", "finite"],
    "f.dp_count().collect(epsilon=0)": ["epsilon", "above 0"],
    "f.dp_count().collect()": ["epsilon", "remains"],
    "f.dp_count().collect(rho=1)": ["rho", "epsilon"],
    "f.dp_count().collect(epsilon=100)": ["100", "1"],
    'f.dp_argmax("name")': ["name"],
    "f.head()": ["head"],
}
"""A wrong use, and what its message must name."""
INTERNAL = (
    *("probably a bug", "panick", "unwrap", "Traceback", "overflow", "dpframe.", "NoneType"),
    *("KeyError", "AssertionError", "replace_strict", "search_sorted", "r0", "__g0", "v0"),
)
"""What no user has written, and so no message speaks of."""


@pytest.mark.parametrize("code", MISUSES)
def test_7_errors_speak_of_what_was_written(code: str) -> None:
    session = dp.Session(epsilon=1)
    data = pl.DataFrame({"age": [918273, 5], "name": [SECRET, "a"]})
    names = {"f": session.protect(data, dp.Rows()), "pl": pl, "dp": dp}
    with pytest.raises(dp.DPFrameError) as caught:
        eval(code, names)
    message = str(caught.value)
    for word in MISUSES[code]:
        assert word in message
    for word in (*INTERNAL, SECRET, "918273"):
        assert word not in message
    assert caught.value.remedy
    assert session.spent.is_zero


UNUSUAL: dict[str, Any] = {
    "object": pl.Object,
    "int128": pl.Int128,
    "binary": pl.Binary,
    "null": pl.Null,
    "decimal": pl.Decimal(38, 10),
    "list": pl.List(pl.List(pl.Struct({"a": pl.Categorical}))),
    "array": pl.Array(pl.Duration("ns"), 2),
    "struct": pl.Struct({"a": pl.Binary, "b": pl.Time}),
    "enum": pl.Enum([]),
    "nanoseconds": pl.Datetime("ns", "Pacific/Auckland"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_7_an_unusual_column_does_not_refuse_the_frame(name: str) -> None:
    frame = pl.DataFrame({"x": [1, 2, 3]}).with_columns(
        pl.Series(name, [None] * 3, dtype=UNUSUAL[name])
    )
    private = protect(frame)
    query = private.filter(pl.col("x") > 1).with_columns(y=pl.col("x") * 2)
    result = query.agg(pl.col("y").dp_sum((0, 10)), dp.count()).collect(epsilon=QUIET)
    assert result.row(0) == (10, 2)
    assert private.columns == ["x", name]
    assert list(private.schema) == ["x", name]


@pytest.mark.parametrize("name", UNUSUAL)
def test_7_an_unusual_column_that_is_used_is_named_or_works(name: str) -> None:
    frame = pl.DataFrame({"x": [1]}).with_columns(pl.Series(name, [None], dtype=UNUSUAL[name]))
    query = protect(frame).agg
    if name in ("int128", "decimal"):
        total = query(pl.col(name).dp_sum((0, 1))).collect(epsilon=QUIET).item()
        assert total == pytest.approx(0, abs=1e-6)
        return
    with pytest.raises(dp.UnsupportedOperation) as caught:
        query(pl.col(name).dp_sum((0, 1)))
    assert f'col("{name}")' in str(caught.value)
