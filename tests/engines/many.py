"""Operations of one kind on many awkward values at once, on Polars and on another engine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from dpframe.lower.engines.engine import Engine
from dpframe.rows.fold import lower
from tests.laws.checking import expression, run, same, tree_of
from tests.laws.frames import values, wide_columns

_DAY = 86_400 * 10**6
_LETTERS = [
    "a", "b", "aa", "A", "-", "+", "0", "7", "é", "e\u0301", "\u0301", "ß", "İ", "ŉ", "ﬁ", "日本",
    "🙂", "👍🏽", "👨‍👩‍👧", "٣", "$0", "$1", "\\", "'", '"', "%", "_", "{}", ".", "\x00", "\ufeff",
    " ", "\t", "\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u180e",
    "\u2003", "\u2007", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000",
]  # fmt: skip
_FOUND = ["a", "aa", "é", "e\u0301", "\u0301", "👍", "$0", "\\", "'", " ", "日本", "\x00", "%"]
TEXT_EXPRESSIONS = [
    *(f"pl.col('s').str.{m}()" for m in ("len_bytes", "len_chars")),
    *(f"pl.col('s').str.{m}({n})" for m in ("head", "tail") for n in (-9, -2, -1, 0, 1, 3, 99)),
    *(f"pl.col('s').str.slice({o}, {n})" for o in (-5, -2, 0, 3) for n in (0, 1, 2, 4, None)),
    *(f"pl.col('s').str.slice({o})" for o in (-(2**40), 2**40)),
    *(
        f"pl.col('s').str.strip_chars{where}({given})"
        for where in ("", "_start", "_end")
        for given in ("", repr("a \u0301"), repr("'\\"), repr("👍"), repr(""))
    ),
    *(f"pl.col('s').str.strip_{end}fix({p!r})" for end in ("pre", "suf") for p in ("", *_FOUND)),
    *(f"pl.col('s').str.{m}({p!r})" for m in ("starts_with", "ends_with") for p in ("", *_FOUND)),
    *(
        f"pl.col('s').str.{m}({p!r}, literal=True)"
        for m in ("contains", "find", "count_matches")
        for p in _FOUND
    ),
    *(
        f"pl.col('s').str.{m}({p!r}, {v!r}, literal=True)"
        for m in ("replace", "replace_all")
        for p in _FOUND
        for v in ("", "$0", "é'\\")
    ),
    *(
        f"pl.col('s').str.pad_{end}({n}, {c!r})"
        for end in ("start", "end")
        for n in (0, 5)
        for c in "é'"
    ),
    *(f"pl.col('s').str.zfill({n})" for n in (0, 1, 4)),
    *(
        f"pl.concat_str('s', 'n', 'o', 'b', separator={between!r}, ignore_nulls={skipped})"
        for between in ("", "-", "'\\")
        for skipped in (False, True)
    ),
]  # fmt: skip


def texts(rows: int = 600) -> pl.DataFrame:
    """Texts of few letters, some of several bytes and code points, and columns beside them."""
    chance = random.Random(18)
    columns: dict[str, list[Any]] = {"row": list(range(rows)), "s": [], "o": [], "n": [], "b": []}
    for i in range(rows):
        letters = _LETTERS if i % 3 else _LETTERS[:12]
        for name in ("s", "o"):
            length = chance.choice([0, 1, 2, 3, 5, 9])
            columns[name].append("".join(chance.choices(letters, k=length)) if i % 17 else None)
        columns["n"].append(chance.choice([0, -1, 2**63 - 1, -(2**63), None]))
        columns["b"].append(chance.choice([True, False, None]))
    schema = {"row": pl.Int64, "s": pl.String, "o": pl.String, "n": pl.Int64, "b": pl.Boolean}
    return pl.DataFrame(columns, schema=schema)


_PARTS = [
    *("year", "iso_year", "century", "millennium", "quarter", "month", "week", "weekday", "day"),
    *("ordinal_day", "days_in_month", "is_leap_year", "month_start", "month_end"),
]
_CLOCK = ["hour", "minute", "second", "millisecond", "microsecond", "nanosecond", "date"]
_UNITS = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]
_LONG = ["1d", "3d", "365d", "1w", "5w", "1mo", "5mo", "1q", "1y", "4y", "1000y"]
_SHORT = ["1us", "7us", "250ms", "1s", "7m", "1h", "36h", "100h"]
MOMENT_EXPRESSIONS = [
    *(f"pl.col('{c}').dt.{part}()" for c in ("d", "t") for part in _PARTS),
    *(f"pl.col('t').dt.{part}()" for part in _CLOCK),
    *(f"pl.col('t').dt.timestamp('{u}')" for u in ("ms", "us", "ns")),
    "pl.col('d').dt.timestamp('ms')",
    *(
        f"pl.col('{c}').dt.{method}('{every}')"
        for c in ("d", "t")
        for method in ("truncate", "round")
        for every in (*_LONG, *(_SHORT if c == "t" else ()))
    ),
    *(
        f"pl.col('{c}').dt.offset_by('{sign}{by}')"
        for c in ("d", "t")
        for sign in ("", "-")
        for by in (*_LONG, "1y1mo2w3d", "9998y", "90000d", *("2h", "1mo3us") * (c == "t"))
    ),
    *(f"(pl.col('t') - pl.col('{c}')).dt.total_{u}()" for c in ("t2", "d") for u in _UNITS),
    "(pl.col('d') - date(1999, 12, 31)).dt.total_days()",
    "pl.when(pl.col('t') > pl.col('t2')).then(pl.col('t') - pl.col('t2'))",
    "pl.duration(weeks='n', days='m', hours='y', seconds='n', microseconds='m')",
    "pl.date('y', 'm', 'n')",
    "pl.date('y', 2, 29)",
    "pl.date(2023, 'm', 'n')",
    "pl.datetime('y', 'm', 'n', 'm', 'n', 'm', 'n')",
]


def moments(rows: int = 600) -> pl.DataFrame:
    """Dates and times of the calendar, many of them near its ends, and those of months and weeks;
    and numbers of which some make a date.
    """
    chance = random.Random(18)
    first, last = -719_162, 2_932_896
    edges = [*range(-3, 4), *range(364, 368), *range(10_954, 10_961), *range(11_014, 11_018)]
    edges += [*range(first, first + 8), *range(last - 8, last + 1), first + 365, last - 365]
    days = [chance.choice(edges) if i % 2 else chance.randint(first, last) for i in range(rows)]
    clocks = [0, 1, 999, 1_000, 999_999, 86_399_999_999, 43_200_000_000, 1_800_000_000]
    times = [day * _DAY + chance.choice([*clocks, chance.randrange(_DAY)]) for day in days]
    others = chance.sample(times, rows)
    numbers = {
        "y": [0, 1, 4, 1900, 2000, 2023, 2024, 9999, 10_000, -1, 2**63 - 1, -(2**63)],
        "m": [*range(14), -1, 2**62],
        "n": [*range(33), 59, 60, 999_999, 1_000_000, -(2**63)],
    }
    columns: dict[str, pl.Series] = {
        "row": pl.Series(range(rows), dtype=pl.Int64),
        "d": pl.Series(days, dtype=pl.Int32).cast(pl.Date),
        "t": pl.Series(times, dtype=pl.Int64).cast(pl.Datetime("us")),
        "t2": pl.Series(others, dtype=pl.Int64).cast(pl.Datetime("us")),
        **{n: pl.Series(chance.choices(pool, k=rows)) for n, pool in numbers.items()},
    }
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.when(pl.col("row") % 19 > 0).then(pl.exclude("row", "y", "n")))


FAR_EXPRESSIONS = [
    *(e for e in MOMENT_EXPRESSIONS[::4] if not e.startswith(("pl.date", "pl.duration"))),
    *(f"pl.col('{c}').cast(pl.Int64)" for c in ("d", "t")),
    "pl.col('d') - date(1999, 12, 31)",
    "pl.col('t') - pl.col('d')",
]
"""Outside the calendar most of them are null, and differences what they are of numbers."""


def far_moments(rows: int = 300) -> pl.DataFrame:
    """Dates and times that are mostly no calendar's, next to the years 1 and 9999 and far away."""
    chance = random.Random(18)
    ranges = [(-(35 * 10**6), 35 * 10**6), (4 * 10**6, 5 * 10**6)]
    ranges += [(n - 900, n + 900) for n in (-1_449_000, -1_400_000, 3_600_000, 3_663_000)]
    ranges += [(n - 3, n + 3) for n in (-719_162, -719_528, 2_932_896)]
    days = [chance.randint(*chance.choice(ranges)) for _ in range(rows)]
    times = [day * _DAY + chance.choice([0, 5, _DAY - 1]) for day in days]
    columns = {"t": times, "t2": chance.sample(times, rows)}
    moments = [pl.Series(n, v, dtype=pl.Int64).cast(pl.Datetime("us")) for n, v in columns.items()]
    dates = pl.Series("d", days, dtype=pl.Int32).cast(pl.Date)
    return pl.DataFrame([pl.Series("row", range(rows), dtype=pl.Int64), dates, *moments])


_DIVISORS = [1, 3, 7, 1_000, 86_400_000_000, 2**53 + 1, 2**61 + 1, 2**62 - 1, 2**62]
_MOST = [2**52, 2**53 + 1, 2**62, 2**63 - 2**62 - 1]
NUMBER_EXPRESSIONS = [
    *(f"pl.col('x').round({n})" for n in (0, 1, 2, 3, 7, 15, 22)),
    "pl.col('x').sqrt()",
    "pl.col('n').sqrt()",
    *(f"pl.col('n') ** {n}" for n in (0, 1, 2, 3, 7, 63)),
    *(f"pl.col('n') {how} {by}" for how in ("//", "%") for by in _DIVISORS),
    *(f"pl.col('n').clip({-most}, {most}) // {by}" for most in _MOST for by in _DIVISORS),
]


def numbers(rows: int = 4_000) -> pl.DataFrame:
    """Floats of all sizes, many of them halves of what they are rounded to, and whole numbers."""
    chance = random.Random(18)
    edges = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1.7976931348623157e308]
    edges += [math.nextafter(h, way) for h in (0.5, -0.5, 1.5, 2.5) for way in (-9.0, h, 9.0)]
    edges += [2.0**52 + 0.5, 2.0**53, 1e300, -1e300, 2.675, 1.005, 0.285, -0.15]
    floats = edges + [
        chance.choice(
            [
                chance.gauss(0, 1) * 10.0 ** chance.randint(-9, 18),
                chance.randint(-(2**40), 2**40) / 8,
                chance.randint(-(10**9), 10**9) / 1_000,
                chance.randint(-(10**6), 10**6) * 0.005,
            ]
        )
        for _ in range(rows - len(edges))
    ]
    whole = [chance.randint(-(2**b), 2**b) for b in chance.choices(range(1, 63), k=rows - 4)]
    whole += [0, 1, 2**63 - 1, -(2**63)]
    frame = pl.DataFrame({"row": range(rows), "x": floats, "n": whole})
    return frame.with_columns(pl.when(pl.col("row") % 19 > 0).then(pl.exclude("row")))


def check_all(
    engine: Engine, data: Any, frame: pl.DataFrame, expressions: Sequence[str], at_once: int
) -> None:
    """Each gives the same value on each row of an engine's frame as on Polars, some at once."""
    for start in range(0, len(expressions), at_once):
        check_same(engine, data, frame, expressions[start : start + at_once])


def check_same(engine: Engine, data: Any, frame: pl.DataFrame, expressions: Sequence[str]) -> None:
    """Each gives the same value on each row of an engine's frame as on Polars."""
    columns = wide_columns(frame)
    trees = [tree_of(text, frame.schema) for text in expressions]
    made = [lower(tree, columns, engine.ns).alias(f"x{i}") for i, tree in enumerate(trees)]
    table = engine.collect([engine.frame(data).select(engine.ns.col("row"), *made)])[0].sort("row")
    checked = [expression(e, tree, columns) for e, tree in zip(expressions, trees, strict=True)]
    for i, expected in enumerate(run(frame.sort("row"), checked)):
        found = table[f"x{i}"]
        assert found.dtype == expected.dtype, expressions[i]
        for row, (one, other) in enumerate(zip(values(found), values(expected), strict=True)):
            where = f"{expressions[i]} in row {row}"
            assert same(one, other), f"{where}: {one!r}, and {other!r} on Polars"


KINDS: Mapping[str, tuple[Callable[[], pl.DataFrame], Sequence[str]]] = {
    "texts": (texts, TEXT_EXPRESSIONS),
    "moments": (moments, MOMENT_EXPRESSIONS),
    "far": (far_moments, FAR_EXPRESSIONS),
    "numbers": (numbers, NUMBER_EXPRESSIONS),
}
"""Frames, and what is computed of them."""
