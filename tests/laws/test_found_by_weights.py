"""Laws of groups that nobody listed, found by weights: one individual moves the vector of sums by
its norm at most, and in groups in which it is alone is no more than a threshold allows for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe import accounting, pipeline
from dpframe.aggregates import keys
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.keys import KeySelection, WeighedKeys
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import UnitCount
from dpframe.core.units import norm_in_parts, parts_in_each
from dpframe.kernel.frame import PARTS
from dpframe.lower import lower_query
from dpframe.lower.tables import group_columns
from dpframe.mechanisms import WeighedThreshold
from dpframe.release.draws import chooser_of
from dpframe.simulate import Exact
from tests.laws.individuals import POOLS, frame_of, neighbours
from tests.laws.layouts import stored
from tests.laws.neighbours import Pair, measurements_of, query_of, tables_of

Sums = dict[tuple[Any, ...], int]
SPEND: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
PEOPLE = pl.col("id").dp_n_unique().alias("n")
ASKED: dict[str, list[Any]] = {
    "people": [PEOPLE],
    "totals": [dp.sum("x", (0, 5), per="unit").alias("s")],
    "both": [PEOPLE, dp.sum("x", (-3, 5), per="unit"), dp.count(bounds=(0, 2), per="unit")],
    "means": [dp.mean("x", (0, 5), per="unit")],
}
ROWS = [dp.count(), dp.sum("x", (-3, 7)), dp.mean("y", (0, 1))]
BY: dict[str, list[Any]] = {
    "g": ["g"],
    "two": ["g", "h"],
    "c": ["c"],
    "computed": [(pl.col("h") % 2).alias("odd")],
    "of id": [(pl.col("id") % 2).alias("odd")],
}


def weighed_frame() -> Any:
    return frame().limit_norm(1)


def frame() -> Any:
    schema = frame_of([]).schema
    return dp.Session(epsilon=10**9, delta=0.9).protect(pl.LazyFrame(schema=schema), "id")


def sums_of(asked: Query, data: pl.DataFrame, salt: int = 0) -> dict[Table, Sums]:
    """Exact tables of all groups that there are, by their keys."""
    assert asked.groups is not None
    assert asked.groups.discovered
    found: dict[Table, Sums] = {}
    columns = group_columns(asked.groups)
    source = stored(data).lazy()
    for query in lower_query(asked.relation, asked.groups, tables_of(asked), source, salt=salt):
        result = query.group(query.frame.collect())
        for i, statistic in enumerate(query.statistics):
            rows = result.select(*columns, f"v{i}").rows()
            found[Table(statistic)] = {row[:-1]: row[-1] for row in rows}
    return found


def differences(before: Sums, after: Sums) -> Sums:
    keys = before.keys() | after.keys()
    found = {key: abs(before.get(key, 0) - after.get(key, 0)) for key in keys}
    return {key: change for key, change in found.items() if change}


def check(asked: Query, pair: Pair, salt: int) -> None:
    selection = measurements_of(asked)[0].part
    assert isinstance(selection, WeighedKeys)
    law_of = selection.task("g", selection.sensitivity(asked.scope), "auto", asked.scope)
    norm, most = law_of.norm, law_of.groups
    assert norm is not None
    before, after = (sums_of(asked, data, salt) for data in (pair.before, pair.after))
    moved = differences(before[selection.table], after[selection.table])
    assert len(moved) <= most
    assert sum(change**2 for change in moved.values()) <= norm**2
    for change in moved.values():  # also where nobody else is
        assert change <= parts_in_each(norm, len(moved))
    stated = selection.sensitivity(asked.scope)
    assert sum(moved.values()) <= stated.l1
    assert len(moved) <= stated.l0
    for use in measurements_of(asked)[1:]:
        (table,) = use.part.tables
        changes = differences(before[table], after[table])
        declared = use.part.sensitivity(asked.scope).scale(Fraction(PARTS))
        assert len(changes) <= declared.l0
        assert sum(changes.values()) <= declared.l1
        assert sum(change**2 for change in changes.values()) <= declared.l2_squared
        assert max(changes.values(), default=0) <= declared.linf


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(ASKED)),
    st.sampled_from(sorted(BY)),
    st.sampled_from([1, 2, 3, 256]),
    neighbours(most=20),
    st.integers(0, 2**64 - 1),
)
def test_nobody_moves_sums_of_weights_by_more_than_one(
    name: str, by: str, most: int, pair: Pair, salt: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "MOST_FOUND", most)
        check(query_of(weighed_frame().group_by(*BY[by]).agg(*ASKED[name])), pair, salt)


@settings(max_examples=25)
@given(
    st.sampled_from(["1", "0.3", "2.5", "100"]),
    st.sampled_from(["f", "f.limit_groups(2, by='g')", "f.limit_rows(3)"]),
    st.sampled_from([0, 1, 2, 3]),
    neighbours(most=20),
    st.integers(0, 2**64 - 1),
)
def test_nor_by_more_than_a_norm_that_somebody_set(
    norm: str, limits: str, rows: int, pair: Pair, salt: int
) -> None:
    limited = eval(limits, {"f": frame()}).limit_norm(norm)
    asked = [PEOPLE] if not rows else ROWS[:rows]
    check(query_of(limited.group_by("g").agg(*asked)), pair, salt)


def weights(data: pl.DataFrame, norm: Fraction) -> Counter[Any]:
    owned = defaultdict[int, set[Any]](set)
    for who, group in data.select("id", "g").rows():
        if who is not None:
            owned[who].add(group)
    found = Counter[Any]()
    for groups in owned.values():
        for group in groups:
            found[(group,)] += parts_in_each(norm_in_parts(norm), len(groups))
    return found


@settings(max_examples=25)
@given(neighbours(most=30), st.sampled_from([1, 2, Fraction(1, 3)]))
def test_sums_are_what_integers_say(pair: Pair, norm: Any) -> None:
    limited = frame().limit_norm(norm)
    asked = query_of(limited.group_by("g").agg(PEOPLE))
    for data in (pair.before, pair.after):
        expected = weights(data, Fraction(norm))
        assert sums_of(asked, data)[Table(UnitCount())] == dict(expected)


def test_an_individual_in_more_groups_counts_in_as_many_as_it_may() -> None:
    rows = [{"id": 1, "x": group} for group in range(300)]
    asked = query_of(weighed_frame().group_by("x").agg(PEOPLE))
    found = sums_of(asked, frame_of(rows))[Table(UnitCount())]
    assert [*found.values()] == [parts_in_each(PARTS, 256)] * 256
    other = sums_of(asked, frame_of(rows), salt=1)[Table(UnitCount())]
    assert found.keys() != other.keys()


def test_a_group_of_one_individual_never_reaches_the_threshold_without_noise() -> None:
    plan = weighed_frame().group_by("g").agg(PEOPLE).plan(**SPEND)
    law = plan.releases[0].law
    assert isinstance(law, WeighedThreshold)
    for t in range(1, law.most + 1):
        k = parts_in_each(law.norm, t)
        assert law.threshold >= k + law.noise.quantile(1 - 2 * law.slack / t) + 1


# ------------------------------------------------------------------------------------ costs

SUMS = [dp.sum("x", (0, i), per="unit").alias(f"s{i}") for i in range(1, 25)]
MANY: dict[str, list[Any]] = {
    **ASKED,
    "laplace": [dp.n_unique("id", mechanism="discrete_laplace").alias("n")],
    "gaussian": [dp.n_unique("id", mechanism="discrete_gaussian").alias("n")],
    "weights": [dp.n_unique("id", weight=7).alias("n"), dp.sum("x", (0, 6), per="unit", weight=2)],
    "many": [PEOPLE, *SUMS],
    "many sums": SUMS,
}


@pytest.mark.parametrize("name", MANY)
def test_costs_counted_again_are_no_more(name: str) -> None:
    plan = weighed_frame().group_by("g").agg(*MANY[name]).plan(**SPEND)
    law = plan.releases[0].law
    assert isinstance(law, WeighedThreshold)
    assert law.alone == (name in ("totals", "means", "laplace", "many sums"))
    assert plan.cost.main <= 1
    assert plan.cost.slack <= Fraction("1e-6")
    (own,) = [e for e in plan.events if isinstance(e, accounting.ApproxEvent)]
    assert own.delta == law.slack <= plan.cost.slack
    if plan.composition == "sum":
        assert sum(r.cost.main for r in plan.draws) <= 1
        assert sum(r.cost.slack for r in plan.draws) <= plan.cost.slack
    if name == "laplace":  # whose events do not tell that it is many groups by a little each
        return
    found = accounting.compare(list(plan.events), float(plan.cost.slack))
    best = found["epsilon"].drop_nulls().min()
    assert isinstance(best, float)
    assert best <= 1.0 + 1e-3


@pytest.mark.parametrize("name", MANY)
def test_costs_in_rho_are_those_of_the_parts(name: str) -> None:
    people = dp.Session(dp.ZCDP(1, 1e-3)).protect(frame_of([]).lazy(), "id").limit_norm(1)
    plan = people.group_by("g").agg(*MANY[name]).plan(rho="0.5", delta="1e-6")
    law = plan.releases[0].law
    assert isinstance(law, WeighedThreshold)
    assert plan.cost.main == sum(r.cost.main for r in plan.draws) <= Fraction("0.5")
    assert plan.cost.slack == law.slack == Fraction("1e-6")
    if law.alone:
        own = plan.releases[0]
        assert own.cost.main >= own.exact.l2_squared / (2 * law.noise.sigma_squared)


# ------------------------------------------------------------------------------- what comes out


@pytest.mark.parametrize("name", ["people", "totals"])
def test_groups_of_one_individual_hardly_ever_appear(name: str) -> None:
    """By the law itself, on exact sums: alone in 1, 16 and 200 groups, at a delta that shows."""
    asked = query_of(weighed_frame().group_by("x").agg(*ASKED[name]))
    prepared = pipeline.plan(asked, dp.ApproxDP(1, Fraction(1, 10)), None)
    keys = prepared.draws[0]
    assert isinstance(keys.measurement, KeySelection)
    law: Any = keys.law
    chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
    assert chooser is not None
    runs, tops = 2000, []
    for t in (1, 16, 200):
        data = frame_of([{"id": 1, "x": group} for group in range(t)])
        sums = pl.Series([*sums_of(asked, data)[chooser.table].values()], dtype=pl.Int64).to_numpy()
        assert len(sums) == t
        kept, _ = chooser.keep(np.tile(sums, runs))
        tops.append(kept.reshape(runs, t).any(axis=1).mean())
    assert max(tops) < float(law.slack) + 4 * (float(law.slack) / runs) ** 0.5
    assert max(tops) > float(law.slack) / 3


def test_what_has_no_weight_never_appears() -> None:
    asked = query_of(weighed_frame().group_by("g").agg(PEOPLE))
    for spend in (dp.ApproxDP(1, Fraction(1, 2)), dp.ApproxDP(Fraction(1, 1000), Fraction(1, 2))):
        prepared = pipeline.plan(asked, spend, None)
        chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
        assert chooser is not None
        kept, _ = chooser.keep(pl.zeros(5000, pl.Int64, eager=True).to_numpy())
        assert not kept.any()


def test_every_group_that_is_large_comes_out_with_its_weights() -> None:
    rows = [{"id": who, "g": g} for who in range(400) for g in POOLS["g"]]
    rows += [{"id": who, "g": "a"} for who in range(400, 500)]
    session = dp.Session(epsilon=10**6, delta="1e-2")
    people = session.protect(frame_of(rows), "id").limit_norm(1)
    query = people.group_by("g").agg(PEOPLE)
    found = query.collect(epsilon=10**5, delta="1e-6")
    assert found.rows() == [(None, 200), ("a", 300), ("b", 200), ("c", 200)]


@pytest.mark.always
def test_nobody_is_weighed_unless_that_was_written() -> None:
    """Without `limit_norm` individuals count whole, under a limit that is found."""
    rows = [{"id": who, "g": g} for who in range(900) for g in POOLS["g"]]
    people = dp.Session(epsilon=10**6, delta="1e-2").protect(frame_of(rows), "id")
    query = people.group_by("g").agg(PEOPLE)
    plan = query.plan(epsilon=100, delta="1e-6")
    assert not any("limit_norm" in step.words for block in plan.blocks for step in block.steps)
    found = query.collect(epsilon=100, delta="1e-6")
    assert (found["n"] - 900).abs().max() < 20
    with pytest.raises(dp.UnboundedSensitivity, match="any number of groups"):
        query.plan(epsilon=100, delta="1e-6", limits=None)
