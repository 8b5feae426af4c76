"""``dpframe ledger adopt | move | rekey``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.cli import main
from tests.ledger.ledgers import filled, opened, store_at, verify

OLD, NEW = "the first key of the owner", "the second key of the owner"
BY = ("--by", "Ann")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "budget.db"
    filled(made)
    return made


def run(act: str, path: Path, *arguments: str) -> int:
    return main(["ledger", act, "--ledger", str(path), *BY, *arguments])


def test_a_lost_head_file_is_given_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("adopt", path, "--reason", "none") == 6
    assert "nothing to accept" in capsys.readouterr().err
    Path(f"{path}.head").unlink()
    assert main(["ledger", "verify", "--ledger", str(path)]) == 6
    assert "`dpframe ledger adopt`" in capsys.readouterr().err
    assert run("adopt", path, "--reason", "lost") == 0
    assert capsys.readouterr().out.startswith("accepted: 10 records\nhead: 10 ")
    verify(path)
    assert main(["ledger", "show", "--ledger", str(path)]) == 0
    assert "  accepted without its head file by Ann: lost\n" in capsys.readouterr().out


def test_a_ledger_is_moved(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = path.parent / "there" / "budget.db"
    there.parent.mkdir()
    assert run("move", path, "--to", str(there)) == 0
    assert capsys.readouterr().out.startswith(f"moved to {there}: 10 records\n")
    assert opened(there).spent == dp.PureDP("0.3")
    assert run("move", path, "--to", str(path.with_name("third.db"))) == 6
    assert run("move", path.with_name("none.db"), "--to", str(there)) == 9
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", str(path)]) == 0
    assert f"  moved to {there} by Ann; it goes on there\n" in capsys.readouterr().out
    assert main(["ledger", "check", "--ledger", str(path), "--at-least", "0.1"]) == 6
    assert "was moved to" in capsys.readouterr().err
    assert main(["ledger", "check", "--ledger", str(there), "--at-least", "0.1"]) == 0


def shown(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", str(path), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_programs_see_what_was_done_with_the_whole_ledger(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [budget["ledger"] for budget in shown(path, capsys).values()] == [[], []]
    Path(f"{path}.head").unlink()
    assert run("adopt", path, "--reason", "lost") == 0
    there = path.parent / "there" / "budget.db"
    there.parent.mkdir()
    assert run("move", path, "--to", str(there)) == 0
    for place, last in (
        (path, {"act": "moved", "to": str(there)}),
        (there, {"act": "moved here", "from": str(path)}),
    ):
        for name, budget in shown(place, capsys).items():
            assert budget == shown(place, capsys, "--name", name)[name]
            adopted, moved = budget["ledger"]
            assert adopted.pop("time") <= moved.pop("time")
            assert adopted == {"act": "adopted", "by": "Ann", "reason": "lost"}
            assert moved == {"by": "Ann"} | last
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", str(there)]) == 0
    assert f"  moved here from {path} by Ann\n" in capsys.readouterr().out


def test_a_head_file_elsewhere_follows_a_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin, there = path.with_name("pinned"), path.parent / "there" / "budget.db"
    there.parent.mkdir()
    monkeypatch.setenv("DPFRAME_LEDGER_HEAD", str(pin))
    dp.Session(epsilon=1, ledger=path)._payer.ledger.charge(dp.PureDP("0.1"), "f")
    old = path.read_bytes()
    assert run("move", path, "--to", str(there)) == 0
    dp.Session(epsilon=1, ledger=there)._payer.ledger.charge(dp.PureDP("0.1"), "f")
    assert pin.read_bytes() == Path(f"{there}.head").read_bytes()
    path.write_bytes(old)
    with pytest.raises(dp.LedgerError, match=r"of another ledger|ends at record"):
        dp.Session(epsilon=1, ledger=path)


@pytest.mark.parametrize("act", ["adopt", "move", "rekey"])
def test_programs_read_json(
    path: Path, act: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPFRAME_LEDGER_NEW_KEY", NEW)
    there = path.parent / "there" / "budget.db"
    there.parent.mkdir()
    if act == "adopt":
        Path(f"{path}.head").unlink()
    more = {"adopt": ("--reason", "lost"), "move": ("--to", str(there))}.get(act, ())
    assert run(act, path, *more, "--json") == 0
    found, place = json.loads(capsys.readouterr().out), there if act == "move" else path
    if act == "rekey":
        monkeypatch.setenv("DPFRAME_LEDGER_KEY", NEW)
        monkeypatch.setenv("DPFRAME_LEDGER_NEW_KEY", "short")
    head = store_at(place, NEW if act == "rekey" else None).verify()
    assert found == {"ledger": str(place), "records": head.seq, "head": head.hash}
    assert run(act, path, *more, "--json") == 6
    assert json.loads(capsys.readouterr().out)["error"] == "LedgerError"


def test_a_ledger_is_given_another_key(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, says in ((None, "is not set"), ("short", "too short"), ("", "empty")):
        if key is not None:
            monkeypatch.setenv("DPFRAME_LEDGER_NEW_KEY", key)
        assert run("rekey", path) == 6
        assert says in capsys.readouterr().err
    monkeypatch.setenv("DPFRAME_LEDGER_NEW_KEY", OLD)
    assert run("rekey", path) == 0
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", OLD)
    monkeypatch.setenv("DPFRAME_LEDGER_NEW_KEY", NEW)
    assert run("rekey", path) == 0
    assert capsys.readouterr().out.count("sealed with the new key") == 2
    verify(path, NEW)
    assert opened(path, key=NEW).spent == dp.PureDP("0.3")
