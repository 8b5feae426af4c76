"""Streams of ledgers that are moved: what was drawn goes along, and nothing is drawn twice."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger import owners
from dpframe.ledger.owners import move
from tests.ledger.ledgers import Place, in_child, store_at, verify
from tests.streams.child import DATA, opened, totals
from tests.streams.nights import START, day


@pytest.fixture(params=["file", "server"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "server":
        if request.node.callspec.params.get("place") == "postgresql":
            pytest.skip("there is one server")
        return request.getfixturevalue("server").empty()  # type: ignore[no-any-return]
    (tmp_path / "there").mkdir()
    return tmp_path / "there" / "moved.db"


def moved(place: Place, there: Place) -> None:
    move(store_at(place), store_at(there), "Ann")


def test_a_stream_goes_on_where_its_ledger_was_moved_to(place: Place, there: Place) -> None:
    before = totals(opened(place), 3)
    moved(place, there)
    stream = opened(there)
    assert not stream.periods["lost"].any()
    assert stream.periods["drawn"].sum() == 3
    assert totals(stream, 3) == before
    after = totals(stream, 6)
    assert after[:3] == before
    assert totals(opened(there), 6) == after
    with pytest.raises(dp.LedgerError, match="the ledger was moved to"):
        opened(place).release(day(5))
    verify(there)


@pytest.mark.parametrize("when", ["_move", "bring", "bring_rest"])
def test_a_move_that_is_killed_loses_no_rows(place: Place, there: Place, when: str) -> None:
    """After what was there is copied; before; and before what is left is."""
    before = totals(opened(place), 3)

    def die(*_: object) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def killed() -> int:
        setattr(owners, when, die)
        moved(place, there)
        return 0

    assert in_child(killed) == -signal.SIGKILL
    with suppress(dp.LedgerError):  # after the last point there is nothing left to do
        moved(place, there)
    stream = opened(there)
    assert totals(stream, 3) == before
    assert not stream.periods["lost"].any()
    with pytest.raises(dp.LedgerError, match="was moved to"):
        moved(place, there)


def test_rows_that_came_meanwhile_are_copied_too(tmp_path: Path, there: Place) -> None:
    """Drawn after the copy and before the old place is closed."""
    place = tmp_path / "b.db"
    totals(opened(place), 1)
    source, destination = store_at(place), store_at(there)
    real, late = owners._move, list[int]()

    def then_moved(*given: Any) -> None:
        late.extend(totals(opened(place), 4))
        real(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owners, "_move", then_moved)
        move(source, destination, "Ann")
    assert len(late) == 4
    assert totals(opened(there), 4) == late


def test_what_is_lost_or_changed_is_not_copied(tmp_path: Path) -> None:
    place, there = tmp_path / "b.db", tmp_path / "moved.db"
    totals(opened(place), 3)
    first, second, third = sorted((tmp_path / "b.db.streams").iterdir())
    first.unlink()
    second.write_bytes(third.read_bytes())
    moved(place, there)
    assert [path.name for path in (tmp_path / "moved.db.streams").iterdir()] == [third.name]
    assert opened(there).periods["lost"].to_list()[:3] == [True, True, False]


def test_rows_that_lie_there_already_are_noticed_before_anything_is_closed(tmp_path: Path) -> None:
    place, there = tmp_path / "b.db", tmp_path / "moved.db"
    before = totals(opened(place), 2)
    first = sorted((tmp_path / "b.db.streams").iterdir())[0]
    (tmp_path / "moved.db.streams").mkdir()
    stale = tmp_path / "moved.db.streams" / first.name
    stale.write_bytes(first.read_bytes().replace(b"1", b"2"))
    with pytest.raises(dp.LedgerError, match="has other rows where those of the stream"):
        moved(place, there)
    assert totals(opened(place), 2) == before  # it goes on
    stale.unlink()
    moved(place, there)
    assert totals(opened(there), 2) == before


def test_rows_that_another_ledger_left_behind_are_not_taken(tmp_path: Path) -> None:
    place = tmp_path / "b.db"
    totals(opened(place), 1)
    for left in ("b.db", "b.db.head"):
        (tmp_path / left).unlink()
    shutil.rmtree(tmp_path / "b.db.releases", ignore_errors=True)
    with pytest.raises(dp.LedgerError, match="was not drawn by this ledger"):
        opened(place).release(day(0))
    shutil.rmtree(tmp_path / "b.db.streams")
    assert opened(place).release(day(0)).height == 1


def test_rows_of_another_stream_of_the_ledger_are_not_taken(tmp_path: Path) -> None:
    place = tmp_path / "b.db"
    totals(opened(place), 1)
    session = dp.Session(rho=1, ledger=place)
    query = session.protect(DATA, unit=dp.Rows(), name="visits").agg(dp.count().alias("n"))
    other = session.stream("t", query, by="day", start=START, periods=8, rho="0.5")
    (kept,) = (tmp_path / "b.db.streams").iterdir()
    number = other._opened.number
    shutil.copy(kept, kept.with_name(f"{number:09d}-000000.json"))
    with pytest.raises(dp.LedgerError, match="was not drawn by this ledger"):
        other.release(day(0))
