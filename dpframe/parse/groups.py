"""Group-by expressions and their public keys, also by several sets of columns."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import TypeAlias

import polars as pl

from dpframe.core.dtypes import Columns, Domain, Scalar, domain_of_dtype
from dpframe.core.exact import show_input
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import DPFrameError, MissingKeys, UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.definition import definition
from dpframe.frames.groups import GROUPING, Groups, SetGroups
from dpframe.frames.public import freeze, to_polars_frame
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import (
    Drop,
    DropNulls,
    Filter,
    Select,
    WithColumns,
    renamed_column,
    unique_names,
)
from dpframe.parse.outputs import polars_schema
from dpframe.parse.reader import read
from dpframe.rows.constants import listed
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, outer_words, words
from dpframe.rows.layouts import distinct, type_of_keys
from dpframe.sealed import all_sealed, sealed

# Public keys: as sets, of parts of times, and those that are values of parameters.

IntoKeys: TypeAlias = (
    "Keys | pl.DataFrame | pl.Series | Mapping[str, Iterable[object]] | Iterable[object]"
)
_UNNAMED = "key"


@all_sealed
class Keys:
    """A set of public group keys, for `group_by(..., keys=)` and `Session.partition`.

    ``a * b`` has every key of `a` with every key of `b`, ``a | b`` has those of both, ``a - b``
    those of `a` that are not in `b`. Made by `dpframe.keys`.
    """

    __slots__ = ("_frame", "_named")

    def __init__(self, frame: pl.DataFrame, named: bool) -> None:
        self._frame = frame.unique(maintain_order=True)
        self._named = named

    @property
    def frame(self) -> pl.DataFrame:
        """One row per key, one column per grouping column."""
        return self._frame

    @property
    def is_named(self) -> bool:
        """Whether the keys name their columns."""
        return self._named

    def __len__(self) -> int:
        return self._frame.height

    def __mul__(self, other: IntoKeys) -> Keys:
        right = keys(other)
        if not (self._named and right._named):
            raise MissingKeys(
                "a product of keys needs the names of their columns",
                where="keys * keys",
                remedy='write dp.keys({"city": [...]}) * dp.keys({"year": [...]})',
            )
        if both := sorted({*self._frame.columns} & {*right._frame.columns}):
            raise MissingKeys(
                f"both sides of a product of keys have the column {both[0]!r}",
                where="keys * keys",
                remedy="use | for more keys of the same columns",
            )
        return Keys(self._frame.join(right._frame, how="cross", maintain_order="left_right"), True)

    def __or__(self, other: IntoKeys) -> Keys:
        right = self._alike(other, "|")
        return Keys(pl.concat([self._frame, right], how="vertical"), self._named)

    def __sub__(self, other: IntoKeys) -> Keys:
        right = self._alike(other, "-")
        names = self._frame.columns
        left = self._frame.join(
            right, on=names, how="anti", nulls_equal=True, maintain_order="left"
        )
        return Keys(left, self._named)

    def _alike(self, other: IntoKeys, symbol: str) -> pl.DataFrame:
        """The other keys with columns in the same order and of the same types."""
        right = keys(other)
        frame = right._frame
        if not right._named and len(self._frame.columns) == 1:
            frame = frame.rename({frame.columns[0]: self._frame.columns[0]})
        where = f"keys {symbol} keys"
        if {*frame.columns} != {*self._frame.columns}:
            raise MissingKeys(
                f"the keys are of different columns: {', '.join(self._frame.columns)} and "
                f"{', '.join(frame.columns)}",
                where=where,
                remedy=("give keys of the same columns", "use * for their product"),
            )
        frame = frame.select(self._frame.columns)
        for name, dtype in self._frame.schema.items():
            theirs = frame.schema[name]
            if pl.Null in (dtype, theirs) or not frame.height:
                frame = frame.cast({name: dtype})
            elif dtype != theirs:
                raise MissingKeys(
                    f"the keys of {name!r} have the types {dtype} and {theirs}",
                    where=where,
                    remedy="give them as values of one type",
                )
        return frame

    def __repr__(self) -> str:
        columns = ", ".join(self._frame.columns) if self._named else "one column"
        return f"<{len(self)} keys of {columns}>"


@sealed
def keys(values: IntoKeys) -> Keys:
    """Public keys from a list, a Series, a DataFrame, or lists by column (their product).

    Parameters
    ----------
    values
        The keys. They are part of the plan, so they must not come from private data.

    Raises
    ------
    MissingKeys
        When they are no list of values of one type.

    Examples
    --------
    >>> import dpframe as dp
    >>> years = dp.keys({"year": [2024, 2025]})
    >>> cities = dp.keys({"city": ["Bern", "Basel"]}) - dp.keys({"city": ["Basel"]})
    >>> years * cities
    <2 keys of year, city>
    """
    match values:
        case Keys():
            return values
        case pl.DataFrame():
            return Keys(values, True)
        case pl.Series():
            return Keys(values.to_frame(values.name or _UNNAMED), bool(values.name))
        case Mapping():
            result: Keys | None = None
            for name, listed in values.items():
                one = Keys(_series(listed, str(name)).to_frame(), True)
                result = one if result is None else result * one
            if result is None:
                raise _no_keys(values)
            return result
        case _:
            return Keys(_series(values, _UNNAMED).to_frame(), False)


def _series(values: object, name: str) -> pl.Series:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _no_keys(values)
    if isinstance(values, pl.Series):
        return values.alias(name)
    listed = list(values)
    kinds = {type(value) for value in listed if value is not None}
    if len(kinds) > 1 and bool in kinds:
        raise _no_keys(values)
    try:
        made = pl.Series(name, listed, strict=True)
    except (TypeError, *FAILURES):
        raise _no_keys(values) from None
    if made.dtype == pl.Object:
        raise _no_keys(values)
    return made


def _no_keys(values: object) -> MissingKeys:
    return MissingKeys(
        f"keys are a list of values of one type, not a {type(values).__name__} of such values",
        where="dp.keys(...)",
        remedy='write dp.keys(["a", "b"]) or dp.keys({"city": ["a", "b"]})',
    )


# Keys that need not be listed: parts of times, such as months, can only be one of few numbers.


Origin: TypeAlias = "Callable[[str], Tree | None]"
"""The expression that a column was computed by, where that is known."""

_KEEP_COLUMNS = (Filter, DropNulls, LimitRows, LimitGroups, Drop)


def nothing_computed(name: str) -> Tree | None:
    """The origin for a frame whose columns are unchanged."""
    return None


def origin_in(relation: Relation) -> Origin:
    """The expressions that a frame's columns were computed by, from its last steps."""

    def origin(name: str) -> Tree | None:
        for step, _ in reversed(relation.steps):
            if isinstance(step, (WithColumns, Select)):
                for named in step.named:
                    if named.name == name and named.tree != Column(name):
                        return named.tree
            elif not isinstance(step, _KEEP_COLUMNS):
                return None
        return None

    return origin


def with_few_values(
    named: list[Named], domains: Mapping[str, Domain], origin: Origin
) -> dict[str, Domain]:
    """The domains of grouping columns, with the few values that one can have at all."""
    known = {n.name: domains[n.name] for n in named}
    for name, tree in ((n.name, n.tree) for n in named if known[n.name].categories is None):
        computed = origin(tree.name) if isinstance(tree, Column) else tree
        few = computed.operation.few_values if isinstance(computed, Call) else None
        if few is not None:
            known[name] = replace(known[name], categories=tuple(few))
    return known


# Keys of parts that are values of parameters.
#
# A key that came from a parameter is kept as the constant that it is, which names the parameter. So
# plans show where it comes from, and an approval of a range of the parameter covers the parts of
# all its values. Whenever a plan is made or read, the constant is checked to be that value, or one
# of the values of a list.


@dataclass(frozen=True, slots=True)
class BoundKeys:
    """The parameters that keys were given as."""

    every: tuple[Parameter, ...] = ()  # The keys of the only column
    by_column: tuple[tuple[str, tuple[Parameter, ...]], ...] = ()  # The keys of columns by name

    def named(self, row: tuple[Scalar, ...], groups: Groups) -> tuple[Scalar | Literal, ...]:
        """A key, with constants in place of the values of parameters."""
        columns = dict(self.by_column)
        key: list[Scalar | Literal] = list(row)
        for place, (named, value) in enumerate(zip(groups.by, row, strict=True)):
            for parameter in columns.get(named.name, self.every):
                if _told(value) in {_told(one) for one in _parameter_values(parameter)}:
                    key[place] = Literal(value, parameter.kind.dtype, parameter)
                    break
        return tuple(key)

    def require_all(self, groups: Groups) -> None:
        """Refuse parameters whose values are not keys any more once they have a column's type:
        the plan's statement about them would be wrong.
        """
        columns = dict(self.by_column)
        for named, column in zip(groups.by, groups.keys.iter_columns(), strict=True):
            given = columns.get(named.name, self.every)
            # values of parameters are values that Python has, and other keys need not be
            there = {_told(value) for value in column.unique().to_list()} if given else set[str]()
            for parameter in given:
                if not {_told(value) for value in _parameter_values(parameter)} <= there:
                    raise MissingKeys(
                        f"the parameter {parameter.name!r} is of type {parameter.type}, and keys "
                        f"of {outer_words(named.tree)} are {column.dtype}",
                        where=f"partition(frame, {outer_words(named.tree)}, keys=...)",
                        remedy=(
                            "declare the parameter with the type of the column",
                            "cast the column",
                        ),
                    )


def plain_keys(keys: object) -> tuple[object, BoundKeys]:
    """Keys with values in place of parameters, and which these were."""
    if isinstance(keys, Parameter):
        return list(_parameter_values(keys)), BoundKeys((keys,))
    if isinstance(keys, Mapping):
        found = {name: _plain(values) for name, values in keys.items()}
        plain = {name: values for name, (values, _) in found.items()}
        return plain, BoundKeys(by_column=tuple((str(n), used) for n, (_, used) in found.items()))
    plain_list, used = _plain(keys)
    return plain_list, BoundKeys(used)


def _plain(keys: object) -> tuple[object, tuple[Parameter, ...]]:
    if isinstance(keys, Parameter):
        return list(_parameter_values(keys)), (keys,)
    if isinstance(keys, (str, bytes, pl.Series, pl.DataFrame)) or not isinstance(keys, Iterable):
        return keys, ()
    given = [*keys]
    used = tuple(key for key in given if isinstance(key, Parameter))
    if not used:
        return given, ()
    plain: list[object] = []
    for key in given:
        plain += _parameter_values(key) if isinstance(key, Parameter) else [key]
    return plain, used


def _parameter_values(parameter: Parameter) -> tuple[object, ...]:
    held = parameter.typed_value
    return held if isinstance(held, tuple) else (held,)


def _told(value: object) -> str:
    return repr(definition(value))


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


Form: TypeAlias = typing.Literal["rollup", "cube", "grouping_sets"]
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
