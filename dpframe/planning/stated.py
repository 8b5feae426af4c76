"""What a session says in plans of itself, and of what it was given."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TypeVar

from dpframe.core.budget import Budget
from dpframe.core.parameters import Parameter
from dpframe.errors import Unsound
from dpframe.kernel import Refused
from dpframe.ledger.approvals import StatedBudget
from dpframe.ledger.parts import Share
from dpframe.planning.physical import physical
from dpframe.planning.prepared import Prepared, PreparedTogether, alone

Made = TypeVar("Made", Prepared, PreparedTogether)


def on_part(prepared: Made, share: Share) -> Made:
    """A plan that says that its frame is one of several parts, and what that costs the whole."""
    return replace(prepared, plan=replace(prepared.plan, share=share))


def stating(prepared: Made, budget: StatedBudget) -> Made:
    """The plan with the budget that it is to be charged to."""
    return replace(prepared, plan=replace(prepared.plan, budget=budget))


def with_remaining(prepared: Made, remaining: Budget) -> Made:
    """The plan with the remaining budget."""
    return replace(prepared, plan=replace(prepared.plan, remaining=remaining))


def given(prepared: Made, parameters: tuple[Parameter, ...]) -> Made:
    """The plan with its parameters."""
    return replace(prepared, plan=replace(prepared.plan, parameters=parameters))


def with_physical(prepared: Made) -> Made:
    """The plan with its physical plan.

    Raises
    ------
    Unsound
        When the kernel has no nodes for it.
    """
    whole = prepared if isinstance(prepared, PreparedTogether) else alone(prepared)
    try:
        made = physical(whole)
    except Refused as refused:
        raise Unsound(
            f"the query has no physical plan: {refused}",
            remedy="report this as an error of dpframe, with the query",
        ) from None
    plan = replace(prepared.plan, physical=made, dpframe_version=_version())
    return replace(prepared, plan=plan)


@cache
def _version() -> str:
    """The version of dpframe, which takes longer to look up than a plan takes to make."""
    return version("dpframe")
