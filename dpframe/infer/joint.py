"""Ways to draw the vectors of a query: each separately, or sums of the same rows together.

With c between lo and hi and n the number of rows, one row moves n by 1 and 2 c - (lo + hi) n by
hi - lo at most, for any number of sums at once: a box. Where n is one number more than the
request, and few sums gain by it, they are drawn as they are instead: a box as well, of one number
less. The one with the least expected error is used. Two ways to cover it are offered.

*In a box*: one draw of noise that is uniform in boxes of random size (`DiscreteBox`), at an epsilon
for all numbers together. If they hold a sum of squares as well as the sum and the count of the
same values, the noise covers the part of the boxes that the three may move to (`arches`,
`DiscreteHull`).

*By Gaussian noise in an ellipsoid*: numbers are scaled so that equal noise on all of them has the
least expected error. With x_j of rho number j has variance w_j**2 / (2 rho x_j), and an error that
needs a_j of that is least where x_j is proportional to sqrt(a_j) w_j (Cauchy-Schwarz; for equal
widths that is the ellipse of Joseph and Yu 2023, arXiv 2309.15790). `row_moves` has the same where
rows change.

Margins of grouping sets that are by the same columns are drawn jointly in the same way: each
margin of a strategy is one vector of all sums.

Under change-one adjacency a row leaves what it added and enters what it adds. A row may come, go,
or leave one group for another. Then a box of sums that are centred on n holds each end of that,
and Gaussian noise covers just the differences of the possible additions of one row. A row that
stays does not move n, and moves a sum by its whole width only where it has a value before and
after (`joint_sensitivity`). If the number of all rows is public there is nothing to centre on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import JointMargins, Margin
from dpframe.aggregates.measurement import Additive, JointSums, Measurement, Rebuilt, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.infer.bundles import bundles_of
from dpframe.infer.coordinates import Coordinate, Drawn, Noise, coordinates_of, least, root
from dpframe.infer.measurements import PlannedMeasurement

__all__ = ["Noise", "PlannedDraw", "Way", "ways_of"]


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
        For messages, and the request.
    sensitivity
        The sensitivity of the vector, in its integer units.
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


def ways_of(
    query: Query,
    parts: Sequence[PlannedMeasurement],
    by: str,
    noises: Sequence[Noise] = ("box", "gaussian"),
) -> tuple[Way, ...]:
    """Ways to draw the parts, the first each separately.

    Parameters
    ----------
    query, parts
        The query, and the parts that it needs.
    by
        The rule that divides the cost: ``"least error"``, ``"equal"`` or ``"weights"``.
    noises
        What may be added to several at once: what the measure of the cost knows.
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
        tuple(_rebuilt(drawn.coordinates, scales, _table(use), scope.parts) for use in uses),
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


def _rebuilt(
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
