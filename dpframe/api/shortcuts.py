"""The `dp_*` methods that frames and group-bys share, each short for `agg` of one expression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from dpframe.api import functions
from dpframe.api.arguments import IntoBounds
from dpframe.api.expressions import IntoColumn
from dpframe.api.query import PrivateQuery
from dpframe.core.exact import Number
from dpframe.errors import InvalidBudget
from dpframe.sealed import all_sealed

_SPENDS = ("epsilon", "delta", "rho", "accuracy")


def _unspent(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a query; a spend is not allowed among them.

    Raises
    ------
    InvalidBudget
        When a spend is among them.
    """
    for name in _SPENDS:
        if name in options:
            raise InvalidBudget(
                "a query costs nothing until it is planned or collected",
                where=f"{name}=...",
                remedy=f"write .collect({name}=...) after it",
            )
    return options


@all_sealed
class Shortcuts(ABC):
    """`frame.dp_sum("x", ...)` for `frame.agg(pl.col("x").dp_sum(...))`, and so on."""

    __slots__ = ()

    @abstractmethod
    def agg(self, *exprs: pl.Expr, **named: pl.Expr) -> PrivateQuery:
        """A query of dp expressions."""

    def dp_count(self, column: IntoColumn | None = None, **options: Any) -> PrivateQuery:
        """See `dpframe.count`; the column is named ``len``."""
        return self.agg(functions.count(column, **_unspent(options)))

    def dp_sum(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.sum`."""
        return self.agg(functions.sum(column, bounds, **_unspent(options)))

    def dp_mean(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.mean`."""
        return self.agg(functions.mean(column, bounds, **_unspent(options)))

    def dp_var(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.var`."""
        return self.agg(functions.var(column, bounds, **_unspent(options)))

    def dp_std(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.std`."""
        return self.agg(functions.std(column, bounds, **_unspent(options)))

    def dp_ratio(
        self,
        column: IntoColumn,
        denominator: IntoColumn,
        bounds: IntoBounds | None = None,
        **options: Any,
    ) -> PrivateQuery:
        """See `dpframe.ratio`."""
        return self.agg(functions.ratio(column, denominator, bounds, **_unspent(options)))

    def dp_median(
        self,
        column: IntoColumn,
        bounds: IntoBounds | None = None,
        candidates: Iterable[Any] | None = None,
        **options: Any,
    ) -> PrivateQuery:
        """See `dpframe.median`."""
        return self.agg(functions.median(column, bounds, candidates, **_unspent(options)))

    def dp_quantile(
        self,
        column: IntoColumn,
        q: Number | Sequence[Number],
        bounds: IntoBounds | None = None,
        candidates: Iterable[Any] | None = None,
        **options: Any,
    ) -> PrivateQuery:
        """See `dpframe.quantile`."""
        return self.agg(functions.quantile(column, q, bounds, candidates, **_unspent(options)))

    def dp_bounds(self, column: IntoColumn, **options: Any) -> PrivateQuery:
        """See `dpframe.bounds`."""
        return self.agg(functions.bounds(column, **_unspent(options)))

    def dp_n_unique(self, column: IntoColumn, **options: Any) -> PrivateQuery:
        """See `dpframe.n_unique`."""
        return self.agg(functions.n_unique(column, **_unspent(options)))

    def dp_histogram(
        self, column: IntoColumn, bins: int | Iterable[Any] | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.histogram`."""
        return self.agg(functions.histogram(column, bins, **_unspent(options)))

    def dp_cdf(
        self, column: IntoColumn, bins: int | Iterable[Any] | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.cdf`."""
        return self.agg(functions.cdf(column, bins, **_unspent(options)))

    def dp_argmax(
        self,
        column: IntoColumn | None = None,
        score: pl.Expr | None = None,
        candidates: Iterable[Any] | pl.DataFrame | None = None,
        k: int = 1,
        **options: Any,
    ) -> PrivateQuery:
        """See `dpframe.argmax`."""
        return self.agg(functions.argmax(column, score, candidates, k, **_unspent(options)))
