"""Which formulas of noisy numbers are sums with public factors, or ratios of two."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.dtypes import DType
from dpframe.core.tree import Literal, Tree
from dpframe.parse.reader import read
from dpframe.release.intervals import Ratio, Sum, ratio_of

A, B = pl.col("a"), pl.col("b")


def tree_of(formula: pl.Expr) -> Tree:
    (named,) = read(formula, {"a": pl.Float64(), "b": pl.Float64()}, what="agg")
    return named.tree


def value(form: Sum, a: Fraction, b: Fraction) -> Fraction:
    zero = Fraction(0)
    return form.constant + form.factors.get("a", zero) * a + form.factors.get("b", zero) * b


@pytest.mark.parametrize(
    "formula",
    [
        A,
        -A + 2 * B - 3,
        (A - B) / 4,
        A / B,
        (2 * A + 1) / (B - A) * 100,
        1 - A / B,
        A / B - B / B,
        A / B + 5,
        -(A / 2) / (B * 0.5),
        (A / B) / 2,
    ],
    ids=str,
)
@given(st.integers(-50, 50), st.integers(-50, 50))
def test_a_ratio_is_the_formula(formula: pl.Expr, x: int, y: int) -> None:
    found = ratio_of(tree_of(formula))
    assert found is not None
    a, b = Fraction(x) + Fraction(1, 3), Fraction(y) + Fraction(1, 7)
    below = value(found.below, a, b)
    if below:
        frame = pl.DataFrame({"a": [float(a)], "b": [float(b)]})
        (result,) = frame.select(formula.alias("r"))["r"].to_list()
        assert result == pytest.approx(float(value(found.above, a, b) / below), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "formula",
    [
        A * B,
        A**2,
        A.sqrt(),
        A / (A / B),
        1 / A + 1 / B,
        A / 0,
        A.round(),
        pl.lit("x") + A.cast(str),
        A.sqrt() + B,
        B - A.sqrt(),
        A.sqrt() / (B / A),
    ],
    ids=str,
)
def test_other_formulas_are_none(formula: Any) -> None:
    assert ratio_of(tree_of(formula)) is None


@pytest.mark.parametrize("value", [True, False, None, "3", "x"])
def test_constants_that_are_no_numbers_are_no_formula(value: Any) -> None:
    assert ratio_of(Literal(value, DType("String"))) is None


def test_a_constant_has_no_factors() -> None:
    found = ratio_of(tree_of(pl.lit(2) * 3 + A - A))
    assert isinstance(found, Ratio)
    assert found.above.is_constant
    assert found.below.is_constant
