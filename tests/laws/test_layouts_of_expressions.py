"""Every operation, and random expressions of them, on rows stored in every way."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import islice, product

import pytest

from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import tree_of
from tests.laws.frames import nasty_frame, wide_columns
from tests.laws.stored_expressions import (
    BINARY,
    WIDE,
    Held,
    Law,
    batches,
    fitting,
    grown,
    held,
    ordinary,
    pairs,
    widened,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Comparisons with None:UserWarning"),
    pytest.mark.filterwarnings("ignore:`cut` is deprecated:DeprecationWarning"),
]
NASTY = nasty_frame(61)
COLUMNS = wide_columns(NASTY)
ALL_COLUMNS = wide_columns(widened(NASTY))


def seed() -> int:
    """Of new examples each time where many are tried, of the same ones where few are."""
    return random.SystemRandom().randrange(2**32) if _SLOW else 20_261_122


_SLOW = os.environ.get("DPFRAME_PROFILE") == "slow"


def frames(rng: random.Random, number: int, every_type: bool = False) -> list[Held]:
    """Awkward rows and ordinary ones, a few at a time, of several constant columns."""
    pools = [NASTY, ordinary(rng)]
    if every_type:
        pools = [widened(pool) for pool in pools]
    heights = [1, 2, 2, 3, 5]
    return [held(rng, pools[i % 2], rng.choice(heights)) for i in range(number)]


def every_example() -> Iterator[str]:
    for operation in OPERATIONS:
        yield from operation.examples


def test_every_operation() -> None:
    rng = random.Random(seed())
    law = Law(COLUMNS, frames(rng, 8))
    trees = fitting((tree_of(text) for text in every_example()), COLUMNS)
    for i, batch in enumerate(batches(trees, 10_000)):
        law.check(batch, 4, at=i)
    law.verdict()
    assert law.expressions >= 400


@pytest.mark.parametrize(("depth", "number"), [(1, 400), (2, 320), (3, 20)])
def test_nested_expressions(depth: int, number: int) -> None:
    rng = random.Random(seed())
    law = Law(COLUMNS, frames(rng, 8))
    for i, batch in enumerate(batches(fitting(grown(rng, depth), COLUMNS), number)):
        law.check(batch, 1, at=i)
    law.verdict()
    assert law.expressions == number


def test_operations_of_two_columns() -> None:
    rng = random.Random(seed())
    law = Law(ALL_COLUMNS, frames(rng, 8, every_type=True))
    names = list(WIDE)
    some = ((rng.choice(BINARY), rng.choice(names), rng.choice(names)) for _ in iter(int, 1))
    for i, batch in enumerate(batches(pairs(some, ALL_COLUMNS), 400)):
        law.check(batch, 1, at=i)
    law.verdict()
    assert law.expressions == 400


@pytest.mark.slow
def test_operations_of_all_pairs_of_types() -> None:
    rng = random.Random(seed())
    law = Law(ALL_COLUMNS, frames(rng, 16, every_type=True))
    every = product(BINARY, WIDE, WIDE)
    for i, batch in enumerate(batches(pairs(every, ALL_COLUMNS), 10**6)):
        law.check(batch, 2, at=i)
    law.verdict()
    assert law.expressions >= 9_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_many_nested_expressions(part: int) -> None:
    rng = random.Random(seed())
    law = Law(COLUMNS, frames(rng, 16))
    for depth, number in ((1, 500), (2, 500), (3, 250)):
        trees = islice(fitting(grown(rng, depth), COLUMNS), number)
        for i, batch in enumerate(batches(trees, number)):
            law.check(batch, 1, at=i)
    law.verdict()
    assert law.expressions == 1_250
