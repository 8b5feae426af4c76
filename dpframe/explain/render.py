"""Plans as text."""
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from dpframe.plan import Plan
def render(plan: Plan, format: str) -> str:
    return "\n".join(map(str, [plan.source, *plan.steps, plan.grouping, *plan.releases, plan.cost]))
