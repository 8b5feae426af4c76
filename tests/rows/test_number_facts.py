"""What is inferred about numbers that lie within narrow intervals of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import BOOLEAN, FLOAT64, INT64, STRING, Domain, DType
from dpframe.core.interval import interval
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.errors import DPFrameError, InvalidBounds
from dpframe.parse.reader import read
from dpframe.rows.constants import constant
from dpframe.rows.fold import domain
from dpframe.rows.operands import INT128
from tests.calls import call
from tests.laws.checking import contradiction, expression, run, tree_of
from tests.laws.frames import tight_columns, values
from tests.rows.running import X

FLOATS = {
    "between 0 and 1": [0.25, 0.5, 0.999],
    "from 0 to 1": [0.0, 0.5, 1.0],
    "from -1 to 1": [-1.0, 0.0, 0.5, 1.0],
    "between -1 and 0": [-0.999, -0.5, -0.25],
    "above 1": [1.001, 2.0, 1e9],
    "below -1": [-1e9, -3.0, -1.5],
    "of both signs": [-2.5, -0.5, 0.0, 0.5, 3.0],
    "huge": [1e300, 1.7e308],
    "tiny": [5e-324, 1e-310, 1e-9],
    "infinite": [-math.inf, math.inf, 1.0],
}
WHOLE = {
    "from -1 to 1": [-1, 0, 1],
    "from 0": [0, 1],
    "from -1": [-1, 0],
    "above 1": [2, 3, 10],
    "below -1": [-10, -3, -2],
    "of both signs": [-3, 0, 7],
    "large": [2**31, 2**62],
    "all": [-(2**63), -1, 2**63 - 1],
}
POWERS = [0, 1, 2, 3, 63, 64, 65, 66, 67, 68, 69, 127, -1, -2, -3, 0.5, -0.5, 2.0, 3.0, -3.0]
POWERS += [1e300, -1e300, 2001.0, -2001.0, 2000.0, -2000.0, -1075.5]


def columns(pools: dict[str, list[Any]]) -> pl.DataFrame:
    height = max(map(len, pools.values()))
    return pl.DataFrame({n: [p[i % len(p)] for i in range(height)] for n, p in pools.items()})


def check(frame: pl.DataFrame, trees: list[Tree]) -> None:
    """Nothing that comes out contradicts what is inferred from the columns' least and largest,
    and from there being no null.
    """
    known = {
        name: replace(found, nullable=bool(frame[name].null_count()))
        for name, found in tight_columns(frame).items()
    }
    made = [expression(str(tree), tree, known) for tree in trees]
    for checked, found in zip(made, run(frame, made), strict=True):
        for value in values(found):
            problem = contradiction(value, checked.domain)
            assert problem is None, f"{checked.text}: {value!r} {problem} ({checked.domain})"


@pytest.mark.parametrize("pools", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_powers(pools: dict[str, list[Any]]) -> None:
    powers = [call("pow", Column(name), constant(p)) for name, p in product(pools, POWERS)]
    check(columns(pools), [*powers])


@pytest.mark.parametrize("pools", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_powers_of_columns(pools: dict[str, list[Any]]) -> None:
    frame = columns(pools)
    check(frame, [call("pow", Column(a), Column(b)) for a, b in product(pools, pools)])


def test_unsigned_numbers_that_are_claimed_to_be_negative_may_be_any() -> None:
    claimed = Domain(DType("UInt8"), nullable=False, interval=interval(-5, -1))
    for op in ("abs", "neg", "sign"):
        assert domain(call(op, X), {"x": claimed}).dtype == INT64


def test_a_new_value_may_be_nan() -> None:
    old, nan = (0.5,), (math.nan,)
    replaced = call("replace", X, old=old, new=nan)
    strict = call("replace_strict", X, constant(1.0), old=old, new=nan, dtype=None)
    check(pl.DataFrame({"x": [0.5, 1.0]}), [replaced, strict])
    check(pl.DataFrame({"x": [0.5, math.nan]}), [replaced, strict])
    without = call("replace", X, old=nan, new=old)
    check(pl.DataFrame({"x": [0.5, math.nan]}), [without])
    assert not domain(without, {"x": Domain(FLOAT64, nan=True)}).nan


def test_the_default_counts_where_some_value_is_not_listed() -> None:
    """A NaN is a value too."""

    def nullable(old: tuple[Any, ...], operand: Domain) -> bool:
        tree = call(
            "replace_strict", X, constant(None), old=old, new=(7, 8)[: len(old)], dtype=None
        )
        return domain(tree, {"x": operand}).nullable

    text = Domain(STRING, nullable=False, categories=("a", "b"))
    assert not nullable(("a", "b"), text)
    assert nullable(("a",), text)
    assert nullable(("a", "b"), replace(text, nullable=True))
    number = Domain(FLOAT64, nullable=False, nan=False, categories=(0.5,))
    assert not nullable((0.5,), number)
    assert nullable((0.5,), replace(number, nan=True))


@pytest.mark.parametrize("name", ["min_horizontal", "max_horizontal"])
def test_the_extreme_of_numbers_may_be_nan(name: str) -> None:
    pools = {"a": [math.nan, 1.0, None], "b": [math.nan, 1.0], "c": [None, 1.0], "d": [1.0, 2.0]}
    sides = [product([name], pools, pools)]
    trees: list[Tree] = [call(n, Column(a), Column(b)) for side in sides for n, a, b in side]
    frame = columns(pools)
    check(frame.join(frame.select(pl.all().name.suffix("_")), how="cross"), trees)


def ends(tree: Call, lo: int | None, hi: int | None) -> tuple[Any, Any]:
    known = interval(lo, hi)
    found = domain(tree, dict.fromkeys("xy", Domain(INT64, nullable=False, interval=known)))
    return found.interval.lo, found.interval.hi


def test_signs_are_known_as_well_as_they_can_be() -> None:
    for lo, hi in [(-5, -1), (-5, 0), (-5, 5), (0, 0), (0, 5), (1, 5), (-1, 1)]:
        signs = {(n > 0) - (n < 0) for n in range(lo, hi + 1)}
        assert ends(call("sign", X), lo, hi) == (min(signs), max(signs))
    assert ends(call("sign", X), None, None) == (-1, 1)


def test_a_product_is_nan_only_where_infinity_meets_zero() -> None:
    known = {"finite": interval(0, 2), "endless": interval(None, None), "above": interval(1, None)}
    infinite, zero = {"endless", "above"}, {"endless", "finite"}
    for one, other in product(known, known):
        operands = {
            name: Domain(FLOAT64, nullable=False, interval=known[kind])
            for name, kind in (("x", one), ("y", other))
        }
        possible = any(a in infinite and b in zero for a, b in ((one, other), (other, one)))
        assert domain(call("mul", X, Column("y")), operands).nan == possible, (one, other)


def test_remainders_lie_between_zero_and_the_divisor() -> None:
    rest = call("mod", X, Column("y"))
    for lo, hi, least, most in [(-5.0, -3.0, -5, 0), (3.0, 5.0, 0, 5)]:
        divisor = Domain(FLOAT64, nullable=False, interval=interval(lo, hi))
        dividend = Domain(FLOAT64, nullable=False, interval=interval(-9.0, 9.0))
        found = domain(rest, {"x": dividend, "y": divisor}).interval
        assert found.is_bounded
        assert least - 1e-9 < found.ends[0] <= least
        assert most <= found.ends[1] < most + 1e-9


def test_bits_of_numbers_without_a_sign_have_none() -> None:
    for op, (lo, hi) in product(["and", "or", "xor"], [(0, 5), (1, 5), (0, 0), (3, 8), (0, None)]):
        found = ends(call(op, X, Column("y")), lo, hi)
        assert found[0] is not None
        assert found[0] >= 0
        assert hi is None or found[1] < 2 ** hi.bit_length()
    assert ends(call("and", X, Column("y")), -3, 5) == (-8, 7)


def test_whole_constants_have_the_first_type_that_holds_them() -> None:
    for exponent, dtype in [(63, INT64), (127, INT128)]:
        assert constant(2**exponent - 1).dtype == dtype
        assert constant(-(2**exponent)).dtype == dtype
    assert constant(2**63).dtype.name == "UInt64"
    for number in (2**127, -(2**127) - 1):
        with pytest.raises(OverflowError, match="128 bits"):
            constant(number)


@pytest.mark.parametrize("base", [0, 0.0, 1, -1, -0.5, math.nan, math.inf])
def test_logarithms_have_finite_bases_above_zero(base: float) -> None:
    with pytest.raises(DPFrameError, match="base"):
        call("log", X, base=base)


def test_powers_of_columns_are_those_of_each_row() -> None:
    frame = pl.DataFrame({"a": [2, 3, 4, 5], "b": [3, 1, 2, 4], "x": [0.5, 2.0, 3.0, 4.0]})
    known = {name: replace(d, nullable=False) for name, d in tight_columns(frame).items()}
    for one, other in product("abx", "abx"):
        tree = call("pow", Column(one), Column(other))
        (found,) = run(frame, [expression(str(tree), tree, known)])
        pairs = zip(frame[one], frame[other], strict=True)
        assert found.to_list() == pytest.approx([float(a) ** float(b) for a, b in pairs], rel=1e-12)


def test_zero_has_no_sign_before_it_is_raised() -> None:
    """One over it lies above, where the facts say so."""
    frame = pl.DataFrame(
        {"base": [0.0, -0.0, 0.0, -0.0, 0.0], "power": [-1.0, -3.0, 3.0, -2.0, 0.0]}
    )
    known = {
        name: replace(d, nullable=False, nan=False) for name, d in tight_columns(frame).items()
    }
    tree = call("pow", Column("base"), Column("power"))
    (found,) = run(frame, [expression(str(tree), tree, known)])
    assert found.to_list() == [math.inf, math.inf, 0.0, math.inf, 1.0]
    assert [contradiction(value, domain(tree, known)) for value in found.to_list()] == [None] * 5


@pytest.mark.parametrize(
    "op", ["floor", "ceil", "abs", "sign", "neg", "sqrt", "cbrt", "exp", "log1p"]
)
@pytest.mark.parametrize("pools", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_functions_of_one_number(pools: dict[str, list[Any]], op: str) -> None:
    check(columns(pools), [call(op, Column(name)) for name in pools])


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_rounding(decimals: int) -> None:
    trees = [call("round", Column(name), decimals=decimals) for name in FLOATS]
    check(columns(FLOATS), list(trees))


def test_inverses_are_known_where_nothing_overflows_on_the_way() -> None:
    for op in ("arcsinh", "arccosh"):
        for most, known in ((1, True), (10**6, True), (10**305, False)):
            reals = Domain(FLOAT64, nullable=False, interval=interval(1, most))
            assert (domain(call(op, X), {"x": reals}).interval.hi is not None) == known, (op, most)


def test_a_sum_is_nan_only_where_infinities_of_both_signs_meet() -> None:
    known = {"finite": interval(0, 2), "below": interval(None, 2), "above": interval(1, None)}
    for one, other in product(known, known):
        operands = {
            name: Domain(FLOAT64, nullable=False, interval=known[kind])
            for name, kind in (("x", one), ("y", other))
        }
        possible = {one, other} == {"below", "above"}
        assert domain(call("add", X, Column("y")), operands).nan == possible, (one, other)


def test_a_power_is_nan_only_where_one_below_zero_has_an_exponent_that_is_not_whole() -> None:
    for lo, exponent in product([-1, 0], [0.5, 3.0, 1.5]):
        base = Domain(FLOAT64, nullable=False, interval=interval(lo, 2))
        found = domain(call("pow", X, Literal(exponent, FLOAT64)), {"x": base})
        assert found.nan == (lo < 0 and exponent % 1 > 0), (lo, exponent)


def test_large_powers_of_signs_are_known() -> None:
    for lo, power in product([-1, 0], [100, 101]):
        raised = {n**power for n in range(lo, 2)}
        found = ends(call("pow", X, Literal(power, INT64)), lo, 1)
        known = (min(raised), max(raised)) if power % 2 == 0 else (None, None)
        assert found == known, (lo, power)
    assert ends(call("pow", X, Literal(100, INT64)), -2, 1) == (None, None)


def test_decimals_as_floats_may_be_rounded_and_whole_numbers_are_not() -> None:
    """Small ones, of which every float is exact; others are rounded by Polars in its own way."""
    cast = call("cast", X, dtype=FLOAT64)
    known = interval(0, 10)
    assert domain(cast, {"x": Domain(INT64, nullable=False, interval=known)}).interval == known
    price = Domain(DType("Decimal", precision=4, scale=2), nullable=False, interval=interval(1, 10))
    lo, hi = domain(cast, {"x": price}).interval.ends
    assert lo < 1
    assert hi > 10
    assert hi - lo < 9 + 1e-12


def test_whole_numbers_and_truth_values_are_whole_numbers_together() -> None:
    known = {"x": Domain(INT64, nullable=True), "y": Domain(BOOLEAN, nullable=True)}
    assert domain(call("coalesce", X, Column("y")), known).dtype == INT64


def test_bounds_in_the_wrong_order_are_refused_and_one_alone_is_not() -> None:
    for bounds in ((9, 1), (9.5, 1), (0, -0.5)):
        with pytest.raises(InvalidBounds, match="reversed"):
            tree_of(f"pl.col('i64').clip({bounds[0]}, {bounds[1]})")
    tree_of("pl.col('i64').clip(9)")
    tree_of("pl.col('i64').clip(upper_bound=1)")


def test_bounds_that_are_missing_do_not_clip() -> None:
    frame = pl.DataFrame(
        {
            "x": [0, 10, 0, 10, 4],
            "lo": [5, 6, None, 5, 5],
            "hi": [7, None, 8, 7, 7],
            "l": [5, 6, 6, 5, 5],
            "h": [7, 7, 8, 7, 7],
            "f": [5.5, math.nan, 6.5, 5.0, 6.0],
        }
    )
    x = pl.col("x")
    made = [x.clip(lo, hi) for lo in ("lo", "l", "f", None) for hi in ("hi", "h", "f", None)]
    trees = [named.tree for e in made for named in read(e, dict(frame.schema))]
    assert len(trees) == 16
    check(frame, trees)
