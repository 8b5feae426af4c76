"""Whole numbers combined bit by bit, as Int64 or Int128 in two's complement.

A Boolean counts as 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.rows.operands import whole_result, widened


def are_whole(domains: Sequence[Domain]) -> bool:
    """Whether operands are combined as whole numbers rather than as conditions."""
    types = [d.dtype for d in domains]
    whole = all(t.is_integer or t.is_boolean or t.name == "Null" for t in types)
    return whole and any(t.is_integer for t in types)


def combined(op: str, args: Sequence[Domain]) -> Domain:
    """The facts about two whole numbers combined by `&`, `|` or `^`."""
    found = whole_result(f"bits ({op})", args, lambda a, b: _combined(op, a, b))
    if found.dtype != INT64:
        return found
    x, y = (widened(d).interval for d in args)
    return replace(found, interval=_combined(op, x, y))  # no bit leaves Int64: nothing wraps


def _combined(op: str, a: Interval, b: Interval) -> Interval:
    positive = [known for known in (a, b) if known.lo is not None and known.lo >= 0]
    if op == "&" and positive:  # no bit is set that is not set in a number without a sign
        return interval(0, min((k.hi for k in positive if k.hi is not None), default=None))
    if not (a.bounded and b.bounded):
        return interval(0, None) if len(positive) == 2 else EVERYTHING
    power = 2 ** max(_bits(a), _bits(b))
    least = 0 if len(positive) == 2 else -power
    if op == "|" and len(positive) == 2:  # no bit is lost
        return interval(max(known.ends[0] for known in positive), power - 1)
    return interval(least, power - 1)


def _bits(known: Interval) -> int:
    """The number of bits of the numbers without their sign."""
    lo, hi = (int(end) for end in known.ends)
    return max(hi.bit_length(), (~lo).bit_length() if lo < 0 else lo.bit_length())
