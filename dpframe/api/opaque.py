"""What private objects refuse, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NoReturn

from dpframe.errors import UnsupportedOperation
from dpframe.rows.suggest import did_you_mean

RAW = "it would show private rows; aggregate with dp expressions, such as .dp_count()"
_SHOWS_ROWS = """
    head tail limit slice first last fetch sample glimpse row rows item to_dict to_dicts to_pandas
    to_arrow to_numpy to_torch to_jax iter_rows iter_slices iter_columns describe show write_csv
    write_parquet write_json write_ipc write_database sink_parquet sink_csv sink_ipc collect
    collect_async lazy get_column get_columns to_series plot partition_by rows_by_key
"""
_MIXES_ROWS = """
    sort top_k bottom_k reverse shift rolling group_by_dynamic with_row_index with_row_count unique
    interpolate merge_sorted gather_every map_batches map_rows upsample set_sorted remove_duplicates
"""
_JOINS = """
    join_asof join_where vstack hstack extend unpivot pivot melt
"""
FRAME_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_SHOWS_ROWS.split(), RAW),
        **dict.fromkeys(
            _MIXES_ROWS.split(),
            "a row of its result would depend on other rows; use row-wise expressions",
        ),
        **dict.fromkeys(
            ("len", "height", "shape", "count", "n_unique", "is_empty", "null_count", "n_chunks"),
            "use .dp_count() or .dp_n_unique(column)",
        ),
        **dict.fromkeys(
            ("sum", "mean", "median", "min", "max", "std", "var", "quantile"),
            "use a dp_* method, such as .dp_mean(column, bounds)",
        ),
        **dict.fromkeys(("value_counts", "hist"), "use .dp_histogram(column, bins)"),
        **dict.fromkeys(
            ("collect_schema", "dtypes", "width"), "use .schema and .columns, which are public"
        ),
        **dict.fromkeys(
            _JOINS.split(),
            "join or reshape before session.protect(...)",
        ),
        "sql": "use filter, with_columns, group_by and agg",
        "pipe": "call the function with the frame",
    }
)
GROUP_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("len", "count"), "use .dp_count()"),
        **dict.fromkeys(
            ("sum", "mean", "median", "n_unique", "quantile", "min", "max"),
            "use a dp_* method, such as .dp_mean(column, bounds)",
        ),
        **dict.fromkeys(("head", "tail", "first", "last", "all", "map_groups"), RAW),
    }
)


class Opaque:
    """Something private: Python's own ways to look inside, iterate or copy it are refused."""

    __slots__ = ()
    _noun: ClassVar[str]
    _written: ClassVar[str]
    _hints: ClassVar[Mapping[str, str]]
    _otherwise: ClassVar[str]
    """What to use instead of what `_hints` does not name."""

    def _refused(self, what: str) -> UnsupportedOperation:
        return UnsupportedOperation(
            f"{self._noun} {what}", where=self._written, remedy=self._otherwise
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        near = did_you_mean(name, [n for n in dir(type(self)) if not n.startswith("_")])
        hint = near if near.startswith("did you mean") else self._otherwise
        raise UnsupportedOperation(
            f"{self._noun} has no {name}",
            where=f"{self._written}.{name}",
            remedy=self._hints.get(name, hint),
        )

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        raise self._refused("has no public length")

    def __iter__(self) -> NoReturn:
        raise self._refused("cannot be iterated")

    def __getitem__(self, item: object) -> NoReturn:
        raise self._refused("cannot be indexed")

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise self._refused("cannot become a NumPy array")

    def __arrow_c_stream__(self, *args: object) -> NoReturn:
        raise self._refused("cannot become an Arrow table or another frame")

    def __dataframe__(self, *args: object, **kwargs: object) -> NoReturn:
        raise self._refused("cannot become another frame")

    def __reduce__(self) -> NoReturn:
        raise self._refused("cannot be pickled or copied out of its session")
