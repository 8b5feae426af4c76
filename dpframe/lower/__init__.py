"""From a query to exact integer tables: lowering and running it."""

from dpframe.lower.engine import dry_run, run, run_choosing
from dpframe.lower.tables import Lowered, Sources, lower_query

__all__ = ["Lowered", "Sources", "dry_run", "lower_query", "run", "run_choosing"]
