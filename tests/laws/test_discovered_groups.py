"""Laws of groups that nobody listed, and of parts of individuals' frames.

What groups are chosen by changes by one at most, in as many groups as the plan says; whoever is
alone in a group adds no more than the threshold allows for; costs, counted again, are no more than
is claimed; and an audit of whole releases, keys included, finds no more than that either.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpframe as dp
from dpframe import accounting, lower, pipeline
from dpframe.aggregates.keys import KeySelection
from dpframe.core.units import Rows
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import NoisyThreshold, TruncatedGeometric
from dpframe.release.draws import KeyChoice
from tests.laws import test_several_frames as several
from tests.laws.amounts import examples
from tests.laws.layouts import stored
from tests.laws.neighbours import (
    Counted,
    exact_tables,
    measurements_of,
    moved,
    query_of,
    tables_of,
    violation,
)

SPEND = {"epsilon": 1, "delta": 1e-6}
Make = Callable[[Any], Any]


def protected(frame: pl.DataFrame | pl.LazyFrame, unit: Any) -> Any:
    return dp.Session(epsilon=10**9, delta=0.9).protect(frame, unit)


# ------------------------------------------------------------------------ what is counted

BY = {
    "g": ('f.group_by("g")', ["g"]),
    "two": ('f.group_by("g", "h")', ["g", "h"]),
    "c": ('f.group_by("c")', ["c"]),
}
people = {
    "text": st.sampled_from(["p.limit_rows(3)", "p", *several.JOINS, *several.LIMITED[:-1]]),
    "steps": st.lists(st.sampled_from(several.THEN), max_size=2),
    "by": st.sampled_from(sorted(BY)),
    "drawn": several.tables(),
    "salt": several.salts,
}


def listed(asked: Any, frames: Any, frame: Any, drawn: list[Any], salt: int) -> Any:
    """The query as if all keys that there are were listed."""
    rows = [frames.collected(frame, tables, salt) for tables in drawn]
    names = asked.groups.names
    both = pl.concat([r.select(pl.col(names)) for r in rows])
    keys = both.with_columns(pl.col(pl.Categorical).cast(pl.String)).unique()
    return replace(asked, groups=asked.groups.with_keys(keys))


def check_numbers(asked: Any, frames: Any, frame: Any, one: Any, other: Any, salt: int) -> None:
    """Of what groups are chosen by, and what is released beside it."""
    scope = asked.scope
    selection = measurements_of(asked)[0].part
    assert isinstance(selection, KeySelection)
    touched = selection.changed_groups(scope)
    known = listed(asked, frames, frame, [one, other], salt)
    if not known.groups.size:
        return
    tables = [exact_tables_of(asked, known, frames.data(t), salt) for t in (one, other)]
    choice = KeyChoice(selection.table, selection.rows, kernel.Exact())
    before, after = (choice.individuals(t[selection.table].values) for t in tables)
    change = np.abs(before - after)
    assert change.max(initial=0) <= (1 if scope.norm is None else PARTS)
    assert np.count_nonzero(change) <= touched
    alone = (before == 0) != (after == 0)
    assert np.count_nonzero(alone) <= touched
    published = measurements_of(asked)[0].sensitivity
    assert np.count_nonzero(change) <= published.l0
    assert change.sum() <= published.l1
    assert (change**2).sum() <= published.l2_squared
    assert change.max(initial=0) <= published.linf
    for use in measurements_of(asked)[1:]:
        assert use.sensitivity == use.part.sensitivity(scope)
        problem = violation(use.part, moved(use.part, *tables, known.scope), scope)
        assert problem is None, problem
        if use.part.tables == (selection.table,):  # whose noise may decide
            numbers = np.abs(tables[0][selection.table].values - tables[1][selection.table].values)
            assert numbers[alone].max(initial=0) <= use.sensitivity.linf * scope.parts


def exact_tables_of(asked: Any, known: Any, data: Any, salt: int) -> Any:
    counted = Counted(known, {})
    tables = tables_of(asked)
    source = {token: stored(found).lazy() for token, found in data.items()}
    for lowered in lower.lower_query(known.relation, known.groups, tables, source, salt=salt):
        result = lowered.group(lowered.frame.collect())
        cells = lower.tables.count_cells(lowered, result, known.groups)
        for statistic, found in zip(lowered.statistics, cells, strict=True):
            counted[lower.tables.Table(statistic, lowered.cells)] = found
    return counted


@examples(12, 150)
@given(**people)  # type: ignore[arg-type]
def test_an_individual_changes_few_groups_by_one(
    text: str, steps: list[str], by: str, drawn: Any, salt: int
) -> None:
    frames = several.Frames()
    frame = several.accepted(frames, text, steps)
    written, names = BY[by]
    if not set(names) <= set(frame.columns):
        return
    for limit in ("f", "f.limit_rows(3)", f"f.limit_groups(2, by={names})", "g.limit_rows(2)"):
        who = frame._relation.facts.identifier
        limited = eval(limit.replace("g.", f"f.limit_groups(1, by={names})."), {"f": frame})
        grouped = eval(written, {"f": limited})
        for made in (
            lambda g: g.agg(n=dp.count()),
            lambda g, w=who: g.agg(pl.col(w).dp_n_unique().alias("n")),
        ):
            try:
                asked = query_of(made(grouped))
                selection = measurements_of(asked)[0].part
                if not isinstance(selection, KeySelection):  # the keys are known
                    continue
                selection.changed_groups(asked.scope)
            except dp.DPFrameError:
                continue
            other = several.without(drawn, 1)
            check_numbers(asked, frames, limited, drawn, other, salt)


@examples(20, 250)
@given(st.sampled_from(several.UNLIMITED), st.sampled_from(sorted(BY)), several.of_rows())
def test_rows_change_few_groups_by_one(text: str, by: str, drawn: Any) -> None:
    units, one, other = drawn
    frames = several.Frames(units)
    frame = frames.frame(text)
    written, names = BY[by]
    if set(names) <= set(frame.columns):
        asked = query_of(eval(written, {"f": frame}).agg(n=dp.count()))
        check_numbers(asked, frames, frame, one, other, 0)


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_as_many_groups_change_as_are_paid_for(adjacency: Any, k: int) -> None:
    """An individual with one row in each of k groups, who may then be in others."""
    frame = protected(pl.LazyFrame(schema={"g": pl.Int64}), Rows(adjacency, k))
    asked = query_of(frame.group_by("g").agg(n=dp.count()))
    selection = measurements_of(asked)[0].part
    assert isinstance(selection, KeySelection)
    assert selection.rows == k
    touched = k if adjacency == "add-remove" else 2 * k
    assert selection.changed_groups(asked.scope) == touched
    plan = frame.group_by("g").agg(n=dp.count()).plan(**SPEND)
    assert plan.releases[0].sensitivity == dp.Sensitivity(touched, touched, touched**0.5, 1)
    assert f"L0 {touched}, L1 {touched}" in plan.explain(details=True)
    numbers = np.arange(0, 5 * k + 1)
    individuals = KeyChoice(selection.table, k, kernel.Exact()).individuals(numbers)
    assert individuals.tolist() == [math.ceil(Fraction(int(n), k)) for n in numbers]


# ---------------------------------------------------------------------------- what comes out

COLUMNS = ("v0", "g0", "number", "unit", "count", "len", "cell", "r0", "__g0", "k", "*", "^a$")


@examples(20, 160)
@given(
    st.lists(st.tuples(st.sampled_from(["b", "a", "Z", "", None]), st.sampled_from([2, 1, None]))),
    st.randoms(use_true_random=False),
    st.sampled_from([Rows(), "id"]),
)
def test_large_groups_come_sorted_whatever_the_order(drawn: Any, random: Any, unit: Any) -> None:
    """At a large epsilon just the groups of two appear, but with a chance of 2**-60."""
    rows = [{"id": i, "g": g, "h": h} for i, (g, h) in enumerate(drawn)]
    schema: Any = {"id": pl.Int64, "g": pl.String, "h": pl.Int8}
    spend: Any = {"epsilon": 10**6, "delta": Fraction(1, 2**60)}
    wanted = Counter((row["g"], row["h"]) for row in rows)
    keys = [key for key, n in wanted.items() if n > 1]
    keys.sort(key=lambda key: [(v is not None, v) for v in key])
    for _ in range(2):
        random.shuffle(rows)
        frame = protected(pl.DataFrame(rows, schema=schema), unit)
        frame = frame.limit_rows(1) if unit == "id" else frame
        result = frame.group_by("g", "h").agg(n=dp.count(), s=pl.col("h").dp_sum((0, 2)))
        found = result.collect(**spend)
        assert found.rows() == [(*key, wanted[key], wanted[key] * (key[1] or 0)) for key in keys]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("unit", [Rows(), "id"])
def test_grouping_columns_have_any_name(name: str, unit: Any) -> None:
    plain = pl.DataFrame({"id": range(300), "g": ["b", None, "a"] * 100, "x": [1] * 300})
    frame = protected(plain, unit)
    frame = frame.limit_rows(1) if unit == "id" else frame
    by = pl.col("g").alias(name)
    texts = [dp.count().alias("n"), pl.col("id").dp_n_unique().alias("w")]
    outputs = texts if unit == "id" else [texts[0], pl.col("x").dp_sum((0, 1)).alias("w")]
    result = frame.group_by(by).agg(*outputs).collect(epsilon=10**6, delta=1e-6)
    assert result.rows() == [(None, 100, 100), ("a", 100, 100), ("b", 100, 100)]
    assert result.columns == [name, "n", "w"]


@pytest.mark.parametrize("height", [0, 1, 3])
@pytest.mark.parametrize(
    "text",
    [
        "dp.count()",
        'dp.sum("x", (0, 6))',
        'dp.mean("x", (0, 6))',
        'dp.var("x", (0, 6))',
        'dp.histogram("x", [0, 3, 6], other=True)',
        'dp.median("x", (0, 6))',
        'dp.quantile("x", [0.1, 0.9], candidates=[0, 3])',
        'dp.argmax("e", k=2)',
        'dp.n_unique("x")',
        '(dp.sum("x", (0, 6)) / dp.count()).alias("r")',
    ],
)
def test_there_may_be_no_group_at_all(text: str, height: int) -> None:
    schema: Any = {"g": pl.String, "x": pl.Int64, "e": pl.Enum(["p", "q"])}
    frame = pl.DataFrame([{"g": str(i), "x": i} for i in range(height)], schema=schema)
    query = protected(frame, Rows()).group_by("g").agg(eval(text, {"dp": dp}))
    found = query.collect(epsilon=1, delta=Fraction(1, 2**60))
    full = protected(frame, Rows()).group_by("g", keys=["0"])
    assert found.height == 0
    assert found.schema == full.agg(eval(text, {"dp": dp})).collect(epsilon=1).schema


def test_groups_need_a_delta() -> None:
    frame = pl.DataFrame({"g": ["a"] * 9})
    with pytest.raises(dp.MissingKeys):
        dp.Session(epsilon=1).protect(frame, dp.Rows()).group_by("g")
    for session, spend in (
        (dp.Session(epsilon=1, delta=1e-6), {"epsilon": 1}),
        (dp.Session(epsilon=1, delta=1e-6), {"epsilon": 1, "delta": 0}),
        (dp.Session(dp.ZCDP(1)), {"rho": 1}),
    ):
        query = session.protect(frame, dp.Rows()).group_by("g").agg(dp.count())
        with pytest.raises(dp.MissingKeys, match="delta"):
            query.collect(**spend)
        assert session.history.is_empty()
    session = dp.Session(epsilon=1, delta=1e-6, composition="zcdp")
    query = session.protect(frame, dp.Rows()).group_by("g").agg(dp.count())
    with pytest.raises(dp.UnsupportedOperation, match="rho is not known"):
        query.collect(epsilon=0.1, delta=1e-7)
    assert session.history.is_empty()


def test_rows_of_individuals_without_limits_are_refused() -> None:
    schema: Any = {"id": pl.Int64, "g": pl.String, "f": pl.Float64}
    frame = protected(pl.LazyFrame(schema=schema), "id")
    individuals = pl.col("id").dp_n_unique().alias("n")
    for by in ("g", (pl.col("id") % 2).alias("odd")):
        with pytest.raises(dp.UnboundedSensitivity):
            query_of(frame.group_by(by).agg(dp.count()))
        with pytest.raises(dp.UnboundedSensitivity):
            query_of(frame.group_by(by).agg(individuals, dp.count()))
    with pytest.raises(dp.MissingKeys, match="about one individual"):
        frame.group_by("id").agg(dp.count())
    with pytest.raises(dp.UnboundedSensitivity):  # no limit speaks of what floats make
        query_of(frame.group_by(g=pl.col("f").floor().cast(pl.Int64)).agg(individuals))


# --------------------------------------------------------------------------------- costs

SUMS = [dp.sum("x", (0, i)).alias(f"s{i}") for i in range(1, 25)]
QUERIES: dict[str, Make] = {
    "count": lambda g: g.agg(dp.count()),
    "sum": lambda g: g.agg(dp.sum("x", (0, 6))),
    "both": lambda g: g.agg(dp.count(), dp.sum("x", (0, 6))),
    "clamped": lambda g: g.agg(dp.count(nonnegative=True)),
    "weights": lambda g: g.agg(dp.count(weight=7), dp.sum("x", (0, 6), weight=2)),
    "laplace": lambda g: g.agg(dp.count(mechanism="discrete_laplace")),
    "gaussian": lambda g: g.agg(dp.count(mechanism="discrete_gaussian")),
    "two counts": lambda g: g.agg(dp.count(mechanism="discrete_gaussian"), dp.count().alias("m")),
    "histogram": lambda g: g.agg(dp.histogram("x", [0, 3, 6])),
    "argmax": lambda g: g.agg(dp.argmax("e")),
    "quantile": lambda g: g.agg(dp.quantile("x", [0.1, 0.9], (0, 6))),
    "many": lambda g: g.agg(dp.count(), *SUMS),
    "many sums": lambda g: g.agg(*SUMS),
}  # fmt: skip
UNITS = [Rows(), Rows(contributions=3), Rows("change-one"), "limits"]
EMPTY = pl.LazyFrame(schema={"id": pl.Int64, "g": pl.String, "x": pl.Int64, "e": pl.Enum("pq")})


def grouped(unit: Any, frame: Any = EMPTY) -> Any:
    if unit != "limits":
        return protected(frame, unit).group_by("g")
    return protected(frame, "id").limit_groups(2, by="g").limit_rows(3).group_by("g")


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", QUERIES)
def test_costs_counted_again_are_no_more(name: str, unit: Any) -> None:
    plan = QUERIES[name](grouped(unit)).plan(**SPEND)
    asked = dp.ApproxDP(1, 1e-6)
    assert plan.cost.main <= asked.main
    assert plan.cost.slack <= asked.slack
    law = plan.releases[0].law
    assert isinstance(law, (TruncatedGeometric, NoisyThreshold))
    touched = plan.releases[0].repeats
    own = [e for e in plan.events if isinstance(e, accounting.ApproxEvent)]
    assert len(own) == touched
    assert law.delta(touched) == touched * law.row_delta <= plan.cost.slack
    if plan.composition == "sum":
        assert sum(r.cost.main for r in plan.draws) <= asked.main
        assert sum(r.cost.slack for r in plan.draws) <= asked.slack
    found = accounting.compare(list(plan.events), float(plan.cost.slack))
    best = found["epsilon"].drop_nulls().min()
    assert isinstance(best, float)
    gaussian = any(r.mechanism == "discrete_gaussian" for r in plan.releases)
    assert best <= 1.0 + (1e-3 if gaussian else 1e-9)  # events do not tell in how many groups


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", ["count", "both", "many", "sum"])
def test_costs_in_rho_are_those_of_the_parts(name: str, unit: Any) -> None:
    frame = dp.Session(dp.ZCDP(1, 1e-3)).protect(EMPTY, "id" if unit == "limits" else unit)
    if unit == "limits":
        frame = frame.limit_groups(2, by="g").limit_rows(3)
    plan = QUERIES[name](frame.group_by("g")).plan(rho=0.5, delta=1e-6)
    asked = dp.ZCDP(0.5, 1e-6)
    assert plan.cost.main == sum(r.cost.main for r in plan.draws) <= asked.main
    touched = plan.releases[0].repeats
    law = plan.releases[0].law
    assert plan.cost.slack == touched * law.row_delta <= asked.slack
    if isinstance(law, TruncatedGeometric):
        assert plan.releases[0].cost.main >= touched * law.row_epsilon**2 / 2


@pytest.mark.parametrize("mechanism", ["auto", "discrete_gaussian"])
def test_a_threshold_is_of_the_noise_that_is_drawn(mechanism: str) -> None:
    plan = grouped(Rows(contributions=3)).agg(dp.count(mechanism=mechanism)).plan(**SPEND)
    keys, number = plan.releases
    assert isinstance(keys.law, NoisyThreshold)
    assert keys.law.noise == number.law
    expected = NoisyThreshold.for_delta(number.law, 3, keys.law.row_delta)
    assert keys.law.threshold == expected.threshold


def test_fingerprints_tell_how_groups_are_found() -> None:
    plans = [
        grouped(Rows()).agg(dp.count()).plan(**SPEND),
        grouped(Rows()).agg(dp.count()).plan(epsilon=1, delta=1e-7),
        grouped(Rows(contributions=2)).agg(dp.count()).plan(**SPEND),
        protected(EMPTY, Rows()).group_by("g", keys=["a"]).agg(dp.count()).plan(**SPEND),
    ]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


# --------------------------------------------------------------------------------- audit

SIZES = [0, 1, 3, 6]
"""Individuals in a group; the neighbour has one more."""
AUDITED: dict[str, Make] = {
    "individuals": lambda f: f.group_by("g").agg(pl.col("id").dp_n_unique().alias("n")),
    "rows": lambda f: f.limit_rows(2).group_by("g").agg(n=dp.count()),
    "sum": lambda f: f.group_by("g").agg(n=pl.col("x").dp_sum((0, 1), per="unit")),
    "gaussian": lambda f: f.group_by("g").agg(
        n=pl.col("id").dp_n_unique(mechanism="discrete_gaussian")
    ),
}
CLAIM = {"epsilon": 1.0, "delta": 0.02}
ABSENT = -(10**9)


def releases(name: str, size: int, groups: int) -> np.ndarray[Any, Any]:
    """What comes out for each of many groups of so many individuals with two rows each."""
    ids = np.repeat(np.arange(size * groups), 2)
    frame = pl.DataFrame({"id": ids, "g": ids // max(size, 1), "x": np.ones(ids.size, np.int64)})
    private = protected(frame.cast(pl.Int64), "id").limit_groups(1, by="g")
    result = AUDITED[name](private).collect(**CLAIM)
    found = np.full(groups, ABSENT, np.int64)
    found[result["g"].to_numpy()] = result["n"].to_numpy()
    return found


def bound(one: Any, other: Any, delta: float) -> float:
    """The largest lower bound on epsilon over events "at least" and "at most", at 95% in all."""
    seen = np.unique(np.concatenate([one, other]))
    points = np.unique(np.quantile(seen, np.linspace(0, 1, 25), method="nearest"))
    doubt, n, best = 0.05 / (8 * points.size), one.size, -math.inf
    for point in points:
        for reaches in (np.greater_equal, np.less_equal):
            for p, q in ((one, other), (other, one)):
                hits, others = int(reaches(p, point).sum()), int(reaches(q, point).sum())
                least = stats.beta.ppf(doubt, hits, n - hits + 1) if hits else 0.0
                most = stats.beta.ppf(1 - doubt, others + 1, n - others) if others < n else 1.0
                if least > delta:
                    best = max(best, math.log((least - delta) / most))
    return best


def audit(name: str, groups: int) -> list[float]:
    found = [releases(name, size, groups) for size in sorted({*SIZES, *(s + 1 for s in SIZES)})]
    sizes = sorted({*SIZES, *(s + 1 for s in SIZES)})
    by_size = dict(zip(sizes, found, strict=True))
    return [bound(by_size[s], by_size[s + 1], CLAIM["delta"]) for s in SIZES]


@pytest.mark.parametrize("name", AUDITED)
def test_the_audit_finds_no_more_than_is_claimed(name: str) -> None:
    assert max(audit(name, 4_000)) <= CLAIM["epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_a_long_audit_finds_no_more_than_is_claimed(name: str) -> None:
    found = audit(name, 300_000)
    assert max(found) <= CLAIM["epsilon"]
    assert max(found) > 0.3 * CLAIM["epsilon"]


@pytest.mark.parametrize("name", ["individuals", "gaussian"])
def test_the_audit_finds_a_threshold_that_is_too_low(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law can fail: one individual alone would come out twice as often."""
    true = KeyChoice.keep

    def lower_by_2(choice: KeyChoice, counts: Any) -> Any:
        assert isinstance(choice.law, kernel.Threshold)
        return true(replace(choice, law=replace(choice.law, least=choice.law.least - 2)), counts)

    monkeypatch.setattr(KeyChoice, "keep", lower_by_2)
    found = bound(releases(name, 0, 20_000), releases(name, 1, 20_000), CLAIM["delta"])
    assert found > CLAIM["epsilon"]


# ------------------------------------------------------------------- parts of individuals


def parts_with(owned: dict[int, list[str]], groups: int, again: int = 1) -> Any:
    rows = [{"id": i, "g": g} for i, found in owned.items() for g in found]
    frame = pl.DataFrame(rows, schema={"id": pl.Int64, "g": pl.String})
    session = dp.Session(epsilon=1)
    private = session.protect(frame, "id")
    for _ in range(again):
        private = private.limit_groups(groups, by="g")
    return session, frame, session.partition(private, "g", ["a", "b", "c", "d"])


def who_is_in(part: Any, frame: pl.DataFrame, ids: list[int]) -> set[int]:
    asked = query_of(part.group_by("id", keys=ids).agg(n=pl.col("id").dp_n_unique()))
    prepared = pipeline.plan(asked, dp.PureDP(1), None)
    (table,) = {t for use in prepared.parts for t in use.part.tables}
    execution = lower.Execution.of_public({asked.relation.token: stored(frame).lazy()})
    found = execution.run(asked.relation, asked.groups, [table])[table].values
    return {i for i, n in zip(ids, found.tolist(), strict=True) if n}


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_individuals_are_in_the_same_parts_at_every_release(groups: int) -> None:
    owned = {i: ["a", "b", "c", "d"] for i in range(60)}
    session, frame, parts = parts_with(owned, groups)
    seen: dict[int, set[str]] = defaultdict(set)
    for _ in range(3):
        for key, part in parts.items():
            for one in (part, part.filter(pl.col("g") != "x"), part.limit_rows(1)):
                for i in who_is_in(one, frame, list(owned)):
                    seen[i].add(key)
    assert all(len(found) == groups for found in seen.values())
    assert len(seen) == len(owned)
    _, _, others = parts_with(owned, groups)
    secret = [
        {k: who_is_in(p, frame, list(owned)) for k, p in ps.items()} for ps in (parts, others)
    ]
    assert secret[0] != secret[1]  # each partition has a salt of its own
    for part in parts.values():
        part.session.collect(part.limit_rows(1).dp_count(), epsilon=0.1)
    assert session.spent == dp.PureDP(Fraction(groups, 10))


@examples(12, 200)
@given(
    st.sampled_from([*several.LIMITED, *several.JOINS, *several.CONCATS]),
    st.lists(st.sampled_from(several.THEN), max_size=2),
    several.tables(),
    st.sampled_from(["p", "rows"]),
    several.of_rows(),
)
def test_neighbours_differ_in_as_many_parts_as_are_paid_for(
    text: str, steps: list[str], drawn: Any, kind: str, of_rows: Any
) -> None:
    units, one, other = of_rows if kind == "rows" else (None, drawn, several.without(drawn, 1))
    if kind == "rows" and text in several.LIMITED:
        return
    frames = several.Frames(units)
    frame = several.accepted(frames, text, steps if kind == "p" else ())
    if "g" not in frame.columns:
        return
    for limited in ("f", 'f.limit_groups(1, by="g")', "f.limit_rows(2)"):
        try:
            made = eval(limited, {"f": frame})
            parts = frames.session.partition(made, "g", ["a", "b", "z", None])
        except dp.DPFrameError:
            continue
        (level,) = {
            replace(p.session._payer.ledger.scope.levels[-1], key="") for p in parts.values()
        }
        differ = 0
        for part in parts.values():
            who = part._relation.facts.identifier
            asked = query_of(
                part.dp_count() if who is None else part.agg(pl.col(who).dp_n_unique())
            )
            counted = [
                exact_tables(asked, frames.data(t), salt=part._relation.salt or 0)
                for t in (one, other)
            ]
            differ += any(
                counted[0][t].values.tolist() != counted[1][t].values.tolist()
                for t in tables_of(asked)
            )
        assert differ <= level.touched


@pytest.mark.parametrize(
    ("unit", "touched"),
    [(Rows(), 3), (Rows(contributions=2), 6), (Rows("change-one"), 6), (Rows("change-one", 2), 7)],
)
def test_copies_of_a_row_are_in_as_many_parts(unit: Rows, touched: int) -> None:
    public = pl.DataFrame({"k": [1, 1, 1], "g": [1, 2, 3]})
    session = dp.Session(epsilon=10)
    frame = session.protect(pl.LazyFrame(schema={"k": pl.Int64}), unit).join(public, on="k")
    parts = session.partition(frame, "g", list(range(7)))
    for part in parts.values():
        plan = part.dp_count().plan(epsilon=1)
        assert plan.share is not None
        assert plan.share.touched == touched
    assert query_of(parts[1].dp_count()).scope.spread.tight[0] == 3 * unit.contributions


def test_parts_of_individuals_need_a_limit() -> None:
    """Also where there are few parts: then all of them would be paid for, and nothing be saved."""
    session = dp.Session(epsilon=10)
    frame = session.protect(pl.DataFrame({"id": [1, 1], "g": ["a", "b"]}), "id")
    with pytest.raises(dp.UnboundedSensitivity, match="limit_groups"):
        session.partition(frame, "g", ["a", "b"])
    parts = session.partition(frame.limit_groups(3, by="g"), "g", ["a", "b"])
    for part in parts.values():
        part.agg(pl.col("id").dp_n_unique()).collect(epsilon=1)
    assert session.spent == dp.PureDP(2)
