"""Trees that reports read say what definitions do, in the same order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.core.tree import Call, Column, Literal, walk
from dpframe.frames.definition import objects_in
from dpframe.plan.reading import columns_in, named_in, trees_in
from dpframe.plan.several import blocks_of
from tests.plan.documents import DOCUMENTS, plan_of

KEPT = sorted(path.stem for path in DOCUMENTS.glob("*.json"))
NODES = {"Column": Column, "Literal": Literal, "Call": Call}


@pytest.mark.parametrize("name", KEPT)
def test_trees_have_all_nodes_of_definitions_in_order(name: str) -> None:
    plan = plan_of(name)
    for block in blocks_of(plan):
        parts: list[Any] = [step.definition for step in block.steps]
        parts += [output.definition for output in block.outputs]
        for part in [*parts, block.grouped_by]:
            said = [one for one in objects_in(part) if one.get("type") in NODES]
            nodes = [node for tree in trees_in(part) for node in walk(tree)]
            assert [type(node) for node in nodes] == [NODES[str(one["type"])] for one in said]
            columns = [one["name"] for one in said if one["type"] == "Column"]
            assert [node.name for node in nodes if isinstance(node, Column)] == columns
            calls = [node for node in nodes if isinstance(node, Call)]
            ops = [one["op"] for one in said if one["type"] == "Call"]
            assert [call.operation.name for call in calls] == ops
            assert columns_in(part) == list(dict.fromkeys(columns))
            held = [json.dumps(one.get("value")) for one in said if one["type"] == "Literal"]
            literals = [node.value for node in nodes if isinstance(node, Literal)]
            assert [json.dumps(value.json) for value in literals] == held  # type: ignore[union-attr]


def test_named_columns_have_their_trees() -> None:
    keys = named_in(plan_of("grouped").grouped_by)
    assert [(one.name, one.tree) for one in keys] == [("region", Column("region"))]
    assert named_in(None) == named_in({"named": 7}) == named_in([["x"], {"tree": []}]) == []


ANYTHING = st.recursive(
    st.none() | st.integers() | st.sampled_from(["Column", "Literal", "Call", "x", "op"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "op", "args", "options", "value", "tree", "named"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(ANYTHING)
def test_what_is_no_expression_is_passed_by(said: Any) -> None:
    names = {one.get("name") for one in objects_in(said) if isinstance(one.get("name"), str)}
    assert {*columns_in(said)} <= names
    assert all(isinstance(one.name, str) for one in named_in(said))
