"""The law of windows: frames that differ in one person's rows in one calendar window differ no more
than one individual may, whatever else that person has in other windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import UnitCount
from dpframe.core.tree import Named, Tree
from dpframe.core.windows import AFTER, BEFORE, Every, Windows
from dpframe.errors import DPFrameError
from dpframe.frames.contributions import spread_of
from dpframe.frames.groups import Groups
from dpframe.frames.nodes import row_of
from dpframe.frames.relation import Relation
from dpframe.frames.sampling import within_windows
from dpframe.kernel import verify
from dpframe.kernel.frame import follows_from_window
from dpframe.lower.tables import lower_rows
from dpframe.pipeline import read_rows
from dpframe.rows.fold import domain, lower
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.temporal import window_number
from tests.laws.amounts import examples
from tests.laws.individuals import (
    BEST,
    GROUPINGS,
    LIMITS,
    STEPS,
    TEXTS,
    UNIT_TEXTS,
    check_limits,
    query,
    stepped,
)
from tests.laws.layouts import stored
from tests.laws.neighbours import exact_tables, same
from tests.laws.queries import NAMES
from tests.laws.windowed import (
    EVERIES,
    TIMES,
    WALLS,
    WindowedPair,
    protected,
    times_of,
    windowed_neighbours,
    windows_of,
)

WITH_TIMES = [
    'f.group_by(pl.col("at").dt.month(), keys=[1, 2, 3, 10, 11, 12, None])',
    'f.group_by("g", late=pl.col("at").dt.year() > 2020, keys={"g": ["a", None], "late": [True]})',
]
STEPS_OF_TIMES = [
    'f.rename({"at": "when"} if "at" in f.columns else {"when": "at"})',
    'f.filter(pl.col("at").is_not_null())',
    'f.filter(pl.col("at").dt.year() >= 2024)',
    'f.select("id", "g", "h", "x", "y", "at", "c", "e", "b", "d")',
    'f.select("id", "g", "x", "y", at=pl.col("d"), again=pl.col("at"), h=pl.col("at").dt.month())',
    'f.with_columns(h=pl.col("at").dt.day() % 3)',
]
NORMS = ["f.limit_norm(1)", "f.limit_norm(1.5)", "f.limit_norm(3)"]
salts = st.integers(0, 2**64 - 1)
groupings = st.sampled_from([*GROUPINGS, *WITH_TIMES])
chains = st.lists(
    st.sampled_from(LIMITS) | st.sampled_from(STEPS) | st.sampled_from(STEPS_OF_TIMES), max_size=6
)


def asked_of(text: str, grouping: str, steps: Sequence[str], drawn: WindowedPair) -> Query | None:
    """The query without the steps that make no sense; None when it is refused."""
    frame = stepped(steps, protected(drawn.dtype, drawn.every), strict=False)
    try:
        return query([text], grouping, frame=frame)
    except DPFrameError:
        return None


def check(text: str, grouping: str, steps: Sequence[str], drawn: WindowedPair, salt: int) -> None:
    asked = asked_of(text, grouping, steps, drawn)
    assume(asked is not None)
    assert asked is not None
    check_limits(asked, drawn.pair, salt)


@examples(40, 2_000)
@given(st.sampled_from(TEXTS), groupings, chains, windowed_neighbours(), salts)
def test_a_person_in_a_window_moves_no_more_than_an_individual(
    text: str, grouping: str, steps: list[str], drawn: WindowedPair, salt: int
) -> None:
    check(text, grouping, steps, drawn, salt)


@examples(20, 500)
@given(
    st.sampled_from(["dp.count()", *UNIT_TEXTS]),
    groupings,
    st.lists(st.sampled_from(LIMITS), min_size=1, max_size=3),
    st.lists(st.sampled_from([*STEPS, *STEPS_OF_TIMES]), max_size=2),
    st.lists(st.sampled_from(LIMITS), max_size=2),
    windowed_neighbours(),
    salts,
)
def test_limits_steps_and_limits_again(
    text: str,
    grouping: str,
    before: list[str],
    between: list[str],
    after: list[str],
    drawn: WindowedPair,
    salt: int,
) -> None:
    check(text, grouping, [*before, *between, *after], drawn, salt)


SCORES = [text for text in TEXTS if 'score=pl.col("id").dp_n_unique()' in text]


@examples(30, 500)
@given(
    st.sampled_from(SCORES),
    st.sampled_from(GROUPINGS[:6]),
    st.sampled_from(["f.limit_rows(3)", 'f.limit_rows(2, by="e").limit_groups(3, by="e")']),
    windowed_neighbours(),
    salts,
)
def test_nor_where_candidates_are_scored_by_individuals(
    text: str, grouping: str, limit: str, drawn: WindowedPair, salt: int
) -> None:
    check(text, grouping, [limit], drawn, salt)


@examples(12, 300)
@given(st.sampled_from(BEST), st.sampled_from(GROUPINGS[1:]), chains, windowed_neighbours(), salts)
def test_nor_for_the_best_group(
    text: str, grouping: str, steps: list[str], drawn: WindowedPair, salt: int
) -> None:
    check(text, grouping, steps, drawn, salt)


@examples(15, 300)
@given(
    st.sampled_from(["dp.count()", 'pl.col("id").dp_n_unique()', 'pl.col("x").dp_sum((-3, 7))']),
    st.sampled_from(GROUPINGS),
    st.sampled_from(NORMS),
    st.lists(st.sampled_from(LIMITS), max_size=1),
    windowed_neighbours(),
    salts,
)
def test_nor_where_individuals_are_weighed(
    text: str, grouping: str, norm: str, limits: list[str], drawn: WindowedPair, salt: int
) -> None:
    check(text, grouping, [norm, *limits], drawn, salt)


@examples(20, 400)
@given(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=3), windowed_neighbours(), salts)
def test_other_individuals_keep_their_rows(
    limits: list[str], drawn: WindowedPair, salt: int
) -> None:
    """Which rows stay of anybody else, and of the same person in other windows, is the same in
    both frames."""
    frame = stepped(limits, protected(drawn.dtype, drawn.every))
    relation = frame._relation
    left = []
    for found in (drawn.pair.before, drawn.pair.after):
        rows = lower_rows(relation, stored(found).lazy(), pl, salt).collect()
        numbers = windows_of(rows["at"], drawn.every)
        shared = Counter[str]()
        for row, number in zip(rows.rows(), numbers, strict=True):
            if (row[0], number) != (1, drawn.window):
                shared[repr(row)] += 1
        left.append(shared)
    assert left[0] == left[1]


@examples(15, 300)
@given(windowed_neighbours(), st.sampled_from(["limit_rows(2)", 'limit_groups(2, by="g")']), salts)
def test_limits_hold_of_each_person_in_each_window(
    drawn: WindowedPair, limit: str, salt: int
) -> None:
    relation = stepped([f"f.{limit}"], protected(drawn.dtype, drawn.every))._relation
    for found in (drawn.pair.before, drawn.pair.after):
        given_rows = found.filter(pl.col("id").is_not_null())
        rows = lower_rows(relation, stored(found).lazy(), pl, salt).collect()
        before, after = (
            _contents(frame, drawn.every, by_groups="groups" in limit)
            for frame in (given_rows, rows)
        )
        assert {who: min(2, n) for who, n in before.items()} == after


def _contents(frame: pl.DataFrame, every: Every, *, by_groups: bool) -> dict[Any, int]:
    """How many rows, or values of g, each person has in each window."""
    found: dict[Any, list[Any]] = {}
    numbers = windows_of(frame["at"], every)
    for who, group, number in zip(frame["id"], frame["g"], numbers, strict=True):
        found.setdefault((who, number), []).append(group)
    return {who: len(set(groups) if by_groups else groups) for who, groups in found.items()}


@examples(15, 300)
@given(windowed_neighbours(), st.sampled_from(GROUPINGS[:8]))
def test_individuals_are_people_in_windows(drawn: WindowedPair, grouping: str) -> None:
    """The number of individuals is that of pairs of person and window, by plain Python."""
    asked = asked_of('pl.col("id").dp_n_unique()', grouping, [], drawn)
    assume(asked is not None)
    assert asked is not None
    frame = drawn.pair.after
    counted = exact_tables(asked, frame)[Table(UnitCount())]
    names = [] if asked.groups is None else [n.name for n in asked.groups.by]
    people: dict[Any, set[Any]] = {}
    keys = list(frame.select(names).rows()) if names else [()] * frame.height
    owners = zip(keys, frame["id"], windows_of(frame["at"], drawn.every), strict=True)
    for key, who, number in owners:
        if who is not None:
            people.setdefault(key, set()).add((who, number))
    listed = [()] if asked.groups is None else asked.groups.keys.rows()
    found = counted.dense(1).reshape(-1).tolist()
    assert found == [len(people.get(key, ())) for key in listed]


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("every", EVERIES)
def test_the_number_of_a_window_is_that_of_the_calendar(dtype: Any, every: Every) -> None:
    times = times_of(WALLS, dtype)
    found = pl.DataFrame([times]).select(
        window_number(pl, pl.col("at"), from_polars(times.dtype), every)
    )
    assert found.to_series().to_list() == windows_of(times, every)


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("every", EVERIES)
def test_every_time_has_a_window(dtype: Any, every: Every) -> None:
    """Also those far outside the calendar: numbers are never null, and never fall."""
    ends = [2**31 - 1, 10**7] if dtype == pl.Date() else [2**63 - 1, 2**62, 10**17]
    numbers = sorted([0, *ends, *(-end for end in ends)])
    physical = pl.Int32 if dtype == pl.Date() else pl.Int64
    times = pl.Series("at", numbers, dtype=physical).cast(dtype)
    found = pl.DataFrame([times]).select(window_number(pl, pl.col("at"), from_polars(dtype), every))
    numbers_of = found.to_series().to_list()
    assert None not in numbers_of
    assert numbers_of == sorted(numbers_of)


@examples(12, 250)
@given(st.sampled_from(TEXTS), groupings, chains, windowed_neighbours(), salts, st.data())
def test_form_and_engine_do_not_matter(
    text: str, grouping: str, steps: list[str], drawn: WindowedPair, salt: int, data: st.DataObject
) -> None:
    asked = asked_of(text, grouping, steps, drawn)
    assume(asked is not None)
    assert asked is not None
    frame = drawn.pair.after
    expected = exact_tables(asked, frame, salt=salt)
    shuffled = frame[data.draw(st.permutations(range(frame.height)))]
    cut = data.draw(st.integers(0, frame.height))
    pieces = pl.concat([shuffled[:cut], shuffled[cut:]], rechunk=False)
    for form in (shuffled, pieces, frame.sort("at", nulls_last=True), frame.sort("at")):
        assert same(expected, exact_tables(asked, form, "in-memory", salt))
        assert same(expected, exact_tables(asked, form, "streaming", salt))


def test_all_steps_make_sense() -> None:
    for step in [*STEPS_OF_TIMES, *NORMS]:
        stepped([step], protected(pl.Datetime("us"), "1mo"))
    for grouping in WITH_TIMES:
        frame = protected(pl.Datetime("us"), "1mo")
        assert query(['pl.col("id").dp_n_unique()'], grouping, frame=frame) is not None


REDEFINED = [
    'f.with_columns(pl.col("at").dt.truncate("1mo"))',
    "f.with_columns(at=pl.lit(datetime(2026, 1, 1)))",
    'f.with_columns(at=pl.col("at").dt.offset_by("1mo"))',
    'f.drop("at")',
    'f.select("id", "x")',
    'f.cast({"at": pl.Date})',
    "f.fill_null(datetime(2026, 1, 1))",
    'f.rename({"at": "was", "d": "at"}).drop("was")',
    'f.with_columns(was=pl.col("at")).drop("at")',
]


@pytest.mark.parametrize("text", REDEFINED)
def test_times_stay_what_they_are(text: str) -> None:
    with pytest.raises(dp.UnitDropped, match="in which window"):
        stepped([text], protected(pl.Datetime("us"), "1mo"))


@examples(15, 120)
@given(windowed_neighbours())
def test_a_law_that_knew_no_windows_would_fail(drawn: WindowedPair) -> None:
    """The neighbours here differ in one window alone: all other rows of the person are shared."""
    before, after = drawn.pair.before, drawn.pair.after
    fewer, more = sorted((before, after), key=lambda frame: frame.height)
    gone = Counter(map(repr, more.rows())) - Counter(map(repr, fewer.rows()))
    assert gone.total() == more.height - fewer.height
    numbers = windows_of(more["at"], drawn.every)
    ids = more["id"].to_list()
    here = [
        repr(r)
        for r, w, i in zip(more.rows(), numbers, ids, strict=True)
        if (i, w) == (1, drawn.window)
    ]
    assert gone == Counter(here)


# ------------------------------------------------------------------- what is the same in a window

SAME = [
    *(f'pl.col("at").dt.{part}()' for part in ("year", "quarter", "month", "date", "day")),
    *(f'pl.col("at").dt.{part}()' for part in ("weekday", "ordinal_day")),
    *(f'pl.col("at").dt.truncate("{every}")' for every in ("1d", "1w", "1mo", "3mo", "1q", "1y")),
    'pl.col("at").dt.truncate("1mo").dt.month()',
    'pl.col("at").dt.date().dt.year()',
    'pl.col("at")',
]


def tree_in(text: str, relation: Relation) -> Tree | None:
    """An expression over a frame; None where its types do not fit."""
    try:
        (found,) = read_rows([eval(text, dict(NAMES))], {}, relation, "group_by")
        domain(found.tree, relation.facts.columns)
    except DPFrameError:
        return None
    return found.tree


def edges(dtype: Any) -> pl.Series:
    """Times around the ends of the calendar, and of the type."""
    days = [-719_163, -719_162, -719_161, -106_751, 0, 106_750, 2_932_895, 2_932_896, 2_932_897]
    if dtype == pl.Date():
        return pl.Series("at", [*days, -(10**7), 10**7], dtype=pl.Int32).cast(dtype)
    unit = {"ms": 10**3, "us": 10**6, "ns": 10**9}[dtype.time_unit]
    found = [day * 86_400 * unit + more for day in days for more in (-1, 0, 3_600 * unit)]
    found = [n for n in found if -(2**63) < n < 2**63]
    return pl.Series("at", [*found, 2**63 - 1, 1 - 2**63], dtype=pl.Int64).cast(dtype)


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("every", EVERIES)
def test_what_follows_from_a_window_is_the_same_throughout(dtype: Any, every: Every) -> None:
    relation = protected(dtype, every)._relation
    columns = relation.facts.columns
    days = [datetime(2024, 1, 1, 7) + timedelta(hours=11 * n) for n in range(1700)]
    walls = pl.concat([times_of([*WALLS, *days], dtype), edges(dtype)])
    frame = walls.to_frame()
    number = window_number(pl, pl.col("at"), from_polars(dtype), every)
    for text in SAME:
        tree = tree_in(text, relation)
        if tree is None or not follows_from_window(row_of(tree), relation.facts.reach):
            continue
        rows = frame.select(number.alias("window"), lower(tree, columns, pl).alias("value"))
        assert rows.unique().height == rows["window"].n_unique(), text


@pytest.mark.parametrize(
    ("text", "every", "dtype", "groups"),
    [
        ('pl.col("at").dt.month()', "1mo", pl.Datetime("us"), 1),
        ('pl.col("at").dt.truncate("1mo")', "1mo", pl.Datetime("us"), 1),
        ('pl.col("at").dt.truncate("1mo")', "1mo", pl.Datetime("us", "Europe/Berlin"), None),
        ('pl.col("at").dt.year()', "1w", pl.Datetime("us"), None),
        ('pl.col("at").dt.date()', "1mo", pl.Datetime("us"), None),
        ('pl.col("at")', "1d", pl.Date(), 1),
        ('pl.col("at")', "1w", pl.Date(), None),
        ('pl.col("at").dt.date()', "1d", pl.Date(), 1),
        ('pl.col("at")', "1d", pl.Datetime("us"), None),
        ('pl.col("d").dt.month()', "1mo", pl.Datetime("us"), None),
    ],
)
def test_a_person_in_a_window_is_in_one_group_by_it(
    text: str, every: Every, dtype: Any, groups: int | None
) -> None:
    relation = protected(dtype, every)._relation
    tree = tree_in(text, relation)
    assert tree is not None
    by = (Named("k", tree),)
    found = spread_of(relation.facts, Groups(by, pl.DataFrame({"k": []}), "", discovered=True))
    assert found.groups == groups


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("every", EVERIES)
def test_the_kernel_finds_the_same_groups(dtype: Any, every: Every) -> None:
    """So what the planner says of groups by the time is verified, and no query of it is refused."""
    frame = protected(dtype, every)
    limited = frame.limit_rows(2)
    times = times_of(WALLS[:3], dtype)
    for text in SAME:
        if tree_in(text, frame._relation) is None:
            continue
        key = eval(text, dict(NAMES))
        keys = times.to_frame("at").select(key.alias("k")).unique()
        for rows, made in ((frame, pl.col("id").dp_n_unique()), (limited, dp.count())):
            plan = rows.group_by(key.alias("k"), keys=keys).agg(n=made).plan(epsilon=1)
            assert plan.physical is not None
            verify(plan.physical)


def test_dates_outside_the_calendar_are_read_with_the_days_next_to_it() -> None:
    days = [-(10**7), -719_163, -719_162, 0, 2_932_896, 2_932_897, 10**7, None]
    frame = pl.DataFrame({"at": pl.Series(days, dtype=pl.Int32).cast(pl.Date)}).lazy()
    facts = protected(pl.Date(), "1d")._relation.facts
    first, last = BEFORE["1d"], AFTER["1d"]
    for windows, kept in (
        (Windows("1d", None, first, without=False), days[:2]),
        (Windows("1d", first, first + 1, without=False), days[:3]),
        (Windows("1d", last, None, without=False), days[5:7]),
        (Windows("1d", last - 1, last, without=True), days[4:]),
        (Windows("1d", first + 1, last - 1, without=False), days[2:5]),
    ):
        found = within_windows(frame, facts, windows, pl).collect()
        assert found["at"].to_physical().to_list() == kept, windows


@examples(20, 400)
@given(
    st.sampled_from(["dp.count()", 'pl.col("id").dp_n_unique()', 'pl.col("x").dp_sum((-3, 7))']),
    st.sampled_from(
        [
            'f.group_by(pl.col("at").dt.year(), keys=[1969, 1970, 2024, 2025, 2026, None])',
            'f.group_by(pl.col("at").dt.month(), keys=[1, 2, 3, 10, 11, 12, None])',
            'f.group_by("g", m=pl.col("at").dt.quarter(), keys={"g": ["a", "b", None], '
            '"m": [1, 2, 3, 4, None]})',
        ]
    ),
    st.sampled_from(["f.limit_rows(3)", 'f.limit_groups(2, by="g").limit_rows(4)']),
    windowed_neighbours(),
    salts,
)
@pytest.mark.always
def test_groups_by_the_window_move_no_more_than_declared(
    text: str, grouping: str, limit: str, drawn: WindowedPair, salt: int
) -> None:
    check(text, grouping, [limit], drawn, salt)
