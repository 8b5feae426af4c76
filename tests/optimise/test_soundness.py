"""A plan that does not follow from what would run is refused before it is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import runner
from dpframe.aggregates.measurement import Additive, JointSums
from dpframe.aggregates.statistics import GridSum
from dpframe.kernel import Refused, verify
from dpframe.kernel.frame import RowLimit
from dpframe.mechanisms import DiscreteBox, DiscreteHull, DiscreteLaplace, NoNoise
from dpframe.optimise.physical import physical
from dpframe.pipeline import Prepared, PreparedTogether

VISITS = pl.DataFrame(
    {
        "person": [n % 40 for n in range(200)],
        "place": ["north", "south"] * 100,
        "minutes": [n % 60 for n in range(200)],
    }
)
Change = Callable[[Prepared], Prepared]


def of_rows() -> dp.PrivateFrame:
    return dp.Session(epsilon=100).protect(VISITS, unit=dp.Rows())


def of_people() -> dp.PrivateFrame:
    return dp.Session(epsilon=100).protect(VISITS, unit="person")


def grouped_count() -> dp.PrivateQuery:
    return of_rows().group_by("place", keys=["north", "south"]).agg(dp.count())


def joint() -> dp.PrivateQuery:
    minutes = dp.col("minutes")
    grouped = of_rows().group_by("place", keys=["north", "south"])
    return grouped.agg(dp.count(), t=minutes.dp_sum((0, 60)), m=minutes.dp_mean((0, 60)))


def joint_of_changes() -> dp.PrivateQuery:
    frame = dp.Session(epsilon=100).protect(VISITS, unit=dp.Rows("change-one"))
    minutes = dp.col("minutes")
    return frame.agg(dp.count(), t=minutes.dp_sum((0, 60)), m=minutes.dp_mean((0, 60)))


def one_sum() -> dp.PrivateQuery:
    return of_rows().agg(dp.col("minutes").dp_sum((0, 60)))


def limited() -> dp.PrivateQuery:
    return of_people().limit_rows(3).agg(dp.count())


def automatic() -> dp.PrivateQuery:
    return of_people().group_by("place", keys=["north", "south"]).agg(dp.count())


def _draw(prepared: Prepared, **fields: Any) -> Prepared:
    first, *others = prepared.draws
    return replace(prepared, draws=(replace(first, **fields), *others))


def quieter_noise(prepared: Prepared) -> Prepared:
    law = prepared.draws[0].law
    assert isinstance(law, DiscreteLaplace)
    return _draw(prepared, law=replace(law, scale=law.scale / 1000))


def no_noise(prepared: Prepared) -> Prepared:
    return _draw(prepared, law=NoNoise())


def larger_epsilon(prepared: Prepared) -> Prepared:
    law = prepared.draws[0].law
    assert isinstance(law, DiscreteBox)
    return _draw(prepared, law=replace(law, epsilon=law.epsilon * 1000))


def widths_of_one(prepared: Prepared) -> Prepared:
    law, vector = prepared.draws[0].law, prepared.draws[0].measurement
    assert isinstance(law, DiscreteBox)
    assert isinstance(vector, JointSums)
    ones = (1,) * len(vector.widths)
    made = replace(vector, widths=ones, turned=ones)
    return _draw(prepared, law=replace(law, widths=ones), measurement=made)


def widths_of_half(prepared: Prepared) -> Prepared:
    """Of a row that changes, as if it only came or went."""

    def halve(one: Any, vector: str) -> Any:
        if not isinstance(one.law, DiscreteBox):
            return one
        widths = tuple(max(1, width // 2) for width in one.law.widths)
        turned = replace(getattr(one, vector), turned=getattr(one, vector).widths)
        return replace(one, law=replace(one.law, widths=widths), **{vector: turned})

    draws = tuple(halve(draw, "measurement") for draw in prepared.draws)
    releases = tuple(halve(release, "joint") for release in prepared.plan.releases)
    assert draws != prepared.draws
    return replace(prepared, draws=draws, plan=replace(prepared.plan, releases=releases))


def larger_matrix(prepared: Prepared) -> Prepared:
    vector = prepared.draws[0].measurement
    assert isinstance(vector, JointSums)
    rows = tuple(tuple(1000 * factor for factor in row) for row in vector.matrix)
    return _draw(prepared, measurement=replace(vector, matrix=rows))


def wider_clamp(prepared: Prepared) -> Prepared:
    vector = prepared.draws[0].measurement
    assert isinstance(vector, Additive)
    statistic = vector.table.statistic
    assert isinstance(statistic, GridSum)
    grid = replace(statistic.grid, hi=statistic.grid.hi * 1000)
    table = replace(vector.table, statistic=replace(statistic, grid=grid))
    return _draw(prepared, measurement=replace(vector, table=table))


def no_limits(prepared: Prepared) -> Prepared:
    relation = replace(prepared.query.relation, steps=())
    return replace(prepared, query=replace(prepared.query, relation=relation))


def other_keys(prepared: Prepared) -> Prepared:
    groups = prepared.query.groups
    assert groups is not None
    named = replace(groups, keys=pl.DataFrame({"place": ["north", "Ann Smith"]}))
    return replace(prepared, query=replace(prepared.query, groups=named))


def lower_cost(prepared: Prepared) -> Prepared:
    cost = prepared.plan.cost
    return replace(prepared, plan=replace(prepared.plan, cost=cost.of(cost.main / 1000)))


def lower_sensitivity(prepared: Prepared) -> Prepared:
    first, *others = prepared.plan.releases
    exact = first.exact.scale(Fraction(1, 1000))
    made = replace(first, exact=exact, sensitivity=exact.scale(first.step).public())
    return replace(prepared, plan=replace(prepared.plan, releases=(made, *others)))


def variance() -> dp.PrivateQuery:
    return of_rows().agg(dp.col("minutes").dp_var((0, 60)))


def _matrix(prepared: Prepared, place: int, row: Callable[[list[int]], list[int]]) -> Prepared:
    """With another row for one of the three numbers of the first arch."""
    law, vector = prepared.draws[0].law, prepared.draws[0].measurement
    assert isinstance(law, DiscreteHull)
    assert isinstance(vector, JointSums)
    rows = [[*factors] for factors in vector.matrix]
    number = vector.arches[0][place]
    rows[number] = row(rows[number])
    return _draw(prepared, measurement=replace(vector, matrix=tuple(map(tuple, rows))))


def seventh(prepared: Prepared) -> Prepared:
    """A count that comes out as a seventh of what it is."""
    rebuilt = prepared.draws[0].rebuilt
    assert rebuilt is not None
    return _draw(prepared, rebuilt=tuple(replace(one, divisor=7 * one.divisor) for one in rebuilt))


def negative_squares(prepared: Prepared) -> Prepared:
    """Which lie in no hull of the arch, although each number keeps its width."""
    return _matrix(prepared, 2, lambda row: [-factor for factor in row])


def no_squares(prepared: Prepared) -> Prepared:
    return _matrix(prepared, 2, lambda row: [0 for _ in row])


def other_arch(prepared: Prepared) -> Prepared:
    """With the sum and the squares exchanged."""
    law, vector = prepared.draws[0].law, prepared.draws[0].measurement
    assert isinstance(law, DiscreteHull)
    assert isinstance(vector, JointSums)
    arches = tuple((count, square, total) for count, total, square in vector.arches)
    made = replace(vector, arches=arches)
    first, *others = prepared.plan.releases
    joint = first.joint
    assert joint is not None
    about = {"joint": replace(joint, arches=arches), "law": replace(law, arches=arches)}
    releases = tuple(
        replace(one, **about) if one.draw == first.draw else one for one in (first, *others)
    )
    changed = _draw(prepared, measurement=made, law=about["law"])
    return replace(changed, plan=replace(prepared.plan, releases=releases))


def _of_source(prepared: Prepared, **fields: Any) -> Prepared:
    """With facts about the protected frame that no step makes true."""
    relation = prepared.query.relation
    source = replace(relation.source, **fields)
    steps = []
    facts = source
    for step, _ in relation.steps:
        steps.append((step, facts))
        facts = step.facts(facts)
    made = replace(relation, source=source, steps=tuple(steps), facts=facts)
    return replace(prepared, query=replace(prepared.query, relation=made))


def limited_source(prepared: Prepared) -> Prepared:
    return _of_source(prepared, limits=(RowLimit(1),))


def other_people(prepared: Prepared) -> Prepared:
    return _of_source(prepared, identifier="minutes")


CHANGES: list[tuple[Callable[[], dp.PrivateQuery], Change]] = [
    (grouped_count, quieter_noise),
    (grouped_count, no_noise),
    (joint, larger_epsilon),
    (joint, widths_of_one),
    (joint, larger_matrix),
    (joint_of_changes, widths_of_half),
    (one_sum, wider_clamp),
    (limited, no_limits),
    (grouped_count, other_keys),
    (grouped_count, lower_cost),
    (grouped_count, lower_sensitivity),
    (variance, negative_squares),
    (variance, no_squares),
    (variance, other_arch),
    (joint, seventh),
]


def changed(change: Change, together: PreparedTogether) -> PreparedTogether:
    """The first part of a plan changed, and the plan of the whole where there is no other part."""
    first, *others = together.parts
    if others:
        return replace(together, parts=(change(first), *others))
    part = change(replace(first, plan=together.plan))
    return replace(together, parts=(part,), plan=part.plan)


@pytest.mark.parametrize(
    ("ask", "change"),
    [
        pytest.param(
            ask,
            change,
            id=change.__name__,
            marks=[pytest.mark.always] * (change is lower_sensitivity),
        )
        for ask, change in CHANGES
    ],
)
def test_what_the_planner_gets_wrong_is_refused_before_the_charge(
    ask: Callable[[], dp.PrivateQuery], change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = ask()
    run, session = runner.run, query._payer
    query.collect(epsilon=1)  # it runs as it is
    spent = session.ledger.spent

    def planned_badly(prepared: PreparedTogether, *others: Any) -> Any:
        return run(changed(change, prepared), *others)

    monkeypatch.setattr(runner, "run", planned_badly)
    with pytest.raises(dp.Unsound, match="nothing was charged"):
        query.collect(epsilon=1)
    assert session.ledger.spent == spent


@pytest.mark.parametrize("change", [limited_source, other_people])
def test_what_is_believed_of_a_frame_decides_no_table(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 40 persons has five rows."""
    run = runner.run

    def planned_badly(prepared: PreparedTogether, *others: Any) -> Any:
        return run(changed(change, prepared), *others)

    monkeypatch.setattr(runner, "run", planned_badly)
    people = dp.Session(epsilon=10**7).protect(VISITS, unit="person")
    assert people.limit_rows(3).agg(dp.count()).collect(epsilon=10**6).item() == 120


OF_VECTORS = [
    (joint, widths_of_one),
    (joint, larger_matrix),
    (joint_of_changes, widths_of_half),
    (variance, negative_squares),
    (variance, no_squares),
    (variance, other_arch),
]


@pytest.mark.parametrize(("ask", "change"), OF_VECTORS, ids=[c.__name__ for _, c in OF_VECTORS])
def test_the_kernel_refuses_vectors_that_leave_their_box(
    ask: Callable[[], dp.PrivateQuery], change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone looks at widths and arches."""
    run, seen = runner.run, list[PreparedTogether]()

    def record(prepared: PreparedTogether, *others: Any) -> Any:
        seen.append(prepared)
        return run(prepared, *others)

    monkeypatch.setattr(runner, "run", record)
    ask().collect(epsilon=1)
    verify(physical(seen[0]))
    with pytest.raises(Refused, match=r"out of the box|no count, sum and sum|no number needs"):
        verify(physical(changed(change, seen[0])))


@pytest.mark.parametrize("change", [quieter_noise, no_noise, no_limits, lower_cost])
def test_the_plan_under_each_limit_is_looked_at_too(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = automatic()
    run = runner.run

    def planned_badly(prepared: PreparedTogether, *others: Any) -> Any:
        limits = prepared.limits
        assert limits is not None
        first, *options = limits.options
        made = replace(limits, options=(changed(change, first), *options))
        return run(replace(prepared, limits=made), *others)

    monkeypatch.setattr(runner, "run", planned_badly)
    with pytest.raises(dp.Unsound):
        query.collect(epsilon=1)
    assert query._payer.ledger.spent.main == 0


def test_the_plan_of_one_of_several_parts_reads_back() -> None:
    """Neighbours differ in two parts where rows change, of which one is listed today."""
    rows = dp.Session(epsilon=1)
    frame = rows.protect(VISITS, unit=dp.Rows("change-one"), name="visits")
    (part,) = rows.partition(frame, "place", ["north"]).values()
    plan = part.dp_count().plan(epsilon=0.5)
    assert plan.share is not None
    assert plan.share.touched == 2
    assert dp.Plan.from_json(plan.to_json()).explain() == plan.explain()


@pytest.mark.parametrize("norm", [Fraction(1, 64), Fraction(3, 10), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("ask", ["count", "sum", "mean"])
def test_right_plans_of_weighed_rows_run(norm: Fraction, ask: str) -> None:
    minutes = dp.col("minutes")
    asked = {"count": dp.count(), "sum": minutes.dp_sum((-5, 60)), "mean": minutes.dp_mean((0, 60))}
    people = of_people().limit_norm(norm).limit_groups(2, by="place").limit_rows(2, by="place")
    query = people.group_by("place", keys=["north", "south"]).agg(asked[ask])
    plan = query.plan(epsilon=1)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert query.collect(epsilon=1).height == 2


def test_a_limit_in_each_cell_that_is_below_the_limit_of_all_rows() -> None:
    """The cells hold no more rows than that, as the planner says and the kernel finds."""
    letters = pl.Series("e", ["a", "b", "a"], dtype=pl.Enum(["a", "b"]))
    rows = pl.DataFrame({"id": [1, 1, 2]}).with_columns(letters)
    people = dp.Session(epsilon=1).protect(rows, unit=dp.Identifier("id"))
    query = people.limit_rows(7).limit_rows(1, by="e").agg(pl.col("e").dp_histogram())
    plan = query.plan(epsilon=1)
    assert plan.releases[0].sensitivity.l1 == 2
    assert query.collect(epsilon=1).height == 2
