"""Queries: lazy until `collect`, which checks the budget, charges it, runs and adds noise."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.api.no_raw_access import NoRawAccess
from dpframe.api.payer import Payer, prepare_for
from dpframe.api.public import bind_public_frames
from dpframe.api.release import Release
from dpframe.api.reuse import Repeat, Reuse
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.api.suggest import suggest
from dpframe.audit import Audit, audit
from dpframe.choose import Split
from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.report import Format, Plan
from dpframe.report.notebook import query_html
from dpframe.sealed import all_sealed
from dpframe.simulate import Simulation, simulate
from dpframe.simulate.runs import MOST_RUNS

_COLLECT = "the result comes from .collect(epsilon=...), a Polars DataFrame"
_HINTS = {
    **dict.fromkeys(
        ("filter", "with_columns", "select", "group_by", "rename", "drop", "cast", "agg", "join"),
        "write it before the aggregates, or use it on the released result of .collect(epsilon=...)",
    ),
}


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

    __slots__ = ("_payer", "_query", "_source")
    _noun = "a private query"
    _written = "query"
    _hints = _HINTS
    _otherwise = _COLLECT

    def __init__(self, query: Query, source: Source | Sources, payer: Payer | None) -> None:
        self._query = query
        self._source = source
        self._payer = payer

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
    ) -> Plan:
        """What `collect` with the same spend would do. Touches no data and charges nothing.

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

        Raises
        ------
        InvalidBudget
            When the spend is empty, not positive, or in another measure, or no spend is accurate
            enough.
        """
        return self._plan(Spend(epsilon, delta, rho, accuracy, split))

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        format: Format = "text",
        size: int | None = None,
    ) -> str:
        """`plan(...).explain(format, size=size)`: see `Plan.explain`."""
        plan = self._plan(Spend(epsilon, delta, rho, accuracy, split))
        return plan.explain(format, size=size)

    def collect(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        interval: Number | None = None,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
    ) -> pl.DataFrame:
        """Check the budget, charge it, compute, add noise.

        Each call is a new release with a new cost, but with ``reuse="same"``.

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
            A confidence such as 0.95 adds columns `<name>_low` and `<name>_high` after each number:
            the exact result for the clamped values lies between them with that confidence, for each
            number on its own. It is post-processing and costs nothing. Selections have no interval;
            `Plan.accuracy` says how far the chosen score may be from the best.
        engine
            How Polars runs a Polars frame: one of its engines by name, or a function that is given
            a LazyFrame and returns its DataFrame, for executors elsewhere. What it is given yields
            exact numbers, so whoever runs it must be trusted with the data.
        reuse
            ``"same"``: of a session with ``keep_releases=True``, hand out the newest result of the
            same query that is kept, at no cost: of the same plan (so the same spend), outputs in
            the same order, interval, and frames of the same names in the same budget. Names must
            have been given, and stand for the data: a frame of other rows needs another name.
            Nothing is charged for what was charged before and is lost, or is being computed.

        Raises
        ------
        InvalidBudget
            When the spend is empty, not positive, or in another measure.
        BudgetExceeded
            When it does not fit what remains; no data was read then.
        EngineError
            When the engine fails; the charge stays.
        LedgerError
            When the charge, or what became of it, cannot be recorded; nothing comes out. With
            ``reuse="same"`` also when the result was lost or changed, or is being computed.
        PlanMismatch
            When the session requires approval and nobody approved this plan.
        UnsupportedOperation
            When nothing is kept that could be reused, or a frame has no name.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        return self._release(spend, interval, engine, reuse).frame

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        interval: Number | None = None,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
    ) -> Release:
        """As `collect`, with the plan and the cost beside the frame, and `Release.write`."""
        return self._release(Spend(epsilon, delta, rho, accuracy, split), interval, engine, reuse)

    def suggest_limits(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        coverage: Number = 0.95,
        for_spend: Mapping[str, Number] | None = None,
    ) -> pl.DataFrame:
        """Limits that most individuals keep, bounds of what the query clamps, and the limits under
        which counts of individuals err least, found privately; it is a release and costs its spend.

        The frame of the query is taken without its limits; where groups are listed, with the rows
        in these alone: write that as a filter before your limits, which would count others.
        Histograms of how many rows and groups individuals have are released, and powers of two
        between which the least and the largest values of nearly all individuals lie (`dp_bounds`),
        or their totals for ``per="unit"``.

        Parameters
        ----------
        epsilon, delta, rho
            The spend.
        coverage
            The share of individuals of which nothing should be dropped.
        for_spend
            What the query itself will spend, such as ``{"epsilon": 1}``; left out, the same spend.

        Returns
        -------
        polars.DataFrame
            One row per limit: `limit` and `by` name it, `n` is the least of 1, 2, ..., 10, 12, 15,
            20, 25, 30, ... that so large a share keeps, `covered` that share, up to noise. Then one
            row per number that is clamped: `limit` is ``"bounds"``, `by` its first output, and
            `bounds` the two ends, or null where all is lost in noise. Bounds are sought on Polars
            only; on other engines give the range in which values could lie.

            With groups, one row more for each way to limit individuals, by which the first output
            that counts them errs least: `n`, or `norm` of ``"limit_norm"``; `bias`, the individuals
            that a group loses on average, and `bias_error`, how far off that is, with 95%; `noise`,
            the error of a group by noise, with 95%; `error`, the root of the squared bias plus the
            variance of the noise, least where `best` is true; `note`, why a way is not compared.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        InvalidBudget
            When a spend is none, or in another measure than the session's.
        """
        spend = Spend(epsilon, delta, rho)
        return suggest(self._query, self._source, self._bound(), spend, coverage, for_spend)

    @property
    def is_bound(self) -> bool:
        """Whether the query belongs to a session, which pays for it."""
        return self._payer is not None

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
        """Run the same plan on public or synthetic data many times, and see how far off it is.

        Nothing is charged or recorded, and no protected data is read: rows come from the argument
        alone. It is aggregated once, with one choice of which rows and groups limits drop, and
        noise is drawn again for each run.

        The result is not private: it tells about the frame that is given as it is. So give data
        that anybody may see, never the protected data or a copy of it. The protected object itself
        is refused, and so is a path of a protected file, but a copy, or the same file scanned
        again, cannot be told from public data.

        Parameters
        ----------
        public_frame
            A frame with the columns and types of the protected one; others are not used. For a
            query over several private frames a mapping ``{frame name: public frame}``.
        epsilon, delta, rho, accuracy, split
            As for `plan`.
        runs
            How often noise is drawn, at least 2.

        Returns
        -------
        Simulation
            `results`, with a row for each run, output and group; `errors`, which sums them up: the
            bias and root mean square of the total error against plain Polars, and what of it limits
            and clamping make; and `plot()`.

        Raises
        ------
        UnsupportedOperation
            When something private is given, or frames or types do not fit.
        UnknownColumn
            When the public frame lacks a column.
        InvalidBudget
            As for `plan`.
        EngineError
            When the engine fails.
        """
        if isinstance(runs, bool) or not isinstance(runs, int) or not 2 <= runs <= MOST_RUNS:
            raise UnsupportedOperation(
                f"a simulation has between 2 and {MOST_RUNS} runs, not {as_given(runs)}",
                where="simulate(..., runs=...)",
                remedy="write for example runs=100",
            )
        frames = bind_public_frames(public_frame, self._query.relation, self._source)
        spend = Spend(epsilon, delta, rho, accuracy, split)
        return simulate(prepare_for(self._payer, self._query, spend), frames, runs)

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
        """Run the same plan on worst-case neighbours, and see which epsilon that proves: for a
        reviewer who does not want to believe.

        Two frames that differ in one individual are made for the plan: values that the query speaks
        of, values beside them and extremes are tried, and those kept that move its exact tables
        the most. The whole pipeline runs on both, again and again, and the event that tells them
        apart best gives a lower bound on epsilon. Nothing is charged, no protected data is read.

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
            When a made-up row makes the query fail, which must not be: report it.

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

    def _plan(self, spend: Spend) -> Plan:
        return self._bound().prepare(self._query, spend).plan

    def _release(
        self,
        spend: Spend,
        interval: Number | None = None,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
    ) -> Release:
        payer, repeat = self._bound(), Repeat(reuse)
        return payer.release(self._query, self._source, spend, interval, engine, repeat)

    def _bound(self) -> Payer:
        if self._payer is None:
            raise InvalidBudget(
                "the query belongs to no session, so there is no budget to charge",
                remedy="run it with session.collect(query, epsilon=...)",
            )
        return self._payer

    def __repr__(self) -> str:
        outputs = ", ".join(f"{o.name}={o.words}" for o in self._query.outputs)
        return f"<PrivateQuery of {self._query.relation.name!r}: {outputs}>"

    def _repr_html_(self) -> str:
        return query_html(self._query, self.is_bound)


def parts(query: PrivateQuery) -> tuple[Query, Source | Sources, Payer | None]:
    """What a session needs of a query: what it asks, of which data, and who pays for it."""
    return query._query, query._source, query._payer
