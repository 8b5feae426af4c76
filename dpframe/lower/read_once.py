"""Frames whose rows may differ between two reads: a query reads them once.

A limit separates the rows that are surely kept from those that have to be ranked, and combines both
afterwards. If each part read the source separately, and the source gave other rows the second time,
an individual could have its full limit in both parts, twice as much as allowed. Engines often
compute common parts once, but they do not guarantee it. Rows may differ between reads if a Python
function makes or changes them, or if they depend on chance or on an arbitrary order.
A query that would read such rows more than once stores them first: in a temporary file without a
name, or in memory if files are not allowed.

Files and tables of other engines are taken to stay as they are while a query runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.lower.engines.polars_engine import POLARS, PolarsEngine
from dpframe.lower.spill import Sink, Spill, can_spill, put_aside
from dpframe.lower.tables import Lowered

__all__ = ["columns_read", "hold_rows", "read_once", "unsure"]

Frames = Mapping[int, pl.LazyFrame]


class Lower(Protocol):
    """Makes the exact queries of frames, in the form that they have for others, if some are given
    (see `dpframe.lower.tables.lower_query`).
    """

    def __call__(
        self, frames: Frames, like: Frames | None = None, /
    ) -> Sequence[tuple[Lowered, ...]]: ...


_FUNCTION: Final = "python"
"""What plans call a source that is a function."""
_UNSURE: Final = re.compile(
    r"python|shuffle\(|sample|random|map_groups|fold\(|reduce\(|rolling_map|strategy: any|slice"
    r"|maintain_order: false|rank\(",
    re.IGNORECASE,
)
"""Signs in plans of rows that a function or chance makes, or that are the first of several in an
arbitrary order. Of ranks they do not say whether chance decides between equals.
"""
_ANY_ORDER: Final = re.compile(r"join|sort|aggregate|union|unique", re.IGNORECASE)
"""What rows come out of in an order that may be any."""
_BY_ORDER: Final = re.compile(
    r"row.index|int_range|cum_|is_first|is_last|shift|first\(|last\(|fill_null_with|interpolate"
    r"|mode|\.unique|value_counts|gather|\.get\(|diff|ewm|rolling|rle|arg_|index_of|top_k|bottom_k"
    r"|asof|implode|pct_change|map",
    re.IGNORECASE,
)
"""What makes values of the order of rows."""
_KEPT: Final = re.compile(r"cache\[id: ([^\],]+)")


def unsure(frame: pl.LazyFrame) -> bool:
    """Whether a frame has rows that may be others the next time."""
    told = _explain(frame)
    if _UNSURE.search(told):
        return True
    return bool(_ANY_ORDER.search(told) and _BY_ORDER.search(told))


def _explain(frame: pl.LazyFrame) -> str:
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    return frame.clone().explain(optimized=False)


@contextmanager
def read_once(
    engine: PolarsEngine, lower: Lower, frames: Frames, *, disk: bool = True
) -> Iterator[Frames]:
    """The frames, with the rows put aside of those that are unsure and would be read repeatedly.
    What runs queries elsewhere gets them as they are.
    """
    doubtful = [] if engine.is_function else [t for t, frame in frames.items() if unsure(frame)]
    repeated = [token for token in doubtful if _times_read(lower, frames, token) > 1]
    if not repeated:
        yield frames
        return
    needed = columns_read(lower, frames, {})
    with ExitStack() as stack:
        found = dict(frames)
        for token in repeated:
            schema = frames[token].collect_schema()
            columns = needed[token] or schema.names()[:1]
            if disk and can_spill():
                spill: Sink | Spill = put_aside(schema, 1)
                stack.enter_context(spill)
                spill.write(frames[token], pl.lit(0), columns, engine.optimizations)
                found[token] = spill.bucket(0)
            else:
                found[token] = hold_rows(frames[token], columns, engine.optimizations)
        yield found


def hold_rows(
    frame: pl.LazyFrame, columns: Sequence[str], optimizations: pl.QueryOptFlags
) -> pl.LazyFrame:
    """The rows of a frame in memory; unneeded columns have no values."""
    schema = frame.collect_schema()
    rows = frame.select(columns).collect(optimizations=optimizations).lazy()
    others = (pl.lit(None, dtype=t).alias(n) for n, t in schema.items() if n not in columns)
    return rows.with_columns(*others).select(*schema)


def _times_read(lower: Lower, frames: Frames, token: int) -> int:
    """How often queries name a frame or its derivatives, for any engine plan: Polars 2.1 computes
    some parts more than once that it should keep.
    """
    schemas = {t: frame.collect_schema() for t, frame in frames.items()}
    empty = {t: pl.LazyFrame(schema=schema) for t, schema in schemas.items()}
    empty[token] = _watch(schemas[token], set())
    plans = [_explain(query.frame).lower() for found in lower(empty) for query in found]
    return sum(plan.count(_FUNCTION) + _count_repeats(plan) for plan in plans if _FUNCTION in plan)


def _count_repeats(plan: str) -> int:
    """How often a plan names again what is to be kept; it is shown once only."""
    kept = _KEPT.findall(plan)
    return len(kept) - len(set(kept))


def columns_read(
    lower: Lower, frames: Frames, always: Mapping[int, str], like: Frames | None = None
) -> dict[int, list[str]]:
    """The columns of each frame that queries read, found by running them on frames without rows.

    Parameters
    ----------
    always
        A column of each of some frames, asked for or not.
    like
        Frames whose form queries may have as well, in which they may ask for others.
    """
    seen = {token: {always[token]} if token in always else set() for token in frames}
    schemas = {token: frame.collect_schema() for token, frame in frames.items()}
    empty = {token: _watch(schemas[token], seen[token]) for token in frames}
    forms = [lower(empty)] if like is None else [lower(empty), lower(empty, like)]
    queries = [query.frame for form in forms for found in form for query in found]
    POLARS.collect(queries, rehearsed=True)
    return {t: [n for n in schemas[t] if n in names] for t, names in seen.items()}


def _watch(schema: pl.Schema, seen: set[str]) -> pl.LazyFrame:
    """A frame without rows that notes which of its columns are read."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted: list[str] = columns or list(schema)
        seen.update(wanted)
        found: Any = pl.DataFrame(schema=schema).select(wanted)
        yield found if predicate is None else found.filter(predicate)

    return register_io_source(read, schema=schema)
