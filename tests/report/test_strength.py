"""Differences begin with who is protected, and with errors."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp

PEOPLE = pl.LazyFrame(schema={"person": pl.Int64, "day": pl.Date, "pay": pl.Float64})


def plan(unit: Any = "person", epsilon: Any = 1, top: int = 9000, **spend: Any) -> dp.Plan:
    session = dp.Session(epsilon=100, delta="0.01")
    people = session.protect(PEOPLE, unit=unit, name="people")
    if not isinstance(unit, dp.Rows):
        people = people.limit_rows(3)
    query = people.agg(dp.count().alias("n"), dp.sum("pay", (0, top)).alias("s"))
    return query.plan(epsilon=epsilon, **spend)


def first(one: dp.Plan, other: dp.Plan) -> str:
    return one.diff(other).splitlines()[0]


MONTH = dp.Identifier("person", window="1mo", time="day")
DAY = dp.Identifier("person", window="1d", time="day")


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (plan(dp.Rows()), plan()),
        (plan(dp.Rows(), "0.1"), plan(epsilon="0.1")),
        (plan(dp.Rows()), plan(dp.Rows(contributions=3))),
        (plan(dp.Rows()), plan(DAY)),
        (plan(DAY), plan(MONTH)),
        (plan(MONTH), plan()),
        (plan(epsilon=2), plan()),
        (plan(epsilon=2), plan(dp.Identifier("person"), "1.9999")),
    ],
)
def test_the_guarantee_gets_weaker_or_stronger(weak: dp.Plan, strong: dp.Plan) -> None:
    assert first(strong, weak).startswith("the guarantee gets weaker: ")
    assert first(weak, strong).startswith("the guarantee gets stronger: ")


def test_protecting_rows_instead_of_people_is_weaker_at_any_cost() -> None:
    lines = plan().diff(plan(dp.Rows(), "0.01")).splitlines()
    assert lines[0].startswith("the guarantee gets weaker: adding or removing all rows")
    assert "comes from protecting less" in lines[0]
    assert not any("sensitivity" in line for line in lines)
    assert not any(line.startswith("protects") for line in lines)
    assert first(plan(dp.Rows(), "0.01"), plan()).startswith("the guarantee changes: ")


def test_other_neighbours_and_other_people_are_neither() -> None:
    changes = plan(dp.Rows("change-one"))
    assert first(plan(dp.Rows()), changes).startswith("the guarantee changes: ")
    session = dp.Session(epsilon=1)
    frame = PEOPLE.with_columns(pl.col("person").alias("other"))
    one, two = (session.protect(frame, unit=unit, name="x") for unit in ("person", "other"))
    plans = [f.limit_rows(1).dp_count().plan(epsilon=1) for f in (one, two)]
    assert first(*plans).startswith("the guarantee changes: ")


def test_errors_come_next() -> None:
    lines = plan().diff(plan(top=900_000)).splitlines()
    assert lines[0].startswith("95% error of `s` ")
    before, after = (float(n.replace(",", "")) for n in lines[0].rpartition("`")[2].split("->"))
    assert after == pytest.approx(100 * before, rel=1e-3)
    both = plan().diff(plan(epsilon="0.5")).splitlines()
    assert [line.partition(" `")[0] for line in both[1:3]] == ["95% error of", "95% error of"]
    assert not plan().diff(plan())


def test_figures_that_print_alike_are_printed_longer() -> None:
    lines = plan(epsilon=1).diff(plan(epsilon="1.0000000001")).splitlines()
    assert lines[0] == (
        "the guarantee gets weaker: epsilon 1 -> epsilon 1 (epsilon 1 -> 1.0000000001)"
    )
    for line in lines:
        if " -> " in line:
            before, _, after = line.rpartition(" -> ")
            assert before.split()[-1] != after.rstrip(")")


def test_deltas_that_print_alike_are_printed_longer() -> None:
    session = dp.Session(epsilon=1, delta="0.01")
    people = session.protect(PEOPLE, unit="person", name="people")
    query = people.group_by("day").agg(dp.n_unique("person").alias("n"))
    one, other = (query.plan(epsilon=1, delta=d) for d in ("1e-6", "1.0000000001e-6"))
    assert first(one, other) == (
        "the guarantee gets weaker: epsilon 1, delta 1e-6 -> epsilon 1, delta 1e-6 "
        "(delta 1e-6 -> 1.0000000001e-6)"
    )
