"""Lazy inversion: exact floors, ties on both sides, and the guide table as mere speed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.samplers import OS
from dpframe.samplers.source import LazyTable, OSBits

from .scripted import Script

# square roots of non-squares: irrational, and exact floors by integer arithmetic
NUMBERS = [Fraction(1, 7), Fraction(1, 5), Fraction(1, 3), Fraction(2, 3), Fraction(9, 10)]


def _isqrt(value: Fraction, precision: int) -> int:
    return math.isqrt((value.numerator << 2 * precision) // value.denominator)


def _loose(precision: int) -> list[tuple[int, int]]:
    """Brackets that are wide on purpose: the table must ask again for more."""
    return [(_isqrt(v, precision) - (1 << 33), _isqrt(v, precision) + (1 << 33)) for v in NUMBERS]


def table() -> LazyTable:
    return LazyTable(_loose)


@pytest.mark.parametrize("precision", [64, 128, 192])
def test_floors_are_certified(precision: int) -> None:
    assert table().floors(precision) == [_isqrt(v, precision) for v in NUMBERS]


def test_a_boundary_next_to_one_is_certified_below_one() -> None:
    # F = 1 - tiny: no bracket shows F < 1, the table knows it
    near = LazyTable(lambda p: [((1 << p) - 2, (1 << p) + 1)])
    assert near.floors(64) == [(1 << 64) - 1]


@pytest.mark.parametrize("j", range(len(NUMBERS)))
def test_ties_are_settled_by_further_bits(j: int) -> None:
    t = table()
    word, low = divmod(t.floors(128)[j], 1 << 64)
    assert t.draw(1, Script(u64=[word - 1]))[0] == j
    assert t.draw(1, Script(u64=[word + 1]))[0] == j + 1
    for extension, expected in ((low - 1, j), (low + 1, j + 1)):
        source = Script(u64=[word], single=[extension])
        assert t.draw(1, source)[0] == expected
        assert source.exhausted()
    longer = t.floors(192)[j] & (1 << 64) - 1
    assert t.draw(1, Script(u64=[word], single=[low, longer - 1]))[0] == j
    assert t.draw(1, Script(u64=[word], single=[low, longer + 1]))[0] == j + 1


def test_boundaries_that_share_64_bits_are_told_apart() -> None:
    base = _isqrt(Fraction(1, 3), 64)

    def close(precision: int) -> list[tuple[int, int]]:
        first = _isqrt(Fraction(1, 3), precision)
        second = first + (1 << precision - 80)
        return [(first, first + 1), (second, second + 1)]

    t = LazyTable(close)
    assert t.floors(64) == [base, base]
    first, second = (f & (1 << 64) - 1 for f in t.floors(128))
    for low, expected in ((first - 1, 0), (first + 1, 1), (second - 1, 1), (second + 1, 2)):
        assert t.draw(1, Script(u64=[base], single=[low]))[0] == expected


class _Words(OSBits):
    """Hands out given 64-bit words, whole or as 16 bits first and the other 48 on demand."""

    __slots__ = ("first", "words")

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self.first = (words >> np.uint64(48)).astype(np.uint16)

    def u16(self, n: int) -> np.ndarray:
        return self.first

    def u64(self, n: int) -> np.ndarray:
        if n == self.words.size:
            return self.words
        rest = self.words[np.isin(self.first, _inside(table()))] << np.uint64(16)
        assert rest.size == n
        return rest


def _inside(t: LazyTable) -> list[int]:
    return [f >> 48 for f in t.floors(64)]


def test_the_guide_table_gives_what_64_bits_give() -> None:
    t = table()
    words = OS.u64(200_000).copy()
    near = np.array(t.floors(64), np.uint64)
    for step in range(1, 40):  # plenty of words in the very cells that hold a boundary
        words[step * 10 : step * 10 + 5] = near + np.uint64(1 << step)
        words[step * 10 + 5 : step * 10 + 10] = near - np.uint64(1 << step)
    expected = np.searchsorted(near, words, "left")
    np.testing.assert_array_equal(t.draw(words.size, _Words(words)), expected)
