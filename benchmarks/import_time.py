"""How much longer `import dpframe` takes than `import polars`, each in a fresh process.

    python benchmarks/import_time.py [REPEATS]

Best of REPEATS interleaved runs.
"""

from __future__ import annotations

import subprocess
import sys

CODE = """
import resource, time
started = time.perf_counter()
import {module}
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def main(repeats: int) -> None:
    """Print the table."""
    best: dict[str, list[float]] = {}
    for _ in range(repeats):
        for module in ("polars", "polars, numpy, pyarrow.dataset", "dpframe"):
            measured = _fresh(module)
            best[module] = [
                min(a, b) for a, b in zip(best.get(module, measured), measured, strict=True)
            ]
    print("best of", repeats)
    print(f"{'import':34}{'seconds':>9}{'CPU s':>9}{'memory MB':>11}")
    for module, (seconds, cpu, memory) in best.items():
        print(f"{module:34}{seconds:9.3f}{cpu:9.3f}{memory:11.0f}")
    print(f"dpframe over polars: {best['dpframe'][0] - best['polars'][0]:.3f} s")


def _fresh(module: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module=module)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(part) for part in done.stdout.split()]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
