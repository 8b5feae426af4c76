"""Keys of parts that are values of parameters.

A key that came from a parameter is kept as the constant that it is, which names the parameter. So
plans show where it comes from, and an approval of a range of the parameter covers the parts of
all its values. Whenever a plan is made or read, the constant is checked to be that value, or one
of the values of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpframe.core.domain import Scalar
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Literal
from dpframe.errors import MissingKeys
from dpframe.frames.definition import definition
from dpframe.frames.groups import Groups
from dpframe.rows.fold import outer_words

__all__ = ["BoundKeys", "plain_keys"]


@dataclass(frozen=True, slots=True)
class BoundKeys:
    """The parameters that keys were given as.

    Parameters
    ----------
    every
        The keys of the only column.
    by_column
        The keys of columns by name.
    """

    every: tuple[Parameter, ...] = ()
    by_column: tuple[tuple[str, tuple[Parameter, ...]], ...] = ()

    def named(self, row: tuple[Scalar, ...], groups: Groups) -> tuple[Scalar | Literal, ...]:
        """A key, with constants in place of the values of parameters.

        Raises
        ------
        MissingKeys
            When a parameter is of another type than its column.
        """
        columns = dict(self.by_column)
        found: list[Scalar | Literal] = []
        for named, value in zip(groups.by, row, strict=True):
            given = columns.get(named.name, self.every)
            found.append(next((_constant(value, one) for one in given if _has(one, value)), value))
        return tuple(found)

    def require_all(self, groups: Groups) -> None:
        """Refuse parameters whose values are not keys any more once they have a column's type:
        the plan's statement about them would be wrong.

        Raises
        ------
        MissingKeys
            Naming the parameter.
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
    plain: list[Any] = []
    for key in given:
        plain += _values(key) if isinstance(key, Parameter) else [key]
    return plain, used


def _values(parameter: Parameter) -> tuple[Any, ...]:
    held = parameter.held
    return held if isinstance(held, tuple) else (held,)


def _told(value: object) -> str:
    return repr(definition(value))


def _has(parameter: Parameter, value: object) -> bool:
    return _told(value) in {_told(one) for one in _values(parameter)}


def _constant(value: Scalar, parameter: Parameter) -> Literal:
    return Literal(value, parameter.kind.dtype, parameter)
