"""The tables of the tasks: web logs, a clinic, a payroll, a shop, sensors and a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "logs": "user_id",
        "accounts": "user_id",
        "patients": "patient_id",
        "visits": "patient_id",
        "payroll": "employee_id",
        "orders": "customer_id",
        "items": "customer_id",
        "readings": "device_id",
        "survey": "Rows",
    }
)
"""The column that identifies people, or ``Rows``; a table without one is public."""


def _nulls(rng: np.random.Generator, values: Sequence[Any], share: float) -> list[Any]:
    """Values, a share of them missing."""
    return [
        None if gone else v for v, gone in zip(values, rng.random(len(values)) < share, strict=True)
    ]


def _each(rng: np.random.Generator, people: int, mean: float, shape: float = 4.0) -> Any:
    """The owner of each row: people have 1 and a gamma-Poisson number of rows more."""
    rows = 1 + rng.poisson(rng.gamma(shape, (mean - 1) / shape, people))
    return np.repeat(np.arange(1, people + 1), rows)


def tables() -> dict[str, pl.DataFrame]:
    """Every table by its name."""
    rng = np.random.default_rng(7)

    # web logs and accounts
    users = 900
    start = datetime(2025, 3, 1)
    who = _each(rng, users, 8)
    n = len(who)
    home = rng.choice(
        ["NO", "SE", "DK", "DE", "GB", "US"], users, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]
    )
    paths = [
        "/",
        "/search",
        "/product",
        "/cart",
        "/checkout",
        "/login",
        "/account",
        "/help",
        "/about",
        "/api/items",
    ]
    weights = np.array([25, 18, 20, 10, 6, 8, 5, 4, 2, 2]) / 100
    seconds = rng.integers(0, 31 * 86400, n)
    logs = pl.DataFrame(
        {
            "user_id": who,
            "at": [start + timedelta(seconds=int(s)) for s in seconds],
            "path": rng.choice(paths, n, p=weights),
            "status": rng.choice([200, 301, 404, 500, 503], n, p=[0.86, 0.04, 0.05, 0.03, 0.02]),
            "ms": _nulls(rng, rng.lognormal(5, 0.8, n).round(1).tolist(), 0.03),
            "bytes": rng.gamma(2, 20_000, n).astype(int),
            "device": _nulls(
                rng,
                rng.choice(["mobile", "desktop", "tablet"], n, p=[0.55, 0.37, 0.08]).tolist(),
                0.01,
            ),
            "country": home[who - 1],
        }
    ).with_columns(pl.col("at").dt.replace_time_zone("UTC"))
    arm = rng.choice(["A", "B"], 2400)
    converted = rng.random(2400) < np.where(arm == "B", 0.19, 0.13)
    accounts = pl.DataFrame(
        {
            "user_id": np.arange(1, 2401),
            "plan": rng.choice(["free", "basic", "pro"], 2400, p=[0.6, 0.25, 0.15]),
            "signup": [
                date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 366, 2400)
            ],
            "arm": arm,
            "converted": converted,
            "revenue": np.where(converted, rng.gamma(3, 15, 2400), 0).round(2),
        }
    )

    # a clinic
    m = 2000
    born = [date(1935, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 75 * 365, m)]
    height = rng.normal(171, 9, m).round(0)
    weight = (height - 100 + rng.normal(2, 12, m)).clip(40, 170).round(1)
    patients = pl.DataFrame(
        {
            "patient_id": np.arange(1, m + 1),
            "birth_date": born,
            "sex": rng.choice(["F", "M"], m, p=[0.54, 0.46]),
            "smoker": _nulls(rng, (rng.random(m) < 0.22).tolist(), 0.05),
            "height_cm": _nulls(rng, height.tolist(), 0.02),
            "weight_kg": _nulls(rng, weight.tolist(), 0.02),
            "sbp": _nulls(rng, (100 + 0.4 * weight + rng.normal(0, 12, m)).round(0).tolist(), 0.04),
        }
    )
    who = _each(rng, m, 3)
    n = len(who)
    visits = pl.DataFrame(
        {
            "patient_id": who,
            "date": [date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 366, n)],
            "department": rng.choice(
                ["cardiology", "orthopedics", "general", "pediatrics", "eye"],
                n,
                p=[0.15, 0.2, 0.4, 0.15, 0.1],
            ),
            "diagnosis": _nulls(
                rng, rng.choice(["I10", "E11", "J06", "M54", "Z00"], n).tolist(), 0.04
            ),
            "cost": rng.gamma(3, 80, n).round(2),
            "minutes": _nulls(rng, rng.gamma(6, 4, n).round(0).astype(int).tolist(), 0.03),
            "no_show": rng.random(n) < 0.09,
        }
    )

    # payroll
    k = 3000
    gender = rng.choice(["female", "male"], k, p=[0.47, 0.53])
    dept = rng.choice(
        ["Sales", "Engineering", "Support", "Finance", "HR"], k, p=[0.3, 0.35, 0.2, 0.1, 0.05]
    )
    base = np.select([dept == "Engineering", dept == "Finance"], [72_000, 64_000], 50_000)
    payroll = pl.DataFrame(
        {
            "employee_id": np.arange(10_001, 10_001 + k),
            "dept": dept,
            "gender": gender,
            "salary": (
                base * rng.lognormal(0, 0.25, k) * np.where(gender == "male", 1.05, 1)
            ).round(0),
            "bonus": _nulls(rng, rng.gamma(2, 1500, k).round(0).tolist(), 0.2),
            "hired": [
                date(2010, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 15 * 365, k)
            ],
        }
    )

    # an online shop
    customers = 1200
    who = _each(rng, customers, 4)
    n = len(who)
    cents = (rng.gamma(2.5, 2200, n)).astype(int)
    orders = pl.DataFrame(
        {
            "order_id": np.arange(1, n + 1),
            "customer_id": who,
            "ordered_at": [
                datetime(2024, 1, 1) + timedelta(seconds=int(s))
                for s in rng.integers(0, 366 * 86400, n)
            ],
            "channel": rng.choice(["web", "app", "store"], n, p=[0.5, 0.35, 0.15]),
            "status": rng.choice(["paid", "returned", "cancelled"], n, p=[0.88, 0.08, 0.04]),
            "shipping": _nulls(rng, rng.choice([0.0, 4.9, 7.9, 12.5], n).tolist(), 0.02),
            "total": cents / 100,
        }
    ).with_columns(pl.col("total").cast(pl.Decimal(10, 2)))
    products = pl.DataFrame(
        {
            "product_id": np.arange(1, 41),
            "name": [
                f"{kind} {i}" for kind in ["lamp", "chair", "mug", "rug"] for i in range(1, 11)
            ],
            "category": [
                c for c in ["light", "furniture", "kitchen", "textile"] for _ in range(10)
            ],
            "list_price": rng.gamma(3, 12, 40).round(2),
        }
    )
    count = 1 + rng.poisson(0.8, n)
    order = np.repeat(np.arange(n), count)
    popular = 1 / (np.arange(40) + 4.0)
    chosen = rng.choice(40, len(order), p=popular / popular.sum())
    items = pl.DataFrame(
        {
            "order_id": order + 1,
            "customer_id": who[order],
            "product_id": chosen + 1,
            "quantity": 1 + rng.poisson(0.5, len(order)),
            "price": products["list_price"].to_numpy()[chosen],
        }
    )

    # sensors
    devices = 400
    who = _each(rng, devices, 15, shape=10)
    n = len(who)
    site = rng.choice(["north", "south", "harbour"], devices)
    readings = pl.DataFrame(
        {
            "device_id": [f"d{i:04d}" for i in who],
            "at": [
                datetime(2025, 6, 1) + timedelta(minutes=int(s))
                for s in rng.integers(0, 14 * 1440, n)
            ],
            "site": site[who - 1],
            "firmware": rng.choice(["1.9", "2.0", "2.1"], devices)[who - 1],
            "temperature": _nulls(rng, (22 + 6 * rng.standard_normal(n)).round(2).tolist(), 0.03),
            "humidity": rng.beta(5, 4, n).round(3) * 100,
            "battery": rng.integers(5, 101, n),
        }
    )

    # a survey
    s = 4000
    survey = pl.DataFrame(
        {
            "region": rng.choice(["North", "South", "East", "West"], s),
            "age_group": rng.choice(["18-34", "35-54", "55+"], s, p=[0.3, 0.4, 0.3]),
            "satisfaction": _nulls(
                rng, rng.choice([1, 2, 3, 4, 5], s, p=[0.05, 0.1, 0.25, 0.4, 0.2]).tolist(), 0.05
            ),
            "recommend": _nulls(
                rng,
                rng.choice(11, s, p=np.array([1, 1, 1, 2, 3, 6, 8, 16, 24, 20, 18]) / 100).tolist(),
                0.05,
            ),
            "weight": rng.gamma(8, 0.125, s).round(3),
            "comment": _nulls(
                rng,
                rng.choice(
                    ["Price too high", "great service", "slow delivery", "ok", "good price"], s
                ).tolist(),
                0.4,
            ),
        }
    )
    return {
        "logs": logs,
        "accounts": accounts,
        "patients": patients,
        "visits": visits,
        "payroll": payroll,
        "orders": orders,
        "items": items,
        "products": products,
        "readings": readings,
        "survey": survey,
    }
