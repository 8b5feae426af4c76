"""What a plan is made of beside its noisy vectors."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpframe.aggregates.rebuilt_error import OutputError
from dpframe.plan.definition import Json


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
        Of its column, or of the first one of a table.
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
