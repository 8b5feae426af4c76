"""Two amounts, so that they can be distinguished."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpframe.core.budget import Budget
from dpframe.report.numbers import shown


def amounts(whose: str, before: Budget, after: Budget) -> Iterator[str]:
    """The old and the new cost, a line for each amount that changed."""
    if before.currency != after.currency:
        yield f"cost of {whose} {before.words()} -> {after.words()}"
        return
    pairs: tuple[tuple[str, Fraction, Fraction], ...] = (
        (before.currency, before.main, after.main),
        ("delta", before.slack, after.slack),
    )
    for what, one, other in pairs:
        if one != other:
            yield f"{what} of {whose} {change_words(one, other)}"


def change_words(one: Fraction | float, other: Fraction | float, digits: int = 6) -> str:
    """Two amounts with as many digits as are needed to see the difference."""
    while one != other and shown(one, digits) == shown(other, digits) and digits < 40:
        digits += 4
    return f"{shown(one, digits)} -> {shown(other, digits)}"
