"""Sources that give other rows each time they are read: nobody has more rows than limits allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe.frames import sampling
from dpframe.lower import buckets
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.lower.tables import Lowered

ENOUGH = 10**6
_SCHEMA = pl.Schema({"u": pl.Int64, "g": pl.Int64, "x": pl.Int64})
_KEYS = range(64)
Ask = Callable[[Any], Any]


def rows(number: int, first: int) -> pl.DataFrame:
    """One individual in so many groups, with one row in each."""
    groups = [(first + i) % 64 for i in range(number)]
    return pl.DataFrame({"u": [7] * number, "g": groups, "x": [1] * number}, schema=_SCHEMA)


def others(number: int) -> pl.DataFrame:
    """As many other individuals, in a group that nobody asks for."""
    return pl.DataFrame(
        {"u": range(1000, 1000 + number), "g": [100] * number, "x": [1] * number}, schema=_SCHEMA
    )


def changing(versions: Sequence[pl.DataFrame]) -> tuple[pl.LazyFrame, list[int]]:
    """A frame with other rows each time it is read, and how often that was."""
    reads: list[int] = []
    number = count()

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        reads.append(next(number))
        found = versions[reads[-1] % len(versions)]
        found = found if predicate is None else found.filter(predicate)
        found = found if columns is None else found.select(columns)
        yield found if most is None else found.head(most)

    return register_io_source(read, schema=versions[0].schema), reads


def groups(limit: int) -> Ask:
    return lambda f: f.limit_groups(limit, by="g").group_by("g", keys=_KEYS).agg(n=dp.n_unique("u"))


ASKED: dict[str, tuple[Ask, int]] = {
    "few groups": (groups(2), 2),
    "many groups": (groups(12), 12),
    "groups, then rows in each": (
        lambda f: (
            f.limit_groups(2, by="g")
            .limit_rows(1, by="g")
            .group_by("g", keys=_KEYS)
            .agg(n=dp.count())
        ),
        2,
    ),
    "few rows": (lambda f: f.limit_rows(2).group_by("g", keys=_KEYS).agg(n=dp.count()), 2),
    "many rows": (
        lambda f: f.limit_rows(12).group_by("g", keys=_KEYS).agg(n=dp.count(), k=dp.n_unique("u")),
        12,
    ),
    "rows of two frames": (
        lambda f: (
            f.limit_rows(3).concat(f.limit_rows(3)).group_by("g", keys=_KEYS).agg(n=dp.count())
        ),
        6,
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_nobody_has_more_than_the_limit(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hashes of one bit nearly everybody is like somebody else, and is ranked once more."""
    monkeypatch.setattr(sampling, "COARSE", 1)
    ask, limit = ASKED[asked]
    alone, crowd = rows(limit, 0), pl.concat([rows(2 * limit, limit), others(8)])
    for versions in ([alone, crowd], [crowd, alone]):
        for _ in range(3):  # salts differ
            source, reads = changing(versions)
            query = ask(dp.Session(epsilon=2 * ENOUGH).protect(source, "u"))
            reads.clear()
            assert query.collect(epsilon=ENOUGH)["n"].sum() <= limit
            assert len(reads) == 1


def test_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether rows are divided by files or by passes."""
    monkeypatch.setattr(sampling, "COARSE", 1)
    alone, crowd = rows(2, 0), pl.concat([rows(4, 2), others(500)])
    for spill in (True, False):
        for versions in ([alone, crowd], [crowd, alone]):
            source, _ = changing(versions)
            session = dp.Session(epsilon=2 * ENOUGH)
            people = session.protect(source, "u", memory="600MB", spill=spill)
            assert groups(2)(people).collect(epsilon=ENOUGH)["n"].sum() <= 2


def test_rows_that_functions_or_chance_change_are_unsure() -> None:
    frame = rows(3, 0).lazy()
    source, _ = changing([rows(3, 0)])
    x = pl.col("x")
    sure = [frame, frame.filter(x > 0), frame.join(frame, on="u").with_columns(x + 1)]
    assert not any(map(buckets.unsure, sure))
    unsure = [source, frame.map_batches(lambda found: found), source.select("u")]
    unsure += [frame.with_columns(x.shuffle()), frame.select(x.sample(2))]
    unsure += [
        frame.with_columns(made)
        for made in (
            x.map_elements(lambda v: v, return_dtype=pl.Int64),
            x.map_batches(lambda v: v, return_dtype=pl.Int64),
            x.rolling_map(lambda v: v.sum(), 2),
            pl.fold(0, lambda a, b: a + b, ["u", "x"]).alias("z"),
            pl.reduce(lambda a, b: a + b, ["u", "x"]).alias("z"),
            pl.cum_fold(0, lambda a, b: a + b, ["u", "x"]).alias("z"),
            pl.concat_list("x", "u").list.sample(1).list.first().alias("z"),
        )
    ]
    grouped = frame.group_by("u")
    unsure += [grouped.map_groups(lambda d: d, schema=_SCHEMA), grouped.agg(x.first())]
    unsure += [frame.unique("u", keep="any"), frame.head(2), frame.unique("u")]
    unsure += [frame.with_columns(x.rank("random"))]
    for mixed in (frame.join(frame, on="u"), frame.sort("u")):
        unsure += [mixed.with_row_index("i"), mixed.filter(x.is_first_distinct())]
        unsure += [mixed.with_columns(made) for made in (x.cum_count(), x.shift(1), x.diff())]
        unsure += [mixed.with_columns(x.first().over("u")), mixed.with_columns(x.forward_fill())]
    assert all(map(buckets.unsure, unsure))


def test_what_is_grouped_before_is_read_once() -> None:
    """Which of an individual's rows comes first may be another one the next time."""
    frame = pl.concat([rows(3, 0), others(3)]).lazy()
    first = frame.group_by("u").agg(pl.col("g").first(), pl.col("x").sum())
    people = dp.Session(epsilon=2 * ENOUGH).protect(first, "u")
    assert groups(2)(people).collect(epsilon=ENOUGH)["n"].sum() == 1


def test_what_is_read_once_anyway_is_not_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "columns_read", None)
    source, reads = changing([rows(3, 0)])
    people = dp.Session(epsilon=2 * ENOUGH).protect(source, dp.Rows())
    reads.clear()
    assert people.dp_sum("x", (0, 1)).collect(epsilon=ENOUGH).item() == 3
    assert reads == [0]


@pytest.mark.parametrize("disk", [True, False])
def test_all_types_come_back(disk: bool) -> None:
    """Whether rows are put aside in a file or in memory."""
    one, day = datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 1)
    frame = pl.DataFrame(
        {
            "u": [1, 2, None],
            "f": [0.5, float("nan"), None],
            "s": ["a", "", None],
            "b": [b"a", b"", None],
            "d": [day, None, day],
            "t": [one, None, one],
            "time": [time(1), None, time(2)],
            "span": [timedelta(1), None, timedelta(2)],
            "n": [Decimal("1.50"), None, Decimal("2.25")],
            "l": [[1], [], None],
            "o": [{"x": 1}, {"x": None}, None],
            "nothing": [None, None, None],
        }
    ).with_columns(
        i=pl.col("u").cast(pl.Int128),
        c=pl.col("s").cast(pl.Categorical),
        e=pl.col("s").cast(pl.Enum(["", "a"])),
        a=pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int8, 2)),
    )
    source, _ = changing([frame])
    twice = pl.concat([source, source]).collect()

    def lower(frames: Any) -> list[tuple[Lowered, ...]]:
        return [(Lowered(pl.concat([frames[0], frames[0]]), None, ()),)]

    with buckets.read_once(POLARS, lower, {0: source}, disk=disk) as found:
        (made,) = POLARS.collect([lower(found)[0][0].frame])
    assert made.schema == twice.schema
    assert made.equals(twice)
