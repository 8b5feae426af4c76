"""By which columns a limit tells the rows of a person apart: those that the release reads."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.frames.contribution_limits import LimitRows
from dpframe.frames.relation import frames_of
from dpframe.kernel.plan import KeepRows
from dpframe.lower import execution
from tests.laws.individuals import NAMES, POOLS, STEPS, frame_of
from tests.laws.neighbours import exact_tables, planned_tables, query_of, same

PEOPLE = 60
ROWS = pl.DataFrame(
    {"who": [who for who in range(PEOPLE) for _ in range(3)], "town": ["a", "b", "c"] * PEOPLE}
).with_columns(one=pl.lit(1), x=pl.int_range(pl.len()) % 7, y=pl.int_range(pl.len()) % 5)
MUCH: Any = {"epsilon": 10**6}
"""With so large an epsilon whole numbers have no noise."""


def people(frame: pl.DataFrame = ROWS) -> dp.PrivateFrame:
    return dp.Session(epsilon=10**9).protect(frame, unit="who", name="people")


def total(frame: pl.DataFrame, salt: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(execution, "fresh_salt", lambda: salt)
    limited = people(frame).limit_rows(1)
    return int(limited.agg(dp.sum("x", (0, 9)), dp.n_unique("who")).collect(**MUCH)["x"].item())


def test_a_column_that_nothing_reads_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    others = ROWS.with_columns(rank=pl.int_range(pl.len()), hash=pl.col("town") + "!")
    moved = others.select(reversed(others.columns))
    totals = {salt: total(ROWS, salt, monkeypatch) for salt in range(5)}
    assert len({*totals.values()}) > 1  # salts choose
    for salt, right in totals.items():
        assert total(others, salt, monkeypatch) == total(moved, salt, monkeypatch) == right


def test_a_column_that_is_read_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def totals(*more: dp.DPExpr) -> list[int]:
        found = []
        for salt in range(5):
            monkeypatch.setattr(execution, "fresh_salt", lambda salt=salt: salt)
            limited = people().limit_rows(1)
            found.append(limited.agg(dp.sum("x", (0, 9)), *more).collect(**MUCH)["x"].item())
        return found

    assert totals() == totals() != totals(dp.sum("y", (0, 9)))


@pytest.mark.parametrize(("n", "by"), [(2, None), (1, "town")])
def test_equal_rows_are_kept_as_often_as_the_limit_says(n: int, by: str | None) -> None:
    """A count reads no column but whose rows they are, so that all rows of a person are equal."""
    limited = people().limit_rows(n) if by is None else people().limit_rows(n, by=by)
    kept = limited.limit_groups(3, by="town").agg(dp.count()).collect(**MUCH).item()
    assert kept == PEOPLE * n * (1 if by is None else 3)


def test_parts_of_a_partition_have_one_choice() -> None:
    """Each person has one row in all parts together, though parts read other columns."""
    session = dp.Session(epsilon=10**9)
    limited = session.protect(ROWS, unit="who", name="people").limit_rows(1)
    parts = session.partition(limited, "town", keys=["a", "b", "c"])
    numbers = [
        parts["a"].agg(dp.count()),
        parts["b"].agg(dp.sum("one", (0, 1))),
        parts["c"].filter(pl.col("x") < 9, pl.col("y") < 9).agg(dp.count()),
    ]
    assert sum(query.collect(**MUCH).item() for query in numbers) == PEOPLE
    for query in numbers:
        physical = query.plan(**MUCH).physical
        assert physical is not None
        (limit,) = (frame for frame in physical.frames if isinstance(frame, KeepRows))
        assert limit.of == ("one", "town", "who", "x", "y")


def test_plans_name_columns_only_where_releases_share_a_choice() -> None:
    plan = people().limit_rows(1).agg(dp.sum("x", (0, 9))).plan(**MUCH)
    assert plan.physical is not None
    (limit,) = (frame for frame in plan.physical.frames if isinstance(frame, KeepRows))
    assert limit.of is None


def test_frames_that_are_joined_have_the_choice_of_the_release() -> None:
    session = dp.Session(epsilon=10**9)
    one, other = (session.protect(ROWS, unit="who", name=name) for name in ("one", "other"))
    joined = one.limit_rows(2).join(other.limit_rows(1).select("who", z="x"), on="who")
    query = joined.agg(dp.sum("z", (0, 9)))
    (one_table,), _ = planned_tables(query._query)
    steps = [pair for frame in frames_of(one_table.relation) for pair in frame.steps]
    limits = [step.columns_of(before) for step, before in steps if isinstance(step, LimitRows)]
    assert limits == [["who", "x"]] * 2  # `x` is read of the other frame, and has one name
    assert query.collect(**MUCH).height == 1


# -- what a release does not read changes nothing --------------------------------------------------

X = pl.col("x")
OUTPUTS: list[Any] = [
    dp.count().alias("n"),
    dp.sum("x", (-9, 9)),
    dp.sum("y", (-2, 2)),
    dp.n_unique("id").alias("people"),
    X.filter(pl.col("b")).dp_sum((0, 5)).alias("only"),
    (X + pl.col("h").fill_null(0)).dp_mean((0, 9)).alias("both"),
    dp.argmax("c", candidates=["z", "a", "m"]).alias("best"),
    X.dp_median((-9, 9)).alias("middle"),
    X.dp_histogram([-9, 0, 9]).alias("bins"),
    dp.count(per="unit", bounds=(0, 3)).alias("rows"),
]
AFTER: list[tuple[str, str]] = [
    ("nothing", "f"),
    ("a filter", "f.filter(pl.col('h') > 0)"),
    ("a new column", "f.with_columns(x=pl.col('x') + pl.col('h'))"),
    ("a name", "f.select('id', 'g', 'c', 'b', 'y', 'h', x=pl.col('h'))"),
    ("a rename", "f.rename({'x': 'z', 'h': 'x'}).with_columns(h=pl.lit(1))"),
    ("aggregates", "f.with_columns(x=pl.col('x').max().over('id', 'g'))"),
    ("another limit", "f.limit_groups(1, by='h').limit_rows(2)"),
    ("a first row", "f.limit_rows(1, order_by='d')"),
]
KEYS: dict[str, Any] = {"g": ["a", "b", None], "c": ["z", "a"], "e": ["p", "q"]}


@st.composite
def crowds(draw: st.DrawFn) -> pl.DataFrame:
    """Up to 14 rows of three people."""
    cells = {name: st.sampled_from(pool) for name, pool in POOLS.items()}
    row = st.fixed_dictionaries({"id": st.sampled_from([1, 1, 2, 3]), **cells})
    return frame_of(draw(st.lists(row, min_size=1, max_size=14)))


def columns_read(query: Query) -> frozenset[str]:
    """The columns of protected frames that the plan of a query names."""
    several, _ = planned_tables(query)
    frames = (frame for one in several for frame in frames_of(one.relation))
    return frozenset(name for frame in frames for name in frame.source.columns)


def others_change_nothing(query: Query, rows: pl.DataFrame, random: Any, salt: int) -> int:
    """Check that, and count the other columns."""
    others = [name for name in rows.columns if name not in columns_read(query)]
    moved = rows.with_columns(
        rows[name].gather(random.sample(range(rows.height), rows.height)) for name in others
    )
    assert same(exact_tables(query, rows, salt=2 * salt), exact_tables(query, moved, salt=2 * salt))
    return len(others)


def after_a_limit(
    rows: pl.DataFrame, limit: str, after: str, by: str | None, places: list[int]
) -> Query:
    frame = dp.Session(epsilon=1).protect(rows, "id")
    limited = eval(f"f.limit_groups(3, by='g').{limit}", {"f": frame})
    limited = eval(after, {**NAMES, "f": limited})
    grouped = limited if by is None else limited.group_by(by, keys=KEYS[by])
    return query_of(grouped.agg(*(OUTPUTS[place] for place in places)))


@given(
    st.sampled_from([text for _, text in AFTER] + STEPS),
    st.lists(st.sampled_from(range(len(OUTPUTS))), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, "g", "c", "e"]),
    st.sampled_from(["limit_rows(1)", "limit_rows(2)", "limit_rows(1, by='g')"]),
    crowds(),
    st.randoms(use_true_random=False),
    st.integers(0, 2**32),
)
def test_columns_that_no_plan_names_change_no_table(
    after: str, places: list[int], by: str | None, limit: str, rows: Any, random: Any, salt: int
) -> None:
    """A release computes the same from a frame whose other columns have any other values."""
    try:
        query = after_a_limit(rows, limit, after, by, places)
    except dp.DPFrameError:
        return
    others_change_nothing(query, rows, random, salt)


@pytest.mark.parametrize("after", [text for _, text in AFTER], ids=[name for name, _ in AFTER])
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_column_that_a_plan_forgets_is_noticed(
    after: str, forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law can fail: `x` and `h` are read, and a limit that ignores them lets order decide."""
    read, own = columns_read, LimitRows.columns_of
    if forgotten:
        monkeypatch.setitem(globals(), "columns_read", lambda query: read(query) - {"x", "h"})
        left = staticmethod(lambda before: [n for n in own(before) if n not in ("x", "h")])
        monkeypatch.setattr(LimitRows, "columns_of", left)
    rows = frame_of([{"id": i % 3, "g": "a", "h": i % 5, "x": i % 7 - 3} for i in range(60)])
    query = after_a_limit(rows, "limit_rows(2)", after, None, [1])
    random, fails = Random(5), 0
    for salt in range(6):
        try:
            assert others_change_nothing(query, rows, random, salt)
        except AssertionError:
            fails += 1
    assert bool(fails) == forgotten
