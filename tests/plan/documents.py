"""Plans of every kind, over frames that cannot be read, and their documents as they are kept.

The document of `name` is in `documents/<name>.json`; ``python -m tests.plan.documents`` writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

import dpframe as dp
from tests.golden.queries import QUERIES, REGIONS, SECRET, UnreadableError, unreadable

DOCUMENTS = Path(__file__).parent / "documents"
VISITS: Mapping[str, Any] = {
    "person": pl.Int64,
    "region": pl.String,
    "day": pl.Date,
    "cost": pl.Float64,
    "tags": pl.List(pl.String),
}
APPROX: Mapping[str, Any] = {"epsilon": 1, "delta": "1e-7"}
HALF: Mapping[str, Any] = {"epsilon": "0.5", "delta": "1e-8"}


def secret(schema: Mapping[str, Any]) -> pl.LazyFrame:
    """A frame with such columns that cannot be read."""

    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise UnreadableError(SECRET)
        yield

    return register_io_source(read, schema=dict(schema))


def patients(session: Mapping[str, Any] = APPROX, **options: Any) -> dp.PrivateFrame:
    options = {"unit": dp.Rows(), "name": "patients", **options}
    return dp.Session(**session).protect(unreadable(), **options)


def visits(session: dp.Session | None = None, name: str = "visits") -> dp.PrivateFrame:
    session = dp.Session(**APPROX) if session is None else session
    return session.protect(secret(VISITS), unit="person", name=name)


def staircase() -> dp.Plan:
    total = dp.sum("bill", (0, 9), mechanism="discrete_staircase")
    return patients({"epsilon": 1}).agg(total).plan(epsilon=1)


def zcdp_session() -> dp.Plan:
    people = patients({**APPROX, "composition": "zcdp"})
    return people.agg(dp.count(), dp.mean("bill", (0, 100))).plan(epsilon="0.1")


def part() -> dp.Plan:
    session = dp.Session(**APPROX)
    people = session.protect(unreadable(), unit=dp.Rows(contributions=2), name="patients")
    parts = session.partition(people, "region", [*REGIONS, None])
    return parts[None].dp_sum("visits").plan(epsilon="0.25")


def found_groups() -> dp.Plan:
    return patients().group_by("ward").agg(dp.mean("bill", (0, 9))).plan(**HALF)


def found_groups_by_number() -> dp.Plan:
    return patients().group_by("ward").agg(n=dp.count()).plan(**HALF)


def found_groups_of_individuals() -> dp.Plan:
    limited = visits().drop("tags").limit_groups(3, by="region").limit_rows(2, by="region")
    total = pl.col("cost").dp_sum((0, 100), per="unit")
    return limited.group_by("region").agg(total).plan(**HALF)


def found_by_weights() -> dp.Plan:
    people = pl.col("person").dp_n_unique().alias("n")
    return visits().drop("tags").limit_norm(1).group_by("region").agg(people).plan(**HALF)


def found_by_weights_alone() -> dp.Plan:
    total = pl.col("cost").dp_sum((0, 100), per="unit")
    return visits().drop("tags").limit_norm("1/2").group_by("region").agg(total).plan(**HALF)


def found_in_rounds() -> dp.Plan:
    return visits().drop("tags").group_by("region").dp_groups(rounds=3).plan(**HALF)


def many_found_by_gaussian() -> dp.Plan:
    people = patients({"rho": 1, "delta": "1e-6"}, unit=dp.Rows(contributions=30))
    return people.group_by("ward").agg(n=dp.count()).plan(rho="0.1", delta="1e-7")


def joined_with_public() -> dp.Plan:
    prices = pl.DataFrame(
        {
            "region": ["north", "north", "south", None],
            "price": [0.1, float("nan"), 1e-7, -0.0],
            "exact": [Decimal("1.50"), None, Decimal("0.00"), Decimal("2.25")],
            "since": [date(2024, 1, 1), None, date(1969, 12, 31), date(2030, 1, 1)],
            "lists": [[1.5, None], [], None, [float("inf")]],
        }
    )
    joined = patients().join(prices, on="region", how="inner")
    return joined.agg(dp.sum("price", (0, 2))).plan(epsilon="0.5")


def frames_together() -> dp.Plan:
    session = dp.Session(**APPROX)
    one, two = visits(session), visits(session, "earlier")
    early = two.filter(pl.col("day") < date(2020, 1, 1))
    both = one.concat(early).drop("tags").limit_rows(4)
    joined = both.join(two.select("person", old="cost").limit_rows(2), on="person", how="left")
    return joined.limit_rows(5).agg(dp.sum("old", (0, 10))).plan(epsilon="0.5")


def lists() -> dp.Plan:
    tags = visits().explode("tags", max_length=2).limit_rows(3)
    found = tags.group_by("tags", keys=["a", 'b"', "c\n", "é"]).agg(n=dp.count())
    return found.plan(epsilon="0.5", delta="1e-8")


def noisy_max() -> dp.Plan:
    people = patients(categories={"diagnosis": ["I21", "J18", "O80"]})
    return people.dp_argmax("diagnosis", mechanism="report_noisy_max").plan(epsilon="0.5")


def responses() -> dp.Plan:
    people = patients(unit=dp.Rows("change-one"))
    query = people.dp_histogram("sex", other=True, mechanism="randomized_response")
    return query.plan(epsilon="0.5")


def best_group() -> dp.Plan:
    return patients().group_by("sex").dp_argmax(k=2).plan(epsilon="0.5")


def best_by_table() -> dp.Plan:
    people = patients({"rho": 1}, categories={"diagnosis": ["I21", "J18", "O80"]})
    return people.group_by("sex").agg(w=pl.col("diagnosis").dp_argmax(k=3)).plan(rho="0.05")


def together() -> dp.Plan:
    counts = [
        (pl.col("age") + i).dp_count(mechanism="discrete_laplace").alias(f"n{i}") for i in range(40)
    ]
    return patients().agg(*counts).plan(**HALF, split="equal")


def people_in_months() -> dp.Plan:
    unit = dp.Identifier("person", window="1mo", time="day")
    session = dp.Session(**APPROX, per="1mo")
    monthly = session.protect(secret(VISITS), unit=unit, name="visits")
    autumn = monthly.filter(pl.col("day").is_between(date(2026, 9, 1), date(2026, 11, 30)))
    regions = autumn.drop("tags").limit_groups(2, by="region").limit_rows(5)
    people = pl.col("person").dp_n_unique().alias("n")
    return regions.group_by("region", keys=REGIONS).agg(people, dp.count()).plan(**HALF)


def accurate() -> dp.Plan:
    return patients().agg(n=dp.count(), s=dp.var("bill", (0, 9))).plan(accuracy={"n": 50})


def arithmetic() -> dp.Plan:
    share = (dp.count("paid") / dp.count() * 100).round(2).alias("share")
    return patients().agg(share, dp.bounds("bill")).plan(epsilon="0.5")


def own_sets() -> dp.Plan:
    """Sets that are tables of their own, none of them by all columns."""
    keys = {"sex": ["female", "male"], "region": REGIONS}
    groups = patients().group_by(dp.grouping_sets([["sex"], ["region"], []]), keys=keys)
    return groups.agg(dp.n_unique("age")).plan(epsilon=1)


def grouping_sets() -> dp.Plan:
    keys = {"sex": ["female", "male"], "region": REGIONS}
    groups = patients({"rho": 1}).group_by(dp.cube("sex", "region"), keys=keys)
    return groups.agg(n=dp.count(), m=dp.mean("bill", (0, 9))).plan(rho="0.1")


def several_queries() -> dp.Plan:
    session = dp.Session(**APPROX)
    people = session.protect(unreadable(), unit=dp.Rows(), name="patients")
    by_sex = people.group_by("sex", keys=["female", "male"])
    total = people.filter(pl.col("age") >= 40).agg(n=dp.count(), top=dp.median("visits"))
    mean = by_sex.agg(dp.mean("bill", (0, 9)))
    return session.plan([by_sex.agg(n=dp.count()), total, mean], **HALF)


def several_frames() -> dp.Plan:
    session = dp.Session(**APPROX)
    one, two = visits(session), visits(session, "earlier")
    counts = [f.drop("tags").limit_rows(2).agg(n=dp.count()) for f in (one, two)]
    regions = one.drop("tags").limit_groups(2, by="region").limit_rows(1, by="region")
    found = regions.group_by("region").agg(n=dp.count(), s=dp.sum("cost", (0, 10)))
    return session.plan([*counts, found], **HALF, weights=[1, 1, 2])


def found_limit() -> dp.Plan:
    by_region = visits().drop("tags").group_by("region", keys=REGIONS)
    return by_region.agg(n=dp.count(), s=dp.sum("cost", (0, 10))).plan(**HALF, limits="auto")


def with_parameters() -> dp.Plan:
    day = dp.parameter("day", pl.Date, default=date(2026, 11, 22))
    regions = dp.parameter("regions", pl.List(pl.String), default=REGIONS)
    since = dp.parameter("since", pl.Datetime(time_zone="Europe/Zurich"), datetime(2026, 11, 22, 6))
    chosen = visits().filter(pl.col("day") >= day, pl.col("region").is_in(regions))
    early = pl.col("day").dt.offset_by("7d").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return chosen.filter(early < since).drop("tags").limit_rows(2).dp_count().plan(epsilon="0.5")


def part_by_parameter() -> dp.Plan:
    session = dp.Session(**APPROX)
    day = dp.parameter("day", pl.Date, default=date(2026, 11, 22))
    regions = dp.parameter("regions", pl.List(pl.String), default=REGIONS)
    people = session.protect(secret(VISITS), unit=dp.Rows(), name="visits")
    parts = session.partition(people, ["day", "region"], {"day": [day], "region": regions})
    return parts[day.value, REGIONS[0]].dp_count().plan(epsilon="0.5")


def stream() -> dp.Plan:
    session = dp.Session(rho=1)
    people = visits(session).limit_groups(7, by="day", order_by="day").limit_rows(1, by="day")
    query = people.group_by("region", keys=REGIONS).agg(n=dp.count(), cost=dp.sum("cost", (0, 50)))
    return session.plan_stream(query, by="day", start=date(2027, 1, 1), periods=365, rho="0.02")


def stream_in_pure_epsilon() -> dp.Plan:
    session = dp.Session(epsilon=1)
    query = visits(session).limit_rows(2, order_by="day").dp_count()
    start = date(2027, 1, 4)
    return session.plan_stream(query, by="day", every="1w", start=start, periods=52, epsilon=1)


OWN: Mapping[str, Callable[[], dp.Plan]] = {
    make.__name__: make
    for make in (
        staircase,
        zcdp_session,
        part,
        found_groups,
        found_groups_by_number,
        found_groups_of_individuals,
        found_by_weights,
        found_by_weights_alone,
        found_in_rounds,
        many_found_by_gaussian,
        joined_with_public,
        frames_together,
        lists,
        noisy_max,
        responses,
        best_group,
        grouping_sets,
        own_sets,
        best_by_table,
        together,
        accurate,
        arithmetic,
        several_queries,
        several_frames,
        found_limit,
        with_parameters,
        part_by_parameter,
        stream,
        stream_in_pure_epsilon,
        people_in_months,
    )
}
ALL: Mapping[str, Callable[[], dp.Plan]] = {**OWN, **{q.name: q.plan for q in QUERIES}}
KEPT = (
    *(name for name in OWN if name != "together"),
    "keys_frame",
    "long_chain",
    "temporal",
    "ages_by_sets",
)


@functools.cache
def plan_of(name: str) -> dp.Plan:
    """A plan, made once."""
    return ALL[name]()


def of_version_1(plan: dp.Plan) -> str:
    """The document that version 1 had of a plan: without what the kernel verifies."""
    return replace(plan, physical=None, dpframe_version=None).to_json()


def path_of(name: str) -> Path:
    return DOCUMENTS / f"{name}.json"


def main() -> None:
    """Write the documents that are kept, and remove others."""
    for path in {*DOCUMENTS.glob("*.json")} - {path_of(name) for name in KEPT}:
        path.unlink()
    for name in KEPT:
        path_of(name).write_text(plan_of(name).to_json() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
