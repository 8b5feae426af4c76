"""The least spend whose plan has the requested accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, exact, show_input
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.optimise.mechanisms import Split
from dpframe.optimise.queries import Queries

_CONFIDENCE = Fraction(95, 100)
_DIGITS = 6
_LEAST, _MOST = Fraction(1, 2**40), Fraction(2**20)


def minimum_spend(
    query: Query | Queries,
    measure: type[Budget],
    slack: Fraction,
    wanted: Mapping[str, Number],
    split: Split = "least error",
) -> Budget:
    """The least spend, to six digits, at which the error of each named output is within its
    accuracy with 95% confidence.

    Errors fall as the spend grows, so the least one is found by halving. No data is touched.

    Parameters
    ----------
    query
        One query or several.
    measure
        `PureDP`, `ApproxDP` or `ZCDP`.
    slack
        The delta of the spend.
    wanted
        The largest error of each output, in its own units.
    split
        How the cost is divided.

    Raises
    ------
    InvalidBounds
        When an error is not a positive number.
    InvalidBudget
        When no spend gives such errors.
    UnknownColumn, UnsupportedOperation
        When an output does not exist, or its error depends on the data.
    """
    if not isinstance(wanted, Mapping):
        raise InvalidBounds(
            f"accuracy= is a dict of outputs and their errors, not {show_input(wanted)}",
            where="accuracy",
            remedy='write for example accuracy={"len": 50}',
        )
    targets = {name: _positive(name, error) for name, error in wanted.items()}
    if not targets:
        raise InvalidBudget(
            "accuracy= names no output", remedy='write for example accuracy={"len": 50}'
        )
    if not _meets(query, measure.of(_MOST, slack), targets, split):
        raise InvalidBudget(
            f"no spend makes the error of {' and '.join(map(repr, targets))} so small with 95% "
            "confidence",
            where=f"accuracy={dict(wanted)}",
            remedy=(
                "ask for the errors of counts and sums: the error of a mean depends on "
                "the number of values",
                "ask for a larger error",
            ),
        )
    low, high = _LEAST, _MOST
    while high / low > 1 + Fraction(1, 10 ** (_DIGITS + 1)):
        middle = _between(low, high)
        if _meets(query, measure.of(middle, slack), targets, split):
            high = middle
        else:
            low = middle
    return measure.of(_rounded_up(high), slack)


def _positive(name: str, error: Number) -> Fraction:
    try:
        value = exact(error)
    except (TypeError, ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise InvalidBounds(
            f"the error of {name!r} must be a number above 0, not {show_input(error)}",
            where="accuracy",
            remedy='write for example accuracy={"len": 50}',
        )
    return value


def _meets(
    query: Query | Queries, spend: Budget, targets: Mapping[str, Fraction], split: Split
) -> bool:
    try:
        if isinstance(query, Queries):
            plan = pipeline.plan_several(query, spend, None, split, compared=False).plan
        else:
            plan = pipeline.plan(query, spend, None, split, compared=False).plan
    except InvalidBudget:  # more noise than can be drawn
        return False
    return all(plan.accuracy(name, _CONFIDENCE) <= error for name, error in targets.items())


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Roughly the geometric mean, if they are far from each other, in few digits."""
    if high > 4 * low:
        exponent = (high.numerator.bit_length() - high.denominator.bit_length()) + (
            low.numerator.bit_length() - low.denominator.bit_length()
        )
        guess = Fraction(2) ** (exponent // 2)
        if low < guess < high:
            return guess
    return (low + high) / 2


def _rounded_up(value: Fraction) -> Fraction:
    """The next decimal number of six digits."""
    shift = 0
    while value * Fraction(10) ** shift < 10 ** (_DIGITS - 1):
        shift += 1
    scaled = value * Fraction(10) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(10) ** shift
