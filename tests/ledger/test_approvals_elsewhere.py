"""Approvals, and the runs that were used, go along to another key and another place."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger import chain, store
from dpframe.ledger.approvals import ApprovalKey, Requirement
from dpframe.ledger.owners import Terms, approve, move, rekey, revoke
from dpframe.ledger.record import Seal
from tests.ledger.ledgers import TENTH, UNIT, Place, opened, store_at, verify

CENT = dp.PureDP("0.01")
PRINT = "a" * 64
KEY = "a long key of the owner"
SIGNING = ApprovalKey.parse("hmac:a secret of reviewers")


def approved(place: Place, runs: int) -> None:
    approve(store_at(place), "default", PRINT, "{}", "Ann", SIGNING, Terms(runs=runs))


def charge(place: Place, key: str | None = None) -> int:
    return opened(place, key=key).charge(TENTH, PRINT, UNIT, Requirement(SIGNING))


@pytest.fixture
def used(place: Place) -> Place:
    """A ledger with an approval for two runs, of which one is used, and one that was revoked."""
    opened(place)
    approved(place, runs=5)
    revoke(store_at(place), "default", PRINT, "Bob", None)
    approved(place, runs=2)
    charge(place)
    return place


def refused(place: Place, key: str | None = None) -> None:
    with pytest.raises(dp.PlanMismatch, match="was for 2 runs, already used; 1 earlier"):
        charge(place, key)


def test_a_moved_ledger_goes_on_with_its_approvals(used: Place, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.db"
    move(store_at(used), store_at(other), "Bob")
    charge(other)
    refused(other)
    with pytest.raises(dp.LedgerError, match="was moved"):
        charge(used)
    approved(other, runs=1)
    charge(other)
    verify(other)
    third = tmp_path / "third.db"
    move(store_at(other), store_at(third), "Bob")
    with pytest.raises(dp.PlanMismatch, match="was for 1 run, already used; 2 earlier"):
        charge(third)
    verify(third)


def test_a_rekeyed_ledger_goes_on_with_its_approvals(used: Place) -> None:
    rekey(store_at(used), Seal.of(KEY), "Bob")
    charge(used, KEY)
    refused(used, KEY)
    verify(used, KEY)


def test_both_and_checkpoints(used: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "EVERY", 4)
    monkeypatch.setattr(store, "EVERY", 4)
    other = tmp_path / "elsewhere.db"
    rekey(store_at(used), Seal.of(KEY), "Bob")
    ledger = opened(used, key=KEY)
    for _ in range(3):
        ledger.charge(CENT, "f" * 64, UNIT)
    move(store_at(used, KEY), store_at(other, KEY), "Bob")
    charge(other, KEY)
    ledger = opened(other, key=KEY)
    for _ in range(6):
        ledger.charge(CENT, "f" * 64, UNIT)
    refused(other, KEY)
    verify(other, KEY)
