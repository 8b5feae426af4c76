"""A ledger with all that publishing on a schedule records, as a version of dpframe writes it.

Run with the version that is to write it, over the folder it is kept in::

    PYTHONPATH=CHECKOUT python -m tests.kept.make_scheduled tests/kept/scheduled

`tests/kept/test_scheduled.py` reads it. No rows are kept but invented ones, and neither are paths
or names of machines.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.api.parameters import Parameters, declaring
from dpframe.cli import main as command
from tests.kept import make

START = date(2027, 1, 1)
PERIODS = 12
DRAWN = 3
ROWS = pl.DataFrame(
    {
        "who": [n // 2 for n in range(40)],
        "day": [START + timedelta(days=n % 8) for n in range(40)],
        "at": [datetime(2027, 1 + n % 3, 5, tzinfo=UTC) for n in range(40)],
        "site": ["A", "B"] * 20,
        "cost": [float(n % 10) for n in range(40)],
    }
)
"""Nobody's data."""
BUDGETS: dict[str, dict[str, Any]] = {
    "nights": {"rho": 1, "keep_releases": True},
    "months": {"epsilon": 1, "per": "1mo"},
    "people": {"epsilon": 1},
}


def session(place: str, name: str, **more: Any) -> dp.Session:
    return dp.Session(**BUDGETS[name], ledger=place, name=name, **more)


def visits(of: dp.Session) -> dp.PrivateFrame:
    return of.protect(ROWS, unit=dp.Rows(), name="visits")


def stream(of: dp.Session) -> dp.Stream:
    query = (
        visits(of)
        .group_by("site", keys=["A", "B"])
        .agg(dp.count().alias("n"), pl.col("cost").dp_sum((0, 10)).alias("paid"))
    )
    return of.stream("so far", query, by="day", start=START, periods=PERIODS, rho="0.1")


def night(of: dp.Session, day: date) -> dp.PrivateQuery:
    """The part of a day, whose key is a parameter."""
    with declaring(Parameters({})):
        key = dp.parameter("day", pl.Date, default=day)
    part = of.partition(visits(of), "day", keys=[key])[day]
    return part.group_by("site", keys=["A", "B"]).agg(n=dp.count())


def people(of: dp.Session, day: date) -> dp.PrivateQuery:
    """The part of a day, of people whose first two dates are kept."""
    frame = of.protect(ROWS, unit="who", name="visits")
    limited = frame.limit_groups(2, by="day", order_by="day").limit_rows(1, by="day")
    return of.partition(limited, "day", keys=[day])[day].agg(n=dp.count())


def month(of: dp.Session, number: int) -> dp.PrivateQuery:
    unit = dp.Identifier("who", window="1mo", time="at")
    frame = of.protect(ROWS, unit=unit, name="visits")
    first = datetime(2027, number, 1, tzinfo=UTC)
    last = datetime(2027, number + 1, 1, tzinfo=UTC)
    return frame.filter(pl.col("at") >= first, pl.col("at") < last).limit_rows(2).agg(n=dp.count())


def spend(place: str) -> dict[str, Any]:
    """All of it, and what is handed out for ever."""
    nights = session(place, "nights")
    opened = stream(nights)
    totals = [opened.release(START + timedelta(days=n)).to_dicts() for n in range(DRAWN)]
    results = [night(nights, START + timedelta(days=n)).collect(rho="0.01") for n in range(3)]
    for n in range(2):
        people(session(place, "people"), START + timedelta(days=n)).collect(epsilon="0.125")
    for number in (1, 2):
        month(session(place, "months"), number).collect(epsilon="0.25")
    job = "one.py"
    Path(job).write_text(JOB, encoding="utf-8")
    ROWS.write_parquet("visits.parquet")
    code = command(["run", job, "--run-id", "monday", "--output", "monday.parquet"])
    assert not code
    day = "9000-01-01"
    who = ["--ledger", place, "--name", "nights", "--by", "Ann Owner"]
    code = command(["ledger", "prune", *who, "--before", day, "--keep-last", "2"])
    assert not code
    return {
        "totals": [[{**row, "period": row["period"].isoformat()} for row in t] for t in totals],
        "nights": [result.to_dicts() for result in results],
        "run": pl.read_parquet("monday.parquet").to_dicts(),
        "spent": {name: str(session(place, name).spent.main) for name in BUDGETS},
        "plan": opened.plan.fingerprint,
    }


JOB = """
import dpframe as dp
session = dp.Session(rho=1, ledger="scheduled.db", name="nights")
visits = session.protect("visits.parquet", unit=dp.Rows(), name="visits")
query = visits.agg(n=dp.count())
spend = {"rho": 0.01}
"""


def main() -> None:
    host = socket.gethostname()
    make.stay_unknown()
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make.MADE.mkdir()
    try:
        os.chdir(make.MADE)
        facts = spend("scheduled.db")
        for path in Path().glob("scheduled.db*"):
            if path.is_dir():
                shutil.copytree(path, folder / path.name)
            elif path.stat().st_size:
                shutil.copy(path, folder / path.name)
        (folder / "facts.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
        for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
            for path in place.iterdir():
                if path.is_file() and host.encode() in path.read_bytes():
                    raise SystemExit(f"{path.name} names the machine")
    finally:
        shutil.rmtree(make.MADE)


if __name__ == "__main__":
    main()
