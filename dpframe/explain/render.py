"""Plans as text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dpframe.errors import UnsupportedOperation
from dpframe.explain.story import Item, Section, story
from dpframe.explain.visible import visible

if TYPE_CHECKING:
    from dpframe.plan import Plan


def render(plan: Plan, format: str) -> str:
    """The plan in one of the formats.

    Raises
    ------
    UnsupportedOperation
        For a format that does not exist.
    """
    match format:
        case "text":
            return "\n".join(_text(story(plan)))
        case "markdown":
            return "\n".join(_markdown(story(plan)))
        case _:
            raise UnsupportedOperation(
                f"a plan cannot be explained as {format!r}",
                where="explain(format=...)",
                remedy='use "text" or "markdown"',
            )


def _numbered(section: Section) -> Iterator[tuple[str, Item]]:
    for number, item in enumerate(section.items, start=1):
        yield f"{number}. " if section.numbered else "", item


def _text(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield section.title
        for number, item in _numbered(section):
            yield f"  {number}{visible(item.head)}"
            indent = " " * (2 + len(number) + 2)
            yield from (f"{indent}{visible(line)}" for line in item.details)


def _markdown(sections: Iterable[Section]) -> Iterator[str]:
    yield "# Plan"
    for section in sections:
        yield ""
        yield f"## {section.title.capitalize()}"
        yield ""
        for number, item in _numbered(section):
            yield f"{number or '- '}{_escape(item.head)}"
            yield from (f"    - {_escape(line)}" for line in item.details)


def _escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    text = visible(text)
    for character in "\\`*_{}[]<>#|~&$":
        text = text.replace(character, "\\" + character)
    return text
