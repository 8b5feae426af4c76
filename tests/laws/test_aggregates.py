"""Laws of dp aggregates, on the examples that they state themselves and on random queries.

Neighbouring frames differ in the exact integer answer by at most the inferred sensitivities; the
answer is that of a plain-Python reference, whatever the order of rows or the engine; and nothing
fails depending on rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpframe.aggregates.aggregate import Aggregate, Query
from dpframe.aggregates.registry import AGGREGATES, BY_KIND, bind
from dpframe.aggregates.request import QueryScope
from dpframe.core.dtypes import columns
from dpframe.core.interval import Interval
from dpframe.core.units import Rows
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Relation
from dpframe.rows.fold import domain
from tests.aggregates.reference import check_reference
from tests.laws.amounts import examples
from tests.laws.frames import frames, nasty_frame
from tests.laws.layouts import stored
from tests.laws.neighbours import (
    UNITS,
    Moved,
    Pair,
    check_sensitivities,
    exact_tables,
    measurements_of,
    moved,
    neighbours,
    run,
    same,
    violation,
)
from tests.laws.queries import (
    GROUPINGS,
    STEPS,
    accepted,
    expressions,
    names_of,
    query,
)

EVERY = pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.kind)
units = st.sampled_from(UNITS)
groupings = st.sampled_from(GROUPINGS)
some_steps = st.lists(st.sampled_from(STEPS), max_size=2, unique=True)
NASTY = nasty_frame(90)
EXTRA = (
    'pl.col("u64").dp_sum((0, 5))',
    'pl.col("dec").dp_mean((0, 1))',
    'pl.col("dtz").dp_mean((datetime(1970, 1, 1, tzinfo=tz), datetime(2024, 1, 1, tzinfo=tz)))',
    'pl.col("f64").dp_argmax(candidates=[0.0, 1.5])',
    'dp.argmax(candidates=pl.DataFrame({"at": [0, 1, 5]}), '
    'score=(pl.col("u8") - pl.col("at")).abs())',
    'pl.col("dtz").dp_n_unique()',
    'pl.col("u64").dp_cdf([0, 7, 2**40])',
    'pl.col("dt").dp_cdf([datetime(1970, 1, 1), datetime(2000, 1, 1, 12)])',
    'pl.col("d").dp_cdf([date(1970, 1, 1)])',
    'pl.col("dur").dp_cdf([timedelta(0), timedelta(seconds=1)])',
)
"""Beside the examples in the registry."""


def test_every_aggregate_states_examples() -> None:
    assert set(BY_KIND) == {"count", "sum", "mean", "var", "std", "quantile", "n_unique",
                            "histogram", "cdf", "argmax", "bounds", "ratio"}  # fmt: skip
    for aggregate in AGGREGATES:
        assert aggregate.examples
        assert aggregate.summary
        assert "Guarantee\n" in (aggregate.__doc__ or "")
        for text in aggregate.examples:
            kinds = {r.kind for r in query([text], Rows()).requests}
            assert kinds == {aggregate.kind}


# ------------------------------------------------------------------------------- sensitivities


def check_examples(
    aggregate: Aggregate, data: st.DataObject, steps: Sequence[str] = (), max_rows: int = 7
) -> None:
    unit, grouping = data.draw(units), data.draw(groupings)
    asked = query(aggregate.examples, unit, grouping, steps)
    check_sensitivities(asked, data.draw(neighbours(unit, names_of(asked), max_rows)))


@EVERY
@settings(max_examples=12)
@given(data=st.data())
def test_neighbours_of_examples(aggregate: Aggregate, data: st.DataObject) -> None:
    check_examples(aggregate, data)


@pytest.mark.slow
@EVERY
@settings(max_examples=500)
@given(data=st.data(), steps=some_steps)
def test_neighbours_of_examples_at_length(
    aggregate: Aggregate, data: st.DataObject, steps: list[str]
) -> None:
    check_examples(aggregate, data, steps, max_rows=20)


def check_random_query(
    unit: Rows, dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    asked = accepted(dp_text, unit, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_sensitivities(asked, data.draw(neighbours(unit, names_of(asked))))


@examples(25, 200)
@given(units, expressions(), groupings, some_steps, st.data())
def test_neighbours_of_random_queries(
    unit: Rows, dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    check_random_query(unit, dp_text, grouping, steps, data)


@pytest.mark.slow
@settings(max_examples=5000)
@given(units, expressions(), groupings, some_steps, st.data())
def test_neighbours_of_many_random_queries(
    unit: Rows, dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    check_random_query(unit, dp_text, grouping, steps, data)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True])'])
def test_extremes_one_after_another(unit: Rows, grouping: str) -> None:
    """Rows of extremes come, go or take each other's place, all examples at once."""
    texts = [text for a in AGGREGATES for text in a.examples] + list(EXTRA)
    asked = query(texts, unit, grouping)
    rows = NASTY.select(names_of(asked))
    k = unit.contributions
    for i in range(0, 90, 9):
        rest = rows[list(range(i % 4))]
        one, other = rows[[i] * k], rows[[(i + 13) % 90] * k]
        if unit.adjacency == "add-remove":
            other = rows[[]]
        check_sensitivities(asked, Pair(pl.concat([rest, one]), pl.concat([other, rest])))


@pytest.mark.parametrize("contributions", [1, 2, 3])
@pytest.mark.parametrize("text", ['pl.col("b")', 'pl.col("e")'])
def test_numbers_of_responses_move_no_further(text: str, contributions: int) -> None:
    """What is published of randomised response bounds the numbers of rows that report each cell,
    and is reached.
    """
    histogram = f'{text}.dp_histogram(other=True, mechanism="randomized_response")'
    asked = query([histogram], Rows("change-one", contributions), "f")
    (use,) = measurements_of(asked)
    most = Moved(0, 0, 0, 0)
    for pair in _moves(names_of(asked), Rows("change-one", contributions)):
        tables = check_sensitivities(asked, pair)
        found = moved(use.part, *tables, asked.scope)
        most = max(most, found, key=lambda m: (m.linf, m.l1))
    assert (most.l1, most.linf) == (use.sensitivity.l1, use.sensitivity.linf)


# ------------------------------------------------------------------- facts that are not true


def check_without_facts(unit: Rows, grouping: str, data: st.DataObject, max_rows: int = 7) -> None:
    aggregate = data.draw(st.sampled_from(AGGREGATES))
    declared = {
        "bounds": {"i64": (2, 3), "f64": (0.25, 0.5), "u8": (7, 7)},
        "categories": {"s": ["a", "zz"], "i8": [0, 5]},
    }
    texts = [*aggregate.examples, 'pl.col("i64").dp_sum()', 'pl.col("f64").dp_mean()']
    asked = query(texts, unit, grouping, **declared)
    pair = data.draw(neighbours(unit, names_of(asked), max_rows))
    check_sensitivities(asked, pair)
    check_sensitivities(_with_false_facts(asked, unit), pair)


@settings(max_examples=15)
@given(units, groupings, st.data())
def test_sensitivities_rest_on_no_fact(unit: Rows, grouping: str, data: st.DataObject) -> None:
    """Declared bounds and categories, and any other facts, are false of the data."""
    check_without_facts(unit, grouping, data)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(units, groupings, st.data())
def test_sensitivities_never_rest_on_facts(unit: Rows, grouping: str, data: st.DataObject) -> None:
    check_without_facts(unit, grouping, data, max_rows=20)


def _with_false_facts(asked: Query, unit: Rows) -> Query:
    """The query as if every column were without nulls and NaN, and between 0 and 1."""
    unit_interval = Interval(Fraction(0), Fraction(1))
    before = asked.relation.source.columns
    table = {
        name: replace(
            found,
            nullable=False,
            nan=False,
            interval=unit_interval if found.dtype.is_ordered else found.interval,
        )
        for name, found in before.items()
    }
    relation = Relation.of("data", FrameFacts(columns(table), unit))
    scope = QueryScope(relation.facts, asked.groups)
    outputs = [
        replace(o, aggregates={p: bind(a.request, scope) for p, a in o.aggregates.items()})
        for o in asked.outputs
    ]
    return Query(relation, asked.groups, tuple(outputs))


# -------------------------------------------------------------------------------- the law fails


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("grouping", ["f", 'f.group_by("b", keys=[None, True, False])'])
@pytest.mark.parametrize("text", [text for a in AGGREGATES for text in a.examples] + list(EXTRA))
def test_half_a_sensitivity_is_caught(text: str, grouping: str, adjacency: str) -> None:
    """The law can fail: some neighbours move every part by more than half of what it declares."""
    unit = Rows(adjacency, contributions=2)  # type: ignore[arg-type]
    asked = query([text], unit, grouping)
    names = names_of(asked)
    for use in measurements_of(asked):
        if use.sensitivity.is_zero:
            continue
        assert any(
            violation(
                use.part,
                moved(use.part, exact(asked, p.before), exact(asked, p.after), asked.scope),
                asked.scope,
                shrink=Fraction(1, 2),
            )
            for p in _moves(names, unit)
        ), use.part.words()


exact = exact_tables


def _moves(names: list[str], unit: Rows) -> Iterator[Pair]:
    """Rows that come, or take the place of others, far apart in every column: equal rows, which
    move one entry furthest, and different ones, which add distinct values.
    """
    rows = NASTY.select(names)
    rng = np.random.default_rng(7)
    for turn in range(400):
        i, j, *rest = rng.integers(0, rows.height, size=rng.integers(2, 7)).tolist()
        steps = range(unit.contributions)
        one = rows[[(i + turn % 2 * 5 * n) % rows.height for n in steps]]
        other = rows[[(j + turn // 2 % 2 * 5 * n) % rows.height for n in steps]]
        kept = rows[rest]
        if unit.adjacency == "add-remove":
            other = rows[[]]
        yield Pair(pl.concat([kept, one]), pl.concat([kept, other]))


def test_a_wrong_contribution_is_caught() -> None:
    """One row more than the unit says is noticed by a count of all rows."""
    asked = query(["dp.count()"], Rows(contributions=2))
    frame = NASTY.select(names_of(asked))
    (use,) = measurements_of(asked)
    counted = [exact_tables(asked, frame[:n]) for n in (5, 7, 8)]
    assert (
        violation(use.part, moved(use.part, counted[0], counted[1], asked.scope), asked.scope)
        is None
    )
    assert violation(use.part, moved(use.part, counted[0], counted[2], asked.scope), asked.scope)


# ------------------------------------------------------------------------ the same answer always


def check_orders(asked: Query, frame: pl.DataFrame, order: Sequence[int], cut: int) -> None:
    """One answer in any order of rows, in any chunks, on both engines, through `run` as well."""
    plain = exact_tables(asked, frame)
    assert same(plain, exact_tables(asked, frame[list(order)]))
    chunked = pl.concat([frame[:cut], frame[cut:]], rechunk=False)
    assert same(plain, exact_tables(asked, chunked))
    assert same(plain, exact_tables(asked, frame, engine="streaming"))
    assert same(plain, run(asked, stored(frame).lazy()))


@EVERY
@settings(max_examples=6)
@given(grouping=groupings, data=st.data())
def test_order_and_engine_do_not_matter(
    aggregate: Aggregate, grouping: str, data: st.DataObject
) -> None:
    asked = query(aggregate.examples, Rows(), grouping)
    frame = data.draw(frames(names=names_of(asked)))
    order = data.draw(st.permutations(range(frame.height)))
    check_orders(asked, frame, order, data.draw(st.integers(0, frame.height)))


@pytest.mark.slow
@settings(max_examples=1500)
@given(expressions(), groupings, some_steps, st.data())
def test_order_and_engine_never_matter(
    dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    asked = accepted(dp_text, Rows(), grouping, steps)
    assume(asked is not None)
    assert asked is not None
    frame = data.draw(frames(names=names_of(asked), max_rows=30))
    order = data.draw(st.permutations(range(frame.height)))
    check_orders(asked, frame, order, data.draw(st.integers(0, frame.height)))


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_order_and_engine_do_not_matter_for_extremes(grouping: str) -> None:
    texts = [text for a in AGGREGATES for text in a.examples] + list(EXTRA)
    asked = query(texts, Rows(), grouping)
    frame = NASTY.select(names_of(asked))
    check_orders(asked, frame, list(range(frame.height))[::-1], 31)
    check_orders(asked, frame[[]], [], 0)


# ---------------------------------------------------------------------------------- reference


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_extremes_equal_the_reference(grouping: str) -> None:
    texts = [text for a in AGGREGATES for text in a.examples] + list(EXTRA)
    asked = query(texts, Rows(), grouping)
    frame = NASTY.select(names_of(asked))
    check_reference(asked, frame)
    check_reference(asked, frame[[]])


@pytest.mark.parametrize(
    "text",
    [
        'pl.col("u64").dp_quantile(0.5, candidates=[0.1, 1e18])',
        'pl.col("u64").dp_quantile(0.5, candidates=[0, 10**18])',
        'pl.col("i64").dp_histogram([-0.5, 1e18, 2e18])',
        'pl.col("i64").dp_histogram([0, 10**18, 10**18 + 1])',
    ],
)
def test_large_numbers_beside_fractions_equal_the_reference(text: str) -> None:
    large = [10**18 + n for n in (-64, -1, 0, 1, 64)]
    asked = query([text], Rows(), "f")
    frame = pl.DataFrame(
        {"u64": [*large, 2**63, 2**63 + 1, 0], "i64": [*large, 0, -1, 2**62]},
        schema={"u64": pl.UInt64, "i64": pl.Int64},
    )
    check_reference(asked, frame.select(names_of(asked)))


@examples(25, 200)
@given(expressions(), groupings, some_steps, st.data())
def test_random_queries_equal_the_reference(
    dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    asked = accepted(dp_text, Rows(), grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_reference(asked, data.draw(frames(names=names_of(asked), max_rows=12)))


@pytest.mark.slow
@settings(max_examples=4000)
@given(expressions(), groupings, some_steps, st.data())
def test_many_random_queries_equal_the_reference(
    dp_text: str, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    asked = accepted(dp_text, Rows(), grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_reference(asked, data.draw(frames(names=names_of(asked), max_rows=25)))


def test_keys_are_numbered_in_their_order_whatever_the_data() -> None:
    asked = query(["dp.count()"], Rows(), 'f.group_by("s", keys=["b", None, "a", "never"])')
    frame = pl.DataFrame({"s": ["a", "a", None, "z", "b", "a"]})
    for shown in (frame, frame.reverse()):
        (counted,) = exact_tables(asked, shown).values()
        assert counted.dense(1).ravel().tolist() == [1, 1, 3, 0]
    assert domain(asked.groups.by[0].tree, asked.scope.facts.columns).nullable  # type: ignore[union-attr]
