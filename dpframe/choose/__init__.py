"""From sensitivities and a cost to mechanisms: the least noise that the cost allows."""

from dpframe.choose.concentrated import in_rho
from dpframe.choose.gaussian import in_mu
from dpframe.choose.mechanism import as_the_edition_before, choose
from dpframe.choose.split import Split, least_error_weights, split
from dpframe.choose.thresholds import choose_with_keys
from dpframe.choose.together import ComposedChoice, choose_together
from dpframe.choose.ways import WORTH_WHILE, AskedWay, ChosenWay, least_error_way

__all__ = [
    "WORTH_WHILE",
    "AskedWay",
    "ChosenWay",
    "ComposedChoice",
    "Split",
    "as_the_edition_before",
    "choose",
    "choose_together",
    "choose_with_keys",
    "in_mu",
    "in_rho",
    "least_error_way",
    "least_error_weights",
    "split",
]
