"""The source and payer of a query, and everything that can be done with a query except to run
it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.keys import require_numbers
from dpframe.api.auto_limits import Limits, require_amount, require_limits, search_of
from dpframe.api.named_spend import named_spend
from dpframe.api.no_raw_access import NoRawAccess
from dpframe.api.payer import Payer, prepare_for
from dpframe.api.public import bind_public_frames
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.api.suggest import suggest
from dpframe.api.unlimited import Unlimited
from dpframe.audit import Audit, audit
from dpframe.choose import Split
from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.infer import Queries
from dpframe.sealed import all_sealed
from dpframe.simulate import Simulation, simulate
from dpframe.simulate.runs import MOST_RUNS


@all_sealed
class AskedQuery(NoRawAccess):
    """A query with its data and payer: suggestions, simulations and audits.

    Parameters
    ----------
    query
        The query. If it needs limits, this is the query with limits added.
    source
        The data.
    payer
        The session's state that is charged; None for a query without a session.
    unlimited
        For a query that needs limits: its refusal, and the query with limits added.
    """

    __slots__ = ("_asked", "_payer", "_source", "_unlimited")

    def __init__(
        self,
        query: Query,
        source: Source | Sources,
        payer: Payer | None,
        unlimited: Unlimited | None = None,
    ) -> None:
        self._asked = query
        self._source = source
        self._payer = payer
        self._unlimited = unlimited

    @property
    def _query(self) -> Query:
        """The query.

        Raises
        ------
        UnboundedSensitivity
            When an individual may have any number of rows or groups.
        """
        if self._unlimited is not None:
            raise self._unlimited.refused()
        return self._asked

    @property
    def is_bound(self) -> bool:
        """Whether the query belongs to a session, which pays for it."""
        return self._payer is not None

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
                f"a simulation has between 2 and {MOST_RUNS} runs, not {as_given(runs)}",
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

    def _searched(
        self, limits: Limits, spend: Spend, *, report_dropped: bool = False
    ) -> Queries | None:
        """The query with the search for the limit that it lacks; None where none is sought."""
        require_limits(limits)
        if limits is None or self._unlimited is None:
            return None
        require_amount(spend)
        return Queries.searching(search_of(self._unlimited, report_dropped=report_dropped))

    def _bound(self) -> Payer:
        if self._payer is None:
            raise InvalidBudget(
                "the query belongs to no session, so there is no budget to charge",
                remedy="run it with session.collect(query, epsilon=...)",
            )
        return self._payer
