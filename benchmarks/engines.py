"""The same private query on each engine, beside the plain one, at growing numbers of rows.

    python benchmarks/engines.py [ROWS ...] [--folder FOLDER] [--engines polars,duckdb,...]
                                 [--plot PICTURE.svg]

Data, queries and processes are those of `large.py`, with no limit on memory. Seconds are wall time
without imports or the start of Spark's virtual machine, the better of two runs of fewer than 100
million rows; ratios are within one size and engine. `spark-by-person` is a frame that its owner has
partitioned by individual, `protect(frame.repartition("person"), ...)`, beside the plain query on
the frame as it is.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from large import run, write

ROWS = (1_000_000, 10_000_000, 100_000_000)
ENGINES = ("polars", "duckdb", "spark", "spark-by-person")


class Measured(NamedTuple):
    """Seconds of both sides."""

    engine: str
    rows: int
    plain: float
    private: float


def main(sizes: Sequence[int], folder: Path, engines: Sequence[str]) -> list[Measured]:
    """Print the table."""
    found = []
    print(f"{'engine':16}{'rows':>13}{'plain s':>10}{'private s':>11}{'ratio':>7}{'s per 10M':>11}")
    for engine in engines:
        for rows in sizes:
            at = folder / f"rows{rows}"
            at.mkdir(parents=True, exist_ok=True)
            write(at, rows)
            best: dict[str, float] = {}
            for _ in range(2 if rows < 1e8 else 1):
                for side in ("plain", "private"):
                    one = run(side, engine, str(at / "*.parquet"), 0)
                    if one is not None:
                        best[side] = min(best.get(side, one["wall"]), one["wall"])
            if len(best) == 2:
                found.append(Measured(engine, rows, best["plain"], best["private"]))
                show(found[-1])
    return found


def show(one: Measured) -> None:
    """Print a row of the table."""
    print(
        f"{one.engine:16}{one.rows:13,}{one.plain:10.2f}{one.private:11.2f}"
        f"{one.private / one.plain:7.2f}{one.private / one.rows * 1e7:11.2f}",
        flush=True,
    )


def plot(measured: Sequence[Measured], path: Path) -> None:
    """Draw seconds by rows, both on scales of powers."""
    import altair as alt
    import polars as pl

    frame = pl.DataFrame(
        [
            {"engine": one.engine, "query": side, "rows": one.rows, "seconds": seconds}
            for one in measured
            for side, seconds in (("plain", one.plain), ("private", one.private))
        ]
    )
    chart = alt.Chart(frame).mark_line(point=True)
    chart = chart.encode(
        x=alt.X("rows:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log")),
        color=alt.Color("engine:N", sort=list(ENGINES)),
        strokeDash=alt.StrokeDash("query:N", sort=["private", "plain"]),
    )
    chart.properties(width=420, height=280).save(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=lambda text: int(float(text)))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        table = main(given.rows or ROWS, given.folder or Path(made), given.engines.split(","))
    if given.plot:
        plot(table, given.plot)
