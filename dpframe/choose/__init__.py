"""From sensitivities and a cost to mechanisms: the least noise that the cost allows."""

from dpframe.choose.mechanism import Choice, choose
from dpframe.choose.split import split

__all__ = ["Choice", "choose", "split"]
