"""Text that an analyst chose, on one line."""

from __future__ import annotations

__all__ = ["quoted", "visible"]


def visible(text: str) -> str:
    """Text on one line: names and constants of an analyst cannot pass for lines of the plan, nor
    turn the direction in which it is read.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(name: str) -> str:
    """A name between back quotes, which end where it does."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"
