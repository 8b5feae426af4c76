"""Sessions as those use them who publish on a schedule."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from dpframe.api.collecting_session import CollectingSession
from dpframe.api.payer import Payer
from dpframe.api.query import PrivateQuery, query_or_unlimited
from dpframe.api.several import asked_in_full, require_query
from dpframe.api.spend import Spend
from dpframe.api.stream import Stream, StreamAsked
from dpframe.api.unlimited import Unlimited
from dpframe.choose import Split
from dpframe.core.exact import Number
from dpframe.errors import UnsupportedOperation
from dpframe.frames.delays import Delay
from dpframe.frames.nights import no_limit_of_nights, require_streamable
from dpframe.frames.schedule import Schedule
from dpframe.ledger.parts import no_stream_of_part
from dpframe.ledger.record import short_text
from dpframe.report import Plan
from dpframe.sealed import all_sealed
from dpframe.streaming import rehearse, with_rising_totals


@all_sealed
class StreamingSession(CollectingSession):
    """What a `Session` does with streams."""

    def stream(
        self,
        name: str,
        query: PrivateQuery,
        *,
        by: str,
        every: str = "1d",
        start: dt.date,
        periods: int,
        delay: str | dt.timedelta | None = None,
        monotone: bool = False,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
    ) -> Stream:
        """Running totals of a query, published period after period for one charge.

        The first call with a name charges the spend for all periods at once. Later calls, also in
        other processes, open the stream again and charge nothing. `Stream.release` publishes a
        period.

        Parameters
        ----------
        name
            The name of the stream, within a budget of the ledger.
        query
            A query of this session with counts and sums, of all rows or by public keys.
        by
            The column of dates or datetimes that decides the period of a row. A datetime with a
            zone counts by the date there. Rows in no period, and rows without a date, are not
            counted.
        every
            How long a period is: ``"1d"``, ``"1w"`` from Monday on, ``"1mo"``, ``"1q"`` or
            ``"1y"``.
        start, periods
            The first day of the first period, and the number of periods.
        delay
            How long a period waits after its end before it may be released, so that late rows
            count: a duration as Polars writes it (``"2d"``, ``"36h"``, ``"1mo"``) or a timedelta.
            Periods end at midnight in the time zone of the column, or in UTC if it has none, by the
            machine's clock. It does not change cost or guarantee. None releases periods at any
            time.
        monotone
            Whether totals never fall: a total below the one before is replaced by it. This is
            post-processing, which biases totals slightly upwards.
        epsilon, delta, rho, accuracy, split
            As for `PrivateQuery.plan`. An accuracy is that of the total with the largest error.

        Raises
        ------
        UnsupportedOperation
            When the query has a step, aggregate or unit without a known proof for streams; the
            message names it.
        UnboundedSensitivity
            When no limit bounds how much one individual adds over all nights.
        LedgerError
            When a stream of this name was opened with another query, schedule or spend.
        BudgetExceeded
            When the cost exceeds the remaining budget.
        PlanMismatch
            When the session requires approval and the plan has none: `plan_stream` returns the
            plan.

        Examples
        --------
        >>> import datetime as dt
        >>> import polars as pl, dpframe as dp
        >>> days = pl.DataFrame({"day": [dt.date(2027, 1, d) for d in (1, 1, 2, 3)]})
        >>> session = dp.Session(rho=0.1)
        >>> signups = session.protect(days, unit=dp.Rows()).agg(dp.count().alias("n"))
        >>> first = dt.date(2027, 1, 1)
        >>> stream = session.stream("signups", signups, by="day", start=first, periods=3, rho=0.1)
        >>> stream.release(first).columns
        ['period', 'n', 'n_total']
        >>> session.spent
        ZCDP(rho=0.1)
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        schedule = _schedule(by, every, start, periods, delay)
        asked, payer = self._asked_stream(name, query, schedule, monotone, spend)
        relation = asked.prepared.query.relation
        if payer.streamed.setdefault(name, relation.token) != relation.token and not relation.named:
            raise _of_any_frame(name)
        if (
            payer.ledger.streams.find(name) is None
        ):  # a failure would otherwise come after the charge
            rehearse(asked.prepared, schedule, asked.source.opened(relation.token, "auto"))
        return Stream(asked, payer, payer.open_stream(asked.prepared, asked.opening))

    def plan_stream(
        self,
        query: PrivateQuery,
        *,
        by: str,
        every: str = "1d",
        start: dt.date,
        periods: int,
        delay: str | dt.timedelta | None = None,
        monotone: bool = False,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
    ) -> Plan:
        """The plan that `stream` charges. Reads no data and charges nothing. See `stream` for
        parameters and errors.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        schedule = _schedule(by, every, start, periods, delay)
        return self._asked_stream("plan", query, schedule, monotone, spend)[0].prepared.plan

    def _asked_stream(
        self, name: str, query: PrivateQuery, schedule: Schedule, monotone: bool, spend: Spend
    ) -> tuple[StreamAsked, Payer]:
        _require_limits(query, schedule)
        asked, source, payer = asked_in_full(query, self._payer)
        if payer.whole is not None:
            raise no_stream_of_part()
        if payer.ledger.identities and not asked.relation.named:
            raise _of_any_frame(name)
        prepared = payer.prepare_stream(asked, schedule, spend)
        if monotone:
            prepared = with_rising_totals(prepared)
        made = StreamAsked(
            short_text(name, "name"), prepared, schedule, bool(monotone), source, spend
        )
        return made, payer


def _schedule(
    by: str, every: str, start: dt.date, periods: int, delay: str | dt.timedelta | None
) -> Schedule:
    return Schedule(by, every, start, periods, None if delay is None else Delay.of(delay))


def _require_limits(query: PrivateQuery, schedule: Schedule) -> None:
    """Refuse a query without limits with those that a stream needs; limits of one night would be
    refused next.
    """
    require_query(query)
    lacking = query_or_unlimited(query, "auto")
    if isinstance(lacking, Unlimited):
        facts = lacking.rows.relation.facts
        require_streamable(facts.unit, schedule.by)
        raise no_limit_of_nights(facts.identifier, schedule.by)


def _of_any_frame(name: str) -> UnsupportedOperation:
    """The refusal of a frame without a name. The same individuals could be in two such frames,
    and each would move the sums of one stream.
    """
    return UnsupportedOperation(
        "a stream reads one frame, and this frame has no name of its own",
        where=f"stream({name!r}, ...)",
        remedy='name it: session.protect(..., name="visits"), and give no other frame this name',
    )
