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
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.reconstruction import SetReconstruction
from dpframe.mechanisms import AdditiveMechanism
from dpframe.planning import planning
from dpframe.planning.planning import least_expected
from dpframe.planning.prepared import Prepared

Way = tuple[Prepared, ...]


def planned(monkeypatch: pytest.MonkeyPatch, bound: float = 10_000) -> tuple[Sequence[Way], Way]:
    """The ways to measure a plan, and the one that is taken. Its numbers up to many edges are
    served much better where shares are of rho than of epsilon, its few sums slightly worse.
    """
    compared: list[tuple[Sequence[Way], Way]] = []

    def least(ways: Sequence[Way], before: object) -> Way:
        assert before is None
        compared.append((ways, least_expected(ways, None)))
        return compared[-1][1]

    monkeypatch.setattr(planning, "least_expected", least)
    session = dp.Session(epsilon=100, delta="0.1")
    rows = pl.DataFrame({"a": [1], "b": [1], "x": [1.0], "y": [2.0]})
    frame = session.protect(rows, dp.Rows())
    numbers = frame.agg(dp.cdf("y", bins=10_000, bounds=(0, 100)).alias("numbers"))
    groups = frame.group_by(dp.rollup("a", "b"), keys={"a": range(3), "b": range(2)})
    sums = groups.agg(dp.sum("x", (0, bound)).alias("sums"))
    spend: dict[str, Any] = {"epsilon": 3, "delta": "1e-4"}
    session.plan([numbers, sums], **spend)
    ((ways, taken),) = compared
    return ways[:2], taken  # a third one, by the square root factorisation, errs more here


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
            (strategy,) = aggregate.used
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


@pytest.mark.parametrize(
    ("weight", "number", "by_rho"), [(1, 1, 1), (9, 1, 1), (11, 0, 1), (20, 0, 1), (22, 0, 0)]
)
def test_a_weight_counts(
    weight: int, number: int, by_rho: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`by_rho` is the way that is taken where errors by rho are what others are relative to."""
    ways, _ = planned(monkeypatch)
    expected = {
        id(ways[0]): [planning.ExpectedError(1e-9, 1), planning.ExpectedError(1e9, weight)],
        id(ways[1]): [planning.ExpectedError(5e-10, 1), planning.ExpectedError(1.05e9, weight)],
    }
    monkeypatch.setattr(planning, "errors_of", lambda way: expected[id(way)])
    assert is_taken(ways[number], least_expected(ways, None))
    before = expected[id(ways[1])]
    assert is_taken(ways[by_rho], least_expected(ways, before))


def test_of_equal_ways_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, _ = planned(monkeypatch)
    second = tuple(replace(one, draws=(*one.draws,)) for one in ways[0])
    assert not is_taken(second, ways[0])
    assert is_taken(ways[0], least_expected([ways[0], second], None))
    assert is_taken(ways[1], least_expected([ways[1]], None))
