"""Polars: on this machine, or wherever a function sends a LazyFrame."""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import polars as pl

from dpframe.core.exact import show_input
from dpframe.errors import InvalidBounds, UnsupportedOperation, require
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.forked import mark_used, require_threads
from dpframe.lower.engines.scans import kinds_of
from dpframe.rows.failures import FAILURES, NOTHING_PUSHED, OPTIMIZATIONS
from dpframe.rows.operation import Namespace

# How much memory a query may take, and into how many buckets of people it is divided for that.
#
# Everything here follows from what is stated, from the machine, and from the sizes of files. These
# are taken for public: how long a query takes depends on them anyway.

_UNITS: Final = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS_OF_TWO: Final = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_WRITTEN: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]i?b)", re.IGNORECASE)
_LEAST: Final = 500 * 10**6
"""The memory of Python, Polars and its buffers for any query."""
_SMALLEST: Final = 100 * 10**6
"""What rows are given at least."""
_GROWTH: Final = 9
"""Bytes that pairs of person and group take in a group-by for each byte of a compressed file: six
and a half were measured, and buckets are not all of one size.
"""
_FEW: Final = 8
"""Up to this many scans took less than to take rows over piece by piece, write and read them."""
_FINER: Final = 2
"""Buckets that Polars writes itself are this many times as many: they cost little, and smaller
ones are grouped faster.
"""
_HELD: Final = 6
"""A bucket in memory takes this many times the bytes of its files at most while it is grouped."""
_ON_DISK: Final = 5
"""Bytes that must be free on a disk for each byte of files, and twice as many where there is text:
two and a half were written of numbers, eight of long text.
"""
_MOUNTS: Final = Path("/proc/self/mounts")
_UNKNOWN: Final = 32
_MOST: Final = 512
_OWN: Final = Path("/proc/self/cgroup")
_CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Room:
    """How queries of individuals are divided.

    Parameters
    ----------
    buckets
        Into how many parts.
    spills
        Whether rows may be put aside in temporary files; else each part is a scan of its own.
    held
        The size of a part's files up to which its rows are taken into memory at once.
    """

    buckets: int
    spills: bool = True
    held: int = field(default=0, compare=False)


def bytes_of(memory: object) -> int:
    """A size as a user states it: ``"2GB"``, ``"512 MiB"``, a number of bytes, or ``"auto"`` for
    three quarters of what the machine or the control group of the process has.

    Raises
    ------
    InvalidBounds
        For anything else.
    """
    if memory == "auto":
        return _of_machine() * 3 // 4
    if isinstance(memory, int) and not isinstance(memory, bool) and 0 < memory < 2**63:
        return memory
    found = _WRITTEN.fullmatch(memory.strip()) if isinstance(memory, str) else None
    size = 0 if found is None else math.floor(_factor(found[2]) * float(found[1]))
    if not size:
        raise InvalidBounds(
            f"memory={show_input(memory)} is not an amount of memory",
            where=f"session.protect(..., memory={show_input(memory)})",
            remedy=('write for example memory="2GB" or a number of bytes', 'write memory="auto"'),
        )
    return size


def _factor(unit: str) -> int:
    return (_UNITS | _UNITS_OF_TWO)[unit.lower()]


def _of_machine() -> int:
    """The memory of the machine, or what the control group of this process may take."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _limits():
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError):
            continue
        found += [int(text)] if text.isdigit() else []
    return min(found)


def _limits() -> Iterator[Path]:
    """The files with what the control group of this process may take, and those above it; a
    container may see its own as the uppermost.
    """
    try:
        lines = _OWN.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in ["0::/", "0:memory:/", *lines]:
        _, _, rest = line.partition(":")
        kind, _, own = rest.partition(":")
        if kind not in ("", "memory"):
            continue
        top, name = _CGROUPS / kind, "memory.limit_in_bytes" if kind else "memory.max"
        group = top / own.lstrip("/")
        yield from (place / name for place in (group, *group.parents) if place.is_relative_to(top))


def room_for(
    memory: int, files: Iterable[object], spills: bool, sinks: bool = False
) -> Room | None:
    """The room for rows of some files, or of frames in memory of some bytes; None where all fit at
    once. The number of other rows is unknown.

    Parameters
    ----------
    files
        Paths and numbers of bytes.
    spills, sinks
        Whether rows may be put aside in files, and Polars writes these itself.
    """
    sizes = [_size(file) for file in files]
    free = max(memory - _LEAST, _SMALLEST)
    sinks = spills and sinks
    held = free // _HELD if sinks else 0
    if not sizes or None in sizes:
        return Room(_UNKNOWN, spills, held)
    buckets = -(-sum(size or 0 for size in sizes) * _GROWTH // free)
    if buckets <= 1:
        return None
    if sinks:
        return Room(min(buckets * _FINER, _MOST), True, held)
    return Room(min(buckets, _MOST), spills and buckets > _FEW)


def has_disk(files: Iterable[object], schema: pl.Schema) -> bool:
    """Whether rows of some files may be put aside where temporary files are written: on a disk, not
    in memory, with room for what takes several times the bytes of compressed files.
    """
    fixed = all(t.is_numeric() or t.is_temporal() or t == pl.Boolean for t in schema.values())
    times = _ON_DISK if fixed else 2 * _ON_DISK
    folder = os.path.realpath(tempfile.gettempdir())
    size = sum(_size(file) or 0 for file in files)
    try:
        return shutil.disk_usage(folder).free > times * size and not _is_in_memory(folder)
    except OSError:
        return False


def _is_in_memory(folder: str) -> bool:
    """Whether a folder is in a file system in memory, as Linux reports it."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    mounts = [(fields[1], fields[2]) for line in lines if len(fields := line.split()) > 2]
    above = [m for m in mounts if m[0] == "/" or f"{folder}/".startswith(f"{m[0]}/")]
    return max(above, key=lambda m: len(m[0]), default=("", ""))[1] in ("tmpfs", "ramfs")


def _size(file: object) -> int | None:
    if isinstance(file, int):
        return file
    try:
        return os.path.getsize(str(file))
    except OSError:
        return None


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
        self._mode: PolarsMode = mode
        if not callable(mode) and mode not in _MODES:
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

    def empty(self, data: object, schema: pl.Schema) -> pl.LazyFrame:
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
