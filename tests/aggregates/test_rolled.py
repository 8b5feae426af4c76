"""Margins, how far individuals move them, and the law of what is rebuilt from them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.noise import WeightedNoise, excess_of, rebuilt_noise
from dpframe.aggregates.reconstruction import SetReconstruction, ways_to_measure
from dpframe.frames.groups import SetGroups
from dpframe.mechanisms import AdditiveMechanism, DiscreteGaussian, DiscreteLaplace, NoNoise
from dpframe.optimise.measurements import measurements_of
from dpframe.workloads import Axis, Strategy, Wanted, Workload, tables
from tests.laws.neighbours import Counted
from tests.workloads.norms import variances_of

SIZES = (3, 2, 2)
NAMES = ("a", "b", "c")
KEYS = {name: [str(i) for i in range(n)] for name, n in zip(NAMES, SIZES, strict=True)}
SCHEMA = {"who": pl.Int64, **dict.fromkeys(NAMES, pl.String), "x": pl.Int64}


def asked(people: dp.PrivateFrame) -> Any:
    groups = people.group_by(dp.cube(*NAMES), keys=KEYS)
    return groups.agg(dp.count().alias("n"), pl.col("x").dp_sum((-2, 5)).alias("s"))._query


def margin_of(query: Query, part: Margin, finest: np.ndarray) -> np.ndarray:
    """The margin of the numbers of the finest groups."""
    counted = Counted(query, {part.table: CellCounts(None, None, finest, len(finest))})
    return counted.of(part).numbers(part).reshape(-1)


def exact(query: Query, frame: pl.DataFrame, part: Margin) -> np.ndarray:
    """The margin of a frame's rows, by plain Polars."""
    listed = pl.DataFrame(list(itertools.product(*KEYS.values())), schema=list(NAMES), orient="row")
    summed = "s" if "sum" in part.table.words() else "n"
    found = frame.group_by(NAMES).agg(n=pl.len().cast(pl.Int64), s=pl.col("x").sum())
    finest = listed.join(found, on=NAMES, how="left", maintain_order="left")[summed]
    return margin_of(query, part, finest.fill_null(0).to_numpy().astype(np.int64))


def norms(change: np.ndarray) -> tuple[int, int, int, int]:
    size = abs(change)
    return int((size > 0).sum()), int(size.sum()), int((size**2).sum()), int(size.max(initial=0))


def check(query: Any, one: pl.DataFrame, other: pl.DataFrame) -> None:
    for use in measurements_of(query):
        assert isinstance(use.part, Margin)
        l0, l1, l2_squared, linf = norms(
            exact(query, one, use.part) - exact(query, other, use.part)
        )
        claimed = use.sensitivity
        assert l0 <= claimed.l0
        assert l1 <= claimed.l1
        assert l2_squared <= claimed.l2_squared
        assert linf <= claimed.linf


def row(who: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    """Values that are listed, and others."""
    keys = [st.sampled_from([*values, "other", None]) for values in KEYS.values()]
    return st.tuples(st.just(who), *keys, st.integers(-2, 5))


def frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def ways(people: dp.PrivateFrame) -> list[Any]:
    """The query as it is measured for an epsilon, and for a rho."""
    query = asked(people)
    return [*ways_to_measure(query, dp.PureDP(1)), *ways_to_measure(query, dp.ZCDP(1))]


@given(st.lists(row(), max_size=5), st.lists(row(), min_size=1, max_size=3), st.booleans())
def test_rows_move_margins_by_no_more_than_is_claimed(
    shared: list[Any], mine: list[Any], changes: bool
) -> None:
    unit = dp.Rows("change-one" if changes else "add-remove", contributions=len(mine))
    people = dp.Session(epsilon=1).protect(frame([]), unit=unit)
    instead = [shared[0]] * len(mine) if changes and shared else []
    if changes and not instead:
        return
    for query in ways(people):
        check(query, frame(shared + mine), frame(shared + instead))


@given(st.lists(row(), max_size=4), st.data(), st.integers(1, 3), st.integers(1, 3))
def test_individuals_move_margins_by_no_more_than_is_claimed(
    shared: list[Any], data: st.DataObject, groups: int, per_group: int
) -> None:
    """Of an individual whose rows keep to the limits, so that none is dropped."""
    by = data.draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["b", "c"]]))
    people = (
        dp.Session(epsilon=1)
        .protect(frame([]), unit=dp.Identifier("who"))
        .limit_groups(groups, by=by)
        .limit_rows(per_group, by=by)
    )
    mine = data.draw(st.lists(row(1), min_size=1, max_size=groups * per_group))
    mine = frame(mine).filter(
        (pl.struct(by).rank("dense") <= groups) & (pl.int_range(pl.len()).over(by) < per_group)
    )
    for query in ways(people):
        check(query, pl.concat([frame(shared), mine]), frame(shared))


def test_margins_are_moved_as_far_as_is_claimed() -> None:
    people = dp.Session(rho=1).protect(frame([]), unit=dp.Rows(contributions=2))
    (query,) = ways_to_measure(asked(people), dp.ZCDP(1))
    mine = frame([(0, "1", "1", "0", 5)] * 2)
    for use in measurements_of(query):
        assert isinstance(use.part, Margin)
        found = norms(exact(query, mine, use.part))
        claimed = use.sensitivity
        assert found[1:] == (claimed.l1, claimed.l2_squared, claimed.linf)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=12, max_size=12))
def test_margins_wrap_as_sums_do(numbers: list[int]) -> None:
    people = dp.Session(rho=1).protect(frame([]), unit=dp.Rows())
    (query,) = ways_to_measure(asked(people), dp.ZCDP(1))
    table = np.array(numbers, dtype=np.int64)
    for use in measurements_of(query):
        assert isinstance(use.part, Margin)
        found = margin_of(query, use.part, table).tolist()
        cells = itertools.product(*map(range, SIZES))
        summed: dict[tuple[int, ...], int] = {}
        for cell, number in zip(cells, numbers, strict=True):
            key = tuple(cell[i] for i in use.part.kept)
            summed[key] = summed.get(key, 0) + number
        assert found == [(total + 2**63) % 2**64 - 2**63 for total in summed.values()]


def test_several_tables_have_several_margins() -> None:
    query = asked(rowless())
    part = Margin(measurements_of(query)[0].part.tables[0], SIZES, (0,), ("a",))
    table = np.arange(24)
    both = np.concatenate([margin_of(query, part, table[:12]), margin_of(query, part, table[12:])])
    np.testing.assert_array_equal(margin_of(query, part, table), both)


def rowless() -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(frame([]), unit=dp.Rows())


def test_shares_of_a_rho_are_those_of_the_strategy() -> None:
    people = dp.Session(rho=1).protect(frame([]), unit=dp.Rows())
    plan = people.group_by(dp.cube(*NAMES), keys=KEYS).dp_count().plan(rho="0.1")
    (query,) = ways_to_measure(asked(people), dp.ZCDP(1))
    rolled = query.aggregates[0]
    assert isinstance(rolled, SetReconstruction)
    (strategy,) = rolled.used_strategies
    total = sum(strategy.shares)
    for release, share in zip(plan.releases, strategy.shares, strict=True):
        assert float(release.cost.rho) == pytest.approx(0.1 * float(share / total), rel=1e-4)


# -- the law of what is rebuilt -----------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(4, 3), (3, 2, 2), (5,), (1, 3)])
@pytest.mark.parametrize("degree", [1, 2])
def test_variances_are_those_of_the_engine(sizes: tuple[int, ...], degree: int) -> None:
    columns = range(len(sizes))
    sets = [s for k in range(len(sizes) + 1) for s in itertools.combinations(columns, k)]
    axes = tuple(map(Axis.nominal, sizes))
    kinds = [tuple("cells" if i in s else "total" for i in columns) for s in sets]
    strategy: Strategy = tables(Workload(axes, tuple(map(Wanted, kinds))), 1 if degree == 1 else 2)
    measured = tuple(tuple(i for i in columns if part.levels[i]) for part in strategy.parts)
    laws: tuple[AdditiveMechanism, ...] = tuple(
        DiscreteLaplace(Fraction(math.ceil(7 + 50 * v**0.5))) for v in strategy.unit_variances
    )
    weights = tuple(1 / v for v in strategy.unit_variances)
    said = strategy.variances([law.variance() for law in laws])
    for kept, asked_for in zip(sets, kinds, strict=True):
        found = rebuilt_noise(sizes, kept, measured, weights, laws)
        variance = variances_of(axes, asked_for, said).max()
        rounding = 2 ** sum(sizes[i] > 1 for i in kept) / 12 if len(measured) > 1 else 0
        assert found.variance() == pytest.approx(variance + rounding, rel=1e-6, abs=0.2)
        assert 0 <= found.excess <= 3.01


def test_one_table_alone_has_its_own_law() -> None:
    law = DiscreteLaplace(Fraction(30))
    found = rebuilt_noise((4, 2), (0, 1), ((0, 1),), (1.0,), (law,))
    assert found.variance() == law.variance()
    assert abs(found.quantile(0.95) - law.quantile(0.95)) <= 1
    assert found.quantile(0.95, 10) == found.quantile(0.995)


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(50), Fraction(10**7)])
def test_fourth_cumulants(scale: Fraction) -> None:
    assert excess_of(DiscreteLaplace(scale)) == pytest.approx(3, abs=0.2 if scale < 10 else 0.01)
    assert excess_of(DiscreteGaussian(scale)) == pytest.approx(0, abs=0.01)
    assert excess_of(NoNoise()) == 0


@pytest.mark.parametrize("excess", [0.0, 1e-14, 0.003, 0.5, 1.7, 2.999, 3.0])
def test_tails_are_those_of_a_gaussian_and_a_laplace_noise(excess: float) -> None:
    noise = WeightedNoise(25.0, excess)
    share = math.sqrt(excess / 3)
    normal, scale = math.sqrt((1 - share) * 25), math.sqrt(share * 25 / 2)

    def density(x: float) -> float:
        if scale < 5e-3:
            return math.exp(-x * x / 50) / math.sqrt(50 * math.pi)
        if normal < 1e-4:
            return math.exp(-abs(x) / scale) / (2 * scale)
        return quad(
            lambda t: math.exp(-abs(x - t) / scale - t * t / (2 * normal**2)),
            -12 * normal, 12 * normal, points=[x] if abs(x) < 12 * normal else None, limit=200,
        )[0] / (2 * scale * normal * math.sqrt(2 * math.pi))  # fmt: skip

    for x in (0.0, 1.5, 6.0, 14.0):
        expected = quad(density, x, x + 80, limit=200, points=[x + 5, x + 15])[0]
        found = noise.above(np.array([x, -x]))
        assert found[0] == pytest.approx(expected, abs=2e-5)
        assert found.sum() == pytest.approx(1)
    reach = noise.quantile(Fraction(95, 100))
    assert 2 * noise.above(np.array([reach + 0.5]))[0] <= 0.05
    assert 2 * noise.above(np.array([reach - 0.5]))[0] > 0.05


@given(st.floats(1e-12, 1e30), st.floats(0, 3), st.floats(0, 1e18))
def test_tails_are_probabilities_at_any_size(spread: float, excess: float, x: float) -> None:
    found = WeightedNoise(spread, excess).above(np.array([x, -x, 0.0]))
    assert np.isfinite(found).all()
    assert -1e-9 <= found[0] <= 0.5 + 1e-9
    assert found[2] == pytest.approx(0.5)


def test_no_noise_has_no_tail() -> None:
    none = WeightedNoise(0.0, 0.0)
    assert none.quantile(0.95) == 0
    np.testing.assert_array_equal(none.above(np.array([-1.0, 0.0, 1.0])), [1.0, 0.0, 0.0])


def test_groups_by_sets_as_they_stand_in_a_result() -> None:
    query = asked(rowless())
    assert isinstance(query.groups, SetGroups)
    shown = query.groups.result_groups()
    assert shown.keys.height == 12 + 6 + 6 + 4 + 3 + 2 + 2 + 1
    assert [query.groups.grouping(kept) for kept in query.groups.sets] == [0, 1, 2, 4, 3, 5, 6, 7]
