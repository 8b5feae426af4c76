"""How much more likely outcomes are on one of two frames than on the other, by what a plan
states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.measurement import Selection
from dpframe.audit.reach import Counted, changes_of
from dpframe.audit.tuple_law import choices_apart
from dpframe.mechanisms import AdditiveMechanism, VectorMechanism
from dpframe.planning import Exact
from dpframe.release import Draw
from dpframe.simulate.drawing import NoisyParts

__all__ = ["is_noise_alone", "stated_loss", "stated_ratios"]

Floats = NDArray[np.float64]
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


def stated_ratios(
    prepared: pipeline.Prepared,
    pair: tuple[Counted, Counted],
    noisy: NoisyParts,
    kept: NDArray[np.bool_] | None,
    runs: int,
) -> Floats:
    """The log of the ratio of the probabilities on both sides of the draws in each run, by the
    laws that the plan states. Choices are included only where several quantiles are chosen
    jointly, and groups that do not appear are not.

    Parameters
    ----------
    prepared
        The plan.
    pair
        The exact tables of both sides.
    noisy, kept
        What was drawn in all runs at once, and which groups appear.
    runs
        How many there are.
    """
    found = np.zeros(runs)
    adding = [one for one in prepared.draws if _adds_noise(one)]
    exact = Exact.of(prepared.query, (one.measurement for one in adding))
    for one in adding:
        part, law = one.measurement, one.law
        assert isinstance(law, (AdditiveMechanism, VectorMechanism))
        key = one.keys[0] if one.rebuilt is None else one.vector
        mine, other = (exact.numbers(part, counted) for counted in pair)
        moved = np.flatnonzero((mine != other).any(axis=1))
        if not moved.size:
            continue
        numbers = noisy[key].reshape(runs, -1, mine.shape[1])[:, moved]
        ratios = law.log_masses(numbers - mine[moved]) - law.log_masses(numbers - other[moved])
        ratios = ratios.reshape(runs, moved.size, -1).sum(axis=2)
        if kept is not None:
            ratios = np.where(kept.reshape(runs, -1)[:, moved], ratios, 0.0)
        found += ratios.sum(axis=1)
    for one, group, apart in choices_apart(prepared, pair):
        codes = noisy[one.keys[0]]
        ratios = apart.ratios(codes.reshape(runs, -1, codes.shape[1])[:, group])
        found += ratios if kept is None else np.where(kept.reshape(runs, -1)[:, group], ratios, 0)
    return np.round(found, _DIGITS)
