"""Bounds that are far wider than values are: noise grows with them, and nothing else shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from dpframe.aggregates.error_rules import MeanError
from dpframe.core.exact import as_given, exact
from dpframe.core.regular import RULES, ends_of_rule
from dpframe.errors import DPFrameError, InvalidBounds
from dpframe.frames.definition import Json, objects_in
from dpframe.mechanisms import AdditiveMechanism
from dpframe.plan import NoisyAggregate, PlanData, PlanOutput, PlanTypical
from dpframe.report.group_size import about
from dpframe.report.numbers import separated, shown

Typical: TypeAlias = "Sequence[PlanTypical]"

_TIMES: Final = 100
"""Bounds that reach this many times what is typical, or what other outputs suppose, are too
wide."""
_HUGE: Final = Fraction(10) ** 7
"""Bounds that reach this far are a risk if no typical value is stated."""
_KNOWN: Final = "what is known of it"
_TIMED: Final = frozenset(("Date", "Datetime", "Duration", "Time"))


def typical_value(value: object, where: str) -> Fraction:
    """What a value of a column is like.

    Raises
    ------
    InvalidBounds
        When it is no number, or 0.
    """
    try:
        fraction = exact(value)
    except (TypeError, ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if not fraction:
        raise InvalidBounds(
            f"a typical value is a number other than 0, and not {as_given(value)}",
            where=where,
            remedy="write for example 3000",
        )
    return fraction


def typical_of(given: Mapping[str, object]) -> tuple[PlanTypical, ...]:
    """What a reviewer guesses, by column.

    Raises
    ------
    InvalidBounds
        When a value is no number, or 0.
    """
    where = "explain(typical={{{!r}: ...}})"
    return tuple(
        PlanTypical("", name, typical_value(value, where.format(name)))
        for name, value in given.items()
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What an output supposes of a column: its values lie within these ends."""

    output: str
    column: str
    reach: Fraction
    is_sum: bool
    timed: bool
    noise: float | None = None


def too_wide(plan: PlanData, typical: Typical = (), size: int | None = None) -> Iterator[str]:
    """The risks of bounds that are far wider than stated typical values, or than the bounds of
    other outputs. With a guess of the individuals in each group also means with an error above the
    typical value.
    """
    stated = {one.column: one for one in (*plan.typical, *typical)}
    found = [bounds for output in plan.outputs for bounds in _bounds(plan, output)]
    if size is not None:
        yield from _means(plan, found, stated, size)
    for bounds in dict.fromkeys(found):
        if bounds.is_sum and not bounds.timed:
            if bounds.column in stated:
                yield from _against(bounds, abs(stated[bounds.column].value))
            else:
                yield from _guessed(bounds, found)


def _against(bounds: _Bounds, typical: Fraction) -> Iterator[str]:
    if bounds.reach <= _TIMES * typical:
        return
    noise = ""
    if bounds.noise is not None:
        rows = Fraction(bounds.noise) / typical
        noise = (
            f"; the noise may be {separated(about(bounds.noise))} (95%), as much as "
            f"{separated(about(float(rows)))} typical values"
        )
    yield (
        f"{bounds.output}: the bounds of {bounds.column!r} reach {shown(bounds.reach)}, "
        f"{shown(round(bounds.reach / typical))} times the typical {shown(typical)}{noise}"
    )


def _means(
    plan: PlanData, found: Sequence[_Bounds], stated: Mapping[str, PlanTypical], size: int
) -> Iterator[str]:
    """Means of this many values with an error above the typical value."""
    for output in plan.outputs:
        columns = {bounds.column for bounds in found if bounds.output == output.name}
        rule = getattr(output.error, "inner", output.error)
        if not isinstance(rule, MeanError) or len(columns) != 1 or not columns <= stated.keys():
            continue
        typical = abs(stated[columns.pop()].value)
        with suppress(DPFrameError):
            error = plan.accuracy(output.name, count=size)
            if error > typical:
                yield (
                    f"{output.name}: the mean of {shown(size)} values may be off by "
                    f"{separated(about(error))} (95%), more than the typical {shown(typical)}"
                )


def _guessed(bounds: _Bounds, found: Sequence[_Bounds]) -> Iterator[str]:
    others = [o for o in found if o.column == bounds.column and o.reach]
    least = min(others, key=lambda other: other.reach, default=bounds)
    if bounds.reach > _TIMES * least.reach:
        yield (
            f"{bounds.output}: the bounds of {bounds.column!r} reach {shown(bounds.reach)}, and by "
            f"{least.output} values reach {shown(least.reach)}; noise grows with "
            f"bounds{_noise(bounds)}"
        )
    elif bounds.reach >= _HUGE:
        yield (
            f"{bounds.output}: the bounds of {bounds.column!r} reach {shown(bounds.reach)}. "
            f"Do values reach as far? Noise grows with bounds{_noise(bounds)}. State a typical "
            f"value with protect(..., typical={{{bounds.column!r}: value}})"
        )


def _noise(bounds: _Bounds) -> str:
    noise = bounds.noise
    return "" if noise is None else f": here it may be {separated(about(noise))} (95%)"


def _bounds(plan: PlanData, output: PlanOutput) -> Iterator[_Bounds]:
    """The bounds of each column that an output clamps, counts in cells or chooses from."""
    noise = _noise_of([plan.releases[number] for number in output.releases])
    for part in objects_in(output.definition):
        value = part.get("value")
        tree = value.get("tree") if isinstance(value, dict) else None
        if not isinstance(tree, dict) or tree.get("type") != "Column":
            continue
        ends = _ends(part)
        if ends:
            timed = any(one.get("name") in _TIMED for one in objects_in(value))
            is_sum = part.get("type") in ("GridSum", "SquareSum")
            name, reach = str(tree.get("name")), max(map(abs, ends))
            yield _Bounds(output.name, name, reach, is_sum, timed, noise)
            yield from (_Bounds(_KNOWN, name, known, False, timed) for known in _known(value))


def _known(value: Json) -> Iterator[Fraction]:
    """How far the values of a column reach by what was declared or follows from steps."""
    for one in objects_in(value):
        if one.get("type") == "Interval":
            lo, hi = _number(one.get("lo")), _number(one.get("hi"))
            if lo is not None and hi is not None:
                yield max(abs(lo), abs(hi))


def _noise_of(used: Sequence[NoisyAggregate]) -> float | None:
    """The error of a sum on its own; that of a mean depends on how many values there are."""
    if len(used) == 1 and isinstance(used[0].noise, AdditiveMechanism):
        found = used[0].accuracy()
        return found if math.isfinite(found) else None
    return None


def _ends(part: Mapping[str, Json]) -> list[Fraction]:
    edges = part.get("edges")
    if isinstance(edges, dict) and edges.keys() & RULES:
        return [*ends_of_rule(edges)]
    if isinstance(edges, list):  # which rise
        return [end for edge in (*edges[:1], *edges[-1:]) if (end := _number(edge)) is not None]
    grid = part.get("inner") or part.get("grid")
    if isinstance(grid, dict):
        step, centre = _number(grid.get("step")), _number(grid.get("centre"))
        lo, hi = _number(grid.get("lo")), _number(grid.get("hi"))
        if step is not None and centre is not None and lo is not None and hi is not None:
            return [centre + lo * step, centre + hi * step]
    first, step, points = (_number(part.get(name)) for name in ("lo", "step", "points"))
    if first is not None and step is not None and points is not None:
        return [first, first + step * (points - 1)]
    return []


def _number(found: Json) -> Fraction | None:
    if isinstance(found, int) and not isinstance(found, bool):
        return Fraction(found)
    if isinstance(found, dict):
        text = found.get("fraction", found.get("int"))
        if isinstance(text, str):
            return Fraction(text)
    return None
