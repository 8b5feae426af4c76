"""The law of limits: whatever one individual's rows are, no vector moves further than declared, and
for some rows it moves just as far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Additive
from tests.laws.amounts import examples
from tests.laws.individuals import (
    BEST,
    GROUPINGS,
    KEYS,
    LIMITS,
    STEPS,
    TEXTS,
    UNIT_TEXTS,
    accepted,
    check_limits,
    frame_of,
    neighbours,
    query,
    reached,
    stepped,
)
from tests.laws.neighbours import Engine, Pair, exact_tables, measurements_of, moved, same, vector

ENGINES: tuple[Engine, ...] = ("in-memory", "streaming")
salts = st.integers(0, 2**64 - 1)
groupings = st.sampled_from(GROUPINGS)
grouped = st.sampled_from(GROUPINGS[1:])
chains = st.lists(st.sampled_from(LIMITS) | st.sampled_from(STEPS), max_size=6)
limits = st.lists(st.sampled_from(LIMITS), min_size=1, max_size=4)


def test_all_steps_and_groupings_make_sense() -> None:
    """By themselves, on the frame that they are written for."""
    for step in [*STEPS, *LIMITS]:
        stepped([step])
    for grouping in GROUPINGS:
        assert accepted('pl.col("id").dp_n_unique()', grouping, []) is not None
    for text in TEXTS:
        assert accepted(text, "f", ["f.limit_rows(3)"]) is not None
    for text in UNIT_TEXTS:
        assert accepted(text, "f", []) is not None
    for text in BEST:
        assert accepted(text, GROUPINGS[1], ["f.limit_rows(3)"]) is not None


# ------------------------------------------------------------------------------- the declared


def check_random(
    text: str, grouping: str, steps: Sequence[str], pair: Pair, salt: int
) -> Query | None:
    asked = accepted(text, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_limits(asked, pair, salt)
    return asked


@examples(50, 400)
@given(st.sampled_from(TEXTS), groupings, chains, neighbours(), salts)
def test_an_individual_moves_no_more_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    check_random(text, grouping, steps, pair, salt)


@examples(20, 400)
@given(
    st.sampled_from(["dp.count()", *UNIT_TEXTS]),
    groupings,
    limits,
    st.lists(st.sampled_from(STEPS), max_size=3),
    limits | st.just([]),
    neighbours(),
    salts,
)
def test_limits_steps_and_limits_again(
    text: str,
    grouping: str,
    before: list[str],
    between: list[str],
    after: list[str],
    pair: Pair,
    salt: int,
) -> None:
    check_random(text, grouping, [*before, *between, *after], pair, salt)


@examples(15, 200)
@given(st.sampled_from(BEST), grouped, chains, neighbours(), salts)
def test_the_best_group_moves_no_more_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    check_random(text, grouping, steps, pair, salt)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(st.sampled_from([*TEXTS, *BEST]), groupings, chains, neighbours(30), salts)
def test_an_individual_never_moves_more_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    assume(text not in BEST or grouping != "f")
    check_random(text, grouping, steps, pair, salt)


# ---------------------------------------------------------------- the same answer in any form


@examples(12, 200)
@given(st.sampled_from(TEXTS), groupings, chains, neighbours(), salts, st.data())
def test_form_and_engine_do_not_matter(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int, data: st.DataObject
) -> None:
    """Any order of rows, any chunks, both engines, and marks of sorted columns."""
    asked = accepted(text, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    frame = pair.after
    expected = exact_tables(asked, frame, salt=salt)
    shuffled = frame[data.draw(st.permutations(range(frame.height)))]
    cut = data.draw(st.integers(0, frame.height))
    by = data.draw(st.sampled_from(frame.columns))
    for form in (
        shuffled,
        pl.concat([shuffled[:cut], shuffled[cut:]], rechunk=False),
        frame.sort(by, nulls_last=True),
        frame.sort(by, descending=True),
    ):
        for engine in ENGINES:
            assert same(expected, exact_tables(asked, form, engine, salt))


def test_totals_are_those_of_plain_python() -> None:
    """Each individual's total in a group, clamped after it was added up."""
    rows = [(1, "a", 9), (1, "a", 9), (2, "a", -4), (2, "a", 2), (1, "b", -50), (3, "a", None)]
    rows += [(2, None, 1), (4, "b", 1), (4, "b", None), (None, "a", 5), (1, "a", 4)]
    frame = frame_of([{"id": i, "g": g, "x": x, "y": x and x / 4} for i, g, x in rows])
    texts = [
        'pl.col("x").dp_sum((-3, 20), per="unit")',
        'pl.col("y").dp_sum((-0.75, 5), per="unit")',
        'pl.col("id").dp_n_unique()',
        'dp.count(per="unit", bounds=(0, 2))',
        'pl.col("x").dp_count(per="unit", bounds=(0, 2))',
    ]
    grouping = 'f.group_by("g", keys=["a", "b", None, "never"])'
    expected = {
        "f": [  # 9 + 9 - 50 + 4 is below the bounds
            [-3 - 1 + 1],
            [-0.75 - 0.25 + 0.25],
            [4],
            [2 + 2 + 1 + 2],
            [2 + 2 + 0 + 1],
        ],
        grouping: [
            [20 - 2, -3 + 1, 1, 0],
            [5 - 0.5, -0.75 + 0.25, 0.25, 0],
            [3, 2, 1, 0],
            [2 + 2 + 1, 1 + 2, 1, 0],
            [2 + 2, 1 + 1, 1, 0],
        ],
    }
    for grouped_by, values in expected.items():
        for text, numbers in zip(texts, values, strict=True):
            asked = query([text], grouped_by)
            (use,) = measurements_of(asked)
            assert isinstance(use.part, Additive)
            found = vector(use.part, exact_tables(asked, frame))
            assert [n * use.part.step for n in found] == numbers, text


# ------------------------------------------------------------------------------- the reached

GROUPS = ["a", "b", "c", "d", "e", None]
OTHERS = [{"id": 2, "g": g, "x": 1, "y": 1.0} for g in GROUPS]


def people(counts: Sequence[int], **row: Any) -> list[dict[str, Any]]:
    """One individual's rows: so many in each group, all different in a column that is not used."""
    return [
        {"h": n, "id": 1, "g": GROUPS[i], **row}
        for i, most in enumerate(counts)
        for n in range(most)
    ]


def ways(l0: int, l1: int, linf: int) -> Iterator[tuple[int, ...]]:
    """Numbers of rows per group: as many as there can be in few groups, in many, and in all."""
    full, left = divmod(l1, linf)
    yield (linf,) * full + (left,)
    yield (1,) * l0
    yield from ((n,) * 6 for n in (1, 3, 5))


SUM = 'pl.col("x").dp_sum((-3, 7))'
BY_G = f'f.group_by("g", keys={GROUPS})'
FEW = 'f.group_by("g", keys=["a", "b"])'
BY_H = 'f.group_by("h", keys=[0, 1])'
_AMONG = 'dp_argmax(candidates=["a", "b", "c"])'
CASES: dict[tuple[str, str, str], tuple[int, int, int, int]] = {
    # steps, grouping, what each row adds -> L0, L1, L2 squared, Linf of rows
    ("f.limit_rows(5)", "f", "count"): (1, 5, 25, 5),
    ("f.limit_rows(1)", "f", "count"): (1, 1, 1, 1),
    ("f.limit_rows(5)", BY_G, "count"): (5, 5, 25, 5),
    ("f.limit_rows(100).limit_rows(4)", BY_G, "count"): (4, 4, 16, 4),
    ('f.limit_rows(2, by="g")', BY_G, "count"): (6, 12, 24, 2),
    ('f.limit_rows(2, by="g")', FEW, "count"): (2, 4, 8, 2),
    ('f.limit_rows(3, by="g").limit_rows(7)', BY_G, "count"): (6, 7, 19, 3),
    ('f.limit_groups(3, by="g").limit_rows(5, by="g")', BY_G, "count"): (3, 15, 75, 5),
    ('f.limit_rows(5, by="g").limit_groups(3, by="g")', BY_G, "count"): (3, 15, 75, 5),
    ('f.limit_groups(3, by="g").limit_rows(5, by="g")', "f", "count"): (1, 15, 225, 15),
    ('f.limit_groups(5, by="g").limit_rows(5, by="g").limit_rows(12)', BY_G, "count"): (
        *(5, 12, 54, 5),
    ),
    ('f.limit_groups(3, by="g").limit_rows(5, by="g").limit_rows(100)', BY_G, "count"): (
        *(3, 15, 75, 5),
    ),
    ('f.limit_groups(3, by="g").limit_rows(5, by="g")', FEW, "count"): (2, 10, 50, 5),
    ('f.limit_groups(2, by="g").limit_rows(6)', BY_G, "count"): (2, 6, 36, 6),
    ('f.limit_groups(3, by="g").limit_rows(2)', BY_G, "count"): (2, 2, 4, 2),
    ('f.limit_groups(3, by="g").limit_rows(2, by="g").limit_rows(1)', BY_G, "count"): (1, 1, 1, 1),
    ('f.limit_groups(4, by="g")', BY_G, "unit"): (4, 4, 4, 1),
    ('f.limit_groups(4, by="g").limit_rows(3)', BY_G, "unit"): (3, 3, 3, 1),
    ("f.limit_rows(2)", BY_G, "unit"): (2, 2, 2, 1),
    ("f", BY_G, "unit"): (6, 6, 6, 1),
    ("f", BY_G, "two rows"): (6, 12, 24, 2),
    ("f", FEW, "unit"): (2, 2, 2, 1),
    ("f", "f", "unit"): (1, 1, 1, 1),
    ("f", "f", "two rows"): (1, 2, 4, 2),
    # -- what was learned before a column got another name, other values, or was dropped
    (
        'f.limit_groups(2, by="g").limit_rows(3, by="g").rename({"g": "z", "c": "g"}).rename('
        '{"g": "c", "z": "g"})',
        BY_G,
        "count",
    ): (2, 6, 18, 3),
    ('f.limit_groups(2, by="g").limit_rows(3, by="g").drop("g")', "f", "count"): (1, 6, 36, 6),
    (
        'f.limit_groups(2, by="g").limit_rows(3, by="g").with_columns(g=pl.lit("a"))',
        "f",
        "count",
    ): (1, 6, 36, 6),
    (
        'f.limit_groups(2, by="g").limit_rows(3, by="g").with_columns(g=pl.lit("a"))',
        BY_G,
        "one group",
    ): (6, 6, 36, 6),
    ('f.limit_rows(2, by=["g", "h"]).limit_groups(3, by=["g", "h"])', "f", "twice"): (1, 6, 36, 6),
}


def texts_of(kind: str) -> list[tuple[str, dict[str, Any], int]]:
    """dp expressions, the row that moves them furthest, and how many steps it adds."""
    if kind == "two rows":
        return [('dp.count(per="unit", bounds=(0, 2))', {}, 1)]
    if kind == "unit":
        return [
            ('pl.col("id").dp_n_unique()', {}, 1),
            ('dp.count(per="unit", bounds=(0, 1))', {}, 1),
            ('pl.col("x").dp_sum((-3, 70), per="unit")', {"x": 100}, 70),
            ('pl.col("x").dp_sum((-9, 7), per="unit")', {"x": -(2**62)}, 9),
        ]
    return [
        ("dp.count()", {}, 1),
        ('pl.col("y").dp_count()', {"y": 0.5}, 1),
        (SUM, {"x": 2**63 - 1}, 7),
        ('pl.col("x").dp_sum((-9, 7))', {"x": -(2**63)}, 9),
    ]


@pytest.mark.parametrize(("steps", "grouping", "kind"), CASES)
def test_what_is_declared_is_reached(steps: str, grouping: str, kind: str) -> None:
    l0, l1, l2_squared, linf = CASES[steps, grouping, kind]
    for text, row, b in texts_of(kind):
        asked = query([text], grouping, [steps])
        (use,) = measurements_of(asked)
        s = use.sensitivity
        assert (s.l0, s.l1, s.l2_squared, s.linf) == (l0, b * l1, b * b * l2_squared, b * linf)
        times = 2 if kind in ("twice", "two rows") else 1
        pairs = [
            Pair(frame_of(OTHERS), frame_of(OTHERS + times * people(counts, **row)))
            for counts in ways(l0, l1, linf)
        ]
        (found,) = reached(asked, pairs, salt=3)
        assert found.l1 == s.l1
        assert found.l2_squared == s.l2_squared
        assert found.linf == s.linf
        assert found.l0 == s.l0 or kind == "one group"


def test_totals_of_floats_reach_their_bounds() -> None:
    asked = query(['pl.col("y").dp_sum((-0.5, 0.25), per="unit")'], BY_G)
    (use,) = measurements_of(asked)
    pair = Pair(frame_of(OTHERS), frame_of(OTHERS + people((9,) * 6, y=-1e300)))
    (found,) = reached(asked, [pair])
    assert found.l1 * use.part.step == 6 * Fraction(1, 2)
    assert found.l1 == use.sensitivity.l1


def test_groups_in_cells_are_reached() -> None:
    """A histogram has a cell for each of an individual's rows."""
    asked = query(['pl.col("e").dp_histogram()'], BY_G, ['f.limit_groups(2, by="g").limit_rows(5)'])
    (use,) = measurements_of(asked)
    rows = [{"id": 1, "g": g, "e": e} for g, e in (("a", "p"), ("a", "q"), ("b", "p"), ("b", "q"))]
    rows += [{"id": 1, "g": "b", "e": "r"}]
    same = [{"id": 1, "g": "a", "e": "p"}] * 5
    (found,) = reached(asked, [Pair(frame_of([]), frame_of(r)) for r in (rows, same)])
    s = use.sensitivity
    assert (found.l0, found.l1, found.l2_squared, found.linf) == (5, 5, 25, 5)
    assert (s.l0, s.l1, s.l2_squared, s.linf) == (5, 5, 25, 5)


CELLS = [  # limits, grouping, the rows in each cell that move most, L0, L1, squared L2, Linf
    ('f.limit_rows(2, by="g").limit_rows(10)', "f", "222", (3, 6, 12, 2)),
    ('f.limit_rows(2, by="g").limit_rows(5)', "f", "221", (3, 5, 9, 2)),
    ('f.limit_rows(4, by="g").limit_rows(5)', "f", "410", (3, 5, 17, 4)),
    ('f.limit_rows(4, by="g").limit_rows(3)', "f", "300", (3, 3, 9, 3)),
    ('f.limit_rows(2, by="g").limit_groups(2, by="g")', "f", "220", (3, 4, 8, 2)),
    ('f.limit_rows(2, by=["g", "h"]).limit_rows(5)', "f", "500", (3, 5, 25, 5)),
    ('f.limit_rows(2, by=["g", "h"]).limit_rows(9)', BY_H, "222210", (6, 9, 17, 2)),
    ('f.limit_rows(2, by=["g", "h"]).limit_rows(3, by="h")', BY_H, "210210", (6, 6, 10, 2)),
    (
        'f.limit_rows(2, by=["g", "h"]).limit_rows(3, by="h").limit_rows(5)',
        BY_H,
        "210200",
        (5, 5, 9, 2),
    ),
    (
        'f.limit_rows(3, by=["g", "h"]).limit_rows(5, by="h").limit_rows(9)',
        BY_H,
        "320310",
        (6, 9, 23, 3),
    ),
    ('f.limit_rows(3, by="g").limit_rows(5, by="h").limit_rows(8)', BY_H, "320003", (6, 8, 22, 3)),
]


@pytest.mark.parametrize(("limits", "grouping", "most", "declared"), CELLS)
@pytest.mark.parametrize("call", ['dp_histogram(["a", "b", "c"])', _AMONG])
def test_rows_in_each_cell_are_reached(
    limits: str, grouping: str, most: str, declared: tuple[int, int, int, int], call: str
) -> None:
    """A limit by the column whose values are counted holds in every cell."""
    asked = query([f'pl.col("g").{call}'], grouping, [limits])
    (use,) = measurements_of(asked)
    s = use.sensitivity
    assert (s.l0, s.l1, s.l2_squared, s.linf) == declared
    places = list(product((0, 1), "abc"))
    rows = [
        {"id": 1, "h": h if grouping == BY_H else n, "g": g, "x": n}
        for (h, g), times in zip(places, most, strict=False)
        for n in range(int(times))
    ]
    part, pair = use.part, Pair(frame_of([]), frame_of(rows))
    before, after = (exact_tables(asked, f, salt=3) for f in (pair.before, pair.after))
    (table,) = part.tables
    change = after[table].dense(3) - before[table].dense(3)
    assert (abs(change).sum(), (change**2).sum(), abs(change).max()) == declared[1:]


@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("dp_argmax()", 3),
        ('dp_argmax(score=pl.col("x").dp_sum((-3, 7)))', 21),
        ('dp_argmax(score=pl.col("x").dp_n_unique())', 3),
    ],
)
def test_the_range_of_scores_is_reached(text: str, largest: int) -> None:
    """Rows of one group move its score, and those of others stay."""
    asked = query([text], BY_G, ['f.limit_rows(3, by="g").limit_rows(3)'])
    (use,) = measurements_of(asked)
    rows = [{"id": 1, "g": "a", "x": x} for x in (7, 8, 9)]
    (found,) = reached(asked, [Pair(frame_of(OTHERS), frame_of(OTHERS + rows))])
    assert found.linf == use.sensitivity.linf == largest
    assert use.part.score_range(asked.scope).l1 == largest  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("limits", "grouping", "score", "ranges"),
    [
        ('f.limit_rows(3, by="g").limit_groups(2, by="g")', "f", None, (3,)),
        ('f.limit_groups(2, by="g").limit_rows(3, by="g").limit_rows(4)', "f", None, (3,)),
        ('f.limit_rows(3, by="g").limit_groups(2, by="g").limit_rows(2)', "f", None, (2,)),
        ('f.limit_rows(3, by="c").limit_groups(2, by="c")', "f", None, (6,)),
        ('f.limit_rows(3, by="g").limit_groups(2, by="g")', "f", (-3, 7), (30,)),
        ('f.limit_rows(3, by="g").limit_groups(2, by="g")', "f", (-3, 2), (15,)),
        (
            'f.limit_rows(2, by=["g", "h"]).limit_groups(2, by="h").limit_rows(3, by="h")',
            f'f.group_by("h", keys={KEYS["h"]})',
            None,
            (2, 2),
        ),
    ],
)
def test_rows_for_each_candidate_bound_the_range(
    limits: str, grouping: str, score: tuple[int, int] | None, ranges: tuple[int, ...]
) -> None:
    """However many candidates an individual has rows of, all scores move one way; sums with values
    of both signs move two of them apart.
    """
    by = "" if score is None else f', score=pl.col("x").dp_sum({score})'
    asked = query([f'pl.col("g").dp_argmax(candidates=["a", "b", "c"]{by})'], grouping, [limits])
    (use,) = measurements_of(asked)
    declared = use.part.score_range(asked.scope)  # type: ignore[attr-defined]
    assert declared.groups == ranges
    assert declared.l2_squared == sum(r * r for r in ranges)
    reached_ranges = []
    for first, second in ((7, 7), (7, -9), (-9, -9)):
        rows = [
            {"id": 1, "g": g, "x": x, "h": h, "c": "am"[(n + h) % 2], "y": float(n)}
            for g, x in (("a", first), ("b", second))
            for h in (0, 1)
            for n in range(3)
        ]
        for some in (rows, rows[:6]):
            frames = (frame_of(OTHERS), frame_of(OTHERS + some))
            before, after = (exact_tables(asked, frame, salt=3) for frame in frames)
            found = moved(use.part, before, after, asked.scope).ranges
            assert sum(found) <= declared.l1
            assert max(found) <= declared.linf
            reached_ranges.append(tuple(sorted((r for r in found if r), reverse=True)))
    assert ranges in reached_ranges


def test_frames_without_others() -> None:
    """One individual, one row, no row at all."""
    for text in TEXTS:
        asked = query([text], "f", ["f.limit_rows(3)"])
        for rows in ([{"id": 1}], [{"id": 1, "x": 5, "y": 1.0, "e": "p", "g": "a"}], [{}]):
            check_limits(asked, Pair(frame_of([]), frame_of(rows)))


def test_declared_facts_of_the_identifier_are_not_trusted() -> None:
    """Bounds and categories that are false of the data."""
    declared: dict[str, Any] = {"bounds": {"id": (2, 3), "x": (0, 1)}, "categories": {"id": [2, 3]}}
    frame = pl.LazyFrame(schema=frame_of([]).schema)
    protected = dp.Session(epsilon=1).protect(frame, "id", **declared)
    rows = frame_of(people((5,) * 6, x=100))
    for grouping in ('f.group_by("id")', BY_G, "f"):
        for text in ("dp.count()", 'pl.col("x").dp_sum()', 'pl.col("id").dp_n_unique()'):
            asked = query([text], grouping, ["f.limit_rows(7)"], frame=protected)
            check_limits(asked, Pair(rows, frame_of([])))
