"""Ways to draw the vectors of a query: each by itself, or sums of the same rows together.

With c between lo and hi and n the number of rows, one row moves n by 1 and 2 c - (lo + hi) n by
hi - lo at most, for any number of sums at once: a box. Where n is one number more than what is
asked for, and few sums gain by it, they are drawn as they are instead: a box as well, of one number
less. Of the two the one with the least expected error is taken. Two ways to cover it are offered.

*In a box*: one draw of noise that is uniform in boxes of random size (`DiscreteBox`), at an epsilon
for all numbers together.

*By Gaussian noise in an ellipsoid*: numbers are scaled so that equal noise on all of them has the
least expected error. With x_j of rho number j has variance w_j**2 / (2 rho x_j), and an error that
needs a_j of that is least where x_j is proportional to sqrt(a_j) w_j (Cauchy-Schwarz; for equal
widths that is the ellipse of Joseph and Yu 2023, arXiv 2309.15790).

Under change-one adjacency n of all rows is public or moves by one as the others do, so sums are not
centred on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dpframe.aggregates.joint_sums import JointSums, Rebuilt
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import COUNT, Additive, Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.unit_statistics import UnitCount
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import Contribution, ExactSensitivity
from dpframe.frames.grouping_sets import SetGroups
from dpframe.infer.measurements import PlannedMeasurement

__all__ = ["Noise", "PlannedDraw", "Way", "ways_of"]

Noise: TypeAlias = Literal["box", "gaussian"]

_MOST: Final = 63
"""Of parts that are drawn together, beside the number of rows; more are drawn in several pieces."""
_FINEST: Final = 1 << 31
"""Scaled numbers move by at most about so much with one row, so that fewer than 2**32 rows do not
overflow."""
_BITS: Final = 30
_NONE: Final = Fraction(0)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDraw:
    """What is drawn at once.

    Parameters
    ----------
    measurement
        The vector.
    parts
        The numbers of the parts of the query that follow from it.
    rebuilt
        How each of these follows; None where there is one, which is the vector.
    name, mechanism
        For messages, and what was asked for.
    sensitivity
        Of the vector, in its integer units.
    weight
        Its share of the cost, relative to the others.
    impact, rho_impact
        Its squared effect on relative errors, by which least-error splits of epsilon, and of rho,
        are found.
    """

    measurement: Measurement
    parts: tuple[int, ...]
    rebuilt: tuple[Rebuilt, ...] | None
    name: str
    mechanism: str
    sensitivity: ExactSensitivity
    weight: Fraction
    impact: Fraction
    rho_impact: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One way to draw all parts of a query, each part in one of the draws."""

    draws: tuple[PlannedDraw, ...]


@dataclass(frozen=True, slots=True)
class _Coordinate:
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
    """

    table: Table
    times: int
    centre: int
    width: int
    turned: int
    most: Fraction

    def needed(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """What an error of the sum that counts so much, relative to what a row adds to it, needs of
        the variance of this number and of that of rows, each in squared widths.
        """
        unit = share / (self.most * self.times) ** 2
        return unit * self.width**2, unit * self.centre**2 if self.centre else _NONE


def ways_of(
    query: Query,
    parts: Sequence[PlannedMeasurement],
    by: str,
    noises: Sequence[Noise] = ("box", "gaussian"),
) -> tuple[Way, ...]:
    """Ways to draw the parts, the first each by itself.

    Parameters
    ----------
    query, parts
        What is asked, and the parts that it needs.
    by
        What the cost is divided by: ``"least error"``, ``"equal"`` or ``"weights"``.
    noises
        What may be added to several at once: what the measure of the cost knows.
    """
    bundles = list(_bundles(query, parts))
    if query.scope.norm is not None:
        return _ways_of_weighed(query, parts, bundles, by, noises)
    apart = Way(tuple(_alone(number, use) for number, use in enumerate(parts)))
    if not bundles:
        return (apart,)
    return (apart, *(_together(query, parts, bundles, noise, by) for noise in noises))


def _ways_of_weighed(
    query: Query,
    parts: Sequence[PlannedMeasurement],
    bundles: Sequence[tuple[int, ...]],
    by: str,
    noises: Sequence[Noise],
) -> tuple[Way, ...]:
    """The same where individuals are weighed: a part by itself is rebuilt from its weighed sum."""
    singles: list[tuple[int, ...]] = [(n,) for n, use in enumerate(parts) if _is_weighed(use)]
    ways = [singles]
    if bundles:
        together = {number for numbers in bundles for number in numbers}
        ways.append([*bundles, *(one for one in singles if one[0] not in together)])
    return tuple(
        _together(query, parts, way, noise, by) for way in ways for noise in noises
    )


def _is_weighed(use: PlannedMeasurement) -> bool:
    return isinstance(use.part, Additive) and not use.sensitivity.is_zero


def _alone(number: int, use: PlannedMeasurement) -> PlannedDraw:
    about = use.name, use.mechanism, use.sensitivity, use.weight, use.impact, use.impact
    return PlannedDraw(use.part, (number,), None, *about)


def _bundles(query: Query, parts: Sequence[PlannedMeasurement]) -> Iterator[tuple[int, ...]]:
    """Parts that are sums over the same rows, or the same individuals."""
    found: dict[tuple[ContributionBounds, bool], list[int]] = {}
    if isinstance(query.groups, SetGroups):  # whose margins are drawn in ways of their own
        return
    taken = {p.part.table for p in parts if isinstance(p.part, KeySelection)}
    for number, use in enumerate(parts):
        part = use.part
        if not isinstance(part, Additive) or part.table.cells is not None or part.table in taken:
            continue
        if use.mechanism == "auto" and not use.sensitivity.is_zero:
            spread = part.spread(query.scope)
            kind = spread, part.table.statistic.of_individuals
            found.setdefault(kind, []).append(number)
    for numbers in found.values():
        if len(numbers) > 1:
            pieces = -(-len(numbers) // _MOST)
            for piece in range(pieces):
                yield tuple(numbers[piece::pieces])


def _together(
    query: Query,
    parts: Sequence[PlannedMeasurement],
    bundles: Sequence[tuple[int, ...]],
    noise: Noise,
    by: str,
) -> Way:
    """Each bundle in one draw, which stands where the first of its parts did."""
    first = {numbers[0]: numbers for numbers in bundles}
    later = {number for numbers in bundles for number in numbers[1:]}
    return Way(
        tuple(
            _joint(query.scope, parts, first[number], noise, by)
            if number in first
            else _alone(number, use)
            for number, use in enumerate(parts)
            if number not in later
        )
    )


def _joint(
    scope: QueryScope,
    parts: Sequence[PlannedMeasurement],
    numbers: tuple[int, ...],
    noise: Noise,
    by: str,
) -> PlannedDraw:
    uses = [parts[number] for number in numbers]
    coordinates = _least(_coordinates(scope, uses), uses, noise, by)
    widths = [c.width for c in coordinates]
    roots = [_root(use.impact) for use in uses]
    alone = roots if by == "least error" else [use.weight for use in uses]
    scales = (1,) * len(widths)
    if noise == "gaussian":
        scales = _scales(_needs(coordinates, uses, alone), widths, scope.parts)
    measurement = _measurement(coordinates, scales)
    impacts = _needs(coordinates, uses, [use.impact for use in uses])
    return PlannedDraw(
        measurement,
        numbers,
        tuple(_rebuilt(coordinates, scales, _table(use), scope.parts) for use in uses),
        uses[0].name,
        _mechanism(uses, noise),
        measurement.sensitivity(scope),
        sum((use.weight for use in uses), Fraction(0)),
        _box_impact(impacts),
        _ball_impact(impacts),
    )


def _least(
    offered: Sequence[tuple[_Coordinate, ...]],
    uses: Sequence[PlannedMeasurement],
    noise: Noise,
    by: str,
) -> tuple[_Coordinate, ...]:
    """What is drawn with the least sum of squared errors at one cost, the first of equal ones."""
    shares = [use.impact if by == "least error" else use.weight for use in uses]
    error = _box_impact if noise == "box" else _ball_impact
    if len(offered) == 1:
        return offered[0]
    return min(offered, key=lambda coordinates: error(_needs(coordinates, uses, shares)))


def _mechanism(uses: Sequence[PlannedMeasurement], noise: Noise) -> str:
    """What is asked for: one that somebody named, of a part by itself, or that of the way."""
    (named,) = {use.mechanism for use in uses}
    if named != "auto":
        return named
    return "auto" if noise == "box" else "discrete_gaussian"


def _table(use: PlannedMeasurement) -> Table:
    assert isinstance(use.part, Additive)
    return use.part.table


def _coordinates(
    scope: QueryScope, uses: Sequence[PlannedMeasurement]
) -> tuple[tuple[_Coordinate, ...], ...]:
    """What may be drawn: the number of rows first, where sums are centred on it, and sums as they
    are.
    """
    # in one order whatever that of the outputs is, as fingerprints are
    tables = sorted((_table(use) for use in uses), key=Table.words)
    if len(tables) == 1:
        most = tables[0].statistic.contribution(scope.facts).magnitude
        return ((_Coordinate(tables[0], 1, 0, math.ceil(most), math.ceil(most), most),),)
    plain = tuple(_plain(table, scope) for table in tables)
    if tables[0].statistic.spread(scope).changes:
        return (plain,)
    rows = Table(UnitCount()) if tables[0].statistic.of_individuals else COUNT.table
    found = [_centred(table, scope) for table in tables if table != rows]
    first = _Coordinate(rows, 1, 0, 1, 1, Fraction(1))
    if rows in tables:  # then centring costs nothing
        return ((first, *found),)
    if any(c.centre for c in found):
        return ((first, *found), plain)
    return (tuple(found),)


def _plain(table: Table, scope: QueryScope) -> _Coordinate:
    """A sum as it is."""
    adds = table.statistic.contribution(scope.facts)
    width = math.ceil(adds.magnitude)
    if not table.statistic.spread(scope).changes:
        return _Coordinate(table, 1, 0, width, width, adds.magnitude)
    joined = Contribution(adds.lo, adds.hi)
    turned = joined.width if scope.entries is not None else adds.width
    return _Coordinate(table, 1, 0, width, math.ceil(turned), adds.magnitude)


def _centred(table: Table, scope: QueryScope) -> _Coordinate:
    """A sum less the middle of what a row adds, times the number of rows. A row that adds nothing
    adds 0.
    """
    adds = table.statistic.contribution(scope.facts)
    lo, hi = min(0, math.floor(adds.lo)), max(0, math.ceil(adds.hi))
    if (lo + hi) % 2:
        return _Coordinate(table, 2, lo + hi, hi - lo, hi - lo, adds.magnitude)
    half = (hi - lo) // 2
    return _Coordinate(table, 1, (lo + hi) // 2, half, half, adds.magnitude)


def _needs(
    coordinates: Sequence[_Coordinate],
    uses: Sequence[PlannedMeasurement],
    shares: Sequence[Fraction],
) -> tuple[Fraction, ...]:
    """How much of each number's variance, in squared widths, the errors of all parts need, each
    part's error relative to what a row adds to it at most, and weighted by its share.
    """
    places = {c.table: place for place, c in enumerate(coordinates)}
    needs = [_NONE] * len(coordinates)
    for use, share in zip(uses, shares, strict=True):
        place = places[_table(use)]
        own, of_rows = coordinates[place].needed(share)
        needs[place] += own
        if of_rows:
            needs[0] += of_rows
    return tuple(needs)


def _scales(needs: Sequence[Fraction], widths: Sequence[int], parts: int = 1) -> tuple[int, ...]:
    """Factors that make equal noise on all numbers the one with the least error: the squares of
    factor times width are proportional to the roots of what is needed. Of rows with so many parts
    they are that much smaller.
    """
    if len(widths) == 1:
        return (1,)
    wanted = [math.sqrt(float(_root(need))) for need in needs]
    coarsest = max(width / want for width, want in zip(widths, wanted, strict=True))
    largest = max(wanted) * coarsest
    finer = min(256, max(4, int(_FINEST / parts / largest))) * coarsest
    return tuple(
        max(1, round(finer * want / width)) for width, want in zip(widths, wanted, strict=True)
    )


def _rebuilt(
    coordinates: Sequence[_Coordinate], scales: Sequence[int], table: Table, parts: int
) -> Rebuilt:
    """A sum from the noisy numbers: (number + centre * rows) / times, each less its scale, of rows
    with so many parts.
    """
    place = next(i for i, c in enumerate(coordinates) if c.table == table)
    mine = coordinates[place]
    factors = [0] * len(coordinates)
    factors[place] = 1 if not mine.centre else scales[0]
    divisor = mine.times * scales[place]
    if mine.centre:
        factors[0] = mine.centre * scales[place]
        divisor *= scales[0]
    divisor *= parts
    common = math.gcd(divisor, *factors)
    return Rebuilt(tuple(factor // common for factor in factors), divisor // common)


def _measurement(coordinates: Sequence[_Coordinate], scales: Sequence[int]) -> JointSums:
    rows = []
    for place, (mine, scale) in enumerate(zip(coordinates, scales, strict=True)):
        row = [0] * len(coordinates)
        row[place] = mine.times * scale
        row[0] -= mine.centre * scale
        rows.append(tuple(row))
    return JointSums(
        tuple(c.table for c in coordinates),
        tuple(rows),
        tuple(c.width * scale for c, scale in zip(coordinates, scales, strict=True)),
        tuple(c.turned * scale for c, scale in zip(coordinates, scales, strict=True)),
    )


def _box_impact(needs: Sequence[Fraction]) -> Fraction:
    """In a box of d numbers each has (d + 1) (d + 2) / 6 of the variance that it has by itself."""
    numbers = len(needs)
    return sum(needs, Fraction(0)) * Fraction((numbers + 1) * (numbers + 2), 6)


def _ball_impact(needs: Sequence[Fraction]) -> Fraction:
    """In the best ellipsoid."""
    return sum(map(_root, needs), Fraction(0)) ** 2


def _root(value: Fraction) -> Fraction:
    """A square root in few digits, rounded down but not to 0; the same on all machines."""
    if not value:
        return value
    whole = (value.numerator << 2 * _BITS) // value.denominator
    return Fraction(max(1, math.isqrt(whole)), 1 << _BITS)
