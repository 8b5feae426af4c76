"""Verbs of Polars that say in one word what `group_by` and `agg` of private frames do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import polars as pl

from dpframe.api.arguments import flat
from dpframe.api.described import description
from dpframe.api.functions import count
from dpframe.api.group_by import PrivateGroupBy, is_discovered
from dpframe.api.query import PrivateQuery
from dpframe.api.shortcuts import Shortcuts
from dpframe.api.windows_of_time import window_keys, window_of, windows_within
from dpframe.errors import DPFrameError, MissingKeys
from dpframe.frames.relation import Relation
from dpframe.sealed import all_sealed

P = ParamSpec("P")
T = TypeVar("T")


@all_sealed
class PolarsVerbs(Shortcuts):
    """`group_by_dynamic`, `value_counts`, `describe` and `pipe` of private frames, and the
    shortcuts."""

    __slots__ = ()
    _relation: Relation

    @abstractmethod
    def group_by(self, *by: Any, keys: Any = None, **named_by: Any) -> PrivateGroupBy:
        """Group rows."""

    def group_by_dynamic(
        self,
        index_column: str | pl.Expr,
        *,
        every: str | timedelta,
        group_by: Any = None,
        keys: Any = None,
        **options: Any,
    ) -> PrivateGroupBy:
        """Group rows by windows of time, which begin at regular boundaries: the same as
        ``group_by(pl.col(index_column).dt.truncate(every))``.

        Parameters
        ----------
        index_column
            A column of dates or datetimes; in the result it holds the beginnings of windows.
        every
            How long a window is, such as ``"1w"``, ``"1mo"`` or ``"15m"``.
        group_by
            Other columns to group by.
        keys
            As for `group_by`: the beginnings of windows, which are public. Without them windows
            with enough individuals are found privately, which needs a delta; in a session without
            one, all windows between bounds of the column that are declared, or that a filter gives.
        options
            Arguments of Polars' method, which may have the values that they have by default.

        Raises
        ------
        UnsupportedOperation
            For windows that overlap, leave gaps, are moved or begin elsewhere.
        MissingKeys
            When a key is no beginning of a window, or keys are needed.
        """
        window = window_of(index_column, every, options)
        others = [] if group_by is None else flat([group_by])
        checked = window_keys(keys, window, self._relation.facts.columns, alone=not others)
        try:
            return self.group_by(*others, window.expression, keys=checked)
        except MissingKeys:
            alone = keys is None and not others and isinstance(index_column, str)
            known = windows_within(window, self._relation.facts.columns) if alone else None
            if known is None:
                raise
        return self.group_by(window.expression, keys=known)

    def value_counts(
        self, column: str | pl.Expr, *, name: str = "count", keys: Any = None, **options: Any
    ) -> PrivateQuery:
        """The number of rows by the values of a column: ``group_by(column).agg(dp.count())``.

        Parameters
        ----------
        column
            Its name, or a row-wise expression.
        name
            What the counts are called.
        keys
            As for `group_by`. Nulls are counted where they are among the keys or found.
        options
            Those of `dpframe.count`.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data.
        """
        return self.group_by(column, keys=keys).agg(count(**options).alias(name))

    def describe(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        bounds: Mapping[str, Sequence[Any]] | None = None,
    ) -> PrivateQuery:
        """What there is in columns, in one row and at one cost: of each the number of values and of
        nulls, and of numbers and times the mean, standard deviation and quartiles, else the number
        of distinct values.

        Parameters
        ----------
        columns
            Names; without them all columns except the identifier.
        bounds
            The range (low, high) of each column where it is not known.

        Raises
        ------
        UnboundedSensitivity
            When bounds or limits are missing.
        """
        return self.agg(*description(self._relation.facts, columns, bounds))

    def pipe(
        self, function: Callable[Concatenate[Self, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a function of the frame gives: ``function(frame, ...)``."""
        return function(self, *args, **kwargs)

    def dp_histogram(
        self, column: Any, bins: int | Iterable[Any] | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.histogram`. Categories that nobody listed are found privately where the
        session has a delta: then it is the number of rows by the values of the column.
        """
        try:
            return super().dp_histogram(column, bins, **options)
        except MissingKeys:
            groups: PrivateGroupBy | None = None
            if bins is None and not {"bounds", "other"} & options.keys():
                with suppress(DPFrameError):
                    groups = self.group_by(column)
            if groups is None or not is_discovered(groups):
                raise
        return groups.agg(count(**options).alias("count"))
