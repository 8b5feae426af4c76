"""Changes that `collect` makes to a result before it returns it: sorting, choosing rows, new
columns. They are post-processing, so they cost nothing and are not part of a plan. A `Release`
keeps the groups in their order, because it is read and combined by that order.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.errors import DPFrameError, ResultWarning, UnknownColumn, UnsupportedOperation
from dpframe.release import made_up_result
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean

COUNT = "count"
"""The name of the counts in the plan of a query that returns their shares."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a result.

    Parameters
    ----------
    words
        What the analyst wrote, such as ``.sort(...)``.
    of
        Makes the new result from the old one.
    """

    words: str
    of: Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to a result before it is returned.

    Parameters
    ----------
    steps
        The changes, in order.
    shares
        Whether counts became shares of their total, which have no intervals.
    whole
        Whether the query may be released without these changes.
    """

    steps: tuple[Change, ...] = ()
    shares: bool = False
    whole: bool = True

    def then(self, step: Change, query: Query) -> Changes:
        """With one more change, which is tried on made-up numbers first.

        Raises
        ------
        UnknownColumn
            When the change names a column that the result does not have.
        UnsupportedOperation
            When Polars cannot make the change.
        """
        result = self.of(made_up_result(query))
        try:
            step.of(result)
        except pl.exceptions.ColumnNotFoundError as error:
            (name,) = re.findall(r'"([^"]*)"', str(error))[:1] or [""]
            raise UnknownColumn(
                f"the released result, which {step.words} changes, has no column {name!r}",
                where=f"query{step.words}",
                remedy=f"{did_you_mean(name, result.columns)}; or write it before the aggregates, "
                "where it is about private rows",
            ) from None
        except DPFrameError:
            raise UnsupportedOperation(
                f"{step.words} after the aggregates changes the released result, which dp "
                "expressions cannot",
                where=f"query{step.words}",
                remedy="put dp expressions into .agg(...)",
            ) from None
        except (*FAILURES, TypeError) as error:
            raise UnsupportedOperation(
                f"Polars cannot apply {step.words} to the released result ({type(error).__name__})",
                where=f"query{step.words}",
                remedy=f"the result has the columns {', '.join(result.columns)}: write what a "
                "Polars DataFrame of these takes",
            ) from None
        return replace(self, steps=(*self.steps, step), whole=False)

    def require_no_interval(self, interval: object) -> None:
        """Refuse intervals for shares of a noisy total.

        Raises
        ------
        UnsupportedOperation
            When an interval is requested for them.
        """
        if self.shares and interval is not None:
            raise UnsupportedOperation(
                "shares of a noisy total have no interval",
                where="value_counts(normalize=True).collect(interval=...)",
                remedy=("leave interval= out", "collect the counts: value_counts(column)"),
            )

    def require_whole(self) -> None:
        """Refuse a `Release`, which keeps the result as it was drawn.

        Raises
        ------
        UnsupportedOperation
            When the analyst changes the result.
        """
        if not self.whole:
            raise UnsupportedOperation(
                f"a release keeps its result as drawn, and {self.steps[-1].words} changes it",
                where="query.release(...)",
                remedy="use .collect(...); or release the query without it, and change `.frame`",
            )

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The changed result. A change that fails is left out with a warning, because the result
        was already charged.
        """
        for step in self.steps:
            try:
                frame = step.of(frame)
            except FAILURES as error:
                warnings.warn(
                    f"{step.words} failed on the released result ({type(error).__name__}); the "
                    "result comes without it",
                    ResultWarning,
                    stacklevel=2,
                )
                return frame
        return frame


def counts_of_values(counts: str, share: str | None, *, by_size: bool) -> Changes:
    """How `value_counts` hands out its result.

    Parameters
    ----------
    counts
        The column of counts.
    share
        What shares of the sum of all counts are called, which then stand in their place.
    by_size
        Whether the largest come first.
    """
    steps = []
    if by_size:
        steps.append(Change(".value_counts(sort=True)", lambda frame: _by_size(frame, counts)))
    if share is not None:
        steps.append(
            Change(".value_counts(normalize=True)", lambda frame: _shares(frame, counts, share))
        )
    return Changes(tuple(steps), shares=share is not None)


def _by_size(frame: pl.DataFrame, counts: str) -> pl.DataFrame:
    return frame.sort(counts, descending=True, maintain_order=True)


def _shares(frame: pl.DataFrame, counts: str, name: str) -> pl.DataFrame:
    total = float(frame[counts].sum())
    share = pl.col(counts) / total if total > 0 else pl.lit(None, dtype=pl.Float64)
    return frame.with_columns(share.alias(counts)).rename({counts: name})
