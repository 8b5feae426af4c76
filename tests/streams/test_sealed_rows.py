"""Rows that lie beside a ledger and that no record names: taken only where the ledger sealed them
for that stream.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger.record import KEY_VARIABLE
from dpframe.ledger.streams import OpenedStream
from tests.ledger.ledgers import Place, sql, store_at, verify
from tests.streams.child import opened, totals
from tests.streams.nights import day
from tests.streams.test_processes import child

KEY = "k" * 32


@pytest.fixture(params=[None, KEY], ids=["plain", "keyed"])
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    if request.param is not None:
        monkeypatch.setenv(KEY_VARIABLE, request.param)
    return request.param  # type: ignore[no-any-return]


def stream_at(place: Place, key: str | None) -> OpenedStream:
    (found,) = store_at(place, key).read().streams.all()
    return found


def put(place: Place, stream: int, first: int, content: bytes) -> None:
    """As whoever may write to the folder, or has the right to insert, puts it there."""
    if isinstance(place, Path):
        folder = Path(f"{place}.streams")
        folder.mkdir(exist_ok=True)
        (folder / f"{stream:09d}-{first:06d}.json").write_bytes(content)
    else:
        sql(
            place,
            "INSERT INTO dpframe_ledger.streams VALUES (%s, %s, %s)",
            stream,
            first,
            content,
        )


@pytest.mark.parametrize("form", ["of an earlier version", "with a seal", "of another period"])
def test_rows_that_somebody_puts_there_are_refused(
    place: Place, key: str | None, form: str
) -> None:
    stream = opened(place)
    totals(stream, 1)
    number = stream_at(place, key).number
    said: dict[str, object] = {"of": None, "first": 1, "rows": [[[-4501 * 65536]]]}
    if form == "with a seal":
        said["seal"] = "0" * 64
    content = json.dumps(said).encode()
    if form == "of another period":
        content = store_at(place, key).contents.rows(number, [0])[0] or b""
    put(place, number, 1, content)
    for one in (stream, opened(place)):
        with pytest.raises(dp.LedgerError, match="was not drawn by this ledger") as refusal:
            one.release(day(1))
    assert ("000001.json" if isinstance(place, Path) else "first 1") in str(refusal.value)
    assert stream_at(place, key).drawn == 1
    verify(place, key)


def test_rows_of_another_stream_are_refused(tmp_path: Path, key: str | None) -> None:
    place = tmp_path / "b.db"
    first = opened(place)
    totals(first, 1)
    session = dp.Session(rho=1, ledger=place, name="other")
    from tests.streams.child import DATA
    from tests.streams.nights import START

    query = session.protect(DATA, unit=dp.Rows(), name="visits").agg(dp.count().alias("n"))
    other = session.stream("s", query, by="day", start=START, periods=8, rho="0.5")
    number = stream_numbers(place, key)[1]
    (kept,) = (tmp_path / "b.db.streams").iterdir()
    put(place, number, 0, kept.read_bytes())
    with pytest.raises(dp.LedgerError, match="was not drawn by this ledger"):
        other.release(day(0))


def stream_numbers(place: Place, key: str | None) -> list[int]:
    return [stream.number for stream in store_at(place, key).read().streams.all()]


def test_what_a_killed_process_has_drawn_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    place = tmp_path / "b.db"
    first = totals(opened(place), 1)
    assert child(place, "content", tmp_path / "none").wait(300) == -signal.SIGKILL
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert len(kept) == 2
    assert totals(opened(place), 5)[:1] == first
    assert all(path.read_bytes() == content for path, content in kept.items())
    verify(place, KEY)
