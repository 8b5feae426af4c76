"""Quantiles at once as they are defined: plans of them, scores of all tuples, and their law."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import quantile
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantile import QuantilesAtOnce
from dpframe.aggregates.request import QueryScope
from dpframe.api.query import parts
from dpframe.core.budget import Budget, PureDP
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import JointExponential
from dpframe.optimise.physical import translate
from dpframe.release.draws import choose_at_once

X: Any = pl.col("x")
QUARTILES = ["0.25", "0.5", "0.75"]


@dataclass(frozen=True)
class Planned:
    """The one draw of a query of quantiles."""

    part: QuantilesAtOnce
    law: JointExponential
    scope: QueryScope
    cost: Budget
    plan: kernel.Plan

    def drawn(self, counted: CellCounts, groups: int) -> Any:
        """The codes of all quantiles in each group."""
        (one,) = self.plan.draws
        assert isinstance(one.what, kernel.Ranks)
        assert isinstance(one.law, kernel.Exponential)
        return choose_at_once(self.plan, one.what, one.law, counted, groups)

    def scores(self, rows: Any, places: int = 1) -> dict[tuple[int, ...], Fraction]:
        """Of all tuples in order, by how many rows are at each place; in rows."""
        upto, row = np.append(0, np.cumsum(rows)).tolist(), self.part.row
        found, total = {}, upto[-1]
        goals = [int(d * row) * total for d in self.part.parts]
        for chosen in combinations_with_replacement(range(len(rows)), self.part.picks):
            ranks = pairwise([0, *(upto[c] for c in chosen), total])
            away = (abs(row * (b - a) - goal) for (a, b), goal in zip(ranks, goals, strict=True))
            found[chosen] = Fraction(-sum(away), 2 * row)
        return found

    def log_masses(self, rows: Any) -> Any:
        scale = self.law.scale * self.part.step
        logs = np.array([float(score / scale) for score in self.scores(rows).values()])
        return logs - logs.max() - math.log(np.exp(logs - logs.max()).sum())


def planned(
    quantiles: Any,
    points: int,
    unit: Any = dp.Rows(),  # noqa: B008
    groups: int | None = None,
    limits: tuple[int, int] | None = None,
    epsilon: Any = 1,
) -> Planned:
    """Of whole numbers from 0 on, whatever other ways there are."""
    schema = {"x": pl.Int64, "g": pl.Int64, "person": pl.Int64}
    frame = dp.Session(epsilon=100).protect(pl.LazyFrame(schema=schema), unit)
    if limits is not None:
        frame = frame.limit_groups(limits[0], by="g").limit_rows(limits[1], by="g")
    asked = X.dp_quantile(quantiles, bounds=(0, points - 1))
    query = (
        frame.agg(asked) if groups is None else frame.group_by("g", keys=range(groups)).agg(asked)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "MOST_CELLS", 0)
        patch.setattr(quantile, "_WORTH", 1e-6)
        patch.setattr(quantile, "_SLOWER", 1e-6)
        patch.setattr(quantile, "_SHARPEST", 0)
        prepared = pipeline.plan(parts(query)[0], PureDP(Fraction(epsilon)), None)
    (use,), (one,) = prepared.parts, prepared.draws
    part, law = use.part, one.law
    assert isinstance(part, QuantilesAtOnce)
    assert isinstance(law, JointExponential)
    plan = translate(pipeline.alone(prepared)).plan
    return Planned(part, law, prepared.query.scope, prepared.plan.cost, plan)


def law_with_ties(found: Planned, counts: list[int], ties: int) -> dict[tuple[int, ...], float]:
    """The mean of all ways in which rows may take places."""
    rows = [point for point, count in enumerate(counts) for _ in range(count)]
    law: Counter[tuple[int, ...]] = Counter()
    for coins in product(range(ties), repeat=len(rows)):
        at = np.zeros(len(counts) * ties, np.int64)
        np.add.at(at, [row * ties + coin for row, coin in zip(rows, coins, strict=True)], 1)
        tuples = [tuple(c // ties for c in chosen) for chosen in found.scores(at)]
        for chosen, mass in zip(tuples, np.exp(found.log_masses(at)).tolist(), strict=True):
            law[chosen] += mass / ties ** len(rows)
    return dict(law)
