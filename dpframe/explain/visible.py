"""Names and constants of analysts, made safe to show."""

from __future__ import annotations

__all__ = ["quoted", "shortened", "visible"]


def visible(text: str) -> str:
    """Text on one line: nothing that an analyst chose can pass for lines of the plan, nor turn the
    direction in which it is read.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(name: str) -> str:
    """A name between back quotes, which end where it does."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def shortened(text: str, length: int) -> str:
    """The first characters of a long text, with dots where something was left out."""
    return text if len(text) <= length else text[: length - 3] + "..."
