"""Running totals on each of 365 days: the error of a stream, of a job a day, and of daily counts
that are added up, at one cost for the whole year.

    python benchmarks/stream.py

Made-up signups, a few hundred a day; one person has one row. Errors are root mean squares over days
and years, of totals and of single days, compared with `Stream.accuracy` and the formula of
the square root factorisation. A year of each is run several times.
"""

from __future__ import annotations

import datetime as dt
import math
import time

import numpy as np
import polars as pl

import dpframe as dp

DAYS, YEARS = 365, 100
START = dt.date(2027, 1, 1)
SPENDS = ({"rho": "0.02436"}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"})


def signups() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    each = rng.poisson(300 + 100 * np.sin(np.arange(DAYS) / 58))
    first = np.datetime64(START)
    return pl.DataFrame({"day": first + np.repeat(np.arange(DAYS), each)}).cast(pl.Date)


def of_stream(data: pl.DataFrame, spend: dict[str, object]) -> tuple[np.ndarray, np.ndarray, float]:
    """Errors of totals and of days in many years; each year is a key with its own noise."""
    many = data.select("day").join(pl.DataFrame({"year": range(YEARS)}), how="cross")
    session = dp.Session(**spend)
    frame = session.protect(many, unit=dp.Rows())
    query = frame.group_by("year", keys=range(YEARS)).agg(dp.count().alias("n"))
    stream = session.stream("year", query, by="day", start=START, periods=DAYS, **spend)
    begun = time.perf_counter()
    stream.release(START + dt.timedelta(days=DAYS - 1))
    took = time.perf_counter() - begun
    days = [stream.release(START + dt.timedelta(days=n)) for n in range(DAYS)]
    each = np.stack([found["n"].to_numpy() for found in days])
    totals = np.stack([found["n_total"].to_numpy() for found in days])
    exact = data["day"].value_counts().sort("day")["count"].to_numpy().astype(np.int64)
    stated = stream.accuracy(START + dt.timedelta(days=DAYS - 1))["n_total"]
    print(f"  {'':42s} drawn in {took:.1f} s; 95% of the last total: within {stated:.0f}")
    return totals - np.cumsum(exact)[:, None], each - exact[:, None], stated


def deviation(spend: dict[str, object], share: int) -> float:
    """The standard deviation of a count at a part of the spend."""
    session = dp.Session(**spend)
    query = session.protect(pl.LazyFrame(schema={"day": pl.Date}), unit=dp.Rows()).dp_count()
    measure = session.budget
    if isinstance(measure, dp.ApproxDP):  # as many of rho as the whole implies
        whole = dp.Session(**spend, composition="zcdp").remaining
        query = (
            dp.Session(rho=whole.rho)
            .protect(pl.LazyFrame(schema={"day": pl.Date}), unit=dp.Rows())
            .dp_count()
        )
        (release,) = query.plan(rho=whole.rho / share).releases
    else:
        name = "rho" if isinstance(measure, dp.ZCDP) else "epsilon"
        amount = measure.rho if isinstance(measure, dp.ZCDP) else measure.epsilon
        (release,) = query.plan(**{name: amount / share}).releases
    return math.sqrt(release.law.variance())


def root(values: np.ndarray) -> float:
    return math.sqrt(np.mean(np.square(values, dtype=np.float64)))


def main() -> None:
    data = signups()
    nights = np.arange(1, DAYS + 1)
    for spend in SPENDS:
        print(", ".join(f"{name} {amount}" for name, amount in spend.items()))
        totals, days, _ = of_stream(data, dict(spend))
        daily, nightly = deviation(dict(spend), 1), deviation(dict(spend), DAYS)
        added = daily * math.sqrt(nights.mean())
        print(f"  {'':42s} {'totals':>8s} {'days':>8s}")
        print(f"  {'a stream':42s} {root(totals):8.2f} {root(days):8.2f}")
        print(f"  {'daily counts of disjoint parts, added up':42s} {added:8.2f} {daily:8.2f}")
        each = math.sqrt(2) * nightly
        print(f"  {'the total again each day, a job a day':42s} {nightly:8.2f} {each:8.2f}")
        print(f"  {'a stream against a job a day':42s} {root(totals) / nightly:8.3f}")
        print(f"  {'a stream against daily counts':42s} {root(totals) / added:8.3f}")
        if "epsilon" not in spend:
            k = np.arange(1, DAYS)
            squares = np.cumsum(np.cumprod(np.r_[1.0, (2 * k - 1) / (2 * k)]) ** 2)
            sigma = 1 / math.sqrt(2 * float(spend["rho"]))
            formula = sigma * math.sqrt(np.mean(squares * squares[-1]))
            print(f"  {'against the formula':42s} {root(totals) / formula:8.3f}")


if __name__ == "__main__":
    main()
