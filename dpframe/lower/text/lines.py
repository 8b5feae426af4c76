"""Lines of files, some at a time. Total: each byte sequence is a sequence of lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

BLOCK = 1 << 22
"""Bytes that are read at a time."""
LONGEST = 1 << 20
"""Bytes of the longest line that is read, in UTF-8; a longer one is no record."""
_BOM = b"\xef\xbb\xbf"


def lines_of(path: Path, *, block: int = BLOCK) -> Iterator[pl.Series]:
    """The lines of a file in order, without their ends, as text; null where longer than `LONGEST`.

    A line ends with a line feed, before which a carriage return is dropped; the last one may end
    with the file. Invalid UTF-8 becomes U+FFFD. A line's text depends on its own bytes alone:
    UTF-8 has no line feed inside a character, and decoding begins again after one. How much is
    held depends on `block` and `LONGEST`, not on how long a line is.
    """
    rest, start = b"", True
    with path.open("rb") as file:
        while read := file.read(max(block, len(_BOM))):
            if start:
                read, start = read.removeprefix(_BOM), False
            end = read.rfind(b"\n")
            if end < 0:
                rest = (rest + read)[: LONGEST + 1]  # longer than the longest all the same
                continue
            yield _decoded(rest + read[:end])
            rest = read[end + 1 :]
    if rest:
        yield _decoded(rest)


def _decoded(lines: bytes) -> pl.Series:
    """Lines that are joined by line feeds. Bytes that are not UTF-8 do not get fewer by decoding,
    so what is too long stays so.
    """
    text = pl.Series("line", [lines.decode("utf-8", errors="replace")], dtype=pl.String)
    found = pl.DataFrame({"line": text.str.split("\n").explode()})
    line = pl.col("line")
    short = pl.when(line.str.len_bytes() <= LONGEST).then(line.str.strip_suffix("\r"))
    return found.select(short.alias("line")).to_series()


def first_line(path: Path) -> bytes | None:
    """The first line of a file without its end; None where it is longer than `LONGEST`."""
    with path.open("rb") as file:
        line = file.readline(LONGEST + len(_BOM) + 2)
    if len(line) > LONGEST and not line.endswith(b"\n"):
        return None
    return line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")
