"""Several winners, or one in each of several groups: the costs of choices composed the best way."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import polars as pl
import pytest

import dpframe as dp
from dpframe import accounting
from dpframe.accounting import ExponentialEvent, SharedExponentialEvent
from dpframe.core.budget import Budget
from dpframe.core.sensitivity import ExactSensitivity, concentrate
from dpframe.mechanisms import Exponential, PermuteAndFlip, SelectionMechanism, SelectionTask
from dpframe.optimise.mechanisms import ComposedChoice, choose_together
from tests.score_ranges import of_groups

CANDIDATES = 100


def chosen(
    rounds: int = 1, groups: int = 1, spend: Budget | None = None, mechanism: str = "auto"
) -> tuple[SelectionTask, ComposedChoice]:
    """One individual moves all scores of each group, all of them one way."""
    g = Fraction(groups)
    moved = of_groups(g, Fraction(1))
    all_scores = g * CANDIDATES
    sensitivity = ExactSensitivity(groups * CANDIDATES, all_scores, all_scores, Fraction(1))
    asked = SelectionTask("w", sensitivity, moved, mechanism, rounds, candidates=CANDIDATES)
    return asked, choose_together([asked], [Fraction(1)], spend or dp.ApproxDP(1, "1e-6"))


def scale(found: ComposedChoice) -> Fraction:
    law = found.choices[0].law
    assert isinstance(law, SelectionMechanism)
    return law.scale


@pytest.mark.parametrize(
    ("number", "less"), [(1, 1), (4, 1), (10, 1.5), (30, 2.5), (50, 3.3), (100, 4.6)]
)
@pytest.mark.parametrize("what", ["rounds", "groups"])
def test_many_choices_need_much_less_noise_than_sums_of_epsilon(
    number: int, less: float, what: str
) -> None:
    asked, found = chosen(**{what: number})
    assert number / scale(found) >= less
    assert dp.ApproxDP(1, "1e-6").covers(found.cost)
    events = found.choices[0].law.events(asked.exposure)
    assert accounting.best(events, "1e-6").epsilon <= 1 + 1e-6


def test_a_few_choices_are_made_by_permute_and_flip_and_many_by_the_exponential_mechanism() -> None:
    """What the pages say: permute-and-flip errs least only where epsilons are added up."""
    kinds = [type(chosen(rounds=n)[1].choices[0].law) for n in (1, 2, 3, 10, 100)]
    assert kinds == [PermuteAndFlip] * 3 + [Exponential] * 2
    assert [chosen(rounds=n)[1].composition for n in (1, 10, 100)] == [
        "sum",
        "numerical",
        "numerical",
    ]


def test_what_is_asked_for_by_name_is_composed_too() -> None:
    for name in ("permute_and_flip", "report_noisy_max", "exponential"):
        asked, found = chosen(rounds=100, mechanism=name)
        assert found.choices[0].law.name == name
        assert scale(found) < 50
        events = found.choices[0].law.events(asked.exposure)
        assert accounting.best(events, "1e-6").epsilon <= 1 + 1e-6


def test_without_a_delta_epsilons_add_up() -> None:
    assert scale(chosen(rounds=100, spend=dp.PureDP(1))[1]) == 100


def test_choices_of_one_range_cost_less_than_by_rho_and_those_of_shared_ones_more() -> None:
    """2.2680 and 2.6118 against 2.4191 for a hundred."""
    found = {}
    for kind in (ExponentialEvent, SharedExponentialEvent):
        events = [kind("0.1")] * 100
        found[kind] = {b.method: b.epsilon for b in accounting.bounds(events, "1e-6")}
    by_rho, numerical = "zCDP, tight", "privacy loss distribution"
    assert found[ExponentialEvent][by_rho] == pytest.approx(2.4191, abs=1e-4)
    assert found[SharedExponentialEvent][by_rho] == pytest.approx(2.4191, abs=1e-4)
    assert found[SharedExponentialEvent][numerical] == pytest.approx(2.6118, abs=1e-4)
    assert found[ExponentialEvent][numerical] == pytest.approx(2.2680, abs=1e-3)


@pytest.mark.parametrize(
    ("limits", "shared"),
    [
        ('f.limit_groups(9, by="g").limit_rows(1, by="g")', False),  # nine ranges of 1
        ('f.limit_groups(9, by="g").limit_rows(5, by="g")', False),  # nine ranges of 5
        ("f.limit_rows(9)", False),  # parts of one range of 9
        ('f.limit_rows(2, by="g").limit_rows(9)', True),  # 2, 2, 2, 2 and 1, or 1 nine times
        ('f.limit_groups(4, by="g").limit_rows(3, by="g").limit_rows(9)', True),
    ],
)
def test_ranges_that_may_be_divided_otherwise_are_taken_one_by_one(
    limits: str, shared: bool
) -> None:
    frame = pl.LazyFrame(
        schema={"who": pl.Int64, "g": pl.Int64, "c": pl.Enum([f"c{i}" for i in range(30)])}
    )
    f = dp.Session(epsilon=10, delta="1e-5").protect(frame, "who")
    query = (
        eval(limits, {"f": f})
        .group_by("g", keys=range(20))
        .agg(w=pl.col("c").dp_argmax(k=6, mechanism="exponential"))
    )
    plan = query.plan(epsilon=1, delta="1e-6")
    (release,) = plan.releases
    events = release.events
    assert {isinstance(event, SharedExponentialEvent) for event in events} == {shared}
    assert accounting.best(events, "1e-6").epsilon <= 1 + 1e-6
    assert dp.Plan.from_json(plan.to_json()).releases == plan.releases


@pytest.mark.parametrize("total", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_choices_cost_most_where_ranges_differ_most(total: int) -> None:
    """Of ranges within a sum and a maximum those that differ most tell most, at every epsilon."""
    for largest in range(1, total + 1):
        worst = concentrate(Fraction(total), Fraction(largest))
        assert sum(worst) == total
        if max(worst) < largest:
            continue
        most = delta_of(worst)
        for count in range(1, total + 1):
            for ranges in combinations_with_replacement(range(1, largest + 1), count):
                if sum(ranges) <= total:
                    found = delta_of(tuple(map(Fraction, ranges)))
                    assert all(a <= b * (1 + 1e-6) for a, b in zip(found, most, strict=True))


def delta_of(ranges: tuple[Fraction, ...]) -> list[float]:
    accountant = accounting.PrivacyLossAccountant([ExponentialEvent(r / 3) for r in ranges])
    return [accountant.delta(epsilon) for epsilon in ("0", "0.3", "0.8", "1.4")]


@pytest.mark.parametrize("k", [1, 12])
@pytest.mark.parametrize("limit", [1, 9])
def test_plans_of_winners_say_how_they_are_composed(k: int, limit: int) -> None:
    session = dp.Session(epsilon=10, delta="1e-5")
    frame = pl.LazyFrame(
        schema={"who": pl.Int64, "g": pl.Int64, "c": pl.Enum([f"c{i}" for i in range(30)])}
    )
    people = session.protect(frame, "who").limit_groups(limit, by="g").limit_rows(1, by="g")
    mechanism = "exponential" if k > 1 else "auto"  # one after another
    chosen = pl.col("c").dp_argmax(k=k, mechanism=mechanism)
    query = people.group_by("g", keys=range(20)).agg(w=chosen)
    plan = query.plan(epsilon=1, delta="1e-6")
    (release,) = plan.releases
    assert len(release.events) == (k * limit if release.mechanism == "exponential" else k)
    assert (plan.composition == "sum") == (k * limit < 5)
    read = dp.Plan.from_json(plan.to_json())
    assert read.fingerprint == plan.fingerprint
    assert read.releases == plan.releases
    assert release.scores is not None
    assert release.scores.groups == (Fraction(1),) * limit


def test_a_plan_whose_ranges_are_understated_is_refused() -> None:
    session = dp.Session(epsilon=10, delta="1e-5")
    frame = pl.LazyFrame(schema={"who": pl.Int64, "g": pl.Int64, "c": pl.Enum(["a", "b"])})
    people = session.protect(frame, "who").limit_groups(9, by="g").limit_rows(1, by="g")
    text = (
        people.group_by("g", keys=range(20))
        .agg(w=pl.col("c").dp_argmax())
        .plan(epsilon=1, delta="1e-6")
        .to_json()
    )
    for a, b in product(['"linf": "1"'], ['"linf": "1/2"', '"linf": "0"', '"linf": "-1"']):
        i = text.index('"scores"')
        with pytest.raises(dp.DPFrameError):
            dp.Plan.from_json(text[:i] + text[i:].replace(a, b, 1))
