"""Sections as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframe.core.visible import visible
from dpframe.report.story import Section


def markdown(sections: Iterable[Section]) -> str:
    """A heading for each section, and nested lists below it."""
    return "\n".join(_lines(sections))


def _lines(sections: Iterable[Section]) -> Iterator[str]:
    yield "# Plan"
    for section in sections:
        yield ""
        yield f"## {section.title.capitalize()}"
        yield ""
        for number, item in section.entries():
            yield f"{number or '- '}{_escape(item.head)}"
            yield from (f"    - {_escape(line)}" for line in item.details)


def _escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    text = visible(text)
    for character in "\\`*_{}[]<>#|~&$":
        text = text.replace(character, "\\" + character)
    return text
