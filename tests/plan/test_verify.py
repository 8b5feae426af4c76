"""Documents and what the kernel says of them: nothing unsafe is accepted, and no reading that says
otherwise."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import soundness
from dpframe.api.payer import Spend
from dpframe.kernel.plan import OneEach, Refused, Scan, write
from dpframe.kernel.plan import plan_of as physical_of
from dpframe.kernel.plan import read as read_physical
from dpframe.kernel.render import render
from dpframe.kernel.verify import verify as verify_physical
from dpframe.optimise.queries import Queries
from tests.kernel.mutate import mutants
from tests.kernel.oracle import Meaningless, judge
from tests.laws.amounts import amounts
from tests.plan.documents import ALL, of_version_1, plan_of
from tests.plan.edits import at, edited, edits, paths, with_digest, with_fingerprint, with_value

SOME = (
    "grouped",
    "found_groups_by_number",
    "found_by_weights",
    "found_limit",
    "part",
    "frames_together",
    "several_queries",
    "quantiles",
    "stream",
    "zcdp_session",
)


@pytest.mark.parametrize("name", ALL)
def test_every_plan_is_verified_as_plan_and_as_document(name: str) -> None:
    plan = plan_of(name)
    assert plan.physical is not None
    found = dp.verify(plan)
    assert found == dp.verify(plan.to_json())
    assert found.is_complete
    assert found.fingerprint == plan.fingerprint
    assert (found.cost.main, found.cost.slack) == (plan.cost.main, plan.cost.slack)
    assert list(found.statements) == render(plan.physical).splitlines()
    for statement in found.statements:
        assert statement in str(found)


OF_INDIVIDUALS = {
    "one row each": lambda f: (
        f.group_by("who").agg(n=pl.col("x").clip(0, 8).sum()).agg(dp.sum("n", (0, 8)))
    ),
    "beside rows": lambda f: f.filter(pl.len().over("who") * 2 > 2).limit_rows(3).agg(dp.count()),
    "beside rows by another key": lambda f: (
        f.filter(pl.col("x").max().over("who", "town") > 1, pl.len().over("who") > 1)
        .limit_rows(3)
        .agg(dp.count())
    ),
    "totals in bins": lambda f: f.limit_rows(3).agg(
        dp.col("x").dp_histogram([0, 5, 10], per="unit")
    ),
    "median of totals": lambda f: f.limit_rows(3).agg(
        dp.col("x").dp_median(bounds=(0, 20), per="unit")
    ),
    "a limit that is found": lambda f: f.agg(dp.count()),
    "a limit that is found by groups": lambda f: (
        f.limit_rows(1, by="town").group_by("town", keys=["a", "b"]).agg(dp.count())
    ),
}


def of_individuals(name: str) -> dp.Plan:
    rows = pl.DataFrame({"who": [1, 1, 2], "x": [1, 2, 3], "town": ["a", "b", "b"]})
    frame = dp.Session(epsilon=10).protect(rows, unit="who")
    plan: dp.Plan = OF_INDIVIDUALS[name](frame).plan(epsilon=1)
    return plan


@pytest.mark.parametrize("name", OF_INDIVIDUALS)
def test_plans_of_what_individuals_have_are_read_again(name: str) -> None:
    plan = of_individuals(name)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert dp.verify(plan.to_json()).is_complete


@pytest.mark.parametrize("names", [("rows", "groups"), ("groups", "rows"), ("rows", "rows_")])
def test_columns_may_be_called_as_the_numbers_of_an_individual_are(names: tuple[str, str]) -> None:
    who, time = names
    frame = pl.DataFrame({who: [1, 2], time: [date(2026, 11, 1), date(2026, 11, 2)], "x": [1, 2]})
    unit = dp.Identifier(who, window="1mo", time=time)
    people = dp.Session(epsilon=10).protect(frame, unit=unit)
    plan = people.agg(dp.sum("x", (0, 5))).plan(epsilon=1)
    assert plan.physical is not None
    (each,) = (frame for frame in plan.physical.frames if isinstance(frame, OneEach))
    assert not {each.rows, each.groups} & {*names}
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


def without_field(value: Any, node: str, name: str) -> Any:
    """A part of a document whose nodes of a kind lack a field, as earlier versions wrote them."""
    if isinstance(value, list):
        return [without_field(item, node, name) for item in value]
    if not isinstance(value, dict):
        return value
    left_out = name if value.get("node") == node else None
    return {n: without_field(item, node, name) for n, item in value.items() if n != left_out}


@pytest.mark.parametrize(
    ("name", "node", "field"),
    [
        ("totals in bins", "OfPeople", "grid"),
        ("one row each", "Gather", "bounds"),
        ("a limit that is found", "OneEach", "rows"),
        ("beside rows", "KeepRows", "of"),
    ],
)
def test_a_plan_that_says_less_is_planned_again(name: str, node: str, field: str) -> None:
    found = json.loads(of_individuals(name).to_json())
    less = without_field(found["physical"], node, field)
    assert less != found["physical"]
    text = json.dumps(with_digest({**found, "physical": less}))
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.PlanMismatch, match="plan the query again"):
            read(text)


def test_files_are_verified_too(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_of("grouped").to_json(), encoding="utf-8")
    assert dp.verify(path) == dp.verify(plan_of("grouped"))


def test_fields_may_stand_in_any_order() -> None:
    plan = plan_of("grouped")
    assert dp.verify(json.dumps(json.loads(plan.to_json()), sort_keys=True)) == dp.verify(plan)


def test_an_aggregate_that_dpframe_does_not_have_is_refused() -> None:
    found = json.loads(of_individuals("one row each").to_json())
    found["physical"] = json.loads(
        json.dumps(found["physical"]).replace("individual_sum", "individual_first")
    )
    text = json.dumps(with_digest(with_fingerprint(found)))
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.Unsound, match="no operation 'individual_first'"):
            read(text)


@pytest.mark.parametrize("bounds", [[None], [["0", "8"], None], [["8", "0"]]])
def test_a_sum_without_bounds_is_refused(bounds: Any) -> None:
    found = json.loads(of_individuals("one row each").to_json())
    (gather,) = (frame for frame in found["physical"]["frames"] if frame["node"] == "Gather")
    assert gather["bounds"] == [["0", "8"]]
    gather["bounds"] = bounds
    text = json.dumps(with_digest(with_fingerprint(found)))
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.Unsound, match="bounds"):
            read(text)


def test_an_aggregate_by_another_key_is_refused() -> None:
    found = json.loads(of_individuals("beside rows by another key").to_json())
    gathers = [frame for frame in found["physical"]["frames"] if frame["node"] == "Gather"]
    (gather,) = (frame for frame in gathers if frame["by"])
    gather["by"] = [["by 0", {"node": "Col", "name": "x"}]]
    text = json.dumps(with_digest(with_fingerprint(found)))
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.PlanMismatch, match="contradicts the physical plan"):
            read(text)


@pytest.mark.parametrize("name", ["grouped", "found_groups", "found_limit"])
def test_of_a_document_of_version_1_only_the_stated_costs_are_checked(name: str) -> None:
    text = of_version_1(plan_of(name))
    assert json.loads(text)["schema_version"] == 1
    found = dp.verify(text)
    assert not found.is_complete
    assert (found.digest, found.statements) == (None, ())
    assert found.fingerprint == json.loads(text)["fingerprint"] != plan_of(name).fingerprint
    assert "NOT VERIFIED" in str(found)
    less = json.loads(text.replace('"epsilon": "1/2"', '"epsilon": "1/4"'))
    with pytest.raises(dp.PlanMismatch):
        dp.verify(json.dumps(with_digest(with_fingerprint(less))))


def whole(name: str) -> Any:
    return json.loads(plan_of(name).to_json())


def edit(name: str, *path: str | int, value: object) -> str:
    """A document with another value, and the digests that it then should have."""
    found = with_value(whole(name), path, value)
    return json.dumps(with_digest(with_fingerprint(found)))


@pytest.mark.parametrize(
    ("name", "path", "value", "why"),
    [
        ("grouped", ("physical", "draws", 0, "cost"), "1/4", "draw 0 costs more"),
        ("grouped", ("physical", "draws", 0, "law", "epsilon"), "1", "draw 0 costs more"),
        ("grouped", ("physical", "tables", 3, "adds", "grid", "hi"), 10**12, "draw 0"),
        ("grouped", ("physical", "cost"), "1/3", "the draws cost more"),
        ("part", ("physical", "frames", 0, "unit", "contributions"), 9, "draw 0 costs more"),
        ("found_groups_by_number", ("physical", "draws", 0, "law", "least"), 3, "draw 0 costs"),
        ("stream", ("physical", "frames", 1, "n"), 8, "draw 0 costs more"),
        ("found_limit", ("physical", "options", 3, "frames", 2, "n"), 11, "option 3: draw 0"),
    ],
)
def test_the_first_statement_that_does_not_follow_is_named(
    name: str, path: tuple[str | int, ...], value: object, why: str
) -> None:
    text = edit(name, *path, value=value)
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.Unsound, match=why):
            read(text)
    unsigned = with_value(whole(name), path, value)
    with pytest.raises(dp.Unsound, match=why):  # also where nobody made the digests anew
        dp.verify(json.dumps(unsigned))
    physical = physical_of(json.loads(text)["physical"])
    with pytest.raises(dp.Unsound, match=why):
        dp.verify(replace(plan_of(name), physical=physical))


@pytest.mark.parametrize(
    ("name", "path", "value", "what"),
    [
        ("part", ("plan", "unit", "contributions"), 3, "unit"),
        ("grouped", ("plan", "source"), "others", "unit"),
        ("grouped", ("plan", "keys_digest"), "0" * 64, "groups"),
        ("own_sets", ("plan", "keys_digest"), "0" * 64, "groups"),
        ("own_sets", ("plan", "groups"), 5, "groups"),
        ("filtered_count", ("plan", "columns", 0, "type"), "Int8", "type of the column"),
        ("stream", ("plan", "steps", 1, "definition", "n"), 2, r"steps\[1\]"),
        ("found_limit", ("plan", "found", "choices", 0, "n"), 3, "limit 3"),
        ("found_by_weights", ("physical", "draws", 0, "law", "least"), 10**6, "mechanism"),
    ],
)
def test_a_reading_that_says_otherwise_is_refused(
    name: str, path: tuple[str | int, ...], value: object, what: str
) -> None:
    text = edit(name, *path, value=value)
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.PlanMismatch, match=f"{what}.* contradicts the physical plan"):
            read(text)


@pytest.mark.parametrize("name", SOME)
@amounts("every", 11, 1)
def test_no_change_of_the_physical_plan_alone_is_accepted_with_the_same_reading(
    name: str, every: int
) -> None:
    """Each leaf is changed. What is still accepted says no more privacy than there is, and is
    another text for the reviewer.
    """
    document = whole(name)
    before, refused = dp.verify(plan_of(name)), 0
    for path in islice(paths(document["physical"], ("physical",)), 0, None, every):
        old = at(document, path)
        if isinstance(old, dict | list):
            continue
        for value in islice(edited(old), 3):
            found = json.dumps(with_digest(with_value(document, path, value)))
            try:
                plan = dp.Plan.from_json(found)
            except (dp.Unsound, dp.PlanMismatch):
                refused += 1
                continue
            assert plan.physical is not None
            verify_physical(plan.physical)
            assert dp.verify(plan).statements != before.statements, path
            assert dp.verify(plan).digest != before.digest, path
    assert refused


@amounts("number", 60, 3000)
def test_what_is_accepted_is_as_safe_as_it_says(number: int) -> None:
    """Physical plans of documents with single changes: the second judge finds nothing against those
    that are accepted.
    """
    rng, outcomes = random.Random(11), Counter[str]()
    sources = [plan.physical for plan in map(plan_of, SOME) if plan.physical is not None]
    for source in sources:
        for mutant in islice(mutants(source, rng), number // len(sources)):
            text = write(mutant)
            try:
                plan = read_physical(text)
                assert plan == mutant
                verify_physical(plan)
            except Refused:
                outcomes["refused"] += 1
                continue
            try:
                verdict = judge(plan, 10, 6, 5)
            except Meaningless:
                outcomes["meaningless"] += 1
                continue
            outcomes["accepted"] += 1
            assert not verdict.unsafe, text
    assert outcomes["refused"] > outcomes.total() / 4


@amounts("every", 97, 3)
def test_changed_readings_are_refused_or_change_no_fact_of_the_kernel(every: int) -> None:
    """Everything that both say is the same in every document that is accepted."""
    for name in ("grouped", "part", "found_by_weights"):
        physical = plan_of(name).physical
        assert physical is not None
        for path, found in islice(edits(whole(name), "plan"), 0, None, every):
            try:
                plan = dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))
            except (dp.PlanMismatch, dp.Unsound):
                continue
            assert plan.physical == physical
            assert plan.cost.main == physical.cost, path
            assert plan.unit == plan_of(name).unit, path
            if plan.groups is not None:  # where groups are found there are no keys to digest
                assert plan.keys_digest == plan_of(name).keys_digest, path
            assert [r.law for r in plan.draws] == [r.law for r in plan_of(name).draws], path


def test_the_physical_plan_is_that_of_what_runs() -> None:
    """A plan that states another one than what runs is refused before the charge."""
    session = dp.Session(epsilon=1)
    people = session.protect(pl.DataFrame({"a": [1, 2]}), unit=dp.Rows())
    query: Any = people.dp_count()
    prepared = query._payer.prepare(Queries((query._query,)), Spend(epsilon=Fraction(1, 2)))
    physical = prepared.plan.physical
    assert physical is not None
    soundness.require_sound(prepared)
    other = replace(prepared.plan, physical=replace(physical, cost=physical.cost * 2))
    with pytest.raises(dp.Unsound, match="physical plan"):
        soundness.require_sound(replace(prepared, plan=other))


def test_two_frames_of_one_name_are_two_sources() -> None:
    session = dp.Session(epsilon=1)
    frames = [
        session.protect(pl.DataFrame({"who": [1], "a": [n]}), unit="who", name="visits")
        for n in (1, 2)
    ]
    both = frames[0].concat(frames[1]).limit_rows(1).dp_count().plan(epsilon=1)
    assert both.physical is not None
    names = [frame.name for frame in both.physical.frames if isinstance(frame, Scan)]
    assert names == ["visits", "visits (2)"]
    assert dp.verify(both.to_json()).is_complete


def test_columns_that_are_selected_and_not_read_contradict_nothing() -> None:
    rows = pl.DataFrame({"who": [1, 2], "x": [1, 2], "town": ["a", "b"]})
    frame = dp.Session(epsilon=10).protect(rows, unit="who").limit_rows(2)
    plan = frame.select("who", "x", "town").agg(dp.sum("x", (0, 5))).plan(epsilon=1)
    assert plan.physical is not None
    (scan, *_) = plan.physical.frames
    assert isinstance(scan, Scan)
    assert [name for name, _ in scan.columns] == ["who", "x"]
    assert dp.verify(plan.to_json()).is_complete
