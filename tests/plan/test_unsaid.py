"""What happens to rows is what people read: a document is refused whose physical plan does more to
rows, or something else with the same expressions.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import dpframe as dp
from tests.plan.documents import plan_of
from tests.plan.edits import with_digest, with_fingerprint
from tests.plan.test_verify import whole

MORE = {"bill": "Int64", "smoker": "Boolean", "visits": "Int64"}
"""Columns of the source, of which the plans read some."""


def edited(name: str, edit: Callable[[Any], None]) -> str:
    """A document after an edit of its physical plan, with the digests that it then should have."""
    document = copy.deepcopy(whole(name))
    (scan, *_) = document["physical"]["frames"]
    known = [name for name, _ in scan["columns"]]
    if name != "frames_together":  # frames of a union have the same columns
        scan["columns"] += [[name, kind] for name, kind in MORE.items() if name not in known]
    edit(document["physical"])
    return json.dumps(with_digest(with_fingerprint(document)))


def column(name: str) -> dict[str, object]:
    return {"node": "Col", "name": name}


def last(plan: Any, frame: dict[str, object]) -> None:
    """One more frame, which all tables are of."""
    plan["frames"].append(frame | {"input": len(plan["frames"]) - 1})
    for table in plan["tables"]:
        table["frame"] = len(plan["frames"]) - 1


def mapped(plan: Any, **others: object) -> None:
    """All columns of the source, some of them made from others."""
    names = [name for name, _ in plan["frames"][0]["columns"]]
    last(plan, {"node": "Map", "columns": [[n, others.get(n, column(n))] for n in names]})


def one_more_filter(plan: Any) -> None:
    last(plan, {"node": "Filter", "conditions": [column("smoker")]})


def one_more_limit(plan: Any) -> None:
    last(plan, {"node": "KeepRows", "n": 1, "by": [], "first": None})


def filter_in_a_column(plan: Any) -> None:
    """The condition is there, and drops nothing."""
    scan, kept = plan["frames"]
    named = [[name, column(name)] for name, _ in scan["columns"]]
    unused = [["unused", kept["conditions"][0]]]
    plan["frames"][1] = {"node": "Map", "input": 0, "columns": named + unused}


def columns_exchanged(plan: Any) -> None:
    mapped(plan, age=column("visits"), visits=column("age"))


def values_of_another_column(plan: Any) -> None:
    plan["tables"][1]["adds"]["row"] = column("bill")


def sum_of_another_column(plan: Any) -> None:
    plan["tables"][2]["adds"]["row"] = column("bill")


def bins_of_another_column(plan: Any) -> None:
    for table in plan["tables"]:
        table["cells"]["row"] = column("visits")


def another_public_table(plan: Any) -> None:
    plan["frames"][1]["public"] = "0" * 64


def another_join(plan: Any) -> None:
    plan["frames"][1]["how"] = "left"


def kept_where_they_meet(plan: Any, right: int, how: str) -> None:
    left = len(plan["frames"]) - 1
    meet = {"node": "Meet", "left": left, "right": right, "on": [], "how": how, "new": []}
    last(plan, meet)
    del plan["frames"][-1]["input"]


def one_more_join(plan: Any) -> None:
    kept_where_they_meet(plan, 1, "anti")


def another_source(plan: Any) -> None:
    plan["frames"].insert(0, plan["frames"][0] | {"name": "salaries"})
    for frame in plan["frames"]:
        for name in {"input", "left", "right"} & frame.keys():
            frame[name] += 1
    kept_where_they_meet(plan, 0, "semi")


def a_name_that_begins_alike(plan: Any) -> None:
    plan["frames"][0]["name"] = "patients (all of them)"


def a_filter_of_one_option(plan: Any) -> None:
    option = plan["options"][0]
    last(option, {"node": "Filter", "conditions": [column("region")]})


@pytest.mark.parametrize(
    ("name", "edit", "what"),
    [
        ("grouped", one_more_filter, "what it states of frame 1"),
        ("frames_together", one_more_limit, "what it states of frame 10"),
        ("filtered_count", filter_in_a_column, r"steps\[0\].definition"),
        ("grouped", columns_exchanged, "what it states of frame 1"),
        ("grouped", values_of_another_column, "definition of 'mean_age'"),
        ("grouped", sum_of_another_column, "definition of 'mean_age'"),
        ("histogram_of_bins", bins_of_another_column, "definition of"),
        ("joined_with_public", another_public_table, r"steps\[0\].definition"),
        ("joined_with_public", another_join, r"steps\[0\].definition"),
        ("frames_together", one_more_join, "what it states of frame 10"),
        ("frames_together", another_source, "what it states of the source 'salaries'"),
        ("grouped", a_name_that_begins_alike, "unit"),
        ("found_limit", a_filter_of_one_option, "what it states of frame 3"),
    ],
)
def test_what_nobody_reads_is_refused(name: str, edit: Callable[[Any], None], what: str) -> None:
    assert dp.verify(plan_of(name).to_json()).is_complete
    text = edited(name, edit)
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.PlanMismatch, match=f"{what}.* contradicts the physical plan"):
            read(text)


def test_operations_that_dpframe_does_not_have_are_refused() -> None:
    """The kernel believes that a result for a row follows from that row alone."""

    def ranks(plan: Any) -> None:
        row = {"node": "Call", "operation": "rank", "operands": [column("bill")], "constants": "[]"}
        mapped(plan, bill=row)

    text = edited("grouped", ranks)
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.Unsound, match="no operation 'rank'"):
            read(text)
