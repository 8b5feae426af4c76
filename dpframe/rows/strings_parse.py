"""Dates, times and integers that are read from text; what cannot be read is null."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import cast

import polars as pl

from dpframe.core.domain import Domain, domain_of_dtype
from dpframe.core.dtypes import DATE, INT64, TIME, DType, datetime_type
from dpframe.core.interval import interval
from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import optional_text, quoted, whole_option
from dpframe.rows.parse_format import WITHOUT_FORMAT, check_format, has_offset, parse_as
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.temporal import DAY, INT64_LIMITS, calendar, kept_inside
from dpframe.rows.temporal_local import in_zone
from dpframe.rows.temporal_zone import checked_zone
from dpframe.rows.text import TextOperation, known_results


class _Parse(TextOperation):
    """Without a format only ISO 8601 is read: no format is guessed from the data."""

    kind: str

    def check(self, options: Options) -> None:
        form = optional_text(options, "format")
        if form is not None:
            check_format(form, self.kind)

    def arguments(self, options: Options) -> str:
        form = optional_text(options, "format")
        return "" if form is None else quoted(form)

    def formats(self, options: Options) -> tuple[str, ...]:
        form = optional_text(options, "format")
        return WITHOUT_FORMAT[self.kind] if form is None else (form,)


class ToDate(_Parse):
    name = "str_to_date"
    method = "str.to_date"
    kind = "Date"
    summary = "A date in a constant format (%Y-%m-%d without one); null outside years 1 to 9999."
    examples = (
        'pl.col("s").str.to_date("%Y-%m-%d", strict=False)',
        'pl.col("sb").str.to_date("%d/%m/%Y", strict=False)',
        'pl.col("d").cast(pl.String).str.to_date(strict=False)',
    )

    def result(self, operand: Domain, options: Options) -> Domain:
        return Domain(DATE, nullable=True)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        (form,) = self.formats(options)
        return kept_inside(ns, parse_as(text, form, self.kind, "us"), DATE, calendar(DATE))


class ToTime(_Parse):
    name = "str_to_time"
    method = "str.to_time"
    kind = "Time"
    summary = "A time of day in a constant format (%H:%M:%S, with or without decimals)."
    examples = (
        'pl.col("s").str.to_time("%H:%M:%S", strict=False)',
        'pl.col("sb").str.to_time("%H:%M", strict=False)',
    )

    def result(self, operand: Domain, options: Options) -> Domain:
        return Domain(TIME, nullable=True, interval=interval(0, DAY * 10**9 - 1))

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        (form,) = self.formats(options)
        parsed: pl.Expr = parse_as(text, form, self.kind, "us")
        return parsed


class ToDatetime(_Parse):
    """A format with an offset (%z) gives instants, shown in `zone` or UTC.

    Otherwise `zone` says where the local time is read; it is null where the clock there skips it or
    shows it twice.
    """

    name = "str_to_datetime"
    method = "str.to_datetime"
    kind = "Datetime"
    summary = "A date with a time in a constant format (ISO 8601 without one), in a constant zone."
    examples = (
        'pl.col("s").str.to_datetime("%Y-%m-%d %H:%M", strict=False)',
        'pl.col("s").str.to_datetime("%Y-%m-%dT%H:%M:%S%z", time_unit="ms", strict=False)',
        'pl.col("sb").str.to_datetime("%Y-%m-%d", time_unit="ns", strict=False)',
        'pl.col("s").str.to_datetime('
        '"%Y-%m-%d %H:%M:%S", time_zone="Europe/Amsterdam", strict=False)',
    )

    def check(self, options: Options) -> None:
        super().check(options)
        zone = optional_text(options, "zone")
        if zone is not None:
            checked_zone(zone)

    def result(self, operand: Domain, options: Options) -> Domain:
        return Domain(self._type(options), nullable=True)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        dtype = self._type(options)
        local_type = replace(dtype, zone=None)
        forms = self.formats(options)
        if any(map(has_offset, forms)):
            (form,) = forms
            parsed = _parsed(ns, text, form, replace(dtype, zone="UTC"))
            return parsed if dtype.zone == "UTC" else parsed.dt.convert_time_zone(dtype.zone or "")
        parts = [_parsed(ns, text, form, local_type) for form in forms]
        local = reduce(lambda first, second: ns.coalesce(first, second), parts)
        if dtype.zone is None:
            return local
        return kept_inside(ns, in_zone(local, dtype.zone), dtype, calendar(dtype))

    def _type(self, options: Options) -> DType:
        zone = optional_text(options, "zone")
        if zone is None and any(map(has_offset, self.formats(options))):
            zone = "UTC"
        return datetime_type(optional_text(options, "unit") or "us", zone)

    def arguments(self, options: Options) -> str:
        form, zone = super().arguments(options), optional_text(options, "zone")
        unit = optional_text(options, "unit")
        given = [form] if form else []
        given += [f"time_unit={quoted(unit)}"] if unit not in (None, "us") else []
        given += [f"time_zone={quoted(zone)}"] if zone is not None else []
        return ", ".join(given)


def _parsed(ns: Namespace, text: pl.Expr, form: str, dtype: DType) -> pl.Expr:
    """A text in a format as a Datetime that is inside the calendar."""
    unit = dtype.unit or "us"
    if unit != "ns":
        value: pl.Expr = parse_as(text, form, "Datetime", unit)
        return kept_inside(ns, value, dtype, calendar(dtype))
    # Nanoseconds wrap without a sign, so a coarser reading says which ones did.
    coarse = replace(dtype, unit="us")
    limits = INT64_LIMITS[0] // 1000 + 1, INT64_LIMITS[1] // 1000 - 1
    seen = kept_inside(ns, parse_as(text, form, "Datetime", "us"), coarse, limits)
    expression: pl.Expr = ns.when(seen.is_not_null()).then(parse_as(text, form, "Datetime", unit))
    return expression


class ToInteger(TextOperation):
    """Digits with an optional sign, and nothing else; null where the number does not fit."""

    name = "str_to_integer"
    method = "str.to_integer"
    summary = "A whole number in a constant base."
    examples = (
        'pl.col("s").str.to_integer(strict=False)',
        'pl.col("i64").cast(pl.String).str.to_integer(strict=False)',
        'pl.col("sb").str.to_integer(base=16, dtype=pl.Int8, strict=False)',
    )

    def check(self, options: Options) -> None:
        if not 2 <= whole_option(options, "base") <= 36:
            raise InvalidBounds(
                f"there is no base {options['base']}", remedy="use a base between 2 and 36"
            )
        if not _integer_type(options).is_integer:
            raise UnsupportedOperation(
                f"str.to_integer makes no {_integer_type(options)}", remedy="use an integer type"
            )

    def result(self, operand: Domain, options: Options) -> Domain:
        dtype = _integer_type(options)
        results = known_results(self, operand, options)
        known = domain_of_dtype(dtype).interval
        if results is None:
            return Domain(dtype, nullable=True, interval=known)
        numbers = tuple(dict.fromkeys(v for v in results if isinstance(v, int)))
        known = interval(min(numbers), max(numbers)) if numbers else known
        return Domain(dtype, nullable=True, interval=known, categories=numbers)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        dtype = to_polars(_integer_type(options))
        return text.str.to_integer(base=whole_option(options, "base"), dtype=dtype, strict=False)

    def arguments(self, options: Options) -> str:
        base, dtype = whole_option(options, "base"), _integer_type(options)
        given = [f"base={base}"] if base != 10 else []
        given += [f"dtype={dtype}"] if dtype != INT64 else []
        return ", ".join(given)


def _integer_type(options: Options) -> DType:
    return cast("DType", options.get("dtype") or INT64)


OPERATIONS: tuple[RowOperation, ...] = (ToDate(), ToTime(), ToDatetime(), ToInteger())
