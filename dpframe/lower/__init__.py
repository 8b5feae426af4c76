"""From a query to exact integer tables: lowering and running it."""

from dpframe.lower.engines.forked import mark_used, require_threads
from dpframe.lower.execution import CountedPart, Execution, PartWanted
from dpframe.lower.from_plan import Handles, PlanTables, tables_of_plan, types_of_digest
from dpframe.lower.plain import find_keys, has_plain, run_plain
from dpframe.lower.tables import Frames, Lowered, Sources, lower_query

__all__ = [
    "CountedPart",
    "Execution",
    "Frames",
    "Handles",
    "Lowered",
    "PartWanted",
    "PlanTables",
    "Sources",
    "find_keys",
    "has_plain",
    "lower_query",
    "mark_used",
    "require_threads",
    "run_plain",
    "tables_of_plan",
    "types_of_digest",
]
