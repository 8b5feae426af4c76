"""Plans as HTML, for notebooks and review pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import assert_never

from dpframe.core.budget import Budget
from dpframe.core.exact import nearest
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.report.chapters import Chapter
from dpframe.report.labels import error, mechanism, outputs
from dpframe.report.markup import (
    bar,
    chapter_title,
    code,
    escaped,
    fragment,
    head,
    line,
    listed,
    named,
    numbered,
    opening,
    quiet,
    row,
    table,
    title,
)
from dpframe.report.numbers import separated, shown
from dpframe.report.story import RISKS, Draws, Item, Section, amounts

_HEADS = ("release", "L0", "L1", "L2", "Linf", "mechanism", "scale", "95% error", "cost", "")
_NAMES = ("", "L0", "L1", "L2", "Linf", "mechanism", "scale", "95% error", "cost", "share")
"""What cells are called where each has a line of its own."""
_OVER = {1: ("sensitivity", 4)}
_NUMBERS = (1, 2, 3, 4, 6, 7, 8)
_PEOPLE = {"laplace": "Laplace", "gaussian": "Gaussian"}


def html(plan: PlanData, chapters: Sequence[Chapter]) -> str:
    """The plan as a fragment of a page, with risks first.

    Parameters
    ----------
    plan, chapters
        The plan, and what there is to say about it.
    """
    sections = [section for chapter in chapters for section in chapter.sections]
    remark = f"{amounts(plan.cost)} ({plan.cost.measure}); made from schemas, without data"
    pieces = [head("Plan for", plan.source, remark)]
    pieces += [_risks(section) for section in sections if section.title == RISKS]
    for chapter in chapters:
        pieces += [chapter_title(chapter.title)] if chapter.title else []
        for section in chapter.sections:
            if section.title != RISKS:
                pieces += [title(section.title), _section(chapter.plan, section, chapter.draws)]
    return fragment(*pieces)


def _section(plan: PlanData, section: Section, draws: Draws) -> str:
    match section.title:
        case "releases":
            return _releases(plan, section, draws)
        case "queries":
            return numbered(line(item.head) for item in section.items)
        case "parameters":
            return listed(code(item.head) for item in section.items)
        case "outside the fingerprint":
            return _session(plan, section)
        case "rows" if section.numbered:
            return numbered(_opens(item) for item in section.items)
        case "notes":
            return listed(quiet(item.head) for item in section.items)
        case "risks" | "limit" | "protects" | "rows" | "groups" | "budget":
            return "".join(_paragraph(item) for item in section.items)
        case "outputs, computed from the releases at no further cost":
            return table(("output", "how it comes about"), _outputs(plan, section), cards=True)
        case _:
            assert_never(section.title)


def _risks(section: Section) -> str:
    heads = listed(line(item.head) for item in section.items)
    return (
        f'<div class="dpf-warn" role="note"><strong>{escaped(section.title)}</strong>{heads}</div>'
    )


def _paragraph(item: Item) -> str:
    return f"<p>{line(item.head)}</p>{listed(quiet(detail) for detail in item.details)}"


def _opens(item: Item) -> str:
    return opening(code(item.head), listed(line(detail) for detail in item.details))


def _outputs(plan: PlanData, section: Section) -> Iterator[str]:
    for (name, words), item in zip(outputs(plan), section.items, strict=True):
        notes = "".join(f"<br>{quiet(detail)}" for detail in item.details)
        yield row((named(name), code(words) + notes))


def _releases(plan: PlanData, section: Section, draws: Draws) -> str:
    rows = []
    for number, (release, item) in enumerate(zip(plan.releases, section.items, strict=True), 1):
        share = nearest(draws.share(release.cost))
        rows.append(row(_cells(release, number, share), _NUMBERS, _NAMES))
        rows.append(f'<tr><td class="dpf-more" colspan="{len(_HEADS)}">{_details(item)}</td></tr>')
    return table(_HEADS, rows, _NUMBERS, _OVER, cards=True)


def _cells(release: NoisyAggregate, number: int, share: float) -> tuple[str, ...]:
    s = release.sensitivity
    return (
        f"{number}. {named(release.name)} {quiet(release.aggregate)}",
        *(shown(number, 4) for number in (s.l0, s.l1, s.l2, s.linf)),
        escaped(mechanism(release)).replace(" ", "&nbsp;"),
        shown(release.scale, 4) if release.scale else "",
        escaped(separated(error(release))),
        _paid(release.cost),
        bar([("used", share)], f"{share:.0%} of the plan", small=True) + quiet(f"{share:.0%}"),
    )


def _paid(cost: Budget) -> str:
    """What a release costs, rounded; the details say more."""
    slack = f"<br>delta {shown(cost.slack, 4)}" if cost.slack else ""
    return f"{cost.currency} {shown(cost.main, 4)}{slack}"


def _details(item: Item) -> str:
    contents = item.head.partition("]: ")[2] or item.head
    return opening(line(contents), listed(line(detail) for detail in item.details))


def _session(plan: PlanData, section: Section) -> str:
    drawn = ""
    if plan.remaining is not None:
        drawn = _drawn(plan.remaining.main, plan.cost.main, plan.remaining.covers(plan.cost))
    return drawn + "".join(_paragraph(item) for item in section.items)


def _drawn(before: Fraction, cost: Fraction, fits: bool) -> str:
    """What the plan takes of what the session has left."""
    if not fits:
        return bar([("excess", 1.0)], "more than the session has left")
    share = nearest(cost / before) if before else 0.0
    return bar([("used", share)], f"{share:.0%} of what the session has left")
