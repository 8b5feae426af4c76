"""What noise costs for numbers that one individual moves this far.

Costs are fractions. Those that are no fractions are rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt

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

_DIGITS = Context(prec=110, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
"""Pi, rounded down."""
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
            return norms.l1 / scale if plan.measure == "epsilon" else _laplace_rho(norms, law)
        case Gaussian(sigma_squared):
            if plan.measure == "epsilon":
                raise Refused("Gaussian noise has no epsilon without a delta")
            require_gaussian(law)
            return norms.l2_squared / (2 * sigma_squared)
        case Staircase(rate, width, inner):
            if plan.measure != "epsilon":
                raise Refused("staircase noise has an epsilon alone")
            if not Fraction(1, 8) <= rate <= 64 or not 1 <= inner <= width <= 1 << 56:
                raise Refused("a staircase that cannot be drawn")
            # a number that moves by d changes its level by at most ceil(d / width)
            return norms.l0 * -(-norms.linf // width) * rate
        case Box():
            if not isinstance(what, Vector):
                raise Refused("a box of numbers that are no vector")
            _require_box(plan, what, law, norms)
            whole = norms.boxes * law.epsilon
            return whole if plan.measure == "epsilon" else pure_rho(whole)
    raise Refused("a choice of numbers that are not scores")


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
    together (Bun and Steinke 2016).
    """
    if rounds < 1:
        raise Refused("a choice without rounds")
    match law:
        case Exponential(scale) | PermuteAndFlip(scale) | NoisyMax(scale):
            largest = 1 << 56 if isinstance(law, NoisyMax) else 1 << 62
            if not Fraction(1, 1 << 10) <= scale <= largest:
                raise Refused("a scale that cannot be drawn")
            epsilon = ranges.l1 / scale
            if plan.measure == "epsilon":
                return rounds * epsilon
            if isinstance(law, Exponential):
                return rounds * ranges.squares / (8 * scale**2)
            return rounds * epsilon**2 / 2
        case Exact():
            if ranges.l1:
                raise Refused("a choice without noise")
            return Fraction(0)
        case _:
            raise Refused("noise of scores that are not released")


def response_cost(plan: Plan, rows: int, cells: int, law: Law) -> Fraction:
    """What the reports of an individual's rows cost. With two cells, a report costs epsilon
    tanh(epsilon / 2) of rho, and with more no more than that.
    """
    if not isinstance(law, Response) or law.epsilon <= 0 or cells < 2:
        raise Refused("reports that are not random")
    return rows * (law.epsilon if plan.measure == "epsilon" else pure_rho(law.epsilon))


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
            return _gaussian_tail(sigma_squared, least)
        case _:
            raise Refused("noise whose tail is not known")


@lru_cache(maxsize=256)
def _gaussian_tail(sigma_squared: Fraction, least: int) -> Fraction:
    """The sum of exp(-x**2 / (2 sigma**2)) over x >= least, over the sum of all.

    Beyond sigma the function is convex, so each term is at most its integral from half a step
    before to half a step after. So what follows the last term is at most an integral. From y on
    that is at most exp(-y**2 / (2 sigma**2)) sigma**2 / y. The sum of all is at least sqrt(2 pi)
    sigma (Canonne, Kamath and Steinke 2020, Fact 18), and 1 + 2 exp(-1 / (2 sigma**2)). Where sigma
    is large, all terms are bounded by integrals: the tail of the normal distribution from half a
    step before on.
    """
    d = _DIGITS
    half = 1 / (2 * sigma_squared)
    sigma = d.sqrt(_decimal(sigma_squared))
    before = Fraction(2 * least - 1, 2)
    if sigma_squared >= 1 << 12 and before**2 >= sigma_squared:
        return _normal_tail(d.divide(_decimal(before), sigma)) * _UP
    last = least + 1 + 12 * (isqrt(ceil(sigma_squared)) + 1)
    if last - least > 1 << 20:
        raise Refused("a threshold of noise that is this wide")
    term, factor = _exp(-half * least * least), _exp(-half * (2 * least + 1))
    ratio = _exp(-half * 2)
    total = Decimal(0)
    for _ in range(least, last):
        total = d.add(total, term)
        term, factor = d.multiply(term, factor), d.multiply(factor, ratio)
    y = Fraction(2 * last - 1, 2)
    if y * y < sigma_squared:
        raise Refused("a threshold below the noise")
    beyond = d.multiply(_exp(-half * y * y), _decimal(sigma_squared / y))
    partial = d.add(Decimal(1), d.multiply(Decimal(2), _exp(-half)))
    whole = max(partial, d.multiply(d.sqrt(d.multiply(Decimal(2), _PI)), sigma))
    return Fraction(d.divide(d.add(total, beyond), whole)) * _UP


def _normal_tail(x: Decimal) -> Fraction:
    """The probability that a normal number is at least x deviations, for x of at least 1.

    It is the density over the continued fraction x + 1 / (x + 2 / (x + 3 / ...)). Cut off after an
    even number of terms the continued fraction is too small, so the tail is too large (Laplace
    1805; Feller 1968, chapter VII).
    """
    d = _DIGITS
    fraction = x
    for term in range(100, 0, -1):
        fraction = d.add(x, d.divide(Decimal(term), fraction))
    density = d.divide(
        d.exp(d.divide(d.multiply(x, x), Decimal(-2))), d.sqrt(d.multiply(Decimal(2), _PI))
    )
    return Fraction(d.divide(density, fraction))


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
