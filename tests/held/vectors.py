"""Numbers of groups: drawn together, of individuals, under weights and limits, and ratios."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

import dpframe as dp
from tests.held.trial import INTERVAL, Kind, Once, Outputs, Promise, Spend, nothing_of, session

GROUPS = 100
VALUES = [0.5 * (i % 9) for i in range(400)]
X: Any = pl.col("x")
Y: Any = pl.col("y")
SIZE = len(VALUES)
_MEAN = sum(VALUES) / SIZE
_VARIANCE = sum((v - _MEAN) ** 2 for v in VALUES) / SIZE
EXACT: dict[str, float] = {
    "n": SIZE,
    "s": sum(VALUES),
    "t": sum(2 * v for v in VALUES),
    "m": _MEAN,
    "v": _VARIANCE,
    "d": math.sqrt(_VARIANCE),
}
LIKE: dict[str, Any] = {"count": SIZE, "guess": {"mean": _MEAN, "std": math.sqrt(_VARIANCE)}}
TOLD = {**nothing_of("nst"), **dict.fromkeys("mvd", LIKE)}
_ANY_VARIANCE = (0.995, "it holds for the worst mean and count that are plausible")


def rows(groups: int = GROUPS, values: list[float] = VALUES) -> pl.DataFrame:
    """The same rows in each group, each of an individual with no other."""
    size = len(values)
    columns = {
        "who": range(groups * size),
        "g": [g for g in range(groups) for _ in range(size)],
        "x": values * groups,
        "y": [int(2 * v) for v in values] * groups,
        "h": ["ab"[i % 2] for i in range(size)] * groups,
    }
    return pl.DataFrame(columns)


def people(spend: Spend, unit: Any = None, frame: pl.DataFrame | None = None) -> Any:
    return session(spend).protect(rows() if frame is None else frame, unit or dp.Rows())


def by_group(frame: Any, groups: int = GROUPS) -> Any:
    return frame.group_by("g", keys=range(groups))


def asked(names: str) -> dict[str, pl.Expr]:
    made = {
        "n": dp.count(),
        "s": X.dp_sum((0, 4)),
        "t": Y.dp_sum((0, 8)),
        "m": X.dp_mean((0, 4)),
        "v": X.dp_var((0, 4), ddof=0),
        "d": X.dp_std((0, 4), ddof=0),
    }
    return {name: made[name] for name in names}


def outputs(query: Any, names: str, at_once: bool = False) -> Outputs:
    exact = {name: EXACT[name] for name in names}
    return Outputs(query, exact, {name: TOLD[name] for name in names}, at_once)


def joint(spend: Spend) -> Once:
    return outputs(by_group(people(spend)).agg(**asked("nstmv")), "nstmv").once(spend)


def deviations(spend: Spend) -> Once:
    return outputs(by_group(people(spend)).agg(**asked("nd")), "nd").once(spend)


def together(spend: Spend) -> Once:
    """Ten groups, in all of which errors are as small as a plan says."""
    query = by_group(people(spend, None, rows(10)), 10).agg(**asked("nsm"))
    return outputs(query, "nsm", at_once=True).once(spend)


def alone(spend: Spend) -> Once:
    query = by_group(people(spend, None, rows(10)), 10).agg(**asked("n"))
    return outputs(query, "n", at_once=True).once(spend)


def worst_means(spend: Spend) -> Once:
    """Means as far out as errors of that size are possible on both sides of, where they are most
    likely: what is said without a guess is said of these.
    """
    told = {"m": {"count": SIZE}}
    error = by_group(people(spend)).agg(**asked("m")).plan(**spend).accuracy("m", **told["m"])
    mean = 4 - error * 1.001
    query = by_group(people(spend, None, rows(GROUPS, [mean] * SIZE))).agg(**asked("m"))
    assert query.plan(**spend).accuracy("m", **told["m"]) == error
    return Outputs(query, {"m": mean}, told).once(spend)


def changed(spend: Spend) -> Once:
    query = by_group(people(spend, dp.Rows("change-one"))).agg(**asked("nsmv"))
    return outputs(query, "nsmv").once(spend)


def weighted(spend: Spend) -> Once:
    """Outputs of which one is worth four times as much as the others."""
    made = asked("nm") | {"s": X.dp_sum((0, 4), weight=4)}
    return outputs(by_group(people(spend)).agg(**made), "nsm").once(spend)


def by_norm(spend: Spend) -> Once:
    """Of individuals with a row each, none of whom weighs less."""
    query = by_group(people(spend, "who").limit_norm(1)).agg(**asked("nsm"))
    return outputs(query, "nsm").once(spend)


def of_individuals(spend: Spend) -> Once:
    """Everybody has two rows of half the value, and is counted once."""
    frame = pl.concat([rows().with_columns(x=X / 2, y=Y)] * 2)
    limited = people(spend, "who", frame).limit_groups(1, by="g")
    made = {
        "n": dp.n_unique("who"),
        "s": X.dp_sum((0, 4), per="unit"),
        "m": X.dp_mean((0, 4), per="unit"),
    }
    return outputs(by_group(limited).agg(**made), "nsm").once(spend)


def ratios(spend: Spend) -> Once:
    """Of totals that are clamped together, and of one output over another."""
    ratio = X.dp_ratio("y", (0, 4), denominator_bounds=(0, 8))
    made = {"r": ratio, "q": X.dp_sum((0, 4)) / dp.count()}
    return Outputs(by_group(people(spend)).agg(**made), {"r": 0.5, "q": _MEAN}, {}).once(spend)


def shrunk(spend: Spend) -> Once:
    """Means that are moved to their common mean, which all of them have."""
    query = by_group(people(spend)).agg(m=X.dp_mean((0, 4), shrink=True))
    return Outputs(query, {"m": _MEAN}, {}).once(spend)


def shrunk_apart(spend: Spend) -> Once:
    """Of groups that lie far from each other, so far as bounds let them."""
    levels = [g / 100 for g in range(GROUPS)]
    values = [level + v / 2 for level in levels for v in VALUES]
    frame = rows().with_columns(x=pl.Series(values))
    exact = frame.group_by("g", maintain_order=True).agg(X.mean())["x"]
    query = by_group(people(spend, None, frame)).agg(m=X.dp_mean((0, 4), shrink=True))
    return Outputs(query, {"m": exact}, {}).once(spend)


_OF_VARIANCES: dict[Promise | str, tuple[float, str]] = {
    (INTERVAL, name): _ANY_VARIANCE for name in "vd"
}
KINDS: dict[str, Kind] = {
    "count, sums, mean and variance": Kind(joint, 60, worst=_OF_VARIANCES),
    "count and deviation": Kind(deviations, 60, worst=_OF_VARIANCES),
    "mean of the worst rows": Kind(worst_means, 60),
    "count in 10 groups": Kind(alone, 3000),
    "count, sum and mean in 10 groups": Kind(together, 3000),
    "change-one": Kind(changed, 60, worst=_OF_VARIANCES),
    "a sum with weight 4": Kind(weighted, 60),
    "`limit_norm(1)`": Kind(by_norm, 60, spends=("epsilon", "rho", "delta")),
    '`per="unit"`': Kind(of_individuals, 60),
    "ratios": Kind(ratios, 60),
    "`shrink=True`, one mean": Kind(shrunk, 60),
    "`shrink=True`, means that differ widely": Kind(shrunk_apart, 60),
}
