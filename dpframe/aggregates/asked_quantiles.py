"""Which quantiles are requested."""

from __future__ import annotations

from fractions import Fraction

from dpframe.aggregates.values import Value
from dpframe.core.exact import Number, as_given, exact
from dpframe.errors import InvalidBounds
from dpframe.rows.fold import words

__all__ = ["asked_quantiles"]


def asked_quantiles(given: Number | tuple[Number, ...], value: Value) -> tuple[Fraction, ...]:
    """One or several quantiles, as fractions.

    Raises
    ------
    InvalidBounds
        For what is no number between 0 and 1, or has more than six decimals; and for none at all.
    """
    where = f"{words(value.tree)}.dp_quantile({as_given(given)})"
    found = []
    for q in given if isinstance(given, tuple) else (given,):
        try:
            number = exact(q)
        except (TypeError, ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if not 0 <= number <= 1 or number.denominator > 10**6:
            raise InvalidBounds(
                f"a quantile must lie between 0 and 1 with at most six decimals, not {as_given(q)}",
                where=where,
                remedy="write for example 0.5 for the median",
            )
        found.append(number)
    if not found:
        raise InvalidBounds("no quantile is given", where=where, remedy="write for example 0.5")
    return tuple(found)
