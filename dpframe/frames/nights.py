"""What one individual adds to sums that are drawn night after night of a frame that grows.

Limits choose among the rows that an individual has. A frame that grows has other rows each night.
So a limit that chooses by a hash may keep one row tonight and another tomorrow, and all nights
together see more of an individual than any one of them. Only what is the same through all nights
may be relied on:

*Rows* (`dp.Rows`). The individual's rows are counted by the promise of the data owner, over all
nights. A row may come late, and be there on some nights only: what it moves on a night is never
more than its period's column has there.

*A limit of rows for each date* (``limit_rows(m, by="day")``). Whichever m rows of a date are kept,
all of them have the same column.

*The first n rows, or the first g dates* (``limit_rows(n, order_by="day")``,
``limit_groups(g, by="day", order_by="day")``), as long as no row vanishes or gets another date. A
row that does not pass a filter before the limit any more has vanished for it: so what steps before
it look at must not change either.

Guarantee
---------
With the coefficients w of the nights (`dpframe.workloads.prefix_sums`), all nights together move by
no more than if the individual had contributions in the first `run` periods, in `keys` keys and
with `rows` rows in each.

Proof
-----
Let the row of night t be drawn from the frame as it was read then, or later. Let j_1 <= j_2 <=
... be the dates of the individual's existing rows (or its different dates). As rows are only ever
added, the i-th least date never rises, so what is kept, the n least, changes on each place only
to an earlier date. A place counts on night t if its date is due, j_i <= t; once it is due it
stays so, for t rises and j_i does not.

*n rows.* Let s be the first night on which place i is due, with the date d <= s. On each later
night t its date is d or earlier, so its coefficient is at most w_{t-d}, for w falls. So place i
moves no night by more than the column of d does, and n places move all nights by no more than n
times the longest column (triangle inequality), for any keys on any night.

*g dates.* The places have different dates on each night. Let place k be due first on night s_k;
then s_1 <= s_2 <= ... and on each later night place i <= k has a date of at most s_k - (k - i). So
on night t it has one of at most D_i(t) = i + min(s_k - k), over all k from i on that are due, which
differ among places. Let D_i be the same over all k that are ever due. If D_i < D_i(t), the least is
that of a k with s_k > t, and then D_i, D_{i+1}, ..., D_k are all the days from D_i up to s_k, which
have all those that places from i on may have on night t. So the ages of the contributions on any
night are no less than those of the fixed dates D_1 < D_2 < ..., which are g at most. Dates before
the first period count nothing, here as there. In sums of a tree, each place is in one sum of a
level at most: the next sum of that level begins after this one has ended, and the place's date
has not risen since.

*Keys.* With m rows of a date in all, whichever keys they are in, norms are at most those of one
key. With m rows in each of K keys, the squares add up to K m^2 times those of one row a date.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Final, cast

import polars as pl

from dpframe.core.exact import show_input
from dpframe.core.tree import Column
from dpframe.core.units import Identifier, Unit
from dpframe.core.windows import NAMES, Every, first_day, number_of
from dpframe.errors import DPFrameError, UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.definition import type_words
from dpframe.frames.groups import Groups
from dpframe.frames.joins import JoinPublic
from dpframe.frames.relation import Relation, Step
from dpframe.frames.row_steps import Drop, DropNulls, Explode, Filter, Rename, Select, WithColumns
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.kernel.moves import DAYS, Through, through_all_nights
from dpframe.rows.temporal import Span, span
from dpframe.workloads import MOST_PERIODS

__all__ = [
    "before_first_limits",
    "first_limits",
    "no_limit_of_nights",
    "require_rowwise",
    "require_streamable",
    "through_nights",
]

# Periods of a stream, and how long each waits after its end for rows that come late.
#
# Waiting gives more accurate results and reveals no more about any person: the cost of a release,
# and the people it protects, do not depend on it.

_UNITS: Final = (("h", 3600 * 10**6), ("m", 60 * 10**6), ("s", 10**6), ("us", 1))
_WHERE: Final = "delay=..."


@dataclass(frozen=True, slots=True)
class Delay:
    """How long after its end a period may be released: months, then days by the clocks of a place,
    then time as it passes.
    """

    months: int  # By the calendar: midnight stays midnight when clocks are put forward or back
    days: int
    microseconds: int  # As they pass

    @classmethod
    def of(cls, given: object) -> Delay:
        """A delay as it was written: a duration as Polars writes it, or a timedelta."""
        if isinstance(given, dt.timedelta):
            rest = given - dt.timedelta(days=given.days)
            found = cls(0, given.days, rest // dt.timedelta(microseconds=1))
            negative = given < dt.timedelta(0)
        elif isinstance(given, str):
            read = _span(given)
            fine = -(-read.nanoseconds // 1000)  # never earlier
            found, negative = cls(read.months, 7 * read.weeks + read.days, fine), read.negative
        else:
            raise UnsupportedOperation(
                f"a delay is a duration, not {show_input(given)}",
                where=_WHERE,
                remedy='write for example delay="2d" or delay="36h"',
            )
        if negative:
            raise UnsupportedOperation(
                f"the delay {show_input(given)} is negative",
                where=_WHERE,
                remedy=('write for example delay="2d"', "leave delay= out"),
            )
        return found

    def words(self) -> str:
        """The delay as Polars writes durations, in one way for all that mean the same."""
        parts = [(self.months, "mo"), (self.days, "d")]
        rest = self.microseconds
        for unit, size in _UNITS:
            parts.append((rest // size, unit))
            rest %= size
        return "".join(f"{count}{unit}" for count, unit in parts if count) or "0d"

    def due(self, end: dt.date, zone: str | None) -> dt.datetime:
        """When the time has come, in UTC, because what ends with the beginning of a day.

        Parameters
        ----------
        end
            The first day that is not part of it any more.
        zone
            Whose midnight that is; None for UTC. One that clocks show twice is the second, and of
            one that they pass over the moment at which they do counts.
        """
        day = _move_day(end, f"{self.months}mo{self.days}d")
        midnight = dt.datetime(day.year, day.month, day.day)
        return _moment(midnight, zone) + dt.timedelta(microseconds=self.microseconds)


@dataclass(frozen=True, slots=True)
class Waits:
    """How long after its end a part is released."""

    every: Every  # How long the period is that has the date in its key
    delay: Delay  # How long after its end

    def words(self) -> str:
        """In a plan."""
        return (
            f"not before {self.delay.words()} have passed since the end of its {NAMES[self.every]}"
        )

    def due(self, day: dt.date, zone: str | None) -> dt.datetime:
        """When the part of a date may be released, in UTC; its period ends at midnight in a zone,
        and a datetime is one as the clocks there show it.
        """
        day = day.date() if isinstance(day, dt.datetime) else day
        end = first_day(self.every, number_of(self.every, day) + 1)
        if end is None:
            raise OverflowError
        return self.delay.due(end, zone)


def _span(text: str) -> Span:
    try:
        return span(text)
    except DPFrameError as error:
        raise error.at(_WHERE) from None


def _move_day(day: dt.date, by: str) -> dt.date:
    """A date this many months and days later; of a month that is shorter its last day."""
    years = day.year
    found: dt.date | None = None
    try:
        found = pl.Series([day], dtype=pl.Date).dt.offset_by(by).to_list()[0]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # years that neither has; a panic of Polars is no Exception
        found = None
    if found is None or found.year < years:
        raise OverflowError
    return found


def _moment(midnight: dt.datetime, zone: str | None) -> dt.datetime:
    """When clocks in a zone show midnight, in UTC, by the rules that Polars has for the zone."""
    if zone in (None, "UTC"):
        return midnight.replace(tzinfo=dt.UTC)
    wall = pl.Series([midnight], dtype=pl.Datetime("us"))
    shown = wall.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    found: dt.datetime | None = shown.dt.convert_time_zone("UTC").to_list()[0]
    if found is not None:
        return found
    before = (wall - dt.timedelta(days=1)).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    offset: dt.timedelta = (before.dt.base_utc_offset() + before.dt.dst_offset()).to_list()[0]
    return midnight.replace(tzinfo=dt.UTC) - offset  # which is when they pass it over


# -- Periods --------------------------------------------------------------------------------------


EVERY: Final = DAYS
"""What periods there are, and how many days each has at most."""
_MONTHS: Final = {"1mo": 1, "1q": 3, "1y": 12}
PERIOD: Final = "period"
"""What their column is called."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Periods by the dates in a column."""

    by: str  # The column
    # How long each is: ``"1d"``, ``"1w"`` from Monday on, ``"1mo"``, ``"1q"`` or ``"1y"``.
    every: str
    start: dt.date  # The first day of the first
    periods: int  # How many there are
    delay: Delay | None = None  # How long after its end each may be released; None for at any time

    def __post_init__(self) -> None:
        where = f"every={show_input(self.every)}"
        if not isinstance(self.by, str):
            raise UnsupportedOperation(
                f"by= is the name of a column of dates, not {show_input(self.by)}",
                where="by=...",
                remedy='write by="day", and compute that column first: .with_columns(day=...)',
            )
        if self.every not in EVERY:
            raise UnsupportedOperation(
                f"a stream has no periods of {show_input(self.every)}",
                where=where,
                remedy=f"write every= with one of {', '.join(map(repr, EVERY))}",
            )
        if not isinstance(self.start, dt.date) or isinstance(self.start, dt.datetime):
            raise UnsupportedOperation(
                f"a stream starts on a date, not {show_input(self.start)}",
                where="start=...",
                remedy="write for example start=datetime.date(2027, 1, 1)",
            )
        whole = isinstance(self.periods, int) and not isinstance(self.periods, bool)
        if not whole or not 1 <= self.periods <= MOST_PERIODS:
            raise UnsupportedOperation(
                f"a stream has between 1 and {MOST_PERIODS} periods, not "
                f"{show_input(self.periods)}",
                where="periods=...",
                remedy="write for example periods=365",
            )
        self._require_dates()

    def _require_dates(self) -> None:
        first = self._begin(self.start)
        if first != self.start:
            raise UnsupportedOperation(
                f"no period of {self.every!r} begins on {self.start}",
                where=f"every={self.every!r}",
                remedy=f"write start=datetime.date({first.year}, {first.month}, {first.day})",
            )
        try:
            self.first(self.periods)
        except (OverflowError, ValueError):
            raise _too_late("end", "periods=...", "use fewer periods") from None
        try:
            self.due(self.periods - 1, None)
        except (OverflowError, ValueError):
            raise _too_late("be released", "delay=...", "use a shorter delay=") from None

    def _begin(self, day: dt.date) -> dt.date:
        match self.every:
            case "1d":
                return day
            case "1w":
                return day - dt.timedelta(days=day.weekday())
            case _:
                months = _MONTHS[self.every]
                return day.replace(month=(day.month - 1) // months * months + 1, day=1)

    def first(self, number: int) -> dt.date:
        """The first day of a period, from 0."""
        if self.every in _MONTHS:
            years, months = divmod(self.start.month - 1 + number * _MONTHS[self.every], 12)
            return dt.date(self.start.year + years, months + 1, 1)
        return self.start + dt.timedelta(days=number * EVERY[self.every])

    def dates(self, count: int | None = None) -> list[dt.date]:
        """The first days of the periods, or of the first ones."""
        return [self.first(n) for n in range(self.periods if count is None else count)]

    def number(self, period: object) -> int:
        """Which period has a date, from 0."""
        if not isinstance(period, dt.date) or isinstance(period, dt.datetime):
            raise UnsupportedOperation(
                f"a period is named by a date in it, not {show_input(period)}",
                where="period=...",
                remedy=f"write for example period=datetime.date{self._example()}",
            )
        begin = self._begin(period)
        if self.every in _MONTHS:
            months = (begin.year - self.start.year) * 12 + begin.month - self.start.month
            found = months // _MONTHS[self.every]
        else:
            found = (begin - self.start).days // EVERY[self.every]
        if not 0 <= found < self.periods:
            raise UnsupportedOperation(
                f"the stream has no period with {period}",
                where="period=...",
                remedy=f"write a date from {self.start} to the end of the period that begins on "
                f"{self.first(self.periods - 1)}",
            )
        return found

    def due(self, number: int, zone: str | None) -> dt.datetime | None:
        """From when on a period may be released, in UTC; None for at any time.

        Parameters
        ----------
        number
            The number of the period, from 0.
        zone
            The time zone of the column, which says when a day ends; without one it is UTC.
        """
        return None if self.delay is None else self.delay.due(self.first(number + 1), zone)

    def _example(self) -> str:
        return f"({self.start.year}, {self.start.month}, {self.start.day})"

    def words(self) -> str:
        """The periods, in a plan."""
        said = f"{self.periods} periods of {self.every} by {self.by!r}, the first from {self.start}"
        if self.delay is not None:
            said += f", none released before {self.delay.words()} have passed since its end"
        return said


def _too_late(what: str, where: str, remedy: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the last of the periods would {what} after the year 9999", where=where, remedy=remedy
    )


_ROWWISE = (Filter, DropNulls, WithColumns, Select, Rename, Drop, JoinPublic, Explode)
_LIMITS = (LimitRows, LimitGroups)


def require_rowwise(relation: Relation) -> None:
    """Refuse steps that are not known to treat a row in the same way every night.

    Raises
    ------
    UnsupportedOperation
        Naming the step.
    """
    for step, _ in relation.steps:
        if not isinstance(step, (*_ROWWISE, *_LIMITS)):
            raise UnsupportedOperation(
                "a stream needs steps that treat each row alone",
                where=step.words(),
                why="the frame has more rows each night",
                remedy="use row-wise steps, joins with public frames, limit_rows and limit_groups",
            )


def through_nights(
    relation: Relation, groups: Groups | None, schedule: Schedule, per_unit: bool
) -> tuple[Through, ...]:
    """What an individual may have through all nights, in as many ways as limits say; each holds
    on its own.

    Parameters
    ----------
    relation
        With an identifier; its steps are those that `require_rowwise` lets pass.
    groups
        The public keys besides the periods.
    schedule
        The periods.
    per_unit
        Whether an individual counts once in each group, however many rows it has there.

    Raises
    ------
    UnboundedSensitivity
        When no limit holds through all nights.
    """
    facts, day = relation.facts, schedule.by
    first = first_limits(relation, day)
    limits = tuple(x if x in first else replace(x, first=None) for x in facts.limits)
    every, start = cast("kernel.Every", schedule.every), schedule.start.isoformat()
    about = day, type_words(facts.columns[day].dtype), every, start, schedule.periods
    nights = kernel.Nights(0, *about, kernel.Root(()))
    size, named = (1, ()) if groups is None else (groups.size, groups.by)
    columns = [n.tree.name for n in named if isinstance(n.tree, Column)]  # which limits may name
    by = tuple((name, kernel.Col(name)) for name in (*columns, day))
    keys = kernel.Listed(by, (size * schedule.periods,), "")
    table = kernel.Table(0, keys, None, kernel.People() if per_unit else kernel.One())
    found = through_all_nights(replace(facts, limits=limits).reach, table, nights, size)
    if not found:
        raise no_limit_of_nights(facts.identifier, day)
    return tuple(dict.fromkeys(found))


def first_limits(relation: Relation, by: str) -> list[RowLimit | GroupLimit]:
    """Limits that keep the first dates in a column that still exists. Only row-wise steps may be
    before them, because a limit by a hash keeps other rows each night.
    """
    found: list[RowLimit | GroupLimit] = []
    number = 0
    steady = True
    for step, before in relation.steps:
        if isinstance(step, _LIMITS):
            number = len(before.limits)
            if steady and step.order_by is not None:
                now = relation.facts.limits[number]
                if now.first == by:
                    found.append(now)
            steady = False
    return found


def before_first_limits(relation: Relation, by: str) -> list[Step]:
    """The row-wise steps before the last limit that keeps the first dates in a column: what they
    make of a row must stay the same, for a row that they drop one night has vanished.
    """
    if not first_limits(relation, by):
        return []
    steps = [step for step, _ in relation.steps]
    firsts = [n for n, step in enumerate(steps) if isinstance(step, _LIMITS) and step.order_by]
    last = max(firsts, default=0)
    return [step for step in steps[:last] if not isinstance(step, _LIMITS)]


def no_limit_of_nights(who: str | None, by: str) -> UnboundedSensitivity:
    """The refusal of a stream of a frame whose limits, if it has any, hold for one night alone.

    Parameters
    ----------
    who
        The identifier.
    by
        The column of dates.
    """
    return UnboundedSensitivity(
        f"no limit bounds how much one individual ({who!r}) adds in all nights of the "
        "stream together",
        where=f"stream(..., by={by!r})",
        why="a limit that chooses rows by a hash may choose others each night",
        remedy=(
            f"keep the first rows of each individual: .limit_rows(n, order_by={by!r}), "
            "before other limits",
            f"keep the first dates, and rows of each: .limit_groups(g, by={by!r}, "
            f"order_by={by!r}).limit_rows(n, by={by!r})",
        ),
    )


def require_streamable(unit: Unit, by: str) -> None:
    """Refuse units without a proof.

    Raises
    ------
    UnsupportedOperation
        For an identifier within windows of time.
    """
    if isinstance(unit, Identifier) and getattr(unit, "window", None) is not None:
        raise UnsupportedOperation(
            "a stream does not work with an identifier within windows of time",
            where=f"stream(..., by={by!r})",
            remedy=("protect the frame with the identifier alone", "protect it with dp.Rows()"),
        )
