"""What a frame operation is: its facts, its stability, its lowering and its words."""

from __future__ import annotations

from abc import ABC, abstractmethod

import polars as pl

from dpframe.frames.facts import FrameFacts
from dpframe.rows.operation import Namespace


class Step(ABC):
    """One operation on a whole frame, as a frozen value.

    Guarantee
    ---------
    Every step is 1-stable: frames that differ in k rows become frames that differ in at most k
    rows, because each row of the input makes at most one row of the output, from its own values.
    """

    __slots__ = ()

    @abstractmethod
    def facts(self, before: FrameFacts) -> FrameFacts:
        """What is known after the step.

        Raises
        ------
        DPFrameError
            When the step makes no sense on such a frame.
        """

    @abstractmethod
    def lower(self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace) -> pl.LazyFrame:
        """The same step on the engine's frame; total, like the expressions in it."""

    @abstractmethod
    def words(self) -> str:
        """The step as the analyst would write it."""

    @property
    def computes(self) -> bool:
        """Whether there are columns afterwards that were computed."""
        return False

    @property
    @abstractmethod
    def stability(self) -> str:
        """Why the step cannot let one individual touch more rows, in a few words."""
