"""From sensitivities and a cost to mechanisms: the least noise that the cost allows."""

from dpframe.choose.mechanism import Split, choose, least_error_weights, split
from dpframe.choose.together import ComposedChoice, choose_together, choose_with_keys, in_mu, in_rho
from dpframe.choose.ways import WORTH_WHILE, AskedWay, ChosenWay, least_error_way

__all__ = [
    "WORTH_WHILE",
    "AskedWay",
    "ChosenWay",
    "ComposedChoice",
    "Split",
    "choose",
    "choose_together",
    "choose_with_keys",
    "in_mu",
    "in_rho",
    "least_error_way",
    "least_error_weights",
    "split",
]
