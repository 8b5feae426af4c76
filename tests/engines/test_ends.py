"""What the typed layer says of numbers holds: ends, that they are whole, and sums in parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines import numbers as engine_numbers
from dpframe.lower.engines.calendar import part
from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from dpframe.lower.engines.engine_expr import EngineExpr, GroupScope
from dpframe.lower.engines.frames import EngineFrame, EngineNamespace, concatenated
from tests.laws.amounts import examples

FLOATS = st.floats(width=64) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**52, -(2.0**53) - 2, 1e308, 5e-324, 0.5, -1.5]
)
CONSTANTS = st.floats(-1e18, 1e18) | st.sampled_from([0.0, -0.0, 0.5, -1.0, 3.0, 2.0**52, 1e308])
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [s * 2**n + d for n in (0, 23, 24, 47, 48, 62) for s in (1, -1) for d in (-1, 0, 1)]
    + [2**63 - 1, -(2**63)]
)
STEPS: dict[str, Callable[[Any, float], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "floor": lambda x, _: x.floor(),
    "ceil": lambda x, _: x.ceil(),
    "clip": lambda x, c: x.clip(-abs(c), abs(c)),
    "at least": lambda x, c: x.clip(c),
    "at most": lambda x, c: x.clip(None, c),
    "magnitude": lambda x, _: x.abs(),
    "negate": lambda x, _: -x,
    "cast": lambda x, _: x.cast(pl.Int64).cast(pl.Float64),
}


@pytest.fixture(scope="module")
def connection() -> Any:
    return duckdb.connect()


def namespace(frame: EngineFrame) -> EngineNamespace:
    return EngineNamespace(frame.dialect)


def ends_of(frame: EngineFrame, name: str) -> tuple[Any, Any]:
    known = frame.columns[name].interval
    return known.lo, known.hi


def computed(
    connection: Any, frame: pl.DataFrame, make: Callable[[Any], Any]
) -> tuple[EngineFrame, pl.DataFrame]:
    connection.register("given", frame.to_arrow())
    relation = connection.table("given")
    engine = DuckDBEngine(relation)
    made = make(engine.frame(relation))
    return made, engine.collect([made])[0]


@given(
    st.lists(FLOATS | st.none(), max_size=8),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), CONSTANTS), min_size=1, max_size=6),
)
def test_numbers_lie_between_their_ends(
    connection: Any, numbers: list[float | None], steps: list[tuple[str, float]]
) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        value = namespace(frame).col("x")
        for name, constant in steps:
            value = STEPS[name](value, constant)
        return frame.with_columns(value.alias("y"), value.cast(pl.Int64).alias("n"))

    given_frame = pl.DataFrame({"x": numbers}, schema={"x": pl.Float64})
    made, found = computed(connection, given_frame, make)
    for name in ("y", "n"):
        lo, hi = ends_of(made, name)
        for value in found[name]:
            if value is None or math.isnan(value):
                continue
            assert lo is None or lo <= value, (name, steps)
            assert hi is None or value <= hi, (name, steps)
    by_polars = pl.col("x")
    for name, constant in steps:
        if name == "cast":
            by_polars = by_polars.cast(pl.Int64, strict=False).cast(pl.Float64)
        else:
            by_polars = STEPS[name](by_polars, constant)
    expected = given_frame.select(by_polars).to_series()
    assert found["y"].equals(expected.alias("y"), null_equal=True)


WHOLE_STEPS: dict[str, Callable[[Any, int], Any]] = {
    **{name: STEPS[name] for name in ("+", "-", "*", "at least", "at most", "magnitude", "negate")},
    "//": lambda n, c: n // (abs(c) + 1),
    "%": lambda n, c: n % (abs(c) + 1),
    "small": lambda n, _: n.cast(pl.Int8).cast(pl.Int64),
    "real": lambda n, _: n.cast(pl.Float64).cast(pl.Int64),
}


def wrapped(n: int) -> int:
    return (n + 2**63) % 2**64 - 2**63


def plainly(name: str, n: int, c: int) -> int | None:
    """What a step makes of a number."""
    match name:
        case "small":
            return n if -128 <= n <= 127 else None
        case "real":
            return int(float(n)) if float(n) < 2.0**63 else None
        case "at least":
            return max(n, c)
        case "at most":
            return min(n, c)
        case "magnitude":
            return wrapped(abs(n))
        case _:
            return wrapped(WHOLE_STEPS[name](n, c))


@examples(15, 120)
@given(
    st.lists(WHOLE | st.none(), max_size=8),
    st.lists(
        st.tuples(st.sampled_from(sorted(WHOLE_STEPS)), st.integers(-(2**40), 2**40)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_whole_numbers_lie_between_their_ends(
    connection: Any, given_numbers: list[int | None], steps: list[tuple[str, int]], exact: bool
) -> None:
    """With the form of quotients that Spark has as well."""

    def make(frame: EngineFrame) -> EngineFrame:
        frame.dialect.divides_wide = exact
        value = namespace(frame).col("n")
        for name, constant in steps:
            value = WHOLE_STEPS[name](value, constant)
        return frame.with_columns(value.alias("m"))

    frame = pl.DataFrame({"n": given_numbers}, schema={"n": pl.Int64})
    made, found = computed(connection, frame, make)
    lo, hi = ends_of(made, "m")
    for number, got in zip(given_numbers, found["m"], strict=True):
        for name, constant in steps:
            number = None if number is None else plainly(name, number, constant)
        assert got == number, steps
        assert got is None or lo <= got <= hi, steps


def test_ends_hold_where_bounds_are_turned_round(connection: Any) -> None:
    before = ((None, None), (0.0, None), (None, 0.0), (0.0, 5.0), (-5.0, 0.0))
    bounds = ((3.0, -3.0), (-5.0, -7.0), (7.0, 5.0), (-3.0, -5.0), (-7.0, -5.0), (5.0, 7.0))
    names = {f"{one} {two}": (one, two) for one in before for two in bounds}

    def make(frame: EngineFrame) -> EngineFrame:
        x = namespace(frame).col("x")
        clipped = (x.clip(*one).clip(*two).alias(name) for name, (one, two) in names.items())
        return frame.with_columns(*clipped)

    made, found = computed(connection, pl.DataFrame({"x": [-9.0, -4.0, 0.0, 4.0, 9.0]}), make)
    for name in names:
        lo, hi = ends_of(made, name)
        assert lo is None or lo <= found[name].min(), name
        assert hi is None or found[name].max() <= hi, name


def test_ends_hold_for_constants_that_a_type_rounds(connection: Any) -> None:
    for constant in (0.1, 0.3, -0.1, 0.5):

        def make(frame: EngineFrame, constant: float = constant) -> EngineFrame:
            ns = namespace(frame)
            small = ns.col("x").clip(constant, constant)
            return frame.with_columns(small.alias("y"), (small + ns.col("z")).alias("sum"))

        frame = pl.DataFrame(
            {"x": [9.0, -9.0], "z": [0.0, 0.0]}, schema_overrides={"x": pl.Float32}
        )
        made, found = computed(connection, frame, make)
        for name in ("y", "sum"):
            lo, hi = ends_of(made, name)
            assert lo is None or lo <= found[name].min()
            assert hi is None or found[name].max() <= hi


def test_counts_of_nothing_lie_between_their_ends(connection: Any) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        n, ns = namespace(frame).col("n"), namespace(frame)
        return frame.group_by("g").agg(
            n.count().alias("count"),
            n.drop_nulls().n_unique().alias("kinds"),
            ns.len().alias("len"),
        )

    frame = pl.DataFrame({"g": [1, 1], "n": [None, None]}, schema_overrides={"n": pl.Int64})
    made, found = computed(connection, frame, make)
    assert found.select("count", "kinds", "len").row(0) == (0, 0, 2)
    for name in ("count", "kinds", "len"):
        lo, hi = ends_of(made, name)
        assert lo <= found[name].min()
        assert hi >= 2**32


def test_floats_are_known_to_lie_somewhere_at_all(connection: Any) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        scaled = (namespace(frame).col("x") * 8.0).clip(-99.5, 99.5) + 0.5
        return frame.with_columns(
            scaled.floor().alias("y"), scaled.floor().cast(pl.Int64).alias("n")
        )

    made, _ = computed(connection, pl.DataFrame({"x": [1.0]}), make)
    assert [ends_of(made, c) for c in "yn"] == [(-99, 100), (-99, 100)]


@pytest.mark.parametrize("end", [2.0**52 + 2, 2.0**60, 1e19, 1e24])
def test_floats_that_may_be_large_are_not_rounded_as_small_ones(
    connection: Any, end: float
) -> None:
    """Beyond 2**53 they stay as they are: some engines round to whole numbers of 64 bits."""
    for lo, hi in ((-1.0, end), (-end, 1.0)):
        made, found = computed(
            connection,
            pl.DataFrame({"x": [end, -end, 0.5, math.inf]}),
            lambda frame, lo=lo, hi=hi: frame.with_columns(
                namespace(frame).col("x").clip(lo, hi).floor().alias("y")
            ),
        )
        assert ends_of(made, "y") == (lo, hi)
        assert found["y"].to_list() == [
            math.floor(min(max(x, lo), hi)) for x in (end, -end, 0.5, hi)
        ]


def test_a_choice_lies_between_the_ends_of_all_it_chooses_from(connection: Any) -> None:
    frame = pl.DataFrame({"x": [-9.0, 0.5, 9.0, None], "b": [True, False, None, False]})
    for one, other in (((-5.0, -1.0), (2.0, 3.0)), ((2.0, 3.0), (-5.0, -1.0)), ((-9, 9), (0, 1))):

        def make(engine: EngineFrame, one: Any = one, other: Any = other) -> EngineFrame:
            ns = namespace(engine)
            x, y = ns.col("x").clip(*map(float, one)), ns.col("x").clip(*map(float, other))
            chosen = ns.when(ns.col("b")).then(x).otherwise(y)
            return engine.with_columns(
                chosen.alias("chosen"),
                ns.coalesce(x, y).alias("first"),
                ns.coalesce(x, other[1]).alias("filled"),
            )

        made, found = computed(connection, frame, make)
        least, most = min(one[0], other[0]), max(one[1], other[1])
        for name in ("chosen", "first", "filled"):
            known = made.columns[name].interval
            assert known.lo == (min(one[0], other[1]) if name == "filled" else least)
            assert known.hi == most
            assert known.lo <= found[name].min()  # type: ignore[operator]
            assert found[name].max() <= known.hi  # type: ignore[operator]


@pytest.mark.parametrize("turn", range(3))
def test_rows_of_several_frames_lie_between_the_ends_of_all(connection: Any, turn: int) -> None:
    ends = [(-5, -1), (2, 3), (-2, 9)]
    ends = ends[turn:] + ends[:turn]

    def make(frame: EngineFrame) -> EngineFrame:
        parts = [frame.with_columns(namespace(frame).col("x").clip(*e).alias("y")) for e in ends]
        return concatenated(parts)

    made, found = computed(connection, pl.DataFrame({"x": [-100, 0, 100]}), make)
    assert ends_of(made, "y") == (-5, 9)
    assert (found["y"].min(), found["y"].max(), found.height) == (-5, 9, 9)


def test_rows_of_a_value_are_counted_between_their_ends(connection: Any) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        g, x = namespace(frame).col("g"), namespace(frame).col("x")
        return frame.with_columns(
            namespace(frame).len().over([g]).alias("rows"),
            x.cum_count().over([g], [x]).alias("place"),
        )

    frame = pl.DataFrame({"g": [1, 1, 1, 2], "x": [7, 5, 6, 9]})
    made, found = computed(connection, frame, make)
    assert found.sort("x")["rows"].to_list() == [3, 3, 3, 1]
    assert found.sort("x")["place"].to_list() == [1, 2, 3, 1]
    for name in ("rows", "place"):
        known = made.columns[name].interval
        assert known.lo is not None
        assert known.hi is not None
        assert known.lo <= found[name].min()  # type: ignore[operator]
        assert known.hi >= 2**31


def test_what_stands_for_listed_values_lies_between_their_ends(connection: Any) -> None:
    old = pl.Series([1, 2, 3])
    for new, default, ends in (
        ([4, -7, 300], None, (-7, 300)),
        ([4, 5, 6], -9, (-9, 6)),
        ([4, None, 5], 70, (4, 70)),
    ):

        def make(frame: EngineFrame, new: Any = new, default: Any = default) -> EngineFrame:
            x = namespace(frame).col("x")
            made = x.replace_strict(old, new, default=default, return_dtype=pl.Int64)
            return frame.with_columns(made.alias("y"))

        made, found = computed(connection, pl.DataFrame({"x": [3, 2, 1, 0, None]}), make)
        assert found["y"].to_list() == [*reversed(new), default, default]
        assert ends_of(made, "y") == ends


PARTS = (
    *("year", "month", "day", "hour", "minute", "second"),
    *("quarter", "ordinal_day", "weekday", "week", "iso_year"),
)


def test_parts_of_moments_lie_between_their_ends(connection: Any) -> None:
    """At both ends of each: the first and last moments of a leap year, and of other ones."""
    moments = [
        datetime(year, month, 1) + timedelta(microseconds=step)
        for year in (1, 1969, 1970, 2000, 2023, 2024, 9999)
        for month in range(1, 13)
        for step in ((0, 1, 86_399_999_999) if year == 1 else (0, 1, -1))
    ]
    frame = pl.DataFrame({"t": moments})

    def make(engine: EngineFrame) -> EngineFrame:
        dt = namespace(engine).col("t").dt
        made = {name: getattr(dt, name)() for name in PARTS} | {
            "us": part(namespace(engine).col("t"), "microsecond")
        }
        return engine.with_columns(*(value.alias(name) for name, value in made.items()))

    made, found = computed(connection, frame, make)
    for name in (*PARTS, "us"):
        known = made.columns[name].interval
        method = "microsecond" if name == "us" else name
        assert (
            found[name].to_list() == frame.select(getattr(pl.col("t").dt, method)())["t"].to_list()
        )
        assert known.lo is None or known.lo <= found[name].min()  # type: ignore[operator]
        assert known.hi is None or found[name].max() <= known.hi  # type: ignore[operator]


def test_days_are_counted_as_polars_counts_them(connection: Any) -> None:
    """In every year, on days around the end of each month."""
    days = pl.date_range(date(1, 1, 1), date(9999, 12, 31), "1mo", eager=True).alias("d")
    shifted = [days, days.dt.offset_by("27d"), days.dt.month_end()]
    frame = pl.DataFrame({"d": pl.concat(shifted)})
    _, found = computed(
        connection, frame, lambda f: f.with_columns(namespace(f).col("d").to_physical().alias("n"))
    )
    assert found["n"].equals(found["d"].to_physical().cast(pl.Int64))


def test_microseconds_are_counted_as_polars_counts_them(connection: Any) -> None:
    moments = [
        datetime(2024, 2, 29, 23, 59, 58, 7),
        datetime(1, 1, 1, 0, 1),
        datetime(9999, 12, 31),
    ]
    _, found = computed(
        connection,
        pl.DataFrame({"t": moments}),
        lambda f: f.with_columns(namespace(f).col("t").to_physical().alias("n")),
    )
    assert found["n"].equals(found["t"].to_physical())


@given(st.lists(st.tuples(st.integers(0, 2), WHOLE | st.none()), max_size=12))
def test_sums_in_parts_are_sums_modulo_two_to_the_64(
    connection: Any, rows: list[tuple[int, int | None]]
) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        frame.dialect.sums_wide = False
        n = namespace(frame).col("n")
        small = n.clip(-(2**48), 2**48)
        return frame.group_by("g").agg(n.sum().alias("all"), small.sum().alias("small"))

    schema = {"g": pl.Int64, "n": pl.Int64}
    _, found = computed(connection, pl.DataFrame(rows, schema=schema, orient="row"), make)
    for g, every, small in found.select("g", "all", "small").rows():
        values = [n for group, n in rows if group == g and n is not None]
        clipped = [max(-(2**48), min(2**48, n)) for n in values]
        assert every == (sum(values) + 2**63) % 2**64 - 2**63
        assert small == sum(clipped)
    assert found.height == len({g for g, _ in rows})


@pytest.mark.parametrize("form", ["its own", "in parts"])
@pytest.mark.parametrize(
    "numbers",
    [
        [2**63 - 1, 2**63 - 1, 5],
        [-(2**63), -(2**63), -1],
        [2**62, 2**62],
        [-(2**63), 2**63 - 1],
        [2**48] * 3,
        [2**53 + 1, -(2**53), None],
        [2**50 + 2**30 + 3, -(2**25) - 1, 2**24 - 1],
    ],
)
def test_sums_of_large_numbers_wrap(connection: Any, numbers: list[Any], form: str) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        if form == "in parts":
            frame.dialect.sums_wide = False
        return frame.group_by("g").agg(namespace(frame).col("n").sum().alias("sum"))

    schema = {"g": pl.Int64, "n": pl.Int64}
    given_frame = pl.DataFrame([(0, n) for n in numbers], schema=schema, orient="row")
    _, found = computed(connection, given_frame, make)
    total = sum(n for n in numbers if n is not None)
    assert found["sum"].to_list() == [(total + 2**63) % 2**64 - 2**63]


@pytest.mark.parametrize("k", [30, 31, 32, 40, 62])
def test_sums_are_plain_only_where_four_billion_rows_cannot_overflow(
    connection: Any, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ends in ((-(2**k), 0), (0, 2**k)):
        careful: list[EngineExpr] = []

        def noted(scope: GroupScope, rows: EngineExpr, careful: Any = careful) -> EngineExpr:
            careful.append(rows)
            return engine_numbers.summed_in_parts(scope, rows)

        def make(frame: EngineFrame, ends: Any = ends) -> EngineFrame:
            return frame.group_by("g").agg(namespace(frame).col("n").clip(*ends).sum().alias("sum"))

        schema = {"g": pl.Int64, "n": pl.Int64}
        monkeypatch.setattr(engine_numbers, "wrapped_sum", noted)
        _, found = computed(connection, pl.DataFrame([(0, ends[0])], schema, orient="row"), make)
        assert found["sum"].to_list() == [ends[0]]
        assert bool(careful) == (2**k * (2**32 - 1) >= 2**63)


def test_floats_have_no_sums(connection: Any) -> None:
    """Their order would show; what is summed are whole numbers of steps."""
    for ends in ((None, None), (0.0, 1.0)):

        def make(frame: EngineFrame, ends: Any = ends) -> EngineFrame:
            return frame.group_by("g").agg(namespace(frame).col("x").clip(*ends).sum())

        with pytest.raises(UnsupportedOperation, match="sum"):
            computed(connection, pl.DataFrame({"g": [1], "x": [0.5]}), make)
