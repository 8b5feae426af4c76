"""How often what is promised of an error holds: one query, released many times.

Noise is of many steps in all of them, so that whole numbers do not make intervals much wider; with
few steps they hold more often than asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dp

Spend: TypeAlias = dict[str, Any]
Promise: TypeAlias = tuple[str, str]
"""`INTERVAL`, `NEAR` or `ALL`, and of which output."""
Held: TypeAlias = dict[Promise, NDArray[np.bool_]]
"""Of each promise whether it holds, for each number that was released."""
Once: TypeAlias = Callable[[], Held]

INTERVAL, NEAR, ALL = "interval", "accuracy", "accuracy of all"
LEAST, MOST = 0.94, 0.97
SPENDS: dict[str, Spend] = {
    "epsilon": {"epsilon": "0.2"},
    "rho": {"rho": "0.002"},
    "delta": {"epsilon": "0.2", "delta": "1e-6"},
}
_SLACK = 1e-9
"""What floats lose, relative to a number."""


@dataclass(frozen=True)
class Kind:
    """One kind of release.

    Parameters
    ----------
    make
        What releases it once, for a spend.
    runs
        How many times, so that 3,000 numbers whose noise is independent are released.
    spends
        Those under which it is tried.
    worst
        Which promises hold for the worst data, or for several numbers whatever they have in common,
        and so more often for these: at most how often, and why. Of one output, or of all others.
    """

    make: Callable[[Spend], Once]
    runs: int
    spends: tuple[str, ...] = ("epsilon", "rho")
    worst: Mapping[Promise | str, tuple[float, str]] = field(default_factory=dict)

    def most(self, promise: Promise) -> float:
        """How often it may hold."""
        return self.worst.get(promise, self.worst.get(promise[0], (MOST, "")))[0]


def shares(once: Once, runs: int) -> dict[Promise, float]:
    """How often each promise holds."""
    found: dict[Promise, list[float]] = {}
    for _ in range(runs):
        for promise, held in once().items():
            found.setdefault(promise, []).append(float(np.mean(held)))
    return {promise: float(np.mean(each)) for promise, each in found.items()}


def session(spend: Spend) -> dp.Session:
    """One whose budget is never spent."""
    if "rho" in spend:
        return dp.Session(rho=10**6)
    return dp.Session(epsilon=10**6, delta="0.5") if "delta" in spend else dp.Session(epsilon=10**6)


def inside(found: pl.DataFrame, name: str, exact: Any) -> NDArray[np.bool_]:
    """Whether intervals hold what is exact; those without ends do."""
    low, high = (found[f"{name}_{end}"].cast(pl.Float64).to_numpy() for end in ("low", "high"))
    exact = np.asarray(exact, np.float64)
    slack = _SLACK * np.abs(exact)
    return np.isnan(low) | ((low <= exact + slack) & (exact - slack <= high))


def near(found: pl.Series, exact: Any, reach: Any) -> NDArray[np.bool_]:
    """Whether results are so near to what is exact."""
    exact = np.asarray(exact, np.float64)
    return np.abs(found.to_numpy() - exact) <= np.asarray(reach) + _SLACK * np.abs(exact)


def all_of(held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all hold."""
    return np.array([held.all()], np.bool_)


def listed(column: pl.Series, field: str | None = None) -> NDArray[np.float64]:
    """Lists of one length, or one field of lists of structs, as a table."""
    rows = column.to_list()
    values = rows if field is None else [[cell[field] for cell in row] for row in rows]
    return np.array(values, np.float64)


@dataclass(frozen=True)
class Outputs:
    """Numbers of one query whose groups are alike: their intervals, and what a plan says of them.

    Parameters
    ----------
    query
        What is asked.
    exact
        Of each output what is exact.
    said
        Of each output that a plan says something of, what it is told of the data.
    at_once
        Whether errors of all groups together are looked at, and no intervals.
    """

    query: Any
    exact: Mapping[str, Any]
    said: Mapping[str, Mapping[str, Any]]
    at_once: bool = False

    def once(self, spend: Spend) -> Once:
        """What releases it."""
        plan, said = self.query.plan(**spend), self.said.items()
        reach = {name: plan.accuracy(name, **told) for name, told in said}
        told_of = said if self.at_once else ()
        every = {name: plan.accuracy(name, simultaneous=True, **told) for name, told in told_of}

        def run() -> Held:
            found = self.query.collect(**spend, interval=None if self.at_once else 0.95)
            held = {} if self.at_once else self._covered(found)
            held |= {(NEAR, n): near(found[n], self.exact[n], a) for n, a in reach.items()}
            for name, a in every.items():
                held[ALL, name] = all_of(near(found[name], self.exact[name], a))
            return held

        return run

    def _covered(self, found: pl.DataFrame) -> Held:
        return {(INTERVAL, name): inside(found, name, exact) for name, exact in self.exact.items()}


def nothing_of(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Counts and sums, of which plans need not be told anything."""
    return {name: {} for name in names}
