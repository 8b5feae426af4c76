"""Documents that were edited: refused, or plans with other fingerprints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.plan.agreement import disagreement
from dpframe.plan.consistency import contradiction
from tests.laws.amounts import amounts
from tests.plan.documents import ALL, plan_of
from tests.plan.edits import Path, at, edits, with_digest, with_fingerprint, with_value

NAMES = (
    "filtered_count",
    "grouped",
    "three_dearest_groups",
    "quantiles",
    "part",
    "found_groups_by_number",
    "found_by_weights",
    "found_in_rounds",
    "responses",
    "lists",
    "several_queries",
)
each = pytest.mark.parametrize("name", NAMES)


def read(found: Any) -> dp.Plan | None:
    """The plan of a document, None where it is refused."""
    try:
        return dp.Plan.from_json(json.dumps(found))
    except dp.PlanMismatch:
        return None


def whole(name: str) -> Any:
    return json.loads(plan_of(name).to_json())


def some_edits(name: str, part: str, every: int) -> Iterator[tuple[Path, Any]]:
    """One of so many edits, of each document others."""
    return islice(edits(whole(name), part), NAMES.index(name) % every, None, every)


@each
@amounts("every", 3, 1)
def test_edits_that_are_not_covered_up_are_refused(name: str, every: int) -> None:
    seen = 0
    for part in ("plan", "session"):
        for path, found in some_edits(name, part, every):
            assert read(found) is None, path
            assert read(with_fingerprint(found)) is None, path
            seen += 1
    assert seen > 500 / every


@each
@amounts("every", 3, 1)
def test_edits_of_the_plan_need_another_fingerprint(name: str, every: int) -> None:
    for path, found in some_edits(name, "plan", every):
        if path != ("plan", "outputs") or "blocks" in found["plan"]:  # of one the order is free
            assert read(with_digest(found)) is None, path


def is_as_of_before(found: object) -> bool:
    """Whether it lacks what the documents of the first edition do, which follows from the rest."""
    if not isinstance(found, dict):
        return False
    lacks_range = found.keys() == {"l1", "l2_squared"}
    return lacks_range or ("middle" not in found and str(found.get("kind")) in CENTRED)


CENTRED = ("MeanError", "VarianceError")


@each
@amounts("every", 3, 1)
def test_edits_that_are_covered_up_have_another_fingerprint(name: str, every: int) -> None:
    before = plan_of(name)
    taken = set()
    for path, found in some_edits(name, "plan", every):
        plan = read(with_digest(with_fingerprint(found)))
        if plan is not None and path == ("plan", "outputs") and not plan.blocks:  # columns
            assert plan.fingerprint == before.fingerprint
            assert {o.name: o for o in plan.outputs} == {o.name: o for o in before.outputs}
        elif plan is not None and is_as_of_before(at(found, path)):
            assert plan.to_json() == before.to_json(), path
        elif plan is not None:
            assert plan.fingerprint != before.fingerprint, path
            assert plan.diff(before), path
            assert before.diff(plan), path
            plan.explain()
            assert isinstance(plan.events, tuple)
            taken.add(path)
    assert taken  # a forger can write other words, say


@each
@amounts("every", 3, 1)
def test_edits_of_the_session_change_what_is_said_of_it_alone(name: str, every: int) -> None:
    """Nothing that a decision rests on: neither risks, notes nor questions."""
    before = plan_of(name)
    seen = decisive(before)
    for path, found in some_edits(name, "session", every):
        plan = read(with_digest(found))
        if plan is not None:
            assert plan.fingerprint == before.fingerprint, path
            assert not plan.diff(before), path
            fields = ("remaining", "share", "budget")
            assert any(getattr(plan, f) != getattr(before, f) for f in fields), path
            assert decisive(plan) == seen, path


def decisive(plan: dp.Plan) -> list[object]:
    """All that a decision rests on, without what the session had left."""
    inside = replace(plan, remaining=None, share=None, budget=None)
    said = [plan.risks, plan.notes, plan.questions]
    assert said == [inside.risks, inside.notes, inside.questions]
    return [*said, inside.explain(details=True), inside.explain("html"), plan.explain("mermaid")]


@pytest.mark.parametrize("part", ["fingerprint", "digest"])
def test_digests_are_checked(part: str) -> None:
    found = whole("grouped")
    for value in ("0" * 64, found[part].upper(), found[part][:-1], None, 1, [], {}):
        assert read(with_value(found, (part,), value)) is None
        if part == "fingerprint":
            assert read(with_digest(with_value(found, (part,), value))) is None


def test_an_output_has_its_own_releases() -> None:
    """Three quantiles are released under one name."""
    found = whole("quantiles")
    output = found["plan"]["outputs"][1]
    assert output["releases"] == [1, 2, 3]
    for numbers in ([2, 1, 3], [1, 1, 3], [1, 2], [3, 2, 1], [0, 2, 3]):
        output["releases"] = numbers
        assert read(with_digest(with_fingerprint(found))) is None


@pytest.mark.parametrize("number", [-1, 4, True, 1.0, "1", None])
def test_releases_are_numbered_from_zero(number: object) -> None:
    found = whole("quantiles")
    found["plan"]["outputs"][1]["releases"][2] = number
    assert read(with_digest(with_fingerprint(found))) is None


@each
def test_the_order_of_names_in_objects_is_free(name: str) -> None:
    plan = read(reordered(whole(name)))
    assert plan is not None
    assert plan.fingerprint == plan_of(name).fingerprint
    assert plan.explain() == plan_of(name).explain()


def reordered(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: reordered(item) for name, item in reversed(found.items())}
    return [reordered(item) for item in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mechanism",), "discrete_gaussian"),
        (("scale",), 0.5),
        (("law", "epsilon"), "1/4"),
        (("law", "epsilon"), "1"),
        (("law", "widths"), [1, 1, 55, 1]),
        (("law", "rows"), 2),
        (("joint", "widths"), [1, 1, 55, 1]),
        (("joint", "turned"), [1, 1, 55, 1]),
        (("joint", "factors"), [2, 0, 0, 0]),
        (("joint", "factors"), [1, 0, 0]),
        (("joint", "divisor"), 2),
        (("joint", "exact", "l1"), "1"),
        (("joint",), None),
        (("draw",), 1),
        (("draw",), -1),
        (("step",), "2"),
        (("step",), "-1"),
        (("sensitivity", "l1"), 1000.0),
        (("exact", "l1"), "100"),
        (("candidates",), 3),
        (("users",), ["nobody"]),
        (("spread", "rows"), None),
        (("entries",), -1),
    ],
)
def test_what_follows_from_the_rest_is_checked(path: tuple[str, ...], value: object) -> None:
    found = whole("grouped")
    if path[0] == "spread":
        found["plan"]["releases"][0]["spread"] |= {"groups": None, "per_group": None}
    found = with_value(found, ("plan", "releases", 0, *path), value)
    assert read(with_digest(with_fingerprint(found))) is None


def of_draw(*changes: tuple[tuple[str, ...], object]) -> Any:
    """The same changes of all releases of one draw."""
    found = whole("grouped")
    for i, _ in enumerate(found["plan"]["releases"]):
        for path, value in changes:
            found = with_value(found, ("plan", "releases", i, *path), value)
    return with_digest(with_fingerprint(found))


SMALL = [1, 1, 55, 1]


@pytest.mark.parametrize(
    "changes",
    [
        [(("law", "epsilon"), "1")],
        [(("law", "epsilon"), "1/4")],
        [(("law", "widths"), SMALL)],
        [(("law", "widths"), SMALL), (("joint", "widths"), SMALL)],
        [(("law", "rows"), 2), (("law", "epsilon"), "1/4")],
        [(("joint", "turned"), [1, 1, 55, 0])],
        [(("joint", "turned"), [2, 2, 110, 819200000])],
        [(("joint",), None)],
        [(("draw",), 1)],
        [(("spread", "per_group"), 0)],
        [(("cost", "epsilon"), "1/4")],
    ],
)
def test_what_is_drawn_together_is_one_draw(
    changes: list[tuple[tuple[str, ...], object]],
) -> None:
    assert read(of_draw(*changes)) is None


def test_what_is_drawn_together_costs_once() -> None:
    plan = plan_of("grouped")
    assert [release.draw for release in plan.releases] == [0, 0, 0, 0]
    (draw,) = plan.draws
    assert draw.cost == plan.cost
    assert plan.events == draw.events


def forged(name: str, *changes: tuple[tuple[str | int, ...], object]) -> Any:
    """A document with other values, and the digests that it then should have."""
    found = whole(name)
    for path, value in changes:
        found = with_value(found, ("plan", *path), value)
    return with_digest(with_fingerprint(found))


@pytest.mark.parametrize("name", ALL)
def test_documents_that_nobody_edited_cost_what_they_state(name: str) -> None:
    assert read(forged(name)) is not None


@pytest.mark.parametrize("name", ALL)
def test_a_cost_below_that_of_the_mechanisms_is_refused(name: str) -> None:
    """The cost of the plan is lowered, and then those of the releases with it."""
    plan = plan_of(name)
    currency = plan.cost.currency
    lower = forged(name, (("cost", currency), str(plan.cost.main / 2)))
    assert read(lower) is None
    for i, release in enumerate(plan.releases):
        if release.cost.main:
            less = (("releases", i, "cost", release.cost.currency), str(release.cost.main / 2))
            assert read(forged(name, less)) is None, i
            if plan.composition == "sum":
                rest = plan.cost.main - release.cost.main / 2
                assert read(forged(name, less, (("cost", currency), str(rest)))) is None, i


def test_a_delta_below_that_of_the_mechanisms_is_refused() -> None:
    with_delta = [name for name in ALL if plan_of(name).cost.slack]
    assert with_delta
    for name in with_delta:
        plan = plan_of(name)
        less = ("cost", "delta"), str(plan.cost.slack / 2)
        assert read(forged(name, less)) is None, name
        halves = [
            (("releases", i, "cost", "delta"), str(release.cost.slack / 2))
            for i, release in enumerate(plan.releases)
            if release.cost.slack
        ]
        for half in halves:
            assert read(forged(name, half)) is None, (name, half)
            assert read(forged(name, half, less)) is None, (name, half)


@pytest.mark.parametrize("name", ALL)
def test_a_cost_that_is_a_little_too_low_is_refused(name: str) -> None:
    """All costs alike, so that they still add up."""
    plan = plan_of(name)
    part = 1 - Fraction(1, 10**5)
    costs = [
        (("releases", i, "cost", release.cost.currency), str(release.cost.main * part))
        for i, release in enumerate(plan.releases)
        if release.cost.main
    ]
    costs.append((("cost", plan.cost.currency), str(plan.cost.main * part)))
    assert read(forged(name, *costs)) is None


def test_a_way_to_compose_that_costs_less_is_refused() -> None:
    plan = plan_of("grouped")
    assert plan.composition == "sum"
    for composition in ("numerical", "zcdp"):
        assert read(forged("grouped", (("composition",), composition))) is None
    composed = plan_of("together")
    assert composed.composition == "numerical"
    half = ("cost", "epsilon"), str(composed.cost.main * 99 / 100)
    for composition in ("numerical", "zcdp", "sum"):
        assert read(forged("together", (("composition",), composition), half)) is None


def test_how_often_an_individual_meets_a_mechanism_is_checked() -> None:
    for name in ("found_groups", "responses", "grouped"):
        assert read(forged(name, (("releases", 0, "repeats"), 0))) is None
    assert read(of_draw((("repeats",), 0))) is None
    assert read(of_draw((("repeats",), 2))) is None


@pytest.mark.parametrize(("part", "value"), [("threshold", 1), ("row_delta", "1/100000000000")])
def test_a_threshold_hides_groups_as_often_as_it_says(part: str, value: object) -> None:
    name = "found_groups_by_number"
    assert plan_of(name).releases[0].mechanism == "noisy_threshold"
    assert read(forged(name, (("releases", 0, "law", part), value))) is None


def test_a_threshold_is_of_noise_that_is_there() -> None:
    name = "found_groups_by_number"
    less = [(("releases", 0, "law", "noise", "scale"), "1/2")]
    less.append((("releases", 0, "law", "threshold"), 30))
    assert read(forged(name, *less)) is None


@pytest.mark.parametrize("name", ["found_by_weights", "found_by_weights_alone"])
@pytest.mark.parametrize(
    ("part", "value"),
    [("threshold", 1), ("slack", "1/100000000000"), ("norm", 100), ("most", 2), ("most", 4)],
)
def test_so_does_a_threshold_of_weights(name: str, part: str, value: object) -> None:
    assert plan_of(name).releases[0].mechanism == "weighed_threshold"
    assert read(forged(name, (("releases", 0, "law", part), value))) is None


def test_a_threshold_of_weights_is_of_noise_that_is_there_and_of_stated_weights() -> None:
    name, law, spread = "found_by_weights", ("releases", 0, "law"), ("releases", 0, "spread")
    sigma = plan_of(name).releases[0].law.noise_of_number().sigma_squared
    assert read(forged(name, ((*law, "noise", "sigma_squared"), str(sigma * 2)))) is None
    assert read(forged(name, ((*law, "alone"), True))) is None
    less = ((*law, "norm"), 2048), ((*spread, "norm"), 2048)
    assert read(forged(name, *less)) is None
    few = ((*law, "most"), 2), ((*spread, "groups"), 2)
    assert read(forged(name, *few)) is None


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("thresholds", [1, 1, 1]),
        ("slack", "1/100000000000"),
        ("norm", 100),
        ("most", 2),
        ("shares", [1, 8, 512]),
        ("shares", [8, 8, 64]),
        ("shares", [1, 8]),
    ],
)
def test_rounds_are_of_thresholds_of_their_own_shares(part: str, value: object) -> None:
    name = "found_in_rounds"
    assert plan_of(name).releases[0].mechanism == "weighed_rounds"
    assert read(forged(name, (("releases", 0, "law", part), value))) is None


def test_rounds_are_those_that_the_steps_say_and_cost_what_their_noise_does() -> None:
    name = "found_in_rounds"
    assert read(forged(name, (("steps", 1, "definition", "rounds"), 2))) is None
    law: Any = plan_of(name).releases[0].law
    less = str(law.noise.sigma_squared / 2)
    low = [1 + threshold // 2 for threshold in law.thresholds]
    changes = (("releases", 0, "law", "noise", "sigma_squared"), less)
    assert read(forged(name, changes)) is None
    assert read(forged(name, changes, (("releases", 0, "law", "thresholds"), low))) is None


def test_a_forger_cannot_make_a_reader_compose_forever() -> None:
    release = ("releases", 0)
    changes = ((*release, "repeats"), 10**15), ((*release, "cost", "rho"), str(10**30))
    assert read(forged("together", *changes)) is None


@pytest.mark.parametrize(
    ("norm", "shown", "exact"),
    [
        ("linf", 100.0, "100"),
        ("l2", 100.0, "10000"),
        ("l2", 0.5, "1/4"),
        ("l1", 9.0, "9"),
        ("l0", 0, 0),
    ],
)
def test_norms_that_no_vector_has_are_refused(norm: str, shown: float, exact: str) -> None:
    """Noise that is made for one of them would be read beside another."""
    release = ("releases", 0)
    squared = "l2_squared" if norm == "l2" else norm
    changes = ((*release, "sensitivity", norm), shown), ((*release, "exact", squared), exact)
    assert read(forged("grouped", *changes)) is None


@pytest.mark.parametrize(("changed", "part"), [({"l0": 1}, None), ({"l0": 2, "l2": 3.0}, "9")])
def test_an_l2_norm_below_that_of_such_a_vector_is_refused(
    changed: dict[str, object], part: str | None
) -> None:
    """Gaussian noise is made for it."""
    name = "three_rows_changed"
    before = plan_of(name).releases[0]
    assert before.mechanism == "discrete_gaussian"
    assert (before.exact.l0, before.exact.l1, before.exact.l2_squared) == (4, 6, 18)
    changes = [(("releases", 0, "sensitivity", norm), value) for norm, value in changed.items()]
    if "l0" in changed:
        changes.append((("releases", 0, "exact", "l0"), changed["l0"]))
    if part is not None:
        changes.append((("releases", 0, "exact", "l2_squared"), part))
    assert read(forged(name, *changes)) is None


@pytest.mark.parametrize("squared", ["-1", "0", "1/1000000", "1296"])
def test_a_square_that_no_ranges_of_scores_have_is_refused(squared: str) -> None:
    """A choice is counted by it, in rho."""
    name = "quantile_of_candidates"
    plan = plan_of(name)
    (release,) = plan.releases
    assert release.scores is not None
    assert (release.scores.l2_squared, release.spread.groups) == (324, 1)
    less = Fraction(1, 10**6)
    changes = (
        (("releases", 0, "scores", "l2_squared"), squared),
        (("releases", 0, "cost", "rho"), str(release.cost.main * less)),
        (("cost", "rho"), str(plan.cost.main * less)),
    )
    assert read(forged(name, *changes)) is None
    assert read(forged(name, changes[0])) is None


PART_COST = {"measure": "approximate DP", "epsilon": "1/4", "delta": "0"}
OTHER = {"measure": "zCDP", "rho": "1000", "delta": "0"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("requested", {**PART_COST, "epsilon": "1/5"}),
        ("requested", OTHER),
        ("remaining", OTHER),
        ("share", {"parts": 5, "touched": 0, "charged": PART_COST}),
        ("share", {"parts": -5, "touched": 2, "charged": PART_COST}),
        ("share", {"parts": 0, "touched": 2, "charged": PART_COST}),
        ("share", {"parts": 5, "touched": 2, "charged": {**PART_COST, "epsilon": "1"}}),
        ("share", {"parts": 5, "touched": 2, "charged": OTHER}),
    ],
)
def test_what_no_session_has_is_refused(field: str, value: object) -> None:
    """Whatever the fingerprint covers."""
    found = whole("part")
    part = "plan" if field == "requested" else "session"
    assert found["plan"]["cost"] == PART_COST
    changed = with_value(found, (part, field), value)
    assert read(with_digest(with_fingerprint(changed))) is None


@pytest.mark.parametrize(
    "unit", [dp.Rows(contributions=3), dp.Rows("change-one"), dp.Rows("change-one", 2)], ids=str
)
@pytest.mark.parametrize("groups", [None, ["g"], dp.cube("g", "h")], ids=["all", "by g", "cube"])
@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_all_norms_of_a_number_follow_from_its_draw(spend: Any, unit: dp.Rows, groups: Any) -> None:
    """Also those that no noise is made for: reviewers read them."""
    plan = of_numbers(spend, unit, groups)
    assert plan.physical is not None
    assert contradiction(plan) is None
    assert disagreement(plan, plan.physical) is None
    drawn = [i for i, release in enumerate(plan.releases) if release.joint is not None]
    assert len(drawn) >= 2
    for i in drawn:
        release = plan.releases[i]
        for name in ("l1", "l2_squared", "linf"):
            for times in (Fraction(1, 2), Fraction(9, 10), 2):
                norm = getattr(release.exact, name) * times
                exact = replace(release.exact, **{name: norm})
                shown = replace(
                    release, exact=exact, sensitivity=exact.scale(release.step).public()
                )
                wrong = with_release(plan, i, shown)
                assert disagreement(wrong, plan.physical) is not None, (name, times)


@pytest.mark.parametrize("unit", [dp.Rows(contributions=3), dp.Rows("change-one")], ids=str)
def test_how_many_groups_a_margin_has_follows_from_its_columns(unit: dp.Rows) -> None:
    """One that stated a single group would state norms that rows of two groups do not keep."""
    plan = of_numbers({"epsilon": 1}, unit, dp.cube("g", "h"))
    for i, release in enumerate(plan.releases):
        if release.joint is not None:
            others = {1, 2, 3, 6, 7} - {release.entries}
            assert all(
                contradiction(with_release(plan, i, replace(release, entries=n))) for n in others
            )


def of_numbers(spend: Any, unit: dp.Rows, groups: Any) -> dp.Plan:
    schema = {"g": pl.String, "h": pl.Int64, "x": pl.Int64, "y": pl.Int64}
    frame: Any = dp.Session(**spend).protect(pl.LazyFrame(schema=schema), unit)
    keys: dict[str, list[Any]] = {"g": ["a", "b", "c"], "h": [1, 2]}
    if groups == ["g"]:
        keys.pop("h")
    rows = frame if groups is None else frame.group_by(groups, keys=keys)
    asked = rows.agg(*(pl.col(name).dp_sum((-3, 8)) for name in "xy"), n=dp.count("x"))
    return asked.plan(**spend)


def with_release(plan: dp.Plan, number: int, release: Any) -> dp.Plan:
    before, after = plan.releases[:number], plan.releases[number + 1 :]
    return replace(plan, releases=(*before, release, *after))


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ((), ()),
        ((0, 1), (0, 2**40)),
        ((0, 1), (0, 0)),
        ((0, 1), (0, -1)),
        ((-1, 1), None),
        ((0,), None),
        ((0, 1, 1), None),
        ((0, 1), (0,)),
        (None, ()),
    ],
)
def test_norms_follow_from_what_rows_need_to_move_numbers(
    conditions: tuple[int, ...] | None, kept: tuple[int, ...] | None
) -> None:
    frame = dp.Session(rho=1).protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows("change-one"))
    plan = frame.agg(dp.mean("x", (0, 8)).alias("m")).plan(rho=1)
    joint = plan.releases[0].joint
    assert joint is not None
    assert joint.conditions == (1, 1)
    wrong = replace(
        joint,
        conditions=joint.conditions if conditions is None else conditions,
        kept=joint.kept if kept is None else kept,
    )
    releases = tuple(
        replace(
            release,
            joint=replace(wrong, factors=release.joint.factors, divisor=release.joint.divisor),
        )
        for release in plan.releases
        if release.joint is not None
    )
    assert plan.physical is not None
    assert disagreement(plan, plan.physical) is None
    assert disagreement(replace(plan, releases=releases), plan.physical) is not None
