"""From a query to exact integer tables: lowering and running it."""

from dpframe.lower.engine import dry_run, require_runs, run, run_choosing
from dpframe.lower.engines.forked import mark_used, require_threads
from dpframe.lower.place import Place
from dpframe.lower.plain import found_keys, has_plain, run_plain
from dpframe.lower.tables import Lowered, Sources, lower_query

__all__ = [
    "Lowered",
    "Place",
    "Sources",
    "dry_run",
    "found_keys",
    "has_plain",
    "lower_query",
    "mark_used",
    "require_runs",
    "require_threads",
    "run",
    "run_choosing",
    "run_plain",
]
