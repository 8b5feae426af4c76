"""The one place in this package that makes a table (docs/decisions/0004-accounting-table.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpframe.accounting.comparison import bounds
from dpframe.accounting.events import AnyEvent
from dpframe.core.exact import Number

if TYPE_CHECKING:
    import polars as pl


def compare(events: Iterable[AnyEvent], delta: Number) -> pl.DataFrame:
    """Every bound on these events together, one row each.

    Parameters
    ----------
    events
        What happened, repeats included.
    delta
        A probability below 1.

    Returns
    -------
    pl.DataFrame
        With the columns ``method``, ``epsilon``, ``delta`` and ``valid_for``: ``"within one plan"``
        if all parameters must have been fixed before any noise was drawn, ``"across plans"`` if
        later events may depend on earlier results. Bounds that do not apply have no row.

    Raises
    ------
    InvalidBudget
        When delta is not a probability below 1, or something else than an event is listed.
    """
    import polars as pl

    found = bounds(events, delta)
    return pl.DataFrame(
        {
            "method": [bound.method for bound in found],
            "epsilon": [bound.epsilon for bound in found],
            "delta": [bound.delta for bound in found],
            "valid_for": [bound.valid_for for bound in found],
        },
        schema={
            "method": pl.String,
            "epsilon": pl.Float64,
            "delta": pl.Float64,
            "valid_for": pl.String,
        },
    )
