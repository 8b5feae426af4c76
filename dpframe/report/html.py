"""Plans as HTML: a whole page for reviewers, a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from dpframe.core.exact import nearest
from dpframe.plan import PlanData
from dpframe.report.chapters import Chapter
from dpframe.report.first_page import DECIDE, QUESTIONS, RISKS, Entry, spend_words
from dpframe.report.markup import (
    bar,
    code,
    escaped,
    fragment,
    line,
    listed,
    named,
    numbered,
    opening,
    page,
    quiet,
    row,
    section,
    table,
)
from dpframe.report.story import Item, Section

_OUTPUTS = ("output", "error", "verdict", "what it is")
_CODE = frozenset(("rows", "outputs"))
"""Sections whose heads are code."""


def html(
    plan: PlanData,
    entries: Sequence[Entry],
    chapters: Sequence[Chapter],
    *,
    fingerprint: str = "",
    is_open: bool = False,
) -> str:
    """The first page, and the details to be opened.

    Parameters
    ----------
    plan, entries, chapters
        The plan, its first page, and its details.
    fingerprint
        The plan's fingerprint, for a separate page that ends with it. Empty for HTML that becomes
        part of another page.
    is_open
        Whether the details are open.
    """
    whole = bool(fingerprint)
    pieces = [_entry(plan, entry, whole) for entry in entries]
    pieces.append(section("Details", _details(chapters, is_open), "details" if whole else ""))
    if not whole:
        return fragment(f'<div class="dpf-head">Plan for {named(plan.source)}</div>', *pieces)
    pieces.append(f'<p class="dpf-quiet">fingerprint {code(fingerprint)}</p>')
    links = [("decide", "Decide"), ("publishes", "Publishes")]
    links += [("questions", "Questions")] if any(e.label == QUESTIONS for e in entries) else []
    return page(f"Plan for {plan.source}", [*links, ("details", "Details")], pieces)


def _entry(plan: PlanData, entry: Entry, whole: bool) -> str:
    anchors = {DECIDE: "decide", RISKS: "risks", QUESTIONS: "questions"}
    anchor = anchors.get(entry.label, "publishes" if entry.outputs else "") if whole else ""
    if entry.numbered:
        inside = numbered(line(one) for one in entry.lines)
    else:
        inside = "".join(f"<p>{line(one)}</p>" for one in entry.lines)
    if entry.label == DECIDE:
        return f'<div class="dpf-decide"{_id(anchor)}>{inside}</div>'
    if entry.label == RISKS:
        return (
            f'<div class="dpf-warn" role="note"{_id(anchor)}><strong>Risks</strong>{inside}</div>'
        )
    if entry.outputs:
        inside += table(_OUTPUTS, _outputs(entry), cards=True)
    if entry.label == "Spends":
        inside = _spent_share(plan) + inside
    return section(entry.label, inside, anchor)


def _id(anchor: str) -> str:
    return f' id="{anchor}"' if anchor else ""


def _outputs(entry: Entry) -> Iterator[str]:
    for one in entry.outputs:
        cells = (named(one.name), line(one.error), line(one.verdict), line(one.words))
        yield row(cells, heads=("", *_OUTPUTS[1:]))


def _details(chapters: Sequence[Chapter], is_open: bool) -> str:
    result = ""
    for chapter in chapters:
        if chapter.title:
            shown = escaped(chapter.title[:1].upper() + chapter.title[1:])
            result += f'<p class="dpf-chapter">{shown}</p>'
        for part in chapter.sections:
            result += opening(escaped(part.title), _section(part), is_open=is_open)
    return result


def _section(part: Section) -> str:
    items = (_item(item, part.title in _CODE) for item in part.items)
    return numbered(items) if part.numbered else listed(items)


def _item(item: Item, is_code: bool) -> str:
    first = code(item.head) if is_code else line(item.head)
    return first + listed(quiet(detail) for detail in item.details)


def _spent_share(plan: PlanData) -> str:
    """What the plan takes of what the session has left."""
    if plan.remaining is None:
        return ""
    before, cost = plan.remaining.main, plan.cost.main
    if not plan.remaining.covers(plan.cost):
        return bar([("excess", 1.0)], f"{spend_words(plan.cost)}, more than is left", small=True)
    share = nearest(cost / before) if before else Fraction(0)
    return bar([("used", float(share))], f"{float(share):.0%} of what is left", small=True)
