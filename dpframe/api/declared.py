"""What a data owner declares of columns: bounds and categories, which are public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.aggregates.histogram import listed_categories
from dpframe.aggregates.values import pair
from dpframe.api.arguments import IntoBounds
from dpframe.api.source import Source
from dpframe.core.domain import Domain, columns, domain_of_dtype
from dpframe.core.exact import as_given
from dpframe.core.interval import Interval
from dpframe.errors import InvalidBounds
from dpframe.report.errors import typical_value
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.rows.suggest import unknown_column


def declared(
    source: Source, bounds: Mapping[str, IntoBounds], categories: Mapping[str, Sequence[Any]]
) -> Mapping[str, Domain]:
    """The domains of the source's columns, with what the data owner declared."""
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(source.schema).items()}
    for name, ends in _declarations(bounds, "bounds", "(low, high)"):
        found = _column(table, name, "bounds")
        where = f"protect(..., bounds={{{name!r}: {as_given(ends)}}})"
        if not found.dtype.is_ordered:
            raise InvalidBounds(
                f"a column of type {found.dtype} has no bounds",
                where=where,
                remedy="declare categories={...} for text",
            )
        lo, hi = pair(ends, found.dtype, where)
        if lo > hi:
            raise InvalidBounds(
                "the bounds are reversed", where=where, remedy="write the lower bound first"
            )
        narrowed = found.interval.intersect(Interval(lo, hi))
        if narrowed is None:
            raise InvalidBounds(
                f"no value of type {found.dtype} lies within the bounds",
                where=where,
                remedy="declare bounds that the type can hold",
            )
        table[name] = replace(found, interval=narrowed)
    for name, values in _declarations(categories, "categories", '["a", "b"]'):
        found = _column(table, name, "categories")
        where = f"protect(..., categories={{{name!r}: ...}})"
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidBounds(
                f"categories are a list of values, not {as_given(values)}",
                where=where,
                remedy=f'write categories={{{name!r}: ["a", "b"]}}',
            )
        listed = listed_categories(list(values), found, where)
        table[name] = replace(found, categories=tuple(v for v in listed if v is not None))
    return columns(table)


def stated_typical(
    given: Mapping[str, Any], table: Mapping[str, Domain]
) -> tuple[tuple[str, Fraction], ...]:
    """What a data owner says that values of columns are like.

    Raises
    ------
    UnknownColumn
        When the column does not exist.
    InvalidBounds
        When a value is no number, or 0, or the column has no numbers.
    """
    found = []
    for name, value in _declarations(given, "typical values", "3000"):
        known = _column(table, name, "typical")
        where = f"protect(..., typical={{{name!r}: {as_given(value)}}})"
        if not known.dtype.is_numeric:
            raise InvalidBounds(
                f"a column of type {known.dtype} has no typical number",
                where=where,
                remedy="leave it out of typical=",
            )
        found.append((name, typical_value(value, where)))
    return tuple(sorted(found))


def _declarations(given: object, what: str, example: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        raise InvalidBounds(
            f"{what} are declared by column, not as a {type(given).__name__}",
            where=f"protect(..., {what}=...)",
            remedy=f'write {what}={{"column": {example}}}',
        )
    return given.items()


def _column(table: Mapping[str, Domain], name: str, what: str) -> Domain:
    if name not in table:
        raise unknown_column(name, table, f"protect(..., {what}={{{name!r}: ...}})")
    return table[name]
