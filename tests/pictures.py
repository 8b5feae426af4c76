"""Draws the pictures of the documentation: ``make docs-pictures``.

They are of noisy results, so each time they look a little different.
"""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

import dpframe as dp
from tests.documentation import DATA, ROOT

PLACE = ROOT / "docs" / "images"
KEYS = ["Bachelors", "Masters", "Doctorate"]


def draw(place: Path = PLACE) -> None:
    """Save each chart of `docs/simulating.md` as SVG."""
    frame = pl.read_parquet(DATA).select("education", "age", "hours_per_week")
    session = dp.Session(epsilon=1)
    people = session.protect(frame, unit=dp.Rows(), name="adult")
    query = people.group_by("education", keys=KEYS).agg(
        dp.count().alias("n"),
        dp.mean("hours_per_week", (0, 50)).alias("hours"),
        dp.median("age", (17, 90)).alias("median_age"),
    )
    charts = {"plan": query.plan(epsilon=0.2).plot(guess={"n": 1000, "hours": 42})}
    histogram = people.dp_histogram("age", list(range(20, 91, 5)))
    charts["release"] = histogram.release(epsilon=0.02).plot()
    charts["simulation"] = query.simulate(frame.head(3000), epsilon=0.2).plot()
    for epsilon in (0.1, 0.3, 0.2):
        time.sleep(1)
        query.collect(epsilon=epsilon)
    charts["session"] = session.plot()
    for name, chart in charts.items():
        chart.save(place / f"{name}.svg")


if __name__ == "__main__":
    draw()
