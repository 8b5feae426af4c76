"""Small made-up data with many rows per person: a taxi company's, a hospital's, a shop's.

They are drawn by hashes of row numbers, so that every run has the same. Each is even, so that a
person has about as many rows as any other, or skewed: lognormal, or with a heavy tail, so that a
few have most.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from statistics import NormalDist
from typing import Literal

import numpy as np
import polars as pl

Skew = Literal["even", "lognormal", "heavy"]
_WEIGHTS: dict[Skew, Callable[[float], float]] = {
    "even": lambda rank: 1.0,
    "lognormal": lambda rank: float(np.exp(1.2 * NormalDist().inv_cdf(rank))),
    "heavy": lambda rank: (1 - rank) ** (-1 / 1.4),
}
"""How many rows people have, relative to each other, by their rank from 0 to 1."""

PASSENGERS, TRIPS = 3_000, 24_000
PATIENTS, VISITS = 2_500, 10_000
CUSTOMERS, ORDERS = 3_000, 15_000
ZONES = ["Airport", "Centre", "Harbour", "North", "Old town", "South", "Station", "West"]
WARDS = ["cardiology", "children", "emergency", "surgery"]
_FINE = 2**40
PRODUCTS = [f"product {i}" for i in range(12)]


def _draw(seed: int, below: int) -> pl.Expr:
    """Numbers from 0 to less than `below`, by row number."""
    return (pl.col("row").hash(seed) % below).cast(pl.Int64)


def _rows(count: int) -> pl.DataFrame:
    return pl.DataFrame({"row": range(count)})


def _person(seed: int, people: int, skew: Skew) -> pl.Expr:
    """A person for each row."""
    if skew == "even":  # by turns
        return ((pl.col("row") * 7919 + _draw(seed, 2)) % people).cast(pl.Int64)
    weights = [_WEIGHTS[skew]((person + 0.5) / people) for person in range(people)]
    ends = pl.Series((np.cumsum(weights) / sum(weights) * _FINE).astype(np.int64))
    return _draw(seed, _FINE).map_batches(
        lambda drawn: ends.search_sorted(drawn, side="right").cast(pl.Int64), pl.Int64
    )


def trips(skew: Skew = "even") -> pl.DataFrame:
    """Rides of passengers in 2025: when, where from, what they cost, how they were paid."""
    zone = pl.min_horizontal(_draw(2, 8), _draw(3, 12))
    seconds = pl.duration(seconds=_draw(4, 364 * 86_400))
    fare = 5 + _draw(5, 900) / 20 + 10 * (zone == 0)
    paid = pl.when(_draw(6, 10) < 7).then(pl.lit("card")).otherwise(pl.lit("cash"))
    return (
        _rows(TRIPS)
        .select(
            passenger=_person(1, PASSENGERS, skew),
            pickup=pl.lit(datetime(2025, 1, 1)) + seconds,
            zone=zone.replace_strict(list(range(8)), ZONES, return_dtype=pl.String),
            fare=fare.cast(pl.Float64),
            tip=pl.when(_draw(7, 5) > 0).then(_draw(8, 100) / 10),
            distance=_draw(9, 300) / 10,
            payment=paid,
            night=_draw(10, 4) == 0,
        )
        .sort("pickup")
    )


def visits(skew: Skew = "even") -> pl.DataFrame:
    """Visits of patients to the wards of a hospital, some of them not over yet."""
    admitted = pl.lit(date(2024, 1, 1)) + pl.duration(days=_draw(3, 731))
    return (
        _rows(VISITS)
        .select(
            patient=pl.format("p{}", _person(1, PATIENTS, skew)),
            ward=_draw(2, 4).replace_strict(list(range(4)), WARDS, return_dtype=pl.Enum(WARDS)),
            admitted=admitted.cast(pl.Date),
            age=18 + _draw(4, 70),
            days=pl.when(_draw(5, 20) > 0).then(1 + pl.min_horizontal(_draw(6, 15), _draw(7, 15))),
            readmitted=_draw(8, 5) == 0,
        )
        .sort("admitted")
    )


def orders(skew: Skew = "even") -> pl.DataFrame:
    """Orders of customers in a shop."""
    return (
        _rows(ORDERS)
        .select(
            customer=_person(1, CUSTOMERS, skew),
            product=pl.min_horizontal(_draw(2, 12), _draw(3, 16)).replace_strict(
                list(range(12)), PRODUCTS, return_dtype=pl.String
            ),
            at=(pl.lit(date(2024, 1, 1)) + pl.duration(days=_draw(4, 731))).cast(pl.Date),
            amount=(1 + _draw(5, 4_000) / 20).cast(pl.Float64),
            items=1 + pl.min_horizontal(_draw(6, 9), _draw(7, 9)),
            online=_draw(8, 3) > 0,
        )
        .sort("at")
    )


def products() -> pl.DataFrame:
    """A public table: what the shop sells, and in which department."""
    return pl.DataFrame(
        {"product": PRODUCTS, "department": ["food", "home", "garden"] * 4, "price": range(12)}
    )
