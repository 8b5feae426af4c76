"""From a query to exact integer tables: lowering and running it."""

from dpframe.lower.engine import dry_run, run, run_choosing
from dpframe.lower.plain import found_keys, has_plain, run_plain
from dpframe.lower.tables import Lowered, Sources, lower_query

__all__ = [
    "Lowered",
    "Sources",
    "dry_run",
    "found_keys",
    "has_plain",
    "lower_query",
    "run",
    "run_choosing",
    "run_plain",
]
