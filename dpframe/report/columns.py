"""What is known of a frame and its columns, in words; from facts alone, without data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import DType
from dpframe.core.exact import show
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Literal
from dpframe.frames.definition import definition
from dpframe.frames.relation import Relation
from dpframe.rows.constants import literal_words

_FEW = 6
_EPOCH = datetime(1970, 1, 1)


def frame_words(relation: Relation) -> str:
    """Whom a frame protects, and what is known of its columns."""
    lines = [f"{relation.name}: protects {relation.facts.unit.whom()}"]
    lines += [f"  {name}: {domain_words(found)}" for name, found in relation.facts.columns.items()]
    return "\n".join(lines)


def known_columns(relation: Relation) -> Iterator[tuple[str, str, str]]:
    """Name and type of each column, and what else is known of it."""
    for name, found in relation.facts.columns.items():
        dtype = str(found.dtype)
        yield name, dtype, domain_words(found).removeprefix(dtype).removeprefix(", ")


def domain_words(domain: Domain) -> str:
    """The facts about a column on one line."""
    limits = limits_words(domain)
    return f"{domain.dtype}, {limits}" if limits else str(domain.dtype)


def limits_words(domain: Domain, *, declared: bool = False) -> str:
    """The known facts except the type. A `declared` column lists them in full for fingerprints."""
    parts = []
    interval, dtype = domain.interval, domain.dtype
    if interval != EVERYTHING and dtype.is_ordered and not dtype.is_boolean:
        parts.append(_interval_words(interval.lo, interval.hi, dtype))
    listed = domain.categories
    if listed is not None and not dtype.is_boolean and not (declared and dtype.name == "Enum"):
        shown = ", ".join(literal_words(Literal(c, dtype)) for c in listed[:_FEW])
        parts.append(f"one of {shown}{_others(listed, in_full=declared)}")
    if not domain.nullable:
        parts.append("not null")
    if dtype.is_float and not domain.nan:
        parts.append("not NaN")
    return ", ".join(parts)


def _others(listed: Sequence[Scalar], *, in_full: bool) -> str:
    """How many categories are not shown; with `in_full` also a digest of all, for fingerprints."""
    if len(listed) <= _FEW:
        return ""
    more = f" and {len(listed) - _FEW} more"
    if not in_full:  # it follows from what was declared, and from the steps
        return more
    text = json.dumps(definition(listed), ensure_ascii=True)
    return f"{more} (all of SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"


def _interval_words(lo: Fraction | None, hi: Fraction | None, dtype: DType) -> str:
    if lo is None or hi is None:
        end, side = (hi, "at most") if lo is None else (lo, "at least")
        return "any value" if end is None else f"{side} {_end_words(end, dtype)}"
    return f"in [{_end_words(lo, dtype)}, {_end_words(hi, dtype)}]"


def _end_words(end: Fraction, dtype: DType) -> str:
    """An end of an interval as people write values of the type."""
    try:
        match dtype.name:
            case "Date":
                return (_EPOCH + timedelta(days=int(end))).date().isoformat()
            case "Datetime":
                zone = "Z" if dtype.zone else ""
                return f"{_EPOCH + _span(end, dtype)}{zone}"
            case "Duration":
                return str(_span(end, dtype))
            case "Time":
                return str((_EPOCH + timedelta(microseconds=int(end / 1000))).time())
    except (OverflowError, ValueError):
        return f"{show(end)} units"
    return show(end)


def _span(end: Fraction, dtype: DType) -> timedelta:
    return timedelta(microseconds=int(end * 10**6 / dtype.units_per_second))
