"""Of the ways to measure a plan the one is taken whose outputs err least, each relative to what it
errs as the split says: whatever units outputs are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.reconstruction import SetReconstruction
from dpframe.mechanisms import AdditiveMechanism
from dpframe.optimise import planning
from dpframe.optimise.planning import RULES, Answer, Draft, ExpectedError, Planning, Rule
from dpframe.optimise.prepared import Prepared

Way = tuple[Prepared, ...]


def planned(monkeypatch: pytest.MonkeyPatch, bound: float = 10_000) -> tuple[Sequence[Way], Way]:
    """The ways to measure a plan, and the one that is taken. Its numbers up to many edges are
    served much better where shares are of rho than of epsilon, its few sums slightly worse.
    """
    ways, taken = list[Way](), list[Way]()
    plan, answer = Planning._plan, Planning.answer

    def record_way(self: Planning, queries: Sequence[Query]) -> Way:
        ways.append(plan(self, queries))
        return ways[-1]

    def record(self: Planning, draft: Draft, rules: Sequence[Rule] = RULES) -> Answer:
        found = answer(self, draft, rules)
        if rules == RULES[-1:]:
            taken.append(found.prepared)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Planning, "_plan", record_way)
        patch.setattr(Planning, "answer", record)
        session = dp.Session(epsilon=100, delta="0.1")
        rows = pl.DataFrame({"a": [1], "b": [1], "x": [1.0], "y": [2.0]})
        frame = session.protect(rows, dp.Rows())
        numbers = frame.agg(dp.cdf("y", bins=10_000, bounds=(0, 100)).alias("numbers"))
        groups = frame.group_by(dp.rollup("a", "b"), keys={"a": range(3), "b": range(2)})
        sums = groups.agg(dp.sum("x", (0, bound)).alias("sums"))
        spend: dict[str, Any] = {"epsilon": 3, "delta": "1e-4"}
        session.plan([numbers, sums], **spend)
    assert len(taken) == 1
    return ways[:2], taken[0]  # a third one, by the square root factorisation, errs more here


def least(ways: Sequence[Way], monkeypatch: pytest.MonkeyPatch) -> Way:
    """Which of these ways is taken."""
    made = iter(ways)
    with monkeypatch.context() as patch:
        patch.setattr(planning, "ways_to_measure", lambda query, spend: [query] * len(ways))
        patch.setattr(Planning, "_plan", lambda self, queries: next(made))
        search = Planning(dp.PureDP(1), None, "least error", None)
        asked = Draft.first([one.query for one in ways[0]])
        return search.answer(asked, RULES[-1:]).prepared


def is_taken(way: Way, taken: Way) -> bool:
    """Whether it is the one that is taken, whatever its outputs say of that."""
    return all(one.draws is other.draws for one, other in zip(way, taken, strict=True))


def variances(way: Way) -> list[float]:
    """Of both outputs: of the numbers in rows, and of the sum of all in steps of its grid."""
    found = []
    for one in way:
        (aggregate,) = one.query.aggregates
        if isinstance(aggregate, BoundDistribution):
            found.append(aggregate.squared_error(one.query.scope, one.laws))
            continue
        laws = [one.laws[key] for key in aggregate.keys]
        noise = [law.variance() for law in laws if isinstance(law, AdditiveMechanism)]
        if isinstance(aggregate, SetReconstruction):
            (strategy,) = aggregate.used_strategies
        else:
            strategy = aggregate.strategy  # type: ignore[attr-defined]
        found.append(strategy.objective(noise))
    return found


@pytest.mark.parametrize("bound", [1, 10_000, 10**9])
def test_outputs_of_different_scales_are_compared_by_their_own_errors(
    bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways, taken = planned(monkeypatch, bound)
    (numbers, sums), (numbers_by_rho, sums_by_rho) = map(variances, ways)
    assert numbers_by_rho < 0.9 * numbers
    assert sums < sums_by_rho < 1.03 * sums
    assert numbers + sums < numbers_by_rho + sums_by_rho  # which says nothing
    assert is_taken(ways[1], taken)
    assert not is_taken(ways[0], taken)
    (note,) = (output.note for output in taken[1].plan.outputs)
    assert note.endswith(
        "times more error than by the way that is best for it alone, so that others err less"
    )


@pytest.mark.parametrize(("weight", "number"), [(1, 1), (9, 1), (11, 0), (20, 0)])
def test_a_weight_counts(weight: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ways, _ = planned(monkeypatch)
    expected = {
        id(ways[0][0]): [ExpectedError(1e-9, 1), ExpectedError(1e9, weight)],
        id(ways[1][0]): [ExpectedError(5e-10, 1), ExpectedError(1.05e9, weight)],
    }
    monkeypatch.setattr(planning, "errors_of", lambda way: expected[id(next(iter(way)))])
    assert is_taken(ways[number], least(ways, monkeypatch))


def test_of_equal_ways_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, _ = planned(monkeypatch)
    second = tuple(replace(one, draws=(*one.draws,)) for one in ways[0])
    assert not is_taken(second, ways[0])
    assert is_taken(ways[0], least([ways[0], second], monkeypatch))
    assert is_taken(ways[1], least([ways[1]], monkeypatch))
