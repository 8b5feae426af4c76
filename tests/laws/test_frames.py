"""Laws of frame operations: each row makes at most one row, and what is inferred is true.

Two laws cover every step. A step of a frame is the steps of its rows one by one, put together: so
it is 1-stable, total, and blind to other rows. And whatever is known of the columns afterwards
(type, nulls, NaN, interval, categories) holds of every row that is left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.dtypes import Columns
from dpframe.core.tree import Call, Column, Named, Tree, column_names
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.facts import FrameFacts, refine
from dpframe.frames.group_by_individual import Gather, GroupByIndividual, Largest, OverIndividual
from dpframe.frames.joins import JoinPrivate, JoinPrivateKeys, JoinPublic
from dpframe.frames.partition import Part
from dpframe.frames.per_individual import PerIndividual, WithoutFound
from dpframe.frames.relation import Concat, Relation, Step
from dpframe.frames.row_steps import Drop, DropNulls, Explode, Filter, Rename, Select, WithColumns
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.polars_dtypes import to_polars
from tests.calls import call
from tests.laws.amounts import examples
from tests.laws.checking import contradiction, tree_of
from tests.laws.frames import (
    POOLS,
    SCHEMA,
    frames,
    nasty_frame,
    series,
    tight_columns,
    values,
    wide_columns,
)
from tests.laws.layouts import stored
from tests.laws.neighbours import UNITS, neighbours
from tests.laws.queries import columns_in
from tests.laws.trees import fits, trees
from tests.rules_page import step_types

NASTY = nasty_frame(61)
FEW = ["i8", "i64", "f32", "f64", "u8", "b", "s", "e", "d", "dt", "dtz", "dec"]
UNIT = Rows()


# ------------------------------------------------------------------------------ random conditions

_LITERALS: dict[str, list[str]] = {
    "i8": ["0", "-128", "127", "1", "0.5", "300", "None"],
    "i64": [
        "0",
        "-1",
        "7",
        "2**53 + 1",
        "2.0**53",
        "2**63 - 1",
        "-(2**63)",
        "1e300",
        "0.5",
        "None",
    ],
    "u8": ["0", "255", "3", "-1", "2.5", "None"],
    "u64": ["0", "2**64 - 1", "2**63", "1.0", "None"],
    "f32": ["0.1", "0.0", "-0.0", "16777216.0", 'float("nan")', 'float("inf")', "0.5", "3", "None"],
    "f64": ["0.1", "0.0", "-0.0", "1.5", 'float("nan")', '-float("inf")', "2**53 + 1", "7", "None"],
    "dec": ["1.99", "0.01", "0", "-2.5", "99999999.99", "1", "None"],
    "i32": ["0", "2**31 - 1", "7.0", "2**31", "-0.0", "None"],
    "u32": ["0", "2**32 - 1", "1.5", "None"],
    "b": ["True", "False", "None"],
    "s": ['"a"', '""', '"12"', "None"],
    "e": ['"a"', '"c"', "None"],
    "d": ["date(1970, 1, 1)", "date(2024, 2, 29)", "date(9999, 12, 31)", "None"],
    "dt": ["datetime(1970, 1, 1)", "datetime(2024, 3, 31, 1)", "datetime(1, 1, 1)", "None"],
    "dtms": ["datetime(1970, 1, 1)", "datetime(9999, 12, 31)", "None"],
    "dur": ["timedelta(0)", "timedelta(days=-1)", "timedelta(microseconds=1500)", "None"],
    "t": ["time(0)", "time(12)", "time(23, 59, 59, 999999)", "None"],
}
_KEYS: dict[str, list[Any]] = {
    "i8": [0, 127, None],
    "i64": [7, -(2**63), None],
    "u8": [255, None],
    "u64": [2**64 - 1, 2**63, None],
    "b": [True, False, None],
    "s": ["a", "", None],
    "e": ["a", "c", None],
    "d": [date(1970, 1, 1), None],
    "dt": [datetime(1970, 1, 1), None],
    "dtms": [datetime(1970, 1, 1), None],
    "dur": [timedelta(0), None],
    "t": [time(0), None],
    "dec": [Decimal("0.01"), None],
}
_OPERATORS = ["<", "<=", ">", ">=", "==", "!="]
_CHECKS = ["is_null", "is_not_null", "is_nan", "is_not_nan", "is_finite", "is_infinite"]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    """A condition over columns and constants, as text; some are refused."""
    if depth and draw(st.integers(0, 2)):
        a, b = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(
            st.sampled_from(
                [
                    f"~({a})",
                    f"(({a}) & ({b}))",
                    f"(({a}) | ({b}))",
                    f"(({a}) ^ ({b}))",
                    f"({a}).is_not_null()",
                    f"({a}).is_null()",
                    f"(({a}) == {draw(st.booleans())})",
                    f"(({a}) != ({b}))",
                    f"({a}).fill_null({draw(st.booleans())})",
                    f"({a}).is_in([True])",
                    f"pl.when({a}).then({b}).otherwise(pl.col('bb'))",
                ]
            )
        )
    name = draw(st.sampled_from(sorted(_LITERALS)))
    column, literal = f'pl.col("{name}")', st.sampled_from(_LITERALS[name])
    lo, hi, operator = draw(literal), draw(literal), draw(st.sampled_from(_OPERATORS))
    twin = {"i64": "i64b", "f64": "f64b", "b": "bb", "s": "sb", "dt": "dtb"}.get(name, name)
    closed = draw(st.sampled_from(["both", "left", "right", "none"]))
    listed = ", ".join(draw(st.lists(literal, max_size=3)))
    missing = draw(st.booleans())
    return draw(
        st.sampled_from(
            [
                f"({column} {operator} {lo})",
                f"(pl.lit({lo}) {operator} {column})",
                f'({column} {operator} pl.col("{twin}"))',
                f'{column}.is_between({lo}, {hi}, closed="{closed}")',
                f'{column}.is_between(pl.col("{twin}"), {hi}, closed="{closed}")',
                f"{column}.is_in([{listed}], nulls_equal={missing})",
                f"{column}.eq_missing({lo})",
                f"{column}.ne_missing({lo})",
                f"{column}.{draw(st.sampled_from(_CHECKS))}()",
                f"({column} * 2 {operator} {lo})",
                f"({column}.cast(pl.Float64) {operator} 0.5)",
                "pl.col('b')",
                "~pl.col('bb')",
                "pl.lit(True)",
                "pl.any_horizontal('b', 'bb')",
                "pl.all_horizontal('b', pl.col('i8') > 0)",
                'pl.col("s").str.starts_with("a")',
            ]
        )
    )


def accepted_tree(text: str, columns: Columns) -> Tree | None:
    try:
        tree = tree_of(text)
    except (DPFrameError, TypeError, pl.exceptions.PolarsError):
        return None
    return tree if fits(tree, columns) else None


# ------------------------------------------------------------------------------------- the laws


def lowered(step: Step, columns: Columns, frame: pl.DataFrame) -> pl.DataFrame:
    before = FrameFacts(columns, UNIT)
    return step.lower(stored(frame).lazy(), before, pl, salt=0).collect(optimizations=OPTIMIZATIONS)


def rows_of(frame: pl.DataFrame) -> list[str]:
    """Rows as text: comparable, NaN equal to NaN, -0.0 unlike 0.0."""
    return [repr(row) for row in zip(*(values(c) for c in frame.get_columns()), strict=True)]


def check_facts(step: Step, columns: Columns, result: pl.DataFrame) -> None:
    """Names, types and every value agree with what was inferred."""
    after = step.facts(FrameFacts(columns, UNIT))
    assert list(after.columns) == result.columns
    for name, found in after.columns.items():
        assert result[name].dtype == to_polars(found.dtype), name
        for value in values(result[name]):
            problem = contradiction(value, found)
            assert problem is None, f"{step.words()}: {name} = {value!r} {problem} ({found})"


def check_row_by_row(step: Step, columns: Columns, frame: pl.DataFrame) -> pl.DataFrame:
    """The step of a frame is the steps of its rows; each gives at most one row."""
    whole = lowered(step, columns, frame)
    alone = [lowered(step, columns, frame[i]) for i in range(frame.height)]
    assert all(one.height <= 1 for one in alone)
    assert rows_of(whole) == [row for one in alone for row in rows_of(one)]
    assert lowered(step, columns, frame[[]]).height == 0
    return whole


def check(step: Step, columns: Columns, frame: pl.DataFrame) -> None:
    check_facts(step, columns, check_row_by_row(step, columns, frame))


def check_filter(text: str, frame: pl.DataFrame, tight: bool) -> bool:
    """Whether there is such a filter; what is said of it is checked then."""
    frame = frame.select(columns_in(text.replace("'", '"'), "bb"))
    columns = tight_columns(frame) if tight else wide_columns(frame)
    predicate = accepted_tree(text, columns)
    if predicate is None:
        return False
    step = Filter((predicate,))
    try:
        step.facts(FrameFacts(columns, UNIT))
    except DPFrameError:
        return False
    check_facts(step, columns, lowered(step, columns, frame))
    return True


_LARGEST = "pl.lit(2**63 - 1, dtype=pl.Decimal(38, 0))"
AS_FLOATS = (
    'pl.col("i64").is_between(2**63 - 1, 1e300)',
    'pl.col("i64").is_between(-1e300, -(2**63) + 1)',
    'pl.col("i64").is_between(2**63 - 1, pl.lit(2**63 - 1, dtype=pl.Float64))',
    f'pl.col("i64") == {_LARGEST}',
    f'pl.col("i64") >= {_LARGEST}',
    f'pl.col("i64").is_between({_LARGEST}, 2**63 - 1)',
    f'pl.col("i64").is_between(2**63 - 1, {_LARGEST})',
)
"""Whole numbers that are compared as floats, because one of the constants makes them so."""


@pytest.mark.parametrize("text", AS_FLOATS)
@pytest.mark.parametrize("tight", [False, True])
def test_what_is_compared_as_floats_is_known_as_floats_know_it(text: str, tight: bool) -> None:
    assert check_filter(text, NASTY, tight)


@pytest.mark.always
@examples(150, 1200)
@given(conditions(), st.booleans())
def test_what_a_condition_implies_holds_for_extremes(text: str, tight: bool) -> None:
    assume(check_filter(text, NASTY, tight))


@pytest.mark.slow
@settings(max_examples=20_000)
@given(conditions(depth=3), st.booleans())
def test_what_conditions_imply_holds_for_extremes(text: str, tight: bool) -> None:
    assume(check_filter(text, NASTY, tight))


@pytest.mark.slow
@settings(max_examples=3_000)
@given(conditions(depth=3), frames(min_rows=1), st.booleans())
def test_what_conditions_imply_holds(text: str, frame: pl.DataFrame, tight: bool) -> None:
    assume(check_filter(text, frame, tight))


def check_random_tree(predicate: Tree, frame: pl.DataFrame, tight: bool) -> None:
    columns = tight_columns(frame) if tight else wide_columns(frame)
    assume(fits(predicate, columns))
    check_facts(Filter((predicate,)), columns, lowered(Filter((predicate,)), columns, frame))


@examples(30, 240)
@given(trees("Boolean", depth=3), st.booleans())
def test_nested_conditions_are_safe_too(predicate: Tree, tight: bool) -> None:
    check_random_tree(predicate, NASTY, tight)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(trees("Boolean"), st.just(NASTY) | frames(min_rows=1), st.booleans())
def test_many_nested_conditions(predicate: Tree, frame: pl.DataFrame, tight: bool) -> None:
    check_random_tree(predicate, frame, tight)


@st.composite
def steps(draw: st.DrawFn, columns: Columns) -> Step:
    """A step on a frame with these columns, of any kind."""
    kind = draw(st.sampled_from([Filter, DropNulls, WithColumns, Select, Rename, Drop, Part]))
    names = list(columns)
    some = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    if kind is Filter:
        found = [accepted_tree(draw(conditions()), columns) for _ in some]
        predicates = tuple(p for p in found if p is not None)
        return Filter(predicates or (tree_of("pl.lit(True)"),))
    if kind is DropNulls:
        return DropNulls(tuple(some))
    if kind is Part:
        typed = [n for n in _KEYS if n in columns and to_polars(columns[n].dtype) == SCHEMA[n]]
        by = [n for n in some if n in typed] or typed[:1]
        key = tuple(draw(st.sampled_from(_KEYS[n])) for n in by)
        return Part(tuple(Named(n, Column(n)) for n in by), key, draw(st.booleans()))
    if kind is Drop:
        return Drop(tuple(some[: max(1, len(names) - 1)]))
    if kind is Rename:
        targets = draw(st.permutations(some)) if draw(st.booleans()) else [f"{n}_" for n in some]
        return Rename(tuple(zip(some, targets, strict=True)))
    made = [draw(trees(depth=2)) for _ in some]
    fitting = [
        tree if fits(tree, columns) else Column(n) for tree, n in zip(made, some, strict=True)
    ]
    named = tuple(Named(n, tree) for n, tree in zip(some, fitting, strict=True))
    return WithColumns(named) if kind is WithColumns else Select(named)


def check_random_step(data: st.DataObject, tight: bool) -> None:
    frame = data.draw(frames(min_rows=1, max_rows=5))
    columns = tight_columns(frame) if tight else wide_columns(frame)
    check(data.draw(steps(columns)), columns, frame)


@examples(30, 240)
@given(st.data(), st.booleans())
def test_a_step_is_the_steps_of_its_rows(data: st.DataObject, tight: bool) -> None:
    check_random_step(data, tight)


@pytest.mark.slow
@settings(max_examples=3_000)
@given(st.data(), st.booleans())
def test_many_steps_are_the_steps_of_their_rows(data: st.DataObject, tight: bool) -> None:
    check_random_step(data, tight)


def check_chain(data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(UNITS))
    pair = data.draw(neighbours(unit, FEW))
    columns = wide_columns(pair.before)
    one, other = pair.before, pair.after
    for _ in range(data.draw(st.integers(1, 3))):
        step = data.draw(steps(columns))
        try:
            facts = step.facts(FrameFacts(columns, unit))
        except DPFrameError:
            continue
        one, other = lowered(step, columns, one), lowered(step, columns, other)
        columns = facts.columns
        _at_most(unit, rows_of(one), rows_of(other))
        for name, found in columns.items():
            for value in [*values(one[name]), *values(other[name])]:
                assert contradiction(value, found) is None, (step.words(), name, value)


def _at_most(unit: Rows, one: Sequence[str], other: Sequence[str]) -> None:
    """At most `contributions` rows come or go, or change (a change may also drop a row)."""
    lost, gained = Counter(one) - Counter(other), Counter(other) - Counter(one)
    k = unit.contributions
    if unit.adjacency == "add-remove":
        assert lost.total() + gained.total() <= k
        assert not lost or not gained
    else:
        assert max(lost.total(), gained.total()) <= k


@examples(20, 160)
@given(st.data())
def test_neighbours_stay_neighbours(data: st.DataObject) -> None:
    check_chain(data)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(st.data())
def test_neighbours_stay_neighbours_at_length(data: st.DataObject) -> None:
    check_chain(data)


# --------------------------------------------------------------------------- named implications


def facts_after(text: str, name: str) -> Any:
    return refine(dict(wide_columns(NASTY)), tree_of(text))[name]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('~pl.col("i64").is_not_null()', "i64"),
        ('pl.col("i64").is_not_null() == False', "i64"),
        ('pl.col("i64").is_not_null().is_not_null()', "i64"),
        ('pl.col("i64").is_null()', "i64"),
        ('~pl.col("i64").is_between(pl.col("i64b"), 3)', "i64b"),
        ('pl.col("i64").is_between(pl.col("i64b"), 3).is_not_null()', "i64b"),
        ('(pl.col("i64") > 0) | (pl.col("b"))', "i64"),
        ('~((pl.col("i64") > 0) & pl.col("b"))', "i64"),
        ('pl.col("i64").eq_missing(None)', "i64"),
        ('pl.col("i64").ne_missing(3)', "i64"),
        ('pl.col("i64").fill_null(1) == 1', "i64"),
        ('pl.coalesce("i64", "i64b") > 0', "i64"),
        ('pl.col("i64").is_in([1, None], nulls_equal=True)', "i64"),
        ('pl.any_horizontal("b", "bb")', "b"),
    ],
)
def test_a_null_may_be_left(text: str, name: str) -> None:
    """Conditions that a row with a null can meet, and once were thought to rule it out."""
    assert facts_after(text, name).nullable
    kept = lowered(Filter((tree_of(text),)), wide_columns(NASTY), _all_nulls_and_more())
    assert kept[name].null_count() > 0


def _all_nulls_and_more() -> pl.DataFrame:
    """Rows in which each of the conditions above holds with a null in its column."""
    rows = [
        {"i64": None, "i64b": 1, "b": True, "bb": True},
        {"i64": 7, "i64b": None, "b": None, "bb": True},
        {"i64": None, "i64b": 1, "b": False, "bb": True},
    ]
    padded = [{name: row.get(name) for name in SCHEMA} for row in rows]
    return pl.DataFrame([series(name, [row[name] for row in padded]) for name in SCHEMA])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('pl.col("i64").is_not_null()', "i64"),
        ('~pl.col("i64").is_null()', "i64"),
        ('pl.col("i64") > pl.col("i64b")', "i64b"),
        ('~(pl.col("i64") > 3)', "i64"),
        ('pl.col("i64").is_between(0, 9)', "i64"),
        ('pl.col("i64").is_between(pl.col("i64b"), 9)', "i64b"),
        ('pl.col("i64").is_in([1, 2])', "i64"),
        ('(pl.col("s") == "a") & pl.col("b")', "b"),
        ('pl.col("s").str.starts_with("a")', "s"),
        ('pl.col("f64").is_finite()', "f64"),
    ],
)
def test_no_null_is_left(text: str, name: str) -> None:
    assert not facts_after(text, name).nullable


@pytest.mark.parametrize(
    ("text", "nan"),
    [
        ('pl.col("f64") > 0', True),  # NaN is above every number
        ('pl.col("f64") >= 0', True),
        ('0.5 < pl.col("f64")', True),
        ('pl.col("f64") != 0', True),
        ('pl.col("f64") == float("nan")', True),
        ('pl.col("f64") <= float("nan")', True),
        ('pl.col("f64").is_in([1.0, float("nan")])', True),
        ('~(pl.col("f64") < 3)', True),
        ('pl.col("f64").is_between(0, float("nan"))', True),
        ('pl.col("f64") < 0', False),
        ('0.5 >= pl.col("f64")', False),
        ('pl.col("f64") == 0', False),
        ('pl.col("f64").is_between(0, 1)', False),
        ('pl.col("f64").is_in([1.0, 2.0])', False),
        ('pl.col("f64").is_not_nan()', False),
        ('pl.col("f64").is_finite()', False),
    ],
)
def test_whether_nan_may_be_left(text: str, nan: bool) -> None:
    assert facts_after(text, "f64").nan is nan
    kept = lowered(Filter((tree_of(text),)), wide_columns(NASTY), NASTY)
    left = any(isinstance(v, float) and math.isnan(v) for v in values(kept["f64"]))
    assert nan == left or (nan and "~" in text)


@pytest.mark.parametrize("closed", ["both", "left", "right", "none"])
@pytest.mark.parametrize("name", ["i64", "f64", "u8"])
def test_closed_ends_of_is_between(closed: Any, name: str) -> None:
    text = f'pl.col("{name}").is_between(1, 7, closed="{closed}")'
    kept = lowered(Filter((tree_of(text),)), wide_columns(NASTY), NASTY)
    plain = NASTY.filter(pl.col(name).is_between(1, 7, closed=closed))
    assert rows_of(kept) == rows_of(plain)
    found = facts_after(text, name).interval
    assert found.contains(1)
    assert found.contains(7)
    assert (found.lo, found.hi) == (1, 7)


def test_both_conditions_narrow_one_column() -> None:
    found = facts_after('(pl.col("i64") >= 40) & (pl.col("i64") < 65)', "i64")
    assert found.interval.ends == (40, 64)
    step = Filter((tree_of('pl.col("i64") >= 40'), tree_of('65 > pl.col("i64")')))
    assert step.facts(FrameFacts(wide_columns(NASTY), UNIT)).columns["i64"].bounds == (40, 64)


def test_impossible_conditions_do_not_break_inference() -> None:
    step = Filter((tree_of('pl.col("u8") > 300'), tree_of('pl.col("u8") < -5')))
    after = step.facts(FrameFacts(wide_columns(NASTY), UNIT)).columns["u8"]
    assert after.bounds is not None
    assert lowered(step, wide_columns(NASTY), NASTY).height == 0


def test_members_become_categories() -> None:
    assert facts_after('pl.col("s").is_in(["a", "b", "a"])', "s").categories == ("a", "b")
    assert facts_after('pl.col("e").is_in(["c", "a"])', "e").categories == ("a", "c")
    found = facts_after('pl.col("i64").is_in([5.0, 2.0, 3.5])', "i64")
    assert found.interval.ends == (2, 5)
    assert sorted(repr(c) for c in found.categories) == ["2", "5"]
    assert facts_after('pl.col("dec").is_in([1.99])', "dec").categories is None


# ------------------------------------------------------------------------- one step at a time


def test_which_steps_keep_the_number_of_rows_public() -> None:
    """Under change-one adjacency a count is free only while all rows are there."""
    before = FrameFacts(wide_columns(NASTY), Rows("change-one"))
    keeping: list[Step] = [
        WithColumns((Named("n", tree_of("pl.lit(1)")),)),
        Select((Named("n", tree_of("pl.lit(1)")),)),
        Rename((("i64", "n"),)),
        Drop(("i64",)),
    ]
    for step in keeping:
        assert step.facts(before).complete, step.words()
    for step in (Filter((tree_of("pl.lit(True)"),)), DropNulls(("i64",))):
        after = step.facts(before)
        assert not after.complete, step.words()
        assert not keeping[0].facts(after).complete  # and it does not come back


@pytest.mark.parametrize("height", [0, 1, 61])
def test_a_select_of_constants_keeps_every_row(height: int) -> None:
    columns, frame = wide_columns(NASTY), NASTY[:height]
    constant = Named("one", tree_of("pl.lit(1)"))
    null = Named("null", tree_of("pl.lit(None, dtype=pl.Int64)"))
    for step in (Select((constant,)), Select((constant, null)), WithColumns((constant, null))):
        assert lowered(step, columns, frame).height == height
        check(step, columns, frame)


def test_selected_and_swapped_columns() -> None:
    columns = wide_columns(NASTY)
    swap = Select((Named("i64", Column("i64b")), Named("i64b", Column("i64"))))
    made = lowered(swap, columns, NASTY)
    assert made["i64"].to_list() == NASTY["i64b"].to_list()
    assert made["i64b"].to_list() == NASTY["i64"].to_list()
    renamed = lowered(Rename((("i64", "i64b"), ("i64b", "i64"))), columns, NASTY)
    assert renamed["i64"].to_list() == NASTY["i64b"].to_list()
    assert renamed.columns.index("i64b") == NASTY.columns.index("i64")
    both = WithColumns((Named("i64", Column("i64b")), Named("i64b", Column("i64"))))
    assert lowered(both, columns, NASTY)["i64b"].to_list() == NASTY["i64"].to_list()


def test_names_must_differ() -> None:
    before = FrameFacts(wide_columns(NASTY), UNIT)
    twice = (Named("n", Column("i64")), Named("n", Column("i64b")))
    for step in (WithColumns(twice), Select(twice), Rename((("i64", "i64b"),))):
        with pytest.raises(dp.UnsupportedOperation, match="named"):
            step.facts(before)


def test_a_frame_keeps_a_column() -> None:
    """Polars takes a frame without columns for one without rows."""
    frame: Any = dp.Session(epsilon=1).protect(pl.DataFrame({"a": [1], "b": [2]}), UNIT)
    assert frame.drop("a").columns == ["b"]
    with pytest.raises(dp.UnsupportedOperation, match="no column would be left"):
        frame.drop("a", "b")
    with pytest.raises(dp.UnsupportedOperation, match="no column would be left"):
        frame.select()


def test_a_filter_needs_a_condition() -> None:
    before = FrameFacts(wide_columns(NASTY), UNIT)
    with pytest.raises(dp.UnsupportedOperation, match="needs a Boolean expression"):
        Filter((tree_of('pl.col("i64") + 1'),)).facts(before)


def test_every_step_has_words_and_a_reason() -> None:
    other = Relation.of("i64s", FrameFacts(wide_columns(NASTY), UNIT))
    steps_of_all_kinds: list[Step] = [
        Filter((tree_of('pl.col("i64") > 0'),)),
        DropNulls(("i64",)),
        WithColumns((Named("n", call("neg", Column("i64"))),)),
        Select((Named("i64", Column("i64")),)),
        Rename((("i64", "n"),)),
        Drop(("i64",)),
        Part((Named("i64", Column("i64")),), (7,), False),
        LimitRows(3, ("i64",)),
        LimitGroups(3, ("i64",)),
        LimitNorm(Fraction(3)),
        WithoutFound((Named("i64", Column("i64")),), 2, pl.DataFrame()),
        Explode("i64s", 3),
        PerIndividual((Named("i64", Column("i64")),)),
        GroupByIndividual("who", (), (Named("n", Call(Largest(), (Column("i64"),))),)),
        Gather((), (("n", Largest(), (Column("i64"),)),), beside=True),
        OverIndividual(Filter((call("is_null", Column("i64")),))),
        JoinPublic.of(pl.DataFrame({"i64": [7]}), ("i64",), ("i64",), "semi", "_right"),
        Concat(other, ""),
        JoinPrivate(other, "", "inner", "_right"),
        JoinPrivateKeys(other, "", "inner", "_right", (("i64", "i64"),)),
    ]
    known = {*step_types()}
    assert {type(s).__name__ for s in steps_of_all_kinds} == known
    for step in steps_of_all_kinds:
        assert "i64" in step.words() or isinstance(step, LimitNorm)  # which is of no column
        assert step.stability
        assert type(step).__doc__


# ---------------------------------------------------------------------- verbs of private frames


PLAIN = pl.DataFrame(
    {
        "i": [1, None, -3],
        "u": pl.Series([None, 2, 3], dtype=pl.UInt8),
        "x": [1.5, float("nan"), None],
        "y": pl.Series([None, 2.5, float("nan")], dtype=pl.Float32),
        "s": [None, "a", ""],
        "b": [True, None, False],
    }
)


def through(verb: str) -> pl.DataFrame:
    """What a verb makes of `PLAIN`, by the lowering of its steps."""
    frame: Any = dp.Session(epsilon=1).protect(PLAIN, UNIT)
    made = eval(f"f.{verb}", {"f": frame, "pl": pl})
    lazy = PLAIN.lazy()
    for step, before in made._relation.steps:
        lazy = step.lower(lazy, before, pl, salt=0)
    result = lazy.collect(optimizations=OPTIMIZATIONS)
    assert dict(result.schema) == dict(made.schema)
    for name, found in made._relation.facts.columns.items():
        assert all(contradiction(v, found) is None for v in values(result[name]))
    return result


@pytest.mark.parametrize(
    "verb",
    [
        "fill_null(0)",
        "fill_null(2.5)",
        'fill_null("zz")',
        "fill_null(True)",
        "fill_nan(0.5)",
        "fill_nan(None)",
        'drop_nulls("i")',
        'drop_nulls(["i", "s"])',
        "drop_nulls()",
        'cast({"i": pl.Float64, "u": pl.Int64})',
        'cast({"x": pl.Float32, "b": pl.Int8})',
        'rename({"i": "j"})',
        'drop("i", "x")',
        'select("i", pl.col("x") * 2)',
        'with_columns(pl.col("i") * 2, k=pl.lit(7))',
        'filter(pl.col("i") > 0)',
        'filter(pl.col("b"), i=1)',
    ],
)
def test_verbs_do_what_polars_does(verb: str) -> None:
    plain = eval(f"f.{verb}", {"f": PLAIN, "pl": pl})
    found = through(verb)
    assert found.columns == plain.columns
    # integers are widened before arithmetic; otherwise the types are Polars' own
    wider = found.select(pl.col(n).cast(t) for n, t in plain.schema.items())
    assert rows_of(wider) == rows_of(plain)


@pytest.mark.parametrize(
    ("verb", "name", "expected"),
    [
        ('cast({"s": pl.Int64})', "s", [None, None, None]),  # strict in Polars
        ('cast({"x": pl.Int64})', "x", [1, None, None]),
        ('cast({"i": pl.UInt8})', "i", [1, None, None]),
        ("fill_null(0.5)", "i", [1.0, 0.5, -3.0]),
        ("fill_null(float('nan'))", "x", "nan left"),
    ],
)
def test_verbs_that_never_fail(verb: str, name: str, expected: Any) -> None:
    found = through(verb)
    if expected == "nan left":
        assert found[name].is_nan().sum() == 2
    else:
        assert found[name].to_list() == expected


def test_a_constant_is_needed_to_fill() -> None:
    frame: Any = dp.Session(epsilon=1).protect(PLAIN, UNIT)
    for wrong in (
        lambda: frame.fill_null(strategy="forward"),
        lambda: frame.fill_null(pl.col("i")),
        lambda: frame.fill_null(),
    ):
        with pytest.raises(dp.UnsupportedOperation):
            wrong()


def test_trees_only_name_known_columns() -> None:
    """The strategies above make steps that fit: no column of theirs is unknown."""
    assert set(POOLS) == set(SCHEMA)
    assert set(column_names(tree_of('pl.col("i64") + pl.col("f64")'))) <= set(SCHEMA)


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ('pl.col("i64") < 18', (None, 17)),
        ('pl.col("i64") > 18', (19, None)),
        ('pl.col("i64") < 17.5', (None, 17)),
        ('pl.col("i64") > -17.5', (-17, None)),
        ('pl.col("i64") <= 18', (None, 18)),
        ('pl.col("i64") < 2**60', (None, 2**60)),
        ('pl.col("f64") < 18', (None, 18)),
        ('pl.col("f64") > 18', (18, None)),
    ],
)
def test_strict_comparisons_of_whole_numbers_leave_out_the_end(
    condition: str, ends: tuple[int | None, int | None]
) -> None:
    name = condition[8:11]
    found = facts_after(condition, name).interval
    assert (found.lo, found.hi) == ends


@pytest.mark.parametrize(
    "condition",
    [
        'pl.col("i64").is_in([2.0**53, 1.0])',
        'pl.col("i64") == 2.0**53',
        'pl.col("i64") <= 2.0**53',
        'pl.col("i64") >= 2.0**53 + 2',
        'pl.col("f64") >= 2**53 + 1',
        'pl.col("f64") <= -(2**53) - 1',
        'pl.col("u64") == 2.0**63',
    ],
)
def test_whole_numbers_that_floats_do_not_hold_stay_within(condition: str) -> None:
    near = [2**53 + d for d in range(-3, 5)]
    frame = nasty_frame(len(near)).with_columns(
        i64=pl.Series(near),
        f64=pl.Series([float(n) * (-1) ** (i % 2) for i, n in enumerate(near)]),
        u64=pl.Series([2**63 + d for d in range(len(near))], dtype=pl.UInt64),
    )
    step = Filter((tree_of(condition),))
    before = wide_columns(frame)
    kept = lowered(step, before, frame)
    name = condition[8:11]
    found = step.facts(FrameFacts(before, UNIT)).columns[name]
    assert kept.height
    for value in kept[name].to_list():
        assert found.interval.contains(Fraction(value))
        assert found.categories is None or value in found.categories
