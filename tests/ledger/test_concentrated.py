"""Ledgers of budgets that are given in (epsilon, delta) and added up in rho."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.charge import rho_within
from dpframe.cli import main
from dpframe.ledger.amounts import exact_amount
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.place import open_ledger
from dpframe.ledger.record import COLUMNS, Seal
from tests.api.test_concentrated_sessions import RHO, WHOLE, count, opened


def ledger(path: Path, rho: Fraction, within: dp.ApproxDP = WHOLE) -> Any:
    return open_ledger(path, None, dp.ZCDP(rho), within)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def cli(path: Path, act: str, *more: str) -> int:
    return main(["ledger", act, "--ledger", str(path), *more])


def grant(path: Path, *amounts: str) -> int:
    who = ("--name", "default", "--by", "DPO", "--reason", "minutes")
    return cli(path, "grant", *who, *amounts)


@pytest.mark.parametrize("change", ["0.9999999999", "1", "1.0000000001"])
def test_rho_is_fixed_when_the_budget_is_created(path: Path, change: str) -> None:
    """Another machine, whose floats give another last digit, opens the same budget."""
    ledger(path, RHO)
    other = ledger(path, RHO * Fraction(change))
    assert other.budget == dp.ZCDP(RHO)
    assert other.within == WHOLE


def test_a_file_with_more_rho_than_there_can_be_is_refused(path: Path) -> None:
    ledger(path, RHO * Fraction("1.01"))
    with pytest.raises(dp.LedgerError, match="more rho than epsilon 1 and delta 1e-8 implies"):
        opened(path)


def test_less_rho_is_what_there_is(path: Path) -> None:
    ledger(path, RHO / 2)
    assert opened(path).remaining == dp.ZCDP(RHO / 2)


def test_a_grant_raises_epsilon_and_delta_and_the_rho_that_they_imply(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = opened(path)
    count(before).collect(epsilon="0.1")
    assert grant(path, "--epsilon", "0.5") == 0
    more = rho_within(dp.ApproxDP("1.5", "1e-8"))
    assert capsys.readouterr().out == (
        f"default: epsilon 1.5 and delta 1e-8: rho {exact_amount(more)}; rho "
        f"{exact_amount(more - Fraction(5, 1000))} remains\n"
    )
    assert grant(path, "--delta", "1e-8") == 0
    most = rho_within(dp.ApproxDP("1.5", "2e-8"))
    assert RHO < more < most
    assert before.budget == dp.ApproxDP("1.5", "2e-8")
    assert before.remaining == dp.ZCDP(most - Fraction(5, 1000))
    for epsilon, delta in [(1, "1e-8"), ("1.5", "1e-8"), ("1.5", "2e-8")]:
        session = dp.Session(epsilon=epsilon, delta=delta, composition="zcdp", ledger=path)
        assert session.budget == dp.ApproxDP("1.5", "2e-8")
        assert session.spent == dp.ZCDP("0.005")
    with pytest.raises(dp.LedgerError):
        dp.Session(epsilon="1.2", delta="1e-8", composition="zcdp", ledger=path)


@pytest.mark.parametrize(
    ("amounts", "match"),
    [
        (("--rho", "0.1"), "approximate DP, which has no rho"),
        (("--epsilon", "0"), "the grant is empty"),
        (("--epsilon", "1e-19"), "too small to add any rho"),
        (("--delta", "1"), "delta is a probability below 1"),
    ],
)
def test_grants_that_add_nothing_or_in_rho_are_refused(
    path: Path, capsys: pytest.CaptureFixture[str], amounts: tuple[str, ...], match: str
) -> None:
    opened(path)
    assert grant(path, *amounts) == 5
    assert match in capsys.readouterr().err
    assert opened(path).remaining == dp.ZCDP(RHO)


def test_the_command_line_shows_both(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count(opened(path)).collect(epsilon="0.1")
    grant(path, "--epsilon", "0.5")
    capsys.readouterr()
    assert cli(path, "show") == 0
    text = capsys.readouterr().out
    more = rho_within(dp.ApproxDP("1.5", "1e-8"))
    assert text.startswith("default: approximate DP through zCDP, unit: rows, add-remove\n")
    assert f"budget     epsilon 1.5 and delta 1e-8: rho {exact_amount(more)}" in text
    assert "opened    epsilon 1 and delta 1e-8: rho 0.017205318" in text
    added = exact_amount(more - RHO)
    assert f"granted   rho {added} (now epsilon 1.5 and delta 1e-8) by DPO: minutes" in text
    assert "spent      rho 0.005 in 1 charge: 1 released" in text
    assert f"remaining  rho {exact_amount(more - Fraction(5, 1000))}" in text
    assert "released  rho 0.005  plan" in text
    assert cli(path, "verify") == 0
    assert cli(path, "export") == 0
    lines = capsys.readouterr().out.splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    assert [r["measure"] for r in records] == [
        None,
        "zCDP within (1, 1/100000000)",
        "zCDP",
        None,
        "zCDP within (3/2, 1/100000000)",
    ]
    assert [r["main"] for r in records[1:3]] == [str(RHO), "1/200"]


def rewritten(path: Path, seq: int, **values: Any) -> None:
    """As somebody without a key would: all hashes computed again."""
    seal, previous = Seal(None), ""
    with sqlite3.connect(path) as file:
        for row in file.execute("SELECT * FROM records ORDER BY seq").fetchall():
            record = dict(zip(COLUMNS, row, strict=True)) | {"previous": previous}
            if record["seq"] == seq:
                record |= values
            record["hash"] = previous = seal.record(list(record.values())[:-1])
            names = ", ".join(f"{name} = ?" for name in record)
            file.execute(f"UPDATE records SET {names} WHERE seq = ?", (*record.values(), row[0]))
        head = seal.head(row[0], previous)
        file.execute(
            "UPDATE head SET seq = ?, hash = ?, seal = ?", (head.seq, head.hash, head.seal)
        )
        ((identity,),) = file.execute("SELECT fingerprint FROM records WHERE seq = 1")
    path.with_name(path.name + ".head").unlink()
    witness = HeadFile(path.with_name(path.name + ".head"), seal, alone=True)
    with witness.open() as beside:
        witness.write(beside, Seen(row[0], previous, identity))


@pytest.mark.parametrize(
    ("seq", "values", "match"),
    [
        (3, {"measure": "zCDP within (1, 1/100000000)"}, "record 3 adds up costs in another way"),
        (5, {"measure": "zCDP"}, "record 5 adds up costs in another way"),
        (5, {"measure": "zCDP within (1/2, 1/100000000)"}, "record 5 adds up costs in another way"),
        (
            5,
            {"measure": "pure DP within (2, 1/100000000)"},
            "record 5 has an amount in another measure",
        ),
        (5, {"measure": "zCDP within (2, 3)"}, "record 5 cannot be read"),
        (2, {"measure": "zCDP within (x, 1/2)"}, "record 2 cannot be read"),
        (2, {"measure": "zCDP"}, "record 5 adds up costs in another way"),
        (2, {"main": "1/1000"}, "record 3 spends more than was left"),
    ],
)
def test_records_that_make_no_sense_are_found(
    path: Path, seq: int, values: dict[str, Any], match: str
) -> None:
    count(opened(path)).collect(epsilon="0.1")
    grant(path, "--epsilon", "0.5")
    rewritten(path, 2)
    assert opened(path).spent == dp.ZCDP("0.005")
    rewritten(path, seq, **values)
    with pytest.raises(dp.LedgerError, match=match):
        opened(path)


def test_names_keep_their_own_composition(path: Path) -> None:
    concentrated = dp.Session(epsilon=1, delta="1e-8", composition="zcdp", ledger=path, name="a")
    summed = dp.Session(epsilon=1, delta="1e-8", ledger=path, name="b")
    for session in (concentrated, summed):
        count(session).collect(epsilon="0.1")
    assert concentrated.spent == dp.ZCDP("0.005")
    assert summed.spent == dp.ApproxDP("0.1", 0)
