"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from dpframe.plan.noisy_aggregate import NoisyAggregate, confidence_of
from dpframe.plan.pieces import PlanOutput, PlanStep
from dpframe.plan.plan import Plan

__all__ = ["NoisyAggregate", "Plan", "PlanOutput", "PlanStep", "confidence_of"]
