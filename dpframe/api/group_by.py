"""Private frames that are grouped, and the way from dp expressions to a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe import pipeline
from dpframe.api.arguments import flat
from dpframe.api.expressions import DPExpr, output_of
from dpframe.api.functions import argmax
from dpframe.api.opaque import GROUP_HINTS, Opaque
from dpframe.api.query import PrivateQuery
from dpframe.api.shortcuts import Shortcuts
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.parse.size import shown
from dpframe.report.notebook import groups_html
from dpframe.sealed import all_sealed

if TYPE_CHECKING:
    from dpframe.api.frame import PrivateFrame


@all_sealed
class PrivateGroupBy(Opaque, Shortcuts):
    """A private frame in groups: of public keys, or found privately when a query runs."""

    __slots__ = ("_frame", "_groups")
    _noun = "a private group-by"
    _written = "group_by(...)"
    _hints = GROUP_HINTS
    _otherwise = "use .agg(...) with dp expressions, or a dp_* method such as .dp_count()"

    def __init__(self, frame: PrivateFrame, groups: Groups) -> None:
        self._frame = frame
        self._groups = groups

    def agg(self, *exprs: Any, **named: Any) -> PrivateQuery:
        """A query with one row per key, in the order of the keys; found groups come sorted.

        Raises
        ------
        UnsupportedOperation
            For what is no dp expression; the message names the one to use.
        UnboundedSensitivity
            When one individual could change a result by any amount.
        """
        return asked_of(self._frame, self._groups, exprs, named)

    def dp_argmax(
        self,
        column: Any = None,
        score: pl.Expr | None = None,
        candidates: Any = None,
        k: int = 1,
        **options: Any,
    ) -> PrivateQuery:
        """Without a column: the key of the best group. With one: the winner in each group.

        See `dpframe.argmax` for the parameters.

        Raises
        ------
        MissingKeys
            When nobody listed the groups to choose among.
        """
        if column is not None or candidates is not None:
            return super().dp_argmax(column, score, candidates, k, **options)
        return asked_of(self._frame, self._groups, [_best_group(score, k, **options)], {})

    def __repr__(self) -> str:
        return f"<PrivateGroupBy {self._groups.words()}: {self._groups.origin}>"

    def _repr_html_(self) -> str:
        return groups_html(self._frame._relation, self._groups)


def _best_group(score: pl.Expr | None, k: int, **options: Any) -> DPExpr:
    """The argmax over groups as a dp expression."""
    made = argmax(None, score, None, k, **options)
    ((placeholder, spec),) = made._spec.aggregates.items()
    parameters = {**spec.parameters, "best_group": True}
    best = type(spec)(spec.kind, None, parameters, spec.weight, spec.mechanism, spec.score)
    return DPExpr(type(made._spec)({placeholder: best}, None, made._spec.words, "argmax"))


def asked_of(
    frame: PrivateFrame, groups: Groups | None, exprs: Sequence[Any], named: Mapping[str, Any]
) -> PrivateQuery:
    """The query of some dp expressions, by group if there are groups."""
    specs = []
    for alias, expression in [*((None, e) for e in flat(exprs)), *named.items()]:
        if not isinstance(expression, DPExpr):
            raise UnsupportedOperation(
                "only dp expressions can be aggregated privately",
                where=shown(expression) if isinstance(expression, pl.Expr) else str(expression),
                remedy=_instead(frame, expression),
            )
        specs.append(output_of(expression, alias))
    execution = frame._source.blueprint(frame._relation.token)
    query = pipeline.ask(frame._relation, groups, specs, execution)
    return PrivateQuery(query, frame._source, frame._session)


def _instead(frame: PrivateFrame, expression: Any) -> str:
    """The dp aggregate to write for one of Polars."""
    try:
        pipeline.read_rows([expression], {}, frame._relation, "agg")
    except DPFrameError as refusal:
        if refusal.remedy is not None and "dp" in refusal.remedy:
            return refusal.remedy
    return "use for example pl.col('x').dp_sum((0, 10)), or dp.count()"
