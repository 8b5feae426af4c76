"""What an aggregate is: one class that says what may be asked, and binds it to a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.request import Request, Scope


class Aggregate(ABC):
    """One dp aggregate. A subclass's docstring has a `Guarantee` section."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    mechanisms: ClassVar[tuple[str, ...]] = ("auto", "discrete_laplace", "discrete_gaussian")
    """The values that its `mechanism=` accepts; just ``"auto"`` where there is no choice."""
    examples: ClassVar[tuple[str, ...]]
    """dp expressions over the laws' frame, as text."""

    @abstractmethod
    def bind(self, request: Request, scope: Scope) -> BoundAggregate:
        """What was asked for, read and checked against a frame.

        Raises
        ------
        UnboundedSensitivity, InvalidBounds, UnsupportedOperation, MissingKeys
            When the request makes no sense on such a frame.
        """
