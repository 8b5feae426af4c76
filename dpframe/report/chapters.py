"""Plans as chapters: one for a plan of one query. A plan of several queries has one for each frame
with its groups, and one for all queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.aggregates.rebuilt_error import RebuiltError
from dpframe.plan import PlanData
from dpframe.plan.pieces import REACH, FoundLimit
from dpframe.plan.several import blocks_of
from dpframe.report.errors import errors_of, rounded
from dpframe.report.risks import notes_of, risks_of
from dpframe.report.story import (
    NOTES,
    Draws,
    Item,
    Section,
    cost_sections,
    draws_by_block,
    draws_of,
    frame_sections,
    said,
    story,
)
from dpframe.report.structure import differencing, starved, yearly_risk
from dpframe.report.too_wide import Typical
from dpframe.report.windows import windows_words

_USELESS: Final = 20_000
"""A plan without a guess of its size has a risk if an error is above a tenth of this many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Chapter:
    """A part of the details of a plan.

    Parameters
    ----------
    title
        The heading; empty where a plan has no other chapter.
    plan
        The plan, or the block of a plan, that the chapter describes.
    sections
        The contents.
    draws
        All draws whose costs are added to those in the chapter.
    """

    title: str
    plan: PlanData
    sections: tuple[Section, ...]
    draws: Draws


def chapters(plan: PlanData) -> tuple[Chapter, ...]:
    """The details of a plan, in the order in which a reviewer asks."""
    notes = tuple(notes_in(plan))
    if not plan.blocks:
        return (Chapter("", plan, story(plan, notes), draws_of(plan)),)
    draws, blocks = draws_by_block(plan), list(blocks_of(plan))
    section = Section("queries", tuple(_query_items(plan)), numbered=True)
    title = "several queries, one plan and one charge"
    if plan.found is not None:
        section = Section("limit", (_limit(plan, plan.found),))
        title = "a limit that is found first, one plan and one charge"
    return (
        Chapter(title, plan, (section,), draws[0]),
        *(
            Chapter(queries_of_block(plan, number), block, tuple(frame_sections(block, own)), own)
            for number, (block, own) in enumerate(zip(blocks, draws, strict=True))
        ),
        Chapter(
            "both" if plan.found is not None and len(blocks) == 2 else "all queries",
            plan,
            (*cost_sections(plan), *said(NOTES, (*windows_words(plan), *notes))),
            draws[0],
        ),
    )


def risks_in(plan: PlanData, size: int | None = None, typical: Typical = ()) -> Iterator[str]:
    """What the reviewer must decide, with the queries concerned if these are not all."""
    found = list(_with_queries(plan, [risks_of(block, typical, size) for block in blocks_of(plan)]))
    found += starved(plan)
    yield from found
    yield from yearly_risk(plan)
    yield from differencing(plan)
    if not any("noise" in risk for risk in found):  # such a risk explains the large error
        yield from _of_noise(plan, size)


def _of_noise(plan: PlanData, size: int | None) -> Iterator[str]:
    """Outputs that only very many rows make useful."""
    if size is not None:  # with a guess, the first page judges the error
        return
    blocks = list(blocks_of(plan))
    for block in blocks[1:] if plan.found is not None else blocks:
        for output, error in zip(block.outputs, errors_of(plan, block), strict=True):
            if error.enough is not None and error.enough > _USELESS:
                yield (
                    f"{output.name!r} ({error.words}) is so noisy that it says little about fewer "
                    f"than {rounded(error.enough)} rows; spend more, lower limits or narrow bounds"
                )


def notes_in(plan: PlanData) -> Iterator[str]:
    """What the reviewer should know, with the queries concerned if these are not all."""
    return _with_queries(plan, [notes_of(block) for block in blocks_of(plan)])


def queries_of_block(plan: PlanData, number: int) -> str:
    """Which queries are answered from a frame and its groups."""
    if plan.found is not None:
        return _SEARCHED[min(number, len(_SEARCHED) - 1)]
    found = [str(n) for n, query in enumerate(plan.queries, start=1) if query.block == number]
    return f"quer{'y' if len(found) == 1 else 'ies'} {listed(found)}"


def listed(words: Sequence[str]) -> str:
    """Words in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _limit(plan: PlanData, found: FoundLimit) -> Item:
    """Which limits may be found, how, and why that is safe."""
    last = found.choices[-1]
    name = plan.outputs[plan.queries[1].outputs[0]].name
    errors = [f"{c.error:g} under {c.n}" for c in found.choices if c.error is not None]
    share = percent(found.share)
    return Item(
        f"{found.words('n')}, with n found when the query runs",
        (
            f"n is one of {', '.join(str(choice.n) for choice in found.choices)}: "
            f"{_rule(plan, found)}, by a noisy histogram that has {share} of the spend",
            "noise fits the limit that is found; the charge is what the query costs under the most "
            "expensive limit, so the guarantee holds whichever is found",
            f"intervals also cover what the limit drops, if no person has more than {REACH[0]} n "
            f"{'groups' if found.by else 'rows'}, or {REACH[1]:,} where that is more",
            *([f"95% error of `{name}`: {', '.join(errors)}"] if errors else []),
            f"shown below under the largest, {found.words(last.n)}",
        ),
    )


def _rule(plan: PlanData, found: FoundLimit) -> str:
    """Which of the limits is taken."""
    if not found.is_by_loss:
        return "the least that all but 1% of individuals keep"
    what = f"{'groups' if found.by else 'rows'} of individuals"
    least = f"the one with the least error from dropped {what} and from noise together"
    asked = plan.blocks[1]
    if asked.grouping is None or asked.groups is not None:
        return least
    return f"{least}, of those that let a group of usual size appear"


def percent(share: Fraction) -> str:
    """A share as people write it."""
    return f"{float(share * 100):g}%"


_SEARCHED = ("the search for the limit", "the query", "what limits drop")
"""The names of blocks where the first one finds a limit for the others."""
_RELATED = ", group_by(grouping_sets("
"""The beginning of groups that serve several queries with different groups."""


def _query_items(plan: PlanData) -> Iterator[Item]:
    sets = [_sets(block) for block in blocks_of(plan)]
    for query in plan.queries:
        block = plan.blocks[query.block]
        groups = "" if block.grouping is None else f", {block.grouping.partition(': ')[0]}"
        if len(sets[query.block]) > 1 and groups.startswith(_RELATED):
            words = dict.fromkeys(plan.outputs[number].words for number in query.outputs)
            groups = f": {', '.join(words)}"
        yield Item(f"{', '.join(query.names)} of {block.source}{groups}")


def _sets(block: PlanData) -> set[tuple[tuple[int, ...], ...]]:
    """The grouping sets that outputs of a frame show."""
    return {o.error.sets for o in block.outputs if isinstance(o.error, RebuiltError)}


def _with_queries(plan: PlanData, by_block: Sequence[Sequence[str]]) -> Iterator[str]:
    found: dict[str, list[int]] = {}
    for number, sentences in enumerate(by_block):
        for sentence in dict.fromkeys(sentences):
            found.setdefault(sentence, []).append(number)
    for sentence, numbers in found.items():
        if len(numbers) < len(by_block):
            where = " and ".join(queries_of_block(plan, number) for number in numbers)
            sentence = f"{where}: {sentence}"
        yield sentence
