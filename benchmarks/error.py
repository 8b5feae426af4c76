"""Every kind of work whose error a whole plan lowers, in one table: before, now and elsewhere.

    python benchmarks/error.py [OPENDP_PYTHON] [ADULT.parquet] [RUNS]

"before" is the root mean square error with separate noise for each number at its share. "now" is
the error of what dpframe releases. "best" is the gain of the first prototypes, measured on census
data, and "reached" the share of that gain; at 1.00 all of it is reached. Figures from the
distributions that plans state are exact and marked =. Figures of means and variances are from
100,000 samples of their noise and marked ~. The others are from RUNS releases. OPENDP_PYTHON is the
interpreter of an environment with OpenDP. Its figures are for its own noise at the same outputs and
spend, and for tables that it fits with mbi. Figures of Tumult Analytics are in docs/benchmarks.md:
its sessions need Java.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from error_groups import found_groups
from error_joint import LIMITS, SPENDS, apart, cases, deviations, people, session
from error_noise import by_bernstein_sums, errors_of_moments
from error_peers import OpenDP
from error_quantiles import DECILES, _off
from error_rolled import OUTPUTS, deviations_by_set, rolled_up
from error_topk import SIZES, by_floats, released
from error_workloads import ADULT, gains, marginals, ordered, overall

import dpframe as dp
from dpframe.workloads import best_tables

COLUMNS = ["workclass", "education", "marital_status", "occupation", "relationship", "sex"]
BEST: dict[tuple[str, str], dict[str, float]] = {
    ("count, sum and mean by country", "epsilon 1"): {
        "n": 1.42,
        "overtime": 2.53,
        "mean_age": 1.7,
    },
    ("mean", "epsilon 1"): {"m": 1.4},
    ("mean and count", "epsilon 1"): {"m": 1.6},
    ("mean and variance", "epsilon 1"): {"m": 1.7, "v": 1.7},
}
"""The gains of the prototypes, by work and output."""
_WIDTHS = {"overtime": 60.0}


@dataclass(frozen=True, slots=True)
class Row:
    """One line; errors are None where only their ratio is known."""

    work: str
    spend: str
    before: float | None
    now: float | None
    gain: float
    best: float | None
    how: str = " "
    peer: float | None = None

    def shown(self) -> str:
        before, now, peer = (
            "" if value is None else f"{value:.4g}" for value in (self.before, self.now, self.peer)
        )
        best = "" if self.best is None else f"{self.best:.2f}"
        reached = "" if self.best is None else f"{self.gain / self.best:.2f}"
        return (
            f"{self.work:54}{self.spend:13}{before:>9}{now:>9}{self.gain:8.2f}{self.how:1}"
            f"{best:>7}{reached:>9}{peer:>9}"
        )


def joint(peer: OpenDP) -> Iterator[Row]:
    """Outputs of one group with joint noise."""
    data = people()
    for label, spend in SPENDS.items():
        frame = session(spend).protect(data, unit=dp.Rows(), bounds={}).drop_nulls()
        for work, query, _ in cases(frame, data):
            with apart():
                before = _errors(query.plan(**spend), data)
            now = _errors(query.plan(**spend), data)
            size = int(work.split()[0]) if work[0].isdigit() else None
            for output in ["c0"] if size else list(now):
                best = BEST.get((work, label), {}).get(output)
                together = size or (3 if "country" in work else 0)
                width = _WIDTHS.get(output, 1.0)
                yield Row(
                    work if size else f"{work}: {output}",
                    label,
                    before[output],
                    now[output],
                    before[output] / now[output],
                    LIMITS[label][size] if size else best,
                    "~" if output.startswith(("m", "v")) else "=",
                    None if output.startswith("m") else peer.deviation(label, together, width),
                )


def _errors(plan: dp.Plan, data: pl.DataFrame) -> dict[str, float]:
    """The error of each output, by the distributions that the plan states."""
    parts = data.partition_by("country") if plan.grouping else [data]
    moments = errors_of_moments(plan, [part["age"].to_numpy().astype(float) for part in parts])
    known = deviations(plan) | moments
    return {output.name: known[output.name] for output in plan.outputs}


def bernstein() -> Iterator[Row]:
    """Means and variances by the mechanism of the prototypes, in place of joint noise."""
    data = people()["age"].to_numpy().astype(float)
    frame = session(SPENDS["epsilon 1"]).protect(people(), unit=dp.Rows(), bounds={}).drop_nulls()
    for work, query, _ in cases(frame, people()):
        if work.startswith("mean"):
            now = _errors(query.plan(epsilon=1), people())
            sums = by_bernstein_sums(1.0, data, 2 if "v" in now else 1)
            for output, error in zip(("m", "v"), sums, strict=False):
                if output in now:
                    gain = error / now[output]
                    what = f"{work}: {output}, against Bernstein sums"
                    yield Row(what, "epsilon 1", error, now[output], gain, None, "~")


def tables() -> Iterator[Row]:
    """Tables and distribution functions of one frame: ratios of exact variances."""
    roll_up = marginals((42, 2), (2, 1, 0))
    finest = gains(best_tables(marginals((42, 2), (2, 1, 0), True), 1))[0]
    yield Row("roll-up of 42 x 2", "rho", None, None, overall(best_tables(roll_up, 1)), 1.24, "=")
    yield Row("the same, where cells count: finest", "rho", None, None, finest, 1.8, "=")
    pure = zip(gains(best_tables(roll_up, 2)), (2.0, 1.4, 2.0, 1.4), strict=True)
    for place, (gain, best) in zip(("finest", "first", "second", "total"), pure, strict=True):
        yield Row(f"the same: {place}", "epsilon", None, None, gain, best, "=")
    pairs = marginals(ADULT, (2,), True)
    yield Row(
        "all pairs of six columns", "rho", None, None, overall(best_tables(pairs, 1)), 1.3, "="
    )
    for most, best in ((2, 1.30), (3, 1.44), (6, 1.61)):
        found = overall(best_tables(marginals(ADULT, tuple(range(most + 1))), 1))
        yield Row(f"tables of up to {most} of six columns", "rho", None, None, found, best, "=")
    for size, rho, epsilon in (
        (101, 2.7, 1.5), (1000, 6.3, 2.9), (10_000, 15.7, 6.3), (10**6, 110, 36),
    ):  # fmt: skip
        for spend, degree, best in (("rho", 1, rho), ("epsilon", 2, epsilon)):
            found = overall(best_tables(ordered(size, "prefixes"), degree))  # type: ignore[arg-type]
            what = f"distribution function of {size:,} bins"
            yield Row(what, spend, None, None, found, best, "=")
    for size, rho, epsilon in ((101, 2.0, 1.2), (1000, 4.3, 2.1), (10_000, 10.3, 4.3)):
        for spend, degree, best in (("rho", 1, rho), ("epsilon", 2, epsilon)):
            found = overall(best_tables(ordered(size, "ranges"), degree))  # type: ignore[arg-type]
            yield Row(f"all ranges of {size:,} bins", spend, None, None, found, best, "=")
    days = overall(best_tables(ordered(365, "prefixes"), 1))
    yield Row("365 running totals at once, than summed days", "rho", None, None, days, 4.9, "=")
    daily = days * math.sqrt(365 / (366 / 2))
    yield Row("the same, than a query on each day", "rho", None, None, daily, 6.9, "=")


def rolled() -> Iterator[Row]:
    """Several outputs of a roll-up with joint noise, by the distributions of plans."""
    for label, spend in SPENDS.items():
        query = rolled_up(spend, OUTPUTS["n, sum and mean"])
        with apart():
            before = deviations_by_set(query.plan(**spend))
        now = deviations_by_set(query.plan(**spend))
        for (output, of), found in now.items():
            work = f"count, sum and mean by a roll-up: {output} {of}"
            yield Row(work, label, before[output, of], found, before[output, of] / found, None, "=")


def pairs(path: str | None, peer: OpenDP, runs: int) -> Iterator[Row]:
    """All tables of two of six columns of the Adult data, released: over all cells."""
    if path is None:
        return
    data = pl.read_parquet(path)
    data = data.rename({name: name.replace("-", "_") for name in data.columns}).select(COLUMNS)
    data = data.with_columns(pl.all().cast(pl.String).fill_null("?"))
    keys: dict[str, Any] = {name: data[name].unique().sort().to_list() for name in COLUMNS}
    frame = dp.Session(rho=10**9).protect(data, unit=dp.Rows())
    groups = frame.group_by(dp.grouping_sets(list(itertools.combinations(COLUMNS, 2))), keys=keys)
    exact = groups.agg(n=dp.count()).collect(rho=10**8)
    before = math.sqrt(15 / (2 * 0.02436))
    fitted = peer.tables(path, COLUMNS, 2)
    for held, best in ((False, 1.3), (True, 1.45)):
        query = groups.agg(n=dp.count(nonnegative=held))
        found = [query.collect(rho="0.02436")["n"] - exact["n"] for _ in range(runs)]
        now = math.sqrt(np.mean([float((off**2).mean()) for off in found]))  # type: ignore[arg-type]
        work = f"all pairs of six columns{', nonnegative=True' if held else ''}, released"
        yield Row(work, "rho 0.02436", before, now, before / now, best, " ", fitted)


def deciles(runs: int) -> Iterator[Row]:
    """Nine deciles of ages, mean distance in ranks; the least gains of the prototypes."""
    data = people().select("age")
    ordered_ages = data["age"].sort().to_numpy()
    for label, least in (("epsilon 1", 2.4), ("rho 0.02436", 1.3)):
        spend = SPENDS[label]
        frame = dp.Session(**spend).protect(data.clear(), dp.Rows())
        found = []
        for mechanism in ("exponential", "auto"):
            asked = [
                dp.quantile("age", q, (0, 100), mechanism=mechanism).alias(f"q{i}")  # type: ignore[arg-type]
                for i, q in enumerate(DECILES)
            ]
            results = frame.agg(*asked).simulate(data, runs=runs, **spend).results
            wide = results.pivot("output", index="run", values="noisy").drop("run")
            found.append(_off(ordered_ages, wide.select(sorted(wide.columns)).to_numpy())[0])
        before, now = found
        yield Row("nine deciles of 2,000 ages, in ranks", label, before, now, before / now, least)


def top(runs: int) -> Iterator[Row]:
    """The ten largest of 42 groups, rows lost by wrong choice."""
    frame = pl.LazyFrame({"group": np.repeat(np.arange(len(SIZES)), SIZES)})
    rng = np.random.default_rng(4)
    for epsilon in ("1", "0.1"):
        amount = {"epsilon": epsilon}
        people_of = dp.Session(epsilon=10**6).protect(frame, unit=dp.Rows())
        groups = people_of.group_by("group", keys=range(len(SIZES)))
        before, now = (
            released(groups, amount, 10, runs, by) for by in ("permute_and_flip", "auto")
        )
        best = before / max(by_floats(amount, 10, rng), 0.1)
        gain = before / max(now, 0.1)
        yield Row(
            "ten largest of 42 groups, rows lost", f"epsilon {epsilon}", before, now, gain, best
        )


def groups() -> Iterator[Row]:
    """The number of groups that appear without listed keys, for people in many groups."""
    before, now = found_groups()
    yield Row(
        "groups found, of people in 1 to 300", "(1, 1e-6)", before, now, now / before, 387 / 256
    )


def shrunk(path: str | None, runs: int) -> Iterator[Row]:
    """Means of many groups, moved towards their common mean or not: of made-up groups, and of those
    of the Adult data that the prototypes took.
    """
    rng = np.random.default_rng(9)
    means, places = rng.normal(38.0, 4.0, len(SIZES)), np.repeat(np.arange(len(SIZES)), SIZES)
    ages = rng.normal(means[places], 12.0).clip(17, 90).round().astype(int)
    made = pl.DataFrame({"group": places.astype(str), "x": ages})
    yield _shrunk("means of 42 made-up groups, shrink=True", made, (17, 90), "1", None, runs)
    if path is None:
        return
    adult = pl.read_parquet(path)
    adult = adult.rename({name: name.replace("-", "_") for name in adult.columns})
    text = {c: pl.col(c).cast(pl.String).fill_null("?") for c in adult.columns}
    country, education = text["native_country"], text["education"]
    job = pl.concat_str([education, text["occupation"]], separator="|")
    for name, by, column, bounds, epsilon, best in (
        ("age by country", country, "age", (17, 90), "1", 2.41),
        ("hours by education", education, "hours_per_week", (0, 100), "0.1", 3.93),
        ("hours by education and occupation", job, "hours_per_week", (0, 100), "1", 2.39),
    ):
        data = adult.select(group=by, x=pl.col(column)).drop_nulls()
        yield _shrunk(f"mean {name}, shrink=True", data, bounds, epsilon, best, runs)


def _shrunk(
    name: str,
    data: pl.DataFrame,
    bounds: tuple[int, int],
    epsilon: str,
    best: float | None,
    runs: int,
) -> Row:
    exact = data.group_by("group").agg(pl.col("x").mean().alias("exact"))
    people_of = dp.Session(epsilon=10**6).protect(data, unit=dp.Rows()).drop_nulls()
    groups = people_of.group_by("group", keys=exact["group"].sort().to_list())

    def error(shrink: bool) -> float:
        query = groups.dp_mean("x", bounds, shrink=shrink)
        runs_of = [query.collect(epsilon=epsilon) for _ in range(runs)]
        found = pl.concat(runs_of).join(exact, on="group")
        off = (found["x"].fill_null(sum(bounds) / 2) - found["exact"]).to_numpy()
        return float(np.sqrt(np.mean(off**2)))

    with apart():
        before = error(shrink=False)
    now = error(shrink=True)
    return Row(name, f"epsilon {epsilon}", before, now, before / now, best)


def from_zero_up(runs: int) -> Iterator[Row]:
    """A roll-up of 300 rows by 42 x 2 groups: numbers below 0 set to 0, and all sets moved."""
    rng = np.random.default_rng(1)
    shares = 0.8 ** np.arange(42)
    data = pl.DataFrame(
        {"a": rng.choice(42, 300, p=shares / shares.sum()), "b": rng.integers(0, 2, 300)}
    )
    groups = dp.Session(epsilon=10**9).protect(data, unit=dp.Rows())
    by_sets: Any = groups.group_by(dp.rollup("a", "b"), keys={"a": range(42), "b": [0, 1]})
    exact = by_sets.agg(n=dp.count()).collect(epsilon=10**8)
    squares: dict[tuple[int, bool], list[float]] = {}
    for held in (False, True):
        for _ in range(runs):
            found = by_sets.agg(n=dp.count(nonnegative=held)).collect(epsilon="0.3")
            off = found.select("grouping", off=(found["n"].clip(0) - exact["n"]) ** 2)
            for bits, mean in off.group_by("grouping").agg(pl.col("off").mean()).iter_rows():
                squares.setdefault((bits, held), []).append(mean)
    for bits, name in ((0, "finest"), (1, "by the first column"), (3, "total")):
        before, now = (math.sqrt(np.mean(squares[bits, held])) for held in (False, True))
        work = f"sparse roll-up, nonnegative=True: {name}"
        yield Row(work, "epsilon 0.3", before, now, before / now, None)


def main(python: str | None, path: str | None, runs: int) -> None:
    """Print the table."""
    peer = OpenDP(python)
    print(f"root mean square errors; {runs} releases each where not by law (= or ~)")
    print(
        f"{'work':54}{'spend':13}{'before':>9}{'now':>9}{'gain':>8} {'best':>7}{'reached':>9}"
        f"{'OpenDP':>9}"
    )
    parts = (
        joint(peer),
        bernstein(),
        tables(),
        rolled(),
        pairs(path, peer, 5),
        deciles(runs),
        top(runs),
        groups(),
        shrunk(path, max(20, runs // 3)),
        from_zero_up(max(20, runs // 3)),
    )
    for part in parts:
        for row in part:
            print(row.shown(), flush=True)
    if python is None:
        print("OpenDP: not installed; name the Python of an environment that has it")


if __name__ == "__main__":
    numbers = [a for a in sys.argv[1:] if a.isdigit()]
    tables_of = [a for a in sys.argv[1:] if a.endswith(".parquet")]
    pythons = [a for a in sys.argv[1:] if a not in numbers and a not in tables_of]
    main(
        pythons[0] if pythons else None,
        tables_of[0] if tables_of else None,
        int(numbers[0]) if numbers else 200,
    )
