"""The price of a requested mechanism or split, in words."""

from __future__ import annotations

from typing import Final

from dpframe.plan import PlanData

_SHOWN: Final = 8
_SAME: Final = 0.005


def forced_words(plan: PlanData) -> str:
    """The request, and by which factor it increases errors."""
    names = sorted({plan.outputs[error.output].name for error in plan.forced if error.named})
    asked = [f"mechanism= of {', '.join(names)}"] if names else []
    asked += ['split="equal"'] if plan.split == "equal" else []
    said, least = f"{' and '.join(asked)}, as asked", "those of a plan with the least error"
    known = [(plan.outputs[e.output].name, e.times) for e in plan.forced if e.times is not None]
    if all(abs(times - 1) < _SAME for _, times in known):
        return f"{said}: errors are {least}"
    shown = [f"{name} {times:.3g}" for name, times in known[:_SHOWN]]
    more = f", and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{said}: errors relative to {least} are {', '.join(shown)}{more}"
