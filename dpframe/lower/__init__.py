"""From a query to exact integer tables: lowering and running it."""

from dpframe.lower.engine import dry_run, run
from dpframe.lower.tables import Lowered, lower_query

__all__ = ["Lowered", "dry_run", "lower_query", "run"]
