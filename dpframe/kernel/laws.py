"""What noise costs for numbers that one individual moves this far.

Costs are fractions. Those that are no fractions are rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpframe.kernel.losses import (
    Geometrics,
    Loss,
    Normals,
    Ranged,
    Reported,
    Wholes,
    gaussian_delta,
    smoothing,
)
from dpframe.kernel.moves import Norms, Ranges, top_of
from dpframe.kernel.plan import (
    Box,
    Exact,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    Nights,
    NoisyMax,
    One,
    PermuteAndFlip,
    Placed,
    Plan,
    Rank,
    Refused,
    Response,
    Running,
    Squared,
    Staircase,
    Table,
    Valued,
    Vector,
)
from dpframe.kernel.tails import fraction_up, gaussian_tail
from dpframe.kernel.trade_offs import (
    bounded_range_mu_squared,
    gaussian_mu_squared,
    laplace_mu_squared,
    pure_mu_squared,
    response_mu_squared,
)

_DIGITS = Context(prec=110, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999)
_UP = 1 + Fraction(1, 10**40)
"""More than 110 digits are off by, where 60 of them cancel."""


def noise_cost(
    plan: Plan, what: Vector | Running | Nights | Rank, law: Law, norms: Norms
) -> Fraction:
    """What noise costs in the plan's measure.

    Raises
    ------
    Refused
        When the noise does not cover what an individual moves, or cannot be drawn.
    """
    match law:
        case Exact():
            if norms.l1:
                raise Refused("no noise on numbers that an individual moves")
            return Fraction(0)
        case Laplace(scale, fine):
            if fine not in (1, 1025) or not Fraction(1, 1 << 10) <= scale <= (1 << 56) // fine:
                raise Refused("a scale that cannot be drawn")
            match plan.measure:
                case "epsilon":
                    return norms.l1 / scale
                case "rho":
                    return _laplace_rho(norms, law)
                case "mu_squared":
                    steps, most = norms.l1 * fine, norms.linf * fine
                    return laplace_mu_squared(1 / (scale * fine), steps, most)
        case Gaussian(sigma_squared):
            require_gaussian(law)
            match plan.measure:
                case "epsilon":
                    raise Refused("Gaussian noise has no epsilon without a delta")
                case "rho":
                    return norms.l2_squared / (2 * sigma_squared)
                case "mu_squared":
                    return gaussian_mu_squared(sigma_squared, norms.l2_squared)
        case Staircase(rate, width, inner):
            if not Fraction(1, 8) <= rate <= 64 or not 1 <= inner <= width <= 1 << 56:
                raise Refused("a staircase that cannot be drawn")
            # a number that moves by d changes its level by at most ceil(d / width)
            return norms.l0 * _of_pure(plan, -(-norms.linf // width) * rate)
        case Box():
            if not isinstance(what, Vector):
                raise Refused("a box of numbers that are no vector")
            _require_box(plan, what, law, norms)
            whole = norms.boxes * law.epsilon
            return pure_rho(whole) if plan.measure == "rho" else _of_pure(plan, whole)
    raise Refused("a choice of numbers that are not scores")


def _of_pure(plan: Plan, epsilon: Fraction) -> Fraction:
    """What anything with this epsilon costs; epsilon**2 / 2 of rho (Bun and Steinke 2016)."""
    match plan.measure:
        case "epsilon":
            return epsilon
        case "rho":
            return epsilon**2 / 2
        case "mu_squared":
            return pure_mu_squared(epsilon)


def noise_delta(law: Gaussian, norms: Norms, epsilon: Fraction) -> Fraction:
    """The delta of Gaussian noise at an epsilon."""
    require_gaussian(law)
    return gaussian_delta(law.sigma_squared, norms.l0, norms.l2_squared, norms.linf, epsilon)


def require_gaussian(law: Gaussian) -> None:
    """Refuse a sigma that no sampler draws."""
    if not Fraction(1, 1 << 20) <= law.sigma_squared <= 1 << 112:
        raise Refused("a sigma that cannot be drawn")


def choice_cost(plan: Plan, rounds: int, law: Law, ranges: Ranges) -> Fraction:
    """What a choice costs in the plan's measure, in all its rounds.

    Proof: only the differences of scores matter, so subtracting the least change from all leaves
    changes between 0 and the range r of a group. All three choices then cost r / scale (McSherry
    and Talwar 2007, Durfee and Rogers 2019, McKenna and Sheldon 2020, Dwork and Roth 2014 Claim
    3.9). Groups and rounds add up. The exponential mechanism has a bounded range, so r costs
    (r / scale)**2 / 8 of rho (Cesar and Rogers 2021); the others cost epsilon**2 / 2 for all groups
    together (Bun and Steinke 2016). In mu, ranges that differ most cost most.
    """
    if rounds < 1:
        raise Refused("a choice without rounds")
    match law:
        case Exponential(scale) | PermuteAndFlip(scale) | NoisyMax(scale):
            largest = 1 << 56 if isinstance(law, NoisyMax) else 1 << 62
            if not Fraction(1, 1 << 10) <= scale <= largest:
                raise Refused("a scale that cannot be drawn")
            if isinstance(law, Exponential) and plan.measure == "rho":
                return rounds * ranges.squares / (8 * scale**2)
            if isinstance(law, Exponential) and plan.measure == "mu_squared":
                each = map(bounded_range_mu_squared, apart(ranges.l1 / scale, ranges.linf / scale))
                return rounds * sum(each, Fraction(0))
            return rounds * _of_pure(plan, ranges.l1 / scale)
        case Exact():
            if ranges.l1:
                raise Refused("a choice without noise")
            return Fraction(0)
        case _:
            raise Refused("noise of scores that are not released")


def noise_losses(law: Law, norms: Norms) -> tuple[list[tuple[Loss, int]], Fraction]:
    """The losses of noise, and how far these are off: by this much in the logarithm of each
    probability, see `gaussian_delta`.
    """
    match law:
        case Exact():
            return [], Fraction(0)
        case Laplace(scale, fine):
            steps = norms.l1 * fine
            return [(Geometrics(1 / (scale * fine), steps), 1)] if steps else [], Fraction(0)
        case Gaussian(sigma_squared):
            ones = min(norms.l0, norms.l2_squared)
            if not ones:
                return [], Fraction(0)
            if norms.linf <= 1 and ones <= 256 and sigma_squared <= 1 << 14:
                return [(Wholes(sigma_squared), ones)], Fraction(0)
            s_squared, log_factor = smoothing(ones, 2.0**-40)
            if s_squared >= sigma_squared:
                raise Refused("Gaussian noise whose losses are not known")
            distance = norms.l2_squared / (sigma_squared - s_squared)
            return [(Normals(distance), 1)], fraction_up(log_factor)
        case Staircase(rate, width, _):
            each = -(-norms.linf // width) * rate
            return [(Reported(each, 2), norms.l0)] if each else [], Fraction(0)
        case Box(epsilon):
            whole = norms.boxes * epsilon
            return [(Reported(whole, 2), 1)] if whole else [], Fraction(0)
        case _:
            raise Refused("noise whose losses are not known")


def choice_losses(rounds: int, law: Law, ranges: Ranges) -> list[tuple[Loss, int]]:
    """The losses of a choice in all its rounds. Ranges that differ most reveal most: the proof is
    that of `laplace_mu_squared`, with densities.
    """
    match law:
        case Exact():
            return []
        case Exponential(scale):
            each = apart(ranges.l1 / scale, ranges.linf / scale)
            found = Counter(each)
            stands = not ranges.are_known
            return [(Ranged(epsilon, stands), rounds * n) for epsilon, n in found.items()]
        case PermuteAndFlip(scale) | NoisyMax(scale):
            return [(Reported(ranges.l1 / scale, 2), rounds)] if ranges.l1 else []
        case _:
            raise Refused("a choice whose losses are not known")


def apart(total: Fraction, largest: Fraction) -> list[Fraction]:
    """Numbers with this sum that differ most: as many as possible are the largest."""
    if not total:
        return []
    full, left = divmod(total, largest)
    if full > _MOST_PARTS:
        raise Refused("a choice in too many groups")
    return [largest] * full + ([left] if left else [])


_MOST_PARTS = 10_000


def response_cost(plan: Plan, rows: int, cells: int, law: Law) -> Fraction:
    """What the reports of an individual's rows cost."""
    if not isinstance(law, Response) or law.epsilon <= 0 or cells < 2:
        raise Refused("reports that are not random")
    if law.epsilon < Fraction(1, 1 << 100):  # 110 digits would lose it
        raise Refused("reports whose cost is not known")
    match plan.measure:
        case "epsilon":
            return rows * law.epsilon
        case "rho":
            return rows * response_rho(law.epsilon, cells)
        case "mu_squared":
            return rows * response_mu_squared(law.epsilon, cells)


@lru_cache(maxsize=256)
def response_rho(epsilon: Fraction, cells: int) -> Fraction:
    """The rho of one report of a cell.

    Proof: losses are epsilon, -epsilon, and 0 for other cells. The Renyi divergence of order a over
    a is (f(s) - f(1/2)) / (s**2 - 1/4), with s = a - 1/2, f(s) = ln(cosh(epsilon s) + c) and c =
    (cells - 2) exp(-epsilon / 2) / 2: the slope of a chord of f, as a function of s**2. The third
    derivative of f has the sign of (c**2 - 2) / c - cosh(epsilon s), so f' is convex and then
    concave, and f' / s rises and then falls: it falls where s f'' <= f'. Where it falls already at
    1/2, chords from there have at most the slope there, the mean loss. Elsewhere take an s from
    which on it falls, where f' / (2 s) is no less than the slope of the chord that ends there.
    Chords that end later have no larger slope than that. Those that end earlier have smaller ones,
    as their slopes rise until they meet f' / (2 s). It is the best to take s next to that place.
    """
    worst = pure_rho(epsilon)
    if cells == 2 or epsilon > 10**5:
        return worst
    d = _DIGITS
    shrunk = d.multiply(Decimal(cells - 2), d.divide(_exp(-epsilon / 2), Decimal(2)))

    def look(s: Fraction) -> tuple[Decimal, bool, Decimal]:
        """f' / s, whether it falls, and f."""
        up, down = _exp(epsilon * s), _exp(-epsilon * s)
        cosh, sinh = (d.divide(f(up, down), Decimal(2)) for f in (d.add, d.subtract))
        e, place, whole = _decimal(epsilon), _decimal(s), d.add(cosh, shrunk)
        slope = d.divide(d.multiply(e, sinh), d.multiply(whole, place))
        bent = d.divide(d.add(Decimal(1), d.multiply(shrunk, cosh)), d.multiply(whole, whole))
        return slope, d.multiply(d.multiply(e, e), bent) <= slope, d.ln(whole)

    half = Fraction(1, 2)
    start, falls, base = look(half)
    if falls:
        return min(worst, Fraction(start) / 2 * _UP)

    s = _end_of_chord(float(epsilon), float(shrunk))
    slope, falls, height = look(s)
    chord = d.divide(d.subtract(height, base), _decimal(s * s - half * half))
    if not falls or d.multiply(chord, Decimal(2)) > slope:
        return worst
    return min(worst, Fraction(slope) / 2 * _UP)


def _end_of_chord(e: float, c: float) -> Fraction:
    """Just before the end of the steepest chord; by floats, as it need not be exact."""

    def rises(s: float) -> bool:
        r, start = math.exp(-e * s), math.exp(-e / 2)
        slope = e * (1 - r * r) / (1 + r * r + 2 * c * r) / (2 * s)
        more = math.log1p(r * (r + 2 * c)) - math.log1p(start * (start + 2 * c))
        # next to 1/2 a chord is the tangent
        return slope * (s * s - 0.25) >= (e * (s - 0.5) + more) * (1 + 1e-12) or s < 0.5001

    low, high = 0.5, 1.0
    while rises(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return Fraction(low * (1 - 1e-7))


def tail_of(law: Law, least: int) -> Fraction:
    """The probability that noise is at least this whole number, above 0; rounded up."""
    if least < 1:
        return Fraction(1)
    match law:
        case Laplace(scale, fine):
            # on finer steps, what is above half a step less is rounded to it
            h = 1 / (scale * fine)
            steps = least * fine - fine // 2
            found = _DIGITS.divide(_exp(-h * steps), _DIGITS.add(Decimal(1), _exp(-h)))
            return Fraction(found) * _UP
        case Gaussian(sigma_squared):
            require_gaussian(law)
            return fraction_up(gaussian_tail(sigma_squared, least)[1])
        case _:
            raise Refused("noise whose tail is not known")


def _require_box(plan: Plan, vector: Vector, law: Box, norms: Norms) -> None:
    """Refuse boxes that do not hold what a row moves, or cannot be drawn.

    Proof that one costs epsilon for each move within it: the noise gives radius R to a vector that
    lies in the box of R fine steps. Moved by one row, the vector lies in the box of R + fineness
    fine steps, because boxes of this shape add up; so its probability changes by a factor of at
    most exp(epsilon). The K-norm mechanism of Hardt and Talwar (2010). The same holds for hulls.
    """
    widths, fineness = law.widths, law.fineness
    if not 1 <= fineness <= 1 << 30 or fineness & (fineness - 1):
        raise Refused("a fineness of a box")
    if not 1 <= len(widths) <= 64 or not all(1 <= width <= 1 << 32 for width in widths):
        raise Refused("widths of a box")
    if not 0 < law.epsilon <= 1 << 14 or max(*widths, fineness) > (1 << 54) * law.epsilon:
        raise Refused("a box that cannot be drawn")
    if len(law.arches) > 8:
        raise Refused("hulls that cannot be drawn")
    if len(widths) != len(norms.box):
        raise Refused("a box of other numbers")
    if any(moved > width for moved, width in zip(norms.box, widths, strict=True)):
        raise Refused("a row moves numbers out of the box")
    places = [place for arch in law.arches for place in arch]
    if not all(0 <= place < len(widths) for place in places):
        raise Refused("a hull of numbers that are not there")
    apart = [place for arch in law.arches for place in arch[1:]]
    if len({*apart}) != len(apart) or {*apart} & {arch[0] for arch in law.arches}:
        raise Refused("hulls that share a sum")
    tables = [plan.tables[place] for place in vector.tables]
    if any(not _is_arch(tables, vector, widths, arch, norms.twice) for arch in law.arches):
        raise Refused("numbers that are no count, sum and sum of squares of the same values")


def _is_arch(
    tables: Sequence[Table],
    vector: Vector,
    widths: tuple[int, ...],
    arch: tuple[int, int, int],
    twice: bool,
) -> bool:
    """Whether what a row adds to three numbers, over their widths, lies in the hull of the points
    (1, t, 2 t**2 - 1) and its mirror image.

    They are a count, a sum and a sum of squares on the same grid, symmetric around 0, with widths
    1, h and top (see `Squared`). Where a row that stays makes both its moves in one box, the widths
    of the sums are twice that.

    Proof: with s the row's number on the grid and u its shortened square, s**2 / h**2 <= u / top
    <= 1. So the row adds (1, x, y) with 2 x**2 - 1 <= y <= 1, or (1, 0, 0) where it counts and has
    no value, or nothing; all are in the hull. A row that stays takes away one such point and adds
    another: half of each in doubled widths, so a point of the hull with a count of 0.
    """
    found = []
    for place in arch:
        factors = vector.matrix[place]
        if sum(map(abs, factors)) != 1 or max(factors) != 1:
            return False
        found.append(tables[factors.index(1)].adds)
    count, total, squares = found
    if not isinstance(total, Placed) or not isinstance(squares, Squared):
        return False
    if (total.row, total.grid) != (squares.row, squares.grid) or total.grid.lo != -total.grid.hi:
        return False
    if not isinstance(count, One) and count != Valued(total.row):
        return False
    times = 2 if twice else 1
    own = 1, times * total.grid.hi, times * top_of(squares.grid, squares.shift)
    return tuple(widths[place] for place in arch) == own


def pure_rho(epsilon: Fraction) -> Fraction:
    """The rho of any epsilon-private mechanism: epsilon tanh(epsilon / 2) (Kairouz, Oh and
    Viswanath 2015), and never more than epsilon**2 / 2.
    """
    if epsilon > 1 << 20:
        return epsilon
    grown = _exp(epsilon)
    tanh = _DIGITS.divide(_DIGITS.subtract(grown, Decimal(1)), _DIGITS.add(grown, Decimal(1)))
    return min(epsilon * Fraction(tanh) * _UP, epsilon * epsilon / 2)


def _laplace_rho(norms: Norms, law: Laplace) -> Fraction:
    """The rho of a vector of discrete Laplace noise.

    With h = fine / (scale fine) and D steps of the noise one number costs h (D - (1 - exp(-h D)) /
    sinh(h)), convex in D and at most D**2 times that of one step. So all numbers cost the most
    where as many as possible move by the largest step, and at most L2**2 times one step.
    """
    h = 1 / (law.scale * law.fine)
    steps, most = norms.l1 * law.fine, norms.linf * law.fine
    if not steps:
        return Fraction(0)
    full, left = divmod(steps, most)
    moved = full * _one_laplace_rho(h, most) + _one_laplace_rho(h, left)
    squares = norms.l2_squared * law.fine**2 * _one_laplace_rho(h, 1)
    return min(moved, squares, steps * h)


def _one_laplace_rho(h: Fraction, steps: int) -> Fraction:
    """h (D - (1 - exp(-h D)) / sinh(h)), rounded up."""
    if not steps:
        return Fraction(0)
    if h > 10**5:
        return h * steps
    d = _DIGITS
    sinh = d.divide(d.subtract(_exp(h), _exp(-h)), Decimal(2))
    gone = d.subtract(Decimal(1), _exp(-h * steps))
    return h * Fraction(d.subtract(Decimal(steps), d.divide(gone, sinh))) * _UP


def _exp(value: Fraction) -> Decimal:
    """exp(value). Decimals are never combined by operators, which round to fewer digits."""
    return _DIGITS.exp(_decimal(value))


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
