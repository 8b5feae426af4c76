"""The privacy losses of all draws of a plan together.

Each draw has a pair of distributions that is at least as easy to distinguish as its results for
neighbours. The privacy loss L is the logarithm of their ratio at a result of the first. Delta at
epsilon is E[(1 - exp(epsilon - L))+]. All parameters are fixed before any noise is drawn, so the
losses of the pairs add up (Zhu, Dong and Wang 2022, Theorem 10). Exchanging the two distributions
of a pair here changes the sign of the loss and nothing else, so one direction is both.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dpframe.kernel.tails import (
    LESS,
    MORE,
    ONE,
    TWO,
    D,
    decimal_of,
    density,
    exp_of,
    fraction_up,
    gaussian_sum,
    gaussian_tail,
    gaussian_whole,
    mills,
)

# Upper bounds on the delta of costs that are no pure epsilon.
#
# Orders and other points at which bounds are evaluated are floats. They hold at any point, so these
# need not be right.

_CEILING: Final = Context(D.prec, ROUND_CEILING, D.Emin, D.Emax)
_FLOOR: Final = Context(D.prec, ROUND_FLOOR, D.Emin, D.Emax)
_MOST_EPSILON: Final = Fraction(10**4)
"""What keeps this epsilon keeps any larger one."""
_WIDEST: Final = 2 * 2048**2
"""From this variance on smoothing gives no more than the exact delta."""
_TINY: Final = Decimal("1e-12")
_LARGE_RIPPLE: Final = Decimal("1.1")
"""Beyond, other bounds are better."""


@lru_cache(maxsize=1024)
def gaussian_delta(
    sigma_squared: Fraction, l0: int, l2_squared: int, linf: int, epsilon: Fraction
) -> Fraction:
    """A delta of discrete Gaussian noise on whole numbers that one individual moves so: at most
    `l0` of them, each by at most `linf`.

    It is the least of four bounds. L(z) is the privacy loss, and delta is E[(1 - exp(epsilon -
    L))+]. Numbers that do not move reveal nothing, so there are at most `l2_squared` to look at.

    *One number*, that moves by d: see `_on_integers`. Noise is log-concave, so what distinguishes
    best is whether z is at most some c. With F the distribution function, delta is the largest F(c)
    - exp(epsilon) F(c - d) over c, which grows with d.

    *Numbers that move by 1 each*, n of them: L = (n - 2 S) / (2 sigma**2) rests on the sum S of
    their noise alone. One number with the variance n sigma**2 that moves by n has the same loss at
    S. So it is enough to compare the laws of S. Say that P(S = s) for k numbers is at most C times
    the discrete Gaussian law of variance k sigma**2. One more number makes that exp(-s**2 / (2 (k +
    1) sigma**2)) times a sum of a Gaussian function of variance w = sigma**2 k / (k + 1) over
    shifted whole numbers. That sum is within 1 +- t of its mean, t = 2 sum(exp(-2 pi**2 w j**2), j
    >= 1) (Poisson summation), so C grows by (1 + t) / (1 - t) at most. Fewer numbers reveal less,
    as more follow from them and from noise.

    *Many numbers, by smoothing*: let r(x) = exp(-x**2 / (2 s**2)), and round y to the whole number
    z with probability r(z - y) over the sum of r(x - y) for all whole x. That sum is s sqrt(2 pi)
    times 1 +- t, t = 2 sum(exp(-2 pi**2 s**2 k**2), k >= 1) (Poisson summation; Micciancio and
    Regev 2007). So N(m, sigma**2 - s**2) rounded has at z the density of N(m, sigma**2), times a
    factor from 1 / (1 + t) to 1 / (1 - t). Discrete noise around a whole m has that density times
    a factor from 1 / (1 + t) to 1. So the two differ by at most exp(K), K = ln((1 + t) / (1 - t)),
    for each number that moves. Rounding is work on what has noise. So where continuous noise of
    variance sigma**2 - s**2 has delta' at epsilon - 2 l0 K, discrete noise has exp(l0 K) delta' at
    epsilon: from p <= exp(l0 K) p' and q >= exp(-l0 K) q' follows (p - exp(epsilon) q)+ <= exp(l0
    K) (p' - exp(epsilon - 2 l0 K) q')+. For continuous noise the L2 norm decides, and more of it
    reveals more (Balle and Wang 2018, Theorem 8).

    *Through rho* = l2**2 / (2 sigma**2) (Canonne, Kamath and Steinke 2020, Theorem 4).
    """
    epsilon, l0 = min(epsilon, _MOST_EPSILON), min(l0, l2_squared)
    if not l2_squared:
        return Fraction(0)
    if l0 == 1 and sigma_squared < _WIDEST:  # this is delta itself
        step = math.isqrt(l2_squared - 1) + 1  # rounded up
        return fraction_up(_on_integers(sigma_squared, step, epsilon))
    found = [ONE]
    if l0 > 1 and linf <= 1 and l0 * sigma_squared < _WIDEST:
        ripple = _ripple(sigma_squared, l0)
        if ripple is not None:
            found.append(D.multiply(ripple, _on_integers(l0 * sigma_squared, l0, epsilon)))
            if ripple < 1 + _TINY:
                return fraction_up(min(found))
    found.append(_smooth_delta(sigma_squared, l0, l2_squared, epsilon))
    if (
        min(found) == 1 or -16 * min(found).adjusted() >= sigma_squared
    ):  # else smoothing makes no difference
        found.append(_of_rho(l2_squared / (2 * sigma_squared), epsilon))
    return fraction_up(min(found))


def _on_integers(sigma_squared: Fraction, step: int, epsilon: Fraction) -> Decimal:
    """For one number that moves by `step`: P(z >= m) - exp(epsilon) P(z >= m + step), with m the
    first whole number at which the loss is above epsilon (Canonne, Kamath and Steinke 2020, Theorem
    7). A common factor of both tails is taken out, so that nothing becomes too small.
    """
    first = math.floor(epsilon * sigma_squared / step - Fraction(step, 2)) + 1
    if first < 1:
        beyond = D.multiply(
            D.exp(decimal_of(epsilon)), gaussian_tail(sigma_squared, first + step)[0]
        )
        found = D.subtract(gaussian_tail(sigma_squared, first)[1], D.multiply(beyond, LESS))
        return D.multiply(found, MORE)
    _, high = gaussian_sum(sigma_squared, first)
    low, _ = gaussian_sum(sigma_squared, first + step)
    grown = exp_of(epsilon - Fraction(step * (2 * first + step)) / (2 * sigma_squared))
    least, _ = gaussian_whole(sigma_squared)
    gap = D.subtract(high, D.multiply(low, grown))
    peak = exp_of(-Fraction(first * first) / (2 * sigma_squared))
    return D.multiply(D.divide(D.multiply(peak, gap), least), MORE)


def _ripple(sigma_squared: Fraction, l0: int) -> Decimal | None:
    """The product of (1 + t) / (1 - t) over the numbers but the first, where it is small. A later
    number has a smaller t than an earlier one.
    """
    if sigma_squared * 3 < 1:
        return None
    found, last = ONE, min(l0 - 1, 64)
    for k in range(1, last + 1):
        # the sum is at most 2.01 times its first term, as pi**2 sigma**2 is above 3
        power = Fraction(2 * 986960440, 10**8) * sigma_squared * k / (k + 1)
        t = D.multiply(Decimal("2.01"), exp_of(-power))
        many = l0 - k if t < Decimal("1e-22") or k == last else 1
        grown = D.divide(D.add(ONE, t), D.subtract(ONE, t))
        found = D.multiply(found, D.power(grown, many))
        if many > 1:
            break
    return D.multiply(found, MORE) if found < _LARGE_RIPPLE else None


def smoothing(l0: int, factor: float) -> tuple[Fraction, Decimal]:
    """An s**2 for which l0 K is at most about `factor`, and l0 K for it; see `gaussian_delta`."""
    square = max(0.5, math.log(4.3 * l0 / factor) / (2 * math.pi**2))
    s_squared = Fraction(square)
    power = Fraction(2 * 986960440, 10**8) * s_squared
    t = D.multiply(Decimal("2.001"), exp_of(-power))
    log = D.ln(D.divide(D.add(ONE, t), D.subtract(ONE, t)))
    return s_squared, D.multiply(D.multiply(log, Decimal(l0)), MORE)


def _smooth_delta(sigma_squared: Fraction, l0: int, l2_squared: int, epsilon: Fraction) -> Decimal:
    if epsilon <= 0:
        return ONE
    near = min(1.0, float(epsilon)) or 1e-300
    s_squared, log_factor = smoothing(l0, 2.0**-31 * near)
    if s_squared >= sigma_squared:
        return ONE
    lower = epsilon - 2 * Fraction(log_factor)
    if lower <= 0:
        return ONE
    distance = l2_squared / (sigma_squared - s_squared)
    return D.multiply(D.multiply(normal_delta(distance, lower), D.exp(log_factor)), MORE)


def normal_delta(d_squared: Fraction, epsilon: Fraction) -> Decimal:
    """The delta of continuous Gaussian noise of variance 1 on a vector that moves by d.

    Q(a) - exp(epsilon) Q(a + d) with a = epsilon / d - d / 2 and Q the normal tail (Balle and Wang
    2018, Theorem 8), which is the density at a times M(a) - M(a + d), with Mills' ratio M. M is
    convex and has the slope x M(x) - 1, so that is at most d (1 - a M(a)). Delta grows with d and
    falls with epsilon, so d is rounded up, and then a down: as if epsilon were less.
    """
    d = _CEILING.multiply(D.sqrt(decimal_of(d_squared)), MORE)
    half = _CEILING.divide(d, TWO)
    a = _FLOOR.subtract(_FLOOR.divide(_FLOOR.multiply(decimal_of(epsilon), LESS), d), half)
    if a < -5:
        return ONE
    here = mills(a)
    there = mills(_CEILING.add(a, d))
    steep = min(D.multiply(a, here[0]), D.multiply(a, here[1]))
    least = min(
        D.subtract(here[1], there[0]), D.multiply(D.multiply(d, D.subtract(ONE, steep)), MORE)
    )
    return D.multiply(D.multiply(least, density(a)), MORE)


@lru_cache(maxsize=256)
def rho_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta of all that costs rho."""
    return fraction_up(min(ONE, _of_rho(rho, min(epsilon, _MOST_EPSILON))))


def _of_rho(rho: Fraction, epsilon: Fraction) -> Decimal:
    """exp((a - 1) (a rho - epsilon)) (1 - 1 / a)**a / (a - 1), for any a above 1 (Canonne, Kamath
    and Steinke 2020, Proposition 12). The logarithm is convex, with the derivative (2 a - 1) rho -
    epsilon + ln(1 - 1 / a).
    """
    rate, price = float(min(rho, Fraction(10**15))), float(epsilon)
    low, high = -36.0, 40.0  # ln(a - 1)
    for _ in range(48):
        middle = (low + high) / 2
        excess = math.exp(middle)
        if (2 * excess + 1) * rate - price - math.log1p(1 / excess) < 0:
            low = middle
        else:
            high = middle
    x = Fraction(math.exp(high))
    a = 1 + x
    power = x * (a * rho - epsilon)
    if power > 10**5:
        return ONE
    logs = D.multiply(decimal_of(a), D.ln(decimal_of(x / a)))
    found = D.divide(D.multiply(exp_of(power), D.exp(logs)), decimal_of(x))
    return D.multiply(found, MORE)


# Many choices of one bounded range e, one after another: the most that they reveal together.
#
# The losses of one choice lie within an interval of length e. The worst have two values, t and t -
# e, for some t in (0, e), which the data and all earlier choices decide. The worst t depends on how
# much has been revealed so far. So the largest delta of k choices at x is (Dong, Durfee and Rogers
# 2020, whose adaptive optimum this is)
#
#     F_k(x) = max over t of p(t) F_(k-1)(x - t) + (1 - p(t)) F_(k-1)(x - t + e),
#
# with F_0(x) = max(0, 1 - exp(x)) and p(t) = (exp(e) - exp(t)) / (exp(e) - 1). Two values are
# enough, because r F(x - ln r) is convex in the ratio r = P / Q: it is a largest value of sums of
# (r a - b)+.
#
# *On a grid of step h = e / m.* F is convex in exp(x), so between grid points lines through upper
# bounds are upper bounds. In y = exp(-t), for t in a cell, what is to be maximised is then (c / y +
# linear in y) / (exp(e) - 1), where -c = A(x - t) - A(x - t + e), A being the intercepts of the two
# lines. It lies above the larger of its values at the cell's ends by no more than its second
# derivative times the cell's width squared over 8. F is taken from 0 on: exchanging P and Q gives
# F(-x) = 1 - exp(-x) (1 - F(x)). Beyond the last point it is at most what it is there.
#
# *A pair.* F_k is again convex in exp(x), so lines through upper bounds on the grid are the delta
# of a pair of laws on the grid, which dominates all k choices as one mechanism. Blocks of choices
# one after another are dominated by products of such pairs (Zhu, Dong and Wang 2022, Theorem 10).
#
# *With other losses.* Let C be what another pair does to a curve, the mean of F(x - L). Then max
# over t of a mean is at most the mean of a max, so it is worst for C to happen first. Losses may
# come in any order: choices of one range are taken together, and all others by their pairs.

_BLOCK = 64
"""This many choices are followed one by one."""
FEWEST = 3
"""Of two no less is known than of each alone, but for 0.2 percent."""
LARGEST = Fraction(2)
"""Grids are too coarse for choices of a larger range, and few of these can be paid."""
_TOP = 14.0
_UP = 1.0 + 1e-12


def blocks_of(times: int) -> Iterator[tuple[int, int]]:
    """Blocks of choices that are about equal: how many choices, and how many such blocks."""
    blocks = -(-times // _BLOCK)
    size, left = divmod(times, blocks)
    yield size, blocks - left
    if left:
        yield size + 1, left


def cells_of(times: int) -> int:
    """Into how many cells the range is divided. The grid adds a few parts in 1000 to what many
    choices cost, and less to what few cost.
    """
    return min(128, max(16, 1 << (512 // times).bit_length() - 1))


@lru_cache(maxsize=256)
def loss_masses(epsilon: Fraction, times: int) -> tuple[NDArray[np.float64], float]:
    """The losses of choices as one: how likely each of -n steps to n steps is, and that it is
    larger. A step is the range divided by `cells_of(times)`.
    """
    e = float(epsilon)
    h = e / cells_of(times)
    curve = _deltas(e, cells_of(times), times)
    x = np.arange(curve.size) * h
    slopes = (curve[:-1] - curve[1:]) * np.exp(-x[:-1]) / math.expm1(h)
    slopes = np.append(np.maximum.accumulate(slopes[::-1])[::-1], 0.0)  # falls, as F is convex
    rarer = slopes[:-1] - slopes[1:]  # under Q, from x = h on
    likelier = np.exp(x[1:]) * rarer * _UP
    beyond = float(curve[-1])
    middle = max(0.0, 1.0 - 2.0 * beyond - float(likelier.sum()) - float(rarer.sum()))
    return np.concatenate([rarer[::-1], [middle], likelier]), beyond


def _deltas(e: float, m: int, times: int) -> NDArray[np.float64]:
    """Upper bounds on F at 0, h, 2 h, ... with h = e / m."""
    h = e / m
    reach = times * e * e / 8 + _TOP * e * math.sqrt(times) / 2  # Hoeffding: beyond lies 1e-42
    last = min(times * m, max(m, math.ceil(reach / h)))
    shifts = np.arange(m, -1, -1) * h  # t, from e down to 0
    up = np.exp(shifts) * np.expm1(e - shifts) / math.expm1(e)
    down = np.expm1(shifts) / math.expm1(e)
    bulge = math.expm1(h) ** 2 * np.exp(shifts[:-1]) / (4.0 * math.expm1(e))
    back = np.arange(m, 0, -1) * h
    curve = np.zeros(last + 1)
    for _ in range(times):
        below = -np.expm1(-back) + np.exp(-back) * curve[m:0:-1]
        every = np.concatenate([below, curve, np.full(m, curve[-1])])
        intercepts = every[:-1] + (every[:-1] - every[1:]) / math.expm1(h)
        ends = sliding_window_view(every, m + 1)
        lines = sliding_window_view(intercepts, m)
        values = up * ends[: last + 1] + down * ends[m : m + last + 1]
        between = np.maximum(lines[: last + 1] - lines[m : m + last + 1], 0.0) * bulge
        most = (np.maximum(values[:, :-1], values[:, 1:]) + between).max(axis=1)
        curve = np.minimum(1.0, np.maximum.accumulate(most[::-1])[::-1] * _UP)
    return curve


Floats: TypeAlias = NDArray[np.float64]
Complexes: TypeAlias = NDArray[np.complex128]


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
    to exp(loss / 2) from -epsilon to epsilon (Dong, Durfee and Rogers 2020). One that `stands` for
    choices whose ranges are known by their sum and their largest only reveals at least as much as
    they do. Many of these are not taken together, because there is no proof for them.
    """

    epsilon: Fraction
    stands: bool = False


@dataclass(frozen=True)
class Choices:
    """This many choices of bounded range epsilon together, see `loss_masses`."""

    epsilon: Fraction
    times: int


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


Loss: TypeAlias = Reported | Ranged | Choices | Geometrics | Normals | Wholes

ADDED = 5e-8
"""Which part of epsilon is added, about. Less takes longer."""
_ROUNDING = 1e-10
"""More than floats are off by in sums and logarithms here, relatively."""
_UNIT = 1e-15
"""More than an operation with floats, or an angle of 1 that is turned, is off by."""
_TABLE = 1e-13
"""More than a table by a fast Fourier transform is off by, of its largest number."""
_LARGEST = Fraction(9000)
_MOST_NODES = 60_000
_LONGEST_TABLE = 1 << 22
"""Where a block of choices would need more memory, each choice is taken alone."""
MOST_SUMS = 1 << 13
"""Where all losses have no more sums than this, each sum gets its own probability."""


@lru_cache(maxsize=256)
def losses_delta(
    losses: frozenset[tuple[Loss, int]], epsilon: Fraction, added: float = ADDED
) -> Fraction:
    """An upper bound on the delta of independent losses, each with how often it occurs, for any
    part of epsilon that is `added`.

    Proof: let G(x) be delta at x, also below 0, M(s) = E[exp(s L)], and c > 0. The function exp(c
    x) G(x) has the Fourier transform M(c + i t) / ((c + i t) (c + 1 + i t)). By Poisson's summation
    formula, a sum over t = n w, n whole, gives

        w / (2 pi) sum(M(c + i t) exp(-(c + i t) epsilon) / ((c + i t) (c + 1 + i t)))
            = sum(exp(2 pi c k / w) G(epsilon + 2 pi k / w), k whole),

    which is at least G(epsilon), as no term is below 0. So any c and w give an upper bound, and
    these need not be chosen with care. Terms beyond the last t are bounded by their absolute
    values. For that a little continuous Gaussian noise is added to the losses, as if that were one
    draw more: it only adds to delta. Floats are rounded up by more than their error, which grows
    with the number of draws and with the angles that their transforms turn by. Where losses have
    few sums, delta follows from the probability of each (`_sums`), and nothing is added. Gaussian
    losses add up to Gaussian ones.
    """
    price = float(min(epsilon, _LARGEST))  # what keeps this epsilon keeps any larger one
    if _most(dict(losses)) <= epsilon:
        return Fraction(0)
    known = _in_blocks(losses)
    if price < 0 or sum(known.values()) > 10**6 or len(known) > 1000 or _largest(known) > 1e4:
        return Fraction(1)
    normals = [n * law.d_squared for law, n in losses if isinstance(law, Normals)]
    if len(normals) == len(losses):
        whole = sum(normals, start=Fraction(0))
        return fraction_up(min(ONE, normal_delta(whole, epsilon))) if whole else Fraction(0)
    sums = _sums(losses)
    if sums is not None:
        return _delta_of_sums(*sums, epsilon)
    c, step, wide = _grid(known, price)
    if wide > _LONGEST_TABLE * step:
        known = Counter(dict(losses))
        c, step, wide = _grid(known, price)
    w = 2 * math.pi / wide
    normal = sum(float(law.d_squared) * n for law, n in known.items() if isinstance(law, Normals))
    noise = max(2 * added * price / (c + 1), 60 / (_MOST_NODES * w) ** 2)
    known[Normals(Fraction(noise))] += 1
    variance = (normal + noise) * (1 - 1e-12)
    last = math.ceil(math.sqrt(52 / variance) / w) + 1
    if last > _MOST_NODES:
        return Fraction(1)
    k = np.arange(last + 1)
    t = k.astype(np.float64) * w
    scale, missing, table_error = -c * price, 0.0, 0.0
    values = _turn(-t * price) / ((c + 1j * t) * (c + 1 + 1j * t))
    far = np.abs(values)
    for law, n in known.items():
        if isinstance(law, Choices):
            log, table, beyond = _tilt(law, c, step, round(wide / step))
            curve = table[k % table.size]
            missing += n * beyond
            table_error += n * _TABLE
        else:
            logs, curve = _transform(law, np.full(1, c), t)
            log = float(logs[0])
        head = float(abs(curve[0]))  # a power of less than 1 would vanish, and its error with it
        scale += n * (log + math.log(head))
        values *= (curve / head) ** n
    weights = np.where(k == 0, 1.0, 2.0)
    total = float(np.sum(values.real * weights))
    first = float(abs(values[0]))
    size = float(np.sum(np.abs(values) * weights))
    # where a table is off, all other factors are at most what they are for t = 0
    size_off = table_error * first / float(far[0]) * float(np.sum(far * weights))
    end = last * w
    # each term beyond is at most exp(-variance t**2 / 2) c (c + 1) / t**2 of the first
    rest = first * math.exp(-variance * end * end / 2) * c * (c + 1) / (end * end)
    rest *= 2 * (1 + 1 / (variance * end * w))
    turned = 4 * end * price + sum(n * (200 + 4 * end * _angle(law, c)) for law, n in known.items())
    off = (_ROUNDING + _UNIT * turned) * size + size_off
    found = (max(total, 0.0) + rest + off) * w / (2 * math.pi)
    if not 0 < found < math.inf:
        return Fraction(1)
    logarithm = scale + math.log(found) + _ROUNDING
    if logarithm >= 0:
        return Fraction(1)
    return min(Fraction(1), Fraction(max(math.exp(logarithm), 1e-300)) + Fraction(missing))


def _atoms(law: Loss) -> Mapping[Fraction, float] | None:
    """The losses of a draw and their probabilities; None where these are very many."""
    found: defaultdict[Fraction, float] = defaultdict(float)  # losses of 0 may be equal
    match law:
        case Reported(epsilon, cells):
            rest = math.exp(-float(epsilon))
            for loss, weight in (epsilon, 1.0), (Fraction(0), (cells - 2) * rest), (-epsilon, rest):
                found[loss] += weight / (1 + (cells - 1) * rest)
            return found
        case Geometrics(h, steps) if steps <= MOST_SUMS:
            g = float(h)
            for x in range(steps + 1):
                here = 1.0 if x in (0, steps) else -math.expm1(-g)
                found[h * (steps - 2 * x)] += math.exp(-g * x) * here / (1 + math.exp(-g))
            return found
    return None


@lru_cache(maxsize=256)
def _sums(losses: frozenset[tuple[Loss, int]]) -> tuple[Fraction, Floats, float] | None:
    """The step between sums of losses, the probability of each sum, from the lowest on, and by
    which part these are off at most; None where sums are too many.
    """
    atoms = [(_atoms(law), n) for law, n in losses]
    step, events = Fraction(0), sum(n for _, n in atoms)
    for of_law, _ in atoms:
        for loss in of_law or ():
            step = Fraction(
                math.gcd(step.numerator * loss.denominator, loss.numerator * step.denominator),
                step.denominator * loss.denominator,
            )
    found = np.ones(1)
    if not step or 2 * _most(dict(losses)) / step > MOST_SUMS:
        return None
    for of_law, n in atoms:
        if of_law is None:
            return None
        reach = int(max(of_law) / step)
        power = np.zeros(2 * reach + 1)
        for loss, probability in of_law.items():
            power[int(loss / step) + reach] = probability
        while n:  # nothing is subtracted, so small probabilities are as exact as large ones
            found = np.convolve(found, power) if n % 2 else found
            n //= 2
            power = np.convolve(power, power) if n else power
    return step, found, 1e-14 * events + 1e-15 * events * found.size


def _delta_of_sums(step: Fraction, masses: Floats, off: float, epsilon: Fraction) -> Fraction:
    """Delta of losses with these sums, rounded up."""
    reach = masses.size // 2
    first = math.floor(epsilon / step) + 1
    under = step.denominator * epsilon.denominator
    each, price = step.numerator * epsilon.denominator, epsilon.numerator * step.denominator
    above = np.array([(place * each - price) / under for place in range(first, reach + 1)])
    found = float(np.sum(-np.expm1(-above) * masses[first + reach :]))
    return min(Fraction(1), Fraction(found * (1 + 1e-12 + off) + 1e-300))


def _in_blocks(losses: frozenset[tuple[Loss, int]]) -> Counter[Loss]:
    """The same losses, with many choices of one range, those that reveal most, in blocks."""
    found = Counter(dict(losses))
    many = {
        law: n * law.epsilon**2
        for law, n in found.items()
        if isinstance(law, Ranged) and not law.stands and n >= FEWEST and law.epsilon <= LARGEST
    }
    if many:
        law = max(many, key=many.__getitem__)
        for times, count in blocks_of(found.pop(law)):
            found[Choices(law.epsilon, times)] += count
    return found


def _height(known: Mapping[Loss, int], price: float) -> tuple[float, float, float]:
    """About the best c, ln(M(c) exp(-c epsilon) / (c (c + 1))) there, and the deviation of losses
    under the law that is M's.
    """

    def best(low: float, high: float) -> tuple[float, float]:
        """A c between the exponentials of these, and the height there."""
        cs = np.exp(np.linspace(low, high, 48))
        heights = _cumulant(known, cs) - cs * price - np.log(cs) - np.log1p(cs)
        place = int(np.argmin(heights))
        return float(cs[place]), float(heights[place])

    # M(-1/4) of normal losses is exp(-3 / 32 of their variance)
    spread = math.sqrt(max(0.0, float(_cumulant(known, np.array([-0.25]))[0]) * -32 / 3))
    middle = -math.log(max(price, spread / 1000, 1e-10))
    near, _ = best(middle - 8, middle + 14)
    c, height = best(math.log(near) - 0.5, math.log(near) + 0.5)
    step = 1e-3 * c
    below, here, above = _cumulant(known, np.array([c - step, c, c + step]))
    return c, height, math.sqrt(max(below + above - 2 * here, 0.0)) / step


def _grid(known: Mapping[Loss, int], price: float) -> tuple[float, float, float]:
    """About the best c, the step on which all losses of `Choices` lie, and a width that is a whole
    number of them: then transforms have a period.
    """
    c, low, spread = _height(known, price)
    wide = max((25 - min(0.0, low)) / c, 8 * spread)
    steps = [float(law.epsilon) / cells_of(law.times) for law in known if isinstance(law, Choices)]
    if not steps:
        return c, wide, wide
    step = min(steps)  # the other one is this times a power of two
    return c, step, math.ceil(wide / step) * step


def _tilt(law: Choices, c: float, step: float, number: int) -> tuple[float, Complexes, float]:
    """A logarithm, what it is to be multiplied with for t = 0, w, 2 w, ..., over a period, and how
    likely a larger loss is.
    """
    masses, beyond = loss_masses(law.epsilon, law.times)
    every = round(float(law.epsilon) / cells_of(law.times) / step)
    places = (np.arange(masses.size) - masses.size // 2) * every
    log = c * step * float(places[-1])
    tilted = masses * np.exp(c * step * places - log)
    folded = np.bincount(places % number, tilted, minlength=number)
    return log, np.fft.ifft(folded) * number, beyond


def _angle(law: Loss, c: float) -> float:
    """By how much the transform of a law turns for each 1 that t grows, at most."""
    match law:
        case Reported(epsilon) | Ranged(epsilon):
            return float(epsilon)
        case Choices(epsilon, times):
            return float(epsilon) * times
        case Geometrics(h, steps):
            return 2 * float(h) * steps
        case Normals(d_squared):
            return (2 * c + 1) * float(d_squared) / 2
        case Wholes(sigma_squared):
            return (2 * c + 1) / (2 * float(sigma_squared))


def _most(known: Mapping[Loss, int]) -> Fraction | float:
    """The sum of all largest losses; infinite where losses have no limit."""
    found = Fraction(0)
    for law, n in known.items():
        match law:
            case Reported(epsilon) | Ranged(epsilon):
                found += n * epsilon
            case Choices(epsilon, times):
                found += n * times * epsilon
            case Geometrics(h, steps):
                found += n * h * steps
            case Normals() | Wholes():
                return math.inf
    return found


def _largest(known: Mapping[Loss, int]) -> float:
    """The largest loss of a draw, about."""
    found = 0.0
    for law in known:
        match law:
            case Reported(epsilon) | Ranged(epsilon) | Choices(epsilon):
                found = max(found, float(epsilon))
            case Geometrics(h, steps):
                found = max(found, float(h * steps))
            case Normals(d_squared):
                found = max(found, float(d_squared))
            case Wholes(sigma_squared):
                found = max(found, float(1 / sigma_squared))
    return found


def _cumulant(known: Mapping[Loss, int], c: Floats) -> Floats:
    """ln M(c), at each c."""
    found = np.zeros(c.size)
    for law, n in known.items():
        if isinstance(law, Choices):
            masses, _ = loss_masses(law.epsilon, law.times)
            step = float(law.epsilon) / cells_of(law.times)
            losses = (np.arange(masses.size) - masses.size // 2) * step
            log = c * losses[-1]
            size = np.exp(np.outer(c, losses - losses[-1])) @ masses
        else:
            log, curve = _transform(law, c, np.zeros(1))
            size = np.abs(curve)
        found += n * (log + np.log(size))
    return found


def _transform(law: Loss, c: Floats, t: Floats) -> tuple[Floats, Complexes]:
    """A logarithm and numbers, whose exponential and values multiply to M(c + i t): for one c and
    each t, or for each c and one t.
    """
    match law:
        case Reported(epsilon, cells):
            e = float(epsilon)
            turn = _turn(t * e)
            low, middle = np.exp(-(1 + 2 * c) * e), (cells - 2) * np.exp(-(1 + c) * e)
            whole = 1 + (cells - 1) * math.exp(-e)
            return c * e, (turn + low * turn.conjugate() + middle) / whole
        case Ranged(epsilon):
            e = float(epsilon)
            fall = _fall((1 + 2 * c) * e, 2 * t * e)
            return c * e, -0.5 / math.expm1(-e) * _turn(t * e) * fall / (c + 0.5 + 1j * t)
        case Geometrics(h, steps):
            g = float(h)
            rate, angle = (1 + 2 * c) * g, 2 * t * g
            first, end = (
                np.exp(-rate) * _turn(-angle),
                np.exp(-steps * rate) * _turn(-steps * angle),
            )
            several = _fall((steps - 1) * rate, (steps - 1) * angle) / _fall(rate, angle)
            inner = -math.expm1(-g) * first * several
            turn = _turn(t * (g * steps))
            return c * g * steps, turn * (1 + inner + end) / (1 + math.exp(-g))
        case Normals(d_squared):
            d = float(d_squared)
            return c * (c + 1) * d / 2, np.exp(-t * t * d / 2) * _turn(t * ((2 * c + 1) * d / 2))
        case Wholes(sigma_squared):
            v = float(sigma_squared)
            turn = _turn(t * ((2 * c + 1) / (2 * v)))
            return c * (c + 1) / (2 * v), turn * _wholes(v, c, t)
    raise ValueError(law)


def _fall(rate: Floats, angle: Floats) -> Complexes:
    """1 - exp(-rate - i angle), where both may be tiny."""
    half = _turn(angle / 2)
    sine = 2 * half.imag**2
    real = -np.expm1(-rate) * (1 - sine) + sine
    return np.asarray(real + 1j * (np.exp(-rate) * 2 * half.real * half.imag), dtype=np.complex128)


def _turn(angles: Floats) -> Complexes:
    """exp(i x) at the angles x = 0, a, 2 a, ..., or at one angle. Products of powers are much
    quicker than exponentials.
    """
    if angles.size < 2:
        return np.exp(np.asarray(1j * angles, dtype=np.complex128))
    step = 1j * float(angles[1])
    rows = np.exp(step * 256 * np.arange(-(-angles.size // 256)))
    return np.outer(rows, np.exp(step * np.arange(256))).ravel()[: angles.size]


def _wholes(v: float, c: Floats, t: Floats) -> Complexes:
    """With S the sum of exp(-(x + c + i t)**2 / (2 v)) over whole x, M is exp((c + i t) (c + 1 + i
    t) / (2 v)) S over the sum for c = t = 0. For wide noise S follows from its Fourier transform
    (Poisson summation), where only the terms nearest to -t / (2 pi v) count.
    """
    far = math.ceil(12 * math.sqrt(v)) + 2
    whole = math.fsum(math.exp(-x * x / (2 * v)) for x in range(-far, far + 1)) if v < 4 else 0.0
    root = math.sqrt(2 * math.pi * v)
    whole = whole or root
    found = np.zeros(np.broadcast(c, t).shape, np.complex128)
    if v < 0.3:
        nearest = c - np.round(c)
        for x in range(-far, far + 1):
            found += np.exp(-((x + nearest) ** 2) / (2 * v) - 1j * t * ((x + nearest) / v)) / whole
        return found
    width = 2 * math.pi * v
    nearest = np.round(-t / width)
    several = 0 if v > 20 else 1 if v > 5 else 4
    least = int(nearest.min()) - several
    turns = np.exp(2j * math.pi * np.multiply.outer(np.arange(least, several + 1), c))
    for k in range(-several, several + 1):
        u = t + width * (nearest + k)
        turn = turns[(nearest + (k - least)).astype(np.intp)].reshape(found.shape)
        found += np.exp(-u * u / (2 * v)) * turn
    return root / whole * found
