"""Staircase noise: levels by lazy inversion, places within them uniformly.

The law is P(x) ~ exp(-rate level(|x|)) on the integers. Level 0 has the `inner` magnitudes 0, ...,
inner - 1, and each level after it the next `width` magnitudes. So level 0 weighs 2 inner - 1 and
level k weighs 2 width exp(-rate k). The last index of the table stands for all levels from there
on, among which a geometric number chooses.

Exact, given ideal bits: the boundaries of the table are irrational (Lindemann-Weierstrass), so they
are decided after finitely many bits, and uniform integers are exact.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import wrap
from dpframe.samplers.exponential import bracket_exp, geometric_exp
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.table import LazyTable
from dpframe.samplers.uniform import uniforms_below

_FAR: Final = 44
"""The table reaches to levels of weight exp(-44)."""


def staircase(
    rate: Fraction, width: int, inner: int, n: int, source: BitSource = OS
) -> NDArray[np.int64]:
    """`n` independent draws with P(x) proportional to exp(-rate level(|x|)), modulo 2**64.

    Parameters
    ----------
    rate
        Between 1/8 and 64.
    width
        The width of each level but the first, from 1 to 2**56.
    inner
        How many magnitudes the first level has, from 1 to `width`.
    n
        Number of draws.
    source
        For tests only.

    Raises
    ------
    ValueError
        When a parameter is out of range.
    """
    if not (Fraction(1, 8) <= rate <= 64 and 1 <= inner <= width <= 1 << 56):
        raise ValueError("a noise parameter is out of the range of the sampler")
    table, tail = _levels(rate, width, inner)
    level = table.draw(n, source)
    center = level == 0
    place = uniforms_below(np.where(center, 2 * inner - 1, width), source)
    # products and sums of large levels and widths wrap modulo 2**64, as the noise does
    magnitude = np.where(center, place - (inner - 1), inner + (level - 1) * width + place)
    for i in np.flatnonzero(level == tail).tolist():
        above = tail + geometric_exp(rate, source)
        magnitude[i] = wrap(inner + (above - 1) * width + int(place[i]))
    negative = -source.bits(n).astype(np.int64)
    negative[center] = 0
    return (magnitude ^ negative) - negative


@lru_cache(maxsize=64)
def _levels(rate: Fraction, width: int, inner: int) -> tuple[LazyTable, int]:
    """The table of levels, and its last index."""
    tail = int(_FAR / rate) + 2

    def boundaries(precision: int) -> list[tuple[int, int]]:
        """Brackets of 2**precision times the cumulative probabilities of levels below the last."""
        digits = precision + 128
        one = 1 << digits
        lo, hi = bracket_exp(rate, digits)
        power_lo = power_hi = one
        sum_lo = sum_hi = (2 * inner - 1) << digits
        sums = [(sum_lo, sum_hi)]
        for _ in range(1, tail):
            power_lo, power_hi = power_lo * lo >> digits, (power_hi * hi >> digits) + 1
            sum_lo, sum_hi = sum_lo + 2 * width * power_lo, sum_hi + 2 * width * power_hi
            sums.append((sum_lo, sum_hi))
        # exp(-rate tail) / (1 - exp(-rate)) is what all levels from the last index on weigh
        power_lo, power_hi = power_lo * lo >> digits, (power_hi * hi >> digits) + 1
        total_lo = sum_lo + 2 * width * ((power_lo << digits) // (one - lo))
        total_hi = sum_hi + 2 * width * ((power_hi << digits) // (one - hi) + 1)
        return [
            ((lo << precision) // total_hi, (hi << precision) // total_lo + 1) for lo, hi in sums
        ]

    return LazyTable(boundaries), tail
