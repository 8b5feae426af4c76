"""Results are named, and several columns are expanded, exactly as Polars does it."""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl
import pytest

from dpframe.core.tree import Column
from dpframe.errors import DPFrameError, UnknownColumn, UnsupportedOperation
from dpframe.parse.reader import read

from .spellings import SCHEMA, SPELLINGS, evaluate

NAMED = """
a.alias('z')
a.alias('z').alias('y')
a.alias('z') + b.alias('y')
1 - a
2 ** a
-pl.lit(1)
pl.lit(1) + pl.lit(2)
pl.when(p).then(b).otherwise(s)
pl.when(p).then(1).otherwise(b)
pl.when(p).then(pl.lit(1).alias('z')).otherwise(b)
pl.coalesce(0, a)
pl.coalesce(pl.all())
pl.struct(z=b)
pl.struct(a.alias('q'), b)
pl.struct(a, b).struct.field('b')
st.struct.field('f').name.keep()
st.struct.field('f').name.suffix('_q')
a.alias('q').name.keep()
a.alias('q').name.suffix('_r')
a.name.suffix('_r').alias('m')
a.name.suffix('_r').name.prefix('m_')
a.name.suffix('_r') + 1
(a + 1).name.suffix('_r')
(1 + a).name.suffix('_r')
(1 + a).name.keep()
(a + b).name.keep()
pl.lit(1).name.suffix('_r')
A.name.to_lowercase()
A.alias('QQ').name.to_lowercase()
a.name.to_uppercase()
a.name.replace('a', 'zz')
a.name.replace('(a)', '${1}zz')
a.name.replace('(', 'zz', literal=True)
pl.concat_str(pl.lit('x'), b)
pl.format('x{}', a)
pl.format('{}x{}', a, b)
pl.date(2020, 1, 1)
pl.datetime(2020, 1, 1, time_zone='UTC')
pl.duration(days=1)
pl.time(1, 2, 3)
pl.lit(pl.Series('nm', [1]))
a + pl.lit(pl.Series('nm', [1]))
pl.lit(pl.Series('nm', [1])) + a
pl.lit(pl.Series([1]))
pl.min_horizontal(1, a)
pl.sum_horizontal('b', 'a')
pl.sum_horizontal('b', 'a').name.suffix('x')
pl.when(a > 1).then(b).name.suffix('_t')
pl.when(a > 1).then(b).otherwise(x).name.keep()
pl.when(a > 1).then(1).otherwise(b).name.keep()
pl.when(a > 1).then(1).otherwise(2).name.keep()
pl.coalesce(1, b, a).name.keep()
b.is_between(1, a).name.keep()
(pl.lit(1) + pl.when(x > 1).then(1).otherwise(b) + a).name.keep()
pl.sql_expr('a as q')
pl.from_epoch('a')
x.cut([1])
l.list.first()
pl.col('a').meta.undo_aliases()
""".strip().splitlines()

EXPANDED = """
pl.all()
pl.col('*')
pl.all().exclude('s', 'l')
pl.all().exclude('^.$')
pl.all().exclude(pl.Int64)
pl.exclude('nope')
pl.exclude(pl.Int64, pl.String)
pl.col('b', 'a')
pl.col(['b', 'a'])
pl.col('a', 'a')
pl.col('^[ab]$')
pl.col('^[ab]$', 'x')
pl.col('x', '^[ab]$')
pl.col('^nothing$')
pl.col(pl.Int64)
pl.col(pl.Int64, pl.Float64)
pl.col(pl.Datetime)
pl.col(pl.List)
pl.col(pl.Datetime('us'))
pl.nth(1)
pl.nth(1, 0)
pl.nth(-1)
pl.first()
pl.last()
cs.all()
cs.numeric()
cs.integer() + 1
cs.float() | cs.by_name('a')
cs.numeric() - cs.by_name('a')
cs.numeric() & cs.integer()
cs.numeric() ^ cs.integer()
~cs.numeric()
cs.starts_with('d', 's')
cs.ends_with('y')
cs.contains('a')
cs.matches('^[ab]$')
cs.by_name('b', 'a')
cs.by_name('b', 'nope', require_all=False)
cs.by_name('nope', require_all=False)
cs.by_index(3, 1)
cs.by_index(-1)
cs.by_dtype(pl.Int64, pl.String)
cs.exclude('a', 'b')
cs.string()
cs.boolean()
cs.temporal()
cs.date()
cs.datetime()
cs.datetime('ms')
cs.duration()
cs.first()
cs.last()
cs.decimal()
cs.decimal() + 1
a + cs.decimal()
cs.numeric().alias('z') - 1 if False else cs.date().alias('z')
pl.col('a', 'b') + 1
(pl.col('a', 'b') + 1).name.suffix('_x')
(pl.col('a', 'b') * pl.col('x')).name.prefix('p_')
pl.col('a', 'b') + pl.col('b', 'x')
pl.col('a', 'b').is_in([1])
pl.col('a', 'b').fill_null(pl.col('b'))
pl.col('x', 'A').fill_nan(0)
pl.col('x', 'A').fill_nan(pl.col('A', 'x'))
pl.col('a', 'b').is_between(pl.col('a'), pl.col('b', 'a'))
pl.col('a', 'b').cast(pl.Float64)
pl.col('d', 'day').dt.year()
pl.when(p).then(pl.col('a', 'b')).otherwise(0)
pl.when(pl.col('a', 'b') > 1).then(pl.col('b', 'x')).otherwise(a)
pl.struct(pl.col('a', 'b'))
pl.struct(pl.col('a', 'b') + 1)
pl.struct(cs.decimal(), 'a')
pl.coalesce(cs.decimal(), a)
pl.sum_horizontal(cs.numeric())
pl.concat_str(cs.string(), cs.decimal())
pl.all_horizontal(pl.col('a', 'b') > 1)
st.struct.field('f', 'g')
st.struct.field('g', 'f')
st.struct.field('*')
st.struct.field('^f.*$')
st.struct.field('g', '^f.*$')
st.struct.field('f', 'ff').cast(pl.Float64)
st.struct.unnest()
pl.struct('a', 'b').struct.field('*')
pl.struct('a', 'b').struct.field('b', 'a')
pl.struct('st').struct.field('st').struct.field('*')
st.alias('z').struct.field('*')
""".strip().splitlines()


def _polars_names(expression: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pl.LazyFrame(schema=SCHEMA).select(expression).collect_schema().names()


def _names(expression: Any) -> list[str]:
    return [named.name for named in read(expression, SCHEMA)]


@pytest.mark.parametrize("spelling", [*NAMED, *EXPANDED])
def test_names_are_those_of_polars(spelling: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    assert _names(expression) == _polars_names(expression)


@pytest.mark.parametrize("spelling", [s for s, _ in SPELLINGS])
def test_names_of_all_spellings(spelling: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    try:
        expected = _polars_names(expression)
    except pl.exceptions.PolarsError:
        pytest.skip("this Polars rejects the types of the example")
    assert _names(expression) == expected


def test_expansion_pairs_columns_as_polars_does() -> None:
    first, second = read(pl.col("a", "b") - pl.col("b", "x"), SCHEMA)
    assert [column.name for column in first.tree.args] == ["a", "b"]  # type: ignore
    assert [column.name for column in second.tree.args] == ["b", "x"]  # type: ignore


def test_selections_of_different_lengths_are_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="2 and 3 columns"):
        read(pl.col("a", "b") + pl.col("a", "b", "x"), SCHEMA)


@pytest.mark.parametrize(
    "spelling",
    [
        "pl.col('a', 'dya')",
        "cs.by_name('dya')",
        "cs.by_name('dya') | cs.numeric()",
        "pl.nth(99)",
        "cs.by_index(-99)",
        "pl.struct('dya')",
    ],
)
def test_a_selection_of_unknown_columns(spelling: str) -> None:
    with pytest.raises(UnknownColumn):
        read(evaluate(spelling), SCHEMA)


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        ("pl.col('^(a$')", "selection is not valid"),
        ("pl.max_horizontal(cs.decimal())", "at least one"),
        ("pl.struct(cs.decimal())", "at least one field"),
        ("pl.struct(a, a)", "a name of its own"),
        ("pl.lit(1).name.keep()", "name.keep"),
        ("a.name.replace('(', 'b')", "regular expression"),
        ("pl.coalesce(st, pl.struct('a')).struct.field('*')", "fields of this struct"),
        ("pl.coalesce(st, pl.struct('a')).struct.field('^f$', 'g')", "fields of this struct"),
    ],
)
def test_names_that_cannot_be_known(spelling: str, words: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    with pytest.raises(DPFrameError, match=words):
        read(expression, SCHEMA)


def test_named_fields_need_no_schema() -> None:
    chosen = pl.coalesce(pl.col("st"), pl.col("st")).struct.field("f", "g")
    assert _names(chosen) == ["f", "g"]


def test_expansion_follows_the_schema_that_is_given() -> None:
    everything = pl.all()
    assert read(everything, {"k": pl.Int8()})[0].tree == Column("k")
    assert len(read(everything, {"k": pl.Int8(), "m": pl.Int8()})) == 2
    assert len(read(pl.col(pl.Int8), {"k": pl.Int8(), "m": pl.Int16()})) == 1
    assert len(read(pl.col(pl.Int8), {"k": pl.Int8(), "m": pl.Int8()})) == 2
