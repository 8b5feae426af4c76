"""Several quantiles of one column: answered together where that has less expected error.

The decision does not depend on data. It uses the range of a choice's scores for one row, the
number of choices that share the cost, the effect of a wrong end on the ranks between, and the
number of candidates. In ranks, the squares of errors are about

*Separately*: each of n quantiles has 1 / n of the cost.

*One inside the other* (Kaplan, Schnapp and Stemmer 2022): each level has its part of the cost, and
about log2(n) levels hold all. Ends that are off move what lies between.

*At once* (Gillenwater, Joseph and Kulesza 2021): one choice of all, at the whole cost, whose score
adds up what is wrong everywhere; nothing is divided among levels or quantiles.

*Read off* noisy counts of all candidates: q (1 - q) of the squared noise of all of them together,
if rows were spread over them evenly. If an epsilon is shared and it has a smaller error, runs of
neighbours are counted too, which add up less noise (`counted_runs`).

Noise is in proportion to the parts of an epsilon, and to the root of those of a rho. A choice at
scale t is off by about t one way or the other, which has the square 2 t**2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain

import polars as pl

from dpframe.accounting.gaussian_noise import largest_rho
from dpframe.aggregates.bound import BoundAggregate, MeasurementUse, Noisy
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.chosen_together import ChosenTogether
from dpframe.aggregates.counted_runs import CountedRuns, best_runs, squares_of_cells
from dpframe.aggregates.error_rules import MOST_CELLS
from dpframe.aggregates.impact import choice_impact
from dpframe.aggregates.level_sums import LevelSums
from dpframe.aggregates.measurement import Additive, Table, counted
from dpframe.aggregates.quantile import BoundQuantile, QuantileChoice
from dpframe.aggregates.quantile_table import CountedQuantile
from dpframe.aggregates.quantile_tree import QuantileTree, levels_for
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.aggregates.query import Query
from dpframe.aggregates.request import QueryScope
from dpframe.core.budget import ZCDP, Budget

__all__ = ["answer_together"]

_MOST_PARTS = 10**6
"""Of quantiles that are chosen together: the least common denominator."""
_MOST_COUNTS = 1 << 18
"""Of numbers that quantiles of all groups are read off."""
_WORTH = 1.1
"""The factor by which the sum of squared errors must fall; otherwise choices stay separate, which
are easier to explain."""
_SLOWER = 1.15
"""The further factor for quantiles at once. They take ten times as long to draw, and where rows
are in few places their errors exceed the expected ones more (docs/benchmarks.md)."""
_FLIPS = Fraction(1, 2)
"""Permute-and-flip has no larger error than the exponential mechanism, and at least half as
much."""
MOST_AT_ONCE, _MOST_GROUPS = 12, 64
"""Of quantiles that are chosen at once, and of groups in which they are: it takes milliseconds
each."""
_SHARPEST, _WIDEST = 0.25, 2000.0
"""Scales in rows, between which that is offered: sharper ones gain nothing and would need more
places for rows that tie; how long it takes grows with the scale."""
_MOST_EPSILON = Fraction(10**4)

Family = tuple[PointCells | PositionCells, Fraction]
Join = Callable[[BoundQuantile], BoundAggregate]


@dataclass(frozen=True, slots=True, eq=False)
class JointQuantile(BoundQuantile):
    """Quantiles that are chosen together with others.

    Parameters
    ----------
    places
        Which of the chosen ones are its own.
    """

    places: tuple[int, ...] = ()

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        (codes,) = values
        own = [codes[:, place] for place in self.places]
        return super(JointQuantile, self).combine(own)


@dataclass(frozen=True, slots=True)
class _Squares:
    """The sum of squared errors in ranks, at an epsilon of 1 and at a rho of 1."""

    of_epsilon: float
    of_rho: float

    def at(self, spend: Budget) -> float:
        """The least that a spend buys."""
        if isinstance(spend, ZCDP):
            return self.of_rho / float(spend.main)
        pure = self.of_epsilon / float(spend.main) ** 2
        if not spend.slack:
            return pure
        epsilon = min(spend.main, _MOST_EPSILON)
        return min(pure, self.of_rho / float(largest_rho(epsilon, math.log(spend.slack))))


def answer_together(query: Query, spend: Budget) -> Query:
    """The query with the quantiles of one column answered jointly where that has a smaller error.
    They must share their candidates and weight, and name no mechanism.
    """
    families: dict[Family, list[BoundQuantile]] = {}
    for aggregate in query.aggregates:
        if isinstance(aggregate, BoundQuantile) and aggregate.request.mechanism == "auto":
            families.setdefault((aggregate.cells, aggregate.request.weight), []).append(aggregate)
    joined: dict[int, BoundAggregate] = {}
    for members in families.values():
        join = _best_way(members, query.scope, spend)
        if join is not None:
            joined |= {id(member): join(member) for member in members}
    if not joined:
        return query
    outputs = []
    for output in query.outputs:
        found: Mapping[str, BoundAggregate] = {
            name: joined.get(id(aggregate), aggregate)
            for name, aggregate in output.aggregates.items()
        }
        outputs.append(replace(output, aggregates=found))
    return replace(query, outputs=tuple(outputs))


def _best_way(members: Sequence[BoundQuantile], scope: QueryScope, spend: Budget) -> Join | None:
    """The way with the least expected error; None for separate choices."""
    cells = members[0].cells
    quantiles = tuple(sorted({*chain.from_iterable(member.quantiles for member in members)}))
    apart = [QuantileChoice(cells, q) for q in quantiles]
    if len(quantiles) < 2 or not spend.main or apart[0].sensitivity(scope).is_zero:
        return None
    error = _apart(apart, scope).at(spend)
    ways: list[tuple[float, Join]] = []
    if math.lcm(*(q.denominator for q in quantiles)) <= _MOST_PARTS:
        trees = [(_tree(tree, scope).at(spend), tree) for tree in _trees(cells, quantiles)]
        least, tree = min(trees, key=lambda found: found[0])
        tree = replace(tree, why=_why_tree(tree, _ratio(error, least)))
        repeats = tree.rounds if isinstance(spend, ZCDP) else tree.rounds**2
        ways.append((least, lambda member: _chosen(member, tree, repeats)))
    inner = quantiles[0] > 0 and quantiles[-1] < 1  # the ends are below and above all rows
    if (
        inner
        and cells.size <= MOST_CELLS
        and Additive(counted(cells)).entries(scope) <= _MOST_COUNTS
    ):
        ways.append(_by_counts(cells, quantiles, scope, spend, error))
    once = _at_once(cells, quantiles, scope, spend)
    if once is not None:
        joint = replace(
            once, why=_why_at_once(once, _ratio(error, _squares(once, scope).at(spend)))
        )
        found = _squares(once, scope).at(spend) * _SLOWER
        ways.append((found, lambda member: _chosen(member, joint, 1)))
    if not ways:
        return None
    least, join = min(ways, key=lambda way: way[0])
    return join if least * _WORTH < error else None


def _chosen(member: BoundQuantile, part: ChosenTogether, repeats: int) -> JointQuantile:
    impact = choice_impact(part.candidates) * repeats * len(member.quantiles)
    return JointQuantile(
        member.request,
        (MeasurementUse(part, "quantile", impact, is_shared=False),),
        member.value,
        member.cells,
        member.quantiles,
        member.bounds,
        member.q,
        tuple(part.quantiles.index(q) for q in member.quantiles),
    )


def _by_counts(
    cells: PointCells | PositionCells,
    quantiles: tuple[Fraction, ...],
    scope: QueryScope,
    spend: Budget,
    error: float,
) -> tuple[float, Join]:
    """Quantiles that are read off counts of cells, and of runs where these gain something.

    They are compared with other ways as if cells were counted alone: among more candidates than
    that allows, one choice of all has a smaller error on rows that leave most of them empty.
    """
    counts = Additive(counted(cells))
    least = _counts(counts, quantiles, scope).at(spend)
    runs, left = _runs_beside(counts, quantiles, scope, spend)
    why = _why_counts(cells.size, _ratio(error, least * left), runs)
    return least, lambda member: _from_counts(member, counts, runs, why)


def _from_counts(
    member: BoundQuantile, counts: Additive, runs: CountedRuns | None, why: str
) -> CountedQuantile:
    """The squared error of a rank is q (1 - q) of that of all counts together, and a count's
    impact is 1."""
    spread = sum((q * (1 - q) for q in member.quantiles), Fraction(0))
    impact = max(Fraction(1), spread * member.cells.size)
    alone = (MeasurementUse(counts, "quantile.counts", impact, is_shared=False),)
    uses = alone if runs is None else _levels(counts.table, runs, impact)
    return CountedQuantile(
        member.request,
        uses,
        member.value,
        member.cells,
        member.quantiles,
        member.bounds,
        member.q,
        why,
        runs,
    )


def _runs_beside(
    counts: Additive, quantiles: tuple[Fraction, ...], scope: QueryScope, spend: Budget
) -> tuple[CountedRuns | None, float]:
    """The runs to count in addition to cells where epsilons are shared, and the remaining part of
    the squared error. None where that gains nothing, or one individual moves sums by more than
    cells.
    """
    cells = counts.tables[0].cells
    assert cells is not None
    if isinstance(spend, ZCDP) or spend.slack:
        return None, 1.0
    moved = counts.sensitivity(scope).l1
    scale = moved / spend.main
    runs = best_runs(cells.size, quantiles, scale)
    if runs is None:
        return None, 1.0
    levels = _levels(counts.table, runs, Fraction(1))
    if any(use.part.sensitivity(scope).l1 != moved for use in levels):
        return None, 1.0
    alone = squares_of_cells(cells.size, quantiles, scale)
    return runs, runs.squares(quantiles, scale) / alone


def _levels(table: Table, runs: CountedRuns, impact: Fraction) -> tuple[MeasurementUse, ...]:
    """Runs and cells, which share the cost as they should: impacts are cubes of what they get."""
    return tuple(
        MeasurementUse(
            LevelSums(table, runs.width, level),
            "quantile.counts",
            impact * share**3,
            share,
            is_shared=False,
        )
        for level, share in ((1, runs.share), (2, 1 - runs.share))
    )


def _apart(choices: Sequence[QuantileChoice], scope: QueryScope) -> _Squares:
    n = len(choices)
    pure, rho = Fraction(0), Fraction(0)
    for choice in choices:
        moved, squared = choice.score_range(scope), choice.step**2
        flips = 1 if choice.weighted else _FLIPS
        pure += (moved.l1 * flips * n) ** 2 * squared
        rho += moved.l2_squared * n * squared / 8
    return _Squares(float(2 * pure), float(2 * rho))


def _trees(
    cells: PointCells | PositionCells, quantiles: tuple[Fraction, ...]
) -> Iterator[QuantileTree]:
    """Trees of few levels: more of them leave room for choices near the middle of their rows."""
    fewest = len(quantiles).bit_length()
    for depth in range(fewest, min(fewest + 2, len(quantiles)) + 1):
        yield QuantileTree(cells, quantiles, levels_for(quantiles, depth))


def _tree(tree: QuantileTree, scope: QueryScope) -> _Squares:
    """As the spans of choices say, in multiples of that of a choice with a span of 1."""
    moved, widest = tree.score_range(scope), max(tree.spans(scope)) / tree.step
    squares = sum(error * error for error in tree.expected(scope))
    pure = float((moved.l1 / widest * tree.rounds) ** 2)
    rho = float(moved.l2_squared / widest**2 * tree.rounds / 8)
    return _Squares(2 * squares * pure, 2 * squares * rho)


def _at_once(
    cells: PointCells | PositionCells,
    quantiles: tuple[Fraction, ...],
    scope: QueryScope,
    spend: Budget,
) -> QuantilesAtOnce | None:
    """All by one choice, where that can be drawn in good time; None elsewhere.

    Between listed candidates many rows may lie, so that ranks may all be far from what they should
    be; of points, some place of each has any rank.
    """
    groups = 1 if scope.entries is None else scope.entries
    if not isinstance(cells, PointCells) or len(quantiles) > MOST_AT_ONCE:
        return None
    part = QuantilesAtOnce(cells, quantiles)
    if part.row > _MOST_PARTS or groups > _MOST_GROUPS:
        return None
    scale = math.sqrt(_squares(part, scope).at(spend) / part.expected())
    return part if _SHARPEST <= scale <= _WIDEST else None


def _squares(part: QuantilesAtOnce, scope: QueryScope) -> _Squares:
    moved, squares = part.score_range(scope), part.expected() * float(part.step**2)
    return _Squares(squares * float(moved.l1**2), squares * float(moved.l2_squared / 8))


def _counts(counts: Additive, quantiles: Sequence[Fraction], scope: QueryScope) -> _Squares:
    moved, cells = counts.sensitivity(scope), counts.tables[0].cells
    assert cells is not None
    squares = cells.size * sum((q * (1 - q) for q in quantiles), Fraction(0))
    return _Squares(float(2 * moved.l1**2 * squares), float(moved.l2_squared * squares / 2))


def _ratio(error: float, least: float) -> str:
    return f"{math.sqrt(error / least) if least else math.inf:.2g}"


def _why_tree(tree: QuantileTree, gain: str) -> str:
    return (
        f"a level costs once, as a row is on one side of each choice: {tree.rounds} levels have "
        f"about {gain} times less error than {tree.chosen} choices apart"
    )


def _why_at_once(part: QuantilesAtOnce, gain: str) -> str:
    return (
        f"one choice of all {part.chosen} pays once and has about {gain} times less error than "
        "choices apart"
    )


def _why_counts(cells: int, gain: str, runs: CountedRuns | None) -> str:
    beside = "" if runs is None else f", and sums of {runs.width} neighbours each,"
    return f"{cells} counts{beside} have about {gain} times less error than choices apart"
