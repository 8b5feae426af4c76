"""The ways in which a query can be measured, where what is best rests on the spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from dpframe.aggregates.bound import Laws
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.quantile_family import answer_together
from dpframe.aggregates.query import Query
from dpframe.aggregates.related import RelatedAggregate
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.aggregates.totalled_cells import TotalledCells
from dpframe.aggregates.totalled_levels import TotalledLevels
from dpframe.core.budget import ApproxDP, Budget, PureDP
from dpframe.workloads import Degree

__all__ = ["least_expected", "ways_to_measure"]

_MEASURED = (
    RolledAggregate,
    BoundDistribution,
    RelatedAggregate,
    TotalledCells,
    TotalledLevels,
)
"""What is rebuilt from parts that are best for how a spend is shared."""


class _Planned(Protocol):
    @property
    def query(self) -> Query: ...

    @property
    def laws(self) -> Laws: ...


P = TypeVar("P", bound=_Planned)


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


def least_expected(plans: Sequence[tuple[P, ...]]) -> tuple[P, ...]:
    """The plans whose outputs err least together; all are of the same queries, measured in some
    way.
    """

    def error(found: tuple[P, ...]) -> float:
        return sum(
            aggregate.expected_error(plan.laws)
            for plan in found
            for aggregate in plan.query.aggregates
            if isinstance(aggregate, _MEASURED)
        )

    return plans[0] if len(plans) == 1 else min(plans, key=error)


def _measured(query: Query, degree: Degree) -> Query:
    outputs = []
    for output in query.outputs:
        made = {
            p: a.by(degree) if isinstance(a, _MEASURED) else a for p, a in output.aggregates.items()
        }
        outputs.append(replace(output, aggregates=made))
    return replace(query, outputs=tuple(outputs))
