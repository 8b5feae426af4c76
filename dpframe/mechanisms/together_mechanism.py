"""Several candidates in order that are chosen at once, as one tuple."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.mechanism import SelectionMechanism
from dpframe.samplers import BitSource, Line, Runs

__all__ = ["Runs", "TogetherMechanism"]

Integers = NDArray[np.int64]


class TogetherMechanism(SelectionMechanism):
    """One choice among all tuples of candidates in order."""

    __slots__ = ()
    scale: Fraction
    """In steps of the score."""
    ties: ClassVar[tuple[int, ...]]
    """At how many places of one point its rows may be, at how many of such a place, and so on."""

    @abstractmethod
    def places(
        self, rows: Integers, level: int, source: BitSource | None = None
    ) -> tuple[Integers, ...]:
        """Which points, which of their places, and how many rows are there, where this many rows
        of each point take one at random. `level` is how far in `ties`. `source` is for tests.
        """

    @abstractmethod
    def choose(
        self, line: Line, shares: Sequence[int], row: int, source: BitSource | None = None
    ) -> list[int]:
        """Candidates in order; each should have `share / row` of all rows before it. `source` is
        for tests.
        """
