"""Cost against the budget, before anything runs."""

from dpframe.charge.spend import budget_of, slack_beside_accuracy, spend_in

__all__ = ["budget_of", "slack_beside_accuracy", "spend_in"]
