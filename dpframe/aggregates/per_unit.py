"""Whether an aggregate is over rows or over individuals, as `per=` says."""

from __future__ import annotations

from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.statistics import GridSum, SquareSum, Statistic, ValueCount
from dpframe.aggregates.unit_statistics import UnitTotal
from dpframe.core.dtypes import DType
from dpframe.core.units import Identifier
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.rows.fold import words

__all__ = ["is_per_unit", "require_rows_scored", "total_of"]


_BEFORE = {"quantile": "0.5, ", "histogram": "10, bounds="}


def is_per_unit(
    request: Request, scope: QueryScope, per: Per, bounds: GivenBounds, dtype: DType | None = None
) -> bool:
    """Whether it is over individuals; False where each has one row, which is the same.

    Raises
    ------
    UnsupportedOperation
        When no identifier says who owns the rows, or a total of the type has no meaning.
    UnboundedSensitivity
        When totals have no bounds.
    """
    if per != "unit":
        return False
    what = "" if request.tree is None else f"{words(request.tree)}."
    method = request.aggregate.method
    where = f'{what}dp_{method}(per="unit")'
    if not isinstance(scope.facts.unit, Identifier):
        if scope.spread.rows == 1:
            return False
        raise UnsupportedOperation(
            'per="unit" needs an identifier of individuals, and unit=dp.Rows() has none',
            where=where,
            remedy=('write per="row"', 'protect the frame with unit="user_id"'),
        )
    if dtype is not None and dtype.is_temporal and dtype.name != "Duration":
        raise UnsupportedOperation(
            f"values of type {dtype} have no total",
            where=where,
            remedy='use per="row"',
        )
    if bounds is None:
        raise UnboundedSensitivity(
            "the total of an individual has no known bounds",
            where=where,
            remedy=f'write {what}dp_{method}({_BEFORE.get(method, "")}(low, high), per="unit")'
            if request.kind != "count"
            else 'write dp.count(per="unit", bounds=(0, n))',
        )
    return True


def require_rows_scored(request: Request, scope: QueryScope, per: Per, bounds: GivenBounds) -> None:
    """Refuse totals of individuals as scores of candidates.

    Raises
    ------
    UnsupportedOperation
        When it is over individuals.
    """
    if is_per_unit(request, scope, per, bounds):
        raise UnsupportedOperation(
            "dp_argmax() scores candidates by rows, not by totals of individuals",
            where="dp_argmax(score=...)",
            remedy='leave per="unit" out, and limit what one individual adds with .limit_rows(n)',
        )


def total_of(statistic: GridSum | SquareSum, per_unit: bool) -> Statistic:
    """The statistic of rows, or of totals."""
    if per_unit:
        statistic.value.require_totals()
    return UnitTotal(statistic) if per_unit else statistic


def rows_of(statistic: Statistic) -> GridSum | SquareSum | ValueCount:
    """The statistic of rows that one of totals is made of."""
    found = statistic.of if isinstance(statistic, UnitTotal) else statistic
    assert isinstance(found, (GridSum, SquareSum, ValueCount))
    return found
