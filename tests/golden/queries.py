"""Queries whose plans are kept as text, over a frame that cannot be read.

The plan of `name` is in `plans/<name>.txt`; ``python -m tests.golden.update`` rewrites it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

import dpframe as dp

PLANS = Path(__file__).parent / "plans"
FINGERPRINTS = Path(__file__).parent / "fingerprints.txt"
SECRET = "Zanzibar-918273"
"""Stands for data; may never stand in a plan."""

SCHEMA: Mapping[str, Any] = {
    "age": pl.Int64,
    "sex": pl.Enum(["female", "male", "other"]),
    "smoker": pl.Boolean,
    "region": pl.String,
    "ward": pl.String,
    "diagnosis": pl.String,
    "admitted": pl.Datetime("us"),
    "discharged": pl.Datetime("us"),
    "born": pl.Date,
    "bill": pl.Float64,
    "paid": pl.Float64,
    "visits": pl.UInt8,
    "travel": pl.Duration("us"),
}


class UnreadableError(Exception):
    """The source was read although it must not be."""


def unreadable() -> pl.LazyFrame:
    """A frame whose schema is known and whose rows cannot be read."""

    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise UnreadableError(SECRET)
        yield

    return register_io_source(read, schema=dict(SCHEMA))


@dataclass(frozen=True)
class Golden:
    """One query and how it is asked.

    Parameters
    ----------
    name
        The file of its plan.
    build
        From the private frame to the query.
    session, spend
        The budget and the part of it that is asked for.
    unit, declared
        Whom to protect, and further arguments of `protect`.
    """

    name: str
    build: Callable[[dp.PrivateFrame], dp.PrivateQuery]
    session: Mapping[str, Any]
    spend: Mapping[str, Any]
    unit: dp.Rows = field(default_factory=dp.Rows)
    declared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return PLANS / f"{self.name}.txt"

    def plan(self) -> dp.Plan:
        """The plan, made without data."""
        session = dp.Session(**self.session)
        patients = session.protect(unreadable(), self.unit, name="patients", **self.declared)
        return self.build(patients).plan(**self.spend)


REGIONS = ["north", "east", "south", "west"]
PURE = {"epsilon": 1}
APPROX = {"epsilon": 2, "delta": "1e-6"}
ZERO = {"rho": "0.5"}


def filtered_count(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.filter(pl.col("age") >= 65, pl.col("smoker")).dp_count()


def grouped(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("region", keys=REGIONS).agg(
        dp.count().alias("n"),
        pl.col("age").dp_mean((0, 110)).alias("mean_age"),
        pl.col("bill").dp_sum((0, 50_000)).alias("bills"),
    )


def enum_and_boolean_keys(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("sex", "smoker").agg(pl.col("visits").dp_sum())


def keys_by_column(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    decade = (pl.col("age") // 10 * 10).alias("decade")
    keys = {"region": REGIONS, "decade": list(range(0, 100, 10))}
    return patients.group_by("region", decade, keys=keys).dp_count()


def keys_frame(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    wards = pl.DataFrame({"region": ["north", "north", "south"], "ward": ["A", "B", None]})
    return patients.group_by("region", "ward", keys=wards).dp_mean("bill", (0, 50_000))


def histogram_of_bins(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.dp_histogram("age", bins=[0, 18, 40, 65, 110])


def distribution(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("sex").dp_cdf("age", bins=range(110))


def distribution_and_counts(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("sex").agg(
        dp.count().alias("n"),
        dp.count("age").alias("with_age"),
        dp.cdf("age", bins=range(0, 110, 5)).alias("ages"),
    )


def sets_of_their_own(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by(dp.rollup("sex", "smoker")).agg(
        dp.count().alias("n"),
        dp.median("age", (0, 110)).alias("median_age"),
        dp.n_unique("diagnosis").alias("diagnoses"),
    )


def distribution_of_bins(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.dp_cdf("bill", 20, bounds=(0, 50_000), nonnegative=True)


def histogram_of_categories(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("sex").dp_histogram("diagnosis", other=True, nonnegative=True)


def quantiles(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.agg(
        dp.median("age", (0, 110)).alias("median_age"),
        dp.quantile("bill", [0.25, 0.75, 0.95], (0, 50_000), mechanism="exponential"),
    )


def quantiles_together(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    bill = pl.col("bill")
    return patients.group_by("region", keys=REGIONS).agg(
        dp.quantile("age", [number / 10 for number in range(1, 10)], (0, 110)),
        low=bill.dp_quantile("0.25", (0, 50_000)),  # type: ignore[attr-defined]
        middle=bill.dp_median((0, 50_000)),  # type: ignore[attr-defined]
        high=bill.dp_quantile("0.75", (0, 50_000)),  # type: ignore[attr-defined]
    )


def quantiles_at_once(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    sixths = [f"{number}/6" for number in range(1, 6)]
    bill = pl.col("bill")
    return patients.agg(
        dp.quantile("age", sixths, (0, 110)),
        low=bill.dp_quantile("1/3", (0, 50_000)),  # type: ignore[attr-defined]
        high=bill.dp_quantile("2/3", (0, 50_000)),  # type: ignore[attr-defined]
    )


def quantiles_counted(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    quartiles = ["0.25", "0.5", "0.75"]
    return patients.agg(dp.quantile("visits", quartiles, candidates=[0, 1, 2, 5, 10]), dp.count())


def quantiles_by_runs(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.agg(dp.quantile("age", [n / 10 for n in range(1, 10)], (0, 110)), dp.count())


def quantile_of_candidates(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    steps = [0, 100, 250, 500, 1000, 2500, 5000, 10_000]
    return patients.group_by("region", keys=REGIONS).dp_quantile("bill", 0.9, candidates=steps)


def commonest_category(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.filter(pl.col("age") < 18).dp_argmax("diagnosis")


def three_dearest_groups(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    dearest = patients.group_by("region", keys=[*REGIONS, None])
    return dearest.dp_argmax(score=pl.col("bill").dp_sum((0, 10_000)), k=3)


def three_longest_stays(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    days = (pl.col("discharged") - pl.col("admitted")).dt.total_days().clip(0, 30)
    return patients.dp_argmax("ward", score=days, candidates=["A", "B", "C", "D"], k=3)


def best_candidate(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    opening = pl.DataFrame({"hour": [7, 8, 9, 10], "cost": [0.5, 0.25, 0.0, 0.0]})
    late = (pl.col("admitted").dt.hour() - pl.col("hour")).abs().clip(0, 6)
    return patients.agg(dp.argmax(score=-late - pl.col("cost"), candidates=opening))


def spread(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("smoker").agg(
        dp.mean("bill", (0, 50_000)).alias("mean"),
        dp.var("bill", (0, 50_000)).alias("var"),
        dp.std("bill", (0, 50_000), ddof=0).alias("std"),
    )


def weights_and_mechanisms(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.agg(
        dp.count(pl.col("bill") - pl.col("paid"), weight=2).alias("known"),
        dp.n_unique(pl.col("diagnosis").str.to_lowercase()).alias("diagnoses"),
        dp.sum("paid", (0, 1000), mechanism="discrete_gaussian", weight="0.5"),
        dp.count(mechanism="discrete_laplace", nonnegative=True).alias("n"),
    )


def three_rows_changed(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("region", keys=REGIONS).agg(
        dp.count().alias("n"), dp.sum("bill", (-100, 1000)), dp.argmax("sex").alias("mostly")
    )


def rows_are_public(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.agg(dp.count().alias("n"), dp.mean("bill", (0, 1000)))


def many_groups(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    day = pl.col("admitted").dt.truncate("1d").alias("day")
    days = [datetime(2024, 1, 1) + timedelta(days=i) for i in range(366)]
    return patients.group_by(day, keys=days).agg(
        dp.count().alias("n"), dp.histogram("visits", bins=8, bounds=(0, 80)).alias("visits")
    )


def long_chain(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return (
        patients.filter(pl.col("age").is_between(18, 110), ~pl.col("smoker"))
        .drop("smoker", "ward")
        .rename({"bill": "billed", "paid": "settled"})
        .fill_nan(0.0)
        .with_columns(pl.col("billed", "settled").clip(0, 20_000))
        .fill_null(0)
        .drop_nulls(["diagnosis", "born"])
        .with_columns(
            owed=(pl.col("billed") - pl.col("settled")).clip(lower_bound=0),
            per_visit=pl.col("billed") / (pl.col("visits") + 1),
            area=pl.when(pl.col("region").is_in(["north", "east"])).then(1).otherwise(0),
        )
        .cast({"age": pl.Int16})
        .select("owed", "per_visit", "area", decade=pl.col("age") // 10)
        .agg(dp.sum("owed"), dp.mean("per_visit"), dp.sum("area"), dp.median("decade"))
    )


def rolled_up(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """Several sets of columns at once, of which a spend of epsilon measures few."""
    keys = {"region": REGIONS, "sex": ["female", "male"]}
    return people.group_by(dp.rollup("region", "sex"), keys=keys).agg(dp.count().alias("n"))


def cubed(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """Several sets of columns at once, of which a spend of rho measures all."""
    keys = {"region": REGIONS, "sex": ["female", "male"]}
    return people.group_by(dp.cube("region", "sex"), keys=keys).agg(
        pl.col("visits").dp_sum((0, 20)), dp.count().alias("n")
    )


def ages_by_sets(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """Distribution functions by several sets of columns."""
    keys = {"region": REGIONS, "sex": ["female", "male"]}
    groups = people.group_by(dp.cube("region", "sex"), keys=keys)
    return groups.dp_cdf("age", bins=range(10, 111, 10))


def binned(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """Histograms by several sets of columns."""
    keys = {"region": REGIONS, "sex": ["female", "male"]}
    return people.group_by(dp.rollup("region", "sex"), keys=keys).agg(
        pl.col("age").dp_histogram([0, 18, 65, 110], nonnegative=True), dp.count().alias("n")
    )


def temporal(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return (
        patients.filter(pl.col("admitted") >= datetime(2024, 1, 1))
        .with_columns(quarter=pl.col("admitted").dt.quarter())
        .group_by("quarter", keys=[1, 2, 3, 4])
        .agg(
            dp.mean("born", (date(1920, 1, 1), date(2024, 1, 1))).alias("mean_born"),
            dp.median("admitted", (datetime(2024, 1, 1), datetime(2025, 1, 1))),
            dp.sum("travel", (timedelta(0), timedelta(hours=3))),
        )
    )


def ratio(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    share = (dp.sum("paid", (0, 1000)) / dp.sum("bill", (0, 1000)) * 100).round(1).clip(0, 100)
    return patients.agg(share.alias("percent_paid"), dp.count() - dp.count("paid"))


def ratio_of_totals(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    paid = pl.col("paid").dp_ratio("bill", (0, 1000), denominator_bounds=(0, 1000))
    return patients.group_by("region", keys=REGIONS).agg(paid.alias("share paid"))


def look_twice(patients: dp.PrivateFrame) -> dp.PrivateQuery:
    return patients.group_by("region").agg(dp.sum("visits"), dp.sum("age"))


QUERIES = (
    Golden("filtered_count", filtered_count, PURE, {"epsilon": "0.1"}),
    Golden("grouped", grouped, PURE, {"epsilon": "0.5"}),
    Golden("enum_and_boolean_keys", enum_and_boolean_keys, PURE, {"epsilon": 1}),
    Golden("keys_by_column", keys_by_column, PURE, {"epsilon": "0.2"}),
    Golden("keys_frame", keys_frame, APPROX, {"epsilon": 1}),
    Golden("histogram_of_bins", histogram_of_bins, ZERO, {"rho": "0.01"}),
    Golden("distribution", distribution, ZERO, {"rho": "0.02"}),
    Golden("distribution_and_counts", distribution_and_counts, PURE, {"epsilon": 1}),
    Golden("sets_of_their_own", sets_of_their_own, ZERO, {"rho": "0.05"}),
    Golden("distribution_of_bins", distribution_of_bins, PURE, {"epsilon": "0.5"}),
    Golden(
        "histogram_of_categories",
        histogram_of_categories,
        PURE,
        {"epsilon": "0.3"},
        declared={"categories": {"diagnosis": ["I21", "J18", "O80"]}},
    ),
    Golden("quantiles", quantiles, PURE, {"epsilon": "0.8"}),
    Golden("quantiles_together", quantiles_together, ZERO, {"rho": "0.05"}),
    Golden("quantiles_at_once", quantiles_at_once, PURE, {"epsilon": "0.8"}),
    Golden("quantiles_counted", quantiles_counted, PURE, {"epsilon": "0.2"}),
    Golden("quantiles_by_runs", quantiles_by_runs, PURE, {"epsilon": "0.2"}),
    Golden("quantile_of_candidates", quantile_of_candidates, ZERO, {"rho": "0.02"}),
    Golden(
        "commonest_category",
        commonest_category,
        PURE,
        {"epsilon": "0.1"},
        declared={"categories": {"diagnosis": ["I21", "J18", "O80"]}},
    ),
    Golden("three_longest_stays", three_longest_stays, ZERO, {"rho": "0.1"}),
    Golden("three_dearest_groups", three_dearest_groups, APPROX, {"epsilon": 1, "delta": "1e-7"}),
    Golden("best_candidate", best_candidate, PURE, {"epsilon": "0.5"}),
    Golden("spread", spread, ZERO, {"rho": "0.05"}),
    Golden(
        "weights_and_mechanisms",
        weights_and_mechanisms,
        APPROX,
        {"epsilon": "0.9", "delta": "1e-7"},
    ),
    Golden(
        "three_rows_changed",
        three_rows_changed,
        {"rho": 1, "delta": "1e-6"},
        {"rho": "0.3"},
        unit=dp.Rows("change-one", contributions=3),
    ),
    Golden(
        "rows_are_public",
        rows_are_public,
        PURE,
        {"epsilon": "0.5"},
        unit=dp.Rows("change-one"),
    ),
    Golden(
        "many_groups",
        many_groups,
        {"epsilon": 1, "delta": "0.01"},
        {"epsilon": "0.1", "delta": "0.001"},
        unit=dp.Rows("change-one"),
    ),
    Golden("long_chain", long_chain, PURE, {"epsilon": 1}),
    Golden("rolled_up", rolled_up, PURE, {"epsilon": 1}),
    Golden("cubed", cubed, ZERO, {"rho": "0.1"}),
    Golden("binned", binned, ZERO, {"rho": "0.1"}),
    Golden("ages_by_sets", ages_by_sets, PURE, {"epsilon": "0.5"}),
    Golden("temporal", temporal, ZERO, {"rho": "0.1"}),
    Golden("ratio", ratio, PURE, {"epsilon": "0.6"}),
    Golden("ratio_of_totals", ratio_of_totals, PURE, {"epsilon": "0.6"}),
    Golden(
        "look_twice",
        look_twice,
        {"epsilon": 30, "delta": "0.001"},
        {"epsilon": 24},
        unit=dp.Rows(contributions=2),
        declared={
            "bounds": {"age": (0, 110), "visits": (0, 20)},
            "categories": {"region": REGIONS},
        },
    ),
)


def fingerprints() -> str:
    """The fingerprints of all plans, a line each."""
    return "".join(f"{golden.plan().fingerprint} {golden.name}\n" for golden in QUERIES)
