"""Exact numbers: what a user wrote, as a `Fraction`, and the few roundings that must go one way.

A float that a user writes means the decimal that it prints as: ``exact(0.1)`` is one tenth, not
the binary number nearest to it. So ten spends of 0.1 fit in 1.0, and nothing in between is
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import islice
from operator import lt
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidBounds
from dpframe.kernel.plan import LISTED_UP_TO, LONGEST, Numbers, Progression, Ratios

# Many exact numbers over one denominator: edges and candidates, hashed and compared as a whole.
#
# A hundred thousand fractions take a second to make and to look through one by one; integers over a
# denominator that all of them share take milliseconds, and are as exact.


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
    return share_denominator(pairs) or found


def share_denominator(pairs: Sequence[tuple[int, int]]) -> Rationals | None:
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
        return share_denominator([Decimal(text).as_integer_ratio() for text in texts_])
    digits = max((len(text) - text.index(".") for text in texts_), default=1) - 1
    tens = [10**n for n in range(digits + 1)]
    numerators = list[int]()
    for text in texts_:
        whole, _, after = text.partition(".")
        numerators.append(int(whole + after) * tens[digits - len(after)])
    return Rationals(numerators, tens[-1])


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


_DIGITS = 4_000
"""The largest number of digits of a number, and the largest exponent: ``1e9999999999`` would take
a thousand million."""
_ABSURD = "a number with too many digits"
_LONGEST = 200
"""Characters of a value in a message."""

Number: TypeAlias = "int | float | Decimal | Fraction"
"""What users pass as a number. Text is read too, but type checkers report it."""


def exact(value: object) -> Fraction:
    """The exact rational number that `value` denotes.

    Parameters
    ----------
    value
        An int, str, Decimal, Fraction or float; a float means the shortest decimal that prints it.

    Raises
    ------
    ValueError
        For NaN, an infinity, text that is not a number, and numbers with too many digits.
    TypeError
        For anything else, booleans included.
    InvalidBounds
        For an integer or fraction with too many digits, which Python does not even write.
    """
    if isinstance(value, bool):
        raise TypeError("a boolean is not a number here")
    if isinstance(value, (int, Fraction)):
        return _sensible(value if type(value) is Fraction else Fraction(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not a finite number")
        return Fraction(repr(float(value)))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("not a finite number")
        _, digits, exponent = value.as_tuple()
        if len(digits) > _DIGITS or abs(int(exponent)) > _DIGITS:
            raise ValueError(_ABSURD)
        return Fraction(value)
    if isinstance(value, str):
        text = value.strip()
        power = text.lower().partition("e")[2].replace("_", "").strip("+-")
        if len(text) > _DIGITS or len(power) > 9 or (power.isdigit() and int(power) > _DIGITS):
            raise ValueError(_ABSURD)
        return Fraction(text)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a NumPy scalar
        return exact(value.item())  # pyright: ignore[reportAttributeAccessIssue]
    raise TypeError(f"{type(value).__name__} is not a number")


def _sensible(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 4 * _DIGITS:
        raise InvalidBounds(_ABSURD, remedy="write a shorter number")
    return number


def nearest(value: Fraction) -> float:
    """The nearest float, infinity beyond the largest; for people."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float_up(value: Fraction) -> float:
    """The smallest float that is not below `value` (infinity if none is)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -1.7976931348623157e308
    if math.isinf(nearest):
        return nearest
    over, under = nearest.as_integer_ratio()  # which compare sooner than fractions do
    if over * value.denominator >= value.numerator * under:
        return nearest
    return math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above `value` (minus infinity if none is)."""
    return -float_up(-value)


def decimal_up(value: Fraction) -> float:
    """The smallest float that prints as a number which is not below `value`."""
    found = float_up(value)
    below = math.nextafter(found, -math.inf)
    if math.isfinite(below) and exact(below) >= value:
        return below
    if math.isfinite(found) and exact(found) < value:  # it is not below, but what it prints as is
        return math.nextafter(found, math.inf)
    return found


def digits_up(value: Fraction, digits: int = 17) -> Fraction:
    """The least decimal with `digits` significant digits that is not below `value`.

    Sums of such numbers stay short, for any denominators of the original numbers.
    """
    return _in_digits(value, Context(prec=digits, rounding=ROUND_CEILING))


def digits_down(value: Fraction, digits: int = 17) -> Fraction:
    """The largest decimal with `digits` significant digits that is not above `value`."""
    return _in_digits(value, Context(prec=digits, rounding=ROUND_FLOOR))


def _in_digits(value: Fraction, context: Context) -> Fraction:
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def sqrt_up(value: Fraction, bits: int = 64) -> Fraction:
    """A rational r >= sqrt(value), exact for rational squares, else too large by at most 2**-`bits`
    of its size.
    """
    if value < 0:
        raise ValueError("square root of a negative number")
    if value == 0:
        return Fraction(0)
    root_n, root_d = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if root_n * root_n == value.numerator and root_d * root_d == value.denominator:
        return Fraction(root_n, root_d)
    shift = max(0, bits + 2 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = -((-value.numerator << 2 * shift) // value.denominator)
    return Fraction(math.isqrt(scaled - 1) + 1, 1 << shift)


def sqrt_down(value: Fraction, bits: int = 64) -> Fraction:
    """A rational r <= sqrt(value), exact for rational squares."""
    up = sqrt_up(value, bits)
    return up if up * up == value else value / up


def dyadic_up(value: Fraction, bits: int = 64) -> Fraction:
    """The least number of the form i / 2**k with `bits` significant bits, not below `value`."""
    return -dyadic_down(-value, bits)


def dyadic_down(value: Fraction, bits: int = 64) -> Fraction:
    """The greatest number of that form that is not above `value`."""
    numerator, denominator = value.numerator, value.denominator
    power = numerator.bit_length() - denominator.bit_length() - bits
    if power < 0:
        return Fraction((numerator << -power) // denominator, 1 << -power)
    return Fraction(numerator // (denominator << power) << power)


def show(value: Fraction | int | float, digits: int = 6) -> str:
    """A number rounded for people: integers whole, others to `digits` significant digits."""
    if isinstance(value, (int, Fraction)) and Fraction(value).denominator == 1:
        whole = int(value)
        if abs(whole) < 10**15:
            return str(whole)
    try:
        number = float(value)
    except OverflowError:
        return "inf" if value > 0 else "-inf"
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return short_exponent(f"{number:.{digits}g}")


def show_input(value: object) -> str:
    """What a caller gave, as Python writes it, for messages. Numbers and text are cut short; what
    may quote a frame is not, so that it can be found and taken out.
    """
    try:
        text = short_exponent(repr(value)) if type(value) is float else repr(value)
    except ValueError:  # Python does not write integers of more than some thousand digits
        return f"<{type(value).__name__} with too many digits>"
    cut = isinstance(value, (int, str, bytes, Decimal, Fraction)) and len(text) > _LONGEST
    return f"{text[:_LONGEST]}..." if cut else text


def short_exponent(text: str) -> str:
    """A number as people write it, ``1e-8``, where Python writes ``1e-08``."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text


# Sums of many floats.


def weighted_sum(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over the last axis of values times weights.

    As `values @ weights`, but by this thread alone: libraries of linear algebra divide products of
    some 10,000 numbers among threads, which on a busy machine wait for each other a thousand times
    longer than the sum takes.

    Parameters
    ----------
    values
        Of any shape.
    weights
        One for each place of its last axis.
    """
    found: NDArray[np.float64] = np.einsum("...i,i->...", values, weights, optimize=False)
    return found
