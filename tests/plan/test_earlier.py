"""What documents of earlier versions lack is what it was, or no less."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.core.sensitivity import ContributionBounds, ScoreRange
from dpframe.plan import PlanIdentifying, document
from dpframe.plan.codec import Malformed, encode
from dpframe.plan.document import complete, complete_session
from tests.plan.documents import of_version_1, patients, plan_of
from tests.plan.edits import with_digest, with_fingerprint, with_value
from tests.score_ranges import of_one


def choice(scores: ScoreRange, spread: ContributionBounds) -> dict[str, Any]:
    stated = {"l1": str(scores.l1), "l2_squared": str(scores.l2_squared)}
    return {"releases": [{"scores": stated, "spread": encode(spread)}], "outputs": []}


def largest(scores: ScoreRange, spread: ContributionBounds) -> Fraction:
    return Fraction(complete(choice(scores, spread))["releases"][0]["scores"]["linf"])


SPREADS = [
    ContributionBounds(rows, groups, per_group, changes)
    for rows, groups, per_group in itertools.product((None, 1, 3, 5), (None, 1, 2), (None, 1, 2))
    if rows is not None or None not in (groups, per_group)
    for changes in (False, True)
]


@pytest.mark.parametrize("spread", SPREADS, ids=str)
@pytest.mark.parametrize("each", [Fraction(1), Fraction(7, 3)])
def test_the_largest_range_is_that_of_the_rows_of_one_group(
    spread: ContributionBounds, each: Fraction
) -> None:
    rows, _, per_group = spread.tight
    scores = ScoreRange(rows * each, spread.l2_squared * each**2, per_group * each)
    assert largest(scores, spread) == scores.linf


@pytest.mark.parametrize("spread", SPREADS, ids=str)
def test_the_largest_range_is_all_where_all_may_be_in_one_group(spread: ContributionBounds) -> None:
    scores = of_one(Fraction(22, 7))
    assert largest(scores, spread) == scores.linf


@pytest.mark.parametrize("spread", [ContributionBounds(None, 2, None), ContributionBounds(0, 1, 1)])
def test_the_largest_range_is_not_that_of_rows_where_there_are_none_or_any_number(
    spread: ContributionBounds,
) -> None:
    scores = ScoreRange(Fraction(3), Fraction(5), Fraction(2))
    assert largest(scores, spread) ** 2 <= 5 < (largest(scores, spread) + 1) ** 2


@pytest.mark.parametrize("whole", [20, 25, 36])
def test_the_largest_range_is_no_less_where_sums_do_not_tell(whole: int) -> None:
    """As of quantiles of rows that move from group to group: between a half of the sum and the
    root of the squares.
    """
    spread = ContributionBounds(2, 2, 2, changes=True)
    scores = ScoreRange(Fraction(36), Fraction(max(whole**2, 2 * 18**2)), Fraction(whole))
    assert scores.linf <= largest(scores, spread) <= scores.l1
    assert largest(scores, spread) ** 2 <= scores.l2_squared


@pytest.mark.parametrize(
    ("place", "value"),
    [("scores", {"l1": "x", "l2_squared": "1"}), ("scores", {"l1": "1", "l2_squared": 1})],
)
def test_nothing_follows_from_what_is_no_number(place: str, value: Any) -> None:
    found = choice(of_one(Fraction(1)), ContributionBounds(1, 1, 1))
    found["releases"][0][place] = value
    with pytest.raises(Malformed):
        complete(found)


@pytest.mark.parametrize(
    "found", [{}, {"releases": 1}, {"releases": [1, {}, {"scores": 2}], "outputs": [None, {}]}]
)
def test_what_is_no_plan_is_left_as_it_is(found: dict[str, Any]) -> None:
    assert complete(found) == found


def test_a_budget_that_is_stated_stays() -> None:
    assert complete_session({"budget": 1, "share": None}) == {"budget": 1, "share": None}
    assert complete_session({"share": None}) == {"budget": None, "share": None}


@pytest.mark.parametrize("name", ["grouped", "spread", "accurate", "temporal"])
def test_the_middle_of_bounds_is_where_values_are_centred(name: str) -> None:
    whole = json.loads(of_version_1(plan_of(name)))
    found = whole
    for number, output in enumerate(whole["plan"]["outputs"]):
        error = {key: value for key, value in output["error"].items() if key != "middle"}
        found = with_value(found, ("plan", "outputs", number, "error"), error)
    assert found != whole
    read = dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))
    assert read.to_json() == of_version_1(plan_of(name))


def test_a_mean_that_is_centred_nowhere_is_refused() -> None:
    found = json.loads(of_version_1(plan_of("accurate")))
    error = found["plan"]["outputs"][1]["error"]
    del error["middle"]
    found["plan"]["outputs"][1]["definition"] = []
    with pytest.raises(dp.PlanMismatch, match=r"outputs\[1\].error has a value that no plan has"):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))


EARLIER = Path(__file__).parent / "earlier"
BEFORE = EARLIER / "6938cda"
"""Documents of the edition whose fingerprints covered less."""


def test_limits_that_were_found_by_shares_of_individuals_are_read() -> None:
    """A document from before limits were found by what they lose."""
    path = EARLIER / "found_limit.json"
    plan = dp.Plan.from_json(path)
    assert document.earlier_fingerprint(plan) == stated(path)["fingerprint"]
    assert "the least that all but 1% of individuals keep" in plan.explain(details=True)
    assert "5% of the spend" in plan.explain(details=True)


def stated(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


MORE_WARNINGS = {"with_parameters"}
"""Plans that now warn of values that become null. Approvals do not count for these."""


def without_unbiased(plan: dp.Plan) -> dp.Plan:
    """A plan whose notes call no result unbiased, as those of plans do that drop rows or clamp."""
    outputs = [
        replace(one, note=re.sub("unbiased; |; unbiased$", "", one.note)) for one in plan.outputs
    ]
    return replace(plan, outputs=tuple(outputs))


@pytest.mark.parametrize("path", sorted(BEFORE.iterdir()), ids=lambda path: path.stem)
def test_fingerprints_of_the_edition_before_are_known(path: Path) -> None:
    """Its documents are read with all that they said, and have fingerprints that cover it."""
    found, plan = stated(path), dp.Plan.from_json(path)
    assert document.earlier_fingerprint(plan) == found["fingerprint"] != plan.fingerprint
    assert document.lacks_types(plan)
    assert encode(plan.requested) == found["session"]["requested"]
    for name in ("forced", "typical", "identifying"):
        assert encode(getattr(plan, name)) == found["session"].get(name, [])
    again = dp.Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    now = plan_of(path.stem)
    assert document.earlier_fingerprint(now) == found["fingerprint"]
    if path.stem in MORE_WARNINGS:
        assert {*plan.remarks} < {*now.remarks}
        assert not document.says_the_same(plan, now, {})
        now = replace(now, remarks=plan.remarks)
    same_notes = [one.note for one in plan.outputs] == [one.note for one in now.outputs]
    assert document.says_the_same(plan, now, {}) is same_notes
    assert document.says_the_same(without_unbiased(plan), without_unbiased(now), {})
    assert not document.says_the_same(now, now, {})


@pytest.mark.parametrize("name", ["forced", "typical", "identifying"])
def test_a_document_of_the_edition_before_that_lost_its_risks_is_another_plan(name: str) -> None:
    """Its fingerprint is what it was, and that no longer is what counts."""
    people = patients(typical={"bill": 9}, name="patients")
    query = people.agg(dp.sum("bill", (0, 10**6), mechanism="discrete_laplace"), dp.count())
    plan = replace(query.plan(epsilon=1), columns=None)
    plan = replace(plan, identifying=(PlanIdentifying("patients", "patient"),))
    assert plan.forced
    assert plan.typical
    less = replace(plan, **{name: ()})
    assert document.earlier_fingerprint(less) == document.earlier_fingerprint(plan)
    assert less.fingerprint != plan.fingerprint
    assert as_of_before(plan) != as_of_before(less)
    read, read_before = (dp.Plan.from_json(json.dumps(as_of_before(p))) for p in (less, plan))
    assert read.fingerprint == replace(less, physical=None).fingerprint
    assert not document.says_the_same(read, replace(plan, columns=()), {})
    assert document.says_the_same(read_before, replace(plan, columns=()), {})


def as_of_before(plan: dp.Plan) -> dict[str, Any]:
    """The document that the edition before would have written."""
    found = json.loads(of_version_1(plan))
    for name in ("requested", "forced", "typical", "identifying"):
        if name in found["plan"]:
            found["session"][name] = found["plan"].pop(name)
    return dict(with_digest(with_fingerprint(found)))


@pytest.mark.parametrize("name", ["requested", "forced", "typical", "identifying"])
def test_what_is_said_in_both_places_is_refused(name: str) -> None:
    found = json.loads(of_version_1(plan_of("grouped")))
    found["session"][name] = found["plan"].get(name, [])
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(with_digest(found)))
