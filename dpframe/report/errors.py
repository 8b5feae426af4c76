"""The 95% error of each output, what it means for groups of a size, and bounds far too wide."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Final, TypeAlias

from dpframe.aggregates.error import MeanError, NoErrorBound, RankError, VarianceError
from dpframe.aggregates.reconstructed_error import RunRankError
from dpframe.core.exact import exact, show, show_input
from dpframe.core.regular import RULES, ends_of_rule
from dpframe.core.tree import Call, Column, walk
from dpframe.errors import DPFrameError, InvalidBounds
from dpframe.frames.definition import Json, objects_in
from dpframe.mechanisms import AdditiveMechanism, KeyMechanism, ReportMechanism
from dpframe.plan import NoisyAggregate, PlanData, PlanOutput, PlanTypical
from dpframe.plan.data import error_of
from dpframe.plan.reading import trees_in
from dpframe.report.numbers import separated, shown

# What noise and delta mean for groups of a size that the reviewer guesses.

_TOO_MUCH = Fraction(1, 10)


def size_of(size: object) -> int:
    """A guessed number of individuals. Raises `InvalidBounds` when it is not a positive integer."""
    if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 2**63:
        return size
    raise InvalidBounds(
        f"size= is a positive integer below 2**63, and {show_input(size)} is not",
        where="explain(size=...)",
        remedy="write for example size=1000",
    )


def warnings_at(plan: PlanData, size: int) -> Iterator[str]:
    """The risks if each group, or all rows without groups, has this many individuals."""
    individuals = size * (plan.groups or 1)
    if plan.cost.slack > Fraction(1, individuals):
        yield (
            f"delta {shown(plan.cost.slack)} is above one over {shown(individuals)} individuals: "
            "it allows to publish one of them as they are"
        )
    for release in plan.releases:
        if release.mechanism != "none":
            yield from _large_error(release, size)


def _large_error(release: NoisyAggregate, size: int) -> Iterator[str]:
    what = f"{release.name} [{release.aggregate}]"
    law = release.law
    if isinstance(law, KeyMechanism):
        if release.accuracy() > size:
            yield (
                f"{what}: a group of {shown(size)} individuals may well be missing, because a "
                f"group needs {shown(release.accuracy())} to appear in 95% of cases"
            )
        return
    if isinstance(law, ReportMechanism):
        most, error = float(size), law.error(0.95, size)
    else:
        most, error = size * release.sensitivity.linf, release.accuracy()
    if error <= most * _TOO_MUCH:
        return
    found = f"the noise may be {separated(about(error))} (95%)"
    if release.candidates is not None:
        found = f"the chosen score may be {separated(about(error))} below the best (95%)"
        if "quantile" in release.aggregate:
            yield (
                f"{what}: if the rows of {shown(size)} individuals are sorted, the published value "
                f"may stand {separated(about(error))} places from the exact one (95%)"
            )
            return
    yield (
        f"{what}: {found}, more than a tenth of {shown(most)}, the most that {shown(size)} "
        "individuals can add"
    )


def about(value: float) -> str:
    """An error bound for people: four digits, rounded up so that it stays a bound."""
    if not 1e-4 <= value < 1e15:
        return show(value, 4)
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(value)).normalize():f}"


# Bounds that are far wider than values are: noise grows with them, and nothing else shows it.

Typical: TypeAlias = "Sequence[PlanTypical]"

_TIMES: Final = 100
"""Bounds that reach this many times what is typical, or what other outputs suppose, are too
wide."""
_HUGE: Final = Fraction(10) ** 7
"""Bounds that reach this far are a risk if no typical value is stated."""
_KNOWN: Final = "what is known of it"
_TIMED: Final = frozenset(("Date", "Datetime", "Duration", "Time"))


def typical_value(value: object, where: str) -> Fraction:
    """What a value of a column is like. Raises `InvalidBounds` when it is no number, or 0."""
    try:
        fraction = exact(value)
    except (TypeError, ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if not fraction:
        raise InvalidBounds(
            f"a typical value is a number other than 0, and not {show_input(value)}",
            where=where,
            remedy="write for example 3000",
        )
    return fraction


def typical_of(given: Mapping[str, object]) -> tuple[PlanTypical, ...]:
    """What a reviewer guesses, by column. Raises `InvalidBounds` when a value is no number, or
    0.
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
    used, noise = [plan.releases[number] for number in output.releases], None
    if len(used) == 1 and isinstance(used[0].noise, AdditiveMechanism):
        # the error of a mean depends on how many values there are
        error = used[0].accuracy()
        noise = error if math.isfinite(error) else None
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
            for one in objects_in(value):  # what was declared or follows from steps
                is_known = one.get("type") == "Interval"
                lo, hi = (_number(one.get(end)) if is_known else None for end in ("lo", "hi"))
                if lo is not None and hi is not None:
                    yield _Bounds(_KNOWN, name, max(abs(lo), abs(hi)), False, timed)


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


# The 95% error of each output, in its own units, and how many rows make it a good result.

PLACES: Final = "places in sorted order"
"""The unit of the error of a quantile."""

_SUPPOSED: Final = 1000
"""The number of rows to assume where an error depends on it and the reviewer gives no guess."""
_LEVEL: Final = Fraction(95, 100)
_GOOD, _ROUGH = 0.1, 0.3
"""An error of a tenth of the result is good, one of up to three tenths rough."""
_UNIT: Final = re.compile(r" in (days|microseconds|milliseconds|nanoseconds)\b")


@dataclass(frozen=True, slots=True)
class Error:
    """The 95% error of an output."""

    words: str  # Such as ``"± 12"`` or ``"± 0.7 with 1,000 rows"``
    # ``"good"``, ``"rough"`` or ``"useless"`` where a size is known. Otherwise the number of rows
    # from which the error is at most a tenth of the result; empty where that is unknown.
    verdict: str = ""
    enough: float | None = None  # This number of rows; None where it is unknown


def errors_of(
    plan: PlanData,
    block: PlanData,
    size: int | None = None,
    typical: Typical = (),
) -> list[Error]:
    """The errors of the outputs of one query of a plan."""
    ends = limits_of(plan)
    times = 1 if ends is None else ends[2]
    return [_error(block, output, size, typical, times) for output in block.outputs]


def limits_of(plan: PlanData) -> tuple[int, int, Fraction | float] | None:
    """The limit with the least noise, the largest limit, and the noise under the first divided by
    the noise under the second; None for a query that finds no limit.
    """
    if plan.found is None:
        return None
    # the noise, because the error of a mean is at most the width of its bounds
    errors = [(c.n, c.error if c.noise is None else c.noise) for c in plan.found.choices]
    known = [(n, error) for n, error in errors if error]
    if not known:
        return None
    n, least = min(known, key=lambda one: one[1])
    most, error = known[-1]
    return n, most, least / error


def _error(
    block: PlanData,
    output: PlanOutput,
    size: int | None,
    typical: Typical,
    times: Fraction | float,
) -> Error:
    used = [block.releases[number] for number in output.releases]
    if used and all(release.mechanism == "none" for release in used):
        return Error("exact")
    rule = output.error
    if isinstance(rule, NoErrorBound):
        return _of_ratio(block, output, used, size, times) or _of_parts(output, used, times)
    inner = getattr(rule, "inner", rule)
    moment = inner if isinstance(inner, MeanError | VarianceError) else None
    response = len(used) == 1 and isinstance(used[0].law, ReportMechanism)
    count = (size or _SUPPOSED) if moment is not None or response else None
    try:
        error = error_of(rule, used, _LEVEL, False, count, None)
    except DPFrameError:
        return _of_parts(output, used, times)
    if not math.isfinite(error):
        return Error("unknown")
    if used and isinstance(used[0].law, KeyMechanism) and len(used) == 1:
        return Error(f"groups of {about(error)} appear in 95% of cases")
    values: float | None = count
    least = error * float(times)
    if moment is not None and count and times != 1:  # less noise is like more values
        values = count / float(times)
        least = error_of(rule, used, _LEVEL, False, values, None)
    reference = error if moment is None or times == 1 else least
    enough = _enough(block, output, used, moment, values, reference, typical)
    where = f" with {count:,} {'rows' if response else 'values'}" if count else ""
    ranks = isinstance(rule, RankError | RunRankError) or _is_rank(used)
    amount = _amount(math.ceil(error) if ranks else error, used)
    if times != 1 and error:
        amount = f"{_amount(math.ceil(least) if ranks else least, used)} to {amount}"
    words = f"± {amount}{f' {PLACES}' if ranks else ''}{where}"
    if not ranks and used and used[0].candidates is not None:
        words = f"score within {amount} of the best{where}"
    grouped = block.groups is not None
    return _judge(words, enough, size, grouped, times)


def _judge(
    words: str, enough: float | None, size: int | None, grouped: bool, times: Fraction | float
) -> Error:
    """An error and its verdict; under a found limit, of the limit with the least error."""
    if enough is None or times == 1:
        return Error(words, _verdict(enough, size, grouped), enough)
    least = enough * float(times)
    verdict = _verdict(least, size, grouped)
    if size is None and rounded(least) != rounded(enough):
        verdict = verdict.replace(" rows", f" to {rounded(enough)} rows", 1)
    return Error(words, verdict, least)


def _is_rank(used: Sequence[NoisyAggregate]) -> bool:
    return bool(used) and "quantile" in used[0].aggregate and used[0].candidates is not None


def _amount(error: float, used: Sequence[NoisyAggregate]) -> str:
    unit = _UNIT.search(used[0].contents.partition("[")[0]) if used else None
    if unit is None:
        return separated(about(error))
    if unit[1] == "days":
        return f"{separated(about(error))} days"
    seconds = error / {"microseconds": 1e6, "milliseconds": 1e3, "nanoseconds": 1e9}[unit[1]]
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds >= length:
            return f"{separated(about(seconds / length))} {name}"
    return f"{separated(about(seconds))} seconds"


def _of_ratio(
    block: PlanData,
    output: PlanOutput,
    used: Sequence[NoisyAggregate],
    size: int | None,
    times: Fraction | float,
) -> Error | None:
    """The error of a sum or count divided by a count: 95% of results are at most this wrong, if
    the ratio is as large as it can be.
    """
    additive = all(isinstance(r.noise, AdditiveMechanism) and r.spread.norm is None for r in used)
    if _operation(output, used) != "truediv" or not additive:
        return None
    if "number of" not in used[1].contents[:12]:
        return None
    over, under = (release.accuracy(0.975) for release in used)
    rows = max(used[0].spread.tight[2], 1)
    most = float(used[0].sensitivity.linf) / rows
    count = size or _SUPPOSED
    if not most or count <= under * times:
        return None
    errors = [(over + most * under) * n / (count - under * n) for n in {float(times), 1.0}]
    amount = " to ".join(separated(about(error)) for error in sorted(e for e in errors if e > 0))
    more = "" if count > under else " or more"
    enough = (over + most * under) / (_GOOD * most / 2) + under
    words = f"± {amount}{more} with {count:,} rows"
    return _judge(words, enough, size, block.groups is not None, times)


def _operation(output: PlanOutput, used: Sequence[NoisyAggregate]) -> str:
    """The operation that makes an output of two numbers, in their order; empty for others."""
    last = output.definition[-1] if isinstance(output.definition, list) else None
    tree = next(iter(trees_in(last)), None)
    if not isinstance(tree, Call) or len(used) != 2:
        return ""
    places = [node.name for node in walk(tree) if isinstance(node, Column)]
    return tree.operation.name if places == ["0", "1"] else ""


def _of_parts(output: PlanOutput, used: Sequence[NoisyAggregate], times: Fraction | float) -> Error:
    """The error of an output that is computed from several numbers. The errors of these, but for
    sums and differences, whose error is at most the sum of both (union bound).
    """
    additive = all(isinstance(r.noise, AdditiveMechanism) for r in used)
    operation = _operation(output, used)
    enough = None
    if additive:
        enough = max((_enough_of_sum(r, None) or 0.0 for r in used), default=0.0) or None
    parts = list[float]()
    for release in used:
        with suppress(DPFrameError):
            parts.append(release.accuracy(0.975 if operation in ("add", "sub") else 0.95))
    if not parts:
        return Error("depends on the data")
    if additive and operation in ("add", "sub"):
        words = _range(sum(parts), times)
    elif operation == "truediv" or ("dp_ratio(" in output.words and len(parts) == 2):
        words = f"numerator {_range(parts[0], times)}, denominator {_range(parts[1], times)}"
        if parts[0] == parts[1]:
            words = f"numerator and denominator {_range(parts[0], times)}"
    else:
        each = dict.fromkeys(_range(part, times) for part in parts[:3])
        words = f"computed from numbers with {' and '.join(each)}"
    return _judge(words, enough, None, False, times)


def _range(error: float, times: Fraction | float) -> str:
    """An error, from that under the best found limit to that under the largest."""
    ends = dict.fromkeys(separated(about(error * n)) for n in (float(times), 1.0))
    return f"± {' to '.join(ends)}"


def _enough_of_sum(release: NoisyAggregate, typical: float | None) -> float | None:
    """From how many rows on the noise is a tenth of a sum, if rows add half of what they may."""
    if not isinstance(release.noise, AdditiveMechanism) or release.spread.norm is not None:
        return None
    rows = max(release.spread.tight[2], 1)
    most = float(release.sensitivity.linf) / rows
    each = typical or (most if "number of" in release.contents[:12] else most / 2)
    return release.accuracy() / (_GOOD * each) if each else None


def _enough(
    block: PlanData,
    output: PlanOutput,
    used: Sequence[NoisyAggregate],
    moment: MeanError | VarianceError | None,
    count: float | None,
    error: float,
    typical: Typical,
) -> float | None:
    """The number of rows from which on an error is a tenth of the result; of a mean a tenth of
    half its bounds, of a rank a twentieth of the rows.
    """
    if moment is not None and count:
        half = float(moment.width) / 2
        scale = half if isinstance(moment, MeanError) or moment.root else half * half
        if not scale:
            return None
        many = max((_enough_of_sum(release, None) or 0.0 for release in used), default=0.0)
        if error > _GOOD * scale and many > count:
            # the bounds limit this error, and so it says little about the noise
            count, error = many, error_of(output.error, used, _LEVEL, False, many, None)
        root = isinstance(moment, VarianceError) and moment.root  # falls by the root of the number
        return count * (error / (_GOOD * scale)) ** (2 if root else 1)
    if _is_rank(used) or isinstance(output.error, RankError | RunRankError):
        return error * 2 / _GOOD
    if len(used) >= 1 and used[0].candidates is None and not isinstance(used[0].law, KeyMechanism):
        columns = [t for t in (*block.typical, *typical) if f'"{t.column}"' in output.words]
        stated = abs(float(columns[0].value)) if len(columns) == 1 else None
        if "number of" in used[0].contents[:12]:
            return error / _GOOD
        return _enough_of_sum(used[0], stated)
    return None


def _verdict(enough: float | None, size: int | None, grouped: bool) -> str:
    if enough is None:
        return ""
    if size is None:
        return f"good from {rounded(enough)} rows" + (" per group" if grouped else "")
    of = f" with {size:,} rows"
    if enough <= size:
        return "good" + of
    return ("rough" if enough * _GOOD / _ROUGH <= size else "useless") + of


def rounded(number: float) -> str:
    """A number of rows, rounded up to two digits."""
    if number <= 10:
        return "10"
    power = 10 ** (len(str(int(number))) - 2)
    return f"{math.ceil(number / power) * power:,}"
