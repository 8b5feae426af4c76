"""Streams of ledgers that were accepted without their head file, which may be old copies: they draw
nothing twice for one charge.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.cli import main
from dpframe.ledger import head_file
from dpframe.ledger.contents import STREAMS
from dpframe.ledger.record import Draft
from tests.ledger.ledgers import store_at, verify
from tests.streams.child import DATA, opened, session_of, totals
from tests.streams.nights import day

BY = ("--by", "Ann", "--reason", "the disk was lost")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def backup(path: Path) -> Path:
    """A copy of the file and of the folder beside it."""
    there = path.with_name("backup")
    there.mkdir()
    shutil.copy(path, there)
    shutil.copytree(f"{path}{STREAMS}", there / f"{path.name}{STREAMS}")
    return there


def restore(path: Path, there: Path, *, folder: bool) -> None:
    """The copy in the place of the ledger, as after a disk was lost; the folder with it or not."""
    head_file._USED.clear()
    for one in path.parent.glob(f"{path.name}*"):
        if one.is_file():
            one.unlink()
    shutil.copy(there / path.name, path)
    if folder:
        shutil.rmtree(f"{path}{STREAMS}")
        shutil.copytree(there / f"{path.name}{STREAMS}", f"{path}{STREAMS}")


def run(act: str, path: Path, *arguments: str) -> int:
    return main(["ledger", act, "--ledger", str(path), *BY, *arguments])


def test_a_copy_draws_nothing_that_may_have_been_drawn(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = totals(opened(path), 2)
    there = backup(path)
    totals(opened(path), 5)
    restore(path, there, folder=True)
    with pytest.raises(dp.LedgerError, match="head file"):
        opened(path)
    assert run("adopt", path) == 0
    said = capsys.readouterr().out
    assert "the stream 's' of 'default' knows of 2 of 8 periods, and draws nothing new" in said
    stream = opened(path)
    assert totals(stream, 2) == before  # which is handed out as it was
    for number in (2, 7):
        with pytest.raises(dp.LedgerError, match="`dpframe ledger redraw --charge-again`"):
            stream.release(day(number))
    assert session_of(path).spent == stream.cost
    verify(path)


def test_what_lies_in_the_folder_is_taken_as_it_was(path: Path) -> None:
    totals(opened(path), 2)
    there = backup(path)
    before = totals(opened(path), 5)
    restore(path, there, folder=False)
    assert run("adopt", path) == 0
    assert totals(opened(path), 5) == before
    with pytest.raises(dp.LedgerError, match="drawn twice"):
        opened(path).release(day(5))
    verify(path)


def test_who_draws_again_pays_for_all_of_it(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = totals(opened(path), 2)
    there = backup(path)
    totals(opened(path), 5)
    restore(path, there, folder=True)
    assert run("redraw", path, "--stream", "s") == 6  # its head file is missing
    assert run("adopt", path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["streams"]
    assert found == [{"name": "default", "stream": "s", "drawn": 2, "periods": 8}]
    assert run("redraw", path, "--stream", "s") == 6
    said = capsys.readouterr().err
    assert "to release periods of the stream" in said
    assert "0.5" in said
    assert run("redraw", path, "--stream", "s", "--name", "other", "--charge-again") == 9
    assert run("redraw", path, "--stream", "t", "--charge-again") == 6
    assert "write one of its streams: 's'" in capsys.readouterr().err
    assert session_of(path).spent == dp.ZCDP("0.5")
    assert run("redraw", path, "--stream", "s", "--charge-again") == 0
    assert "draws again from period 3 on" in capsys.readouterr().out
    assert session_of(path).spent == dp.ZCDP(1)
    assert session_of(path).history["status"].to_list() == ["released"] * 2
    assert totals(opened(path), 8)[:2] == before
    assert run("redraw", path, "--stream", "s", "--charge-again") == 6
    assert "needs no second payment" in capsys.readouterr().err
    monkeypatch.setattr("dpframe.ledger.store.is_due", lambda chain: True)
    main(["ledger", "grant", "--ledger", str(path), "--name", "default", "--rho", "1", *BY])
    verify(path)
    (found,) = store_at(path).read().streams.all()
    assert (found.doubted, found.drawn) == (None, 8)


def test_ledgers_name_their_streams(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals(opened(path), 2)
    drawn = "stream 's': 2 of 8 periods drawn, paid for by the charge 4"
    for act in ("show", "releases"):
        assert main(["ledger", act, "--ledger", str(path)]) == 0
        assert drawn in capsys.readouterr().out
    Path(f"{path}.head").unlink()
    assert run("adopt", path) == 0
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", str(path)]) == 0
    assert f"{drawn}; it releases nothing new" in capsys.readouterr().out
    assert main(["ledger", "show", "--ledger", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["default"]["streams"]
    assert found == [
        {"name": "s", "charge": 4, "drawn": 2, "periods": 8, "draws": False, "closed": None}
    ]


def test_it_has_to_fit_the_budget(path: Path) -> None:
    opened(path).release(day(0))
    session_of(path).protect(DATA, unit=dp.Rows()).dp_count().collect(rho="0.1")
    Path(f"{path}.head").unlink()
    assert run("adopt", path) == 0
    assert run("redraw", path, "--stream", "s", "--charge-again") == 3
    assert session_of(path).spent == dp.ZCDP("0.6")
    with pytest.raises(dp.LedgerError, match="drawn twice"):
        opened(path).release(day(1))
    assert (
        main(["ledger", "grant", "--ledger", str(path), "--name", "default", "--rho", "0.1", *BY])
        == 0
    )
    assert run("redraw", path, "--stream", "s", "--charge-again", "--json") == 0


def test_a_closed_budget_pays_for_nothing_again(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(path).release(day(0))
    Path(f"{path}.head").unlink()
    assert run("adopt", path) == 0
    assert run("close", path, "--name", "default") == 0
    capsys.readouterr()
    assert run("redraw", path, "--stream", "s", "--charge-again") == 3
    assert "the budget 'default' was closed on" in capsys.readouterr().err
    assert session_of(path).spent == dp.ZCDP("0.5")


def test_each_copy_is_paid_for(path: Path) -> None:
    opened(path).release(day(0))
    for paid in (1, 2):
        Path(f"{path}.head").unlink()
        head_file._USED.clear()
        assert run("adopt", path) == 0
        with pytest.raises(dp.LedgerError, match="drawn twice"):
            opened(path).release(day(3))
        again = run("redraw", path, "--stream", "s", "--charge-again")
        assert again == (0 if paid == 1 else 3)  # for which nothing is left


def test_a_stream_that_is_opened_afterwards_draws(path: Path) -> None:
    session_of(path).protect(DATA, unit=dp.Rows()).dp_count().collect(rho="0.1")
    Path(f"{path}.head").unlink()
    assert run("adopt", path) == 0
    opened(path).release(day(3))


FORGED = {
    "not doubted": lambda number, plan: [Draft("default", "redrawn", number, plan)],
    "another plan": lambda number, _: [Draft("default", "redrawn", number, "0" * 64)],
    "another stream": lambda number, plan: [Draft("default", "redrawn", number + 1, plan)],
    "another budget": lambda number, plan: [Draft("other", "redrawn", number, plan)],
    "without a charge": lambda number, plan: [
        Draft("default", "redrawn", number, plan),
        Draft("default", "drawn", number, "0" * 64, why='{"first": 1, "last": 1}'),
    ],
}


@pytest.mark.parametrize("forged", FORGED)
def test_no_ledger_verifies_in_which_a_stream_draws_again_for_nothing(
    path: Path, forged: str
) -> None:
    opened(path).release(day(0))
    if forged != "not doubted":
        Path(f"{path}.head").unlink()
        assert run("adopt", path) == 0
    store = store_at(path)
    chain = store.read()
    (found,) = chain.streams.all()
    drafts = FORGED[forged](found.number, chain.streams.plan_of(found))

    def written() -> None:
        store.append(lambda _: drafts)
        verify(path)

    with pytest.raises((dp.LedgerError, ValueError, KeyError)):
        written()
