"""Many exact numbers over one denominator: edges and candidates, hashed and compared as a whole.

A hundred thousand fractions take a second to make and to look through one by one; integers over a
denominator that all of them share take milliseconds, and are as exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from operator import lt
from typing import overload

from dpframe.kernel.plan import LISTED_UP_TO, LONGEST, Numbers, Progression, Ratios

__all__ = [
    "Rationals",
    "are_rising",
    "are_whole",
    "floats",
    "numbers_of",
    "of_floats",
    "rationals",
    "shared",
    "texts",
    "wholes",
]


class Rationals(Sequence[Fraction]):
    """Numbers ``numerators[i] / denominator``.

    Equal numbers are equal and hash alike, however they were made: the denominator is the least,
    and numerators with equal distances are a range.

    Parameters
    ----------
    numerators
        Integers in their order.
    denominator
        Positive.
    """

    __slots__ = ("_hash", "denominator", "numerators")

    numerators: Sequence[int]
    denominator: int

    def __init__(self, numerators: Sequence[int], denominator: int) -> None:
        found = _as_range(numerators)
        terms = tuple(numerators) if found is None else (found.start, found.step)
        common = math.gcd(denominator, *terms)
        self.denominator = denominator // common
        if found is None:
            self.numerators = terms if common == 1 else tuple(n // common for n in terms)
        else:
            start, step = found.start // common, found.step // common
            self.numerators = range(start, start + len(found) * step, step)
        self._hash: int | None = None

    @property
    def are_short(self) -> bool:
        """Whether the denominator is short enough to be shared by many numbers."""
        return self.denominator.bit_length() <= LONGEST

    def __len__(self) -> int:
        return len(self.numerators)

    @overload
    def __getitem__(self, at: int) -> Fraction: ...
    @overload
    def __getitem__(self, at: slice) -> Rationals: ...
    def __getitem__(self, at: int | slice) -> Fraction | Rationals:
        if isinstance(at, slice):
            return Rationals(self.numerators[at], self.denominator)
        return Fraction(self.numerators[at], self.denominator)

    def __iter__(self) -> Iterator[Fraction]:
        return (Fraction(n, self.denominator) for n in self.numerators)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rationals):
            return NotImplemented
        return self.denominator == other.denominator and self.numerators == other.numerators

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.denominator, self.numerators))
        return self._hash

    def __repr__(self) -> str:
        return f"Rationals({self.numerators!r}, {self.denominator})"


def are_whole(numbers: Sequence[Fraction]) -> bool:
    """Whether all of them are integers."""
    if isinstance(numbers, Rationals):
        return numbers.denominator == 1
    return all(n.denominator == 1 for n in numbers)


def wholes(numbers: Sequence[Fraction]) -> list[int]:
    """Integers as such."""
    if isinstance(numbers, Rationals):
        return list(numbers.numerators)
    return [int(n) for n in numbers]


def floats(numbers: Sequence[Fraction]) -> list[float]:
    """The nearest float to each: Python divides integers so.

    Raises
    ------
    OverflowError
        When one is larger than all floats.
    """
    if isinstance(numbers, Rationals):
        return [n / numbers.denominator for n in numbers.numerators]
    return [float(n) for n in numbers]


def texts(numbers: Sequence[Fraction]) -> list[str]:
    """Each in lowest terms, as `Fraction` writes it."""
    if not isinstance(numbers, Rationals) or numbers.denominator == 1:
        return [str(n) for n in (numbers.numerators if isinstance(numbers, Rationals) else numbers)]
    gcd, denominator, found = math.gcd, numbers.denominator, []
    for n in numbers.numerators:
        common = gcd(n, denominator)
        below = denominator // common
        found.append(f"{n // common}/{below}" if below > 1 else str(n // common))
    return found


def rationals(numbers: Iterable[Fraction]) -> Sequence[Fraction]:
    """Exact numbers over one denominator, or where that would be long as they are."""
    found = tuple(numbers)
    pairs = [(n.numerator, n.denominator) for n in found]
    return shared(pairs) or found


def shared(pairs: Sequence[tuple[int, int]]) -> Rationals | None:
    """Pairs of numerators and denominators over one denominator; None where it would be long."""
    under = 1
    for each in {below for _, below in pairs}:
        under = math.lcm(under, each)
        if under.bit_length() > LONGEST:
            return None
    return Rationals([n * (under // below) for n, below in pairs], under)


def of_floats(numbers: Iterable[float]) -> Rationals | None:
    """Finite floats as the decimals that they print as; None where these share no short
    denominator.
    """
    texts_ = list(map(float.__repr__, numbers))
    if any("e" in text for text in texts_):
        return shared([Decimal(text).as_integer_ratio() for text in texts_])
    digits = max((len(text) - text.index(".") for text in texts_), default=1) - 1
    tens = [10**n for n in range(digits + 1)]
    found = list[int]()
    for text in texts_:
        whole, _, after = text.partition(".")
        found.append(int(whole + after) * tens[digits - len(after)])
    return Rationals(found, tens[-1])


def are_rising(numbers: Sequence[Fraction]) -> bool:
    """Whether each of them is greater than the one before."""
    if isinstance(numbers, Rationals):
        if isinstance(numbers.numerators, range):
            return numbers.numerators.step > 0
        return all(map(lt, numbers.numerators, islice(numbers.numerators, 1, None)))
    return all(map(lt, numbers, islice(numbers, 1, None)))


def _as_range(numerators: Sequence[int]) -> range | None:
    """Rising or falling numbers with equal distances."""
    if len(numerators) < 2 or numerators[0] == numerators[1]:
        return None
    if isinstance(numerators, range):
        return numerators
    start, step = numerators[0], numerators[1] - numerators[0]
    if numerators[-1] != start + (len(numerators) - 1) * step:
        return None
    found = range(start, start + len(numerators) * step, step)
    return found if tuple(numerators) == tuple(found) else None


def numbers_of(numbers: Sequence[Fraction]) -> Numbers:
    """Edges or candidates in the only form that physical plans have for them."""
    numbers = numbers if isinstance(numbers, Rationals) else rationals(numbers)
    are_few = len(numbers) <= LISTED_UP_TO
    if are_few or not isinstance(numbers, Rationals) or not numbers.are_short:
        return tuple(numbers)
    if isinstance(numbers.numerators, range):
        step = Fraction(numbers.numerators.step, numbers.denominator)
        return Progression(numbers[0], step, len(numbers))
    return Ratios(tuple(numbers.numerators), numbers.denominator)
