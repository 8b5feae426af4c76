"""Expressions as lowered operations write them, for an engine behind Narwhals.

They have those of Polars' methods that lowered operations need; others are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import trunc
from typing import Any, Generic, NoReturn, Self, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    INT128,
    STRING,
    DType,
    Scalar,
    duration_type,
)
from dpframe.core.interval import UNIT, Interval, interval
from dpframe.lower.engines import calendar, numbers
from dpframe.lower.engines.calendar import (
    MICROS_PER_DAY,
    Operators,
    between,
    moment_of,
    moved,
    physical,
    reach,
)
from dpframe.lower.engines.engine_expr import (
    DURATION,
    Dialect,
    EngineExpr,
    EngineScope,
    Node,
    combined,
    hull,
)
from dpframe.lower.engines.numbers import (
    aggregated,
    chosen,
    floored,
    matched,
    place,
    real,
    total_within,
)
from dpframe.rows.operands import INT64_LIMITS
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.temporal import span

# Casts that never raise: what the type cannot hold is null, floats are cut off towards zero.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_SMALL = (-(2**53), 2**53)
"""Beyond this size all floats are whole."""
_BEYOND_FLOAT32 = 2.0**128 - 2.0**103
"""From here on floats are rounded to infinity."""


def cast(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """The value in another type; null where it does not fit."""
    source = a.dtype
    if a.untyped or source.name == "Null":
        return _constant(scope, a, target)
    if source == target:
        return a
    if source.is_text and target.is_text:
        if target.name == "Enum":
            return _category(scope, a, target)
        return replace(a, dtype=STRING) if target == STRING else _refuse(scope, source, target)
    if source == DURATION and target.is_integer:
        return _from_whole(scope, a.having(a.expr, INT64, a.interval), target)
    if target == DURATION and source.is_integer:
        number = cast(scope, a, INT64)
        return number.having(number.expr, DURATION, number.interval)
    if a.constant and target.is_temporal and source.is_integer:
        return _moment(scope, a, target)
    if a.constant and source.is_temporal and target.is_integer:
        return cast(scope, _number(scope, a), target)
    if source.is_integer and _is_near(scope, a, target):
        return moment_of(scope, a, target)
    if source.is_boolean:
        return _from_boolean(scope, a, target)
    if source.is_integer:
        return _from_whole(scope, a, target)
    if source.is_float:
        return _from_real(scope, a, target)
    return _refuse(scope, source, target)


def _number(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """The physical number of a constant moment."""
    scope.dialect.require_comparable(a.dtype)
    value: Any = a.constant[0]
    if isinstance(value, datetime):
        value = (value - _EPOCH) // timedelta(microseconds=1)
    elif value is not None:
        value = (value - _EPOCH.date()).days
    return scope.dialect.constant(value, INT64)


def _is_near(scope: EngineScope, a: EngineExpr, target: DType) -> bool:
    """Whether numbers are surely those of moments that all engines have."""
    is_moment = target.name in ("Date", "Datetime") and scope.dialect.has_type(target)
    return is_moment and a.interval.within(reach(target))


def _category(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """Text that is a category, as text; null for other text."""
    listed = list(target.categories or ())
    values = pl.Series(listed, dtype=pl.String)
    return chosen(scope, a, values, listed, None, target)


def _constant(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    value = a.constant[0] if a.constant else None
    if value is None:
        return scope.dialect.constant(None, target)
    return cast(scope, scope.dialect.constant(value, a.dtype), target)


def _moment(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    number: Any = a.constant[0]
    if target.name == "Datetime" and (target.zone is not None or target.unit != "us"):
        return _refuse(scope, a.dtype, target)
    if target.name not in ("Date", "Datetime"):
        return _refuse(scope, a.dtype, target)
    if number is None:
        return scope.dialect.constant(None, target)
    try:
        if target.name == "Date":
            return scope.dialect.constant(_EPOCH.date() + timedelta(days=number), target)
        return scope.dialect.constant(_EPOCH + timedelta(microseconds=number), target)
    except OverflowError:
        raise scope.dialect.refused(f"a {target} outside the years 1 to 9999") from None


def _from_boolean(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    if target == STRING:
        a = scope.once(a)
        text = nw.when(a.expr).then(nw.lit("true")).when(~a.expr).then(nw.lit("false"))
        return a.having(text.otherwise(nw.lit(None, nw.String)), STRING)
    if not target.is_integer and not target.is_float:
        return _refuse(scope, BOOLEAN, target)
    number = a.expr.cast(nw.Int64)
    number = number if target == INT64 else number.cast(scope.dialect.native_type(target))
    return a.having(number, target, UNIT)


def _from_whole(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    native = scope.dialect.native_type(target)
    if target.is_integer:
        if a.interval.within(_limits(target)):
            return a.having(a.expr.cast(native), target, a.interval)
        return _guarded(scope, a, target)
    if target == FLOAT64:
        return real(a)
    if target == FLOAT32 and a.dtype != INT128:
        return a.having(a.expr.cast(native), FLOAT32)
    if target.is_boolean:
        zero = scope.dialect.constant(0, a.dtype)
        return a.having(a.expr != zero.expr, BOOLEAN)
    if target == STRING and a.dtype != INT128:
        return a.having(a.expr.cast(native), STRING)
    return _refuse(scope, a.dtype, target)


def _guarded(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """Null where it does not fit; there a cast that would fail is given zero."""
    a = scope.once(a)
    (lo, hi), known = _limits(target), a.interval
    zero = scope.dialect.constant(0, a.dtype).expr
    inside = a.expr == a.expr
    if known.lo is None or known.lo < lo:
        inside = inside & (a.expr >= scope.dialect.constant(lo, a.dtype).expr)
    if known.hi is None or known.hi > hi:
        inside = inside & (a.expr <= scope.dialect.constant(hi, a.dtype).expr)
    ok = scope.once(a.having(inside, BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(zero).cast(scope.dialect.native_type(target))
    return ok.having(nw.when(ok.expr).then(safe), target, _held(known, target))


def _limits(target: DType) -> tuple[int, int]:
    return target.limits or INT64_LIMITS


def _held(known: Interval, target: DType) -> Interval:
    """What of an interval a type of whole numbers holds; all of the type where that is nothing."""
    limits = interval(*_limits(target))
    return known.intersect(limits) or limits


def _from_real(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    if target == FLOAT64:
        return real(a)
    if target == FLOAT32:
        return _narrowed(scope, a)
    if target.is_boolean:
        return a.having(a.expr != 0.0, BOOLEAN)
    if not target.is_integer or target == INT128:
        return _refuse(scope, a.dtype, target)
    a = scope.once(real(a))
    ok = scope.once(a.having(_is_held(a, *_limits(target)), BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(nw.lit(0.0, nw.Float64))
    number = ok.having(safe, FLOAT64)
    cut = number if a.is_whole else _cut_off(scope, number, a.interval)
    known = nw.when(ok.expr).then(cut.expr.cast(scope.dialect.native_type(target)))
    whole = a.interval.increasing(lambda end: Fraction(math.trunc(end)))
    return cut.having(known, target, _held(whole, target))


def _cut_off(scope: EngineScope, number: EngineExpr, known: Interval) -> EngineExpr:
    """A float without what is after the point; it lies in `known`, or is zero."""
    small = known.within(_SMALL)
    if small and known.lo is not None and known.lo >= 0:
        return number.having(number.expr.floor(), FLOAT64)
    number = scope.once(number)
    size = number.having(number.expr.abs(), FLOAT64)
    size = size.having(size.expr.floor(), FLOAT64) if small else floored(scope, size)
    whole = nw.when(number.expr < 0).then(size.expr * -1.0).otherwise(size.expr)
    return size.having(whole, FLOAT64)


def _is_held(a: EngineExpr, lo: int, hi: int) -> nw.Expr:
    """Whether the whole part of a float is a number from `lo` to `hi`."""
    held, known = ~a.expr.is_nan(), a.interval
    if known.hi is None or known.hi >= hi + 1:
        held = held & (a.expr < float(hi + 1))
    if known.lo is None or known.lo < lo:
        least = float(lo - 1)  # for the limits of Int64 the same float as they are
        held = held & (a.expr >= least if least == float(lo) else a.expr > least)
    return held


def _narrowed(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """Float64 as Float32, to infinity where it is too large."""
    a = scope.once(a)
    beyond = (a.expr.abs() >= _BEYOND_FLOAT32) & ~a.expr.is_nan()
    safe = nw.when(beyond).then(nw.lit(0.0, nw.Float64)).otherwise(a.expr).cast(nw.Float32)
    plus, minus = nw.lit(math.inf, nw.Float32), nw.lit(-math.inf, nw.Float32)
    endless = nw.when(a.expr > 0).then(plus).otherwise(minus)
    return a.having(nw.when(beyond).then(endless).otherwise(safe), FLOAT32)


def _refuse(scope: EngineScope, source: DType, target: DType) -> EngineExpr:
    raise scope.dialect.refused(f"a cast from {source} to {target}")


# Values that depend on a condition, or on which values are null.


def chosen_by(
    scope: EngineScope, condition: EngineExpr, yes: EngineExpr, no: EngineExpr
) -> EngineExpr:
    """One value where a condition holds, else another."""
    yes, no = matched(scope, yes, no)
    if condition.dtype != BOOLEAN:
        condition = cast(scope, condition, BOOLEAN)
    made = nw.when(condition.expr).then(yes.expr).otherwise(no.expr)
    dtype = STRING if yes.dtype.is_text and yes.dtype != no.dtype else yes.dtype
    return combined(made, dtype, condition, yes, no, known=hull(yes, no))


def coalesced(scope: EngineScope, *values: EngineExpr) -> EngineExpr:
    """The first value that is not null."""
    like = next((m for m in values if m.dtype.name != "Null" and not m.untyped), values[0])
    parts = [matched(scope, like, m)[1] for m in values]
    expr = nw.coalesce(*(m.expr for m in parts))
    return combined(expr, like.dtype, *parts, known=hull(*parts))


# Text: what engines do alike, byte by byte or by code points.
#
# Operations that Narwhals lacks are written in SQL, with functions that DuckDB and Spark have in
# common and that count code points: `length`, `substr`, `instr`, `replace`, `repeat`, `trim`,
# `concat_ws`.

_LONGEST = 2**31 - 2
"""No text has this many characters, and engines fail at larger numbers where there is a text."""
_LENGTHS = interval(0, 2**32)
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Unicode has for it, and Polars takes away."""
E = TypeVar("E", bound=Operators)


class StringOps(Generic[E]):
    """Methods of text."""

    __slots__ = ("_text",)

    def __init__(self, text: E) -> None:
        self._text = text

    def __getattr__(self, name: str) -> NoReturn:
        raise self._text.dialect.refused(f".str.{name}")

    # -- lengths and parts ----------------------------------------------------------------------

    def len_chars(self) -> E:
        return self._text.then(
            lambda _, a: a.having(a.expr.str.len_chars().cast(nw.Int64), INT64, _LENGTHS)
        )

    def len_bytes(self) -> E:
        return self._count(lambda x: _octets(self._text, x))

    def head(self, n: int) -> E:
        """The first characters; for a negative number all but the last ones."""
        if n >= 0:
            return self.slice(0, n)
        rest = min(-n, _LONGEST)
        return self._written(lambda x: f"substr({x}, 1, greatest(length({x}) - {rest}, 0))")

    def tail(self, n: int) -> E:
        """The last characters; for a negative number all but the first ones."""
        return self.slice(-n) if n else self.slice(0, 0)

    def slice(self, offset: int, length: int | None = None) -> E:
        first, most = min(offset, _LONGEST), None if length is None else min(length, _LONGEST)
        if offset < 0:
            return self._written(partial(_from_the_end, max(offset, -_LONGEST), most))
        return self._text.then(lambda _, a: a.having(a.expr.str.slice(first, most), STRING))

    # -- search ---------------------------------------------------------------------------------

    def starts_with(self, prefix: str) -> E:
        return self._flag(lambda text: text.str.starts_with(prefix))

    def ends_with(self, suffix: str) -> E:
        return self._flag(lambda text: text.str.ends_with(suffix))

    def contains(self, pattern: str, *, literal: bool = False) -> E:
        self._require_literal(literal)
        return self._flag(lambda text: text.str.contains(pattern, literal=True))

    def find(self, pattern: str, *, literal: bool = False) -> E:
        """The number of bytes before a text; null where it is not found."""
        self._require_literal(literal, pattern)

        def before(x: str, p: str) -> str:
            found = _octets(self._text, f"substr({x}, 1, instr({x}, {p}) - 1)")
            return f"CASE WHEN instr({x}, {p}) > 0 THEN {found} END"

        return self._count(before, pattern)

    def count_matches(self, pattern: str, *, literal: bool = False) -> E:
        """The number of matches: by how much a text is shorter without them, in bytes, over their
        length."""
        self._require_literal(literal, pattern)
        without = StringOps(self.replace_all(pattern, "", literal=True)).len_bytes()
        missing: E = self.len_bytes() - without
        return missing.then(_as_length) // len(pattern.encode())

    # -- replacing ------------------------------------------------------------------------------

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> E:
        self._require_literal(literal, pattern)
        return self._written(lambda x, p, v: f"replace({x}, {p}, {v})", pattern, value)

    def replace(self, pattern: str, value: str, *, literal: bool = False, n: int = 1) -> E:
        self._require_literal(literal, pattern)
        if n != 1:
            raise self._text.dialect.refused("replacing more than one match, but not all,")

        def once(x: str, p: str, v: str) -> str:
            before = f"substr({x}, 1, instr({x}, {p}) - 1)"
            after = f"substr({x}, instr({x}, {p}) + {len(pattern)})"
            return f"CASE WHEN instr({x}, {p}) > 0 THEN concat({before}, {v}, {after}) ELSE {x} END"

        return self._written(once, pattern, value)

    def strip_chars(self, characters: str | None = None) -> E:
        return self._stripped("BOTH", characters)

    def strip_chars_start(self, characters: str | None = None) -> E:
        return self._stripped("LEADING", characters)

    def strip_chars_end(self, characters: str | None = None) -> E:
        return self._stripped("TRAILING", characters)

    def strip_prefix(self, prefix: str) -> E:
        rest = self.slice(len(prefix))
        return self._text.then(_either, self.starts_with(prefix), rest)

    def strip_suffix(self, suffix: str) -> E:
        rest = self.head(-len(suffix)) if suffix else self._text
        return self._text.then(_either, self.ends_with(suffix), rest)

    def pad_start(self, length: int, fill_char: str = " ") -> E:
        return self._written(
            lambda x, f: f"concat(repeat({f}, greatest({length} - length({x}), 0)), {x})", fill_char
        )

    def pad_end(self, length: int, fill_char: str = " ") -> E:
        return self._written(
            lambda x, f: f"concat({x}, repeat({f}, greatest({length} - length({x}), 0)))", fill_char
        )

    # -- how they are made ----------------------------------------------------------------------

    def _stripped(self, ends: str, characters: str | None) -> E:
        if characters == "":
            return self._text
        given = _WHITE_SPACE if characters is None else characters
        return self._written(lambda x, c: f"trim({ends} {c} FROM {x})", given)

    def _require_literal(self, literal: bool, pattern: str = "a") -> None:
        if not literal:
            raise self._text.dialect.refused("a regular expression")
        if not pattern:
            raise self._text.dialect.refused("the search for an empty text")

    def _flag(self, function: Callable[[nw.Expr], nw.Expr]) -> E:
        return self._text.then(lambda _, a: a.having(function(a.expr), BOOLEAN))

    def _written(self, sql: Callable[..., str], *constants: str) -> E:
        """A text in SQL, of this one and of constants; null where this one is."""

        def make(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            return scope.written(_given(sql), _parts(scope, a, constants), STRING)

        return self._text.then(make)

    def _count(self, sql: Callable[..., str], *constants: str) -> E:
        """A number of bytes."""

        def make(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            parts = _parts(scope, a, constants)
            return scope.written(
                lambda *names: f"CAST({_given(sql)(*names)} AS BIGINT)", parts, INT64, _LENGTHS
            )

        return self._text.then(make)


def _parts(scope: EngineScope, a: EngineExpr, constants: Sequence[str]) -> list[EngineExpr]:
    return [a, *(scope.dialect.constant(value, STRING) for value in constants)]


def _given(sql: Callable[..., str]) -> Callable[..., str]:
    """The same, but null where its first operand is: on one engine `concat` leaves out nulls."""
    return lambda x, *others: f"CASE WHEN {x} IS NOT NULL THEN {sql(x, *others)} END"


def _octets(text: Operators, x: str) -> str:
    return f"{text.dialect.octets}({x})"


def _from_the_end(offset: int, length: int | None, x: str) -> str:
    """The part that begins this many characters before the end; what of it would be before the
    text is not there.
    """
    start = f"length({x}) - {-offset}"
    first = f"greatest({start}, 0)"
    if length is None:
        return f"substr({x}, {first} + 1)"
    after = f"greatest({start} + {length}, 0)"
    return f"substr({x}, {first} + 1, {after} - {first})"


def _either(
    _: EngineScope, text: EngineExpr, condition: EngineExpr, stripped: EngineExpr
) -> EngineExpr:
    made = nw.when(condition.expr).then(stripped.expr).otherwise(text.expr)
    return combined(made, STRING, text, condition, stripped)


def _as_length(_: EngineScope, number: EngineExpr) -> EngineExpr:
    return number.having(number.expr, INT64, _LENGTHS)


def joined(
    scope: EngineScope, separator: str, ignore_nulls: bool, *texts: EngineExpr
) -> EngineExpr:
    """Texts as one; null where one of them is, or without those that are."""
    for text in texts:
        if not text.dtype.is_text and text.dtype.name != "Null":
            raise scope.dialect.refused(f"text joined with {text.dtype}")
    parts = [_typed(scope, text) for text in texts]
    given = scope.dialect.constant(separator, STRING)

    def sql(between: str, *names: str) -> str:
        made = f"concat_ws({between}, {', '.join(names)})"
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        return made if ignore_nulls else f"CASE WHEN {known} THEN {made} END"

    return scope.written(sql, [given, *parts], STRING)


def _typed(scope: EngineScope, text: EngineExpr) -> EngineExpr:
    return scope.dialect.constant(None, STRING) if text.dtype.name == "Null" else text


# Methods of dates, naive times and durations.

_EPOCH_MONTH = 1970 * 12
_MONDAY = 4
"""1970-01-05 in days since 1970: windows of weeks are counted from there, those of months from
January 1970.
"""


class TemporalOps(Generic[E]):
    """Methods of dates and times, for values of the years 1 to 9999, and of durations."""

    __slots__ = ("_moment",)

    def __init__(self, moment: E) -> None:
        self._moment = moment

    def __getattr__(self, name: str) -> NoReturn:
        raise self._moment.dialect.refused(f".dt.{name}")

    # -- parts ----------------------------------------------------------------------------------

    def year(self) -> E:
        return calendar.part(self._moment, "year")

    def month(self) -> E:
        return calendar.part(self._moment, "month")

    def day(self) -> E:
        return calendar.part(self._moment, "day")

    def ordinal_day(self) -> E:
        return calendar.part(self._moment, "ordinal_day")

    def hour(self) -> E:
        return calendar.part(self._moment, "hour")

    def minute(self) -> E:
        return calendar.part(self._moment, "minute")

    def second(self) -> E:
        return calendar.part(self._moment, "second")

    def millisecond(self) -> E:
        return self.microsecond() // 1_000

    def microsecond(self) -> E:
        return calendar.part(self._moment, "microsecond")

    def nanosecond(self) -> E:
        return self.microsecond() * 1_000

    def quarter(self) -> E:
        return (self.month() + 2) // 3

    def weekday(self) -> E:
        """Monday is 1."""
        return (calendar.days(self._moment) + 3) % 7 + 1

    def century(self) -> E:
        return (self.year() + 99) // 100

    def millennium(self) -> E:
        return (self.year() + 999) // 1_000

    def is_leap_year(self) -> E:
        return calendar.is_leap(self.year())

    def days_in_month(self) -> E:
        return calendar.length_of_month(self.year(), self.month())

    def iso_year(self) -> E:
        """The year of the Thursday of the same week."""
        return calendar.part(self._thursday(), "year")

    def week(self) -> E:
        """Which Thursday of its year the one of the same week is."""
        return (calendar.part(self._thursday(), "ordinal_day") + 6) // 7

    def _thursday(self) -> E:
        number = calendar.near_days(self._moment)
        return calendar.dated(number - (number + 3) % 7 + 3)

    # -- other moments --------------------------------------------------------------------------

    def date(self) -> E:
        def take(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            calendar.require_moment(scope, a)
            return a.having(a.expr.cast(nw.Date), DATE)

        return self._moment.then(take)

    def month_start(self) -> E:
        return self._on_day(calendar.near_days(self._moment) - self.day() + 1)

    def month_end(self) -> E:
        first = calendar.near_days(self._moment) - self.day()
        return self._on_day(first + self.days_in_month())

    def offset_by(self, by: str) -> E:
        """Moved by months (to the last day if the day does not exist), then by days."""
        found = span(by)
        sign = -1 if found.negative else 1
        if found.nanoseconds:
            raise self._moment.dialect.refused("moving a date by parts of a day")
        number = calendar.near_days(self._moment)
        if found.months:
            month = calendar.months(self._moment) + sign * found.months
            number = calendar.same_day(month, self.day())
        return self._on_day(number + sign * (7 * found.weeks + found.days))

    def truncate(self, every: str) -> E:
        """The last beginning of a window that is not later."""
        found = span(every)
        if found.nanoseconds:
            micros = calendar.near_micros(self._moment)
            return calendar.timed(micros - micros % (found.nanoseconds // 1_000))
        if found.months:
            month = calendar.months(self._moment)
            first = month - (month - _EPOCH_MONTH) % found.months
            number = calendar.same_day(first, self.day() * 0 + 1)
        else:
            size, origin = (7 * found.weeks, _MONDAY) if found.weeks else (found.days, 0)
            number = calendar.near_days(self._moment)
            number = number - (number - origin) % size
        midnight = calendar.timed(number * MICROS_PER_DAY)
        return calendar.of_type(self._moment, calendar.dated(number), midnight)

    def _on_day(self, number: E) -> E:
        """A day as a value of the same type, at the same time of day."""
        date, time = calendar.near_days(self._moment), calendar.near_micros(self._moment)
        moved = (number - date) * MICROS_PER_DAY + time
        return calendar.of_type(self._moment, calendar.dated(number), calendar.timed(moved))

    # -- numbers --------------------------------------------------------------------------------

    def timestamp(self, unit: str) -> E:
        """Units since 1970; lowered operations see to it that they fit."""
        per_second = duration_type(unit).units_per_second
        micros = calendar.physical(self._moment)
        size = per_second // 10**6
        of_time = micros * size if size else micros // (10**6 // per_second)
        of_date = calendar.days(self._moment) * (86_400 * per_second)
        return calendar.of_type(self._moment, of_date, of_time)

    def total_days(self) -> E:
        return self._total(MICROS_PER_DAY)

    def total_hours(self) -> E:
        return self._total(3_600 * 10**6)

    def total_minutes(self) -> E:
        return self._total(60 * 10**6)

    def total_seconds(self) -> E:
        return self._total(10**6)

    def total_milliseconds(self) -> E:
        return self._total(1_000)

    def total_microseconds(self) -> E:
        return self._total(1)

    def total_nanoseconds(self) -> E:
        return self._total(1) * 1_000

    def _total(self, size: int) -> E:
        """How often this many microseconds are in a duration, towards zero."""

        def count(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            if a.dtype != DURATION:
                raise scope.dialect.refused(f"durations of type {a.dtype}")
            number = a.having(a.expr, INT64, a.interval)
            if size == 1:
                return number
            divided = scope.dialect.quotient
            known = a.interval.increasing(lambda end: Fraction(trunc(end / size)))
            sql = f"CAST({{}} {divided} {size} AS BIGINT)".format
            return scope.written(sql, [number], INT64, known)

        return self._moment.then(count)


Name: TypeAlias = str
"""`str`, which is a property below."""


class Expression(Operators):
    """An expression with Polars' methods."""

    __slots__ = ()

    def __getattr__(self, name: Name) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.dialect.refused(f".{name}")

    def like(self, node: Node, names: Sequence[Name], reduces: bool, name: Name | None) -> Self:
        """Another expression, which is neither a number of rows nor waits for another value."""
        return Expression(self.dialect, node, names, reduces, name)  # type: ignore[return-value]

    # -- numbers and moments --------------------------------------------------------------------

    def __add__(self, other: Any) -> Self:
        return self._unless_moments(super().__add__(other), self.lifted(other), 1)

    def __sub__(self, other: Any) -> Self:
        return self._unless_moments(super().__sub__(other), self.lifted(other), -1)

    def _unless_moments(self, numbers: Self, other: Self, sign: int) -> Self:
        """A sum or difference of numbers, or of moments near the calendar and of durations."""

        def choose(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            made = numbers
            if a.dtype.name in ("Date", "Datetime") and b.dtype.name == "Duration":
                made = moved(self, other, sign)
            elif sign < 0 and a.dtype.is_temporal and a.dtype == b.dtype:
                made = between(self, other)
            return scope.made(made.node)

        return self.then(choose, other)

    def clip(self, lower_bound: float | None = None, upper_bound: float | None = None) -> Self:
        return self.then(lambda scope, a: numbers.clamped(scope, a, lower_bound, upper_bound))

    def floor(self) -> Self:
        return self.then(numbers.floored)

    def ceil(self) -> Self:
        return -(-self).floor()

    def abs(self) -> Self:
        return self.then(numbers.absolute)

    def sign(self) -> Self:
        return self.then(numbers.sign)

    def sqrt(self) -> Self:
        return self.then(numbers.root)

    def round(self, decimals: int = 0) -> Self:
        return self.then(lambda scope, a: numbers.rounded(scope, a, decimals))

    def pow(self, exponent: Self) -> Self:
        def power(scope: EngineScope, a: EngineExpr, given: EngineExpr) -> EngineExpr:
            value = given.constant[0] if given.constant else None
            if a.dtype.is_integer and isinstance(value, int) and value >= 0:
                return numbers.raised(scope, a, value)
            raise scope.dialect.refused("a power of floats")

        return self.then(power, exponent)

    def cast(self, dtype: pl.DataType | type[pl.DataType], *, strict: bool = True) -> Self:
        target = from_polars(dtype)

        def convert(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            if a.dtype.is_temporal and target.is_integer and not a.constant:
                a = scope.made(physical(self).node)
            return cast(scope, a, target)

        return self.then(convert)

    def to_physical(self) -> Self:
        return physical(self)

    # -- conditions -----------------------------------------------------------------------------

    def eq_missing(self, other: Self | Scalar) -> Self:
        def compare(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = (scope.once(m) for m in numbers.matched(scope, a, b))
            scope.dialect.require_comparable(a.dtype)
            one, other = a.expr.is_null(), b.expr.is_null()
            made = nw.when(one | other).then(one & other).otherwise(a.expr == b.expr)
            return combined(made, BOOLEAN, a, b)

        return self.then(compare, other)

    def ne_missing(self, other: Self | Scalar) -> Self:
        return ~self.eq_missing(other)

    def is_between(self, lower_bound: Any, upper_bound: Any, closed: Name = "both") -> Self:
        low = self >= lower_bound if closed in ("both", "left") else self > lower_bound
        high = self <= upper_bound if closed in ("both", "right") else self < upper_bound
        both: Self = low & high
        return both

    def is_null(self) -> Self:
        return self.then(lambda _, a: a.having(a.expr.is_null(), BOOLEAN))

    def is_not_null(self) -> Self:
        return self.then(lambda _, a: a.having(~a.expr.is_null(), BOOLEAN))

    def is_nan(self) -> Self:
        return self._of_real(lambda x: x.is_nan())

    def is_not_nan(self) -> Self:
        return self._of_real(lambda x: ~x.is_nan())

    def is_finite(self) -> Self:
        return self._of_real(lambda x: x.is_finite())

    def is_infinite(self) -> Self:
        return self._of_real(lambda x: ~x.is_finite() & ~x.is_nan())

    def _of_real(self, function: Callable[[nw.Expr], nw.Expr]) -> Self:
        def check(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            a = scope.once(a)
            return a.having(nw.when(~a.expr.is_null()).then(function(a.expr)), BOOLEAN)

        return self.then(check)

    def is_in(self, listed: ConstantList) -> Self:
        return self.then(listed.holds)

    # -- null and NaN ---------------------------------------------------------------------------

    def fill_null(self, value: Self | Scalar) -> Self:
        return self.then(coalesced, value)

    def fill_nan(self, value: None) -> Self:
        def fill(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            a = scope.once(a)
            return a.having(nw.when(~a.expr.is_nan()).then(a.expr), a.dtype, a.interval)

        if value is not None:
            raise self.dialect.refused("fill_nan with a value")
        return self.then(fill)

    # -- look-ups -------------------------------------------------------------------------------

    def replace_strict(
        self, old: pl.Series, new: Sequence[Scalar], *, default: Scalar, return_dtype: pl.DataType
    ) -> Self:
        """Constants in place of listed values."""
        dtype = from_polars(return_dtype)
        return self.then(lambda scope, a: chosen(scope, a, old, list(new), default, dtype))

    # -- aggregates -----------------------------------------------------------------------------

    def _aggregate(self, how: Name) -> Self:
        node = self.node
        made = Node(lambda scope: aggregated(scope, node, how))
        return self.like(made, self.names, True, self.name)

    def sum(self) -> Total:
        return Total(self)

    def count(self) -> Self:
        return self._aggregate("count")

    def max(self) -> Self:
        return self._aggregate("max")

    def min(self) -> Self:
        return self._aggregate("min")

    def drop_nulls(self) -> Distinct:
        return Distinct(self._aggregate("n_unique"))

    def cum_count(self) -> Position:
        return Position()

    # -- kinds of values ------------------------------------------------------------------------

    @property
    def str(self) -> StringOps[Self]:
        return StringOps(self)

    @property
    def dt(self) -> TemporalOps[Self]:
        return TemporalOps(self)

    @property
    def meta(self) -> Meta:
        return Meta(self.names)


class Meta:
    """The facts about an expression before it is made."""

    __slots__ = ("_names",)

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def root_names(self) -> list[str]:
        return list(self._names)


class Distinct:
    """The values of an expression that are not null, to be counted."""

    __slots__ = ("_number",)

    def __init__(self, number: Expression) -> None:
        self._number = number

    def n_unique(self) -> Expression:
        return self._number


class Length(Expression):
    """The number of rows: of a group, or over rows of the same value."""

    __slots__ = ()

    def __init__(self, dialect: Dialect) -> None:
        node = Node(lambda scope: aggregated(scope, None, "len"))
        super().__init__(dialect, node, (), True, "len")

    def over(self, partition: Sequence[Expression]) -> Expression:
        def make(scope: EngineScope) -> EngineExpr:
            return scope.number_within([scope.made(p.node) for p in partition])

        return self.like(Node(make), [n for p in partition for n in p.names], False, None)


class Total(Expression):
    """The sum of numbers: of a group, or over rows of the same value."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Expression) -> None:
        self._rows = rows
        node = Node(lambda scope: aggregated(scope, rows.node, "sum"))
        super().__init__(rows.dialect, node, rows.names, True, rows.name)

    def over(self, partition: Sequence[Expression]) -> Expression:
        rows = self._rows

        def make(scope: EngineScope) -> EngineExpr:
            within = [scope.made(p.node) for p in partition]
            return total_within(scope, scope.made(rows.node), within)

        names = [*rows.names, *(name for p in partition for name in p.names)]
        return self.like(Node(make), names, False, None)


class Position:
    """A row's place among others of the same value; what is counted up to it is never null."""

    __slots__ = ()

    def over(self, partition: Sequence[Expression], order_by: Sequence[Expression]) -> Expression:
        def make(scope: EngineScope) -> EngineExpr:
            within, order = ([scope.made(e.node) for e in given] for given in (partition, order_by))
            return scope.position(within, order)

        names = [name for e in (*partition, *order_by) for name in e.names]
        return partition[0].like(Node(make), names, False, None)


class Row:
    """Several values of a row side by side."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Sequence[Expression]) -> None:
        self._fields = tuple(fields)

    @property
    def struct(self) -> Row:
        return self

    def field(self, name: str) -> Expression:
        """One of the values again."""
        (found,) = (f for f in self._fields if f.name == name)
        return found

    def hash(self, salt: int) -> Expression:
        """The engine's hash of the values."""
        fields = self._fields

        def make(scope: EngineScope) -> EngineExpr:
            return scope.hashed([scope.made(f.node) for f in fields], salt)

        return fields[0].like(Node(make), [n for f in fields for n in f.names], False, None)


class When:
    """A condition, on which it will depend which value is taken."""

    __slots__ = ("_condition",)

    def __init__(self, condition: Expression) -> None:
        self._condition = condition

    def then(self, value: Expression | Scalar) -> Then:
        return Then(self._condition, value)


class Then(Expression):
    """A value where a condition holds, else null, until an alternative is given."""

    __slots__ = ("_condition", "_value")

    def __init__(self, condition: Expression, value: Expression | Scalar) -> None:
        self._condition, self._value = condition, value
        made = condition.then(chosen_by, value, None)
        super().__init__(made.dialect, made.node, made.names, made.reduces)

    def otherwise(self, other: Expression | Scalar) -> Expression:
        return self._condition.then(chosen_by, self._value, other)


class ConstantList:
    """A column of constants."""

    __slots__ = ("_values",)

    def __init__(self, values: pl.Series) -> None:
        self._values = values

    def implode(self) -> ConstantList:
        return self

    def holds(self, scope: EngineScope, a: EngineExpr) -> EngineExpr:
        """Whether a value is among them; null for null."""
        found = chosen(scope, a, self._values, [1] * len(self._values), 0, INT64)
        present = ~scope.once(a).expr.is_null()
        known = nw.when(present).then(found.expr == nw.lit(1, nw.Int64))
        return combined(known, BOOLEAN, found, scope.once(a))

    def search_sorted(self, number: Expression, side: str) -> Expression:
        """How many of them, sorted, are below a number; ``"right"`` counts equal ones too."""
        edges, floats = self._values.to_list(), from_polars(self._values.dtype).is_float

        def count(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            return place(scope, numbers.real(a) if floats else a, edges, side == "right")

        return number.then(count)
