"""Choosing the groups that appear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Table
from dpframe.mechanisms import KeyMechanism

__all__ = ["KeyChoice"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How groups are chosen, given exact numbers of individuals or rows.

    Parameters
    ----------
    part
        What is counted.
    law
        The private rule.
    """

    part: KeySelection
    law: KeyMechanism

    @property
    def table(self) -> Table:
        """The exact table that the choice needs."""
        return self.part.table

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide."""
        noise = self.law.noise_of_number()
        if noise is not None:
            noisy = counts + noise.draw(counts.size)
            return self.law.keep(noisy), noisy
        return self.law.keep(self.part.individuals(counts)), None
