"""Operands that a lowered operation repeats are computed once.

Sizes are counted in the columns that lowered expressions read, not in seconds.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.tree import Call, Column, Named, Tree, column_names, substitute, walk
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import Filter, Select, WithColumns
from dpframe.lower.tables import bind, lower_query, lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower
from dpframe.rows.registry import OPERATIONS
from tests.calls import call
from tests.laws.amounts import examples
from tests.laws.checking import same, tree_of
from tests.laws.frames import nasty_frame, tight_columns, values, wide_columns
from tests.laws.neighbours import query_of, tables_of
from tests.laws.trees import TEMPLATES, fits, kind, trees

NASTY = nasty_frame(37)
COLUMNS = wide_columns(NASTY)
MOST = 60
"""Columns read by the lowered form of one operation, at most."""


class Recorder:
    """Stands for a frame, and keeps the expressions that it is given."""

    def __init__(self) -> None:
        self.expressions: list[Any] = []

    def with_columns(self, *expressions: Any) -> Recorder:
        self.expressions += expressions
        return self

    def select(self, *names: str) -> Recorder:
        return self

    filter = with_columns

    @property
    def size(self) -> int:
        return sum(len(e.meta.root_names()) for e in self.expressions)


def relation(*steps: Any) -> Relation:
    made = Relation.of("data", FrameFacts(COLUMNS, Rows()))
    for step in steps:
        made = made.then(step)
    return made


def size(tree: Tree) -> int:
    """How many columns the lowered steps of a `with_columns` read."""
    frame: Any = Recorder()
    lower_rows(relation(WithColumns((Named("out", tree),))), frame, pl, 0)
    return int(frame.size)


def operations(tree: Tree) -> int:
    return sum(isinstance(node, Call) for node in walk(tree))


def nestable() -> Iterator[tuple[str, tuple[str, str]]]:
    """Examples whose result can stand for one of their columns."""
    for operation in OPERATIONS:
        for text in operation.examples:
            tree = tree_of(text)
            for name in column_names(tree):
                once = [n for n in walk(tree) if n == Column(name)]
                alike = kind(COLUMNS[name].dtype) == kind(domain(tree, COLUMNS).dtype)
                if alike and len(once) == 1 and fits(nested(text, name, 3), COLUMNS):
                    yield operation.name, (text, name)


@functools.cache
def nested(text: str, name: str, depth: int) -> Tree:
    tree = tree_of(text)
    return tree if depth == 1 else substitute(tree, {name: nested(text, name, depth - 1)})


_FOUND = list(nestable())
NESTABLE = [pair for _, pair in _FOUND]
FIRST = dict(reversed(_FOUND))
"""One of each operation."""


def check_growth(text: str, name: str, step: int) -> None:
    sizes = [size(nested(text, name, depth)) for depth in (step, 2 * step, 3 * step)]
    assert sizes[-1] <= MOST * 3 * step, text
    assert sizes[2] - sizes[1] <= 1.3 * (sizes[1] - sizes[0]) + MOST, text


def test_nested_operations_grow_with_their_number() -> None:
    for text, name in FIRST.values():
        check_growth(text, name, 6)


@pytest.mark.slow
def test_all_nested_operations_grow_with_their_number() -> None:
    for text, name in NESTABLE:
        check_growth(text, name, 10)


def _takers() -> dict[str, list[tuple[Tree, str]]]:
    """Templates, and columns in them, by the kind of what may stand there."""
    found: dict[str, list[tuple[Tree, str]]] = {}
    for template in (tree for made in TEMPLATES.values() for tree in made):
        for name in column_names(template):
            found.setdefault(kind(COLUMNS[name].dtype), []).append((template, name))
    return found


TAKERS = _takers()


def mixture(chance: random.Random, depth: int) -> Tree:
    """Random operations, each on the result of the one before."""
    tree: Tree = Column("f64")
    while depth:
        template, name = chance.choice(TAKERS[kind(domain(tree, COLUMNS).dtype)])
        grown = substitute(template, {name: tree})
        if fits(grown, COLUMNS) and kind(domain(grown, COLUMNS).dtype) in TAKERS:
            tree, depth = grown, depth - 1
    return tree


@pytest.mark.parametrize("seed", range(20))
def test_mixtures_grow_with_their_number(seed: int) -> None:
    tree = mixture(random.Random(seed), 30)
    assert size(tree) <= MOST * operations(tree)


@pytest.mark.parametrize("seed", range(6))
def test_mixtures_run(seed: int) -> None:
    tree = mixture(random.Random(seed), 30)
    steps = relation(WithColumns((Named("out", tree),)))
    found = lower_rows(steps, NASTY.lazy(), pl, 0).collect(optimizations=OPTIMIZATIONS)
    assert found.columns == [*COLUMNS, "out"]


def test_sizes_were_exponential() -> None:
    """The law can fail: without columns for operands the same expressions double at each level."""
    inline = [len(lower(deep(n), COLUMNS).meta.root_names()) for n in (1, 2, 3)]
    assert inline[2] > 4 * inline[1] > 16 * inline[0]


@pytest.mark.parametrize("levels", [4, 5, 6])
def test_deep_expressions_read_as_often_as_they_have_operations(levels: int) -> None:
    assert size(deep(levels)) <= MOST * operations(deep(levels))


def deep(levels: int) -> Tree:
    return nested('pl.col("f64") ** pl.col("f64b")', "f64b", levels)


# --------------------------------------------------------------------------- the same values


def check_values(nests: list[Tree], tight: bool) -> None:
    columns = tight_columns(NASTY) if tight else COLUMNS
    accepted = tuple(tree for tree in nests if fits(tree, columns))
    assume(accepted)
    frame, bound, known = bind(NASTY.lazy(), accepted, columns, pl, whole=True)
    names = [str(i) for i in range(len(accepted))]
    results = []
    for lazy, made, facts in ((NASTY.lazy(), accepted, columns), (frame, bound, known)):
        exprs = [lower(t, facts).alias(n) for t, n in zip(made, names, strict=True)]
        rows = lazy.with_columns(exprs).select(names)
        results.append(rows.collect(optimizations=OPTIMIZATIONS))
    for name in names:
        assert results[0].schema == results[1].schema
        assert same(*(values(found[name]) for found in results)), accepted[int(name)]


@examples(20, 160)
@given(st.lists(trees(depth=5), min_size=1, max_size=4), st.booleans())
def test_bound_operands_give_the_same_values(nests: list[Tree], tight: bool) -> None:
    check_values(nests, tight)


@pytest.mark.slow  # deeper ones take minutes and gigabytes each where operands are not bound
@settings(max_examples=2_000)
@given(st.lists(trees(depth=4), min_size=1, max_size=3), st.booleans())
def test_bound_operands_always_give_the_same_values(nests: list[Tree], tight: bool) -> None:
    check_values(nests, tight)


# ------------------------------------------------------------------------- wherever they are

PEOPLE = dp.Session(epsilon=1).protect(NASTY.select("i64", "f64", "f64b", "b", "d"), dp.Rows())
POWER = functools.reduce(lambda e, _: pl.col("f64") ** e, range(25), pl.col("f64b"))
DAY = functools.reduce(lambda e, _: e.dt.round("1mo"), range(12), pl.col("d"))
PLACES: dict[str, Any] = {
    "filter": lambda: PEOPLE.filter(POWER > 1, DAY.is_not_null()).dp_count(),
    "with_columns": lambda: PEOPLE.with_columns(r=POWER).dp_sum("r", (0, 1)),
    "select": lambda: PEOPLE.select(r=POWER).dp_sum("r", (0, 1)),
    "sum": lambda: PEOPLE.dp_sum(POWER, (0, 1)),
    "variance": lambda: PEOPLE.agg(POWER.dp_var((0, 1)).alias("v")),
    "count": lambda: PEOPLE.agg(POWER.dp_count().alias("v")),
    "distinct": lambda: PEOPLE.agg(DAY.dt.year().dp_n_unique().alias("v")),
    "bins": lambda: PEOPLE.dp_histogram(POWER.alias("r"), [float(i) for i in range(60)]),
    "categories": lambda: PEOPLE.dp_histogram((POWER > 1).alias("r")),
    "quantile": lambda: PEOPLE.agg(POWER.dp_median((0, 1)).alias("v")),
    "candidates": lambda: PEOPLE.agg(POWER.dp_median(candidates=[0, 1]).alias("v")),
    "group": lambda: PEOPLE.group_by(y=DAY.dt.year(), keys=[2000, 2001]).agg(dp.count()),
    "argmax": lambda: PEOPLE.dp_argmax((POWER > 1).alias("r"), score=POWER.clip(0, 1)),
    "part": lambda: PEOPLE.session.partition(PEOPLE, POWER > 1, [True, False])[True].dp_count(),
}


@pytest.mark.parametrize("place", PLACES)
def test_operands_are_bound_in_every_place(place: str) -> None:
    query = PLACES[place]()
    asked = query_of(query)
    for lowered in lower_query(asked.relation, asked.groups, tables_of(asked), NASTY.lazy()):
        assert len(lowered.frame.explain(optimized=False)) < 200_000
    query.plan(epsilon="0.01")
    query.collect(epsilon="0.01")


def test_steps_leave_no_columns_behind() -> None:
    steps = (
        WithColumns((Named("r", deep(12)),)),
        Filter((call("gt", deep(12), deep(11)),)),
        Select((Named("f64", deep(12)), Named("r", Column("r")))),
    )
    found = relation(*steps)
    lazy = lower_rows(found, NASTY.lazy(), pl, 0)
    assert lazy.collect_schema().names() == list(found.facts.columns) == ["f64", "r"]


def test_operands_never_take_the_name_of_a_column() -> None:
    named = {f"operand {i}": pl.col("f64") + i for i in range(9)}
    frame = PEOPLE.with_columns(**named).with_columns(r=POWER)
    assert frame.schema.keys() == {*PEOPLE.schema, *named, "r"}
    assert frame.select(*(pl.col(n) for n in named), "r").dp_sum("r", (0, 1)).plan(epsilon="0.01")


def test_shallow_expressions_stay_as_they_are() -> None:
    lazy = NASTY.lazy()
    tree = tree_of('((pl.col("i64") - 40) * 2).clip(0, 60)')
    frame, value, known = bind(lazy, (tree,), COLUMNS, pl)
    assert frame is lazy
    assert value == (tree,)
    assert known is COLUMNS


def test_refusals_are_those_of_inference() -> None:
    with pytest.raises(DPFrameError):
        relation(
            WithColumns(
                (
                    Named(
                        "r",
                        call("add", deep(5), Column("no")),
                    ),
                )
            )
        )
