"""What is charged is what is lost: the worst row for the stated noise loses all of a plan's cost
and no more, whatever outputs share; and each planted mistake about that is caught.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import measurement
from dpframe.aggregates.margins import RootSums
from dpframe.api.query import parts
from dpframe.audit.likelihood import stated_loss
from dpframe.core.budget import Budget
from dpframe.mechanisms import Box
from dpframe.optimise import mechanisms as together
from dpframe.optimise import planning
from dpframe.optimise.queries import Place, Queries
from dpframe.simulate import Exact, ExactTables
from tests.audit.test_joint_audits import ROW, table
from tests.audit.test_sampled_joint_audits import cube, few_edges, joint, many_edges

Patch = pytest.MonkeyPatch
Ask = Callable[[Any], Any]
X, AGE = pl.col("x"), pl.col("age")


def counts(f: Any) -> Any:
    return f.group_by("sex", keys=["m", "f"]).agg(n=dp.count())


def sums(f: Any) -> Any:
    return f.group_by("sex", keys=["m", "f"]).agg(X.dp_sum((0, 4)).alias("s"))


def ages(f: Any) -> Any:
    return f.agg(AGE.dp_mean((-3, 5)).alias("m"))


ASKED: dict[str, tuple[Ask, ...]] = {
    "joint": (joint,),
    "tables": (cube,),
    "few edges": (few_edges,),
    "many edges": (many_edges,),
    "two queries of the same groups": (counts, sums),
    "a query twice": (counts, counts),
    "queries of different groups": (counts, ages, cube),
}
SPENDS: tuple[Budget, ...] = (dp.PureDP(1), dp.ZCDP(Fraction(1, 2)))
each = pytest.mark.parametrize("spend", SPENDS, ids=lambda spend: spend.measure)


def planned(asked: Sequence[Ask], spend: Budget) -> pipeline.PreparedTogether:
    budget = dp.ZCDP(10**6) if isinstance(spend, dp.ZCDP) else dp.ApproxDP(10**6, "0.4")
    schema = {"uid": pl.Int64, "age": pl.Int64, "sex": pl.String, "city": pl.String}
    frame = dp.Session(budget).protect(
        pl.LazyFrame(schema={**schema, "x": pl.Float64, "day": pl.Date}), dp.Rows()
    )
    queries = tuple(parts(ask(frame))[0] for ask in asked)
    return pipeline.plan_several(Queries(queries), spend, None)


def exact(part: pipeline.Prepared, rows: Sequence[dict[str, Any]]) -> ExactTables:
    return Exact.of(part).count({part.query.relation.token: table(rows)})


def check(asked: Sequence[Ask], spend: Budget) -> None:
    """All that may be spent is, on what one row loses in all that is drawn."""
    found = planned(asked, spend)
    roots = any(isinstance(d.measurement, RootSums) for p in found.parts for d in p.draws)
    row = ROW | {"age": -(10**6)} if roots else ROW  # in the first step, where it moves most
    lost = sum(stated_loss(p, exact(p, [row]), exact(p, [])) for p in found.parts)
    cost = found.plan.cost.main
    assert lost <= cost * (1 + Fraction(1, 10**9)), "more is lost than is charged"
    assert lost >= cost * Fraction(999, 1000), "more is charged than is lost"
    assert Fraction(999, 1000) * spend.main < cost <= spend.main, "not what may be spent"


@each
@pytest.mark.parametrize("name", ASKED)
def test_what_is_charged_is_what_is_lost(name: str, spend: Budget) -> None:
    check(ASKED[name], spend)


@each
def test_a_query_that_is_asked_twice_is_drawn_and_charged_once(spend: Budget) -> None:
    once, twice = planned([counts], spend).plan, planned([counts, counts], spend).plan
    assert [d.law for d in once.draws] == [d.law for d in twice.draws]
    assert once.cost == twice.cost


# ------------------------------------------------------------------------------- the mistakes


def drawn_otherwise(change: Callable[[together.ComposedChoice, Any, Budget], Any]) -> Any:
    """Plants another choice of all mechanisms."""

    def plant(patch: Patch) -> None:
        true = together._by_sums

        def wrong(asked: Any, weights: Any, spend: Budget) -> Any:
            return change(true(asked, weights, spend), asked, spend)

        patch.setattr(together, "_by_sums", wrong)

    return plant


def _without(number: int) -> Any:
    """A part that gets the noise of the whole spend, beside the others."""

    def change(found: together.ComposedChoice, asked: Any, spend: Budget) -> Any:
        choices = list(found.choices)
        choices[number] = replace(together.choose(asked[number], spend), cost=choices[number].cost)
        return replace(found, choices=tuple(choices))

    return drawn_otherwise(change)


def _twice(found: together.ComposedChoice, asked: Any, spend: Budget) -> Any:
    return replace(found, cost=found.cost + found.choices[0].cost)


def _half_the_box(patch: Patch) -> None:
    true = measurement.box_of

    def wrong(*given: Any) -> Box:
        box = true(*given)
        return replace(box, widths=tuple(max(1, w // 2) for w in box.widths))

    patch.setattr(measurement, "box_of", wrong)


def _twice_the_box(patch: Patch) -> None:
    """A move that is charged twice."""
    true = measurement.box_of
    patch.setattr(
        measurement,
        "box_of",
        lambda *given: replace(true(*given), widths=tuple(2 * w for w in true(*given).widths)),
    )


def _first_block_alone(patch: Patch) -> None:
    """Several queries that are charged for the first of them."""
    true = planning.describe_together
    patch.setattr(
        planning,
        "describe_together",
        lambda plans, places: replace(
            true(plans, places), cost=reduce(add, (d.cost for d in plans[0].draws))
        ),
    )


def _each_query_for_itself(patch: Patch) -> None:
    """A draw that several queries share is charged to each."""
    patch.setattr(
        planning,
        "merge",
        lambda asked: (asked.queries, tuple(map(_place, range(2), asked.queries))),
    )
    patch.setattr(planning, "related_blocks", lambda queries: [])


def _place(number: int, query: Any) -> Place:
    return replace(Place.whole(query), block=number)


PURE, ZCDP = SPENDS
MISTAKES: dict[str, tuple[Any, str, Budget]] = {
    "a level that is not charged": (_without(0), "many edges", PURE),
    "a level that is not charged in rho": (_without(0), "few edges", ZCDP),
    "another level that is not charged": (_without(2), "few edges", ZCDP),
    "a level that is charged twice": (drawn_otherwise(_twice), "many edges", PURE),
    "a level that is charged twice in rho": (drawn_otherwise(_twice), "few edges", ZCDP),
    "a table that is left out": (_without(-1), "tables", ZCDP),
    "a table that is charged twice": (drawn_otherwise(_twice), "tables", ZCDP),
    "a box of half the width": (_half_the_box, "joint", PURE),
    "a box of twice the width": (_twice_the_box, "joint", PURE),
    "a query beside another is free": (_first_block_alone, "queries of different groups", PURE),
    "a query beside another is free in rho": (
        _first_block_alone,
        "queries of different groups",
        ZCDP,
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: Patch) -> None:
    plant, asked, spend = MISTAKES[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"more is|not what"):
        check(ASKED[asked], spend)


@each
def test_a_shared_draw_that_is_charged_to_each_query_is_seen(
    spend: Budget, monkeypatch: Patch
) -> None:
    """It is private, and has twice the noise."""
    once = planned([counts], spend).plan
    _each_query_for_itself(monkeypatch)
    twice = planned([counts, counts], spend).plan
    assert [d.law for d in once.draws] != [d.law for d in twice.draws]
