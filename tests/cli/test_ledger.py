"""`dpframe ledger show | verify | export | grant`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dpframe as dp
from dpframe import cli
from dpframe.ledger.record import Seal
from tests.ledger.ledgers import TENTH, Place, exists, filled, fresh, opened, sql

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(place: Place) -> Place:
    filled(place)
    return place


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def done(act: str, where: object, *arguments: str) -> tuple[int, str, str]:
        code = cli.main(["ledger", act, "--ledger", str(where), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return done


def test_show_lists_budgets_and_charges(run: Run, place: Place) -> None:
    code, out, _ = run("show", place)
    assert code == 0
    for words in (
        "default: pure DP, unit: rows, add-remove",
        "budget     epsilon 1",
        "spent      epsilon 0.3 in 3 charges: 1 released, 1 failed, 1 charged",
        "remaining  epsilon 0.7",
        "second: approximate DP, unit: identifier",
        "spent      epsilon 0.33333333333333333 and delta 1e-7 in 1 charge: 1 charged",
        "remaining  epsilon 1.6666666666666666 and delta 9e-7",
        "released  epsilon 0.1  plan 0000000000000000",
        "failed    epsilon 0.1  plan 1111111111111111",
    ):
        assert words in out
    code, out, _ = run("show", place, "--name", "second")
    assert code == 0
    assert "default" not in out
    if isinstance(place, Path):
        assert run("show", f"sqlite:///{place}")[0] == 0


def test_verify_prints_the_head(run: Run, place: Place) -> None:
    ((_, seq, tip, _),) = sql(place, "SELECT * FROM head")
    code, out, _ = run("verify", place)
    assert code == 0
    assert out.startswith("verified: 9 records of 2 budgets, not keyed")
    assert f"head: {seq} {tip}" in out
    assert run("verify", place, "--name", "second")[1].startswith(
        "verified: 9 records of 1 budget, "
    )


def test_a_keyed_ledger_needs_its_key(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = fresh(place, 1)
    filled(keyed, "a secret of the owner")
    code, out, err = run("verify", keyed)
    assert (code, out) == (6, "")
    assert "DPFRAME_LEDGER_KEY is not set" in err
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", "a secret of the owner")
    assert run("verify", keyed)[:2] == (
        0,
        f"verified: 9 records of 2 budgets, keyed\nhead: 9 {opened_tip(keyed)}\n",
    )


def opened_tip(place: Place) -> str:
    return str(sql(place, "SELECT hash FROM head")[0][0])


def test_export_writes_every_record(run: Run, place: Place) -> None:
    code, out, _ = run("export", place)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [tuple(r.values()) for r in records] == sql(place, "SELECT * FROM records ORDER BY seq")
    names = [
        r["name"] for r in map(json.loads, run("export", place, "--name", "second")[1].splitlines())
    ]
    assert names == ["second"] * 2


def test_a_ledger_that_was_changed_is_exported_and_otherwise_refused(
    run: Run, place: Place
) -> None:
    sql(place, "UPDATE records SET main = '0' WHERE seq = 3")
    for act in ("show", "verify"):
        code, out, err = run(act, place)
        assert (code, out) == (6, "")
        assert "record 3 was changed" in err
    code, out, err = run("export", place)
    assert code == 6
    assert len(out.splitlines()) == 9
    assert "record 3 was changed" in err
    before = sql(place, "SELECT * FROM records")
    grant = ("--name", "default", "--epsilon", "1", "--by", "Ann", "--reason", "why")
    assert run("grant", place, *grant)[0] == 6
    assert sql(place, "SELECT * FROM records") == before


def test_a_grant_raises_the_budget_on_record(run: Run, place: Place) -> None:
    session = dp.Session(epsilon=1, ledger=place)
    code, out, _ = run(
        "grant",
        place,
        "--name",
        "default",
        "--epsilon",
        "0.5",
        "--by",
        "Ann",
        "--reason",
        "second wave",
    )
    assert (code, out) == (0, "default: epsilon 1.5; epsilon 1.2 remains\n")
    assert session.budget == dp.PureDP("1.5")
    assert session.remaining == dp.PureDP("1.2")
    assert "granted   epsilon 0.5 by Ann: second wave" in run("show", place)[1]
    ((who, why, main),) = sql(place, "SELECT who, why, main FROM records WHERE act = 'granted'")
    assert (who, why, main) == ("Ann", "second wave", "1/2")
    assert run("verify", place)[0] == 0
    for amount in (1, "1.5"):  # what it was opened with, and what it has now
        assert dp.Session(epsilon=amount, ledger=place).budget == dp.PureDP("1.5")
    with pytest.raises(dp.LedgerError):
        dp.Session(epsilon=2, ledger=place)
    ledger = opened(place)
    for _ in range(12):
        ledger.charge(TENTH, "f")
    with pytest.raises(dp.BudgetExceeded):
        ledger.charge(TENTH, "f")
    assert dp.Session(epsilon=2, delta="1e-6", ledger=place, name="second").budget.main == 2
    run("grant", place, "--name", "second", "--delta", "1e-6", "--by", "Ann", "--reason", "more")
    assert (
        dp.Session(epsilon=2, delta="2e-6", ledger=place, name="second").budget.slack * 10**6 == 2
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--name", "default", "--rho", "1"], 5, "no rho"),
        (["--name", "default", "--delta", "1e-6"], 5, "no delta"),
        (["--name", "default", "--epsilon", "-1"], 5, "negative"),
        (["--name", "default", "--epsilon", "0"], 5, "empty"),
        (["--name", "default"], 5, "empty"),
        (["--name", "default", "--epsilon", "much"], 5, "finite number"),
        (["--name", "second", "--delta", "0.9999999"], 5, "below 1"),
        (["--name", "default", "--epsilon", "1", "--by", " "], 6, "--by must be text"),
        (["--name", "nobody", "--epsilon", "1"], 9, "no budget 'nobody'"),
    ],
)
def test_a_wrong_grant_is_refused(
    run: Run, place: Place, arguments: list[str], code: int, words: str
) -> None:
    before = sql(place, "SELECT * FROM records")
    found, out, err = run("grant", place, "--by", "Ann", "--reason", "why", *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert sql(place, "SELECT * FROM records") == before


@pytest.mark.parametrize("act", ["show", "verify", "export"])
def test_a_ledger_that_is_not_there_is_not_made(run: Run, place: Place, act: str) -> None:
    assert run(act, place, "--name", "nobody")[0] == 9
    missing = fresh(place, 1)
    code, _, err = run(act, missing)
    assert code == 9
    assert "there is no ledger" in err
    assert not exists(missing)


@pytest.mark.parametrize("arguments", [["show"], ["grant", "--ledger", "x"], ["burn"]])
def test_bad_arguments_are_explained(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["ledger", *arguments])
    assert stopped.value.code == 2


def test_what_is_shown_of_a_server_has_no_password(run: Run, place: Place) -> None:
    if isinstance(place, Path):
        return
    given = place.replace("@", ":sesame@")
    assert run("verify", given)[0] == 0
    sql(place, "UPDATE records SET main = '0' WHERE seq = 3")
    for act in ("show", "verify", "export"):
        code, out, err = run(act, given)
        assert code == 6
        assert "sesame" not in out + err


def test_an_empty_ledger_says_so(run: Run, tmp_path: Place) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    assert run("show", empty)[:2] == (0, "no budgets\n")


def test_keys_are_never_shown() -> None:
    assert "a secret of the owner" not in repr(Seal("a secret of the owner")) + str(
        vars(Seal("a secret of the owner")).keys()
    )
