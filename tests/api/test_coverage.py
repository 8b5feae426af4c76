"""Intervals and accuracies of numbers that are drawn together hold as often as they say: the same
rows in many groups, whose noise is independent.

Noise is of many steps here, so that integers do not make intervals much wider; with few of them
they hold more often than asked for.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.audit.test_audit import seeded

GROUPS = 100
VALUES = [0.5 * (i % 9) for i in range(400)]
X, Y = pl.col("x"), pl.col("y")
SPENDS: dict[str, dict[str, Any]] = {
    "box": {"epsilon": "0.2"},
    "ellipsoid": {"rho": "0.002"},
    "with delta": {"epsilon": "0.2", "delta": "1e-6"},
}


def rows() -> pl.DataFrame:
    size = len(VALUES)
    columns = {
        "who": range(GROUPS * size),
        "g": [g for g in range(GROUPS) for _ in range(size)],
        "x": VALUES * GROUPS,
        "y": [int(2 * v) for v in VALUES] * GROUPS,
        "h": ["ab"[i % 2] for i in range(size)] * GROUPS,
    }
    return pl.DataFrame(columns)


def session(spend: dict[str, Any]) -> dp.Session:
    budget: dict[str, Any] = {"rho": 10**6}
    if "rho" not in spend:
        budget = {"epsilon": 10**6, "delta": "0.5"}
    return dp.Session(**budget)


def people(spend: dict[str, Any], unit: Any = None) -> Any:
    return session(spend).protect(rows(), unit or dp.Rows())


EXACT = {
    "n": float(len(VALUES)),
    "s": sum(VALUES),
    "t": sum(2 * v for v in VALUES),
    "m": sum(VALUES) / len(VALUES),
    "v": pl.Series(VALUES).var(ddof=0),
}


def covered(
    query: Any, spend: dict[str, Any], exact: dict[str, Any], runs: int
) -> dict[str, float]:
    """How often the interval of each output holds what is exact, and how often counts and sums are
    as near to it as their plan says, over all groups of all runs.
    """
    counted = [name for name in exact if name in "nstk"]
    plan = query.plan(**spend) if counted else None
    reach = {name: plan.accuracy(name) for name in counted}
    inside: dict[str, list[float]] = {}
    for _ in range(runs):
        found = query.collect(**spend, interval=0.95)
        for name, value in exact.items():
            low, high = found[f"{name}_low"], found[f"{name}_high"]
            slack = 1e-9 * abs(value)
            held = (low <= value + slack) & (value - slack <= high)
            inside.setdefault(name, []).append(held.mean())  # type: ignore[arg-type]
            if name in reach:
                near = (found[name] - value).abs() <= reach[name] + slack
                inside.setdefault(f"{name} is near", []).append(near.mean())  # type: ignore[arg-type]
    return {name: sum(shares) / runs for name, shares in inside.items()}


def by_group(frame: Any) -> Any:
    return frame.group_by("g", keys=range(GROUPS))


def joint(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    outputs = {"n": dp.count(), "s": X.dp_sum((0, 4)), "t": Y.dp_sum((0, 8))}
    outputs |= {"m": X.dp_mean((0, 4)), "v": X.dp_var((0, 4))}
    return by_group(people(spend)).agg(**outputs), EXACT


def changed(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    made = by_group(people(spend, dp.Rows("change-one")))
    return made.agg(n=dp.count(), s=X.dp_sum((0, 4))), {name: EXACT[name] for name in "ns"}


def weighed(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Of individuals with a row each, none of whom weighs less."""
    made = by_group(people(spend, "who").limit_norm(1))
    return made.agg(n=dp.count(), s=X.dp_sum((0, 4))), {name: EXACT[name] for name in "ns"}


def tables(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    keys = {"g": range(GROUPS), "h": ["a", "b"]}
    made = people(spend).group_by(dp.grouping_sets([("g", "h"), ("g",)]), keys=keys)
    return _Sums(made.agg(c=dp.count())), {"c": EXACT["n"]}


def rolled(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Several sums of each set, drawn together: means of groups by one column and by two."""
    keys = {"g": range(GROUPS), "h": ["a", "b"]}
    made = people(spend).group_by(dp.rollup("g", "h"), keys=keys)
    outputs = {"c": dp.count(), "d": X.dp_sum((0, 4)), "m": X.dp_mean((0, 4))}
    exact = {"c": EXACT["n"], "d": EXACT["s"], "m": EXACT["m"]}
    return _Sums(made.agg(**outputs)), exact


class _Sums:
    """The groups by one column only of those by two."""

    def __init__(self, query: Any) -> None:
        self._query = query

    def collect(self, **given: Any) -> pl.DataFrame:
        found: pl.DataFrame = self._query.collect(**given)
        return found.filter(pl.col("h").is_null(), pl.col("g").is_not_null())


class _Related:
    """Queries that share a draw and are margins of one another: of one of them the groups by one
    column, of the other those by two, of which each has half of the rows.
    """

    def __init__(self, spend: dict[str, Any]) -> None:
        self._session = session(spend)
        made = self._session.protect(rows(), dp.Rows())
        both = {"g": range(GROUPS), "h": ["a", "b"]}
        self._asked = [by_group(made).agg(n=dp.count())]
        self._asked.append(made.group_by("g", "h", keys=both).agg(k=dp.count()))

    def collect(self, **given: Any) -> pl.DataFrame:
        one, other = self._session.collect(self._asked, **given)
        return one.join(other.filter(pl.col("h") == "a"), on="g")

    def plan(self, **given: Any) -> _Related:
        self._plan = self._session.plan(self._asked, **given)
        assert len(self._plan.blocks) == 1
        return self

    def accuracy(self, name: str) -> float:
        return self._plan.accuracy(name)


def related(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return _Related(spend), {"n": EXACT["n"], "k": EXACT["n"] / 2}


def totalled(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A count whose rows a histogram of the same groups has as well."""
    made = by_group(people(spend)).agg(n=dp.count(), h=pl.col("y").dp_histogram([0, 3, 9]))
    return made, {"n": EXACT["n"]}


def shrunk(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Means that are moved to their common mean, which all of them have."""
    return by_group(people(spend)).agg(m=X.dp_mean((0, 4), shrink=True)), {"m": EXACT["m"]}


def shrunk_apart(spend: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Of groups that lie far from each other, so far as bounds let them."""
    levels = [g / 100 for g in range(GROUPS)]
    values = [level + v / 2 for level in levels for v in VALUES]
    frame = rows().with_columns(x=pl.Series(values))
    exact = frame.group_by("g", maintain_order=True).agg(pl.col("x").mean())["x"]
    made = by_group(session(spend).protect(frame, dp.Rows()))
    return made.agg(m=X.dp_mean((0, 4), shrink=True)), {"m": exact}


KINDS = {
    "joint": joint,
    "changed": changed,
    "weighed": weighed,
    "tables": tables,
    "rolled": rolled,
    "related": related,
    "totalled": totalled,
    "shrunk": shrunk,
    "shrunk apart": shrunk_apart,
}


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_nearly_as_often_as_they_say(kind: str) -> None:
    """Of 300 groups a share of 0.95 is found below 0.88 once in a million times."""
    spend = SPENDS["with delta" if kind == "weighed" else "ellipsoid"]
    query, exact = KINDS[kind](spend)
    assert all(share > 0.88 for share in covered(query, spend, exact, 3).values())


MOST = {"v": 0.995}
"""That of a variance holds for the worst mean and count that are plausible, so more often here."""


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_as_often_as_they_say(
    kind: str, spend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 6,000 groups of one seed; of others a share of 0.95 is found below 0.94 once in 5,000."""
    seeded(monkeypatch, 1)
    query, exact = KINDS[kind](SPENDS[spend])
    found = covered(query, SPENDS[spend], exact, 60)
    assert all(0.94 <= share <= MOST.get(name, 0.97) for name, share in found.items()), found
