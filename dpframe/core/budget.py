"""Privacy measures: how much is spent, in four currencies that never mix.

Amounts are exact rationals inside and the nearest floats outside, so that sums of what users wrote
compare as they expect: ``PureDP(0.1) + PureDP(0.2) == PureDP(0.3)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpframe.core.exact import Number, exact, nearest, show, show_input
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.sealed import all_sealed


def amount(value: object, name: str) -> Fraction:
    """A non-negative, finite amount of privacy loss as an exact number.

    Raises
    ------
    InvalidBudget
        When it is negative, infinite, NaN or not a number.
    """
    try:
        number = exact(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise _wrong_amount("must be a finite number", value, name) from None
    except InvalidBounds as error:
        raise InvalidBudget(f"{name} is {error.what}", remedy=error.remedy) from None
    if number.numerator < 0:
        raise _wrong_amount("must not be negative", value, name)
    return number


def _wrong_amount(what: str, value: object, name: str) -> InvalidBudget:
    example = "1e-8" if name == "delta" else "0.5"
    return InvalidBudget(
        f"{name} {what}",
        where=f"{name}={show_input(value)}",
        remedy=f"write for example {name}={example}",
    )


class Budget(ABC):
    """An amount of privacy loss in one measure: `PureDP`, `ApproxDP`, `ZCDP` or `GDP`."""

    __slots__ = ()
    measure: ClassVar[str]
    """The measure's name in plans."""
    currency: ClassVar[str]
    """The name of its main parameter: ``"epsilon"``, ``"rho"`` or ``"mu_squared"``."""

    @property
    @abstractmethod
    def main(self) -> Fraction:
        """The exact epsilon, rho or square of mu."""

    @property
    @abstractmethod
    def slack(self) -> Fraction:
        """The exact delta, 0 for measures without one."""

    @classmethod
    @abstractmethod
    def of(cls, main: Fraction, slack: Fraction = Fraction(0)) -> Self:
        """A budget of this measure from exact amounts."""

    def __add__(self, other: object) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Budget)
        return self.of(self.main + other.main, self.slack + other.slack)

    def __sub__(self, other: object) -> Self:
        """What is left; never below zero."""
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Budget)
        zero = Fraction(0)
        return self.of(max(zero, self.main - other.main), max(zero, self.slack - other.slack))

    def covers(self, other: Budget) -> bool:
        """Whether `other` fits into this budget, compared exactly."""
        return type(other) is type(self) and other.main <= self.main and other.slack <= self.slack

    @property
    def epsilon(self) -> float:
        """The float nearest to epsilon. `ZCDP` and `GDP` have none: `AttributeError`."""
        raise self._lacks("epsilon")

    @property
    def delta(self) -> float:
        """The float nearest to delta, 0 for `PureDP`. `GDP` has none: `AttributeError`."""
        raise self._lacks("delta")

    @property
    def rho(self) -> float:
        """The float nearest to rho, of `ZCDP` alone: else `AttributeError`."""
        raise self._lacks("rho")

    @property
    def mu_squared(self) -> float:
        """The float nearest to the square of mu, of `GDP` alone: else `AttributeError`."""
        raise self._lacks("mu_squared")

    @property
    def mu(self) -> float:
        """The float nearest to mu, of `GDP` alone: else `AttributeError`."""
        raise self._lacks("mu")

    def _lacks(self, name: str) -> AttributeError:
        return AttributeError(
            f"{type(self).__name__} has no {name}: {self.measure} counts {self.currency}; "
            f"write .{self.currency}"
        )

    @property
    def guarantee(self) -> str:
        """The name of what it promises: the measure, and ``"pure DP"`` for an epsilon without a
        delta in a session that has one.
        """
        return self.measure

    @property
    def is_zero(self) -> bool:
        """Whether nothing is spent."""
        return self.main == 0 and self.slack == 0

    def words(self) -> str:
        """The amounts for people: ``epsilon 0.5, delta 1e-8``."""
        text = f"{self.currency} {show(self.main)}"
        return f"{text}, delta {show(self.slack)}" if self.slack else text


@all_sealed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(Budget):
    """Pure epsilon-differential privacy (Dwork, McSherry, Nissim & Smith 2006).

    Parameters
    ----------
    epsilon
        The privacy loss; int, str, Decimal, Fraction or float (a float means the decimal that it
        prints as).

    Raises
    ------
    InvalidBudget
        When epsilon is negative, infinite or not a number.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.PureDP(0.1) + dp.PureDP(0.2) == dp.PureDP(0.3)
    True
    """

    exact_epsilon: Fraction
    measure: ClassVar[str] = "pure DP"
    currency: ClassVar[str] = "epsilon"

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "exact_epsilon", amount(epsilon, "epsilon"))

    @property
    def main(self) -> Fraction:
        return self.exact_epsilon

    @property
    def slack(self) -> Fraction:
        return Fraction(0)

    @classmethod
    def of(cls, main: Fraction, slack: Fraction = Fraction(0)) -> PureDP:
        return cls(main)

    @property
    def epsilon(self) -> float:
        """The float nearest to epsilon."""
        return nearest(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """0: pure DP has none."""
        return 0.0

    def __repr__(self) -> str:
        return f"PureDP(epsilon={show(self.exact_epsilon, 15)})"


@all_sealed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(Budget):
    """Approximate (epsilon, delta)-differential privacy (Dwork, Kenthapadi et al. 2006).

    Parameters
    ----------
    epsilon, delta
        The privacy loss and the probability with which it may be exceeded, delta below 1.

    Raises
    ------
    InvalidBudget
        When one of them is negative, infinite or not a number, or delta is 1 or more.
    """

    exact_epsilon: Fraction
    exact_delta: Fraction
    measure: ClassVar[str] = "approximate DP"
    currency: ClassVar[str] = "epsilon"

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "exact_epsilon", amount(epsilon, "epsilon"))
        object.__setattr__(self, "exact_delta", _delta(delta))

    @property
    def main(self) -> Fraction:
        return self.exact_epsilon

    @property
    def slack(self) -> Fraction:
        return self.exact_delta

    @classmethod
    def of(cls, main: Fraction, slack: Fraction = Fraction(0)) -> ApproxDP:
        return cls(main, slack)

    @property
    def epsilon(self) -> float:
        """The float nearest to epsilon."""
        return nearest(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """The float nearest to delta."""
        return nearest(self.exact_delta)

    @property
    def guarantee(self) -> str:
        """``"approximate DP"``, or ``"pure DP"`` where delta is 0."""
        return self.measure if self.slack else PureDP.measure

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={show(self.main, 15)}, delta={show(self.slack, 15)})"


@all_sealed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP(Budget):
    """Zero-concentrated differential privacy (Bun & Steinke 2016), delta-approximate where a
    delta is given.

    Parameters
    ----------
    rho
        The privacy loss.
    delta
        The probability that the guarantee fails altogether; 0 unless queries find their groups.

    Raises
    ------
    InvalidBudget
        When one of them is negative, infinite or not a number, or delta is 1 or more.
    """

    exact_rho: Fraction
    exact_delta: Fraction
    measure: ClassVar[str] = "zCDP"
    currency: ClassVar[str] = "rho"

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "exact_rho", amount(rho, "rho"))
        object.__setattr__(self, "exact_delta", _delta(delta))

    @property
    def main(self) -> Fraction:
        return self.exact_rho

    @property
    def slack(self) -> Fraction:
        return self.exact_delta

    @classmethod
    def of(cls, main: Fraction, slack: Fraction = Fraction(0)) -> ZCDP:
        return cls(main, slack)

    @property
    def rho(self) -> float:
        """The float nearest to rho."""
        return nearest(self.exact_rho)

    @property
    def delta(self) -> float:
        """The float nearest to delta."""
        return nearest(self.exact_delta)

    def __repr__(self) -> str:
        delta = f", delta={show(self.slack, 15)}" if self.slack else ""
        return f"ZCDP(rho={show(self.main, 15)}{delta})"


@all_sealed
@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP(Budget):
    """Gaussian differential privacy (Dong, Roth & Su 2022), counted in mu squared, which adds up.

    Sessions with ``composition="gdp"`` add up this measure. It has no delta.

    Parameters
    ----------
    mu_squared
        The square of mu: deciding whether an individual is present is as hard as deciding whether
        one draw is from a unit normal or from one with mean mu.

    Raises
    ------
    InvalidBudget
        When it is negative, infinite or not a number.
    """

    exact_mu_squared: Fraction
    measure: ClassVar[str] = "Gaussian DP"
    currency: ClassVar[str] = "mu_squared"

    def __init__(self, mu_squared: Number) -> None:
        object.__setattr__(self, "exact_mu_squared", amount(mu_squared, "mu_squared"))

    @property
    def main(self) -> Fraction:
        return self.exact_mu_squared

    @property
    def slack(self) -> Fraction:
        return Fraction(0)

    @classmethod
    def of(cls, main: Fraction, slack: Fraction = Fraction(0)) -> GDP:
        if slack:
            raise ValueError("Gaussian differential privacy has no delta")
        return cls(main)

    @property
    def mu_squared(self) -> float:
        """The float nearest to the square of mu."""
        return nearest(self.exact_mu_squared)

    @property
    def mu(self) -> float:
        """About mu itself."""
        return math.sqrt(self.mu_squared)

    def __repr__(self) -> str:
        return f"GDP(mu_squared={show(self.exact_mu_squared, 15)})"


def _delta(value: object) -> Fraction:
    delta = amount(value, "delta")
    if delta.numerator >= delta.denominator:
        raise InvalidBudget(
            "delta is a probability below 1",
            where=f"delta={show_input(value)}",
            remedy="write for example delta=1e-8",
        )
    return delta
