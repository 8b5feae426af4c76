"""The engines that plans run on, by the names that `engine=` has for them."""

from __future__ import annotations

POLARS = "polars"
DUCKDB = "duckdb"
SQL = frozenset((DUCKDB, "spark"))
"""What is behind Narwhals."""
EVERYWHERE = frozenset((POLARS, *SQL))
