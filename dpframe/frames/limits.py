"""Limits on what one individual contributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Dropped:
    """A column that limits speak of and that is no longer there, or has other values. They hold all
    the same, but no group-by can use it.
    """

    number: int


Term: TypeAlias = "str | Dropped"


@dataclass(frozen=True, slots=True)
class RowLimit:
    """One individual has at most `n` rows for each value of the columns `by` (in all, without)."""

    n: int
    by: frozenset[Term] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """The rows of one individual have at most `n` different values of the columns `by`."""

    n: int
    by: frozenset[Term]


Limit: TypeAlias = RowLimit | GroupLimit


def renamed(limits: Sequence[Limit], names: Mapping[str, str]) -> tuple[Limit, ...]:
    """Limits where the columns that are kept have the names given, and others are dropped."""
    gone = [t.number for limit in limits for t in limit.by if isinstance(t, Dropped)]
    number = max(gone, default=0)
    terms: dict[str, Term] = dict(names)
    for name in sorted({t for limit in limits for t in limit.by if isinstance(t, str)}):
        if name not in terms:
            number += 1
            terms[name] = Dropped(number)
    return tuple(
        replace(limit, by=frozenset(terms[t] if isinstance(t, str) else t for t in limit.by))
        for limit in limits
    )


def copied(limits: Sequence[Limit], times: int) -> tuple[Limit, ...]:
    """Limits after each row became at most so many, with the same values of old columns."""
    return tuple(
        replace(limit, n=limit.n * times) if isinstance(limit, RowLimit) else limit
        for limit in limits
    )
