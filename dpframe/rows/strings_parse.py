"""Dates, times and integers that are read from text; what cannot be read is null."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any, ClassVar

import polars as pl

from dpframe.core.domain import Domain, domain_of_dtype
from dpframe.core.dtypes import DATE, INT64, TIME, DType, datetime_type
from dpframe.core.interval import interval
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.given import Operand, Reader
from dpframe.rows.operation import Kind, Namespace, operation
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.quoted import quoted
from dpframe.rows.temporal import DAY, INT64_LIMITS, calendar, in_zone, kept_inside
from dpframe.rows.temporal_methods import require_null_if_ambiguous
from dpframe.rows.text import TextMethod, whole_number
from dpframe.rows.written_dtypes import read_dtype, read_dtype_expression
from dpframe.rows.zones import require_zone

_DIRECTIVE = re.compile(r"%(\.?[369]?f|[:#]?.|$)", re.DOTALL)
_KNOWN = frozenset([*"YymbBhdeaAjGVuFDHkIlpPMSTR%", ".f"])
_OFFSETS = frozenset({"z", ":z", "#z"})
_SAMPLE = 1_049_558_828_000_000
"""2003-04-05 16:07:08 UTC, in microseconds: all parts differ."""

WITHOUT_FORMAT: dict[str, tuple[str, ...]] = {
    "Date": ("%Y-%m-%d",),
    "Datetime": ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"),
    "Time": ("%H:%M:%S%.f",),
}
"""The formats that are read by default. Polars would guess one from the first rows that it meets,
so that the result in one row would depend on others."""


@operation
class Parse(TextMethod):
    """Without a format only ISO 8601 is read: no format is guessed from the data."""

    groups = ()  # `read_parse` makes them all
    kind: ClassVar[str]
    format: str | None

    def check(self) -> None:
        if self.format is not None:
            check_format(self.format, self.kind)

    def formats(self) -> tuple[str, ...]:
        return WITHOUT_FORMAT[self.kind] if self.format is None else (self.format,)


@operation
class ToDate(Parse):
    """A date in a constant format (%Y-%m-%d without one); null outside years 1 to 9999."""

    kind = "Date"
    examples = (
        'pl.col("s").str.to_date("%Y-%m-%d", strict=False)',
        'pl.col("sb").str.to_date("%d/%m/%Y", strict=False)',
        'pl.col("d").cast(pl.String).str.to_date(strict=False)',
    )

    def result(self, operand: Domain) -> Domain:
        return Domain(DATE, nullable=True)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        (form,) = self.formats()
        return kept_inside(ns, parse_as(operand, form, self.kind, "us"), DATE, calendar(DATE))


@operation
class ToTime(Parse):
    """A time of day in a constant format (%H:%M:%S, with or without decimals)."""

    kind = "Time"
    examples = (
        'pl.col("s").str.to_time("%H:%M:%S", strict=False)',
        'pl.col("sb").str.to_time("%H:%M", strict=False)',
    )

    def result(self, operand: Domain) -> Domain:
        return Domain(TIME, nullable=True, interval=interval(0, DAY * 10**9 - 1))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        (form,) = self.formats()
        parsed: pl.Expr = parse_as(operand, form, self.kind, "us")
        return parsed


@operation
class ToDatetime(Parse):
    """A date with a time in a constant format (ISO 8601 without one), in a constant zone.

    A format with an offset (%z) gives instants, shown in `zone` or UTC. Otherwise `zone` says where
    the local time is read; it is null where the clock there skips it or shows it twice.
    """

    kind = "Datetime"
    examples = (
        'pl.col("s").str.to_datetime("%Y-%m-%d %H:%M", strict=False)',
        'pl.col("s").str.to_datetime("%Y-%m-%dT%H:%M:%S%z", time_unit="ms", strict=False)',
        'pl.col("sb").str.to_datetime("%Y-%m-%d", time_unit="ns", strict=False)',
        'pl.col("s").str.to_datetime('
        '"%Y-%m-%d %H:%M:%S", time_zone="Europe/Amsterdam", strict=False)',
    )

    unit: str | None
    zone: str | None

    def check(self) -> None:
        Parse.check(self)
        if self.zone is not None:
            require_zone(self.zone)

    def result(self, operand: Domain) -> Domain:
        return Domain(self._type(), nullable=True)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        dtype, forms = self._type(), self.formats()
        if any(map(has_offset, forms)):
            (form,) = forms
            parsed = _parsed(ns, operand, form, replace(dtype, zone="UTC"))
            return parsed if dtype.zone == "UTC" else parsed.dt.convert_time_zone(dtype.zone or "")
        parts = [_parsed(ns, operand, form, replace(dtype, zone=None)) for form in forms]
        local = reduce(lambda first, second: ns.coalesce(first, second), parts)
        if dtype.zone is None:
            return local
        return kept_inside(ns, in_zone(local, dtype.zone), dtype, calendar(dtype))

    def _type(self) -> DType:
        zone = self.zone
        if zone is None and any(map(has_offset, self.formats())):
            zone = "UTC"
        return datetime_type(self.unit or "us", zone)

    def arguments(self) -> str:
        given = [] if self.format is None else [quoted(self.format)]
        given += [f"time_unit={quoted(self.unit)}"] if self.unit not in (None, "us") else []
        given += [f"time_zone={quoted(self.zone)}"] if self.zone is not None else []
        return ", ".join(given)


def has_offset(form: str) -> bool:
    """Whether texts in this format carry an offset from UTC."""
    return any(found in _OFFSETS for found in _DIRECTIVE.findall(form))


@lru_cache(maxsize=256)
def check_format(form: str, kind: str) -> None:
    """Refuse a format that Polars may not read as a Date, Datetime or Time, or in which one cannot
    be read back. Directives that versions of Polars read differently are unknown here.
    """
    allowed = _KNOWN | (_OFFSETS if kind == "Datetime" else frozenset())
    for directive in _DIRECTIVE.findall(form):
        if directive not in allowed:
            raise UnsupportedOperation(
                f"a {kind} cannot be parsed with %{directive} in {form!r}",
                remedy=_remedy(directive),
            )
    if not _reads_back(form, kind):
        raise UnsupportedOperation(
            f"a {kind} cannot be parsed with {form!r}",
            remedy='name every part of it, as in "%Y-%m-%d" or "%H:%M:%S"',
        )


def _remedy(directive: str) -> str:
    if directive.endswith("f"):
        return "use %.f, which reads any number of decimals with their point"
    if directive in _OFFSETS:
        return "parse a Datetime, then use .dt.date() or .dt.time()"
    return f"use the directives {' '.join('%' + known for known in sorted(_KNOWN))}"


def _reads_back(form: str, kind: str) -> bool:
    """Whether what the format prints of a public moment is read again, at least in its year or
    minute: Polars fills in parts that are not named.
    """
    moment = pl.Series([_SAMPLE]).cast(pl.Datetime("us", "UTC"))
    try:
        shown = moment.dt.strftime(form.replace("%#z", "%z"))
        read = parse_as(shown, form, kind, "us")
        if kind == "Time":
            return [read.dt.hour().item(), read.dt.minute().item()] == [16, 7]
        return bool(read.dt.year().item() == 2003)
    except FAILURES:
        return False


def parse_as(text: Any, form: str, kind: str, unit: str) -> Any:
    """A String expression or Series parsed with a format; null where it does not fit."""
    if kind == "Date":
        return text.str.to_date(form, strict=False)
    if kind == "Time":
        return text.str.to_time(form, strict=False)
    return text.str.to_datetime(form, time_unit=unit, strict=False)


def _parsed(ns: Namespace, text: pl.Expr, form: str, dtype: DType) -> pl.Expr:
    """A text in a format as a Datetime that is inside the calendar."""
    unit = dtype.unit or "us"
    if unit != "ns":
        value: pl.Expr = parse_as(text, form, "Datetime", unit)
        return kept_inside(ns, value, dtype, calendar(dtype))
    # Nanoseconds overflow silently, so parsing to microseconds shows which ones did.
    coarse = replace(dtype, unit="us")
    limits = INT64_LIMITS[0] // 1000 + 1, INT64_LIMITS[1] // 1000 - 1
    seen = kept_inside(ns, parse_as(text, form, "Datetime", "us"), coarse, limits)
    expression: pl.Expr = ns.when(seen.is_not_null()).then(parse_as(text, form, "Datetime", unit))
    return expression


@operation
class ToInteger(TextMethod):
    """An integer in a constant base.

    Digits with an optional sign, and nothing else; null where the number does not fit.
    """

    examples = (
        'pl.col("s").str.to_integer(strict=False)',
        'pl.col("i64").cast(pl.String).str.to_integer(strict=False)',
        'pl.col("sb").str.to_integer(base=16, dtype=pl.Int8, strict=False)',
    )

    base: int
    dtype: DType

    def check(self) -> None:
        if not 2 <= self.base <= 36:
            raise InvalidBounds(
                f"str.to_integer has no base {self.base}",
                remedy="write a base from 2 to 36, such as base=16",
            )
        if not self.dtype.is_integer:
            raise UnsupportedOperation(
                f"str.to_integer cannot return {self.dtype}",
                remedy="write an integer type, such as dtype=pl.Int64",
            )

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        node = params.get("dtype")
        read = read_dtype_expression if isinstance(node, dict) else read_dtype
        return {"dtype": INT64 if node is None else read(node)}

    def result(self, operand: Domain) -> Domain:
        known = domain_of_dtype(self.dtype).interval
        return whole_number(self, operand, Domain(self.dtype, nullable=True, interval=known))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return operand.str.to_integer(base=self.base, dtype=to_polars(self.dtype), strict=False)

    def arguments(self) -> str:
        given = [f"base={self.base}"] if self.base != 10 else []
        given += [f"dtype={self.dtype}"] if self.dtype != INT64 else []
        return ", ".join(given)


_OFFSET_DIRECTIVES = ("%z", "%:z", "%#z", "%+")


def read_parse(operands: Sequence[Operand], params: Any) -> Tree:
    """All parsing of dates and times."""
    source, ambiguous = operands[0], operands[1]
    dtype, options = read_dtype_expression(params[0]), params[1]
    name = {"Date": "str.to_date", "Time": "str.to_time"}.get(dtype.name, "str.to_datetime")
    require_null_if_ambiguous(ambiguous, name)
    if not options.get("exact", True):
        raise UnsupportedOperation(
            f"exact=False in {name} is not supported",
            remedy="use .str.extract(pattern) first, and leave exact out",
        )
    return _parser(options["format"], dtype).of(source)


def _parser(form: str | None, dtype: DType) -> Parse:
    match dtype.name:
        case "Date":
            return ToDate(form)
        case "Time":
            return ToTime(form)
        case "Datetime":
            zone = dtype.zone
            if zone is None and form is not None and any(d in form for d in _OFFSET_DIRECTIVES):
                zone = "UTC"  # what Polars makes of texts that carry an offset
            return ToDatetime(form, dtype.unit, zone)
        case _:
            raise LookupError(dtype)  # Polars itself takes no other


OPERATIONS: tuple[Kind, ...] = (ToDate, ToTime, ToDatetime, ToInteger)
READERS: Mapping[str, Reader] = {"StringExpr.Strptime": read_parse}
