"""From a query to the parts that it releases: what one individual can change, without data."""

from dpframe.infer.parts import PlannedUse, parts_of

__all__ = ["PlannedUse", "parts_of"]
