"""Which groups there are, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import polars as pl

from dpframe.aggregates.aggregate import Aggregate
from dpframe.aggregates.bound import BoundAggregate, Noisy
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.shapes import Column, Shape
from dpframe.core.exact import as_given
from dpframe.errors import UnsupportedOperation
from dpframe.frames.groups import Groups

__all__ = ["BEST_ROUNDS", "BoundGroupKeys", "GroupKeys", "group_keys_in", "require_numbers"]

BEST_ROUNDS: Final = 2
"""The default; docs/benchmarks.md compares."""
MOST_ROUNDS: Final = 4
"""Of more the first would have barely any of the cost."""


@dataclass(frozen=True, slots=True)
class _KeysAlone(Shape):
    """Only the keys, without other columns."""

    def columns(self, column: Column, groups: Groups | None) -> list[pl.Series]:
        return []


@dataclass(frozen=True, slots=True, eq=False)
class BoundGroupKeys(BoundAggregate):
    """The keys of unlisted groups; it needs the choice of the groups alone.

    Parameters
    ----------
    rounds
        In how many rounds they are to be found; None for as many as are best.
    """

    rounds: int | None

    @property
    def shape(self) -> Shape:
        return _KeysAlone()

    @property
    def note(self) -> str:
        return "the keys of the groups that appear, sorted, and nothing else of them"

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return pl.Series(self.name, [], dtype=pl.Null)


@dataclass(frozen=True, slots=True, eq=False)
class GroupKeys(Aggregate):
    """Which groups there are, and nothing else.

    Parameters
    ----------
    rounds
        In how many rounds they are found, or None.
    """

    rounds: int | None = None
    kind: ClassVar[str] = "groups"
    summary: ClassVar[str] = "Which groups there are."
    mechanisms: ClassVar[tuple[str, ...]] = ("auto",)
    examples: ClassVar[tuple[str, ...]] = ()

    @property
    def name_without_column(self) -> str:
        return "groups"

    def bind(self, request: Request, scope: QueryScope) -> BoundAggregate:
        where, rounds = "dp_groups(rounds=...)", self.rounds
        if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MOST_ROUNDS):
            raise UnsupportedOperation(
                f"groups are found in 1 to {MOST_ROUNDS} rounds, not {as_given(rounds)}",
                where=where,
                remedy=("leave rounds= out", f"write rounds={BEST_ROUNDS}"),
            )
        if scope.groups is None or not scope.groups.discovered:
            raise UnsupportedOperation(
                "keys= already lists the groups, so there is nothing to discover",
                where="dp_groups()",
                remedy=("leave keys= out", "count the rows of each group with .len()"),
            )
        return BoundGroupKeys(request, (), rounds)


def require_numbers(aggregates: Iterable[BoundAggregate], where: str, why: str) -> None:
    """Refuse what needs numbers of groups, where nothing but the groups is requested.

    Raises
    ------
    UnsupportedOperation
        With what to do instead.
    """
    if group_keys_in(aggregates) is not None:
        raise UnsupportedOperation(
            f"dp_groups() releases no number of any group, and {why}",
            where=where,
            remedy="write a second query by the groups that this one finds: group_by(..., "
            "keys=groups)",
        )


def group_keys_in(aggregates: Iterable[BoundAggregate]) -> BoundGroupKeys | None:
    """The request, where that is which groups there are."""
    return next((found for found in aggregates if isinstance(found, BoundGroupKeys)), None)
