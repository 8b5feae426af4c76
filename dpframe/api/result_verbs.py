"""Polars' verbs on the result of a private query: they wait until it is collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import polars as pl

from dpframe.api.tidied import Change

__all__ = ["ResultVerbs"]


class ResultVerbs:
    """What a query does to its result when it is collected, written as in Polars.

    It is post-processing of released numbers: it costs nothing, is in no plan, and is tried on
    made-up numbers before anything is charged. Intervals keep the order of the rows; new columns
    have none.
    """

    __slots__ = ()

    def _then(self, step: Change) -> Self:
        raise NotImplementedError  # no ABC: type checkers see one class with this and `RowVerbs`

    def _verb(self, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Self:
        return self._then(Change(f".{name}(...)", change))

    def sort(
        self,
        by: Any,
        *more_by: Any,
        descending: bool | Sequence[bool] = False,
        nulls_last: bool | Sequence[bool] = False,
        maintain_order: bool = False,
    ) -> Self:
        """Sort the released result, as `polars.DataFrame.sort` does."""
        options: dict[str, Any] = {"descending": descending, "nulls_last": nulls_last}
        options["maintain_order"] = maintain_order
        return self._verb("sort", lambda frame: frame.sort(by, *more_by, **options))

    def head(self, n: int = 5) -> Self:
        """The first rows of the released result: after `sort`, the largest of the noisy numbers.

        All groups are released and paid for. `dp_argmax` spends everything on finding the largest.
        """
        return self._verb("head", lambda frame: frame.head(n))

    def limit(self, n: int = 5) -> Self:
        """As `head`."""
        return self._verb("limit", lambda frame: frame.head(n))

    def tail(self, n: int = 5) -> Self:
        """The last rows of the released result."""
        return self._verb("tail", lambda frame: frame.tail(n))

    def top_k(self, k: int, *, by: Any, reverse: bool | Sequence[bool] = False) -> Self:
        """The rows of the released result with the largest noisy numbers."""
        return self._verb("top_k", lambda frame: frame.top_k(k, by=by, reverse=reverse))

    def bottom_k(self, k: int, *, by: Any, reverse: bool | Sequence[bool] = False) -> Self:
        """The rows of the released result with the smallest noisy numbers."""
        return self._verb("bottom_k", lambda frame: frame.bottom_k(k, by=by, reverse=reverse))

    def with_columns(self, *exprs: Any, **named: Any) -> Self:
        """Add columns that are computed from the released result, such as shares of a total."""
        return self._verb("with_columns", lambda frame: frame.with_columns(*exprs, **named))

    def select(self, *exprs: Any, **named: Any) -> Self:
        """Choose or compute columns of the released result."""
        return self._verb("select", lambda frame: frame.select(*exprs, **named))

    def filter(self, *predicates: Any, **constraints: Any) -> Self:
        """Keep rows of the released result, such as those with large enough noisy numbers."""
        return self._verb("filter", lambda frame: frame.filter(*predicates, **constraints))

    def rename(self, mapping: Mapping[str, str]) -> Self:
        """Rename columns of the released result."""
        return self._verb("rename", lambda frame: frame.rename(dict(mapping)))

    def drop(self, *columns: Any, strict: bool = True) -> Self:
        """Leave out columns of the released result."""
        return self._verb("drop", lambda frame: frame.drop(*columns, strict=strict))
