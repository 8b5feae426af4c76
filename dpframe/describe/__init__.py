"""From choices to a plan that people read."""

from dpframe.describe.describe import described, entries_of

__all__ = ["described", "entries_of"]
