"""The numbers that are drawn for several sums of the same rows: which, and at which scales.

What one row moves is a set, and noise has to cover it. Numbers are chosen, and scaled, so that it
is covered with the least expected error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dpframe.aggregates.measurement import COUNT, Table, has_several
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import UnitCount
from dpframe.infer.arches import arches_of, moments_in
from dpframe.infer.row_moves import best_shares
from dpframe.mechanisms import Arch

__all__ = ["Coordinate", "Drawn", "Noise", "Shares", "coordinates_of", "least", "root"]

Noise: TypeAlias = Literal["box", "gaussian"]
Shares: TypeAlias = Sequence[tuple[Table, Fraction]]
"""Sums, each with how much its squared error counts."""

_FINEST: Final = 1 << 31
"""Scaled numbers move by at most about this much with one row, so that fewer than 2**32 rows do
not overflow."""
_BITS: Final = 30
_NONE: Final = Fraction(0)
_HERE: Final = 0
"""The condition that a row is there, as numbers of expressions begin with 1."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A number that is drawn: times * sum - centre * rows.

    Parameters
    ----------
    table
        The sum.
    times, centre
        The factors.
    width, turned
        What a row that comes or goes, or one that changes where rows do, moves it by at most.
    most
        What a row adds to the sum at most.
    condition, kept
        What a row needs to move it, and what one that meets that before and after a change moves it
        by at most; see `joint_sensitivity`.
    """

    table: Table
    times: int
    centre: int
    width: int
    turned: int
    most: Fraction
    condition: int = _HERE
    kept: int = 0

    def needed(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """What an error of the sum that counts this much, relative to what a row adds to it,
        needs of the variance of this number and of that of rows, each in squared widths.
        """
        unit = share / (self.most * self.times) ** 2
        return unit * self.width**2, unit * self.centre**2 if self.centre else _NONE


@dataclass(frozen=True, slots=True)
class Drawn:
    """Numbers that may be drawn for several sums.

    Parameters
    ----------
    coordinates
        The numbers; that of rows first, where others are centred on it.
    changes, grouped
        Whether rows change, and whether they may leave one vector for another then.
    arches
        Of numbers that are drawn in a box.
    """

    coordinates: tuple[Coordinate, ...]
    changes: bool
    grouped: bool
    arches: tuple[Arch, ...] = ()

    @property
    def vectors(self) -> int:
        """How many vectors are moved by a row that leaves one of them."""
        return 2 if self.changes and self.grouped else 1

    def needs(self, shares: Shares) -> tuple[Fraction, ...]:
        """How much of each number's variance, in squared widths, the errors of all sums need, each
        relative to what a row adds to it at most, and weighted by its share.
        """
        places = {c.table: place for place, c in enumerate(self.coordinates)}
        needs = [_NONE] * len(self.coordinates)
        for table, share in shares:
            own, of_rows = self.coordinates[places[table]].needed(share)
            needs[places[table]] += own
            if of_rows:
                needs[0] += of_rows
        return tuple(needs)

    def error(self, shares: Shares, noise: Noise) -> Fraction:
        """The sum of squared errors at one cost, up to a factor that is the same for all."""
        needs = self.needs(shares)
        if noise == "box":
            if self.changes and not self.grouped:
                needs = tuple(
                    need * Fraction(c.turned, c.width) ** 2
                    for need, c in zip(needs, self.coordinates, strict=True)
                )
            return box_impact(needs, self.arches)
        if not self.changes or len(needs) == 1:
            return ball_impact(needs)
        best = self._best(needs)
        return self._spent([Fraction(share) for share in best], needs)

    def scales(self, shares: Shares, parts: int) -> tuple[int, ...]:
        """Factors that make equal noise on all numbers the one with the least error. Of rows with
        this many parts they are that much smaller.
        """
        needs, widths = self.needs(shares), [c.width for c in self.coordinates]
        if len(widths) == 1:
            return (1,)
        if not self.changes:
            return fine_scales([math.sqrt(float(root(need))) for need in needs], widths, parts)
        return fine_scales([math.sqrt(share) for share in self._best(needs)], widths, parts)

    def impacts(self, shares: Shares, scales: Sequence[int]) -> tuple[Fraction, Fraction]:
        """What the draw does to squared errors in a box, and by Gaussian noise at these scales."""
        needs = self.needs(shares)
        if not self.changes or len(needs) == 1:
            return box_impact(needs, self.arches), ball_impact(needs)
        squares = [
            Fraction(s * c.width) ** 2 for s, c in zip(scales, self.coordinates, strict=True)
        ]
        return box_impact(needs, self.arches), self._spent(squares, needs) / self.vectors

    def _best(self, needs: Sequence[Fraction]) -> tuple[float, ...]:
        return best_shares(
            [float(root(need)) for need in needs],
            [(c.kept / c.width) ** 2 for c in self.coordinates],
            [c.condition for c in self.coordinates],
            self.vectors,
        )

    def _spent(self, squares: Sequence[Fraction], needs: Sequence[Fraction]) -> Fraction:
        """The squared norm of what a row moves, where numbers are scaled so that the squares of
        their widths are these, times what errors need of the noise.
        """
        places: dict[int, list[int]] = {}
        for place, coordinate in enumerate(self.coordinates):
            places.setdefault(coordinate.condition, []).append(place)
        stays = _NONE
        for condition, mine in places.items():
            both = sum(
                (
                    squares[i] * Fraction(self.coordinates[i].kept, self.coordinates[i].width) ** 2
                    for i in mine
                ),
                _NONE,
            )
            once = sum((squares[i] for i in mine), _NONE)
            stays += max(both, once) if condition != _HERE else both
        norm = max(self.vectors * sum(squares, _NONE), stays)
        return norm * sum(
            (need / square for need, square in zip(needs, squares, strict=True)), _NONE
        )


def least(offered: Sequence[Drawn], shares: Shares, noise: Noise) -> Drawn:
    """What is drawn with the least sum of squared errors at one cost, the first of equal ones."""
    if len(offered) == 1:
        return offered[0]
    return min(offered, key=lambda drawn: drawn.error(shares, noise))


def coordinates_of(scope: QueryScope, tables: Sequence[Table], vectors: int) -> tuple[Drawn, ...]:
    """What may be drawn, as this many vectors: the number of rows first, where sums are centred
    on it, and sums as they are.
    """
    # in an order that does not depend on that of the outputs, as fingerprints do not either
    tables = sorted(tables, key=Table.words)
    changes = tables[0].statistic.spread(scope).changes
    grouped = has_several(vectors)
    return tuple(
        Drawn(found, changes, grouped, _arches(found, scope))
        for found in _offered(scope, tables, changes)
    )


def _arches(coordinates: Sequence[Coordinate], scope: QueryScope) -> tuple[Arch, ...]:
    """Where a row has no weight."""
    if scope.norm is not None:
        return ()
    return arches_of([c.table if (c.times, c.centre) == (1, 0) else None for c in coordinates])


def _offered(
    scope: QueryScope, tables: Sequence[Table], changes: bool
) -> tuple[tuple[Coordinate, ...], ...]:
    if len(tables) == 1:
        most = Fraction(scope.rules.addition(tables[0]).largest)
        return ((Coordinate(tables[0], 1, 0, math.ceil(most), math.ceil(most), most),),)
    plain = _plain(tables, scope)
    rows = Table(UnitCount()) if tables[0].statistic.of_individuals else COUNT.table
    first = Coordinate(rows, 1, 0, 1, 1, Fraction(1))
    found = [_centred(table, scope, changes) for table in tables if table != rows]
    centres = any(c.centre for c in found)
    if changes:  # a number of rows that is public is nothing to centre on
        public = scope.entries is None and scope.facts.complete
        return (plain, (first, *found)) if centres and not public else (plain,)
    if rows in tables:  # then centring costs nothing
        return ((first, *found),)
    if centres:
        return ((first, *found), plain)
    return (tuple(found),)


def _plain(tables: Sequence[Table], scope: QueryScope) -> tuple[Coordinate, ...]:
    """Sums as they are, each with the expression that a row needs a value of to move it."""
    conditions: dict[object, int] = {}
    made = []
    for table in tables:
        adds = scope.rules.addition(table)
        width, most = adds.largest, Fraction(adds.largest)
        if not table.statistic.spread(scope).changes:
            made.append(Coordinate(table, 1, 0, width, width, most))
            continue
        here = adds.needs is None
        whole = here and scope.entries is None and scope.facts.complete
        turned = 0 if whole else adds.length
        number = _HERE if here else conditions.setdefault(adds.needs, len(conditions) + 1)
        made.append(Coordinate(table, 1, 0, width, turned, most, number, adds.hi - adds.lo))
    return tuple(made)


def _centred(table: Table, scope: QueryScope, changes: bool) -> Coordinate:
    """A sum less the middle of what a row adds, times the number of rows. A row that adds nothing
    adds 0.
    """
    adds = scope.rules.addition(table)
    lo, hi = min(0, adds.lo), max(0, adds.hi)
    times = 2 if (lo + hi) % 2 else 1
    centre, width = (lo + hi) * times // 2, (hi - lo) * times // 2
    turned = 2 * width if changes else width
    return Coordinate(table, times, centre, width, turned, Fraction(adds.largest), _HERE, turned)


def fine_scales(wanted: Sequence[float], widths: Sequence[int], parts: int = 1) -> tuple[int, ...]:
    """Whole factors that bring widths to what is wanted, up to one factor of all."""
    coarsest = max(width / want for width, want in zip(widths, wanted, strict=True))
    largest = max(wanted) * coarsest
    finer = min(256, max(4, int(_FINEST / parts / largest))) * coarsest
    return tuple(
        max(1, round(finer * want / width)) for width, want in zip(widths, wanted, strict=True)
    )


def box_impact(needs: Sequence[Fraction], arches: Sequence[Arch] = ()) -> Fraction:
    """In a box of d numbers each has (d + 1) (d + 2) / 6 of the variance that it has on its own;
    in a hull (d + 1) (d + 2) / 2 times its mean square over its width.
    """
    numbers = len(needs)
    moments = zip(needs, moments_in(numbers, arches), strict=True)
    spread = sum((need * moment for need, moment in moments), _NONE)
    return spread * Fraction((numbers + 1) * (numbers + 2), 2)


def ball_impact(needs: Sequence[Fraction]) -> Fraction:
    """In the best ellipsoid around a box."""
    return sum(map(root, needs), Fraction(0)) ** 2


def root(value: Fraction) -> Fraction:
    """A square root in few digits, rounded down but not to 0; the same on all machines."""
    if not value:
        return value
    whole = (value.numerator << 2 * _BITS) // value.denominator
    return Fraction(max(1, math.isqrt(whole)), 1 << _BITS)
