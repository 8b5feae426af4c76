"""The type of `dp.col(...)`: a Polars expression with the dp methods that column_types.pyi adds."""

import polars as pl

__all__ = ["Column"]

Column = pl.Expr
