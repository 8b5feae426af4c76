"""Expected errors of aggregates, however they are measured, to compare ways to do so."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.aggregates.bound import BoundAggregate, Laws, MeasurementKey, MeasurementUse
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.margin_strategy import table_wanted
from dpframe.aggregates.related import RelatedAggregate
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.aggregates.rolled_distribution import RolledDistribution
from dpframe.aggregates.totalled_cells import TotalledCells
from dpframe.aggregates.totalled_levels import TotalledLevels
from dpframe.mechanisms import AdditiveMechanism

__all__ = ["expected_squared_error"]


def expected_squared_error(aggregate: BoundAggregate, scope: QueryScope, laws: Laws) -> float:
    """The sum over the parts of an aggregate, and its grouping sets, of their mean squared errors,
    each by its effect and relative to what one individual adds to it.

    Parameters
    ----------
    aggregate
        Of selections what is expected of their score.
    scope
        The scope of the query.
    laws
        The noise of each of its parts on its own.
    """
    if isinstance(aggregate, RelatedAggregate):
        return aggregate.expected_error(laws)
    if isinstance(aggregate, TotalledCells):
        (use,) = aggregate.inner.uses
        return _relative(use, scope) * aggregate.expected_error(laws)
    if isinstance(aggregate, (BoundDistribution, RolledDistribution)):
        return aggregate.expected_error(laws)
    if isinstance(aggregate, TotalledLevels):
        found = aggregate.expected_error(laws)
        if isinstance(aggregate.inner, BoundDistribution):
            return found
        (use,) = aggregate.inner.uses
        return _relative(use, scope) * found
    if not isinstance(aggregate, RolledAggregate):
        return sum(
            _relative(use, scope) * _squared(laws, key, scope)
            for use, key in zip(aggregate.uses, aggregate.keys, strict=True)
        )
    total, start, columns = 0.0, 0, len(aggregate.axes.sizes)
    for use, strategy in zip(aggregate.inner.uses, aggregate.used, strict=True):
        end = start + len(strategy.parts)
        noise = [_squared(laws, key, scope) for key in aggregate.keys[start:end]]
        start = end
        effect = _relative(use, scope)
        for kept in aggregate.axes.sets:
            total += effect * strategy.error(table_wanted(kept, columns), noise)
    return total


def _relative(use: MeasurementUse, scope: QueryScope) -> float:
    """What an error of a part does, relative to what one individual can."""
    linf = use.part.sensitivity(scope).linf
    return float(use.impact / (linf or Fraction(1)) ** 2)


def _squared(laws: Laws, key: MeasurementKey, scope: QueryScope) -> float:
    law, (part, mechanism) = laws[key], key
    if isinstance(law, AdditiveMechanism):
        return law.variance()
    task = part.task("", part.sensitivity(scope), mechanism, scope)
    return math.exp(2.0 * law.log_noise(task.alternatives))
