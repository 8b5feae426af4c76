"""A year of nightly publishing, and all that goes wrong in it: what comes out and what it costs."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from dpframe.workloads.running import SquareRoot, squared
from tests.ledger.ledgers import Place
from tests.schedule.year import SITES, Year

RHO, STREAM = Fraction("0.005"), Fraction("0.009")


def kinds(nights: int, year: Year) -> list[str]:
    """What happens in which night."""
    names, weights = ["quiet", "killed", "overlapping", "again"], [70, 18, 4, 8]
    found = year.chance.choices(names, weights, k=nights)
    found[:4] = names  # each at least once
    return found


@pytest.mark.parametrize(
    "nights", [8, pytest.param(365, marks=pytest.mark.slow)], ids=lambda n: f"{n} nights"
)
def test_each_night_is_published_once_and_paid_for_once(
    tmp_path: Path, place: Place, nights: int
) -> None:
    ledger = str(place)
    year = Year(tmp_path, ledger, nights, seed=nights)
    year.measure()
    for number, (day, kind) in enumerate(zip(year.days, kinds(nights, year), strict=True)):
        year.night(day, kind)
        if number == nights // 2:
            assert year.lose_disk() == number + 1

    published = sorted(p.name for p in (tmp_path / "published").iterdir())
    assert published == [f"{day}.parquet" for day in year.days]  # and nothing beside them
    assert sorted(p.name for p in (tmp_path / "totals").iterdir()) == published
    charges = charged(year)
    assert set(charges) == set(year.days)
    assert {day: n - 1 for day, n in charges.items() if n > 1} == dict(year.lost)
    shown = year.shown()
    assert Fraction(shown["spent"]["rho"]) == RHO * max(charges.values()) + STREAM
    assert {c["status"] for c in shown["charges"]} <= {"released", "charged"}
    assert [c["status"] for c in shown["charges"]].count("charged") == sum(year.lost.values())
    code, said = year.run("ledger", "verify", "--ledger", ledger)
    assert code == 0, said
    for day in year.days:
        frame = pl.read_parquet(tmp_path / "published" / f"{day}.parquet")
        assert frame.height == SITES
        assert abs(frame["n"].sum() - 300) < 5 * 10 * SITES**0.5
        assert year.run("inspect", f"published/{day}.parquet")[0] == 0
    require_totals(year)


def require_totals(year: Year) -> None:
    """Totals err as the formula says, and by less than those of a job that pays every night: the
    root mean square over all sites and days, late rows being few.
    """
    squares, each_night = 0.0, 0.0
    for number, day in enumerate(year.days):
        total = year.total(day)
        assert total["period"].to_list() == [day] * SITES
        exact = year.counted(day)
        squares += sum((a - b) ** 2 for a, b in zip(total["n_total"], exact, strict=True))
        each_night += SITES * year.nights / (2 * float(STREAM))
        before = [0] * SITES if not number else year.total(year.days[number - 1])["n_total"]
        assert [a + b for a, b in zip(before, total["n"], strict=True)] == total[
            "n_total"
        ].to_list()
    strategy = SquareRoot(year.nights)
    norm = strategy.moved(1).l2_squared
    expected = SITES * sum(
        squared(strategy.total_factors(period)) * norm / (2 * float(STREAM))
        for period in range(year.nights)
    )
    assert 0.9 < (squares / expected) ** 0.5 < 1.05 + 0.05 * (year.nights < 100)
    if year.nights > 300:
        assert squares < 0.25**2 * each_night


def charged(year: Year) -> Counter[dt.date]:
    """How often each day was charged: by the part that each charge names."""
    found = Counter[dt.date]()
    for charge in year.shown()["charges"]:
        if "scope" not in charge:  # that of the stream, once
            assert Fraction(charge["cost"]["rho"]) == STREAM
            continue
        ((_, _, key),) = charge["scope"]["where"]
        ((held,),) = [json.loads(key)]
        found[dt.date.fromisoformat(held["date"])] += 1
    return found
