"""Datetimes in another time zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DType, datetime_type
from dpframe.core.interval import interval
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand, operand, text
from dpframe.rows.literal_casts import zone_info
from dpframe.rows.operation import Kind, Namespace, on, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.temporal import (
    DAY,
    Limits,
    TemporalMethod,
    calendar,
    has_gaps,
    inside,
    kept_inside,
    physical_units,
)
from dpframe.rows.temporal_local import in_zone
from dpframe.rows.written_dtypes import read_zone
from dpframe.rows.zones import is_shown, require_zone

_FARTHEST = 2 * DAY
"""Seconds; no two local times differ by more."""


@operation
class ConvertTimeZone(TemporalMethod):
    """The same instant in another time zone.

    A Datetime without a zone is taken to be in UTC, as Polars takes it. Null less than a day inside
    the years 1 to 9999, so that local time is in those years too.
    """

    examples = (
        *on("dtz", 'dt.convert_time_zone("UTC")'),
        *on("dt", 'dt.convert_time_zone("America/New_York")'),
    )
    types = ("Datetime",)
    zone: str

    def check(self) -> None:
        require_zone(self.zone)

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        return {"zone": read_zone(params)}

    def limits(self, dtype: DType) -> Limits | None:
        return None

    def result(self, operand: Domain) -> Domain:
        dtype = replace(operand.dtype, zone=self.zone)
        return inside(replace(operand, dtype=dtype, categories=None), calendar(dtype))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = replace(domains[0].dtype, zone=self.zone)
        return kept_inside(ns, self.apply(ns, args[0]), dtype, calendar(dtype))


@operation
class ReplaceTimeZone(TemporalMethod):
    """The same local time in another time zone, or in none.

    Null where the clock of the new zone skips the local time or shows it twice, and where the
    result is less than a day inside the years 1 to 9999.
    """

    examples = (
        *on("dt", 'dt.replace_time_zone("Europe/Amsterdam")'),
        *on("dtz", "dt.replace_time_zone(None)"),
        *on("dtb", 'dt.replace_time_zone("UTC")'),
    )
    types = ("Datetime",)
    zone: str | None

    def check(self) -> None:
        if self.zone is not None:
            require_zone(self.zone)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, ambiguous = operand(operands[0]), operands[1]
        zone = read_zone(params[0])
        if isinstance(source, Literal):
            constant = zoned_constant(source, zone, operand(ambiguous))
            if constant is not None:
                return constant
        require_null_if_ambiguous(ambiguous, cls.method)
        return cls(zone).of(source)

    def limits(self, dtype: DType) -> Limits | None:
        return calendar(dtype, _FARTHEST)

    def result(self, operand: Domain) -> Domain:
        dtype = replace(operand.dtype, zone=self.zone)
        may_move = has_gaps(operand.dtype) or has_gaps(dtype)
        off = physical_units(dtype, _FARTHEST) if may_move else 0
        nullable = operand.nullable or has_gaps(dtype)
        moved = Domain(dtype, nullable=nullable, interval=operand.interval + interval(-off, off))
        return inside(moved, calendar(dtype))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return in_zone(operand, self.zone)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = replace(domains[0].dtype, zone=self.zone)
        moved = TemporalMethod.lower(self, ns, args, domains)
        return kept_inside(ns, moved, dtype, calendar(dtype))

    def arguments(self) -> str:
        return "None" if self.zone is None else quoted(self.zone)


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
