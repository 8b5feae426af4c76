"""The kernel's check of the physical plan of a plan that is read."""

from __future__ import annotations

from functools import lru_cache

from dpframe.errors import Unsound
from dpframe.kernel import Plan, Refused, verify

__all__ = ["require_verified"]


@lru_cache(maxsize=256)
def require_verified(physical: Plan) -> None:
    """Refuse a physical plan that states what does not follow from it. A plan that was verified is
    remembered.

    Raises
    ------
    Unsound
        With the first such statement.
    """
    try:
        verify(physical)
    except Refused as refused:
        raise Unsound(
            f"the plan does not hold: {refused}",
            where="the physical plan",
            why="the kernel computes it again from the plan alone, and finds less privacy than the "
            "plan states, or no plan at all",
            remedy="do not approve or run it; plan the query again",
        ) from None
