"""The charges of a ledger as a frame."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.budget import GDP, Budget
from dpframe.core.exact import nearest
from dpframe.ledger.account import Entry
from dpframe.ledger.scopes import WindowScope


def history_of(entries: Sequence[Entry], measure: type[Budget]) -> pl.DataFrame:
    """One row per charge, with amounts in the column of the measure's currency."""
    mains = [nearest(e.cost.main) for e in entries]
    none: list[float | None] = [None] * len(entries)
    amounts: dict[str, Sequence[float | None]] = {measure.currency: mains}
    columns = {
        "time": pl.Series([e.time for e in entries], dtype=pl.Datetime("us", "UTC")),
        "fingerprint": pl.Series([e.fingerprint for e in entries], dtype=pl.String),
        "epsilon": pl.Series(amounts.get("epsilon", none), dtype=pl.Float64),
        "delta": pl.Series([nearest(e.cost.slack) for e in entries], dtype=pl.Float64),
        "rho": pl.Series(amounts.get("rho", none), dtype=pl.Float64),
        "status": pl.Series([e.status for e in entries], dtype=pl.String),
        "user": pl.Series([e.caller.user for e in entries], dtype=pl.String),
        "host": pl.Series([e.caller.host for e in entries], dtype=pl.String),
        "process": pl.Series([e.caller.process for e in entries], dtype=pl.Int64),
        "job": pl.Series([e.caller.job for e in entries], dtype=pl.String),
        "run": pl.Series([e.caller.run for e in entries], dtype=pl.String),
    }
    if any(isinstance(e.scope, WindowScope) for e in entries):
        whole = [
            nearest(e.amounts[-1].main) if e.amounts else nearest(e.cost.main) for e in entries
        ]
        words = [
            e.scope.windows.words() if isinstance(e.scope, WindowScope) else None for e in entries
        ]
        columns["windows"] = pl.Series(words, dtype=pl.String)
        columns["in_each"] = pl.Series(whole, dtype=pl.Float64)
    if measure is GDP:
        columns["mu_squared"] = pl.Series(mains, dtype=pl.Float64)
    return pl.DataFrame(columns)
