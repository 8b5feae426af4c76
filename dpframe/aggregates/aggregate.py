"""Aggregates: one class each, which defines the arguments and binds it to a frame."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.request import Asked, QueryScope, Request
from dpframe.aggregates.statistics import Statistic
from dpframe.mechanisms import ADDITIVE, Mechanism


def names_of(*kinds: type[Mechanism]) -> tuple[str, ...]:
    """The names that `mechanism=` accepts for any of these."""
    return ("auto", *sorted(kind.name for kind in kinds))


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Asked):
    """One dp aggregate. Its fields are its arguments besides the column, unchanged; a subclass's
    docstring has a `Guarantee` section.
    """

    summary: ClassVar[str]
    mechanisms: ClassVar[tuple[str, ...]] = names_of(*ADDITIVE)
    """The values that its `mechanism=` accepts; just ``"auto"`` where there is no choice."""
    examples: ClassVar[tuple[str, ...]]
    """dp expressions over the laws' frame, as text."""

    @abstractmethod
    def bind(self, request: Request, scope: QueryScope) -> BoundAggregate:
        """The request, read and checked against a frame.

        Raises
        ------
        UnboundedSensitivity, InvalidBounds, UnsupportedOperation, MissingKeys
            When the request makes no sense on such a frame.
        """


class ScoringAggregate(Aggregate):
    """An aggregate that can score candidates: a sum over rows, or a number of distinct values."""

    __slots__ = ()

    @abstractmethod
    def score(self, request: Request, scope: QueryScope) -> Statistic:
        """The statistic that ranks candidates.

        Raises
        ------
        UnsupportedOperation
            When it is requested over individuals.
        """
