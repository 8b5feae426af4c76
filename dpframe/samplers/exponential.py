"""exp(-x), bracketed by integers, and the exact coin flips that follow from it.

A uniform real U in [0, 1) is revealed 64 bits at a time and compared with a bracket of the
boundary. A decision is taken only when the revealed prefix proves it, so every coin has exactly
its ideal probability, given ideal bits. No libm function takes part.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import BitSource

FILTER_MARGIN: Final = 2.0**-44
"""Float comparisons closer than this are repeated in exact integers; see `taylor_exp`."""

SLACK: Final = 2.0**-20
"""Relative error allowed to `decay`, which keeps within 2**-25."""

_GUARD: Final = 32
_LN2: Final = math.log(2.0)
_FURTHEST: Final = 700.0


def bracket_exp(
    x: Fraction,  # At least 0
    precision: int,  # Number of binary digits, at least 1
) -> tuple[int, int]:
    """Integers ``lo <= 2**precision * exp(-x) <= hi`` whose difference is at most 3.

    Every step is rounded outwards: y = x / 2**j < 2**-8, the alternating Taylor series of exp(-y)
    (its remainder is smaller than its last term), then j squarings.
    """
    a, b = x.numerator, x.denominator
    if a == 0:
        return 1 << precision, 1 << precision
    if a >= b * precision:  # exp(-x) <= exp(-precision) < 2**-precision
        return 0, 1
    halvings = (a // b).bit_length() + 8
    width = precision + halvings + _GUARD
    lo, hi = _series(_floor_shift(a, b, width - halvings), width)
    for _ in range(halvings):
        lo = lo * lo >> width
        hi = _ceil_shift(hi * hi, width)
    return lo >> width - precision, _ceil_shift(hi, width - precision)


def _series(y: int, width: int) -> tuple[int, int]:
    """Bracket of 2**width * exp(-t) for every t in [y, y + 1] / 2**width, y / 2**width < 2**-8."""
    lo = hi = term_lo = term_hi = 1 << width
    k = 0
    while term_hi > 1:
        k += 1
        term_lo = (term_lo * y >> width) // k
        term_hi = -((-term_hi * (y + 1) >> width) // k)  # two floors of a negative: two ceilings
        if k & 1:
            lo, hi = lo - term_hi, hi - term_lo
        else:
            lo, hi = lo + term_lo, hi + term_hi
    return lo - term_hi, hi + term_hi


def _floor_shift(a: int, b: int, shift: int) -> int:
    return (a << shift) // b


def _ceil_shift(value: int, shift: int) -> int:
    return -(-value >> shift)


def bernoulli_exp(
    x: Fraction,  # At least 0
    source: BitSource,  # Where further bits come from
    # `prefix`, `bits`: the first `bits` binary digits of U, when known already; the coin is ``U <
    # exp(-x)``.
    prefix: int = 0,
    bits: int = 0,
) -> bool:
    """True with probability exactly exp(-x)."""
    if bits == 0:
        prefix, bits = source.int64bits(), 64
    while True:
        lo, hi = bracket_exp(x, bits + _GUARD)
        if prefix + 1 << _GUARD <= lo:
            return True
        if prefix << _GUARD >= hi:
            return False
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64


def geometric_exp(rate: Fraction, source: BitSource) -> int:
    """A draw from P(g) = (1 - exp(-rate)) exp(-rate g), g = 0, 1, 2, ..., exactly.

    The binary digits of a geometric number are independent, digit i being 1 with probability
    e / (1 + e), e = exp(-rate 2**i) (Steutel and Thoelen 1971); what lies above the first digits is
    again geometric and is counted one by one.
    """
    digits = int(1 / rate).bit_length() + 2
    value = 0
    for i in range(digits):
        if _logistic(rate * (1 << i), source):
            value |= 1 << i
    while bernoulli_exp(rate * (1 << digits), source):
        value += 1 << digits
    return value


def _logistic(x: Fraction, source: BitSource) -> bool:
    """True with probability exactly exp(-x) / (1 + exp(-x))."""
    prefix, bits = source.int64bits(), 64
    while True:
        lo, hi = bracket_exp(x, bits + _GUARD)
        one = 1 << bits + _GUARD
        if prefix + 1 <= (lo << bits) // (one + lo):
            return True
        if prefix > (hi << bits) // (one + hi):
            return False
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64


def taylor_exp(y: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
    """exp(-y) for ``|y| <= 0.36`` by Horner's rule, IEEE multiplications and additions only.

    One Horner step turns an error e into at most (|y| / k) e (1 + 4u) + 3u |y| / k + u times the
    partial value (below 1.44), u = 2**-53, so rounding adds less than 4u in all and truncation
    less than 0.36**(terms + 1) / (terms + 1)!. With 16 terms the error is below 2**-50, with 7
    terms below 2**-26. Neither libm nor fused or reordered operations can change that bound.
    """
    result = np.ones_like(y)
    for k in range(terms, 0, -1):
        result *= y
        result *= -1.0 / k
        result += 1.0
    return result


def decay(gap: NDArray[np.uint64], rate: float) -> NDArray[np.float64]:
    """exp(-gap rate) within a relative 2**-25, or a little more than 0 when it is below e**-700.

    gap and rate are off by one rounding each and their product by a third, so 700 * 3u < 2**-41.
    The reduction y = g - e ln 2 loses as little again, `taylor_exp` keeps 2**-26 for |y| <= 0.35,
    and the power of two is exact, because 2**-1011 is a normal number.
    """
    g = gap.astype(np.float64)
    g *= rate
    np.minimum(g, _FURTHEST, out=g)
    exponent = np.rint(g * (1.0 / _LN2))
    g -= exponent * _LN2
    result = taylor_exp(g, 7)
    bits = np.subtract(1023, exponent.astype(np.int64))
    bits <<= 52
    result *= bits.view(np.float64)
    return result
