"""Text from another person, made safe to show: on one line, and read in one direction."""

from __future__ import annotations


def visible(text: str) -> str:
    """Text without characters that make new lines, move a terminal's cursor, turn the reading
    direction, or are invisible: each is written as Python does, such as ``\\n`` or ``\\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(name: str) -> str:
    """A name between back quotes, which end where it does."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def shortened(text: str, length: int) -> str:
    """The first characters of a long text, with dots where something was left out."""
    return text if len(text) <= length else text[: length - 3] + "..."
