"""Which windows a query may read is never less than it does, and all that it reads."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.windows import Every, Windows, number_of
from dpframe.errors import DPFrameError
from dpframe.frames.partition import windows_read
from dpframe.lower.tables import lower_rows
from tests.laws.amounts import examples
from tests.laws.individuals import SCHEMA, query
from tests.laws.layouts import stored
from tests.laws.neighbours import exact_tables, query_of, same
from tests.laws.queries import NAMES
from tests.laws.windowed import (
    EVERIES,
    NO_TIME,
    TIMES,
    WALLS,
    WindowedPair,
    protected,
    timed,
    times_of,
    windowed_neighbours,
    windows_of,
)

# ------------------------------------------------------------------------------ random conditions

_OPERATORS = ["<", "<=", ">", ">=", "==", "!="]
_CLOSED = ["both", "left", "right", "none"]
_DAYS = [date(1970, 1, 1), date(2018, 11, 4), date(2024, 12, 30), date(2025, 1, 1),
         date(2026, 3, 29), date(2026, 10, 25), date(2026, 10, 31), date(2026, 11, 1)]  # fmt: skip
DATES = [
    "{c}.dt.date()",
    "{c}.dt.truncate('1mo').dt.date()",
    "{c}.dt.truncate('1w').dt.date()",
    "{c}.dt.offset_by('1mo').dt.date()",
    "({c}.dt.date() + pl.duration(days=3))",
    "{c}.dt.date().dt.month_end()",
    "{c}.dt.date().fill_null(date(2026, 10, 1))",
]
MOMENTS = ["{c}", "{c}.dt.truncate('1mo')", "{c}.dt.truncate('1q')", "{c}.dt.truncate('1h')",
           "{c}.dt.offset_by('-1d')", "{c}.dt.round('1d')"]  # fmt: skip
NUMBERS = {
    "{c}.dt.year()": [1970, 2024, 2025, 2026],
    "{c}.dt.month()": [1, 3, 10, 11, 12],
    "{c}.dt.quarter()": [1, 4],
    "{c}.dt.day()": [1, 25, 31],
    "{c}.dt.weekday()": [1, 6, 7],
    "{c}.dt.ordinal_day()": [1, 60, 366],
    "({c}.dt.year() * 12 + {c}.dt.month())": [2026 * 12 + 10, 2024 * 12 + 12],
}


def literals(dtype: Any) -> list[str]:
    """Times at and around borders of windows, as one would write them for a column of a type."""
    if dtype == pl.Date():
        return [repr(day).removeprefix("datetime.") for day in _DAYS]
    shown = times_of(WALLS, dtype).is_not_null().to_list()
    walls = [wall for wall, is_shown in zip(WALLS, shown, strict=True) if wall and is_shown]
    written = [f"datetime({w.year}, {w.month}, {w.day}, {w.hour}, {w.minute}, {w.second})"
               for w in walls]  # fmt: skip
    if dtype.time_zone is None:
        return [*written, *(repr(day).removeprefix("datetime.") for day in _DAYS)]
    return [f"{text[:-1]}, tzinfo=zone)" for text in written]


@st.composite
def conditions(draw: st.DrawFn, dtype: Any, depth: int = 2) -> str:
    """A condition that mostly speaks of the time, as text; some are refused."""
    if depth and draw(st.integers(0, 2)):
        a, b = draw(conditions(dtype, depth - 1)), draw(conditions(dtype, depth - 1))
        joint = [f"~({a})", f"(({a}) & ({b}))", f"(({a}) | ({b}))", f"({a}).fill_null(False)",
                 f"(({a}) ^ ({b}))", f"pl.all_horizontal({a}, {b})"]  # fmt: skip
        return draw(st.sampled_from(joint))
    column = draw(st.sampled_from(["pl.col('at')"] * 4 + ["pl.col('d')"]))
    zone = None if dtype == pl.Date() else dtype.time_zone
    kind = draw(st.sampled_from(["moment", "date", "number", "null", "other"]))
    if kind == "null":
        return f"{column}.{draw(st.sampled_from(['is_null', 'is_not_null']))}()"
    if kind == "other":
        return draw(st.sampled_from(["(pl.col('x') > 0)", "pl.col('b')", "pl.lit(True)"]))
    if kind == "number":
        value = draw(st.sampled_from(sorted(NUMBERS)))
        some = [str(number) for number in NUMBERS[value]]
    elif kind == "date":
        value = draw(st.sampled_from(DATES))
        some = [repr(day).removeprefix("datetime.") for day in _DAYS]
    else:
        column = "pl.col('at')"
        more = [] if zone is None else ["{c}.dt.replace_time_zone(None)"]
        value = draw(st.sampled_from([*MOMENTS, *more]))
        some = literals(pl.Datetime("us") if "None" in value else dtype)
    value = value.format(c=column)
    lo, hi = draw(st.sampled_from(some)), draw(st.sampled_from(some))
    operator, closed = draw(st.sampled_from(_OPERATORS)), draw(st.sampled_from(_CLOSED))
    return draw(
        st.sampled_from(
            [
                f"({value} {operator} {lo})",
                f"({lo} {operator} {value})" if "date(" not in lo else f"({value} {operator} {lo})",
                f"({value} {operator} {lo})",
                f"{value}.is_between({lo}, {hi}, closed='{closed}')",
                f"{value}.is_in([{lo}, {hi}])",
                f"{value}.is_in([{lo}, None], nulls_equal=True)",
                f"{value}.eq_missing({lo})",
            ]
        )
    )


STEPS = [
    "f.filter({condition})",
    "f.filter({condition}, {condition})",
    "f.with_columns(d={date}).filter({condition})",
    "f.with_columns(t={date}).filter(pl.col('t') >= date(2026, 10, 1))",
    "f.with_columns(y=pl.col('at').dt.year(), m=pl.col('at').dt.month()).filter("
    "pl.col('y') == 2026, pl.col('m').is_in([3, 10]))",
    "f.rename({{'at': 'was', 'd': 'at'}}).rename({{'at': 'd', 'was': 'at'}})",
    "f.with_columns(was=pl.col('at')).filter(pl.col('was').is_not_null()).drop('was')",
    "f.drop_nulls('at')",
    "f.drop_nulls()",
    "f.limit_rows(2)",
    "f.limit_groups(1, by='g')",
    "f.select('id', 'g', 'x', 'b', 'h', 'at', d=pl.col('at').dt.date())",
    "f.concat(f.filter({condition}))",
    "f.filter({condition}).concat(f.filter({condition}))",
    "f.filter({condition}).join(f.select('id', 'at', z='x'), on='id', how='left').drop('at_right')",
    "f.join(f.filter({condition}).select('id', 'at', z='x'), on='id').drop('at_right')",
]
GROUPS = [
    "f",
    "f",
    "f.group_by(pl.col('at').dt.year(), keys=[2024, 2026])",
    "f.group_by(pl.col('at').dt.date(), keys=[date(2026, 10, 31), date(2026, 11, 1)])",
    "f.group_by(pl.col('at').dt.date(), keys=[date(2026, 10, 31), None])",
    "f.group_by(late=pl.col('at').dt.date() > date(2026, 10, 30), keys=[True])",
    "f.group_by('g', y=pl.col('at').dt.year(), keys={{'g': ['a', 'b'], 'y': [1969, 2025]}})",
    "f.group_by(dp.rollup('g', 'd'), keys={{'g': ['a'], 'd': [date(2000, 2, 29)]}})",
]


@st.composite
def chains(draw: st.DrawFn, dtype: Any) -> tuple[list[str], str]:
    """Steps and a grouping, as text."""
    steps = []
    for text in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)):
        found = draw(st.sampled_from(DATES)).format(c="pl.col('at')")
        first, second = (draw(conditions(dtype)) for _ in range(2))
        written = text.replace("{condition}", "{first}", 1)
        steps.append(written.format(first=first, condition=second, date=found))
    return steps, draw(st.sampled_from(GROUPS)).format()


def frame_after(steps: list[str], dtype: Any, every: Every) -> dp.PrivateFrame:
    """The frame after steps; what is refused is left out."""
    zone = None if dtype == pl.Date() or dtype.time_zone is None else ZoneInfo(dtype.time_zone)
    frame = protected(dtype, every)
    for text in steps:
        try:
            frame = eval(text, {**NAMES, "f": frame, "zone": zone})
        except (DPFrameError, TypeError):  # Polars mixes no dates and moments in one list
            continue
    return frame


def asked_of(frame: dp.PrivateFrame, grouping: str) -> Any:
    try:
        return query(['pl.col("id").dp_n_unique()', 'dp.count(per="unit", bounds=(0, 3))'],
                     grouping, frame=frame)  # fmt: skip
    except DPFrameError:
        return None


@st.composite
def asked(draw: st.DrawFn) -> tuple[Any, Any, WindowedPair]:
    """A frame, a query of it, and data."""
    drawn = draw(windowed_neighbours(most=8))
    steps, grouping = draw(chains(drawn.dtype))
    frame = frame_after(steps, drawn.dtype, drawn.every)
    return frame, asked_of(frame, grouping), drawn


def rows_of(frame: Any, data: pl.DataFrame, windows: Windows | None, salt: int) -> list[str]:
    found = lower_rows(frame._relation, stored(data).lazy(), pl, salt, windows).collect()
    return sorted(map(repr, found.rows()))


@examples(60, 4_000)
@given(asked(), st.integers(0, 2**64 - 1))
def test_no_row_that_is_left_is_of_another_window(
    found: tuple[Any, Any, WindowedPair], salt: int
) -> None:
    """Dropping the rows of all other windows first changes nothing."""
    frame, _, drawn = found
    windows = windows_read(frame._relation)
    assert windows is not None
    for data in (drawn.pair.before, drawn.pair.after, of_all_walls(drawn.dtype)):
        assert rows_of(frame, data, windows, salt) == rows_of(frame, data, None, salt)


def of_all_walls(dtype: Any) -> pl.DataFrame:
    """A row of some person at each time."""
    row = {
        "g": "a",
        "h": 0,
        "x": 1,
        "b": True,
        "d": date(2000, 2, 29),
        "y": 0.5,
        "c": "a",
        "e": "p",
    }
    rows = [{**row, "id": i % 3} for i in range(len(WALLS))]
    return timed(rows, WALLS, dtype)


def is_among(windows: Windows, number: int) -> bool:
    if number == NO_TIME:
        return windows.without
    return (windows.first is None or windows.first <= number) and (
        windows.last is None or number <= windows.last
    )


@examples(50, 2_000)
@given(asked(), st.integers(0, 2**64 - 1))
def test_rows_of_other_windows_never_change_the_exact_tables(
    found: tuple[Any, Any, WindowedPair], salt: int
) -> None:
    _, asked_for, drawn = found
    assume(asked_for is not None)
    windows = windows_read(asked_for.relation, asked_for.groups)
    assert windows is not None
    for data in (drawn.pair.before, drawn.pair.after, of_all_walls(drawn.dtype)):
        numbers = windows_of(data["at"], drawn.every)
        here = data.filter(
            pl.Series([is_among(windows, number) for number in numbers], dtype=pl.Boolean)
        )
        assert same(
            exact_tables(asked_for, data, salt=salt), exact_tables(asked_for, here, salt=salt)
        )


@examples(30, 1_000)
@given(asked(), st.integers(0, 2**64 - 1))
def test_keys_leave_rows_of_no_other_window(
    found: tuple[Any, Any, WindowedPair], salt: int
) -> None:
    """Tables by listed keys are those without what is inferred from the keys."""
    frame, asked_for, drawn = found
    assume(asked_for is not None and asked_for.groups is not None)
    by_rows = windows_read(frame._relation)
    by_keys = windows_read(asked_for.relation, asked_for.groups)
    assert by_rows is not None
    assert by_keys is not None
    assert by_rows.hull(by_keys) == by_rows
    data = of_all_walls(drawn.dtype)
    numbers = windows_of(data["at"], drawn.every)
    kept = pl.Series([is_among(by_keys, number) for number in numbers], dtype=pl.Boolean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpframe.lower.tables.windows_read", lambda *_: None)
        every, here = (exact_tables(asked_for, d, salt=salt) for d in (data, data.filter(kept)))
    assert same(every, here)


# ------------------------------------------------------------------------------- what is found

US, BERLIN = pl.Datetime("us"), pl.Datetime("us", "Europe/Berlin")
DECEMBER = number_of("1mo", date(2026, 12, 1))
IN_OCTOBER = [
    "(pl.col('at') >= datetime(2026, 10, 1)) & (pl.col('at') < datetime(2026, 11, 1))",
    "pl.col('at').is_between(date(2026, 10, 1), date(2026, 11, 1), closed='left')",
    "pl.col('at').dt.date().is_between(date(2026, 10, 1), date(2026, 10, 31))",
    "pl.col('at').dt.truncate('1mo') == datetime(2026, 10, 1)",
    "(pl.col('at').dt.year() == 2026) & (pl.col('at').dt.month() == 10)",
    "pl.col('at').cast(pl.Date).is_in([date(2026, 10, 3), date(2026, 10, 20)])",
    "~((pl.col('at') < datetime(2026, 10, 1)) | (pl.col('at') >= datetime(2026, 11, 1)))",
    "(pl.col('at') >= datetime(2026, 10, 1)) & ~(pl.col('at') >= datetime(2026, 11, 1))",
    "(pl.col('at').dt.date() == date(2026, 10, 3)) | "
    "((pl.col('at').dt.date() == date(2026, 10, 5)) & (pl.col('x') > 3))",
]


def found_of(text: str, dtype: Any = US, every: Every = "1mo") -> str:
    frame = frame_after([f"f.filter({text})"], dtype, every)
    assert frame._relation.steps
    windows = windows_read(frame._relation)
    assert windows is not None
    return windows.words()


@pytest.mark.parametrize("text", IN_OCTOBER)
@pytest.mark.parametrize(
    ("every", "words"),
    [("1mo", "2026-10"), ("1q", "2026-Q4"), ("1y", "2026")],
)
def test_filters_of_a_month(text: str, every: Every, words: str) -> None:
    assert found_of(text, every=every) == words


ZONED = [
    "(pl.col('at') >= datetime(2026, 10, 1, tzinfo=zone)) & "
    "(pl.col('at') < datetime(2026, 11, 1, tzinfo=zone))",
    "pl.col('at').dt.date().is_between(date(2026, 10, 1), date(2026, 10, 31))",
    "pl.col('at').dt.truncate('1mo') == datetime(2026, 10, 1, tzinfo=zone)",
    "(pl.col('at').dt.year() == 2026) & (pl.col('at').dt.month() == 10)",
    "pl.col('at').dt.replace_time_zone(None).is_between("
    "datetime(2026, 10, 1), datetime(2026, 11, 1), closed='left')",
]


@pytest.mark.parametrize("text", ZONED)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Havana", "Pacific/Apia", "UTC"])
@pytest.mark.parametrize(("every", "words"), [("1mo", "2026-10"), ("1q", "2026-Q4")])
def test_filters_of_a_month_by_the_clocks_of_a_zone(
    text: str, zone: str, every: Every, words: str
) -> None:
    assert found_of(text, pl.Datetime("us", zone), every) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pl.col('at') >= datetime(2026, 10, 1)", "all months from 2026-10 on"),
        ("pl.col('at') < datetime(2026, 10, 1)", "all months up to 2026-09"),
        ("pl.col('at') <= datetime(2026, 10, 1)", "all months up to 2026-10"),
        ("pl.col('at').is_null()", "rows without a time"),
        ("pl.col('at').is_not_null()", "all months"),
        ("pl.col('x') > 3", "all months and rows without a time"),
        ("pl.col('at').is_null() | (pl.col('at') < datetime(2026, 10, 1))",
         "all months up to 2026-09 and rows without a time"),
        ("(pl.col('at') > datetime(2026, 10, 1)) | (pl.col('x') > 3)",
         "all months and rows without a time"),
        ("(pl.col('at') > datetime(2027, 1, 1)) & (pl.col('at') < datetime(2026, 1, 1))",
         "no window"),
        ("pl.col('at').dt.month() == 10", "all months"),
    ],
)  # fmt: skip
def test_windows_of_other_filters(text: str, words: str) -> None:
    assert found_of(text) == words


def test_what_owners_declare_narrows_nothing() -> None:
    frame = protected(US, "1mo", bounds={"x": (0, 9), "at": (datetime(2026, 10, 1),) * 2})
    asked_for = frame.filter((pl.col("x") > 10) | (pl.col("at") > datetime(2026, 12, 1)))
    windows = windows_read(asked_for._relation)
    assert windows is not None
    assert windows.are_all


def test_a_column_of_a_name_that_stands_for_the_time_is_no_time() -> None:
    frame = dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema={"u": pl.Int64, "at": pl.Date, "\0time": pl.Date}),
        dp.Identifier("u", window="1mo", time="at"),
    )
    windows = windows_read(frame.filter(pl.col("\0time") > date(2026, 1, 1))._relation)
    assert windows is not None
    assert windows.are_all


@pytest.mark.parametrize("every", EVERIES)
@pytest.mark.parametrize("dtype", TIMES, ids=str)
def test_a_filter_to_each_time_reads_its_window(dtype: Any, every: Every) -> None:
    """Also where clocks are set, and at borders: just that one, by comparison with the time."""
    times = times_of(WALLS, dtype)
    for value, number in zip(times.to_list(), windows_of(times, every), strict=True):
        if value is None:
            continue
        frame = protected(dtype, every).filter(pl.col("at") == pl.lit(value, dtype=dtype))
        windows = windows_read(frame._relation)
        assert windows == Windows(every, number, number, without=False)


@pytest.mark.parametrize(
    ("listed", "windows"),
    [
        ([True], Windows("1mo", DECEMBER, None, without=False)),
        ([False], Windows("1mo", None, DECEMBER - 1, without=False)),
        ([True, False], Windows("1mo", None, None, without=False)),
        ([True, None], Windows("1mo")),
    ],
)
def test_keys_that_are_truth_values_of_the_time_are_read_as_filters(
    listed: list[bool | None], windows: Windows
) -> None:
    late = pl.col("at").dt.date() >= date(2026, 12, 1)
    frame = protected(US, "1mo").group_by(late=late, keys=pl.DataFrame({"late": listed}))
    asked_for = query_of(frame.dp_count(per="unit", bounds=(0, 2)))
    assert windows_read(asked_for.relation, asked_for.groups) == windows


def test_queries_of_frames_that_meet() -> None:
    f = protected(US, "1mo")
    october = f.filter(pl.col("at").dt.date() == date(2026, 10, 3))
    december = f.filter(pl.col("at").dt.date() == date(2026, 12, 3))
    for frame, words in (
        (october.concat(december), "2026-10 to 2026-12"),
        (october.join(f.select("id", when="at"), on="id"), "2026-10"),
        (october.limit_rows(3).concat(october), "2026-10"),
    ):
        windows = windows_read(query_of(frame.dp_count(per="unit", bounds=(0, 2))).relation)
        assert windows is not None
        assert windows.words() == words


assert set(SCHEMA) >= {"id", "d", "x"}
