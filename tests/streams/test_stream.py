"""Streams as they are used: opened once, released night after night, caught up, opened again."""

from __future__ import annotations

import datetime as dt
import math
import os
import shutil
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.frames.nights import Schedule
from dpframe.mechanisms import noise
from tests.streams.nights import START, day

SPENDS: list[dict[str, Any]] = [{"rho": 1}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}]


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is exact: for what follows from it."""

    def nothing(scale: object, n: int, source: object) -> Any:
        return np.zeros(n, dtype=np.int64)

    monkeypatch.setattr(noise, "discrete_gaussian", nothing)
    monkeypatch.setattr(noise, "discrete_laplace", nothing)


def rows(*days: int) -> pl.DataFrame:
    """A row for each number of a day, its value the number and its key by turns."""
    return pl.DataFrame(
        {
            "day": [day(n) for n in days],
            "key": ["ab"[n % 2] for n in days],
            "x": [n + 0.5 for n in days],
            "who": list(days),
        },
        schema={"day": pl.Date, "key": pl.String, "x": pl.Float64, "who": pl.Int64},
    )


def stream_of(session: dp.Session, source: Any, spend: dict[str, Any], **options: Any) -> dp.Stream:
    frame = session.protect(source, unit=dp.Rows(), name="visits")
    query = frame.group_by("key", keys=["a", "b", "c"]).agg(
        dp.count().alias("n"), pl.col("x").dp_sum((0, 16)).alias("s")
    )
    options = {"by": "day", "start": START, "periods": 12, **spend, **options}
    return session.stream("visits", query, **options)


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_exact_where_there_is_no_noise(
    spend: dict[str, Any], without_noise: None, tmp_path: Path
) -> None:
    seen: list[int] = []
    for night in range(12):
        seen += [night] * (night % 3 + 1)
        session = dp.Session(**spend, ledger=tmp_path / "b.db")
        found = stream_of(session, rows(*seen, 99), spend).release(day(night))
        assert found.columns == ["key", "period", "n", "n_total", "s", "s_total"]
        assert found["key"].to_list() == ["a", "b", "c"]
        assert set(found["period"]) == {day(night)}
        for key, _, n, n_total, s, s_total in found.rows():
            mine = [d for d in seen if "ab"[d % 2] == key]
            assert n == mine.count(night)
            assert n_total == len(mine)
            assert s_total == pytest.approx(sum(d + 0.5 for d in mine), abs=1e-6)
            assert s == pytest.approx((night + 0.5) * mine.count(night), abs=1e-6)


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_one_charge_and_one_draw_for_each_row(spend: dict[str, Any], tmp_path: Path) -> None:
    """Whatever is released, again and in whichever order, in other sessions or in this one."""
    ledger = tmp_path / "b.db"
    session = dp.Session(**spend, ledger=ledger)
    stream = stream_of(session, rows(0, 1, 1, 2), spend)
    spent = session.spent
    first = stream.release(day(3))
    assert stream.release(day(3)).equals(first)
    earlier = stream.release(day(1))
    now = rows(*[5] * 1000)  # changes nothing that was drawn
    again = stream_of(dp.Session(**spend, ledger=ledger), now, spend)
    assert again.release(day(3)).equals(first)
    assert again.release(day(1)).equals(earlier)
    assert again.periods["drawn"].to_list() == [True] * 4 + [False] * 8
    assert session.spent == spent
    assert session.history["status"].to_list() == ["released"]
    assert session.spent == stream.cost


def test_totals_are_sums_of_what_periods_had(tmp_path: Path) -> None:
    stream = stream_of(dp.Session(rho=1), rows(*range(12)), {"rho": 1})
    found = pl.concat([stream.release(day(night)) for night in range(12)])
    sums = found.group_by("key", maintain_order=True).agg(pl.col("n").sum(), pl.col("s").sum())
    last = stream.release(day(11))
    assert sums["n"].to_list() == last["n_total"].to_list()
    assert sums["s"].to_list() == pytest.approx(last["s_total"].to_list())
    for length in (1, 3, 7, 30):
        window = stream.window(day(9), length)
        some = (
            found.filter(pl.col("period").is_between(day(10 - length), day(9)))
            .group_by("key", maintain_order=True)
            .agg(pl.col("n").sum())
        )
        assert window.columns == ["key", "period", "n", "s"]
        assert window["n"].to_list() == some["n"].to_list()


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_sums_of_decimals_are_decimals(spend: dict[str, Any], without_noise: None) -> None:
    money = rows(0, 0, 1, 2, 2).with_columns(x=pl.Series(["1.10", "2.25", "0.15", "9.99", "0.01"]))
    money = money.with_columns(pl.col("x").cast(pl.Decimal(10, 2)))
    stream = stream_of(dp.Session(**spend), money, spend)
    found = stream.release(day(2))
    assert found.schema["s"] == found.schema["s_total"] == pl.Decimal(38, 2)
    assert found["s_total"].to_list() == [Decimal("13.35"), Decimal("0.15"), 0]
    assert stream.window(day(2), 2)["s"].to_list() == [Decimal("10.00"), Decimal("0.15"), 0]


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_rising_totals_never_fall(spend: dict[str, Any]) -> None:
    for _ in range(5):
        stream = stream_of(dp.Session(**spend), rows(3), spend, monotone=True)
        before = pl.Series([0, 0, 0])
        for night in range(12):
            found = stream.release(day(night))
            assert (found["n"] >= 0).all()
            assert (found["n_total"] - found["n"]).to_list() == before.to_list()
            before = found["n_total"]


def test_rising_totals_err_by_no_more_than_the_worst_so_far() -> None:
    """If all of them are within it at once, by the union bound, rising ones are too."""
    spend = {"rho": "0.0001"}
    plain, rising = (
        stream_of(dp.Session(**spend), rows(3), spend, monotone=monotone)
        for monotone in (False, True)
    )
    each = [plain.accuracy(day(n), 1 - Fraction(5, 100) / 4)["n_total"] for n in range(4)]
    found = rising.accuracy(day(3), Fraction(95, 100))
    assert (found["n"], found["n_total"]) == (2 * max(each), max(each))


def test_periods_of_months_begin_on_their_first_days() -> None:
    days = Schedule("day", "1mo", dt.date(2026, 11, 1), 3).dates()
    assert days == [dt.date(2026, 11, 1), dt.date(2026, 12, 1), dt.date(2027, 1, 1)]
    assert Schedule("day", "1y", dt.date(2026, 1, 1), 2).first(1) == dt.date(2027, 1, 1)


def test_totals_that_may_fall_are_not_made_to_rise() -> None:
    session = dp.Session(rho=1)
    query = session.protect(rows(), unit=dp.Rows()).agg(pl.col("x").dp_sum((-1, 1)))
    with pytest.raises(dp.UnsupportedOperation, match="may fall"):
        session.stream("s", query, by="day", start=START, periods=3, monotone=True, rho=1)
    assert session.spent == dp.ZCDP(0)


def test_late_rows_come_in_gradually(without_noise: None, tmp_path: Path) -> None:
    """A row that comes late counts at once by the coefficient of its age, and less is missing each
    night.
    """

    def opened(data: pl.DataFrame) -> dp.Stream:
        session = dp.Session(rho=1, ledger=tmp_path / "b.db")
        query = session.protect(data, unit=dp.Rows(), name="v").agg(dp.count().alias("n"))
        return session.stream("s", query, by="day", start=START, periods=40, rho=1)

    before, after = opened(rows()), opened(rows(*[0] * 1000))
    for night in range(3):
        before.release(day(night))
    totals = [after.release(day(night))["n_total"].item() for night in range(3, 40)]
    c = [math.comb(2 * k, k) / 4**k for k in range(40)]
    for night, total in enumerate(totals, start=3):
        expected = sum(c[night - s] * c[s] for s in range(3, night + 1))
        assert total == pytest.approx(1000 * expected, abs=1.5)
    assert sorted(totals) == totals
    assert totals[0] < 400 < 750 < totals[-1] < 1000


@pytest.mark.parametrize("every", ["1d", "1w", "1mo", "1q", "1y"])
@pytest.mark.parametrize("dtype", [pl.Date, pl.Datetime("us"), pl.Datetime("ms", "Asia/Tokyo")])
def test_periods(every: str, dtype: Any, without_noise: None) -> None:
    start = dt.date(2029, 1, 1)  # a Monday
    dates = [start + dt.timedelta(days=n) for n in range(-3, 800, 5)]
    column = pl.Series("at", dates).cast(pl.Datetime("us"))
    if dtype != pl.Date and dtype.time_zone is not None:
        column = column.dt.replace_time_zone("Asia/Tokyo")
    data = pl.DataFrame([column.cast(dtype)])
    session = dp.Session(rho=1)
    query = session.protect(data, unit=dp.Rows()).agg(dp.count().alias("n"))
    stream = session.stream("s", query, by="at", every=every, start=start, periods=4, rho=1)
    begins = stream.periods["period"].to_list()
    assert begins[0] == start
    ends = [*begins[1:], pl.Series([begins[-1]]).dt.offset_by(every).item()]
    for first, end in zip(begins, ends, strict=True):
        here = sum(first <= date < end for date in dates)
        found = stream.release(end - dt.timedelta(days=1))
        assert (found["period"].item(), found["n"].item()) == (first, here)


REFUSED: dict[str, tuple[dict[str, Any], type[dp.DPFrameError], str]] = {
    "no such column": ({"by": "days"}, dp.UnknownColumn, "no column 'days'"),
    "no dates": ({"by": "x"}, dp.UnsupportedOperation, "of type Float64"),
    "no such period": ({"every": "1h"}, dp.UnsupportedOperation, "no periods of '1h'"),
    "begins in the middle": ({"every": "1mo"}, dp.UnsupportedOperation, "no period of '1mo'"),
    "no periods": ({"periods": 0}, dp.UnsupportedOperation, "between 1 and"),
    "too many": ({"periods": 10**6}, dp.UnsupportedOperation, "between 1 and"),
    "a moment": ({"start": dt.datetime(2027, 1, 2)}, dp.UnsupportedOperation, "on a date"),
    "the end of time": (
        {"start": dt.date(9999, 12, 30), "periods": 9},
        dp.UnsupportedOperation,
        "9999",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_schedules(case: str) -> None:
    options, kind, words = REFUSED[case]
    session = dp.Session(rho=1)
    options = {"start": dt.date(2027, 1, 2), **options}
    with pytest.raises(kind, match=words):
        stream_of(session, rows(1), {"rho": 1}, **options)
    assert session.spent == dp.ZCDP(0)


QUERIES: dict[str, tuple[Any, str]] = {
    "a mean": (lambda f: f.agg(pl.col("x").dp_mean((0, 9))), "counts and sums"),
    "a share": (
        lambda f: f.agg((dp.sum("x", (0, 9)) / dp.count()).alias("m")),
        "counts and sums",
    ),
    "distinct values": (lambda f: f.agg(pl.col("key").dp_n_unique()), "counts and sums"),
    "a histogram": (lambda f: f.dp_histogram("key", bins=["a", "b"]), "counts and sums"),
    "made positive": (lambda f: f.agg(dp.count(nonnegative=True)), "counts and sums"),
    "a mechanism": (lambda f: f.agg(dp.count(mechanism="discrete_laplace")), "mechanism="),
    "sets": (
        lambda f: f.group_by(dp.rollup("key"), keys={"key": ["a"]}).agg(dp.count()),
        "one grouping",
    ),
    "frames together": (lambda f: f.concat(f).agg(dp.count()), "treat each row alone"),
    "an output named period": (lambda f: f.agg(dp.count().alias("period")), "two columns"),
    "an output like a total": (
        lambda f: f.agg(dp.count().alias("n"), dp.count().alias("n_total")),
        "two columns",
    ),
}


@pytest.mark.parametrize("case", QUERIES)
def test_refused_queries(case: str) -> None:
    make, words = QUERIES[case]
    session = dp.Session(rho=1)
    query = make(session.protect(rows(1), unit=dp.Rows()))
    with pytest.raises(dp.UnsupportedOperation, match=words):
        session.stream("s", query, by="day", start=START, periods=3, rho=1)
    assert session.spent == dp.ZCDP(0)


def test_another_definition_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "b.db"
    stream_of(dp.Session(rho=1, ledger=ledger), rows(1), {"rho": "0.5"})
    others: list[dict[str, Any]] = [
        {"periods": 13},
        {"start": day(1)},
        {"every": "1d", "monotone": True},
        {"rho": "0.4"},
        {"split": "equal"},
    ]
    for other in others:
        session = dp.Session(rho=1, ledger=ledger)
        with pytest.raises(dp.LedgerError, match="another query, schedule or spend"):
            stream_of(session, rows(1), {"rho": "0.5"}, **other)
        assert session.spent == dp.ZCDP("0.5")
    session = dp.Session(rho=1, ledger=ledger)
    query = session.protect(rows(1), unit=dp.Rows(), name="visits").agg(dp.count())
    with pytest.raises(dp.LedgerError, match="another query, schedule or spend"):
        session.stream("visits", query, by="day", start=START, periods=12, rho="0.5")


def test_a_stream_needs_its_whole_price(tmp_path: Path) -> None:
    session = dp.Session(rho=1, ledger=tmp_path / "b.db")
    data = rows(1)
    with pytest.raises(dp.BudgetExceeded):
        stream_of(session, data, {"rho": 2})
    assert session.spent == dp.ZCDP(0)
    stream_of(session, data, {"rho": 1})


def test_approval(tmp_path: Path) -> None:
    from dpframe.cli.main import main

    ledger = tmp_path / "b.db"
    session = dp.Session(rho=1, ledger=ledger, require_approval=True)
    data = rows(1)
    with pytest.raises(dp.PlanMismatch):
        stream_of(session, data, {"rho": 1})
    frame = session.protect(data, unit=dp.Rows(), name="visits")
    query = frame.group_by("key", keys=["a", "b", "c"]).agg(
        dp.count().alias("n"), pl.col("x").dp_sum((0, 16)).alias("s")
    )
    plan = session.plan_stream(query, by="day", start=START, periods=12, rho=1)
    document = tmp_path / "plan.json"
    document.write_text(plan.to_json())
    assert main(["approve", str(document), "--by", "me", "--ledger", str(ledger)]) == 0
    stream = stream_of(session, data, {"rho": 1})
    assert stream.plan.fingerprint == plan.fingerprint
    assert stream.release(day(0)).height == 3


def test_parts_have_no_streams() -> None:
    session = dp.Session(rho=1)
    frame = session.protect(rows(1), unit=dp.Rows())
    part = session.partition(frame, "key", keys=["a", "b"])["a"]
    with pytest.raises(dp.UnsupportedOperation, match="not a part of one"):
        session.stream("s", part.agg(dp.count()), by="day", start=START, periods=3, rho=1)


def test_what_is_lost_is_guessed_and_never_drawn_again(tmp_path: Path) -> None:
    ledger = tmp_path / "b.db"
    stream = stream_of(dp.Session(rho=1, ledger=ledger), rows(*range(12)), {"rho": 1})
    for night in range(6):
        stream.release(day(night))
    sure = stream.accuracy(day(8))
    contents = sorted((tmp_path / "b.db.streams").iterdir())
    assert len(contents) == 6
    kept = contents[4].read_bytes()
    contents[4].unlink()
    contents[2].write_bytes(contents[3].read_bytes())  # changed is as good as lost
    again = stream_of(dp.Session(rho=1, ledger=ledger), rows(*range(12)), {"rho": 1})
    assert again.periods["lost"].to_list() == [n in (2, 4) for n in range(12)]
    found = again.release(day(8))
    assert found.equals(again.release(day(8)))
    assert again.periods["lost"].sum() == 2
    assert not contents[4].exists()  # nothing was drawn in its place
    assert all(again.accuracy(day(8))[name] >= 0.5 * sure[name] for name in sure)
    contents[4].write_bytes(kept)
    assert again.periods["lost"].sum() == 1


def test_a_folder_that_is_gone_is_a_stream_that_is_lost(tmp_path: Path) -> None:
    ledger = tmp_path / "b.db"
    stream = stream_of(dp.Session(rho=1, ledger=ledger), rows(*range(12)), {"rho": 1})
    stream.release(day(3))
    shutil.rmtree(tmp_path / "b.db.streams")
    assert stream.release(day(3))["n_total"].to_list() == [0, 0, 0]
    assert stream.release(day(4)).height == 3


@pytest.mark.parametrize(
    "spend", [{"rho": "0.02"}, {"epsilon": "0.1"}, {"epsilon": "0.2", "delta": "1e-6"}], ids=str
)
def test_accuracy_is_the_error(spend: dict[str, Any]) -> None:
    """Of many streams the share within the stated error is what is stated, and no more by far."""
    times, hits = 60, dict.fromkeys(("n", "n_total", "w"), 0)
    exact = rows(*range(12))
    total = 0
    for _ in range(times):
        session = dp.Session(**spend)
        query = (
            session.protect(exact, unit=dp.Rows())
            .group_by("key", keys=[*"abcdefgh"])
            .agg(dp.count().alias("n"))
        )
        stream = session.stream("s", query, by="day", start=START, periods=12, **spend)
        found, window = stream.release(day(10)), stream.window(day(10), 4)
        sure, of_window = stream.accuracy(day(10), 0.8), stream.accuracy(day(10), 0.8, window=4)
        right = {"a": (1, 6, 2), "b": (0, 5, 2)}
        for (key, _, n, n_total), w in zip(found.rows(), window["n"], strict=True):
            own, all_, some = right.get(key, (0, 0, 0))
            hits["n"] += abs(n - own) <= sure["n"]
            hits["n_total"] += abs(n_total - all_) <= sure["n_total"]
            hits["w"] += abs(w - some) <= of_window["n"]
            total += 1
    for share in (found / total for found in hits.values()):
        assert 0.72 < share < 0.88, hits


def test_plan_says_the_error_of_the_worst_total() -> None:
    for spend in SPENDS:
        stream = stream_of(dp.Session(**spend), rows(1), spend)
        worst = max(stream.accuracy(day(night))["n_total"] for night in range(12))
        assert stream.plan.accuracy("n") == worst
        again = dp.Plan.from_json(stream.plan.to_json())
        assert again.accuracy("n") == worst
        assert stream.plan.accuracy("n", simultaneous=True) > worst


def test_accuracy_as_a_spend() -> None:
    session = dp.Session(rho=10)
    query = session.protect(rows(1), unit=dp.Rows()).agg(dp.count().alias("n"))
    stream = session.stream("s", query, by="day", start=START, periods=30, accuracy={"n": 25})
    assert stream.plan.accuracy("n") <= 25
    half = session.plan_stream(query, by="day", start=START, periods=30, rho=stream.cost.rho * 0.8)
    assert half.accuracy("n") > 25


def test_a_child_of_a_fork_draws_nothing_in_memory() -> None:
    stream = stream_of(dp.Session(rho=1), rows(1), {"rho": 1})
    child = os.fork()
    if not child:
        try:
            stream.release(day(0))
        except dp.LedgerError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("names", [(None, None), ("visits", "visits"), ("visits", None)])
def test_a_stream_is_of_one_frame(names: Any, lasts: bool, tmp_path: Path) -> None:
    """Rows of another frame would be other rows of the same individuals, in one stream."""
    session = dp.Session(rho=1, ledger=tmp_path / "budget.db" if lasts else None)
    frames = [session.protect(rows(1), unit=dp.Rows(), name=name) for name in names]
    queries = [frame.dp_count() for frame in frames]
    options: dict[str, Any] = {"by": "day", "start": START, "periods": 3, "rho": "0.1"}
    opens = bool(names[0]) or not lasts
    if opens:
        session.stream("s", queries[0], **options)
    with pytest.raises(dp.UnsupportedOperation, match="reads one frame"):
        session.stream("s", queries[1], **options)
    assert session.spent == dp.ZCDP("0.1" if opens else 0)
    if opens:
        assert session.stream("s", queries[0], **options).release(START).height == 1
