"""Sections as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframe.core.visible import visible
from dpframe.report.story import Section


def text(sections: Iterable[Section]) -> str:
    """A tree: sections, items, and their details."""
    return "\n".join(_lines(sections))


def _lines(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield section.title
        for number, item in section.entries():
            yield f"  {number}{visible(item.head)}"
            indent = " " * (2 + len(number) + 2)
            yield from (f"{indent}{visible(line)}" for line in item.details)
