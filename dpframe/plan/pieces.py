"""The parts of a plan besides its noisy vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from dpframe.aggregates.reconstructed_error import OutputError
from dpframe.core.budget import Budget
from dpframe.core.tree import WRITTEN
from dpframe.core.units import Unit
from dpframe.frames.definition import Json


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation of the plan, in words.

    Parameters
    ----------
    words
        The operation as the analyst wrote it.
    stability
        Why one individual cannot touch more rows through it.
    learned
        What is known of the columns that it made or narrowed.
    definition
        The operation in full.
    """

    words: str
    stability: str
    learned: tuple[str, ...] = ()
    definition: Json = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """One output of the plan.

    Parameters
    ----------
    name
        The type of its column, or of the first one of a table.
    words
        How it is computed.
    note
        How the result comes from what is released; empty where that goes without saying.
    releases
        Which of the plan's releases it is made of, by their numbers from 0.
    error
        How a bound on its error follows from bounds on theirs.
    definition
        What it is made of in full.
    """

    name: str
    words: str
    note: str
    releases: tuple[int, ...]
    error: OutputError = field(repr=False)
    definition: Json = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """One frame and its groups in a plan of several queries; its releases and outputs follow those
    of the blocks before it.

    Parameters
    ----------
    source, unit, others, declared, steps, grouping, groups, keys, keys_digest, grouped_by, \
    best_group, remarks, columns
        As in the plan of one query.
    releases, outputs
        How many of the plan's are its own.
    """

    source: str
    unit: Unit
    others: tuple[str, ...]
    declared: tuple[str, ...]
    steps: tuple[PlanStep, ...]
    grouping: str | None
    groups: int | None
    keys: str | None
    keys_digest: str | None = field(repr=False)
    grouped_by: Json = field(repr=False)
    best_group: bool
    remarks: tuple[str, ...] = field(metadata={WRITTEN: "warnings"})
    releases: int
    outputs: int
    columns: tuple[PlanColumn, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a protected frame that is read, with its type.

    Parameters
    ----------
    frame, name
        Their names.
    type
        The type as Polars writes it, with a digest where that does not say all of it.
    """

    frame: str
    name: str
    type: str


@dataclass(frozen=True, slots=True, order=True)
class PlanTypical:
    """What its owner says a value of a column is like; nothing but warnings follows from it.

    Parameters
    ----------
    frame, column
        Whose.
    value
        Not 0.
    """

    frame: str
    column: str
    value: Fraction


@dataclass(frozen=True, slots=True, order=True)
class PlanIdentifying:
    """A column of a frame whose rows are protected that is named as identifiers are.

    Parameters
    ----------
    frame, column
        Their names.
    """

    frame: str
    column: str


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """One query of a plan of several.

    Parameters
    ----------
    block
        The number of its frame and groups, from 0.
    names
        What its outputs are called in its result.
    outputs
        Which of the plan's outputs they are, by their numbers from 0.
    """

    block: int
    names: tuple[str, ...]
    outputs: tuple[int, ...]


REACH: Final = 5, 2000
"""The loss under a limit is bounded for individuals with up to this many times the limit, and at
least this many rows.
"""


@dataclass(frozen=True, slots=True)
class LimitChoice:
    """A limit that may be found when a query runs.

    Parameters
    ----------
    n
        The limit.
    cost
        The cost of the query under it.
    error
        The error of its first output, with 95%, to three digits; None where that depends on the
        data.
    fingerprint
        The fingerprint of the plan's releases under it alone, see
        `dpframe.plan.document.earlier_fingerprint`.
    noise
        Its error by noise, with 95%, as a number of rows, to three digits; None in plans from
        before limits were found by it.
    """

    n: int
    cost: Budget
    error: float | None
    fingerprint: str
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class FoundLimit:
    """A limit that is found when the query runs.

    Parameters
    ----------
    step
        The verb that limits: ``"limit_rows"`` or ``"limit_groups"``.
    by
        The columns that it is given.
    share
        The part of the spend by which it is found.
    choices
        The limits that may be found, in rising order; the plan shows the query under the last.
    """

    step: str
    by: tuple[str, ...]
    share: Fraction
    choices: tuple[LimitChoice, ...]

    @property
    def is_by_loss(self) -> bool:
        """Whether the limit is found that loses least by what it drops and by noise together; or,
        in older plans, the least that all but one percent of individuals keep.
        """
        return any(choice.noise is not None for choice in self.choices)

    def words(self, n: int | str) -> str:
        """The limit as an analyst writes it."""
        by = f", by=[{', '.join(repr(name) for name in self.by)}]" if self.by else ""
        return f"{self.step}({n}{by})"


@dataclass(frozen=True, slots=True)
class ForcedError:
    """What it does to an output that something is requested.

    Parameters
    ----------
    output
        Its number, from 0.
    named
        Whether a mechanism is requested in it.
    times
        The ratio of its error to that of the plan with the least error, to three digits; None if
        unknown.
    """

    output: int
    named: bool
    times: float | None
