"""Whether this version is slower than another one: both in turn, each in processes of its own.

    python benchmarks/against.py OTHER [ROUNDS] [ROWS]

OTHER is the folder of another checkout (`git worktree add OTHER COMMIT`). Each round starts one
process of each version, in turn first and second, which measures every case. A case's time is the
best of several CPU times of the process, and the ratio is this version's over the other's. The
table shows the median of the ratios of all rounds, the least and the largest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[1]


def main(other: Path, rounds: int, rows: int) -> None:
    """Print the table."""
    print(f"{rows:,} rows, {rounds} rounds; milliseconds of CPU time, least of all rounds")
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        order = (HERE, other) if number % 2 else (other, HERE)
        times = {side: _times(side, rows) for side in order}
        for name, new in times[HERE].items():
            found.setdefault(name, []).append((new, times[other][name]))
    print(f"{'':32}{'other':>9}{'this':>9}{'ratio':>8}{'least':>8}{'most':>8}")
    for name, pairs in found.items():
        ratios = [new / old for new, old in pairs]
        print(
            f"{name:32}{min(old for _, old in pairs):9.2f}{min(new for new, _ in pairs):9.2f}"
            f"{median(ratios):8.3f}{min(ratios):8.3f}{max(ratios):8.3f}"
        )


def _times(side: Path, rows: int) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(side)}
    asked = [sys.executable, __file__, "--side", str(side), str(rows)]
    done = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _side(side: Path, rows: int) -> dict[str, float]:
    """Milliseconds of each case, in the version that this process imports."""
    import dpframe

    if not Path(dpframe.__file__).is_relative_to(side):
        raise SystemExit(f"dpframe was not imported from {side}")
    return {name: _best(work, repeats) for name, (work, repeats) in _cases(rows).items()}


def _cases(rows: int) -> dict[str, tuple[Callable[[], object], int]]:
    import individuals
    import overhead
    import planning
    import polars as pl
    from purchases import purchases

    import dpframe as dp

    tiny = pl.DataFrame({"age": [50], "hours": [40], "education": ["Masters"]})
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for measure, (budget, spend) in planning.BUDGETS.items():
        people = dp.Session(**budget).protect(tiny, unit=dp.Rows())
        for size in (3, 10):
            found[f"plan {size}, {measure}"] = (
                lambda people=people, size=size, spend=spend: (
                    planning.ask(people, size).plan(**spend).explain()
                ),
                30,
            )
    bought, visited = purchases(rows), individuals.visits(rows)
    for name in ("filtered count", "sum by 1,000 keys", "mean by 20 keys"):
        found[name] = (overhead.sides(name, bought)["private"], 15)
    for name in ("4 groups each", "4 groups each, 2 rows in each", "groups found among a million"):
        found[name] = (individuals.sides(name, visited)["private"], 3)
    return found


def _best(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times) * 1e3


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        print(json.dumps(_side(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(
            Path(sys.argv[1]).resolve(),
            int(sys.argv[2]) if len(sys.argv) > 2 else 5,
            int(float(sys.argv[3])) if len(sys.argv) > 3 else 2_000_000,
        )
