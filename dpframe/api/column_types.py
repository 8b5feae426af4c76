"""The type of `dp.col(...)`: a Polars expression, of which column_types.pyi knows more methods."""

import polars as pl

__all__ = ["Column"]

Column = pl.Expr
