"""The ways in which a query can be measured, where what is best rests on the spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.quantile_family import answer_together
from dpframe.aggregates.query import Query
from dpframe.aggregates.related import RelatedAggregate
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.aggregates.rolled_distribution import RolledDistribution
from dpframe.aggregates.totalled_cells import TotalledCells
from dpframe.aggregates.totalled_levels import TotalledLevels
from dpframe.core.budget import ApproxDP, Budget, PureDP
from dpframe.core.edition import is_edition_before
from dpframe.workloads import Degree

__all__ = ["ways_to_measure"]

_MEASURED = (
    RolledAggregate,
    RolledDistribution,
    BoundDistribution,
    RelatedAggregate,
    TotalledCells,
    TotalledLevels,
)
"""Aggregates rebuilt from parts that depend on how a spend is shared."""


def ways_to_measure(query: Query, spend: Budget) -> list[Query]:
    """The best query to measure if shares of the spend are epsilons, or amounts of rho; both if
    that is unknown, and the query itself if that makes no difference. Several quantiles of one
    column are answered together where that has a smaller error.
    """
    query = answer_together(query, spend)
    if not any(isinstance(a, _MEASURED) for a in query.aggregates):
        return [query]
    degrees: tuple[Degree, ...] = (1,)
    if isinstance(spend, (PureDP, ApproxDP)):
        degrees = (2, 1) if spend.slack else (2,)
    ways = [_measured(query, degree) for degree in degrees]
    roots: list[Query] = []
    if len(degrees) > 1:  # many parts may be composed better than one: both are compared
        roots = [way for way in ways[1:] if any(map(_is_root, way.aggregates))]
    if roots or is_edition_before():
        ways = [_changed(way, _as_tree) for way in ways]
    if is_edition_before():
        roots = []
    own = [made for way in ways if (made := _with_own_totals(way)) is not way]
    return [*ways, *own, *map(_of_finest, own), *roots]


def _is_root(aggregate: BoundAggregate) -> bool:
    """Whether it is measured by the square root factorisation."""
    return isinstance(aggregate, BoundDistribution) and aggregate.is_root


def _as_tree(aggregate: BoundAggregate) -> BoundAggregate:
    """The aggregate measured by levels of a tree, where it is by the square root factorisation."""
    if isinstance(aggregate, BoundDistribution) and aggregate.is_root:
        return replace(aggregate, root_norm=None).by(aggregate.degree)
    return aggregate


def _with_own_totals(query: Query) -> Query:
    """The query where totals of grouping sets are tables separately, where that lets them be
    drawn jointly with others.
    """
    rolled = [a for a in query.aggregates if isinstance(a, RolledAggregate)]
    tables = {table for a in rolled for use in a.inner.uses for table in use.part.tables}
    if len(tables) < 2 or all(a.own_totals is None for a in rolled):
        return query
    return _changed(query, lambda a: a.with_own_totals() if isinstance(a, RolledAggregate) else a)


def _of_finest(query: Query) -> Query:
    """The query where larger groups are added up from the finest of grouping sets alone. Shares
    are the best for each part on its own, but parts may have smaller errors if they are drawn
    jointly at the whole spend.
    """
    return _changed(query, lambda a: _added_up(a) if isinstance(a, RolledAggregate) else a)


def _added_up(rolled: RolledAggregate) -> RolledAggregate:
    finest = {
        degree: tuple(strategy.of_finest() for strategy in used)
        for degree, used in rolled.strategies.items()
    }
    return replace(rolled, strategies=finest).by(rolled.degree)


def _measured(query: Query, degree: Degree) -> Query:
    return _changed(query, lambda a: a.by(degree) if isinstance(a, _MEASURED) else a)


def _changed(query: Query, change: Callable[[BoundAggregate], BoundAggregate]) -> Query:
    """The query with changed aggregates."""
    outputs = [
        replace(output, aggregates={p: change(a) for p, a in output.aggregates.items()})
        for output in query.outputs
    ]
    return replace(query, outputs=tuple(outputs))
