"""Text that somebody else chose, made safe to show: on one line, and read in one direction."""

from __future__ import annotations


def visible(text: str) -> str:
    """Text in which nothing can pass for lines of their own, move a terminal's cursor, turn the
    direction in which it is read, or not be seen: each such character is written as Python does,
    such as ``\\\\n`` or ``\\\\u202e``.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
