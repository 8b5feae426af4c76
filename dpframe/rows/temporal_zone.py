"""Datetimes in another time zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import datetime_type
from dpframe.core.interval import interval
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand, operand, text
from dpframe.rows.literal_casts import zone_info
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.temporal import (
    DAY,
    calendar,
    guarded,
    has_gaps,
    inside,
    kept_inside,
    physical_units,
    require_type,
)
from dpframe.rows.temporal_local import in_zone
from dpframe.rows.written_dtypes import read_zone
from dpframe.rows.zones import is_shown, require_zone

_FARTHEST = 2 * DAY
"""Seconds; no two local times differ by more."""


@operation
class ConvertTimeZone(ParametricOperation):
    """A Datetime without a zone is taken to be in UTC, as Polars takes it.

    Null less than a day inside the years 1 to 9999, so that local time is in those years too.
    """

    name = "dt_convert_time_zone"
    reads = ("TemporalExpr.ConvertTimeZone",)
    summary = "The same instant in another time zone."
    examples = (
        'pl.col("dtz").dt.convert_time_zone("UTC")',
        'pl.col("dt").dt.convert_time_zone("America/New_York")',
    )
    zone: str

    def check(self) -> None:
        require_zone(self.zone)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        zone = read_zone(params)
        if zone is None:
            raise LookupError("no zone")
        return cls(zone).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Datetime",), "dt.convert_time_zone")
        result = replace(args[0], dtype=replace(args[0].dtype, zone=self.zone), categories=None)
        return inside(result, calendar(result.dtype))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        result = replace(domains[0].dtype, zone=self.zone)
        return kept_inside(ns, args[0].dt.convert_time_zone(self.zone), result, calendar(result))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.convert_time_zone({quoted(self.zone)})"


@operation
class ReplaceTimeZone(ParametricOperation):
    """Null where the clock of the new zone skips the local time or shows it twice.

    Null too where the result is less than a day inside the years 1 to 9999.
    """

    name = "dt_replace_time_zone"
    reads = ("TemporalExpr.ReplaceTimeZone",)
    summary = "The same local time in another time zone, or in none."
    examples = (
        'pl.col("dt").dt.replace_time_zone("Europe/Amsterdam")',
        'pl.col("dtz").dt.replace_time_zone(None)',
        'pl.col("dtb").dt.replace_time_zone("UTC")',
    )
    zone: str | None

    def check(self) -> None:
        if self.zone is not None:
            require_zone(self.zone)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, ambiguous = operand(operands[0]), operands[1]
        zone = read_zone(params[0])
        if isinstance(source, Literal):
            folded = zoned_constant(source, zone, operand(ambiguous))
            if folded is not None:
                return folded
        require_null_if_ambiguous(ambiguous, "dt.replace_time_zone")
        return cls(zone).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Datetime",), "dt.replace_time_zone")
        dtype = args[0].dtype
        result = replace(dtype, zone=self.zone)
        operand = inside(args[0], calendar(dtype, _FARTHEST))
        off = physical_units(dtype, _FARTHEST) if has_gaps(dtype) or has_gaps(result) else 0
        known = operand.interval + interval(-off, off)
        moved = Domain(result, nullable=operand.nullable or has_gaps(result), interval=known)
        return inside(moved, calendar(result))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype, zone = domains[0].dtype, self.zone
        result = replace(dtype, zone=zone)
        moved = guarded(
            ns, args[0], dtype, calendar(dtype, _FARTHEST), lambda value: in_zone(value, zone)
        )
        return kept_inside(ns, moved, result, calendar(result))

    def words(self, args: Sequence[str]) -> str:
        zone = None if self.zone is None else quoted(self.zone)
        return f"{args[0]}.dt.replace_time_zone({zone})"


def require_null_if_ambiguous(value: Operand, what: str) -> None:
    """Refuse a choice for ambiguous times that would differ from null, which they become."""
    if text(value, f"ambiguous= of {what}") not in ("raise", "null"):
        raise UnsupportedOperation(
            f"ambiguous='earliest' or 'latest' in {what} is not supported",
            remedy="leave it out: ambiguous and non-existent times become null",
        )


def zoned_constant(source: Literal, zone: str | None, ambiguous: Tree) -> Literal | None:
    """A constant in another zone; the oldest Polars writes ``pl.lit(datetime)`` this way."""
    value = source.value
    if not isinstance(value, datetime) or not isinstance(ambiguous, Literal):
        return None
    if source.parameter is not None:
        return None
    wall = value.replace(tzinfo=None, fold=0)
    dtype = datetime_type(source.dtype.unit or "us", zone)
    if zone is None:
        return Literal(wall, dtype)
    choice = ambiguous.value
    if not is_shown(wall, zone, str(choice) if choice in ("earliest", "latest") else None):
        return None
    return Literal(wall.replace(tzinfo=zone_info(zone), fold=int(choice == "latest")), dtype)


OPERATIONS: tuple[Kind, ...] = (ConvertTimeZone, ReplaceTimeZone)
