"""Dates and times written as text, by a constant format."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import STRING, DType
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.broadcast import unordered
from dpframe.rows.operation import Kind, Namespace, on, operation
from dpframe.rows.temporal import TemporalMethod, guarded

LONGEST_FORMAT = 256
_DIRECTIVE = re.compile(r"%([-_0](?=[a-zA-Z]))?(\.?[369]?f|:*z|.|$)", re.DOTALL)
_DAY = frozenset("YCymbBhdeaAwuUWGgVjDxFv")
_CLOCK = frozenset([*"HkIlPpMSfRTXr", ".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"])
_ANY = frozenset("nt%")
_MOMENT = frozenset("cs")
_ZONE = frozenset(["Z", "z", ":z"])
_NUMBERS = frozenset("YCymdewuUWGgVjHkIlMSf")
"""Directives that may be padded in another way, with -, _ or 0 before the letter."""
_ISO = {"iso": " ", "iso:strict": "T"}
_FRACTION = {"ms": "%.3f", "us": "%.6f", "ns": "%.9f"}


@operation
class ToString(TemporalMethod):
    """The date or time as text, by a constant format of chrono's directives, or in ISO form; null
    outside the years 1 to 9999. Also dt.strftime.

    Only directives that every value of the type has: others fail when a row is written.
    """

    examples = (
        *on("d", 'dt.to_string("%Y-%m-%d")'),
        *on("dt", 'dt.strftime("%d.%m.%y %H:%M:%S%.3f")'),
        *on("dtms", 'dt.to_string("%-d %B, %A week %V of %G (%j) %I%p 100%%")'),
        *(*on("dt", "dt.to_string()"), *on("d", 'dt.to_string("iso")')),
        *(*on("dtz", 'dt.to_string("%F %T%:z")'), *on("t", 'dt.to_string("%H%M")')),
    )
    types = ("Date", "Datetime", "Time")
    format: str

    def result(self, operand: Domain) -> Domain:
        check_format(self.format, operand.dtype)
        return Domain(STRING, nullable=operand.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        form = check_format(self.format, dtype)
        written = guarded(ns, args[0], dtype, self.limits(dtype), lambda v: v.dt.to_string(form))
        return unordered(ns, written)


def check_format(form: str, dtype: DType) -> str:
    """The format in chrono's directives, which every value of the type must have."""
    if form in _ISO:
        return _iso(_ISO[form], dtype)
    if len(form) > LONGEST_FORMAT:
        raise InvalidBounds(
            f"the format is longer than {LONGEST_FORMAT} characters", remedy="use a shorter one"
        )
    allowed = _allowed(dtype)
    for match in _DIRECTIVE.finditer(form):
        padding, directive = match.groups()
        if directive not in allowed or (padding and directive not in _NUMBERS):
            raise UnsupportedOperation(
                f"the directive {match[0]!r} of a format is not supported for {dtype}",
                remedy='use directives of chrono that the type has, such as "%Y-%m-%d" for a date '
                'and "%H:%M:%S" for a time',
            )
    if form == "polars":
        raise UnsupportedOperation(
            "the format 'polars' is not supported", remedy='use "iso", or write the directives'
        )
    return form


def _allowed(dtype: DType) -> frozenset[str]:
    if dtype.name == "Date":
        return _ANY | _DAY
    if dtype.name == "Time":
        return _ANY | _CLOCK
    return _ANY | _DAY | _CLOCK | _MOMENT | (_ZONE if dtype.zone is not None else frozenset())


def _iso(between: str, dtype: DType) -> str:
    if dtype.name == "Date":
        return "%F"
    if dtype.name == "Time":
        return "%T%.f"
    return f"%F{between}%T{_FRACTION[dtype.unit or 'us']}{'' if dtype.zone is None else '%:z'}"


OPERATIONS: tuple[Kind, ...] = (ToString,)
