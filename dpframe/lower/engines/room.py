"""How much memory a query may take, and into how many buckets of people it is divided for that.

Everything here follows from what is stated, from the machine, and from the sizes of files. These
are taken for public: how long a query takes depends on them anyway.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from dpframe.core.exact import as_given
from dpframe.errors import InvalidBounds

__all__ = ["Room", "bytes_of", "has_disk", "room_for"]

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
            f"memory={as_given(memory)} is not an amount of memory",
            where=f"session.protect(..., memory={as_given(memory)})",
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
