"""What comes out: names, types, order and shape of results, and their values without noise."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from tests.api.exactly import ENOUGH, exactly, protected

PEOPLE = pl.DataFrame(
    {
        "region": ["n", "n", "s", "e", None, "s", "n"],
        "tier": ["low", "high", "low", "low", "high", None, "low"],
        "member": [True, None, False, True, True, False, True],
        "age": [30, 41, None, 25, 70, 33, 25],
        "income": [1.5, float("nan"), 2.5, None, 4.0, -1.0, 0.25],
        "born": [date(2000, 1, i) for i in range(1, 8)],
        "joined": [datetime(2024, 1, 1, i) for i in range(7)],
        "spent": [timedelta(minutes=i) for i in range(7)],
        "woke": [time(i) for i in range(7)],
    },
    schema_overrides={"tier": pl.Enum(["low", "high"])},
)


def people(**declared: Any) -> dp.PrivateFrame:
    return protected(PEOPLE, **declared)


def near(found: Any, value: Any) -> bool:
    """Whether both are the same but for the rounding of values, which is within 0.1 ms here."""
    if isinstance(value, time):
        found, value = (datetime.combine(date(2000, 1, 1), moment) for moment in (found, value))
    if isinstance(value, (datetime, timedelta)):
        return bool(abs(found - value) < timedelta(milliseconds=0.1))
    return bool(found == (pytest.approx(value) if isinstance(value, float) else value))


# -- names and shapes -------------------------------------------------------------------------


def test_outputs_are_named_as_polars_names_them() -> None:
    result = exactly(
        people().agg(
            dp.count(),
            pl.col("age").dp_sum((0, 100)),  # type: ignore[attr-defined]
            (pl.col("income") * 2).dp_count(),  # type: ignore[attr-defined]
            dp.mean("born", (date(2000, 1, 1), date(2001, 1, 1))).alias("mean_born"),
            oldest=dp.quantile("age", 1, (0, 100)),
        )
    )
    assert result.columns == ["len", "age", "income", "mean_born", "oldest"]
    assert result.height == 1


def test_select_with_dp_expressions_is_agg() -> None:
    outputs = [dp.count().alias("n"), dp.sum("age", (0, 100))]
    assert exactly(people().select(*outputs)).equals(exactly(people().agg(*outputs)))
    assert exactly(people().select(n=dp.count())).equals(exactly(people().agg(n=dp.count())))


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (people().dp_count(), "len"),
        (people().dp_count("age"), "age"),
        (people().dp_sum("age", (0, 100)), "age"),
        (people().dp_mean("age", (0, 100)), "age"),
        (people().dp_var("age", (0, 100)), "age"),
        (people().dp_std("age", (0, 100)), "age"),
        (people().dp_median("age", (0, 100)), "age"),
        (people().dp_quantile("age", 0.5, (0, 100)), "age"),
        (people().dp_n_unique("region"), "region"),
        (people().dp_argmax("tier"), "tier"),
    ],
)
def test_shortcuts_are_named_as_their_expressions(query: dp.PrivateQuery, name: str) -> None:
    result = exactly(query)
    assert result.columns == [name]
    assert result.height == 1


def test_several_columns_in_one_expression_give_one_output_each() -> None:
    result = exactly(people().agg(pl.col("age", "income").dp_sum((0, 100))))  # type: ignore[attr-defined]
    assert result.columns == ["age", "income"]
    assert result.row(0) == (224, pytest.approx(8.25, rel=1e-6))


@pytest.mark.parametrize(
    ("expression", "dtype", "value"),
    [
        (dp.count(), pl.Int64, 7),
        (dp.count("income"), pl.Int64, 5),
        (dp.sum("age", (0, 40)), pl.Int64, 30 + 40 + 25 + 40 + 33 + 25),
        (dp.sum("income", (0, 2)), pl.Float64, 1.5 + 2 + 2 + 0 + 0.25),
        (dp.sum("member"), pl.Int64, 4),
        (dp.sum("spent", (timedelta(0), timedelta(hours=1))), pl.Duration, timedelta(minutes=21)),
        (dp.mean("age", (0, 100)), pl.Float64, 224 / 6),
        (dp.mean("born", (date(2000, 1, 1), date(2000, 2, 1))), pl.Date, date(2000, 1, 4)),
        (
            dp.mean("joined", (datetime(2024, 1, 1), datetime(2024, 1, 2))),
            pl.Datetime,
            datetime(2024, 1, 1, 3),
        ),
        (dp.mean("woke", (time(0), time(12))), pl.Time, time(3)),
        (dp.median("age", (0, 100)), pl.Int64, None),
        (dp.median("income", (-1, 4)), pl.Float64, None),
        (dp.quantile("age", 0, candidates=[0, 25, 70]), pl.Int64, None),
        (dp.quantile("age", [0.1, 0.9], (0, 100)), pl.List(pl.Int64), None),
        (dp.median("born", (date(2000, 1, 1), date(2000, 1, 7))), pl.Date, date(2000, 1, 4)),
        (dp.n_unique("age"), pl.Int64, 5),
        (dp.argmax("tier"), pl.Enum(["low", "high"]), "low"),
        (dp.argmax("region", candidates=["s", "n"]), pl.String, "n"),
        (dp.argmax("member"), pl.Boolean, True),
        (dp.count() / 2, pl.Float64, 3.5),
        (dp.count() + dp.count("age"), pl.Int64, 13),
    ],
    ids=str,
)
def test_types_and_values_of_outputs(expression: pl.Expr, dtype: Any, value: Any) -> None:
    column = exactly(people().agg(out=expression))["out"]
    assert column.dtype == dtype
    if value is not None:
        assert near(column.item(), value)


def test_variance_and_deviation_are_those_of_polars() -> None:
    result = exactly(
        people().agg(
            var=dp.var("age", (0, 100)),
            std=dp.std("age", (0, 100)),
            population=dp.var("age", (0, 100), ddof=0),
        )
    )
    expected = PEOPLE.select(
        var=pl.col("age").var(), std=pl.col("age").std(), population=pl.col("age").var(ddof=0)
    )
    assert result.row(0) == pytest.approx(expected.row(0), rel=1e-6)


# -- groups -----------------------------------------------------------------------------------


def test_keys_come_in_their_public_order_with_and_without_rows() -> None:
    grouped = people().group_by("region", keys=["west", "s", None, "n"])
    result = exactly(grouped.agg(dp.count().alias("n"), dp.mean("age", (0, 100)).alias("age")))
    assert result.columns == ["region", "n", "age"]
    assert result["region"].to_list() == ["west", "s", None, "n"]
    assert result["n"].to_list() == [0, 2, 1, 3]
    assert result["age"].to_list() == [None, 33.0, 70.0, 32.0]


def test_keys_without_any_row_at_all_appear() -> None:
    empty = protected(PEOPLE.clear()).group_by("region", keys=["n", "s"])
    result = exactly(empty.agg(dp.count().alias("n"), dp.sum("age", (0, 9)), dp.n_unique("born")))
    assert result.rows() == [("n", 0, 0, 0), ("s", 0, 0, 0)]


def test_the_order_of_rows_does_not_matter() -> None:
    expected = exactly(people().group_by("region", keys=["s", "n"]).dp_count())
    for seed in range(3):
        shuffled = protected(PEOPLE.sample(fraction=1, shuffle=True, seed=seed))
        assert exactly(shuffled.group_by("region", keys=["s", "n"]).dp_count()).equals(expected)


@pytest.mark.parametrize(
    "keys",
    [
        ["s", "n"],
        ("s", "n"),
        pl.Series(["s", "n"]),
        pl.Series("region", ["s", "n"]),
        pl.DataFrame({"region": ["s", "n"]}),
        {"region": ["s", "n"]},
        (k for k in ["s", "n"]),
        {"s": 0, "n": 0}.keys(),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_keys_may_be_given_in_many_forms(keys: Any) -> None:
    result = exactly(people().group_by("region", keys=keys).dp_count())
    assert result.rows() == [("s", 2), ("n", 3)]
    assert result.schema == {"region": pl.String, "len": pl.Int64}


def test_keys_of_several_columns() -> None:
    product = people().group_by("region", "tier", keys={"tier": ["high", "low"], "region": ["n"]})
    assert exactly(product.dp_count()).rows() == [("n", "high", 1), ("n", "low", 2)]
    listed = pl.DataFrame({"tier": ["low", "high"], "region": ["s", None]})
    frame = exactly(people().group_by("region", "tier", keys=listed).dp_count())
    assert frame.rows() == [("s", "low", 1), (None, "high", 1)]
    assert frame.schema["tier"] == pl.Enum(["low", "high"])


def test_types_and_declarations_give_keys() -> None:
    typed = exactly(people().group_by("tier", "member").dp_count())
    assert typed.select("tier", "member").rows() == [
        ("low", False),
        ("low", True),
        ("high", False),
        ("high", True),
    ]
    assert typed["len"].to_list() == [1, 3, 0, 1]
    declared = people(categories={"region": ["e", "w"]}).group_by("region").dp_count()
    assert exactly(declared).rows() == [("e", 1), ("w", 0)]


def test_groups_of_expressions_are_named_as_in_polars() -> None:
    decade = people().group_by(pl.col("age") // 10 * 10, keys=[20, 30, 70])
    assert exactly(decade.dp_count()).rows() == [(20, 2), (30, 2), (70, 1)]
    named = people().group_by(old=pl.col("age") > 35)
    assert exactly(named.dp_count()).rows() == [(False, 4), (True, 2)]
    assert exactly(named.dp_count()).columns == ["old", "len"]


small = st.sampled_from([None, "n", "s", "e"])
rows = st.lists(st.tuples(small, st.integers(-50, 50) | st.none(), st.booleans()), max_size=20)


@given(rows=rows, keys=st.lists(small, min_size=1, unique=True))
def test_grouped_counts_and_sums_are_those_of_polars(
    rows: list[tuple[Any, ...]], keys: list[str | None]
) -> None:
    frame = pl.DataFrame(
        rows, schema={"g": pl.String, "x": pl.Int64, "t": pl.Boolean}, orient="row"
    )
    plain = frame.group_by("g").agg(n=pl.len(), x=pl.col("x").sum(), true=pl.col("t").sum())
    expected = (
        pl.DataFrame({"g": keys}, schema={"g": pl.String})
        .join(plain, on="g", how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.exclude("g").fill_null(0).cast(pl.Int64))
    )
    grouped = protected(frame).group_by("g", keys=keys)
    result = exactly(grouped.agg(n=dp.count(), x=dp.sum("x", (-50, 50)), true=dp.sum("t")))
    assert result.equals(expected)


# -- tables -----------------------------------------------------------------------------------


def test_a_histogram_of_bins_is_a_table_with_edges() -> None:
    result = exactly(people().dp_histogram("age", bins=[0, 25, 33, 70]))
    assert result.schema == {
        "age": pl.String,
        "lower": pl.Int64,
        "upper": pl.Int64,
        "count": pl.Int64,
    }
    assert result.rows() == [
        ("[0, 25)", 0, 25, 0),
        ("[25, 33)", 25, 33, 3),
        ("[33, 70]", 33, 70, 3),
    ]


def test_a_histogram_counts_all_else_in_a_last_row_where_asked() -> None:
    binned = exactly(people().dp_histogram("income", bins=2, bounds=(0, 2), other=True))
    assert binned["income"].to_list() == ["[0, 1)", "[1, 2]", "other"]
    assert binned["count"].to_list() == [1, 1, 5]
    assert binned.row(-1)[1:3] == (None, None)
    listed = exactly(people().dp_histogram("region", ["s", "n"], other=True))
    assert listed.rows() == [("s", 2), ("n", 3), (None, 2)]


def test_a_histogram_of_categories_keeps_their_type_and_order() -> None:
    result = exactly(people().dp_histogram("tier"))
    assert result.schema == {"tier": pl.Enum(["low", "high"]), "count": pl.Int64}
    assert result.rows() == [("low", 4), ("high", 2)]
    assert exactly(people().dp_histogram("member")).rows() == [(False, 2), (True, 4)]
    dates = exactly(people().dp_histogram("born", bins=[date(2000, 1, 1), date(2000, 1, 5)]))
    assert dates.select("lower", "upper", "count").row(0) == (date(2000, 1, 1), date(2000, 1, 5), 5)


def test_a_grouped_histogram_has_a_row_for_each_key_and_category() -> None:
    grouped = people().group_by("region", keys=["n", "w"]).dp_histogram("tier")
    assert exactly(grouped).rows() == [
        ("n", "low", 2),
        ("n", "high", 1),
        ("w", "low", 0),
        ("w", "high", 0),
    ]


def test_a_histogram_beside_other_outputs_is_a_column_of_lists() -> None:
    grouped = people().group_by("region", keys=["n", "w"])
    result = exactly(
        grouped.agg(dp.count(), dp.histogram("tier"), dp.histogram("age", [0, 30, 70]))
    )
    assert result.columns == ["region", "len", "tier", "age"]
    assert result["tier"].to_list()[0] == [
        {"tier": "low", "count": 2},
        {"tier": "high", "count": 1},
    ]
    assert result["age"].to_list()[1] == [
        {"age": "[0, 30)", "lower": 0, "upper": 30, "count": 0},
        {"age": "[30, 70]", "lower": 30, "upper": 70, "count": 0},
    ]


def test_winners_come_alone_or_with_their_rank() -> None:
    assert exactly(people().dp_argmax("region", candidates=["s", "n"])).rows() == [("n",)]
    ranked = exactly(people().dp_argmax("region", candidates=["e", "s", "n"], k=2))
    assert ranked.schema == {"region": pl.String, "rank": pl.Int64}
    assert ranked.rows() == [("n", 1), ("s", 2)]


def test_columns_of_a_table_may_have_any_other_name() -> None:
    ranks = people().rename({"tier": "rank"})
    assert exactly(ranks.dp_histogram("rank")).rows() == [("low", 4), ("high", 2)]
    beside = exactly(ranks.agg(dp.histogram("rank"), dp.count()))
    assert beside["rank"].item().to_list() == [
        {"rank": "low", "count": 4},
        {"rank": "high", "count": 2},
    ]
    with pytest.raises(dp.UnsupportedOperation, match="two columns named 'rank'"):
        ranks.dp_argmax("rank", k=2)


@pytest.mark.parametrize("name", ["lower", "upper", "count"])
def test_a_table_with_two_columns_of_one_name_is_refused(name: str) -> None:
    named = people().rename({"age": name})
    for beside in ([], [dp.count()]):
        with pytest.raises(dp.UnsupportedOperation, match=f"two columns named '{name}'"):
            named.agg(dp.histogram(name, [0, 50, 100]), *beside)


def test_winners_of_groups_and_within_groups() -> None:
    grouped = people().group_by("region", keys=["e", "s", "n"])
    assert exactly(grouped.dp_argmax()).rows() == [("n",)]
    assert exactly(grouped.dp_argmax(k=2)).rows() == [("n", 1), ("s", 2)]
    by_age = grouped.dp_argmax(score=dp.sum("age", (0, 40)))
    assert exactly(by_age).rows() == [("n",)]
    within = exactly(grouped.agg(dp.count().alias("n"), dp.argmax("tier")))
    assert within.rows()[1:] == [("s", 2, "low"), ("n", 3, "low")]
    assert within.columns == ["region", "n", "tier"]
    ranked = exactly(grouped.agg(dp.count().alias("n"), dp.argmax("tier", k=2)))
    assert ranked["tier"].to_list()[2] == ["low", "high"]
    alone = exactly(grouped.dp_argmax("tier", k=2))
    assert alone.columns == ["region", "tier", "rank"]
    assert alone.rows()[-2:] == [("n", "low", 1), ("n", "high", 2)]


def test_the_winner_among_a_frame_of_candidates() -> None:
    hours = pl.DataFrame({"hour": [5, 1, 3]})
    near = -(pl.col("joined").dt.hour() - pl.col("hour")).abs()
    result = exactly(people().agg(dp.argmax(score=near, candidates=hours)))
    assert result.rows() == [(3,)]
    assert result.schema == {"hour": pl.Int64}


# -- post-processing --------------------------------------------------------------------------


def test_a_filter_that_leaves_few_rows_does_not_fail_depending_on_data() -> None:
    for rows in range(1, 33):
        frame = pl.DataFrame({"a": range(rows), "x": [1.0] * rows, "y": [1.0] * rows})
        kept = protected(frame).filter(pl.col("a") > 1).with_columns(pl.col("x", "y") + 1)
        sums = exactly(kept.agg(dp.sum("x", (0, 8)), dp.sum("y", (0, 8))))
        assert sums.row(0) == (2 * max(0, rows - 2),) * 2


def test_arithmetic_of_results_is_exact_post_processing() -> None:
    total, n = dp.sum("age", (0, 100)), dp.count("age")
    outputs = {
        "ratio": total / n,
        "halves": n // 2,
        "rest": n % 4,
        "squares": n**2,
        "minus": -n,
        "mirrored": 10 - n,
        "rounded": (total / n).round(1),
        "root": (n * n).sqrt(),
        "clamped": n.clip(0, 3),
        "size": (-n).abs(),
    }
    query = people().agg(**outputs)
    assert exactly(query).row(0) == pytest.approx((224 / 6, 3, 2, 36, -6, 4, 37.3, 6.0, 3, 6))
    releases = query.plan(epsilon=1).releases
    assert [release.aggregate for release in releases] == ["sum", "count"]


def test_a_part_that_outputs_share_is_drawn_once() -> None:
    session = dp.Session(epsilon=100)
    shared = session.protect(PEOPLE, dp.Rows()).agg(
        n=dp.count("age"),
        again=dp.count("age"),
        twice=dp.count("age") * 2,
        m=dp.mean("age", (0, 99)),
    )
    for _ in range(5):
        n, again, twice, _ = shared.collect(epsilon=0.1).row(0)
        assert n == again == twice / 2


def test_nonnegative_results_are_clamped_after_the_noise() -> None:
    keys = [str(i) for i in range(200)]
    grouped = dp.Session(epsilon=1).protect(PEOPLE, dp.Rows()).group_by("region", keys=keys)
    result = grouped.agg(
        n=dp.count(nonnegative=True), x=dp.sum("income", (-1, 1), nonnegative=True), raw=dp.count()
    ).collect(epsilon="0.1")
    assert result["n"].min() == 0 == result["x"].min()
    assert result["raw"].min() < 0  # type: ignore[operator]


# -- release ----------------------------------------------------------------------------------


def test_a_release_has_frame_plan_and_cost() -> None:
    session = dp.Session(epsilon=1, delta="1e-6")
    query = session.protect(PEOPLE, dp.Rows()).dp_count()
    made = query.release(epsilon="0.25", delta="1e-7")
    assert made.frame.columns == ["len"]
    assert made.cost == made.plan.cost == dp.ApproxDP("0.25", 0)
    assert made.plan.requested == dp.ApproxDP("0.25", "1e-7")
    assert made.plan.fingerprint == session.history["fingerprint"].item()
    assert session.release(query, epsilon="0.25").cost == made.cost
    assert session.spent == dp.ApproxDP("0.5", 0)


def test_each_collect_is_a_new_release_with_fresh_noise() -> None:
    session = dp.Session(epsilon=ENOUGH)
    query = session.protect(PEOPLE, dp.Rows()).dp_sum("income", (-(10**6), 10**6))
    assert len({query.collect(epsilon=1).item() for _ in range(5)}) == 5
    assert session.spent == dp.PureDP(5)


def test_a_candidate_of_a_frame_is_chosen_without_naming_a_column() -> None:
    people = pl.DataFrame({"free_from": [9, 10, 10, 14]})
    slots = pl.DataFrame({"slot": ["early", "late"], "hour": [8, 15]})
    frame = dp.Session(epsilon=10**6).protect(people, dp.Rows())
    fits = (pl.col("free_from") <= pl.col("hour")).cast(pl.Int8)
    chosen = frame.dp_argmax(score=fits, candidates=slots).collect(epsilon=10**4)
    assert chosen.to_dict(as_series=False) == {"slot": ["late"]}
    raw = people.dp_argmax(score=fits, candidates=slots, unit=dp.Rows())  # type: ignore[attr-defined]
    assert dp.Session(epsilon=10**6).collect(raw, epsilon=10**4)["slot"].item() == "late"


def test_categories_that_nobody_listed_are_found() -> None:
    frame = pl.DataFrame({"c": ["a"] * 900 + ["b"] * 600 + ["z"], "x": [0.5] * 1501})
    people = dp.Session(epsilon=10, delta="1e-6").protect(frame, dp.Rows())
    found = people.dp_histogram("c").collect(epsilon=1, delta="1e-7")
    assert found.columns == ["c", "count"]
    assert found["c"].to_list() == ["a", "b"]
    with pytest.raises(dp.MissingKeys, match="delta"):
        people.dp_histogram("c").plan(epsilon=1)
    with pytest.raises(dp.MissingKeys, match="not known"):
        people.dp_histogram("x")
    with pytest.raises(dp.MissingKeys, match="not known"):
        dp.Session(epsilon=1).protect(frame, dp.Rows()).dp_histogram("c")
