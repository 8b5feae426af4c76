"""How much more likely outcomes are on one of two frames than on the other, by what a plan
states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.bound import MeasurementKey
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.measurement import Integers, Selection
from dpframe.audit.reach import Counted, changes_of
from dpframe.audit.tuple_law import choices_apart
from dpframe.mechanisms import AdditiveMechanism, VectorMechanism
from dpframe.planning import Exact
from dpframe.release import Draw
from dpframe.simulate.drawing import NoisyParts

Floats = NDArray[np.float64]
Noise = AdditiveMechanism | VectorMechanism
_DIGITS = 6
"""Ratios that are the same but for the rounding of sums are one."""


def is_noise_alone(prepared: pipeline.Prepared) -> bool:
    """Whether all that a plan draws is noise on numbers, to which other people mean nothing."""
    return all(_adds_noise(one) for one in prepared.draws)


def _adds_noise(one: Draw) -> bool:
    added = isinstance(one.law, (AdditiveMechanism, VectorMechanism))
    return added and not isinstance(one.measurement, Selection)


def stated_loss(prepared: pipeline.Prepared, one: Counted, other: Counted) -> float:
    """How much privacy two frames lose by the noise that the plan states.

    The log of how much more likely no noise is than noise that undoes the move, over all draws:
    the rho that Gaussian noise uses, the epsilon that a box or Laplace noise uses.
    """
    loss = 0.0
    adding = [draw for draw in prepared.draws if _adds_noise(draw)]
    exact = Exact.of(prepared.query, (draw.measurement for draw in adding))
    for draw in adding:
        part, law = draw.measurement, draw.law
        assert isinstance(law, (AdditiveMechanism, VectorMechanism))
        if isinstance(part, JointSums):
            moved = exact.numbers(part, one) - exact.numbers(part, other)
        else:
            moved = np.array(changes_of(exact, part, one, other), dtype=np.int64)
        if moved.size:
            loss += float((law.log_masses(np.zeros_like(moved)) - law.log_masses(moved)).sum())
    return loss


class StatedRatios:
    """The laws by which a plan distinguishes two frames, and what they are of on each. Choices are
    included only where several quantiles are chosen jointly, and groups that do not appear are not.

    Parameters
    ----------
    prepared
        The plan.
    pair
        The exact tables of both sides.
    """

    def __init__(self, prepared: pipeline.Prepared, pair: tuple[Counted, Counted]) -> None:
        adding = [one for one in prepared.draws if _adds_noise(one)]
        exact = Exact.of(prepared.query, (one.measurement for one in adding))
        self._adding = list[tuple[MeasurementKey, Noise, Integers, Integers, Integers]]()
        for one in adding:
            assert isinstance(one.law, (AdditiveMechanism, VectorMechanism))
            mine, other = (exact.numbers(one.measurement, counted) for counted in pair)
            moved = np.flatnonzero((mine != other).any(axis=1))
            key = one.keys[0] if one.rebuilt is None else one.vector
            if moved.size:
                self._adding.append((key, one.law, moved, mine[moved], other[moved]))
        self._choosing = list(choices_apart(prepared, pair))

    def of(self, noisy: NoisyParts, kept: NDArray[np.bool_] | None, runs: int) -> Floats:
        """The log of the ratio of the probabilities on both sides of the draws in each run.

        Parameters
        ----------
        noisy, kept
            What was drawn in all runs at once, and which groups appear.
        runs
            How many there are.
        """
        found = np.zeros(runs)
        for key, law, moved, mine, other in self._adding:
            numbers = noisy[key].reshape(runs, -1, mine.shape[1])[:, moved]
            ratios = law.log_masses(numbers - mine) - law.log_masses(numbers - other)
            ratios = ratios.reshape(runs, moved.size, -1).sum(axis=2)
            if kept is not None:
                ratios = np.where(kept.reshape(runs, -1)[:, moved], ratios, 0.0)
            found += ratios.sum(axis=1)
        for one, group, apart in self._choosing:
            codes = noisy[one.keys[0]]
            ratios = apart.ratios(codes.reshape(runs, -1, codes.shape[1])[:, group])
            there = True if kept is None else kept.reshape(runs, -1)[:, group]
            found += np.where(there, ratios, 0.0)
        return np.round(found, _DIGITS)
