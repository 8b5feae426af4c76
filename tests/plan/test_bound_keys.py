"""Keys of parts that are values of parameters: one approval covers the parts of all values, and
nothing else.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.parameters import Parameters, declaring
from dpframe.api.payer import payer_of
from dpframe.ledger.approvals import read_range
from dpframe.ledger.owners import approve
from dpframe.plan import document
from dpframe.plan.document import template_fingerprint
from tests.ledger.ledgers import store_at, verify
from tests.plan.test_templates import leaves, other, replaced

SCHEMA: dict[str, Any] = {
    "day": pl.Date,
    "due": pl.Date,
    "n": pl.Int64,
    "small": pl.Int8,
    "city": pl.String,
    "at": pl.Datetime("us", "Europe/Zurich"),
    "x": pl.Int64,
}
DAY = date(2027, 1, 1)
YEAR = "2027-01-01..2027-12-31"
Made = Callable[[dp.Session, dp.PrivateFrame, Any], Any]


def query_of(made: Made, value: Any, dtype: Any, session: dp.Session, name: str = "v") -> Any:
    frame = session.protect(
        pl.DataFrame(schema=SCHEMA), unit=dp.Rows(), name=name, bounds={"x": (0, 9)}
    )
    declared = Parameters({})
    with declaring(declared):
        day = dp.parameter("day", dtype, default=value)
        payer_of(session).parameters = declared.declared  # as those of a job
        return made(session, frame, day)


def planned(made: Made, value: Any = DAY, dtype: Any = pl.Date) -> dp.Plan:
    found = query_of(made, value, dtype, dp.Session(epsilon=1)).plan(epsilon="0.1")
    assert dp.Plan.from_json(found.to_json()).fingerprint == found.fingerprint
    return found  # type: ignore[no-any-return]


def template(plan: dp.Plan, allowed: str = "any") -> str:
    return template_fingerprint(plan, {"day": allowed})


def nightly(session: dp.Session, frame: dp.PrivateFrame, day: Any) -> Any:
    return session.partition(frame, "day", keys=[day])[day.value].dp_count()


def waiting(session: dp.Session, frame: dp.PrivateFrame, day: Any) -> Any:
    return session.partition(frame, "day", keys=[day], delay="2d")[day.value].dp_count()


SAME: list[tuple[Made, Any, list[Any]]] = [
    (nightly, pl.Date, [DAY, date(2028, 2, 29), date(1970, 1, 1)]),
    (waiting, pl.Date, [DAY, date(2028, 2, 29), date(1970, 1, 1)]),
    (
        lambda s, f, d: s.partition(f, ["day", "city"], keys={"day": [d], "city": ["a", "b"]})[
            d.value, "b"
        ].agg(n=dp.count(), x=dp.mean("x")),
        pl.Date,
        [DAY, date(2028, 2, 29)],
    ),
    (lambda s, f, n: s.partition(f, pl.col("n") + 1, keys=[n])[n.value].dp_sum("x"), int, [1, -5]),
    (lambda s, f, n: s.partition(f, "small", keys=[n])[n.value].dp_sum("x"), int, [1, -5]),
    (lambda s, f, c: s.partition(f, "city", keys=[c, "z"])[c.value].dp_count(), str, ["a", '"']),
    (
        lambda s, f, d: s.partition(
            s.partition(f, "city", keys=["a"])["a"].filter(pl.col("due") > d), "day", keys=[d]
        )[d.value].dp_count(),
        pl.Date,
        [DAY, date(2028, 2, 29)],
    ),
    (
        lambda s, f, t: s.partition(f, "at", keys=[t])[t.value].dp_count(),
        pl.Datetime(time_zone="Europe/Zurich"),
        [datetime(2027, 1, 1), datetime(2027, 7, 1, 5, 6, 7)],
    ),
    (
        lambda s, f, days: s.partition(f, "day", keys=days)[days.value[-1]].dp_count(),
        pl.List(pl.Date),
        [[DAY], [date(2026, 1, 1), date(2026, 1, 2)]],
    ),
    (
        lambda s, f, days: s.partition(f, "day", keys={"day": days})[days.value[0]].dp_count(),
        pl.List(pl.Date),
        [[DAY], [date(2026, 1, 1), date(2026, 1, 2)]],
    ),
]


@pytest.mark.parametrize("number", range(len(SAME)))
def test_parts_of_all_values_have_one_template(number: int) -> None:
    made, dtype, values = SAME[number]
    plans = [planned(made, value, dtype) for value in values]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert len({template(plan) for plan in plans}) == 1
    for plan in plans:
        assert [p.name for p in plan.parameters] == ["day"]
        assert template(dp.Plan.from_json(plan.to_json())) == template(plan)
        assert ":day" in plan.steps[-1].words


@given(st.dates(), st.dates())
def test_whatever_the_values(one: date, another: date) -> None:
    assert template(planned(nightly, one)) == template(planned(nightly, another))


OTHERS: dict[str, Made] = {
    "another column": lambda s, f, d: s.partition(f, "due", keys=[d])[d.value].dp_count(),
    "an expression": lambda s, f, d: s.partition(f, pl.col("day").dt.truncate("1mo"), keys=[d])[
        d.value
    ].dp_count(),
    "an expression of that name": lambda s, f, d: s.partition(
        f, pl.col("due").alias("day"), keys=[d]
    )[d.value].dp_count(),
    "a column of that name": lambda s, f, d: s.partition(
        f.with_columns(day="due"), "day", keys=[d]
    )[d.value].dp_count(),
    "a value that is not the parameter's": lambda s, f, d: s.partition(
        f, "day", keys=[d, d.value + timedelta(days=1)]
    )[d.value + timedelta(days=1)].dp_count(),
    "the same value as a constant": lambda s, f, d: s.partition(
        f.filter(pl.col("due") != d), "day", keys=[d.value]
    )[d.value].dp_count(),
    "what the parameter makes": lambda s, f, d: s.partition(
        f.filter(pl.col("due") != d), "day", keys=[d.value + timedelta(days=1)]
    )[d.value + timedelta(days=1)].dp_count(),
    "null": lambda s, f, d: s.partition(f, "day", keys=[d, None])[None].dp_count(),
    "one that waits": waiting,
    "a filter": lambda s, f, d: f.filter(pl.col("day") == d).dp_count(),
    "the whole": lambda s, f, d: f.dp_count(),
    "another key beside": lambda s, f, d: s.partition(
        f, ["day", "due"], keys={"day": [d], "due": [DAY]}
    )[d.value, DAY].dp_count(),
    "a part of the part": lambda s, f, d: s.partition(
        s.partition(f, "day", keys=[d])[d.value], "city", keys=["a"]
    )["a"].dp_count(),
    "another output": lambda s, f, d: s.partition(f, "day", keys=[d])[d.value].dp_sum("x"),
    "a step before": lambda s, f, d: s.partition(f.filter(pl.col("x") > 1), "day", keys=[d])[
        d.value
    ].dp_count(),
    "what depends on the value": lambda s, f, d: s.partition(f, "day", keys=[d])[d.value].dp_sum(
        pl.col("x").clip(0, d.value.day)
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_approval_covers_no_other_part(name: str, tmp_path: Path) -> None:
    """On the plan, and in a session that needs approval: nothing is charged."""
    ledger = tmp_path / "budget.db"
    approved_for(ledger, nightly)
    session = dp.Session(epsilon=1, ledger=ledger, require_approval=True)
    query_of(nightly, date(2027, 3, 1), pl.Date, session).collect(epsilon="0.1")
    for day in (DAY, date(2027, 12, 31)):
        asked = query_of(OTHERS[name], day, pl.Date, session)
        assert template(asked.plan(epsilon="0.1"), YEAR) != template(planned(nightly, day), YEAR)
        with pytest.raises(dp.PlanMismatch, match="is not approved"):
            asked.collect(epsilon="0.1")
    assert session.spent == dp.PureDP("0.1")
    verify(ledger)


def approved_for(ledger: Path, made: Made, dtype: Any = pl.Date, value: Any = DAY) -> None:
    session = dp.Session(epsilon=1, ledger=ledger)
    plan = query_of(made, value, dtype, session).plan(epsilon="0.1")
    found = read_range(YEAR, plan.parameters[0].kind)
    assert found is not None
    known = template(plan, YEAR)
    text = plan.to_json()
    approve(store_at(ledger), "default", known, text, "Ann", None, allowed=(("day", found),))


def test_one_approval_covers_each_night(tmp_path: Path) -> None:
    """A year of nights costs what one does, by one approval; days outside are refused."""
    ledger = tmp_path / "budget.db"
    approved_for(ledger, nightly)
    for number in (0, 1, 31, 364):
        session = dp.Session(epsilon=1, ledger=ledger, require_approval=True)
        query_of(nightly, DAY + timedelta(days=number), pl.Date, session).collect(epsilon="0.1")
    session = dp.Session(epsilon=1, ledger=ledger, require_approval=True)
    for day in (date(2026, 12, 31), date(2028, 1, 1)):
        with pytest.raises(dp.PlanMismatch, match=f"day is {day}, and the approval is for {YEAR}"):
            query_of(nightly, day, pl.Date, session).collect(epsilon="0.1")
    with pytest.raises(dp.PlanMismatch):  # another frame
        query_of(nightly, DAY, pl.Date, session, name="w").collect(epsilon="0.1")
    with pytest.raises(dp.PlanMismatch):  # another spend
        query_of(nightly, DAY, pl.Date, session).collect(epsilon="0.2")
    assert session.spent == dp.PureDP("0.1")
    assert session.history.height == 4
    verify(ledger)


@pytest.mark.parametrize("number", range(len(SAME)))
def test_every_other_value_of_a_plan_is_in_its_template(number: int) -> None:
    made, dtype, values = SAME[number]
    contents = document._contents(planned(made, values[0], dtype))
    allowed = {"day": "any"}
    before = document._fingerprint(document.template(contents, allowed))
    steps = contents["steps"]
    checked = 0
    for where, value in leaves(contents):
        if where[0] in ("outputs", "releases") and where[2:3] in (("releases",), ("draw",)):
            continue  # numbers by which they are found, which fingerprints make anew
        if where[0] == "parameters" and where[-1] == "value":
            continue
        if where[0] == "steps":
            if where[2] == "learned" and any(map(names_it, steps[: where[1] + 1])):
                continue
            if is_value(contents, where):
                continue
        after = document._fingerprint(
            document.template(replaced(contents, where, other(value)), allowed)
        )
        assert after != before, where
        checked += 1
    assert checked > 30


def names_it(step: Any) -> bool:
    return '"parameter"' in json.dumps(step["definition"])


def is_value(contents: Any, where: tuple[Any, ...]) -> bool:
    """Whether it is inside the value of a constant that names the parameter, or its name there."""
    found = contents
    for number, name in enumerate(where):
        if isinstance(found, dict) and "parameter" in found and found.get("type") == "Literal":
            return name == "value" or where[number:] == ("parameter", "value")
        found = found[name]
    return False


@pytest.mark.parametrize("number", [0, 1, 7])
def test_a_textwhose_key_is_not_the_value_is_refused(number: int) -> None:
    made, dtype, values = SAME[number]
    plan = planned(made, values[0], dtype)
    (key, *_) = plan.steps[-1].definition["key"]
    for value in ({"date": "2027-01-02"}, "2027-01-01", None, {"date": "2027-01-01x"}):
        forged = {**key, "value": value}
        assert not is_read(plan, forged), value
    assert not is_read(plan, {**key, "dtype": {"type": "DType", "name": "Int64"}})
    assert not is_read(plan, {**key, "parameter": {**key["parameter"], "name": "other"}})
    assert is_read(plan, key)


def is_read(plan: dp.Plan, key: Any) -> bool:
    """Whether a document with another key, and the fingerprint that goes with it, is read."""
    last = plan.steps[-1]
    changed = {**last.definition, "key": [key, *last.definition["key"][1:]]}
    steps = (*plan.steps[:-1], dataclasses.replace(last, definition=changed))
    try:
        dp.Plan.from_json(dataclasses.replace(plan, steps=steps).to_json())
    except dp.PlanMismatch:
        return False
    return True


def test_parts_are_the_same_whoever_names_the_key(tmp_path: Path) -> None:
    """A key from a parameter is charged with the part that has that value: nobody gets two."""
    ledger = tmp_path / "budget.db"
    session = dp.Session(epsilon=1, ledger=ledger)
    query_of(nightly, DAY, pl.Date, session).collect(epsilon="0.1")
    frame = session.protect(pl.DataFrame(schema=SCHEMA), unit=dp.Rows(), name="v")
    plain = dp.Session(epsilon=1, ledger=ledger)
    frame = plain.protect(pl.DataFrame(schema=SCHEMA), unit=dp.Rows(), name="v")
    plain.partition(frame, "day", keys=[DAY])[DAY].dp_count().collect(epsilon="0.1")
    assert plain.spent == dp.PureDP("0.2")


def test_parameters_that_are_no_keys_of_their_column() -> None:
    def keyed(column: str, value: Any, dtype: Any) -> Any:
        return query_of(
            lambda s, f, d: s.partition(f, column, keys=[d]), value, dtype, dp.Session(epsilon=1)
        )

    for column, value, dtype in [
        ("at", DAY, pl.Date),
        ("city", 5, int),
        ("n", "5", str),
        ("small", 1000, int),
        ("day", datetime(2027, 1, 1, 5), pl.Datetime),
    ]:
        with pytest.raises(dp.MissingKeys):
            keyed(column, value, dtype)
    with pytest.raises(dp.DPFrameError):  # an expression of a parameter is no key
        query_of(
            lambda s, f, d: s.partition(f, "day", keys=[d + timedelta(days=1)]),
            DAY,
            pl.Date,
            dp.Session(epsilon=1),
        )
