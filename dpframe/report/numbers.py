"""Numbers, amounts and sentences of plans in plainer words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import polars as pl

from dpframe.core.budget import Budget
from dpframe.core.exact import show
from dpframe.errors import DPFrameError
from dpframe.plan import PlanData

# Numbers as people read them: with a comma between thousands where there are many digits.

_LONG = re.compile(r"(?<![\w.,'\"])(\d{5,})(?!\w)")
"""Five digits or more before the point, but not in names. Years have four."""
_POWER = re.compile(r"(?<![\w.,'\"])(\d(?:\.\d+)?e(?:[5-9]|1[0-4]))(?!\w)")
"""Numbers with a power of ten that read better without it."""
_ENDS = re.compile(
    r"\b(?:in|to) \[-?\d[^\[\]'\"]*, -?\d[^\[\]'\"]*\]|(?<=, )less -?\d[\d.e]*(?=[;)]|$)"
)


def shown(value: Fraction | int | float, digits: int = 6) -> str:
    """A number rounded for people, as `show`; below 10**15 without a power of ten."""
    return separated(show(value, digits))


def separated(text: str) -> str:
    """A sentence with separators in its long numbers; not for code."""
    text = _POWER.sub(lambda found: f"{Decimal(found[1]):f}", text)

    def in_thousands(found: re.Match[str]) -> str:
        """Digits as text, because there may be more than Python converts to a number."""
        digits, first = found[1], len(found[1]) % 3
        groups = (digits[i : i + 3] for i in range(first, len(digits), 3))
        return ",".join(filter(None, (digits[:first], *groups)))

    return _LONG.sub(in_thousands, text)


def bounds_separated(text: str) -> str:
    """The same in bounds such as ``in [0, 100000]`` alone, and in what values are ``less``: the
    rest may be code.
    """
    return _ENDS.sub(lambda found: separated(found[0]), text)


# Two amounts, so that they can be distinguished.


def amounts(whose: str, before: Budget, after: Budget) -> Iterator[str]:
    """The old and the new cost, a line for each amount that changed."""
    if before.currency != after.currency:
        yield f"cost of {whose} {before.words()} -> {after.words()}"
        return
    pairs: tuple[tuple[str, Fraction, Fraction], ...] = (
        (before.currency, before.main, after.main),
        ("delta", before.slack, after.slack),
    )
    for what, one, other in pairs:
        if one != other:
            yield f"{what} of {whose} {change_words(one, other)}"


def change_words(one: Fraction | float, other: Fraction | float, digits: int = 6) -> str:
    """Two amounts with as many digits as are needed to see the difference."""
    while one != other and shown(one, digits) == shown(other, digits) and digits < 40:
        digits += 4
    return f"{shown(one, digits)} -> {shown(other, digits)}"


# Sentences of plans in plainer words.
#
# The sentences that a plan stores are part of its fingerprint, which approvals refer to, so they
# stay unchanged. `reword` replaces them when a plan is shown. This also works for old documents,
# and no approval is lost.

_BETTER: Final = tuple(
    (re.compile(pattern), better)
    for pattern, better in (
        (
            r"drawn together with ([^:]+?): ([\d.]+) times less noise than by itself",
            r"shares its noise with \1: \2 times less noise than if released alone",
        ),
        (
            r"drawn together with ([^:]+?), which err less for it: ([\d.]+) times more noise than "
            r"by itself",
            r"shares its noise with \1, which get less noise: \2 times more noise than if "
            r"released alone",
        ),
        (
            r"([\d.]+) times more noise than if the others, which err less for it, were not drawn "
            r"together",
            r"\1 times more noise than if the others did not share theirs, which gives them less",
        ),
        (
            r"([\d.]+) times (less|more) error than by itself",
            r"\1 times \2 error than if released alone",
        ),
        (r", so that others err less", ", so that other outputs have smaller errors"),
        (
            r"errs less than (\d+) choices that share the cost",
            r"has a smaller error than \1 choices that share the cost",
        ),
        (r"than (\d+ )?choices apart", r"than \1separate choices"),
        (
            r"one number by itself, of individuals that are weighed",
            "one number, of weighed individuals",
        ),
        (r"pure DP knows no Gaussian noise", "Gaussian noise needs a delta"),
        (
            r"by L2, less noise here than Laplace by L1",
            "Gaussian noise by L2 is smaller here than Laplace noise by L1",
        ),
        (
            r"nothing tells how many do\b",
            "the result does not show how many values are clamped",
        ),
        (
            r"nothing tells how many rows are dropped",
            "the result does not show how many rows are dropped",
        ),
        (r"nothing tells (by )?how much( does)?\b", r"the result does not show \1how much"),
        (r"dropped tells the noisy share", "the column dropped is the noisy share"),
        (
            r"decides nothing here: what holds without it is as tight",
            "changes nothing here: another limit is as tight",
        ),
        (r"decides that in the end one individual has", "so one individual has"),
        (r"sums of (\d+) neighbours each", r"added up in runs of \1 neighbours"),
        (
            r"; for each of them a sum of it and all before, of which the k-th last counts "
            r"binom\(2k, k\) / 4\^k, in whole parts of 2\^16 \(square root factorisation\)",
            "; running sums with falling weights (square root factorisation)",
        ),
        (
            r"one sum of all periods so far, of which the k-th last counts binom\(2k, k\) / 4\^k, "
            r"in whole parts of 2\^16 \(square root factorisation\)",
            "one sum of all periods so far with falling weights (square root factorisation)",
        ),
        (r"; each by itself\b", "; each separately"),
        (r"each group by itself is made to rise", "each group is made to rise separately"),
        (r"clamped each by itself", "clamped separately"),
        (r"\bby itself\b", "separately"),
        (
            r"its running total is sums of what periods are said to have",
            "the running total adds the published numbers of the periods",
        ),
        (
            r"moved towards the mean of all groups by as much as its noise is above their spread, "
            r"and so biased: groups come out more alike than they are, most of all small ones, and "
            r"one whose noisy count is below 1 gets the mean of all",
            "moved towards the mean of all groups where its noise is above their spread, and so "
            "biased: groups, small ones most of all, look more alike than they are. A group with "
            "a noisy count below 1 gets the mean of all",
        ),
        (
            r"; null where the total below the line is within",
            ". It is null where the denominator is within",
        ),
        (
            r", of which one individual is in its first ones: its rows must",
            ": one individual is in the first of its parts. Its rows must",
        ),
        (
            r"; use dp_ratio, which clamps both by one factor, or bounds that nearly nobody "
            r"exceeds",
            ". Use dp_ratio, which clamps both by one factor, or bounds that few people exceed",
        ),
        (r"; so many of these as limits allow", ", as many as limits allow"),
        (r"rows of nobody are dropped", "rows without an individual are dropped"),
        (
            r"text file, where one record can make a query fail after it was charged, change how "
            r"others are read, or have changed a type that was inferred; protect the path itself "
            r"with a schema: session",
            "text file. One record can make a query fail after the charge, change how others are "
            "read, or have changed an inferred type. Protect the path with a schema: session",
        ),
        (
            r"leave out groups(.*) that rounds before found",
            r"leave out groups\1 found in earlier rounds",
        ),
        (r"\bpublic frame of 1 rows\b", "public frame of 1 row"),
        (
            r"rows meet rows of the same individual only, whose numbers multiply",
            "a person's rows meet only rows of the same person: their numbers are multiplied",
        ),
        (
            r"a promise of the data owner\b",
            "promised where protect was called",
        ),
        (r"null too unless it is a key", "and null unless it is a key"),
        (r"whatever is added up later", "all later totals"),
        (r"also from all later totals", "and missing from later totals"),
    )
)
_UNBIASED: Final = re.compile(r"\bunbiased\b(; )?")


def reword(sentence: str, *, biased: bool = False) -> str:
    """A sentence of a plan in plainer words, without the word "unbiased" for `biased` results."""
    for pattern, better in _BETTER:
        sentence = pattern.sub(better, sentence)
    return _UNBIASED.sub("", sentence).strip() if biased else sentence


# Released numbers as people read them: rounded to their error, with separators.

_SINGLE = {"count", "sum", "histogram", "cdf", "n_unique"}
"""Results whose error is that of one noisy number, or of the largest of several."""
_OF_PLAN = "± is the 95% error by privacy noise; it does not cover sampling error"
_AS_ASKED = "± is half of the interval that interval= asked for"
_TWO_DIGITS = 3.55
"""Errors that begin with less have two digits, others one, as the Particle Data Group rounds."""
_WIDE = 8
"""Polars prints no more columns than this."""
_EVEN = 0.1
"""Ends of an interval as far from the number as each other, up to this share, are one error."""

Cells: TypeAlias = "list[str | None]"


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """A released frame as text."""

    columns: dict[str, Cells]  # The texts of each column, by name; None for null
    numbers: frozenset[str]  # The columns of numbers
    note: str  # What ± means, where it is shown

    def frame(self) -> pl.DataFrame:
        """The texts as columns, numbers aligned at the right."""
        made = dict[str, Cells]()
        for name, cells in self.columns.items():
            width = max((len(cell or "") for cell in cells), default=0)
            right = name in self.numbers
            made[name] = [None if c is None else c.rjust(width) if right else c for c in cells]
        return pl.DataFrame(made, schema=dict.fromkeys(made, pl.String))


def released_table(
    frame: pl.DataFrame,  # The rows to show
    plan: PlanData,  # The plan of the release
) -> ReleasedTable:
    """The rows of a released frame as text.

    A number is followed by its error where that is known: from the requested interval, if it is
    symmetric around the number, or from the plan. Ends of other intervals keep their own columns.
    One row of many columns becomes a row for each column.
    """
    outputs = [output.name for output in plan.outputs]
    results = {name: name for name in outputs if name in frame.columns}
    is_table = len(outputs) == 1 and "count" in frame.columns
    if is_table:
        results = {"count": outputs[0]}
    columns = dict[str, Cells]()
    merged, notes = set[str](), set[str]()
    for name, output in results.items():
        if not frame.schema[name].is_numeric():
            continue
        with_ends = f"{name}_low" in frame.columns
        low, high = ends_of(frame, output, name, plan)
        values, ends = frame[name].to_list(), (low.to_list(), high.to_list())
        errors = [_error(*row) for row in zip(values, *ends, strict=True)]
        even = all(_is_even(*row) for row in zip(values, *ends, errors, strict=True))
        pairs = zip(values, errors, strict=True)
        columns[name] = [_with_error(v, error, even) for v, error in pairs]
        for end in ("low", "high") if with_ends else ():
            merged.add(f"{name}_{end}")
            if not even:
                pairs = zip(frame[f"{name}_{end}"].to_list(), errors, strict=True)
                columns[f"{name}_{end}"] = [_with_error(v, error, False) for v, error in pairs]
        if even and any(error is not None for error in errors):
            notes.add(_AS_ASKED if with_ends else _OF_PLAN)
    shown = [c for c in frame.columns if c in columns or c not in merged]
    numbers = {c for c in shown if frame.schema[c].is_numeric()}
    texts = {
        c: columns[c] if c in columns else list(map(_plain, frame[c].to_list())) for c in shown
    }
    note = "; ".join(sorted(notes))
    if frame.height == 1 and len(shown) > _WIDE:
        values = [text for (text,) in texts.values()]
        upright: dict[str, Cells] = {"output": [*texts], "value": values}
        return ReleasedTable(upright, frozenset({"value"}), note)
    return ReleasedTable(texts, frozenset(numbers), note)


def ends_of(
    frame: pl.DataFrame, output: str, column: str, plan: PlanData
) -> tuple[pl.Series, pl.Series]:
    """The ends of the intervals of a column, as Float64: the requested ones, otherwise the 95%
    intervals that the plan gives for one noisy number. Null where neither is known.
    """
    names = f"{column}_low", f"{column}_high"
    if names[0] in frame.columns and frame.schema[names[0]].is_numeric():
        low, high = (frame[name].cast(pl.Float64) for name in names)
        return low.alias("low"), high.alias("high")
    error: float | None = None
    kinds = kinds_of(output, plan)
    if len(kinds) == 1 and kinds <= _SINGLE and frame.schema[column].is_numeric():
        with suppress(DPFrameError):  # nothing is known of arithmetic and of responses
            error = plan.accuracy(output)
    if error is None:
        nothing = pl.Series([None] * frame.height, dtype=pl.Float64)
        return nothing.alias("low"), nothing.alias("high")
    value = frame[column].cast(pl.Float64)
    return (value - error).alias("low"), (value + error).alias("high")


def kinds_of(output: str, plan: PlanData) -> set[str]:
    """What the draws of an output measure."""
    return {r.aggregate for r in plan.releases if output in r.users}


def _error(value: object, low: float | None, high: float | None) -> float | None:
    if value is None or low is None or high is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    error = max(high - number, number - low)
    return error if math.isfinite(error) and error >= 0 else None


def _is_even(value: object, low: float | None, high: float | None, error: float | None) -> bool:
    if error is None or low is None or high is None:
        return True
    number = float(value)  # type: ignore[arg-type]
    return abs((high - number) - (number - low)) <= _EVEN * error


def _with_error(value: Any, error: float | None, shows_error: bool) -> str | None:
    if value is None:
        return None
    if error is None or error == 0 or not isinstance(value, (int, float, Decimal)):
        return _number(value)
    power = math.floor(math.log10(error))
    places = (1 if error / 10.0**power < _TWO_DIGITS else 0) - power
    if abs(float(value)) >= 1e15 or error >= 1e15:
        text, wide = _number(value), show(error, 2)
    else:
        decimals = 0 if isinstance(value, int) else max(0, places)
        text = f"{value:,.{decimals}f}"
        step = 10.0**-decimals if decimals else 10.0 ** max(0, power - 1)
        wide = f"{math.ceil(error / step - 1e-9) * step:,.{decimals}f}"
    return f"{text} ± {wide}" if shows_error else text


def _number(value: Any) -> str:
    """A number whose error is not known: whole, or in six digits."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, (int, Decimal)) else str(value)
    if not math.isfinite(value):
        return str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e15:
        return show(value, 6)
    power = math.floor(math.log10(abs(value))) if value else 0
    decimals = max(0, 5 - power)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def _plain(value: object) -> str | None:
    """A key, or what is not a number."""
    if value is None:
        return None
    return show(value, 6) if isinstance(value, float) and math.isfinite(value) else str(value)
