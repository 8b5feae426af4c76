"""The aggregates that `describe` uses for each column, and the form of its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl

from dpframe.api.arguments import IntoBounds
from dpframe.api.expressions import DPExpr
from dpframe.api.functions import count, mean, n_unique, quantile, std
from dpframe.api.tidied import Change, Changes
from dpframe.core.domain import Domain
from dpframe.errors import InvalidBounds, UnboundedSensitivity, UnknownColumn, UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import has_rows

_QUARTILES = (("25%", 0.25), ("50%", 0.5), ("75%", 0.75))
_STATISTICS = ("count", "null_count", "n_unique", "mean", "std", "25%", "50%", "75%")


def description(
    facts: FrameFacts,
    columns: str | Sequence[str] | None,
    bounds: Mapping[str, IntoBounds] | None,
) -> tuple[list[DPExpr], Changes]:
    """The dp expressions of a description, and how its result is handed out.

    Raises
    ------
    UnknownColumn
        When the frame does not have the column.
    UnboundedSensitivity
        When bounds are missing; the message has the line to write.
    """
    names = _names(facts, columns)
    given = _ranges(bounds)
    for name in given:
        _known(name, names)
    lacking = [n for n in names if _lacks_bounds(facts.columns[n]) and n not in given]
    if lacking:
        pairs = ", ".join(f'"{n}": (low, high)' for n in lacking)
        raise UnboundedSensitivity(
            f"the values of {', '.join(map(repr, lacking))} have no known bounds",
            where="describe(...)",
            remedy=f"write .describe({names!r}, bounds={{{pairs}}}) with the ranges that "
            "you expect; values outside are clipped to them",
        )
    asked = [each for n in names for each in _of(n, facts.columns[n], given.get(n))]
    exprs = [DPExpr(replace(each._spec, interval_optional=True)) for each in asked]
    return exprs, Changes((Change(".describe(...)", lambda frame: _long(frame, names)),))


def _names(facts: FrameFacts, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return [name for name in facts.columns if name != facts.identifier]
    names = [columns] if isinstance(columns, str) else columns
    if has_rows(names) or not isinstance(names, Iterable):
        raise _no_names()
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise _no_names()
        _known(name, list(facts.columns))
    return names


def _no_names() -> UnsupportedOperation:
    return UnsupportedOperation(
        "describe takes names of columns",
        where="describe(...)",
        remedy='write for example .describe(["age", "income"])',
    )


def _ranges(bounds: object) -> dict[str, Any]:
    """Bounds by column; a frame cannot have bounds."""
    given = {} if bounds is None else bounds
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidBounds(
            "bounds= of describe is a dict of column names and pairs",
            where="describe(..., bounds=...)",
            remedy='write for example .describe(["age"], bounds={"age": (low, high)})',
        )
    return dict(given)


def _known(name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UnknownColumn(
            f"there is no column {name!r} to describe",
            where="describe(...)",
            remedy=did_you_mean(str(name), names),
        )


def _has_spread(found: Domain) -> bool:
    return found.dtype.is_numeric or found.dtype.is_boolean


def _lacks_bounds(found: Domain) -> bool:
    return found.dtype.is_ordered and found.bounds is None


def _of(name: str, found: Domain, bounds: IntoBounds | None) -> Iterator[DPExpr]:
    column = pl.col(name)
    yield count(column).alias(f"{name}_count")
    yield count(pl.when(column.is_null()).then(1)).alias(f"{name}_null_count")
    if not found.dtype.is_ordered:
        if not found.dtype.is_nested:
            yield n_unique(column).alias(f"{name}_n_unique")
        return
    yield mean(column, bounds).alias(f"{name}_mean")
    if _has_spread(found):
        yield std(column, bounds).alias(f"{name}_std")
    if not found.dtype.is_boolean:
        for said, q in _QUARTILES:
            yield quantile(column, q, bounds).alias(f"{name}_{said}")


def _long(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The one row of a description with a row for each statistic, as Polars has it."""
    found = frame.row(0, named=True)
    rows = [s for s in _STATISTICS if any(f"{name}_{s}" in found for name in names)]
    columns = {"statistic_" if "statistic" in names else "statistic": pl.Series(rows)}
    used = set[str]()
    for name in names:
        for end in ("", "_low", "_high"):
            cells = [f"{name}_{statistic}{end}" for statistic in rows]
            used.update(cells)
            if not end or any(cell in found for cell in cells):
                column = name + end
                while end and column in names:
                    column += "_"
                columns[column] = _cells([found.get(cell) for cell in cells])
    for other in (name for name in found if name not in used):  # the share that limits drop
        columns[other] = pl.repeat(found[other], len(rows), eager=True)
    return pl.DataFrame(columns)


def _cells(values: Sequence[Any]) -> pl.Series:
    """Numbers as Float64; text where a value is no number, such as a date."""
    if all(value is None or isinstance(value, (int, float, Decimal)) for value in values):
        floats = [None if value is None else float(value) for value in values]
        return pl.Series(floats, dtype=pl.Float64)
    texts = [None if value is None else str(value) for value in values]
    return pl.Series(texts, dtype=pl.String)
