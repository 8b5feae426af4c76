"""A ledger that publishes on a schedule, as an earlier version left it, goes on: its stream, its
parts, its windows, its kept results, its runs, and what was pruned. `make_scheduled.py` made it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import main
from dpframe.ledger import head_file
from dpframe.ledger.owners import move
from dpframe.plan.document import earlier_fingerprint
from tests.kept import make_scheduled as made
from tests.ledger.ledgers import store_at, verify
from tests.streams.test_kept_plans import another_version

KEPT = Path(__file__).parent / "scheduled"
FACTS: dict[str, Any] = json.loads((KEPT / "facts.json").read_text(encoding="utf-8"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    shutil.copytree(KEPT, tmp_path / "kept")
    monkeypatch.chdir(tmp_path / "kept")
    known = dict(head_file._USED)
    head_file._USED.clear()  # each test has its own copy
    yield "scheduled.db"
    head_file._USED.clear()
    head_file._USED.update(known)


def days(number: int) -> date:
    return made.START + timedelta(days=number)


def session(place: str, name: str) -> dp.Session:
    return made.session(place, name, must_exist=True)


def totals(stream: dp.Stream, number: int) -> list[dict[str, Any]]:
    rows = stream.release(days(number)).to_dicts()
    return [{**row, "period": row["period"].isoformat()} for row in rows]


def test_it_verifies_and_says_what_was_spent(place: str) -> None:
    verify(Path(place))
    spent = {name: str(session(place, name).spent.main) for name in made.BUDGETS}
    assert spent == FACTS["spent"]
    assert session(place, "months").budget == dp.PureDP(1)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_its_stream_goes_on(
    place: str, later: bool, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a version that would plan another scale, and where it was moved to."""
    if moved:
        move(store_at(Path(place)), store_at(Path("moved.db")), "Ann")
        place = "moved.db"
    if later:
        another_version(monkeypatch, 3)
    stream = made.stream(session(place, "nights"))
    assert [totals(stream, n) for n in range(made.DRAWN)] == FACTS["totals"]
    assert earlier_fingerprint(stream.plan) == FACTS["plan"]
    assert not stream.periods["lost"].any()
    assert stream.release(days(made.PERIODS - 1)).height == 2
    assert str(session(place, "nights").spent.main) == FACTS["spent"]["nights"]
    verify(Path(place))


def test_its_parts_go_on(place: str) -> None:
    """Of which types their columns were nobody kept then, so the first day costs once more what a
    day costs; from there on a new day is free, and one that was charged costs what exceeds the
    most expensive one.
    """
    nights = session(place, "nights")
    before = nights.spent
    for number, more in ((5, "0.01"), (6, "0.01"), (5, "0.02"), (0, "0.02")):
        made.night(nights, days(number)).collect(rho="0.01")
        assert nights.spent == before + dp.ZCDP(more)
    people = session(place, "people")
    assert people.spent == dp.PureDP("0.25")
    for number, more in ((2, "0.125"), (3, "0.25"), (4, "0.25")):
        made.people(people, days(number)).collect(epsilon="0.125")
        assert people.spent == dp.PureDP("0.25") + dp.PureDP(more)
    with pytest.raises(dp.DPFrameError):  # earlier than what was charged
        made.people(people, days(0)).collect(epsilon="0.125")
    verify(Path(place))


def test_its_windows_go_on(place: str) -> None:
    months = session(place, "months")
    assert months.remaining_in(date(2027, 1, 9)) == dp.PureDP("0.75")
    assert months.remaining_in(date(2027, 3, 9)) == dp.PureDP(1)
    made.month(months, 1).collect(epsilon="0.75")
    with pytest.raises(dp.BudgetExceeded):
        made.month(months, 1).collect(epsilon="0.01")
    made.month(months, 2).collect(epsilon="0.75")
    verify(Path(place))


def test_its_results_are_handed_out_or_said_to_be_pruned(place: str) -> None:
    nights = session(place, "nights")
    found = made.night(nights, days(2)).collect(rho="0.01", reuse="same")
    assert found.to_dicts() == FACTS["nights"][2]
    for number in (0, 1):
        with pytest.raises(dp.LedgerError, match=r"it was pruned on .* by Ann Owner"):
            made.night(nights, days(number)).collect(rho="0.01", reuse="same")
    assert str(nights.spent.main) == FACTS["spent"]["nights"]


def test_its_run_is_made_once(place: str) -> None:
    made.ROWS.write_parquet("visits.parquet")
    Path("one.py").write_text(made.JOB, encoding="utf-8")
    assert main(["run", "one.py", "--run-id", "monday", "--output", "out.parquet"]) == 0
    assert pl.read_parquet("out.parquet").to_dicts() == FACTS["run"]
    assert str(session(place, "nights").spent.main) == FACTS["spent"]["nights"]
    Path("one.py").write_text(made.JOB.replace("0.01", "0.02"), encoding="utf-8")
    assert main(["run", "one.py", "--run-id", "monday", "--output", "out.parquet"]) == 4


def test_it_says_nothing_of_the_machine() -> None:
    files = [path for path in KEPT.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        content = path.read_bytes()
        assert not any(word in content for word in (b"/home/", b"/work/", b"/root"))
        assert content.count(b"/tmp/") == content.count(b"/tmp/kept/")
