"""Mistakes planted in how operations treat stored columns, each of which the laws must find."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from dpframe.core.tree import column_names
from dpframe.rows import (
    arithmetic,
    comparison,
    horizontal,
    logic,
    maths,
)
from dpframe.rows import (
    arithmetic as division,
)
from dpframe.rows import (
    arithmetic as power,
)
from tests.laws.checking import tree_of
from tests.laws.frames import nasty_frame, wide_columns
from tests.laws.stored_expressions import Held, Law, held, ordinary

COLUMNS = wide_columns(nasty_frame(0))
VERSION = tuple(map(int, pl.__version__.split(".")[:2]))


FRAMES: dict[tuple[str, ...], list[Held]] = {}


def finds(*texts: str) -> bool:
    """Whether the law finds something wrong with the expressions."""
    trees = [tree_of(text) for text in texts]
    names = tuple(dict.fromkeys(name for tree in trees for name in column_names(tree)))
    if names not in FRAMES:
        rng = random.Random(7)
        pool = ordinary(rng).select(names)
        FRAMES[names] = [held(rng, pool, height) for height in (2, 3, 5) for _ in range(80)]
    law = Law(COLUMNS, FRAMES[names])
    for i in range(0, 240, 20):
        law.check(trees, 20, at=i)
        if law.broken:
            return True
    return False


QUOTIENTS = (
    "(pl.col('f64') + pl.col('f64b')) / 49.0",
    "(pl.col('i64') + pl.col('i8')) // 49.0",
    "(pl.col('i64') + pl.col('i8')) % 49.0",
    "(pl.col('f64') + pl.col('i64')).log(10)",
    "pl.mean_horizontal('f64', 'f64b', 'i64', ignore_nulls=False)",
    "(pl.col('i64') == pl.col('i8')).cast(pl.Float64) * 49 / 49",
    "pl.col('f64') / pl.col('f64b')",
)
Divided = Callable[[Any, pl.Expr, pl.Expr, Callable[[pl.Expr, pl.Expr], pl.Expr]], pl.Expr]


def by_reciprocal(ns: Any, a: pl.Expr, b: pl.Expr, formula: Any) -> pl.Expr:
    """Whatever Polars does with the divisor as it is."""
    made: pl.Expr = formula(a, ns.when(b != 0).then(b))
    return made


def _zeros(names: list[str], b: pl.Expr) -> pl.Expr:
    for name in names:
        b = pl.col(name).is_null().cast(pl.Float64) * 0.0 + b
    return b


def beside_the_first(ns: Any, a: pl.Expr, b: pl.Expr, formula: Any) -> pl.Expr:
    """Zeros of the first column of the dividend, or else of the divisor."""
    names = [*a.meta.root_names(), *b.meta.root_names()]
    return by_reciprocal(ns, a, pl.when(b != 0).then(_zeros(names[:1], b)), formula)


def beside_all(ns: Any, a: pl.Expr, b: pl.Expr, formula: Any) -> pl.Expr:
    """Zeros of all columns, by an operation that keeps one value as one."""
    names = [*a.meta.root_names(), *b.meta.root_names()]
    return by_reciprocal(ns, a, pl.when(b != 0).then(_zeros(names, b)), formula)


@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_are_right(text: str) -> None:
    assert not finds(text)


@pytest.mark.parametrize(
    "mistake",
    [
        by_reciprocal,
        pytest.param(
            beside_the_first,
            marks=pytest.mark.skipif(VERSION < (2, 0), reason="is_null makes rows there"),
        ),
    ],
)
def test_divisors_that_are_one_value(mistake: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (division, horizontal, maths):
        monkeypatch.setattr(module, "divided", mistake)
    for text in QUOTIENTS[:-2]:
        assert finds(text), text


def test_zeros_of_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not enough where comparing makes rows of one value, and is_null does not."""
    monkeypatch.setattr(division, "divided", beside_all)
    assert finds(QUOTIENTS[5]) == (VERSION >= (2, 0))


def test_the_engines_own_power(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        power, "_by_logarithm", lambda ns, base, exponent, whole: base.pow(exponent)
    )
    assert finds("pl.col('f64') ** pl.col('f64b')", "pl.col('i8') ** pl.col('f64')")


@pytest.mark.parametrize(
    "mistaken",
    [
        lambda column: column.flags["SORTED_ASC"] or column.flags["SORTED_DESC"],
        lambda column: column.n_chunks() > 1,
        lambda column: column.null_count() == len(column),
        lambda column: len(column) == 1,
    ],
    ids=["sorted", "in pieces", "all null", "one row"],
)
def test_forms_that_are_treated_otherwise(
    mistaken: Callable[[pl.Series], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation that takes null for zero where its operand has a certain form."""

    def look(column: pl.Series) -> pl.Series:
        return column.fill_null(0) if mistaken(column) else column

    def planted(self: Any, ns: Any, args: Any, *rest: Any) -> pl.Expr:
        made: pl.Expr = args[0].map_batches(look, return_dtype=pl.self_dtype())
        return made

    monkeypatch.setattr(arithmetic.Neg, "lower", planted)
    assert finds("-pl.col('i64')", "-pl.col('f64')", "-pl.col('i8')")


def test_a_null_that_is_taken_for_false(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(columns: list[pl.Series]) -> pl.Series:
        one = columns[1].null_count() == len(columns[1])
        return columns[0] ^ (columns[1].fill_null(value=False) if one else columns[1])

    def planted(self: Any, ns: Any, args: Any, *rest: Any) -> pl.Expr:
        made: pl.Expr = pl.map_batches(args, look, return_dtype=pl.Boolean)
        return made

    monkeypatch.setattr(logic.Xor, "lower", planted)
    assert finds("pl.col('b') ^ pl.col('bb')", "pl.col('bb') ^ pl.col('b')")


def test_a_comparison_with_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison.Lt, "lower", lambda self, ns, args, _: args[0] < args[1].first())
    assert finds("pl.col('f64') < pl.col('f64b')")
