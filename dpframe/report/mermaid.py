"""Plans as Mermaid flowcharts, which many trackers and wikis draw."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpframe.core.visible import shortened, visible
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.plan.several import blocks_of
from dpframe.report.chapters import risks_in
from dpframe.report.labels import error, mechanism, outputs
from dpframe.report.numbers import separated, shown
from dpframe.report.story import amounts

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
    yield from _risks(plan)
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
    for at, (name, words) in enumerate(outputs(plan), start=1):
        yield f"  output{at}([{_label(f'{name} = {words}')}])"
        for number, release in enumerate(plan.releases, start=1):
            if name in release.users:
                yield f"  release{number} --> output{at}"


def _risks(plan: PlanData) -> Iterator[str]:
    """What is to be decided on, in a box of its own."""
    risks = list(risks_in(plan))
    if risks:
        yield '  subgraph risks["risks, to be decided on"]'
        yield from (f"    risk{at}>{_label(risk)}]" for at, risk in enumerate(risks, start=1))
        yield "  end"


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
    yield mechanism(release)
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
    shown = _MARKS.sub("\\1\u200b", shortened(visible(text), _LONGEST))
    return "".join(c if c in _PLAIN else f"#{ord(c)};" for c in shown)
