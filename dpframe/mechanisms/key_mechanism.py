"""Rules that decide which unlisted groups appear."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar, Self

from dpframe.core.budget import Budget
from dpframe.errors import MissingKeys
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import AdditiveMechanism, Choice, Mechanism
from dpframe.mechanisms.tasks import KeyTask


class KeyMechanism(Mechanism):
    """A rule by which groups appear."""

    __slots__ = ()
    label: ClassVar[str] = "selection of groups"
    biases_numbers: ClassVar[bool] = False
    """Whether groups appear by released numbers, which are then too large on average."""

    @classmethod
    def fitted(cls, task: KeyTask, share: Budget) -> Choice | None:
        """The rule by which most groups appear; None for one that rests on a released number."""
        return None

    @classmethod
    def over_number(
        cls, noise: AdditiveMechanism, task: KeyTask, most: int, slack: Fraction
    ) -> Self | None:
        """The rule by a released number with such noise; None where it has none for the task.

        Parameters
        ----------
        most
            How much one individual adds to the number.
        slack
            The delta of all groups.
        """
        return None

    @property
    def in_rounds(self) -> tuple[KeyMechanism, ...]:
        """The rule of each round, where groups are found in several; else this one alone."""
        return (self,)

    def is_for(self, norm: int | None, groups: int) -> bool:
        """Whether it is for individuals whose weights have such a norm, or none, over this many
        groups.
        """
        return norm is None

    def noise_of_number(self) -> AdditiveMechanism | None:
        """The noise of the released number by which groups appear, if they do by one."""
        return None

    def is_hidden_by(self, laws: Iterable[tuple[Mechanism, Fraction]]) -> bool:
        """Whether a group with one individual alone is hidden as often as this says, where these
        are the other mechanisms, each with the most that one individual adds to a number.
        """
        return True

    @property
    @abstractmethod
    def rule(self) -> str:
        """The rule, for plans."""

    def mu_squared_cost(self, exposure: Exposure) -> None:
        """None: it fails with its delta, and then no mu holds."""
        return

    def failure(self, exposure: Exposure) -> Fraction:
        """Its delta in this many groups."""
        return self.delta(exposure.repeats)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the size at which a group appears with probability one half."""
        return math.log(self.size_at(Fraction(1, 2)))

    def least_repeats(self, rows: int, groups: int) -> int:
        """Each group may appear."""
        return max(1, groups)

    @abstractmethod
    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals with which a group appears with such a chance."""

    @abstractmethod
    def delta(self, groups: int) -> Fraction:
        """The delta of this many groups: at most the sum (union bound)."""


def slack_of(share: Budget) -> Fraction:
    """The delta of a share, without which no groups can be found.

    Raises
    ------
    MissingKeys
        When it does not exist.
    """
    if not share.slack:
        raise MissingKeys(
            "groups without listed keys can only be found with a delta",
            remedy=(
                "spend a delta, for example delta=1e-8",
                "list the groups: group_by(..., keys=[...])",
            ),
        )
    return share.slack
