"""The law of the noise of several parts of one result, for any joint draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.hull_slices import hull_slices
from dpframe.aggregates.joint_noise import Independent, JointNoise, Slices
from dpframe.aggregates.joint_slices import SLIGHT, box_slices, gaussian_slices
from dpframe.aggregates.joint_sums import Rebuilt
from dpframe.mechanisms import (
    AdditiveMechanism,
    CombinedNoise,
    Mechanism,
)

__all__ = ["Together", "drawn_of", "noise_law", "noise_of"]

Floats: TypeAlias = "NDArray[np.float64]"
Part: TypeAlias = "tuple[AdditiveMechanism, Fraction]"

_CELLS: Final = 96


def noise_law(parts: Sequence[tuple[AdditiveMechanism, Fraction, int]]) -> JointNoise:
    """The joint law of the noise of parts.

    Parameters
    ----------
    parts
        The law of each in steps, what a step is, and the number of its draw: parts of one draw
        depend on each other.
    """
    blocks: dict[int, list[int]] = {}
    for place, (_, _, draw) in enumerate(parts):
        blocks.setdefault(draw, []).append(place)
    laws = [(law, step) for law, step, _ in parts]
    if len(blocks) == len(parts):
        return Independent(tuple(laws))
    if len(blocks) == 1:
        return Together(tuple(laws))
    return _Blocks(tuple(laws), tuple(map(tuple, blocks.values())))


def drawn_of(noise: JointNoise) -> list[tuple[AdditiveMechanism, Fraction, int]]:
    """The parts that `noise_law` made a law of, with the numbers of their draws."""
    assert isinstance(noise, (Independent, Together, _Blocks))
    draws = dict.fromkeys(range(len(noise.parts)), 0)
    if isinstance(noise, Independent):
        draws = {place: place for place in draws}
    elif isinstance(noise, _Blocks):
        draws = {place: number for number, block in enumerate(noise.blocks) for place in block}
    found = [(law, step, draws[place]) for place, (law, step) in enumerate(noise.parts)]
    return [(law, step, n) for law, step, n in found if isinstance(law, AdditiveMechanism)]


@dataclass(frozen=True, slots=True)
class Together:
    """Noises of parts that follow from one draw.

    Parameters
    ----------
    parts
        The law of each part in steps, all combinations of one vector, and what a step is.
    """

    parts: tuple[Part, ...]

    @property
    def even(self) -> bool:
        """Whether no two parts have a number of the vector in common, or a count and squares that
        go together.
        """
        combined = [_combined(law) for law, _ in self.parts]
        used = [
            law.law.moves_with(place)
            for law in combined
            for place, factor in enumerate(law.factors)
            if factor
        ]
        return len(set(used)) == len(used)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        if len(parts) == 1:
            return Independent((self.parts[parts[0]],))
        return Together(tuple(self.parts[part] for part in parts))

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        return _together(self.parts, miss)


def _combined(law: AdditiveMechanism) -> CombinedNoise:
    assert isinstance(law, CombinedNoise)
    return law


@lru_cache(maxsize=256)
def _together(parts: tuple[Part, ...], miss: float) -> Slices:
    laws = [_combined(law) for law, _ in parts]
    units = [float(step) for _, step in parts]
    rows = np.array([[f / law.divisor for f in law.factors] for law in laws])
    vector = laws[0].law
    boxes = vector.boxes(miss * SLIGHT)
    if boxes is None:
        return gaussian_slices(vector.variance_of_sum((1,)), rows, units, miss)
    if boxes.arches:
        return hull_slices(boxes, rows, units)
    return box_slices(boxes, rows, units)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Noises of parts that follow from several draws.

    Parameters
    ----------
    parts
        The law of each part in steps, and what a step is.
    blocks
        Which parts are drawn jointly.
    """

    parts: tuple[Part, ...]
    blocks: tuple[tuple[int, ...], ...]

    @property
    def even(self) -> bool:
        return all(self._law(block).even for block in self.blocks)

    def _law(self, block: tuple[int, ...]) -> JointNoise:
        parts = tuple(self.parts[place] for place in block)
        return Together(parts) if len(parts) > 1 else Independent(parts)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        numbers = {place: n for n, block in enumerate(self.blocks) for place in block}
        return noise_law([(*self.parts[part], numbers[part]) for part in parts])

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        """The slices of the block of the first part, with all points of the other blocks."""
        own = next(block for block in self.blocks if 0 in block)
        pulls = dict(enumerate(pull, 1))
        first = self._law(own).slices(miss, tuple(pulls[place] for place in own[1:]))
        found = dict(zip(own[1:], first.others, strict=True))
        weights, size = first.weights, first.weights.size
        for block in self.blocks:
            if block is not own:
                masses, points = self._points(block, miss, pulls)
                found = {place: np.tile(values, masses.size) for place, values in found.items()}
                for place, values in zip(block, points, strict=True):
                    found[place] = np.repeat(values, weights.size)
                weights = np.outer(masses, weights).reshape(-1)
        return Slices(
            weights,
            tuple(found[place] for place in range(1, len(self.parts))),
            above=lambda x: first.above(x.reshape(-1, size)).reshape(x.shape),
            below=lambda x: first.below(x.reshape(-1, size)).reshape(x.shape),
        )

    def _points(
        self, block: tuple[int, ...], miss: float, pulls: dict[int, float]
    ) -> tuple[Floats, tuple[Floats, ...]]:
        """Points that stand for a block without the first part: its slices, with its own first
        noise cut into cells.
        """
        rest = tuple(pulls[place] for place in block[1:])
        slices = self._law(block).slices(miss, rest)
        lead = block[0]
        level = 1 - Fraction(miss * SLIGHT)
        reach = (self.reach(lead, level) + 1) * self.unit(lead)
        edges = np.linspace(-reach, reach, _CELLS + 1)
        beyond = slices.above(np.repeat(edges[:, None], slices.weights.size, axis=1))
        masses = np.maximum(beyond[:-1] - beyond[1:], 0.0) * slices.weights
        middles = np.repeat(((edges[:-1] + edges[1:]) / 2)[:, None], slices.weights.size, axis=1)
        others = [np.broadcast_to(values, masses.shape) for values in slices.others]
        kept = masses > miss * SLIGHT / masses.size
        found = masses[kept]
        return found / found.sum(), (middles[kept], *(values[kept] for values in others))


def noise_of(law: Mechanism, rebuilt: Rebuilt | None) -> Mechanism:
    """The mechanism of one part that follows from a draw."""
    if rebuilt is None:
        return law
    return CombinedNoise.of(law, rebuilt.factors, rebuilt.divisor)
