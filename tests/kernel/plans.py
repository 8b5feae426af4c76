"""Physical plans that the planner makes of everyday queries, each of one kind."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import polars as pl

import dpframe as dp
from dpframe import runner, soundness
from dpframe.kernel import Plan
from dpframe.kernel.plan import read, write
from dpframe.optimise.physical import Translation, translate
from dpframe.optimise.prepared import PreparedTogether

START = dt.date(2027, 3, 1)
Query: TypeAlias = "Callable[[Any], Any]"

AGE, TOWN, WAGE = dp.col("age"), dp.col("town"), dp.col("wage")
TOWNS = ["a", "b", "c"]
ZONES = pl.DataFrame({"town": ["a", "a", "b"], "zone": [1, 2, 3]})

OF_ROWS: dict[str, Query] = {
    "count": lambda f: f.agg(dp.count()),
    "counts": lambda f: f.group_by("town", keys=TOWNS).agg(dp.count()),
    "sum": lambda f: f.agg(WAGE.dp_sum((18, 90))),
    "box": lambda f: f.group_by("town", keys=TOWNS).agg(AGE.dp_mean((0, 100))),
    "hull": lambda f: f.group_by("town", keys=TOWNS).agg(AGE.dp_var((0, 100))),
    "histogram": lambda f: f.agg(AGE.dp_histogram(bins=[0, 20, 40, 100])),
    "levels": lambda f: f.agg(AGE.dp_cdf(bins=list(range(0, 64, 2)))),
    "median": lambda f: f.group_by("town", keys=TOWNS).agg(AGE.dp_median((0, 100))),
    "quartiles": lambda f: f.agg(AGE.dp_quantile([0.25, 0.5, 0.75], (0, 100))),
    "deciles": lambda f: f.agg(
        AGE.dp_quantile([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1], candidates=[5, 7])
    ),
    "winner": lambda f: f.agg(TOWN.dp_argmax(candidates=TOWNS)),
    "noisy median": lambda f: f.agg(
        AGE.dp_median(candidates=[20, 30, 40], mechanism="noisy_table")
    ),
    "noisy winners": lambda f: f.agg(
        TOWN.dp_argmax(
            score=pl.col("age"), candidates=TOWNS, bounds=(-9, 99), mechanism="noisy_table"
        )
    ),
    "cube": lambda f: f.group_by(
        dp.cube("town", "sex"), keys={"town": TOWNS, "sex": ["f", "m"]}
    ).agg(dp.count(), AGE.dp_sum((0, 100))),
    "gaussian": lambda f: f.group_by("town", keys=TOWNS).agg(
        dp.count(mechanism="discrete_gaussian")
    ),
    "gaussian numbers": lambda f: f.group_by("town", keys=TOWNS).agg(
        dp.count(mechanism="discrete_gaussian"), AGE.dp_sum((0, 100), mechanism="discrete_gaussian")
    ),
    "many draws": lambda f: f.agg(
        WAGE.dp_sum((18, 90)),
        AGE.dp_histogram(bins=[0, 20, 40, 100]),
        *(TOWN.dp_argmax(candidates=TOWNS[:n]).alias(f"{n}") for n in (2, 3)),
        *(
            AGE.dp_sum((0, n), mechanism="discrete_laplace").alias(f"up to {n}")
            for n in range(20, 90, 5)
        ),
    ),
    "joined": lambda f: f.join(ZONES, on="town").agg(dp.count()),
    "found groups": lambda f: f.group_by("town").agg(dp.count()),
    "gaussian sum": lambda f: f.agg(AGE.dp_sum((0, 100), mechanism="discrete_gaussian")),
}
"""Queries of rows, which are limited where rows belong to persons."""

WITH_A_DELTA: Mapping[str, Query] = {
    "weights": lambda f: (
        f.limit_norm(2).limit_groups(9, by="town").group_by("town").agg(dp.n_unique("who"))
    ),
    "rounds": lambda f: f.group_by("town").dp_groups(rounds=2),
}
"""Queries of persons whose groups are found by weights."""

STREAMS: Mapping[str, Query] = {
    "first rows": lambda f: f.limit_rows(3, order_by="day").agg(dp.count()),
    "first days": lambda f: (
        f.limit_groups(3, by="day", order_by="day")
        .limit_rows(2, by="day")
        .group_by("town", keys=TOWNS)
        .agg(AGE.dp_sum((-5, 100)))
    ),
    "rows of a day": lambda f: f.limit_rows(9).limit_rows(2, by="day").agg(AGE.dp_sum((0, 9))),
    "persons of a day": lambda f: f.group_by("town", keys=TOWNS).agg(dp.n_unique("who")),
}
"""Queries of persons that streams publish."""

OF_PERSONS: dict[str, Query] = {
    "total": lambda f: f.group_by("town", keys=TOWNS).agg(WAGE.dp_sum((0, 90), per="unit")),
    "persons": lambda f: f.group_by("town", keys=TOWNS).agg(dp.col("who").dp_n_unique()),
    "weighed": lambda f: f.limit_norm(2).group_by("town", keys=TOWNS).agg(dp.count()),
    "found limit": lambda f: f.agg(WAGE.dp_sum((0, 90))),
    "of a category": lambda f: (
        f.limit_rows(3).limit_rows(1, by="town").agg(TOWN.dp_histogram(bins=TOWNS))
    ),
}
"""Queries that need persons."""


def names() -> list[str]:
    """The names of all plans of `plans`."""
    kinds = {
        "person": [*OF_ROWS, *OF_PERSONS],
        "rows": [*OF_ROWS],
        "changed": [*OF_ROWS, *OF_CHANGES],
    }
    every = [
        f"{name} {unit} {measure}"
        for unit, queries in kinds.items()
        for measure in SESSIONS
        for name in queries
        if (name, measure) not in LEFT_OUT
    ]
    every += [f"{name} person rho" for name in WITH_A_DELTA]
    every += [f"{name} person {m}" for name in STREAMS for m in ("epsilon", "rho")]
    return every + [
        f"stream {unit} {m}" for unit in ("rows", "changed") for m in ("epsilon", "rho")
    ]


def frame() -> pl.LazyFrame:
    """A few rows of persons."""
    return pl.LazyFrame(
        {
            "who": [n // 2 for n in range(60)],
            "town": ["a", "b", "c"] * 20,
            "sex": ["f", "m"] * 30,
            "age": [20, 30, 40] * 20,
            "wage": [1.5, 80.0, 30.25] * 20,
            "day": [START + dt.timedelta(days=n % 5) for n in range(60)],
        }
    )


class Checked(Exception):
    """Stops a query before its charge."""

    def __init__(self, prepared: PreparedTogether, translation: Translation) -> None:
        super().__init__()
        self.prepared = prepared
        self.translation = translation


def checked(ask: Callable[[], object]) -> Checked:
    """A query as it is after the last look before its charge; it goes no further."""
    require_sound = runner.require_sound

    def stop(prepared: PreparedTogether) -> Translation:
        raise Checked(prepared, require_sound(prepared))

    runner.require_sound = stop
    try:
        ask()
    except Checked as found:
        return found
    finally:
        runner.require_sound = require_sound
    raise AssertionError("no query came to its charge")


@contextmanager
def recording() -> Iterator[list[PreparedTogether]]:
    """The queries whose plans are checked while this is entered."""
    found, before = list[PreparedTogether](), soundness.translate

    def record(prepared: PreparedTogether) -> Translation:
        found.append(prepared)
        return before(prepared)

    soundness.translate = record
    try:
        yield found
    finally:
        soundness.translate = before


OF_CHANGES: dict[str, Query] = {
    "reports": lambda f: f.agg(
        AGE.dp_histogram(bins=list(range(0, 100, 5)), mechanism="randomized_response")
    ),
}
"""Queries of rows that are there in both neighbours."""

LEFT_OUT = {
    ("gaussian", "epsilon"),
    ("gaussian sum", "epsilon"),
    ("found groups", "epsilon"),
    ("found groups", "rho"),
    ("found groups", "zcdp"),
    ("found groups", "mu"),
    ("gaussian numbers", "epsilon"),
    ("found limit", "zcdp"),
    ("found limit", "mu"),
}
"""Queries that a measure does not know."""

Session: TypeAlias = Callable[[], dp.Session]

SESSIONS: Mapping[str, tuple[Session, Mapping[str, object]]] = {
    "epsilon": (lambda: dp.Session(epsilon=10), {"epsilon": 1}),
    "rho": (lambda: dp.Session(rho=10), {"rho": 1}),
    "delta": (lambda: dp.Session(epsilon=10, delta=1e-4), {"epsilon": 1, "delta": 1e-6}),
    "zcdp": (
        lambda: dp.Session(epsilon=30, delta=1e-4, composition="zcdp"),
        {"epsilon": 1, "delta": 1e-6},
    ),
    "mu": (
        lambda: dp.Session(epsilon=30, delta=1e-4, composition="gdp"),
        {"epsilon": 1, "delta": 1e-6},
    ),
}
"""Sessions of each measure, and what a query spends."""


SHARED: list[Path] = []
"""The folder where processes leave the plans that they have made, if there is one."""


class Plans(Mapping[str, Plan]):
    """Plans by name, each made when it is first needed, by one of the processes that run tests."""

    def __init__(self) -> None:
        self._names = names()
        self._found: dict[str, Plan] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Plan:
        if name not in self._found:
            self._found[name] = self._make(name)
        return self._found[name]

    def _make(self, name: str) -> Plan:
        if name not in self._names:
            raise KeyError(name)
        if not SHARED:
            return charged(name)
        file = SHARED[0] / f"{self._names.index(name)}.json"
        if not file.exists():
            SHARED[0].mkdir(exist_ok=True)
            begun = file.with_suffix(f".{os.getpid()}")
            begun.write_text(write(charged(name)))
            begun.replace(file)
        return read(file.read_text())


@cache
def plans() -> Plans:
    """Plans of all kinds of query, unit and measure, by name."""
    return Plans()


UNITS: Mapping[str, str | dp.Rows] = {
    "person": "who",
    "rows": dp.Rows(contributions=2),
    "changed": dp.Rows("change-one"),
}


def charged(name: str) -> Plan:
    """The plan that is checked before the query of this name is charged."""
    of, unit, measure = name.rsplit(" ", 2)
    with warnings.catch_warnings(action="ignore"):
        if of in STREAMS or of == "stream":
            with recording() as found:
                _open(STREAMS.get(of, OF_ROWS["counts"]), UNITS[unit], measure)
            return translate(found[-1]).plan
        if of in WITH_A_DELTA:
            session = dp.Session(rho=10, delta="1e-3")
            spend: Mapping[str, object] = {"rho": 1, "delta": "1e-6"}
        else:
            opened, spend = SESSIONS[measure]
            session = opened()
        private = session.protect(frame(), unit=UNITS[unit])
        if unit == "person" and of in OF_ROWS:
            private = private.limit_groups(2, by="town").limit_rows(2, by="town")
        query = (OF_ROWS | OF_PERSONS | OF_CHANGES | dict(WITH_A_DELTA))[of](private)
        return checked(lambda: query.collect(**spend)).translation.plan


def _open(query: Query, unit: str | dp.Rows, measure: str) -> None:
    with TemporaryDirectory() as folder:
        session = dp.Session(ledger=Path(folder) / "ledger.db", **{measure: 10})
        private = session.protect(frame(), unit=unit, name="visits")
        options: Any = {"by": "day", "start": START, "periods": 9, measure: 1}
        session.stream("nightly", query(private), **options)
