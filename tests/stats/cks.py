"""The slow samplers of Canonne, Kamath and Steinke 2020, Algorithms 1 to 3, as an oracle.

Written from the paper with rational coins only; shares nothing with `dpframe.samplers`.
"""

from __future__ import annotations

import math
import secrets
from fractions import Fraction


def bernoulli(p: Fraction) -> bool:
    """True with probability p."""
    return secrets.randbelow(p.denominator) < p.numerator


def bernoulli_exp(x: Fraction) -> bool:
    """True with probability exp(-x): Algorithm 1."""
    while x > 1:
        if not _bernoulli_exp_fraction(Fraction(1)):
            return False
        x -= 1
    return _bernoulli_exp_fraction(x)


def _bernoulli_exp_fraction(x: Fraction) -> bool:
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction) -> int:
    """Algorithm 2, with scale = t / s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = secrets.randbelow(t)
        if not bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(Fraction(1)):
            v += 1
        y = (u + t * v) // s
        negative = bool(secrets.randbits(1))
        if negative and y == 0:
            continue
        return -y if negative else y


def discrete_gaussian(variance: Fraction) -> int:
    """Algorithm 3."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = discrete_laplace(Fraction(t))
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance)):
            return y
