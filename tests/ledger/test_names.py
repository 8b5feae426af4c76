"""Names that look alike do not open a fresh budget."""

from __future__ import annotations

import unicodedata

import pytest

import dpframe as dp
from dpframe.ledger.owners import approve
from dpframe.ledger.record import Draft, require_new
from tests.ledger.ledgers import TENTH, Place, opened, store_at

NEAR = [
    "Census",
    "CENSUS",
    "census ",
    " census",
    "census\t",
    "census\n",
    "census\u00a0",
    "cen\u200bsus",
    "census\u200d",
    "\ufeffcensus",
    "census\u202e",
    "cen\x00sus",
    "census\x1b",
    "cens\u00adus",
    "census\ufe0f",
    "census\U000e01ef",
    "ｃｅｎｓｕｓ",
]


@pytest.mark.parametrize("name", NEAR, ids=ascii)
def test_a_name_that_looks_like_another_is_refused_with_that_name(place: Place, name: str) -> None:
    opened(place, name="census").charge(TENTH, "f")
    with pytest.raises(dp.LedgerError, match="but 'census', which looks nearly the same"):
        opened(place, name=name)
    assert list(store_at(place).read().accounts) == ["census"]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_forms_of_unicode_are_one_name(place: Place, form: str) -> None:
    opened(place, name="Zürich ﬁve")
    name = unicodedata.normalize(form, "Zürich ﬁve")  # type: ignore[arg-type]
    if name == "Zürich ﬁve":
        opened(place, name=name)
        return
    with pytest.raises(dp.LedgerError, match="looks nearly the same"):
        opened(place, name=name)


def test_a_budget_in_use_stays_usable_whatever_it_is_called(place: Place) -> None:
    for name in ("census", "Census", "census "):  # written before there were rules
        store_at(place).append(lambda _, n=name: Draft(n, "opened", amount=dp.PureDP(1)))  # type: ignore[misc]
    for name in ("census", "Census", "census "):
        opened(place, name=name).charge(TENTH, "f")


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\x1b[2K", "a\u202eb", " a", "a ", "a\u200b", "x" * 201, "a\u3164", "a\u180b"],
    ids=ascii,
)
def test_a_new_name_is_seen_as_it_is(name: str) -> None:
    with pytest.raises(dp.LedgerError, match="on one line"):
        require_new(name, [])


@pytest.mark.parametrize(
    "name", ["census 2026", "Łódź 🦀", "人口", "x" * 200, "a/b", "../x", "%s", "\u1820\u180a"]
)
def test_other_names_are_as_good_as_any(name: str) -> None:
    require_new(name, ["census", "census 2025", "default"])


def test_an_approval_does_not_open_a_name_that_looks_like_another(place: Place) -> None:
    opened(place, name="census")
    with pytest.raises(dp.LedgerError, match="its budgets are 'census'"):
        approve(store_at(place), "Census", "f" * 64, "{}", "Ann", None)
