"""Templates: what is left of a plan without values of parameters, and what is not left out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.parameters import Parameters, declaring
from dpframe.core.parameters import Parameter
from dpframe.plan.document import template_fingerprint
from dpframe.report.difference import differences

SCHEMA = {
    "person": pl.Int64,
    "day": pl.Date,
    "at": pl.Datetime("us", "Europe/Zurich"),
    "city": pl.String,
    "x": pl.Int64,
}
DAY = {"day": "any"}
Query = Callable[[dp.PrivateFrame, Any], Any]


def planned(
    query: Query, value: Any, dtype: Any = pl.Date, name: str = "day", epsilon: str = "0.5"
) -> dp.Plan:
    """The plan of a query that has a parameter."""
    session = dp.Session(epsilon=1, delta="1e-6")
    frame = session.protect(
        pl.LazyFrame(schema=SCHEMA), unit=dp.Rows(), name="visits", bounds={"x": (0, 100)}
    )
    with declaring(Parameters({})):
        made = query(frame, dp.parameter(name, dtype, default=value))
    found = made if isinstance(made, dp.Plan) else session.plan(made, epsilon=epsilon)
    assert [p.name for p in found.parameters] == [name]
    return found


def template(plan: dp.Plan, **allowed: str) -> str:
    return template_fingerprint(plan, allowed or DAY)


SAME: list[Query] = [
    lambda f, day: f.filter(pl.col("day") == day).dp_count(),
    lambda f, day: f.filter(pl.col("day") >= day, pl.col("x") > 5).agg(dp.sum("x"), n=dp.count()),
    lambda f, d: f.filter(pl.col("day").is_between(d, d.dt.offset_by("1w"))).agg(dp.mean("x")),
    lambda f, day: f.filter(pl.col("at") >= day.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"))
    .group_by("city", keys=["Oslo", "Moss"]).agg(dp.count()),
    lambda f, day: f.with_columns(later=pl.col("day") > day).group_by("later").agg(n=dp.count()),
    lambda f, day: f.agg(pl.when(pl.col("day") == day).then("x").dp_sum((0, 9)).alias("s")),
    lambda f, day: f.select(since=pl.col("day") - day).dp_count("since"),
    lambda f, day: f.filter(pl.col("day") != day).dp_median("x"),
    lambda f, day: f.filter(pl.col("day") < day).group_by(dp.cube("city"), keys={"city": ["a"]})
    .agg(dp.count()),
]  # fmt: skip


@pytest.mark.parametrize("query", SAME)
def test_plans_that_differ_in_a_value_have_one_template(query: Query) -> None:
    plans = [planned(query, date(2027, 1, 1) + timedelta(days=n)) for n in (0, 1, 400)]
    assert len({plan.fingerprint for plan in plans}) == 3
    assert len({template(plan) for plan in plans}) == 1
    for plan in plans:
        read = dp.Plan.from_json(plan.to_json())
        assert template(read) == template(plan) != plan.fingerprint
    lines = [*differences(plans[0], plans[1])]
    assert lines[0].startswith("parameter day = 2027-01-01")
    assert all(line.startswith("known after") for line in lines[1:])


@given(st.dates(), st.dates())
def test_whatever_the_values(one: date, other: date) -> None:
    plans = [planned(SAME[0], day) for day in (one, other)]
    assert template(plans[0]) == template(plans[1])
    for plan in plans:
        assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


OTHERS: list[tuple[str, Query, Any, Any, Any]] = [
    ("sensitivity by clip", lambda f, n: f.agg(pl.col("x").clip(0, n.value).dp_sum()), int, 5, 6),
    ("sensitivity by filter", lambda f, n: f.filter(pl.col("x") <= n).agg(dp.sum("x")), int, 5, 6),
    ("bounds", lambda f, n: f.agg(dp.sum("x", (0, n.value))), int, 5, 6),
    ("values", lambda f, n: f.agg((pl.col("x") * n).dp_sum()), int, 5, 6),
    (
        "limit",
        lambda f, n: f.agg(pl.col("x").dp_histogram(bins=n.value, bounds=(0, 10))),
        int,
        5,
        6,
    ),
    (
        "keys' number",
        lambda f, c: f.group_by("city", keys=c.value).agg(dp.count()),
        pl.List(pl.String),
        ["a"],
        ["a", "b"],
    ),
    (
        "keys from a filter",
        lambda f, c: f.filter(pl.col("city").is_in(c)).group_by("city").agg(dp.count()),
        pl.List(pl.String),
        ["a"],
        ["a", "b"],
    ),
    ("cost", lambda f, n: f.dp_count().plan(epsilon=n.value), str, "0.5", "0.25"),
    ("output", lambda f, n: f.agg(dp.count().alias(n.value)), str, "a", "b"),
    ("step", lambda f, n: f.filter(pl.col("x") > n.value).dp_count(), int, 5, 6),
    (
        "steps' number",
        lambda f, n: f.filter(*[pl.col("x") > 1] * n.value).dp_count(),
        int,
        1,
        2,
    ),
    (
        "mechanism",
        lambda f, m: f.dp_argmax("city", candidates=["a", "b"], mechanism=m.value),
        str,
        "exponential",
        "permute_and_flip",
    ),
    (
        "public frame",
        lambda f, n: f.join(pl.DataFrame({"x": [1], "y": [n.value]}), on="x").dp_count(),
        int,
        1,
        2,
    ),
    (
        "order",
        lambda f, n: f.filter(pl.col("x") > n).filter(pl.col("x") < 9).dp_count()
        if n.value > 5 else f.filter(pl.col("x") < 9).filter(pl.col("x") > n).dp_count(),
        int,
        5,
        6,
    ),
    (
        "frames",
        lambda f, n: (f if n.value > 5 else f.concat(f)).filter(pl.col("x") != n).dp_count(),
        int,
        5,
        6,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "dtype", "one", "other"), [o[1:] for o in OTHERS], ids=[o[0] for o in OTHERS]
)
def test_what_else_follows_from_a_value_makes_another_template(
    query: Query, dtype: Any, one: Any, other: Any
) -> None:
    plans = []
    for value in (one, other):
        try:
            plans.append(planned(query, value, dtype, "n"))
        except AssertionError:  # a value that no expression names is none of the query's
            session = dp.Session(epsilon=1, delta="1e-6")
            frame = session.protect(
                pl.LazyFrame(schema=SCHEMA), unit=dp.Rows(), name="visits", bounds={"x": (0, 100)}
            )
            with declaring(Parameters({})):
                parameter = dp.parameter("n", dtype, default=value)
                made = query(frame, parameter)
            found = made if isinstance(made, dp.Plan) else session.plan(made, epsilon="0.5")
            given_ = Parameters({})
            with declaring(given_):
                dp.parameter("n", dtype, default=value)
            plans.append(dataclasses.replace(found, parameters=given_.declared))
    first, second = (template(plan, n="any") for plan in plans)
    assert first != second


def test_what_is_allowed_is_part_of_it() -> None:
    plan = planned(SAME[0], date(2027, 1, 1))
    year = template(plan, day="2027-01-01..2027-12-31")
    assert len({year, template(plan, day="any"), template(plan, day="2027-01-01..")}) == 3
    with pytest.raises(KeyError):
        template_fingerprint(plan, {"other": "any"})


def test_parameters_that_are_not_named_stay_as_they_are() -> None:
    def query(frame: dp.PrivateFrame, day: Any) -> Any:
        return frame.filter(pl.col("day") == day, pl.col("x") > dp.parameter("n", int, default=n))

    found = []
    for n in (1, 2):
        session = dp.Session(epsilon=1)
        frame = session.protect(pl.LazyFrame(schema=SCHEMA), unit=dp.Rows(), name="visits")
        with declaring(Parameters({})):
            asked = query(frame, dp.parameter("day", pl.Date, default=date(2027, 1, n)))
        found.append(session.plan(asked.dp_count(), epsilon=1))
    assert template(found[0], day="any") != template(found[1], day="any")
    both = {"day": "any", "n": "any"}
    assert template_fingerprint(found[0], both) == template_fingerprint(found[1], both)


# -- mutations ------------------------------------------------------------------------------------

OPEN = {"learned"}
"""What a template leaves out, beside values: facts that follow from what is left."""


def leaves(found: Any, where: tuple[Any, ...] = ()) -> Any:
    """Each value of a document, and where it is."""
    if isinstance(found, dict):
        for name, inner in found.items():
            yield from leaves(inner, (*where, name))
    elif isinstance(found, list):
        for number, inner in enumerate(found):
            yield from leaves(inner, (*where, number))
    else:
        yield where, found


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case None:
            return "x"
        case int() | float():
            return value + 1
        case _:
            return f"{value}0"


def replaced(document: Any, where: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    at = copy
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    return copy


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_other_value_of_a_plan_is_in_its_template(number: int) -> None:
    from dpframe.plan import document

    plan = planned(SAME[number], date(2027, 1, 1))
    contents = document._contents(plan)
    before = document._fingerprint(document.template(contents, DAY))
    checked = 0
    for where, value in leaves(contents):
        if where[0] in ("outputs", "releases") and where[2:3] in (("releases",), ("draw",)):
            continue  # numbers by which they are found, which fingerprints make anew
        changed = replaced(contents, where, other(value))
        after = document._fingerprint(document.template(changed, DAY))
        inside = [*where]
        is_value = "parameter" in inside or (
            inside[-1] in ("date", "value") and "args" in inside and value == "2027-01-01"
        )
        is_given = inside[0] == "parameters" and inside[-1] == "value"
        if is_value or is_given or OPEN & {*map(str, inside)}:
            continue
        assert after != before, where
        checked += 1
    assert checked > 40


def test_a_constant_that_only_looks_like_the_value_is_part_of_the_template() -> None:
    day = date(2027, 1, 1)
    first = planned(lambda f, d: f.filter(pl.col("day") == d, pl.col("day") != day).dp_count(), day)
    both = planned(lambda f, d: f.filter(pl.col("day") == d, pl.col("day") != d).dp_count(), day)
    assert template(first) != template(both)
    moved = planned(
        lambda f, d: f.filter(pl.col("day") == d, pl.col("day") != date(2027, 1, 2)).dp_count(),
        date(2027, 1, 2),
    )
    assert template(first) != template(moved)


def test_moments_and_lists() -> None:
    def since(frame: dp.PrivateFrame, at: Any) -> Any:
        return frame.filter(pl.col("at") >= at).dp_count()

    zoned = pl.Datetime(time_zone="Europe/Zurich")
    moments = [datetime(2027, 1, 1), datetime(2027, 7, 1, 12)]
    one, other_ = (planned(since, moment, zoned, "at") for moment in moments)
    assert template(one, at="any") == template(other_, at="any")

    def cities(frame: dp.PrivateFrame, names: Any) -> Any:
        return frame.filter(pl.col("city").is_in(names)).dp_count()

    lists = [["b", "a"], ["c"], []]
    plans = [planned(cities, names, pl.List(pl.String), "names") for names in lists]
    assert len({template(plan, names="any") for plan in plans}) == 1
    assert plans[0].parameters == (Parameter("names", "list[string]", '["b", "a"]'),)
