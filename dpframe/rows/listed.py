"""Values that a person listed, as a column of a given type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np
import polars as pl

from dpframe.core.dtypes import DType
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import to_polars


def listed(name: str, values: Sequence[Any], dtype: DType) -> pl.Series | None:
    """The values as a column that holds exactly them; None when some are not values of the type.

    Polars would take some for others: a moment for the millisecond before it, 1.5 for 1, 2**53 + 1
    for a float. Dates are midnights of moments without a zone, numbers are rounded to Float32 as in
    comparisons with it, zero has no sign, and NaN is no value. Categories are text.
    """
    stored: Any = pl.String() if dtype.name == "Categorical" else to_polars(dtype)
    given = list(values)
    if not dtype.is_boolean and not {bool, np.bool_}.isdisjoint(map(type, given)):
        return None
    try:
        if dtype.name == "Datetime" and dtype.zone is None:
            given = [datetime.combine(v, time()) if type(v) is date else v for v in given]
        if dtype.is_float:
            given = [None if v is None else _real(v, dtype) for v in given]
        made = pl.Series(name, given, dtype=stored, strict=True)
        same = made.dtype == stored and made.to_list() == given
    except FAILURES:  # of Polars, which panics at some Decimals
        return None
    return made if same else None


def _real(value: Any, dtype: DType) -> Any:
    """A number as a column of floats holds it, without the sign of a zero.

    Raises
    ------
    TypeError, ValueError
        When it is no number, or NaN.
    """
    if isinstance(value, str) or value != value:
        raise ValueError("not a number")
    return float(np.float32(value)) + 0.0 if dtype.name == "Float32" else value + 0
