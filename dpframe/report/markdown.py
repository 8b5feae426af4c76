"""Plans as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpframe.core.visible import visible
from dpframe.report.chapters import Chapter
from dpframe.report.first_page import DETAILS, Entry
from dpframe.report.story import Section


def markdown(page: Iterable[Entry], chapters: Sequence[Chapter]) -> str:
    """The first page, with outputs as a table; below it the details, with a heading for each
    chapter, where there are several, and section, and nested lists.
    """
    lines = ["# Plan", *(line for entry in page for line in _entry(entry))]
    if not chapters:
        lines += ["", f"**Details** {_escape(DETAILS)}"]
    else:
        lines += ["", "## Details", *(line for chapter in chapters for line in _chapter(chapter))]
    return "\n".join(lines)


def _entry(entry: Entry) -> Iterator[str]:
    yield ""
    if entry.numbered:
        yield f"## {_escape(entry.label)}"
        yield ""
        yield from (f"{n}. {_escape(line)}" for n, line in enumerate(entry.lines, 1))
        return
    first, *rest = entry.lines
    yield f"**{_escape(entry.label)}** {_escape(first)}" + ("  " if rest else "")
    yield from (f"{_escape(line)}" + ("  " if line != rest[-1] else "") for line in rest)
    if entry.outputs:
        yield ""
        yield "| output | error | verdict | what it is |"
        yield "| --- | --- | --- | --- |"
        for one in entry.outputs:
            cells = map(_escape, (one.name, one.error, one.verdict, one.words))
            yield f"| {' | '.join(cells)} |"


def _chapter(chapter: Chapter) -> Iterator[str]:
    if chapter.title:
        yield ""
        yield f"### {_escape(chapter.title.capitalize())}"
    for section in chapter.sections:
        yield from _section(section, "####" if chapter.title else "###")


def _section(section: Section, heading: str) -> Iterator[str]:
    yield ""
    yield f"{heading} {section.title.capitalize()}"
    yield ""
    for number, item in section.entries():
        yield f"{number or '- '}{_escape(item.head)}"
        yield from (f"    - {_escape(line)}" for line in item.details)


def _escape(text: str) -> str:
    """Text that Markdown shows unchanged, on one line."""
    text = visible(text)
    for character in "\\`*_{}[]<>#|~&$":
        text = text.replace(character, "\\" + character)
    return text
