"""Which vectors a query needs, each once, and the ways to draw them, separately or jointly."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dpframe.aggregates.aggregate import MeasurementKey, MeasurementUse, Query
from dpframe.aggregates.keys import KeySelection, key_selection
from dpframe.aggregates.margins import JointMargins, Margin
from dpframe.aggregates.measurement import (
    COUNT,
    Additive,
    JointSums,
    Measurement,
    Rebuilt,
    Table,
    has_several,
)
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.statistics import GridSum, SquareSum, UnitCount, ValueCount, is_counted_by
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.per_individual import rounds_of
from dpframe.mechanisms import MAX_ARCHES, Arch, second_moments

# Which noisy vectors a query needs, each once, and what their noise does to errors.

# -- which noisy vectors a query needs, each once, and what each may cost relative to the others --


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMeasurement:
    """A part of the plan."""

    part: Measurement  # The vector
    name: str  # The first output that uses it
    role: str  # What it is there: ``"count"``, ``"mean.sum"``,
    mechanism: str  # The request: ``"auto"`` or a name
    sensitivity: ExactSensitivity  # In the part's integer units
    weight: Fraction  # Its share of the cost, relative to the other parts; 0 for what costs nothing
    users: tuple[str, ...]  # The requests that use it
    # The sum of its squared effects on the relative errors of the outputs; 0 for what costs
    # nothing.
    impact: Fraction = Fraction(1)


def measurements_of(query: Query) -> tuple[PlannedMeasurement, ...]:
    """The parts of a query in order of first use.

    Two outputs share a part when they need the same statistic of the same rows by the same
    mechanism. An output spends its weight on its parts, but never pays for a part that
    another output pays for as much already: what it saves goes to its other parts.

    Raises `UnboundedSensitivity` when nothing limits what one individual contributes.
    """
    scope = query.scope
    numbers: dict[MeasurementKey, int] = {}
    collected: list[list[tuple[Request, MeasurementUse]]] = []
    demands: list[tuple[Request, dict[int, Fraction]]] = []
    for aggregate in query.aggregates:
        request, wanted = aggregate.request, dict[int, Fraction]()
        for use, key in zip(aggregate.uses, aggregate.keys, strict=True):
            number = numbers.setdefault(key, len(collected))
            if number == len(collected):
                collected.append([])
            collected[number].append((request, use))
            wanted.setdefault(number, use.portion)
        demands.append((request, wanted))
    sensitivities = [part.sensitivity(scope) for part, _ in numbers]
    free = {number for number, found in enumerate(sensitivities) if found.is_zero}
    apart = {n for n, users in enumerate(collected) if not all(use.is_shared for _, use in users)}
    weights = _weights(demands, free, apart)
    used = tuple(
        PlannedMeasurement(
            part,
            users[0][0].name,
            users[0][1].role,
            mechanism,
            sensitivities[number],
            weights.get(number, Fraction(0)),
            tuple(dict.fromkeys(request.name for request, _ in users)),
            Fraction(0) if number in free else sum((use.impact for _, use in users), Fraction(0)),
        )
        for number, ((part, mechanism), users) in enumerate(zip(numbers, collected, strict=True))
    )
    if query.groups is None or not query.groups.discovered:
        return used
    return (_keys(query, query.groups), *used)


def _keys(query: Query, groups: Groups) -> PlannedMeasurement:
    """The choice of the groups, which every output needs."""
    part = key_selection(query.scope, rounds_of(query.relation))
    users = tuple(dict.fromkeys(request.name for request in query.requests))
    weight = max(request.weight for request in query.requests)
    sensitivity = part.sensitivity(query.scope)
    return PlannedMeasurement(part, groups.names[0], "keys", "auto", sensitivity, weight, users)


def _weights(
    demands: list[tuple[Request, dict[int, Fraction]]], free: set[int], apart: set[int]
) -> dict[int, Fraction]:
    """Relative costs by the number of a part; outputs with fewer parts first, because they have
    nothing to choose. Of parts that are `apart` each output pays for its own share.
    """
    weights: dict[int, Fraction] = {}
    for request, wanted in sorted(demands, key=lambda demand: len(demand[1])):
        paying = [number for number in wanted if number not in free]
        portions = sum((wanted[number] for number in paying), Fraction(0))
        unpaid = [
            n
            for n in paying
            if n in apart or weights.get(n, Fraction(0)) < request.weight * wanted[n] / portions
        ]
        portions = sum((wanted[number] for number in unpaid), Fraction(0))
        for number in unpaid:
            before = weights.get(number, Fraction(0)) if number in apart else Fraction(0)
            weights[number] = before + request.weight * wanted[number] / portions
    return weights


# -- what the noise of parts does to the errors of outputs ----------------------------------------

Effects: TypeAlias = list[tuple[Fraction, list[tuple[int, float]]]]
"""For each aggregate its weight, and the effects of its parts by their numbers."""


def effects_of(query: Query, parts: Sequence[PlannedMeasurement]) -> Effects:
    """For each aggregate its weight, and its parts that individuals move, with the logarithm of
    what the variance of one, in steps, does to the squared error relative to what one row can make.
    """
    numbers = {(use.part, use.mechanism): n for n, use in enumerate(parts)}
    found = []
    for aggregate in query.aggregates:
        effects = []
        for use, key in zip(aggregate.uses, aggregate.keys, strict=True):
            linf = parts[numbers[key]].sensitivity.linf
            if linf and use.impact:
                effects.append((numbers[key], _log(use.impact) - 2 * _log(linf)))
        if effects:
            found.append((aggregate.request.weight, effects))
    return found


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# Ways to draw the vectors of a query: each separately, or sums of the same rows jointly.

# -- counts, sums and sums of squares of the same values, drawn jointly ---------------------------
# What a row adds to these three lies on an arch, see `dpframe.samplers.box`, and noise for the hull
# of it is less than for a box.

_FEWEST: Final = 16
"""Steps that a sum, and one of squares, needs: laws take them as if they were continuous."""


def arches_of(tables: Sequence[Table | None]) -> tuple[Arch, ...]:
    """The places of counts, sums and sums of squares. `tables`: the number itself, or None for a
    number that is drawn minus another.

    Notes
    -----
    A row has a place on the grid of a sum only where it is counted: as a row, or as a value by the
    column of places itself (`is_counted_by`).
    """
    return tuple(_find_arches(tables))[:MAX_ARCHES]


def _find_arches(tables: Sequence[Table | None]) -> Iterator[Arch]:
    known = {table: place for place, table in enumerate(tables) if table is not None}
    for place, table in enumerate(tables):
        squares = None if table is None or table.cells is not None else table.statistic
        if not isinstance(squares, SquareSum):
            continue
        inner = squares.inner
        if inner.lo != -inner.hi or min(inner.hi, squares.grid.hi) < _FEWEST:
            continue
        total = GridSum(squares.value, squares.inner)
        counted = (
            number
            for other, number in known.items()
            if isinstance(other.statistic, ValueCount) and is_counted_by(other.statistic, total)
        )
        count = next(counted, known.get(COUNT.table))
        if count is not None and Table(total) in known:
            yield count, known[Table(total)], place


def moments_in(numbers: int, arches: Sequence[Arch]) -> list[Fraction]:
    """The mean square of each of this many numbers that are uniform in a hull, over its width."""
    found = [Fraction(1, 3)] * numbers
    for count, total, square in arches:
        sharing = sum(count == other for other, *_ in arches)
        found[count], found[total], found[square] = second_moments(sharing)
    return found


# -- the best scales of several numbers for Gaussian noise, where rows change ---------------------
# With y_j the squared width of number j at its scale, and r_j the square of what a row that stays
# moves it by over that width, the squared norm of what one row moves is at most 1 where
#
#     c sum(y) <= 1,  and  z <= 1,
#
# with c = 2 where rows leave one group for another, else 1, and z the sum over numbers that need
# the row alone of y_j r_j, and over each other condition of the larger of sum(y_j r_j) and
# sum(y_j). `moves_of` has the proof. The noise of number j goes with 1 / y_j, so errors are
# sum(a_j / y_j).
#
# For fixed weights of these inequalities they are sum(y_j u_j) <= 1, and the least error under that
# is (sum sqrt(a_j u_j))**2 at y_j in proportion to sqrt(a_j / u_j) (Cauchy and Schwarz). By duality
# the largest of these, over all weights, is the least error under all of them: weight w of the
# first inequality, and in what is left, at each condition, a share of the second sum. That is
# concave, with each share on its own once w is known, so both are found by halving intervals. The
# scales make noise good, not private: norms are computed exactly from any scales.

_HALVINGS: Final = 24


@dataclass(frozen=True, slots=True)
class _Group:
    """The numbers of one condition."""

    places: tuple[int, ...]  # Which they are
    needs: tuple[float, ...]  # What errors need of each one
    ratios: tuple[float, ...]  # What a row that stays moves each by, over its width, squared
    is_met: bool  # Whether every row that stays meets the condition, before and after

    def burdens(self, left: float, weight: float, once: float) -> list[float]:
        """What the square of each number counts: `left` for each unit of the weight of rows that
        come or go, and in the rest this much where the condition is met once.
        """
        rest = 1.0 - weight
        return [left * weight + rest * (once + (1.0 - once) * r) for r in self.ratios]

    def once(self, left: float, weight: float) -> float:
        """The share of what is left at which the error is largest."""
        if self.is_met or max(self.ratios) <= 1.0:
            return 0.0 if self.is_met else 1.0

        turns = [1.0 - r for r in self.ratios]
        return _largest(lambda once: self._slope(self.burdens(left, weight, once), turns) > 0.0)

    def rises(self, left: float, weight: float) -> float:
        """How fast the root of the error rises with the weight."""
        once = self.once(left, weight)
        turns = [left - once - (1.0 - once) * r for r in self.ratios]
        return self._slope(self.burdens(left, weight, once), turns)

    def _slope(self, burdens: Sequence[float], turns: Sequence[float]) -> float:
        return sum(
            turn * math.sqrt(need / burden)
            for turn, need, burden in zip(turns, self.needs, burdens, strict=True)
        )


def best_shares(
    needs: Sequence[float], ratios: Sequence[float], conditions: Sequence[int], vectors: int
) -> tuple[float, ...]:
    """The squared width of each number at its best scale, up to one factor. `needs`: what errors
    need of each number's variance, in squared widths; above 0. `ratios`, `conditions`: what a row
    that stays moves each by, over its width, squared; and what it needs for that, 0 where it needs
    to be there. `vectors`: how many vectors a row moves that leaves one of them.
    """
    groups = []
    for condition in dict.fromkeys(conditions):
        places = tuple(p for p, other in enumerate(conditions) if other == condition)
        of = tuple(needs[p] for p in places), tuple(ratios[p] for p in places)
        groups.append(_Group(places, *of, condition == 0))
    left = float(vectors)
    weight = _largest(lambda w: sum(group.rises(left, w) for group in groups) > 0.0)
    found = [0.0] * len(needs)
    for group in groups:
        burdens = group.burdens(left, weight, group.once(left, weight))
        for place, need, burden in zip(group.places, group.needs, burdens, strict=True):
            found[place] = math.sqrt(need / burden)
    return tuple(found)


def _largest(rises: Callable[[float], bool]) -> float:
    """Where a concave function between 0 and 1 is largest."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return (low + high) / 2


# -- the numbers that are drawn for several sums of the same rows: which, and at which scales -----
# What one row moves is a set, and noise has to cover it. Numbers are chosen, and scaled, so that it
# is covered with the least expected error.

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
    """A number that is drawn: times * sum - centre * rows."""

    table: Table  # The sum
    # The factors.
    times: int
    centre: int
    # What a row that comes or goes, or one that changes where rows do, moves it by at most.
    width: int
    turned: int
    most: Fraction  # What a row adds to the sum at most
    # What a row needs to move it, and what one that meets that before and after a change moves it
    # by at most; see `dpframe.kernel.moves.moves_of`.
    condition: int = _HERE
    kept: int = 0

    def needs_of(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """What an error of the sum that counts this much, relative to what a row adds to it,
        needs of the variance of this number and of that of rows, each in squared widths.
        """
        unit = share / (self.most * self.times) ** 2
        return unit * self.width**2, unit * self.centre**2 if self.centre else _NONE


@dataclass(frozen=True, slots=True)
class Drawn:
    """Numbers that may be drawn for several sums."""

    # The numbers; the number of rows first, where others are centred on it.
    coordinates: tuple[Coordinate, ...]
    # Whether rows change, and whether they may leave one vector for another then.
    changes: bool
    grouped: bool
    arches: tuple[Arch, ...] = ()  # Of numbers that are drawn in a box

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
            own, of_rows = self.coordinates[places[table]].needs_of(share)
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
        return self._impact([Fraction(share) for share in best], needs)

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
        return box_impact(needs, self.arches), self._impact(squares, needs) / self.vectors

    def _best(self, needs: Sequence[Fraction]) -> tuple[float, ...]:
        return best_shares(
            [float(root(need)) for need in needs],
            [(c.kept / c.width) ** 2 for c in self.coordinates],
            [c.condition for c in self.coordinates],
            self.vectors,
        )

    def _impact(self, squares: Sequence[Fraction], needs: Sequence[Fraction]) -> Fraction:
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
    # in an order that does not depend on the order of outputs, as fingerprints do not either
    tables = sorted(tables, key=Table.words)
    changes = tables[0].statistic.spread(scope).changes
    grouped = has_several(vectors)
    return tuple(
        Drawn(found, changes, grouped, _arches(found, scope))
        for found in _ways_to_draw(scope, tables, changes)
    )


def _arches(coordinates: Sequence[Coordinate], scope: QueryScope) -> tuple[Arch, ...]:
    """Where a row has no weight."""
    if scope.norm is not None:
        return ()
    return arches_of([c.table if (c.times, c.centre) == (1, 0) else None for c in coordinates])


def _ways_to_draw(
    scope: QueryScope, tables: Sequence[Table], changes: bool
) -> tuple[tuple[Coordinate, ...], ...]:
    if len(tables) == 1:
        most = Fraction(scope.rules.addition(tables[0]).largest)
        return ((Coordinate(tables[0], 1, 0, math.ceil(most), math.ceil(most), most),),)
    plain = _plain(tables, scope)
    rows = Table(UnitCount()) if tables[0].statistic.of_individuals else COUNT.table
    first = Coordinate(rows, 1, 0, 1, 1, Fraction(1))
    found = [_centre(table, scope, changes) for table in tables if table != rows]
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
    coordinates = []
    for table in tables:
        adds = scope.rules.addition(table)
        width, most = adds.largest, Fraction(adds.largest)
        if not table.statistic.spread(scope).changes:
            coordinates.append(Coordinate(table, 1, 0, width, width, most))
            continue
        here = adds.needs is None
        is_public = here and scope.entries is None and scope.facts.complete
        turned = 0 if is_public else adds.length
        number = _HERE if here else conditions.setdefault(adds.needs, len(conditions) + 1)
        coordinates.append(Coordinate(table, 1, 0, width, turned, most, number, adds.hi - adds.lo))
    return tuple(coordinates)


def _centre(table: Table, scope: QueryScope, changes: bool) -> Coordinate:
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


# -- which parts of a query may be drawn jointly: sums over the same rows of the same groups ------

_MOST: Final = 63
"""The most parts drawn jointly, without the number of rows; more are drawn in several pieces."""


def bundles_of(query: Query, parts: Sequence[PlannedMeasurement]) -> Iterator[tuple[int, ...]]:
    """The numbers of parts that are sums over the same rows, or the same individuals, of the same
    groups; of grouping sets of the same margin.
    """
    by_kind: dict[Hashable, list[int]] = {}
    taken = {p.part.table for p in parts if isinstance(p.part, KeySelection)}
    in_sets = isinstance(query.groups, SetGroups)
    for number, use in enumerate(parts):
        part = use.part
        # a margin with its total is another vector, and what is of one set alone another table
        if type(part) is not (Margin if in_sets else Additive):
            continue
        assert isinstance(part, (Additive, Margin))
        if part.table.cells is not None or part.table in taken:
            continue
        if isinstance(part, Margin) and part.has_total:
            continue
        if use.mechanism == "auto" and not use.sensitivity.is_zero:
            kept = part.kept if isinstance(part, Margin) else None
            kind = kept, part.spread(query.scope), part.table.statistic.of_individuals
            by_kind.setdefault(kind, []).append(number)
    for numbers in by_kind.values():
        if len(numbers) > 1:
            pieces = -(-len(numbers) // _MOST)
            for piece in range(pieces):
                yield tuple(numbers[piece::pieces])


# -- ways to draw the vectors of a query: each separately, or sums of the same rows together ------
# With c between lo and hi and n the number of rows, one row moves n by 1 and 2 c - (lo + hi) n by
# hi - lo at most, for any number of sums at once: a box. Where n is one number more than the
# request, and few sums gain by it, they are drawn as they are instead: a box as well, of one number
# less. The one with the least expected error is used. Two ways to cover it are offered.
#
# *In a box*: one draw of noise that is uniform in boxes of random size (`DiscreteBox`), at an
# epsilon for all numbers together. If they hold a sum of squares as well as the sum and the count
# of the same values, the noise covers the part of the boxes that the three may move to (`arches`,
# `DiscreteHull`).
#
# *By Gaussian noise in an ellipsoid*: numbers are scaled so that equal noise on all of them has the
# least expected error. With x_j of rho number j has variance w_j**2 / (2 rho x_j), and an error
# that needs a_j of that is least where x_j is proportional to sqrt(a_j) w_j (Cauchy-Schwarz; for
# equal widths that is the ellipse of Joseph and Yu 2023, arXiv 2309.15790). `row_moves` has the
# same where rows change.
#
# Margins of grouping sets that are by the same columns are drawn jointly in the same way: each
# margin of a strategy is one vector of all sums.
#
# Under change-one adjacency a row leaves what it added and enters what it adds. A row may come, go,
# or leave one group for another. Then a box of sums that are centred on n holds each end of that,
# and Gaussian noise covers just the differences of the possible additions of one row. A row that
# stays does not move n, and moves a sum by its whole width only where it has a value before and
# after (`moves_of` of the kernel). If the number of all rows is public, no sum is centred on it.


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDraw:
    """What is drawn at once."""

    measurement: Measurement  # The vector
    parts: tuple[int, ...]  # The numbers of the parts of the query that follow from it
    # How each of these follows; None where there is one, which is the vector.
    rebuilt: tuple[Rebuilt, ...] | None
    # For messages, and the request.
    name: str
    mechanism: str
    sensitivity: ExactSensitivity  # The sensitivity of the vector, in its integer units
    weight: Fraction  # Its share of the cost, relative to the others
    # Its squared effect on relative errors, by which least-error splits of epsilon, and of rho, are
    # found.
    impact: Fraction
    rho_impact: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One way to draw all parts of a query, each part in one of the draws."""

    draws: tuple[PlannedDraw, ...]


def ways_of(
    query: Query,
    parts: Sequence[PlannedMeasurement],
    by: str,
    noises: Sequence[Noise] = ("box", "gaussian"),
) -> tuple[Way, ...]:
    """Ways to draw the parts that the query needs, the first each separately. The rule `by` divides
    the cost: ``"least error"``, ``"equal"`` or ``"weights"``. `noises` may be added to several at
    once in the measure of the cost.
    """
    bundles = list(bundles_of(query, parts))
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
    """The same where individuals are weighed: a part on its own is rebuilt from its weighed
    sum."""
    singles: list[tuple[int, ...]] = [(n,) for n, use in enumerate(parts) if _is_weighed(use)]
    ways = [singles]
    if bundles:
        together = {number for numbers in bundles for number in numbers}
        ways.append([*bundles, *(one for one in singles if one[0] not in together)])
    return tuple(_together(query, parts, way, noise, by) for way in ways for noise in noises)


def _is_weighed(use: PlannedMeasurement) -> bool:
    return isinstance(use.part, Additive) and not use.sensitivity.is_zero


def _alone(number: int, use: PlannedMeasurement) -> PlannedDraw:
    about = use.name, use.mechanism, use.sensitivity, use.weight, use.impact, use.impact
    return PlannedDraw(use.part, (number,), None, *about)


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
    tables, impacts = [_table(use) for use in uses], [use.impact for use in uses]
    errors = impacts if by == "least error" else [use.weight for use in uses]
    offered = coordinates_of(scope, tables, _vectors(uses[0].part, scope))
    drawn = least(offered, tuple(zip(tables, errors, strict=True)), noise)
    scales = (1,) * len(drawn.coordinates)
    if noise == "gaussian":
        relative = [root(impact) for impact in impacts] if by == "least error" else errors
        scales = drawn.scales(tuple(zip(tables, relative, strict=True)), scope.parts)
    measurement = _measurement(drawn, scales, noise)
    if isinstance(uses[0].part, Margin):
        measurement = JointMargins.of(measurement, uses[0].part)
    box, ball = drawn.impacts(tuple(zip(tables, impacts, strict=True)), scales)
    return PlannedDraw(
        measurement,
        numbers,
        tuple(_rebuild(drawn.coordinates, scales, _table(use), scope.parts) for use in uses),
        uses[0].name,
        _mechanism(uses, noise),
        measurement.sensitivity(scope),
        sum((use.weight for use in uses), Fraction(0)),
        box,
        ball,
    )


def _vectors(part: Measurement, scope: QueryScope) -> int:
    """How many vectors there are: one for each group of a margin, or of the query."""
    if isinstance(part, Margin):
        return part.entries(scope)
    return 1 if scope.entries is None else scope.entries


def _mechanism(uses: Sequence[PlannedMeasurement], noise: Noise) -> str:
    """The mechanism: one named for a part on its own, or that of the strategy."""
    (named,) = {use.mechanism for use in uses}
    if named != "auto":
        return named
    return "auto" if noise == "box" else "discrete_gaussian"


def _table(use: PlannedMeasurement) -> Table:
    assert isinstance(use.part, (Additive, Margin))
    return use.part.table


def _rebuild(
    coordinates: Sequence[Coordinate], scales: Sequence[int], table: Table, parts: int
) -> Rebuilt:
    """A sum from the noisy numbers: (number + centre * rows) / times, each less its scale, of
    rows with this many parts.
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


def _measurement(drawn: Drawn, scales: Sequence[int], noise: Noise) -> JointSums:
    coordinates, rows = drawn.coordinates, []
    for place, (mine, scale) in enumerate(zip(coordinates, scales, strict=True)):
        row = [0] * len(coordinates)
        row[place] = mine.times * scale
        row[0] -= mine.centre * scale
        rows.append(tuple(row))
    scaled = [(s, c) for s, c in zip(scales, coordinates, strict=True)]
    made = JointSums(
        tuple(c.table for c in coordinates),
        tuple(rows),
        tuple(c.width * scale for scale, c in scaled),
        tuple(c.turned * scale for scale, c in scaled),
        arches=drawn.arches if noise == "box" else (),
    )
    centred = any(c.centre for c in coordinates)
    if not drawn.changes or len(coordinates) == 1 or (noise == "box" and not centred):
        return made  # a box is that of each number on its own
    return replace(
        made,
        conditions=tuple(c.condition for c in coordinates),
        kept=tuple(c.kept * scale for scale, c in scaled),
    )
