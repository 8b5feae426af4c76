"""Totals beside tables where rows change: no row moves both further than it moves the table alone,
and the worst row spends all that is paid.
"""

from __future__ import annotations

import itertools
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.reconstruction import ways_to_measure
from dpframe.api.query import parts
from dpframe.audit.likelihood import stated_loss
from dpframe.audit.neighbours import worst_neighbours
from dpframe.core.budget import ZCDP, PureDP
from dpframe.core.tree import form_of
from dpframe.core.units import Rows
from dpframe.optimise.measurements import measurements_of
from dpframe.pipeline import plan
from dpframe.release import assemble, numbers
from tests.laws.amounts import examples
from tests.laws.neighbours import Pair, check_sensitivities, exact_tables, neighbours
from tests.laws.queries import STEPS, accepted, names_of
from tests.laws.test_grouping_sets import OF_ROWS, ROW_TEXTS
from tests.laws.test_totalled_levels import FUNCTIONS, exact

CHANGE = "change-one"


def vectors(entries: int, values: list[int]) -> list[list[int]]:
    """What one row adds to so many entries: nothing, or a value in one of them."""
    return [[0] * entries] + [
        [value * (place == i) for i in range(entries)]
        for place in range(entries)
        for value in values
    ]


def measured(asked: Query) -> list[Query]:
    return [way for spend in (PureDP(1), ZCDP(1)) for way in ways_to_measure(asked, spend)]


def has_free_total(asked: Query) -> bool:
    parts = [use.part for use in measurements_of(asked)]
    return any(isinstance(part, Margin) and part.has_total for part in parts)


@examples(20, 1500)
@given(
    st.sampled_from([*((text, "f") for text in FUNCTIONS), *itertools.product(ROW_TEXTS, OF_ROWS)]),
    st.lists(st.sampled_from(STEPS), max_size=2),
    st.integers(1, 3),
    st.data(),
)
def test_rows_that_change_move_no_table_with_its_total_further_than_declared(
    what: tuple[str, str], steps: list[str], contributions: int, data: st.DataObject
) -> None:
    unit = Rows(CHANGE, contributions)
    asked = accepted(what[0], unit, what[1], steps)
    assume(asked is not None)
    assert asked is not None
    pair = data.draw(neighbours(unit, names_of(asked)))
    for way in measured(asked):
        check_sensitivities(way, pair)


@examples(12, 500)
@given(
    st.sampled_from([*((t, "f") for t in FUNCTIONS), *itertools.product(ROW_TEXTS, OF_ROWS)]),
    st.data(),
)
def test_results_without_noise_are_exact(what: tuple[str, str], data: st.DataObject) -> None:
    """Those of tables that have their totals beside them are those of tables that have not."""
    asked, plain = (
        accepted(what[0], Rows(adjacency), what[1], []) for adjacency in (CHANGE, "add-remove")
    )
    assert asked is not None
    assert plain is not None
    frame = data.draw(neighbours(Rows(CHANGE), names_of(asked))).before
    expected = assemble(plain, exact(plain, frame))
    for way in measured(asked):
        assert assemble(way, exact(way, frame)).equals(expected)


FRAME = pl.DataFrame({"a": ["x", "y"], "b": [1, 2], "v": [3, 4]})
CUBE = {"a": ["x", "y"], "b": [1, 2, 3]}
ASKED: dict[str, Any] = {
    "cube": lambda f: f.group_by(dp.cube("a", "b"), keys=CUBE).agg(n=dp.count()),
    "sums": lambda f: f.group_by(dp.cube("a", "b"), keys=CUBE).agg(n=dp.sum("v", (0, 8))),
    "function": lambda f: f.dp_cdf("v", range(0, 90, 3)),
    "few edges": lambda f: f.dp_cdf("v", [1, 3, 5]),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("spend", [PureDP(1), ZCDP("0.5")])
def test_the_worst_row_spends_what_is_paid(name: str, spend: Any) -> None:
    session = dp.Session(epsilon=9) if isinstance(spend, PureDP) else dp.Session(rho=9)
    query, _, _ = parts(ASKED[name](session.protect(FRAME, dp.Rows(CHANGE))))
    prepared = plan(query, spend, None)
    # under a rho a function of many edges is drawn by the square root, which has no total beside it
    is_root = any(isinstance(use.part, RootSums) for use in prepared.parts)
    assert is_root == (name == "function" and isinstance(spend, ZCDP))
    assert has_free_total(prepared.query) != is_root
    losses = [stated_loss(prepared, *pair.counted) for pair in worst_neighbours(prepared)]
    assert 0.98 * float(spend.main) < max(losses) <= float(spend.main) * (1 + 1e-9)
    alone = dp.Session(epsilon=9) if isinstance(spend, PureDP) else dp.Session(rho=9)
    comes, _, _ = parts(ASKED[name](alone.protect(FRAME, dp.Rows())))
    assert not has_free_total(plan(comes, spend, None).query)


def test_sums_of_both_signs_and_groups_pay_for_their_totals() -> None:
    for text, grouping in (
        ('pl.col("i64").dp_sum((-3, 7))', OF_ROWS[0]),
        ('pl.col("i64").dp_cdf(range(9))', 'f.group_by("b", keys=[True, False])'),
    ):
        asked = accepted(text, Rows(CHANGE), grouping, [])
        assert asked is not None
        assert not any(has_free_total(way) for way in measured(asked))


# ------------------------------------------------------------------------- the law can fail


@pytest.mark.parametrize("kind", ["MarginWithTotal", "LevelSumsWithTotal"])
def test_a_total_that_grows_twice_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (
        accepted('pl.col("i64").dp_cdf([0, 2])', Rows(CHANGE), "f", [])
        if kind == "LevelSumsWithTotal"
        else accepted(
            "dp.count()", Rows(CHANGE), 'f.group_by(dp.cube("b"), keys={"b": [True, False]})', []
        )
    )
    assert asked is not None
    way = measured(asked)[0]
    assert any(form_of(use.part)[0] == kind for use in measurements_of(way))
    name = names_of(asked)[0]
    values: Any = [1, None] if name == "i64" else [True, None]
    schema = asked.relation.source.columns
    frames = [
        pl.DataFrame({name: [v]}, schema={name: pl.Int64 if name == "i64" else pl.Boolean})
        for v in values
    ]
    assert set(schema) == {name}
    pair = Pair(frames[0], frames[1])
    check_sensitivities(way, pair)
    true = numbers._vector

    def wrong(plan: Any, what: Any, counted: Any) -> Any:
        made = true(plan, what, counted).copy()
        made[:, -1] *= 1 + what.total
        return made

    monkeypatch.setattr(numbers, "_vector", wrong)
    with pytest.raises(AssertionError, match="declared"):
        check_sensitivities(way, pair)
    assert exact_tables(way, frames[0])
