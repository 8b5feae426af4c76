"""Disjoint parts of protected rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

from dpframe import pipeline
from dpframe.api.arguments import flat, require_rows
from dpframe.api.parameters import with_parameters
from dpframe.api.protected_keys import refuse_protected_keys
from dpframe.api.protected_rows import ProtectedRows
from dpframe.core.windows import as_every
from dpframe.errors import UnsupportedOperation
from dpframe.frames.delays import Delay, Waits
from dpframe.frames.relation import Relation
from dpframe.ledger.scopes import Level


def divide(
    rows: ProtectedRows,
    by: Any,
    keys: Any,
    every: str | None,
    delay: str | dt.timedelta | None,
) -> dict[Any, tuple[Relation, Level]]:
    """Disjoint parts of a frame, by public key, and their names in ledgers.

    Raises
    ------
    MissingKeys
        When keys would have to be read from private data.
    UnsupportedOperation
        For unknown periods or delays.
    """
    where = "partition(..., every=...)"
    period = as_every("1d" if every is None else every, where)
    if every is not None and delay is None:
        raise UnsupportedOperation(
            "every= needs a delay: parts without one wait for nothing",
            where=where,
            remedy=("leave every= out", 'write how long parts wait: delay="2d"'),
        )
    waits = None if delay is None else Waits(period, Delay.of(delay))
    given = flat([by])
    require_rows(given, "partition")
    refuse_protected_keys(keys, rows.source, "partition(..., keys=...)")
    public = with_parameters(keys)
    return pipeline.divide(rows.relation, given, public, waits, rows.source.is_fixed)
