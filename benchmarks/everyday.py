"""Everyday queries against the fastest plain way to get the same table.

    python benchmarks/everyday.py [ROWS] [REPEATS] [memory|parquet] [PART OF A NAME ...]

CPU time is the process's user and system time over all threads, of interleaved runs; the private
side plans, charges, runs and adds noise each time. The plain side is the fastest of the ways known
to us in Polars and NumPy to get the same table without privacy: the same clamps, the same bins,
sorted as ours. Printed are the least, the median and the most of REPEATS runs of either side, the
ratio of the least, and the aim: 2.0 for each query and 1.3 for their geometric mean. Where the
plain side takes less than 2 ms a ratio says nothing but what planning takes, so the aim is 20 ms
more than it takes, and the query is not in the mean. The machine's processor is named, since which
way is fastest depends on it.
"""

from __future__ import annotations

import datetime as dt
import math
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from purchases import CITIES, ROWS, SHOPS

import dpframe as dp

REGIONS = [f"region {i}" for i in range(12)]
MANY = 1_000_000
AIM, MEAN_AIM = 2.0, 1.3
SHORT, SHORT_AIM = 0.002, 0.020
"""If the plain side takes less than the first, the aim is the second more, both in seconds."""
FIRST = dt.date(2024, 1, 1)
MONTHS = pl.date_range(FIRST, dt.date(2025, 12, 1), "1mo", eager=True)
UNEQUAL = [0.0, 1.0, 2.5, 5.0, 10.0, 20.0, 50.0, 75.0, 100.0, 150.0, 250.0, 400.0, 600.0]
POINTS = [10.0 * i for i in range(61)]
AREAS = pl.DataFrame({"city": CITIES, "area": [REGIONS[i % 4] for i in range(len(CITIES))]})
Query = Callable[[dp.PrivateFrame], dp.PrivateQuery]
Plain = Callable[[pl.LazyFrame], object]
c = pl.col


@dataclass(frozen=True)
class Everyday:
    """One query, and the plain way."""

    name: str
    plain: Plain
    private: Query


def _prices(frame: pl.LazyFrame) -> np.ndarray:
    return frame.select("price").collect()["price"].to_numpy()


def _binned(frame: pl.LazyFrame, bins: int) -> np.ndarray:
    place = (_prices(frame) * (bins / 600)).astype(np.int32)
    return np.bincount(np.clip(place, 0, bins - 1), minlength=bins)


def _unequal(frame: pl.LazyFrame) -> object:
    beyond = ((c("price") >= edge).sum().alias(f"{edge}") for edge in UNEQUAL)
    return np.diff(frame.select(*beyond).collect().row(0))


def _cumulative(frame: pl.LazyFrame, bins: int) -> object:
    return _binned(frame, bins).cumsum()


def _by(*keys: str) -> Callable[[Sequence[pl.Expr]], Plain]:
    def made(aggregates: Sequence[pl.Expr]) -> Plain:
        return lambda frame: frame.group_by(*keys).agg(*aggregates).sort(*keys).collect()

    return made


_SPENT = c("spent").clip(0, 500)
_PRICE = c("price").clip(0, 500)
_AGE = c("age").clip(17, 90)
EIGHT = [
    pl.len(),
    _SPENT.sum(),
    _SPENT.mean().alias("b"),
    _PRICE.sum(),
    _PRICE.mean().alias("d"),
    _AGE.mean(),
    _AGE.var().alias("f"),
    (c("age") >= 65).sum().alias("g"),
]
EIGHT_PRIVATE = [
    dp.count(),
    dp.sum("spent", (0, 500)),
    dp.mean("spent", (0, 500)).alias("b"),
    dp.sum("price", (0, 500)),
    dp.mean("price", (0, 500)).alias("d"),
    dp.mean("age", (17, 90)),
    dp.var("age", (17, 90)).alias("f"),
    (c("age") >= 65).dp_sum().alias("g"),
]
_NET = (c("price") * 0.8 - c("spent")).abs() / (c("age") + 1)

SUITE = (
    Everyday(
        "count of all",
        lambda f: f.select(pl.len()).collect(),
        lambda f: f.dp_count(),
    ),
    Everyday(
        "filtered count",
        lambda f: f.filter(c("age") >= 40).select(pl.len()).collect(),
        lambda f: f.filter(c("age") >= 40).dp_count(),
    ),
    Everyday(
        "sum by 1,000 integers",
        _by("shop")([_SPENT.sum()]),
        lambda f: f.group_by("shop", keys=SHOPS).agg(dp.sum("spent", (0, 500))),
    ),
    Everyday(
        "sum of floats by 1,000 integers",
        _by("shop")([_PRICE.sum()]),
        lambda f: f.group_by("shop", keys=SHOPS).agg(dp.sum("price", (0, 500))),
    ),
    Everyday(
        "mean by 20 texts",
        _by("city")([_AGE.mean()]),
        lambda f: f.group_by("city", keys=CITIES).agg(dp.mean("age", (17, 90))),
    ),
    Everyday(
        "variance by 20 texts",
        _by("city")([_PRICE.var()]),
        lambda f: f.group_by("city", keys=CITIES).agg(dp.var("price", (0, 500))),
    ),
    Everyday(
        "count by two texts",
        _by("city", "region")([pl.len()]),
        lambda f: f.group_by("city", "region", keys={"city": CITIES, "region": REGIONS}).agg(
            dp.count()
        ),
    ),
    Everyday(
        "eight aggregates by 20 texts",
        _by("city")(EIGHT),
        lambda f: f.group_by("city", keys=CITIES).agg(*EIGHT_PRIVATE),
    ),
    Everyday(
        "sum by a million integers",
        _by("customer")([_SPENT.sum()]),
        lambda f: f.group_by("customer", keys=range(MANY)).agg(dp.sum("spent", (0, 500))),
    ),
    Everyday(
        "number of different integers",
        lambda f: f.select(c("customer").n_unique()).collect(),
        lambda f: f.agg(dp.n_unique("customer")),
    ),
    Everyday(
        "median of all",
        lambda f: f.select(c("price").median()).collect(),
        lambda f: f.agg(dp.median("price", (0, 600))),
    ),
    Everyday(
        "median of floats by 20 texts",
        _by("city")([c("price").median()]),
        lambda f: f.group_by("city", keys=CITIES).agg(dp.median("price", (0, 600))),
    ),
    Everyday(
        "nine deciles of floats",
        lambda f: f.select(
            *(c("price").quantile(q / 10).alias(f"q{q}") for q in range(1, 10))
        ).collect(),
        lambda f: f.agg(dp.quantile("price", [q / 10 for q in range(1, 10)], (0, 600))),
    ),
    Everyday(
        "quantile among 61 candidates",
        lambda f: f.select(c("price").quantile(0.9)).collect(),
        lambda f: f.agg(dp.quantile("price", 0.9, candidates=POINTS)),
    ),
    Everyday(
        "histogram of floats, 50 bins",
        lambda f: _binned(f, 50),
        lambda f: f.dp_histogram("price", bins=50, bounds=(0, 600)),
    ),
    Everyday(
        "histogram of floats, 5,000 bins",
        lambda f: _binned(f, 5_000),
        lambda f: f.dp_histogram("price", bins=5_000, bounds=(0, 600)),
    ),
    Everyday(
        "histogram of floats, 12 unequal bins",
        _unequal,
        lambda f: f.dp_histogram("price", bins=UNEQUAL),
    ),
    Everyday(
        "distribution function, 1,000 bins",
        lambda f: _cumulative(f, 1_000),
        lambda f: f.dp_cdf("price", bins=1_000, bounds=(0, 600)),
    ),
    Everyday(
        "count by month",
        lambda f: f.group_by(c("day").dt.truncate("1mo")).agg(pl.len()).sort("day").collect(),
        lambda f: f.group_by(c("day").dt.truncate("1mo"), keys=MONTHS).agg(dp.count()),
    ),
    Everyday(
        "mean by weekday",
        lambda f: f.group_by(c("day").dt.weekday()).agg(_SPENT.mean()).sort("day").collect(),
        lambda f: f.group_by(c("day").dt.weekday(), keys=range(1, 8)).agg(
            dp.mean("spent", (0, 500))
        ),
    ),
    Everyday(
        "count of a text that contains another",
        lambda f: f.filter(c("city").str.contains("y 1", literal=True)).select(pl.len()).collect(),
        lambda f: f.filter(c("city").str.contains("y 1", literal=True)).dp_count(),
    ),
    Everyday(
        "mean of a chain of expressions",
        lambda f: f.select(_NET.clip(0, 20).mean()).collect(),
        lambda f: f.agg(_NET.dp_mean((0, 20))),
    ),
    Everyday(
        "sum by bands of when and then",
        lambda f: (
            f.group_by(
                pl.when(c("age") < 30)
                .then(pl.lit("young"))
                .when(c("age") < 60)
                .then(pl.lit("middle"))
                .otherwise(pl.lit("old"))
                .alias("band")
            )
            .agg(_SPENT.sum())
            .sort("band")
            .collect()
        ),
        lambda f: f.group_by(
            band=pl.when(c("age") < 30)
            .then(pl.lit("young"))
            .when(c("age") < 60)
            .then(pl.lit("middle"))
            .otherwise(pl.lit("old")),
            keys=["middle", "old", "young"],
        ).agg(dp.sum("spent", (0, 500))),
    ),
    Everyday(
        "mean by a column of a public table",
        lambda f: (
            f.join(AREAS.lazy(), on="city", how="left")
            .group_by("area")
            .agg(_SPENT.mean())
            .sort("area")
            .collect()
        ),
        lambda f: (
            f.join(AREAS, on="city", how="left")
            .group_by("area", keys=REGIONS[:4])
            .agg(dp.mean("spent", (0, 500)))
        ),
    ),
    Everyday(
        "city with the largest total",
        lambda f: f.group_by("city").agg(_SPENT.sum()).top_k(1, by="spent").collect(),
        lambda f: f.agg(c("city").dp_argmax(score=c("spent").dp_sum((0, 500)), candidates=CITIES)),
    ),
)


def everyday(rows: int) -> pl.DataFrame:
    """Random rows; which ones does not matter."""
    draw = np.random.default_rng(0)

    def texts(names: list[str]) -> pl.Series:
        codes = pl.Series(draw.integers(0, len(names), rows))
        return codes.replace_strict(range(len(names)), names, return_dtype=pl.String)

    return pl.DataFrame(
        {
            "age": draw.integers(17, 91, rows),
            "shop": draw.integers(0, len(SHOPS), rows),
            "customer": draw.integers(0, MANY, rows),
            "spent": draw.integers(0, 600, rows),
            "price": draw.uniform(0, 600, rows),
            "city": texts(CITIES),
            "region": texts(REGIONS),
            "day": np.datetime64(FIRST) + draw.integers(0, 731, rows),
        }
    ).with_columns(c("day").cast(pl.Date))


def measured(work: Sequence[Callable[[], object]], repeats: int) -> list[list[float]]:
    """CPU seconds of all threads, of interleaved runs, sorted; the first is not counted."""
    runs: list[list[float]] = [[] for _ in work]
    for number in range(repeats + 1):
        for one, times in zip(work, runs, strict=True):
            start = time.process_time()
            one()
            if number:
                times.append(time.process_time() - start)
    return [sorted(times) for times in runs]


def processor() -> str:
    """The name of the processor, with its family and model if Linux has them."""
    told = Path("/proc/cpuinfo")
    if not told.exists():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in told.read_text().splitlines())
    found = {name.strip(): value.strip() for name, _, value in lines}
    numbers = [f"{name} {found[name]}" for name in ("cpu family", "model") if name in found]
    return ", ".join([found.get("model name", platform.machine()), *numbers])


@dataclass(frozen=True)
class Measured:
    """CPU seconds of both sides, sorted."""

    name: str
    plain: list[float]
    private: list[float]

    @property
    def ratio(self) -> float | None:
        """How much more the private side takes; None where the plain one takes next to nothing."""
        return self.private[0] / self.plain[0] if self.plain[0] >= SHORT else None

    @property
    def is_met(self) -> bool:
        """Whether the aim is."""
        if self.ratio is None:
            return self.private[0] <= self.plain[0] + SHORT_AIM
        return self.ratio <= AIM

    def line(self) -> str:
        """A row of the table."""
        figures = "   ".join(
            "".join(f"{t:7.3f}" for t in (each[0], statistics.median(each), each[-1]))
            for each in (self.plain, self.private)
        )
        ratio = f"{'':>8}" if self.ratio is None else f"{self.ratio:8.2f}"
        aim = f"{1000 * SHORT_AIM:+.0f} ms" if self.ratio is None else f"{AIM:.1f}"
        return f"{self.name:40}{figures}{ratio}{aim:>8}{'' if self.is_met else '  missed'}"


def main(rows: int, repeats: int, kind: str, names: Sequence[str]) -> None:
    """Print the table."""
    print(f"{processor()}; Polars {pl.__version__}, NumPy {np.__version__}")
    print(f"{rows:,} rows, {kind}; CPU seconds: least, median, most of {repeats}")
    print(f"{'query':40}{'plain':>7}{'':14}{'private':>10}{'':14}{'ratio':>8}{'aim':>8}")
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        frame = everyday(rows).lazy()
        if kind == "parquet":
            file = Path(folder) / "rows.parquet"
            frame.sink_parquet(file)
            frame = pl.scan_parquet(file)
        people = dp.Session(epsilon=1_000_000).protect(frame, unit=dp.Rows())
        for one in (one for one in SUITE if not names or any(n in one.name for n in names)):
            work = (
                lambda one=one: one.plain(frame),
                lambda one=one: one.private(people).collect(epsilon=1),
            )
            found.append(Measured(one.name, *measured(work, repeats)))
            print(found[-1].line(), flush=True)
    ratios = [one.ratio for one in found if one.ratio is not None]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
        print(f"geometric mean of {len(ratios)} ratios {mean:.2f}, aim {MEAN_AIM}")
    print(f"{sum(one.is_met for one in found)} of {len(found)} meet their aim")


if __name__ == "__main__":
    main(
        int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS,
        int(sys.argv[2]) if len(sys.argv) > 2 else 5,
        sys.argv[3] if len(sys.argv) > 3 else "memory",
        sys.argv[4:],
    )
