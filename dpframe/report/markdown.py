"""Chapters as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframe.core.visible import visible
from dpframe.report.chapters import Chapter
from dpframe.report.story import Section


def markdown(chapters: Iterable[Chapter]) -> str:
    """A heading for each chapter, where there are several, and section, and nested lists."""
    return "\n".join(_lines(chapters))


def _lines(chapters: Iterable[Chapter]) -> Iterator[str]:
    yield "# Plan"
    for chapter in chapters:
        if chapter.title:
            yield ""
            yield f"## {_escape(chapter.title.capitalize())}"
        for section in chapter.sections:
            yield from _section(section, "###" if chapter.title else "##")


def _section(section: Section, heading: str) -> Iterator[str]:
    yield ""
    yield f"{heading} {section.title.capitalize()}"
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
