"""Groups with public keys: which values the rows are grouped by, and which groups are released."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from dpframe.core.tree import Column, Named
from dpframe.frames.public import digest
from dpframe.rows.fold import outer_words


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A group-by, usually one whose keys are known without data.

    Every key gives a row of the result, even when no row of the frame has it; rows with other keys
    are dropped. So which groups appear says nothing about the data. Where keys are not listed
    they are chosen privately when the query runs.

    Parameters
    ----------
    by
        The grouping expressions and the names of their columns.
    keys
        The public keys: one column for each of `by`, of its type, each row once.
    origin
        Where the keys come from, for the plan.
    discovered
        Whether the keys are still to be chosen; until then there are no keys.
    """

    by: tuple[Named, ...]
    keys: pl.DataFrame
    origin: str
    discovered: bool = False

    @property
    def size(self) -> int:
        """The number of keys that are known."""
        return self.keys.height

    def found(self, keys: pl.DataFrame) -> Groups:
        """The same groups with keys that were chosen."""
        return replace(self, keys=keys, discovered=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.by)

    def listed(self, length: int = 100) -> str:
        """The keys, in a plan; the first ones where there are many."""
        shown: list[str] = []
        for row in self.keys.head(length).rows():
            key = ", ".join("null" if v is None else _key(v) for v in row)
            shown.append(key if len(row) == 1 else f"({key})")
            if sum(len(s) + 2 for s in shown) > length:
                break
        rest = self.size - len(shown)
        return ", ".join(shown) + (f" and {rest} more" if rest else "")

    def words(self) -> str:
        by = (
            outer_words(n.tree) if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
            for n in self.by
        )
        return f"group_by({', '.join(by)})"


def _key(value: object) -> str:
    return repr(value) if isinstance(value, (str, bytes)) else str(value)


def digest_of_keys(groups: Groups) -> str:
    """A digest of the public keys, equal for all forms of the same keys."""
    keys = groups.keys
    for seen, found in tuple(_DIGESTS):
        if seen() is keys:
            return found
    small = (pl.Int8, pl.Int16, pl.Int32)
    columns = keys.iter_columns()
    found = digest(pl.DataFrame([c.cast(pl.Int64) if c.dtype in small else c for c in columns]))
    _DIGESTS.append((weakref.ref(keys), found))
    return found


_DIGESTS: Final = deque[tuple["weakref.ref[pl.DataFrame]", str]](maxlen=8)
"""Digests of the last frames of keys: a plan needs one many times, and there may be millions of
keys.
"""
