"""Grouping sets as analysts write them: `dp.rollup`, `dp.cube` and `dp.grouping_sets`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from dpframe.core.exact import as_given
from dpframe.errors import UnsupportedOperation
from dpframe.parse.grouping_sets import SetsAsked
from dpframe.sealed import sealed

__all__ = ["cube", "grouping_sets", "rollup"]


@sealed
def rollup(*columns: Any) -> SetsAsked:
    """Groups by all of the columns, by all but the last, ..., by the first, and all rows together;
    for `PrivateFrame.group_by`.

    One spend pays for all tables. dpframe chooses the best numbers to measure and computes every
    table from them by least squares, so that all tables add up.

    Parameters
    ----------
    columns
        Names or row-wise expressions, the coarsest first.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"country": ["A", "B"], "sex": ["f", "m"]})
    >>> people = dp.Session(epsilon=1).protect(rows, unit=dp.Rows())
    >>> keys = {"country": ["A", "B"], "sex": ["f", "m"]}
    >>> query = people.group_by(dp.rollup("country", "sex"), keys=keys).dp_count()
    >>> query.collect(epsilon=1)["grouping"].to_list()  # 1 is without sex, 3 without both
    [0, 0, 0, 0, 1, 1, 3]
    """
    return SetsAsked("rollup", _columns(columns, "rollup"))


@sealed
def cube(*columns: Any) -> SetsAsked:
    """Groups by every subset of the columns, all of them first; otherwise as `rollup`.

    Parameters
    ----------
    columns
        Names or row-wise expressions.
    """
    return SetsAsked("cube", _columns(columns, "cube"))


@sealed
def grouping_sets(sets: Iterable[Any]) -> SetsAsked:
    """Groups by each of some sets of columns; otherwise as `rollup`.

    Parameters
    ----------
    sets
        A tuple or list of columns each, or one column; `()` is all rows together.

    Raises
    ------
    UnsupportedOperation
        When there is no set, or no column in any.
    """
    if isinstance(sets, (str, pl.Expr)) or not isinstance(sets, Iterable):
        raise UnsupportedOperation(
            "grouping sets are a list of tuples of columns",
            where=f"grouping_sets({as_given(sets)})",
            remedy='write for example dp.grouping_sets([("country", "sex"), ("country",), ()])',
        )
    found = [list(s) if isinstance(s, (list, tuple)) else [s] for s in sets]
    columns: dict[str, Any] = {}
    made = []
    for one in found:
        names = [_name(column) for column in one]
        columns |= {n: c for n, c in zip(names, one, strict=True) if n not in columns}
        made.append(names)
    places = {name: place for place, name in enumerate(columns)}
    if not columns:
        raise _no_column("grouping_sets")
    numbers = tuple(tuple(dict.fromkeys(places[name] for name in names)) for names in made)
    return SetsAsked("grouping_sets", tuple(columns.values()), numbers)


def _columns(columns: tuple[Any, ...], form: str) -> tuple[Any, ...]:
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        columns = tuple(columns[0])
    if not columns:
        raise _no_column(form)
    return columns


def _no_column(form: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{form} needs at least one column",
        where=f"{form}(...)",
        remedy=("name a column", "aggregate the whole frame: frame.agg(...)"),
    )


def _name(column: Any) -> str:
    """The names of the columns of sets, taken from expressions where they have one."""
    if isinstance(column, str):
        return column
    if isinstance(column, pl.Expr):
        found = column.meta.output_name(raise_if_undetermined=False)
        if found is not None:
            return found
    raise UnsupportedOperation(
        "a column of a grouping set is a name or an expression with one",
        where="grouping_sets([...])",
        remedy=("name the column", "give the expression a name with .alias(...)"),
    )
