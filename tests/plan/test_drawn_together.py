"""What documents say of numbers that are drawn together: read again, and forged."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.plan.edits import with_digest, with_fingerprint

X = dp.col("x")
SCHEMA = {"g": pl.Int64, "h": pl.Int64, "x": pl.Float64}
KEYS = {"g": [1, 2], "h": [1, 2, 3]}
SETS = {"cube": dp.cube("g", "h"), "rollup": dp.rollup("g", "h")}


def frame(adjacency: Any) -> dp.PrivateFrame:
    session = dp.Session(epsilon=10)
    return session.protect(pl.LazyFrame(schema=SCHEMA), unit=dp.Rows(adjacency))


def moments(adjacency: Any = "add-remove") -> dp.Plan:
    outputs = X.dp_mean((0, 5)).alias("m"), X.dp_var((0, 5)).alias("v")
    return frame(adjacency).filter(X > 1).agg(*outputs).plan(epsilon=1)


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("epsilon", ["1", "1/100"])
def test_arithmetic_of_grouping_sets_can_be_read_again(
    adjacency: Any, sets: str, epsilon: str
) -> None:
    """Outputs that say no error, of totals that no row leaves for another."""
    groups = frame(adjacency).group_by(SETS[sets], keys=KEYS)
    plan = groups.agg(r=X.dp_sum((0, 5)) - dp.count()).plan(epsilon=epsilon)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_moments_can_be_read_again(adjacency: Any) -> None:
    plan = moments(adjacency)
    joint = plan.releases[0].joint
    assert joint is not None
    assert joint.arches
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.releases[0].joint == joint


def forged(plan: dp.Plan, change: Any) -> str:
    """With something changed in every release, and a fingerprint that follows."""
    found = json.loads(plan.to_json())
    for release in found["plan"]["releases"]:
        change(release)
    return json.dumps(with_digest(with_fingerprint(found)))


def _swapped(release: Any) -> None:
    for place in (release["joint"], release["law"]):
        ((count, total, square),) = place["arches"]
        place["arches"] = [[count, square, total]]


def _none_of_the_law(release: Any) -> None:
    release["joint"]["arches"] = []


def _of_the_law_alone(release: Any) -> None:
    release["joint"].pop("arches")


def _beyond(release: Any) -> None:
    for place in (release["joint"], release["law"]):
        place["arches"] = [[0, 1, 7]]


def _of_a_box(release: Any) -> None:
    release["law"]["kind"] = "DiscreteBox"
    release["law"].pop("arches")


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize(
    "change", [_swapped, _none_of_the_law, _of_the_law_alone, _beyond, _of_a_box]
)
def test_other_arches_are_refused(change: Any, adjacency: Any) -> None:
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(forged(moments(adjacency), change))


def test_rows_that_stay_move_sums_and_squares_twice_as_far() -> None:
    """In one group of all, where a value is taken away and another one added."""

    def narrow(release: Any) -> None:
        joint, law = release["joint"], release["law"]
        joint["turned"] = joint["widths"]
        law["widths"] = joint["widths"]

    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(forged(moments("change-one"), narrow))
