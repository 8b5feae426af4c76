"""Polars: on this machine, or wherever a function sends a LazyFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Literal, TypeAlias

import polars as pl

from dpframe.errors import UnsupportedOperation, require
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.forked import mark_used, require_threads
from dpframe.lower.engines.room import Room
from dpframe.lower.engines.scans import kinds_of
from dpframe.rows.failures import FAILURES, NOTHING_PUSHED, OPTIMIZATIONS
from dpframe.rows.operation import Namespace

Executor: TypeAlias = "Callable[[pl.LazyFrame], pl.DataFrame]"
PolarsMode: TypeAlias = 'Literal["auto", "in-memory", "streaming", "gpu"] | Executor'

_MODES = ("auto", "in-memory", "streaming", "gpu")

_TYPED = {"parquet", "ipc"}
"""Files that say the types of their columns; those of text follow from rows."""


class PolarsEngine(Engine):
    """Polars.

    Parameters
    ----------
    mode
        One of Polars' engines, or a function that runs a LazyFrame and returns its DataFrame. If it
        has a method `collect_all`, that is given a list of LazyFrames and returns a list.
    room
        How queries of individuals are divided for want of memory; None for not at all.
    pushes
        Whether filters may be handed to what reads the rows: not where that may decide by
        statistics which rows pass.

    Raises
    ------
    UnsupportedOperation
        For anything else.
    """

    name = "polars"
    label = "Polars"

    def __init__(
        self, mode: Any = "auto", room: Room | None = None, *, pushes: bool = True
    ) -> None:
        self.room = room
        self.pushes = pushes
        self._mode: PolarsMode
        if callable(mode):
            self._mode = mode  # pyright: ignore[reportAttributeAccessIssue]
        elif mode in _MODES:
            self._mode = mode
        else:
            raise UnsupportedOperation(
                f"Polars has no engine {mode!r}",
                where=f"engine={mode!r}",
                remedy=(
                    f"use one of {', '.join(map(repr, _MODES))}",
                    "pass a function that takes a LazyFrame and returns a DataFrame",
                ),
            )
        if mode == "gpu" and find_spec("cudf_polars") is None:
            raise UnsupportedOperation(
                "engine 'gpu' is not installed",
                where="engine='gpu'",
                remedy=("leave engine= out", "pip install cudf-polars-cu12"),
            )
        if callable(mode) and not pushes:
            raise UnsupportedOperation(
                "engine= cannot be a function for this frame",
                where="engine=...",
                why="the function, or the frame's source, may decide by statistics of "
                "stored data which rows pass a filter",
                remedy=("leave engine= out", "protect the path of the Parquet files"),
            )

    @property
    def optimizations(self) -> pl.QueryOptFlags:
        """What Polars may do to a query."""
        return OPTIMIZATIONS if self.pushes else NOTHING_PUSHED

    @property
    def is_function(self) -> bool:
        """Whether a function runs queries, which may be elsewhere."""
        return callable(self._mode)

    @property
    def takes_all(self) -> bool:
        """Whether that function is given all buckets of people at once."""
        return self.is_function and hasattr(self._mode, "collect_all")

    @property
    def ns(self) -> Namespace:
        return pl

    def frame(self, data: pl.LazyFrame) -> pl.LazyFrame:
        return data

    def empty(self, data: Any, schema: pl.Schema) -> pl.LazyFrame:
        return pl.LazyFrame(schema=schema)

    def schema_now(self, data: pl.LazyFrame) -> pl.Schema | None:
        """Polars keeps what it knew of files, so they are looked at through a copy of the plan."""
        kinds = kinds_of(data)
        if not kinds or not kinds <= _TYPED:
            return None
        try:
            written = data.clone().serialize()
        except FAILURES:  # a function of Python that cannot be written
            return None
        return pl.LazyFrame.deserialize(BytesIO(written)).collect_schema()

    def collect(
        self, frames: Sequence[pl.LazyFrame], *, rehearsed: bool = False
    ) -> list[pl.DataFrame]:
        require_threads()
        mark_used()
        mode = self._mode
        if callable(mode):
            if not rehearsed:
                return _from_elsewhere(mode, frames)
            mode = "auto"
        if len(frames) == 1:
            return [frames[0].collect(engine=mode, optimizations=self.optimizations)]
        return pl.collect_all(frames, engine=mode, optimizations=self.optimizations)

    @property
    def gives_batches(self) -> bool:
        return self._mode in ("auto", "in-memory", "streaming") and self.room is None

    def batches(self, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Before 1.34 Polars gives it as a whole."""
        require(self.gives_batches, "this engine gives batches")
        pieces = getattr(frame, "collect_batches", None)
        if pieces is None:
            yield from self.collect([frame])
            return
        require_threads()
        mark_used()
        mode = "streaming" if self._mode == "auto" else self._mode
        yield from pieces(maintain_order=False, engine=mode, optimizations=self.optimizations)


def _from_elsewhere(run: Executor, frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    """What a function makes of some frames, of all at once if it takes several."""
    together = getattr(run, "collect_all", None)
    if together is None:
        return [_checked(run(frame)) for frame in frames]
    results = [_checked(result) for result in together(list(frames))]
    if len(results) != len(frames):
        raise TypeError("the function that runs queries returned another number of DataFrames")
    return results


def _checked(result: object) -> pl.DataFrame:
    if not isinstance(result, pl.DataFrame):
        raise TypeError("the function that runs queries returned no DataFrame")
    return result


POLARS = PolarsEngine()
NOT_PUSHING = PolarsEngine(pushes=False)
"""For frames whose source may decide by statistics which rows pass a filter."""
