"""What private objects refuse, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NoReturn

from dpframe.api.intents import INTENTS
from dpframe.errors import UnsupportedOperation
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import all_sealed

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
