"""Exact amounts as text that is read back as they were, however many digits they have."""

from __future__ import annotations

from fractions import Fraction

from dpframe.core.budget import Budget


def hex_text(value: Fraction) -> str:
    """In hexadecimal, which Python reads at any length."""
    return f"{value.numerator:x}/{value.denominator:x}"


def from_hex(text: str) -> Fraction:
    """What `hex_text` wrote.

    Raises
    ------
    ValueError, ZeroDivisionError
        When the text is invalid.
    """
    over, _, under = text.partition("/")
    return Fraction(int(over, 16), int(under, 16))


def amounts_text(amount: Budget) -> list[str]:
    """Both amounts of a budget."""
    return [hex_text(amount.main), hex_text(amount.slack)]


def read_amounts(found: object, measure: Budget) -> Budget:
    """What `amounts_text` wrote, in the measure of another budget.

    Raises
    ------
    ValueError, TypeError, ArithmeticError
        When the text is invalid, or in another form.
    """
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise TypeError
    main, slack = map(from_hex, found)
    amount = measure.of(main, slack)
    if amounts_text(amount) != found:  # of one amount there is one form
        raise ValueError
    return amount
