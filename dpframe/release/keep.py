"""How results are stored, as the code that runs queries sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from dpframe.ledger.ledger import Beginning
from dpframe.release.doubts import Doubt

Doubts: TypeAlias = "tuple[tuple[Doubt, ...], ...]"

Written: TypeAlias = "Callable[[int, Sequence[pl.DataFrame], Doubts, int | None], str | None]"


@dataclass(frozen=True, slots=True)
class Keep:
    """Results to be stored.

    Parameters
    ----------
    beginning
        The record that is written together with the charge.
    write
        Stores the results of a charge, by its number, with doubts about them and the limit that
        the query found. Returns the digest of the content; None if it could not be stored.
    """

    beginning: Beginning
    write: Written
