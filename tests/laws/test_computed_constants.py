"""Constants that Polars computes when a query runs, beside columns stored in every way."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import Column, Literal, Tree, column_names, substitute
from dpframe.parse.reader import read
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.registry import OPERATIONS
from tests.api.exactly import ENOUGH
from tests.laws.checking import Engine, tree_of
from tests.laws.frames import SCHEMA, nasty_frame, wide_columns
from tests.laws.layouts import as_one_value
from tests.laws.stored_expressions import BINARY, Held, Law, batches, fitting, held, ordinary, pairs
from tests.laws.trees import LEAVES, fits, kind

pytestmark = [
    pytest.mark.filterwarnings("ignore:Comparisons with None:UserWarning"),
    pytest.mark.filterwarnings("ignore:`cut` is deprecated:DeprecationWarning"),
]
NASTY = nasty_frame(61)
COLUMNS = wide_columns(NASTY)
CONDITIONS = (
    "pl.lit(5).is_not_nan()",
    "pl.lit(5).is_nan()",
    "pl.lit(5.0).is_not_nan()",
    "pl.lit('a').str.contains('b')",
    "pl.coalesce(pl.lit(True), pl.lit(False))",
    "pl.when(pl.lit(5.0).is_not_nan()).then(True)",
)
COMPARED: Sequence[Callable[[pl.Expr, pl.Expr], pl.Expr]] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    pl.Expr.eq_missing,
    pl.Expr.ne_missing,
    lambda a, b: a.is_between(b, b),
)


def constants_of(examples: Iterator[Tree]) -> dict[str, list[Tree]]:
    """By kind, what operations make of constants alone."""
    rng = random.Random(1)
    made: dict[str, list[Tree]] = {}
    for tree in examples:
        known = {}
        for name in column_names(tree):
            leaves = LEAVES.get(kind(COLUMNS[name].dtype), [])
            literals = [x for x in leaves if isinstance(x, Literal) and x.value is not None]
            if literals:
                known[name] = rng.choice(literals)
        constant = substitute(tree, known)
        if not column_names(constant) and fits(constant, COLUMNS):
            made.setdefault(kind(domain(constant, COLUMNS).dtype), []).append(constant)
    return made


def examples() -> Iterator[Tree]:
    return (tree_of(text) for operation in OPERATIONS for text in operation.examples)


COMPUTED = constants_of(examples())


def computed(rng: random.Random, name: str) -> Tree | None:
    """A computed constant that can stand for a column, where operations make any of its kind."""
    known = COMPUTED.get(kind(COLUMNS[name].dtype))
    return rng.choice(known) if known else None


def with_constants(rng: random.Random, trees: Iterator[Tree]) -> Iterator[Tree]:
    """Each tree with computed constants for one or more of its columns, and not for all."""
    for tree in trees:
        names = sorted(column_names(tree))
        chosen = rng.sample(names, rng.randint(1, len(names) - 1)) if len(names) > 1 else []
        made = {name: computed(rng, name) for name in chosen}
        known = {name: constant for name, constant in made.items() if constant is not None}
        if known:
            yield substitute(tree, known)


def two_columns(rng: random.Random, number: int) -> Iterator[tuple[str, str, str]]:
    """Every operation of two columns, each with columns of kinds that go together."""
    for text in BINARY:
        for _ in range(number):
            a = rng.choice(list(SCHEMA))
            alike = [b for b in SCHEMA if kind(COLUMNS[a].dtype) == kind(COLUMNS[b].dtype)]
            yield text, a, rng.choice(alike)


def frames(rng: random.Random) -> list[Held]:
    """Frames of which every second has all its columns as one value each."""
    pools = [NASTY, ordinary(rng)]
    stored = [held(rng, pool, rng.choice([1, 2, 3, 5])) for pool in pools * 2]
    return [frame for one in stored for frame in (one, as_values(rng.choice(pools), rng))]


def as_values(pool: pl.DataFrame, rng: random.Random) -> Held:
    row = pool.slice(rng.randrange(pool.height), 1)
    rows = one = pl.concat([row] * 3, rechunk=True)
    for column in rows.iter_columns():
        one = as_one_value(one, column)
    return Held(rows, {"plain": rows, "one value each": one})


def test_operations_of_a_column_and_a_computed_constant() -> None:
    rng = random.Random(20_261_122)
    law = Law(COLUMNS, frames(rng))
    found = fitting(with_constants(rng, pairs(two_columns(rng, 12), COLUMNS)), COLUMNS)
    for i, batch in enumerate(batches(found, 10_000)):
        law.check(batch, 2, at=i)
    law.verdict()
    assert law.expressions >= 80


def test_examples_with_computed_constants() -> None:
    rng = random.Random(20_261_122)
    law = Law(COLUMNS, frames(rng))
    found = fitting(with_constants(rng, examples()), COLUMNS)
    for i, batch in enumerate(batches(found, 10_000)):
        law.check(batch, 2, at=i)
    law.verdict()
    assert law.expressions >= 80


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_operations_with_computed_constants(part: int) -> None:
    rng = random.Random(random.SystemRandom().randrange(2**32))
    law = Law(COLUMNS, frames(rng))
    found = fitting(with_constants(rng, pairs(two_columns(rng, 200), COLUMNS)), COLUMNS)
    for i, batch in enumerate(batches(found, 10_000)):
        law.check(batch, 2, at=i)
    law.verdict()


def test_python_turns_no_comparison_round() -> None:
    tried = 0
    for tree in chain(examples(), *COMPUTED.values()):
        tried += 1
        assert type(lower(tree, COLUMNS)) is pl.Expr, words(tree)
    assert tried >= 800


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_keep_the_same_rows(text: str, engine: Engine) -> None:
    rows = pl.DataFrame({"row": range(3), "b": [True] * 3, "bb": [False] * 3})
    one = as_one_value(as_one_value(rows, rows["b"]), rows["bb"])
    columns = wide_columns(rows)
    constant = tree_of(text)
    for name, compare in product(("b", "bb"), COMPARED):
        given = tree_of_two(compare(pl.col("x"), pl.col("y")))
        for a, b in ((Column(name), constant), (constant, Column(name))):
            tree = substitute(given, {"x": a, "y": b})
            condition = lower(tree, columns)
            made, kept = (
                [
                    ask(frame.lazy()).collect(engine=engine, optimizations=OPTIMIZATIONS)
                    for frame in (rows, one)
                ]
                for ask in (
                    lambda frame, c=condition: frame.with_columns(x=c),
                    lambda frame, c=condition: frame.filter(c),
                )
            )
            assert made[0].equals(made[1]), words(tree)
            assert kept[0].equals(kept[1]), words(tree)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_one_row_does_not_decide_how_many_compare_with_a_constant(engine: Engine) -> None:
    constant = pl.lit(5).is_not_nan()
    rows = pl.DataFrame({"row": range(1000), "b": [False] * 1000})
    other = rows.with_columns(b=pl.col("row") == 0)
    for condition in (pl.col("b") < constant, constant > pl.col("b"), pl.col("b") != constant):
        for frame, expected in ((rows, 1000), (as_one_value(rows, rows["b"]), 1000), (other, 999)):
            session = dp.Session(epsilon=2 * ENOUGH)
            people = session.protect(frame.lazy(), dp.Rows())
            for query in (
                people.filter(condition).dp_count(),
                people.with_columns(x=condition).agg(dp.sum("x")),
            ):
                assert query.collect(epsilon=ENOUGH, engine=engine).item() == expected


def tree_of_two(expression: pl.Expr) -> Tree:
    """The tree of an expression over two Boolean columns, x and y."""
    (named,) = read(expression, {"x": pl.Boolean(), "y": pl.Boolean()})
    return named.tree
