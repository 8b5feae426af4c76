"""Frame steps on rows stored in every way: each row becomes what it becomes alone."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from itertools import islice
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.frames.relation import Relation
from dpframe.lower.tables import lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.registry import OPERATIONS
from tests.api.exactly import ENOUGH, protected
from tests.laws.checking import Engine, tree_of
from tests.laws.frames import SCHEMA, nasty_frame, values, wide_columns
from tests.laws.layouts import stored
from tests.laws.neighbours import query_of
from tests.laws.queries import NAMES, STEPS
from tests.laws.stored_expressions import fitting, grown, held, ordinary

pytestmark = [
    pytest.mark.filterwarnings("ignore:Comparisons with None:UserWarning"),
    pytest.mark.filterwarnings("ignore:`cut` is deprecated:DeprecationWarning"),
]
_SLOW = os.environ.get("DPFRAME_PROFILE") == "slow"
ONE = pl.DataFrame({"b": [True], "f64b": [49.0]})
SAME = pl.DataFrame(
    {"u8": [0, 1, 7, 49], "f64b": [3.0] * 4}, schema={"u8": pl.UInt8, "f64b": pl.Float64}
)
CHAINS = [
    "f.with_columns(f64=pl.lit(0.0))",
    "f.with_columns(i64=pl.lit(49, dtype=pl.Int64), f64b=pl.lit(7.0))",
    'f.with_columns(s=pl.lit("a"), b=pl.lit(None, dtype=pl.Boolean))',
    "f.with_columns(f64=pl.lit(0.0)).concat(f)",
    "f.concat(f.with_columns(f64=pl.lit(0.0), f64b=pl.lit(49.0)))",
    "f.concat(f.filter(pl.lit(False)))",
    "f.with_columns(i64=pl.lit(0, dtype=pl.Int64))"
    '.concat(f.filter(pl.col("b")).with_columns(i64=pl.lit(1, dtype=pl.Int64)))',
    'f.filter(pl.col("i8") > 3)',
    'f.filter((pl.col("f64") + pl.col("f64b")) / 49.0 < 2)',
    'f.drop("f64b").join(ONE, on="b", how="left")',
    'f.drop("f64b").join(ONE, on="b")',
    'f.drop("f64b").join(SAME, on="u8", how="left")',
    'f.join(ONE, on="b", how="anti")',
    'f.with_columns(f64=pl.col("f64").fill_null(49.0), f64b=pl.col("f64").is_null() * 49.0)',
    'f.with_columns(f64=pl.when("b").then(49.0).otherwise(7.0), i64=pl.col("i64").clip(7, 7))',
    *(step for step in STEPS if "fill_null" not in step and "drop(" not in step),
]
"""Steps that make constants, put frames together, and take rows away."""


def chain(texts: list[str]) -> Relation:
    """The frame after some steps, with a number for each row of the source."""
    schema = pl.LazyFrame(schema={**SCHEMA, "row": pl.Int64})
    frame: Any = dp.Session(epsilon=1).protect(schema, dp.Rows())
    for text in texts:
        frame = eval(text, {**NAMES, "f": frame, "ONE": ONE, "SAME": SAME})
    return query_of(frame.agg(dp.count())).relation


def after(
    relation: Relation, made: Mapping[str, pl.Expr], frame: pl.DataFrame, engine: Engine
) -> list[str]:
    """The rows after the steps, with expressions of them, as sorted text."""
    lazy = lower_rows(relation, frame.lazy(), pl, salt=0)
    lazy = lazy.with_columns(e.alias(name) for name, e in made.items()).select("row", *made)
    found = lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)
    columns = [[_plain(v) for v in values(column)] for column in found.iter_columns()]
    return sorted(map(repr, zip(*columns, strict=True)))


def _plain(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def chains(rng: random.Random) -> tuple[list[str], Relation]:
    """Some steps of which none refuses the types that others made."""
    while True:
        texts = rng.sample(CHAINS, rng.randint(1, 3))
        try:
            return texts, chain(texts)
        except UnsupportedOperation as error:
            if "type" not in error.what:
                raise


def check(rng: random.Random, pool: pl.DataFrame, number: int) -> int:
    """Some steps, and expressions after them; how many expressions there were."""
    texts, relation = chains(rng)
    facts = relation.facts.columns
    trees: list[Tree] = list(islice(fitting(grown(rng, 1), facts), number))
    made = {f"r{i}": lower(tree, facts) for i, tree in enumerate(trees)}
    on = held(rng, pool, rng.choice([1, 2, 4]))
    rows = on.rows.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    alone = [after(relation, made, rows.slice(i, 1), "in-memory") for i in range(rows.height)]
    for kept in (range(rows.height), rng.sample(range(rows.height), rows.height - 1)):
        frame = stored(rows[list(kept)], rng.randrange(2**32))
        expected = sorted(text for i in kept for text in alone[i])
        for engine in ("in-memory", "streaming"):
            found = after(relation, made, frame, engine)  # type: ignore[arg-type]
            assert found == expected, (texts, [words(tree) for tree in trees])
    return len(trees)


def seed() -> int:
    return random.SystemRandom().randrange(2**32) if _SLOW else 20_261_122


def test_steps_and_expressions() -> None:
    """On neighbours, with and without one individual."""
    rng = random.Random(seed())
    pools = [nasty_frame(61), ordinary(rng)]
    assert sum(check(rng, pools[i % 2], 8) for i in range(24)) == 192


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_steps_and_expressions(part: int) -> None:
    rng = random.Random(seed())
    pools = [nasty_frame(61), ordinary(rng)]
    assert sum(check(rng, pools[i % 2], 20) for i in range(60)) == 1_200


def value_counts(text: str, rng: random.Random, engine: Engine) -> int:
    """Rows whose value equals the one that a row has alone are counted the same, as the released
    result says, with and without another row; how many rows were asked for.
    """
    tree = tree_of(text)
    columns = wide_columns(nasty_frame(0))
    dtype = domain(tree, columns).dtype
    if not (dtype.is_numeric or dtype.is_boolean or dtype.name == "String") or dtype.is_decimal:
        return 0
    rows = held(rng, ordinary(rng), 3).rows
    made = lower(tree, columns).alias("x")
    alone = [rows.slice(i, 1).lazy().with_columns(made).collect()["x"].item() for i in range(3)]
    asked = 0
    for kept in ([0, 1, 2], rng.sample(range(3), 2)):
        value = alone[kept[0]]
        wanted = sum(_alike(alone[i], value) for i in kept)
        people = protected(stored(rows[kept], rng.randrange(2**32)))
        same = eval(text, dict(NAMES)).eq_missing(pl.lit(value))
        query = people.filter(same).dp_count()
        assert query.collect(epsilon=ENOUGH, engine=engine).item() == wanted, (text, value)
        asked += 1
    return asked


def _alike(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)


@pytest.mark.always
def test_the_value_of_a_row_is_found_again() -> None:
    rng = random.Random(seed())
    texts = rng.sample([text for o in OPERATIONS for text in o.examples], 60)
    asked = sum(value_counts(t, rng, rng.choice(["in-memory", "streaming"])) for t in texts)
    assert asked >= 60


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_the_value_of_each_operation_is_found_again(engine: Engine) -> None:
    rng = random.Random(seed())
    asked = sum(value_counts(t, rng, engine) for o in OPERATIONS for t in o.examples)
    assert asked >= 400
