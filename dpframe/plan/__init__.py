"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from dpframe.plan.data import PlanData
from dpframe.plan.noisy_aggregate import NoisyAggregate, confidence_of
from dpframe.plan.pieces import PlanOutput, PlanStep

__all__ = ["NoisyAggregate", "PlanData", "PlanOutput", "PlanStep", "confidence_of"]
