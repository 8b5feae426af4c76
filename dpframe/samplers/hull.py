"""The discrete hull law: a box law of vectors, where sums of squares depend on their sums.

A row that adds x in [-1, 1] to a sum and 1 to a count adds 2 x**2 - 1 to a sum of squares: a point
of an arch, which is a small part of the box [-1, 1]**3. All that rows add or take away lies in the
convex hull of the arch and its mirror image. That is the set of all (a, x, y) with

    |a| <= 1, |x| <= 1, |y| <= 1,
    (1 - y) (1 - a) >= max(0, 2 |x| - 1 - a)**2  and  (1 + y) (1 + a) >= max(0, 2 |x| - 1 + a)**2:

a mixture of (1 + a) / 2 of the hull A of the arch, {2 x**2 - 1 <= y <= 1}, and (1 - a) / 2 of the
mirrored -A. Write (x, y) as p u - q v with u and v in A, p = (1 + a) / 2 and q = (1 - a) / 2. The
largest possible y is p - q (2 v_x**2 - 1) with the least possible |v_x|, max(0, |x| - p) / q. This
gives the first inequality, and its mirror image the second.

With widths w_j and a fineness m, hull(R) is the set of all whole z in box(R) (`box`) in which
each arch (c, s, q) has (z_c / w_c, z_s / w_s, z_q / w_q) in the hull times R / m. N(z) is the
least integer R >= 0 whose hull holds z. The law is P(z) ~ exp(-epsilon N(z) / m). It is drawn by
rejection: a radius and a vector from the box law, until the vector lies in the hull. Then z comes
from every R >= N(z) with weight exp(-epsilon R / m). The sum of these is proportional to
exp(-epsilon N(z) / m).

Floats decide whether a vector is in the hull only where their error cannot matter; otherwise
integers decide.

The running time varies as that of boxes does, and with the number of rejections: two in nine for
each arch, independent of the vectors that noise is added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.box import draw_boxes, require_box
from dpframe.samplers.cells import wrap
from dpframe.samplers.source import OS, BitSource

Arch: TypeAlias = tuple[int, int, int]
"""The places of a count, a sum and a sum of squares."""
Codes = NDArray[np.int64]

MAX_ARCHES: Final = 8
"""Of eight arches one vector in eight is kept."""
_BLOCK: Final = 1 << 16
_MARGIN: Final = 2.0**-40
"""The error of the compared floats is less than 2**-45: 2**-51 for each of the numbers, which are
products of two numbers up to 2."""


def discrete_hull(
    epsilon: Fraction,
    widths: tuple[int, ...],
    fineness: int,
    arches: tuple[Arch, ...],
    n: int,
    source: BitSource = OS,
) -> Codes:
    """`n` independent vectors with P(z) ~ exp(-epsilon N(z) / fineness), modulo 2**64.

    Parameters
    ----------
    epsilon, widths, fineness, n, source
        As for `discrete_box`.
    arches
        Up to 8, each the places of a count, of a sum and of a sum of squares, all different but
        for counts.

    Returns
    -------
    numpy.ndarray
        One vector per row.

    Raises
    ------
    ValueError
        When a parameter is out of range or epsilon has too many digits.
    """
    require_box(epsilon, widths, fineness)
    require_arches(arches, len(widths))
    out = np.empty((n, len(widths)), np.int64)
    filled = 0
    while filled < n:
        left = n - filled
        want = min(_BLOCK, left + left * len(arches) // 2 + 4)
        drawn = np.empty((want, len(widths)), np.int64)
        radii, far = draw_boxes(epsilon, widths, fineness, drawn, source)
        keep = _are_within(radii, drawn, widths, fineness, arches)
        for lane, (radius, numbers) in far.items():
            keep[lane] = is_within(radius, numbers, widths, fineness, arches)
            drawn[lane] = [wrap(number) for number in numbers]
        kept = drawn[keep][:left]  # further draws are dropped unseen
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out


def require_arches(arches: Sequence[Arch], numbers: int) -> None:
    """That arches are made of numbers of the vector, sums and squares each of one.

    Raises
    ------
    ValueError
        When they are not.
    """
    own = [place for _, *both in arches for place in both]
    counts = {count for count, *_ in arches}
    places = {*own, *counts}
    if not 1 <= len(arches) <= MAX_ARCHES or len({*own}) != len(own) or counts & {*own}:
        raise ValueError(f"a hull has 1 to {MAX_ARCHES} arches, with sums and squares of their own")
    if not all(type(place) is int and 0 <= place < numbers for place in places):
        raise ValueError("arches are made of numbers of the vector")


def is_within(
    radius: int,
    numbers: Sequence[int],
    widths: Sequence[int],
    fineness: int,
    arches: Sequence[Arch],
) -> bool:
    """Whether a vector of a box lies in the hull of the same radius, exactly."""
    return all(
        _is_in_arch(radius, fineness, *((numbers[place], widths[place]) for place in arch))
        for arch in arches
    )


def _is_in_arch(
    radius: int,
    fineness: int,
    count: tuple[int, int],
    total: tuple[int, int],
    square: tuple[int, int],
) -> bool:
    """The two inequalities of the module, times (R / m)**2 and all that they are divided by; each
    of a number and its width.
    """
    (a, w), (x, v), (y, u) = count, total, square
    for sign in (1, -1):  # the mirror image
        far = 2 * fineness * abs(x) * w - (radius * w + sign * fineness * a) * v
        room = (radius * u - sign * fineness * y) * (radius * w - sign * fineness * a)
        if far > 0 and room * v * v * w < far * far * u:
            return False
    return True


def _are_within(
    radii: Codes, drawn: Codes, widths: Sequence[int], fineness: int, arches: Sequence[Arch]
) -> NDArray[np.bool_]:
    """The same of many, first by floats."""
    keep = np.ones(radii.size, np.bool_)
    unclear = np.zeros(radii.size, np.bool_)
    scale = fineness / np.maximum(radii, 1).astype(np.float64)
    for arch in arches:
        a, x, y = (drawn[:, place] / float(widths[place]) * scale for place in arch)
        for sign in (1.0, -1.0):
            far = 2.0 * np.abs(x) - 1.0 - sign * a
            spare = (1.0 - sign * y) * (1.0 - sign * a) - np.maximum(far, 0.0) ** 2
            close = np.abs(spare) <= _MARGIN
            keep &= (spare > 0) | close
            unclear |= close & (far > -_MARGIN)
    for lane in np.flatnonzero(keep & unclear).tolist():
        keep[lane] = is_within(int(radii[lane]), drawn[lane].tolist(), widths, fineness, arches)
    return keep
