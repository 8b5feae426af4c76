"""The common parts of all accountants: reading the request, and finding delta from epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar, Final, Literal, TypeAlias

from dpframe.accounting.costs import slack
from dpframe.accounting.events import AnyEvent, Event
from dpframe.accounting.search import least_true
from dpframe.core.budget import amount
from dpframe.core.exact import Number, as_given, float_down
from dpframe.errors import InvalidBudget, UnsupportedOperation

ValidFor: TypeAlias = Literal["within one plan", "across plans"]
WITHIN: Final = "within one plan"
"""Parameters of all events are fixed before any noise is drawn."""
ACROSS: Final = "across plans"
"""Later events may be chosen after seeing earlier results, while the sum stays within a budget."""

_SHIFT: Final = 700.0
"""Logarithms of delta are sought from -690 to 0, shifted to be positive."""
_HIGHEST: Final = 700.0 - 1e-6


class Accountant(ABC):
    """Counts events together by one theorem; every result is rounded towards more privacy loss.

    Parameters
    ----------
    events
        What happened to the same data, in any order, repeats included.

    Raises
    ------
    InvalidBudget
        When something else than an event is among them.
    UnsupportedOperation
        When the theorem says nothing about one of them.
    """

    method: ClassVar[str]
    """The name of the bound in `compare`."""
    valid_for: ClassVar[ValidFor]

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.counts: Counter[AnyEvent] = Counter(events)
        """The events, and how often each occurs."""
        for event in self.counts:
            if not isinstance(event, Event):
                raise InvalidBudget(
                    f"{as_given(event)} is not an event",
                    remedy="write for example accounting.LaplaceEvent(10)",
                )
            if not self._covers(event):
                raise UnsupportedOperation(
                    f"{self.method} does not apply to {type(event).__name__}",
                    where=repr(event),
                    remedy="call accounting.compare(events, delta), which lists the bounds "
                    "that apply",
                )

    def epsilon(self, delta: Number) -> float:
        """The least epsilon that this bound gives at delta; infinity when it gives none.

        Raises
        ------
        InvalidBudget
            When delta is negative, 1 or more, or not a number.
        """
        asked = amount(delta, "delta")
        if asked >= 1:
            raise InvalidBudget(
                "delta is a probability below 1",
                where=f"delta={as_given(delta)}",
                remedy="write for example delta=1e-8",
            )
        return self._epsilon(asked) if self.counts else 0.0

    def delta(self, epsilon: Number) -> float:
        """The least delta that this bound gives at epsilon, within a relative 1e-8; at most 1.

        Raises
        ------
        InvalidBudget
            When epsilon is negative, infinite or not a number.
        """
        asked = amount(epsilon, "epsilon")
        return min(1.0, self._delta(asked)) if self.counts else 0.0

    def _covers(self, event: AnyEvent) -> bool:
        return True

    @property
    def _slack(self) -> Fraction:
        """The probability that some event fails, at most."""
        total = Fraction(0)
        for event, count in self.counts.items():
            total += count * slack(event)
        return total

    def _left(self, delta: Fraction) -> float:
        """The remaining delta after failures, rounded down; 0 or less when nothing remains."""
        return float_down(delta - self._slack)

    @abstractmethod
    def _epsilon(self, delta: Fraction) -> float: ...

    def _delta(self, epsilon: Fraction) -> float:
        """The least delta that was seen to give no more than epsilon."""
        price = float_down(epsilon)
        if self._epsilon(Fraction(0)) <= price:
            return 0.0

        def enough(shifted: float) -> bool:
            return self._epsilon(Fraction(math.exp(shifted - _SHIFT))) <= price

        if not enough(_HIGHEST):
            return 1.0
        found = least_true(enough, 10.0, _HIGHEST, 2.0**-38)
        return math.exp(found - _SHIFT) * (1.0 + 1e-15)
