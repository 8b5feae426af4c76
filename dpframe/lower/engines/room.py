"""How much memory a query may take, and into how many buckets of people it is divided for that.

Everything here follows from what is stated, from the machine, and from the sizes of files. These
are taken for public: how long a query takes depends on them anyway.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpframe.core.exact import as_given
from dpframe.errors import InvalidBounds

__all__ = ["Room", "bytes_of", "room_for"]

_UNITS: Final = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS_OF_TWO: Final = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_WRITTEN: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]i?b)", re.IGNORECASE)
_LEAST: Final = 500 * 10**6
"""What Python, Polars and its buffers take whatever the query is."""
_SMALLEST: Final = 100 * 10**6
"""What rows are given at least."""
_GROWTH: Final = 9
"""Bytes that pairs of person and group take in a group-by for each byte of a compressed file: six
and a half were measured, and buckets are not all of one size.
"""
_FEW: Final = 8
"""Up to so many scans took less than to write all rows and to read them again."""
_UNKNOWN: Final = 32
_MOST: Final = 512
_CGROUPS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class Room:
    """How queries of individuals are divided.

    Parameters
    ----------
    buckets
        Into how many parts.
    spills
        Whether rows may be put aside in temporary files; else each part is a scan of its own.
    """

    buckets: int
    spills: bool = True


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
            f"{as_given(memory)} is no amount of memory",
            where=f"session.protect(..., memory={as_given(memory)})",
            remedy='write for example memory="2GB", a number of bytes, or memory="auto"',
        )
    return size


def _factor(unit: str) -> int:
    return (_UNITS | _UNITS_OF_TWO)[unit.lower()]


def _of_machine() -> int:
    """The memory of the machine, or what the control group of this process may take."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUPS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError):
            continue
        found += [int(text)] if text.isdigit() else []
    return min(found)


def room_for(memory: int, files: Iterable[object], spills: bool) -> Room | None:
    """The room for rows of some files, or of frames in memory of some bytes; None where all fit at
    once. Of other rows nobody knows how many there are.

    Parameters
    ----------
    files
        Paths and numbers of bytes.
    """
    sizes = [_size(file) for file in files]
    free = max(memory - _LEAST, _SMALLEST)
    if not sizes or None in sizes:
        return Room(_UNKNOWN, spills)
    buckets = -(-sum(size or 0 for size in sizes) * _GROWTH // free)
    return None if buckets <= 1 else Room(min(buckets, _MOST), spills and buckets > _FEW)


def _size(file: object) -> int | None:
    if isinstance(file, int):
        return file
    try:
        return os.path.getsize(str(file))
    except OSError:
        return None
