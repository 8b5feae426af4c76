"""A guess, from public knowledge, about the data that a result will be computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Final

import polars as pl

from dpframe.core.exact import as_given, exact
from dpframe.errors import InvalidBounds

__all__ = ["Guess", "guess_of"]

_KNOWN: Final = ("count", "mean", "var", "std")
_REMEDY: Final = (
    'write a number, {"mean": 40, "std": 12}, or a public Series of values like those of the data'
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What is guessed of the values of one group.

    Parameters
    ----------
    count
        How many there are.
    mean, variance
        Theirs, in the units of the values; None where nothing is guessed.
    """

    count: float | None = None
    mean: float | None = None
    variance: float | None = None


def guess_of(
    value: object, kind: str, count: object = None, bounds: tuple[float, float] | None = None
) -> Guess:
    """A guess as callers write it.

    Parameters
    ----------
    value
        A number, date or duration, which is the result itself. Or a mapping of ``"count"``,
        ``"mean"``, ``"var"`` and ``"std"``, a Series of public values that are like those of the
        data, or None.
    kind
        What the result is: ``"mean"``, ``"var"`` or ``"std"``.
    count
        The number of values, if it is given separately.
    bounds
        What the values of a Series are clamped to.

    Raises
    ------
    InvalidBounds
        When it is neither of these.
    """
    given: Mapping[Any, object]
    if value is None:
        given = {}
    elif isinstance(value, pl.Series):
        given = _described(value, bounds)
    elif isinstance(value, Mapping):
        given = value
    else:
        given = {kind: value}
    found = Guess()
    for name, item in given.items():
        if name not in _KNOWN:
            raise InvalidBounds(
                f"a guess of data says their {', '.join(_KNOWN[:-1])} or {_KNOWN[-1]}, and not "
                f"{name!r}",
                where="guess",
                remedy=_REMEDY,
            )
        found = _with(found, name, item)
    return found if count is None else replace(found, count=_number("count", count))


def _with(guess: Guess, name: str, item: object) -> Guess:
    number = _number(name, item)
    match name:
        case "mean":
            return replace(guess, mean=number)
        case "count":
            return replace(guess, count=number)
        case "var":
            return replace(guess, variance=number)
        case _:
            return replace(guess, variance=number * number)


def _number(name: str, item: object) -> float:
    """A finite number; moments and durations as Polars stores them."""
    if isinstance(item, date | datetime | time | timedelta):
        item = pl.Series([item]).to_physical().item()
    if isinstance(item, str):
        raise _refused(name, item)
    try:
        number = float(exact(item))
    except (TypeError, ValueError, OverflowError):
        raise _refused(name, item) from None
    if name != "mean" and number < 0:
        raise _refused(name, item)
    return number


def _refused(name: str, item: object) -> InvalidBounds:
    least = "" if name == "mean" else " that is not negative"
    return InvalidBounds(
        f"a guess of a {name} is a finite number{least}, and {as_given(item)} is not",
        where=name if name == "count" else "guess",
        remedy="write count=1000" if name == "count" else _REMEDY,
    )


def _described(values: pl.Series, bounds: tuple[float, float] | None) -> dict[str, object]:
    """What matters of public values: null and NaN are skipped, as everywhere."""
    numbers = values.to_physical()
    if not (numbers.dtype.is_numeric() or numbers.dtype == pl.Boolean):
        raise InvalidBounds(
            f"a guess of type {values.dtype} has no mean", where="guess", remedy=_REMEDY
        )
    numbers = numbers.cast(pl.Float64).drop_nulls().drop_nans()
    numbers = numbers if bounds is None else numbers.clip(*bounds)
    found: dict[str, object] = {"count": numbers.len()}
    if numbers.len():
        found |= {"mean": numbers.mean(), "var": numbers.var(ddof=min(1, numbers.len() - 1))}
    return found
