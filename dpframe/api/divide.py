"""Disjoint parts of protected rows."""

from __future__ import annotations

from typing import Any

from dpframe import pipeline
from dpframe.api.arguments import flat, require_rows
from dpframe.api.parameters import with_parameters
from dpframe.api.protected_keys import refuse_protected_keys
from dpframe.api.protected_rows import ProtectedRows
from dpframe.frames.relation import Relation
from dpframe.ledger.scopes import Level


def divide(rows: ProtectedRows, by: Any, keys: Any) -> dict[Any, tuple[Relation, Level]]:
    """Disjoint parts of a frame, by public key, and how ledgers tell them from others.

    Raises
    ------
    MissingKeys
        When keys would have to be read from private data.
    """
    given = flat([by])
    require_rows(given, "partition")
    refuse_protected_keys(keys, rows.source, "partition(..., keys=...)")
    return pipeline.divide(rows.relation, given, with_parameters(keys))
