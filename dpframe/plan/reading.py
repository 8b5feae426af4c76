"""What a plan that people read says, as parts of a physical plan.

Definitions have all that decides what is computed, in the planner's terms. Here they become the
kernel's. A type of a key, the size of a public table and the bounds of an individual's sum are left
empty: no definition has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any

from dpframe.core.dtypes import DType
from dpframe.core.grid import Grid, squares_shortened
from dpframe.core.rationals import numbers_of
from dpframe.core.regular import numbers_of_rule, text_of
from dpframe.frames.definition import type_words
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, ends_of
from dpframe.frames.sampling import unused
from dpframe.kernel import plan as kernel
from dpframe.workloads import Axis
from dpframe.workloads.running import coefficients

__all__ = [
    "EdgesOf",
    "TableOf",
    "adds_of",
    "cells_of",
    "frames_of",
    "is_measurement",
    "named_rows",
    "number_of",
    "row_of",
    "what_of",
]

_EXPRESSIONS = ("Column", "Literal", "Call")
_OVER = "over_individual"


def is_measurement(definition: Any) -> bool:
    """Whether a part of an output's definition is drawn: it is no formula, and no public table."""
    return definition.get("type", "DataFrame") not in (*_EXPRESSIONS, "DataFrame")


# Expressions


def row_of(definition: Any) -> kernel.Row:
    """An expression. An aggregate of one individual's rows is the column that `frames_of` makes."""
    match definition["type"]:
        case "Column":
            return kernel.Col(definition["name"])
        case "Literal":
            parameter = definition.get("parameter")
            value = text_of(definition.get("value"))
            named = None if parameter is None else parameter["name"]
            return kernel.Lit(type_words(_dtype_of(definition["dtype"])), value, named)
        case _ if _is_aggregate(definition):
            return kernel.Col(text_of(definition))
    return _call_of(definition["op"], definition["args"], definition["options"])


def named_rows(definition: Iterable[Any]) -> tuple[tuple[str, kernel.Row], ...]:
    """Expressions and the names of their columns."""
    return tuple((one["name"], row_of(one["tree"])) for one in definition)


def _rows_of(definition: Iterable[Any]) -> tuple[kernel.Row, ...]:
    return tuple(row_of(one["tree"]) for one in definition)


def _call_of(operation: str, operands: Sequence[Any], constants: Any) -> kernel.Call:
    return kernel.Call(operation, tuple(map(row_of, operands)), text_of(constants))


def _dtype_of(definition: Any) -> DType:
    inner, categories, parts = (
        definition.get("inner"),
        definition.get("categories"),
        definition.get("fields"),
    )
    return DType(
        definition["name"],
        definition.get("unit"),
        definition.get("zone"),
        None if categories is None else tuple(categories),
        definition.get("precision"),
        definition.get("scale"),
        None if inner is None else _dtype_of(inner),
        definition.get("width"),
        None if parts is None else tuple((name, _dtype_of(one)) for name, one in parts),
    )


def _is_aggregate(definition: Any) -> bool:
    """Whether an expression is an aggregate of one individual's rows."""
    operation = definition.get("op", "")
    return bool(operation == _OVER or operation.startswith("individual_"))


def _aggregates_in(definition: Any) -> Iterator[Any]:
    if definition["type"] == "Call":
        if _is_aggregate(definition):
            yield definition
        else:
            for one in definition["args"]:
                yield from _aggregates_in(one)


# Steps with one frame


def frames_of(
    definition: Any, columns: Iterable[str], owner: str | None, time: str | None
) -> Iterator[kernel.Frame]:
    """A step, one part after another.

    Parameters
    ----------
    definition
        The step's definition.
    columns
        The columns before it.
    owner, time
        The one of them that identifies individuals, and the one whose windows do.
    """
    same: dict[str, kernel.Row] = {name: kernel.Col(name) for name in columns}
    match definition["step"]:
        case "WithColumns":
            yield _map({**same, **dict(named_rows(definition["named"]))}.items())
        case "Select":
            yield _map(named_rows(definition["named"]))
        case "Rename":
            new = dict(definition["mapping"])
            yield _map((new.get(name, name), row) for name, row in same.items())
        case "Drop":
            yield _map((name, row) for name, row in same.items() if name not in definition["names"])
        case "Filter":
            yield kernel.Filter(0, tuple(map(row_of, definition["predicates"])))
        case "DropNulls":
            conditions = (
                kernel.Call("is_not_null", (kernel.Col(n),), "[]") for n in definition["names"]
            )
            yield kernel.Filter(0, tuple(conditions))
        case "Part":
            yield kernel.Part(0, _rows_of(definition["by"]), tuple(map(_key_of, definition["key"])))
        case "WithoutFound":
            yield kernel.Without(0, _rows_of(definition["by"]))
        case "Explode":
            yield kernel.Explode(0, definition["column"], definition.get("max_length") or 0)
        case "JoinPublic":
            on = tuple(zip(definition["left_on"], definition["right_on"], strict=True))
            yield kernel.Lookup(0, definition["digest"], on, definition["how"], (), 0)
        case "LimitRows":
            yield kernel.KeepRows(
                0, definition["n"], tuple(definition["by"]), definition.get("order_by")
            )
        case "LimitGroups":
            yield kernel.KeepGroups(
                0, definition["n"], tuple(definition["by"]), definition.get("order_by")
            )
        case "LimitNorm":
            yield kernel.Weigh(0, number_of(definition["n"]))
        case "PerIndividual":
            name_of = partial(unused, [name for name in (owner, time) if name is not None])
            ends = (map(name_of, ends_of(i)) for i in count())
            yield kernel.OneEach(
                0,
                _rows_of(definition["by"]),
                definition.get("digest"),
                name_of(ROWS),
                name_of(GROUPS),
                name_of(FULLEST),
                tuple(
                    kernel.Ends(least, largest, row_of(e["tree"]), e["total"])
                    for e, (least, largest) in zip(definition["extremes"], ends, strict=False)
                ),
            )
        case "GroupByIndividual":
            named, outputs = named_rows(definition["by"]), definition["outputs"]
            calls = [one for n in outputs for one in _aggregates_in(n["tree"])]
            new = {text_of(c): _call_of(c["op"], c["args"], c["options"]) for c in calls}
            yield kernel.Gather(0, named, tuple(new.items()), (), beside=False)
            stay = ((name, kernel.Col(name)) for name, _ in named)
            yield _map([(definition["who"], kernel.Col(owner or "")), *stay, *named_rows(outputs)])
        case "OverIndividual":
            inner = definition["inner"]
            trees = inner.get("predicates") or [one["tree"] for one in inner["named"]]
            for call in (one for tree in trees for one in _aggregates_in(tree)):
                (_, operation), *options = call["options"]
                arity = 0 if operation == "individual_len" else 1
                of, (_, *others) = call["args"][:arity], call["args"][arity:]
                keys = tuple((f"key {i}", row_of(one)) for i, one in enumerate(others))
                cells = _call_of(operation, of, options)
                yield kernel.Gather(0, keys, ((text_of(call), cells),), (), beside=True)
                same[text_of(call)] = row_of(call)
            yield from frames_of(inner, same, owner, time)
        case step:
            raise LookupError(step)


def _map(columns: Iterable[tuple[str, kernel.Row]]) -> kernel.Map:
    return kernel.Map(0, tuple(columns))


def _key_of(definition: Any) -> kernel.Lit:
    if isinstance(definition, dict) and definition.get("type") == "Literal":
        row = row_of(definition)
        assert isinstance(row, kernel.Lit)
        return row
    return kernel.Lit("", text_of(definition))


# Tables


EdgesOf = Callable[[Any, Any], kernel.Numbers]
"""The exact edges for those of a definition, which are in the form of a type, or a digest."""


def cells_of(definition: Any, edges_of: EdgesOf) -> kernel.Cells | None:
    """The cells of a table."""
    if definition is None:
        return None
    cells: (
        kernel.Edges | kernel.Values | kernel.Points | kernel.Between | kernel.UpTo | kernel.Whole
    )
    if definition["type"] == "WholeCells":
        inner = cells_of(definition["some"], edges_of)
        assert not isinstance(inner, kernel.Whole | kernel.OfPeople | None)
        return kernel.Whole(inner)
    if definition["type"] == "CategoryCells":
        texts = tuple(map(text_of, definition["categories"]))
        return kernel.Values(row_of(definition["tree"]), texts, definition["other"])
    value = definition["value"]
    row = row_of(value["tree"])
    match definition["type"]:
        case "BinCells":
            cells = kernel.Edges(row, _long(definition["edges"]), definition["other"])
        case "PointCells":
            low, step = number_of(definition["lo"]), number_of(definition["step"])
            cells = kernel.Points(row, low, step, int(number_of(definition["points"])))
        case "PositionCells":
            cells = kernel.Between(row, _long(definition["candidates"]))
        case "UpToCells":
            upper = edges_of(definition["edges"], value["domain"]["dtype"])
            cells = kernel.UpTo(row, upper, definition["above"])
        case kind:
            raise LookupError(kind)
    if value["type"] == "TotalValue":
        return kernel.OfPeople(cells, _grid_of(value["grid"]))
    return cells


def adds_of(definition: Any, windows: bool) -> kernel.Adds:
    """What a row or an individual adds to a table; with windows a person may be several ones."""
    match definition["type"]:
        case "RowCount":
            return kernel.One()
        case "ValueCount":
            return kernel.Valued(row_of(definition["tree"]))
        case "GridSum" | "SquareSum" | "PairSum":
            return _grid_sum(definition)
        case "DistinctIndividuals":
            return kernel.DistinctPersons() if windows else kernel.People()
        case "DistinctCount":
            return kernel.Distinct(row_of(definition["tree"]))
        case "UnitCount" if "tree" not in definition:
            return kernel.People()
        case "UnitCount" | "UnitRows":
            row = row_of(definition["tree"]) if "tree" in definition else None
            return kernel.PersonRows(row, definition.get("most", 1))
        case "UnitTotal" | "UnitPairSum":
            return kernel.PersonTotal(_grid_sum(definition["of"]))
    raise LookupError(definition["type"])


def _grid_sum(definition: Any) -> kernel.Placed | kernel.Squared | kernel.Paired:
    row, grid = row_of(definition["value"]["tree"]), _grid_of(definition["grid"])
    match definition["type"]:
        case "GridSum":
            return kernel.Placed(row, grid)
        case "SquareSum":
            inner = _grid_of(definition["inner"])
            shift = squares_shortened(*(Grid(g.step, g.centre, g.lo, g.hi) for g in (inner, grid)))
            return kernel.Squared(row, inner, shift)
    other = row_of(definition["other"]["tree"])
    return kernel.Paired(row, grid, other, _grid_of(definition["other_grid"]))


def _grid_of(definition: Any) -> kernel.Grid:
    lo, hi = (int(number_of(definition[end])) for end in ("lo", "hi"))
    return kernel.Grid(number_of(definition["step"]), number_of(definition["centre"]), lo, hi)


def number_of(definition: Any) -> Fraction:
    """A number of a definition."""
    if not isinstance(definition, dict):
        return Fraction(definition)
    ((kind, text),) = definition.items()
    if kind == "float":
        return Fraction(float(text))
    if not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):  # "1e999999999" would take all memory
        raise ValueError(text)
    return Fraction(text)


def _long(definition: Any) -> kernel.Numbers:
    """Edges or candidates, listed or as a rule."""
    return numbers_of(
        _numbers_of(definition) if isinstance(definition, list) else numbers_of_rule(definition)
    )


def _count_of(definition: Any) -> int:
    """How many edges or candidates there are."""
    return len(definition if isinstance(definition, list) else numbers_of_rule(definition))


def _numbers_of(definition: Iterable[Any]) -> tuple[Fraction, ...]:
    return tuple(map(number_of, definition))


# Draws

TableOf = Callable[[Any, Sequence[int] | None], int]
"""The number of a table with a definition, by some of the key columns or by all (None)."""


def what_of(
    definition: Any, keys: Sequence[Any], table: TableOf, stated: kernel.What
) -> kernel.What:
    """What is drawn on its own, with numbers of tables in place of their places.

    Parameters
    ----------
    definition
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
    kind = definition["type"]
    match kind:
        case "Additive" | "AdditiveOfSet":
            some = definition["table"].get("kept")
            kept = kept if some is None else tuple(range(len(some)))
            return kernel.Vector((table(definition["table"], some),), ((1,),), kept, 1, total=False)
        case "Margin" | "MarginWithTotal" | "RunMargin" | "RunMarginWithTotal":
            kept, sizes = tuple(n for n in definition["kept"] if n < len(keys)), definition["sizes"]
            if "level" in definition:
                run = min(
                    Axis.ordered(sizes[-1], definition["branching"]).width(definition["level"]),
                    sizes[-1],
                )
            else:
                has_cells = "cells" in definition["table"]
                run = 0 if has_cells and len(sizes) - 1 not in definition["kept"] else 1
            total = kind.endswith("WithTotal")
            return kernel.Vector((table(definition["table"], None),), ((1,),), kept, run, total)
        case "LevelSums" | "LevelSumsWithTotal":
            run = _run_of(definition, _size_of(definition["table"]))
            total = kind.endswith("WithTotal")
            return kernel.Vector((table(definition["table"], None),), ((1,),), kept, run, total)
        case "RootSums":
            size, of = _size_of(definition["table"]), table(definition["table"], None)
            known = isinstance(stated, kernel.Running) and len(stated.column) == size
            return kernel.Running(of, coefficients(size) if known else ())
        case "NightlySums":
            return _nights_of(definition, keys, table, stated)
        case "Responses":
            return kernel.Reports(table(definition["table"], None))
        case "SelectionOfSet":
            return _choice_of(definition["choice"], definition["kept"], table)
    return _choice_of(definition, None, table)


def _run_of(definition: Any, size: int) -> int:
    """How many neighbouring cells are added up at a level of a tree over `size` cells."""
    return min(Axis.ordered(size, definition["branching"]).width(definition["level"]), size)


def _size_of(definition: Any) -> int:
    """How many cells a table has."""
    match definition["cells"]:
        case {"type": "WholeCells", "some": some}:
            return _size_of({"cells": some}) + 1
        case {"type": "UpToCells", "edges": edges, "above": above}:
            return int(edges["size"]) + int(above)
        case {"type": "CategoryCells", "categories": texts, "other": other}:
            return len(texts) + int(other)
        case {"type": "BinCells", "edges": edges, "other": other}:
            return _count_of(edges) - 1 + int(other)
        case {"type": "PositionCells", "candidates": candidates}:
            return 2 * _count_of(candidates) + 1
        case {"type": "PointCells", "points": points}:
            return int(number_of(points))
    raise LookupError(definition["cells"]["type"])


def _choice_of(definition: Any, kept: Sequence[int] | None, table: TableOf) -> kernel.What:
    """A choice, by some of the key columns."""
    match definition["type"]:
        case "CategoryChoice":
            cells = definition.get("cells")
            of = table({"statistic": definition["statistic"], "cells": cells}, kept)
            among: Any = "groups" if cells is None else "cells"
            return kernel.Choice((of,), among, definition["winners"])
        case "ScoredChoice":
            each = tuple(table({"statistic": one}, kept) for one in definition["statistics"])
            return kernel.Choice(each, "tables", definition["winners"])
    cells = definition["cells"]
    totals = cells["value"]["type"] == "TotalValue"
    statistic = {"type": "UnitCount" if totals else "RowCount"}
    of = table({"statistic": statistic, "cells": cells}, kept)
    match definition["type"]:
        case "QuantileChoice":
            return kernel.Rank(of, number_of(definition["q"]))
        case "QuantilesAtOnce":
            return kernel.Ranks(of, _numbers_of(definition["quantiles"]))
        case "QuantileTree":
            levels = tuple(map(tuple, definition["levels"]))
            return kernel.Levels(of, _numbers_of(definition["quantiles"]), levels)
    raise LookupError(definition["type"])


def _nights_of(
    definition: Any, keys: Sequence[Any], table: TableOf, stated: kernel.What
) -> kernel.Nights:
    """The sums of a stream: its last key is the period."""
    if not isinstance(stated, kernel.Nights):
        raise ValueError("periods")
    if definition["periods"] != stated.periods:  # there may be very many
        raise ValueError("periods")
    day, every = keys[-1]["tree"], "1d"
    if day.get("op") == "dt_truncate":
        every = day["options"][0][1]
        (day,) = day["args"]
    if day["type"] == "Call":
        (day,) = day["args"]
    of, periods = table(definition["part"]["table"], None), definition["periods"]
    levels, about = definition["levels"], (stated.dtype, every, stated.start, periods)
    strategy = (
        kernel.Tree(definition["branching"], levels)
        if levels
        else kernel.Root(coefficients(periods))
    )
    return kernel.Nights(of, day["name"], *about, strategy)  # type: ignore[arg-type]
