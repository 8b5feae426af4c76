"""Chapters as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpframe.core.visible import visible
from dpframe.report.chapters import Chapter
from dpframe.report.story import Section


def text(chapters: Iterable[Chapter]) -> str:
    """A tree: chapters where there are several, sections, items, and their details."""
    return "\n".join(line for chapter in chapters for line in _chapter(chapter))


def _chapter(chapter: Chapter) -> Iterator[str]:
    if not chapter.title:
        yield from _lines(chapter.sections)
        return
    yield visible(chapter.title)
    yield from (f"  {line}" for line in _lines(chapter.sections))


def _lines(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield section.title
        for number, item in section.entries():
            yield f"  {number}{visible(item.head)}"
            indent = " " * (2 + len(number) + 2)
            yield from (f"{indent}{visible(line)}" for line in item.details)
