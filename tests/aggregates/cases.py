"""Means, variances and deviations of data that are known by their size, mean and variance alone,
released many times over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dp
from dpframe.aggregates import quantile
from dpframe.aggregates.aggregate import Noisy, Query
from dpframe.mechanisms import AdditiveMechanism, DiscreteGaussian, DiscreteLaplace, NoNoise
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.optimise import planning
from tests.samplers.seeded import Seeded

KINDS = ("mean", "var", "std")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Data by what decides the results.

    Parameters
    ----------
    count
        How many values there are.
    mean
        Theirs, from -1 at the lower bound to 1 at the upper.
    spread
        Their plain variance, as a share of what the mean allows.
    """

    count: int
    mean: float
    spread: float

    def variance(self, half: float) -> float:
        """The plain variance within bounds of this half width."""
        return self.spread * (1 - self.mean**2) * half**2


def worst_like(count: int, error: float) -> Iterator[Data]:
    """All at a bound, nearly all at one, one value, half at each bound, spread out."""
    yield Data(count, 1.0, 0.0)
    for variance in (error, error**2):  # of which errors on both sides are just possible
        yield Data(count, math.sqrt(max(0.0, 1 - 1.004 * variance)), 1.0)
    for inner in (1 - error, 1 - 1.2 * error, 0.98, 0.9, 0.7, 0.4, 0.0):
        mean = max(0.0, inner)
        room = 1 - mean**2
        for spread in (0.0, 1.0, 1 / 3, *(min(1.0, t * error / room) for t in (1, 1.5) if room)):
            yield Data(count, -mean if spread == 1 / 3 else mean, spread)


@contextmanager
def each_alone() -> Iterator[None]:
    """Plans that draw every part by itself, whose noises are independent."""
    real = planning.ways_of
    with (
        mock.patch.object(planning, "ways_of", lambda *asked: real(*asked)[:1]),
        mock.patch.object(quantile, "MOST_AT_ONCE", 0),
    ):
        yield


class Case:
    """One aggregate of values between bounds, whose parts are drawn one by one.

    Parameters
    ----------
    kind
        ``"mean"``, ``"var"`` or ``"std"``.
    bounds
        Of the values.
    session, spend
        Budgets.
    values
        The column's type.
    """

    def __init__(
        self,
        kind: str,
        bounds: tuple[float, float],
        spend: dict[str, Any],
        *,
        values: Any = pl.Float64,
        unit: Any = None,
        **options: Any,
    ) -> None:
        budget = {name: 10**9 if name != "delta" else "0.1" for name in spend}
        frame = pl.LazyFrame(schema={"x": values, "g": pl.Boolean})
        people = dp.Session(**budget).protect(frame, dp.Rows() if unit is None else unit)
        made: pl.Expr = getattr(pl.col("x"), f"dp_{kind}")(bounds, **options)
        asked = people.agg(made)
        self.kind, self.bounds = kind, bounds
        with each_alone():
            self.plan = asked.plan(**spend)
        self.query: Query = asked._query
        (self.aggregate,) = self.query.aggregates
        self.ddof = int(options.get("ddof", 1)) if kind != "mean" else 0

    @property
    def half(self) -> float:
        return (self.bounds[1] - self.bounds[0]) / 2

    @cached_property
    def laws(self) -> list[tuple[AdditiveMechanism, Fraction]]:
        """In the order of the aggregate's parts."""
        found: list[tuple[AdditiveMechanism, Fraction]] = []
        (output,) = self.plan.outputs
        for number in output.releases:
            release = self.plan.releases[number]
            assert isinstance(release.law, DiscreteLaplace | DiscreteGaussian | NoNoise)
            found.append((release.law, release.step))
        return found

    def exact(self, data: Data) -> list[int]:
        """The integers of the parts."""
        n, h = data.count, self.half
        mean = self._mean(data)
        sums = [n * mean, float(n)]
        if self.kind != "mean":
            sums.insert(0, n * (mean**2 + data.variance(h) - h * h / 2))
        return [round(s / float(step)) for s, (_, step) in zip(sums, self.laws, strict=True)]

    def _mean(self, data: Data) -> float:
        """Around the middle: the nearest that whole values may have, where they are whole."""
        step = float(self.laws[-2][1]) / data.count
        return round(data.mean * self.half / step) * step

    def truth(self, data: Data) -> float:
        """The result without noise."""
        if self.kind == "mean":
            return self._mean(data) + sum(self.bounds) / 2
        found = data.variance(self.half) * data.count / (data.count - self.ddof)
        return math.sqrt(found) if self.kind == "std" else found

    def noisy(self, data: Data, runs: int, seed: int) -> list[Noisy]:
        """The parts of so many releases."""
        source = Seeded(seed)
        return [
            total + draw_noise(law.kernel_law, runs, source)
            for total, (law, _) in zip(self.exact(data), self.laws, strict=True)
        ]

    def released(self, noisy: Sequence[Noisy]) -> Floats:
        """The results, NaN for null."""
        found = self.aggregate.combine(noisy)
        return found.cast(pl.Float64).fill_null(math.nan).to_numpy()

    def errors(self, data: Data, runs: int, seed: int) -> Floats:
        """How far results are off that are not null."""
        found = np.abs(self.released(self.noisy(data, runs, seed)) - self.truth(data))
        return found[~np.isnan(found)]
