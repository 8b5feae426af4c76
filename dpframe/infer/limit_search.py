"""A limit that is to be found when a query runs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.aggregate import Query


@dataclass(frozen=True, slots=True, eq=False)
class LimitSearch:
    """The limit that a query lacks, and the query under each that may be found.

    Parameters
    ----------
    step
        The verb that limits: ``"limit_rows"`` or ``"limit_groups"``.
    by
        The columns that it is given.
    search
        A histogram of how many rows or groups individuals have, whose bins end at the limits.
    limits
        At which the bins of the histogram end, in rising order; public.
    queries
        The query under each limit that may be found, and its companions: under all of `limits`,
        or the first of them.
    weights
        The cost of each of these relative to the others; None for the default.
    """

    step: str
    by: tuple[str, ...]
    search: Query
    limits: tuple[int, ...]
    queries: tuple[tuple[Query, ...], ...]
    weights: tuple[Fraction, ...] | None = None
