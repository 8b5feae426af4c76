"""No output errs more because others are asked beside it than if each part were drawn by itself,
or its plan says so: plans of a seeded generator, each with and without joint draws.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any
from unittest import mock

import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import ways
from dpframe.aggregates.expected import expected_squared_error
from dpframe.aggregates.quantile import BoundQuantile
from dpframe.aggregates.totalled_cells import TotalledCells
from dpframe.aggregates.totalled_levels import TotalledLevels
from dpframe.api.query import parts
from dpframe.infer import PlannedMeasurement
from dpframe.planning import planning
from tests.aggregates.cases import each_alone

SCHEMA: dict[str, Any] = {
    "who": pl.Int64,
    "x": pl.Float64,
    "i": pl.Int64,
    "b": pl.Boolean,
    "g": pl.String,
    "e": pl.Enum(["a", "b", "c"]),
}
TOLD = "times more noise than"
MOST = 1.01
"""Of deviations: about as much as the least error of a split is away from an equal one's."""
UNITS: list[tuple[Any, str]] = [
    (dp.Rows(), "f"),
    (dp.Rows(), "f"),
    (dp.Rows("change-one"), "f"),
    (dp.Rows(contributions=3), "f"),
    (dp.Identifier("who"), 'f.limit_groups(2, by="g").limit_rows(3, by="g")'),
    (dp.Identifier("who"), "f.limit_rows(4)"),
]
GROUPS = [
    "f",
    "f",
    'f.group_by("g", keys=["a", "b", "c"])',
    'f.group_by("g", "b", keys={"g": ["a", "b"], "b": [True, False]})',
    'f.group_by("g")',
]
SPENDS: list[dict[str, Any]] = [
    {"epsilon": "0.1"},
    {"epsilon": 1},
    {"epsilon": 8},
    {"rho": "0.01"},
    {"rho": 2},
    {"epsilon": 1, "delta": "1e-6"},
    {"epsilon": "0.2", "delta": "1e-9"},
    {"epsilon": 10, "delta": "1e-5"},
]
WEIGHTS = [1, 1, 1, 2, 3, 10, "0.1"]


@dataclass(frozen=True)
class Case:
    """What is asked, as text."""

    unit: Any
    steps: str
    grouping: str
    outputs: tuple[str, ...]
    spend: dict[str, Any]
    split: Any

    def asked(self) -> Any:
        budget: dict[str, Any] = {name: 10**6 for name in self.spend if name != "delta"}
        budget |= {"delta": "0.1"} if "delta" in self.spend else {}
        frame: Any = dp.Session(**budget).protect(pl.LazyFrame(schema=SCHEMA), self.unit)
        names = {"pl": pl, "dp": dp}
        frame = eval(self.steps, {**names, "f": frame})
        made = {f"o{n}": eval(text, dict(names)) for n, text in enumerate(self.outputs)}
        return eval(self.grouping, {**names, "f": frame}).agg(**made)


def some(seed: int) -> Case:
    """The case of a seed: the same on each run."""
    pick = random.Random(seed)
    weighted = pick.random() < 0.4
    unit, steps = pick.choice(UNITS)

    def weight() -> str:
        return f", weight={pick.choice(WEIGHTS)!r}" if weighted else ""

    def bounds() -> str:
        lo = pick.choice([0, 0, -1, -50, 3, "-0.5"])
        return f"({lo}, {pick.choice([4, 10, 90, 1000])})"

    def output() -> str:
        column = pick.choice(["x", "i", "b"])
        sums = [
            f"dp.count({weight()[2:]})",
            f'pl.col("{column}").dp_count({weight()[2:]})',
            f'pl.col("{column}").dp_sum({bounds()}{weight()})',
            f'pl.col("{column}").dp_sum({bounds()}{weight()})',
            f'pl.col("{column}").dp_mean({bounds()}{weight()})',
            f'pl.col("{column}").dp_var({bounds()}{weight()})',
            f'pl.when("b").then("x").dp_sum({bounds()}{weight()})',
            f'pl.col("g").dp_n_unique({weight()[2:]})',
        ]
        others = [
            f'pl.col("x").dp_median((0, 100){weight()})',
            f'pl.col("x").dp_quantile([0.1, 0.5, 0.9], (0, 100){weight()})',
            f'pl.col("i").dp_quantile([0.25, 0.75], (0, 200){weight()})',
            f'pl.col("e").dp_histogram({weight()[2:]})',
            f'pl.col("e").dp_argmax({weight()[2:]})',
            f'pl.col("x").dp_sum((0, 5), mechanism="discrete_laplace"{weight()})',
        ]
        return pick.choice(sums if pick.random() < 0.85 else others)

    outputs = tuple(output() for _ in range(pick.choice([2, 2, 3, 3, 4, 5, 8])))
    split = pick.choice(["least error", "least error", "equal"])
    return Case(unit, steps, pick.choice(GROUPS), outputs, pick.choice(SPENDS), split)


def planned(case: Case, asked: Any) -> pipeline.Prepared:
    spend = case.spend
    measure = dp.ZCDP if "rho" in spend else dp.ApproxDP if "delta" in spend else dp.PureDP
    budget = measure(*spend.values())
    return pipeline.plan(parts(asked)[0], budget, None, case.split)


def log_errors(prepared: pipeline.Prepared) -> dict[str, float]:
    """Of each output, the logarithm of its expected squared error relative to what a row can make:
    the sum over its parts of their variances, each by its effect on the output.
    """
    used = {(use.part, use.mechanism): use for use in prepared.parts}
    alternatives = {key: _alternatives(use, prepared) for key, use in used.items()}
    found = {}
    for output in prepared.query.outputs:
        if any(isinstance(a, BoundQuantile) for a in output.aggregates.values()):
            continue  # whose error in ranks is another function of the noise for each way
        terms = []
        for aggregate in output.aggregates.values():
            for use, key in zip(aggregate.uses, aggregate.keys, strict=True):
                linf = used[key].sensitivity.linf
                if linf and use.impact:
                    noise = prepared.laws[key].log_noise(alternatives[key])
                    terms.append(2 * (noise - _log(linf)) + _log(use.impact))
        if terms:
            most = max(terms)
            found[output.name] = most + math.log(sum(math.exp(term - most) for term in terms))
    return found


def _alternatives(use: PlannedMeasurement, prepared: pipeline.Prepared) -> int:
    task = use.part.task(use.name, use.sensitivity, use.mechanism, prepared.query.scope)
    return task.alternatives


def _log(value: Any) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _rebuilt(prepared: pipeline.Prepared) -> list[str]:
    """The outputs that are rebuilt from noisy numbers of other tables."""
    return [
        output.name
        for output in prepared.query.outputs
        if any(isinstance(a, TotalledCells | TotalledLevels) for a in output.aggregates.values())
    ]


def rebuilt(prepared: pipeline.Prepared, name: str) -> float:
    """The expected squared error of such an output, however it is measured."""
    query = prepared.query
    (output,) = (output for output in query.outputs if output.name == name)
    return sum(
        expected_squared_error(a, query.scope, prepared.laws) for a in output.aggregates.values()
    )


def worse(case: Case) -> dict[str, float]:
    """How many times larger errors are than with each part alone, of outputs where that is more,
    and where no part of the output says so.
    """
    asked = case.asked()
    together = planned(case, asked)
    apart = mock.patch.object(ways, "answer_together", lambda query, spend: query)
    with each_alone(), apart, mock.patch.object(planning, "_with_counts", return_value=[]):
        alone = planned(case, asked)
    assert alone.plan.cost.main <= alone.plan.requested.main
    assert together.plan.requested.covers(together.plan.cost)
    ours, before = log_errors(together), log_errors(alone)
    ratios = {n: math.exp((ours[n] - before[n]) / 2) for n in ours.keys() & before.keys()}
    ratios |= {n: math.sqrt(rebuilt(together, n) / rebuilt(alone, n)) for n in _rebuilt(together)}
    said = {o.name for o in together.plan.outputs if "times more error than" in o.note} | {
        name
        for release in together.plan.releases
        if TOLD in release.reason
        for name in release.users
    }
    return {n: r for n, r in ratios.items() if r > MOST and n not in said}


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[] if n < 20 else [pytest.mark.slow]) for n in range(200)]
)
def test_no_output_errs_more_unsaid(seed: int) -> None:
    case = some(seed)
    try:
        planned(case, case.asked())
    except dp.DPFrameError:
        pytest.skip("refused")
    assert worse(case) == {}, case
