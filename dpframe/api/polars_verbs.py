"""Verbs of Polars that say in one word what `group_by` and `agg` of private frames do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import polars as pl

from dpframe.api.arguments import IntoBounds, IntoKeys, flat
from dpframe.api.described import description
from dpframe.api.functions import count
from dpframe.api.group_by import PrivateGroupBy, group_names, is_discovered, public_keys
from dpframe.api.query import PrivateQuery, tidied
from dpframe.api.shortcuts import Shortcuts
from dpframe.api.tidied import COUNT, counts_of_values
from dpframe.api.windows_of_time import (
    MOST_WINDOWS,
    Window,
    why_not_known,
    window_keys,
    window_of,
    windows_within,
)
from dpframe.errors import DPFrameError, MissingKeys, UnsupportedOperation
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
    def group_by(self, *by: Any, keys: IntoKeys | None = None, **named_by: Any) -> PrivateGroupBy:
        """Group rows."""

    def group_by_dynamic(
        self,
        index_column: str | pl.Expr,
        *,
        every: str | timedelta,
        group_by: Any = None,
        keys: IntoKeys | None = None,
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
            As for `group_by`: the beginnings of windows, which are public. Without them all windows
            between bounds of the column that are declared, or that a filter gives, up to 100,000.
            If the column has no bounds, windows with enough individuals are chosen privately,
            which needs a delta; ``group_by(pl.col(index_column).dt.truncate(every))`` always does
            that.
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
        columns = self._relation.facts.columns
        given = window_keys(keys, window, columns, alone=not others)
        if keys is None:
            given = self._known_windows(window, others)
        try:
            return self.group_by(*others, window.expression, keys=given)
        except MissingKeys as refusal:
            if keys is not None:
                raise
            raise why_not_known(window, columns, refusal) from None

    def _known_windows(self, window: Window, others: list[Any]) -> pl.DataFrame | None:
        """The windows that bounds give, for each of the other keys where these are known."""
        known = windows_within(window, self._relation.facts.columns)
        if known is None or not others:
            return known if known is None else known.to_frame()
        with suppress(MissingKeys):
            groups = self.group_by(*others)
            beside = public_keys(groups)
            if beside is not None and beside.height * known.len() <= MOST_WINDOWS:
                return beside.join(known.to_frame(), how="cross", maintain_order="left_right")
        return None

    def value_counts(
        self,
        column: str | pl.Expr,
        *,
        sort: bool = False,
        name: str | None = None,
        normalize: bool = False,
        keys: IntoKeys | None = None,
        **options: Any,
    ) -> PrivateQuery:
        """The number of rows by the values of a column: ``group_by(column).agg(dp.count())``.

        Parameters
        ----------
        column
            Its name, or a row-wise expression.
        sort
            Whether `collect` gives the largest counts first, as they are with their noise. A
            `Release` keeps the order of the groups.
        name
            The name of the counts; default ``"count"``, or ``"proportion"`` with `normalize`.
        normalize
            Whether `collect` gives shares of the sum of the noisy counts, null where that is not
            above 0; they have no intervals. Plans and releases are of the counts, ``"count"``.
        keys
            As for `group_by`. Nulls are counted where they are among the keys or found.
        options
            Options of `dpframe.count`.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data.
        """
        counts = COUNT if name is None or normalize else name
        share = (name or "proportion") if normalize else None
        groups = self.group_by(column, keys=keys)
        if share in group_names(groups):
            raise UnsupportedOperation(
                f"the result would have two columns named {share!r}",
                where=f"value_counts(name={share!r})",
                remedy='write name="share"',
            )
        query = groups.agg(count(**options).alias(counts))
        if not sort and not normalize:
            return query
        return tidied(query, counts_of_values(counts, share, by_size=sort))

    def describe(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        bounds: Mapping[str, IntoBounds] | None = None,
    ) -> PrivateQuery:
        """Describe the columns at one cost, in the form of `polars.DataFrame.describe`: a row for
        each statistic, and a column for each column.

        The rows are `count`, `null_count`, `n_unique` (text only), `mean`, `std` (numbers only),
        `25%`, `50%` and `75%`. A statistic that a column does not have is null. `min` and `max`
        are left out, because each is one person's value.

        Parameters
        ----------
        columns
            Names; without them all columns except the identifier.
        bounds
            The range (low, high) of each column where it is not known.

        Returns
        -------
        PrivateQuery
            Its `collect` gives the column `statistic` and the described columns: numbers as
            Float64, others, such as dates, as text. With ``interval=0.95`` columns `<name>_low` and
            `<name>_high` follow each, null for quartiles, which have no interval. `release` keeps
            one row with columns such as `age_mean`, and prints each with its error.

        Raises
        ------
        UnboundedSensitivity
            When bounds or limits are missing.
        """
        exprs, long = description(self._relation.facts, columns, bounds)
        return tidied(self.agg(*exprs), long)

    def pipe(
        self, function: Callable[Concatenate[Self, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a function of the frame gives: ``function(frame, ...)``."""
        return function(self, *args, **kwargs)

    def dp_histogram(
        self, column: Any, bins: int | Iterable[Any] | None = None, **options: Any
    ) -> PrivateQuery:
        """See `dpframe.histogram`. Without a list, categories are chosen privately where the
        session has a delta: the result is then the number of rows by the values of the column.
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
