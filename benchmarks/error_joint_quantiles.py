"""How far off quantiles are, in ranks: in the other ways of plans, and drawn at once (JointExp).

    python benchmarks/error_joint_quantiles.py DATA [RUNS]

DATA is the Parquet file of the Adult data. Root mean squares over equally spaced quantiles and
runs; a result is off by the distance of its quantile's rank from the ranks that it has. JointExp
(Gillenwater, Joseph and Kulesza 2021) draws m quantiles in proportion to exp(score / scale); the
score is minus the sum over parts between neighbouring quantiles of how many rows they have too many
or too few. Rows of a point are at random places of it. That is of floats here, to compare
errors with those of plans that may not choose it; how plans draw it is in
`dpframe/samplers/ordered.py`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.signal import fftconvolve

import dpframe as dp
from dpframe.aggregates import quantile

PLACES = 1 << 16
CASES = {"fnlwgt": (0, 1_500_000), "age": (0, 120)}
_FAR = 45
"""The distance, in scales, of a part that is never chosen."""


class Joint:
    """The distribution of all quantiles at once.

    `_sums[i]` has the mass of the first i quantiles, with the last of them in each gap between two
    rows. Others of them in the same gap have their share there: 1 / k! for k of them.
    """

    def __init__(
        self, rows: Any, places: int, shares: Sequence[float], scale: float, rng: Any
    ) -> None:
        self._scale, self._rng, self._rows = scale, rng, rows.size
        self._ends = np.concatenate([[-1], rows, [places - 1]]).astype(np.float64)
        self._lengths = np.diff(self._ends)
        with np.errstate(divide="ignore"):
            self._log = np.log(self._lengths / self._lengths.mean())
        whole = [0.0, *shares, 1.0]
        self._wanted = [(b - a) * rows.size for a, b in itertools.pairwise(whole)]
        self._blocks: list[Any] = []
        self._sums: list[Any] = []
        before = [-np.abs(np.arange(rows.size + 1) - self._wanted[0]) / scale]
        for number in range(1, len(self._wanted)):
            found = [self._block(before, number, size) for size in range(1, number + 1)]
            logs = np.array(found)
            top = logs.max()
            self._blocks.append(np.exp(logs - top))
            self._sums.append(self._blocks[-1].sum(axis=0))
            before.append(self._next(self._sums[-1], number) + top)

    def _block(self, before: Sequence[Any], number: int, size: int) -> Any:
        """The logarithms of masses if the last `size` of some quantiles share a gap."""
        empty = sum(self._wanted[number - size + 1 : number]) / self._scale
        return size * self._log - math.lgamma(size + 1) - empty + before[number - size]

    def _next(self, masses: Any, number: int) -> Any:
        """The logarithms of what comes to each gap from those before it."""
        wanted, reach = self._wanted[number], int(_FAR * self._scale) + 5
        low, high = max(1, int(wanted) - reach), min(masses.size, int(wanted) + reach)
        near = np.exp(-np.abs(np.arange(low, high) - wanted) / self._scale)
        found = np.zeros(masses.size)
        found[low:] = fftconvolve(masses, near)[: masses.size - low]
        found[found < found.max() * 1e-13] = 0  # what Fourier transforms lose
        with np.errstate(divide="ignore"):
            return np.log(found)

    def draw(self) -> Any:
        """The places of all quantiles, in order."""
        number, high = len(self._sums), self._rows + 1
        gap, found = self._rows, []
        while number:
            low = 0 if gap == self._rows else max(0, int(gap - self._wanted[number]) - self._reach)
            parts = gap - np.arange(low, high)
            away = np.abs(parts - self._wanted[number]) / self._scale
            gap = low + self._pick(self._sums[number - 1][low:high] * np.exp(-away))
            size = 1 + self._pick(self._blocks[number - 1][:, gap])
            found += [gap] * size
            number, high = number - size, gap
        inner = [self._rng.integers(0, int(self._lengths[gap])) for gap in found]
        return np.sort(self._ends[found] + 1 + np.array(inner))

    @property
    def _reach(self) -> int:
        return int(_FAR * self._scale) + 5

    def _pick(self, masses: Any) -> int:
        sums = np.cumsum(masses)
        return min(
            int(np.searchsorted(sums, self._rng.random() * sums[-1], "right")), sums.size - 1
        )


def away(rows: Any, chosen: Any, shares: Sequence[float]) -> Any:
    """Squared distances of ranks."""
    below, upto = (np.searchsorted(rows, chosen, side) for side in ("left", "right"))
    target = np.array(shares) * rows.size
    return np.maximum(np.maximum(below - target, target - upto), 0) ** 2


def errors(
    rows: Any, bounds: tuple[int, int], m: int, spend: dict[str, str], change: bool, runs: int
) -> tuple[float, float]:
    """The errors of what plans do, and of all at once."""
    rng = np.random.default_rng(1)
    shares = [number / (m + 1) for number in range(1, m + 1)]
    unit = dp.Rows("change-one" if change else "add-remove")
    people = dp.Session(**dict.fromkeys(spend, 10**6)).protect(pl.DataFrame({"x": rows}), unit)
    asked = [f"{number}/{m + 1}" for number in range(1, m + 1)]
    query = people.agg(q=pl.col("x").dp_quantile(asked, bounds=bounds))
    moved = 4.0 if change else 4.0 * (1 - 1 / (m + 1))
    if "rho" in spend:
        scale = moved / math.sqrt(8 * float(spend["rho"]))
    else:
        scale = moved / float(spend["epsilon"])
    planned, joint = [], []
    for _ in range(runs):
        chosen = query.collect(**spend).item().to_numpy()  # type: ignore[arg-type]
        planned.append(away(rows, chosen, shares))
        inner = rng.integers(0, PLACES, rows.size)
        placed = np.sort((rows - bounds[0]) * PLACES + inner)
        law = Joint(placed, (bounds[1] - bounds[0] + 1) * PLACES, shares, scale, rng)
        joint.append(away(rows, law.draw() // PLACES + bounds[0], shares))
    return math.sqrt(np.mean(planned)), math.sqrt(np.mean(joint))


def main(data: Path, runs: int) -> None:
    """Print the table."""
    quantile.MOST_AT_ONCE = 0
    frame = pl.read_parquet(data)
    print(f"{'':70}" + "".join(f"{head:>10}" for head in ("plans", "at once", "ratio")))
    spends = [{"epsilon": "0.1"}, {"epsilon": "1"}, {"rho": "0.00125"}, {"rho": "0.125"}]
    for (name, bounds), size in itertools.product(CASES.items(), (1_000, 10_000)):
        rows = np.sort(frame[name].sample(size, seed=1).to_numpy())
        for spend, change, m in itertools.product(spends, (False, True), (2, 3, 5, 9)):
            mine, other = errors(rows, bounds, m, spend, change, runs)
            words = f"{name}, {size} rows, {spend}, {'changes' if change else 'comes'}, m = {m}"
            ratio = other / mine if mine else math.nan
            print(f"{words:70}{mine:10.2f}{other:10.2f}{ratio:10.2f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60)
