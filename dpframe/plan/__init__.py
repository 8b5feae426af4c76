"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from dpframe.plan.data import PlanData
from dpframe.plan.noisy_aggregate import NoisyAggregate, confidence_of
from dpframe.plan.pieces import (
    ForcedError,
    PlanBlock,
    PlanColumn,
    PlanIdentifying,
    PlanOutput,
    PlanQuery,
    PlanStep,
    PlanTypical,
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
