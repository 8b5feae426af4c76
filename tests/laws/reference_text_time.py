"""Plain-Python references of the operations on text, times, lists, structs and bins.

`REFERENCES` maps an operation to a function of its operands' Python values and its options. None is
null. What is said here is written from Polars' documentation and from ours, not from the lowering.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

Reference: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any]], Any]

WITHOUT_REFERENCE = {"str_to_titlecase": "where words begin depends on the version of Polars"}

# ---------------------------------------------------------------------------------------- text


def strict(function: Callable[..., Any]) -> Reference:
    """A reference that is null when an operand is."""

    def call(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        return None if any(arg is None for arg in args) else function(*args, **options)

    return call


_SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B)
)


def _python_regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def _contains(text: str, pattern: str, literal: bool = False) -> bool:
    return pattern in text if literal else _python_regex(pattern).search(text) is not None


def _slice(text: str, offset: int, length: int | None = None) -> str:
    start = offset if offset >= 0 else len(text) + offset
    stop = len(text) if length is None else start + length
    return text[max(start, 0) : max(stop, 0)]


def _head(text: str, n: int) -> str:
    return text[:n] if n >= 0 else text[: max(len(text) + n, 0)]


def _tail(text: str, n: int) -> str:
    return text[max(len(text) - n, 0) :] if n >= 0 else text[-n:]


def _strip(text: str, characters: str | None, start: bool, end: bool) -> str:
    unwanted = _SPACES if characters is None else characters
    text = text.lstrip(unwanted) if start and unwanted else text
    return text.rstrip(unwanted) if end and unwanted else text


def _replace(text: str, pattern: str, value: str, literal: bool = False, n: int = 1) -> str:
    if literal:
        return text.replace(pattern, value, n)
    if n == 0:
        return text

    def expand(match: re.Match[str]) -> str:
        def group(reference: re.Match[str]) -> str:
            name = reference[1].strip("{}")
            if name == "$":
                return "$"
            number = int(name) if name.isdigit() else -1
            return (match[number] or "") if 0 <= number <= match.re.groups else ""

        return re.sub(r"\$(\$|\{\w+\}|\w+)", group, value, flags=re.ASCII)

    return _python_regex(pattern).sub(expand, text, count=max(n, 0))


def _find(text: str, pattern: str, literal: bool = False) -> int | None:
    match = re.search(re.escape(pattern) if literal else _python_regex(pattern), text)
    return None if match is None else len(text[: match.start()].encode())


def _count_matches(text: str, pattern: str, literal: bool = False) -> int:
    return len(re.findall(re.escape(pattern) if literal else _python_regex(pattern), text))


def _zfill(text: str, length: int) -> str:
    sign, rest = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    return sign + rest.rjust(length - len(sign), "0")


def _split(text: str, by: str, inclusive: bool = False) -> list[str]:
    if not by:
        return list(text)
    if not inclusive:
        return text.split(by)
    *ended, last = text.split(by)
    return [part + by for part in ended] + ([last] if last else [])


def _extract(text: str, pattern: str, group: int) -> str | None:
    match = _python_regex(pattern).search(text)
    return None if match is None else match[group]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _concat(args: Sequence[Any], options: Mapping[str, Any]) -> str | None:
    if not options["ignore_nulls"] and any(arg is None for arg in args):
        return None
    return str(options["separator"]).join(_shown(arg) for arg in args if arg is not None)


def _to_integer(text: str, base: int = 10, dtype: Any = None) -> int | None:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"[:base]
    if not re.fullmatch(f"[+-]?[{digits}]+", text.lower(), flags=re.ASCII):
        return None
    low, high = (-(2**63), 2**63 - 1) if dtype is None else dtype.limits
    sign, number = (-1 if text[0] == "-" else 1), 0
    for digit in text.lower().lstrip("+-"):
        number = number * base + digits.index(digit)
    if sign < 0 and low == 0:
        return None
    return sign * number if low <= sign * number <= high else None


# ------------------------------------------------------------------------------------- parsing

_FIELDS = {
    "Y": r"\s*(?P<Y>[+-][0-9]+|[0-9]{1,4})",
    "m": r"\s*(?P<m>[0-9]{1,2})",
    "d": r"\s*(?P<d>[0-9]{1,2})",
    "H": r"\s*(?P<H>[0-9]{1,2})",
    "M": r"\s*(?P<M>[0-9]{1,2})",
    "S": r"\s*(?P<S>[0-9]{1,2})",
    ".f": r"(?:\.(?P<f>[0-9]+))?",
    "z": r"\s*(?P<z>[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])",
}


def _fields(text: str, form: str) -> dict[str, str] | None:
    pieces = re.split(r"%(\.f|[:#]?.)", form)
    pattern = "".join(_FIELDS[p] if i % 2 else re.escape(p) for i, p in enumerate(pieces))
    match = re.fullmatch(pattern, text)
    return None if match is None else {k: v for k, v in match.groupdict().items() if v is not None}


def _day_of(found: Mapping[str, str]) -> date | None:
    try:
        return date(int(found["Y"]), int(found["m"]), int(found["d"]))
    except (ValueError, OverflowError):
        return None


def _nanoseconds_of(found: Mapping[str, str]) -> int | None:
    """Nanoseconds since midnight; a leap second counts as one more second."""
    hour, minute, second = (int(found.get(key, "0")) for key in "HMS")
    if hour > 23 or minute > 59 or second > 60:
        return None
    fraction = int((found.get("f", "") + "000000000")[:9])
    return ((hour * 60 + minute) * 60 + second) * 10**9 + fraction


def _to_date(text: str, format: str | None = None) -> date | None:
    found = _fields(text, format or "%Y-%m-%d")
    return None if found is None or _nanoseconds_of(found) is None else _day_of(found)


def _to_time(text: str, format: str | None = None) -> time | None:
    found = _fields(text, format or "%H:%M:%S%.f")
    nanoseconds = None if found is None else _nanoseconds_of(found)
    if nanoseconds is None or nanoseconds >= 86_400 * 10**9:
        return None
    return (datetime(2000, 1, 1) + timedelta(microseconds=nanoseconds // 1000)).time()


_NS_RANGE = (datetime(1677, 9, 21, 0, 12, 43, 145226), datetime(2262, 4, 11, 23, 47, 16, 854774))


def _to_datetime(
    text: str, format: str | None = None, unit: str | None = None, zone: str | None = None
) -> datetime | None:
    forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"] if format is None else [format]
    found = next((f for f in (_fields(text, form) for form in forms) if f is not None), None)
    if found is None:
        return None
    day, nanoseconds = _day_of(found), _nanoseconds_of(found)
    if day is None or nanoseconds is None:
        return None
    step = 10**6 if unit == "ms" else 10**3
    try:
        moment = datetime(day.year, day.month, day.day) + timedelta(
            microseconds=nanoseconds // step * step // 1000
        )
    except OverflowError:
        return None
    if "z" in found:
        sign, digits = found["z"][0], found["z"][1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        try:
            moment = moment - (offset if sign == "+" else -offset)
        except OverflowError:
            return None
    if unit == "ns" and not _NS_RANGE[0] <= moment <= _NS_RANGE[1]:
        return None
    if "z" in found:
        zoned = moment.replace(tzinfo=UTC)
        return (
            (zoned if zone is None else zoned.astimezone(ZoneInfo(zone))) if _safe(zoned) else None
        )
    return moment if zone is None else _only(moment, zone)


# ------------------------------------------------------------------------------------- calendar

_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)


def _safe(value: Any) -> bool:
    """Whether a zoned time is a day inside the calendar; others always are inside."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    return not zoned or _FIRST <= value.astimezone(UTC) < _LAST


def calendrical(function: Callable[..., Any]) -> Reference:
    """A reference that is null where an operand is, or is outside the calendar."""

    def call(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        if any(arg is None or not _safe(arg) for arg in args):
            return None
        return function(*args, **options)

    return call


def _showings(wall: datetime, zone: str) -> tuple[datetime, datetime] | None:
    """The earliest and latest instant at which the clock shows a time, in UTC."""
    local = wall.replace(tzinfo=ZoneInfo(zone), fold=0)
    try:
        instants = [local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
    except OverflowError:
        return None
    if any(i.astimezone(local.tzinfo).replace(tzinfo=None) != wall for i in instants):
        return None
    return instants[0], instants[1]


def _only(wall: datetime, zone: str) -> datetime | None:
    showings = _showings(wall, zone)
    if showings is None or showings[0] != showings[1] or not _safe(showings[0]):
        return None
    return showings[0].astimezone(ZoneInfo(zone))


def _zone(value: Any) -> str | None:
    tzinfo = getattr(value, "tzinfo", None)
    return None if tzinfo is None else getattr(tzinfo, "key", "UTC")


def _wall(value: datetime) -> datetime:
    return value.replace(tzinfo=None, fold=0)


def _back(wall: datetime | None, zone: str, choose: Callable[[datetime, datetime], int]) -> Any:
    showings = None if wall is None else _showings(wall, zone)
    if showings is None:
        return None
    chosen = showings[choose(*showings)]
    return chosen.astimezone(ZoneInfo(zone)) if _safe(chosen) else None


def _same_showing(value: datetime, move: Callable[[datetime], datetime | None]) -> Any:
    """A move of local time."""
    zone = _zone(value)
    if zone is None:
        return move(value)
    first = _showings(_wall(value), zone)
    is_first = first is not None and first[0] == value.astimezone(UTC)
    return _back(move(_wall(value)), zone, lambda *_: 0 if is_first else 1)


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _with_day(value: Any, day: date) -> Any:
    if not isinstance(value, datetime):
        return day
    return value.replace(year=day.year, month=day.month, day=day.day)


def _last_day(day: date) -> int:
    for number in (31, 30, 29):
        try:
            day.replace(day=number)
        except ValueError:
            continue
        return number
    return 28


def _is_leap(day: date) -> bool:
    return _last_day(day.replace(month=2, day=1)) == 29


def _month_end(value: Any) -> Any:
    day = _day(value)
    return _with_day(value, day.replace(day=_last_day(day)))


def _locally(move: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda v: _same_showing(v, move) if isinstance(v, datetime) else move(v)


def _micros(value: Any) -> int:
    return int(value.microsecond)


def _offset(value: Any) -> str:
    minutes = int(value.utcoffset().total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "Y": lambda v: f"{v.year:04}",
    "y": lambda v: f"{v.year % 100:02}",
    "m": lambda v: f"{v.month:02}",
    "d": lambda v: f"{v.day:02}",
    "-d": lambda v: f"{v.day}",
    "B": lambda v: v.strftime("%B"),
    "A": lambda v: v.strftime("%A"),
    "V": lambda v: f"{v.isocalendar().week:02}",
    "G": lambda v: f"{v.isocalendar().year:04}",
    "j": lambda v: f"{v.timetuple().tm_yday:03}",
    "F": lambda v: f"{v.year:04}-{v.month:02}-{v.day:02}",
    "H": lambda v: f"{v.hour:02}",
    "I": lambda v: f"{(v.hour + 11) % 12 + 1:02}",
    "M": lambda v: f"{v.minute:02}",
    "S": lambda v: f"{v.second:02}",
    "p": lambda v: "AM" if v.hour < 12 else "PM",
    "T": lambda v: f"{v.hour:02}:{v.minute:02}:{v.second:02}",
    ".3f": lambda v: f".{v.microsecond // 1000:03}",
    ".6f": lambda v: f".{v.microsecond:06}",
    ":z": _offset,
    "%": lambda v: "%",
}


def _to_string(value: Any, format: str) -> str:
    if format == "iso":
        format = "%F %T%.6f" if isinstance(value, datetime) else "%F"
    return re.sub(
        r"%(-?[a-zA-Z]|\.\df|:z|%)", lambda found: _WRITTEN[found[1]](value), format, flags=re.ASCII
    )


def _made(*parts: int, unit: str) -> datetime | None:
    try:
        moment = datetime(*parts)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
    if unit == "ms":
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return None if unit == "ns" and not _NS_RANGE[0] <= moment <= _NS_RANGE[1] else moment


# ------------------------------------------------------------------------------------ durations

_SPAN_UNITS = {
    "ns": ("n", 1),
    "us": ("n", 10**3),
    "ms": ("n", 10**6),
    "s": ("n", 10**9),
    "m": ("n", 60 * 10**9),
    "h": ("n", 3600 * 10**9),
    "d": ("d", 1),
    "w": ("w", 1),
    "mo": ("mo", 1),
    "q": ("mo", 3),
    "y": ("mo", 12),
}


def _span(text: str) -> dict[str, int]:
    sign = -1 if text.startswith("-") else 1
    total = {"n": 0, "d": 0, "w": 0, "mo": 0}
    for count, unit in re.findall(r"([0-9]+)([a-z]+)", text):
        kind, size = _SPAN_UNITS[unit]
        total[kind] += sign * int(count) * size
    return total


def _add_months(day: date, months: int) -> date | None:
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    if not 1 <= year <= 9999:
        return None
    first = date(year, month + 1, 1)
    return first.replace(day=min(day.day, _last_day(first)))


def _offset_by(value: Any, by: str) -> Any:
    total = _span(by)

    def move(local: Any) -> Any:
        moved = _add_months(_day(local), total["mo"])
        if moved is None:
            return None
        try:
            return _with_day(local, moved) + timedelta(days=total["d"] + 7 * total["w"])
        except OverflowError:
            return None

    moved = _locally(move)(value) if total["mo"] or total["d"] or total["w"] else value
    if moved is None or not total["n"]:
        return moved
    try:
        later = moved.astimezone(UTC) if _zone(moved) else moved
        later = later + timedelta(microseconds=total["n"] // 1000)
    except OverflowError:
        return None
    if not _safe(later):
        return None
    return later.astimezone(moved.tzinfo) if _zone(moved) else later


_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400 * 10**6


def _month_starts(index: int) -> int:
    """Microseconds from 1970 to the start of a month, counted from January 1970; any year."""
    year, month = 1970 + index // 12, index % 12 + 1
    eras, within = divmod(year - 1, 400)
    return ((date(within + 1, month, 1) - _EPOCH.date()).days + eras * 146_097) * _DAY


def _boundaries(local: int, every: str) -> tuple[int, int]:
    """The last boundary that is not later, and the next: windows are counted from 1970, weeks from
    its first Monday.
    """
    total = _span(every)
    if total["mo"]:
        era = local > 7_000 * 365 * _DAY  # 400 years earlier, where Python has dates
        day = (_EPOCH + timedelta(microseconds=local - era * 146_097 * _DAY)).date()
        index = (day.year + era * 400 - 1970) * 12 + day.month - 1
        index -= index % total["mo"]
        return _month_starts(index), _month_starts(index + total["mo"])
    start = 4 * _DAY if total["w"] else 0
    length = (total["w"] * 7 + total["d"]) * _DAY + total["n"] // 1000
    before = local - (local - start) % length
    return before, before + length


def _of_micros(micros: int, like: Any) -> Any:
    """A local date or time from microseconds since 1970, None outside the calendar."""
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment if isinstance(like, datetime) else moment.date()


def _floor(local: Any, every: str) -> Any:
    return _of_micros(_boundaries(_since_epoch(local), every)[0], local)


def _truncate(value: Any, every: str) -> Any:
    zone = _zone(value)
    if zone is None:
        return _floor(value, every)
    return _back(
        _floor(_wall(value), every),
        zone,
        lambda _, second: 1 if second <= value.astimezone(UTC) else 0,
    )


def _round(value: Any, every: str) -> Any:
    total, zone = _span(every), _zone(value)
    days = 28 * total["mo"] + 7 * total["w"] + total["d"]
    half = (days * _DAY * 1000 + total["n"]) // 2000
    if zone is None:
        return _of_micros(_boundaries(_since_epoch(value) + half, every)[0], value)
    later = value.astimezone(UTC) + timedelta(microseconds=half)
    return _truncate(later.astimezone(ZoneInfo(zone)), every)


_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def _fits(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _since_epoch(value: Any) -> int:
    """Microseconds since 1970 in UTC."""
    if not isinstance(value, datetime):
        return (value - _EPOCH.date()).days * 86_400 * 10**6
    naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return (naive - _EPOCH) // timedelta(microseconds=1)


def _timestamp(value: Any, unit: str) -> int | None:
    return _fits(_since_epoch(value) * _UNITS_PER_SECOND[unit] // 10**6)


def _cast_time_unit(value: Any, unit: str) -> Any:
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        if unit == "ms":
            return timedelta(milliseconds=_towards_zero(micros, 1000))
        return value if unit == "us" or _fits(micros * 1000) is not None else None
    if unit == "ms":
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value if unit == "us" or _fits(_since_epoch(value) * 1000) is not None else None


def _towards_zero(number: int, size: int) -> int:
    """Division towards zero."""
    return -(-number // size) if number < 0 else number // size


def _total(nanoseconds: int) -> Reference:
    def total(value: timedelta) -> int | None:
        return _fits(_towards_zero(value // timedelta(microseconds=1) * 1000, nanoseconds))

    return strict(total)


def _replace_time_zone(value: datetime, zone: str | None) -> datetime | None:
    wall = _wall(value)
    return wall if zone is None else _only(wall, zone)


def _convert_time_zone(value: datetime, zone: str) -> datetime | None:
    instant = value if value.tzinfo else value.replace(tzinfo=UTC)
    return instant.astimezone(ZoneInfo(zone)) if _safe(instant) else None


# --------------------------------------------------------------------- lists, structs and bins


def _list_get(values: Sequence[Any], index: int) -> Any:
    return values[index] if -len(values) <= index < len(values) else None


def _list_contains(args: Sequence[Any], options: Mapping[str, Any]) -> bool | None:
    values, item = args
    if values is None:
        return None
    if item is None:
        return any(value is None for value in values)
    return any(value is not None and _same(value, item) for value in values)


def _same(value: Any, item: Any) -> bool:
    both_nan = value != value and item != item
    return bool(value == item) or both_nan


def _cut(
    value: float, breaks: Sequence[float], labels: Sequence[str], left_closed: bool
) -> str | None:
    number = float(value)
    if math.isnan(number):
        return None
    return labels[sum(b <= number if left_closed else b < number for b in breaks)]


def _struct(args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(options["names"], args, strict=True))


REFERENCES: dict[str, Reference] = {
    "str_contains": strict(_contains),
    "str_starts_with": strict(lambda s, prefix: s.startswith(prefix)),
    "str_ends_with": strict(lambda s, suffix: s.endswith(suffix)),
    "str_slice": strict(_slice),
    "str_head": strict(_head),
    "str_tail": strict(_tail),
    "str_strip_chars": strict(lambda s, characters: _strip(s, characters, True, True)),
    "str_strip_chars_start": strict(lambda s, characters: _strip(s, characters, True, False)),
    "str_strip_chars_end": strict(lambda s, characters: _strip(s, characters, False, True)),
    "str_strip_prefix": strict(lambda s, prefix: s.removeprefix(prefix)),
    "str_strip_suffix": strict(lambda s, suffix: s.removesuffix(suffix)),
    "str_find": strict(_find),
    "str_count_matches": strict(_count_matches),
    "str_pad_start": strict(lambda s, length, fill: s.rjust(length, fill)),
    "str_pad_end": strict(lambda s, length, fill: s.ljust(length, fill)),
    "str_zfill": strict(_zfill),
    "str_split": strict(_split),
    "str_replace": strict(_replace),
    "str_extract": strict(_extract),
    "concat_str": _concat,
    "str_to_date": strict(_to_date),
    "str_to_datetime": strict(_to_datetime),
    "str_to_time": strict(_to_time),
    "str_to_integer": strict(_to_integer),
    "dt_year": calendrical(lambda v: v.year),
    "dt_iso_year": calendrical(lambda v: v.isocalendar().year),
    "dt_quarter": calendrical(lambda v: (v.month + 2) // 3),
    "dt_month": calendrical(lambda v: v.month),
    "dt_week": calendrical(lambda v: v.isocalendar().week),
    "dt_weekday": calendrical(lambda v: v.isoweekday()),
    "dt_day": calendrical(lambda v: v.day),
    "dt_ordinal_day": calendrical(lambda v: v.timetuple().tm_yday),
    "dt_hour": calendrical(lambda v: v.hour),
    "dt_minute": calendrical(lambda v: v.minute),
    "dt_second": calendrical(lambda v: v.second),
    "dt_millisecond": calendrical(lambda v: _micros(v) // 1000),
    "dt_microsecond": calendrical(_micros),
    "dt_nanosecond": calendrical(lambda v: _micros(v) * 1000),
    "dt_century": calendrical(lambda v: -(-v.year // 100)),
    "dt_millennium": calendrical(lambda v: -(-v.year // 1000)),
    "dt_is_leap_year": calendrical(lambda v: _is_leap(_day(v))),
    "dt_days_in_month": calendrical(lambda v: _last_day(_day(v))),
    "dt_date": calendrical(_day),
    "dt_time": calendrical(lambda v: v if isinstance(v, time) else v.time()),
    "dt_month_start": calendrical(_locally(lambda v: v.replace(day=1))),
    "dt_month_end": calendrical(_locally(_month_end)),
    "dt_truncate": calendrical(_truncate),
    "dt_round": calendrical(_round),
    "dt_offset_by": calendrical(_offset_by),
    "dt_to_string": calendrical(_to_string),
    "datetime": strict(_made),
    "dt_timestamp": strict(_timestamp),
    "dt_cast_time_unit": strict(_cast_time_unit),
    "dt_convert_time_zone": strict(_convert_time_zone),
    "dt_replace_time_zone": calendrical(_replace_time_zone),
    "dt_total_days": _total(86_400 * 10**9),
    "dt_total_hours": _total(3_600 * 10**9),
    "dt_total_minutes": _total(60 * 10**9),
    "dt_total_seconds": _total(10**9),
    "dt_total_milliseconds": _total(10**6),
    "dt_total_microseconds": _total(10**3),
    "dt_total_nanoseconds": _total(1),
    "list_len": strict(len),
    "list_get": strict(_list_get),
    "list_contains": _list_contains,
    "struct": _struct,
    "field": strict(lambda v, name: v[name]),
    "cut": strict(_cut),
}
