"""A limit that is to be found when a query runs."""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.aggregates.query import Query


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
        Which limits may be found, in rising order; public.
    queries
        The query under each.
    """

    step: str
    by: tuple[str, ...]
    search: Query
    limits: tuple[int, ...]
    queries: tuple[Query, ...]
