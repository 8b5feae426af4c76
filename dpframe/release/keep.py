"""What becomes of results that are kept, as those see it who run queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from dpframe.ledger.keeping import Beginning
from dpframe.release.doubts import Doubt

Doubts: TypeAlias = "tuple[tuple[Doubt, ...], ...]"

Written: TypeAlias = "Callable[[int, Sequence[pl.DataFrame], Doubts, int | None], str | None]"


@dataclass(frozen=True, slots=True)
class Keep:
    """Results that are to be kept.

    Parameters
    ----------
    beginning
        What is recorded together with the charge.
    write
        Keeps the results of a charge, by its number, with doubts about them and the limit that
        was found; returns the digest of the content, None if it could not be kept.
    """

    beginning: Beginning
    write: Written
