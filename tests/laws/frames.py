"""Random frames over one wide schema, and one fixed frame of extremes.

Every column has its own pool of awkward values (limits of the type, NaN, infinities, -0.0,
subnormals, dates outside any calendar, clock changes, text that is nearly a number) beside random
ones, so that laws meet corner cases often and not only by luck.

`values` gives a column as plain Python: whole physical numbers for moments and durations, because
Python's own types end at the year 9999, and Polars' do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
from hypothesis import strategies as st

from dpframe.core.dtypes import Columns, Domain, columns, domain_of_dtype
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.rows.polars_dtypes import from_polars

ZONE = "Europe/Amsterdam"

SCHEMA: dict[str, Any] = {
    "i8": pl.Int8(),
    "i32": pl.Int32(),
    "i64": pl.Int64(),
    "i64b": pl.Int64(),
    "u8": pl.UInt8(),
    "u32": pl.UInt32(),
    "u64": pl.UInt64(),
    "f32": pl.Float32(),
    "f64": pl.Float64(),
    "f64b": pl.Float64(),
    "b": pl.Boolean(),
    "bb": pl.Boolean(),
    "s": pl.String(),
    "sb": pl.String(),
    "e": pl.Enum(["a", "b", "c"]),
    "d": pl.Date(),
    "dt": pl.Datetime("us"),
    "dtb": pl.Datetime("us"),
    "dtz": pl.Datetime("us", ZONE),
    "dtms": pl.Datetime("ms"),
    "dur": pl.Duration("us"),
    "durb": pl.Duration("us"),
    "t": pl.Time(),
    "dec": pl.Decimal(10, 2),
    "li": pl.List(pl.Int64),
    "lf": pl.List(pl.Float64),
    "ls": pl.List(pl.String),
    "arr": pl.Array(pl.Int64, 3),
    "st": pl.Struct({"x": pl.Int64, "y": pl.String}),
}
"""The columns of every frame here."""

FLOATS = [
    0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308, 0.1, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5,
    3.0, 7.0, 49.0, 1e-7, 1e16, 1e22, 1e300, -1e300, 2.0**53 + 2, 2.0**63, -(2.0**63),
    9.3e18, 255.9, 256.0, -128.5, 0.125, 2.675, 709.8, 1e-320,
]  # fmt: skip
FLOATS32 = [
    0.0, -0.0, math.nan, math.inf, -math.inf, 1.401298464324817e-45, 3.4028234663852886e38,
    -3.4028234663852886e38, 0.10000000149011612, 0.5, -1.0, 1.5, 2.5, 49.0, 16777216.0, 1e10,
]  # fmt: skip
TEXTS = [
    "", "a", "b", "c", "A", "é", "e\u0301", "ß", "İ", "ŉ", "12", " 12 ", "+5", "-0", "1.5", "1e3",
    "nan", "NaN", "inf", "-Infinity", "2024-02-30", "2024-02-29", "2024-02-29 23:59:60",
    "12:30:00", "true", "0x10", "1_000", "٣", "9223372036854775808", "-9223372036854775808",
    "1e400", ".5", "5.", "a-b", "a.b", "hello world", "日本語", "🙂👍🏽", "\t x \n", "\x00", "aaaa",
    "(", "$1", "\u00a0", "ﬁ", "ΑΣ", "ab" * 40,
]  # fmt: skip
DAYS = [
    0, 1, -1, 59, 60, 364, 365, 789, 10957, 11016, 11015, 16800, 18262, 19722, 19723, 19782,
    2**31 - 1, -(2**31), 95_026_236, 95_026_237, -96_465_292, -96_465_293, -719_162, -719_163,
    2_932_896, 2_932_897, -719_528, -25_567, 47_482,
]  # fmt: skip
_DAY_US = 86_400_000_000
MICROSECONDS = [
    0, 1, -1, 999, 1_000, 1_500, -1_500, 999_999, 1_000_000, _DAY_US - 1, _DAY_US, -_DAY_US,
    1_711_846_800_000_000, 1_711_846_799_999_999, 1_711_850_400_000_000, 1_729_990_800_000_000,
    1_729_987_200_000_000, 1_729_994_400_000_000, 1_709_210_096_789_123, -1_025_741_972_000_000,
    -4_260_212_372_000_000, 2**63 - 1, -(2**63), 2**63 - 1 - _DAY_US, -(2**63) + 19 * 10**6,
    95_026_236 * _DAY_US, 95_026_237 * _DAY_US, -96_465_292 * _DAY_US, -96_465_293 * _DAY_US,
    2_932_896 * _DAY_US, 2_932_897 * _DAY_US - 1, 2_932_897 * _DAY_US, -719_162 * _DAY_US,
    -719_163 * _DAY_US, 9_223_372_036_854_775, 9_223_372_036_854_776, -9_223_372_036_854_776,
]  # fmt: skip
MILLISECONDS = [
    *(value // 1000 for value in MICROSECONDS), 2**63 - 1, -(2**63), 9_223_372_036_854_776,
    106_751_991 * 86_400_000, 106_751_992 * 86_400_000, 8_210_298_412_799_999,
]  # fmt: skip
SPANS = [
    0, 1, -1, 1_500, -1_500, 1_000_000, 59_999_999, 3_600_000_000, _DAY_US, -_DAY_US,
    _DAY_US + 1, -_DAY_US - 1, 7 * _DAY_US, 2**63 - 1, -(2**63), 2**62, 9_223_372_036_854_776,
]  # fmt: skip
CLOCKS = [0, 1, 999, 1_000, 1_500_000_000, 43_200 * 10**9, 86_399_999_999_999, 86_399_000_000_000]
CENTS = [0, 1, -1, 5, 50, 150, -250, 199, 10_000, 9_999_999_999, -9_999_999_999, 25_500, 25_600]


def _integers(bits: int, signed: bool) -> list[int]:
    lo = -(2 ** (bits - 1)) if signed else 0
    hi = lo + 2**bits - 1
    pool = [lo, hi, lo + 1, hi - 1, 0, 1, 2, 3, 7, 49, -1, -2, -7, 100]
    pool += [2**53 + 1, -(2**53) - 1, 2**31, 2**32, 2**63, -(2**31) - 1] if bits == 64 else []
    return [v for v in dict.fromkeys(pool) if lo <= v <= hi]


_I64 = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
_LISTS = [[], [None], [1, 2, 3], [2, None, 2], [-(2**63), 2**63 - 1], [0] * 5]
_FLOAT_LISTS: list[Any] = [
    [], [None], [0.1, 0.2, 0.3], [0.1, None, 0.7, 1e16, -1e16], [math.nan, 1.5], [math.nan, None],
    [math.inf, -math.inf], [-0.0, 0.0], [1e308] * 3, [1e308, 1e308, -1e308, -1e308, 0.1],
    [0.7] * 9, [None, *(1 / (i + 1) for i in range(133)), None],
    *([1 / (i + k) for i in range(300)] for k in range(1, 6)),
]  # fmt: skip

POOLS: dict[str, list[Any]] = {
    "i8": _integers(8, True),
    "i32": _integers(32, True),
    "i64": _integers(64, True),
    "i64b": _integers(64, True),
    "u8": _integers(8, False),
    "u32": _integers(32, False),
    "u64": _integers(64, False),
    "f32": FLOATS32,
    "f64": FLOATS,
    "f64b": FLOATS,
    "b": [True, False],
    "bb": [False, True],
    "s": TEXTS,
    "sb": TEXTS,
    "e": ["a", "b", "c"],
    "d": DAYS,
    "dt": MICROSECONDS,
    "dtb": MICROSECONDS,
    "dtz": MICROSECONDS,
    "dtms": MILLISECONDS,
    "dur": SPANS,
    "durb": SPANS,
    "t": CLOCKS,
    "dec": [Decimal(c).scaleb(-2) for c in CENTS],
    "li": _LISTS,
    "lf": _FLOAT_LISTS,
    "ls": [[], [None], ["a"], ["a", None, ""], ["12", "b", "a"]],
    "arr": [[1, 2, 3], [None] * 3, [0, None, -(2**63)], [7, 7, 7]],
    "st": [{"x": 1, "y": "a"}, {"x": None, "y": ""}, {"x": 2**63 - 1, "y": None}],
}
"""The awkward values of each column, as `series` takes them; null is added everywhere."""

_RANDOM: dict[str, Any] = {
    "i8": st.integers(-128, 127),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": _I64,
    "i64b": _I64,
    "u8": st.integers(0, 255),
    "u32": st.integers(0, 2**32 - 1),
    "u64": st.integers(0, 2**64 - 1),
    "f32": st.floats(-(2.0**100), 2.0**100, width=32),
    "f64": st.one_of(st.floats(), st.floats(-100, 100)),
    "f64b": st.one_of(st.floats(), st.floats(-100, 100)),
    "s": st.text(max_size=6),
    "sb": st.text(alphabet="ab12.-é ", max_size=5),
    "d": st.one_of(st.integers(-1_000_000, 4_000_000), st.integers(-(2**31), 2**31 - 1)),
    "dt": st.one_of(st.integers(-(10**16), 10**16), st.integers(-(2**63), 2**63 - 1)),
    "dtb": st.one_of(st.integers(-(10**16), 10**16), st.integers(-(2**63), 2**63 - 1)),
    "dtz": st.one_of(st.integers(-(10**16), 10**16), st.integers(-(2**63), 2**63 - 1)),
    "dtms": st.one_of(st.integers(-(10**13), 10**13), st.integers(-(2**63), 2**63 - 1)),
    "dur": _I64,
    "durb": _I64,
    "t": st.integers(0, 86_399_999_999_999),
    "dec": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda c: Decimal(c).scaleb(-2)),
    "li": st.lists(st.none() | _I64, max_size=4),
    "lf": st.lists(st.none() | st.floats() | st.floats(-1, 1), max_size=12),
    "ls": st.lists(st.none() | st.text(max_size=3), max_size=4),
    "arr": st.lists(st.none() | _I64, min_size=3, max_size=3),
    "st": st.fixed_dictionaries({"x": st.none() | _I64, "y": st.none() | st.text(max_size=3)}),
}


def series(name: str, items: Sequence[Any]) -> pl.Series:
    """A column of `SCHEMA` from plain values; moments and durations from physical numbers."""
    dtype = SCHEMA[name]
    if dtype.is_temporal():
        return pl.Series(name, items, dtype=pl.Int64).cast(dtype)
    return pl.Series(name, items, dtype=dtype)


def cells(name: str) -> st.SearchStrategy[Any]:
    """One value of a column: awkward, random or null."""
    awkward = st.sampled_from([None, *POOLS[name]])
    return st.one_of(awkward, _RANDOM[name]) if name in _RANDOM else awkward


class Frame(pl.DataFrame):
    """A frame that prints as Python: Polars panics on dates outside any calendar."""

    def __repr__(self) -> str:
        shown = {name: values(self[name]) for name in self.columns}
        return f"frame_of({shown})"

    __str__ = __repr__


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Frame:
    """A frame from plain values of columns of `SCHEMA`, as failures print it."""
    return Frame([series(name, items) for name, items in columns.items()])


@st.composite
def frames(
    draw: st.DrawFn, min_rows: int = 0, max_rows: int = 8, names: Sequence[str] = tuple(SCHEMA)
) -> Frame:
    """Frames with the columns `names` of `SCHEMA`; the row count is drawn once for all columns."""
    height = draw(st.integers(min_rows, max_rows))
    return frame_of(
        {name: draw(st.lists(cells(name), min_size=height, max_size=height)) for name in names}
    )


def nasty_frame(height: int = 61) -> Frame:
    """All awkward values; each column walks its pool with another stride, so that pairs vary."""
    built = []
    for position, name in enumerate(SCHEMA):
        pool = [None, *POOLS[name]]
        stride = next(s for s in range(1 + position, 500) if math.gcd(s, len(pool)) == 1)
        built.append(
            series(name, [pool[(i * stride + position) % len(pool)] for i in range(height)])
        )
    return Frame(built)


def values(column: pl.Series) -> list[Any]:
    """A column as plain Python values, with physical numbers for moments and durations."""
    dtype = column.dtype
    if isinstance(dtype, pl.List):
        inner: Callable[[pl.Series], list[Any]] = values
        return [None if row is None else inner(row) for row in _rows(column)]
    if isinstance(dtype, pl.Array):
        return values(column.cast(pl.List(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        fields = [values(column.struct.field(f.name)) for f in dtype.fields]
        names = [f.name for f in dtype.fields]
        present = column.is_not_null().to_list()
        return [
            dict(zip(names, row, strict=True)) if is_there else None
            for is_there, row in zip(present, zip(*fields, strict=True), strict=True)
        ]
    if dtype.is_temporal():
        return column.cast(pl.Int64).to_list()
    return column.to_list()


def _rows(column: pl.Series) -> list[pl.Series | None]:
    return [column[i] if ok else None for i, ok in enumerate(column.is_not_null().to_list())]


def number(value: Any) -> Fraction | None:
    """A value as an exact number, or None for text, nested values, NaN and infinities."""
    if isinstance(value, (bool, int, Decimal)):
        return Fraction(value)
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(value)
    return None


def wide_columns(frame: pl.DataFrame) -> Columns:
    """What the schema alone says of the columns."""
    return columns({n: domain_of_dtype(from_polars(t)) for n, t in frame.schema.items()})


def tight_columns(frame: pl.DataFrame) -> Columns:
    """The tightest facts that are true of this frame, as if its owner had declared them."""
    return columns({name: _tight(frame[name]) for name in frame.columns})


def _tight(column: pl.Series) -> Domain:
    dtype = from_polars(column.dtype)
    widest = domain_of_dtype(dtype)
    found = [v for v in values(column) if v is not None]
    nan = any(isinstance(v, float) and math.isnan(v) for v in found)
    ends = [number(v) for v in found if not (isinstance(v, float) and math.isnan(v))]
    exact = [e for e in ends if e is not None]
    known = EVERYTHING
    if dtype.is_ordered and exact:
        low_inf = any(isinstance(v, float) and v == -math.inf for v in found)
        high_inf = any(isinstance(v, float) and v == math.inf for v in found)
        known = Interval(None if low_inf else min(exact), None if high_inf else max(exact))
    elif dtype.is_ordered and len(ends) == 0:
        known = widest.interval
    categories = widest.categories
    if dtype.is_boolean or dtype.name in ("Enum", "String") or dtype.is_integer:
        categories = tuple(dict.fromkeys(found))
    return Domain(
        dtype,
        nullable=column.null_count() > 0,
        nan=nan,
        interval=known,
        categories=categories,
        inner=widest.inner,
        fields=widest.fields,
    )
