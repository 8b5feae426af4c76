"""Several quantiles of one column: plans choose about the best way that was measured."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.cells import PointCells
from dpframe.aggregates.quantile import QuantileTree, _tree, levels_for
from dpframe.aggregates.values import numeric_value
from dpframe.api.query import parts
from dpframe.core.dtypes import INT64, domain_of_dtype
from dpframe.core.tree import Column

X: Any = pl.col("x")
RECURSION, AT_ONCE = "recursive_exponential", "joint_exponential"
MEASURED: dict[tuple[int, str], float] = {
    (5, "add-remove"): 0.87,
    (9, "add-remove"): 0.95,
    (12, "add-remove"): 0.98,
    (5, "change-one"): 0.55,
    (9, "change-one"): 0.56,
    (12, "change-one"): 0.59,
}
"""What quantiles at once err over what those of a recursion do, in docs/benchmarks.md: geometric
means over 34 to 36 series of 40 to 60 runs."""


def tree_of(m: int, depth: int) -> QuantileTree:
    quantiles = tuple(Fraction(number, m + 1) for number in range(1, m + 1))
    value = numeric_value(Column("x"), {"x": domain_of_dtype(INT64)}, "quantile")
    cells = PointCells(value, Fraction(0), Fraction(1), 10**6)
    return QuantileTree(cells, quantiles, levels_for(quantiles, depth))


@pytest.mark.parametrize(("m", "adjacency"), MEASURED)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_no_choice_costs_more_than_a_tenth(m: int, adjacency: Any, epsilon: str) -> None:
    people = dp.Session(epsilon=100).protect(
        pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows(adjacency)
    )
    asked = [f"{number}/{m + 1}" for number in range(1, m + 1)]
    query = people.agg(X.dp_quantile(asked, bounds=(0, 999_999)))
    (release,) = query.plan(epsilon=epsilon).releases
    errors = {RECURSION: 1.0, AT_ONCE: MEASURED[m, adjacency]}
    assert errors[release.mechanism] <= 1.1 * min(errors.values())


@pytest.mark.parametrize(("m", "depth"), [(3, 2), (5, 3), (12, 4), (31, 5)])
def test_expected_errors_of_a_recursion_are_those_of_its_choices(m: int, depth: int) -> None:
    """Each is off by its span, and ends by what their own choices were off."""
    tree, rng, runs = tree_of(m, depth), np.random.default_rng(2), 20_000
    scope = scope_of_rows()
    spans = [float(span) for span in tree.spans(scope)]
    found: dict[int, Any] = {-1: np.zeros(runs)}
    for number in (number for level in tree.levels for number in level):
        node = tree.choices[number]
        low, high = found[node.lower], found[node.upper]
        own = rng.laplace(scale=spans[number] / 2**0.5, size=runs)
        found[number] = own + low + float(node.quantile) * (high - low)
    errors = [float(np.sqrt(np.mean(found[number] ** 2))) for number in range(m)]
    assert tree.expected_errors(scope) == pytest.approx(errors, rel=0.04)
    whole = sum(e * e for e in tree.expected_errors(scope))
    assert whole == pytest.approx(sum(e * e for e in errors), rel=0.02)


def test_ranks_may_be_off_by_what_all_choices_on_a_path_are() -> None:
    tree, scope = tree_of(3, 2), scope_of_rows()
    middle = tree.shares(scope)
    assert tree.path(scope) == max(middle[1], *(middle[n] + middle[1] / 2 for n in (0, 2)))
    deep = [tree_of(31, depth).path(scope) for depth in (5, 6)]
    assert all(1 < path <= 5 for path in deep)
    assert all(a < b for a, b in pairwise([tree.path(scope), deep[0]]))


@pytest.mark.parametrize("m", [1, 3])
def test_a_recursion_costs_in_rho_what_choices_of_bounded_range_do(m: int) -> None:
    """A choice of an epsilon costs a rho of epsilon**2 / 8, and those along a path add up: with r
    of them, of epsilon / r each, it is epsilon**2 / (8 r). So errors at a rho of 1 are those at an
    epsilon of the root of 8 r.
    """
    tree = tree_of(m, m.bit_length())
    squares = _tree(tree, scope_of_rows())
    assert squares.of_epsilon == pytest.approx(8 * tree.rounds * squares.of_rho)


def scope_of_rows() -> Any:
    people = dp.Session(epsilon=100).protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows())
    return parts(people.agg(dp.count()))[0].scope
