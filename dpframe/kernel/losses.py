"""The privacy losses of all draws of a plan together.

Each draw has a pair of distributions that is at least as easy to distinguish as its results for
neighbours. The privacy loss L is the logarithm of their ratio at a result of the first. Delta at
epsilon is E[(1 - exp(epsilon - L))+]. All parameters are fixed before any noise is drawn, so the
losses of the pairs add up (Zhu, Dong and Wang 2022, Theorem 10). Exchanging the two distributions
of a pair here changes the sign of the loss and nothing else, so one direction is both.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias


@dataclass(frozen=True)
class Reported:
    """Randomised response: losses epsilon, -epsilon, and 0 for other cells. With two cells all that
    is epsilon-private follows from it (Kairouz, Oh and Viswanath 2015).
    """

    epsilon: Fraction
    cells: int


@dataclass(frozen=True)
class Ranged:
    """A choice whose losses lie in an interval of length epsilon: they have a density proportional
    to exp(loss / 2) from -epsilon to epsilon (Dong, Durfee and Rogers 2020).
    """

    epsilon: Fraction


@dataclass(frozen=True)
class Geometrics:
    """Discrete Laplace noise, q = exp(-h), of a vector that moves by this many steps in all: losses
    h (steps - 2 j). See `laplace_mu_squared`.
    """

    h: Fraction
    steps: int


@dataclass(frozen=True)
class Normals:
    """Continuous Gaussian noise on what moves by d deviations: N(d**2 / 2, d**2)."""

    d_squared: Fraction


@dataclass(frozen=True)
class Wholes:
    """Discrete Gaussian noise on a number that moves by 1: losses (1 - 2 x) / (2 sigma**2)."""

    sigma_squared: Fraction


Loss: TypeAlias = Reported | Ranged | Geometrics | Normals | Wholes
Curve: TypeAlias = Callable[[float], complex]

_ADDED = 5e-8
"""Which part of epsilon is added."""
_ROUNDING = 1e-10
"""More than floats are off by in sums and logarithms here, relatively."""
_UNIT = 1e-15
"""More than an operation with floats, or an angle of 1 that is turned, is off by."""
_LARGEST = Fraction(9000)
_MOST_NODES = 60_000


@lru_cache(maxsize=256)
def losses_delta(losses: frozenset[tuple[Loss, int]], epsilon: Fraction) -> Fraction:
    """An upper bound on the delta of independent losses, each with how often it occurs.

    Proof: let G(x) be delta at x, also below 0, M(s) = E[exp(s L)], and c > 0. The function exp(c
    x) G(x) has the Fourier transform M(c + i t) / ((c + i t) (c + 1 + i t)). By Poisson's summation
    formula, a sum over t = n w, n whole, gives

        w / (2 pi) sum(M(c + i t) exp(-(c + i t) epsilon) / ((c + i t) (c + 1 + i t)))
            = sum(exp(2 pi c k / w) G(epsilon + 2 pi k / w), k whole),

    which is at least G(epsilon), as no term is below 0. So any c and w give an upper bound, and
    these need not be chosen with care. Terms beyond the last t are bounded by their absolute
    values. For that a little continuous Gaussian noise is added to the losses, as if that were one
    draw more: it only adds to delta. Floats are rounded up by more than their error, which grows
    with the number of draws and with the angles that their transforms turn by.
    """
    price = float(min(epsilon, _LARGEST))  # what keeps this epsilon keeps any larger one
    known = dict(losses)
    if _most(known) <= epsilon:
        return Fraction(0)
    if price <= 0 or sum(known.values()) > 10**6 or len(known) > 200 or _largest(known) > 1e4:
        return Fraction(1)

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        return _cumulant(known, c) - c * price - math.log(c) - math.log1p(c)

    log_c = _least(height, -math.log(price) - 8, -math.log(price) + 14)
    c = math.exp(log_c)
    normal = sum(float(law.d_squared) * n for law, n in known.items() if isinstance(law, Normals))
    step = 1e-3 * c
    bent = _cumulant(known, c + step) + _cumulant(known, c - step) - 2 * _cumulant(known, c)
    spread = math.sqrt(max(bent, 0.0)) / step
    wide = max((25 - min(0.0, height(log_c))) / c, 8 * spread)
    w = 2 * math.pi / wide
    added = max(2 * _ADDED * price / (c + 1), 60 / (_MOST_NODES * w) ** 2)
    known[Normals(Fraction(added))] = known.get(Normals(Fraction(added)), 0) + 1
    variance = (normal + added) * (1 - 1e-12)
    last = math.ceil(math.sqrt(52 / variance) / w) + 1
    if last > _MOST_NODES:
        return Fraction(1)
    scale = -c * price
    curves = list[tuple[Curve, int]]()
    for law, n in known.items():
        log, curve = _transform(law, c)
        scale += n * log
        curves.append((curve, n))
    total = size = 0.0
    first = 1.0
    for k in range(last + 1):
        t = k * w
        value = cmath.exp(complex(0.0, -t * price)) / (complex(c, t) * complex(c + 1, t))
        for curve, n in curves:
            value *= curve(t) ** n
            if not value:
                break
        if k == 0:
            first = abs(value)
        total += value.real if k == 0 else 2 * value.real
        size += abs(value) if k == 0 else 2 * abs(value)
    end = last * w
    # each term beyond is at most exp(-variance t**2 / 2) c (c + 1) / t**2 of the first
    rest = first * math.exp(-variance * end * end / 2) * c * (c + 1) / (end * end)
    rest *= 2 * (1 + 1 / (variance * end * w))
    turned = 4 * end * price + sum(n * (200 + 4 * end * _angle(law, c)) for law, n in known.items())
    found = (max(total, 0.0) + rest + (_ROUNDING + _UNIT * turned) * size) * w / (2 * math.pi)
    logarithm = scale + math.log(found) + _ROUNDING
    return Fraction(1) if logarithm >= 0 else Fraction(max(math.exp(logarithm), 1e-300))


def _angle(law: Loss, c: float) -> float:
    """By how much the transform of a law turns for each 1 that t grows, at most."""
    match law:
        case Reported(epsilon) | Ranged(epsilon):
            return float(epsilon)
        case Geometrics(h, steps):
            return 2 * float(h) * steps
        case Normals(d_squared):
            return (2 * c + 1) * float(d_squared) / 2
        case Wholes(sigma_squared):
            return (2 * c + 1) / (2 * float(sigma_squared))


def _most(known: Mapping[Loss, int]) -> Fraction:
    """The sum of all largest losses; a very large number where losses have no limit."""
    found = Fraction(0)
    for law, n in known.items():
        match law:
            case Reported(epsilon) | Ranged(epsilon):
                found += n * epsilon
            case Geometrics(h, steps):
                found += n * h * steps
            case Normals() | Wholes():
                return Fraction(10**9)
    return found


def _largest(known: Mapping[Loss, int]) -> float:
    """The largest loss of a draw, about."""
    found = 0.0
    for law in known:
        match law:
            case Reported(epsilon) | Ranged(epsilon):
                found = max(found, float(epsilon))
            case Geometrics(h, steps):
                found = max(found, float(h * steps))
            case Normals(d_squared):
                found = max(found, float(d_squared))
            case Wholes(sigma_squared):
                found = max(found, float(1 / sigma_squared))
    return found


def _cumulant(known: Mapping[Loss, int], c: float) -> float:
    """ln M(c)."""
    found = 0.0
    for law, n in known.items():
        log, curve = _transform(law, c)
        found += n * (log + math.log(abs(curve(0.0))))
    return found


def _least(f: Callable[[float], float], low: float, high: float) -> float:
    """About where a convex function is least."""
    for _ in range(40):
        third = (high - low) / 3
        if f(low + third) < f(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def _transform(law: Loss, c: float) -> tuple[float, Curve]:
    """A logarithm and a function of t, whose exponential and value multiply to M(c + i t)."""
    match law:
        case Reported(epsilon, cells):
            e = float(epsilon)
            low, middle = math.exp(-(1 + 2 * c) * e), (cells - 2) * math.exp(-(1 + c) * e)
            whole = 1 + (cells - 1) * math.exp(-e)

            def reported(t: float) -> complex:
                turn = cmath.exp(complex(0.0, t * e))
                return (turn + low * turn.conjugate() + middle) / whole

            return c * e, reported
        case Ranged(epsilon):
            e = float(epsilon)
            low, factor = math.exp(-(1 + 2 * c) * e), -0.5 / math.expm1(-e)

            def ranged(t: float) -> complex:
                turn = cmath.exp(complex(0.0, t * e))
                return factor * (turn - low * turn.conjugate()) / complex(c + 0.5, t)

            return c * e, ranged
        case Geometrics(h, steps):
            g, q, rare = float(h), math.exp(-float(h)), -math.expm1(-float(h))

            def geometric(t: float) -> complex:
                power = complex(-g * (1 + 2 * c), -2 * t * g)
                r, end = cmath.exp(power), cmath.exp(steps * power)
                inner = rare * (r - end) / (1 - r) if steps > 1 else 0.0
                return cmath.exp(complex(0.0, t * g * steps)) * (1 + inner + end) / (1 + q)

            return c * g * steps, geometric
        case Normals(d_squared):
            d = float(d_squared)

            def normal(t: float) -> complex:
                return cmath.exp(complex(-t * t * d / 2, t * (2 * c + 1) * d / 2))

            return c * (c + 1) * d / 2, normal
        case Wholes(sigma_squared):
            v = float(sigma_squared)
            return c * (c + 1) / (2 * v), _wholes(v, c)


def _wholes(v: float, c: float) -> Curve:
    """With S the sum of exp(-(x + c + i t)**2 / (2 v)) over whole x, M is exp((c + i t) (c + 1 + i
    t) / (2 v)) S over the sum for c = t = 0. For wide noise S follows from its Fourier transform
    (Poisson summation), where only the terms nearest to -t / (2 pi v) count.
    """
    far = math.ceil(12 * math.sqrt(v)) + 2
    whole = math.fsum(math.exp(-x * x / (2 * v)) for x in range(-far, far + 1)) if v < 4 else 0.0
    root = math.sqrt(2 * math.pi * v)
    whole = whole or root
    if v < 0.3:
        places = [x + c for x in range(round(-c) - far, round(-c) + far + 1)]
        terms = [(x, math.exp(-x * x / (2 * v)) / whole) for x in places]

        def narrow(t: float) -> complex:
            turned = sum(p * cmath.exp(complex(0.0, -x * t / v)) for x, p in terms)
            return cmath.exp(complex(0.0, t * (2 * c + 1) / (2 * v))) * turned

        return narrow
    width, factor = 2 * math.pi * v, root / whole
    several = 1 if v > 5 else 4

    def wide(t: float) -> complex:
        near = round(-t / width)
        found = 0j
        if (t + width * near) ** 2 > 200 * v and several == 1:
            return 0j  # below exp(-100), as is `_ROUNDING` many times over
        for k in range(near - several, near + several + 1):
            u = t + width * k
            found += cmath.exp(complex(-u * u / (2 * v), 2 * math.pi * k * c))
        return factor * cmath.exp(complex(0.0, t * (2 * c + 1) / (2 * v))) * found

    return wide
