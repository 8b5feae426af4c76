"""Audits of what is drawn together: exact laws on small grids, and samples of the rest.

How far apart a mechanism's outcomes on neighbours are is computed from probabilities that are
written down here from the definitions, and from exact tables that the real lowering makes. Claims
must be reached to 85 % and never be exceeded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.measurement import Integers
from dpframe.api.query import parts
from dpframe.mechanisms import DiscreteBox, DiscreteGaussian, DiscreteHull, DiscreteLaplace
from dpframe.simulate import Exact
from tests.audit.test_audit import FRAME
from tests.laws.neighbours import is_in_arch

X, AGE = pl.col("x"), pl.col("age")
AUDIT = sys.modules["dpframe.audit.audit"]
Ask = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A query, and rows of one individual: those that come, and those whose place they take."""

    ask: Ask
    unit: dp.Rows
    comes: tuple[dict[str, Any], ...]
    goes: tuple[dict[str, Any], ...] = ()


def joint(groups: bool) -> Ask:
    outputs = (dp.count(), X.dp_sum((0, 4)).alias("s"), AGE.dp_mean((-3, 5)).alias("m"))
    return lambda f: (f.group_by("sex", keys=["m", "f"]) if groups else f).agg(*outputs)


def sums(f: Any) -> Any:
    return f.agg(X.dp_sum((0, 4)).alias("s"), AGE.dp_sum((-3, 5)).alias("t"))


def moments(groups: bool) -> Ask:
    outputs = AGE.dp_mean((-20, 30)).alias("m"), AGE.dp_std((-20, 30)).alias("d")
    return lambda f: (f.group_by("sex", keys=["m", "f"]) if groups else f).agg(*outputs)


def cube(f: Any) -> Any:
    keys = {"sex": ["m", "f"], "city": ["a", "b", "c"]}
    return f.group_by(dp.cube("sex", "city"), keys=keys).agg(n=dp.count())


def rolled(f: Any) -> Any:
    keys = {"sex": ["m", "f"], "city": ["a", "b", "c"]}
    outputs = {"n": dp.count(), "s": X.dp_sum((0, 4)), "m": AGE.dp_mean((-3, 5))}
    return f.group_by(dp.rollup("sex", "city"), keys=keys).agg(**outputs)


def bins(f: Any) -> Any:
    return f.agg(dp.count().alias("n"), AGE.dp_histogram([-4, 0, 4, 6]).alias("h"))


def grouped_bins(f: Any) -> Any:
    made = f.filter(X > -1).group_by("sex", keys=["m", "f"])
    return made.agg(dp.count().alias("n"), AGE.dp_histogram([-4, 0, 6], other=True).alias("h"))


ROW: dict[str, Any] = {"x": 4.0, "age": 5, "sex": "m", "city": "a"}
LOW: dict[str, Any] = {"x": 0.0, "age": -3, "sex": "f", "city": "b"}
CASES = {
    "a row": Case(joint(False), dp.Rows(), (ROW,)),
    "a row of a group": Case(joint(True), dp.Rows(), (ROW,)),
    "three rows of a group": Case(joint(True), dp.Rows(contributions=3), (ROW, ROW, ROW)),
    "a row that changes": Case(sums, dp.Rows("change-one"), (ROW,), (LOW,)),
    "a row that changes its group": Case(
        joint(True), dp.Rows("change-one"), (ROW,), ({**ROW, "sex": "f"},)
    ),
    "a row of a variance": Case(moments(False), dp.Rows(), ({**ROW, "age": 30},)),
    "a row in the middle of a variance": Case(moments(False), dp.Rows(), ({**ROW, "age": -7},)),
    "three rows of a variance": Case(
        moments(True), dp.Rows(contributions=3), (ROW, {**ROW, "age": -20}, LOW)
    ),
    "a row of a variance that changes": Case(
        moments(False), dp.Rows("change-one"), ({**ROW, "age": 30},), ({**ROW, "age": -20},)
    ),
    "a row of a variance that changes its group": Case(
        moments(True), dp.Rows("change-one"), (ROW,), (LOW,)
    ),
    "tables": Case(cube, dp.Rows(), (ROW,)),
    "two rows in tables": Case(cube, dp.Rows(contributions=2), (ROW, ROW)),
    "a row of a roll-up": Case(rolled, dp.Rows(), (ROW,)),
    "two rows of a roll-up": Case(rolled, dp.Rows(contributions=2), (ROW, ROW)),
    "a row in bins and their table": Case(bins, dp.Rows(), (ROW,)),
    "a row in no bin of a table": Case(bins, dp.Rows(), ({**ROW, "age": 9},)),
    "two rows in bins and tables": Case(grouped_bins, dp.Rows(contributions=2), (ROW, ROW)),
    "a row that changes bins of a table": Case(
        grouped_bins, dp.Rows("change-one"), (ROW,), ({**ROW, "sex": "f", "age": -2},)
    ),
}
each = pytest.mark.parametrize("name", CASES)


def prepared(case: Case, spend: Any) -> pipeline.Prepared:
    budget = dp.ZCDP(10**6) if isinstance(spend, dp.ZCDP) else dp.ApproxDP(10**6, "0.4")
    frame = dp.Session(budget).protect(FRAME.lazy(), case.unit, name="people")
    return pipeline.plan(parts(case.ask(frame))[0], spend, None)


def table(rows: Sequence[dict[str, Any]]) -> pl.LazyFrame:
    columns = {name: [row.get(name) for row in rows] for name in FRAME.columns}
    return pl.LazyFrame(columns, schema=FRAME.schema)


def moves(found: pipeline.Prepared, case: Case) -> list[tuple[Any, Integers]]:
    """The law of each draw, and how far the individual moves its numbers in each group."""
    query, exact = found.query, Exact.of(found)
    sides = [
        exact.count({query.relation.token: table([*rows, ROW, LOW])})
        for rows in (case.comes, case.goes)
    ]
    made = []
    for one in found.draws:
        part = one.measurement
        before, after = (side.numbers(part) for side in sides)
        if one.law.is_exact:
            assert (before == after).all()
        else:
            made.append((one.law, before - after))
    return made


def log_ratio(law: Any, moved: Integers) -> Fraction:
    """The largest logarithm of a ratio of probabilities, exactly: over all noise on a small grid
    around 0 for a vector of a box, and of Laplace noise by the sum of sizes.
    """
    if isinstance(law, DiscreteLaplace):
        return Fraction(int(abs(moved).sum())) / law.scale
    assert isinstance(law, DiscreteBox)
    rate = law.epsilon / law.fineness
    whole = Fraction(0)
    for vector in moved:  # groups are independent
        corners = [range(-abs(v), abs(v) + 1, max(1, abs(v))) for v in vector.tolist()]
        far = max(
            abs(_radius(law, np.add(at, vector).tolist()) - _radius(law, at))
            for at in product(*corners)
        )
        whole += far * rate
    return whole


def _radius(law: DiscreteBox, at: Sequence[int]) -> int:
    """The least radius whose box, or hull, holds a vector."""
    radius = max(-(-abs(z) * law.fineness // w) for z, w in zip(at, law.widths, strict=True))
    arches = law.arches if isinstance(law, DiscreteHull) else ()
    while radius and not all(
        is_in_arch(*(Fraction(at[i] * law.fineness, radius * law.widths[i]) for i in arch))
        for arch in arches
    ):
        radius += 1
    return radius


@each
def test_the_worst_ratio_is_epsilon(name: str) -> None:
    case = CASES[name]
    for epsilon in (Fraction(1), Fraction(7, 2)):
        found = prepared(case, dp.PureDP(epsilon))
        worst = sum((log_ratio(*move) for move in moves(found, case)), Fraction(0))
        assert Fraction(85, 100) * epsilon < worst <= epsilon
    assert any(isinstance(d.law, DiscreteBox) for d in found.draws) == ("table" not in name)
    assert any(isinstance(d.law, DiscreteHull) for d in found.draws) == ("variance" in name)


def test_rows_in_two_groups_cost_what_they_do_in_one() -> None:
    case = Case(joint(True), dp.Rows(contributions=3), (ROW, LOW, ROW))
    (draw,) = moves(prepared(case, dp.PureDP(1)), case)
    assert (abs(draw[1]) > 0).any(axis=1).tolist() == [True, True]
    assert log_ratio(*draw) == 1


@pytest.mark.parametrize(
    "name", [name for name in CASES if "variance" not in name or name == "a row of a variance"]
)
def test_the_largest_divergence_is_rho(name: str) -> None:
    """Of order 2, by sums over the noise of each number: of order a it is a times rho at most. That
    squares go with their values is not used there, so only rows at the ends of the bounds reach it.
    """
    case = CASES[name]
    found = prepared(case, dp.ZCDP(Fraction(1, 2)))
    divergence = 0.0
    for law, moved in moves(found, case):
        assert isinstance(law, DiscreteGaussian)
        sigma = float(law.sigma)
        step = max(1, int(sigma / 64))  # of wide noise every so many numbers: digits are the same
        z = step * np.arange(-math.ceil(14 * sigma / step), 14 * sigma / step + 1)
        mass = np.exp(-(z**2) / (2 * sigma**2))
        mass /= mass.sum()
        for v in moved.reshape(-1).tolist():
            other = np.exp(-((z - v) ** 2) / (2 * sigma**2))
            other /= np.exp(-(z**2) / (2 * sigma**2)).sum()
            kept = other > 1e-300
            divergence += math.log((mass[kept] ** 2 / other[kept]).sum())
    assert 0.85 * 2 * 0.5 < divergence <= 2 * 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("name", ["a row", "a row of a group", "a row that changes", "tables"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6"])
def test_the_hockey_stick_divergence_is_delta(name: str, delta: str) -> None:
    """The law of the privacy loss by brute force: what epsilon it has at the stated delta."""
    case, epsilon = CASES[name], Fraction(2)
    found = prepared(case, dp.ApproxDP(epsilon, delta))
    losses, masses = np.zeros(1), np.ones(1)
    for law, moved in moves(found, case):
        if isinstance(law, DiscreteGaussian):
            squared = int((moved**2).sum())
            loss, mass = _gaussian_loss(float(law.sigma_squared), squared)
        else:
            loss, mass = _pure_loss(float(log_ratio(law, moved)))
        losses = np.add.outer(losses, loss).reshape(-1)
        masses = np.outer(masses, mass).reshape(-1)
        losses, masses = _merged(losses, masses)
    proved = _epsilon(losses, masses, float(Fraction(delta)))
    assert 0.85 * epsilon < proved
    if all(isinstance(law, DiscreteGaussian) for law, _ in moves(found, case)):
        assert proved <= float(epsilon) * (1 + 1e-3)


def _gaussian_loss(sigma_squared: float, squared: int) -> tuple[Any, Any]:
    """Of noise so wide that a move by so much is one of normal noise, in steps of 1/2000."""
    mean = squared / (2 * sigma_squared)
    deviation = math.sqrt(2 * mean)
    edges = np.linspace(mean - 9 * deviation, mean + 9 * deviation, 4001)
    below = np.array([0.5 * math.erfc((mean - e) / deviation / math.sqrt(2)) for e in edges])
    return (edges[1:] + edges[:-1]) / 2, np.diff(below)


def _pure_loss(epsilon: float) -> tuple[Any, Any]:
    """The worst of that epsilon."""
    likely = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([likely, 1 - likely])


def _merged(losses: Any, masses: Any) -> tuple[Any, Any]:
    if losses.size <= 20_000:
        return losses, masses
    place = np.floor(losses * 2000).astype(np.int64)
    at, inverse = np.unique(place, return_inverse=True)
    return (at + 0.5) / 2000, np.bincount(inverse.reshape(-1), weights=masses)


def _epsilon(losses: Any, masses: Any, delta: float) -> float:
    """The least epsilon at which no more than delta is left."""
    low, high = 0.0, float(losses.max())
    for _ in range(60):
        middle = (low + high) / 2
        rest = float((masses * np.maximum(0.0, 1 - np.exp(middle - losses))).sum())
        low, high = (middle, high) if rest > delta else (low, middle)
    return high
