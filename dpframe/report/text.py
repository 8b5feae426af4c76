"""Plans as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpframe.core.visible import visible
from dpframe.report.chapters import Chapter
from dpframe.report.first_page import DETAILS, Entry, OutputLine
from dpframe.report.story import Section

_LABEL = 11
"""Where lines begin after a label."""
_WIDEST = 48
"""Columns of outputs are no wider."""


def text(page: Iterable[Entry], chapters: Sequence[Chapter]) -> str:
    """The first page, and below it the details as a tree, or where they are."""
    lines = [line for entry in page for line in _entry(entry)]
    if not chapters:
        return "\n".join([*lines, f"{'Details':{_LABEL}}{DETAILS}"])
    lines += ["", "DETAILS"]
    return "\n".join([*lines, *(f"  {line}" for chapter in chapters for line in _chapter(chapter))])


def _entry(entry: Entry) -> Iterator[str]:
    if entry.numbered:
        yield entry.label
        yield from (f"  {n}. {visible(line)}" for n, line in enumerate(entry.lines, 1))
        return
    label = f"{entry.label:{_LABEL}}"
    for line in entry.lines:
        yield f"{label}{visible(line)}"
        label = " " * _LABEL
    yield from _table(entry.outputs)


def _table(outputs: Sequence[OutputLine]) -> Iterator[str]:
    """Outputs below each other, in columns."""
    cells = [
        [visible(cell) for cell in (one.name, one.error, one.verdict, one.words)] for one in outputs
    ]
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True) if w)
        yield f"  {line}".rstrip()


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
