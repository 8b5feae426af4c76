"""Documents whose physical plan has the steps, tables and draws of its reading in another way.

Steps change places, or are left out, or done twice, or done to other rows. Tables are of other
frames, and draws of other tables. Each such document is refused, by the kernel or because its
reading says otherwise, unless the same numbers are drawn. What is drawn is written out here a
second time, by putting expressions in place of columns.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import pytest

import dpframe as dp
from dpframe.kernel.plan import Refused
from dpframe.kernel.plan import plan_of as physical_of
from dpframe.kernel.verify import verify as verify_physical
from tests.laws.amounts import amounts
from tests.plan.documents import KEPT, plan_of
from tests.plan.edits import with_digest, with_fingerprint
from tests.plan.test_unsaid import OWN

Graph = dict[str, Any]
"""A physical plan in which items stand themselves where others name them."""
Edit = Callable[[Graph], None]

_INPUTS = ("input", "left", "right")


def unfold(plan: Any) -> Graph:
    graph: Graph = copy.deepcopy(plan)
    for frame in graph["frames"]:
        frame.update({name: graph["frames"][frame[name]] for name in _INPUTS if name in frame})
    for table in graph["tables"]:
        table["frame"] = graph["frames"][table["frame"]]
    for draw in graph["draws"]:
        what = draw["what"]
        what.update({name: graph["tables"][what[name]] for name in ("table",) if name in what})
        if "tables" in what:
            what["tables"] = [graph["tables"][place] for place in what["tables"]]
    return graph


def fold(graph: Graph) -> Any:
    """The plan again, with the items that draws need."""
    lists: dict[str, list[Any]] = {"frames": [], "tables": []}
    places: dict[int, int] = {}

    def place(item: Any, kind: str) -> int:
        if id(item) not in places:
            names = _INPUTS if kind == "frames" else ("frame",)
            inner = {name: place(item[name], "frames") for name in names if name in item}
            lists[kind].append({**item, **inner})
            places[id(item)] = len(lists[kind]) - 1
        return places[id(item)]

    draws = []
    for draw in graph["draws"]:
        what = dict(draw["what"])
        if "table" in what:
            what["table"] = place(what["table"], "tables")
        else:
            what["tables"] = [place(one, "tables") for one in what["tables"]]
        draws.append({**draw, "what": what})
    return {**graph, **lists, "draws": draws}


def replace_frame(graph: Graph, old: Any, new: Any) -> None:
    """Use another frame in place of one, wherever that is used."""
    for item in (*graph["frames"], *graph["tables"]):
        for name in (*_INPUTS, "frame"):
            if item is not new and item.get(name) is old:
                item[name] = new


def edits_of(plan: Any) -> Iterator[tuple[str, Edit]]:
    """All edits of a plan, with what they do."""
    frames, tables, draws = plan["frames"], plan["tables"], plan["draws"]
    for place, frame in enumerate(frames):
        if "left" in frame:
            yield "exchange inputs", exchange("frames", place, place, "left", "right")
        if "input" in frame:
            yield "leave out", partial(leave_out, place=place)
            yield "do twice", partial(do_twice, place=place)
            if "input" in frames[frame["input"]]:
                yield "exchange steps", partial(exchange_steps, place=place)
        for name in {*_INPUTS} & frame.keys():
            for other in range(place):
                if other != frame[name]:
                    yield "other rows", move("frames", place, name, other)
    for place, table in enumerate(tables):
        for other in range(len(frames)):
            if other != table["frame"]:
                yield "table of other rows", move("tables", place, "frame", other)
    for one, other in combinations(range(len(tables)), 2):
        for name in ("frame", "keys", "cells", "adds"):
            if tables[one][name] != tables[other][name]:
                yield f"exchange {name}", exchange("tables", one, other, name, name)
    for one, other in combinations(range(len(draws)), 2):
        if draws[one]["what"] != draws[other]["what"]:
            yield "exchange draws", exchange("draws", one, other, "what", "what")
            yield "exchange tables", partial(exchange_tables, one=one, other=other)


def leave_out(graph: Graph, place: int) -> None:
    frame = graph["frames"][place]
    replace_frame(graph, frame, frame["input"])


def do_twice(graph: Graph, place: int) -> None:
    frame = graph["frames"][place]
    replace_frame(graph, frame, dict(frame, input=frame))


def exchange_steps(graph: Graph, place: int) -> None:
    frame = graph["frames"][place]
    before = frame["input"]
    replace_frame(graph, frame, dict(before, input=dict(frame, input=before["input"])))


def exchange_tables(graph: Graph, one: int, other: int) -> None:
    for name in ("table", "tables"):
        whats = [graph["draws"][place]["what"] for place in (one, other)]
        if all(name in what for what in whats):
            whats[0][name], whats[1][name] = whats[1][name], whats[0][name]


def exchange(kind: str, one: int, other: int, first: str, second: str) -> Edit:
    def edit(graph: Graph) -> None:
        a, b = graph[kind][one], graph[kind][other]
        a[first], b[second] = b[second], a[first]

    return edit


def move(kind: str, place: int, name: str, other: int) -> Edit:
    def edit(graph: Graph) -> None:
        graph[kind][place][name] = graph["frames"][other]

    return edit


# What is drawn, with expressions in place of columns


def full_draws(plan: Any) -> list[object]:
    """Each draw in full, down to the columns of sources."""
    rows: list[tuple[object, dict[str, object]]] = []
    for frame in plan["frames"]:
        rows.append(after(frame, rows))
    tables = []
    for table in plan["tables"]:
        key, columns = rows[table["frame"]]
        parts = (write_columns(table[name], columns) for name in ("keys", "cells", "adds"))
        tables.append((key, *parts))
    found: list[object] = []
    for draw in plan["draws"]:
        what = draw["what"]
        of = [tables[place] for place in what.get("tables", [what.get("table")])]
        rest = {
            name: item for name, item in draw["what"].items() if name not in ("table", "tables")
        }
        found.append((of, json.dumps({**draw, "what": rest}, sort_keys=True)))
    return found


def after(frame: Any, rows: list[Any]) -> tuple[object, dict[str, object]]:
    """Which rows a frame has, and what its columns are."""
    kind = frame["node"]
    if kind == "Scan":
        key: object = ("rows of", json.dumps([frame["name"], frame["unit"], frame["owners"]]))
        return key, {name: ("column", key, name) for name, _ in frame["columns"]}
    if kind in ("Union", "Meet"):
        (left, mine), (right, theirs) = rows[frame["left"]], rows[frame["right"]]
        if kind == "Union":
            return (kind, left, right), {n: (kind, mine[n], theirs[n]) for n in mine}
        on = [(mine[a], theirs[b]) for a, b in frame["on"]]
        key = (kind, left, right, on, frame["how"])
        return key, mine | {new: ("right", key, theirs[old]) for old, new in frame["new"]}
    before, columns = rows[frame["input"]]
    match kind:
        case "Map":
            return before, {name: write_columns(row, columns) for name, row in frame["columns"]}
        case "Gather":
            by = {name: write_columns(row, columns) for name, row in frame["by"]}
            key = (kind, before, [*by.values()])
            new = {name: (key, write_columns(call, columns)) for name, call in frame["new"]}
            return (before if frame["beside"] else key), columns | by | new
        case "Explode":
            key = (kind, before, columns[frame["column"]], frame["most"])
            return key, columns | {frame["column"]: ("element", key)}
        case "Lookup":
            on = [(columns[a], b) for a, b in frame["on"]]
            key = (kind, before, on, frame["public"], frame["how"], frame["most"])
            return key, columns | {name: ("public", key, name) for name in frame["new"]}
        case "OneEach":
            by = [write_columns(row, columns) for row in frame["by"]]
            key = (kind, before, by, frame["listed"])
            new = {frame[name]: (key, name) for name in ("rows", "groups", "fullest")}
            for end in frame["ends"]:
                of = (key, write_columns(end["row"], columns), end["total"])
                new |= {end[name]: (name, of) for name in ("least", "largest")}
            return key, columns | new
        case "KeepRows" | "KeepGroups":
            of = [columns[name] for name in frame["by"]]
            return (kind, before, frame["n"], of, columns.get(frame["first"] or "")), columns
    rest = {name: item for name, item in frame.items() if name != "input"}
    return (before, write_columns(rest, columns)), columns


def write_columns(found: Any, columns: dict[str, object]) -> object:
    """A part of a plan with what columns are in place of their names."""
    if isinstance(found, list):
        return [write_columns(item, columns) for item in found]
    if not isinstance(found, dict):
        return found
    if found.get("node") == "Col":
        return columns[found["name"]]
    return [(name, write_columns(item, columns)) for name, item in sorted(found.items())]


def document(name: str) -> Any:
    plan = OWN[name]() if name in OWN else plan_of(name)
    return json.loads(plan.to_json())


def outcomes(name: str, most: int) -> Iterator[tuple[str, str]]:
    """What each of some edits does, and what becomes of the document."""
    found = document(name)
    assert fold(unfold(found["physical"])) == found["physical"]
    before, every = full_draws(found["physical"]), list(edits_of(found["physical"]))
    if len(every) > most:
        every = random.Random(name).sample(every, most)
    for what, edit in every:
        graph = unfold(found["physical"])
        edit(graph)
        physical = fold(graph)
        try:
            verify_physical(physical_of(physical))
        except Refused:
            yield what, "is not verified"
            continue
        text = json.dumps(with_digest(with_fingerprint({**found, "physical": physical})))
        wrong = refusal_of(text)
        assert wrong is None or "contradicts the physical plan" in wrong
        assert wrong is not None or full_draws(physical) == before, what
        yield what, "draws the same" if wrong is None else "is refused"


def refusal_of(text: str) -> str | None:
    try:
        dp.Plan.from_json(text)
    except dp.PlanMismatch as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("name", [*KEPT, *OWN])
@amounts("most", 16, 4000)
def test_other_steps_tables_and_draws_are_refused(name: str, most: int) -> None:
    assert len([*outcomes(name, most)]) <= most


def test_edits_that_the_kernel_verifies_are_refused() -> None:
    """The law above does not hold because the kernel refuses everything."""
    names = (*OWN, "several_frames", "frames_together")
    seen = Counter(one for name in names for one in outcomes(name, 100))
    for what in (
        "exchange inputs",
        "exchange steps",
        "leave out",
        "do twice",
        "other rows",
        "table of other rows",
        "exchange frame",
        "exchange adds",
        "exchange draws",
        "exchange tables",
    ):
        assert seen[what, "is refused"], what
    assert seen["exchange steps", "draws the same"]  # a column is left out before a limit or after
