"""Polars spellings and the trees that they are read into.

Each row is an expression as an analyst writes it and its tree. A spelling that the installed Polars
does not have is skipped.
"""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import polars.selectors as cs

from dpframe.core.dtypes import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIME,
    DType,
    datetime_type,
    duration_type,
    enum_type,
    list_type,
    struct_type,
)
from dpframe.core.tree import Column, Literal, Tree
from tests.calls import call

SCHEMA: dict[str, Any] = {
    "a": pl.Int64(),
    "b": pl.Int64(),
    "x": pl.Float64(),
    "s": pl.String(),
    "p": pl.Boolean(),
    "q": pl.Boolean(),
    "d": pl.Datetime("us"),
    "day": pl.Date(),
    "u": pl.Duration("us"),
    "l": pl.List(pl.Int64()),
    "arr": pl.Array(pl.Int64(), 3),
    "st": pl.Struct({"f": pl.Int64(), "g": pl.String(), "ff": pl.Int64()}),
    "A": pl.Float32(),
}
NAMES: dict[str, Any] = {
    **{name: pl.col(name) for name in SCHEMA},
    "pl": pl,
    "cs": cs,
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "ZoneInfo": ZoneInfo,
}


def evaluate(spelling: str) -> Any:
    """The expression, or None where this Polars lacks it or one of its arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(spelling, dict(NAMES))
        except (AttributeError, TypeError):
            return None


A, B, X, S, P, Q, D, DAY, U, L, ARR, ST = (
    Column(name) for name in ("a", "b", "x", "s", "p", "q", "d", "day", "u", "l", "arr", "st")
)


def lit(value: Any, dtype: DType | None = None) -> Literal:
    known = {bool: BOOLEAN, int: INT64, float: FLOAT64, str: STRING, date: DATE, time: TIME}
    known |= {datetime: datetime_type(), timedelta: duration_type(), type(None): NULL}
    return Literal(value, dtype or known[type(value)])


ONE, TWO, THREE = lit(1), lit(2), lit(3)
PARIS = ZoneInfo("Europe/Paris")
_FILL_NAN = "(x.is_not_nan() | x.is_null())"


_ANGLES = (
    *("sin", "cos", "tan", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
    *("arcsinh", "arccosh", "arctanh", "degrees", "radians"),
)

ARITHMETIC: list[tuple[str, Tree]] = [
    ("a + b", call("add", A, B)),
    ("a + 1", call("add", A, ONE)),
    ("1 + a", call("add", ONE, A)),
    ("a.add(1)", call("add", A, ONE)),
    ("a + 0.5", call("add", A, lit(0.5))),
    ("a + float('inf')", call("add", A, lit(float("inf")))),
    ("a - -float('inf')", call("sub", A, lit(-float("inf")))),
    ("s + 'x'", call("add", S, lit("x"))),
    ("'x' + s", call("add", lit("x"), S)),
    ("s + s", call("add", S, S)),
    ("a - b", call("sub", A, B)),
    ("a.sub(b)", call("sub", A, B)),
    ("10 - a", call("sub", lit(10), A)),
    ("d - d", call("sub", D, D)),
    ("d + timedelta(days=1)", call("add", D, lit(timedelta(days=1)))),
    ("d - pl.duration(hours=1)", call("sub", D, lit(timedelta(hours=1)))),
    ("day - date(2020, 1, 1)", call("sub", DAY, lit(date(2020, 1, 1)))),
    ("a * 2.5", call("mul", A, lit(2.5))),
    ("a.mul(b)", call("mul", A, B)),
    ("a / b", call("truediv", A, B)),
    ("1 / a", call("truediv", ONE, A)),
    ("a.truediv(2)", call("truediv", A, TWO)),
    ("a // 3", call("floordiv", A, THREE)),
    ("a.floordiv(b)", call("floordiv", A, B)),
    ("a % 2", call("mod", A, TWO)),
    ("a.mod(b)", call("mod", A, B)),
    ("a ** 2", call("pow", A, TWO)),
    ("2 ** a", call("pow", TWO, A)),
    ("a.pow(b)", call("pow", A, B)),
    ("a.pow(0.5)", call("pow", A, lit(0.5))),
    ("-a", call("neg", A)),
    ("a.neg()", call("neg", A)),
    ("+a", A),
    ("(a + 1) * b", call("mul", call("add", A, ONE), B)),
    ("pl.sql_expr('a + 1')", call("add", A, ONE)),
    ("pl.sql_expr('a * b')", call("mul", A, B)),
    ("pl.sql_expr('a * 2 - b')", call("sub", call("mul", A, TWO), B)),
]

MATHS: list[tuple[str, Tree]] = [
    ("abs(a)", call("abs", A)),
    ("a.abs()", call("abs", A)),
    ("a.sign()", call("sign", A)),
    ("x.sqrt()", call("sqrt", X)),
    ("x.cbrt()", call("cbrt", X)),
    ("x.exp()", call("exp", X)),
    ("x.log()", call("log", X, base=None)),
    ("x.log(2)", call("log", X, base=2.0)),
    ("x.log(2.5)", call("log", X, base=2.5)),
    ("x.log10()", call("log", X, base=10.0)),
    ("x.log1p()", call("log1p", X)),
    ("x.round()", call("round", X, decimals=0)),
    ("x.round(2)", call("round", X, decimals=2)),
    ("x.round(decimals=3)", call("round", X, decimals=3)),
    ("x.round(1, mode='half_to_even')", call("round", X, decimals=1)),
    ("x.floor()", call("floor", X)),
    ("x.ceil()", call("ceil", X)),
    *((f"x.{name}()", call(name, X)) for name in _ANGLES),
    ("pl.arctan2(x, a)", call("arctan2", X, A)),
    ("pl.arctan2('x', 'a')", call("arctan2", X, A)),
    ("a.clip(0, 10)", call("clip", A, lo=0, hi=10)),
    ("a.clip(lower_bound=0)", call("clip", A, lo=0, hi=None)),
    ("a.clip(upper_bound=0.5)", call("clip", A, lo=None, hi=0.5)),
    ("a.clip(pl.lit(1), pl.lit(2))", call("clip", A, lo=1, hi=2)),
    ("a.clip(-5, -5)", call("clip", A, lo=-5, hi=-5)),
    ("x.clip(-float('inf'), 1)", call("clip", X, lo=None, hi=1)),
    ("a.clip(0, b)", call("clip_between", A, lit(0), B, has_lo=True, has_hi=True)),
    ("a.clip(b)", call("clip_between", A, B, has_lo=True, has_hi=False)),
    (
        "a.clip(upper_bound=b + 1)",
        call("clip_between", A, call("add", B, ONE), has_lo=False, has_hi=True),
    ),
    (
        "day.clip(date(2020, 1, 1), date(2021, 1, 1))",
        call("clip", DAY, lo=date(2020, 1, 1), hi=date(2021, 1, 1)),
    ),
]

COMPARISON: list[tuple[str, Tree]] = [
    ("a == b", call("eq", A, B)),
    ("a.eq(2)", call("eq", A, TWO)),
    ("a == None", call("eq", A, lit(None))),
    ("s == 'x'", call("eq", S, lit("x"))),
    ("a != b", call("ne", A, B)),
    ("a.ne(b)", call("ne", A, B)),
    ("a < 1", call("lt", A, ONE)),
    ("a.lt(1)", call("lt", A, ONE)),
    ("1 > a", call("lt", A, ONE)),
    ("a <= 1", call("le", A, ONE)),
    ("a.le(1)", call("le", A, ONE)),
    ("a > 1", call("gt", A, ONE)),
    ("a.gt(1)", call("gt", A, ONE)),
    ("a >= 1", call("ge", A, ONE)),
    ("a.ge(1)", call("ge", A, ONE)),
    ("a.eq_missing(b)", call("eq_missing", A, B)),
    ("a.ne_missing(None)", call("ne_missing", A, lit(None))),
    ("day > date(2020, 1, 1)", call("gt", DAY, lit(date(2020, 1, 1)))),
    ("d >= datetime(2020, 1, 1)", call("ge", D, lit(datetime(2020, 1, 1)))),
    ("d >= date(2020, 1, 1)", call("ge", D, lit(date(2020, 1, 1)))),
    ("p & q", call("and", P, Q)),
    ("p.and_(q)", call("and", P, Q)),
    ("p.and_(q, p)", call("and", call("and", P, Q), P)),
    ("p | q", call("or", P, Q)),
    ("p.or_(q)", call("or", P, Q)),
    ("p | True", call("or", P, lit(True))),
    ("p ^ q", call("xor", P, Q)),
    ("p.xor(q)", call("xor", P, Q)),
    ("a & 7", call("and", A, lit(7))),
    ("a | b", call("or", A, B)),
    ("a ^ b", call("xor", A, B)),
    ("~a", call("not", A)),
    ("~p", call("not", P)),
    ("p.not_()", call("not", P)),
    ("a.is_null().not_()", call("not", call("is_null", A))),
    ("a.is_between(1, 2)", call("is_between", A, ONE, TWO, closed="both")),
    ("a.is_between(1, b, closed='left')", call("is_between", A, ONE, B, closed="left")),
    ("a.is_between(1, 2, closed='right')", call("is_between", A, ONE, TWO, closed="right")),
    ("a.is_between(1, 2, closed='none')", call("is_between", A, ONE, TWO, closed="none")),
    ("a.is_between('b', 'x')", call("is_between", A, B, X, closed="both")),
]


def _is_in(source: Tree, *values: Any, nulls_equal: bool = False) -> Tree:
    return call("is_in", source, values=values, nulls_equal=nulls_equal)


MEMBERSHIP: list[tuple[str, Tree]] = [
    ("a.is_in([2, 1])", _is_in(A, 1, 2)),
    ("pl.sql_expr('a IN (2, 1)')", _is_in(A, 1, 2)),
    ("a.is_in([2, 1, 2])", _is_in(A, 1, 2)),
    ("a.is_in({1, 2})", _is_in(A, 1, 2)),
    ("a.is_in((1, 2))", _is_in(A, 1, 2)),
    ("a.is_in(frozenset([3, 1]))", _is_in(A, 1, 3)),
    ("a.is_in(range(3))", _is_in(A, 0, 1, 2)),
    ("a.is_in(pl.Series([1, 2]))", _is_in(A, 1, 2)),
    ("a.is_in(pl.Series([1, 2]).implode())", _is_in(A, 1, 2)),
    ("a.is_in(pl.Series([7]))", _is_in(A, 7)),
    ("a.is_in(pl.lit([1, 2]))", _is_in(A, 1, 2)),
    ("a.is_in([1, None])", _is_in(A, 1, None)),
    ("a.is_in([1, None], nulls_equal=True)", _is_in(A, 1, None, nulls_equal=True)),
    ("a.is_in([])", _is_in(A)),
    ("x.is_in([1.5, 2])", _is_in(X, 1.5, 2.0)),
    ("s.is_in(['y', 'x'])", _is_in(S, "x", "y")),
    ("p.is_in([True])", _is_in(P, True)),
    ("s.is_in(pl.Series(['v', 'u'], dtype=pl.Enum(['v', 'u'])))", _is_in(S, "u", "v")),
    ("s.is_in(pl.Series(['v', 'u'], dtype=pl.Categorical))", _is_in(S, "u", "v")),
    ("day.is_in([date(2020, 1, 1)])", _is_in(DAY, date(2020, 1, 1))),
    ("d.is_in([datetime(2020, 1, 1, 2)])", _is_in(D, datetime(2020, 1, 1, 2))),
    (
        "d.is_in([datetime(2020, 1, 1, tzinfo=UTC)])",
        _is_in(D, datetime(2020, 1, 1, tzinfo=UTC)),
    ),
    ("x.is_in([Decimal('1.5')])", _is_in(X, Decimal("1.5"))),
    ("u.is_in([timedelta(days=1)])", _is_in(U, timedelta(days=1))),
]

CHOICE: list[tuple[str, Tree]] = [
    ("pl.when(p).then(1).otherwise(2)", call("when", P, ONE, TWO)),
    ("pl.when(p).then(1)", call("when", P, ONE, lit(None))),
    ("pl.when(p).then('a')", call("when", P, A, lit(None))),
    ("pl.when(p).then(pl.lit('a')).otherwise(s)", call("when", P, lit("a"), S)),
    (
        "pl.when(p).then(1).when(q).then(2).otherwise(3)",
        call("when", P, ONE, call("when", Q, TWO, THREE)),
    ),
    (
        "pl.when(p).then(1).when(q).then(2)",
        call("when", P, ONE, call("when", Q, TWO, lit(None))),
    ),
    ("pl.when(p, q).then(1)", call("when", call("all_horizontal", P, Q), ONE, lit(None))),
    ("pl.when(a=1).then(b)", call("when", call("eq", A, ONE), B, lit(None))),
    ("pl.sql_expr('CASE WHEN p THEN 2 ELSE 3 END')", call("when", P, TWO, THREE)),
]

NULLS: list[tuple[str, Tree]] = [
    ("a.fill_null(0)", call("fill_null", A, lit(0))),
    ("a.fill_null(b)", call("fill_null", A, B)),
    ("a.fill_null(value=1.5)", call("fill_null", A, lit(1.5))),
    ("s.fill_null('x')", call("fill_null", S, lit("x"))),
    ("x.fill_nan(0)", call("fill_nan", X, lit(0))),
    ("x.fill_nan(None)", call("fill_nan", X, lit(None))),
    ("x.fill_nan(a)", call("fill_nan", X, A)),
    ("(x + 1).fill_nan(0)", call("fill_nan", call("add", X, ONE), lit(0))),
    (f"pl.when({_FILL_NAN}).then(x).otherwise(0)", call("fill_nan", X, lit(0))),
    (
        f"pl.when({_FILL_NAN}).then(a).otherwise(0)",
        call("when", call("or", call("is_not_nan", X), call("is_null", X)), A, lit(0)),
    ),
    ("a.is_null()", call("is_null", A)),
    ("a.is_not_null()", call("is_not_null", A)),
    ("x.is_nan()", call("is_nan", X)),
    ("x.is_not_nan()", call("is_not_nan", X)),
    ("x.is_finite()", call("is_finite", X)),
    ("x.is_infinite()", call("is_infinite", X)),
    ("pl.coalesce(a, b, 0)", call("coalesce", A, B, lit(0))),
    ("pl.coalesce('a', 'b')", call("coalesce", A, B)),
    ("pl.coalesce(cs.by_name('a', 'b'), x)", call("coalesce", A, B, X)),
    (
        "pl.coalesce(pl.col('a', 'b') + 1)",
        call("coalesce", call("add", A, ONE), call("add", B, ONE)),
    ),
]

HORIZONTAL: list[tuple[str, Tree]] = [
    ("pl.min_horizontal('a', 'b')", call("min_horizontal", A, B)),
    ("pl.max_horizontal('a', 1)", call("max_horizontal", A, ONE)),
    ("pl.max_horizontal(pl.col('^[ab]$'))", call("max_horizontal", A, B)),
    ("pl.sum_horizontal('a', 'b')", call("sum_horizontal", A, B, ignore_nulls=True)),
    (
        "pl.sum_horizontal(cs.integer(), ignore_nulls=False)",
        call("sum_horizontal", A, B, ignore_nulls=False),
    ),
    ("pl.mean_horizontal('a', 'b')", call("mean_horizontal", A, B, ignore_nulls=True)),
    (
        "pl.mean_horizontal(a, b, ignore_nulls=False)",
        call("mean_horizontal", A, B, ignore_nulls=False),
    ),
    ("pl.any_horizontal('p', 'q')", call("any_horizontal", P, Q)),
    ("pl.any_horizontal(cs.boolean())", call("any_horizontal", P, Q)),
    ("pl.all_horizontal('p', q)", call("all_horizontal", P, Q)),
    (
        "pl.all_horizontal(pl.col('a', 'b') > 1)",
        call("all_horizontal", call("gt", A, ONE), call("gt", B, ONE)),
    ),
]


def _cast(dtype: DType) -> Tree:
    return call("cast", A, dtype=dtype)


CASTS: list[tuple[str, Tree]] = [
    ("a.cast(pl.Int8)", _cast(INT8)),
    ("a.cast(pl.Int8, strict=False)", _cast(INT8)),
    ("a.cast(int)", _cast(INT64)),
    ("a.cast(float)", _cast(FLOAT64)),
    ("a.cast(str)", _cast(STRING)),
    ("a.cast(bool)", _cast(BOOLEAN)),
    ("a.cast(pl.Float32)", _cast(FLOAT32)),
    ("a.cast(pl.Int128)", _cast(DType("Int128"))),
    ("a.cast(pl.Date)", _cast(DATE)),
    ("a.cast(pl.Time)", _cast(TIME)),
    ("a.cast(pl.Datetime)", _cast(datetime_type())),
    ("a.cast(pl.Datetime('ms', 'Europe/Paris'))", _cast(datetime_type("ms", "Europe/Paris"))),
    ("a.cast(pl.Duration('ns'))", _cast(duration_type("ns"))),
    ("a.cast(pl.Decimal(10, 2))", _cast(DType("Decimal", precision=10, scale=2))),
    ("a.cast(pl.Enum(['x', 'y']))", _cast(enum_type(("x", "y")))),
    ("a.cast(pl.Categorical)", _cast(DType("Categorical"))),
    ("a.cast(pl.List(pl.Int8))", _cast(list_type(INT8))),
    ("a.cast(pl.Array(pl.Int8, 2))", _cast(DType("Array", inner=INT8, width=2))),
    ("a.cast(pl.Struct({'f': pl.Int8}))", _cast(struct_type((("f", INT8),)))),
    ("day.dt.epoch('d')", call("cast", call("cast", DAY, dtype=DATE), dtype=INT32)),
]

REPLACE: list[tuple[str, Tree]] = [
    ("a.replace(1, 2)", call("replace", A, old=(1,), new=(2,))),
    ("a.replace({2: 3, 1: 4})", call("replace", A, old=(2, 1), new=(3, 4))),
    ("a.replace([1, 2], [3, 4])", call("replace", A, old=(1, 2), new=(3, 4))),
    ("a.replace([1, 2], 3)", call("replace", A, old=(1, 2), new=(3, 3))),
    ("a.replace(pl.Series([1]), pl.Series([2]))", call("replace", A, old=(1,), new=(2,))),
    ("s.replace({'x': 'y'})", call("replace", S, old=("x",), new=("y",))),
    ("a.replace({None: 1})", call("replace", A, old=(None,), new=(1,))),
    ("a.replace({})", call("replace", A, old=(), new=())),
    (
        "a.replace_strict({1: 'x'}, default='y')",
        call("replace_strict", A, lit("y"), old=(1,), new=("x",), dtype=None),
    ),
    (
        "a.replace_strict({1: 'x'}, default=None)",
        call("replace_strict", A, lit(None), old=(1,), new=("x",), dtype=None),
    ),
    (
        "a.replace_strict({1: 2}, default=b, return_dtype=pl.Int8)",
        call("replace_strict", A, B, old=(1,), new=(2,), dtype=INT8),
    ),
    (
        "a.replace_strict([1, 2], [3, 4], default=pl.lit(5))",
        call("replace_strict", A, lit(5), old=(1, 2), new=(3, 4), dtype=None),
    ),
]

STRUCTS: list[tuple[str, Tree]] = [
    ("pl.struct('a', 'b')", call("struct", A, B, names=("a", "b"))),
    ("pl.struct(a, z=b)", call("struct", A, B, names=("a", "z"))),
    ("pl.struct(pl.col('a', 'b'))", call("struct", A, B, names=("a", "b"))),
    (
        "pl.struct(pl.col('a', 'b').name.suffix('_1'))",
        call("struct", A, B, names=("a_1", "b_1")),
    ),
    ("pl.struct(pl.lit(1), a)", call("struct", ONE, A, names=("literal", "a"))),
    ("st.struct.field('f')", call("field", ST, field="f")),
    ("st.struct['f']", call("field", ST, field="f")),
    ("pl.struct(a).struct.field('a')", call("field", call("struct", A, names=("a",)), field="a")),
]

STRINGS: list[tuple[str, Tree]] = [
    ("s.str.len_chars()", call("str_len_chars", S)),
    ("s.str.len_bytes()", call("str_len_bytes", S)),
    ("s.str.to_lowercase()", call("str_to_lowercase", S)),
    ("s.str.to_uppercase()", call("str_to_uppercase", S)),
    ("s.str.to_titlecase()", call("str_to_titlecase", S)),
    ("s.str.contains('x.*')", call("str_contains", S, pattern="x.*", literal=False)),
    ("s.str.contains('(', literal=True)", call("str_contains", S, pattern="(", literal=True)),
    ("s.str.contains('x', strict=False)", call("str_contains", S, pattern="x", literal=False)),
    ("s.str.starts_with('x')", call("str_starts_with", S, prefix="x")),
    ("s.str.ends_with('x')", call("str_ends_with", S, suffix="x")),
    ("s.str.slice(1)", call("str_slice", S, offset=1, length=None)),
    ("s.str.slice(2, 0)", call("str_slice", S, offset=2, length=0)),
    ("s.str.slice(-2, 1)", call("str_slice", S, offset=-2, length=1)),
    ("s.str.head(2)", call("str_head", S, n=2)),
    ("s.str.tail(-2)", call("str_tail", S, n=-2)),
    ("s.str.strip_chars()", call("str_strip_chars", S, characters=None)),
    ("s.str.strip_chars(' x')", call("str_strip_chars", S, characters=" x")),
    ("s.str.strip_chars_start()", call("str_strip_chars_start", S, characters=None)),
    ("s.str.strip_chars_start('x')", call("str_strip_chars_start", S, characters="x")),
    ("s.str.strip_chars_end()", call("str_strip_chars_end", S, characters=None)),
    ("s.str.strip_chars_end('x')", call("str_strip_chars_end", S, characters="x")),
    ("s.str.strip_prefix('x')", call("str_strip_prefix", S, prefix="x")),
    ("s.str.strip_suffix('x')", call("str_strip_suffix", S, suffix="x")),
    ("s.str.find('x')", call("str_find", S, pattern="x", literal=False)),
    ("s.str.find('(', literal=True)", call("str_find", S, pattern="(", literal=True)),
    ("s.str.count_matches('x')", call("str_count_matches", S, pattern="x", literal=False)),
    (
        "s.str.count_matches('(', literal=True)",
        call("str_count_matches", S, pattern="(", literal=True),
    ),
    ("s.str.pad_start(5)", call("str_pad_start", S, length=5, fill=" ")),
    ("s.str.pad_start(5, '0')", call("str_pad_start", S, length=5, fill="0")),
    ("s.str.pad_end(5, fill_char='é')", call("str_pad_end", S, length=5, fill="é")),
    ("s.str.zfill(5)", call("str_zfill", S, length=5)),
    ("s.str.split(',')", call("str_split", S, by=",", inclusive=False)),
    ("s.str.split(',', inclusive=True)", call("str_split", S, by=",", inclusive=True)),
    (
        "s.str.split(',').list.get(1)",
        call("list_get", call("str_split", S, by=",", inclusive=False), index=1),
    ),
    (
        "s.str.replace('x', 'y')",
        call("str_replace", S, pattern="x", value="y", literal=False, n=1),
    ),
    (
        "s.str.replace('(', 'y', literal=True, n=3)",
        call("str_replace", S, pattern="(", value="y", literal=True, n=3),
    ),
    (
        "s.str.replace_all('(x)', '$1')",
        call("str_replace", S, pattern="(x)", value="$1", literal=False, n=-1),
    ),
    (
        "s.str.replace_all('x', 'y', literal=True)",
        call("str_replace", S, pattern="x", value="y", literal=True, n=-1),
    ),
    ("s.str.extract('(x)')", call("str_extract", S, pattern="(x)", group=1)),
    ("s.str.extract('(x)', 0)", call("str_extract", S, pattern="(x)", group=0)),
    ("pl.concat_str('s', 's')", call("concat_str", S, S, separator="", ignore_nulls=False)),
    (
        "pl.concat_str(s, pl.lit('x'), separator='-', ignore_nulls=True)",
        call("concat_str", S, lit("x"), separator="-", ignore_nulls=True),
    ),
    (
        "pl.concat_str(cs.string(), 'a')",
        call("concat_str", S, A, separator="", ignore_nulls=False),
    ),
    (
        "pl.format('é{}-{}!', s, a)",
        call("concat_str", lit("é"), S, lit("-"), A, lit("!"), separator="", ignore_nulls=False),
    ),
    ("pl.format('{}{}', s, a)", call("concat_str", S, A, separator="", ignore_nulls=False)),
    ("s.str.to_date()", call("str_to_date", S, format=None)),
    ("s.str.to_date('%d.%m.%Y')", call("str_to_date", S, format="%d.%m.%Y")),
    ("s.str.to_date('%Y-%m-%d', strict=False)", call("str_to_date", S, format="%Y-%m-%d")),
    ("s.str.strptime(pl.Date, '%Y-%m-%d')", call("str_to_date", S, format="%Y-%m-%d")),
    ("s.str.to_datetime()", call("str_to_datetime", S, format=None, unit="us", zone=None)),
    (
        "s.str.to_datetime('%Y-%m-%d %H:%M', time_unit='ns', time_zone='Europe/Paris')",
        call("str_to_datetime", S, format="%Y-%m-%d %H:%M", unit="ns", zone="Europe/Paris"),
    ),
    (
        "s.str.to_datetime('%Y-%m-%d %H:%M:%S%z')",
        call("str_to_datetime", S, format="%Y-%m-%d %H:%M:%S%z", unit="us", zone="UTC"),
    ),
    (
        "s.str.to_datetime('%F %T', ambiguous='null', cache=False)",
        call("str_to_datetime", S, format="%F %T", unit="us", zone=None),
    ),
    (
        "s.str.strptime(pl.Datetime('ms'), '%F %T', strict=False)",
        call("str_to_datetime", S, format="%F %T", unit="ms", zone=None),
    ),
    ("s.str.to_time()", call("str_to_time", S, format=None)),
    ("s.str.to_time('%H:%M:%S')", call("str_to_time", S, format="%H:%M:%S")),
    ("s.str.strptime(pl.Time, '%T')", call("str_to_time", S, format="%T")),
    ("s.str.to_integer()", call("str_to_integer", S, base=10, dtype=INT64)),
    ("s.str.to_integer(base=16, strict=False)", call("str_to_integer", S, base=16, dtype=INT64)),
    ("s.str.to_integer(dtype=pl.Int32)", call("str_to_integer", S, base=10, dtype=INT32)),
]

_PARTS = (
    *("year", "iso_year", "quarter", "month", "week", "weekday", "day", "ordinal_day", "hour"),
    *("minute", "second", "millisecond", "microsecond", "nanosecond", "century", "millennium"),
    *("is_leap_year", "days_in_month", "date", "time", "month_start", "month_end"),
)
_UNITS = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]

TEMPORAL: list[tuple[str, Tree]] = [
    *((f"d.dt.{part}()", call(f"dt_{part}", D)) for part in _PARTS),
    *((f"u.dt.total_{unit}()", call(f"dt_total_{unit}", U)) for unit in _UNITS),
    ("u.dt.total_days(fractional=False)", call("dt_total_days", U)),
    (
        "d.dt.second(fractional=True)",
        call("add", call("dt_second", D), call("truediv", call("dt_nanosecond", D), lit(1e9))),
    ),
    ("d.dt.truncate('1d')", call("dt_truncate", D, every="1d")),
    ("d.dt.truncate('1h30m')", call("dt_truncate", D, every="1h30m")),
    ("d.dt.truncate('1y3mo')", call("dt_truncate", D, every="1y3mo")),
    ("d.dt.truncate(timedelta(hours=1))", call("dt_truncate", D, every="3600s")),
    ("d.dt.round('15m')", call("dt_round", D, every="15m")),
    ("d.dt.offset_by('1mo')", call("dt_offset_by", D, by="1mo")),
    ("d.dt.offset_by('-1d12h')", call("dt_offset_by", D, by="-1d12h")),
    ("d.dt.timestamp()", call("dt_timestamp", D, unit="us")),
    ("d.dt.timestamp('ms')", call("dt_timestamp", D, unit="ms")),
    ("d.dt.epoch()", call("dt_timestamp", D, unit="us")),
    ("d.dt.epoch('ns')", call("dt_timestamp", D, unit="ns")),
    ("d.dt.cast_time_unit('ms')", call("dt_cast_time_unit", D, unit="ms")),
    ("d.dt.to_string('%Y')", call("dt_to_string", D, format="%Y")),
    ("d.dt.strftime('%Y')", call("dt_to_string", D, format="%Y")),
    ("d.dt.to_string()", call("dt_to_string", D, format="iso")),
    ("day.dt.combine(time(1))", call("dt_combine", DAY, lit(time(1)), unit="us")),
    ("day.dt.combine(time(1), 'ms')", call("dt_combine", DAY, lit(time(1)), unit="ms")),
    ("pl.datetime(a, 2, b)", call("datetime", A, TWO, B, *[lit(0)] * 4, unit="us")),
    (
        "pl.datetime(a, 2, 1, hour=b, time_unit='ns')",
        call("datetime", A, TWO, ONE, B, *[lit(0)] * 3, unit="ns"),
    ),
    (
        "pl.datetime(a, 2, 1, time_zone='Europe/Paris')",
        call(
            "dt_replace_time_zone",
            call("datetime", A, TWO, ONE, *[lit(0)] * 4, unit="us"),
            zone="Europe/Paris",
        ),
    ),
    (
        "pl.date(a, 2, 1)",
        call("cast", call("datetime", A, TWO, ONE, *[lit(0)] * 4, unit="us"), dtype=DATE),
    ),
    (
        "pl.duration(days=a, hours=2)",
        call("duration", lit(0), A, TWO, *[lit(0)] * 5, unit="us"),
    ),
    (
        "pl.duration(weeks=a, time_unit='ms')",
        call("duration", A, *[lit(0)] * 7, unit="ms"),
    ),
    ("d.dt.convert_time_zone('UTC')", call("dt_convert_time_zone", D, zone="UTC")),
    (
        "d.dt.replace_time_zone('Europe/Paris')",
        call("dt_replace_time_zone", D, zone="Europe/Paris"),
    ),
    ("d.dt.replace_time_zone(None)", call("dt_replace_time_zone", D, zone=None)),
    (
        "d.dt.replace_time_zone('UTC', ambiguous='null', non_existent='null')",
        call("dt_replace_time_zone", D, zone="UTC"),
    ),
]

LISTS: list[tuple[str, Tree]] = [
    ("l.list.len()", call("list_len", L)),
    ("l.list.get(0)", call("list_get", L, index=0)),
    ("l.list.get(-1, null_on_oob=True)", call("list_get", L, index=-1)),
    ("l.list[2]", call("list_get", L, index=2)),
    ("l.list.first()", call("list_get", L, index=0)),
    ("l.list.last()", call("list_get", L, index=-1)),
    ("l.list.contains(1)", call("list_contains", L, ONE)),
    ("l.list.contains(a)", call("list_contains", L, A)),
    ("l.list.contains(1, nulls_equal=False)", call("list_contains", L, ONE)),
    ("a.is_in(l, nulls_equal=True)", call("list_contains", L, A)),
    (
        "a.is_in(l)",
        call("when", call("is_not_null", A), call("list_contains", L, A), lit(None)),
    ),
    (
        "a.is_in(arr)",
        call("when", call("is_not_null", A), call("list_contains", ARR, A), lit(None)),
    ),
    ("l.list.sum()", call("list_sum", L)),
    ("l.list.mean()", call("list_mean", L)),
    ("l.list.min()", call("list_min", L)),
    ("l.list.max()", call("list_max", L)),
    ("arr.arr.sum()", call("list_sum", ARR)),
    ("arr.arr.mean()", call("list_mean", ARR)),
    ("arr.arr.min()", call("list_min", ARR)),
    ("arr.arr.max()", call("list_max", ARR)),
    ("arr.arr.to_list()", call("list_of_array", ARR)),
    ("l.list.slice(1)", call("list_slice", L, offset=1, length=None)),
    ("l.list.slice(-2, 1)", call("list_slice", L, offset=-2, length=1)),
    (
        "arr.arr.slice(1, [None])",
        call("list_slice", call("list_of_array", ARR), offset=1, length=None),
    ),
    ("l.list.head(2)", call("list_slice", L, offset=0, length=2)),
    ("l.list.tail(2)", call("list_slice", L, offset=-2, length=2)),
    ("pl.concat_list('a', b)", call("concat_list", A, B)),
    ("pl.concat_list(a, pl.lit(1))", call("concat_list", A, ONE)),
    ("pl.concat_list(l, a)", call("concat_list", L, A)),
    ("l.list.concat('a')", call("concat_list", L, A)),
    ("arr.arr.len()", call("list_len", ARR)),
    ("arr.arr.get(1)", call("list_get", ARR, index=1)),
    ("arr.arr.first()", call("list_get", ARR, index=0)),
    ("arr.arr.last()", call("list_get", ARR, index=-1)),
    ("arr.arr.contains(1)", call("list_contains", ARR, ONE)),
]


def _cut(breaks: tuple[float, ...], labels: tuple[str, ...], left_closed: bool) -> Tree:
    return call("cut", X, breaks=breaks, labels=labels, left_closed=left_closed)


BINS: list[tuple[str, Tree]] = [
    ("x.cut([1, 2.5])", _cut((1.0, 2.5), ("(-inf, 1]", "(1, 2.5]", "(2.5, inf]"), False)),
    ("x.cut([1], left_closed=True)", _cut((1.0,), ("[-inf, 1)", "[1, inf)"), True)),
    ("x.cut([1, 2], labels=['p', 'q', 'r'])", _cut((1.0, 2.0), ("p", "q", "r"), False)),
    ("x.bin_intervals([1, 2], labels=['p', 'q', 'r'])", _cut((1.0, 2.0), ("p", "q", "r"), True)),
    (
        "x.bin_intervals([1.5], labels=['p', 'q'], right_closed=True)",
        _cut((1.5,), ("p", "q"), False),
    ),
]

_LATE = datetime(2021, 10, 31, 2, 30, tzinfo=PARIS, fold=1)

LITERALS: list[tuple[str, Tree]] = [
    ("pl.lit(1)", ONE),
    ("pl.lit(-(2**63))", lit(-(2**63))),
    ("pl.lit(2**63 - 1)", lit(2**63 - 1)),
    ("pl.lit(1.5)", lit(1.5)),
    ("pl.lit('x')", lit("x")),
    ("pl.lit('\\N{SNOWMAN} \"q\"')", lit('\N{SNOWMAN} "q"')),
    ("pl.lit(True)", lit(True)),
    ("pl.lit(None)", lit(None)),
    ("pl.lit(b'x')", lit(b"x", DType("Binary"))),
    ("pl.lit(float('inf'))", lit(float("inf"))),
    ("pl.lit(-float('inf'), dtype=pl.Float32)", lit(-float("inf"), FLOAT32)),
    ("pl.lit(date(2020, 1, 1))", lit(date(2020, 1, 1))),
    ("pl.lit(date(1, 1, 1))", lit(date(1, 1, 1))),
    ("pl.lit(datetime(1969, 12, 31, 23, 59, 59, 1))", lit(datetime(1969, 12, 31, 23, 59, 59, 1))),
    (
        "pl.lit(datetime(2020, 1, 1, tzinfo=UTC))",
        lit(datetime(2020, 1, 1, tzinfo=UTC), datetime_type("us", "UTC")),
    ),
    (
        "pl.lit(datetime(2020, 7, 1, tzinfo=ZoneInfo('Europe/Paris')))",
        lit(datetime(2020, 7, 1, tzinfo=PARIS), datetime_type("us", "Europe/Paris")),
    ),
    (
        "pl.lit(datetime(2021, 10, 31, 2, 30, tzinfo=ZoneInfo('Europe/Paris'), fold=1))",
        lit(_LATE, datetime_type("us", "Europe/Paris")),
    ),
    (
        "pl.lit(datetime(2020, 1, 1), dtype=pl.Datetime('ms'))",
        lit(datetime(2020, 1, 1), datetime_type("ms")),
    ),
    (
        "pl.lit(datetime(2020, 1, 1), dtype=pl.Datetime('ns'))",
        lit(datetime(2020, 1, 1), datetime_type("ns")),
    ),
    ("pl.lit(timedelta(days=-1, seconds=3))", lit(timedelta(days=-1, seconds=3))),
    (
        "pl.lit(timedelta(days=1), dtype=pl.Duration('ms'))",
        lit(timedelta(days=1), duration_type("ms")),
    ),
    ("pl.lit(time(1, 2, 3, 4))", lit(time(1, 2, 3, 4))),
    ("pl.lit(Decimal('1.50'))", lit(Decimal("1.50"), DType("Decimal", precision=38, scale=2))),
    ("pl.lit(Decimal('-3'))", lit(Decimal(-3), DType("Decimal", precision=38, scale=0))),
    ("pl.lit(1, dtype=pl.Int8)", lit(1, INT8)),
    ("pl.lit(7, dtype=pl.UInt64)", lit(7, DType("UInt64"))),
    ("pl.lit(1).cast(pl.Int8)", lit(1, INT8)),
    ("pl.lit(300).cast(pl.Int8)", call("cast", lit(300), dtype=INT8)),
    ("pl.lit(None, dtype=pl.Int8)", lit(None, INT8)),
    ("pl.lit(None, dtype=pl.List(pl.Int8))", lit(None, list_type(INT8))),
    ("pl.lit(1, dtype=pl.Float64)", lit(1.0)),
    ("pl.lit(0.1, dtype=pl.Float32)", lit(0.10000000149011612, FLOAT32)),
    ("pl.lit('x', dtype=pl.Enum(['w', 'x']))", lit("x", enum_type(("w", "x")))),
    ("pl.lit('x', dtype=pl.Categorical)", lit("x", DType("Categorical"))),
    ("pl.lit(date(2020, 1, 1), dtype=pl.Datetime)", lit(datetime(2020, 1, 1))),
    ("pl.lit(pl.Series([5]))", lit(5)),
    ("pl.lit(pl.Series([5], dtype=pl.Int8))", lit(5, INT8)),
    ("pl.date(2020, 2, 29)", lit(date(2020, 2, 29))),
    ("pl.datetime(2020, 1, 2, 3, 4, 5)", lit(datetime(2020, 1, 2, 3, 4, 5))),
    (
        "pl.datetime(2020, 1, 2, time_unit='ms')",
        lit(datetime(2020, 1, 2), datetime_type("ms")),
    ),
    (
        "pl.datetime(2020, 1, 2, 3, time_zone='UTC')",
        lit(datetime(2020, 1, 2, 3, tzinfo=UTC), datetime_type("us", "UTC")),
    ),
    ("pl.time(1, 2, 3)", lit(time(1, 2, 3))),
    ("pl.duration(days=1, hours=-2)", lit(timedelta(hours=22))),
    ("pl.duration(weeks=1, time_unit='ms')", lit(timedelta(weeks=1), duration_type("ms"))),
    ("pl.duration(days=pl.lit(2))", lit(timedelta(days=2))),
]

SPELLINGS: list[tuple[str, Tree]] = [
    *ARITHMETIC,
    *MATHS,
    *COMPARISON,
    *MEMBERSHIP,
    *CHOICE,
    *NULLS,
    *HORIZONTAL,
    *CASTS,
    *REPLACE,
    *STRUCTS,
    *STRINGS,
    *TEMPORAL,
    *LISTS,
    *BINS,
    *LITERALS,
]
