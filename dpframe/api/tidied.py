"""What `collect` does to a result before it is handed out: sorting, and shares of the total.

It is post-processing of what was released, and no part of a plan. A `Release` keeps the order of
the groups, by which it is read and combined with others.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dpframe.errors import UnsupportedOperation

COUNT = "count"
"""What counts are called in plans where shares of them are handed out."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """How counts of values are handed out.

    Parameters
    ----------
    counts
        The column of counts.
    by_size
        Whether the largest come first.
    share
        What shares of the sum of all counts are called, which then stand in their place.
    """

    counts: str
    by_size: bool = False
    share: str | None = None

    def require_no_interval(self, interval: object) -> None:
        """Refuse intervals of shares, whose errors are unknown.

        Raises
        ------
        UnsupportedOperation
            When intervals are requested.
        """
        if self.share is not None and interval is not None:
            raise UnsupportedOperation(
                "shares of a noisy total have no interval",
                where="value_counts(normalize=True).collect(interval=...)",
                remedy=("leave interval= out", "collect the counts: value_counts(column)"),
            )

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The result in its public form."""
        if self.by_size:
            frame = frame.sort(self.counts, descending=True, maintain_order=True)
        if self.share is None:
            return frame
        total = float(frame[self.counts].sum())
        share = pl.col(self.counts) / total if total > 0 else pl.lit(None, dtype=pl.Float64)
        return frame.with_columns(share.alias(self.counts)).rename({self.counts: self.share})
