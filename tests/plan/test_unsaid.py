"""What happens to rows is what people read: a document is refused whose physical plan does more to
rows, or something else with the same expressions.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.kernel.plan import plan_of as physical_of
from dpframe.kernel.verify import verify as verify_physical
from tests.plan.documents import plan_of, secret
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
    last(plan, {"node": "KeepRows", "n": 1, "by": [], "first": None, "of": None})


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


def rows_instead_of_a_sum(plan: Any) -> None:
    plan["options"][2]["tables"][1]["adds"] = {"node": "Valued", "row": column("cost")}


def totals_instead_of_groups(plan: Any) -> None:
    plan["options"][4]["draws"][0]["what"]["kept"] = []


def groups_for_rows(plan: Any) -> None:
    (each,) = (frame for frame in plan["frames"] if frame["node"] == "OneEach")
    each["rows"], each["groups"] = each["groups"], each["rows"]


def rows_of_other_groups(plan: Any) -> None:
    (each,) = (frame for frame in plan["frames"] if frame["node"] == "OneEach")
    each["by"] = [column("person")]


def a_count_twice(plan: Any) -> None:
    plan["options"][2]["tables"][1]["adds"] = {"node": "One"}


@pytest.mark.parametrize(
    ("name", "edit", "what"),
    [
        ("grouped", one_more_filter, "what it states of frame 1"),
        ("frames_together", one_more_limit, "sensitivity of 'old'"),
        ("filtered_count", filter_in_a_column, r"steps\[0\].definition"),
        ("grouped", columns_exchanged, "definition of 'mean_age'"),
        ("grouped", values_of_another_column, "definition of 'mean_age'"),
        ("grouped", sum_of_another_column, "definition of 'mean_age'"),
        ("histogram_of_bins", bins_of_another_column, "definition of"),
        ("joined_with_public", another_public_table, r"steps\[0\].definition"),
        ("joined_with_public", another_join, r"steps\[0\].definition"),
        ("frames_together", one_more_join, "what it states of frame 10"),
        ("frames_together", another_source, "what it states of the source 'salaries'"),
        ("grouped", a_name_that_begins_alike, "unit"),
        ("found_limit", a_filter_of_one_option, "what it states of frame 3"),
        ("found_limit", rows_instead_of_a_sum, "what it states of table 1"),
        ("found_limit", totals_instead_of_groups, "what it states of draw 0"),
        ("found_limit", groups_for_rows, "definition of 'individuals by rows'"),
        ("found_limit", rows_of_other_groups, "definition"),
        ("found_limit", a_count_twice, "what it states of the limit 5"),
    ],
)
def test_what_nobody_reads_is_refused(name: str, edit: Callable[[Any], None], what: str) -> None:
    assert dp.verify(plan_of(name).to_json()).is_complete
    text = edited(name, edit)
    for read in (dp.verify, dp.Plan.from_json):
        with pytest.raises(dp.PlanMismatch, match=f"{what}.* contradicts the physical plan"):
            read(text)


# The same parts in another order, another number of times, or of something else

PEOPLE: Mapping[str, Any] = {"who": pl.Int64, "x": pl.Int64, "y": pl.Int64, "town": pl.String}
LAPLACE: Any = {"mechanism": "discrete_laplace"}
BOUNDS = (0, 5)


def people(session: dp.Session | None = None, name: str = "people") -> dp.PrivateFrame:
    session = session or dp.Session(epsilon=1)
    return session.protect(secret(PEOPLE), unit="who", name=name)


def rows() -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(secret(PEOPLE), unit=dp.Rows(), name="rows")


def kept_by_another_frame() -> dp.Plan:
    session = dp.Session(epsilon=1)
    one, other = people(session), people(session, "others")
    return one.join(other, on="who", how="semi").limit_rows(2).dp_count().plan(epsilon=1)


def through_another_frame() -> dp.PrivateFrame:
    session = dp.Session(epsilon=1)
    orders = {"order": pl.Int64, "key": pl.Int64, "who": pl.Int64}
    whose = session.protect(secret(orders), unit="who", name="orders")
    items = secret({"order": pl.Int64, "key": pl.Int64, "price": pl.Int64})
    return session.protect(items, unit=dp.Through(whose, on="order"), name="items")


def two_frames() -> dp.Plan:
    session = dp.Session(epsilon=1)
    frame = session.protect(secret(PEOPLE), unit=dp.Rows(), name="rows")
    return session.plan([frame.dp_count(), frame.filter(POSITIVE).dp_count()], epsilon=1)


def plan_of_people() -> dp.Plan:
    each = people().group_by("who").agg(n=pl.col("x").clip(0, 8).sum())
    return each.agg(dp.sum("n", (0, 8))).plan(epsilon=1)


POSITIVE = pl.col("x") > 0
OWN: Mapping[str, Callable[[], dp.Plan]] = {
    "limited": lambda: people().filter(POSITIVE).limit_rows(2).dp_count().plan(epsilon=1),
    "changed": lambda: (
        rows().with_columns(x=pl.col("x") * 2).agg(dp.sum("x", BOUNDS)).plan(epsilon=1)
    ),
    "kept by another frame": kept_by_another_frame,
    "through another frame": lambda: (
        through_another_frame().filter(pl.col("key") > 0).limit_rows(2).dp_count().plan(epsilon=1)
    ),
    "two counts": lambda: (
        rows().agg(dp.count("x", **LAPLACE), dp.count("y", **LAPLACE)).plan(epsilon=1)
    ),
    "two frames": two_frames,
    "ratio": lambda: rows().dp_ratio("x", "y", (0, 1), denominator_bounds=BOUNDS).plan(epsilon=1),
    "values": lambda: people().limit_rows(1).agg(dp.sum("x", BOUNDS)).plan(epsilon=1),
    "gathered": plan_of_people,
    "median of totals": lambda: (
        people().limit_rows(2).agg(dp.median("x", (0, 100), per="unit")).plan(epsilon=1)
    ),
    "quartile": lambda: rows().agg(dp.quantile("x", 0.25, (0, 100))).plan(epsilon=1),
    "distribution": lambda: rows().agg(dp.cdf("x", [1, 2, 3])).plan(epsilon=1),
}


def exchange(plan: Any, one: int, other: int) -> None:
    """Two steps, one right after the other."""
    frames, inputs = plan["frames"], [plan["frames"][place]["input"] for place in (one, other)]
    frames[one], frames[other] = frames[other], frames[one]
    frames[one]["input"], frames[other]["input"] = inputs


def exchange_tables(plan: Any) -> None:
    one, other = (draw["what"] for draw in plan["draws"])
    one["tables"], other["tables"] = other["tables"], one["tables"]


def exchange_frames(plan: Any) -> None:
    one, other = plan["tables"]
    one["frame"], other["frame"] = other["frame"], one["frame"]


def exchange_sides(plan: Any) -> None:
    (meet,) = (frame for frame in plan["frames"] if frame["node"] == "Meet")
    meet["left"], meet["right"] = meet["right"], meet["left"]


def change_again(plan: Any) -> None:
    last(plan, plan["frames"][-1])


def other_owners(plan: Any) -> None:
    plan["frames"][0]["owners"] |= {"here": "key", "there": "key"}


def scale_by_itself(plan: Any) -> None:
    for table in plan["tables"]:
        if table["adds"]["node"] == "Paired":
            table["adds"]["other"] = table["adds"]["row"]


def add_totals(plan: Any) -> None:
    table = plan["tables"][0]
    table["adds"] = {"node": "PersonTotal", "of": table["adds"]}


def one_more_aggregate(plan: Any) -> None:
    (gather,) = (frame for frame in plan["frames"] if frame["node"] == "Gather")
    (_, call) = gather["new"][0]
    gather["new"].append(["more", call | {"operation": "individual_max"}])
    gather["bounds"].append(None)


def coarser_totals(plan: Any) -> None:
    plan["tables"][0]["cells"]["grid"]["step"] = "8"


def another_quantile(plan: Any) -> None:
    plan["draws"][0]["what"]["quantile"] = "3/4"


def another_edge(plan: Any) -> None:
    plan["tables"][0]["cells"]["edges"][2] = "4"


@pytest.mark.parametrize(
    ("name", "edit", "what"),
    [
        ("limited", lambda plan: exchange(plan, 1, 2), r"steps\[0\].definition"),
        ("changed", change_again, "what it states that steps compute"),
        ("kept by another frame", exchange_sides, r"steps\[0\].definition"),
        ("through another frame", other_owners, "unit"),
        ("two counts", exchange_tables, "definition of 'x'"),
        ("two frames", exchange_frames, "definition of 'len of query 1'"),
        ("ratio", scale_by_itself, "definition of 'x'"),
        ("values", add_totals, "definition of 'x'"),
        ("gathered", one_more_aggregate, "what it states that steps compute"),
        ("median of totals", coarser_totals, "definition of 'x'"),
        ("quartile", another_quantile, "definition of 'x'"),
        ("distribution", another_edge, "definition of 'x'"),
    ],
)
def test_the_same_parts_in_another_way_are_refused(
    name: str, edit: Callable[[Any], None], what: str
) -> None:
    """The kernel verifies each of them: only the reading is of something else."""
    document = json.loads(OWN[name]().to_json())
    assert dp.verify(json.dumps(document)).is_complete
    edit(document["physical"])
    verify_physical(physical_of(document["physical"]))
    text = json.dumps(with_digest(with_fingerprint(document)))
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


@pytest.mark.parametrize("size", [100, 10**300], ids=["few", "many"])
def test_a_rule_of_any_number_of_edges_takes_no_time(size: int) -> None:
    plan = rows().agg(dp.cdf("x", range(100))).plan(epsilon=1)
    text = plan.to_json().replace('"count": 100', f'"count": {10**300}')
    assert text.count(str(10**300)) == 1
    document = json.loads(text.replace('"size": 100', f'"size": {size}'))
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(document))))
