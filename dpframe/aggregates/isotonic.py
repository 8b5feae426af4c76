"""Numbers that rise, next to numbers that need not."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["nondecreasing"]

Floats: TypeAlias = "NDArray[np.float64]"


def nondecreasing(values: Floats) -> Floats:
    """The nondecreasing rows with the least sum of squared distances from the rows that are given
    (pool adjacent violators; Ayer, Brunk, Ewing, Reid and Silverman 1955).
    """
    found = np.empty_like(values)
    for row, made in zip(values, found, strict=True):
        means: list[float] = []
        sizes: list[int] = []
        for value in row.tolist():
            mean, size = value, 1
            while means and means[-1] > mean:
                mean = (mean * size + means[-1] * sizes[-1]) / (size + sizes[-1])
                size += sizes.pop()
                means.pop()
            means.append(mean)
            sizes.append(size)
        made[:] = np.repeat(means, sizes)
    return found
