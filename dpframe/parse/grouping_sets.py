"""From grouping sets, as written, to groups by several sets of columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import polars as pl

from dpframe.core.domain import Columns
from dpframe.errors import MissingKeys, UnsupportedOperation
from dpframe.frames.groups import GROUPING, SetGroups
from dpframe.parse.few_keys import Origin, nothing_computed
from dpframe.parse.groups import read_groups
from dpframe.rows.fold import outer_words

__all__ = ["SetsAsked", "read_sets"]

Form: TypeAlias = Literal["rollup", "cube", "grouping_sets"]
_MOST_SETS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class SetsAsked:
    """Grouping sets as they were written.

    Parameters
    ----------
    form
        Which function wrote them.
    columns
        All columns, in order of first appearance.
    sets
        The columns of each set, by their numbers; None for what follows from the form.
    """

    form: Form
    columns: tuple[Any, ...]
    sets: tuple[tuple[int, ...], ...] | None = None


def read_sets(
    asked: SetsAsked, keys: object, columns: Columns, origin: Origin = nothing_computed
) -> SetGroups:
    """Groups by several sets of columns.

    Raises
    ------
    MissingKeys
        When keys are neither listed nor known, or are not all combinations of the columns' values.
    UnsupportedOperation
        When a set is written twice, a column is written several times or has the name of the
        column that identifies sets, or there are too many sets.
    """
    groups = read_groups(asked.columns, {}, keys, columns, origin=origin)
    names, where = groups.names, f"group_by({asked.form}(...))"
    if GROUPING in names:
        raise UnsupportedOperation(
            f"the result would have two columns named {GROUPING!r}: one distinguishes the sets",
            where=where,
            remedy="rename the grouping column before, with .rename({...})",
        )
    width = len(names)
    if asked.sets is not None and width != len(asked.columns):
        raise UnsupportedOperation(
            "a column of a grouping set is one column, and an expression here makes several",
            where=where,
            remedy="name the columns one by one",
        )
    sets = _sets(asked, width, where)
    product = _product_of(groups.keys, where)
    shown = [outer_words(n.tree).removeprefix("col(").removesuffix(")") for n in groups.by]
    written = _written(asked, shown)
    return SetGroups(groups.by, product, groups.origin, False, sets, written)


def _sets(asked: SetsAsked, width: int, where: str) -> tuple[tuple[int, ...], ...]:
    if asked.form == "cube" and width > 10:
        raise _too_many(1 << width, where)
    everything = tuple(range(width))
    match asked.form:
        case "rollup":
            sets = tuple(everything[:n] for n in range(width, -1, -1))
        case "cube":
            sets = tuple(
                s for n in range(width, -1, -1) for s in itertools.combinations(everything, n)
            )
        case "grouping_sets":
            assert asked.sets is not None
            sets = tuple(tuple(sorted(s)) for s in asked.sets)
    if len(sets) > _MOST_SETS:
        raise _too_many(len(sets), where)
    if len(set(sets)) < len(sets):
        raise UnsupportedOperation(
            "a grouping set is written twice",
            where=where,
            remedy="write each set once; its rows are the same each time",
        )
    return sets


def _too_many(sets: int, where: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"there would be {sets} grouping sets, more than {_MOST_SETS}",
        where=where,
        remedy="list the sets that matter with dp.grouping_sets([...])",
    )


def _product_of(keys: pl.DataFrame, where: str) -> pl.DataFrame:
    """The keys in the order of the columns' values, which they are all combinations of."""
    values = [column.unique(maintain_order=True) for column in keys.get_columns()]
    if math.prod(map(len, values)) != keys.height or not keys.height:
        raise MissingKeys(
            "the keys of grouping sets are all combinations of the values of each column, and some "
            "are not listed",
            where=where,
            remedy='write keys={"city": ["a", "b"], "year": [2025, 2026]}',
        )
    product = values[0].to_frame()
    for column in values[1:]:
        product = product.join(column.to_frame(), how="cross", maintain_order="left_right")
    return product


def _written(asked: SetsAsked, names: Sequence[str]) -> str:
    if asked.sets is None:
        return f"{asked.form}({', '.join(names)})"
    shown = []
    for found in asked.sets:
        inside = ", ".join(names[i] for i in sorted(found))
        shown.append(f"({inside}{',' if len(found) == 1 else ''})")
    return f"{asked.form}([{', '.join(shown)}])"


def nothing_else(named: Mapping[str, Any], others: Sequence[Any]) -> None:
    """Refuse other columns in addition to grouping sets."""
    if named or others:
        raise UnsupportedOperation(
            "grouping sets stand alone in group_by",
            where="group_by(...)",
            remedy="write all columns inside of dp.rollup(...), dp.cube(...) or "
            "dp.grouping_sets([...])",
        )
