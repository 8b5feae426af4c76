"""The parts of a plan besides its noisy vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

from dpframe.aggregates.reconstructed_error import OutputError
from dpframe.core.budget import Budget
from dpframe.core.tree import WRITTEN
from dpframe.core.units import Unit
from dpframe.frames.definition import Json

Fields: TypeAlias = "dict[str, Any]"
"""An object in the document of a plan: what it holds is known once it was read."""


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
    """One output of the plan."""

    name: str  # The name of its column, or of the first one of a table
    words: str  # How it is computed
    note: str  # How the result comes from what is released; empty where that goes without saying
    releases: tuple[int, ...]  # Which of the plan's releases it is made of, numbered from 0
    error: OutputError = field(repr=False)  # How a bound on its error follows from bounds on theirs
    definition: Json = field(default=None, repr=False)  # What it is made of in full


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """One frame and its groups in a plan of several queries; its releases and outputs follow those
    of the blocks before it. All but their numbers is as in the plan of one query.
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
    releases: int  # How many of the plan's releases, and of its outputs, are its own
    outputs: int
    columns: tuple[PlanColumn, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a protected frame that is read, with its type."""

    frame: str
    name: str
    type: str  # As Polars writes it, with a digest where that does not say all of it


@dataclass(frozen=True, slots=True, order=True)
class PlanTypical:
    """What its owner says a value of a column is like; nothing but warnings follows from it."""

    frame: str
    column: str
    value: Fraction  # Not 0


@dataclass(frozen=True, slots=True, order=True)
class PlanIdentifying:
    """A column of a frame whose rows are protected that is named as identifiers are."""

    frame: str
    column: str


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """One query of a plan of several."""

    block: int  # The number of its frame and groups, from 0
    names: tuple[str, ...]  # What its outputs are called in its result
    outputs: tuple[int, ...]  # Which of the plan's outputs they are, numbered from 0


REACH: Final = 5, 2000
"""The loss under a limit is bounded for individuals with up to this many times the limit, and at
least this many rows.
"""


@dataclass(frozen=True, slots=True)
class LimitChoice:
    """A limit that may be found when a query runs."""

    n: int  # The limit
    cost: Budget  # The cost of the query under it
    # The error of its first output, with 95%, to three digits; None where the data decides.
    error: float | None
    # The fingerprint of the plan's releases under it alone, see
    # `dpframe.plan.document.earlier_fingerprint`.
    fingerprint: str
    # Its error by noise, with 95%, as a number of rows, to three digits; None in plans from before
    # limits were found by it.
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class FoundLimit:
    """A limit that is found when the query runs."""

    step: str  # The verb that limits: ``"limit_rows"`` or ``"limit_groups"``
    by: tuple[str, ...]  # The columns that it is given
    share: Fraction  # The part of the spend by which it is found
    # The limits that may be found, in rising order; the plan shows the query under the last.
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
    """What it does to an output that something is requested."""

    output: int  # Its number, from 0
    named: bool  # Whether a mechanism is requested in it
    # Its error over the error of the plan with the least error, to three digits; None if
    # unknown.
    times: float | None


# Sentences that plans keep and that are more than routine.

NOBODY: Final = "is above 10: it protects nobody in practice"
FAILS: Final = (
    "is above 1e-5: with that probability the guarantee may "
    "fail altogether; it should be far below one over the number of individuals"
)
SCANNED: Final = (
    "its rows are scanned from a text file, where one record can make a query fail after it was "
    "charged, change how others are read, or have changed a type that was inferred; "
    "protect the path itself with a schema: session.protect(path, ..., schema={column: dtype})"
)

OWNED: Final = "each row is of the individuals who have its "


def owner_remark(here: str, there: str, name: str | None) -> str:
    """The remark that another frame identifies the owners of rows, with its name, if it has one,
    and the keys here and there.
    """
    whose = "another protected frame" if name is None else f"the frame {name!r}"
    key = repr(here) if here == there else f"{here!r} as {there!r}"
    return f"{OWNED}{key} in {whose}; rows of nobody are dropped"


def is_risk(sentence: str) -> bool:
    """Whether a sentence that a plan keeps is a risk, which reviewers decide on; the others are
    notes. Plans begin each sentence with its subject, so the end of a sentence decides.
    """
    return sentence.endswith((NOBODY, FAILS, SCANNED))
