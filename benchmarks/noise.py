"""Exact noise and private selection: their time compared with NumPy's unsafe generators and OpenDP.

    python benchmarks/noise.py [REPEATS] [OPENDP_PYTHON]

Wall time, the best of REPEATS interleaved runs; scales are warm, as in a session that uses them
again. With the interpreter of an environment that has OpenDP, its samplers are timed too. The
script also prints joint noise, medians of many groups, and a count by a million public keys. The
last two are compared with plain Polars. The rank correlation of the time of one call with the size
of the noise is 0 if no loop grows with the noise.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

SIZES = (1, 1_000, 100_000, 1_000_000)
SCALES = (1, 1_000, 1_000_000_000)
OPENDP_SIZES = (1, 1_000, 100_000)
CANDIDATES = 1_000_000
ROWS, KEYS = 10_000_000, 1_000_000


def best(sides: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds per side, interleaved; short calls are repeated within a run."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    loops = {}
    for name, side in sides.items():
        start = time.perf_counter()
        side()
        once = time.perf_counter() - start
        loops[name] = max(1, min(200, int(0.01 / max(once, 1e-7))))
    for _ in range(repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            for _ in range(loops[name]):
                side()
            found[name].append((time.perf_counter() - start) / loops[name])
    return {name: min(times) for name, times in found.items()}


def draws(repeats: int, theirs: Mapping[str, float]) -> None:
    """Integer noise, per call."""
    from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace
    from dpframe.mechanisms.noise import noise

    rng = np.random.default_rng()
    print(f"{'law':10}{'scale':>12}{'draws':>10}{'ms':>10}{'x NumPy':>9}{'OpenDP x ours':>15}")
    for law in ("Laplace", "Gaussian"):
        for scale in SCALES:
            for n in SIZES:
                ours = (
                    DiscreteLaplace(Fraction(scale))
                    if law == "Laplace"
                    else DiscreteGaussian(Fraction(scale) ** 2)
                )
                numpy = rng.laplace if law == "Laplace" else rng.normal
                times = best(
                    {
                        "ours": lambda ours=ours, n=n: noise(ours.kernel_law, n),
                        "numpy": lambda numpy=numpy, s=scale, n=n: numpy(0.0, s, n),
                    },
                    repeats,
                )
                other = theirs.get(f"{law} {scale} {n}")
                ratio = f"{other / times['ours']:15.0f}" if other else f"{'':15}"
                print(
                    f"{law:10}{scale:12,}{n:10,}{times['ours'] * 1e3:10.3f}"
                    f"{times['ours'] / times['numpy']:9.2f}{ratio}"
                )


def boxes(repeats: int) -> None:
    """Joint noise, compared with separate Laplace noise at a part of epsilon each. The last column
    is the ratio of their standard deviations.
    """
    from dpframe.mechanisms import DiscreteBox, DiscreteLaplace
    from dpframe.mechanisms.noise import noise

    print(f"\n{'box of':>8}{'epsilon':>12}{'vectors':>10}{'ms':>10}{'x Laplace':>11}{'noise':>8}")
    for widths in ((1, 1), (1, 60, 2**30), (2**20,) * 10):
        d = len(widths)
        for epsilon in (Fraction(1, 10**6), Fraction(1, 2), Fraction(10)):
            law = DiscreteBox.for_pure(widths, 1, epsilon)
            plain = DiscreteLaplace(d * widths[-1] / epsilon)
            wider = (plain.variance() / law.variances()[-1]) ** 0.5
            for n in SIZES[:-1] if d > 3 else SIZES:
                times = best(
                    {
                        "box": lambda law=law, n=n: noise(law.kernel_law, n),
                        "laplace": lambda plain=plain, n=n * d: noise(plain.kernel_law, n),
                    },
                    repeats,
                )
                ratio = times["box"] / times["laplace"]
                print(
                    f"{d:8}{float(epsilon):12g}{n:10,}{times['box'] * 1e3:10.3f}{ratio:11.2f}"
                    f"{wider:8.2f}"
                )


def selections(repeats: int) -> None:
    """One choice among a million candidates, and a choice in each of 100,000 groups: of ten, and
    for the exponential mechanism of a point of 21 runs, as a quantile of ten values makes them.
    """
    from dpframe.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax
    from dpframe.mechanisms.noise import choose_each, choose_points

    rng = np.random.default_rng()
    scores = rng.integers(0, 1_000, CANDIDATES)
    groups = rng.integers(0, 1_000, (CANDIDATES // 10, 10))
    sizes = np.full(CANDIDATES // 10, 21)
    runs = rng.integers(-5, 1, int(sizes.sum()))
    weights = rng.integers(1, 100_000, runs.size)
    print(
        f"\n{'selection':20}{'1e6 candidates, ms':>22}{'1e5 groups of 10, ms':>22}"
        f"{'1e5 of 21 runs, ms':>22}"
    )
    for kind in (PermuteAndFlip, Exponential, ReportNoisyMax):
        law = kind(Fraction(20))
        sides: dict[str, Callable[[], object]] = {
            "one": lambda law=law: choose_each(law.kernel_law, scores.reshape(1, -1)),
            "each": lambda law=law: choose_each(law.kernel_law, groups),
        }
        if isinstance(law, Exponential):
            sides["points"] = lambda law=law: choose_points(law.scale, runs, weights, sizes)
        times = best(sides, repeats)
        print(f"{law.name:20}" + "".join(f"{times[name] * 1e3:22.1f}" for name in sides))


def timing(n: int = 20_000) -> None:
    """Spearman's correlation of the time of a single draw with |noise|."""
    from dpframe.mechanisms import DiscreteBox, DiscreteGaussian, DiscreteHull, DiscreteLaplace
    from dpframe.mechanisms.noise import noise

    print(f"\n{'single draws':24}{'correlation of time and |noise|':>34}")
    box = DiscreteBox.for_pure((1000, 1000), 1, Fraction(1))
    hull = DiscreteHull.around(DiscreteBox.for_pure((1000,) * 3, 1, Fraction(1)), ((0, 1, 2),))
    gaussian = DiscreteGaussian(Fraction(1000) ** 2)
    for law in (DiscreteLaplace(Fraction(1000)), gaussian, box, hull):
        sizes, times = np.empty(n), np.empty(n)
        for i in range(n):
            start = time.perf_counter_ns()
            drawn = noise(law.kernel_law, 1)
            times[i] = time.perf_counter_ns() - start
            sizes[i] = np.abs(drawn).max()
        ranks = [np.argsort(np.argsort(v)) for v in (sizes, times)]
        print(f"{law.name:24}{np.corrcoef(*ranks)[0, 1]:34.3f}")


def million_keys(repeats: int) -> None:
    """A count by a million public keys over ten million rows."""
    import polars as pl

    import dpframe as dp

    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"key": rng.integers(0, KEYS, ROWS)})
    keys = pl.Series("key", range(KEYS))
    private = dp.Session(epsilon=10**6).protect(frame, dp.Rows()).group_by("key", keys=keys)
    query = private.agg(dp.count())
    times = best(
        {
            "plain": lambda: frame.lazy().group_by("key").agg(pl.len()).collect(),
            "private": lambda: query.collect(epsilon=1),
        },
        repeats,
    )
    ratio = times["private"] / times["plain"]
    print(
        f"\ncount by {KEYS:,} keys over {ROWS:,} rows: plain {times['plain']:.3f} s, "
        f"private {times['private']:.3f} s, {ratio:.2f} times"
    )


def many_quantiles(repeats: int) -> None:
    """A median in each of 100,000 groups of about ten values."""
    import polars as pl

    import dpframe as dp

    rng = np.random.default_rng(1)
    rows, groups = ROWS // 10, KEYS // 10
    frame = pl.DataFrame(
        {
            "key": rng.integers(0, groups, rows),
            "x": rng.normal(size=rows),
            "n": rng.integers(0, 1_000, rows),
        }
    )
    keys = pl.Series("key", range(groups))
    private = dp.Session(epsilon=10**6).protect(frame, dp.Rows()).group_by("key", keys=keys)
    asked = {
        "floats of an interval": pl.col("x").dp_quantile(0.5, (-4, 4)),
        "integers of an interval": pl.col("n").dp_quantile(0.5, (0, 1_000)),
        "one of ten candidates": pl.col("n").dp_quantile(0.5, candidates=range(0, 1_000, 100)),
    }
    print(f"\n{f'median in {groups:,} groups of {rows:,} rows':46}{'plain s':>10}{'private s':>11}")
    for name, expression in asked.items():
        query = private.agg(expression)
        column = "x" if "floats" in name else "n"
        plain = frame.lazy().group_by("key").agg(pl.col(column).quantile(0.5))
        times = best(
            {"plain": plain.collect, "private": lambda q=query: q.collect(epsilon=1)}, repeats
        )
        print(f"{name:46}{times['plain']:10.3f}{times['private']:11.3f}")


def _report_opendp(repeats: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    made = {
        "Laplace": lambda s: dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=float(s)),
        "Gaussian": lambda s: dp.m.make_gaussian(space, dp.l2_distance(T="i64"), scale=float(s)),
    }
    found = {}
    for law, make in made.items():
        for scale in SCALES:
            noise = make(scale)
            for n in OPENDP_SIZES:
                zeros = [0] * n
                side = {"opendp": lambda noise=noise, zeros=zeros: noise(zeros)}
                found[f"{law} {scale} {n}"] = best(side, min(repeats, 3))["opendp"]
    print(json.dumps(found))


def main(repeats: int, opendp: str | None) -> None:
    """Print the tables."""
    theirs: dict[str, float] = {}
    if opendp is not None:
        command = [opendp, __file__, "--opendp", str(repeats)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        theirs = json.loads(done.stdout.splitlines()[-1])
    print(f"best of {repeats}; numpy {np.__version__}")
    draws(repeats, theirs)
    boxes(repeats)
    selections(repeats)
    timing()
    many_quantiles(repeats)
    million_keys(repeats)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--opendp"]:
        _report_opendp(int(sys.argv[2]))
    else:
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 5,
            sys.argv[2] if len(sys.argv) > 2 else None,
        )
