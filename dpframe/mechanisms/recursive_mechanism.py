"""Nested choices: each is made among the rows on one side of earlier ones."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.mechanism import SelectionMechanism
from dpframe.samplers import BitSource

__all__ = ["RecursiveMechanism"]

Integers = NDArray[np.int64]


class RecursiveMechanism(SelectionMechanism):
    """Several choices, each among candidates between those that were chosen before."""

    __slots__ = ()
    scale: Fraction
    """The largest of all choices, in steps of the score."""
    ties: ClassVar[int]
    """At how many places of one point its rows may be."""

    @abstractmethod
    def at(self, share: Fraction) -> SelectionMechanism:
        """One of the choices, whose scale is a share of the full one."""

    @abstractmethod
    def places(self, rows: Integers, source: BitSource | None = None) -> tuple[Integers, ...]:
        """Which points, which of their places, and how many rows are there, where this many rows
        of each point take one at random. `source` is for tests.
        """

    @abstractmethod
    def keeps(
        self, gaps: Integers, share: Fraction, source: BitSource | None = None
    ) -> NDArray[np.bool_]:
        """Whether proposals are kept whose scores are this much below what they were taken for,
        each with probability exp(-gap / scale). `source` is for tests.
        """
