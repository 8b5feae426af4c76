"""Prints the table of errors and intervals in `docs/benchmarks.md`: ``python -m
tests.aggregates.figures``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpframe.aggregates.noise import Independent
from tests.aggregates.cases import KINDS, Case, Data, worst_like

RUNS = 40_000


def main() -> None:
    """For each kind, noise and size: what is said beside what is true, and how often it holds."""
    print("| | noise | values | error said / true | held | interval / error | held |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        for noise, spend in (("Laplace", {"epsilon": 1}), ("Gaussian", {"rho": "0.1"})):
            case = Case(kind, (0, 100), spend)
            for count in (10, 100, 1000, 10**6):
                print(f"| {kind} | {noise} | {count:,} | {' | '.join(row(case, count))} |")


def row(case: Case, count: int) -> tuple[str, ...]:
    """Of the worst data tried, and of data in the middle of the range."""
    said = case.plan.accuracy("x", count=count)
    largest = case.half if case.kind != "var" else case.half**2
    tried = [
        case.errors(data, RUNS, seed)
        for seed, data in enumerate(worst_like(count, min(1.0, said / largest)))
    ]
    worst = max(float(np.quantile(errors, 0.95)) for errors in tried)
    held = min(float((errors <= said).mean()) for errors in tried)
    middle = Data(count, 0.3, 0.4)
    noisy = case.noisy(middle, RUNS, 99)
    law = Independent(tuple(case.laws))
    ends = case.aggregate.interval(noisy, law, Fraction(95, 100))
    assert ends is not None
    low, high = (end.to_numpy() for end in ends)
    truth = case.truth(middle)
    error = float(np.quantile(case.errors(middle, RUNS, 99), 0.95))
    inside = float(((low <= truth) & (truth <= high)).mean())
    width = float(np.median(high - low)) / 2 / error
    return f"{said / worst:.2f}", f"{held:.3f}", f"{width:.2f}", f"{inside:.3f}"


if __name__ == "__main__":
    main()
