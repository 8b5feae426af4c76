"""What one query, or several that share a cost, ask of mechanisms, and what is chosen."""

from dpframe.planning.gains import errors_of
from dpframe.planning.planning import Planning
from dpframe.planning.prepared import Prepared, PreparedTogether, tables_of

__all__ = ["Planning", "Prepared", "PreparedTogether", "errors_of", "tables_of"]
