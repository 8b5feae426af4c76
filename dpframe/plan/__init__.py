"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from dpframe.plan.data import PlanData
from dpframe.plan.noisy_aggregate import NoisyAggregate, confidence_of
from dpframe.plan.pieces import ForcedError, PlanBlock, PlanOutput, PlanQuery, PlanStep

__all__ = [
    "ForcedError",
    "NoisyAggregate",
    "PlanBlock",
    "PlanData",
    "PlanOutput",
    "PlanQuery",
    "PlanStep",
    "confidence_of",
]
