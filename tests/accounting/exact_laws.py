"""Reference privacy losses, from output distributions and by brute force, in 40 digits.

Written apart from the package: a mechanism is the distributions of its outputs on two neighbouring
inputs, a composition is their product, and delta is a sum over outputs, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any, TypeAlias

import mpmath as mp

mp.mp.dps = 40
Pair: TypeAlias = "list[tuple[Any, Any]]"
"""Probabilities of each output with and without a unit."""


def real(value: Fraction | int | float) -> Any:
    """With all digits; a float means the decimal that it prints as, as in the package."""
    number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    return mp.mpf(number.numerator) / number.denominator


def discrete_laplace(scale: Fraction, move: int, reach: int) -> Pair:
    q = mp.exp(-1 / real(scale))
    c = (1 - q) / (1 + q)
    body = [(c * q ** abs(x), c * q ** abs(x - move)) for x in range(-reach, reach + move + 1)]
    low, high = q ** (reach + 1) / (1 + q), q ** (reach + 1) / (1 + q)
    return [*body, (low, low * q**move), (high * q**move, high)]


def discrete_gaussian(sigma: Fraction, reach: int) -> Pair:
    weights = {
        x: mp.exp(-(real(x) ** 2) / (2 * real(sigma) ** 2)) for x in range(-reach - 1, reach + 2)
    }
    total = mp.fsum(weights.values())
    return [(weights[x] / total, weights[x - 1] / total) for x in range(-reach, reach + 2)]


def response(epsilon: Fraction, categories: int) -> Pair:
    e = mp.exp(real(epsilon))
    total = e + categories - 1
    return [(e / total, 1 / total), (1 / total, e / total)] + [(1 / total, 1 / total)] * (
        categories - 2
    )


def approx(epsilon: Fraction, delta: Fraction) -> Pair:
    d, rr = real(delta), response(epsilon, 2)
    return [(d, mp.mpf(0)), (mp.mpf(0), d), *(((1 - d) * p, (1 - d) * q) for p, q in rr)]


def exponential(scores: Sequence[int], changed: Sequence[int], scale: Fraction) -> Pair:
    laws = []
    for listed in (scores, changed):
        weights = [mp.exp(real(s) / real(scale)) for s in listed]
        laws.append([w / mp.fsum(weights) for w in weights])
    return list(zip(*laws, strict=True))


def permute_and_flip(scores: Sequence[int], changed: Sequence[int], scale: Fraction) -> Pair:
    laws = []
    for listed in (scores, changed):
        chance = [mp.exp((real(s) - max(listed)) / real(scale)) for s in listed]
        law = [mp.mpf(0)] * len(listed)
        orders = list(permutations(range(len(listed))))
        for order in orders:
            rest = mp.mpf(1)
            for i in order:
                law[i] += rest * chance[i] / len(orders)
                rest *= 1 - chance[i]
        laws.append(law)
    return list(zip(*laws, strict=True))


def together(pairs: Iterable[Pair]) -> Pair:
    """Independent mechanisms; outputs with the same loss are merged."""

    def product(a: Pair, b: Pair) -> Pair:
        merged: dict[Any, tuple[Any, Any]] = {}
        for p, q in a:
            for r, s in b:
                key = mp.nstr(mp.log(p * r / (q * s)), 25) if p * r and q * s else (p * r > 0)
                before = merged.get(key, (0, 0))
                merged[key] = (before[0] + p * r, before[1] + q * s)
        return list(merged.values())

    return reduce(product, pairs, [(mp.mpf(1), mp.mpf(1))])


def delta(pair: Pair, epsilon: float | Fraction) -> Any:
    """The exact delta at epsilon, the larger of both directions."""
    e = mp.exp(real(epsilon))
    return max(
        mp.fsum(max(p - e * q, mp.mpf(0)) for p, q in pair),
        mp.fsum(max(q - e * p, mp.mpf(0)) for p, q in pair),
    )


def gaussian_delta(shift: Any, epsilon: Any) -> Any:
    """Balle and Wang 2018, Theorem 8."""
    return mp.ncdf(shift / 2 - epsilon / shift) - mp.exp(epsilon) * mp.ncdf(
        -shift / 2 - epsilon / shift
    )


def laplace_delta(epsilon_of_noise: Any, epsilon: Any) -> Any:
    """1 - exp((epsilon - e) / 2) between 0 and e, of continuous Laplace noise."""
    return max(mp.mpf(0), 1 - mp.exp((epsilon - epsilon_of_noise) / 2))
