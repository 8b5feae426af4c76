"""How far one individual moves a part, exactly.

Guarantee
---------
For a part M, a row whose contribution lies in [lo, hi], and neighbours as `ContributionBounds`
says, the change of M x has at most the norms that `sensitivity_of` gives.

Proof
-----
A row that comes or goes in cell k changes M x by w M e_k with |w| <= z = max(|lo|, |hi|). M is a
Kronecker product, so norms of M e_k are products of those of its factors, and these are the same
for every cell. Several rows change the table by c, with |c_k| <= z m in each cell and at most z r
in all. With G = M'M, whose diagonal is D everywhere, |M c|**2 = D sum c_k**2 + sum over k != j of
c_k c_j G_kj. That is at most D s + g (R**2 - s), where s is the sum of squares, R the sum of
absolute values, and g bounds G_kj (its absolute value where contributions have both signs). Where
g >= 0 it grows with both, and both are largest where as many cells as possible are full
(`ContributionBounds.l2_squared`). Where g < 0 it is convex in what is in the last cell, so it is
largest where q cells are full and one more holds 0, m or all that is left, and it is concave in
q. L1 and L infinity follow from the triangle inequality.

Where a row changes (change-one), it leaves cell k with w and enters j with v, each in [lo, hi] or 0
where the row is not in the table: |w M e_k - v M e_j|**2 = D (w**2 + v**2) - 2 w v G_kj. That and
L1 are convex in (w, v), so they are largest at corners, and they depend on k and j only by how
their nodes lie in each axis: `Factor.others` lists all ways. Several rows: the triangle inequality.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import NO_SENSITIVITY, Contribution, ExactSensitivity
from dpframe.workloads.factors import Relation
from dpframe.workloads.parts import Part

__all__ = ["sensitivity_of"]

_Range: TypeAlias = tuple[int, int]

_MOST_WAYS = 200
"""This many ways in which two cells can lie are looked at one by one."""


def sensitivity_of(
    part: Part, contribution: Contribution, spread: ContributionBounds
) -> ExactSensitivity:
    """The sensitivity of a part of an additive table.

    Parameters
    ----------
    part
        The part.
    contribution
        What one row adds to the one cell that it belongs to.
    spread
        How many rows of one individual may differ, in how many cells, and in each.
    """
    rows, _, _ = spread.tight
    if not rows or not contribution.magnitude:
        return NO_SENSITIVITY
    if spread.changes:
        return _changing(part, contribution, rows)
    return _coming(part, contribution, spread)


def _coming(part: Part, contribution: Contribution, spread: ContributionBounds) -> ExactSensitivity:
    """Of rows that come or go."""
    rows, cells, most = spread.tight
    z = contribution.magnitude
    l0 = min(part.entries, cells * math.prod(f.l0 for f in part.factors))
    injective = all(f.is_injective for f in part.factors)
    one_signed = contribution.lo >= 0 or contribution.hi <= 0
    low, high = _products_of_two(part) or (0, 0)
    together = high if one_signed else max(abs(low), abs(high))
    return ExactSensitivity(
        l0,
        rows * z * math.prod(f.l1 for f in part.factors),
        z * z * _largest_square(_diagonal(part), together, spread),
        z * (most if injective else rows) * part.largest,
    )


def _largest_square(own: int, together: int, spread: ContributionBounds) -> int:
    """The most of own * s + together * (R**2 - s)."""
    rows, _, most = spread.tight
    if together >= 0:
        return own * spread.l2_squared + together * (rows * rows - spread.l2_squared)
    full, left = divmod(rows, most)
    best = (own - together) // (-2 * together)  # of the parabola in the number of full cells
    tries = {min(max(0, q), full) for q in (best, best + 1)} | {full}
    squares = [(q * most * most, q * most) for q in tries]
    squares.append((full * most * most + left * left, rows))
    return max(own * s + together * (held * held - s) for s, held in squares)


def _diagonal(part: Part) -> int:
    """The squared norm of what one row adds."""
    return math.prod(f.l2_squared for f in part.factors)


def _products_of_two(part: Part) -> _Range | None:
    """The least and largest inner product of the images of two different cells, if there are
    two.
    """
    apart: _Range | None = None
    either: _Range = (1, 1)
    for factor in part.factors:
        own = factor.l2_squared
        others = [sum(u * v * n for u, v, n in relation) for relation in factor.others]
        if factor.merges:
            others.append(own)
        found = [] if apart is None else [_times(apart, (own, *others))]
        if others:
            found.append(_times(either, tuple(others)))
        apart = (min(low for low, _ in found), max(high for _, high in found)) if found else None
        either = _times(either, (own, *others))
    return apart


def _times(one: _Range, others: tuple[int, ...]) -> _Range:
    """The range of products."""
    products = [a * b for a in one for b in others]
    return min(products), max(products)


def _changing(part: Part, contribution: Contribution, rows: int) -> ExactSensitivity:
    """Of rows that leave one cell and enter another, or none."""
    corners = (min(contribution.lo, Fraction(0)), max(contribution.hi, Fraction(0)))
    pairs = list(itertools.product(corners, corners))
    own = _diagonal(part)
    products = {own, *(_products_of_two(part) or ())}
    l2_squared = max(
        own * (w * w + v * v) - 2 * w * v * product for w, v in pairs for product in products
    )
    l1, linf = _largest_change(part, pairs)
    l0 = min(part.entries, 2 * rows * math.prod(f.l0 for f in part.factors))
    if not l2_squared:
        return NO_SENSITIVITY
    return ExactSensitivity(l0, rows * l1, rows * rows * l2_squared, rows * linf)


def _largest_change(
    part: Part, pairs: list[tuple[Fraction, Fraction]]
) -> tuple[Fraction, Fraction]:
    """The largest L1 and L infinity of what one row changes."""
    ways = math.prod(1 + len(f.others) for f in part.factors)
    if ways > _MOST_WAYS:  # the triangle inequality
        z = max(abs(w) + abs(v) for w, v in pairs)
        return z * math.prod(f.l1 for f in part.factors), z * part.largest
    l1 = linf = Fraction(0)
    for images in _images(part):
        for w, v in pairs:
            changes = [(abs(w * a - v * b), n) for (a, b), n in images.items()]
            l1 = max(l1, sum((change * n for change, n in changes), Fraction(0)))
            linf = max(linf, *(change for change, _ in changes))
    return l1, linf


def _images(part: Part) -> Iterator[dict[tuple[int, int], int]]:
    """The entries of the images of two cells, for each way in which the cells can lie."""
    ways = [(factor.same, *factor.others) for factor in part.factors]
    for relations in itertools.product(*ways):
        yield _joint(tuple(sorted(relations)))


@lru_cache(maxsize=4096)
def _joint(relations: tuple[Relation, ...]) -> dict[tuple[int, int], int]:
    found = {(1, 1): 1}
    for relation in relations:
        joined: dict[tuple[int, int], int] = {}
        for (a, b), times in found.items():
            for u, v, n in relation:
                if n:
                    joined[a * u, b * v] = joined.get((a * u, b * v), 0) + times * n
        found = joined
    return found
