"""The law of sensitivities can fail: each wrong rule, planted in the product, is caught.

One fixed list of neighbouring frames of extremes meets the rules as they are, and then each rule
with one mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpframe.aggregates import statistics
from dpframe.aggregates.argmax import CategoryChoice, ScoredChoice
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.core.sensitivity import ContributionBounds, ScoreRange
from dpframe.core.units import Rows
from dpframe.frames.row_steps import DropNulls, Filter
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Addition, Norms
from tests.laws import kernel_mistakes
from tests.laws.frames import nasty_frame
from tests.laws.neighbours import Pair, check_sensitivities
from tests.laws.queries import names_of, query

Patch = pytest.MonkeyPatch
NASTY = nasty_frame(90)
BY_B = 'f.group_by("b", keys=[None, True, False])'
BY_E = 'f.group_by("e", keys=["a", "b", "c"])'
SUM = 'pl.col("i64").dp_sum((-3, 7))'


def pairs(names: list[str], unit: Rows, turns: int = 400) -> Iterator[Pair]:
    """Rows of extremes that come, or take each other's place; every other time equal rows."""
    rows = NASTY.select(names)
    rng = np.random.default_rng(11)
    for turn in range(turns):
        i, j, *rest = rng.integers(0, rows.height, size=rng.integers(2, 7)).tolist()
        steps = range(unit.contributions)
        one = rows[[(i + turn % 2 * 5 * n) % rows.height for n in steps]]
        other = rows[[(j + turn // 2 % 2 * 5 * n) % rows.height for n in steps]]
        if unit.adjacency == "add-remove":
            other = rows[[]]
        yield Pair(pl.concat([rows[rest], one]), pl.concat([rows[rest], other]))


Case = tuple[Rows, str, str, tuple[str, ...]]
"""The unit, the dp expression, the grouping, the steps."""


def check_all(case: Case, turns: int = 400) -> None:
    unit, text, grouping, steps = case
    asked = query([text], unit, grouping, steps)
    for pair in pairs(names_of(asked), unit, turns):
        check_sensitivities(asked, pair)


# ------------------------------------------------------------------------------- the mistakes


def method(kind: type, name: str, value: Any) -> Any:
    """Plants another method."""
    return lambda patch: patch.setattr(kind, name, value)


def _added(change: Callable[[Addition], Addition]) -> Any:
    """Plants another addition of values on a grid."""
    return kernel_mistakes.additions(kernel.Placed, lambda found, _: change(found))


def _halved(kind: type) -> Any:
    """Plants half the range of scores."""
    true = kind.score_range  # type: ignore[attr-defined]

    def score_range(self: Any, scope: Any) -> ScoreRange:
        found = true(self, scope)
        return ScoreRange(found.l1 / 2, found.l2_squared / 4, found.linf / 2)

    return method(kind, "score_range", score_range)


def _without_contributions(kind: type) -> Any:
    """Plants the range of scores of one row for any number of rows."""
    true = kind.score_range  # type: ignore[attr-defined]

    def score_range(self: Any, scope: Any) -> ScoreRange:
        one = Rows(scope.facts.unit.adjacency, contributions=1)
        return true(self, replace(scope, facts=replace(scope.facts, unit=one)))  # type: ignore[no-any-return]

    return method(kind, "score_range", score_range)


def _unclamped(patch: Patch) -> None:
    def quantise(
        number: pl.Expr, grid: Any, whole: bool, ns: Any, *, wide: bool = False
    ) -> pl.Expr:
        return (number * float(1 / grid.step)).cast(ns.Int64, strict=False)

    patch.setattr(statistics, "quantise", quantise)


def _complete_after(kind: type) -> Any:
    true = kind.facts  # type: ignore[attr-defined]
    return method(kind, "facts", lambda self, before: replace(true(self, before), complete=True))


def _only_one_group(plan: Any, facts: Any) -> Any:
    return replace(plan, tables=tuple(replace(t, keys=None) for t in plan.tables)), facts


def _without_moves(plan: Any, facts: Any) -> Any:
    return replace(plan, neighbours="add-remove"), facts


def _without_rows(plan: Any, facts: Any) -> Any:
    return plan, [replace(one, rows=1) for one in facts]


def _l2_without_width(found: Norms, of: ContributionBounds, adds: Addition) -> Norms:
    return replace(found, l2_squared=2 * (of.tight[0] * adds.largest) ** 2)


def _l2_as_if_rows_spread(found: Norms, of: ContributionBounds, _: Addition) -> Norms:
    """sqrt(k) in place of k: as if the rows of one individual never met in one group."""
    return replace(found, l2_squared=found.l2_squared // of.tight[0])


def _linf_of_one_row(found: Norms, of: ContributionBounds, _: Addition) -> Norms:
    return replace(found, linf=found.linf // of.tight[0])


def _l0_of_one_row(found: Norms, *_: Any) -> Norms:
    return replace(found, l0=1)


def _free(found: Norms, *_: Any) -> Norms:
    return replace(found, l0=0, l1=0, l2_squared=0, linf=0)


ADD, ADD_3 = Rows(), Rows(contributions=3)
CHANGE, CHANGE_3 = Rows("change-one"), Rows("change-one", contributions=3)

MISTAKES: dict[str, tuple[Any, Case]] = {
    "a count is free": (kernel_mistakes.norms(_free), (ADD, "dp.count()", "f", ())),
    "groups are disjoint, also under change-one": (
        kernel_mistakes.plans(_only_one_group),
        (CHANGE, "dp.count()", BY_B, ()),
    ),
    "a histogram costs one count under change-one": (
        kernel_mistakes.plans(_without_moves),
        (CHANGE, 'pl.col("e").dp_histogram()', "f", ()),
    ),
    "a sum moves by b and not by w under change-one": (
        kernel_mistakes.plans(_without_moves),
        (CHANGE, SUM, "f", ()),
    ),
    "one row per individual": (kernel_mistakes.plans(_without_rows), (ADD_3, SUM, "f", ())),
    "one row per individual in groups": (
        kernel_mistakes.plans(_without_rows),
        (CHANGE_3, "dp.count()", BY_E, ()),
    ),
    "L2 of two groups, when a row stays in its own": (
        kernel_mistakes.norms(_l2_without_width),
        (CHANGE, SUM, BY_B, ()),
    ),
    "L2 as if rows never met": (
        kernel_mistakes.norms(_l2_as_if_rows_spread),
        (ADD_3, "dp.count()", BY_E, ()),
    ),
    "Linf of one row": (kernel_mistakes.norms(_linf_of_one_row), (ADD_3, "dp.count()", BY_E, ())),
    "L0 of one row": (kernel_mistakes.norms(_l0_of_one_row), (ADD_3, "dp.count()", BY_E, ())),
    "L0 of a move": (
        kernel_mistakes.norms(_l0_of_one_row),
        (CHANGE, 'pl.col("e").dp_histogram()', "f", ()),
    ),
    "the lower bound is forgotten": (
        _added(lambda a: replace(a, lo=0)),
        (ADD, 'pl.col("i64").dp_sum((-9, 7))', "f", ()),
    ),
    "b is half the width": (
        _added(lambda a: replace(a, lo=(a.lo - a.hi) // 2, hi=(a.hi - a.lo) // 2)),
        (ADD, 'pl.col("i64").dp_sum((2, 9))', "f", ()),
    ),
    "nulls are thought to lie within the bounds": (
        _added(lambda a: replace(a, lo=0, hi=a.hi - a.lo)),
        (CHANGE, 'pl.col("i64").dp_sum((2, 9))', "f", ()),
    ),
    "values are not clamped": (_unclamped, (ADD, 'pl.col("f64").dp_sum((0, 1))', "f", ())),
    "squares are as small as values": (
        kernel_mistakes.additions(
            kernel.Squared, lambda found, adds: replace(found, lo=adds.grid.lo, hi=adds.grid.hi)
        ),
        (ADD, 'pl.col("i64").dp_var((-(2**20), 2**20))', "f", ()),
    ),
    "values are counted as if there were no nulls": (
        kernel_mistakes.additions(kernel.Valued, lambda found, _: replace(found, needs=None)),
        (CHANGE, 'pl.col("i64").dp_count()', "f", ()),
    ),
    "distinct values move by a half": (
        kernel_mistakes.additions(
            kernel.Distinct, lambda found, _: replace(found, hi=Fraction(1, 2))
        ),
        (ADD, 'pl.col("s").dp_n_unique()', "f", ()),
    ),
    "a filter keeps the number of rows public": (
        _complete_after(Filter),
        (CHANGE, "dp.count()", "f", ('f.filter(pl.col("i64") >= 0)',)),
    ),
    "dropping nulls keeps the number of rows public": (
        _complete_after(DropNulls),
        (CHANGE, "dp.count()", "f", ('f.drop_nulls("i64")',)),
    ),
    "the number of rows is public under add-remove": (
        kernel_mistakes.additions(kernel.One, lambda found, _: replace(found, lo=0, hi=0)),
        (ADD, "dp.count()", "f", ()),
    ),
    "scores move together": (
        _halved(QuantileChoice),
        (ADD, 'pl.col("i8").dp_quantile(0.5, candidates=[-1, 0, 1])', "f", ()),
    ),
    "scores of an interval move together": (
        _halved(QuantileChoice),
        (CHANGE, 'pl.col("i8").dp_quantile(0.25, (-10, 10))', "f", ()),
    ),
    "quantiles of one row": (
        _without_contributions(QuantileChoice),
        (ADD_3, 'pl.col("i8").dp_median((-10, 10))', "f", ()),
    ),
    "winners of one row": (
        _without_contributions(CategoryChoice),
        (ADD_3, 'pl.col("e").dp_argmax()', "f", ()),
    ),
    "winners as if rows only came": (
        _halved(CategoryChoice),
        (CHANGE, 'pl.col("e").dp_argmax()', "f", ()),
    ),
    "candidates as if scores had one sign": (
        _halved(ScoredChoice),
        (
            ADD,
            'dp.argmax(candidates=pl.DataFrame({"at": [-1, 1]}), bounds=(-7, 7), '
            'score=pl.col("i64") * pl.col("at"))',
            "f",
            (),
        ),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_true_rule_passes(mistake: str) -> None:
    check_all(MISTAKES[mistake][1], turns=40)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_caught(mistake: str, monkeypatch: Patch) -> None:
    plant, case = MISTAKES[mistake]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_all(case)
