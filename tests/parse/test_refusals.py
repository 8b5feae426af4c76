"""What is not on the allow-list is refused by the name that the analyst wrote."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dpframe.errors import DPFrameError, InvalidBounds, UnsupportedOperation
from dpframe.parse.hints import refuse_unserialisable
from dpframe.parse.reader import read
from dpframe.parse.size import serialised

from .spellings import SCHEMA, evaluate

# an expression, and what its refusal names
REFUSED = [
    ("a.sum()", "sum"),
    ("a + b.sum()", "sum"),
    ("a - a.mean()", "mean"),
    ("a.fill_null(a.mean())", "mean"),
    ("a.clip(0, a.max())", "max"),
    ("a.min()", "min"),
    ("a.nan_max()", "nan_max"),
    ("a.median()", "median"),
    ("a.quantile(0.5)", "quantile"),
    ("a.std()", "std"),
    ("a.var()", "var"),
    ("a.count()", "count"),
    ("a.len()", "len"),
    ("pl.len()", "pl.len"),
    ("pl.count()", "len|count"),
    ("a.first()", "first"),
    ("a.last()", "last"),
    ("a.item()", "item"),
    ("pl.first('a')", "first"),
    ("a.n_unique()", "n_unique"),
    ("a.approx_n_unique()", "approx_n_unique"),
    ("a.null_count()", "null_count"),
    ("a.has_nulls()", "has_nulls|null_count"),
    ("a.product()", "product"),
    ("a.mode()", "mode"),
    ("a.skew()", "skew"),
    ("a.kurtosis()", "kurtosis"),
    ("a.entropy()", "entropy"),
    ("a.arg_max()", "arg_max"),
    ("a.dot(b)", "sum"),
    ("a.implode()", "implode"),
    ("p.any()", "any"),
    ("p.all()", "all"),
    ("a.unique()", "unique"),
    ("a.unique_counts()", "unique_counts"),
    ("a.value_counts()", "value_counts"),
    ("a.hist([1, 2])", "hist"),
    ("a.over('b')", "over"),
    ("a.sum().over('b')", "over"),
    ("a.rolling('d', period='1d')", "rolling"),
    ("a.rolling_mean(3)", "rolling_mean"),
    ("a.rolling_sum_by('d', '1d')", "rolling_sum_by"),
    ("a.shift()", "shift"),
    ("a.diff()", "diff"),
    ("a.pct_change()", "pct_change"),
    ("a.cum_sum()", "cum_sum"),
    ("a.cum_count()", "cum_count"),
    ("a.rank()", "rank"),
    ("a.sort()", "sort"),
    ("a.sort_by('b')", "sort_by"),
    ("a.reverse()", "reverse"),
    ("a.head()", "head"),
    ("a.tail()", "tail"),
    ("a.slice(1, 2)", "slice"),
    ("a.get(0)", "get"),
    ("a.gather([0])", "gather"),
    ("a.gather_every(2)", "gather_every"),
    ("a.filter(p)", "filter"),
    ("a.drop_nulls()", "drop_nulls"),
    ("x.drop_nans()", "drop_nans"),
    ("l.explode()", "explode"),
    ("l.list.explode()", "explode"),
    ("a.sample(1)", "sample"),
    ("a.shuffle()", "shuffle"),
    ("a.is_unique()", "is_unique"),
    ("a.is_duplicated()", "is_duplicated"),
    ("a.is_first_distinct()", "is_first_distinct"),
    ("a.rle_id()", "rle_id"),
    ("a.peak_max()", "peak_max"),
    ("a.ewm_mean(alpha=0.5)", "ewm_mean"),
    ("a.interpolate()", "interpolate"),
    ("a.fill_null(strategy='forward')", "forward_fill"),
    ("a.fill_null(strategy='mean')", "strategy='mean'"),
    ("a.forward_fill()", "forward_fill"),
    ("a.backward_fill()", "backward_fill"),
    ("a.append(b)", "append"),
    ("a.top_k(2)", "top_k"),
    ("a.arg_sort()", "arg_sort"),
    ("a.search_sorted(1)", "search_sorted"),
    ("a.extend_constant(1, 2)", "extend_constant"),
    ("a.repeat_by(2)", "repeat_by"),
    ("a.reshape((2, 1))", "reshape"),
    ("a.set_sorted()", "set_sorted"),
    ("a.hash()", "hash"),
    ("a.to_physical()", "to_physical"),
    ("a.qcut(2)", "qcut"),
    ("x.bin_intervals(3, labels=['p', 'q', 'r'])", "derived from the data"),
    ("x.bin_quantiles([0.5], labels=['p', 'q'])", "bin_quantiles"),
    ("x.bin_ranks(2, labels=['p', 'q'])", "bin_ranks"),
    ("x.bin_intervals([1], labels=False)", "bin_intervals without labels"),
    ("x.bin_intervals([1], labels=['p', 'q'], include_intervals=True)", "include_intervals"),
    ("x.cut([1], include_breaks=True)", "include_breaks"),
    ("a.map_elements(lambda v: v, return_dtype=pl.Int64)", "map_elements"),
    ("a.map_batches(lambda v: v) + 1", "map_batches"),
    ("pl.map_groups(['a'], lambda v: v[0])", "map_batches"),
    ("a.rolling_map(sum, 3)", "rolling_map"),
    ("pl.fold(pl.lit(0), lambda acc, v: acc + v, [a, b])", "pl.fold"),
    ("pl.reduce(lambda acc, v: acc + v, [a, b])", "pl.reduce"),
    ("pl.cum_sum_horizontal('a', 'b')", "pl.cum_fold"),
    ("a.name.map(str.upper)", "name.map"),
    ("pl.int_range(0, 3)", "pl.int_range"),
    ("pl.int_range(pl.len())", "pl.int_range"),
    ("pl.repeat(1, 3)", "pl.repeat"),
    ("pl.date_range(date(2020, 1, 1), date(2020, 1, 3))", "pl.date_range"),
    ("pl.arg_where(p)", "pl.arg_where"),
    ("pl.corr('a', 'b')", "pl.corr"),
    ("pl.cov('a', 'b')", "pl.cov"),
    ("a.is_close(b)", "is_close"),
    ("x.round_sig_figs(2)", "round_sig_figs"),
    ("x.round(2, mode='half_away_from_zero')", "round"),
    ("a.bitwise_count_ones()", "bitwise_count_ones"),
    ("a.reinterpret(signed=True)", "reinterpret"),
    ("s.str.split(s)", "separator of str.split must be a constant"),
    ("s.str.split('x', literal=False)", "str.split_regex"),
    ("s.str.splitn('x', 2)", "str.splitn"),
    ("s.str.split_exact('x', 2)", "str.split_exact"),
    ("s.str.join('-')", "str.join"),
    ("s.str.json_decode(pl.Int64)", "str.json_decode"),
    ("s.str.contains_any(['x'])", "str.contains_any"),
    ("s.str.zfill(a)", "length of str.zfill must be a constant"),
    ("s.str.pad_start(a)", "length of str.pad_start must be a constant"),
    ("s.str.reverse()", "str.reverse"),
    ("s.str.encode('hex')", "str.encode"),
    ("s.str.find(s)", "pattern of str.find must be a constant"),
    ("s.str.count_matches(s)", "pattern of str.count_matches must be a constant"),
    ("pl.concat_arr('a', 'b')", "pl.concat_arr"),
    ("l.list.slice(a)", "offset of list.slice must be a constant"),
    ("l.list.tail(a)", "length of list.slice must be a constant"),
    ("l.list.median()", "list.median"),
    ("s.str.contains(pl.col('s'))", "pattern of str.contains must be a constant"),
    ("s.str.starts_with(pl.col('s'))", "str.starts_with must be a constant"),
    ("s.str.slice(a)", "offset of str.slice must be a constant"),
    ("s.str.head(a)", "str.head must be a constant"),
    ("s.str.strip_chars(s)", "str.strip_chars must be a constant"),
    ("s.str.replace(s, 'x')", "str.replace must be a constant"),
    ("s.str.replace('x', 'y', n=2)", "n=2"),
    ("s.str.to_date('%Y-%m-%d', exact=False)", "exact=False"),
    ("s.str.to_datetime('%F %T', ambiguous='earliest')", "earliest"),
    ("s.str.to_integer(base=a)", "base of str.to_integer must be a constant"),
    ("s.str.to_integer(base=1)", "str.to_integer"),
    ("d.dt.replace(year=2020)", "dt.replace"),
    ("d.dt.add_business_days(5)", "dt.add_business_days"),
    ("d.dt.truncate(s)", "dt.truncate must be a constant"),
    ("d.dt.offset_by(s)", "dt.offset_by must be a constant"),
    ("u.dt.total_days(fractional=True)", "fractional=True"),
    ("d.dt.replace_time_zone('Europe/Paris', ambiguous='latest')", "latest"),
    ("pl.datetime(9999, 1, 1, time_unit='ns')", "out of range of nanoseconds"),
    (
        "pl.lit(datetime(2024, 3, 31, 2, 30)).dt.replace_time_zone('Europe/Paris', "
        "ambiguous='latest', non_existent='null')",
        "latest",
    ),
    ("l.list.eval(pl.element() + 1)", "list.eval"),
    ("l.list.sort()", "list.sort"),
    ("l.list.unique()", "list.unique"),
    ("l.list.n_unique()", "list.n_unique"),
    ("l.list.agg(pl.element().sum())", "list.sum"),
    ("a.truncdiv(2)", "truncdiv"),
    ("a.is_sorted()", "is_sorted"),
    ("a.approx_quantile(0.5)", "approx_quantile"),
    ("a.max_by('b')", "max_by"),
    ("x.erf()", "erf"),
    ("s.cat.to(pl.Enum(['x']))", "cat.to"),
    ("l.list.get(a)", "list.get must be a constant"),
    ("l.list.contains(a, nulls_equal=False)", "nulls_equal"),
    ("st.struct.rename_fields(['h'])", "struct.rename_fields"),
    ("st.struct.with_fields(h=1)", "struct.with_fields"),
    ("st.struct.json_encode()", "struct.json_encode"),
    ("st.name.prefix_fields('h')", "name.prefix_fields"),
    ("s.cat.starts_with('x')", "cat.starts_with"),
    ("s.bin.size()", "bin.size"),
    ("a.is_in(pl.lit(1))", "is_in needs a list of constants"),
    ("l.is_in([[1, 2], [3]])", "constant"),
    ("a.replace(b, 1)", "replace must be a constant"),
    ("a.replace(1, b)", "replace must be a constant"),
    ("a.replace_strict({1: 2})", "replace_strict"),
    ("a.replace_strict({1: 2}, default=a.sum())", "sum"),
    ("x.log(a)", "base of log must be a constant"),
    ("a.cast(pl.Int8, wrap_numerical=True)", "wrap_numerical"),
    ("a.cast(pl.Object)", "Object"),
    ("a.cast(pl.dtype_of('b'))", "type that is computed"),
    ("a + pl.lit(pl.Series([1, 2]))", "Series of 2 values"),
    ("pl.lit(pl.Series([1, 2, 3]))", "Series of 3 values"),
    ("pl.lit([1, 2])", "list or Series"),
    ("pl.lit({'a': 1})", "constant"),
    ("pl.when(a.sum() > 1).then(1)", "sum"),
    ("pl.struct(a.shift())", "shift"),
    ("pl.col('a', 'b').sum()", "sum"),
    ("cs.numeric().cum_sum()", "cum_sum"),
    ("pl.col('a', 'b') + pl.col('a', 'b', 'x')", "selections of 2 and 3 columns"),
    (
        "pl.when(pl.col('p', 'q')).then(pl.col('a', 'b', 'x')).otherwise(cs.by_index(*range(4)))",
        "selections of 2 and 3 columns",
    ),
]


@pytest.mark.parametrize(("spelling", "name"), REFUSED, ids=[s for s, _ in REFUSED])
def test_a_refusal_names_the_function(spelling: str, name: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    with pytest.raises(DPFrameError) as caught:
        read(expression, SCHEMA)
    error = caught.value
    assert isinstance(error, (UnsupportedOperation, InvalidBounds))
    assert any(part in error.what for part in name.split("|")), error.what
    assert error.remedy
    assert error.where
    text = str(error)
    for internal in ("BinaryExpr", "Function", "Agg", "cloudpickle", "python:", "Dyn"):
        assert internal not in text
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    "spelling",
    [
        "a.clip(10, 0)",
        "a.clip(0.5, 0.25)",
        "x.clip(float('nan'), 1)",
        "x.clip(float('nan'), a)",
        "day.clip(date(2021, 1, 1), date(2020, 1, 1))",
        "x.cut([2, 1])",
        "x.cut([1, 1])",
        "x.cut([float('nan')])",
        "x.cut([float('inf')])",
        "x.cut([1], labels=['p'])",
        "x.cut([1], labels=['p', 'p'])",
        "x.bin_intervals([2, 1], labels=['p', 'q', 'r'])",
        "x.bin_intervals(['u', 'v'], labels=['p', 'q', 'r'])",
        "a.replace([1, 2, 3], [1, 2])",
        "a.replace([1, 1], [1, 2])",
        "x.log(0)",
        "x.log(1)",
        "x.log(-2)",
        "s.str.to_integer(base=37)",
        "s.str.slice(0, -1)",
    ],
)
def test_constants_that_contradict_themselves(spelling: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    with pytest.raises(InvalidBounds) as caught:
        read(expression, SCHEMA)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("spelling", "remedy"),
    [
        ("a.sum()", ".dp_sum(bounds)"),
        ("a.mean()", ".dp_mean(bounds)"),
        ("pl.len()", "dp.count()"),
        ("a.n_unique()", ".dp_n_unique()"),
        ("a.over('b')", ".group_by("),
        ("a.map_elements(len, return_dtype=pl.Int64)", "before the frame is protected"),
        ("a.filter(p)", ".filter(...)"),
        ("a.replace_strict({1: 2})", "default="),
        ("a.fill_null(strategy='forward')", ".fill_null(0)"),
        ("a.qcut(2)", ".cut(breaks"),
        ("l.explode()", "max_length"),
        ("s.str.contains('(')", "literal=True"),
    ],
)
def test_common_mistakes_have_a_remedy(spelling: str, remedy: str) -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        read(evaluate(spelling), SCHEMA)
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy


def test_text_of_the_analyst_does_not_decide_the_name() -> None:
    shown = 'col("fold(").str.contains(["cum_reduce("]).python_udf()'
    assert "map_elements" in refuse_unserialisable(shown).what
    assert "a Python function" in refuse_unserialisable("col(1).nothing()").what


def _node(text: str) -> Any:
    class Fake:
        class meta:
            @staticmethod
            def serialize(stream: Any, format: str) -> None:
                stream.write(text.encode())

    return Fake()


@pytest.mark.parametrize(
    "text",
    [
        '"Later"',
        '{"Later": 1}',
        '{"Function": {"input": [{"Column": "a"}], "function": "Later"}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"Later": {"x": 1}}}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"Boolean": "Later"}}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"StringExpr": {"Later": 1}}}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"FfiPlugin": {"lib": "x"}}}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"Clip": {"other": true}}}}',
        '{"Function": {"input": [{"Column": "a"}], "function": {"Round": 3}}}',
        '{"Function": {"input": [], "function": {"StringExpr": "Slice"}}}',
        '{"AnonymousFunction": {"input": [{"Column": "a"}], "function": [1, 2]}}',
        '{"BinaryExpr": {"left": {"Column": "a"}, "op": "Divide", "right": {"Column": "b"}}}',
        '{"BinaryExpr": {"left": {"Column": "a"}, "op": "Later", "right": {"Column": "b"}}}',
        '{"Literal": {"Later": 1}}',
        '{"Literal": {"Dyn": {"Later": 1}}}',
        '{"Literal": {"Scalar": {"Later": 1}}}',
        '{"Literal": {"Series": [1, 2, 3]}}',
        '{"Literal": {"Scalar": {"List": [0]}}}',
        '{"Cast": {"expr": {"Column": "a"}, "dtype": {"Literal": "Later"}, "options": "Strict"}}',
        '{"Cast": {"expr": {"Column": "a"}, "dtype": {"Literal": {"X": 1}}, "options": "Strict"}}',
        '{"Cast": {"expr": {"Column": "a"}, "dtype": {"Literal": "Int8"}, "options": "Later"}}',
        '{"RenameAlias": {"expr": {"Column": "a"}, "function": {"Later": 1}}}',
        '{"SubPlan": [1, 2]}',
    ],
)
def test_forms_of_a_later_polars_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframe.parse.reader._as_expression", lambda value, what: value)
    assert serialised(_node(text)) == text  # else nothing of it would be read
    with pytest.raises(UnsupportedOperation):
        read(_node(text), SCHEMA)


@pytest.mark.parametrize("form", ["[1, 2]", "null", '{"List": "Int8", "Array": "Int8"}'])
def test_a_type_of_a_later_form_is_refused_as_a_type(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpframe.parse.reader._as_expression", lambda value, what: value)
    cast = f'{{"expr": {{"Column": "a"}}, "dtype": {{"Literal": {form}}}, "options": "Strict"}}'
    with pytest.raises(UnsupportedOperation, match="the type of this form is not supported"):
        read(_node(f'{{"Cast": {cast}}}'), SCHEMA)


def test_nothing_of_polars_own_text_is_shown() -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        read(pl.col("s").str.contains("(["), SCHEMA)
    assert "regex parse error" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        (pl.col("s").str.extract("(a)", 2), 'col("s").str.extract("(a)", 2)'),
        (pl.col("x").abs().round(101) + 1, 'col("x").abs().round(101)'),
        (pl.col("l").list.get(2**40), 'col("l").list.get(1099511627776)'),
        (pl.col("d").dt.offset_by("200000d"), 'col("d").dt.offset_by("200000d")'),
    ],
)
def test_constants_that_make_no_sense_are_refused_where_they_are(
    expression: pl.Expr, where: str
) -> None:
    with pytest.raises((InvalidBounds, UnsupportedOperation)) as caught:
        read(expression, SCHEMA)
    assert caught.value.where == where


@pytest.mark.parametrize("zone", ["*", "UTC"])
@pytest.mark.parametrize("first", [pl.lit(2024), pl.col("b")])
def test_an_unknown_zone_of_a_datetime_is_named_and_no_part_of_it(
    zone: str, first: pl.Expr, monkeypatch: pytest.MonkeyPatch
) -> None:
    if zone == "UTC":  # as if this Polars did not know it
        monkeypatch.setattr("dpframe.rows.polars_dtypes._known", lambda zone: None)
    with pytest.raises(UnsupportedOperation, match="not a time zone") as caught:
        read(pl.datetime(first, pl.col("a"), 1, time_zone=zone), SCHEMA)
    assert caught.value.where == f"pl.datetime(..., time_zone={zone!r})"


def test_a_choice_among_ambiguous_times_of_a_datetime_is_named_as_its_own() -> None:
    written = pl.datetime(2024, pl.col("a"), 1, time_zone="UTC", ambiguous="earliest")
    with pytest.raises(UnsupportedOperation, match=r"'latest' in pl\.datetime is not"):
        read(written, SCHEMA)
