"""Released numbers as people read them: rounded to their error, with separators."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl

from dpframe.core.exact import show
from dpframe.errors import DPFrameError
from dpframe.plan import PlanData

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
    """A released frame as text.

    Parameters
    ----------
    columns
        The texts of each column, by name; None for null.
    numbers
        The columns of numbers.
    note
        What ± means, where it is shown.
    """

    columns: dict[str, Cells]
    numbers: frozenset[str]
    note: str

    def frame(self) -> pl.DataFrame:
        """The texts as columns, numbers aligned at the right."""
        made = dict[str, Cells]()
        for name, cells in self.columns.items():
            width = max((len(cell or "") for cell in cells), default=0)
            right = name in self.numbers
            made[name] = [None if c is None else c.rjust(width) if right else c for c in cells]
        return pl.DataFrame(made, schema=dict.fromkeys(made, pl.String))


def released_table(frame: pl.DataFrame, plan: PlanData) -> ReleasedTable:
    """The rows of a released frame as text.

    A number is followed by its error where that is known: from the requested interval, if it is
    symmetric around the number, or from the plan. Ends of other intervals keep their own columns.
    One row of many columns becomes a row for each column.

    Parameters
    ----------
    frame
        The rows to show.
    plan
        The plan of the release.
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
