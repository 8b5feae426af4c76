"""Groups that are found and winners and quantiles that are chosen: what is said of a choice is said
of the worst rows, so it is tried on rows for which it can hardly hold more often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp
from tests.held.trial import INTERVAL, NEAR, Held, Kind, Once, Spend, inside, session

GROUPS = 100
QUARTERS, FIFTHS = [0.25, 0.5, 0.75], [0.1, 0.3, 0.5, 0.7, 0.9]
DECILES = [n / 10 for n in range(1, 10)]


# -- Groups that nobody listed ------------------------------------------------------------------


NEAR_IT, FAR = list(range(140, 190)), [400] * 50
"""Sizes of groups about the threshold, and far above it."""


def totals_by_weights(spend: Spend) -> Once:
    """Totals of groups about the threshold, found by a draw of their own."""
    return _found(spend, NEAR_IT, lambda frame: frame, "s")


def numbers_by_weights(spend: Spend) -> Once:
    """Numbers of individuals far above the threshold, by which groups are found."""
    return _found(spend, FAR, lambda frame: frame, "ns")


def totals_beside_numbers(spend: Spend) -> Once:
    """Totals of groups that are found by a number with other noise."""
    once = _found(spend, NEAR_IT, lambda frame: frame, "ns")
    return lambda: {promise: held for promise, held in once().items() if promise[1] == "s"}


def numbers_by_limits(spend: Spend) -> Once:
    """As above, under a limit."""
    return _found(spend, FAR, lambda frame: frame.limit_groups(1, by="g"), "ns")


def by_weights_near(spend: Spend) -> tuple[dp.Plan, Once]:
    """Numbers of groups that appear because these are large, and the plan."""
    return _asked(spend, [85] * 50, lambda frame: frame.limit_norm(1), "n")


def _found(spend: Spend, sizes: list[int], limited: Any, names: str) -> Once:
    return _asked(spend, sizes, limited, names)[1]


def _asked(spend: Spend, sizes: list[int], limited: Any, names: str) -> tuple[dp.Plan, Once]:
    """Each person is in one group, and so counts in full."""
    groups = [g for g, size in enumerate(sizes) for _ in range(size)]
    frame = pl.DataFrame({"who": range(len(groups)), "g": groups, "x": [2.0] * len(groups)})
    people = limited(session(spend).protect(frame, "who"))
    made = {"n": dp.n_unique("who"), "s": dp.sum("x", (0, 4), per="unit")}
    query = people.group_by("g").agg(**{name: made[name] for name in names})

    def run() -> Held:
        found = query.collect(**spend, interval=0.95)
        exact = np.array(sizes, np.float64)[found["g"].to_numpy()]
        times = {"n": 1, "s": 2}
        return {(INTERVAL, name): inside(found, name, times[name] * exact) for name in names}

    return query.plan(**spend), run


# -- Choices ------------------------------------------------------------------------------------


def best_by_table(spend: Spend) -> Once:
    """Two of ten by one noisy table, and eight that are worse by just more than is said: all are
    pairs in which a worse one may be taken, but two of one winner and the other.
    """
    names = [str(i) for i in range(10)]
    empty = pl.DataFrame(schema={"g": pl.Int64, "x": pl.Enum(names)})

    def ask(frame: pl.DataFrame) -> Any:
        groups = session(spend).protect(frame, dp.Rows()).group_by("g", keys=range(GROUPS))
        return groups.agg(b=dp.argmax("x", k=2))

    plan = ask(empty).plan(**spend)
    assert plan.releases[0].mechanism == "noisy_table"
    far = int(plan.accuracy("b")) + 1
    scores = [20 + far] * 2 + [20] * 8
    values = [name for name, score in zip(names, scores, strict=True) for _ in range(score)]
    rows = {"g": np.repeat(range(GROUPS), len(values)), "x": values * GROUPS}
    query = ask(pl.DataFrame(rows, schema=empty.schema))

    def run() -> Held:
        found = query.collect(**spend)
        right = found.select(pl.col("b").cast(pl.String).cast(pl.Int64) < 2).to_series()
        return {(NEAR, "b"): right.to_numpy().reshape(GROUPS, 2).all(axis=1)}

    return run


def one_median(spend: Spend) -> Once:
    """All rows have one value, and are so many that all others are as bad as may be."""
    return _median(spend, lambda said: np.full(2 * int(said) + 2, 500))


def even_median(spend: Spend) -> Once:
    """Rows are spread evenly, as nobody tells a plan: few candidates are as bad as may be."""
    return _median(spend, lambda _: np.arange(1000).repeat(2))


def _median(spend: Spend, values_of: Any) -> Once:
    def ask(frame: pl.DataFrame) -> Any:
        groups = session(spend).protect(frame, dp.Rows()).group_by("g", keys=range(GROUPS))
        return groups.agg(q=dp.median("x", (0, 999)))

    schema = {"g": pl.Int64, "x": pl.Int64}
    said = ask(pl.DataFrame(schema=schema)).plan(**spend).accuracy("q")
    values = values_of(said)
    rows = {"g": np.repeat(np.arange(GROUPS), len(values)), "x": np.tile(values, GROUPS)}
    query = ask(pl.DataFrame(rows, schema=schema))

    def run() -> Held:
        return {(NEAR, "q"): away(values, query.collect(**spend)["q"].to_numpy(), 0.5) <= said}

    return run


def away(values: Any, chosen: Any, share: float) -> Any:
    """By how many rows the rank of what is chosen is off, where equal rows have all of theirs."""
    below, upto = (np.searchsorted(values, chosen, side) for side in ("left", "right"))
    goal = share * len(values)
    return np.maximum(np.maximum(below - goal, goal - upto), 0)


def quantiles(
    way: str,
    chosen: list[float],
    most: int,
    amounts: dict[str, str],
    groups: int = GROUPS,
    runs: bool = False,
) -> Callable[[Spend], Once]:
    """Several quantiles of rows that are spread evenly, so that few candidates are near them: how
    far the rank of each is off.

    A plan speaks of the worst rows here as well, and we know of none that reach what it says:

    - At once and one inside the other, rows of one point take places of their own, 2**32 or 2**16
      of them at each point, and the union bound is over all places of all points, against one best
      place. But n rows leave about so many places divided by n between two of them, all of which
      are just as good, and a plan does not know n. So for m quantiles at once about m ln(2**32 / n)
      scales of what is said are never needed.
    - Read off counts, it is the worst of all sums of neighbouring counts (Levy's inequality), and
      twice as often as any one of them. With counts of runs beside them it is the union bound over
      all such sums.
    """

    def made(spend: Spend) -> Once:
        given = {name: amounts.get(name, amount) for name, amount in spend.items()}
        values = np.arange(1000) * (most + 1) // 1000
        rows = {"g": np.repeat(np.arange(groups), 1000), "x": np.tile(values, groups)}
        frame: Any = session(spend).protect(pl.DataFrame(rows), dp.Rows())
        asked = frame if groups == 1 else frame.group_by("g", keys=range(groups))
        query = asked.agg(q=dp.quantile("x", chosen, bounds=(0, most)))
        plan = query.plan(**given)
        law = plan.releases[0].law
        assert law.name == way, law.name
        assert len(plan.releases) == 1 + runs
        said = plan.accuracy("q") * float(getattr(law, "path", 1))
        said += len(chosen) / 2 if way == "joint_exponential" else 0

        def run() -> Held:
            found = np.array(query.collect(**given)["q"].to_list())
            off = [away(values, found[:, i], share) for i, share in enumerate(chosen)]
            return {(NEAR, "q"): np.max(off, axis=0) <= said}

        return run

    return made


_PAIRS = (
    0.985,
    "the union bound over pairs of one of the best and another, of which some have noise in common",
)
_EVEN = (1.0, "it holds for all rows, and of these few are as far off as may be")
_NO_ROWS = (1.0, "it holds for all rows, and none that we know reach it: see `quantiles`")
KINDS: dict[str, Kind] = {
    "totals of groups found by weights": Kind(totals_by_weights, 200, spends=("delta",)),
    "totals of groups found by a number": Kind(totals_beside_numbers, 200, spends=("delta",)),
    "numbers of groups found by them, far above": Kind(numbers_by_weights, 60, spends=("delta",)),
    "the same under a limit": Kind(numbers_by_limits, 60, spends=("delta",)),
    "two winners by a noisy table, worst rows": Kind(best_by_table, 60, worst={NEAR: _PAIRS}),
    "median, worst rows": Kind(one_median, 60),
    "median, rows spread evenly": Kind(even_median, 60, worst={NEAR: _EVEN}),
    "five quantiles at once, rows spread evenly": Kind(
        quantiles("joint_exponential", FIFTHS, 1000, {"epsilon": "1"}, 1),
        1000,
        spends=("epsilon",),
        worst={NEAR: _NO_ROWS},
    ),
    "quartiles one inside the other, rows spread evenly": Kind(
        quantiles("recursive_exponential", QUARTERS, 1000, {"epsilon": "0.5", "rho": "0.03"}),
        30,
        worst={NEAR: _NO_ROWS},
    ),
    "quartiles read off counts, rows spread evenly": Kind(
        quantiles("discrete_laplace", QUARTERS, 10, {"epsilon": "0.02"}),
        30,
        spends=("epsilon",),
        worst={NEAR: _NO_ROWS},
    ),
    "deciles read off counts and runs of them, rows spread evenly": Kind(
        quantiles("discrete_laplace", DECILES, 80, {"epsilon": "0.1"}, runs=True),
        30,
        spends=("epsilon",),
        worst={NEAR: _NO_ROWS},
    ),
}
