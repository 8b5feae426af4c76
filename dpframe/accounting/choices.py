"""Choices of one bounded range are taken together, as `dpframe.kernel.choices` bounds them.

*Ranges that are known by their sum and maximum only.* Pairs of unequal ones dominate those of equal
ones (`loss_laws`); of many choices together this is not proven. So where ranges 1, 1 and 1 stand
for 3/4 four times, each is taken by its pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dpframe.accounting.loss_laws import Choices, HalfLine, LossLaw
from dpframe.kernel.choices import FEWEST, LARGEST, blocks_of

__all__ = ["together"]


def together(laws: Mapping[LossLaw, int]) -> Counter[LossLaw]:
    """The same laws, with choices of one range (those that reveal most) in blocks."""
    found = Counter(laws)
    many = {
        law: n * law.epsilon**2
        for law, n in laws.items()
        if isinstance(law, HalfLine)
        and not (law.atoms or law.alone)
        and n >= FEWEST
        and law.epsilon <= LARGEST
    }
    if many:
        law = max(many, key=many.__getitem__)
        for size, count in blocks_of(found.pop(law)):
            found[Choices(law.epsilon, size)] += count
    return found
