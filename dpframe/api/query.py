"""Queries: lazy until `collect`, which checks the budget, charges it, runs and adds noise."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.keys import require_numbers
from dpframe.api.limits import (
    Limits,
    MissingLimit,
    require_amount,
    require_limits,
    search_of,
    search_of_several,
    suggest,
    with_dropped,
    with_share,
)
from dpframe.api.no_raw_access import COLLECT, QUERY_HINTS, NoRawAccess
from dpframe.api.payer import Payer, Spend, prepare_for
from dpframe.api.release import Release
from dpframe.api.reuse import Reuse, ReusePolicy
from dpframe.api.source import Source, Sources, origins_of, protected_source
from dpframe.audit import Audit, audit
from dpframe.core.exact import Number, exact, show_input
from dpframe.errors import (
    DPFrameError,
    InvalidBudget,
    ResultWarning,
    UnknownColumn,
    UnsupportedOperation,
)
from dpframe.frames.relation import Relation, frames_of
from dpframe.lower.engines.polars_engine import POLARS, PolarsMode
from dpframe.optimise.mechanisms import Split
from dpframe.optimise.queries import Queries
from dpframe.release import Intervals, make_up_result, read_intervals
from dpframe.report import Format, Plan
from dpframe.report.notebook import query_html
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import all_sealed
from dpframe.simulate import MOST_RUNS, Simulation, simulate

if TYPE_CHECKING:
    from polars._typing import IntoExpr

    _Exprs: TypeAlias = IntoExpr | Iterable[IntoExpr]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def named_spend(places: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A method that takes only the first `places` arguments without a name and refuses others in
    words.
    """

    def named(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > places + 1:
                raise _unnamed(method.__name__, args[places + 1], places)
            return method(*args, **kwargs)

        return called

    return named


def _unnamed(method: str, given: object, places: int) -> InvalidBudget:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    shown = show_input(given) if number else "1"
    before = "..., " * places
    return InvalidBudget(
        f"the spend {show_input(given) if number else f'a {type(given).__name__}'} needs a name",
        where=f".{method}({before}{show_input(given) if number else '...'})",
        remedy=(
            f"write .{method}({before}epsilon={shown})",
            f"write .{method}({before}rho={shown}) in a session with rho",
        ),
    )


# Changes that `collect` makes to a result before it returns it: sorting, choosing rows, new
# columns. They are post-processing, so they cost nothing and are not part of a plan. A `Release`
# keeps the groups in their order, because it is read and combined by that order.


COUNT = "count"
"""The name of the counts in the plan of a query that returns their shares."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a result."""

    words: str  # What the analyst wrote, such as ``.sort(...)``
    of: Callable[[pl.DataFrame], pl.DataFrame]  # Makes the new result from the old one


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to a result before it is returned."""

    steps: tuple[Change, ...] = ()  # The changes, in order
    shares: bool = False  # Whether counts became shares of their total, which have no intervals
    whole: bool = True  # Whether the query may be released without these changes

    def then(self, step: Change, query: Query) -> Changes:
        """With one more change, which is tried on made-up numbers first."""
        result = self.of(make_up_result(query))
        try:
            step.of(result)
        except pl.exceptions.ColumnNotFoundError as error:
            (name,) = re.findall(r'"([^"]*)"', str(error))[:1] or [""]
            raise UnknownColumn(
                f"the released result, which {step.words} changes, has no column {name!r}",
                where=f"query{step.words}",
                remedy=f"{did_you_mean(name, result.columns)}; or write it before the aggregates, "
                "where it is about private rows",
            ) from None
        except DPFrameError:
            raise UnsupportedOperation(
                f"{step.words} after the aggregates changes the released result, which dp "
                "expressions cannot",
                where=f"query{step.words}",
                remedy="put dp expressions into .agg(...)",
            ) from None
        except (*FAILURES, TypeError) as error:
            raise UnsupportedOperation(
                f"Polars cannot apply {step.words} to the released result ({type(error).__name__})",
                where=f"query{step.words}",
                remedy=f"the result has the columns {', '.join(result.columns)}: write what a "
                "Polars DataFrame of these takes",
            ) from None
        return replace(self, steps=(*self.steps, step), whole=False)

    def require_no_interval(self, interval: object) -> None:
        """Refuse intervals for shares of a noisy total."""
        if self.shares and interval is not None:
            raise UnsupportedOperation(
                "shares of a noisy total have no interval",
                where="value_counts(normalize=True).collect(interval=...)",
                remedy=("leave interval= out", "collect the counts: value_counts(column)"),
            )

    def require_whole(self) -> None:
        """Refuse a `Release`, which keeps the result as it was drawn."""
        if not self.whole:
            raise UnsupportedOperation(
                f"a release keeps its result as drawn, and {self.steps[-1].words} changes it",
                where="query.release(...)",
                remedy="use .collect(...); or release the query without it, and change `.frame`",
            )

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The changed result. A change that fails is left out with a warning, because the result
        was already charged.
        """
        for step in self.steps:
            try:
                frame = step.of(frame)
            except FAILURES as error:
                warnings.warn(
                    f"{step.words} failed on the released result ({type(error).__name__}); the "
                    "result comes without it",
                    ResultWarning,
                    stacklevel=2,
                )
                return frame
        return frame


def counts_of_values(counts: str, share: str | None, *, by_size: bool) -> Changes:
    """How `value_counts` hands out its result: the column of counts, largest first if `by_size`,
    or shares of their sum in its place, which are called `share`.
    """

    def sort(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.sort(counts, descending=True, maintain_order=True)

    def divide(frame: pl.DataFrame) -> pl.DataFrame:
        total = float(frame[counts].sum())
        part = pl.col(counts) / total if total > 0 else pl.lit(None, dtype=pl.Float64)
        return frame.with_columns(part.alias(counts)).rename({counts: str(share)})

    steps = [Change(".value_counts(sort=True)", sort)] if by_size else []
    if share is not None:
        steps.append(Change(".value_counts(normalize=True)", divide))
    return Changes(tuple(steps), shares=share is not None)


# -- Public frames in simulations -----------------------------------------------------------------


Frames: TypeAlias = "dict[int, pl.LazyFrame]"
_WHERE = "simulate(public_frame, ...)"


def bind_public_frames(given: object, relation: Relation, source: Source | Sources) -> Frames:
    """Public frames in place of the protected ones, by token. Nothing protected is among them.

    Parameters
    ----------
    given
        A public frame, or ``{frame name: public frame}`` for a query over several.
    relation
        The relation and the source of the query.
    source
        The protected frames: only their schemas are read.
    """
    schemas = source.schemas(relation.token)
    names = {part.token: part.name for part in frames_of(relation)}
    frames = _by_name(given, sorted(set(names.values())), len(names))
    found = {}
    for token, name in names.items():
        if isinstance(frames[name], (NoRawAccess, Source, Sources)):
            raise _private(f"a {type(frames[name]).__name__}")
        if source.holds(frames[name]):
            raise _private("the protected frame itself, or one with rows of it,")
        if isinstance(frames[name], pl.LazyFrame) and origins_of(frames[name]).unknown:
            raise UnsupportedOperation(
                f"the public frame for {name!r} is lazy, so its rows may be the protected ones",
                where=_WHERE,
                remedy="collect it, if it is public: simulate(frame.collect(), ...)",
            )
        found[token] = _fitting(_public(frames[name]), schemas[token], name)
    return found


def _by_name(given: object, names: list[str], frames: int) -> Mapping[str, object]:
    if frames > len(names):
        raise UnsupportedOperation(
            f"two frames of the query are named {names[0]!r}, so none can stand in for one of them",
            where=_WHERE,
            remedy="give them different names: session.protect(..., name=...)",
        )
    if not isinstance(given, Mapping):
        if frames == 1:
            return {names[0]: given}
        raise UnsupportedOperation(
            f"the query is over {frames} private frames, and one public frame is given",
            where=_WHERE,
            remedy=f"give one for each: {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    if set(given) != set(names):
        raise UnsupportedOperation(
            f"public frames are given for {', '.join(map(repr, given)) or 'none'}, and the query "
            f"is over {', '.join(map(repr, names))}",
            where=_WHERE,
            remedy=f"give one for each: {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    return given


def _public(frame: object) -> pl.LazyFrame:
    with suppress(UnsupportedOperation):
        public = protected_source(frame)
        if public.engine is POLARS:
            data: pl.LazyFrame = public.opened(0).data[0]
            return data
    raise UnsupportedOperation(
        f"a simulation runs on a public frame of Polars, not on a {type(frame).__name__}",
        where=_WHERE,
        remedy="pass a Polars DataFrame or LazyFrame, or a pyarrow Table or dataset",
    )


def _private(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a simulation runs on public data, and {what} is private",
        where=_WHERE,
        why="the errors of a simulation are published without noise",
        remedy="pass public or synthetic data with the same columns",
    )


def _fitting(public: pl.LazyFrame, wanted: pl.Schema, name: str) -> pl.LazyFrame:
    """The columns of the protected frame, in its order."""
    schema = public.collect_schema()
    for column, dtype in wanted.items():
        if column not in schema:
            raise UnknownColumn(
                f"the public frame for {name!r} has no column {column!r}",
                where=_WHERE,
                remedy="give it one of that name and type, of nulls if the query does not use it",
            )
        if schema[column] != dtype:
            raise UnsupportedOperation(
                f"the column {column!r} of the public frame for {name!r} has type "
                f"{schema[column]}, and the protected one {dtype}",
                where=_WHERE,
                remedy="cast it before",
            )
    return public.select(*wanted)


# -- The query ------------------------------------------------------------------------------------


@all_sealed
class PrivateQuery(NoRawAccess):
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

    __slots__ = ("_asked", "_changes", "_missing_limit", "_payer", "_source")
    _noun = "a private query"
    _written = "query"
    _hints = QUERY_HINTS
    _otherwise = COLLECT

    def __init__(
        self,
        query: Query,  # With limits added, if it needs some
        source: Source | Sources,
        payer: Payer | None,  # None for a query without a session
        missing_limit: MissingLimit | None = None,  # None for a query that lacks no limit
        changes: Changes | None = None,
    ) -> None:
        self._asked = query
        self._source = source
        self._payer = payer
        self._missing_limit = missing_limit
        self._changes = Changes() if changes is None else changes

    @property
    def _query(self) -> Query:
        """The query."""
        if self._missing_limit is not None:
            raise self._missing_limit.refused()
        return self._asked

    @property
    def is_bound(self) -> bool:
        """Whether the query belongs to a session, which pays for it."""
        return self._payer is not None

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
        self._changes.require_no_interval(asked)
        found = self._release(spend, limits, asked, engine, reuse, report_dropped)
        return self._changes.of(found.frame)

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
        self._changes.require_whole()
        return self._release(spend, limits, asked, engine, reuse, report_dropped)

    @named_spend()
    def suggest_limits(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        coverage: Number = 0.95,
        for_spend: Mapping[str, Number] | None = None,
        details: bool = False,
    ) -> pl.DataFrame:
        """Find privately: limits that most individuals keep, bounds for the values that the query
        clamps, and the limits with the least error for counts of individuals. This is a release
        and costs its spend.

        This also works for a query that is refused because it lacks limits. The frame of the
        query is taken without its limits; where groups are listed, with the rows in these alone:
        write that as a filter before your limits, which would count others. Histograms of how
        many rows and groups individuals have are released, and powers of two between which the
        least and the largest values of nearly all individuals lie (`dp_bounds`), or their totals
        for ``per="unit"``.

        Parameters
        ----------
        epsilon, delta, rho
            The spend.
        coverage
            The share of individuals who should lose no rows.
        for_spend
            What the query itself will spend, such as ``{"epsilon": 1}``; left out, the same spend.
        details
            Whether to return every column and every row, also those about limits that are not
            compared.

        Returns
        -------
        polars.DataFrame
            One row per limit: `limit` as you write it, such as ``limit_rows(15)``, and its number
            `n`. `people` is the share of individuals who lose no row, and `rows` the share of rows
            that is kept, both up to noise. `error` is what dropped rows and noise together make
            wrong in one group, as a root of mean squares. `best` marks the limit where that is
            least. For each number that the query clamps, one row has bounds in place of a limit.

            With ``details=True`` all that is known: `limit` and `by` name a limit, and `n` is the
            smallest of 1, 2, ..., 10, 12, 15, 20, 25, 30, ... that this share of individuals keeps.
            `covered` and `covered_rows` are the shares of individuals and rows, the latter of
            groups of individuals for limits on groups. Then one row per number that is clamped:
            `limit` is ``"bounds"``, `by` its first output, and `bounds` the two ends, or null where
            all is lost in noise. Bounds are sought on Polars only; on other engines give the range
            in which values could lie.

            With groups, these have one more row for each way to limit individuals, at the limit
            with the least error for the first output that counts them. `n` is it, or `norm` that of
            ``"limit_norm"``. `bias` is the number of individuals that a group loses on average,
            and `bias_error` its 95% error. `noise` is the 95% error of a group by noise. `error`
            is the root of the squared bias plus the variance of the noise, and `best` marks the
            row where it is least. `note` explains why a way is not compared. If the query counts
            rows or sums them, one more row for the limit on rows with the least error, by the
            rule that finds limits in queries. There `bias` and `noise` are numbers of rows of one
            group.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        InvalidBudget
            When a spend is invalid, or in another measure than the session's.
        """
        spend = Spend(epsilon, delta, rho)
        source, payer = self._source, self._bound()
        return suggest(self._asked, source, payer, spend, coverage, for_spend, details=details)

    @named_spend(1)
    def simulate(
        self,
        public_frame: object,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        runs: int = 100,
    ) -> Simulation:
        """Measure the errors of the plan by many runs on public or synthetic data.

        This charges and records nothing, and reads only `public_frame`. The frame is aggregated
        once, with one choice of the rows and groups that limits drop. Each run draws new noise.

        The result is not private: it reveals `public_frame`. Pass data that anybody may see, never
        the protected data or a copy of it. dpframe refuses the protected object itself and scans of
        a protected file by any path. It cannot recognise a copy, such as the same file read into
        memory again.

        Parameters
        ----------
        public_frame
            A frame with the columns and types of the protected one; other columns are not used. For
            a query over several private frames, a mapping ``{frame name: public frame}``.
        epsilon, delta, rho, accuracy, split
            As for `plan`.
        runs
            How often noise is drawn, at least 2.

        Returns
        -------
        Simulation
            `results` has a row for each run, output and group. `errors` has the bias and root
            mean square of the total error against plain Polars, and how much of it limits and
            clamping cause. `plot()` draws them.

        Raises
        ------
        UnsupportedOperation
            When the frame is private, or frames or types do not fit.
        UnknownColumn
            When the public frame lacks a column.
        InvalidBudget
            As for `plan`.
        EngineError
            When the engine fails.
        """
        if isinstance(runs, bool) or not isinstance(runs, int) or not 2 <= runs <= MOST_RUNS:
            raise UnsupportedOperation(
                f"a simulation has between 2 and {MOST_RUNS} runs, not {show_input(runs)}",
                where="simulate(..., runs=...)",
                remedy="write for example runs=100",
            )
        require_numbers(self._query.aggregates, "simulate(...)", "a simulation is of their errors")
        frames = bind_public_frames(public_frame, self._query.relation, self._source)
        spend = Spend(epsilon, delta, rho, accuracy, split)
        return simulate(prepare_for(self._payer, self._query, spend), frames, runs)

    @named_spend()
    def audit(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        runs: int = 10_000,
        confidence: Number = 0.95,
    ) -> Audit:
        """Run the plan on worst-case neighbours to prove a lower bound on its epsilon.

        dpframe builds two frames that differ in one individual. It tries the values in the query,
        values next to them and extremes, and uses those that change the plan's exact tables the
        most. The whole pipeline runs on both many times. The event that best distinguishes the
        frames gives a lower bound on epsilon. This charges nothing and reads no protected data.

        Parameters
        ----------
        epsilon, delta, rho, accuracy, split
            As for `plan`.
        runs
            How often the plan runs on each of the two frames; half of the runs choose the event,
            the others count it.
        confidence
            With which the lower bound holds.

        Returns
        -------
        Audit
            `claimed` and `proved`, the two frames in words as `neighbours`, how far they move each
            part as `reach`, and `plot()`.

        Raises
        ------
        UnsupportedOperation
            When runs or confidence make no sense.
        InvalidBudget
            As for `plan`.
        EngineError
            When a made-up row makes the query fail: an error of dpframe, please report it.

        Notes
        -----
        Counts of an event bound its probability on either frame (Clopper and Pearson 1934), and
        P <= exp(epsilon) Q + delta bounds epsilon from below (Jagielski, Ullman and Oprea 2020).

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> session = dp.Session(epsilon=1.0)
        >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
        >>> asked = people.filter(pl.col("age") >= 40).dp_count()
        >>> found = asked.audit(epsilon=1, runs=2_000, confidence=0.9999)
        >>> found.claimed, 0.3 < found.proved <= 1, found.refuted
        (1.0, True, False)
        >>> session.spent
        PureDP(epsilon=0)
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        return audit(prepare_for(self._payer, self._query, spend), runs, confidence)

    # -- the result, changed as in Polars -------------------------------------------------------

    # Changes are post-processing of released numbers: they cost nothing, are in no plan, and are
    # tried on made-up numbers before anything is charged. Intervals keep the order of the rows; new
    # columns have none.

    def _then(self, change: Change) -> Self:
        changes = self._changes.then(change, self._asked)
        return type(self)(self._asked, self._source, self._payer, self._missing_limit, changes)

    def _verb(self, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Self:
        return self._then(Change(f".{name}(...)", change))

    def sort(
        self,
        by: _Exprs,
        *more_by: IntoExpr,
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

    def top_k(self, k: int, *, by: _Exprs, reverse: bool | Sequence[bool] = False) -> Self:
        """The rows of the released result with the largest noisy numbers."""
        return self._verb("top_k", lambda frame: frame.top_k(k, by=by, reverse=reverse))

    def bottom_k(self, k: int, *, by: _Exprs, reverse: bool | Sequence[bool] = False) -> Self:
        """The rows of the released result with the smallest noisy numbers."""
        return self._verb("bottom_k", lambda frame: frame.bottom_k(k, by=by, reverse=reverse))

    def with_columns(self, *exprs: _Exprs, **named: IntoExpr) -> Self:
        """Add columns that are computed from the released result, such as shares of a total."""
        return self._verb("with_columns", lambda frame: frame.with_columns(*exprs, **named))

    def select(self, *exprs: _Exprs, **named: IntoExpr) -> Self:
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

    # -- inside ---------------------------------------------------------------------------------

    def _bound(self) -> Payer:
        if self._payer is None:
            raise InvalidBudget(
                "the query belongs to no session, so there is no budget to charge",
                remedy="run it with session.collect(query, epsilon=...)",
            )
        return self._payer

    def _plan(self, spend: Spend, limits: Limits, report_dropped: bool) -> Plan:
        return self._bound().prepare(self._batch(spend, limits, report_dropped), spend).plan

    def _batch(self, spend: Spend, limits: Limits, report_dropped: bool) -> Queries:
        """The query, with what finds the limit that it lacks and counts dropped rows."""
        require_limits(limits)
        if limits is not None and self._missing_limit is not None:
            require_amount(spend)
            return Queries.searching(search_of(self._missing_limit, report_dropped=report_dropped))
        return with_dropped(self._query) if report_dropped else Queries((self._query,))

    def _release(
        self,
        spend: Spend,
        limits: Limits,
        interval: Intervals | None,
        engine: PolarsMode,
        reuse: Reuse,
        report_dropped: bool,
    ) -> Release:
        payer, repeat = self._bound(), ReusePolicy(reuse)
        batch = self._batch(spend, limits, report_dropped)
        data = [self._source] * len(batch.queries)
        found = payer.release(batch, data, spend, interval, engine, repeat)
        return replace(found[0], frame=with_share(found.frames)) if report_dropped else found[0]

    def __repr__(self) -> str:
        outputs = ", ".join(f"{o.name}={o.words}" for o in self._asked.outputs)
        return f"<PrivateQuery of {self._asked.relation.name!r}: {outputs}>"

    def _repr_html_(self) -> str:
        return query_html(self._asked, self.is_bound)


def parts(query: PrivateQuery) -> tuple[Query, Source | Sources, Payer | None]:
    """A query that lacks no limit, its data, and its payer."""
    return query._query, query._source, query._payer


def owner_of(query: PrivateQuery) -> Payer | None:
    """Who pays for a query; None where it belongs to no session."""
    return query._payer


def limit_of(query: PrivateQuery) -> MissingLimit | None:
    """The limit that a query lacks."""
    return query._missing_limit


def with_changes(query: PrivateQuery, changes: Changes) -> PrivateQuery:
    """The same query with other changes to its result."""
    return PrivateQuery(query._asked, query._source, query._payer, query._missing_limit, changes)


def require_interval(queries: object, interval: Intervals | None) -> None:
    """Refuse an interval where a result is handed out without one."""
    for query in queries if isinstance(queries, (list, tuple)) else [queries]:
        if isinstance(query, PrivateQuery):
            query._changes.require_no_interval(interval)


def require_unchanged(queries: object) -> None:
    """Refuse a release where the analyst changes the result that is handed out."""
    for query in queries if isinstance(queries, (list, tuple)) else [queries]:
        if isinstance(query, PrivateQuery):
            query._changes.require_whole()


def change_result(query: PrivateQuery, frame: pl.DataFrame) -> pl.DataFrame:
    """The result of a query with the changes of the analyst."""
    return query._changes.of(frame)


# -- Several queries ------------------------------------------------------------------------------


_LIST = "session.collect([...])"
_MOST = 1000


def require_query(query: object) -> None:
    """Refuse what is no query."""
    if not isinstance(query, PrivateQuery):
        raise UnsupportedOperation(
            f"a session runs private queries, not a {type(query).__name__}",
            remedy="write frame.agg(...) or frame.dp_count(); for several queries a list of them",
        )


def batch_of(
    given: PrivateQuery | Sequence[PrivateQuery],
    weights: Sequence[Number] | None,
    limits: Limits,
    spend: Spend,
    payer: Payer,
) -> tuple[Queries, list[Source | Sources], Payer]:
    """A query or the queries of a list, their data, and who pays for them; before them the search
    for the limit that some lack.
    """
    require_limits(limits)
    if isinstance(given, PrivateQuery):
        refuse_weights(weights)
        given = [given]
    if not isinstance(given, (list, tuple)):
        require_query(given)  # which refuses it
    _require_queries(given)
    asked = [
        q._query if limits is None or q._missing_limit is None else q._missing_limit for q in given
    ]
    payers = [payer.responsible_for(query._payer) for query in given]
    if any(other is not payers[0] for other in payers):
        raise InvalidBudget(
            "the queries are of different parts of a divided frame, and each part has "
            "its own budget",
            where=_LIST,
            remedy=(
                "collect the queries of each part separately",
                "group the whole frame instead of dividing it",
            ),
        )
    shares, sources = _shares(weights, len(given)), [query._source for query in given]
    full = [one for one in asked if isinstance(one, Query)]
    if len(full) == len(asked):
        return Queries(tuple(full), shares), sources, payers[0]
    require_amount(spend)
    lacking = next(number for number, one in enumerate(asked) if isinstance(one, MissingLimit))
    search = search_of_several(asked, shares)
    return Queries.searching(search), [sources[lacking], *sources], payers[0]


def refuse_weights(weights: object) -> None:
    """Refuse the shares of several queries where there is one."""
    if weights is not None:
        raise InvalidBudget(
            "weights= are shares of several queries, and this is one query",
            where="weights=...",
            remedy=(
                "give a list of queries",
                "write weight= in dp expressions, for the outputs of one query",
            ),
        )


def _require_queries(given: Sequence[object]) -> None:
    if not given:
        raise UnsupportedOperation(
            "the list of queries is empty",
            where=_LIST,
            remedy="write for example [people.dp_count()]",
        )
    if len(given) > _MOST:
        raise UnsupportedOperation(
            f"{len(given)} queries are too many: one plan has at most {_MOST}",
            where=_LIST,
            remedy=("write several outputs in one query", "group by a column"),
        )
    for number, query in enumerate(given, start=1):
        if isinstance(query, (list, tuple)):
            raise UnsupportedOperation(
                f"query {number} is a list: lists of queries are not nested",
                where=_LIST,
                remedy="write all queries in one list",
            )
        require_query(query)


def _shares(weights: Sequence[Number] | None, queries: int) -> tuple[Fraction, ...] | None:
    if weights is None:
        return None
    if not isinstance(weights, (list, tuple)) or len(weights) != queries:
        raise InvalidBudget(
            f"there is one weight for each of the {queries} queries, not {show_input(weights)}",
            where="weights=...",
            remedy=f"write for example weights={[1] * queries}",
        )
    return tuple(_share(weight) for weight in weights)


def _share(weight: Number) -> Fraction:
    try:
        found = exact(weight)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        found = Fraction(0)
    if found <= 0:
        raise InvalidBudget(
            f"the weight of a query is a number above 0, not {show_input(weight)}",
            where="weights=...",
            remedy="write for example weights=[2, 1], which lets the first query cost twice "
            "as much",
        )
    return found
