"""Whatever is given to `from_json` is a plan or is refused, in words that quote nothing odd."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core import regular
from dpframe.plan import document
from dpframe.plan.agreement import disagreement
from tests.plan.documents import ALL, plan_of
from tests.plan.edits import at, paths, with_digest, with_fingerprint, with_value

TEXT = plan_of("grouped").to_json()
WHOLE: Any = json.loads(TEXT)


def deep(depth: int) -> str:
    return TEXT.replace('"steps": []', f'"steps": {"[" * depth}{"]" * depth}')


NOT_PLANS: dict[str, Any] = {
    "nothing": "",
    "no bytes": b"",
    "a word": "plan",
    "a path": "plan.json",
    "half": TEXT[: len(TEXT) // 2],
    "more": TEXT + "{}",
    "a list": "[]",
    "null": "null",
    "a number": "1",
    "another object": "{}",
    "a name twice": TEXT.replace('"digest": ', '"digest": "0", "digest": '),
    "a name twice below": TEXT.replace('"main"', '"main"').replace('"l0": 1,', '"l0": 1, "l0": 1,'),
    "NaN": TEXT.replace('"scale": 2.0', '"scale": NaN'),
    "infinity": TEXT.replace('"scale": 2.0', '"scale": -Infinity'),
    "beyond floats": TEXT.replace('"scale": 2.0', '"scale": 1e999'),
    "a long integer": TEXT.replace('"l0": 1,', f'"l0": {"9" * 10_000},'),
    "deep": deep(100_000),
    "deeper than objects": '{"schema_version":' * 50_000,
    "no UTF-8": TEXT.encode()[:200] + b"\xff" + TEXT.encode()[200:],
    "a mark before text": "\ufeff" + TEXT,
    "an object": WHOLE,
    "none": None,
    "a plan": plan_of("grouped"),
    "a byte array": bytearray(TEXT.encode()),
}


@pytest.mark.parametrize("name", NOT_PLANS)
def test_what_is_no_plan_is_refused(name: str) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="this is not the JSON of a plan"):
        dp.Plan.from_json(NOT_PLANS[name])


@pytest.mark.parametrize("depth", [50, 300, 450, 900, 2000])
def test_nesting_of_any_depth_is_refused(depth: int) -> None:
    for found in (deep(depth), as_definition(depth)):
        with pytest.raises((dp.UnsupportedOperation, dp.PlanMismatch)):
            dp.Plan.from_json(found)


def as_definition(depth: int) -> str:
    """Where any JSON may be."""
    return TEXT.replace('"definition": [', f'"definition": [{"[" * depth}{"]" * depth},', 1)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (0, "schema version 0"),
        (3, "schema version 3"),
        (-1, "schema version -1"),
        (True, "not an integer"),
        (1.0, "not an integer"),
        ("1", "not an integer"),
        ("\u202e\n" * 1000, "not an integer"),
        (None, "not an integer"),
        ([], "not an integer"),
    ],
)
def test_other_versions_are_refused(version: Any, words: str) -> None:
    found = with_digest({**WHOLE, "schema_version": version})
    with pytest.raises(dp.UnsupportedOperation, match=words) as refusal:
        dp.Plan.from_json(json.dumps(found))
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("name", ["missing.json", ".", "\0", "a" * 5000])
def test_files_that_cannot_be_read_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="cannot be read"):
        dp.Plan.from_json(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "1e9",
        "1e999999999",
        "0.5",
        " 1",
        "1/0",
        "2/4",
        "1/2/3",
        "١",
        "+1",
        "-0",
        "01",
        "1_0",
        "",
        "-1",
        "9" * 5000,
        "1\n",
        "inf",
        "nan",
    ],
)
def test_amounts_have_one_form(text: str) -> None:
    found = with_value(WHOLE, ("plan", "cost", "epsilon"), text)
    with pytest.raises(dp.PlanMismatch, match=r"cost(\.epsilon)? has a value that no plan has"):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))


def test_a_refusal_says_where() -> None:
    found = with_value(WHOLE, ("plan", "releases", 2, "law", "epsilon"), "x")
    with pytest.raises(dp.PlanMismatch, match=r"releases\[2\]\.law\.epsilon"):
        dp.Plan.from_json(json.dumps(with_digest(found)))


def test_parts_are_refused_where_others_belong() -> None:
    parts = [WHOLE, *(at(WHOLE, path) for path in paths(WHOLE["plan"], ("plan",)))]
    for path in (("plan",), ("session",), ("plan", "unit"), ("plan", "releases", 0, "law")):
        for part in parts:
            if part != at(WHOLE, path):
                refused(with_value(WHOLE, path, part))


@pytest.mark.parametrize("part", ["plan", "session"])
def test_a_list_of_numbers_is_no_part_of_a_document(part: str) -> None:
    rule = {"regular": {"start": "0", "step": "1", "number": 100}}
    for found in (rule, [{"fraction": str(i)} for i in range(100)]):
        with pytest.raises(dp.PlanMismatch):
            dp.Plan.from_json(json.dumps(with_digest({**WHOLE, part: found})))


def test_releases_that_are_not_there_are_refused_where_a_limit_is_found() -> None:
    found = json.loads(plan_of("found_limit").to_json())
    numbered = [n for n, out in enumerate(found["plan"]["outputs"]) if out["releases"]]
    for number in numbered:
        refused(with_value(found, ("plan", "outputs", number, "releases", 0), 99))


def refused(found: Any) -> None:
    with pytest.raises(dp.DPFrameError):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))


# -- anything at all ------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["1/3", "Rows", "DiscreteGaussian", "zCDP", "pure DP", "auto", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "scale", "measure", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from([name for name in ALL if name != "together"]))
def test_random_documents_are_plans_or_refused(data: st.DataObject, name: str) -> None:
    found = json.loads(plan_of(name).to_json())
    chance = random.Random(data.draw(st.integers(0, 2**32), "places"))
    for _ in range(data.draw(st.integers(1, 3), "edits")):
        part = chance.choice(["plan", "plan", "session"])
        places = [p for p in paths(found.get(part), (part,)) if "definition" not in p]
        found = with_value(found, chance.choice(places), data.draw(JSON, "value"))
    for forged in (found, with_digest(found), with_digest(with_fingerprint(found))):
        read_or_refuse(forged)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_random_json_is_refused(found: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation):
        dp.Plan.from_json(json.dumps(found))


def read_or_refuse(found: Any) -> None:
    try:
        plan = dp.Plan.from_json(json.dumps(found))
    except dp.DPFrameError:
        return
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


MANY = {"regular": {"start": "0", "step": "1/3", "number": 10**6}}


def test_rules_of_a_document_stand_for_so_many_numbers_together() -> None:
    with_first = {n: item for n, item in WHOLE.items() if n not in ("physical", "dpframe_version")}
    for whole in (WHOLE, {**with_first, "schema_version": 1}):
        found = with_value(whole, ("plan", "outputs", 0, "definition"), [MANY] * 12)
        with written_out_never(), pytest.raises(dp.PlanMismatch, match="regular has a value"):
            dp.Plan.from_json(json.dumps(found))


@contextlib.contextmanager
def written_out_never() -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("numbers were written out")

    before, regular.texts = regular.texts, refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        regular.texts = before  # type: ignore[assignment]


def test_documents_of_any_size_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "_LONGEST", 1000)
    (tmp_path / "plan.json").write_text(TEXT)
    for found in (TEXT, TEXT.encode(), tmp_path / "plan.json"):
        with pytest.raises(dp.PlanMismatch, match="megabytes"):
            dp.Plan.from_json(found)


STRANGE: dict[str, Any] = {
    "an operation that is a list": {"type": "Call", "op": [], "args": []},
    "a column that is an object": {"type": "Column", "name": {}},
    "a step that is a list": {"step": ["Filter"]},
    "a float": 0.5,
    "a long integer": 2**53,
    "a number with a zero below": {"fraction": "1/0"},
    "a number with a power": {"fraction": "1e999999999"},
    "a number of 401 digits": {"int": "9" * 401},
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("place", ["steps", "outputs", "grouped_by"])
def test_definitions_are_what_plans_write(name: str, place: str) -> None:
    where: Any = ("plan", place) if place == "grouped_by" else ("plan", place, 0, "definition")
    whole = json.loads(plan_of("long_chain" if place == "steps" else "grouped").to_json())
    found = with_digest(with_fingerprint(with_value(whole, where, [STRANGE[name]])))
    with pytest.raises(dp.PlanMismatch, match="a value that no plan has"):
        dp.Plan.from_json(json.dumps(found))


def test_many_digits_in_words_are_shown() -> None:
    """More of them than Python makes a number of."""
    note = ("plan", "outputs", 0, "note")
    found = with_digest(with_fingerprint(with_value(WHOLE, note, "9" * 4302)))
    shown = dp.Plan.from_json(json.dumps(found)).explain(details=True)
    assert ",".join(["999"] * 1434) in shown


@pytest.mark.parametrize(
    ("field", "value"),
    [("hi", 10**9), ("lo", -(10**9)), ("step", {"fraction": "1/3"})],
)
def test_an_output_of_other_values_than_its_release_is_for_is_refused(
    field: str, value: Any
) -> None:
    """Bounds that a reviewer would read in a definition, beside noise that is made for others."""
    whole = json.loads(plan_of("accurate").to_json())
    number = next(i for i, o in enumerate(whole["plan"]["outputs"]) if "GridSum" in json.dumps(o))
    where = ("plan", "outputs", number, "definition")
    parts = at(whole, where)
    part = next(i for i, p in enumerate(parts) if p["table"]["statistic"]["type"] == "GridSum")
    path = (*where, part, "table", "statistic", "grid", field)
    found = with_digest(with_fingerprint(with_value(whole, path, value)))
    with pytest.raises(dp.PlanMismatch, match="definition of 's' contradicts the physical plan"):
        dp.Plan.from_json(json.dumps(found))


@pytest.mark.parametrize("name", ["filtered_count", "quantiles", "stream", "found_limit"])
@pytest.mark.parametrize("norm", ["l1", "l2_squared", "linf"])
def test_a_sensitivity_below_what_the_kernel_finds_is_refused(name: str, norm: str) -> None:
    """With all that follows from it, so that the reading does not contradict itself."""
    plan = plan_of(name)
    (first, *others) = plan.releases
    assert plan.physical is not None
    if first.scores is not None:
        less = replace(first, scores=replace(first.scores, **{norm: Fraction(1, 10**9)}))
    elif first.joint is not None:
        joint = first.joint
        less = replace(first, joint=replace(joint, exact=replace(joint.exact, **{norm: 0})))
    else:
        less = replace(first, exact=replace(first.exact, **{norm: 0}))
    assert disagreement(plan, plan.physical) is None
    wrong = disagreement(replace(plan, releases=(less, *others)), plan.physical)
    assert wrong == f"sensitivity of {first.name!r}"
