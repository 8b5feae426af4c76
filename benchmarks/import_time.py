"""How much longer `import dpframe` takes than `import polars`, each in a fresh process, and how
much longer with a first session, for which the rest is loaded.

    python benchmarks/import_time.py [REPEATS]

Best of REPEATS interleaved runs, after one that keeps compiled modules, as an installed package has
them.
"""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import resource, time
started = time.perf_counter()
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
SESSION = "dpframe, a session"
CASES = {
    "polars": "import polars",
    "polars, numpy, pyarrow.dataset": "import polars, numpy, pyarrow.dataset",
    "dpframe": "import dpframe",
    SESSION: "import dpframe; dpframe.Session(epsilon=1)",
}


def main(repeats: int) -> None:
    """Print the table."""
    best: dict[str, list[float]] = {}
    for code in CASES.values():
        _fresh(code)
    for _ in range(repeats):
        for what, code in CASES.items():
            measured = _fresh(code)
            best[what] = [
                min(a, b) for a, b in zip(best.get(what, measured), measured, strict=True)
            ]
    print("best of", repeats)
    print(f"{'import':34}{'seconds':>9}{'CPU s':>9}{'memory MB':>11}")
    for what, (seconds, cpu, memory) in best.items():
        print(f"{what:34}{seconds:9.3f}{cpu:9.3f}{memory:11.0f}")
    for what in ("dpframe", SESSION):
        print(f"{what} over polars: {best[what][0] - best['polars'][0]:.3f} s")


def _fresh(code: str) -> list[float]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(code=code)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(part) for part in done.stdout.split()]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
