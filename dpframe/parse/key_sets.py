"""Public keys as sets: products, unions and differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import polars as pl

from dpframe.errors import MissingKeys
from dpframe.rows.failures import FAILURES
from dpframe.sealed import all_sealed, sealed

__all__ = ["IntoKeys", "Keys", "keys"]

IntoKeys: TypeAlias = (
    "Keys | pl.DataFrame | pl.Series | Mapping[str, Iterable[Any]] | Iterable[Any]"
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
