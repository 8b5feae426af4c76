"""Several queries as one plan: no individual moves what is drawn by more than all of it covers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import pipeline
from dpframe.core.budget import PureDP
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.optimise.queries import Queries, merge
from tests.laws.neighbours import UNITS, check_sensitivities, neighbours
from tests.laws.queries import GROUPINGS, STEPS, names_of, query
from tests.laws.test_joint_draws import several


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(
    st.lists(st.tuples(several(), st.sampled_from(GROUPINGS)), min_size=2, max_size=3),
    st.lists(st.sampled_from(STEPS), max_size=1),
    st.data(),
)
@settings(max_examples=8)
def test_neighbours_move_merged_queries_within_what_is_declared(
    unit: Rows, asked: list[tuple[list[str], str]], steps: list[str], data: st.DataObject
) -> None:
    try:
        found = [query(texts, unit, grouping, steps) for texts, grouping in asked]
    except DPFrameError:
        return
    together = Queries((*found, found[0]))
    blocks, places = merge(together)
    assert places[-1].block == places[0].block
    pair = data.draw(neighbours(unit, [name for one in found for name in names_of(one)]))
    for block in blocks:
        check_sensitivities(block, pair)
    plan = pipeline.plan_several(together, PureDP(1), None).plan
    assert sum(draw.cost.main for draw in plan.draws) <= plan.cost.main <= 1
