"""Vectors that several outputs are drawn from: no individual moves them out of what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
import dpframe.optimise.measurements
from dpframe.aggregates import measurement
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import JointSums
from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, ValueCount
from dpframe.core.interval import squares_shortened
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.kernel.frame import Reach
from dpframe.kernel.moves import Moves, Norms
from dpframe.mechanisms import Box
from dpframe.optimise.measurements import measurements_of, ways_of
from tests.laws import individuals, kernel_mistakes
from tests.laws.amounts import amounts, examples
from tests.laws.neighbours import (
    UNITS,
    check_sensitivities,
    exact_tables,
    joint_changes,
    neighbours,
    outside_box,
)
from tests.laws.queries import GROUPINGS, STEPS, bounds, names_of, query
from tests.laws.test_planted_sensitivities import pairs

NUMBERS = ["i8", "i64", "u8", "u64", "f64", "b", "dec"]
SETS = [
    ("dp.count()", 'pl.col("i64").dp_sum((0, 7))'),
    ('pl.col("i64").dp_sum((-3, 8))', 'pl.col("u8").dp_sum((2, 9))'),
    ('pl.col("i64").dp_sum((-3, 3))', 'pl.col("f64").dp_sum((-1, 1))'),
    (
        "dp.count()",
        'pl.col("b").dp_sum()',
        '(pl.col("i64") > 2).dp_sum()',
        'pl.col("u8").dp_count()',
    ),
    ('pl.col("f64").dp_mean((-1, 3))', 'pl.col("f64").dp_var((-1, 3))', "dp.count()"),
    ('pl.col("s").dp_n_unique()', 'pl.col("i64").dp_sum((-9, -2))', 'pl.col("f64").dp_count()'),
    ('pl.col("f64").dp_mean((-1, 3))',),
    ('pl.col("i64").dp_mean((-9, 5))', 'pl.col("i64").dp_std((-9, 5))'),
]


@st.composite
def several(draw: st.DrawFn) -> list[str]:
    """Some aggregates that are sums over rows."""
    column = st.sampled_from(NUMBERS)
    one = st.one_of(
        st.just("dp.count()"),
        column.map(lambda c: f'pl.col("{c}").dp_count()'),
        st.builds(lambda c, b: f'pl.col("{c}").dp_sum({b})', column, bounds()),
        st.builds(lambda c, b: f'pl.col("{c}").dp_mean({b})', column, bounds(distinct=True)),
        st.builds(lambda c, b: f'pl.col("{c}").dp_var({b})', column, bounds(distinct=True)),
        st.just('pl.col("s").dp_n_unique()'),
    )
    return draw(st.lists(one, min_size=2, max_size=5))


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(
    several(), st.sampled_from(GROUPINGS), st.lists(st.sampled_from(STEPS), max_size=1), st.data()
)
@settings(max_examples=12)
def test_vectors_of_several_outputs(
    unit: Rows, texts: list[str], grouping: str, steps: list[str], data: st.DataObject
) -> None:
    try:
        asked = query(texts, unit, grouping, steps)
    except DPFrameError:
        return
    check_sensitivities(asked, data.draw(neighbours(unit, names_of(asked))))


@pytest.mark.parametrize(
    "grouping", ["f", 'f.group_by("b", keys=[None, True, False])', 'f.group_by("e")']
)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("texts", SETS, ids=len)
@amounts("turns", 12, 40)
def test_extremes(texts: tuple[str, ...], unit: Rows, grouping: str, turns: int) -> None:
    asked = query(texts, unit, grouping)
    for pair in pairs(names_of(asked), unit, turns):
        check_sensitivities(asked, pair)


@given(
    st.lists(st.sampled_from(individuals.TEXTS[:21]), min_size=2, max_size=4),
    st.sampled_from(individuals.GROUPINGS),
    st.lists(st.sampled_from(individuals.LIMITS), max_size=2),
    individuals.neighbours(),
)
@examples(30, 240)
def test_vectors_of_individuals(
    texts: list[str], grouping: str, limits: list[str], pair: individuals.Pair
) -> None:
    try:
        asked = individuals.query(texts, grouping, limits)
    except DPFrameError:
        return
    individuals.check_limits(asked, pair)


# ------------------------------------------------------------------- the declared set is attained


@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True, False])'])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_boxes_are_attained(unit: Rows, grouping: str) -> None:
    """Some neighbours move all of the declared boxes, so that smaller ones would be wrong."""
    texts = ["dp.count()", 'pl.col("i64").dp_sum((-3, 8))', 'pl.col("u8").dp_sum((0, 9))']
    asked = query(texts, unit, grouping)
    parts = measurements_of(asked)
    way = ways_of(asked, parts, "equal")[1]
    (draw,) = (d for d in way.draws if d.rebuilt is not None)
    part = draw.measurement
    assert isinstance(part, JointSums)
    box = part.task("", draw.sensitivity, "auto", asked.scope).box
    assert box is not None
    short = replace(box, rows=box.rows - 1)
    assert any(
        outside_box(
            part,
            short,
            joint_changes(part, *(exact_tables(asked, f) for f in (pair.before, pair.after))),
        )
        for pair in pairs(names_of(asked), unit)
    )


# ------------------------------------------------------------------------- the law can fail


def _uncentred_box(patch: Any) -> None:
    """Noise for centred sums on sums that are not. Parts follow from these all the same."""
    real, rebuilt = (
        dpframe.optimise.measurements._measurement,
        dpframe.optimise.measurements._rebuild,
    )

    def wrong(drawn: Any, scales: Any, noise: Any) -> JointSums:
        made = real(drawn, scales, noise)
        size = len(made.sums)
        rows = [[r if i == j else 0 for j, r in enumerate(made.matrix[i])] for i in range(size)]
        return replace(made, matrix=tuple(map(tuple, rows)))

    def without_centres(coordinates: Any, *given: Any) -> Any:
        return rebuilt([replace(c, centre=0) for c in coordinates], *given)

    patch.setattr(dpframe.optimise.measurements, "_measurement", wrong)
    patch.setattr(dpframe.optimise.measurements, "_rebuild", without_centres)


def _changed(patch: Any, change: Callable[[Any], Any]) -> None:
    """All numbers that are offered, with something about each one wrong."""
    real = dpframe.optimise.measurements._ways_to_draw

    def wrong(scope: Any, tables: Any, changes: bool) -> Any:
        return tuple(tuple(map(change, offer)) for offer in real(scope, tables, changes))

    patch.setattr(dpframe.optimise.measurements, "_ways_to_draw", wrong)


def _one_end_of_centred(patch: Any) -> None:
    """A row that stays moves a centred sum from one end to the other: half of its box."""
    _changed(patch, lambda c: replace(c, turned=c.width, kept=c.width) if c.centre else c)


def _half_of_each_move(found: Moves) -> Moves:
    stays = tuple(map(min, found.stays, found.widths))
    return Moves(found.widths, stays, sum(stays), sum(s * s for s in stays))


_norms_of_one_end = kernel_mistakes.joint_moves(_half_of_each_move)
"""The same of its norms."""


def _of_rows_that_stay(found: Norms, reach: Reach, moved: Moves) -> Norms:
    return replace(found, l2_squared=reach.rows**2 * moved.stays_squares)


_rows_moved_by_nobody = kernel_mistakes.changes(_of_rows_that_stay)
"""The number of rows, where rows leave one group for another."""

_one_condition_for_all = kernel_mistakes.joint_additions(
    lambda a: a if a.needs is None else replace(a, needs=0)
)
"""A value of one column taken for one of each."""

_values_as_rows = kernel_mistakes.joint_additions(
    lambda a: replace(a, needs=None) if a.lo == a.hi else a
)
"""A number of values moves where a row stays, other than the number of rows."""


def _one_move(patch: Any) -> None:
    """A row that leaves one group for another counted once."""
    patch.setattr(
        measurement,
        "box_of",
        lambda widths, turned, spread, grouped, arches: Box(widths, spread.tight[0], arches),
    )


def _too_narrow(patch: Any) -> None:
    """Sums that are drawn as they are, in the box of centred ones."""
    real = dpframe.optimise.measurements._plain

    def wrong(tables: Any, scope: Any) -> Any:
        return tuple(
            replace(c, width=-(-c.width // 2), turned=-(-c.turned // 2), kept=-(-c.kept // 2))
            for c in real(tables, scope)
        )

    patch.setattr(dpframe.optimise.measurements, "_plain", wrong)


_one_number_alone = kernel_mistakes.norms_where(
    lambda what: len(what.tables) > 1,
    lambda found: replace(found, l2_squared=max(w * w for w in found.box)),
)
"""The largest move of one number taken for the length of all."""


def _one_group(patch: Any) -> None:
    patch.setattr(measurement, "has_several", lambda groups: False)


MISTAKES = {
    "not centred": _uncentred_box,
    "norms of half a move": _norms_of_one_end,
    "one move": _one_move,
    "norms of one number": _one_number_alone,
    "one group": _one_group,
}
COUNT_AND_SUMS = ["dp.count()", 'pl.col("i64").dp_sum((1, 8))', 'pl.col("u8").dp_sum((0, 9))']
BY_B = 'f.group_by("b", keys=[None, True, False])'


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [
        ("not centred", "add-remove"),
        ("not centred", "change-one"),
        ("norms of half a move", "change-one"),
        ("one move", "change-one"),
        ("norms of one number", "add-remove"),
        ("norms of one number", "change-one"),
        ("one group", "change-one"),
    ],
)
def test_mistakes_are_caught(name: str, adjacency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[name](monkeypatch)
    asked = query(COUNT_AND_SUMS, Rows(adjacency), BY_B)
    with pytest.raises(AssertionError, match="declared"):
        check_each(asked, Rows(adjacency))


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_the_law_holds_without_mistakes(adjacency: Any) -> None:
    asked = query(COUNT_AND_SUMS, Rows(adjacency), BY_B)
    check_each(asked, Rows(adjacency))


NULLABLE = ["dp.count()", 'pl.col("i64").dp_mean((-8, 8))', 'pl.col("u8").dp_mean((0, 8))']


COUNTS = [NULLABLE[0], 'pl.col("u8").dp_count()']


@pytest.mark.parametrize(
    ("mistake", "asked", "grouping"),
    [
        (_one_condition_for_all, [NULLABLE[1], COUNTS[1]], "f"),
        (_values_as_rows, [NULLABLE[1], COUNTS[1]], "f"),
        (_rows_moved_by_nobody, COUNTS, 'f.group_by("b", keys=[None, True])'),
    ],
    ids=["one value for all", "values as rows", "rows moved by nobody"],
)
def test_mistakes_about_what_rows_need_are_caught(
    mistake: Callable[[Any], None], asked: list[str], grouping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = Rows("change-one")
    check_each(query(asked, unit, grouping), unit)
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_each(query(asked, unit, grouping), unit)


# ------------------------------------------------------- sums of squares beside those of values


def _squares_rounded_down(patch: Any) -> None:
    """Squares that may lie below those of the values that are added up."""

    def wrong(self: SquareSum, places: pl.Expr) -> pl.Expr:
        shift = squares_shortened(self.inner, self.grid)
        return (places * places // 2**shift).clip(0, self.grid.hi) * 2 - self.grid.hi

    patch.setattr(SquareSum, "of_places", wrong)


def _squares_of_others(patch: Any) -> None:
    """The sum of one column taken for the root of the squares of another."""

    def wrong(tables: Any) -> Any:
        sums = [i for i, t in enumerate(tables) if t and isinstance(t.statistic, GridSum)]
        return tuple((c, sums[-1 - sums.index(s)], q) for c, s, q in real(tables))

    real = dpframe.optimise.measurements.arches_of
    patch.setattr(dpframe.optimise.measurements, "arches_of", wrong)


def _values_of_others(patch: Any) -> None:
    """The values of one column counted for those of another."""
    patch.setattr(dpframe.optimise.measurements, "is_counted_by", lambda count, total: True)


def _rows_that_stay(patch: Any) -> None:
    """What one row is changed to, beside what it was, as if it only came."""

    def wrong(widths: Any, turned: Any, spread: Any, grouped: bool, arches: Any) -> Box:
        twice = [2 if any(i == q for *_, q in arches) else 1 for i in range(len(widths))]
        made = zip(widths, turned, twice, strict=True)
        return Box(tuple(max(w, t // n) for w, t, n in made), spread.tight[0], arches)

    patch.setattr(measurement, "box_of", wrong)


SQUARES = ['pl.col("f64").dp_mean((-7, 8))', 'pl.col("f64").dp_var((-7, 8))']
VALUES = ['pl.col("i64").dp_var((-20, 20))', 'pl.col("u8").dp_var((0, 90))']


@pytest.mark.parametrize(
    ("mistake", "asked", "adjacency"),
    [
        (_squares_rounded_down, SQUARES, "add-remove"),
        (_squares_of_others, VALUES, "add-remove"),
        (_values_of_others, ['pl.col("f64").dp_mean((-1, 3))', VALUES[0]], "add-remove"),
        (_rows_that_stay, ["dp.count()", VALUES[0]], "change-one"),
    ],
)
def test_mistakes_about_squares_are_caught(
    mistake: Callable[[Any], None], asked: list[str], adjacency: Any, monkeypatch: Any
) -> None:
    unit = Rows(adjacency)
    check_each(query(asked, unit, "f"), unit)
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_each(query(asked, unit, "f"), unit)


@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True, False])'])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_hulls_are_drawn_where_rows_come_and_go(unit: Rows, grouping: str) -> None:
    """And where they change, in twice the widths in one group of all."""
    asked = query([*VALUES, *SQUARES, "dp.count()"], unit, grouping)
    way = ways_of(asked, measurements_of(asked), "equal")[1]
    (part,) = (d.measurement for d in way.draws if d.rebuilt is not None)
    assert isinstance(part, JointSums)
    assert len(part.arches) == 3
    box = part.task("", part.sensitivity(asked.scope), "auto", asked.scope).box
    assert box is not None
    assert box.arches == part.arches
    stays = unit.adjacency == "change-one" and grouping == "f"
    assert box.widths == (part.turned if stays else part.widths)
    for count, total, square in part.arches:
        assert isinstance(part.sums[count].statistic, (RowCount, ValueCount))
        assert isinstance(part.sums[total].statistic, GridSum)
        assert isinstance(part.sums[square].statistic, SquareSum)


@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True, False])'])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_gaussian_draw_has_no_hull(unit: Rows, grouping: str) -> None:
    asked = query(SQUARES, unit, grouping)
    for draw in ways_of(asked, measurements_of(asked), "equal")[2].draws:
        assert not getattr(draw.measurement, "arches", ())


@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True, False])'])
@pytest.mark.parametrize("unit", UNITS[-2:], ids=str)
@pytest.mark.parametrize("asked", [NULLABLE[1:2], NULLABLE, [NULLABLE[0], SETS[0][1]]], ids=len)
def test_norms_are_attained(asked: list[str], unit: Rows, grouping: str) -> None:
    """Some neighbours move vectors as far as Gaussian noise is for: less would be wrong."""
    made = query(asked, unit, grouping, ['f.filter(pl.col("u8") < 200)'])
    (draw,) = (d for d in ways_of(made, measurements_of(made), "least error")[2].draws)
    part = draw.measurement
    assert isinstance(part, JointSums)
    most = 0
    for pair in pairs(names_of(made), unit):
        before, after = (exact_tables(made, f) for f in (pair.before, pair.after))
        changes = joint_changes(part, before, after)
        most = max(most, sum(c * c for vector in changes for c in vector))
    assert most == draw.sensitivity.l2_squared


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_sums_as_they_are_need_their_whole_width(
    adjacency: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = ['pl.col("i64").dp_mean((-8, 8))']
    check_each(query(mean, Rows(adjacency), "f"), Rows(adjacency))
    _too_narrow(monkeypatch)
    asked = query(mean, Rows(adjacency), "f")
    with pytest.raises(AssertionError, match="declared"):
        check_each(asked, Rows(adjacency))


# ------------------------------------------------------------------ centred, or as they are


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (['pl.col("i64").dp_mean((-8, 8))'], 2),
        (['pl.col("i64").dp_mean((-8, 8))', 'pl.col("i64").dp_var((-8, 8))'], 3),
        (['pl.col("i64").dp_mean((-8, 8))', "dp.count()"], 3),
        (['pl.col("i64").dp_sum((0, 8))', 'pl.col("u8").dp_sum((0, 8))'], 3),
    ],
)
def test_the_number_of_rows_is_drawn_where_that_errs_less(texts: list[str], numbers: int) -> None:
    asked = query(texts, Rows(), "f")
    _, box, _ = ways_of(asked, measurements_of(asked), "least error")
    (draw,) = box.draws
    assert isinstance(draw.measurement, JointSums)
    assert len(draw.measurement.widths) == numbers


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_plans_of_sums_as_they_are_can_be_read_again(unit: Rows) -> None:
    frame = pl.LazyFrame(schema={"x": pl.Int64})
    people = dp.Session(epsilon=1).protect(frame, unit=unit)
    plan = people.agg(dp.mean("x", (-8, 9)).alias("m")).plan(epsilon=1)
    assert plan.releases[0].joint is not None
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


def check_each(asked: Query, unit: Rows) -> None:
    for pair in pairs(names_of(asked), unit):
        check_sensitivities(asked, pair)
