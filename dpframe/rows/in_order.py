"""Columns of whole numbers in their order.

NumPy sorts with AVX-512 wherever a processor has it, and on some, AMD's of the family 25 among
them, its instructions take five times as long as the plain ones: 56 ns a number where 11 would do.
Polars takes 16 ns on all. One thread takes little more than half of what all threads together do.
"""

from __future__ import annotations

import polars as pl


def in_order(numbers: pl.Series) -> pl.Series:
    """Integers without nulls, sorted."""
    return numbers.sort(multithreaded=False)
