"""Streams that owners and reviewers stop: nothing is drawn after, and what was drawn stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.cli import main
from dpframe.ledger import head_file
from dpframe.ledger.budgets import close
from dpframe.ledger.owners import Terms, approve, revoke
from dpframe.ledger.record import Draft
from dpframe.ledger.streaming import close_stream
from tests.clocks import Set, setter
from tests.ledger.ledgers import Place, store_at, verify
from tests.streams.child import DATA
from tests.streams.nights import START, day

STREAM: dict[str, Any] = {"by": "day", "start": START, "periods": 8, "rho": "0.5"}
BY = ("--by", "Ann", "--reason", "the study is over")


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Set:
    return setter(monkeypatch)


def asked(place: Any, *, requires: bool = True) -> tuple[dp.Session, Any]:
    session = dp.Session(rho=1, ledger=place, require_approval=requires)
    query = session.protect(DATA, unit=dp.Rows(), name="visits").agg(dp.count().alias("n"))
    return session, query


def opened(place: Any, *, requires: bool = True) -> dp.Stream:
    session, query = asked(place, requires=requires)
    return session.stream("s", query, **STREAM)


def plan_of(place: Any) -> dp.Plan:
    session, query = asked(place)
    return session.plan_stream(query, **STREAM)


def approved(place: Place, terms: Terms | None = None) -> str:
    plan = plan_of(place)
    store = store_at(place)
    approve(store, "default", plan.fingerprint, plan.to_json(), "Ann", None, terms or Terms())
    return plan.fingerprint


def revoked(place: Place) -> None:
    revoke(store_at(place), "default", plan_of(place).fingerprint, "Bob", "a mistake")


def drawn(place: Place) -> int:
    (stream,) = store_at(place).read().streams.all()
    return stream.drawn


STOPS: dict[str, tuple[Callable[[Place], None], type[dp.DPFrameError], str]] = {
    "revoked": (revoked, dp.PlanMismatch, "was revoked by Bob"),
    "closed": (
        lambda place: void(close(store_at(place), "default", "Ann", "over")),
        dp.BudgetExceeded,
        "the budget 'default' was closed on .* by Ann: over",
    ),
    "ended": (
        lambda place: void(close_stream(store_at(place), "default", "s", "Ann", "over")),
        dp.BudgetExceeded,
        "the stream 's' was closed on .* by Ann: over",
    ),
}


def void(_: object) -> None:
    """Nothing."""


@pytest.mark.parametrize("stop", STOPS)
def test_nothing_is_drawn_after(place: Place, stop: str) -> None:
    act, kind, words = STOPS[stop]
    approved(place)
    stream = opened(place)
    before = stream.release(day(1))
    spent = dp.Session(rho=1, ledger=place).spent
    act(place)
    for later in (stream, opened(place), opened(place, requires=False)):
        assert later.release(day(1)).equals(before)
        with pytest.raises(kind, match=words):
            later.release(day(2))
    assert drawn(place) == 2
    assert dp.Session(rho=1, ledger=place).spent == spent
    verify(place)


def test_nothing_is_drawn_after_the_last_day_of_an_approval(tmp_path: Path, set_clock: Set) -> None:
    place = tmp_path / "b.db"
    set_clock(2027, 3, 1)
    approved(place, Terms(until=date(2027, 3, 1)))
    stream = opened(place)
    before = stream.release(day(0))
    set_clock(2027, 3, 2)
    assert stream.release(day(0)).equals(before)
    with pytest.raises(dp.PlanMismatch, match="ended after 2027-03-01"):
        opened(place).release(day(1))
    approved(place)
    opened(place).release(day(1))
    assert drawn(place) == 2


def test_a_used_run_and_a_grant_stop_nothing_that_was_charged(tmp_path: Path) -> None:
    place = tmp_path / "b.db"
    approved(place, Terms(runs=1))
    stream = opened(place)
    more = ["--name", "default", "--rho", "1", *BY]
    assert main(["ledger", "grant", "--ledger", str(place), *more]) == 0
    stream.release(day(3))
    assert drawn(place) == 4


def test_a_stream_that_nobody_approved_draws_nothing_where_approval_is_needed(
    tmp_path: Path,
) -> None:
    place = tmp_path / "b.db"
    opened(place, requires=False).release(day(0))
    with pytest.raises(dp.PlanMismatch, match="it has no approval"):
        opened(place).release(day(1))
    opened(place, requires=False).release(day(1))
    approved(place)
    opened(place).release(day(2))
    assert drawn(place) == 3


def test_what_is_stopped_while_it_is_drawn_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpframe.api import stream as module

    place = tmp_path / "b.db"
    approved(place)
    stream, real = opened(place), module.draw

    def draw(*given: Any) -> Any:
        made = real(*given)
        revoked(place)
        return made

    monkeypatch.setattr(module, "draw", draw)
    with pytest.raises(dp.PlanMismatch, match="was revoked"):
        stream.release(day(0))
    assert drawn(place) == 0


def test_parts_and_new_streams_stop_too(tmp_path: Path) -> None:
    """Also where a part was paid for already, and nothing more would be charged."""
    place = tmp_path / "b.db"

    def counted(part: int) -> dp.PrivateQuery:
        session = dp.Session(rho=1, ledger=place, require_approval=True)
        frame = session.protect(DATA, unit=dp.Rows(), name="visits")
        return session.partition(frame, "day", keys=[day(0), day(1)])[day(part)].dp_count()

    store = store_at(place)
    for part in (0, 1):
        plan = counted(part).plan(rho="0.1")
        approve(store, "default", plan.fingerprint, plan.to_json(), "Ann", None)
    counted(0).collect(rho="0.1")
    revoke(store, "default", counted(1).plan(rho="0.1").fingerprint, "Bob", None)
    with pytest.raises(dp.PlanMismatch):
        counted(1).collect(rho="0.1")
    close(store, "default", "Ann", "over")
    with pytest.raises(dp.BudgetExceeded, match="was closed"):
        counted(0).collect(rho="0.1")
    assert len(dp.Session(rho=1, ledger=place).history) == 1


def test_a_result_that_is_reused_draws_nothing_anew(tmp_path: Path) -> None:
    place = tmp_path / "b.db"

    def counted(name: str) -> Any:
        session = dp.Session(rho=1, ledger=place, keep_releases=True)
        frame = session.protect(DATA, unit=dp.Rows(), name=name)
        return frame.dp_count().release(rho="0.1", reuse="same")

    first = counted("visits").frame
    close(store_at(place), "default", "Ann", "over")
    assert counted("visits").frame.equals(first)
    with pytest.raises(dp.BudgetExceeded, match="was closed"):
        counted("others")
    (kept,) = (tmp_path / "b.db.releases").glob("*.parquet")
    kept.unlink()
    with pytest.raises(dp.LedgerError, match="cannot be handed out"):
        counted("visits")


def test_a_stream_that_was_closed_is_not_paid_for_again(tmp_path: Path) -> None:
    place = tmp_path / "b.db"
    opened(place, requires=False).release(day(0))
    close_stream(store_at(place), "default", "s", "Ann", "over")
    Path(f"{place}.head").unlink()
    head_file._USED.clear()
    assert main(["ledger", "adopt", "--ledger", str(place), *BY]) == 0
    again = ["--stream", "s", "--charge-again", *BY]
    assert main(["ledger", "redraw", "--ledger", str(place), *again]) == 6
    assert dp.Session(rho=1, ledger=place).spent == dp.ZCDP("0.5")


def test_no_ledger_verifies_in_which_a_closed_stream_draws(tmp_path: Path) -> None:
    place = tmp_path / "b.db"
    opened(place, requires=False).release(day(0))
    stream = close_stream(store_at(place), "default", "s", "Ann", "over")
    for draft in (
        Draft("default", "drawn", stream.number, "0" * 64, why='{"first": 1, "last": 1}'),
        Draft("default", "ended", stream.number, who="Ann"),
    ):
        with pytest.raises((dp.LedgerError, ValueError)):
            store_at(place).append(lambda _, draft=draft: draft)  # type: ignore[misc]
    verify(place)


def test_owners_close_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "b.db"
    opened(place, requires=False).release(day(2))
    command = ["ledger", "close", "--ledger", str(place), "--name", "default", *BY]
    assert main([*command, "--stream", "t"]) == 6
    assert "write one of its streams: 's'" in capsys.readouterr().err
    assert main([*command, "--stream", "s"]) == 0
    said = "the stream 's' of 'default' is closed, with 3 of 8 periods drawn; what it cost stays"
    assert said in capsys.readouterr().out
    assert main([*command, "--stream", "s"]) == 3
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", str(place)]) == 0
    assert "by Ann: the study is over" in capsys.readouterr().out
    assert main(["ledger", "show", "--ledger", str(place), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["default"]["streams"]
    assert found["draws"] is False
    assert found["closed"]["by"] == "Ann"
    session = dp.Session(rho=1, ledger=place)
    session.protect(DATA, unit=dp.Rows(), name="visits").dp_count().collect(rho="0.1")


ACTS = ("approve", "revoke", "open", "release", "later", "early", "close", "end")


@given(st.lists(st.sampled_from(ACTS), max_size=12), st.booleans())
def test_all_orders(acts: list[str], requires: bool) -> None:
    """What is drawn is what a reader of the acts, in their order, says may be drawn."""
    import tempfile

    folder = Path(tempfile.mkdtemp())
    try:
        _play(folder / "b.db", acts, requires)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _play(place: Path, acts: list[str], requires: bool) -> None:
    stands = late = is_open = under_approval = closed = ended = False
    released = 0
    with pytest.MonkeyPatch.context() as patch:
        set_clock = setter(patch)
        set_clock(2027, 3, 1)
        for act in acts:
            if act == "approve":
                approved(place, Terms(until=date(2027, 3, 1)))
                stands = True
            elif act == "revoke" and stands:
                revoked(place)
                stands = False
            elif act in ("later", "early"):
                late = act == "later"
                set_clock(2027, 3, 2 if late else 1)
            elif act == "close" and not closed:
                dp.Session(rho=1, ledger=place)
                close(store_at(place), "default", "Ann", "over")
                closed = True
            elif act == "end" and is_open and not closed and not ended:
                close_stream(store_at(place), "default", "s", "Ann", "over")
                ended = True
            elif act == "open" and not is_open:
                may = not closed and (not requires or (stands and not late))
                try:
                    opened(place, requires=requires)
                    assert may
                    is_open, under_approval = True, requires
                except (dp.PlanMismatch, dp.BudgetExceeded):
                    assert not may
            elif act == "release" and is_open and released < 8:
                needed = requires or under_approval
                may = not closed and not ended and (not needed or (stands and not late))
                stream = opened(place, requires=requires)
                try:
                    stream.release(day(released))
                    assert may
                    released += 1
                except (dp.PlanMismatch, dp.BudgetExceeded):
                    assert not may
            if is_open:
                assert drawn(place) == released
    head_file._USED.clear()
