"""Advanced composition: bounds in closed form for many small epsilons."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Final

from dpframe.accounting.accountant import WITHIN, Accountant, ValidFor
from dpframe.accounting.basic import needing_delta, pure_parts
from dpframe.core.exact import decimal_up, float_down, float_up

_SHARES: Final = tuple(Fraction(i, 100) for i in (2, *range(5, 100, 5), 98))
"""Which parts of delta are tried for the events that need one."""
_FEW_SHARES: Final = _SHARES[2:20:4]
_MOST_DISTINCT: Final = 20
_INFLATE: Final = 1.0 + 1e-14


class SplitAccountant(Accountant):
    """Gives part of delta to the events that have no finite epsilon, then composes epsilons.

    Any split is valid, the best of a few is taken.
    """

    def _epsilon(self, delta: Fraction) -> float:
        left = delta - self._slack
        if left <= 0:
            return math.inf
        needy = needing_delta(self.counts.items())
        if not needy:
            return self._of(Fraction(0), left, 1)
        shares = _SHARES if len(self.counts) == 1 else _FEW_SHARES
        if len(self.counts) > _MOST_DISTINCT:  # each share is a composition of its own
            shares = (Fraction(1, 2),)
        return min(self._of(left * share, left * (1 - share), needy) for share in shares)

    def _of(self, given: Fraction, rest: Fraction, needy: int) -> float:
        parts = pure_parts(self.counts.items(), float_down(given / needy))
        return math.inf if parts is None else self._composed(parts, float_down(rest))

    @abstractmethod
    def _composed(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        """Epsilon of this many purely private events at delta."""


class AdvancedAccountant(SplitAccountant):
    """sqrt(2 ln(1 / delta) sum(e**2)) + sum(e (exp(e) - 1)) (Dwork and Roth 2014, Theorem 3.20).

    With unequal epsilons: their proof by Azuma's inequality holds term by term (Rogers, Roth,
    Ullman and Vadhan 2016, Theorem 2.4).
    """

    method: ClassVar[str] = "advanced"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _composed(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if delta <= 0.0 or any(e > 600 for e, _ in parts):
            return math.inf
        squares = float_up(sum((n * e * e for e, n in parts), Fraction(0)))
        means = math.fsum(n * float(e) * math.expm1(float(e)) for e, n in parts)
        return (math.sqrt(2.0 * squares * -math.log(delta)) + means) * _INFLATE


class ClosedFormAccountant(SplitAccountant):
    """The closed form of Kairouz, Oh and Viswanath 2015, Theorems 3.4 and 3.5: the least of
    sum(e), m + sqrt(2 v ln(e + sqrt(v) / delta)) and m + sqrt(2 v ln(1 / delta)),

    where m = sum(e tanh(e / 2)) and v = sum(e**2).
    """

    method: ClassVar[str] = "Kairouz-Oh-Viswanath, closed form"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _composed(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if delta <= 0.0:
            return math.inf
        squares = float_up(sum((n * e * e for e, n in parts), Fraction(0)))
        means = math.fsum(n * float(e) * math.tanh(float(e) / 2.0) for e, n in parts)
        log = min(-math.log(delta), math.log(math.e + math.sqrt(squares) / delta))
        total = decimal_up(sum((n * e for e, n in parts), Fraction(0)))
        return min(total, (means + math.sqrt(2.0 * squares * log)) * _INFLATE)
