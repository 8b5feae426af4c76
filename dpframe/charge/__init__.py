"""Cost against the budget, before anything runs."""

from dpframe.charge.concentrated import (
    accuracy_within,
    counted_in,
    mu_squared_within,
    resolve_composition,
    rho_within,
    spend_within,
)
from dpframe.charge.spend import budget_of, slack_beside_accuracy, spend_in

__all__ = [
    "accuracy_within",
    "budget_of",
    "counted_in",
    "mu_squared_within",
    "resolve_composition",
    "rho_within",
    "slack_beside_accuracy",
    "spend_in",
    "spend_within",
]
