"""Many exact numbers over one denominator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.exact import (
    Rationals,
    are_whole,
    floats,
    of_floats,
    rationals,
    share_denominator,
    texts,
    wholes,
)

NUMBERS = st.lists(st.fractions(max_denominator=10**6), max_size=20)
REGULAR = st.builds(
    lambda start, step, size: [start + i * step for i in range(size)],
    st.fractions(max_denominator=1000),
    st.fractions(max_denominator=1000).filter(bool),
    st.integers(2, 40),
)


@given(NUMBERS | REGULAR)
def test_they_are_the_numbers_that_they_were_made_of(numbers: list[Fraction]) -> None:
    made = rationals(numbers)
    assert list(made) == numbers
    assert [made[i] for i in range(len(made))] == numbers
    assert texts(made) == [str(n) for n in numbers]
    assert floats(made) == [float(n) for n in numbers]
    assert are_whole(made) == all(n.denominator == 1 for n in numbers)
    if are_whole(made):
        assert wholes(made) == numbers


@given(REGULAR, st.integers(1, 100))
def test_the_same_numbers_are_equal_whatever_they_were_made_of(
    numbers: list[Fraction], times: int
) -> None:
    one = rationals(numbers)
    assert isinstance(one, Rationals)
    assert isinstance(one.numerators, range)
    other = Rationals([n * times for n in one.numerators], one.denominator * times)
    ranged = Rationals(
        range(
            other.numerators[0],
            other.numerators[-1] + (1 if one[1] > one[0] else -1),
            other.numerators[1] - other.numerators[0],
        ),
        other.denominator,
    )
    assert one == other == ranged
    assert hash(one) == hash(other) == hash(ranged)
    assert one != Rationals([*one.numerators, 0], one.denominator)


@given(NUMBERS, NUMBERS)
def test_others_differ(one: list[Fraction], other: list[Fraction]) -> None:
    assert (rationals(one) == rationals(other)) == (one == other)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_are_the_decimals_that_they_print_as(numbers: list[float]) -> None:
    made: Sequence[Fraction] | None = of_floats(numbers)
    assert made is not None
    assert list(made) == [Fraction(repr(n)) for n in numbers]
    assert floats(made) == numbers


def test_numbers_that_share_no_short_denominator_stay_as_they_are() -> None:
    numbers = [Fraction(1, 2**4000), Fraction(1, 3**3000)]
    assert share_denominator([(n.numerator, n.denominator) for n in numbers]) is None
    made = rationals(numbers)
    assert isinstance(made, tuple)
    assert list(made) == numbers
    assert texts(made) == [str(n) for n in numbers]
