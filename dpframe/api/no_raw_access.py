"""What private objects refuse, and what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NoReturn

from dpframe.errors import UnsupportedOperation
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import all_sealed

_MOST = "use .dp_quantile(column, {}, bounds) with wide bounds"
_AGGREGATE_NAMES = {
    "max maximum": _MOST.format("0.99")
    + "\nfind the most frequent value: .dp_argmax(column, candidates=[...])",
    "min minimum": _MOST.format("0.01"),
    "avg average": "use .dp_mean(column, bounds)",
    "len size rows n number": "use .dp_count()",
    "total": "use .dp_sum(column, bounds)",
    "nunique unique distinct count_distinct approx_n_unique": "use .dp_n_unique(column)",
    "stddev stdev sd": "use .dp_std(column, bounds)",
    "variance": "use .dp_var(column, bounds)",
    "percentile percentiles quantiles quartiles": "use .dp_quantile(column, [0.25, 0.5, "
    "0.75], bounds)",
    "mode top top_k topk most_common": "use .dp_argmax(column, candidates=[...], k=5)",
    "hist value_counts counts frequencies": "use .dp_histogram(column, bins)\n"
    "use .value_counts(column)",
    "describe summary": "use .describe(columns)",
    "share proportion rate percent": "use .dp_mean(condition) for a share of rows\n"
    "divide two totals: .dp_ratio(column, denominator, bounds, denominator_bounds=bounds)",
    "corr cov covariance correlation": "compute the covariance from means, in one .agg(): "
    "(dp.col(a) * dp.col(b)).dp_mean(bounds) - dp.col(a).dp_mean(bounds) * "
    "dp.col(b).dp_mean(bounds); divide it by both .dp_std(bounds, ddof=0) for the correlation",
    "any all": "use .dp_mean(condition), the share of rows for which it holds",
    "null_count nulls": "use .dp_count(pl.when(pl.col(...).is_null()).then(1))",
}
_OF_COLUMN = re.compile(r"(\.dp_\w+\()(?:column|condition)(?:, )?")
"""Methods of frames name the column first; those of expressions begin with it."""
_OF_EXPRESSIONS = {
    "dp_describe": "use .describe(columns) of the frame",
    "dp_null_count": "use pl.when(pl.col(...).is_null()).then(1), and .dp_count() of it",
}
_VERB_NAMES = {
    "assign mutate withColumn with_column transform": "use .with_columns(...)",
    "where query": "use .filter(...)",
    "groupby groupBy": "use .group_by(...)",
    "aggregate summarise summarize": "use .agg(...)",
    "astype": "use .cast({column: dtype})",
    "dropna": "use .drop_nulls(...)",
    "fillna": "use .fill_null(value)",
    "merge": "use .join(...)",
    "append union union_all vstack": "use .concat(other), with another private frame",
    "sort_values sort_index order_by orderBy": "sort the released result, which is public",
    "nlargest nsmallest": "sort the released result\n"
    "choose the largest groups: .group_by(column, keys=[...]).dp_argmax(k=n)",
    "drop_duplicates distinct": "use .limit_rows(1) for one row of each individual\n"
    "count distinct values with .dp_n_unique(column)",
    "nunique": "use .dp_n_unique(column)",
    "apply applymap map": "write it with Polars expressions, in .with_columns(...)",
    "size": "use .dp_count()",
    "iloc loc iat at sample_n": "aggregate with dp expressions, such as .dp_count()",
    "pivot pivot_table crosstab": "group by both columns, .group_by(a, b).agg(...), and "
    "pivot the released result",
    "resample": 'use .group_by_dynamic(column, every="1w")',
    "info": "use .schema and .explain_unit(), which are public",
}


def _by_name() -> Mapping[str, str]:
    found = {
        f"dp_{name}": remedy for names, remedy in _AGGREGATE_NAMES.items() for name in names.split()
    }
    found |= {name: remedy for names, remedy in _VERB_NAMES.items() for name in names.split()}
    return MappingProxyType(found)


INTENTS = _by_name()
"""What to write instead, by the name that a frame, its groups or a query does not have."""


def meant_by_method(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown ``dp_`` method of expressions."""
    remedy = _OF_EXPRESSIONS.get(name, INTENTS.get(name))
    if remedy is not None:
        return _OF_COLUMN.sub(r"\1", remedy)
    methods = [f"dp_{each}" for each in known]
    near = did_you_mean(name, methods)
    return near if near.startswith("did you mean") else f"use one of {', '.join(methods)}"


def meant_by(name: str) -> str | None:
    """What to write instead of an unknown function of the module."""
    remedy = INTENTS.get(f"dp_{name}")
    if remedy is None or "dp.col" in remedy:
        return remedy
    return remedy.replace(".dp_", "dp.")


# -- What is refused ------------------------------------------------------------------------------


RAW = "aggregate with dp expressions, such as .dp_count()"
MIXES = "use row-wise expressions"
RESHAPES = "join or reshape before session.protect(...)"
SHOWS = "it would show private rows"
_SHOWS_ROWS = """
    head tail limit slice first last fetch sample glimpse row rows item to_dict to_dicts to_pandas
    to_arrow to_numpy to_torch to_jax iter_rows iter_slices iter_columns show write_csv
    write_parquet write_json write_ipc write_database sink_parquet sink_csv sink_ipc collect
    collect_async lazy get_column get_columns to_series plot partition_by rows_by_key
    collect_batches execute inspect remote serialize sink_batches sink_delta sink_iceberg
    sink_ndjson write_avro write_clipboard write_delta write_excel write_iceberg write_ipc_stream
    write_ndjson drop_in_place gather equals estimated_size flags fold hash_rows style to_init_repr
"""
_MIXES_ROWS = """
    reverse shift with_row_index with_row_count unique
    interpolate merge_sorted gather_every map_batches map_rows upsample set_sorted remove_duplicates
    is_duplicated is_unique is_sorted map_columns
"""
_RESHAPES = """
    join_asof join_where hstack extend unpivot melt
    to_dummies transpose unstack update insert_column replace_column
"""
_OTHERWISE = {
    "unique": "use .limit_rows(1) for one row of each individual\n"
    "count distinct values with .dp_n_unique(column)",
    "sql": "use filter, with_columns, group_by and agg",
    "pipe_with_schema": "call the function with the frame",
    "rolling": "group by windows of time, .group_by_dynamic(column, every='1w').agg(...), and roll "
    "over the released result",
    "remove": "use .filter(...) with the opposite condition",
    "drop_nans": 'use .filter(pl.col("x").is_not_nan()) or .fill_nan(None)',
    "unnest": 'use .with_columns(pl.col("x").struct.field("name"))',
    "select_seq": "use .select(...)",
    "with_columns_seq": "use .with_columns(...)",
    "match_to_schema": "use .select(...) and .cast(...)",
    "to_struct": "use .select(pl.struct(...))",
    **{
        f"{name}_horizontal": f"use .select(pl.{name}_horizontal(...))"
        for name in ("max", "mean", "min", "sum")
    },
    **dict.fromkeys(
        ("cache", "clone", "rechunk", "shrink_to_fit"), "use the frame itself: it never changes"
    ),
    **dict.fromkeys(
        ("explain", "show_graph"),
        "use .explain_unit()\nexplain a query: query.explain(epsilon=...)",
    ),
    "dp_protect": "use this frame: it is protected already",
    **dict.fromkeys(
        ("collect_schema", "dtypes", "width", "get_column_index", "clear"),
        "use .schema and .columns, which are public",
    ),
}
_POLARS_OWN = frozenset(("_df", "_ldf", "_s", "_pyexpr"))
"""The attributes that Polars reads from every frame, column or expression that it is given."""
_LARGEST = (
    "choose the largest groups: .group_by(column, keys=[...]).dp_argmax(k=n)\n"
    "release all, .group_by(column).len(), and take the largest of the result"
)
_AGGREGATES = {
    **{
        name: f"use .dp_{name}(column, bounds)\nwrite .agg(pl.col(column).clip(low, high).{name}())"
        for name in ("sum", "mean", "median", "std", "var")
    },
    "quantile": "use .dp_quantile(column, q, bounds)",
    "min": "use .dp_quantile(column, 0.01, bounds)",
    "max": "use .dp_quantile(column, 0.99, bounds)",
    "n_unique": "use .dp_n_unique(column)",
}
_VERBS = "group_by cast agg join"
FRAME_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_SHOWS_ROWS.split(), RAW),
        **dict.fromkeys(_MIXES_ROWS.split(), MIXES),
        **dict.fromkeys(_RESHAPES.split(), RESHAPES),
        **dict.fromkeys(
            ("len", "height", "shape", "count", "is_empty", "n_chunks"),
            "use .dp_count()\ncount distinct values with .dp_n_unique(column)",
        ),
        "product": "use a dp_* method, such as .dp_mean(column, bounds)",
        "corr": INTENTS["dp_corr"],
        **_AGGREGATES,
        **dict.fromkeys(("top_k", "bottom_k"), _LARGEST),
        "null_count": "use .select(pl.col(column).null_count())",
        "hist": "use .dp_histogram(column, bins)",
        **_OTHERWISE,
    }
)
FRAME_REASONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_SHOWS_ROWS.split(), SHOWS),
        **dict.fromkeys(_MIXES_ROWS.split(), "each row of its result would depend on other rows"),
        **dict.fromkeys(("min", "max"), "the least or largest value is that of one person"),
    }
)
GROUP_REASONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("head", "tail", "first", "last", "all", "map_groups"), SHOWS)
)
COLLECT = "collect it: .collect(epsilon=...) gives a Polars DataFrame"
PER_PERSON = (
    "group by the identifier first to get one row for each individual: "
    '.group_by("user_id").agg(n=pl.len())'
)
_STATISTICS = """
    mean median sum std var quantile min max describe
    dp_count dp_sum dp_mean dp_median dp_std dp_var dp_quantile dp_histogram dp_cdf
"""
QUERY_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            _VERBS.split(),
            "use it on the released result of .collect(epsilon=...)\n"
            "write it before the aggregates",
        ),
        **dict.fromkeys(
            _STATISTICS.split(),
            f"use it on the released result of .collect(epsilon=...)\n{PER_PERSON}",
        ),
        **dict.fromkeys(
            (
                "slice",
                "first",
                "last",
                "pivot",
                "unpivot",
                "to_pandas",
                "to_dicts",
                "item",
                "write_csv",
                "rolling",
                "plot",
            ),
            "use it on the released result of .collect(epsilon=...)",
        ),
    }
)
GROUP_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "count": "use .len() or .dp_count()",
        **_AGGREGATES,
        **dict.fromkeys(("head", "tail", "first", "last", "all", "map_groups"), RAW),
        "having": "filter the released result, which is public",
    }
)


@all_sealed
class NoRawAccess:
    """Something private: Python's own ways to look inside, iterate or copy it are refused."""

    __slots__ = ()
    _noun: ClassVar[str]
    _written: ClassVar[str]
    _hints: ClassVar[Mapping[str, str]]
    _otherwise: ClassVar[str]
    """What to use instead of what `_hints` does not name."""
    _reasons: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Why Polars' methods are refused, by name."""

    def _refused(self, what: str) -> UnsupportedOperation:
        return UnsupportedOperation(
            f"{self._noun} {what}",
            where=self._written,
            why=SHOWS if self._otherwise == RAW else None,
            remedy=self._otherwise,
        )

    def _lacks(self, name: str) -> NoReturn:
        """Refuse what Polars has, or another library, and this has not."""
        if name in _POLARS_OWN:
            raise UnsupportedOperation(
                f"{self._noun} is not a Polars frame, so functions and frames of Polars "
                "cannot take it",
                where=self._written,
                remedy=(
                    "use frame.concat(other) with another private frame, or "
                    "frame.join(public, on=...)",
                    "bring the tables together before session.protect(...)",
                ),
            )
        if name.startswith("_"):
            raise AttributeError(name)
        hint = INTENTS.get(name)
        if hint is None and hasattr(type(self), "dp_count"):
            hint = INTENTS.get(f"dp_{name}")
        if hint is None:
            near = did_you_mean(name, [n for n in dir(type(self)) if not n.startswith("_")])
            hint = near if near.startswith("did you mean") else self._otherwise
            columns = getattr(self, "columns") if hasattr(type(self), "columns") else ()  # noqa: B009
            if name in columns:
                hint = f"name the column in an aggregate or a step: pl.col({name!r})"
        raise UnsupportedOperation(
            f"{self._noun} has no {name}",
            where=f"{self._written}.{name}",
            why=self._reasons.get(name),
            remedy=self._hints.get(name, hint),
        )

    def __bool__(self) -> bool:
        return True

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise self._refused("cannot become a NumPy array")

    def __arrow_c_stream__(self, *args: object) -> NoReturn:
        raise self._refused("cannot become an Arrow table or another frame")

    def __dataframe__(self, *args: object, **kwargs: object) -> NoReturn:
        raise self._refused("cannot become another frame")

    def __reduce__(self) -> NoReturn:
        raise self._refused("cannot be pickled or copied out of its session")

    if not TYPE_CHECKING:  # which would pass every check
        __getattr__ = _lacks

        def __len__(self):
            raise self._refused("has no public length")

        def __iter__(self):
            raise self._refused("cannot be iterated")

        def __getitem__(self, item):
            raise self._refused("cannot be indexed")
