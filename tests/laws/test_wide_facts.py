"""Laws of what is inferred about numbers of every type and size.

Each operation that takes numbers is computed for all pairs of numeric types, among them those that
do not fit in Int64 or Float64, over all pairs of their most awkward values. Nothing that comes out
may contradict the inferred type, nulls, NaN, interval or values.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import islice, product
from typing import Any, TypeAlias

import polars as pl
import pytest

from dpframe.core.dtypes import INT64, Columns
from dpframe.core.interval import interval
from dpframe.core.tree import Column, Tree, column_names, substitute
from dpframe.rows.constants import constant
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import Expression, contradiction, expression, run, tree_of
from tests.laws.frames import SCHEMA, tight_columns, values, wide_columns
from tests.laws.trees import fits

_F32 = 3.4028234663852886e38
_FLOATS = [0.0, -0.0, 1.0, -0.5, 100.5, 2.0**63, -1e300, math.nan, math.inf, -math.inf]
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "bool": (pl.Boolean(), [True, False]),
    "i8": (pl.Int8(), [-128, 127, 0, 1, -1, 7]),
    "u8": (pl.UInt8(), [0, 1, 255, 2]),
    "i64": (pl.Int64(), [-(2**63), 2**63 - 1, 0, 1, -1, 2**53 + 1, -3]),
    "u64": (pl.UInt64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 3]),
    "i128": (
        pl.Int128(),
        [-(2**127), 2**127 - 1, 2**63, -(2**63) - 1, 10**37, -(10**37), 0, 1, -5],
    ),
    "f32": (pl.Float32(), [0.0, 1.0, -0.5, 100.5, _F32, -_F32, 1e-45, *_FLOATS[-3:]]),
    "f64": (pl.Float64(), _FLOATS),
    "dec0": (pl.Decimal(38, 0), [Decimal(v) for v in (0, 1, -2, 10**37, -(10**37), 2**63)]),
    "dec2": (pl.Decimal(20, 2), [Decimal(v) for v in ("0.00", "-0.50", "1.00", "2.67", "-7E10")]),
    "dec38": (pl.Decimal(38, 38), [Decimal(v) for v in ("0", "0.5", "-0.3", "1E-38", "-1E-38")]),
    "null": (pl.Null(), []),
}
"""Types of numbers, and the values at which they go wrong; null is added everywhere."""
PARTS = {
    "": lambda v: True,
    "_some": lambda v: v is not None,
    "_number": lambda v: v is not None and v == v,
    "_plus": lambda v: v is not None and v > 0,
    "_minus": lambda v: v is not None and v < 0,
    "_least": lambda v: v is not None and v >= 0,
    "_small": lambda v: v is not None and abs(v) < 1000,
}
"""Which of the values a column has: the facts about it are as tight as that."""
CONSTANTS = [
    constant(v)
    for v in (
        0, 1, -1, 2, 3, -3, -2, 127, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 10**37, -(2**127),
        0.0, -0.0, 0.5, -0.5, -2.5, 100.5, 1e300, -1e300, 5e-324, math.nan, math.inf, -math.inf,
        Decimal(0), Decimal("0.5"), Decimal("-2.5"), Decimal(-2), Decimal(10**37), Decimal("1E-30"),
        True, False, None,
    )
]  # fmt: skip
WRITTEN = [
    "{a}.clip(-5, 100.5)", "{a}.clip(-5, 100)", "{a}.clip(-(2**63), 2**63 - 1)",
    "{a}.clip(2.0**63)", "{a}.is_nan()", "{a}.is_finite()", "{a}.is_null()",
    "{a}.clip(-1e300, 1e300)", "{a}.clip(upper_bound=-0.5)", "{a}.clip(None, 1e30)",
    "{a}.clip({b}, 5)", "{a}.clip({b}, {b})", "{a}.clip(upper_bound={b})", "{a} + {b}",
    "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}", "{a} ** {b}", "{a} == {b}",
    "{a} < {b}", "{a} >= {b}", "{a}.eq_missing({b})", "{a}.ne_missing({b})", "{a} & {b}",
    "{a} | {b}", "{a} ^ {b}", "{a}.fill_null({b})", "{a}.fill_nan({b})", "pl.coalesce({a}, {b})",
    "pl.min_horizontal({a}, {b})", "pl.max_horizontal({a}, {b})", "pl.sum_horizontal({a}, {b})",
    "pl.sum_horizontal({a}, {b}, ignore_nulls=False)", "pl.mean_horizontal({a}, {b})",
    "pl.mean_horizontal({a}, {b}, ignore_nulls=False)", "{a}.is_between({b}, {a})",
    "pl.when({a}.is_null()).then({a}).otherwise({b})", "pl.when({a} > 0).then({b})",
    "{a}.is_in([0.0, 1.0, -0.5])", "{a}.replace(1, 2**62)", "{a}.replace(0, 0.5)",
    "{a}.replace_strict([0, 1], [2**62, -1], default=2)",
    "{a}.replace_strict([0, 1], [0.5, -1], default={b})", "pl.concat_list({a}, {b})",
    "{a}.log(0.5)", "{a}.log(1e300)", "{a}.round(100)", "{a}.round(3)", "{a}.pow(64)",
    "{a} ** 65", "{a} ** -1", "{a} ** 0.5", "{a} ** -2.5", "2 ** {a}", "(-2) ** {a}", "0 ** {a}",
    *(f"{{a}}.cast(pl.{t})" for t in ("Int8", "UInt8", "Int64", "UInt64", "Int128", "Float32",
                                      "Float64", "Boolean", "String", "Duration('ms')", "Date")),
]  # fmt: skip
"""Beside the examples that operations state, what numbers at the limits of types meet."""
_BATCH = 100
pytestmark = pytest.mark.filterwarnings("ignore")


@cache
def grid() -> pl.DataFrame:
    """All pairs of the values of all columns: `a ...` changes slowly, `b ...` fast."""
    height = max(len(pool) for _, pool in TYPES.values()) + 1
    made: list[pl.Series] = []
    for (name, (dtype, pool)), (part, keeps) in product(TYPES.items(), PARTS.items()):
        kept = [v for v in (*pool, None) if keeps(v)]
        if not kept:
            continue
        items = [kept[i % len(kept)] for i in range(height)]
        slow = [item for item in items for _ in items]
        made.append(pl.Series(f"a {name}{part}", slow, dtype=dtype))
        made.append(pl.Series(f"b {name}{part}", items * height, dtype=dtype))
    return pl.DataFrame(made)


@cache
def facts(tight: bool) -> Columns:
    return tight_columns(grid()) if tight else wide_columns(grid())


def _is_number(name: str) -> bool:
    dtype = from_polars(SCHEMA[name])
    return dtype.is_numeric or dtype.is_boolean


def _templates() -> list[Tree]:
    """Operations over two numbers at most, with columns `a` and `b`."""
    schema = {"a": pl.Int64(), "b": pl.Int64()}
    found: dict[Tree, None] = {}
    with warnings.catch_warnings():  # Polars warns of comparisons with null, and of `cut`
        warnings.simplefilter("ignore")
        for text in WRITTEN:
            found[tree_of(text.format(a="pl.col('a')", b="pl.col('b')"), schema)] = None
        for operation in OPERATIONS:
            for text in operation.examples:
                tree = tree_of(text)
                names = column_names(tree)
                if names and all(map(_is_number, names)):
                    places = {name: Column("ab"[i % 2]) for i, name in enumerate(names)}
                    found[substitute(tree, places)] = None
    return list(found)


TEMPLATES = _templates()
OF_ONE = [t for t in TEMPLATES if len(column_names(t)) == 1]
OF_TWO = [t for t in TEMPLATES if len(column_names(t)) == 2]


def _columns(side: str) -> list[Tree]:
    return [Column(name) for name in grid().columns if name.startswith(f"{side} ")]


Planned: TypeAlias = "tuple[Tree, dict[str, Tree]]"


def _parts(side: str, name: str, rng: random.Random) -> Column:
    made = [f"{side} {name}{part}" for part in PARTS]
    return Column(rng.choice([column for column in made if column in facts(False)]))


def of_columns(rng: random.Random) -> list[Planned]:
    """Every operation on every column, and on every pair of types, of values drawn."""
    alone: list[Planned] = [(t, {column_names(t)[0]: a}) for t, a in product(OF_ONE, _columns("a"))]
    pairs: list[Planned] = [
        (t, {"a": _parts("a", a, rng), "b": _parts("b", b, rng)})
        for t, a, b in product(OF_TWO, TYPES, TYPES)
    ]
    return [*alone, *pairs]


def of_constants(rng: random.Random) -> list[Planned]:
    """Every operation on every type and constant, on either side, and on constants alone."""
    mixed: list[Planned] = []
    for tree, name, one in product(OF_TWO, TYPES, CONSTANTS):
        mixed.append((tree, {"a": _parts("a", name, rng), "b": one}))
        mixed.append((tree, {"a": one, "b": _parts("b", name, rng)}))
    alone: list[Planned] = [(t, {column_names(t)[0]: one}) for t, one in product(OF_ONE, CONSTANTS)]
    pairs: list[Planned] = [
        (t, {"a": a, "b": b}) for t, a, b in product(OF_TWO, CONSTANTS, CONSTANTS)
    ]
    return [*mixed, *alone, *pairs]


def nested(rng: random.Random) -> Iterator[Tree]:
    """Random operations on the results of others, without end."""
    leaves = {side: [*_columns(side), *CONSTANTS] for side in "ab"}

    def grown(depth: int, side: str) -> Tree:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(leaves[side])
        tree = rng.choice(TEMPLATES)
        return substitute(tree, {name: grown(depth - 1, name) for name in column_names(tree)})

    while True:
        yield grown(rng.choice((2, 2, 3)), "a")


def wrong(trees: Sequence[Tree], columns: Columns) -> list[str]:
    """What comes out of the trees that contradicts what is inferred about them."""
    made = [expression(str(tree), tree, columns) for tree in trees if fits(tree, columns)]
    return [
        f"{checked.text}: {problem}"
        for start in range(0, len(made), _BATCH)
        for checked, result in _results(made[start : start + _BATCH])
        if (problem := _problem(checked, result)) is not None
    ]


def _results(made: Sequence[Expression]) -> Iterator[tuple[Expression, pl.Series]]:
    return zip(made, run(grid(), made), strict=True)


def _problem(checked: Expression, result: pl.Series) -> str | None:
    known = checked.domain
    if from_polars(result.dtype) != known.dtype:
        return f"is {result.dtype}, not {known.dtype}"
    for value in dict.fromkeys(values(result)) if not result.dtype.is_nested() else values(result):
        problem = contradiction(value, known)
        if problem is not None:
            return f"{value!r} {problem} ({known})"
    return None


def verdict(trees: Sequence[Tree]) -> None:
    found = [*wrong(trees, facts(True)), *wrong(trees, facts(False))]
    assert not found, "\n".join([f"{len(found)} wrong facts", *found[:20]])


@pytest.mark.parametrize("planned", [of_columns, of_constants], ids=lambda f: f.__name__)
def test_some_pairs(planned: Callable[[random.Random], list[Planned]]) -> None:
    rng = random.Random(2)
    verdict([substitute(tree, known) for tree, known in rng.sample(planned(rng), 150)])


def test_every_operation_on_its_worst_operands() -> None:
    """All values that do not fit, and no null that could hide one among them."""
    verdict(
        [
            *(substitute(t, {column_names(t)[0]: Column("a i128_some")}) for t in OF_ONE),
            *(substitute(t, {"a": Column("a i64"), "b": Column("b i128_some")}) for t in OF_TWO),
            *(substitute(t, {"a": Column("a u64_some"), "b": Column("b f64")}) for t in OF_TWO),
            *(
                substitute(t, {"a": Column("a i8_some"), "b": Column("b dec2_some")})
                for t in OF_TWO
            ),
            *(substitute(t, {"a": constant(-2), "b": Column("b dec38_some")}) for t in OF_TWO),
        ]
    )


def test_some_nested() -> None:
    verdict(list(islice(nested(random.Random(1)), 200)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("planned", [of_columns, of_constants], ids=lambda f: f.__name__)
def test_every_pair(planned: Callable[[random.Random], list[Planned]], number: int) -> None:
    made = planned(random.Random(number))[number::20]
    verdict([substitute(tree, known) for tree, known in made])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_many_nested(number: int) -> None:
    verdict(list(islice(nested(random.Random(100 + number)), 2_000)))


def test_the_law_is_not_empty() -> None:
    """Operations take numbers of all types, and false facts are noticed."""
    assert len(OF_ONE) > 100
    assert len(OF_TWO) > 50
    taken = {
        t
        for t in TEMPLATES
        if fits(substitute(t, {"a": Column("a i128"), "b": Column("b dec38")}), facts(False))
    }
    assert len(taken) > 150
    checked = expression("", Column("a i128"), facts(False))
    (result,) = run(grid(), [checked])
    for lie in ({"nullable": False}, {"interval": interval(0, 10)}, {"dtype": INT64}):
        assert _problem(replace(checked, domain=replace(checked.domain, **lie)), result)
