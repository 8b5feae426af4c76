"""Group-by expressions and their public keys, also by several sets of columns."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Literal, TypeAlias

import polars as pl

from dpframe.core.dtypes import Columns, Domain, domain_of_dtype
from dpframe.core.exact import show_input
from dpframe.core.tree import Named
from dpframe.errors import DPFrameError, MissingKeys, UnsupportedOperation
from dpframe.frames.groups import GROUPING, Groups, SetGroups
from dpframe.frames.public import freeze, to_polars_frame
from dpframe.frames.row_steps import renamed_column, unique_names
from dpframe.parse.key_sets import Keys, Origin, nothing_computed, with_few_values
from dpframe.parse.outputs import polars_schema
from dpframe.parse.reader import read
from dpframe.rows.constants import listed
from dpframe.rows.fold import domain, outer_words, words
from dpframe.rows.layouts import distinct, type_of_keys

MOST_GROUPS = 50_000_000


def read_groups(
    by: Sequence[object],
    named_by: Mapping[str, object],
    keys: object,
    columns: Columns,
    discover: bool = False,
    origin: Origin = nothing_computed,
    own: Collection[str] = (),
) -> Groups:
    """A group-by with its keys, checked; with `discover` keys that are not known are to be chosen.
    `own` has the columns that identify the owner of a row.
    """
    schema = polars_schema(columns)
    flat = [e for item in by for e in (item if isinstance(item, (list, tuple)) else (item,))]
    named = [n for e in flat for n in read(e, schema, what="group_by")]
    for name, expression in named_by.items():
        made = read(expression, schema, what="group_by")
        if len(made) != 1:
            raise UnsupportedOperation(
                f"the expression for {name!r} expands to {len(made)} columns",
                where=f"group_by({name}=...)",
                remedy="name one column",
            )
        named.append(Named(name, made[0].tree))
    if not named:
        raise UnsupportedOperation(
            "group_by needs at least one column",
            remedy=("name a column", "aggregate the whole frame: frame.agg(...)"),
        )
    unique_names(tuple(named))
    domains = {n.name: _groupable(n, columns) for n in named}
    where = f"group_by({', '.join(words(n.tree) for n in named)}, keys=...)"
    if keys is None:
        domains = with_few_values(named, domains, origin)
        for one in named:
            if renamed_column(one.tree) in own and domains[one.name].categories is None:
                raise MissingKeys(
                    f"a group for each {one.name!r} would be about one individual",
                    where=f"group_by({words(one.tree)})",
                    remedy=(
                        f'aggregate each individual first: .group_by("{one.name}").agg(n=pl.len())'
                        '.agg(dp.mean("n", (low, high)))',
                        "group by what many individuals share",
                    ),
                )
        if discover and any(found.categories is None for found in domains.values()):
            none = pl.DataFrame(
                schema={name: type_of_keys(found.dtype) for name, found in domains.items()}
            )
            return Groups(tuple(named), none, "chosen privately when the query runs", True)
        return Groups(tuple(named), *_known_keys(named, domains, where))
    frame = _checked(_frame_of(keys, domains, where), domains, where)
    return Groups(tuple(named), frame, f"{frame.height} keys, public because the query lists them")


def _groupable(named: Named, columns: Columns) -> Domain:
    found = domain(named.tree, columns)
    if found.dtype.is_float or found.dtype.is_nested or not found.dtype.is_known:
        raise UnsupportedOperation(
            f"rows cannot be grouped by values of type {found.dtype}",
            where=f"group_by({words(named.tree)})",
            remedy=(
                "bin numbers: pl.col(...).cut([...], labels=[...])",
                "cast them to integers or text: .cast(pl.Int64)",
            ),
        )
    return found


def _known_keys(
    named: list[Named], domains: Mapping[str, Domain], where: str
) -> tuple[pl.DataFrame, str]:
    """Keys from Enum and Boolean types, declared categories, and expressions with listed values."""
    for output in named:
        if domains[output.name].categories is None:
            raise MissingKeys(
                f"the groups of {output.name!r} are not known without reading private data",
                where=f"group_by({words(output.tree)})",
                remedy=(
                    f"list them: group_by(..., keys={{{output.name!r}: [...]}})",
                    "find groups with enough individuals in a session with a delta: "
                    "dp.Session(epsilon=1, delta=1e-8)",
                ),
            )
    lists = {name: list(found.categories or ()) for name, found in domains.items()}
    frame = _product(lists, domains, where)
    typed = all(domain_of_dtype(found.dtype).categories for found in domains.values())
    known = "the column types list them" if typed else "types, declarations or the query list them"
    return frame, f"{frame.height} keys, public because {known}"


def _product(
    lists: Mapping[str, Sequence[object]], domains: Mapping[str, Domain], where: str
) -> pl.DataFrame:
    frames = [
        distinct(_column(name, values, domains[name], where).to_frame())
        for name, values in lists.items()
    ]
    require_few(prod(frame.height for frame in frames), where)
    return _crossed(frames)


def _crossed(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All combinations of the rows of frames."""
    return reduce(lambda a, b: a.join(b, how="cross", maintain_order="left_right"), frames)


def _frame_of_list(rows: list[object], domains: Mapping[str, Domain], where: str) -> pl.DataFrame:
    """The frame of values for one column, or of a tuple for each row."""
    names = list(domains)
    if len(names) == 1:
        return _column(names[0], rows, domains[names[0]], where).to_frame()
    if not all(isinstance(row, tuple) and len(row) == len(names) for row in rows):
        raise MissingKeys(
            f"keys must cover all grouping columns: {', '.join(names)}",
            where=where,
            remedy=(
                "pass a dict, {column: values}, for the product of the values",
                "pass a list of tuples, or a DataFrame",
            ),
        )
    columns = zip(*rows, strict=True) if rows else [() for _ in names]
    return pl.DataFrame(
        [_column(n, list(c), domains[n], where) for n, c in zip(names, columns, strict=True)]
    )


def _frame_of(keys: object, domains: Mapping[str, Domain], where: str) -> pl.DataFrame:
    names = list(domains)
    single = names[0] if len(names) == 1 else None
    keys = to_polars_frame(keys, where)
    match keys:
        case Keys():
            if keys.is_named or single is None:
                return keys.frame
            return keys.frame.rename({keys.frame.columns[0]: single})
        case pl.DataFrame():
            return keys
        case pl.LazyFrame():
            raise MissingKeys(
                "keys must be public values in memory, not a lazy frame",
                where=where,
                remedy="collect the public frame first",
            )
        case Mapping():
            _covers([str(k) for k in keys], names, where)
            return _product({n: _values(n, keys[n], where) for n in names}, domains, where)
        case pl.Series() if single is not None:
            return keys.alias(single).to_frame()
        case str() | bytes():
            raise MissingKeys(
                f"keys must be a list of values, not the text {show_input(keys)}",
                where=where,
                remedy=f"write keys=[{show_input(keys)}]",
            )
        case range() if (
            single is not None  # a column of integers, without listing it
            and keys
            and domains[single].dtype.is_integer
            and all(-(2**62) < end < 2**62 for end in (keys.start, keys.stop))
        ):
            return pl.Series(single, keys).to_frame()
        case Iterable():
            return _frame_of_list(list(keys), domains, where)
        case _:
            raise MissingKeys(
                f"keys must be a list, Series, DataFrame or dict, not {type(keys).__name__}",
                where=where,
                remedy="write the values in a list: keys=[...]",
            )


def _values(name: str, values: object, where: str) -> list[object]:
    if isinstance(values, pl.Series):
        return values.to_list()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise MissingKeys(
            f"the keys of {name!r} must be a list, not {show_input(values)}",
            where=where,
            remedy=f"write keys={{{name!r}: [...]}}",
        )
    return list(values)


def _covers(given: Sequence[str], wanted: Sequence[str], where: str) -> None:
    missing = [n for n in wanted if n not in given]
    extra = [n for n in given if n not in wanted]
    if missing:
        raise MissingKeys(
            f"the keys do not cover the grouping column {missing[0]!r}",
            where=where,
            remedy=f"add keys for {', '.join(repr(m) for m in missing)}",
        )
    if extra:
        raise MissingKeys(
            f"the keys name {extra[0]!r}, which the frame is not grouped by",
            where=where,
            remedy=f"give keys for {', '.join(repr(w) for w in wanted)} only",
        )


def require_few(count: int, where: str) -> None:
    """Refuse more groups than a query can have."""
    if count > MOST_GROUPS:
        raise MissingKeys(
            f"there would be {count} groups, more than {MOST_GROUPS}",
            where=where,
            remedy=("list fewer keys", "list the combinations that matter in a DataFrame"),
        )


def _column(name: str, values: Sequence[object], found: Domain, where: str) -> pl.Series:
    """Listed values as a column that holds exactly them."""
    made = listed(name, values, found.dtype)
    if made is None:
        raise _wrong_type(name, found, where)
    return made


def _checked(frame: pl.DataFrame, domains: Mapping[str, Domain], where: str) -> pl.DataFrame:
    """The keys with columns in grouping order, of the right types, each once."""
    _covers(frame.columns, list(domains), where)
    columns = []
    for name, found in domains.items():
        column, stored = frame[name], type_of_keys(found.dtype)
        if column.dtype != stored:
            _comparable_kind(name, column, found, where)
            try:
                cast = column.cast(stored, strict=True)
                kept = cast.cast(column.dtype, strict=True).equals(column)
            except pl.exceptions.PolarsError:
                raise _wrong_type(name, found, where) from None
            if not kept:
                raise _wrong_type(name, found, where)
            column = cast
        columns.append(column)
    require_few(frame.height, where)
    return distinct(freeze(pl.DataFrame(columns)))


def _comparable_kind(name: str, column: pl.Series, found: Domain, where: str) -> None:
    """Refuse casts that change what a value means, such as 1.5 to 1 or 7 to '7'."""
    zone = getattr(column.dtype, "time_zone", None)
    if found.dtype.name == "Datetime":  # dates are moments without a zone
        kinds = column.dtype in (pl.Date, pl.Datetime)
        same_time = kinds and (zone is None) == (found.dtype.zone is None)
    else:
        same_time = column.dtype.base_type().__name__ == found.dtype.name
    text = column.dtype in (pl.String, pl.Categorical) or isinstance(column.dtype, pl.Enum)
    same = (
        (text and found.dtype.is_text)
        or (column.dtype.is_integer() and found.dtype.is_integer)
        or (column.dtype.is_temporal() and same_time)
        or column.dtype == pl.Null
    )
    if not same:
        raise _wrong_type(name, found, where)


def _wrong_type(name: str, found: Domain, where: str) -> DPFrameError:
    listed = found.dtype.categories
    remedy = f"give keys of type {found.dtype}"
    if listed is not None:
        remedy = f"give some of its categories: {', '.join(map(repr, listed[:12]))}"
    return MissingKeys(
        f"the keys of {name!r} are not values of type {found.dtype}", where=where, remedy=remedy
    )


# -- Grouping sets --------------------------------------------------------------------------------


Form: TypeAlias = Literal["rollup", "cube", "grouping_sets"]
_MOST_SETS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class SetsAsked:
    """Grouping sets as they were written."""

    form: Form  # Which function wrote them
    columns: tuple[object, ...]  # All columns, in order of first appearance
    # The columns of each set, by their numbers; None for what follows from the form.
    sets: tuple[tuple[int, ...], ...] | None = None


def read_sets(
    asked: SetsAsked, keys: object, columns: Columns, origin: Origin = nothing_computed
) -> SetGroups:
    """Groups by several sets of columns."""
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
    # The keys in the order of the columns' values, which they are all combinations of.
    values = [column.unique(maintain_order=True) for column in groups.keys.get_columns()]
    if prod(map(len, values)) != groups.keys.height or not groups.keys.height:
        raise MissingKeys(
            "the keys of grouping sets are all combinations of the values of each column, and some "
            "are not listed",
            where=where,
            remedy='write keys={"city": ["a", "b"], "year": [2025, 2026]}',
        )
    shown = [outer_words(n.tree).removeprefix("col(").removesuffix(")") for n in groups.by]
    text = ", ".join(shown)
    if asked.sets is not None:
        listed_sets = []
        for numbers in asked.sets:
            inside = ", ".join(shown[i] for i in sorted(numbers))
            listed_sets.append(f"({inside}{',' if len(numbers) == 1 else ''})")
        text = f"[{', '.join(listed_sets)}]"
    product = _crossed([column.to_frame() for column in values])
    return SetGroups(groups.by, product, groups.origin, False, sets, f"{asked.form}({text})")


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


def nothing_else(named: Mapping[str, object], others: Sequence[object]) -> None:
    """Refuse other columns in addition to grouping sets."""
    if named or others:
        raise UnsupportedOperation(
            "grouping sets stand alone in group_by",
            where="group_by(...)",
            remedy="write all columns inside of dp.rollup(...), dp.cube(...) or "
            "dp.grouping_sets([...])",
        )
