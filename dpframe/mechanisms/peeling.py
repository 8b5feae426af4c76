"""Choosing several candidates, one after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["peel"]

Select = Callable[[NDArray[np.int64], NDArray[np.int64] | None], int]


def peel(
    select: Select, scores: NDArray[np.int64], k: int, weights: NDArray[np.int64] | None = None
) -> list[int]:
    """`k` candidates in order of selection, each chosen among those that are left.

    k adaptive selections: the cost is k times that of one (sequential composition).

    Raises
    ------
    ValueError
        When there are fewer than `k` candidates.
    """
    if not 1 <= k <= scores.size:
        raise ValueError(f"cannot choose {k} of {scores.size} candidates")
    left = np.arange(scores.size)
    chosen: list[int] = []
    for _ in range(k):
        i = select(scores[left], None if weights is None else weights[left])
        chosen.append(int(left[i]))
        left = np.delete(left, i)
    return chosen
