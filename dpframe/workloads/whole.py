"""Estimates as integers that add up: every table is the margin of every finer one, exactly.

For each table the sums over all corners that begin at its first cell are rounded, and the cells
are the differences of these. A corner that takes in all cells of an axis is a corner of the table
without that axis, which is rounded first and taken over. So sums of cells are cells of the
smaller tables, for any rounding of floats, and every prefix is off by half at most. A cell of a
table of k axes is a difference of 2**k corners. Its rounding error is at most 2**(k - 1), with a
variance of 2**k / 12 where the corners' fractional parts are spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from dpframe.workloads.factors import Integers
from dpframe.workloads.rebuild import Estimate

_LARGEST: Final = float(2**63 - 1024)

Kept: TypeAlias = tuple[bool, ...]


class WholeTables:
    """Integer tables of one estimate that add up.

    Parameters
    ----------
    estimate
        What is made whole.
    """

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        self._corners: dict[Kept, Integers] = {}

    def corners(self, kept: Sequence[bool]) -> Integers:
        """The sums over the first 1, 2, ... cells of each axis that is kept, and over all cells of
        the others, whose length is 1.
        """
        key = tuple(k and axis.size > 1 for k, axis in zip(kept, self.estimate.axes, strict=True))
        found = self._corners.get(key)
        if found is None:
            found = self._corners[key] = self._rounded(key)
        return found

    def cells(self, kept: Sequence[bool], prefixes: Sequence[bool] | None = None) -> Integers:
        """The table over the axes that are kept; along those with prefixes the sums of the first 1,
        2, ... cells.
        """
        table = self.corners(kept)
        for at, keep in enumerate(kept):
            if keep and not (prefixes is not None and prefixes[at]):
                table = np.diff(table, axis=at, prepend=np.int64(0))
        return table

    def _rounded(self, key: Kept) -> Integers:
        table = self.estimate.cells(key)
        for at, keep in enumerate(key):
            if keep:
                table = np.cumsum(table, axis=at)
        whole = np.rint(np.clip(table, -_LARGEST, _LARGEST)).astype(np.int64)
        for at, keep in enumerate(key):
            if keep:
                fewer = self.corners((*key[:at], False, *key[at + 1 :]))
                whole[(*[slice(None)] * at, slice(-1, None))] = fewer
        return whole


def rounding_variance(kept: Sequence[bool], prefixes: Sequence[bool] | None = None) -> float:
    """What making whole adds to the variance of a number of a table."""
    differences = sum(
        keep and not (prefixes is not None and prefixes[at]) for at, keep in enumerate(kept)
    )
    return float(2**differences) / 12.0
