"""What plans say of ranks of quantiles holds for all data, and for some no oftener than that."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.api.query import parts
from dpframe.core.budget import ZCDP, Budget, PureDP
from dpframe.release.numbers import PointRuns
from tests.laws.neighbours import Counted

X: Any = pl.col("x")
POINTS = 1000


def chosen_far(
    query: Query, part: QuantileChoice, scale: Fraction, rows: dict[int, int], far: float
) -> float:
    """How likely a candidate is whose score is further than that below the best one, by the law."""
    cells, values = np.array([*rows]), np.array([*rows.values()])
    counted = CellCounts(np.zeros(cells.size, np.int64), cells, values, 1)
    tables = Counted(query, {part.tables[0]: counted})
    runs = tables.of(part).scores(part, 0, 1)
    assert isinstance(runs, PointRuns)
    below = (int(runs.scores.max()) - runs.scores).astype(np.float64)
    masses = runs.weights * np.exp(-below / float(scale))
    return float(masses[below * float(part.step) > far].sum() / masses.sum())


@pytest.mark.parametrize("q", ["0.5", "0.25"])
@pytest.mark.parametrize("spend", [PureDP(Fraction(1)), ZCDP(Fraction(1, 50))], ids=repr)
def test_some_rows_miss_as_often_as_may_be_and_none_more_often(spend: Budget, q: str) -> None:
    """Where all rows are at one point, all other candidates are as bad as one may be, if there are
    just enough rows: 0.95 is not too little. Elsewhere it is, and no plan knows that.
    """
    session: Any = dp.Session(epsilon=9) if isinstance(spend, PureDP) else dp.Session(rho=9)
    people = session.protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows())
    query = people.agg(x=X.dp_quantile(q, bounds=(0, POINTS - 1)))
    prepared = pipeline.plan(parts(query)[0], spend, None)
    (one,), said = prepared.draws, prepared.plan.accuracy("x")
    part, scale, asked = one.measurement, getattr(one.law, "scale", None), prepared.query
    assert isinstance(part, QuantileChoice)
    assert isinstance(scale, Fraction)
    share = Fraction(q)
    rows = math.floor(Fraction(said) / min(share, 1 - share)) + 1
    worst = 0.0
    for around in range(-2, 6):
        missed = chosen_far(asked, part, scale, {500: rows + around}, said)
        worst = max(worst, missed)
        assert missed <= 0.05
    if share == Fraction(1, 2):
        assert worst > 0.03
    rng = np.random.default_rng(5)
    for width in (1, 30, 300):
        at, counts = np.unique(rng.integers(500 - width, 500 + width, 300), return_counts=True)
        rows_at = dict(zip(at.tolist(), counts.tolist(), strict=True))
        assert chosen_far(asked, part, scale, rows_at, said) <= 0.05
    spread = dict.fromkeys(range(POINTS), 3)
    assert chosen_far(asked, part, scale, spread, said) < 1e-3
