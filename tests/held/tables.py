"""Numbers that are rebuilt from several noisy tables: grouping sets, related queries, histograms
and distribution functions with what is asked beside them, and ranges of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dp
from dpframe.aggregates.reconstructed_error import (
    DistributionError,
    RebuiltError,
    RootError,
)
from dpframe.plan.data import errors_by_edge, errors_by_set
from tests.held.trial import (
    ALL,
    INTERVAL,
    NEAR,
    Held,
    Kind,
    Once,
    Outputs,
    Promise,
    Spend,
    all_of,
    inside,
    listed,
    near,
    nothing_of,
    session,
)

GROUPS = 50
CITIES, SEXES = list("ABCDEFGHIJKL"), ["f", "m"]
LEVEL = Fraction(95, 100)
MANY = 8
"""Times that rows of means are repeated, so that noise leaves something of small groups."""
PLENTY: Spend = {"epsilon": 10**5}
"""With which there is no noise."""
ROWS = pl.DataFrame(
    {
        "city": [CITIES[(7 * i + i // 13) % 12] for i in range(600)],
        "sex": [SEXES[i % 5 % 2] for i in range(600)],
        "age": [i * 37 % 60 for i in range(600)],
    }
)
EDGES, FEW = list(range(60)), list(range(2, 60, 3))
_WORST_EDGE = (1.0, "it is that of the edge that errs most")
_ALL_EDGES = (1.0, "the union bound over edges, which share most of their noise")
_ALL_SETS = (1.0, "the union bound over groups of all sets, which share noise")


def people(spend: Spend, groups: int = 1, times: int = 1) -> Any:
    """The same rows, each so many times, in each of so many groups."""
    return session(spend).protect(copies(ROWS, groups, times), dp.Rows()).drop_nulls()


def copies(frame: pl.DataFrame, groups: int, times: int = 1) -> pl.DataFrame:
    return pl.concat([frame.with_columns(g=pl.lit(i)) for i in range(groups)] * times)


def by_group(frame: Any) -> Any:
    return frame.group_by("g", keys=range(GROUPS))


# -- Grouping sets ------------------------------------------------------------------------------


IN_EACH: dict[str, list[tuple[str, ...]]] = {
    "cube": [("g", "city", "sex"), ("g", "city"), ("g", "sex"), ("g",)],
    "roll-up": [("g", "city", "sex"), ("g", "city"), ("g",)],
}
"""Sets within each of many groups, so that one release has many tables with noise of their own."""


def keys(groups: int) -> dict[str, Any]:
    return {"g": range(groups), "city": CITIES, "sex": SEXES}


def sets(form: str) -> Callable[[Spend], Once]:
    """Counts, sums and means in each set: intervals, and what is said of the set."""

    def made(spend: Spend) -> Once:
        def ask(frame: Any) -> Any:
            groups = frame.group_by(dp.grouping_sets(IN_EACH[form]), keys=keys(GROUPS))
            return groups.agg(n=dp.count(), s=dp.sum("age", (0, 59)), m=dp.mean("age", (0, 59)))

        query = ask(people(spend, GROUPS, MANY))
        plan, exact = query.plan(**spend), _exact_sets(ask(people(PLENTY, GROUPS)))
        places = [tuple(kept) for kept in exact["kept"].to_list()]
        reach = {name: _of_sets(plan, name, exact) for name in "nsm"}
        masks = {kept: np.array([kept == other for other in places]) for kept in {*places}}

        def run() -> Held:
            found = query.collect(**spend, interval=0.95)
            held: Held = {}
            for name, each in reach.items():
                covered = inside(found, name, exact[name])
                close = near(found[name], exact[name], each)
                for kept, here in masks.items():
                    held[INTERVAL, f"{name} by {kept}"] = covered[here]
                    held[NEAR, f"{name} by {kept}"] = close[here]
            return held

        return run

    return made


def _exact_sets(query: Any) -> pl.DataFrame:
    """In the order of results; and which columns each set has."""
    names, rows = ["g", "city", "sex"], []
    for row in query.collect(**PLENTY).iter_rows(named=True):
        kept = [i for i in range(3) if not row["grouping"] >> (2 - i) & 1]
        ages = ROWS.filter(*(pl.col(names[i]) == row[names[i]] for i in kept if i))["age"]
        rows.append((kept, MANY * ages.len(), MANY * int(ages.sum()), ages.mean()))
    return pl.DataFrame(rows, schema=["kept", "n", "s", "m"], orient="row")


def _of_sets(plan: dp.Plan, name: str, exact: pl.DataFrame) -> NDArray[np.float64]:
    """What is said of each group: of means for rows like those that it has."""
    (output,) = [output for output in plan.outputs if output.name == name]
    used = [plan.releases[number] for number in output.releases]
    rule = output.error
    assert isinstance(rule, RebuiltError)
    found, known = [], dict[Any, dict[tuple[int, ...], float]]()
    for kept, n, _, mean in exact.iter_rows():
        like = (n, mean) if name == "m" else (None, None)
        if like not in known:
            known[like] = dict(errors_by_set(rule, used, LEVEL, False, *like))
        found.append(known[like][tuple(kept)])
    assert name == "m" or max(known[None, None].values()) == plan.accuracy(name)
    return np.array(found)


def cube(spend: Spend) -> Once:
    """Counts: the error that the plan says, which is that of one of the sets, and all together."""

    def ask(frame: Any) -> Any:
        by = {"city": CITIES, "sex": SEXES}
        return frame.group_by(dp.cube(*by), keys=by).agg(n=dp.count())

    query, found = ask(people(spend)), ask(people(PLENTY)).collect(**PLENTY)
    plan, exact, grouping = query.plan(**spend), found["n"], found["grouping"].to_numpy()
    one, every = plan.accuracy("n"), plan.accuracy("n", simultaneous=True)
    (output,) = plan.outputs
    assert isinstance(output.error, RebuiltError)
    used = [plan.releases[number] for number in output.releases]
    (kept,) = [kept for kept, error in errors_by_set(output.error, used, LEVEL) if error == one]
    worst = grouping == sum(2 >> i for i in range(2) if i not in kept)

    def run() -> Held:
        found = query.collect(**spend, interval=0.95)
        return {
            (INTERVAL, "n"): inside(found, "n", exact),
            (NEAR, "worst set"): near(found["n"], exact, one)[worst],
            (ALL, "n"): all_of(near(found["n"], exact, every)),
        }

    return run


class _Related:
    """Queries that share a draw and are margins of one another: of one of them the groups by one
    column, of the other those by two, of which each has half of the rows.
    """

    def __init__(self, spend: Spend) -> None:
        frame = people(spend, GROUPS)
        self._session = frame.session
        self._asked = [by_group(frame).agg(n=dp.count())]
        both = {"g": range(GROUPS), "sex": SEXES}
        self._asked.append(frame.group_by("g", "sex", keys=both).agg(k=dp.count()))

    def collect(self, **given: Any) -> pl.DataFrame:
        one, other = self._session.collect(self._asked, **given)
        return one.join(other.filter(pl.col("sex") == "f"), on="g")

    def plan(self, **given: Any) -> Any:
        plan = self._session.plan(self._asked, **given)
        assert len(plan.blocks) == 1
        return plan


def related(spend: Spend) -> Once:
    exact = {"n": 600, "k": ROWS.filter(pl.col("sex") == "f").height}
    return Outputs(_Related(spend), exact, nothing_of("nk")).once(spend)


# -- Histograms and distribution functions ------------------------------------------------------


def cells(query: Any, spend: Spend, counts: list[int], beside: Mapping[str, int]) -> Once:
    """Of a list of counts named `c`, and of numbers beside it."""
    plan = query.plan(**spend)
    reach = _of_cells(plan, len(counts))
    near_numbers = {name: plan.accuracy(name) for name in beside}

    def run() -> Held:
        found = query.collect(**spend, interval=0.95)
        low, high, shown = _lists(found, len(counts))
        held: Held = {
            (INTERVAL, "c"): (low <= counts) & (np.array(counts) <= high),
            (NEAR, "c"): np.abs(shown - counts) <= reach,
        }
        for name, a in near_numbers.items():
            held[INTERVAL, name] = inside(found, name, beside[name])
            held[NEAR, name] = near(found[name], beside[name], a)
        return held

    return run


def _lists(found: pl.DataFrame, size: int) -> list[NDArray[np.float64]]:
    """The ends of intervals and the counts, a row for each group."""
    if "c_low" in found.columns:
        return [listed(found["c_low"]), listed(found["c_high"]), listed(found["c"], "count")]
    columns = (found[name].to_numpy() for name in ("count_low", "count_high", "count"))
    return [column.astype(np.float64).reshape(-1, size) for column in columns]


def _of_cells(plan: dp.Plan, size: int) -> NDArray[np.float64]:
    """What is said of each."""
    (output,) = [output for output in plan.outputs if output.name == "c"]
    used = [plan.releases[number] for number in output.releases]
    if isinstance(output.error, (DistributionError, RootError)):
        ((_, errors),) = errors_by_edge(output.error, used, LEVEL)
        found = errors.astype(np.float64)
        assert found.max() == plan.accuracy("c")
        return found
    return np.full(size, plan.accuracy("c"))


def histogram(spend: Spend) -> Once:
    counts = [ROWS["city"].to_list().count(city) for city in CITIES]
    made = by_group(people(spend, GROUPS)).agg(n=dp.count(), c=dp.histogram("city", CITIES))
    return cells(made, spend, counts, {"n": 600})


def distribution(spend: Spend) -> Once:
    made = by_group(people(spend, GROUPS)).agg(c=dp.cdf("age", bins=EDGES))
    return cells(made, spend, _upto(EDGES), {})


def distribution_and_count(spend: Spend) -> Once:
    """Of rows some of which have no value; their number is drawn with the others for an epsilon."""
    nothing = ROWS.head(120).with_columns(age=pl.lit(None, pl.Int64))
    made = by_group(session(spend).protect(copies(pl.concat([ROWS, nothing]), GROUPS), dp.Rows()))
    edges = EDGES[:40]
    asked = {"n": dp.count(), "v": dp.count("age"), "c": dp.cdf("age", bins=edges)}
    if "rho" in spend:
        del asked["v"]
    query = made.agg(**asked)
    assert all("counts of its steps" in output.note for output in query.plan(**spend).outputs)
    exact = {"n": 720, "v": 600}
    return cells(
        query, spend, _upto(edges), {name: n for name, n in exact.items() if name in asked}
    )


def _upto(edges: list[int]) -> list[int]:
    return [int((ROWS["age"] <= edge).sum()) for edge in edges]


def all_edges(spend: Spend) -> Once:
    query = people(spend).agg(c=dp.cdf("age", bins=EDGES))
    plan, counts = query.plan(**spend), _upto(EDGES)
    one, every = plan.accuracy("c"), plan.accuracy("c", simultaneous=True)

    def run() -> Held:
        away = np.abs(query.collect(**spend)["count"].to_numpy() - counts)
        return {(NEAR, "c"): away <= one, (ALL, "c"): all_of(away <= every)}

    return run


def ranges(make: Callable[[Any], Any], *places: tuple[Any, Any]) -> Callable[[Spend], Once]:
    """Rows between edges of one release, in each of some groups."""

    def made(spend: Spend) -> Once:
        query = make(by_group(people(spend, GROUPS)))
        exact = make(by_group(people(PLENTY, GROUPS))).release(**PLENTY)
        true = {place: exact.between(*place, g=0).value for place in places}

        def run() -> Held:
            release, held = query.release(**spend), Held()
            for place, value in true.items():
                found = [release.between(*place, g=g) for g in range(GROUPS)]
                label = f"{place[0]} to {place[1]}"
                held[NEAR, label] = np.array([abs(e.value - value) <= e.error for e in found])
            return held

        return run

    return made


def by_sets(spend: Spend) -> Once:
    """Distribution functions in each set of two columns, and ranges of them."""

    def ask(frame: Any) -> Any:
        made = frame.group_by(dp.grouping_sets(IN_EACH["cube"]), keys=keys(GROUPS))
        return made.agg(c=dp.cdf("age", bins=FEW))

    query, exact = ask(people(spend, GROUPS)), ask(people(PLENTY, GROUPS))
    plan, exact = query.plan(**spend), exact.release(**PLENTY)
    grouping, true = (exact.frame[name].to_numpy() for name in ("grouping", "count"))
    reach = _of_edges(plan)
    each = np.concatenate([reach[bits] for bits in grouping[:: len(FEW)]])
    wanted: dict[str, dict[str, Any]] = {
        "g": {},
        "g, sex": {"sex": "f"},
        "all": {"city": "B", "sex": "m"},
    }
    spans = {name: exact.between(8, 41, g=0, **where).value for name, where in wanted.items()}

    def run() -> Held:
        release, held = query.release(**spend, interval=0.95), Held()
        found = release.frame
        covered, close = inside(found, "count", true), near(found["count"], true, each)
        for bits in range(4):
            held[INTERVAL, f"set {bits}"] = covered[grouping == bits]
            held[NEAR, f"set {bits}"] = close[grouping == bits]
        for name, where in wanted.items():
            ranges = [release.between(8, 41, g=g, **where) for g in range(GROUPS)]
            held[NEAR, f"range in {name}"] = np.array(
                [abs(r.value - spans[name]) <= r.error for r in ranges]
            )
        return held

    return run


def _of_edges(plan: dp.Plan) -> dict[int, NDArray[np.float64]]:
    """What is said of each edge, by the number of the set."""
    (output,) = plan.outputs
    assert isinstance(output.error, DistributionError)
    used = [plan.releases[number] for number in output.releases]
    found = {}
    for kept, errors in errors_by_edge(output.error, used, LEVEL):
        found[sum(4 >> i for i in range(3) if i not in kept)] = errors.astype(np.float64)
    assert max(errors.max() for errors in found.values()) == plan.accuracy("c")
    return found


def _cdf(groups: Any) -> Any:
    return groups.agg(c=dp.cdf("age", bins=EDGES))


def _bins(groups: Any) -> Any:
    return groups.agg(c=dp.histogram("age", list(range(0, 61, 2))))


def _beside(groups: Any) -> Any:
    return groups.agg(n=dp.count(), c=dp.histogram("age", list(range(0, 61, 2))))


_SETS: dict[Promise | str, tuple[float, str]] = {ALL: _ALL_SETS}
KINDS: dict[str, Kind] = {
    "count by a cube": Kind(cube, 3000, worst=_SETS),
    "count, sum and mean by a cube": Kind(sets("cube"), 60),
    "count, sum and mean by a roll-up": Kind(sets("roll-up"), 60),
    "related tables": Kind(related, 60),
    "histogram with a count": Kind(histogram, 60),
    "ranges of a histogram": Kind(ranges(_bins, (0, 10), (8, 40), (0, 60)), 60),
    "ranges of a histogram with a count": Kind(ranges(_beside, (0, 10), (8, 40)), 60),
    "distribution function": Kind(distribution, 60),
    "distribution function, all edges": Kind(
        all_edges, 3000, worst={NEAR: _WORST_EDGE, ALL: _ALL_EDGES}
    ),
    "ranges of a distribution function": Kind(ranges(_cdf, (None, 9), (9, 40), (7, 8)), 60),
    "distribution function with a count": Kind(distribution_and_count, 60),
    "distribution functions by a cube, with ranges": Kind(by_sets, 60),
}
