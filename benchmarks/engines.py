"""The same private query on each engine, beside the plain one, at growing numbers of rows.

    python benchmarks/engines.py [ROWS ...] [--folder FOLDER] [--engines polars,duckdb,spark]

Data, queries and processes are those of `large.py`, with no limit on memory. Seconds are wall time
without the start of Python or of Spark's virtual machine; ratios are within one size and engine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from large import run, write

ROWS = (1_000_000, 10_000_000, 100_000_000)
ENGINES = ("polars", "duckdb", "spark")


def main(sizes: list[int], folder: Path, engines: list[str]) -> None:
    """Print the table."""
    print(f"{'engine':9}{'rows':>13}{'plain s':>10}{'private s':>11}{'ratio':>7}{'s per 10M':>11}")
    for engine in engines:
        for rows in sizes:
            at = folder / f"rows{rows}"
            at.mkdir(parents=True, exist_ok=True)
            write(at, rows)
            best: dict[str, float] = {}
            for _ in range(2):
                for side in ("plain", "private"):
                    found = run(side, engine, str(at / "*.parquet"), 0)
                    if found is not None:
                        best[side] = min(best.get(side, found["wall"]), found["wall"])
            if len(best) == 2:
                plain, private = best["plain"], best["private"]
                print(
                    f"{engine:9}{rows:13,}{plain:10.2f}{private:11.2f}{private / plain:7.2f}"
                    f"{private / rows * 1e7:11.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=lambda text: int(float(text)))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--engines", default=",".join(ENGINES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        main(
            given.rows or list(ROWS),
            given.folder or Path(made),
            given.engines.split(","),
        )
