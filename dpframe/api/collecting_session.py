"""Sessions as those use them who ask: a query, or several at once, for one charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.api.auto_limits import Limits
from dpframe.api.named_spend import named_spend
from dpframe.api.paying_session import PayingSession
from dpframe.api.query import PrivateQuery, require_tidy, require_whole, tidy
from dpframe.api.release import Release, Releases
from dpframe.api.reuse import Repeat, Reuse
from dpframe.api.several import asked_alone, asked_at_once, refuse_weights
from dpframe.api.spend import Spend
from dpframe.choose import Split
from dpframe.core.exact import Number
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.release import Intervals, read_intervals
from dpframe.report import Plan
from dpframe.sealed import all_sealed


@all_sealed
class CollectingSession(PayingSession):
    """What a `Session` does with queries."""

    @named_spend(1)
    def plan(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        limits: Limits = "auto",
    ) -> Plan:
        """The plan of a query at a spend, or one plan of several queries that share the spend.
        Reads no data and charges nothing.

        See `PrivateQuery.plan` for parameters and errors. The query belongs to this session or to
        none: raises `InvalidBudget` if it belongs to another.

        Parameters
        ----------
        query
            A query, or a list of queries, also of different frames of the session. Outputs with the
            same frame, filters and groups share noise, as those of one query do. The order of the
            queries is part of the plan.
        accuracy
            By the names of outputs. If several queries have the name, write ``"n of query 2"``.
        weights
            The weight of each query in the spend; its share is divided among its outputs by their
            own `weight=`. By default the outputs of all queries share as those of one query do.
        limits
            As for `PrivateQuery.plan`. All queries of a list that lack a limit get the same limit
            on rows, which is found on their common frame.

        Raises
        ------
        UnsupportedOperation
            When the list is empty, or has an item that is not a query. Also when several queries
            lack a limit and are of different frames.
        InvalidBudget
            When several budgets would pay for the queries, or a weight is not positive.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        if isinstance(query, PrivateQuery):
            refuse_weights(weights)
            asked, _, payer = asked_alone(query, limits, spend, self._payer)
            if isinstance(asked, Query):
                return payer.prepare(asked, spend).plan
            return payer.prepare_several(asked, spend).plan
        queries, _, payer = asked_at_once(query, weights, limits, spend, self._payer)
        return payer.prepare_several(queries, spend).plan

    @overload
    def collect(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> pl.DataFrame: ...
    @overload
    def collect(
        self,
        query: Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> list[pl.DataFrame]: ...
    @named_spend(1)
    def collect(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> pl.DataFrame | list[pl.DataFrame]:
        """Charge, run and release a query of this session, or one that was built without a session.
        Several queries make one charge and return a list of frames.

        See `PrivateQuery.collect` and `Session.plan` for parameters and errors. Raises
        `InvalidBudget` if a query belongs to another session.

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> session = dp.Session(epsilon=1.0)
        >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
        >>> old = people.filter(pl.col("age") >= 60)
        >>> everybody, elders = session.collect([people.dp_count(), old.dp_count()], epsilon=0.5)
        >>> session.spent
        PureDP(epsilon=0.5)
        """
        spend, asked = (
            Spend(epsilon, delta, rho, accuracy, split),
            read_intervals(interval, sampling),
        )
        if isinstance(query, PrivateQuery):
            refuse_weights(weights)
            require_tidy([query], asked)
            return tidy(query, self._release(query, spend, asked, engine, reuse, limits).frame)
        require_tidy(query if isinstance(query, (list, tuple)) else (), asked)
        found = self._release_several(query, weights, spend, asked, engine, reuse, limits)
        return [tidy(*pair) for pair in zip(query, found.frames, strict=True)]

    @overload
    def release(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Release: ...
    @overload
    def release(
        self,
        query: Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Releases: ...
    @named_spend(1)
    def release(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Release | Releases:
        """As `collect`, but with the plan and the cost. For several queries, a sequence of
        releases that all state the cost of the whole batch.

        Raises
        ------
        PlanMismatch
            When the session requires approval and this plan has none; nothing is charged.
        """
        spend, asked = (
            Spend(epsilon, delta, rho, accuracy, split),
            read_intervals(interval, sampling),
        )
        require_whole([query] if isinstance(query, PrivateQuery) else query)
        if isinstance(query, PrivateQuery):
            refuse_weights(weights)
            return self._release(query, spend, asked, engine, reuse, limits)
        return self._release_several(query, weights, spend, asked, engine, reuse, limits)

    def _release(
        self,
        query: PrivateQuery,
        spend: Spend,
        interval: Intervals | None,
        engine: PolarsMode,
        reuse: Reuse,
        limits: Limits,
    ) -> Release:
        asked, source, payer = asked_alone(query, limits, spend, self._payer)
        how = spend, interval, engine, Repeat(reuse)
        if isinstance(asked, Query):
            return payer.release(asked, source, *how)
        return payer.release_several(asked, [source] * len(asked.queries), *how)[0]

    def _release_several(
        self,
        given: Sequence[PrivateQuery],
        weights: Sequence[Number] | None,
        spend: Spend,
        interval: Intervals | None,
        engine: PolarsMode,
        reuse: Reuse,
        limits: Limits,
    ) -> Releases:
        queries, sources, payer = asked_at_once(given, weights, limits, spend, self._payer)
        repeat = Repeat(reuse)
        return payer.release_several(queries, sources, spend, interval, engine, repeat)
