"""What a plan that people read says, as parts of a physical plan.

Definitions have all that decides what is computed, in the planner's terms. Here they become the
kernel's. A type of a key and the size of a public table are left empty: no definition has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from dpframe.core.dtypes import DType
from dpframe.core.grid import Grid, squares_shortened
from dpframe.kernel import plan as kernel
from dpframe.plan.laws import numbers_of, text_of
from dpframe.plan.regular import numbers_of_rule
from dpframe.plan.types_read import type_words
from dpframe.workloads import Axis
from dpframe.workloads.running import coefficients

__all__ = [
    "EdgesOf",
    "TableOf",
    "adds_of",
    "cells_of",
    "frames_of",
    "is_measurement",
    "named_of",
    "number_of",
    "row_of",
    "what_of",
]

_EXPRESSIONS = ("Column", "Literal", "Call")
_OVER = "over_individual"


def is_measurement(found: Any) -> bool:
    """Whether a part of an output's definition is drawn: it is no formula, and no public table."""
    return found.get("type", "DataFrame") not in (*_EXPRESSIONS, "DataFrame")


# Expressions


def row_of(found: Any) -> kernel.Row:
    """An expression. An aggregate of one individual's rows is the column that `frames_of` makes."""
    match found["type"]:
        case "Column":
            return kernel.Col(found["name"])
        case "Literal":
            parameter = found.get("parameter")
            value = text_of(found.get("value"))
            named = None if parameter is None else parameter["name"]
            return kernel.Lit(type_words(_dtype_of(found["dtype"])), value, named)
        case _ if _is_aggregate(found):
            return kernel.Col(text_of(found))
    return _call_of(found["op"], found["args"], found["options"])


def named_of(found: Iterable[Any]) -> tuple[tuple[str, kernel.Row], ...]:
    """Expressions and the names of their columns."""
    return tuple((one["name"], row_of(one["tree"])) for one in found)


def _rows_of(found: Iterable[Any]) -> tuple[kernel.Row, ...]:
    return tuple(row_of(one["tree"]) for one in found)


def _call_of(operation: str, operands: Sequence[Any], constants: Any) -> kernel.Call:
    return kernel.Call(operation, tuple(map(row_of, operands)), text_of(constants))


def _dtype_of(found: Any) -> DType:
    inner, categories, parts = found.get("inner"), found.get("categories"), found.get("fields")
    return DType(
        found["name"],
        found.get("unit"),
        found.get("zone"),
        None if categories is None else tuple(categories),
        found.get("precision"),
        found.get("scale"),
        None if inner is None else _dtype_of(inner),
        found.get("width"),
        None if parts is None else tuple((name, _dtype_of(one)) for name, one in parts),
    )


def _is_aggregate(found: Any) -> bool:
    """Whether an expression is an aggregate of one individual's rows."""
    operation = found.get("op", "")
    return bool(operation == _OVER or operation.startswith("individual_"))


def _aggregates_in(found: Any) -> Iterator[Any]:
    if found["type"] == "Call":
        if _is_aggregate(found):
            yield found
        else:
            for one in found["args"]:
                yield from _aggregates_in(one)


# Steps with one frame


def frames_of(found: Any, columns: Iterable[str], owner: str | None) -> Iterator[kernel.Frame]:
    """A step, one part after another.

    Parameters
    ----------
    found
        The step's definition.
    columns
        The columns before it.
    owner
        The one of them that identifies individuals.
    """
    same: dict[str, kernel.Row] = {name: kernel.Col(name) for name in columns}
    match found["step"]:
        case "WithColumns":
            yield _map({**same, **dict(named_of(found["named"]))}.items())
        case "Select":
            yield _map(named_of(found["named"]))
        case "Rename":
            new = dict(found["mapping"])
            yield _map((new.get(name, name), row) for name, row in same.items())
        case "Drop":
            yield _map((name, row) for name, row in same.items() if name not in found["names"])
        case "Filter":
            yield kernel.Filter(0, tuple(map(row_of, found["predicates"])))
        case "DropNulls":
            filled = (kernel.Call("is_not_null", (kernel.Col(n),), "[]") for n in found["names"])
            yield kernel.Filter(0, tuple(filled))
        case "Part":
            yield kernel.Part(0, _rows_of(found["by"]), tuple(map(_key_of, found["key"])))
        case "WithoutFound":
            yield kernel.Without(0, _rows_of(found["by"]))
        case "Explode":
            yield kernel.Explode(0, found["column"], found.get("max_length") or 0)
        case "JoinPublic":
            on = tuple(zip(found["left_on"], found["right_on"], strict=True))
            yield kernel.Lookup(0, found["digest"], on, found["how"], (), 0)
        case "LimitRows":
            yield kernel.KeepRows(0, found["n"], tuple(found["by"]), found.get("order_by"))
        case "LimitGroups":
            yield kernel.KeepGroups(0, found["n"], tuple(found["by"]), found.get("order_by"))
        case "LimitNorm":
            yield kernel.Weigh(0, number_of(found["n"]))
        case "PerIndividual":  # three numbers, and two ends for each value
            yield kernel.OneEach(0, ("",) * (3 + 2 * len(found["extremes"])))
        case "GroupByIndividual":
            named, outputs = named_of(found["by"]), found["outputs"]
            calls = [one for n in outputs for one in _aggregates_in(n["tree"])]
            new = {text_of(c): _call_of(c["op"], c["args"], c["options"]) for c in calls}
            yield kernel.Gather(0, named, tuple(new.items()), beside=False)
            stay = ((name, kernel.Col(name)) for name, _ in named)
            yield _map([(found["who"], kernel.Col(owner or "")), *stay, *named_of(outputs)])
        case "OverIndividual":
            inner = found["inner"]
            trees = inner.get("predicates") or [one["tree"] for one in inner["named"]]
            for call in (one for tree in trees for one in _aggregates_in(tree)):
                (_, operation), *options = call["options"]
                arity = 0 if operation == "individual_len" else 1
                of, (_, *others) = call["args"][:arity], call["args"][arity:]
                keys = tuple((f"key {i}", row_of(one)) for i, one in enumerate(others))
                made = _call_of(operation, of, options)
                yield kernel.Gather(0, keys, ((text_of(call), made),), beside=True)
                same[text_of(call)] = row_of(call)
            yield from frames_of(inner, same, owner)
        case step:
            raise LookupError(step)


def _map(columns: Iterable[tuple[str, kernel.Row]]) -> kernel.Map:
    return kernel.Map(0, tuple(columns))


def _key_of(found: Any) -> kernel.Lit:
    if isinstance(found, dict) and found.get("type") == "Literal":
        row = row_of(found)
        assert isinstance(row, kernel.Lit)
        return row
    return kernel.Lit("", text_of(found))


# Tables


EdgesOf = Callable[[Any, Any], kernel.Numbers]
"""The exact edges for those of a definition, which are in the form of a type, or a digest."""


def cells_of(found: Any, edges_of: EdgesOf) -> kernel.Cells | None:
    """The cells of a table."""
    if found is None:
        return None
    made: kernel.Edges | kernel.Values | kernel.Points | kernel.Between | kernel.UpTo | kernel.Whole
    if found["type"] == "WholeCells":
        inner = cells_of(found["some"], edges_of)
        assert not isinstance(inner, kernel.Whole | kernel.OfPeople | None)
        return kernel.Whole(inner)
    if found["type"] == "CategoryCells":
        listed = tuple(map(text_of, found["categories"]))
        return kernel.Values(row_of(found["tree"]), listed, found["other"])
    value = found["value"]
    row = row_of(value["tree"])
    match found["type"]:
        case "BinCells":
            made = kernel.Edges(row, _long(found["edges"]), found["other"])
        case "PointCells":
            low, step = number_of(found["lo"]), number_of(found["step"])
            made = kernel.Points(row, low, step, int(number_of(found["points"])))
        case "PositionCells":
            made = kernel.Between(row, _long(found["candidates"]))
        case "UpToCells":
            upper = edges_of(found["edges"], value["domain"]["dtype"])
            made = kernel.UpTo(row, upper, found["above"])
        case kind:
            raise LookupError(kind)
    return kernel.OfPeople(made) if value["type"] == "TotalValue" else made


def adds_of(found: Any, windows: bool) -> kernel.Adds:
    """What a row or an individual adds to a table; with windows a person may be several ones."""
    match found["type"]:
        case "RowCount":
            return kernel.One()
        case "ValueCount":
            return kernel.Valued(row_of(found["tree"]))
        case "GridSum" | "SquareSum" | "PairSum":
            return _grid_sum(found)
        case "DistinctIndividuals":
            return kernel.DistinctPersons() if windows else kernel.People()
        case "DistinctCount":
            return kernel.Distinct(row_of(found["tree"]))
        case "UnitCount" if "tree" not in found:
            return kernel.People()
        case "UnitCount" | "UnitRows":
            row = row_of(found["tree"]) if "tree" in found else None
            return kernel.PersonRows(row, found.get("most", 1))
        case "UnitTotal" | "UnitPairSum":
            return kernel.PersonTotal(_grid_sum(found["of"]))
    raise LookupError(found["type"])


def _grid_sum(found: Any) -> kernel.Placed | kernel.Squared | kernel.Paired:
    row, grid = row_of(found["value"]["tree"]), _grid_of(found["grid"])
    match found["type"]:
        case "GridSum":
            return kernel.Placed(row, grid)
        case "SquareSum":
            inner = _grid_of(found["inner"])
            shift = squares_shortened(*(Grid(g.step, g.centre, g.lo, g.hi) for g in (inner, grid)))
            return kernel.Squared(row, inner, shift)
    other = row_of(found["other"]["tree"])
    return kernel.Paired(row, grid, other, _grid_of(found["other_grid"]))


def _grid_of(found: Any) -> kernel.Grid:
    lo, hi = (int(number_of(found[end])) for end in ("lo", "hi"))
    return kernel.Grid(number_of(found["step"]), number_of(found["centre"]), lo, hi)


def number_of(found: Any) -> Fraction:
    """A number of a definition."""
    if not isinstance(found, dict):
        return Fraction(found)
    ((kind, text),) = found.items()
    if kind == "float":
        return Fraction(float(text))
    if not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):  # "1e999999999" would take all memory
        raise ValueError(text)
    return Fraction(text)


def _long(found: Any) -> kernel.Numbers:
    """Edges or candidates, listed or as a rule."""
    return numbers_of(_numbers_of(found) if isinstance(found, list) else numbers_of_rule(found))


def _count_of(found: Any) -> int:
    """How many edges or candidates there are."""
    return len(found if isinstance(found, list) else numbers_of_rule(found))


def _numbers_of(found: Iterable[Any]) -> tuple[Fraction, ...]:
    return tuple(map(number_of, found))


# Draws

TableOf = Callable[[Any, Sequence[int] | None], int]
"""The number of a table with a definition, by some of the key columns or by all (None)."""


def what_of(found: Any, keys: Sequence[Any], table: TableOf, stated: kernel.What) -> kernel.What:
    """What is drawn on its own, with numbers of tables in place of their places.

    Parameters
    ----------
    found
        The definition of what is drawn.
    keys
        The definitions of the key columns.
    table
        Numbers of tables.
    stated
        What the physical plan draws. It has the type of a date and the first one, which no reading
        has. No list is made that is longer than its own.
    """
    kept = tuple(range(len(keys)))
    kind = found["type"]
    match kind:
        case "Additive" | "AdditiveOfSet":
            some = found["table"].get("kept")
            kept = kept if some is None else tuple(range(len(some)))
            return kernel.Vector((table(found["table"], some),), ((1,),), kept, 1, total=False)
        case "Margin" | "MarginWithTotal" | "RunMargin" | "RunMarginWithTotal":
            kept, sizes = tuple(n for n in found["kept"] if n < len(keys)), found["sizes"]
            if "level" in found:
                run = min(
                    Axis.ordered(sizes[-1], found["branching"]).width(found["level"]), sizes[-1]
                )
            else:
                has_cells = "cells" in found["table"]
                run = 0 if has_cells and len(sizes) - 1 not in found["kept"] else 1
            total = kind.endswith("WithTotal")
            return kernel.Vector((table(found["table"], None),), ((1,),), kept, run, total)
        case "LevelSums" | "LevelSumsWithTotal":
            run = _run_of(found, _size_of(found["table"]))
            total = kind.endswith("WithTotal")
            return kernel.Vector((table(found["table"], None),), ((1,),), kept, run, total)
        case "RootSums":
            size, of = _size_of(found["table"]), table(found["table"], None)
            known = isinstance(stated, kernel.Running) and len(stated.column) == size
            return kernel.Running(of, coefficients(size) if known else ())
        case "NightlySums":
            return _nights_of(found, keys, table, stated)
        case "Responses":
            return kernel.Reports(table(found["table"], None))
        case "SelectionOfSet":
            return _choice_of(found["choice"], found["kept"], table)
    return _choice_of(found, None, table)


def _run_of(found: Any, size: int) -> int:
    """How many neighbouring cells are added up at a level of a tree over `size` cells."""
    return min(Axis.ordered(size, found["branching"]).width(found["level"]), size)


def _size_of(found: Any) -> int:
    """How many cells a table has."""
    match found["cells"]:
        case {"type": "WholeCells", "some": some}:
            return _size_of({"cells": some}) + 1
        case {"type": "UpToCells", "edges": edges, "above": above}:
            return int(edges["size"]) + int(above)
        case {"type": "CategoryCells", "categories": listed, "other": other}:
            return len(listed) + int(other)
        case {"type": "BinCells", "edges": edges, "other": other}:
            return _count_of(edges) - 1 + int(other)
        case {"type": "PositionCells", "candidates": candidates}:
            return 2 * _count_of(candidates) + 1
        case {"type": "PointCells", "points": points}:
            return int(number_of(points))
    raise LookupError(found["cells"]["type"])


def _choice_of(found: Any, kept: Sequence[int] | None, table: TableOf) -> kernel.What:
    """A choice, by some of the key columns."""
    match found["type"]:
        case "CategoryChoice":
            cells = found.get("cells")
            of = table({"statistic": found["statistic"], "cells": cells}, kept)
            among: Any = "groups" if cells is None else "cells"
            return kernel.Choice((of,), among, found["winners"])
        case "ScoredChoice":
            each = tuple(table({"statistic": one}, kept) for one in found["statistics"])
            return kernel.Choice(each, "tables", found["winners"])
    cells = found["cells"]
    totals = cells["value"]["type"] == "TotalValue"
    statistic = {"type": "UnitCount" if totals else "RowCount"}
    of = table({"statistic": statistic, "cells": cells}, kept)
    match found["type"]:
        case "QuantileChoice":
            return kernel.Rank(of, number_of(found["q"]))
        case "QuantilesAtOnce":
            return kernel.Ranks(of, _numbers_of(found["quantiles"]))
        case "QuantileTree":
            levels = tuple(map(tuple, found["levels"]))
            return kernel.Levels(of, _numbers_of(found["quantiles"]), levels)
    raise LookupError(found["type"])


def _nights_of(
    found: Any, keys: Sequence[Any], table: TableOf, stated: kernel.What
) -> kernel.Nights:
    """The sums of a stream: its last key is the period."""
    assert isinstance(stated, kernel.Nights)
    assert found["periods"] == stated.periods  # there may be very many
    day, every = keys[-1]["tree"], "1d"
    if day.get("op") == "dt_truncate":
        every = day["options"][0][1]
        (day,) = day["args"]
    if day["type"] == "Call":
        (day,) = day["args"]
    of, periods = table(found["part"]["table"], None), found["periods"]
    levels, about = found["levels"], (stated.dtype, every, stated.start, periods)
    drawn = (
        kernel.Tree(found["branching"], levels) if levels else kernel.Root(coefficients(periods))
    )
    return kernel.Nights(of, day["name"], *about, drawn)  # type: ignore[arg-type]
