"""Names and constants of analysts, made safe to show."""

from __future__ import annotations

from dpframe.core.visible import visible

__all__ = ["quoted", "shortened", "visible"]


def quoted(name: str) -> str:
    """A name between back quotes, which end where it does."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def shortened(text: str, length: int) -> str:
    """The first characters of a long text, with dots where something was left out."""
    return text if len(text) <= length else text[: length - 3] + "..."
