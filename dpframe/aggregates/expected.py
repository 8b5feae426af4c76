"""Expected errors of additive aggregates, however they are measured, to compare ways to do so."""

from __future__ import annotations

from fractions import Fraction

from dpframe.aggregates.bound import BoundAggregate, Laws, MeasurementKey
from dpframe.aggregates.margin_strategy import table_wanted
from dpframe.aggregates.related import RelatedAggregate
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.mechanisms import AdditiveMechanism

__all__ = ["expected_squared_error"]


def expected_squared_error(aggregate: BoundAggregate, scope: QueryScope, laws: Laws) -> float:
    """The sum over the parts of an aggregate, and its grouping sets, of their mean squared errors,
    each by its effect and relative to what one individual adds to it.

    Parameters
    ----------
    aggregate
        One all of whose parts are sums over rows.
    scope
        Where it is asked.
    laws
        The noise of each of its parts by itself.
    """
    if isinstance(aggregate, RelatedAggregate):
        return aggregate.expected_error(laws)
    if not isinstance(aggregate, RolledAggregate):
        return sum(
            _relative(use.impact, use.part.sensitivity(scope).linf) * _variance(laws, key)
            for use, key in zip(aggregate.uses, aggregate.keys, strict=True)
        )
    total, start, columns = 0.0, 0, len(aggregate.groups.by)
    for use, strategy in zip(aggregate.inner.uses, aggregate.used, strict=True):
        end = start + len(strategy.parts)
        noise = [_variance(laws, key) for key in aggregate.keys[start:end]]
        start = end
        effect = _relative(use.impact, use.part.sensitivity(scope).linf)
        for kept in aggregate.groups.sets:
            total += effect * strategy.error(table_wanted(kept, columns), noise)
    return total


def _relative(impact: Fraction, linf: Fraction) -> float:
    return float(impact / linf**2)


def _variance(laws: Laws, key: MeasurementKey) -> float:
    law = laws[key]
    assert isinstance(law, AdditiveMechanism)
    return law.variance()
