"""Distribution functions by grouping sets: no table of runs moves further than it declares,
whatever limits are in force, and results are those of each set by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.reconstruction import SetDistributions, ways_to_measure
from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.units import Rows
from dpframe.optimise.measurements import measurements_of
from dpframe.release import assemble, numbers
from dpframe.simulate import exact_parts
from tests.laws import individuals, kernel_mistakes, queries
from tests.laws.amounts import examples
from tests.laws.frames import SCHEMA
from tests.laws.individuals import LIMITS, STEPS, frame_of
from tests.laws.neighbours import Pair, exact_tables, moved, neighbours, vector, violation
from tests.laws.queries import accepted, names_of
from tests.laws.test_grouping_sets import OF_ROWS, ONCE, PER_FINEST, SETS

MANY = 'pl.col("x").dp_cdf(range(-40, 41))'
TEXTS = [
    MANY,
    'pl.col("x").dp_cdf([-9, -1, 0, 1, 5, 100])',
    'pl.col("y").dp_cdf(30, bounds=(-3, 3))',
    'pl.col("y").dp_cdf([-2.5, 0.0, 0.1, 1.5], nonnegative=True)',
    'pl.col("d").dp_cdf([date(1970, 1, 1), date(2000, 1, 1)])',
    'pl.col("x").dp_cdf(1, bounds=(0, 1))',
]
ROW_TEXTS = [
    'pl.col("i64").dp_cdf(range(-20, 30))',
    'pl.col("f64").dp_cdf([-1.0, 0.0, 0.1, 5.0])',
    'pl.col("f64").dp_cdf(40, bounds=(-3, 3), nonnegative=True)',
    'pl.col("i8").dp_cdf([0])',
]


def ways(asked: Query) -> list[Query]:
    """As it is measured where an epsilon is shared, and where a rho is."""
    return [*ways_to_measure(asked, ApproxDP(1, "1e-6")), *ways_to_measure(asked, PureDP(1))]


def tables(asked: Query) -> Iterator[Margin]:
    """All tables of runs that are measured, with their totals where rows change, and those of the
    same runs by any other columns.
    """
    found: dict[Margin, None] = {}
    for part in (use.part for way in ways(asked) for use in measurements_of(way)):
        assert isinstance(part, Margin)
        found[part] = None
        if asked.scope.spread.changes:
            found[replace(part, has_total=True)] = None
        if part.branching and not part.has_total:
            last = len(part.sizes) - 1
            for length in range(last + 1):
                for kept in itertools.combinations(range(last), length):
                    found[replace(part, kept=(*kept, last), by=("",) * (length + 1))] = None
    return iter(found)


def check_all(asked: Query) -> None:
    for pair in fixed():
        check(asked, pair)


def check(asked: Query, pair: Pair, salt: int = 0) -> None:
    before, after = (exact_tables(asked, f, salt=salt) for f in (pair.before, pair.after))
    for part in tables(asked):
        problem = violation(part, moved(part, before, after, asked.scope), asked.scope)
        assert problem is None, problem


@examples(5, 1000)
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(SETS),
    st.lists(st.sampled_from([*LIMITS, *ONCE]) | st.sampled_from(STEPS), max_size=5),
    individuals.neighbours(),
    st.integers(0, 2**64 - 1),
)
@pytest.mark.always
def test_an_individual_moves_no_table_further_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    asked = individuals.accepted(text, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check(asked, pair, salt)


@examples(6, 1000)
@given(
    st.sampled_from(ROW_TEXTS),
    st.sampled_from(OF_ROWS),
    st.lists(st.sampled_from(queries.STEPS), max_size=2),
    st.sampled_from(["add-remove", "change-one"]),
    st.integers(1, 3),
    st.data(),
)
def test_rows_move_no_table_further_than_declared(
    text: str,
    grouping: str,
    steps: list[str],
    adjacency: Any,
    contributions: int,
    data: st.DataObject,
) -> None:
    unit = Rows(adjacency, contributions=contributions)
    asked = accepted(text, unit, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check(asked, data.draw(neighbours(unit, names_of(asked))))


@examples(5, 500)
@given(
    st.sampled_from(ROW_TEXTS),
    st.sampled_from(OF_ROWS),
    st.sampled_from(["add-remove", "change-one"]),
    st.data(),
)
def test_results_without_noise_are_those_of_each_set(
    text: str, grouping: str, adjacency: Any, data: st.DataObject
) -> None:
    """Of rows with listed values in all columns."""
    asked = accepted(text, Rows(adjacency), grouping, [])
    assert asked is not None
    frame = data.draw(neighbours(Rows(adjacency), names_of(asked))).before
    made = [assemble(way, _exact(way, frame)) for way in ways(asked)]
    assert all(one.equals(made[0]) for one in made)
    finest = made[0].filter(pl.col("grouping") == 0)
    edge = names_of_edges(made[0])
    for (bits,), found in made[0].group_by("grouping", maintain_order=True):
        assert found["count"].sum() == finest["count"].sum() or "nonnegative" in text, bits
        summed = finest.group_by(edge, maintain_order=True).agg(pl.col("count").sum())
        own = found.group_by(edge, maintain_order=True).agg(pl.col("count").sum())
        assert own.equals(summed)


def names_of_edges(frame: pl.DataFrame) -> str:
    return frame.columns[frame.columns.index("grouping") + 1]


def _exact(asked: Query, frame: pl.DataFrame) -> Any:
    counted = exact_tables(asked, frame)
    keys = [(use.part, use.mechanism) for use in measurements_of(asked)]
    return exact_parts(asked, keys, counted.of(*(part for part, _ in keys)))


# ------------------------------------------------------------------------- the law can fail

LIMITED = ["f.limit_groups(3, by=['g', 'h'])", "f.limit_rows(2, by=['g', 'h'])"]


def fixed() -> Iterator[Pair]:
    """An individual with rows in one run or in several, of one group or of many."""
    others = [{"id": 2, "g": "a", "h": 1, "x": 5}]
    for groups, values in itertools.product(
        ([("a", 0)], [("a", 0), ("a", 1), ("b", 0), ("b", 1)]), ([-9, -9, -9], [-40, 0, 39])
    ):
        mine = [{"id": 1, "g": g, "h": h, "x": x} for g, h in groups for x in values]
        yield Pair(frame_of(others), frame_of(others + mine))


MISTAKES = {
    "rows spread over runs": kernel_mistakes.norms_where(
        kernel_mistakes.has_runs, kernel_mistakes.never_meet
    ),
    "wide runs are free": kernel_mistakes.norms_where(
        kernel_mistakes.has_runs, kernel_mistakes.are_free
    ),
    "rows per finest group": PER_FINEST,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = individuals.query([MANY], SETS[0], LIMITED)
    assert any(part.branching for part in tables(asked))
    check_all(asked)
    MISTAKES[name](monkeypatch)
    asked = individuals.query([MANY], SETS[0], LIMITED)  # which knows no sensitivity yet
    with pytest.raises(AssertionError, match="declared"):
        check_all(asked)


GROUPED = 'f.group_by(dp.cube("b"), keys={"b": [True, False]})'


def changing() -> tuple[Query, Pair]:
    """A row that comes into the table from outside."""
    text = 'pl.col("i64").dp_cdf(range(70))'
    asked = accepted(text, Rows("change-one"), GROUPED, [])
    assert asked is not None
    names = names_of(asked)
    assert set(names) == {"b", "i64"}
    frames = [
        pl.DataFrame({"b": [b], "i64": [4]}, schema={n: SCHEMA[n] for n in ("b", "i64")})
        for b in (True, None)
    ]
    return asked, Pair(*(frame.select(names) for frame in frames))


def test_a_total_that_grows_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, pair = changing()
    assert any(part.branching and part.has_total for part in tables(asked))
    check(asked, pair)
    true = numbers._vector

    def wrong(plan: Any, what: Any, counted: Any) -> Any:
        made = true(plan, what, counted).copy()
        made[:, -1] *= 1 + what.total
        return made

    monkeypatch.setattr(numbers, "_vector", wrong)
    with pytest.raises(AssertionError, match="declared"):
        check(asked, pair)


@pytest.mark.parametrize("spend", [PureDP(1), ZCDP("0.5")])
def test_runs_are_tables_of_neighbours(spend: Any) -> None:
    asked = individuals.query([MANY], SETS[0], LIMITED)
    pairs = list(fixed())
    for way in ways_to_measure(asked, spend):
        (bound,) = way.aggregates
        assert isinstance(bound, SetDistributions)
        counted = exact_tables(way, pairs[-1].after)
        for part in (use.part for use in measurements_of(way)):
            assert isinstance(part, Margin)
            finest = counted[part.table].dense(part.sizes[-1]).reshape(part.sizes)
            others = tuple(i for i in range(len(part.sizes)) if i not in part.kept)
            plain = finest.sum(axis=others)
            if part.branching:
                width = part.axis.width(part.level)
                lines = plain.reshape(-1, part.sizes[-1]).tolist()
                sums = [sum(li[i : i + width]) for li in lines for i in range(0, len(li), width)]
                assert vector(part, counted) == sums
                assert part.entries(way.scope) == len(sums)
            else:
                assert vector(part, counted) == plain.ravel().tolist()


def test_somebody_in_one_run_of_several_groups_reaches_what_is_declared() -> None:
    asked = individuals.query([MANY], SETS[0], LIMITED)
    most = dict.fromkeys(tables(asked), 0)
    for pair in fixed():
        before, after = (exact_tables(asked, f) for f in (pair.before, pair.after))
        for part in most:
            most[part] = max(most[part], moved(part, before, after, asked.scope).l1)
    assert {most[part] for part in most} == {6}
    assert {part.sensitivity(asked.scope).l1 for part in most} == {6}
