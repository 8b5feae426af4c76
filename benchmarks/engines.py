"""The same private query on each engine, compared with the plain one, at growing numbers of rows.

    python benchmarks/engines.py [ROWS ...] [--folder FOLDER] [--engines polars,duckdb,...]
                                 [--cpu] [--plot PICTURE.svg]

Data, queries and processes are those of `large.py`, with no limit on memory except for `polars-
in-2GB`. Its process sets `memory=` and runs in a control group of this size if the machine allows
one (try a billion rows: 8 GB of files and 20 GB of temporary ones, deleted afterwards). Seconds are
wall time without imports or the start of Spark's virtual machine, the better of two runs of fewer
than 100 million rows; ratios are within one size and engine. On `spark-combined` tasks add up what
they have of a pair before anything is shuffled, `spark.dpframe.pairs.combine`. With `--cpu` seconds
are those of CPU time instead, of the process and of Spark's virtual machine, which other work on
the machine changes less.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from large import run, write

ROWS = (1_000_000, 10_000_000, 100_000_000)
ENGINES = ("polars", "duckdb", "spark", "spark-combined")
IN_LITTLE = "polars-in-2GB"


class Measured(NamedTuple):
    """Seconds of both sides; None where one did not come to its end."""

    engine: str
    rows: int
    plain: float | None
    private: float | None


def main(sizes: Sequence[int], folder: Path, engines: Sequence[str], clock: str) -> list[Measured]:
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
                    limit = 2048 if engine == IN_LITTLE else 0
                    one = run(side, engine.removesuffix("-in-2GB"), str(at / "*.parquet"), limit)
                    if one is not None:
                        best[side] = min(best.get(side, one[clock]), one[clock])
            found.append(Measured(engine, rows, best.get("plain"), best.get("private")))
            show(found[-1])
    return found


def show(one: Measured) -> None:
    """Print a row of the table."""
    plain, private = one.plain or float("nan"), one.private or float("nan")
    print(
        f"{one.engine:16}{one.rows:13,}{plain:10.2f}{private:11.2f}"
        f"{private / plain:7.2f}{private / one.rows * 1e7:11.2f}",
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
            if seconds is not None
        ]
    )
    chart = alt.Chart(frame).mark_line(point=True)
    chart = chart.encode(
        x=alt.X("rows:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log")),
        color=alt.Color("engine:N", sort=[*ENGINES, IN_LITTLE]),
        strokeDash=alt.StrokeDash("query:N", sort=["private", "plain"]),
    )
    chart.properties(width=420, height=280).save(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=lambda text: int(float(text)))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place, clock = given.folder or Path(made), "cpu" if given.cpu else "wall"
        table = main(given.rows or ROWS, place, given.engines.split(","), clock)
    if given.plot:
        plot(table, given.plot)
