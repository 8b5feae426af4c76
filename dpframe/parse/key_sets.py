"""Public keys: as sets, of parts of times, and those that are values of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl

from dpframe.core.dtypes import Domain, Scalar
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import MissingKeys
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.definition import definition
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import Drop, DropNulls, Filter, Select, WithColumns
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import outer_words
from dpframe.sealed import all_sealed, sealed

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
                if _told(value) in {_told(one) for one in _values(parameter)}:
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
                if not {_told(value) for value in _values(parameter)} <= there:
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
        return list(_values(keys)), BoundKeys((keys,))
    if isinstance(keys, Mapping):
        found = {name: _plain(values) for name, values in keys.items()}
        plain = {name: values for name, (values, _) in found.items()}
        return plain, BoundKeys(by_column=tuple((str(n), used) for n, (_, used) in found.items()))
    plain_list, used = _plain(keys)
    return plain_list, BoundKeys(used)


def _plain(keys: object) -> tuple[object, tuple[Parameter, ...]]:
    if isinstance(keys, Parameter):
        return list(_values(keys)), (keys,)
    if isinstance(keys, (str, bytes, pl.Series, pl.DataFrame)) or not isinstance(keys, Iterable):
        return keys, ()
    given = [*keys]
    used = tuple(key for key in given if isinstance(key, Parameter))
    if not used:
        return given, ()
    plain: list[object] = []
    for key in given:
        plain += _values(key) if isinstance(key, Parameter) else [key]
    return plain, used


def _values(parameter: Parameter) -> tuple[object, ...]:
    held = parameter.typed_value
    return held if isinstance(held, tuple) else (held,)


def _told(value: object) -> str:
    return repr(definition(value))
