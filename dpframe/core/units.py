"""Privacy units: whom a session protects, and what it means for two frames to be neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dpframe.core.exact import show_input
from dpframe.core.windows import NAMES, Every, as_every
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.kernel.frame import PARTS
from dpframe.sealed import all_sealed

Adjacency: TypeAlias = Literal["add-remove", "change-one"]


@all_sealed
@dataclass(frozen=True, slots=True)
class Rows:
    """Each individual owns at most `contributions` rows.

    Parameters
    ----------
    adjacency
        ``"add-remove"``: neighbouring frames differ by all rows of one individual, present in one
        and absent in the other. ``"change-one"``: they have equally many rows and differ in the
        values of one individual's rows, so the number of rows is public.
    contributions
        The largest number of rows that one individual owns. A promise of the data owner.

    Raises
    ------
    UnsupportedOperation
        For another adjacency, or contributions that are not a positive integer.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.Rows("change-one", contributions=3)
    Rows(adjacency='change-one', contributions=3)
    """

    adjacency: Adjacency = "add-remove"
    contributions: int = 1

    def __post_init__(self) -> None:
        if self.adjacency not in ("add-remove", "change-one"):
            raise UnsupportedOperation(
                f"there is no adjacency {show_input(self.adjacency)}",
                remedy=('write dp.Rows("add-remove")', 'write dp.Rows("change-one")'),
            )
        whole = isinstance(self.contributions, int) and not isinstance(self.contributions, bool)
        if not whole or self.contributions < 1:
            raise UnsupportedOperation(
                f"contributions must be a positive integer, not {show_input(self.contributions)}",
                remedy="write dp.Rows(contributions=1) if each individual has one row",
            )

    @property
    def kind(self) -> str:
        """What two frames of one session must have in common."""
        return f"rows, {self.adjacency}"

    def words(self) -> str:
        """How neighbouring frames differ."""
        if self.adjacency == "add-remove":
            return f"adding or removing {self._rows} of one individual"
        return (
            f"changing the values in {self._rows} of one individual (the number of rows is public)"
        )

    def whom(self) -> str:
        """Whom it protects."""
        if self.adjacency == "add-remove":
            return f"{self._rows} of one person"
        return f"the values in {self._rows} of one person; the number of rows is public"

    @property
    def _rows(self) -> str:
        return "one row" if self.contributions == 1 else f"up to {self.contributions} rows"


@all_sealed
@dataclass(frozen=True, slots=True)
class Identifier:
    """All rows with the same value of `column` belong to one individual, or those of them that lie
    in one calendar window.

    Parameters
    ----------
    column
        The column that identifies individuals. Rows where it is null belong to no individual and
        are dropped.
    window
        None protects all rows of a person. ``"1d"``, ``"1w"`` (from Monday), ``"1mo"``, ``"1q"`` or
        ``"1y"`` protects a person's rows in one such window of `time`. An "individual" is then a
        person in a window, also for limits and for counts of individuals.
    time
        With a window: the column with the Date or Datetime of a row. Times with a zone are in the
        windows of that zone. Rows with a null time form a separate window.

    Raises
    ------
    UnsupportedOperation
        When it is not a text, when the window does not exist, when only one of `window` and
        `time` is given, or when the time is the identifier itself.

    Guarantee
    ---------
    Neighbouring frames differ in the rows of one individual. With a window, an individual is one
    person in one window, in all frames of a session together. A row's window is that of its own
    time, by the calendar of its own column. A person with rows in n windows is n individuals. For
    the whole person the guarantee is n epsilon, n mu or n**2 rho (n rho where no plan reads two of
    these windows), with delta (1 + exp(epsilon) + ... + exp((n - 1) epsilon)).

    Proof
    -----
    The row's own values decide which person and window it belongs to. So these rows are an
    individual's rows in the same sense as those of a whole person, and every rule for individuals
    applies to them without further facts about persons. Frames with and without a person in n
    windows are n steps from each other, each between neighbours, which is group privacy (Dwork
    and Roth 2014, Theorem 2.2 and Lemma 2.2 of Vadhan 2017; Bun and Steinke 2016, Proposition
    1.9).

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.Identifier("user_id")  # for which plain "user_id" is short
    Identifier(column='user_id')
    >>> dp.Identifier("user_id", window="1mo", time="at")
    Identifier(column='user_id', window='1mo', time='at')
    """

    column: str
    window: Every | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise UnsupportedOperation(
                f"an identifier is the name of a column, not {show_input(self.column)}",
                where="dp.Identifier(...)",
                remedy='write for example dp.Identifier("user_id")',
            )
        if self.window is None and self.time is None:
            return
        example = f'dp.Identifier({self.column!r}, window="1mo", time="at")'
        if self.window is not None:
            as_every(self.window, "dp.Identifier(..., window=...)")
        if self.window is None or not isinstance(self.time, str):
            raise UnsupportedOperation(
                "dp.Identifier takes both window= and time=, or neither",
                where="dp.Identifier(..., window=..., time=...)",
                remedy=f"write for example {example}",
            )
        if self.time == self.column:
            raise UnsupportedOperation(
                f"the column {self.column!r} is given both as the identifier and as the time",
                where="dp.Identifier(..., time=...)",
                remedy=f"name the column of times, as in {example}",
            )

    def __repr__(self) -> str:
        more = f", window={self.window!r}, time={self.time!r}" if self.window is not None else ""
        return f"Identifier(column={self.column!r}{more})"

    @property
    def adjacency(self) -> Adjacency:
        """Neighbouring frames differ by all rows of one individual."""
        return "add-remove"

    @property
    def kind(self) -> str:
        """What two frames of one session must have in common."""
        return "identifier" if self.window is None else f"identifier per {self.window}"

    def words(self) -> str:
        """How neighbouring frames differ."""
        within = (
            f' within each calendar {NAMES[self.window]} of "{self.time}"' if self.window else ""
        )
        return (
            f'adding or removing all rows of one individual, identified by "{self.column}"{within}'
        )

    def whom(self) -> str:
        """Whom it protects."""
        within = f" in one calendar {NAMES[self.window]} of {self.time}" if self.window else ""
        return f"all rows of one person (column {self.column}){within}"


Unit: TypeAlias = Rows | Identifier


def as_unit(unit: object) -> Unit:
    """The unit that a user wrote; plain text is short for an `Identifier`.

    Raises
    ------
    DPFrameError
        When it is neither a unit nor text.
    """
    match unit:
        case Rows() | Identifier():
            return unit
        case str():
            return Identifier(unit)
        case _:
            raise DPFrameError(
                f"{show_input(unit)} is not a privacy unit, which says who is protected",
                where="unit",
                remedy=(
                    'write unit="user_id" with the column of the person',
                    "write unit=dp.Rows() where each row is one person",
                ),
            )


# The engines that plans run on, by the names that `engine=` has for them.


POLARS = "polars"
DUCKDB = "duckdb"
SQL = frozenset((DUCKDB, "spark"))
"""What is behind Narwhals."""
EVERYWHERE = frozenset((POLARS, *SQL))


# Weights of individuals: whole parts of one, so that weighed sums are integers.
#
# A limit on the norm of what an individual contributes makes all of its rows count less, each by
# the same factor. That factor is k / 2**12 with a whole k, and what an engine adds up are k times
# the integers of the rows. So an individual with weight k is like k individuals with its rows, each
# counting one part: every rule for rows that come and go holds for parts of rows.
#
# With m_g rows in group g, k is the largest whole number with k**2 sum(m_g**2) <= N**2, and 2**12
# at most, where N = floor(2**12 n) for a norm n. It is found by integers alone, see
# `dpframe.lower.pairs`.


WEIGHT_BITS: Final = PARTS.bit_length() - 1
"""`PARTS` are the parts of one row, or of one individual in a group: weights are multiples of one
over this.
"""
LEAST_NORM: Final = Fraction(1, 64)
LARGEST_NORM: Final = 1 << 16
"""Norms beyond these are not meant, and up to it no integer overflows on the way."""


def norm_in_parts(norm: Fraction) -> int:
    """N = floor(2**12 n), at least 1."""
    return math.floor(norm * PARTS)


def parts_in_each(norm: int, groups: int) -> int:
    """How many parts an individual adds to each of `groups` groups, for a norm in parts."""
    return min(PARTS, math.isqrt(norm * norm // groups))
