"""A year of nightly publishing, and all that goes wrong in it: what comes out and what it costs."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpframe.workloads.prefix_sums import SquareRoot, sum_of_squares
from tests.ledger.ledgers import Place
from tests.schedule.year import POINTS, SITES, Year
from tests.streams.nights import column

RHO, STREAM = Fraction("0.005"), Fraction("0.009")


def kinds(nights: int, year: Year) -> list[str]:
    """What happens in which night."""
    names, weights = ["quiet", "killed", "overlapping", "again"], [70, 18, 4, 8]
    found = year.chance.choices(names, weights, k=nights)
    found[:4] = names  # each at least once
    return found


@pytest.mark.parametrize(
    "nights", [4, pytest.param(365, marks=pytest.mark.slow)], ids=lambda n: f"{n} nights"
)
def test_each_night_is_published_once_and_paid_for_once(
    tmp_path: Path, place: Place, nights: int
) -> None:
    year = lived(tmp_path, place, nights)
    require_published(year)
    near, job_a_night = errors(year)
    if nights < 300:
        assert 0.85 < near < 1.2
    else:
        assert 0.95 < near < 1.05
        assert job_a_night < 0.25
        assert year.aimed == dict.fromkeys(POINTS, 2)


@pytest.mark.slow
def test_a_night_that_dies_after_its_charge_is_paid_again_only_where_it_is_lost(
    tmp_path: Path, place: Place
) -> None:
    """Nothing is charged twice unless somebody says so, and then the first charge says `failed`."""
    year = Year(tmp_path, str(place), len(POINTS), seed=3)
    for day, point in zip(year.days, POINTS, strict=True):
        year.night(day, "quiet", point)
    require_published(year)
    assert dict(year.lost) == dict.fromkeys(year.days[:2], 1)


def nobody(said: str) -> None:
    """Who hears of a year in a test."""


def lived(folder: Path, place: Place, nights: int, told: Callable[[str], None] = nobody) -> Year:
    """A year in which everything goes wrong, and half-way the disk with the published files; every
    ten nights `told` hears of it.
    """
    year = Year(folder, str(place), nights, seed=nights)
    year.measure()
    for number, (day, kind) in enumerate(zip(year.days, kinds(nights, year), strict=True)):
        year.night(day, kind, POINTS[number // 60 % 3] if number % 60 == 30 else None)
        if number % 10 == 9:
            today, total = year.seconds[-1]
            told(f"{number + 1} nights: a day {today:.2f} s, a total {total:.2f} s")
        if number == nights // 2:
            assert year.lose_disk() == number + 1
    return year


def require_published(year: Year) -> None:
    """Each day's result exists once, and the ledger has what was owed."""
    published = sorted(p.name for p in (year.place / "published").iterdir())
    assert published == [f"{day}.parquet" for day in year.days]  # and nothing beside them
    assert sorted(p.name for p in (year.place / "totals").iterdir()) == published
    charges = charged(year)
    assert set(charges) == set(year.days)
    assert {day: n - 1 for day, n in charges.items() if n > 1} == dict(year.lost)
    shown = year.shown()
    assert Fraction(shown["spent"]["rho"]) == RHO * max(charges.values()) + STREAM
    require_settled(year, shown["charges"])
    code, said = year.run("ledger", "verify", "--ledger", year.ledger)
    assert code == 0, said
    for name in published:
        frame = pl.read_parquet(year.place / "published" / name)
        assert frame.height == SITES
        assert abs(frame["n"].sum() - 300) < 5 * 10 * SITES**0.5
    assert year.run("inspect", f"published/{published[-1]}")[0] == 0


def require_settled(year: Year, charges: list[dict[str, Any]]) -> None:
    """All charges were released, but for those of results that were lost: each of these failed,
    whoever computed it said so himself, or whoever paid for the night again found it open. The one
    of the stream may be open, whose process was killed as soon as it was paid for.
    """
    open_or_failed = [charge for charge in charges if charge["status"] != "released"]
    failed = [c for c in open_or_failed if "scope" in c and c["status"] == "failed"]
    said = "\n".join(json.dumps(charge) for charge in open_or_failed)
    assert len(failed) == sum(year.lost.values()), f"lost {dict(year.lost)}, and not\n{said}"
    others = [c for c in open_or_failed if c not in failed]
    assert all("scope" not in c and c["status"] == "charged" for c in others), said


def errors(year: Year) -> tuple[float, float]:
    """Root mean square errors of totals over all sites and days, late rows being few: over those of
    the formula, and over those of a job that pays every night for all days so far.
    """
    squares, each_night = 0.0, 0.0
    before: list[int] = [0] * SITES
    for day in year.days:
        total = year.total(day)
        assert total["period"].to_list() == [day] * SITES
        now = total["n_total"].to_list()
        squares += sum((a - b) ** 2 for a, b in zip(now, year.counted(day), strict=True))
        each_night += SITES * year.nights / (2 * float(STREAM))
        assert [a + b for a, b in zip(before, total["n"], strict=True)] == now
        before = now
    strategy = SquareRoot(year.nights)
    norm = column(strategy, 1).l2_squared
    expected = SITES * sum(
        sum_of_squares(strategy.total_factors(period)) * norm / (2 * float(STREAM))
        for period in range(year.nights)
    )
    return (squares / expected) ** 0.5, (squares / each_night) ** 0.5


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
