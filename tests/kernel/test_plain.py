"""The exact numbers of real runs are those of their physical plans, done in plain Python."""

from __future__ import annotations

import datetime as dt
import math
import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.kernel import plan as p
from dpframe.lower import execution
from dpframe.optimise.prepared import PreparedTogether
from tests.kernel import plans
from tests.kernel.compared import compare_on
from tests.kernel.plans import AGE, START, TOWN, TOWNS, WAGE, ZONES

Ask: TypeAlias = Callable[[Any, Any], Any]
"""A query of a frame, with another frame beside it."""

DAY, HALF, KIND, LARGE, SMALL = map(dp.col, ("day", "half", "kind", "large", "small"))
DAYS = [START + dt.timedelta(days=n) for n in range(3)]

SCHEMA: dict[str, Any] = {
    "who": pl.Int64(),
    "town": pl.String(),
    "sex": pl.Enum(["f", "m"]),
    "age": pl.Int64(),
    "wage": pl.Float64(),
    "day": pl.Date(),
    "moment": pl.Datetime("us", "Europe/Berlin"),
    "tags": pl.List(pl.String()),
    "price": pl.Decimal(12, 2),
    "small": pl.Int8(),
    "large": pl.UInt64(),
    "flag": pl.Boolean(),
    "kind": pl.Categorical(),
    "half": pl.Float32(),
}

OF_ROWS: dict[str, Ask] = {
    "values": lambda f, _: f.group_by("town", keys=[*TOWNS, None]).agg(
        WAGE.dp_count(), HALF.dp_count().alias("h"), TOWN.dp_count().alias("t")
    ),
    "sums": lambda f, _: f.agg(
        WAGE.dp_sum((-3, 7.5)),
        AGE.dp_sum((-(10**18), 10**18)).alias("wide"),
        LARGE.dp_sum((0, 2**63)).alias("large"),
        SMALL.dp_sum((-200, 5)).alias("small"),
        HALF.dp_sum((0, 0.1)).alias("half"),
        dp.col("price").dp_sum((0, 99.99)).alias("price"),
        dp.col("flag").dp_sum().alias("flags"),
    ),
    "means": lambda f, _: f.group_by("sex").agg(
        WAGE.dp_mean((1, 90)), AGE.dp_mean((-7, 12)).alias("a"), DAY.dp_mean(tuple(DAYS[::2]))
    ),
    "spreads": lambda f, _: f.agg(WAGE.dp_var((-1, 1000)), SMALL.dp_std((0, 9)).alias("s")),
    "ratio": lambda f, _: f.group_by("town", keys=TOWNS).agg(
        WAGE.dp_ratio("age", (0, 20), denominator_bounds=(-3, 30))
    ),
    "kinds": lambda f, _: f.agg(WAGE.dp_n_unique(), KIND.dp_n_unique().alias("k")),
    "bins": lambda f, _: f.group_by("flag", keys=[True, None]).agg(
        WAGE.dp_histogram(bins=[-1, 0, 0.1, 30], other=True),
    ),
    "listed": lambda f, _: f.agg(KIND.dp_histogram(["x", None, "a"], other=True)),
    "whole numbers": lambda f, _: f.agg(SMALL.dp_histogram([-1, 0, 127])),
    "edges": lambda f, _: f.agg(dp.col("price").dp_cdf([0, 1.5, 30])),
    "steps": lambda f, _: f.agg(HALF.dp_cdf([-1.0, 0.0, 0.3])),
    "points": lambda f, _: f.agg(WAGE.dp_median((-1, 30))),
    "far points": lambda f, _: f.agg(AGE.dp_median((-(2**62), 2**62))),
    "candidates": lambda f, _: f.group_by("kind", keys=["x", "y"]).agg(
        WAGE.dp_quantile([0.25, 0.5], candidates=[-1.0, 0.0, 30.25])
    ),
    "scores": lambda f, _: f.agg(TOWN.dp_argmax(score=WAGE.dp_sum((0, 50)), candidates=TOWNS, k=2)),
    "best group": lambda f, _: f.group_by("town", keys=TOWNS).dp_argmax(),
    "steps of a frame": lambda f, _: (
        f.filter(pl.col("wage") > 0, pl.col("town") != "c")
        .with_columns(age=pl.col("small") + 1, wage=pl.col("age") / pl.col("small"))
        .rename({"town": "place"})
        .drop("kind")
        .group_by(pl.col("place").str.to_uppercase(), keys=["A", "B"])
        .agg(AGE.dp_sum((-9, 9)), WAGE.dp_sum((0, 5)))
    ),
    "selected": lambda f, _: f.select("who", "town", "moment", x=pl.col("wage") * 2).agg(
        dp.col("x").dp_sum((0, 1))
    ),
    "no nulls": lambda f, _: f.drop_nulls("town").agg(dp.count()),
    "one part": lambda f, _: f.session.partition(f, "town", keys=TOWNS)["b"].agg(
        WAGE.dp_sum((0, 5))
    ),
    "looked up": lambda f, _: (
        f.join(ZONES, on="town", how="left")
        .group_by("zone", keys=[1, 2, None])
        .agg(WAGE.dp_sum((0, 5)))
    ),
    "among": lambda f, _: f.join(ZONES, on="town", how="semi").agg(dp.count()),
    "not among": lambda f, _: f.join(ZONES, on="town", how="anti").agg(dp.count()),
    "elements": lambda f, _: (
        f.explode("tags", max_length=2).group_by("tags", keys=["s", None]).agg(dp.count())
    ),
    "sets": lambda f, _: f.group_by(
        dp.rollup("town", "sex"), keys={"town": TOWNS, "sex": ["f", "m"]}
    ).agg(dp.count(), WAGE.dp_sum((0, 100))),
    "both": lambda f, g: f.concat(g).agg(dp.count(), WAGE.dp_sum((0, 3))),
    "moments": lambda f, _: f.group_by(pl.col("moment").dt.date(), keys=[*DAYS, None]).agg(
        dp.col("moment").dt.hour().dp_sum((0, 23)).alias("hour")
    ),
}
"""Queries of rows, which are limited where rows belong to persons."""

OF_PERSONS: dict[str, Ask] = {
    "persons": lambda f, _: (
        f.limit_groups(2, by="town")
        .group_by("town", keys=TOWNS)
        .agg(dp.n_unique("who"), dp.count(per="unit", bounds=(0, 2)).alias("rows"))
    ),
    "totals": lambda f, _: (
        f.limit_groups(1, by="town", order_by=None)
        .group_by("town", keys=TOWNS)
        .agg(
            WAGE.dp_mean((-1, 40), per="unit"),
            AGE.dp_var((-5, 5), per="unit").alias("v"),
            dp.count(per="unit", bounds=(0, 2)).alias("n"),
        )
    ),
    "ratio of totals": lambda f, _: f.agg(
        WAGE.dp_ratio("age", (0, 20), denominator_bounds=(-3, 30), per="unit")
    ),
    "totals in bins": lambda f, _: f.agg(
        WAGE.dp_histogram(bins=[0, 0.5, 31], per="unit", other=True),
        AGE.dp_histogram(bins=[0, 5, 9], per="unit").alias("a"),
    ),
    "median of totals": lambda f, _: f.agg(
        WAGE.dp_median((0, 50), per="unit"),
        SMALL.dp_median(candidates=[-1, 0, 1, 2], per="unit").alias("s"),
    ),
    "first days": lambda f, _: (
        f.limit_groups(2, by="day", order_by="day")
        .limit_rows(1, by="day")
        .group_by("day", keys=DAYS)
        .agg(WAGE.dp_sum((0, 9)))
    ),
    "first rows": lambda f, _: f.limit_rows(2, order_by="age").agg(WAGE.dp_sum((0, 9))),
    "few rows of filtered": lambda f, _: (
        f.filter(pl.col("flag"))
        .with_columns(age=pl.col("age") + 1)
        .limit_rows(2)
        .agg(AGE.dp_sum((0, 9)))
    ),
    "pairs": lambda f, _: (
        f.limit_rows(1, by="town")
        .limit_groups(2, by="town")
        .group_by("town", keys=TOWNS)
        .agg(WAGE.dp_sum((0, 9)), dp.count())
    ),
    "weighed": lambda f, _: (
        f.limit_norm(1.5)
        .group_by("town", keys=[*TOWNS, None])
        .agg(dp.count(), WAGE.dp_sum((-9, 9)))
    ),
    "weighed persons": lambda f, _: (
        f.limit_norm(1.5)
        .group_by("town", keys=TOWNS)
        .agg(dp.n_unique("who"), WAGE.dp_sum((-9, 9), per="unit"))
    ),
    "meeting": lambda f, g: (
        f.limit_rows(2)
        .join(
            g.limit_rows(2).select("who", "town", "moment", other=pl.col("wage")),
            on=["who", "town"],
            how="left",
        )
        .agg(dp.col("other").dp_sum((0, 9)), dp.count())
    ),
    "meeting all": lambda f, g: f.limit_rows(2).join(g.limit_rows(2), on="who").agg(dp.count()),
    "not meeting": lambda f, g: f.limit_rows(2).join(g, on="who", how="anti").agg(dp.count()),
    "one row each": lambda f, _: (
        f.group_by("who")
        .agg(
            pl.len().alias("n"),
            pl.col("wage").clip(-2, 9).sum().alias("paid"),
            pl.col("small").mean().alias("mean"),
            pl.col("day").max().alias("last"),
            pl.col("town").n_unique().alias("towns"),
            pl.col("age").is_null().any().alias("unknown"),
        )
        .group_by("unknown", keys=[True, False])
        .agg(
            dp.col("n").dp_sum((0, 9)),
            dp.col("paid").dp_sum((-9, 9)),
            dp.col("mean").dp_sum((-9, 9)),
            dp.col("last").dp_mean((DAYS[0], DAYS[2])),
            dp.col("towns").dp_sum((0, 3)),
        )
    ),
    "added up": lambda f, _: (
        f.filter(pl.col("wage") >= 0, pl.col("wage") < 31)
        .group_by("who", "town")
        .agg(
            paid=pl.col("wage").sum(),
            mean=(pl.col("wage") * 2).mean(),
            half=pl.col("half").sum(),
            price=pl.col("price").mean(),
            age=pl.col("age").sum(),
        )
        .limit_rows(2)
        .agg(*(dp.col(n).dp_sum((-99, 99)) for n in ("paid", "mean", "half", "price", "age")))
    ),
    "one row for each day": lambda f, _: (
        f.group_by("who", "town")
        .agg(x=pl.col("small").sum())
        .limit_rows(2)
        .agg(dp.col("x").dp_sum((-9, 9)))
    ),
    "beside": lambda f, _: (
        f.with_columns(n=pl.len().over("who"), most=pl.col("small").max().over("who", "town"))
        .limit_rows(2)
        .agg(dp.col("n").dp_sum((0, 9)), dp.col("most").dp_sum((-9, 9)))
    ),
}
"""Queries of persons."""

SUGGESTED: dict[str, Ask] = {
    "suggested": lambda f, _: f.agg(WAGE.dp_sum((0, 50)), AGE.dp_mean((0, 40)).alias("a")),
    "suggested by group": lambda f, _: f.group_by("town", keys=[*TOWNS, None]).agg(
        WAGE.dp_sum((-5, 50)), AGE.dp_mean((0, 40), per="unit").alias("a")
    ),
}
"""Queries of persons whose limits and bounds are suggested."""

DECLARED: Mapping[str, Any] = {
    "added up": {"half": (-1.5, 0.1), "price": (0, 2), "age": (0, "20.5")},
}
"""Bounds of columns that queries are asked with. Rows may have other values."""

OF_WINDOWS = ("persons", "totals", "first rows", "few rows of filtered", "meeting", "weighed")
"""Those that are asked of persons in calendar windows as well."""

UNITS: Mapping[str, Any] = {
    "person": "who",
    "rows": dp.Rows(contributions=2),
    "changed": dp.Rows("change-one"),
    "month": dp.Identifier("who", window="1mo", time="moment"),
}


def query_names() -> list[str]:
    """Each query, with a unit."""
    of_rows = [*OF_ROWS, *plans.OF_ROWS]
    names = [
        f"{name} of {unit}"
        for i, name in enumerate(of_rows)
        for unit in ("person", ("rows", "changed", "month")[i % 3])
    ]
    names += [f"{name} of person" for name in [*OF_PERSONS, *plans.OF_PERSONS]]
    names += [f"{name} of {unit}" for name in SUGGESTED for unit in ("person", "month")]
    names += [f"{name} of month" for name in OF_WINDOWS]
    names += [f"{name} of person" for name in plans.WITH_A_DELTA]
    names += [f"{name} of a stream" for name in plans.STREAMS]
    return names


@cache
def prepare(name: str) -> PreparedTogether:
    """A query as it runs."""
    of, unit = name.rsplit(" of ", 1)
    with warnings.catch_warnings(action="ignore"):
        if unit != "a stream" and of not in SUGGESTED:
            return plans.checked(lambda: _collect(of, unit)).prepared
        with plans.recording() as found:
            _collect(of, unit)
        return found[-1]


def _collect(of: str, unit: str) -> None:
    empty = pl.LazyFrame(schema=SCHEMA)
    if unit == "a stream":
        with TemporaryDirectory() as folder:
            lasting = dp.Session(ledger=Path(folder) / "ledger.db", rho=10)
            visits = lasting.protect(empty, name="here", unit="who")
            options: Any = {"by": "day", "start": START, "periods": 9, "rho": 1}
            lasting.stream("nightly", plans.STREAMS[of](visits), **options)
        return
    session = dp.Session(rho=1000, delta=Fraction(1, 1000))
    bounds = DECLARED.get(of, {})
    here, there = (
        session.protect(empty, name=n, unit=UNITS[unit], bounds=bounds) for n in ("here", "there")
    )
    if of in {*OF_ROWS, *plans.OF_ROWS} and unit in ("person", "month"):
        here = here.limit_groups(2, by="town").limit_rows(2, by="town")
        there = there.limit_groups(2, by="town").limit_rows(2, by="town")
    if of in SUGGESTED:
        SUGGESTED[of](here, there).suggest_limits(rho=1)
        return
    plain: dict[str, Any] = plans.OF_ROWS | plans.OF_PERSONS | dict(plans.WITH_A_DELTA)
    asked = (OF_ROWS | OF_PERSONS)[of](here, there) if of not in plain else plain[of](here)
    asked.collect(rho=1, delta="1e-6")


# Rows

REALS = st.sampled_from(
    [0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, -1e-300, 5e-324, 0.5, 30.25, 0.1, 0.3]
) | st.floats(-40, 40)
WHOLE = st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1, 0, 20]) | st.integers(-9, 99)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "who": st.integers(0, 2),
    "town": st.sampled_from([*TOWNS, "", "d"]),
    "sex": st.sampled_from(["f", "m"]),
    "age": WHOLE,
    "wage": REALS,
    "day": st.sampled_from([*DAYS, dt.date.min, dt.date.max]),
    "moment": st.sampled_from([dt.datetime(2027, 3, n, 23, 30) for n in (1, 2, 31)]),
    "tags": st.lists(st.none() | st.sampled_from(["s", "t"]), max_size=3),
    "price": st.sampled_from(["0", "-0.01", "1.5", "99999999.99", "30"]),
    "small": st.integers(-128, 127) | st.integers(-1, 2),
    "large": st.sampled_from([0, 2**64 - 1, 2**63, 7]),
    "flag": st.booleans(),
    "kind": st.sampled_from(["x", "y", "a"]),
    "half": REALS,
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """A few rows, some of them equal, with nulls in every column."""
    size = draw(st.integers(0, 9))
    row = st.fixed_dictionaries(
        {n: st.none() | v if n != "who" else v | v | st.none() for n, v in VALUES.items()}
    )
    rows = draw(st.lists(row, min_size=size, max_size=size))
    again = draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    return of_rows([*rows, *again])


def of_rows(rows: list[dict[str, Any]]) -> pl.DataFrame:
    columns = []
    for name, dtype in SCHEMA.items():
        values = [row[name] for row in rows]
        if name == "price":
            columns.append(pl.Series(name, values, dtype=pl.String).cast(dtype))
        elif name == "moment":
            local = pl.Series(name, values, dtype=pl.Datetime("us"))
            columns.append(local.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin"))
        else:
            columns.append(pl.Series(name, values, dtype=dtype))
    return pl.DataFrame(columns)


@pytest.mark.always
@pytest.mark.parametrize("name", query_names())
def test_a_run_on_some_rows_counts_what_its_plan_says(name: str) -> None:
    seen = compare_on(prepare(name), {"here": some_rows(3), "there": some_rows(4)})
    assert not seen.wrong, seen.wrong[0]
    assert seen.runs


@pytest.mark.parametrize("name", query_names())
@settings(max_examples=max(3, settings().max_examples // 10))
@given(here=frames(), there=frames())
def test_a_run_counts_what_its_plan_says(
    name: str, here: pl.DataFrame, there: pl.DataFrame
) -> None:
    seen = compare_on(prepare(name), {"here": here, "there": there})
    assert not seen.wrong, seen.wrong[0]
    assert seen.runs


# Mistakes of the translation

Edit: TypeAlias = Callable[[p.Plan], p.Plan]


def some_rows(seed: int) -> pl.DataFrame:
    """Rows in which most values are within bounds, and persons have several."""
    rng = random.Random(seed)
    pools: dict[str, list[Any]] = {
        "who": [0, 1, 2, 3],
        "town": [*TOWNS, "d"],
        "sex": ["f", "m"],
        "age": [1, 2, 5, 20, None],
        "wage": [0.5, 2.75, 4.0, 30.25, -1.0, None],
        "day": DAYS,
        "moment": [dt.datetime(2027, month, 2) for month in (3, 4)],
        "tags": [["s", "t", "s"], ["t", "s"], []],
        "price": ["0", "1.5", "30"],
        "small": [1, 2, 3, 7],
        "large": [0, 7],
        "flag": [True, False],
        "kind": ["x", "y"],
        "half": [0.5, 3.0, None],
    }
    return of_rows([{n: rng.choice(values) for n, values in pools.items()} for _ in range(40)])


def frame(kind: type[Any], change: Callable[[Any], Any]) -> Edit:
    """Change the first step of a kind."""

    def edit(plan: p.Plan) -> p.Plan:
        place = next(i for i, one in enumerate(plan.frames) if isinstance(one, kind))
        frames = [*plan.frames]
        frames[place] = change(frames[place])
        return replace(plan, frames=tuple(frames))

    return edit


def table(change: Callable[[Any], Any], kind: type[Any] = object) -> Edit:
    """Change the first table that adds this kind of number."""

    def edit(plan: p.Plan) -> p.Plan:
        place = next(i for i, one in enumerate(plan.tables) if isinstance(one.adds, kind))
        tables = [*plan.tables]
        tables[place] = change(tables[place])
        return replace(plan, tables=tuple(tables))

    return edit


def adds(kind: type[Any], change: Callable[[Any], Any]) -> Edit:
    return table(lambda one: replace(one, adds=change(one.adds)), kind)


def cells(change: Callable[[Any], Any]) -> Edit:
    return table(lambda one: replace(one, cells=change(one.cells)))


def on_grid(**changes: Callable[[p.Grid], Any]) -> Callable[[Any], Any]:
    """What a row adds by another grid."""
    return lambda one: replace(
        one, grid=replace(one.grid, **{n: change(one.grid) for n, change in changes.items()})
    )


def vector(change: Callable[[Any], Any], least: Callable[[p.Vector], int]) -> Edit:
    """Change what is drawn first of vectors where something is more than 1."""

    def edit(plan: p.Plan) -> p.Plan:
        draws = [*plan.draws]
        whats = [draw.what for draw in draws]
        place = next(i for i, w in enumerate(whats) if isinstance(w, p.Vector) and least(w) > 1)
        draws[place] = replace(draws[place], what=change(whats[place]))
        return replace(plan, draws=tuple(draws))

    return edit


def tables_of(what: p.Vector) -> int:
    return len(what.tables)


def another_factor(what: p.Vector) -> p.Vector:
    first, *rest = what.matrix
    return replace(what, matrix=((first[0] + 1, *first[1:]), *rest))


def exchange_columns(step: p.Map) -> p.Map:
    """The columns that are computed, each under the name of another."""
    names = [name for name, row in step.columns if not isinstance(row, p.Col)]
    others = dict(zip(names, [*names[1:], names[0]], strict=True))
    return replace(step, columns=tuple((others.get(name, name), row) for name, row in step.columns))


def key_by(row: p.Row) -> Edit:
    """The same keys, of another expression."""
    return table(lambda one: replace(one, keys=replace(one.keys, by=((one.keys.by[0][0], row),))))


MISTAKES: dict[str, tuple[str, Edit]] = {
    "no filter": ("steps of a frame of rows", frame(p.Filter, lambda f: replace(f, conditions=()))),
    "one condition": (
        "steps of a frame of rows",
        frame(p.Filter, lambda f: replace(f, conditions=f.conditions[1:])),
    ),
    "columns exchanged": ("steps of a frame of rows", frame(p.Map, exchange_columns)),
    "a table of another frame": (
        "few rows of filtered of person",
        table(lambda one: replace(one, frame=one.frame - 1)),
    ),
    "tables exchanged": (
        "sums of changed",
        vector(lambda what: replace(what, tables=what.tables[::-1]), tables_of),
    ),
    "another factor": ("hull of rows", vector(another_factor, tables_of)),
    "other columns kept": (
        "cube of person",
        vector(
            lambda what: replace(what, kept=(1 - what.kept[0],)), lambda what: 2 * len(what.kept)
        ),
    ),
    "longer runs": (
        "levels of rows",
        vector(lambda what: replace(what, run=what.run + 1), lambda what: what.run),
    ),
    "a wider clamp": ("both of changed", adds(p.Placed, on_grid(hi=lambda grid: 4 * grid.hi))),
    "another step": ("both of changed", adds(p.Placed, on_grid(step=lambda grid: grid.step / 2))),
    "another centre": (
        "means of person",
        adds(p.Placed, on_grid(centre=lambda grid: grid.centre + 1)),
    ),
    "shorter squares": (
        "spreads of person",
        adds(p.Squared, lambda one: replace(one, shift=one.shift + 1)),
    ),
    "rows for values": ("values of rows", adds(p.Valued, lambda one: p.One())),
    "values of another column": (
        "values of rows",
        adds(p.Valued, lambda one: p.Valued(p.Col("flag"))),
    ),
    "distinct values of another column": (
        "kinds of person",
        adds(p.Distinct, lambda one: p.Distinct(p.Col("half"))),
    ),
    "no limit on rows": (
        "few rows of filtered of person",
        frame(p.KeepRows, lambda f: replace(f, n=99)),
    ),
    "a limit in another order": (
        "first rows of person",
        frame(p.KeepRows, lambda f: replace(f, first=None)),
    ),
    "rows chosen by other columns": (
        "few rows of filtered of person",
        frame(p.KeepRows, lambda f: replace(f, of=("who",))),
    ),
    "no limit on groups": ("persons of person", frame(p.KeepGroups, lambda f: replace(f, n=99))),
    "a limit on other groups": (
        "persons of person",
        frame(p.KeepGroups, lambda f: replace(f, by=("who",))),
    ),
    "a limit of whole persons": (
        "persons of month",
        frame(p.Scan, lambda f: replace(f, unit=p.Person("who", None, None))),
    ),
    "other owners": (
        "few rows of filtered of person",
        frame(p.Scan, lambda f: replace(f, unit=p.Person("large", None, None))),
    ),
    "no weights": ("weighed of person", frame(p.Weigh, lambda f: replace(f, norm=Fraction(99)))),
    "keys of another column": ("values of rows", key_by(p.Col("kind"))),
    "no keys": ("means of person", table(lambda one: replace(one, keys=None))),
    "a later edge": (
        "bins of rows",
        cells(lambda c: replace(c, edges=(*c.edges[:-1], c.edges[-1] + 1))),
    ),
    "no cell for others": ("bins of rows", cells(lambda c: replace(c, other=False))),
    "listed values exchanged": (
        "listed of person",
        cells(lambda c: replace(c, listed=c.listed[::-1])),
    ),
    "other points": ("points of person", cells(lambda c: replace(c, low=c.low + 1))),
    "another candidate": (
        "candidates of person",
        cells(lambda c: replace(c, candidates=(Fraction(4), *c.candidates[1:]))),
    ),
    "individuals for rows": ("persons of person", adds(p.People, lambda one: p.One())),
    "more rows of a person": (
        "persons of person",
        adds(p.PersonRows, lambda one: replace(one, most=one.most + 1)),
    ),
    "rows for totals": ("totals of person", adds(p.PersonTotal, lambda one: one.of)),
    "cells of rows": ("totals in bins of person", cells(lambda c: c.cells)),
    "coarser totals": (
        "median of totals of person",
        cells(lambda c: replace(c, grid=replace(c.grid, step=c.grid.step * 2**25))),
    ),
    "the same frame twice": ("both of changed", frame(p.Union, lambda f: replace(f, right=f.left))),
    "more elements": ("elements of person", frame(p.Explode, lambda f: replace(f, most=3))),
    "another part": (
        "one part of person",
        frame(p.Part, lambda f: replace(f, key=(replace(f.key[0], value='"a"'),))),
    ),
    "a join that drops rows": (
        "looked up of person",
        frame(p.Lookup, lambda f: replace(f, how="inner")),
    ),
    "a join by another column": (
        "looked up of person",
        frame(p.Lookup, lambda f: replace(f, on=(("kind", f.on[0][1]),))),
    ),
    "the other rows": ("not among of person", frame(p.Lookup, lambda f: replace(f, how="semi"))),
    "sides exchanged": (
        "meeting of person",
        frame(p.Meet, lambda f: replace(f, left=f.right, right=f.left, new=(("wage", "other"),))),
    ),
    "a join by the person alone": ("meeting of person", frame(p.Meet, lambda f: replace(f, on=()))),
    "groups for rows": (
        "suggested of person",
        frame(p.OneEach, lambda f: replace(f, rows=f.groups, groups=f.rows)),
    ),
    "rows in other groups": (
        "suggested by group of person",
        frame(p.OneEach, lambda f: replace(f, by=(p.Col("age"),), listed=None)),
    ),
    "rows in groups that nobody listed": (
        "suggested by group of person",
        frame(p.OneEach, lambda f: replace(f, listed=None)),
    ),
    "ends of other values": (
        "suggested of person",
        frame(
            p.OneEach,
            lambda f: replace(f, ends=tuple(replace(e, row=p.Col("age")) for e in f.ends)),
        ),
    ),
    "ends of rows": (
        "suggested by group of person",
        frame(p.OneEach, lambda f: replace(f, ends=tuple(replace(e, total=False) for e in f.ends))),
    ),
    "another aggregate": (
        "one row for each day of person",
        frame(
            p.Gather,
            lambda f: replace(
                f, new=tuple((n, replace(c, operation="individual_max")) for n, c in f.new)
            ),
        ),
    ),
    "sums within other bounds": (
        "added up of person",
        frame(p.Gather, lambda f: replace(f, bounds=((Fraction(0), Fraction(2)), *f.bounds[1:]))),
    ),
    "sums within no closer bounds": (
        "added up of person",
        frame(
            p.Gather,
            lambda f: replace(
                f, bounds=(*f.bounds[:2], (Fraction(-9), Fraction(9)), *f.bounds[3:])
            ),
        ),
    ),
    "aggregates of all rows": (
        "beside of person",
        frame(p.Gather, lambda f: replace(f, by=(("by 0", p.Col("kind")),))),
    ),
    "groups of another draw": (
        "rounds of person",
        frame(p.Without, lambda f: replace(f, by=(p.Col("kind"),))),
    ),
}
"""Edits of a translated plan, each of which computes other numbers."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_translation_is_noticed(
    mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, edit = MISTAKES[mistake]
    monkeypatch.setattr(execution, "fresh_salt", lambda: 1)  # the same choice of rows each time
    rows = {"here": some_rows(1), "there": some_rows(2)}
    right = compare_on(prepare(name), rows)
    assert right.runs
    assert not right.wrong
    assert compare_on(prepare(name), rows, edit).wrong
