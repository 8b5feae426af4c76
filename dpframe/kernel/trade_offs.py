"""What noise and choices cost in squares of mu: Gaussian differential privacy.

Something is mu-GDP where no test distinguishes its results for neighbours better than N(0, 1) from
N(mu, 1). Squares of mu add up (Dong, Roth and Su 2022, Corollary 3.3). A pair of discrete laws
gives a trade-off between false alarms and misses that is a broken line, and that of GDP is convex.
So it is enough that mu is at least z(alpha) + z(beta) at each corner, with alpha and beta the two
errors there and z(p) the place with P(N > z(p)) = p.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpframe.kernel.plan import Refused
from dpframe.kernel.tails import (
    HALF,
    LESS,
    MORE,
    ONE,
    TWO,
    D,
    decimal_of,
    density,
    exp_of,
    fraction_up,
    gaussian_tail,
    mills,
    quantile_up,
)

_HUGE: Final = 10**6
_BY_CORNERS: Final = 400
"""Up to this variance."""


@lru_cache(maxsize=1024)
def pure_mu_squared(epsilon: Fraction) -> Fraction:
    """The cost of any epsilon-private mechanism. It follows from randomised response (Kairouz, Oh
    and Viswanath 2015), where both errors are 1 / (1 + exp(epsilon)). Where epsilon is very
    large, 8 epsilon is enough, as P(N > z) is at most exp(-z**2 / 2) / 2.
    """
    if epsilon <= 0:
        return Fraction(0)
    if epsilon > _HUGE:
        return 8 * epsilon
    return _square(D.multiply(TWO, quantile_up(_minus_log1p(epsilon))))


@lru_cache(maxsize=1024)
def bounded_range_mu_squared(epsilon: Fraction) -> Fraction:
    """The cost of a choice whose losses are within an interval of length epsilon.

    At worst there are two losses t and t - epsilon (Dong, Durfee and Rogers 2020). So there is one
    corner, with alpha beta / (1 - alpha - beta) = 1 / (exp(epsilon) - 1). Along this curve
    z(alpha) + z(beta) has a slope with the sign of R(beta) - R(alpha), where R(p) = phi(z) / (p
    (1 - p)). R is the sum of the hazards of the normal law at z(p) and at -z(p), which is convex
    (Sampford 1953) and even. So the largest value is where alpha = beta. There both are 1 / (1 +
    exp(epsilon / 2)).
    """
    return pure_mu_squared(epsilon / 2)


@lru_cache(maxsize=1024)
def response_mu_squared(epsilon: Fraction, cells: int) -> Fraction:
    """The cost of one report of a cell. The corners have the errors 1 / n and (cells - 1) / n, with
    n = exp(epsilon) + cells - 1.
    """
    if cells == 2 or epsilon > _HUGE:
        return pure_mu_squared(epsilon)
    n = D.add(exp_of(epsilon), Decimal(cells - 1))
    one = quantile_up(D.multiply(D.ln(n), Decimal(-1)))
    other = quantile_up(D.ln(D.divide(Decimal(cells - 1), n)))
    return min(_square(D.add(one, other)), pure_mu_squared(epsilon))


def laplace_mu_squared(h: Fraction, steps: int, most: int) -> Fraction:
    """The cost of discrete Laplace noise, q = exp(-h), on a vector that moves by this many steps in
    all and by `most` in each number.

    *One number* that moves by d: k(j) = z(q**(j + 1) / (1 + q)) is concave, as dz / d ln(1 / p) is
    Mills' ratio, which falls. Corners between the two centres have k(j) + k(d - 1 - j), so the
    middle is the worst. Those beyond have k(c) - k(c - d), at most k(d) - k(0) <= k(d - 1) + k(0),
    as k(-1) = -k(0).

    *Vectors*: of two numbers that move by a + b in all, those that differ more are easier to
    distinguish. Let U(a) be equal masses at the losses a, a - 2, ..., -a, in steps, and 0 for a <
    0. The loss of one number has the masses U(a) - q U(a - 2), but for a factor exp(loss / 2) and
    one that only a + b decides. With U(a) U(b) = U(a + b) + ... + U(|a - b|), a + 1 and b - 1 in
    place of a and b, d = a - b >= 0, add q (U(d + 2) + U(d - 2)) - (1 + q**2) U(d): at first below
    0, and above 0 at d + 2. So delta grows at each epsilon. The worst is that as many numbers as
    possible move by `most`, and one by the rest. Their noise is independent, so their squares of mu
    add up.
    """
    if not steps:
        return Fraction(0)
    full, left = divmod(steps, most)
    return full * _laplace(h, most) + (_laplace(h, left) if left else 0)


@lru_cache(maxsize=1024)
def _laplace(h: Fraction, steps: int) -> Fraction:
    both = D.add(_side(h, (steps - 1) // 2), _side(h, steps // 2))
    return _square(both)


def _side(h: Fraction, j: int) -> Decimal:
    log = D.subtract(_minus_log1p(-h), decimal_of(h * (j + 1)))
    return quantile_up(log)


def gaussian_mu_squared(sigma_squared: Fraction, l2_squared: int) -> Fraction:
    """The cost of discrete Gaussian noise on a vector. A number that moves by d does no more than d
    steps of 1, so its mu is at most d times that of one step.
    """
    return l2_squared * _unit(sigma_squared) if l2_squared else Fraction(0)


@lru_cache(maxsize=256)
def _unit(sigma_squared: Fraction) -> Fraction:
    """The cost of one number that moves by 1.

    *From continuous noise*: with r and t as in `gaussian_delta`, let y have a density proportional
    to that of N(m, sigma**2 - s**2) times the sum of r(y - x) over all whole x. Rounded as there,
    it is discrete Gaussian noise around m, for m = 0 and 1. Tails of y are within (1 + t) / (1 - t)
    of normal ones. So z of the lesser one is moved by at most 1.3 ln((1 + t) / (1 - t)) <= 3 t, as
    dz / d ln(1 / p) is at most 1.3 from z = -0.01 on. Two such moves make mu at most 1 /
    sqrt(sigma**2 - s**2) + 6 t.
    """
    s_squared = Fraction(math.ceil((33 + math.log(sigma_squared) / 2) * 53), 1024)
    found = list[Fraction]()
    if sigma_squared > s_squared:
        root = D.divide(ONE, D.sqrt(decimal_of(sigma_squared - s_squared)))
        t = D.multiply(Decimal("2.001"), exp_of(-Fraction(197392088, 10**7) * s_squared))
        found.append(_square(D.add(root, D.multiply(Decimal(6), t))))
    if sigma_squared <= _BY_CORNERS:
        found.append(_by_corners(sigma_squared))
    return min(found)


def _by_corners(sigma_squared: Fraction) -> Fraction:
    """The square of h = 2 z(P(X > 0)), which is what the corners next to 0 need.

    Let z(j) be the place with P(N > z(j)) = P(X > j), and p(j) = P(X = j). Corners need the step
    z(j) - z(j - 1), which is h for j = 0 and the same for j and -j. For j = 1, ..., n the steps are
    seen to be at most h. All later ones are, too, by induction: let q(k) be what the normal law has
    between z(j - 1) + (k - 1) h and z(j - 1) + k h. Over k >= 1 these add up to the same as p(j - 1
    + k), and q(0) >= p(j - 1) as the last step was at most h. If ln(p / q) is convex in k >= 0, and
    were above 0 for k = 1, it were for all later k, which the sums exclude. So p(j) <= q(1): the
    step is at most h.

    It is convex where q(k - 1) q(k + 1) / q(k)**2 <= exp(-1 / sigma**2), the same ratio of p. With
    m the middle of cell k, ln q(k) is -m**2 / 2 plus the cumulants of t in [-h / 2, h / 2] with a
    density like exp(-m t - t**2 / 2). Their second derivative in m is the variance of t, even in
    m, and falls with |m|: the derivative is minus the third central moment, which is not negative
    for m > 0. (Then t + m is normal and cut to an interval whose middle is above 0. Its mean lies
    above 0, and below that middle. So the density is larger at a distance below the mean than
    above, until the lower end. The first moment weighs that evenly, and the third more beyond.) So
    the ratio falls with m, and one look at the first cell suffices.
    """
    first = quantile_up(D.ln(gaussian_tail(sigma_squared, 1)[0]))
    h = D.multiply(TWO, first)
    limit = exp_of(-1 / sigma_squared)
    at = first
    for j in range(1, 100):
        if D.add(at, D.divide(h, TWO)) > HALF and _is_convex(at, h, limit):
            return _square(h)
        low, _ = gaussian_tail(sigma_squared, j + 1)
        new = quantile_up(D.ln(low))
        # `at` may be too large by less than this, as the next check sees
        if D.add(D.subtract(new, at), _NEAR) > h or _log_tail(D.subtract(new, _NEAR)) < D.ln(low):
            break
        at = new
    raise Refused("Gaussian noise whose mu is not known")


_NEAR: Final = Decimal("1e-14")


def _log_tail(z: Decimal) -> Decimal:
    """ln P(N > z), not too large."""
    return D.ln(D.multiply(D.multiply(density(z), mills(z)[0]), LESS))


def _is_convex(at: Decimal, h: Decimal, limit: Decimal) -> bool:
    """Whether the cells around the one from `at` on have so little."""
    places = [D.add(at, D.multiply(h, Decimal(k))) for k in (-1, 0, 1, 2)]
    tails = [D.multiply(density(z), mills(z)[0]) for z in places]
    before, one, after = (D.subtract(tails[k], tails[k + 1]) for k in range(3))
    ratio = D.divide(D.multiply(before, after), D.multiply(one, one))
    return D.multiply(ratio, D.add(ONE, Decimal("1e-15"))) <= limit


def _minus_log1p(power: Fraction) -> Decimal:
    """-ln(1 + exp(power)); of less than -10**6 nearly 0."""
    return D.multiply(D.ln(D.add(ONE, exp_of(max(power, Fraction(-_HUGE))))), Decimal(-1))


def _square(mu: Decimal) -> Fraction:
    return fraction_up(D.multiply(D.multiply(mu, mu), MORE))
