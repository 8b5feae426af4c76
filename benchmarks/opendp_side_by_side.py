"""The same queries with dpframe and with OpenDP, each against plain Polars of its own environment.

    python -m venv .venv-opendp && .venv-opendp/bin/pip install 'opendp[polars]'
    python benchmarks/opendp_side_by_side.py .venv-opendp/bin/python [ROWS]

OpenDP pins another Polars, so it needs an environment of its own; its half of this script runs
there. Both sides plan, run and add noise; CPU seconds of all threads, best of three.
"""

from __future__ import annotations

import json
import subprocess
import sys

from purchases import CITIES, PLAIN, ROWS, SHOPS, best_times, purchases

CASES = ("filtered count", "sum by 1,000 keys", "mean by 20 keys")
REPEATS = 3


def main(python: str, rows: int) -> None:
    """Print the table."""
    ours, theirs = (_measured(p, side, rows) for p, side in _both(python))
    print(f"{rows:,} rows, best of {REPEATS}; CPU seconds, and times plain Polars of that side")
    print(f"{'aggregate':22}{'plain':>8}{'dpframe':>9}{'':8}{'plain':>8}{'OpenDP':>9}")
    for case in CASES:
        columns = ""
        for plain, private in (ours[case], theirs[case]):
            columns += f"{plain:8.3f}{private:9.3f}{private / plain:6.1f}x "
        print(f"{case:22}{columns}")


def _both(python: str) -> list[tuple[str, str]]:
    return [(sys.executable, "dpframe"), (python, "opendp")]


def _measured(python: str, side: str, rows: int) -> dict[str, list[float]]:
    done = subprocess.run(
        [python, __file__, "--side", side, str(rows)], check=True, capture_output=True, text=True
    )
    measured: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _report_dpframe(rows: int) -> None:
    from overhead import sides

    frame = purchases(rows)
    found = {case: best_times(sides(case, frame), REPEATS) for case in CASES}
    print(json.dumps({c: [t["plain"][0], t["private"][0]] for c, t in found.items()}))


def _report_opendp(rows: int) -> None:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = purchases(rows).lazy()

    def query() -> dp.polars.LazyFrameQuery:
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=2 * rows)],
        )
        return context.query()

    def counted() -> object:
        return query().filter(pl.col("age") >= 40).select(dp.len(signed=True)).release().collect()

    def summed() -> object:
        keys = pl.LazyFrame({"shop": SHOPS})
        total = pl.col("spent").dp.sum((0, 500))
        return query().group_by("shop").agg(total).with_keys(keys).release().collect()

    def averaged() -> object:
        keys = pl.LazyFrame({"city": CITIES})
        mean = [pl.col("age").dp.sum((17, 90)), dp.len(signed=True)]
        return query().group_by("city").agg(mean).with_keys(keys).release().collect()

    found = {
        case: best_times({"plain": lambda c=case: PLAIN[c](frame), "private": work}, REPEATS)
        for case, work in zip(CASES, (counted, summed, averaged), strict=True)
    }
    print(json.dumps({c: [t["plain"][0], t["private"][0]] for c, t in found.items()}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--side", "dpframe", rows]:
            _report_dpframe(int(rows))
        case ["--side", "opendp", rows]:
            _report_opendp(int(rows))
        case [python]:
            main(python, ROWS)
        case [python, rows]:
            main(python, int(float(rows)))
        case _:
            sys.exit(__doc__)
