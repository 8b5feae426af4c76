"""Cost against the budget, before anything runs."""

from dpframe.charge.spend import budget_of, spend_in

__all__ = ["budget_of", "spend_in"]
