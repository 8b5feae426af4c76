"""Plans as text, Markdown and Mermaid, and in any format that people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from dpframe.core.tree import shorten, visible
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import KeyMechanism, ReportMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.plan.several import blocks_of
from dpframe.report.difference import differences
from dpframe.report.errors import about, size_of, typical_of
from dpframe.report.first_page import DETAILS, Entry, first_page
from dpframe.report.html import html
from dpframe.report.numbers import separated, shown
from dpframe.report.story import Chapter, amounts, chapters, risks_in

# Plans as plain text and as Markdown: the first page, and below it the details, or where they are.

_LABEL = 11
"""Where lines begin after a label."""
_WIDEST = 48
"""Columns of outputs are no wider."""


def text(page: Iterable[Entry], chapters: Sequence[Chapter]) -> str:
    """A plan as plain text, with details as a tree."""
    lines = list[str]()
    for entry in page:
        if entry.numbered:
            lines.append(entry.label)
            lines += (f"  {n}. {visible(line)}" for n, line in enumerate(entry.lines, 1))
            continue
        labels = (entry.label, *("" for _ in entry.lines[1:]))
        pairs = zip(labels, entry.lines, strict=True)
        lines += (f"{label:{_LABEL}}{visible(line)}" for label, line in pairs)
        cells = [tuple(map(visible, one.cells)) for one in entry.outputs]
        widths = [min(_WIDEST, max(map(len, column))) for column in zip(*cells, strict=True)]
        for row in cells:
            shown = (f"{cell:{w}}" for cell, w in zip(row, widths, strict=True) if w)
            lines.append(f"  {'  '.join(shown)}".rstrip())
    lines += ["", "DETAILS"] if chapters else [f"{'Details':{_LABEL}}{DETAILS}"]
    for chapter in chapters:
        lines += [f"  {visible(chapter.title)}"] if chapter.title else []
        left = "    " if chapter.title else "  "
        for section in chapter.sections:
            lines.append(f"{left}{section.title}")
            for number, item in section.entries():
                lines.append(f"{left}  {number}{visible(item.head)}")
                inside = " " * (len(left) + len(number) + 4)
                lines += (f"{inside}{visible(line)}" for line in item.details)
    return "\n".join(lines)


def markdown(page: Iterable[Entry], chapters: Sequence[Chapter]) -> str:
    """A plan as Markdown, with outputs as a table; details have a heading for each chapter, where
    there are several, and section, and nested lists.
    """
    lines = ["# Plan"]
    for entry in page:
        shown = tuple(map(_escape, entry.lines))
        if entry.numbered:
            lines += ["", f"## {_escape(entry.label)}", ""]
            lines += (f"{n}. {line}" for n, line in enumerate(shown, 1))
            continue
        lines += ["", f"**{_escape(entry.label)}** " + "  \n".join(shown)]
        if entry.outputs:
            lines += ["", "| output | error | verdict | what it is |", "| --- | --- | --- | --- |"]
            lines += (f"| {' | '.join(map(_escape, one.cells))} |" for one in entry.outputs)
    lines += ["", "## Details" if chapters else f"**Details** {_escape(DETAILS)}"]
    for chapter in chapters:
        lines += ["", f"### {_escape(chapter.title.capitalize())}"] if chapter.title else []
        heading = "####" if chapter.title else "###"
        for section in chapter.sections:
            lines += ["", f"{heading} {section.title.capitalize()}", ""]
            for number, item in section.entries():
                lines.append(f"{number or '- '}{_escape(item.head)}")
                lines += (f"    - {_escape(line)}" for line in item.details)
    return "\n".join(lines)


def _escape(text: str) -> str:
    """Text that Markdown shows unchanged, on one line."""
    text = visible(text)
    for character in "\\`*_{}[]<>#|~&$":
        text = text.replace(character, "\\" + character)
    return text


# Facts about a plan in a few characters, for tables and diagrams.


def error(release: NoisyAggregate) -> str:
    """How far off it may be, with 95% confidence."""
    if release.mechanism == "none":
        return ""
    if isinstance(release.law, ReportMechanism):
        return f"± {about(release.law.error_per_root(0.95))} √rows"
    found = about(release.accuracy())
    if isinstance(release.law, KeyMechanism):
        return f"groups of {found}"
    return f"{found} below best" if release.candidates is not None else f"± {found}"


# Plans as Mermaid flowcharts, which many trackers and wikis draw.

_LONGEST = 120
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:=+/'()[]_")
_MARKS = re.compile("([$°ﬂ¶])(?=[$°ß])")


def mermaid(plan: PlanData) -> str:
    """Risks, and the way from private rows through releases to outputs; only releases cross the
    line.

    Long operations and risks are shortened: the diagram shows the way, the other formats say
    everything.
    """
    return "\n".join(_lines(plan))


def _lines(plan: PlanData) -> Iterator[str]:
    yield from ("---", f'title: "{amounts(plan.cost)} in all"', "---", "flowchart TD")
    if risks := list(risks_in(plan)):
        yield '  subgraph risks["risks, to be decided on"]'
        yield from (f"    risk{at}>{_label(risk)}]" for at, risk in enumerate(risks, start=1))
        yield "  end"
    yield '  subgraph private["private rows, which never come out"]'
    blocks = list(blocks_of(plan))
    marks = [f"_{number}" if plan.blocks else "" for number in range(1, len(blocks) + 1)]
    for block, mark in zip(blocks, marks, strict=True):
        yield from _private(block, mark)
    yield "  end"
    number, firsts = 0, dict[tuple[str, int], int]()
    for block, mark in zip(blocks, marks, strict=True):
        for release in block.releases:
            number += 1
            first = firsts.setdefault((mark, release.draw), number) == number
            yield f"  release{number}{{{{{_label(*_words(release, first))}}}}}"
            yield f"  {_last(block, mark)} ==> release{number}"
    for at, output in enumerate(plan.outputs, start=1):
        yield f"  output{at}([{_label(f'{output.name} = {output.words}')}])"
        for number, release in enumerate(plan.releases, start=1):
            if output.name in release.users:
                yield f"  release{number} --> output{at}"


def _private(plan: PlanData, mark: str) -> Iterator[str]:
    """What is done to a frame."""
    last = f"source{mark}"
    yield f"    {last}[({_label(plan.source, plan.unit.words())})]"
    for number, step in enumerate(plan.steps, start=1):
        yield f"    step{number}{mark}[{_label(step.words)}]"
        yield f"    {last} --> step{number}{mark}"
        last = f"step{number}{mark}"
    if plan.grouping is not None:
        yield f"    groups{mark}[{_label(plan.grouping)}]"
        yield f"    {last} --> groups{mark}"


def _last(plan: PlanData, mark: str) -> str:
    """The node that releases are made from."""
    if plan.grouping is not None:
        return f"groups{mark}"
    return f"step{len(plan.steps)}{mark}" if plan.steps else f"source{mark}"


def _words(release: NoisyAggregate, first: bool) -> Iterator[str]:
    """Its noise and error, and at the first of those that are drawn jointly what all cost."""
    yield f"{release.name}: {release.aggregate}"
    yield release.law.label
    if release.scale:
        yield f"scale {shown(release.scale, 4)}"
    if release.mechanism != "none":
        yield f"95%: {separated(error(release))}"
        if release.joint is None:
            yield amounts(release.cost)
        elif first:
            yield f"{amounts(release.cost)} for the whole vector"
        else:
            yield "part of the same vector, already paid"


def _label(*lines: str) -> str:
    """Lines of a node, quoted."""
    return '"' + "<br/>".join(_text(line) for line in lines) + '"'


def _text(text: str) -> str:
    """Text that Mermaid shows unchanged: all special characters are written by their numbers.

    A zero-width space separates signs that Mermaid would read as a formula or as the number of a
    character.
    """
    shown = _MARKS.sub("\\1\u200b", shorten(visible(text), _LONGEST))
    return "".join(c if c in _PLAIN else f"#{ord(c)};" for c in shown)


# Plans in the formats that people read.

Format: TypeAlias = Literal["text", "markdown", "html", "mermaid"]


def render(
    plan: PlanData,
    format: str,
    # `size`, `typical`: guesses of the individuals in each group, and of values of columns, for
    # risks.
    size: int | None = None,
    typical: Mapping[str, object] | None = None,
    *,
    details: bool = False,  # Whether all that is behind the first page follows
    since: PlanData | None = None,  # A plan that was approved before, to compare with
    fingerprint: str = "",  # Shown on a page of HTML; without it HTML is a fragment
) -> str:
    """The plan in one of the formats. Raises `UnsupportedOperation` for a format that does not
    exist. Raises `InvalidBounds` for a guess that is not a positive integer, or no number.
    """
    number = None if size is None else size_of(size)
    changes = None if since is None else tuple(differences(since, plan))
    page = first_page(plan, number, typical_of(typical or {}), changes)
    match format:
        case "text":
            return text(page, chapters(plan) if details else ())
        case "markdown":
            return markdown(page, chapters(plan) if details else ())
        case "html":
            return html(plan, page, chapters(plan), fingerprint=fingerprint, is_open=details)
        case "mermaid":
            return mermaid(plan)
        case _:
            raise UnsupportedOperation(
                f"a plan cannot be printed as {format!r}",
                where="explain(format=...)",
                remedy='write format="text", "markdown", "html" or "mermaid"',
            )
