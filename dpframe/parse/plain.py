"""Aggregates as Polars has them, such as `pl.col("x").clip(0, 9).sum()`, read as private ones.

What is read means what it means in Polars, where nulls and groups without values are concerned, or
is refused with what to write. NaN is left out as everywhere here: in Polars one NaN makes a whole
sum NaN, which would reveal that some row has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpframe.aggregates.aggregate import Aggregate
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.quantile import Median, Quantile
from dpframe.aggregates.sum import Sum
from dpframe.aggregates.values import or_declare
from dpframe.core.domain import Columns
from dpframe.core.tree import Named, Tree, column_names
from dpframe.errors import DPFrameError, UnboundedSensitivity, UnsupportedOperation
from dpframe.parse.aggregate_nodes import Node, held
from dpframe.parse.filtered import Kept, kept_rows
from dpframe.parse.hints import function_key, function_name, node_name, refuse
from dpframe.parse.literals import read_literal
from dpframe.parse.names import output_name
from dpframe.parse.outputs import polars_schema
from dpframe.rows.constants import constant
from dpframe.rows.fold import domain, outer_words, words
from dpframe.rows.nulls import IsNotNull, IsNull
from dpframe.rows.operation import Values

_ONE = constant(1)
_INTERPOLATIONS = ("Nearest", "Linear")
_FUNCTIONS = re.compile(r"(?<![\w.\"'])(col|when|lit|coalesce|struct|\w+_horizontal)\(")


@dataclass(frozen=True, slots=True)
class PlainAggregate:
    """One aggregate of Polars as a private one.

    Parameters
    ----------
    aggregate
        Which one.
    values
        What is aggregated, under the name that Polars gives to the result; None for rows.
    name
        That name.
    """

    aggregate: Aggregate
    values: Named | None
    name: str


def read_plain(node: Node, columns: Columns) -> PlainAggregate | None:
    """The private aggregate that a node means; None for what is no aggregate.

    Raises
    ------
    UnsupportedOperation
        For aggregates that have no private form, or one with another meaning.
    UnboundedSensitivity
        When the bounds of the values are unknown; the message has the line to write.
    """
    if node == "Len":
        return PlainAggregate(Count(), None, "len")
    [(kind, body)] = node.items()
    if kind == "Agg":
        name, inner, said = held(body)
        return _Asked(node_name(kind, body), inner, columns).read(name, said)
    if kind != "Function":
        return None
    key, params = function_key(body["function"])
    asked = _Asked(function_name(key, params), body["input"][0] if body["input"] else None, columns)
    if key == "Quantile":
        return asked.read(key, {"quantile": body["input"][1], **params})
    return asked.read(key, None) if key == "NullCount" else None


def _ranks(node: Node) -> Any:
    """The rank of a quantile, or a list of several; None for what is no constant."""
    try:
        [(kind, body)] = node.items()
        found = read_literal(body) if kind == "Literal" else None
    except (AttributeError, ValueError):
        return None
    values = list(found.values) if isinstance(found, Values) else [getattr(found, "value", None)]
    if not values or not all(type(value) in (int, float) for value in values):
        return None
    return tuple(values) if isinstance(found, Values) else values[0]


class _Asked:
    """One aggregate: how Polars calls it, and of what it is."""

    def __init__(self, method: str, inner: Node, columns: Columns) -> None:
        self._method = method
        self._name = output_name(inner)
        self._columns = columns
        self._schema = polars_schema(columns)
        self._inner = inner

    def read(self, name: str, said: Any) -> PlainAggregate:
        match name, said:
            case "Sum", _:
                return self._of(Sum(), "sum()")
            case "Mean", _:
                return self._of(Mean(), "mean()")
            case "Median", _:
                return self._of(Median(0.5), "median()")
            case (("Var" | "Std"), [int(ddof)]):
                return self._spread(name, ddof)
            case "Quantile", Mapping():
                return self._quantile(said)
            case "Count", _:
                return self._count()
            case "NUnique", _:
                return self._distinct()
            case "NullCount", _:
                return self._nulls()
            case _:
                raise refuse(self._method)

    def _spread(self, name: str, ddof: int) -> PlainAggregate:
        said = "" if ddof == 1 else f"ddof={ddof}"
        if name == "Var":
            return self._of(Variance(ddof=ddof), f"var({said})")
        return self._of(StandardDeviation(ddof=ddof), f"std({said})")

    def _quantile(self, said: Mapping[str, Any]) -> PlainAggregate:
        q = _ranks(said["quantile"])
        if q is None:
            raise UnsupportedOperation(
                "the quantile is not a constant",
                why="ranks are public, and not read from rows",
                remedy="write .quantile(0.9), or .quantile([0.1, 0.9]) for several",
            )
        if said["method"] not in _INTERPOLATIONS:
            raise UnsupportedOperation(
                f"quantile with interpolation={said['method'].lower()!r} has no private form",
                why="the noise hides which of two neighbouring values it takes",
                remedy=f"leave the interpolation out: .quantile({q})",
            )
        return self._of(Quantile(q), f"quantile({list(q) if isinstance(q, tuple) else q})")

    def _of(self, aggregate: Aggregate, written: str) -> PlainAggregate:
        """An aggregate of numbers, which skips nulls."""
        kept = self._kept()
        found = domain(kept.values, self._columns)
        if found.dtype.is_ordered and found.bounds is None:
            raise self._unbounded(kept, aggregate.kind, written)
        return self._made(aggregate, kept.without_missing())

    def _count(self) -> PlainAggregate:
        """`len` counts nulls and NaN, `count` counts NaN."""
        kept = self._kept()
        if self._method == "len":
            if not kept.conditions:
                return PlainAggregate(Count(), None, self._name)
            return self._made(Count(), replace(kept, values=_ONE))
        if not domain(kept.values, self._columns).nan:
            return self._made(Count(), kept.without_missing())
        return self._rows_where(kept, IsNotNull().of(kept.values))

    def _nulls(self) -> PlainAggregate:
        kept = self._kept()
        return self._rows_where(kept, IsNull().of(kept.values))

    def _rows_where(self, kept: Kept, condition: Tree) -> PlainAggregate:
        """How many of the rows that are kept fulfil a condition."""
        return self._made(Count(), replace(kept, values=_ONE, filters=(*kept.filters, condition)))

    def _distinct(self) -> PlainAggregate:
        kept = self._kept()
        found = domain(kept.values, self._columns)
        for possible, what, method in (
            (found.nullable and not kept.drops_nulls, "null", "drop_nulls"),
            (found.nan and not kept.drops_nans, "NaN", "drop_nans"),
        ):
            if possible:
                raise UnsupportedOperation(
                    f"n_unique of Polars counts {what} as a value, and dp_n_unique does not",
                    remedy=f"write {self._line(kept, f'{method}().n_unique()')}",
                )
        return self._made(DistinctValues(), kept.without_missing())

    def _kept(self) -> Kept:
        if self._inner == "Len" or "Agg" in self._inner:
            raise UnsupportedOperation(
                f"{self._method} of an aggregate is not available inside the query",
                why="an aggregate is one number in each group already",
                remedy="compute the rest with the released numbers, such as shares of a total: "
                '.collect(...).with_columns(share=pl.col("len") / pl.col("len").sum())',
            )
        kept = kept_rows(self._inner, self._schema)
        if not column_names(kept.values):
            raise UnsupportedOperation(
                f"{self._method} of a constant is not possible",
                why="it is one value, and not one for each row",
                remedy="write pl.len() for the number of rows",
            )
        domain(kept.values, self._columns)
        return kept

    def _made(self, aggregate: Aggregate, kept: Kept) -> PlainAggregate:
        return PlainAggregate(aggregate, Named(self._name, kept.or_null), self._name)

    def _unbounded(self, kept: Kept, kind: str, written: str) -> DPFrameError:
        line = self._line(kept, f"clip(low, high).{written}")
        write = f"write {line} with the range that you expect; values outside it are clipped to it"
        return UnboundedSensitivity(
            f"the values have no known bounds, so one individual could change the {kind} by any "
            "amount",
            remedy=or_declare(write, kept.values, "bounds", "(low, high)"),
        )

    def _line(self, kept: Kept, ending: str) -> str:
        """The expression as it should be written."""
        filters = "".join(f".filter({_as_polars(outer_words(c))})" for c in kept.filters)
        return f"{_as_polars(words(kept.values))}{filters}.{ending}"


def _as_polars(text: str) -> str:
    """An expression in the form written with ``import polars as pl``."""
    return _FUNCTIONS.sub(r"pl.\1(", text)
