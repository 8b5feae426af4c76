"""The way from dp expressions to a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import OutputSpec
from dpframe.api.arguments import flat
from dpframe.api.expressions import DPExpr, output_of
from dpframe.api.plain import dp_expressions
from dpframe.api.protected_rows import ProtectedRows
from dpframe.api.query import PrivateQuery
from dpframe.api.unlimited import asked_or_unlimited
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.parse.size import shown


def query_of(
    rows: ProtectedRows, groups: Groups | None, exprs: Sequence[Any], named: Mapping[str, Any]
) -> PrivateQuery:
    """The query of some dp expressions, by group if there are groups.

    Raises
    ------
    UnsupportedOperation
        For what is no dp expression; the message names the one to write.
    """
    specs: list[OutputSpec] = []
    for alias, expression in [*((None, e) for e in flat(exprs)), *named.items()]:
        found = _dp_expressions(rows.relation, expression)
        if alias is not None and len(found) > 1:
            raise UnsupportedOperation(
                f"{len(found)} columns cannot all be named {alias!r}",
                where=shown(expression),
                remedy="name the columns one by one",
            )
        specs.extend(output_of(each, alias) for each in found)
    asked, unlimited = asked_or_unlimited(rows, groups, specs)
    return PrivateQuery(asked, rows.source, rows.payer, unlimited)


def _dp_expressions(relation: Relation, expression: Any) -> list[DPExpr]:
    """The dp expressions that one argument is."""
    if isinstance(expression, DPExpr):
        return [expression]
    found: list[DPExpr] = []
    if isinstance(expression, pl.Expr):
        found = dp_expressions(expression, relation.facts.columns)
    if not found:
        columns = relation.facts.columns
        given = expression if isinstance(expression, Mapping) else [expression]
        names = [each for each in given if isinstance(each, str) and each in columns]
        raise UnsupportedOperation(
            "only aggregates can be released, and this is not an aggregate",
            where=shown(expression) if isinstance(expression, pl.Expr) else str(expression),
            remedy=_instead(relation, expression, names),
        )
    return found


def _instead(relation: Relation, expression: Any, names: list[str]) -> str | tuple[str, str]:
    """The dp aggregate to write for one of Polars."""
    if isinstance(expression, (str, Mapping)):
        column = f'pl.col("{names[0]}")' if names else "pl.col(name)"
        method = next(iter(expression.values()), "") if isinstance(expression, Mapping) else ""
        method = method if method in ("sum", "median", "std", "var") else "mean"
        return f"write {column}.clip(low, high).{method}()", "write dp.count()"
    try:
        pipeline.read_rows([expression], {}, relation, "agg")
    except DPFrameError as refusal:
        if refusal.remedy is not None and "dp" in refusal.remedy:
            return refusal.remedy
    return "write for example pl.col(name).clip(low, high).mean()", "write dp.count()"
