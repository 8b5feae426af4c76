"""Attacks: accepted queries that leaked, were charged too little, or failed depending on data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe import pipeline, runner
from dpframe.lower import Execution


def protected(frame: pl.DataFrame, **options: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=10**9).protect(frame, dp.Rows(), **options)


def exact_total(query: Any, frame: pl.DataFrame) -> int:
    """The sum over all entries of the query's one exact table."""
    asked = query._query
    prepared = pipeline.plan(asked, dp.PureDP(1), None)
    (table,) = {t for use in prepared.parts for t in use.part.tables}
    public = Execution.of_public({asked.relation.token: frame.lazy()})
    return int(public.run(asked.relation, asked.groups, [table])[table].values.sum())


TENTH = pl.DataFrame({"x": [Decimal("0.1")]}, schema={"x": pl.Decimal(10, 1)})
MOMENT = pl.DataFrame({"x": [datetime(2020, 1, 1)]}, schema={"x": pl.Datetime("ms")})
MICROS = [datetime(2020, 1, 1) + timedelta(microseconds=i) for i in range(5)]
TENTHS = [Decimal("0.1") + i * Decimal("0.0001") for i in range(5)]


# -- one group or cell, many times ------------------------------------------------------------


@pytest.mark.parametrize(("frame", "values"), [(TENTH, TENTHS), (MOMENT, MICROS)])
def test_a_filter_does_not_repeat_a_group(frame: pl.DataFrame, values: list[Any]) -> None:
    filtered = protected(frame).filter(pl.col("x").is_in(values))
    with pytest.raises(dp.MissingKeys):
        filtered.group_by("x").agg(dp.count())


@pytest.mark.parametrize(("frame", "values"), [(TENTH, TENTHS), (MOMENT, MICROS)])
def test_declared_categories_do_not_repeat_a_group(frame: pl.DataFrame, values: list[Any]) -> None:
    with pytest.raises(dp.InvalidBounds, match="are not values of type"):
        protected(frame, categories={"x": values})
    known = protected(frame, categories={"x": values[:1]}).group_by("x").agg(dp.count())
    assert known.collect(epsilon=1)["x"].to_list() == frame["x"].to_list()


FLOAT = pl.DataFrame({"x": [2.0**53]})
FLOAT32 = pl.DataFrame({"x": [0.1]}, schema={"x": pl.Float32})
CANDIDATES = [
    (TENTH, TENTHS),
    (MOMENT, MICROS),
    (FLOAT, [2**53, 2**53 + 1]),
    (FLOAT32, [0.1, 0.1 + 1e-12]),
]


@pytest.mark.parametrize(("frame", "values"), CANDIDATES)
def test_one_row_is_in_one_cell(frame: pl.DataFrame, values: list[Any]) -> None:
    """Candidates that one value of the column would be several of are refused."""
    with pytest.raises(dp.InvalidBounds, match=r"are not values of type|is listed twice"):
        protected(frame).dp_argmax("x", candidates=values)
    query = protected(frame).dp_argmax("x", candidates=values[:1])
    assert exact_total(query, frame) == 1


@pytest.mark.parametrize(("frame", "values"), CANDIDATES)
def test_candidates_do_not_fail_depending_on_data(frame: pl.DataFrame, values: list[Any]) -> None:
    for times in (0, 1, 2):
        rows = pl.concat([frame] * times) if times else frame.clear()
        query = protected(rows).dp_argmax("x", candidates=values[:1])
        assert query.collect(epsilon="1e-9").height == 1


# -- rows that depend on other rows -----------------------------------------------------------

# Polars splits frames among threads, so a row may be alone in its part however many rows there are;
# and computes with operands of one row as it does with scalars.
ZEROS = {
    "x + 0": (pl.col("x") + 0) ** -1,
    "sum_horizontal": pl.sum_horizontal("x", 0) ** -1,
    "as text": ((pl.col("x") + 0.0).cast(pl.String) == "-0.0").cast(pl.Int8),
}
NINTH = 58871586.708267905
"""7.3 to the ninth power as Polars computes it for a frame of one row."""
POWERS = {
    "constant base": (7.3 ** pl.col("y"), NINTH),
    "constant power": (pl.col("x") ** pl.when(pl.col("x") > 0).then(9.0).otherwise(9.0), NINTH),
    "columns": (pl.col("x").pow(pl.col("y")), NINTH),
}


def sums_per_row(frame: pl.DataFrame, expression: pl.Expr) -> set[float]:
    """The sum divided by the rows, for frames in which all rows are the same row."""
    found = set()
    for n in range(1, 8):
        query = protected(pl.concat([frame] * n)).agg(expression.dp_sum((-1, 1)).alias("s"))
        found.add(round(float(query.collect(epsilon=10**7).item()) / n, 3))
    return found


@pytest.mark.parametrize("name", ZEROS)
def test_signed_zeros_do_not_depend_on_other_rows(name: str) -> None:
    assert len(sums_per_row(pl.DataFrame({"x": [-0.0]}), ZEROS[name])) == 1


@pytest.mark.parametrize("name", POWERS)
def test_powers_do_not_depend_on_other_rows(name: str) -> None:
    raised, edge = POWERS[name]
    step = pl.when(raised >= edge).then(1.0).otherwise(-1.0)
    assert len(sums_per_row(pl.DataFrame({"x": [7.3], "y": [9.0]}), step)) == 1


# -- failures that depend on data -------------------------------------------------------------

GROWING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import polars as pl, dpframe as dp
frame = pl.DataFrame({"name": ["Alice" if sys.argv[1] == "1" else "", ""]})
private = dp.Session(epsilon=1).protect(frame, dp.Rows())
try:
    for _ in range(31):
        private = private.with_columns(name=pl.concat_str("name", "name"))
    query = private.dp_sum(pl.col("name").str.len_bytes(), (0, 10))
except dp.DPFrameError:
    sys.exit(0)
query.collect(epsilon="1e-9")
"""


def test_one_row_does_not_exhaust_memory() -> None:
    codes = [
        subprocess.run([sys.executable, "-c", GROWING, secret], capture_output=True).returncode
        for secret in "01"
    ]
    assert codes == [0, 0]


def panicking() -> pl.LazyFrame:
    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise pl.exceptions.PanicException("Zanzibar-918273")
        yield

    return register_io_source(read, schema={"x": pl.Int64})


def test_the_text_of_a_panic_is_withheld() -> None:
    query = dp.Session(epsilon=1).protect(panicking(), dp.Rows()).dp_count()
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=1)
    assert "Zanzibar" not in str(caught.value)


def test_a_histogram_of_a_constant_does_not_fail_depending_on_data() -> None:
    for n in range(8):
        frame = pl.DataFrame(
            {"i": [1] * n, "f": [1.0] * n}, schema={"i": pl.Int64, "f": pl.Float64}
        )
        query = protected(frame).filter(pl.col("i") > 0)
        found = query.dp_histogram(pl.lit(1), 5, bounds=(-4, 2)).collect(epsilon=10**6)
        assert found["count"].to_list() == [0, 0, 0, 0, n]


# -- statistics taken for each other ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "one", "other"),
    [
        (1.0, (pl.col("x") * 0.0) ** -1, (pl.col("x") * -0.0) ** -1),
        (2**53 + 1, pl.col("x").is_in([2**53]), pl.col("x").is_in([2.0**53])),
    ],
)
def test_unlike_expressions_do_not_share_a_part(value: float, one: pl.Expr, other: pl.Expr) -> None:
    query = protected(pl.DataFrame({"x": [value] * 3})).agg(
        one.dp_sum((-1, 1)).alias("one"), other.dp_sum((-1, 1)).alias("other")
    )
    assert len(query.plan(epsilon=1).releases) == 2


def fingerprints(frame: dp.PrivateFrame) -> list[tuple[str, str]]:
    """Pairs of plans of unlike queries."""
    x, g = pl.col("x"), pl.col("g")
    shared = list(range(8))
    pairs = [
        (
            frame.filter(x.is_in([*shared, *range(20, 30)])).dp_count(),
            frame.filter(x.is_in([*shared, *range(50, 60)])).dp_count(),
        ),
        (
            frame.agg(g.dp_histogram([f"cat {i}" for i in range(40)])),
            frame.agg(g.dp_histogram([f"dog {i}" for i in range(40)])),
        ),
        (
            frame.filter(x == pl.lit(1, dtype=pl.Int8)).dp_count(),
            frame.filter(x == pl.lit(1, dtype=pl.Int64)).dp_count(),
        ),
        tuple(
            frame.dp_argmax(
                "g",
                score=x * pl.col("w"),
                candidates=pl.DataFrame({"c": ["u", "v"], "w": weights}),
                bounds=(0, 9),
            )
            for weights in ([1, 2], [2, 1])
        ),
    ]
    return [tuple(q.plan(epsilon=1).fingerprint for q in pair) for pair in pairs]  # type: ignore[misc]


@pytest.mark.parametrize("pair", range(4))
def test_unlike_plans_have_unlike_fingerprints(pair: int) -> None:
    one, other = fingerprints(protected(pl.DataFrame({"x": [1], "g": ["a"]})))[pair]
    assert one != other


def test_accuracy_is_that_of_the_output_asked_for() -> None:
    x = pl.col("x")
    plan = (
        protected(pl.DataFrame({"x": [1]}))
        .agg(
            x.dp_sum((0, 1)).alias("a"),
            x.dp_sum((0, 1), mechanism="discrete_laplace", weight=100).alias("b"),
        )
        .plan(epsilon=1)
    )
    assert [plan.accuracy(r.name) for r in plan.releases] == [r.accuracy() for r in plan.releases]


# -- budget spent in vain, and arguments lost -------------------------------------------------


@pytest.mark.parametrize("name", ["count", "lower", "upper", "rank"])
def test_key_columns_that_a_table_has_too_are_refused_before_the_charge(name: str) -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(pl.DataFrame({name: ["a"], "x": [1]}), dp.Rows())
    grouped = frame.group_by(name, keys=["a", "b"])
    with pytest.raises(dp.DPFrameError):
        (
            grouped.dp_argmax("x", candidates=[1, 2], k=2)
            if name == "rank"
            else grouped.dp_histogram("x", [0, 1, 2])
        ).collect(epsilon=1)
    assert session.spent.is_zero


def test_bounds_beyond_the_type_do_not_cost_budget() -> None:
    session = dp.Session(epsilon=10**9)
    frame = pl.DataFrame({"i": [1]})
    private = session.protect(frame, dp.Rows())
    with pytest.raises(dp.InvalidBounds, match="no value of type Int64"):
        private.dp_quantile("i", 0.5, (2**70, 2**71)).collect(epsilon=1)
    assert session.spent.is_zero


def test_generators_of_expressions_are_read_once() -> None:
    frame = protected(pl.DataFrame({"x": [1]}))
    assert frame.with_columns((pl.col("x") + i).alias(f"y{i}") for i in range(2)).columns == [
        "x",
        "y0",
        "y1",
    ]


# -- sorted columns, long texts, late failures and names ---------------------------------------


SPLIT = {
    "head": ("name", pl.col("name").str.head(-1), ""),
    "time": ("n", pl.col("n").cast(pl.Time), None),
}
"""Groups that a sorted frame keeps apart; Polars takes the result for sorted, which it is not."""


@pytest.mark.parametrize("name", SPLIT)
def test_a_sorted_frame_does_not_split_groups(name: str) -> None:
    by, key, wanted = SPLIT[name]
    names = ["a"] * 9 + ["ab"] + ["b"] * 3
    frame = pl.DataFrame({"name": names, "n": [-1] * 9 + [5] + [2**62] * 3}).sort(by)
    query = protected(frame).group_by(key.alias("key"), keys=[wanted]).agg(dp.count())
    with pl.Config(engine_affinity="in-memory"):  # what Polars 1 uses unasked
        assert query.collect(epsilon=10**6)["len"].item() == 12


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import polars as pl, dpframe as dp
frame = pl.DataFrame({"name": ["Alice" if sys.argv[1] == "1" else "", ""]})
private = dp.Session(epsilon=1).protect(frame, dp.Rows())
name = pl.col("name")
many = "\\N{GRINNING FACE}" * 256
try:
    if sys.argv[2] == "plus":
        for _ in range(31):
            private = private.with_columns(name=name + name)
        longest = name
    else:
        for _ in range(2):
            private = private.with_columns(name=name.str.replace_all(".", many))
        longest = pl.concat_str(*["name"] * 19_000)
    query = private.dp_sum(longest.str.len_bytes(), (0, 10))
except dp.DPFrameError:
    sys.exit(0)
query.collect(epsilon="1e-9")
"""


@pytest.mark.parametrize("way", ["plus", "many operands"])
def test_one_row_does_not_exhaust_memory_however_texts_are_joined(way: str) -> None:
    codes = [
        subprocess.run([sys.executable, "-c", LIMITED, secret, way], capture_output=True).returncode
        for secret in "01"
    ]
    assert codes == [0, 0]


def exact_values_in(error: BaseException) -> list[str]:
    """The frames of a traceback that show exact tables to whoever prints its variables."""
    found, trace = [], error.__traceback__
    while trace is not None:
        shown = repr(list(trace.tb_frame.f_locals.values()))
        if "CellCounts(" in shown:
            found.append(trace.tb_frame.f_code.co_qualname)
        trace = trace.tb_next
    return found


LATE: dict[str, Any] = {
    "power": lambda p: p.agg((2 ** -dp.count()).alias("r")),
    "timedelta": lambda p: p.dp_median(
        pl.col("x").clip(0, 2**63 - 1).cast(pl.Duration("ms")).alias("r")
    ),
}
"""Queries whose release failed once, after planning had accepted them."""


@pytest.mark.parametrize("name", LATE)
def test_what_fails_after_the_charge_hides_exact_tables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have results now, so the release is made to fail instead."""

    def broken(*_: object, **__: object) -> None:
        raise OverflowError("too large")

    session = dp.Session(epsilon=10**9)
    private = session.protect(pl.DataFrame({"x": [2**62] * 9}), dp.Rows())
    query = LATE[name](private)
    assert query.collect(epsilon=10**6).height == 1
    monkeypatch.setattr(runner, "assemble", broken)
    with pytest.raises(dp.DPFrameError) as caught:
        query.collect(epsilon=10**6)
    assert exact_values_in(caught.value) == []


ENORMOUS = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import polars as pl, dpframe as dp
session = dp.Session(epsilon=1)
private = session.protect(pl.DataFrame({"x": [1]}), dp.Rows())
try:
    histogram = pl.col("x").cast(pl.String).dp_histogram(list(map(str, range(20_000))))
    query = private.group_by("x", keys=range(100_000)).agg(histogram.alias("h"))
    query.collect(epsilon=1)
except dp.DPFrameError:
    assert session.spent.is_zero
"""


def test_results_that_do_not_fit_in_memory_are_refused_before_the_charge() -> None:
    assert subprocess.run([sys.executable, "-c", ENORMOUS], capture_output=True).returncode == 0


def test_a_name_that_is_a_pattern_is_refused() -> None:
    frame = protected(pl.DataFrame({"x": [1] * 3, "y": [10] * 3}))
    with pytest.raises(dp.UnsupportedOperation, match="reads it as a pattern"):
        frame.rename({"x": "^y|x$"})


NOTHING = pl.col("^nothing$")
RAW_ERRORS: dict[str, Any] = {
    "aggregate of none": lambda p: p.agg(NOTHING.dp_sum((0, 1))),
    "column of none": lambda p: p.with_columns(a=NOTHING),
    "filled by none": lambda p: p.fill_null(NOTHING),
    "group by several": lambda p: p.group_by(k=pl.selectors.numeric(), keys=[1]),
}


@pytest.mark.parametrize("name", RAW_ERRORS)
def test_refusals_are_errors_of_dpframe(name: str) -> None:
    frame = protected(pl.DataFrame({"x": [1], "y": [1]}))
    with pytest.raises(dp.DPFrameError):
        RAW_ERRORS[name](frame)


@pytest.mark.parametrize("dtype", [pl.Datetime("ms"), pl.Duration("ms"), pl.Datetime("ns")])
def test_moments_beyond_the_calendar_of_python_are_planned_and_released(dtype: Any) -> None:
    moment = pl.col("x").clip(0, 2**63 - 1).cast(dtype)
    frame = protected(pl.DataFrame({"x": [2**62] * 9}))
    query = frame.agg(a=moment.dp_median(), b=moment.dp_quantile([0.1, 0.9]))
    assert "milliseconds" in query.explain(epsilon=1, details=True) or dtype == pl.Datetime("ns")
    assert query.collect(epsilon=1).height == 1


def test_a_plan_does_not_change_with_the_frame_of_candidates() -> None:
    candidates = pl.DataFrame({"c": ["u", "v"], "w": [1, 5]})
    frame = protected(pl.DataFrame({"x": [1]}))
    choice = dp.argmax(score=pl.col("x") * pl.col("w"), candidates=candidates, bounds=(0, 9))
    plan = frame.agg(choice).plan(epsilon=1)
    before = plan.fingerprint
    candidates[1, "w"] = -5
    assert plan.fingerprint == before


# -- what an engine takes for equal -----------------------------------------------------------

WIDE = [1, 2**64 + 1, 2**65 + 1, -1, 2**64 - 1, 0]
WIDE_TYPES = {"Int128": pl.Int128(), "Decimal": pl.Decimal(38, 0)}


def wide(name: str, values: list[int]) -> pl.Series:
    given = [Decimal(v) if name == "Decimal" else v for v in values]
    return pl.Series("k", given, dtype=WIDE_TYPES[name])


@pytest.mark.parametrize("name", WIDE_TYPES)
def test_wide_numbers_are_told_apart_as_keys(name: str) -> None:
    """Polars 1.32 groups by the last 64 bits, under the first value that it meets."""
    frame = wide(name, [*WIDE, *WIDE[:1]]).to_frame()
    keys = wide(name, WIDE)
    for shown in (frame, frame.reverse()):
        query = protected(shown).group_by("k", keys=keys).agg(dp.count().alias("n"))
        assert query.collect(epsilon=10**6)["n"].to_list() == [2, 1, 1, 1, 1, 1]
    assert (
        protected(frame)
        .group_by("k", keys=keys.to_list())
        .dp_count()
        .collect(epsilon=10**6)
        .to_series()
        .equals(keys)
    )
    declared = protected(frame, categories={"k": keys.to_list()}).group_by("k").dp_count()
    assert declared.collect(epsilon=10**6)["len"].to_list() == [2, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("name", WIDE_TYPES)
def test_wide_numbers_are_told_apart_as_identifiers(name: str) -> None:
    """As one individual they would share one limit, and have one total."""
    frame = pl.DataFrame({"k": wide(name, [v for v in WIDE for _ in range(4)]), "x": [1] * 24})
    private = dp.Session(epsilon=10**9).protect(frame, "k")
    assert private.limit_rows(2).dp_count().collect(epsilon=10**6).item() == 12
    assert private.limit_rows(9).limit_rows(1, by="x").dp_count().collect(epsilon=10**6).item() == 6
    assert private.dp_sum("x", (0, 3), per="unit").collect(epsilon=10**6).item() == 18
    assert private.dp_n_unique("k").collect(epsilon=10**6).item() == 6
    by_group = (
        private.limit_groups(1, by="k")
        .group_by("x", keys=[1])
        .agg(pl.col("k").dp_n_unique().alias("n"))
    )
    assert by_group.collect(epsilon=10**6)["n"].item() == 6


# -- public frames that say what is not so ----------------------------------------------------


def marked(**columns: list[Any]) -> pl.DataFrame:
    """Marked as sorted, whether it is or not."""
    return pl.DataFrame(columns).with_columns(pl.all().set_sorted())


def test_fan_out_is_counted_although_keys_are_marked_as_sorted() -> None:
    public = marked(k=[1, 2, 1, 2, 1], v=[5, 1, 9, 3, 7])
    joined = protected(pl.DataFrame({"k": [1]})).join(public, on="k")
    query = joined.dp_count()
    assert exact_total(query, pl.DataFrame({"k": [1]})) == 3
    assert query.plan(epsilon=1).releases[0].sensitivity.l1 == 3
    for least, rows in ((0, 3), (4, 3), (6, 2), (8, 1), (9, 0)):
        filtered = joined.filter(pl.col("v") > least).dp_count()
        assert exact_total(filtered, pl.DataFrame({"k": [1]})) == rows


@pytest.mark.parametrize("values", [["a", "b", "a"], [1, 2, 1], [2**40, 1, 2**40]])
def test_keys_are_released_once_although_marked_as_sorted(values: list[Any]) -> None:
    keys = marked(k=values)
    frame = protected(pl.DataFrame({"k": values}))
    for given in (keys, keys["k"]):
        result = frame.group_by("k", keys=given).agg(dp.count()).collect(epsilon=10**6)
        assert result["k"].to_list() == values[:2]
        assert result["len"].to_list() == [2, 1]


def test_a_public_frame_that_changes_later_is_not_joined() -> None:
    public = pl.DataFrame({"k": [1], "v": [1]})
    query = protected(pl.DataFrame({"k": [1]})).join(public, on="k").dp_count()
    before = query.plan(epsilon=1).fingerprint
    public.extend(pl.DataFrame({"k": [1, 1], "v": [1, 2]}))
    assert exact_total(query, pl.DataFrame({"k": [1]})) == 1
    assert query.plan(epsilon=1).fingerprint == before


def test_what_json_writes_as_null_is_told_apart() -> None:
    """Plans that are approved are known by their fingerprint."""
    values = [float("nan"), None, float("inf"), -float("inf"), 0.0]
    frame = protected(pl.DataFrame({"k": [1]}))
    for dtype in (pl.Float64, pl.Float32, pl.List(pl.Float64), pl.Struct({"a": pl.Float64})):
        cells = [[v] if dtype == pl.List else {"a": v} if dtype == pl.Struct else v for v in values]
        public = [pl.DataFrame({"k": [1], "v": pl.Series([c], dtype=dtype)}) for c in cells]
        found = {
            frame.join(p, on="k").dp_count().plan(epsilon=1).fingerprint for p in (*public, *public)
        }
        assert len(found) == len(values)


def test_key_columns_with_names_of_patterns_are_refused() -> None:
    public = pl.DataFrame({"k": [1, 1], "^k$": [1, 2]})
    with pytest.raises(dp.UnsupportedOperation, match="pattern"):
        protected(pl.DataFrame({"k": [1]})).join(public, left_on="k", right_on="^k$", how="semi")


@pytest.mark.parametrize("name", ["len", "rows", "rows_"])
def test_keys_may_be_named_like_what_counts_them(name: str) -> None:
    public = pl.DataFrame({name: [1, 1, 2], "w": [1, 2, 3]})
    people = dp.Session(epsilon=10**15).protect(pl.DataFrame({name: [1, 2]}), dp.Rows())
    query = people.join(public, on=name).dp_count()
    assert query.collect(epsilon=10**15).item() == 3


def test_columns_may_be_named_like_those_that_joins_add() -> None:
    names = ["key0_", "key0__", "key1_", "hash", "rank", "unit", "key0", "g0", "v0", "k"]
    frame = pl.DataFrame({"id": [1, 1, 2], **{name: [1, 2, 1] for name in names}})
    public = pl.DataFrame({name: [1, 2, 2] for name in names})
    session = dp.Session(epsilon=10**9)
    people = session.protect(frame, "id").limit_rows(2)
    for on in (["key0_"], ["key0_", "key1_", "hash"], ["unit", "rank"], names):
        joined = people.join(public, on=on, suffix="_new").limit_groups(2, by=on).limit_rows(9)
        assert joined.dp_count().collect(epsilon=10**6).item() == 4
    other = session.protect(frame.rename({"id": "key0_", "key0_": "id"}), "key0_")
    both = people.join(other.limit_rows(2), suffix="_other")
    assert both.dp_count().collect(epsilon=10**6).item() == 5


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$"])
def test_groups_of_any_name_are_found(name: str) -> None:
    """Once the release failed after the charge."""
    session = dp.Session(epsilon=10**9, delta=0.1)
    frame = session.protect(pl.DataFrame({"g": ["b"] * 99 + ["a"] * 99}), dp.Rows())
    query = frame.group_by(pl.col("g").alias(name)).agg(dp.count())
    result = query.collect(epsilon=10**6, delta=1e-6)
    assert result.to_dict(as_series=False) == {name: ["a", "b"], "len": [99, 99]}


def test_the_best_of_groups_that_nobody_listed_is_refused() -> None:
    session = dp.Session(epsilon=1, delta=0.1)
    frame = session.protect(pl.DataFrame({"g": ["a"]}), dp.Rows())
    with pytest.raises(dp.MissingKeys, match="public keys, and none are listed") as refusal:
        frame.group_by("g").dp_argmax()
    assert "keys=[...]" in str(refusal.value)


# -- rows of lists ------------------------------------------------------------------------------


def test_an_empty_list_is_one_row_on_every_engine() -> None:
    """Polars dropped it or not, depending on its version."""
    frame = pl.DataFrame({"l": [[1, 2, 3], [], None, [None]]})
    exploded = protected(frame).explode("l", max_length=2)
    assert exact_total(exploded.dp_count(), frame) == 5
    assert exact_total(exploded.dp_count("l"), frame) == 2


def test_fields_of_both_frames_can_be_taken() -> None:
    """Facts about fields that differ between two frames once made it fail inside."""
    frame = pl.DataFrame({"x": [5]})
    whole = protected(frame)
    one = whole.with_columns(s=pl.struct(pl.col("x").clip(0, 3)))
    both = one.concat(whole.with_columns(s=pl.struct("x")))
    taken = both.with_columns(y=pl.col("s").struct.field("x"))
    assert exact_total(taken.dp_sum("y", (0, 9)), frame) == 8


# -- plans that hide something -------------------------------------------------------------------


def test_a_plan_tells_what_other_frames_rest_on() -> None:
    session = dp.Session(epsilon=1)
    frame = pl.LazyFrame(schema={"x": pl.Int64})
    one = session.protect(frame, dp.Rows(), name="one")
    two = session.protect(frame, dp.Rows(contributions=7), name="two", bounds={"x": (0, 9)})
    query = one.with_columns(pl.col("x").clip(0, 9)).concat(two).dp_sum("x")
    told = query.explain(epsilon=1)
    assert "adding or removing up to 7 rows of one individual, in two" in told
    assert "x of two is in [0, 9]" in told
    details = query.explain(epsilon=1, details=True)
    assert "that one individual owns at most 7 rows of two is promised" in details
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"id": pl.Int64}), "id")
    other = people.limit_rows(3)
    query = people.limit_rows(2).concat(other).dp_count()
    assert "limit_rows(3) drop" in query.explain(epsilon=1, details=True)


# -- sensitivities that were thought to be nothing --------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("contributions", [1, 3])
def test_the_best_group_is_chosen_with_noise(adjacency: Any, contributions: int) -> None:
    """Every row is kept, and yet a group has it or has it not: the range of scores was 0."""
    frame = pl.DataFrame({"g": ["a", "b"], "x": [1, 2]})
    unit = dp.Rows(adjacency, contributions)
    grouped = dp.Session(epsilon=10).protect(frame, unit).group_by("g", keys=["a", "b"])
    both_ways = 1 if adjacency == "add-remove" else 2
    for query, b in (
        (grouped.dp_argmax(), 1),
        (grouped.dp_argmax(score=pl.col("x").dp_sum((-3, 7))), 7),
    ):
        (release,) = query.plan(epsilon=1).releases
        assert release.mechanism == "permute_and_flip"
        most = 10 if b == 7 and adjacency == "add-remove" else b
        assert b * contributions <= release.scale <= both_ways * most * contributions
        assert query.collect(epsilon=1).height == 1


def test_a_column_without_a_name_identifies_nobody() -> None:
    query = protected(pl.DataFrame({"": [1, 1, 2]})).agg(pl.col("").dp_n_unique().alias("n"))
    assert query.collect(epsilon=10**6).item() == 2
