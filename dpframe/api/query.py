"""Queries: lazy until `collect`, which checks the budget, charges it, runs and adds noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, Self, TypeVar

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.api.asked_query import AskedQuery
from dpframe.api.auto_limits import Limits
from dpframe.api.dropped import with_dropped, with_share
from dpframe.api.named_spend import named_spend
from dpframe.api.no_raw_access import COLLECT, QUERY_HINTS
from dpframe.api.payer import Payer
from dpframe.api.release import Release
from dpframe.api.result_verbs import ResultVerbs
from dpframe.api.reuse import Repeat, Reuse
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.api.tidied import Change, Changes
from dpframe.api.unlimited import Unlimited
from dpframe.choose import Split
from dpframe.core.exact import Number
from dpframe.infer import Queries
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.release import Intervals, read_intervals
from dpframe.report import Format, Plan
from dpframe.report.notebook import query_html
from dpframe.sealed import all_sealed

P = ParamSpec("P")
T = TypeVar("T")


@all_sealed
class PrivateQuery(ResultVerbs, AskedQuery):
    """A query of dp expressions on a private frame. Nothing runs until it is collected.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> session = dp.Session(epsilon=1.0)
    >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
    >>> query = people.filter(pl.col("age") >= 40).dp_count()
    >>> query.plan(epsilon=0.5).cost
    PureDP(epsilon=0.5)
    >>> session.spent
    PureDP(epsilon=0)
    """

    __slots__ = ("_tidied",)
    _noun = "a private query"
    _written = "query"
    _hints = QUERY_HINTS
    _otherwise = COLLECT

    def __init__(
        self,
        query: Query,
        source: Source | Sources,
        payer: Payer | None,
        unlimited: Unlimited | None = None,
        tidied: Changes | None = None,
    ) -> None:
        super().__init__(query, source, payer, unlimited)
        self._tidied = tidied

    def _then(self, step: Change) -> Self:
        how = (self._tidied or Changes()).then(step, self._asked)
        return type(self)(self._asked, self._source, self._payer, self._unlimited, how)

    def pipe(
        self, function: Callable[Concatenate[Self, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with the query: ``function(query, ...)``."""
        return function(self, *args, **kwargs)

    @named_spend()
    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        limits: Limits = "auto",
        report_dropped: bool = False,
    ) -> Plan:
        """The plan of `collect` with the same spend. Reads no data and charges nothing.

        Parameters
        ----------
        epsilon, delta, rho
            The spend, in the session's measure.
        accuracy
            Instead of epsilon or rho: the largest error of outputs, with 95% confidence, such as
            ``{"len": 50}``. The least spend that gives it is taken.
        split
            How the cost is divided where no output has a weight: ``"least error"`` minimises the
            sum of squared relative errors, ``"equal"`` gives each output the same.
        limits
            For a query that lacks a limit on individuals' rows or groups. ``"auto"``: when the
            query runs, it spends 5% to find the limit with the least total error from dropped rows
            and noise. The plan lists the possible limits and the error of the query under each; it
            is charged once. None: such a query is refused.
        report_dropped
            Whether to spend a tenth on a column `dropped`: the share of rows that limits drop or
            bounds clamp, for each group if groups are listed, otherwise for all rows. It does not
            cover clamped totals of ``per="unit"`` and limits of joined frames. It counts up to ten
            times as many rows of an individual as a limit keeps.

        Raises
        ------
        InvalidBudget
            When the spend is empty, not positive, or in another measure, or no spend is accurate
            enough.
        UnboundedSensitivity
            With ``limits=None``, when an individual may have any number of rows or groups.
        UnsupportedOperation
            When the query needs a limit and cannot find one, in sessions with `composition`.
        """
        return self._plan(Spend(epsilon, delta, rho, accuracy, split), limits, report_dropped)

    @named_spend()
    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        format: Format = "text",
        details: bool = False,
        size: int | None = None,
        limits: Limits = "auto",
        report_dropped: bool = False,
    ) -> str:
        """`plan(...).explain(format, details=details, size=size)`: see `Plan.explain`."""
        plan = self._plan(Spend(epsilon, delta, rho, accuracy, split), limits, report_dropped)
        return plan.explain(format, details=details, size=size)

    @named_spend()
    def collect(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
        report_dropped: bool = False,
    ) -> pl.DataFrame:
        """Check the budget, charge it, compute, add noise.

        Each call is a new release with a new cost, except with ``reuse="same"``.

        Parameters
        ----------
        epsilon, delta, rho
            The spend, in the session's measure.
        accuracy
            Instead of epsilon or rho: the largest error of outputs, with 95% confidence, such as
            ``{"len": 50}``. The least spend that gives it is taken.
        split
            As for `plan`.
        interval
            A confidence such as 0.95 adds columns `<name>_low` and `<name>_high` after each number.
            With this confidence the exact result for the clamped values lies between them, for each
            number separately. This is post-processing and costs nothing.

            Intervals cover privacy noise, not sampling error. If two intervals do not overlap, the
            numbers differ in these data, but perhaps not in the population behind them. Intervals
            do not cover rows that your own limits drop. With a limit that the query finds, they
            also cover the dropped rows, if no individual has more than five times the limit or
            2,000 rows; `Release.remark` states their number. Selections, such as quantiles and
            winners, have no interval: such a query is refused before it is charged.
        sampling
            Whether intervals also cover sampling error: the data are a sample of rows, or of the
            protected individuals, from a larger population. For counts, shares, sums, means, and
            differences and ratios of these. It is computed from released numbers, and is rather too
            wide than too narrow. A count and a variance of the same values in the same query make
            it narrower.
        engine
            How Polars runs a Polars frame: the name of one of its engines, or a function that takes
            a LazyFrame and returns its DataFrame, for executors elsewhere. The function sees
            private rows, so the person who runs it must be trusted with the data.
        reuse
            ``"same"``: in a session with ``keep_releases=True``, return the newest stored result of
            the same query at no cost. The same query has the same plan and spend, outputs in the
            same order, the same interval, and frames with the same names in the same budget. Each
            frame needs a name, which stands for its data: a frame of other rows needs another name.
            If the result was charged but is lost, or is being computed, an error is raised and
            nothing is charged.
        limits
            As for `plan`. `Release.remark` states the limit that the query found, and estimates how
            many rows it drops. A `DroppedRows` warning appears if these may be more than a tenth.
        report_dropped
            As for `plan`.

        Raises
        ------
        InvalidBudget
            When the spend is empty, not positive, or in another measure.
        BudgetExceeded
            When the cost exceeds the remaining budget. No data is read then.
        EngineError
            When the engine fails; the charge stays.
        LedgerError
            When the charge or its outcome cannot be recorded; nothing is released. With
            ``reuse="same"`` also when the result was lost or changed, or is being computed.
        PlanMismatch
            When the session requires approval and this plan has none.
        UnsupportedOperation
            With `reuse`, when the session stores no results, or a frame has no name.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        asked = read_intervals(interval, sampling)
        require_tidy([self], asked)
        found = self._release(spend, limits, asked, engine, reuse, report_dropped)
        return tidy(self, found.frame)

    @named_spend()
    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
        report_dropped: bool = False,
    ) -> Release:
        """As `collect`, with the plan, the cost, and `Release.write`."""
        spend = Spend(epsilon, delta, rho, accuracy, split)
        asked = read_intervals(interval, sampling)
        require_whole([self])
        return self._release(spend, limits, asked, engine, reuse, report_dropped)

    def _plan(self, spend: Spend, limits: Limits, report_dropped: bool) -> Plan:
        payer, asked = self._bound(), self._several(spend, limits, report_dropped)
        if asked is None:
            return payer.prepare(self._query, spend).plan
        return payer.prepare_several(asked, spend).plan

    def _several(self, spend: Spend, limits: Limits, report_dropped: bool) -> Queries | None:
        """The batch that answers this query (limit search, dropped-rows counts), or None if it
        needs only itself."""
        searched = self._searched(limits, spend, report_dropped=report_dropped)
        if searched is None and report_dropped:
            return with_dropped(self._query)
        return searched

    def _release(
        self,
        spend: Spend,
        limits: Limits,
        interval: Intervals | None,
        engine: PolarsMode,
        reuse: Reuse,
        report_dropped: bool,
    ) -> Release:
        payer, repeat = self._bound(), Repeat(reuse)
        asked = self._several(spend, limits, report_dropped)
        if asked is None:
            return payer.release(self._query, self._source, spend, interval, engine, repeat)
        data = [self._source] * len(asked.queries)
        found = payer.release_several(asked, data, spend, interval, engine, repeat)
        return replace(found[0], frame=with_share(found.frames)) if report_dropped else found[0]

    def __repr__(self) -> str:
        outputs = ", ".join(f"{o.name}={o.words}" for o in self._asked.outputs)
        return f"<PrivateQuery of {self._asked.relation.name!r}: {outputs}>"

    def _repr_html_(self) -> str:
        return query_html(self._asked, self.is_bound)


def query_or_unlimited(query: PrivateQuery, limits: Limits) -> Query | Unlimited:
    """The query; for a query that lacks a limit, the missing limit and the query under such a
    limit.
    """
    unlimited = query._unlimited
    return query._query if limits is None or unlimited is None else unlimited


def parts(query: PrivateQuery) -> tuple[Query, Source | Sources, Payer | None]:
    """The parts of a query without missing limits for a session: the query, its data, and the
    payer.

    Raises
    ------
    UnboundedSensitivity
        When it lacks a limit.
    """
    return query._query, query._source, query._payer


def source_of(query: PrivateQuery) -> Source | Sources:
    """Where the data of a query are."""
    return query._source


def searched(
    query: PrivateQuery, limits: Limits, spend: Spend
) -> tuple[Query | Queries, Source | Sources, Payer | None]:
    """What a session runs: the query, with the search for its limit if that is missing, then its
    data and its payer.
    """
    found = query._searched(limits, spend)
    return query._query if found is None else found, query._source, query._payer


def tidied(query: PrivateQuery, how: Changes) -> PrivateQuery:
    """The same query with other changes to its result."""
    return PrivateQuery(query._asked, query._source, query._payer, query._unlimited, how)


def require_tidy(queries: Sequence[object], interval: Intervals | None) -> None:
    """Refuse an interval where a result is handed out without one."""
    for query in queries:
        if isinstance(query, PrivateQuery) and query._tidied is not None:
            query._tidied.require_no_interval(interval)


def require_whole(queries: Sequence[object]) -> None:
    """Refuse a release where the analyst changes the result that is handed out."""
    for query in queries:
        if isinstance(query, PrivateQuery) and query._tidied is not None:
            query._tidied.require_whole()


def tidy(query: PrivateQuery, frame: pl.DataFrame) -> pl.DataFrame:
    """The result of a query in its public form."""
    return frame if query._tidied is None else query._tidied.of(frame)


def owner_of(query: PrivateQuery) -> Payer | None:
    """Who pays for a query; None where it belongs to no session."""
    return query._payer
