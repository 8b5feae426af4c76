"""Limits on what one individual contributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Dropped:
    """A column in limits that no longer exists, or has other values. They hold all the same, but
    no group-by can use it.
    """

    number: int


Term: TypeAlias = "str | Dropped"


@dataclass(frozen=True, slots=True)
class RowLimit:
    """One individual has at most `n` rows for each value of the columns `by` (in all, without):
    those with the least values of the column `first`, if one is named.
    """

    n: int
    by: frozenset[Term] = frozenset()
    first: Term | None = None


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """The rows of one individual have at most `n` different values of the columns `by`: those with
    the least values of the column `first`, if one is named.
    """

    n: int
    by: frozenset[Term]
    first: Term | None = None


Limit: TypeAlias = RowLimit | GroupLimit


def renamed(limits: Sequence[Limit], names: Mapping[str, str]) -> tuple[Limit, ...]:
    """Limits where the columns that are kept have the names given, and others are dropped."""
    gone = [t.number for limit in limits for t in _terms(limit) if isinstance(t, Dropped)]
    number = max(gone, default=0)
    terms: dict[str, Term] = dict(names)
    for name in sorted({t for limit in limits for t in _terms(limit) if isinstance(t, str)}):
        if name not in terms:
            number += 1
            terms[name] = Dropped(number)

    def now(term: Term) -> Term:
        return terms[term] if isinstance(term, str) else term

    return tuple(
        replace(
            limit,
            by=frozenset(map(now, limit.by)),
            first=None if limit.first is None else now(limit.first),
        )
        for limit in limits
    )


def _terms(limit: Limit) -> list[Term]:
    return [*limit.by, *([] if limit.first is None else [limit.first])]


def copied(limits: Sequence[Limit], times: int) -> tuple[Limit, ...]:
    """Limits after each row became at most this many, with the same values of old columns."""
    return tuple(
        replace(limit, n=limit.n * times) if isinstance(limit, RowLimit) else limit
        for limit in limits
    )


def is_present(limit: Limit) -> bool:
    """Whether all columns of the limit exist: dropped ones were others in either frame."""
    return all(isinstance(term, str) for term in limit.by)
