"""What calendar windows mean for whom a plan protects, and what it reads of them."""

from __future__ import annotations

from collections.abc import Iterator

from dpframe.core.units import Identifier
from dpframe.core.windows import NAMES, whole_person
from dpframe.plan import PlanData


def windows_words(plan: PlanData) -> Iterator[str]:
    """What an individual is, which windows are read, and what holds of a whole person."""
    if plan.windows is None or not isinstance(plan.unit, Identifier):
        return
    name, read = NAMES[plan.windows.every], plan.windows.words()
    yield f"an individual here is a person in one {name}"
    yield f"reads {read}" + ("" if plan.windows.are_all else "; all other rows are dropped first")
    yield whole_person(plan.windows.every)
    if not plan.windows.is_one:
        yield f"a count of individuals counts a person once in each {name} that is read"


def charged_words(plan: PlanData) -> str | None:
    """What a plan is charged to, of a budget for each window; None of other budgets."""
    if plan.windows is None or plan.budget is None or plan.budget.per is None:
        return None
    each = "" if plan.windows.is_one else f", the {NAMES[plan.budget.per]} with the least left"
    return f"charged to {plan.windows.words()}{each}"
