"""What a frame operation is: its facts, its stability, its lowering and its words."""

from __future__ import annotations

from abc import abstractmethod

import polars as pl

from dpframe.core.exprs import HasExprs
from dpframe.frames.facts import FrameFacts
from dpframe.rows.operation import Namespace


class FramePart(HasExprs):
    """What is done to a frame in one go: a step, or a part of one."""

    __slots__ = ()

    @abstractmethod
    def facts(self, before: FrameFacts) -> FrameFacts:
        """What is known after it.

        Raises
        ------
        DPFrameError
            When it makes no sense on such a frame.
        """

    @abstractmethod
    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        """The same on the engine's frame; total, like the expressions in it. `salt` is for steps
        that choose among an individual's rows.
        """


class Step(FramePart):
    """One operation on a whole frame, as a frozen value.

    Guarantee
    ---------
    What happens to a row depends on it and on other rows of the same individual, never on anybody
    else's. So frames that differ in one individual's rows become frames that differ in at most that
    individual's rows. Most steps are 1-stable as well: each row makes at most one row, from its own
    values.

    Proof
    -----
    Steps compose: if the first keeps one individual's rows separate from those of others and the
    second does too, so do both in turn. If one row becomes at most c rows in the first and at
    most d in the second, it becomes at most c d in both. Aggregates see nothing but the last
    frame.
    """

    __slots__ = ()

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        """What it is done in, one after another, each with what is known before."""
        return ((self, before),)

    @abstractmethod
    def words(self) -> str:
        """The step as the analyst would write it."""

    @property
    def computes(self) -> bool:
        """Whether there are columns afterwards that were computed."""
        return False

    @property
    def is_one_stable(self) -> bool:
        """Whether frames that differ in k rows differ in k rows at most afterwards."""
        return True

    @property
    @abstractmethod
    def stability(self) -> str:
        """Why the step cannot let one individual touch more rows, in a few words."""
