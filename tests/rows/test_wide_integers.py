"""Integers beyond 64 bits: each operation gives what plain Python gives, or is refused when it is
built. Never null, saturated or wrapped.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.errors import UnsupportedOperation
from dpframe.rows import fold
from tests.laws.checking import tree_of
from tests.rows.running import evaluate, facts

INT64 = (-(2**63), 2**63 - 1)
UNSIGNED = [0, 1, 7, 10, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, None]
SIGNED = [-(2**63), -(2**63) + 1, -(2**53) - 1, -7, -1, 0, 1, 2**63 - 1, 10, None]
WIDE = [-(2**127), -(2**64), -(2**63) - 1, -7, -1, 0, 2**63, 2**64, 2**127 - 1, None]
TYPES: dict[str, Any] = {"u": pl.UInt64, "v": pl.UInt64, "i": pl.Int64, "w": pl.Int128}
VALUES = {"u": UNSIGNED, "v": UNSIGNED, "i": SIGNED, "w": WIDE}

Function = Callable[..., Any]


def floor_divided(a: int, b: int) -> int | None:
    return a // b if b else None


def remainder(a: int, b: int) -> int | None:
    return a % b if b else None


def clamped(lo: int | None, hi: int | None) -> Function:
    def clamp(x: int) -> int:
        x = x if lo is None else max(lo, x)
        return x if hi is None else min(hi, x)

    return clamp


BINARY: dict[str, Function] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": floor_divided,
    "%": remainder,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CONSTANTS = [0, 1, -1, 10, -7, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**100)]
UNARY: dict[str, Function] = {
    "-{}": operator.neg,
    "~{}": operator.invert,
    "{}.abs()": abs,
    "{}.sign()": lambda x: (x > 0) - (x < 0),
    "{}.floor()": int,
    "{}.round(2)": int,
    "{} ** 1": int,
    "{} ** 0": lambda _: 1,
    "{}.clip(0, 100)": clamped(0, 100),
    "{}.clip(2**63, 2**64)": clamped(2**63, 2**64),
    "{}.clip(lower_bound=-5)": clamped(-5, None),
    "{}.clip(upper_bound=2**63 + 5)": clamped(None, 2**63 + 5),
    "{}.cast(pl.Float64)": float,
    "{}.cast(pl.Float64) / 3": lambda x: float(x) / 3,
    "{} / 3": lambda x: float(x) / 3,
    "{} + 0.5": lambda x: float(x) + 0.5,
    "{}.cast(pl.Int128)": int,
    "{}.cast(pl.String)": str,
    "{}.cast(pl.Boolean)": bool,
    "{}.sqrt()": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "{}.is_in([0, 2**63, 2**64 - 1])": lambda x: x in (0, 2**63, 2**64 - 1),
    "{}.is_between(2**63, 2**64)": lambda x: 2**63 <= x <= 2**64,
    "pl.concat_list({0}, {0}).list.max()": int,
    "({} * 31 + 7) % 100": lambda x: (x * 31 + 7) % 100,
    "({} % 1000) // 7": lambda x: x % 1000 // 7,
    "({} // 1000) * 2": lambda x: x // 1000 * 2,
}
NULL_TOO = {
    "pl.when({0} > 7).then({0}).otherwise(-1)": lambda x: -1 if x is None or x <= 7 else x,
    "pl.concat_list({0}, {0}).list.sum()": lambda x: 2 * (x or 0),
    "pl.sum_horizontal({0}, {0}, 1)": lambda x: 2 * (x or 0) + 1,
    "pl.max_horizontal({0}, 7)": lambda x: 7 if x is None else max(x, 7),
    "{}.fill_null(-1)": lambda x: -1 if x is None else x,
    "pl.sum_horizontal({}, 1)": lambda x: 1 if x is None else x + 1,
    "pl.coalesce({}, -(2**63))": lambda x: -(2**63) if x is None else x,
}
REFUSED = {
    *(f'pl.col("{name}") * pl.col("{other}")' for name in "uw" for other in "uw"),
    *(f'pl.col("{name}") ** 2' for name in "uw"),
}


def expected(function: Function, args: tuple[Any, ...]) -> Any:
    return None if None in args else function(*args)


def check(text: str, frame: pl.DataFrame, names: str, function: Function, null: bool) -> bool:
    """The expression is what Python says it is; False where it is refused."""
    tree = tree_of(text, frame)
    try:
        fold.domain(tree, facts(frame))
    except UnsupportedOperation as refused:
        assert "Int128" in str(refused), refused
        assert refused.remedy
        return False
    found = evaluate(tree, frame).to_list()
    rows = list(zip(*(frame[name].to_list() for name in names), strict=True))
    for args, value in zip(rows, found, strict=True):
        right = function(*args) if null else expected(function, args)
        assert value == right or (value != value and right != right), (text, args, value, right)
    return True


def columns(names: str) -> pl.DataFrame:
    pairs = [(a, b) for a in VALUES[names[0]] for b in VALUES[names[-1]]]
    chosen = {names[0]: [a for a, _ in pairs], names[-1]: [b for _, b in pairs]}
    return pl.DataFrame(
        {
            n: pl.Series(v if len(names) > 1 else VALUES[n], dtype=TYPES[n])
            for n, v in chosen.items()
        }
    )


@pytest.mark.parametrize("symbol", BINARY)
@pytest.mark.parametrize("names", ["uv", "ui", "iu", "wu", "iw", "ww"])
def test_two_columns(symbol: str, names: str) -> None:
    frame = columns(names if names != "ww" else "w")
    text = f'pl.col("{names[0]}") {symbol} pl.col("{names[1]}")'
    check(text, frame, names, BINARY[symbol], null=False)


@pytest.mark.parametrize("symbol", BINARY)
@pytest.mark.parametrize("name", "uw")
def test_a_column_and_a_constant(symbol: str, name: str) -> None:
    frame, accepted = columns(name), 0
    for number in CONSTANTS:
        found = check(
            f'pl.col("{name}") {symbol} {number}',
            frame,
            name,
            lambda x, n=number: BINARY[symbol](x, n),
            null=False,
        )
        accepted += found
    assert accepted > (2 if name == "u" else 0)
    assert accepted == len(CONSTANTS) or symbol in "+-*//"


@pytest.mark.parametrize("name", "uw")
@pytest.mark.parametrize("form", [*UNARY, *NULL_TOO])
def test_one_column(form: str, name: str) -> None:
    function = UNARY.get(form) or NULL_TOO[form]
    text = form.format(f'pl.col("{name}")')
    accepted = check(text, columns(name), name, function, null=form in NULL_TOO)
    assert accepted or name == "w"


@pytest.mark.parametrize("text", sorted(REFUSED))
def test_what_may_pass_128_bits_is_refused(text: str) -> None:
    frame = pl.DataFrame(schema={"u": pl.UInt64, "w": pl.Int128})
    with pytest.raises(UnsupportedOperation, match="too large for Int128"):
        fold.domain(tree_of(text, frame), facts(frame))


def test_every_tenth_hash_is_a_tenth() -> None:
    hashes = pl.DataFrame({"u": pl.Series(range(10_005)).hash()})
    tree = tree_of('pl.col("u") % 10 == 3', hashes)
    lowered = fold.lower(tree, facts(hashes))
    assert hashes.filter(lowered).height == sum(h % 10 == 3 for h in hashes["u"].to_list())
    inferred = fold.domain(tree_of('pl.col("u") % 10', hashes), facts(hashes))
    assert inferred.dtype.name == "Int64"
    assert inferred.bounds == (0, 9)


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1), st.integers(-(2**127), 2**127 - 1))
def test_random_numbers(a: int, b: int, c: int) -> None:
    frame = pl.DataFrame(
        {
            "u": pl.Series([a], dtype=pl.UInt64),
            "v": pl.Series([b], dtype=pl.UInt64),
            "w": pl.Series([c], dtype=pl.Int128),
        }
    )
    texts = {
        'pl.col("u") % pl.col("v")': a % b,
        'pl.col("u") // pl.col("v")': a // b,
        'pl.col("w") % pl.col("v")': c % b,
        'pl.col("w") // pl.col("v")': c // b,
        'pl.col("u") - pl.col("v")': a - b,
        f'pl.col("u") % {b}': a % b,
        f'pl.col("u") > {b}': a > b,
        'pl.col("w").cast(pl.Float64)': float(c),
        'pl.col("u").cast(pl.Float64)': float(a),
    }
    lowered = [fold.lower(tree_of(t, frame), facts(frame)).alias(t) for t in texts]
    assert frame.select(lowered).row(0, named=True) == texts
