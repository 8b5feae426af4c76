"""The ways in which a query can be measured, where what is best rests on the spend."""

from __future__ import annotations

from dataclasses import replace

from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.quantile_family import answer_together
from dpframe.aggregates.query import Query
from dpframe.aggregates.related import RelatedAggregate
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.aggregates.rolled_distribution import RolledDistribution
from dpframe.aggregates.totalled_cells import TotalledCells
from dpframe.aggregates.totalled_levels import TotalledLevels
from dpframe.core.budget import ApproxDP, Budget, PureDP
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
"""What is rebuilt from parts that are best for how a spend is shared."""


def ways_to_measure(query: Query, spend: Budget) -> list[Query]:
    """The query as it is measured best where shares of the spend are epsilons, or amounts of rho;
    both where it is not known which, and the query itself where that makes no difference. Several
    quantiles of one column are answered together where that errs less.
    """
    query = answer_together(query, spend)
    if not any(isinstance(a, _MEASURED) for a in query.aggregates):
        return [query]
    degrees: tuple[Degree, ...] = (1,)
    if isinstance(spend, (PureDP, ApproxDP)):
        degrees = (2, 1) if spend.slack else (2,)
    return [_measured(query, degree) for degree in degrees]


def _measured(query: Query, degree: Degree) -> Query:
    outputs = []
    for output in query.outputs:
        made = {
            p: a.by(degree) if isinstance(a, _MEASURED) else a for p, a in output.aggregates.items()
        }
        outputs.append(replace(output, aggregates=made))
    return replace(query, outputs=tuple(outputs))
