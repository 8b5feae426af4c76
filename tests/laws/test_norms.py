"""Limits on the norm of what an individual contributes: weights, against plain Python, and how far
one individual moves what is weighed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import RowCount, UnitCount
from dpframe.core.units import norm_in_parts
from dpframe.kernel.frame import PARTS
from dpframe.lower import pairs as weighing
from tests.laws.amounts import examples
from tests.laws.individuals import (
    GROUPINGS,
    KEYS,
    LIMITS,
    POOLS,
    STEPS,
    accepted,
    check_limits,
    frame_of,
    neighbours,
    query,
    reached,
)
from tests.laws.neighbours import Pair, exact_tables

NORMS = ["1", "2", "1.5", "0.3", "100", "7 / 3", "1.4142135623730951", "65535"]
WEIGHED = [f"f.limit_norm({n})" for n in NORMS]
ADDITIVE = [
    "dp.count()",
    'pl.col("y").dp_count()',
    'pl.col("id").dp_n_unique()',
    'pl.col("x").dp_sum((-3, 7))',
    'pl.col("x").dp_sum((2, 9))',
    'pl.col("y").dp_sum((-1, 0.5))',
    'pl.col("x").dp_sum((0, 2**40))',
    'pl.col("x").dp_mean((-3, 7))',
    'pl.col("y").dp_var((-2, 3))',
    'dp.count(per="unit", bounds=(0, 2))',
    'pl.col("x").dp_sum((-3, 7), per="unit")',
    'pl.col("y").dp_sum((-2, 1.5), per="unit")',
    'pl.col("x").dp_mean((-3, 7), per="unit")',
]
BY_G = f'f.group_by("g", keys={KEYS["g"]})'
BY_TWO = f'f.group_by("g", "h", keys={{"g": {KEYS["g"]}, "h": {KEYS["h"]}}})'


def asked_of(text: str, grouping: str, steps: list[str]) -> Query | None:
    found = accepted(text, grouping, steps)
    return None if found is None or found.scope.norm is None else found


@examples(40, 320)
@given(
    st.sampled_from(ADDITIVE),
    st.sampled_from(GROUPINGS),
    st.lists(st.sampled_from(STEPS), max_size=2),
    st.sampled_from(WEIGHED),
    st.lists(st.sampled_from(LIMITS), max_size=1),
    neighbours(most=10),
    st.integers(0, 2**64 - 1),
)
def test_nobody_moves_what_is_weighed_further_than_it_declares(
    text: str,
    grouping: str,
    steps: list[str],
    norm: str,
    limits: list[str],
    pair: Pair,
    salt: int,
) -> None:
    asked = asked_of(text, grouping, [*steps, norm, *limits])
    if asked is not None:
        check_limits(asked, pair, salt)


@examples(20, 160)
@given(
    st.lists(st.sampled_from(ADDITIVE), min_size=2, max_size=4, unique=True),
    st.sampled_from([BY_G, BY_TWO, "f"]),
    st.sampled_from(WEIGHED),
    neighbours(most=10),
)
def test_nor_several_that_are_drawn_together(
    texts: list[str], grouping: str, norm: str, pair: Pair
) -> None:
    check_limits(query(texts, grouping, [norm]), pair)


def weight(squares: int, norm: int) -> int:
    """The largest k up to `PARTS` with k**2 squares <= norm**2."""
    return min(PARTS, math.isqrt(norm * norm // squares))


def tables_of(frame: pl.DataFrame, norm: Fraction, keys: Iterable[Any]) -> list[dict[Any, int]]:
    """Weighed rows and individuals of each group, by plain Python."""
    owned: dict[int, Counter[Any]] = defaultdict(Counter)
    listed, most = list(keys), norm_in_parts(norm)
    for who, group in frame.select("id", "g").rows():
        if who is not None and group in listed:
            owned[who][group] += 1
    rows, people = Counter[Any](), Counter[Any]()
    for found in owned.values():
        for group, number in found.items():
            rows[group] += number * weight(sum(m * m for m in found.values()), most)
            people[group] += weight(len(found), most)
    return [{key: table[key] for key in listed} for table in (rows, people)]


@examples(30, 240)
@given(neighbours(most=30), st.sampled_from([1, 2, 1.5, 0.3, 7.25, 300]), st.booleans())
def test_tables_are_what_integers_say(pair: Pair, norm: float, streaming: bool) -> None:
    asked = query(
        ["dp.count()", 'pl.col("id").dp_n_unique()'],
        'f.group_by("g", keys=["b", None, "never", "a"])',
        [f"f.limit_norm({norm})"],
    )
    keys = ["b", None, "never", "a"]
    for frame in (pair.before, pair.after):
        engine: Any = "streaming" if streaming else "in-memory"
        counted = exact_tables(asked, frame, engine)
        found = [counted[Table(of)].values.tolist() for of in (RowCount(), UnitCount())]
        expected = tables_of(frame, Fraction(str(norm)), keys)
        assert found == [[table[key] for key in keys] for table in expected]


def test_weights_are_the_largest_that_keep_the_norm() -> None:
    squares = [*range(1, 3000), *(n * n + d for n in (64, 4095, 4096, 4097) for d in (-1, 0, 1))]
    squares += [2**k + d for k in range(12, 60, 3) for d in (-1, 0, 1)]
    for norm in (64, 4096, 5793, 12288, 4096 * 100 + 1, 2**28 - 1):
        near = [n for k in (1, 2, 3, 4095, 4096) for n in _around(norm * norm, k * k)]
        some = sorted({s for s in [*squares, *near] if 0 < s < 2**62})
        made = pl.select(s=pl.Series(some, dtype=pl.Int64)).select(
            weighing._weight(pl.col("s"), norm, pl)
        )
        assert made.to_series().to_list() == [weight(s, norm) for s in some]


def _around(above: int, below: int) -> list[int]:
    return [above // below + d for d in (-1, 0, 1)]


def test_a_wrong_root_never_makes_a_weight_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    some, norm = list(range(1, 5000)), 12345
    for off in (-3.0, -1.0, -0.5, 0.5, 1.0, 1.5, 100.0):
        exact = pl.Expr.sqrt
        monkeypatch.setattr(pl.Expr, "sqrt", lambda column, off=off, root=exact: root(column) + off)
        made = pl.select(s=pl.Series(some, dtype=pl.Int64)).select(
            weighing._weight(pl.col("s"), norm, pl)
        )
        monkeypatch.undo()
        found = zip(some, made.to_series().to_list(), strict=True)
        assert all(0 <= k <= PARTS and k * k * s <= norm * norm for s, k in found)


def person(groups: Iterable[Any], rows: int, who: int = 1) -> list[dict[str, Any]]:
    return [{"id": who, "g": g, "h": 0, "x": 7, "y": 0.5} for g in groups for _ in range(rows)]


def test_the_declared_norms_are_reached() -> None:
    others = person(POOLS["g"], 2, who=2)
    pairs = [
        Pair(frame_of(others), frame_of(others + person(POOLS["g"][:groups], rows)))
        for groups in (1, 2, 3, 4)
        for rows in (1, 2, 3, 50)
    ]
    texts = ["dp.count()", 'pl.col("x").dp_sum((-3, 7))', 'pl.col("id").dp_n_unique()']
    asked = query(texts, BY_G, ["f.limit_norm(1.75)"])
    most = norm_in_parts(Fraction("1.75"))
    for found, bound in zip(reached(asked, pairs), (1, 7, 1), strict=True):
        assert found.l0 == 4
        assert 0.999 < found.l2_squared / (most * bound) ** 2 <= 1
        assert 0.999 < found.l1 / (2 * most * bound) <= 1
    rows, _, _ = (found.linf for found in reached(asked, pairs))
    assert 0.999 < rows / most <= 1


def test_individuals_that_have_little_are_as_they_are() -> None:
    frame = frame_of(person(["a", "b"], 1) + person(["a"], 1, who=2))
    counted = exact_tables(query(["dp.count()"], BY_G, ["f.limit_norm(2)"]), frame)
    assert counted[Table(RowCount())].values.tolist() == [2 * PARTS, 0, PARTS, 0]


def test_weights_rest_on_listed_groups_alone() -> None:
    rows = person(["a"], 1) + person(["b", "c", None], 40)
    grouping = 'f.group_by("g", keys=["a", "d"])'
    counted = exact_tables(query(["dp.count()"], grouping, ["f.limit_norm(1)"]), frame_of(rows))
    assert counted[Table(RowCount())].values.tolist() == [PARTS, 0]


PLANTED = {
    "rounded up": lambda k: (k + 1).clip(0, PARTS),
    "never scaled": lambda k: k.clip(PARTS, PARTS),
    "scaled by half": lambda k: (k + PARTS) // 2,
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = weighing._weight
    monkeypatch.setattr(weighing, "_weight", lambda *given: PLANTED[name](exact(*given)))
    frames = [frame_of([]), frame_of(person(POOLS["g"][:3], 7))]
    with pytest.raises(AssertionError, match="declared"):
        check_limits(query(["dp.count()"], BY_G, ["f.limit_norm(2)"]), Pair(frames[0], frames[1]))
