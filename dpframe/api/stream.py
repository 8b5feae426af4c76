"""Streams: running totals that are published period after period, for one charge."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

import polars as pl

from dpframe.api.payer import Payer, Spend
from dpframe.api.release import warn_of_queries
from dpframe.api.source import Source, Sources
from dpframe.core import windows
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, show_input
from dpframe.errors import LedgerError, TooEarly, UnsupportedOperation, require
from dpframe.frames.nights import Schedule
from dpframe.ledger.streaming import STAYS, digest_of
from dpframe.ledger.streams import Batch, OpenedStream, StreamOpening
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.optimise.prepared import Prepared
from dpframe.plan import confidence_of
from dpframe.report import Plan
from dpframe.sealed import all_sealed
from dpframe.streaming import (
    Drawn,
    RunningResults,
    definition_of,
    describe_opening,
    draw,
    results_of,
    resume,
    types_of,
)

Contents: TypeAlias = "list[tuple[Batch, Drawn | None]]"
"""The draws; None for a draw that is lost or was changed since it was recorded."""

LOG = logging.getLogger("dpframe")


@dataclass(frozen=True, slots=True, eq=False)
class StreamRequest:
    """What a stream is of."""

    name: str
    prepared: Prepared
    schedule: Schedule
    monotone: bool
    source: Source | Sources
    spend: Spend

    @property
    def opening(self) -> StreamOpening:
        """What the ledger is to keep of it."""
        definition = definition_of(self.prepared, self.schedule, self.monotone)
        kept = describe_opening(self.prepared, self.schedule, self.monotone, self.spend.fields())
        types = types_of(self.prepared, self.schedule)
        return StreamOpening(self.name, definition, self.schedule.periods, kept, types)

    def as_opened(self, opened: OpenedStream) -> StreamRequest:
        """The same as it was planned when it was opened, which another version may have done."""
        definition = definition_of(self.prepared, self.schedule, self.monotone)
        if opened.kept is None or opened.definition == definition:
            return self
        before = resume(self.prepared, opened.kept, self.name, self.prepared.plan.cost)
        return replace(self, prepared=before)

    def due(self, number: int) -> dt.datetime | None:
        """From when on a period may be released, in UTC; None for at any time."""
        columns = self.prepared.query.relation.facts.columns
        return self.schedule.due(number, columns[self.schedule.by].dtype.zone)

    @property
    def results(self) -> RunningResults:
        """What is released of it."""
        return results_of(self.prepared, self.schedule, self.monotone)


@all_sealed
class Stream:
    """Running totals of counts and sums, published period after period; see `Session.stream`.

    Guarantee
    ---------
    All results of all periods together cost what the plan states, no matter which periods are
    released, when and how often. Each sum gets noise once, is stored before it is released, and
    stays unchanged afterwards. `NightlySums` has the proof.
    """

    def __init__(self, asked: StreamRequest, payer: Payer, opened: OpenedStream) -> None:
        self._asked = asked.as_opened(opened)
        self._payer = payer
        self._opened = opened

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self._asked.name

    @property
    def plan(self) -> Plan:
        """The plan of the stream, with the cost of all periods."""
        return self._asked.prepared.plan

    @property
    def cost(self) -> Budget:
        """What was charged, once, for all periods."""
        return self.plan.cost

    @property
    def periods(self) -> pl.DataFrame:
        """One row per period: `period` is its first day, `drawn` whether its sums were drawn, and
        `lost` whether the draw was lost.
        """
        schedule = self._asked.schedule
        opened = self._now()
        lost = self._lost(opened)
        numbers = range(schedule.periods)
        return pl.DataFrame(
            {
                "period": pl.Series(schedule.dates(), dtype=pl.Date),
                "drawn": [number < opened.drawn for number in numbers],
                "lost": [number in lost for number in numbers],
            }
        )

    def due(self, period: dt.date) -> dt.datetime | None:
        """The earliest time in UTC to release a period: its end plus the `delay`. None without a
        delay, because it may then be released at any time.

        Parameters
        ----------
        period
            A date in it.

        Raises
        ------
        UnsupportedOperation
            When the stream does not have the period.
        """
        return self._asked.due(self._asked.schedule.number(period))

    def release(self, period: dt.date, *, engine: PolarsMode = "auto") -> pl.DataFrame:
        """The numbers of each group in a period, and the running totals up to it.

        The first release of a period draws and stores this period and all earlier ones without a
        draw, from one read of the data. Later calls return the stored numbers unchanged. Neither
        charges anything. Release a period when it is over, or some days later: later rows count in
        the totals of the next period that is drawn. A stream with a `delay` draws no period before
        it is due.

        Parameters
        ----------
        period
            A date in it.
        engine
            As for `PrivateQuery.collect`.

        Returns
        -------
        polars.DataFrame
            Group keys in their public order, `period`, and for each output `n` of the query the
            period's own estimate `n` and the running total `n_total`.

        Raises
        ------
        UnsupportedOperation
            When the stream does not have the period.
        TooEarly
            When its `delay` has not passed; `due` of the error is the earliest time for its
            release. Nothing was read or drawn then.
        EngineError
            When the engine fails; nothing was drawn then.
        LedgerError
            When the draw cannot be stored or recorded; nothing is released.
        BudgetExceeded
            When it is not drawn, and the stream or its budget was closed.
        PlanMismatch
            When it is not drawn, and the approval of the plan has lapsed.
        """
        return self._frame(None, self._asked.schedule.number(period), engine)

    def window(self, period: dt.date, length: int, *, engine: PolarsMode = "auto") -> pl.DataFrame:
        """The numbers of `length` periods together: the running total up to the last one, minus the
        total before the first one. The result has no columns of running totals.

        Parameters
        ----------
        period
            A date in the last period.
        length
            The number of periods; periods before the stream began count as empty.
        engine
            As for `release`.

        Raises
        ------
        UnsupportedOperation
            When the length is not a positive integer, and as for `release`.
        """
        number = self._asked.schedule.number(period)
        return self._frame(_first(number, length), number, engine)

    def accuracy(
        self, period: dt.date, confidence: Number = 0.95, *, window: int | None = None
    ) -> dict[str, float]:
        """A bound on the error of each number of a period, which holds with the given confidence
        for each number and group separately. It is known in advance.

        It covers noise alone, relative to the rows at the time of each draw. If a draw was lost,
        its period is estimated with an unknown error, which later totals depend on less and less.

        Parameters
        ----------
        period
            A date in it.
        confidence
            Between 0 and 1. For totals that never fall the bound holds for all periods up to this
            one together.
        window
            The number of periods, as for `Stream.window`; None for `release`.

        Returns
        -------
        dict[str, float]
            The bounds, by the names of the columns of numbers.

        Raises
        ------
        UnsupportedOperation
            When the stream does not have the period.
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        asked, number = self._asked, self._asked.schedule.number(period)
        first = None if window is None else _first(number, window)
        lost = frozenset(self._lost(self._now()))
        return asked.results.errors((first, number), confidence_of(confidence), lost)

    def _frame(self, first: int | None, last: int, engine: PolarsMode) -> pl.DataFrame:
        opened, results = self._drawn_until(last, engine), self._asked.results
        found = self._contents(opened)
        if lost := [number for number in self._lost(opened, found) if number <= last]:
            LOG.warning(
                "the stream %r has lost what was drawn for %d of its periods; they are guessed",
                self.name,
                len(lost),
            )
        rows = results.rows_of([(batch.last, content) for batch, content in found])
        warn_of_queries([self._asked.prepared.query])
        return results.frame(rows, (first, last))

    def _lost(self, opened: OpenedStream, found: Contents | None = None) -> list[int]:
        """The numbers of periods whose draws are lost."""
        return [
            number
            for batch, content in found or self._contents(opened)
            if content is None
            for number in range(batch.first, batch.last + 1)
        ]

    def _drawn_until(self, number: int, engine: PolarsMode) -> OpenedStream:
        """The stream once all that is due was drawn, kept and recorded."""
        asked, book = self._asked, self._payer.ledger.streams
        while (opened := self._now()).drawn <= number:
            terms = self._payer.terms(asked.prepared.plan)
            book.require_drawing(opened, terms)
            (content,) = book.contents.rows(opened.number, [opened.drawn])
            if content is None:  # it was not drawn, or not kept
                self._require_due(number)
                _require_undoubted(opened)
                token = asked.prepared.query.relation.token
                execution = asked.source.opened(token, engine)
                drawn = draw(asked.prepared, asked.schedule, execution, opened.drawn, number)
                drawn = replace(drawn, seal=book.seal(opened, drawn.values))
                content = book.contents.keep_rows(opened.number, opened.drawn, drawn.to_bytes())
            made = Drawn.from_bytes(content)
            right = made is not None and made.seal == book.seal(opened, made.values)
            if made is None or not right or made.first != opened.drawn:
                place = book.contents.place_of_rows(opened.number, opened.drawn)
                raise LedgerError(
                    f"what lies {place} was not drawn by this ledger for the stream {self.name!r}, "
                    "or was changed, or an earlier version or another key sealed it before it was "
                    "recorded",
                    remedy="move it away, and release again, which draws the period; nothing was "
                    "handed out of it",
                )
            book.add(opened, Batch(made.first, made.last, digest_of(content)), terms)
        return opened

    def _require_due(self, number: int) -> None:
        """Refuse to draw a period before its time; earlier ones are due before it."""
        due = self._asked.due(number)
        if due is None or due <= windows.now():
            return
        schedule = self._asked.schedule
        first, delay = schedule.first(number), schedule.delay.words() if schedule.delay else ""
        raise TooEarly(
            f"the period of {first} may be released from {due:%Y-%m-%d %H:%M:%S} UTC on",
            due=due,
            where=f"stream {self.name!r}, delay={delay!r}",
            why="the stream waits for rows that come late; nothing was drawn or charged",
            remedy="release it after that time",
        )

    def _now(self) -> OpenedStream:
        found = self._payer.ledger.streams.find(self.name)
        require(found is not None and found.number == self._opened.number, STAYS)
        assert found is not None
        return found

    def _contents(self, opened: OpenedStream) -> Contents:
        """The draws; None for a draw that is lost or was changed since it was recorded."""
        firsts = [batch.first for batch in opened.batches]
        contents = self._payer.ledger.streams.contents.rows(opened.number, firsts)
        found: Contents = []
        for batch, content in zip(opened.batches, contents, strict=True):
            if content is not None and digest_of(content) != batch.digest:
                content = None
            found.append((batch, None if content is None else Drawn.from_bytes(content)))
        return found

    def __repr__(self) -> str:
        schedule = self._asked.schedule
        return f"<Stream {self.name!r}: {schedule.words()}, for {self.cost.words()}>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a stream cannot be pickled or copied",
            where="stream",
            remedy="open it by its name in the other process: session.stream(...)",
        )


def _require_undoubted(opened: OpenedStream) -> None:
    """Refuse to draw what may have been drawn already, of a ledger that may be a copy."""
    if opened.doubted is not None:
        raise LedgerError(
            f"the ledger was accepted without its head file, so the stream {opened.name!r} may "
            f"have drawn more than the {opened.drawn} periods that it knows of: drawn twice, they "
            "would cost twice, and one charge was paid",
            where=f"stream {opened.name!r}",
            remedy=(
                "put the rows that were drawn since back into the folder of the "
                "streams, and release again",
                "pay for all periods once more: `dpframe ledger redraw --charge-again`",
            ),
        )


def _first(number: int, length: object) -> int:
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise UnsupportedOperation(
            f"a window has a positive number of periods, not {show_input(length)}",
            where="window(..., length)",
            remedy="write for example 7",
        )
    return max(0, number + 1 - length)
