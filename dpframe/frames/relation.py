"""A private frame as a value: where it comes from and what was done to it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpframe.frames.facts import FrameFacts
from dpframe.frames.step import Step


@dataclass(frozen=True, slots=True)
class Owners:
    """The frame that determines the owners of another frame's rows.

    Parameters
    ----------
    token, name
        Of that frame.
    here, there
        The keys by which it says so, in the other one and in itself.
    """

    token: int
    name: str
    here: str
    there: str

    def told(self) -> list[str]:
        """What stands for it in other processes."""
        return [self.name, self.here, self.there]


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A chain of steps on one protected frame. Holds no data.

    Parameters
    ----------
    name
        What plans call the frame.
    source
        What was known when it was protected.
    steps
        Each step with the facts before it.
    facts
        What is known now.
    salt
        Of steps that choose among an individual's rows, where several releases have to choose the
        same; else each has its own.
    token
        The identity of the protected frame.
    remarks
        What reviewers should know of how its rows are read.
    typical
        What its owner says values of columns are like; nothing but warnings follows from it.
    named
        Whether its owner named it, so that the name stands for it in other processes too.
    by_place
        Whether it is unnamed, so that plans call it by its place among their frames.
    owners
        The other frame that determines the owners of rows, if any.
    """

    name: str
    source: FrameFacts
    steps: tuple[tuple[Step, FrameFacts], ...]
    facts: FrameFacts
    salt: int | None = field(default=None, repr=False)
    token: int = field(default_factory=itertools.count().__next__, repr=False)
    remarks: tuple[str, ...] = ()
    named: bool = field(default=False, repr=False)
    by_place: bool = field(default=False, repr=False)
    typical: tuple[tuple[str, Fraction], ...] = ()
    owners: Owners | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        facts: FrameFacts,
        remarks: tuple[str, ...] = (),
        *,
        named: bool = False,
        by_place: bool = False,
        typical: tuple[tuple[str, Fraction], ...] = (),
    ) -> Relation:
        made = cls(name, facts, (), facts, remarks=remarks, named=named)
        return replace(made, by_place=by_place, typical=typical)

    def then(self, step: Step) -> Relation:
        """The frame after one more step.

        Raises
        ------
        DPFrameError
            When the step makes no sense here; nothing has happened then.
        """
        facts = step.facts(self.facts)
        return replace(self, steps=(*self.steps, (step, self.facts)), facts=facts)
