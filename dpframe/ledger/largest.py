"""Totals of the parts of one division, and the sum of the largest of them."""

from __future__ import annotations

from fractions import Fraction
from heapq import nlargest
from typing import Any

from dpframe.core.budget import Budget
from dpframe.ledger.exact_text import amounts_text, read_amounts


class Largest:
    """By how much the sum of the `n` largest of amounts grows, which themselves only grow, in time
    that depends on `n` alone.
    """

    __slots__ = ("n", "top")

    def __init__(self, n: int) -> None:
        self.n = n
        self.top: dict[str, Fraction] = {}
        """As many as there are, `n` at most; no other amount is larger than one of these."""

    def increase(self, key: str, total: Fraction) -> Fraction:
        """By how much the sum grows where the amount of `key` grows to `total`."""
        if key in self.top:
            return total - self.top[key]
        if len(self.top) < self.n:
            return total
        return max(Fraction(0), total - min(self.top.values()))

    def grow(self, key: str, total: Fraction) -> None:
        """Let the amount of `key` grow to `total`."""
        if key not in self.top and len(self.top) >= self.n:
            least = min(self.top, key=self.top.__getitem__)
            if self.top[least] >= total:
                return
            del self.top[least]
        self.top[key] = total


class Division:
    """What each part was charged; nothing where it was charged nothing.

    Parameters
    ----------
    zero
        Nothing, in the measure of the budget.
    touched
        The number of parts in which neighbouring frames can differ: the whole pays for that many
        of the largest totals. Epsilons and deltas (or amounts of rho) are summed each on their
        own.
    """

    def __init__(self, zero: Budget, touched: int) -> None:
        self.zero = zero
        self.touched = touched
        self.parts: dict[str, Budget] = {}
        self.latest: int | None = None
        """The largest number of a part that was charged, where parts have an order."""
        self._main, self._slack = Largest(touched), Largest(touched)

    def spent(self, key: str) -> Budget:
        """All that the part was charged."""
        return self.parts.get(key, self.zero)

    def increase(self, key: str, cost: Budget) -> Budget:
        """What the whole pays for a cost of the part."""
        after = self.spent(key) + cost
        return self.zero.of(
            self._main.increase(key, after.main), self._slack.increase(key, after.slack)
        )

    def is_past(self, order: int | None) -> bool:
        """Whether a part comes before one that was charged, where parts have an order; all parts of
        a division have one, or none has.
        """
        if order is None or self.latest is None:
            return bool(self.parts) and order is not self.latest
        return order < self.latest

    def add(self, key: str, cost: Budget, order: int | None = None) -> None:
        """Count a cost of the part."""
        if order is not None:
            self.latest = order if self.latest is None else max(order, self.latest)
        after = self.spent(key) + cost
        self.parts[key] = after
        self._main.grow(key, after.main)
        self._slack.grow(key, after.slack)

    def most(self, key: str, left: Budget) -> Budget:
        """The largest total that the part can reach with `left` in the whole budget, if nothing
        else is charged.

        With total t here and h the largest total but `touched` - 1 elsewhere, the sum of the
        largest grows by max(t + c, h) - max(t, h) at a cost c: by at most what is left as long as
        t + c <= left + max(t, h).
        """
        total = self.spent(key)
        others = [amount for part, amount in self.parts.items() if part != key]
        return self.zero.of(
            left.main + max(total.main, _nth(self.touched, [t.main for t in others])),
            left.slack + max(total.slack, _nth(self.touched, [t.slack for t in others])),
        )

    def state(self) -> list[Any]:
        """As JSON, in one form only."""
        parts = [[key, *amounts_text(t)] for key, t in sorted(self.parts.items())]
        return [self.touched, parts, *([] if self.latest is None else [self.latest])]

    @classmethod
    def restored(cls, zero: Budget, state: Any) -> Division:
        """What `state` made.

        Raises
        ------
        ValueError, TypeError, ArithmeticError
            When it makes no sense.
        """
        touched, totals, *latest = state
        if type(touched) is not int or touched < 1 or len(latest) > 1:
            raise ValueError
        total = cls(zero, touched)
        if latest:
            total.latest = int(latest[0])
        for key, *amounts in totals:
            if not isinstance(key, str) or key in total.parts:
                raise ValueError
            total.add(key, read_amounts(amounts, zero))
        return total


def _nth(n: int, amounts: list[Fraction]) -> Fraction:
    """The n-th largest, 0 where there are fewer."""
    return nlargest(n, amounts)[-1] if len(amounts) >= n else Fraction(0)
