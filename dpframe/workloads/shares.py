"""The division of a spend among measurements that are all informative about the same subspaces.

With share x of part B its precision in subspace A is k_AB x**d, where d is 2 for an epsilon and 1
for a rho, and the error is the sum over A of v_A / (sum over B of k_AB x_B**d). A mean of inverses
is at least the inverse of a mean, so at the shares x, with t_AB the part of the precision in A that
B has, the error at any shares y is at most

    sum over B of K_B / y_B**d,  K_B = sum over A of v_A t_AB**2 / k_AB,

with equality at y = x. The right side is least where y is proportional to K**(1 / (d + 1)), so
going there never makes the error larger (Hunter and Lange 2004, on such algorithms). Where parts
compete the error has several local minima: parts are left out one by one where that helps.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Degree: TypeAlias = Literal[1, 2]

_ROUNDS: Final = 400
_TRIAL: Final = 40
_PASSES: Final = 4
_ENOUGH: Final = 0.999
_SAME: Final = 1.0 + 1e-9
"""Errors that differ by less are the same, on any machine's floats."""
_MOST_TRIED: Final = 80
"""With more parts none is left out by trial."""
_USELESS: Final = 2.0**-9
"""A part with less than this share is left out where that costs next to nothing."""
_NEXT_TO_NOTHING: Final = 1.0 + 2.0**-14


def error(energies: Floats, needs: Floats, shares: Floats, degree: Degree) -> float:
    """The sum of the subspaces' errors; infinite where one is not measured at all."""
    precision = energies @ shares**degree
    if not precision.all():
        return float("inf")
    return float((needs / precision).sum())


def divide(energies: Floats, needs: Floats, degree: Degree) -> Floats:
    """Shares that add up to 1 and minimise the error, 0 for parts that are not worth it.

    Parameters
    ----------
    energies
        k_AB, a row per subspace and a column per part. Some column has no zeros.
    needs
        v_A, positive.
    degree
        2 where epsilon is shared, 1 where rho is.
    """
    parts = energies.shape[1]
    equal = np.full(parts, 1.0 / parts)
    starts = [_improved(energies, needs, equal, degree, _ROUNDS)]
    if degree == 2:  # the error in shares of rho has one minimum: a start near another one
        concentrated = _improved(energies, needs, equal, 1, _ROUNDS) ** 0.5
        start = concentrated / concentrated.sum()
        starts.append(_improved(energies, needs, start, degree, _ROUNDS))
    if parts <= _MOST_TRIED:
        starts = [_searched(energies, needs, shares, degree) for shares in starts]
    shares, best = starts[0], error(energies, needs, starts[0], degree)
    for found in starts[1:]:
        tried = error(energies, needs, found, degree)
        if tried * _SAME < best:
            shares, best = found, tried
    kept = np.where(shares < _USELESS, 0.0, shares)
    kept = _improved(energies, needs, kept / kept.sum(), degree, _TRIAL)
    return kept if error(energies, needs, kept, degree) <= best * _NEXT_TO_NOTHING else shares


def _improved(
    energies: Floats, needs: Floats, shares: Floats, degree: Degree, rounds: int
) -> Floats:
    """Shares after some rounds; those that are 0 stay so."""
    if not (energies @ shares).all():
        return shares
    power = 1.0 / (degree + 1)
    for _ in range(rounds):
        squared = shares**degree
        precision = energies @ squared
        weights = ((needs / precision**2) @ energies) * squared**2
        found = weights**power
        found /= found.sum()
        done = np.abs(found - shares).max() < 1e-12
        shares = found
        if done:
            break
    return shares


def _searched(energies: Floats, needs: Floats, shares: Floats, degree: Degree) -> Floats:
    """Shares after parts were left out, or taken in again, one by one, as long as that helps."""
    least = error(energies, needs, shares, degree)
    for _ in range(_PASSES):
        before = least
        for part in np.argsort(np.round(shares, 9), kind="stable").tolist():
            tried = shares.copy()
            tried[part] = 0.0 if shares[part] else 1.0 / (1 + np.count_nonzero(shares))
            if not tried.any():
                continue
            tried = _improved(energies, needs, tried / tried.sum(), degree, _TRIAL)
            found = error(energies, needs, tried, degree)
            if found <= least * _SAME:
                least, shares = found, tried
        if degree == 1 or least > before * _ENOUGH:
            break
    return _improved(energies, needs, shares, degree, _ROUNDS)
