"""All aggregates, and how the request is bound to them."""

from __future__ import annotations

from types import MappingProxyType

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate
from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.bounds_search import Bounds
from dpframe.aggregates.cdf import DistributionFunction
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.histogram import Histogram
from dpframe.aggregates.keys import require_adds_up
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.quantile import Quantile
from dpframe.aggregates.ratio import Ratio
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.sum import Sum
from dpframe.errors import DPFrameError, require

AGGREGATES: tuple[type[Aggregate], ...] = (
    Count,
    Sum,
    Mean,
    Variance,
    StandardDeviation,
    Ratio,
    Quantile,
    DistinctValues,
    Histogram,
    DistributionFunction,
    Argmax,
    Bounds,
)

BY_KIND = MappingProxyType({aggregate.kind: aggregate for aggregate in AGGREGATES})


def bind(request: Request, scope: QueryScope) -> BoundAggregate:
    """The request, as an aggregate of a frame. Raises `DPFrameError` when it is refused, before any
    data is touched.
    """
    aggregate = request.aggregate
    assert isinstance(aggregate, Aggregate)
    known = request.mechanism in aggregate.mechanisms
    require(known, f"a {request.kind} can be released by the mechanism {request.mechanism!r}")
    try:
        bound = aggregate.bind(request, scope)
        require_adds_up(bound, scope)
    except DPFrameError as error:
        raise error.at(request.name) from None
    return bound
