"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from dpframe.plan.data import (
    ForcedError,
    NoisyAggregate,
    PlanBlock,
    PlanColumn,
    PlanData,
    PlanIdentifying,
    PlanOutput,
    PlanQuery,
    PlanStep,
    PlanTypical,
    confidence_of,
)

__all__ = [
    "ForcedError",
    "NoisyAggregate",
    "PlanBlock",
    "PlanColumn",
    "PlanData",
    "PlanIdentifying",
    "PlanOutput",
    "PlanQuery",
    "PlanStep",
    "PlanTypical",
    "confidence_of",
]
