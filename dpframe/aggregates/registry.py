"""All aggregates."""

from __future__ import annotations

from types import MappingProxyType

from dpframe.aggregates.aggregate import Aggregate
from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.bounds_search import Bounds
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.histogram import Histogram
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.quantile import Quantile
from dpframe.aggregates.sum import Sum

AGGREGATES: tuple[Aggregate, ...] = (
    Count(),
    Sum(),
    Mean(),
    Variance(),
    StandardDeviation(),
    Quantile(),
    DistinctValues(),
    Histogram(),
    Argmax(),
    Bounds(),
)

BY_KIND = MappingProxyType({aggregate.kind: aggregate for aggregate in AGGREGATES})
