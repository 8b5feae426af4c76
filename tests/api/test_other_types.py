"""Attacks by another schema: the same rows of one named frame, whose columns have another time
zone, unit or width in a later session. Expressions mean something else then, so what was charged
for the one may not count for the other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api import session as sessions
from dpframe.api.payer import payer_of
from dpframe.ledger.streams import StreamOpening
from tests.ledger.ledgers import Place, store_at, verify

T, W, X = pl.col("t"), pl.col("w"), pl.col("x")
UTC = pl.DataFrame(
    {
        "user": range(30),
        "t": [dt.datetime(2027, 1, 31, 23, 30)] * 30,
        "w": [dt.timedelta(milliseconds=5)] * 30,
        "x": [300] * 30,
        "f": [0.1] * 30,
        "d": [Decimal("1.5")] * 30,
        "e": pl.Series(["a"] * 30, dtype=pl.Enum(["a", "b"])),
    }
).with_columns(T.dt.replace_time_zone("UTC"))
BERLIN = UTC.with_columns(
    T.dt.convert_time_zone("Europe/Berlin"),
    W.cast(pl.Duration("ms")),
    X.cast(pl.Int16),
    pl.col("f").cast(pl.Float32),
    pl.col("d").cast(pl.Decimal(20, 3)),
    pl.col("e").cast(pl.String).cast(pl.Enum(["b", "a"])),
)
BOTH = (UTC, BERLIN)


def session(place: Place, **more: Any) -> dp.Session:
    return dp.Session(**{"epsilon": 10**7, "ledger": place, **more})


def rows(of: dp.Session, frame: pl.DataFrame, unit: Any = None) -> dp.PrivateFrame:
    return of.protect(frame, unit=dp.Rows() if unit is None else unit, name="v")


# ------------------------------------------------------------------------------- divisions

KEYS: dict[str, tuple[pl.Expr, Any, Any]] = {
    "days": (T.dt.date(), dt.date(2027, 1, 31), dt.date(2027, 2, 1)),
    "hours": (T.dt.hour(), 23, 0),
    "units": (W.cast(pl.Int64), 5000, 5),
    "single precision": (pl.col("f").cast(pl.Float64) == 0.1, True, False),
    "scale": (pl.col("d").cast(pl.String), "1.5", "1.500"),
}


@pytest.mark.parametrize("by", KEYS)
def test_rows_that_two_parts_count_are_paid_for_twice(tmp_path: Path, by: str) -> None:
    """The same rows are in one part under the one type, and in another part under the other."""
    place = tmp_path / "budget.db"
    expression, *keys = KEYS[by]
    frames = BOTH
    if by == "units":
        frames = (UTC, UTC.with_columns(W.cast(pl.Duration("ms"))))
    counted = []
    for frame, key in zip(frames, keys, strict=True):
        of = session(place)
        part = of.partition(rows(of, frame), expression, keys=keys)[key]
        counted.append(part.dp_count().collect(epsilon=10**3).item())
    assert session(place).spent == dp.PureDP(10**3 * sum(n > 15 for n in counted))


def test_a_step_that_reads_another_type_makes_another_division(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    for frame, day in zip(BOTH, (31, 1), strict=True):
        of = session(place)
        made = rows(of, frame).with_columns(day=T.dt.day())
        of.partition(made, "day", keys=[day])[day].dp_count().collect(epsilon=1)
    assert session(place).spent == dp.PureDP(2)


def test_a_type_that_nothing_reads_makes_none(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    for frame, key in ((UTC, 1), (UTC.with_columns(T.dt.convert_time_zone("Asia/Tokyo")), 2)):
        of = session(place)
        of.partition(rows(of, frame), "user", keys=[1, 2])[key].dp_count().collect(epsilon=1)
    assert session(place).spent == dp.PureDP(1)


# ------------------------------------------------------------------------------- streams


def stream(of: dp.Session, frame: pl.DataFrame, query: Any = None) -> dp.Stream:
    asked = rows(of, frame) if query is None else query(rows(of, frame))
    return of.stream(
        "s",
        asked.agg(dp.count().alias("n")),
        by="t",
        start=dt.date(2027, 1, 1),
        periods=60,
        epsilon=10**6,
    )


def test_a_stream_is_of_columns_of_one_type(place: Place) -> None:
    first = stream(session(place), UTC).release(dt.date(2027, 2, 1))
    with pytest.raises(dp.LedgerError, match=r"'t' of 'v' has type Datetime\(us, Europe/Berlin\)"):
        stream(session(place), BERLIN)
    again = stream(session(place), BERLIN.with_columns(T.dt.convert_time_zone("UTC")))
    assert again.release(dt.date(2027, 2, 1)).equals(first)
    assert session(place).spent == again.cost
    verify(place)


def test_a_stream_minds_what_its_steps_read(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"

    def small(frame: dp.PrivateFrame) -> dp.PrivateFrame:
        return frame.filter(W.cast(pl.Int64) > 1000)

    stream(session(place), UTC, small)
    other = UTC.with_columns(X.cast(pl.Int16))
    assert stream(session(place), other, small).cost == session(place).spent
    with pytest.raises(dp.LedgerError, match="'w' of 'v' has type Duration"):
        stream(session(place), UTC.with_columns(W.cast(pl.Duration("ms"))), small)


def test_an_earlier_stream_goes_on_and_is_bound_when_it_is_opened(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = StreamOpening.draft

    def earlier(self: StreamOpening, *given: Any) -> Any:
        bare = StreamOpening(self.name, self.definition, self.periods, self.kept)
        return real(bare, *given)

    with monkeypatch.context() as patch:
        patch.setattr(StreamOpening, "draft", earlier)
        patch.setattr(type(payer_of(session(place)).ledger.streams), "bind", _unbound)
        first = stream(session(place), UTC).release(dt.date(2027, 1, 30))
    (found,) = store_at(place).read().streams.all()
    assert found.types is None
    assert stream(session(place), UTC).release(dt.date(2027, 1, 30)).equals(first)
    (found,) = store_at(place).read().streams.all()
    assert found.types is not None
    stream(session(place), UTC)
    records = [record.act for record in store_at(place).read().kept]
    assert records.count("typed") == 1
    with pytest.raises(dp.LedgerError, match="'t' of 'v' has type"):
        stream(session(place), BERLIN)
    verify(place)


def _unbound(self: Any, name: str, _: Any) -> Any:
    return self.find(name)


def test_a_process_refuses_what_another_one_has_bound_meanwhile(tmp_path: Path) -> None:
    """Both look before either has opened it: who is second finds the types of the first."""
    place = tmp_path / "budget.db"
    real: Callable[..., Any] = sessions.rehearse

    def meanwhile(*given: Any) -> Any:
        sessions.rehearse = real  # type: ignore[attr-defined]
        stream(session(place), UTC)
        return real(*given)

    sessions.rehearse = meanwhile  # type: ignore[attr-defined]
    try:
        with pytest.raises(dp.LedgerError, match="'t' of 'v' has type"):
            stream(session(place), BERLIN)
    finally:
        sessions.rehearse = real  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------- windows


def month(of: dp.Session, frame: pl.DataFrame, number: int, **unit: Any) -> dp.PrivateQuery:
    inside = (T.dt.month() == number) & (T.dt.year() == 2027)
    name = unit.pop("name", "v")
    private = of.protect(
        frame, unit=dp.Identifier("user", **{"window": "1mo", "time": "t", **unit}), name=name
    )
    return private.filter(inside).agg(n=pl.col("user").dp_n_unique())


@pytest.mark.parametrize("name", ["v", "w", None])
@pytest.mark.parametrize("stored", [False, True])
def test_a_budget_counts_windows_in_one_zone(place: Place, name: str | None, stored: bool) -> None:
    """Under whatever name the rows come back, also in one session in memory."""
    of = session(place, per="1mo") if stored else dp.Session(epsilon=10**7, per="1mo")
    assert month(of, UTC, 1).collect(epsilon=10**3).item() == 30
    if stored:
        of = session(place, per="1mo")
    with pytest.raises(dp.LedgerError, match="convert_time_zone\\('UTC'\\)"):
        month(of, BERLIN, 2, name=name).collect(epsilon=10**3)
    assert of.spent == dp.PureDP(10**3)
    assert month(of, UTC, 2).collect(epsilon=10**3).item() < 15


def test_a_frame_is_in_windows_of_one_column(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    later = UTC.with_columns(sent=T.dt.offset_by("1mo"))
    month(session(place, per="1mo"), later, 1).collect(epsilon=1)
    with pytest.raises(dp.LedgerError, match="time='t'"):
        month(session(place, per="1mo"), later, 2, time="sent").collect(epsilon=1)
    other = session(place, per="1mo")
    month(other, later, 1, time="sent", name="parcels").collect(epsilon=1)  # another frame
    assert other.spent == dp.PureDP(2)


def test_a_column_without_a_zone_stays_one(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    naive = UTC.with_columns(T.dt.replace_time_zone(None))
    month(session(place, per="1mo"), naive, 1).collect(epsilon=1)
    month(session(place, per="1mo"), naive.with_columns(T.dt.date()), 1).collect(epsilon=1)
    with pytest.raises(dp.LedgerError, match="without a time zone"):
        month(session(place, per="1mo"), UTC, 1).collect(epsilon=1)


# ------------------------------------------------------------------------------- kept results


@pytest.mark.parametrize("column", ["t", "w", "x", "f", "d", "e"])
def test_no_result_of_other_types_is_handed_out(tmp_path: Path, column: str) -> None:
    place = tmp_path / "budget.db"
    changed = UTC.with_columns(BERLIN[column])

    def ask(frame: pl.DataFrame) -> dp.Release:
        query = rows(session(place, keep_releases=True), frame)
        kept = query.filter(pl.col(column).is_not_null()).agg(dp.count().alias("n"))
        return kept.release(epsilon=1, reuse="same")

    assert [ask(frame).reused for frame in (UTC, changed, UTC, changed)] == [False] * 2 + [True] * 2
    assert session(place).spent == dp.PureDP(Fraction(2))


def test_what_outputs_and_groups_read_tells_results_apart(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"

    def ask(frame: pl.DataFrame) -> list[bool]:
        of = rows(session(place, keep_releases=True), frame)
        by_hour = of.group_by(h=T.dt.hour(), keys={"h": [23, 0]}).agg(dp.count().alias("n"))
        total = of.agg(W.cast(pl.Int64).dp_sum((0, 10)).alias("s"))
        each = [by_hour, total, of.dp_count()]
        return [one.release(epsilon=1, reuse="same").reused for one in each]

    assert [ask(frame) for frame in BOTH] == [[False] * 3, [False, False, True]]
