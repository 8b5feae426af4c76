"""Public data that come with dpframe, to try it on: ``dp.examples.adult()``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

__all__ = ["adult"]


def adult() -> pl.LazyFrame:
    """32,561 people of the United States' census of 1994, one row each: the training part of the
    "Adult" data set (R. Kohavi and B. Becker 1996, CC BY 4.0), which is public.

    Returns
    -------
    A new scan of a file in the package. Its columns are ``age``, ``workclass``, ``fnlwgt``,
    ``education``, ``education_num``, ``marital_status``, ``occupation``, ``relationship``,
    ``race``, ``sex``, ``capital_gain``, ``capital_loss``, ``hours_per_week``, ``native_country``
    and ``income``; missing answers are null.

    Examples
    --------
    >>> import dpframe as dp
    >>> people = dp.Session(epsilon=1).protect(dp.examples.adult(), unit=dp.Rows())
    >>> people.schema["age"]
    Int64
    """
    return pl.scan_parquet(_file("adult.parquet"))


def _file(name: str) -> Path:
    """A data file: next to this module when installed, else in the source tree."""
    installed = Path(__file__).parent / "data" / name
    if installed.exists():
        return installed
    return Path(__file__).parents[1] / "examples" / "data" / name
