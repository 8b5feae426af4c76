"""What changes a fingerprint, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.plan import document

SCHEMA: Mapping[str, Any] = {
    "person": pl.Int64,
    "age": pl.Int64,
    "pay": pl.Float64,
    "price": pl.Decimal(10, 2),
    "city": pl.String,
    "sex": pl.Enum(["f", "m"]),
    "at": pl.Datetime("us"),
    "member": pl.Boolean,
}
MANY = [str(i) for i in range(100)]
"""More than words show."""


def plan(
    build: Callable[[Any], Any] = lambda p: p.dp_count(),
    spend: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] = SCHEMA,
    data: pl.DataFrame | None = None,
    **options: Any,
) -> dp.Plan:
    frame = pl.LazyFrame(schema=dict(schema)) if data is None else data
    session = dp.Session(**({"epsilon": 10, "delta": "1e-6"} if budget is None else budget))
    people = session.protect(frame, **{"unit": dp.Rows(), "name": "people", **options})
    found: dp.Plan = build(people).plan(**({"epsilon": 1} if spend is None else spend))
    return found


def prices(*values: float | None) -> pl.DataFrame:
    return pl.DataFrame({"city": MANY, "cost": [*values, *[0.0] * (100 - len(values))]})


def joined(public: pl.DataFrame, **options: Any) -> Callable[[Any], Any]:
    return lambda p: p.join(public, on="city", **options).dp_count()


def best(public: pl.DataFrame, **options: Any) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        score = (pl.col("age") - pl.col("year")).clip(0, 9)
        return p.agg(dp.argmax(score=score, candidates=public, **options))

    return build


def years(*more: float) -> pl.DataFrame:
    return pl.DataFrame({"year": [*range(60)], "note": [*range(60 - len(more)), *more]})


def filtered(*predicates: Any) -> Callable[[Any], Any]:
    return lambda p: p.filter(*predicates).dp_count()


def grouped(by: Any, keys: Any = None) -> Callable[[Any], Any]:
    return lambda p: p.group_by(by, keys=keys).dp_count()


def limited(limit: Callable[[Any], Any], **aggregate: Any) -> dp.Plan:
    return plan(lambda p: limit(p).dp_sum("pay", (0, 9), **aggregate), unit="person")


def zoned(zone: str, moment: datetime) -> dp.Plan:
    return plan(filtered(pl.col("at") > moment), schema={"at": pl.Datetime("us", zone)})


AGE, PAY, CITY = pl.col("age"), pl.col("pay"), pl.col("city")
NOON = datetime(2024, 7, 1, 12)

FAMILIES: dict[str, list[Callable[[], dp.Plan]]] = {
    "spend": [
        lambda: plan(spend={"epsilon": 1}),
        lambda: plan(spend={"epsilon": "1.000000000000001"}),
        lambda: plan(
            spend={"epsilon": 1, "delta": "1e-9"}, build=lambda p: p.dp_sum("pay", (0, 9))
        ),
        lambda: plan(budget={"epsilon": 10}),
        lambda: plan(budget={"rho": 1}, spend={"rho": "0.5"}),
        lambda: plan(budget={"epsilon": 10, "delta": "1e-6", "composition": "zcdp"}),
    ],
    "unit": [
        lambda: plan(unit=dp.Rows()),
        lambda: plan(unit=dp.Rows(contributions=2)),
        lambda: plan(unit=dp.Rows("change-one")),
        lambda: plan(unit=dp.Rows("change-one", contributions=2)),
        lambda: plan(lambda p: p.limit_rows(1).dp_count(), unit="person"),
        lambda: plan(lambda p: p.limit_rows(1).dp_count(), unit="age"),
        lambda: plan(name="persons"),
    ],
    "bounds": [
        lambda: plan(lambda p: p.dp_sum("pay", (0, 9))),
        lambda: plan(lambda p: p.dp_sum("pay", (0, "9.000000001"))),
        lambda: plan(lambda p: p.dp_sum("pay", ("1e-9", 9))),
        lambda: plan(lambda p: p.dp_sum("pay"), bounds={"pay": (0, 9)}),
        lambda: plan(lambda p: p.dp_sum("pay"), bounds={"pay": (0, 8)}),
        lambda: plan(lambda p: p.dp_mean("pay", (0, 9))),
        lambda: plan(lambda p: p.dp_var("pay", (0, 9))),
        lambda: plan(lambda p: p.dp_std("pay", (0, 9))),
        lambda: plan(lambda p: p.dp_std("pay", (0, 9), ddof=0)),
    ],
    "mechanism": [
        lambda: plan(lambda p: p.agg(dp.sum("pay", (0, 9)))),
        lambda: plan(lambda p: p.agg(dp.sum("pay", (0, 9), mechanism="discrete_laplace"))),
        lambda: plan(
            lambda p: p.agg(dp.sum("pay", (0, 9), mechanism="discrete_gaussian")),
            spend={"epsilon": 1, "delta": "1e-7"},
        ),
    ],
    "weights": [
        lambda: plan(lambda p: p.agg(dp.count(), dp.sum("pay", (0, 9)))),
        lambda: plan(lambda p: p.agg(dp.count(), dp.sum("pay", (0, 9), weight=2))),
        lambda: plan(lambda p: p.agg(dp.count(weight=2), dp.sum("pay", (0, 9)))),
        lambda: plan(
            lambda p: p.agg(dp.count(), dp.sum("pay", (0, 9))), {"epsilon": 1, "split": "equal"}
        ),
    ],
    "limits": [
        lambda: limited(lambda p: p.limit_rows(2)),
        lambda: limited(lambda p: p.limit_rows(3)),
        lambda: limited(lambda p: p.limit_norm(3)),
        lambda: limited(lambda p: p.limit_norm("3.00000001")),
        lambda: limited(lambda p: p.limit_rows(3).limit_norm(3)),
        lambda: limited(lambda p: p.limit_rows(2, by="city").limit_groups(2, by="city")),
        lambda: limited(lambda p: p.limit_groups(2, by="city").limit_rows(2, by="city")),
        lambda: limited(lambda p: p.limit_rows(2, by="age").limit_groups(2, by="age")),
        lambda: limited(lambda p: p, per="unit"),
        lambda: limited(lambda p: p.limit_rows(2), per="unit"),
    ],
    "filters": [
        lambda: plan(filtered(AGE > 1)),
        lambda: plan(filtered(AGE >= 1)),
        lambda: plan(filtered(AGE > 2)),
        lambda: plan(filtered(PAY > 1)),
        lambda: plan(filtered(PAY > 1.0000000001)),
        lambda: plan(filtered(PAY > 0.0)),
        lambda: plan(filtered(PAY > -0.0)),
        lambda: plan(filtered(AGE > 1, PAY > 1)),
        lambda: plan(filtered(PAY > 1, AGE > 1)),
        lambda: plan(lambda p: p.filter(AGE > 1).filter(PAY > 1).dp_count()),
        lambda: plan(lambda p: p.filter(PAY > 1).filter(AGE > 1).dp_count()),
        lambda: plan(filtered(CITY.is_in([*MANY, "a"]))),
        lambda: plan(filtered(CITY.is_in([*MANY, "b"]))),
        lambda: plan(filtered(CITY.is_in([*MANY]))),
        lambda: plan(filtered(CITY == "1")),
        lambda: plan(filtered(CITY == "1 ")),
        lambda: plan(filtered(pl.col("price") > Decimal("1.5"))),
        lambda: plan(filtered(pl.col("price") > Decimal("1.50"))),
        lambda: plan(filtered(pl.col("at") > NOON)),
        lambda: plan(filtered(pl.col("at") > NOON + timedelta(microseconds=1))),
    ],
    "zones": [
        lambda: zoned("UTC", NOON.replace(tzinfo=UTC)),
        lambda: zoned("UTC", NOON.replace(tzinfo=UTC, minute=1)),
        lambda: zoned("Europe/Zurich", NOON.replace(tzinfo=ZoneInfo("Europe/Zurich"))),
        lambda: zoned("Europe/Zurich", NOON.replace(tzinfo=ZoneInfo("Europe/Zurich"), minute=1)),
    ],
    "keys": [
        lambda: plan(grouped("city", MANY)),
        lambda: plan(grouped("city", [*MANY[:-1], "x"])),
        lambda: plan(grouped("city", [*MANY[:-1], None])),
        lambda: plan(grouped("city", [*MANY[:-1], "\x00"])),
        lambda: plan(grouped("city", [*MANY[:-1], ""])),
        lambda: plan(grouped("city", [*MANY[:-1], '"'])),
        lambda: plan(grouped("city", MANY[:-1])),
        lambda: plan(grouped("city", [*MANY, "x"])),
        lambda: plan(grouped("city"), spend={"epsilon": 1, "delta": "1e-7"}),
        lambda: plan(grouped("city"), categories={"city": MANY}),
        lambda: plan(grouped("city"), categories={"city": [*MANY[:-1], "x"]}),
        lambda: plan(grouped(CITY.alias("town"), MANY)),
        lambda: plan(grouped(AGE, [*range(100)])),
        lambda: plan(grouped(AGE // 1, [*range(100)])),
        lambda: plan(grouped(CITY.replace(dict.fromkeys(MANY, "a")).alias("g"), ["a"])),
        lambda: plan(
            grouped(CITY.replace({**dict.fromkeys(MANY, "a"), "99": "b"}).alias("g"), ["a"])
        ),
        lambda: plan(grouped(CITY.is_in([*MANY, "a"]).alias("g"))),
        lambda: plan(grouped(CITY.is_in([*MANY, "b"]).alias("g"))),
    ],
    "categories": [
        lambda: plan(lambda p: p.dp_histogram("city"), categories={"city": MANY}),
        lambda: plan(lambda p: p.dp_histogram("city"), categories={"city": [*MANY[:-1], "x"]}),
        lambda: plan(lambda p: p.dp_argmax("city"), categories={"city": MANY}),
        lambda: plan(lambda p: p.dp_argmax("city"), categories={"city": [*MANY[:-1], "x"]}),
        lambda: plan(lambda p: p.dp_argmax("city", k=2), categories={"city": MANY}),
        lambda: plan(lambda p: p.dp_histogram("age", bins=[*range(0, 99, 3)])),
        lambda: plan(lambda p: p.dp_histogram("age", bins=[*range(0, 96, 3), 97])),
    ],
    "declarations": [
        lambda: plan(filtered(CITY.is_in(MANY)), categories={"city": MANY}),
        lambda: plan(filtered(CITY.is_in(MANY)), categories={"city": [*MANY[:-1], "x"]}),
        lambda: plan(filtered(CITY.is_in(MANY)), categories={"city": MANY[:-1]}),
        lambda: plan(filtered(CITY.is_in(MANY))),
        lambda: plan(lambda p: p.dp_n_unique("city"), categories={"city": MANY}),
        lambda: plan(lambda p: p.dp_n_unique("city"), categories={"city": [*MANY[:-1], "x"]}),
    ],
    "quantiles": [
        lambda: plan(lambda p: p.dp_quantile("age", "0.5", (0, 9))),
        lambda: plan(lambda p: p.dp_quantile("age", "0.500001", (0, 9))),
        lambda: plan(lambda p: p.dp_quantile("age", ["0.5", "0.6"], (0, 9))),
        lambda: plan(lambda p: p.dp_quantile("age", ["0.6", "0.5"], (0, 9))),
        lambda: plan(lambda p: p.dp_quantile("age", "0.5", candidates=[*range(60)])),
        lambda: plan(lambda p: p.dp_quantile("age", "0.5", candidates=[*range(59), 70])),
    ],
    "candidates": [
        lambda: plan(best(years())),
        lambda: plan(best(years(7))),
        lambda: plan(best(years(), k=2)),
        lambda: plan(best(years().rename({"note": "remark"}))),
        lambda: plan(best(years()[1:])),
        lambda: plan(best(years().reverse())),
        lambda: plan(best(years().cast({"year": pl.Int32}))),
    ],
    "public frames": [
        lambda: plan(joined(prices(1.0))),
        lambda: plan(joined(prices(1.0 + 2**-52))),
        lambda: plan(joined(prices(None))),
        lambda: plan(joined(prices(float("nan")))),
        lambda: plan(joined(prices(-0.0))),
        lambda: plan(joined(prices(1.0), how="left")),
        lambda: plan(joined(prices(1.0), how="semi")),
        lambda: plan(joined(prices(1.0).reverse())),
        lambda: plan(joined(prices(1.0).rename({"cost": "price2"}))),
        lambda: plan(joined(prices(1.0).cast({"cost": pl.Float32}))),
    ],
    "names": [
        lambda: plan(lambda p: p.agg(dp.count())),
        lambda: plan(lambda p: p.agg(n=dp.count())),
        lambda: plan(lambda p: p.agg(dp.count("age"))),
        lambda: plan(lambda p: p.agg(dp.count("pay").alias("age"))),
    ],
    "arithmetic": [
        lambda: plan(lambda p: p.agg(n=dp.count() / dp.count("age"))),
        lambda: plan(lambda p: p.agg(n=dp.count("age") / dp.count())),
        lambda: plan(lambda p: p.agg(n=dp.count() / dp.count("age") + 0.1234567)),
        lambda: plan(lambda p: p.agg(n=dp.count() / dp.count("age") + 0.12345671)),
    ],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_each_edit_of_a_query_changes_the_fingerprint(family: str) -> None:
    plans = [make() for make in FAMILIES[family]]
    prints = [found.fingerprint for found in plans]
    for i, one in enumerate(plans):
        for j in range(i):
            assert prints[i] != prints[j], (j, i)
            assert one.diff(plans[j]), (j, i)
            assert plans[j].diff(one), (j, i)


def risky(**about: Any) -> dp.Plan:
    return plan(lambda p: p.dp_sum("pay", (0, 10**6)), **about)


def test_what_risks_follow_from_changes_the_fingerprint() -> None:
    """Also what is of no column that the query reads."""
    without = {name: dtype for name, dtype in SCHEMA.items() if name != "person"}
    plans = [
        risky(),
        risky(typical={"pay": 100}),
        risky(typical={"pay": 101}),
        risky(schema=without),
        risky(spend={"epsilon": 1, "delta": "1e-7"}),
    ]
    assert len({found.fingerprint for found in plans}) == len(plans)
    assert len({document.earlier_fingerprint(found) for found in plans[:-1]}) == 1
    for one, other in pairwise(plans):
        assert one.diff(other)


READ: dict[str, list[dict[str, Any]]] = {
    "age": [{"age": pl.Int64}, {"age": pl.Int32}, {"age": pl.Float64}],
    "at": [{"at": pl.Datetime(unit, zone)} for unit in ("us", "ms") for zone in (None, "UTC")],
    "price": [{"price": pl.Decimal(10, 2)}, {"price": pl.Decimal(10, 3)}],
    "sex": [{"sex": pl.Enum(["f", "m"])}, {"sex": pl.Enum(["m", "f"])}, {"sex": pl.String}],
}


@pytest.mark.parametrize("column", READ)
def test_types_of_columns_that_are_read_change_the_fingerprint(column: str) -> None:
    """And of others they do not."""
    schemas = [{**SCHEMA, **types} for types in READ[column]]
    plans = [plan(lambda p: p.dp_count(column), schema=schema) for schema in schemas]
    assert len({found.fingerprint for found in plans}) == len(plans)
    for one, other in pairwise(plans):
        assert f"type of column `{column}` of people" in one.diff(other)
        assert dp.Plan.from_json(one.to_json()).columns == one.columns
    others = {plan(lambda p: p.dp_count("pay"), schema=schema).fingerprint for schema in schemas}
    assert len(others) == 1


BUILDS: dict[str, Callable[[Any], Any]] = {
    "count": lambda p: p.filter(AGE > 1).dp_count(),
    "several": lambda p: p.group_by("sex").agg(dp.mean("pay", (0, 9)), dp.median("age", (0, 9))),
    "joined": joined(prices(1.0)),
}


@pytest.mark.parametrize("name", BUILDS)
def test_nothing_else_does(name: str) -> None:
    build = BUILDS[name]
    expected = plan(build).fingerprint
    row = {
        "person": [1], "age": [2], "pay": [0.5], "price": [Decimal("1.00")], "city": ["x"],
        "sex": ["f"], "at": [NOON], "member": [True],
    }  # fmt: skip
    same = [
        plan(build, data=pl.DataFrame(row, schema=dict(SCHEMA))),
        plan(build, data=pl.DataFrame(schema=dict(SCHEMA))),
        plan(build, schema={**SCHEMA, "other": pl.Int8, "more": pl.List(pl.String)}),
        plan(build, schema=dict(reversed(SCHEMA.items()))),
        plan(build, schema={k: v for k, v in SCHEMA.items() if k not in ("price", "at")}),
        plan(build, budget={"epsilon": 5, "delta": "1e-7"}),
        plan(build, spend={"epsilon": "1.0"}),
        plan(build, spend={"epsilon": Decimal("1.00")}),
        plan(build, bounds={"person": (0, 9)}),
        plan(build, categories={"price": [Decimal("1.00")]}),
    ]
    assert {found.fingerprint for found in same} == {expected}


def test_forms_of_the_same_question_do_not() -> None:
    keys = ["a", "b"]
    forms: list[list[Callable[[Any], Any]]] = [
        [
            grouped("city", form)
            for form in (
                keys, tuple(keys), pl.Series(keys), pl.Series("city", keys), {"city": keys},
                pl.DataFrame({"city": keys}), dp.keys(keys), dp.keys({"city": keys}), iter(keys),
                pl.Series(keys, dtype=pl.Categorical), pl.Series(keys, dtype=pl.Enum(keys)),
            )
        ],
        [
            grouped("age", form)
            for form in ([1, 2], range(1, 3), pl.Series([1, 2], dtype=pl.UInt8), dp.keys([1, 2]))
        ],
        [
            lambda p: p.dp_sum("pay", (0, 1)),
            lambda p: p.dp_sum("pay", [0, 1]),
            lambda p: p.agg(PAY.dp_sum((0, 1))),  # type: ignore[attr-defined]
            lambda p: p.agg(dp.sum("pay", bounds=(0, 1))),
        ],
        [
            lambda p: p.agg(a=dp.count("age"), b=dp.sum("pay", (0, 9))),
            lambda p: p.agg(b=dp.sum("pay", (0, 9)), a=dp.count("age")),
        ],
        [joined(prices(1.0)), joined(pl.concat([prices(1.0)[:9], prices(1.0)[9:]]))],
    ]  # fmt: skip
    for family in forms:
        assert len({plan(build).fingerprint for build in family}) == 1


@pytest.mark.parametrize("name", ["a", 'a"', "a'", "a\n", "\u202e", "'\"\\"])
def test_declarations_are_told_whatever_a_column_is_called(name: str) -> None:
    builds: list[Callable[[Any], Any]] = [
        lambda p: p.filter(pl.col(name) > 1).dp_count(),
        lambda p: p.drop_nulls([name]).dp_count(),
    ]
    for build in builds:
        plans = [plan(build, schema={name: pl.Int64}, bounds={name: (0, high)}) for high in (8, 9)]
        assert [found.declared for found in plans] == [
            (f"{name} is in [0, 8]",),
            (f"{name} is in [0, 9]",),
        ]
        assert plans[0].fingerprint != plans[1].fingerprint


def test_frames_of_one_name_are_told_apart() -> None:
    session = dp.Session(epsilon=1)
    schema = {"id": pl.Int64, "x": pl.Int64}
    a, b, c = (
        session.protect(pl.LazyFrame(schema=schema), unit="id", name="same") for _ in range(3)
    )

    def fingerprint(*frames: dp.PrivateFrame) -> str:
        found = a
        for frame in frames:
            found = found.concat(frame)
        return found.limit_rows(9).dp_count().plan(epsilon=1).fingerprint

    asked = [(a, a, a), (b, b, b), (b, c, b), (b, c, c), (b, b, c), (a, b, b), (b, a, b)]
    assert len({fingerprint(*frames) for frames in asked}) == len(asked)
    assert fingerprint(b, c, b) == fingerprint(c, b, c)  # which of two is not in a plan


def test_parts_of_a_partition_hold_no_salt() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(pl.LazyFrame(schema=dict(SCHEMA)), unit="person", name="people")
    limited = people.limit_groups(1, by="city").limit_rows(1, by="city")
    plans = []
    for _ in range(2):  # each division has a salt of its own
        frame = session.partition(limited, "city", ["a", "b"])["a"]
        plans.append((frame.dp_count().plan(epsilon="0.5"), frame._relation.salt))
    (one, salt), (other, another) = plans
    assert isinstance(salt, int)
    assert salt != another
    assert one.to_json() == other.to_json()
    assert str(salt) not in one.to_json()


NUMBERS = st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS)
def test_constants_are_told_apart_as_expressions_tell_them(a: float, b: float) -> None:
    one, other = (plan(filtered(PAY.gt(pl.lit(x)))).fingerprint for x in (a, b))
    assert (one == other) == (type(a) is type(b) and repr(a) == repr(b))


@settings(max_examples=60, deadline=None)
@given(*[st.lists(st.text(max_size=3) | st.none(), min_size=1, max_size=4, unique=True)] * 2)
def test_keys_are_told_apart(a: list[str | None], b: list[str | None]) -> None:
    texts = [[x for x in keys if x is None or "\ud800" not in x] for keys in (a, b)]
    one, other = (plan(grouped("city", [*MANY, "key", *t])).keys_digest for t in texts)
    expected = [list(dict.fromkeys([*MANY, "key", *t])) for t in texts]
    assert (one == other) == (expected[0] == expected[1])
