"""Names and constants of analysts, made safe to show."""

from __future__ import annotations


def visible(text: str) -> str:
    """Text on one line: nothing that an analyst chose can pass for lines of the plan."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, length: int) -> str:
    """The first characters of a long text, with dots where something was left out."""
    return text if len(text) <= length else text[: length - 3] + "..."
