"""The owner of a row: the columns by which rows belong to the same individual.

An individual is a person, who is known by the identifier; or a person in one calendar window,
which is known by its number as well. Code that groups, ranks, joins or counts individuals takes
these columns from here. Each is computed from a row's own values, and never null, so rows of two
individuals never meet in them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from dpframe.core.dtypes import INT64, DType
from dpframe.core.windows import AFTER, BEFORE, Windows
from dpframe.frames.facts import FrameFacts
from dpframe.frames.sampling import comparable, require_identifier, unused
from dpframe.rows.layouts import grouped_type
from dpframe.rows.operation import Namespace
from dpframe.rows.temporal import NO_TIME, window_number

__all__ = ["Owners", "owner_columns", "window_of", "within_windows"]


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """A frame with the columns that identify the owners of its rows.

    Parameters
    ----------
    frame
        The frame, with a further column for the number of the window where there are windows.
    types
        The columns that identify individuals, and their types.
    added
        The further column, if any.
    """

    frame: pl.LazyFrame
    types: dict[str, DType]
    added: tuple[str, ...]

    def without(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """A frame of such rows without what was added."""
        return frame.drop(*self.added) if self.added else frame

    @classmethod
    def of(
        cls,
        frame: pl.LazyFrame,
        facts: FrameFacts,
        ns: Namespace,
        where: str,
        taken: Collection[str] = (),
    ) -> Owners:
        """The owners of a frame of individuals.

        Parameters
        ----------
        where
            The step, for messages.
        taken
            Names that no column may be given.
        """
        who = require_identifier(facts.identifier, where)
        types = {who: facts.columns[who].dtype}
        window = window_of(facts, ns)
        if window is None:
            return cls(frame, types, ())
        name = unused({*facts.columns, *taken}, "window")
        return cls(frame.with_columns(window.alias(name)), {**types, name: INT64}, (name,))


def window_of(facts: FrameFacts, ns: Namespace) -> pl.Expr | None:
    """The number of each row's window; None where all rows of a person are one individual's."""
    if facts.time is None or facts.every is None:
        return None
    return window_number(ns, ns.col(facts.time), facts.columns[facts.time].dtype, facts.every)


def owner_columns(facts: FrameFacts, ns: Namespace) -> list[tuple[pl.Expr, DType]]:
    """The same columns as expressions in the form in which they are grouped, and their types: the
    identifier, and the window where there is one.
    """
    who = require_identifier(facts.identifier, "statistics of individuals")
    dtype = facts.columns[who].dtype
    found = [(comparable(ns, who, dtype), grouped_type(dtype))]
    window = window_of(facts, ns)
    return found if window is None else [*found, (window, INT64)]


def within_windows(
    frame: pl.LazyFrame, facts: FrameFacts, windows: Windows | None, ns: Namespace
) -> pl.LazyFrame:
    """The rows in some windows: what a plan says that it reads is all that it reads."""
    number = window_of(facts, ns)
    if windows is None or number is None or windows.are_all:
        return frame
    if windows.every == "1d":  # dates outside the calendar are read with the days next to it
        inside = number.clip(BEFORE["1d"], AFTER["1d"])
        number = ns.when(number == NO_TIME).then(number).otherwise(inside)
    if windows.none_with_time:
        return frame.filter(number == NO_TIME if windows.without else number < NO_TIME)
    kept = number > NO_TIME if windows.first is None else number >= windows.first
    if windows.last is not None:
        kept = kept & (number <= windows.last)
    return frame.filter(kept | (number == NO_TIME) if windows.without else kept)
