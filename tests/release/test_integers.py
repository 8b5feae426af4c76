"""Arrays of whole numbers compute as Python's integers do, beyond 64 bits too."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpframe.release.arithmetic import Integers, choose

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**130), 2**130),
    st.sampled_from([2**62, 2**63 - 1, -(2**63), 2**63, 2**31, 2**32]),
)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4)


@pytest.mark.parametrize(
    "rule", [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
)
@given(PAIRS)
@example([(2**62, 2**62)])
@example([(-(2**63), -1)])
@example([(2**63 - 1, -(2**63))])
def test_operations_are_those_of_integers(
    rule: Callable[[Any, Any], Any], pairs: list[tuple[int, int]]
) -> None:
    if rule in (operator.floordiv, operator.mod):
        pairs = [(a, b) for a, b in pairs if b]
    first, second = (Integers.of(pair[i] for pair in pairs) for i in (0, 1))
    found = rule(first, second)
    assert found.tolist() == [rule(a, b) for a, b in pairs]
    assert all(abs(n) <= found.most for n in found.tolist())
    for a, b in pairs:
        assert rule(first, b).tolist() == [rule(n, b) for n, _ in pairs]
        assert (first < second).tolist() == [x < y for x, y in pairs]
        assert (first > a).tolist() == [x > a for x, _ in pairs]
        assert first.equals(second).tolist() == [x == y for x, y in pairs]


@given(st.lists(NUMBERS, max_size=4), st.integers(0, 5))
def test_functions_are_those_of_integers(numbers: list[int], power: int) -> None:
    array = Integers.of(numbers)
    assert (-array).tolist() == [-n for n in numbers]
    assert abs(array).tolist() == [abs(n) for n in numbers]
    assert (array**power).tolist() == [n**power for n in numbers]
    assert array.is_zero.tolist() == [n == 0 for n in numbers]
    assert array.repeat(2).tolist() == [n for n in numbers for _ in range(2)]
    assert array.most == max(map(abs, numbers), default=0)


@given(PAIRS, st.data())
def test_choices_are_of_either(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    wanted = [data.draw(st.booleans()) for _ in pairs]
    first, second = (Integers.of(pair[i] for pair in pairs) for i in (0, 1))
    found = choose(np.array(wanted, dtype=np.bool_), first, second)
    assert found.tolist() == [a if w else b for (a, b), w in zip(pairs, wanted, strict=True)]


def test_what_64_bits_hold_is_an_array_of_them() -> None:
    small = Integers.of([2**31, -3])
    assert small.array.dtype == (small * small).array.dtype == np.int64
    assert (small * 2**32).array.dtype == np.object_
    assert Integers.of_array(np.array([-(2**63)])).array.dtype == np.object_
    assert Integers.of([5]).broadcast(3).tolist() == [5, 5, 5]
