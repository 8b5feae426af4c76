"""Aggregates of one individual's rows, as Polars writes them: after `group_by` of the identifier,
and before `.over` of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpframe.core.tree import Call, Column, Literal, Tree, column_names
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import (
    All,
    Any_,
    Count,
    DistinctCount,
    IndividualAggregate,
    Largest,
    Least,
    Length,
    Mean,
    NullCount,
    Over,
    Quantile,
    Sum,
)
from dpframe.parse.hints import function_key, function_name, held, node_name, refuse
from dpframe.parse.outputs import Kept, kept_rows
from dpframe.parse.reader import Reader
from dpframe.parse.reader import tree_of as row_tree
from dpframe.parse.selectors import Schema
from dpframe.rows.constants import constant
from dpframe.rows.fold import domain
from dpframe.rows.logic import IsNull
from dpframe.rows.operation import Node, Operand

_METHODS: Mapping[str, IndividualAggregate] = {
    "Sum": Sum(),
    "Mean": Mean(),
    "Min": Least(),
    "Max": Largest(),
    "Boolean.Any": Any_(),
    "Boolean.All": All(),
}
_FUNCTIONS = ("Boolean.Any", "Boolean.All", "Quantile", "NullCount", "Mode")
_ORDER = "rows have no order"
_INSTEAD: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("first", "last", "item"), (_ORDER, "use .min() or .max(), also of the time of rows")
    ),
    "mode": ("equally frequent values have no order", "use .min(), .max() or .median()"),
    **dict.fromkeys(
        ("std", "var"),
        (
            "floats have no sum of squares that is the same in any order of rows",
            "compute the variance of means: (pl.col(name) * pl.col(name)).clip(0, high).mean() - "
            "pl.col(name).clip(low, high).mean() ** 2",
        ),
    ),
    "product": ("products of many numbers are too large", "sum up logarithms: .log()"),
}


def read_group(node: Node, facts: FrameFacts, schema: Schema) -> Tree:
    """The tree of one output of ``group_by(identifier).agg(...)``: aggregates, and row-wise
    operations on them.
    """
    return _GroupReader(facts, schema).tree(node)


def read_row(node: Node, facts: FrameFacts, schema: Schema) -> Tree:
    """The tree of a row-wise expression, which may hold aggregates with ``.over(identifier)``."""
    return _RowReader(facts, schema).tree(node)


class _FactsReader(Reader):
    """Reads expressions over a frame with known facts."""

    __slots__ = ("_facts",)

    def __init__(self, facts: FrameFacts, schema: Schema) -> None:
        super().__init__(schema)
        self._facts = facts


class _GroupReader(_FactsReader):
    """Reads what is computed for each individual."""

    __slots__ = ()

    def _node(self, node: Node, depth: int) -> Operand:
        if _is_aggregate(node):
            self._nodes += 1
            how, of = _aggregate(node, self._facts, self._schema)
            return Call(how, of)
        return super()._node(node, depth)

    def _column(self, name: str) -> Operand:
        found = super()._column(name)
        if not isinstance(found, Column):  # a parameter
            return found
        raise UnsupportedOperation(
            f"{name!r} has a value in each row, and this is one row for each individual",
            remedy=f'aggregate it: pl.col("{name}").max(), .min(), .n_unique(), or .clip(low, '
            "high).sum() and .mean() of numbers; or add it to group_by(...)",
        )


class _RowReader(_FactsReader):
    """Reads what is computed for each row."""

    __slots__ = ()

    def _node(self, node: Node, depth: int) -> Operand:
        if isinstance(node, dict) and len(node) == 1:
            [(kind, body)] = node.items()
            if kind in ("Over", "Window") and node_name(kind, body) == "over":
                self._nodes += 1
                return self._over(body)
        return super()._node(node, depth)

    def _over(self, body: Node) -> Tree:
        facts = self._facts
        if facts.identifier is None:
            raise refuse(
                "over",
                'declare whose the rows are, session.protect(..., unit="user_id"), and write '
                '.over("user_id")',
            )
        who = facts.identifier
        mapping = body.get("mapping", (body.get("options") or {}).get("Over"))
        if body.get("order_by") is not None or mapping != "GroupsToRows":
            raise UnsupportedOperation(
                "over(...) takes columns to group by, and nothing else",
                remedy=f'write .over("{who}")',
            )
        by = [row_tree(node, self._schema) for node in body["partition_by"]]
        if Column(who) not in by:
            raise UnsupportedOperation(
                f"rows of different individuals would meet: {who!r} is not in over(...)",
                remedy=f'write .over("{who}"), or .over("{who}", ...) with further columns',
            )
        others = [tree for tree in by if tree != Column(who)]
        node = body["function"]
        while isinstance(node, dict) and next(iter(node)) == "Alias":
            node = node["Alias"][0]
        if not _is_aggregate(node):
            raise UnsupportedOperation(
                f"{_name(node)} over an individual's rows is not supported: over(...) takes one "
                "aggregate, such as sum(), mean(), min(), max(), n_unique() or pl.len()",
                remedy=f'write arithmetic outside: pl.col("x").max().over("{who}") - '
                f'pl.col("x").min().over("{who}")',
            )
        how, of = _aggregate(node, facts, self._schema)
        return Call(Over(how), (*of, Column(who), *others))


def _is_aggregate(node: Node) -> bool:
    if node == "Len":
        return True
    if not isinstance(node, dict) or len(node) != 1:
        return False
    [(kind, body)] = node.items()
    if kind == "Agg":
        return True
    return kind == "Function" and function_key(body["function"])[0] in _FUNCTIONS


def _name(node: Node) -> str:
    """What the analyst wrote."""
    if not isinstance(node, dict):
        return node_name(node, None)
    [(kind, body)] = node.items()
    if kind == "Function":
        key, params = function_key(body["function"])
        return function_name(key, params)
    return node_name(kind, body)


def _aggregate(
    node: Node, facts: FrameFacts, schema: Schema
) -> tuple[IndividualAggregate, tuple[Tree, ...]]:
    """An aggregate and what it is of."""
    if node == "Len":
        return Length(), ()
    [(kind, body)] = node.items()
    if kind == "Agg":
        key, inner, said = held(body)
    else:
        key, params = function_key(body["function"])
        inner, *others = body["input"]
        said = {"quantile": others[0], **params} if key == "Quantile" else params
    name = _name(node)
    kept = kept_rows(inner, schema)
    found = _read(key, name, said, kept, schema, facts)
    if found is None:
        why, remedy = _INSTEAD.get(
            name,
            (
                "it is not among the aggregates whose value is the same in any order of rows",
                "use sum, mean, median, quantile, min, max, count, n_unique, null_count, any, all "
                "or pl.len()",
            ),
        )
        raise UnsupportedOperation(
            f"{name} is not computed of one individual's rows: {why}", remedy=remedy
        )
    how, tree = found
    if tree is None:
        return how, ()
    if not column_names(tree):
        raise UnsupportedOperation(
            f"{name} of a constant, which is one value and not one for each row",
            remedy="use pl.len() for the number of rows",
        )
    how.domain([domain(tree, facts.columns)])  # refuses types without this aggregate
    return how, (tree,)


def _read(
    key: str,
    name: str,
    said: Node,
    kept: Kept,
    schema: Schema,
    facts: FrameFacts,
) -> tuple[IndividualAggregate, Tree | None] | None:
    """The aggregate and the tree of its values, which are null in rows that a filter leaves out.
    The tree is None for an aggregate of whole rows; the result is None for unknown aggregates.
    """
    match key:
        case "Sum" | "Mean" | "Min" | "Max":
            if name not in ("sum", "mean", "min", "max"):  # nan_min and nan_max
                return None
            return _METHODS[key], kept.or_null
        case "Boolean.Any" | "Boolean.All":
            if isinstance(said, Mapping) and not said.get("ignore_nulls", True):
                return None
            return _METHODS[key], kept.or_null
        case "Count" if name == "len":
            if not kept.conditions:
                return Length(), None
            return Count(), replace(kept, values=constant(1)).or_null
        case "Count":
            return Count(), kept.or_null
        case "NullCount":
            if not kept.conditions:
                return NullCount(), kept.values
            missing = IsNull().of(kept.values)
            return Count(), replace(
                kept, values=constant(1), filters=(*kept.filters, missing)
            ).or_null
        case "NUnique":
            return DistinctCount(not kept.conditions), _distinct(kept, facts)
        case "Median":
            return Quantile(0.5, "linear", True), kept.or_null
        case "Quantile":
            q = row_tree(said["quantile"], schema)
            value = q.value if isinstance(q, Literal) else None
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not 0 <= value <= 1
            ):
                raise UnsupportedOperation(
                    "the q of a quantile must be one number between 0 and 1",
                    remedy="write .quantile(0.9), once for each",
                )
            return Quantile(float(value), str(said["method"]).lower()), kept.or_null
        case _:
            return None


def _distinct(kept: Kept, facts: FrameFacts) -> Tree:
    """The values to count. Null counts as a value, so it must not come from a filter."""
    found = domain(kept.values, facts.columns)
    if kept.conditions and found.nullable and not kept.drops_nulls:
        raise UnsupportedOperation(
            "n_unique after a filter counts null as one more value",
            remedy="write .filter(...).drop_nulls().n_unique(), or filter the frame first",
        )
    return kept.or_null
