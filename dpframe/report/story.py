"""A plan as sections of short lines, and as chapters for its frames, before any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Final, Literal, TypeAlias

from dpframe.aggregates.reconstructed_error import RebuiltError, RootError, RunningError
from dpframe.core.budget import Budget
from dpframe.core.exact import sqrt_up
from dpframe.core.units import Identifier
from dpframe.core.windows import NAMES, whole_person
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import KeyMechanism, ReportMechanism, SelectionMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.plan.data import REACH, FoundLimit
from dpframe.plan.several import blocks_of
from dpframe.report.errors import Typical, about, errors_of, rounded
from dpframe.report.numbers import bounds_separated, reword, separated, shown
from dpframe.report.risks import differencing, notes_of, risks_of, starved, yearly_risk

# What calendar windows mean for whom a plan protects, and what it reads of them.


def windows_words(plan: PlanData) -> Iterator[str]:
    """What an individual is, which windows are read, and what holds of a whole person."""
    if plan.windows is None or not isinstance(plan.unit, Identifier):
        return
    name, read = NAMES[plan.windows.every], plan.windows.words()
    yield f"an individual here is a person in one {name}"
    yield f"reads {read}" + ("" if plan.windows.are_all else "; all other rows are dropped first")
    yield whole_person(plan.windows.every)
    if not plan.windows.is_one:
        yield f"a count of individuals counts a person once in each {name} that is read"


def charged_words(plan: PlanData) -> str | None:
    """What a plan is charged to, of a budget for each window; None of other budgets."""
    if plan.windows is None or plan.budget is None or plan.budget.per is None:
        return None
    each = "" if plan.windows.is_one else f", the {NAMES[plan.budget.per]} with the least left"
    return f"charged to {plan.windows.words()}{each}"


# The price of a requested mechanism or split, in words.

_SHOWN: Final = 8
_SAME: Final = 0.005


def forced_words(plan: PlanData) -> str:
    """The request, and by which factor it increases errors."""
    names = sorted({plan.outputs[error.output].name for error in plan.forced if error.named})
    asked = [f"mechanism= of {', '.join(names)}"] if names else []
    asked += ['split="equal"'] if plan.split == "equal" else []
    said, least = f"{' and '.join(asked)}, as asked", "those of a plan with the least error"
    known = [(plan.outputs[e.output].name, e.times) for e in plan.forced if e.times is not None]
    if all(abs(times - 1) < _SAME for _, times in known):
        return f"{said}: errors are {least}"
    shown = [f"{name} {times:.3g}" for name, times in known[:_SHOWN]]
    more = f", and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{said}: errors relative to {least} are {', '.join(shown)}{more}"


_COMPOSED = {
    "numerical": "and their privacy loss distributions together keep this (Zhu, Dong and Wang "
    "2022, Theorem 10): less noise here than by adding up epsilons",
    "zcdp": "which implies this (zCDP, Canonne, Kamath and Steinke 2020): less noise here than by "
    "adding up epsilons",
}
_DIVIDED = {
    "least error": "for the least sum of the outputs' squared relative errors",
    "equal": "equally among the outputs",
    "weights": "by the weights of the outputs",
}


Title: TypeAlias = Literal[
    "limit", "queries", "rows", "groups", "noise", "outputs", "budget", "notes"
]
"""What the sections of the details are called, in the order in which they stand."""
NOTES: Final = "notes"


@dataclass(frozen=True, slots=True)
class Item:
    """One line with details below it."""

    head: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A titled list of items; numbered where their order matters."""

    title: Title
    items: tuple[Item, ...]
    numbered: bool = False

    def entries(self) -> Iterator[tuple[str, Item]]:
        """Each item with its number, such as ``"1. "``, or nothing."""
        for number, item in enumerate(self.items, start=1):
            yield f"{number}. " if self.numbered else "", item


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws whose costs add up, in one measure."""

    cost: Budget | None  # The cost of all these draws; None without draws
    part: Fraction = Fraction(1)  # Its share of the plan's cost

    def share(self, cost: Budget) -> Fraction:
        """The share of the plan's cost that one of them has."""
        if self.cost is None or self.cost.is_zero:
            return Fraction(0)
        if cost.measure != self.cost.measure:
            raise TypeError(f"a cost of {cost.measure} is no part of one of {self.cost.measure}")
        return self.part * cost.main / self.cost.main if self.cost.main else Fraction(0)


def draws_of(plan: PlanData) -> Draws:
    """All draws of a plan in which no limit is found."""
    return Draws(_total(plan.draws))


def draws_by_block(plan: PlanData) -> list[Draws]:
    """The draws that those of each block add up with. The search for a limit is paid in the plan's
    measure, and what is composed to the rest of the plan's cost may be amounts of rho.
    """
    if plan.found is None:
        return [draws_of(plan) for _ in plan.blocks]
    search, *others = (block.draws for block in blocks_of(plan))
    searched = _total(search)
    part = plan.cost.main and plan.found.choices[-1].cost.main / plan.cost.main
    rest = Draws(_total([release for releases in others for release in releases]), part)
    return [Draws(searched, 1 - part), *(rest for _ in others)]


def _total(releases: Iterable[NoisyAggregate]) -> Budget | None:
    """What draws cost together; costs in different measures are no sum."""
    costs = [release.cost for release in releases]
    return reduce(add, costs) if costs else None


def frame_sections(plan: PlanData, whole: Draws) -> Iterator[Section]:
    """What is done to a frame, and released of it; `whole`: what its own draws add up with."""
    if plan.steps:
        steps = (
            Item(
                step.words,
                tuple(reword(bounds_separated(w)) for w in (step.stability, *step.learned)),
            )
            for step in plan.steps
        )
        yield Section("rows", tuple(steps), numbered=True)
    if plan.grouping is not None:
        yield Section("groups", (_groups(plan),))
    yield Section("noise", tuple(_draws(plan, whole)), numbered=True)
    biased, items = is_biased(plan), list[Item]()
    for output in plan.outputs:
        note = separated(reword(output.note, biased=biased))
        items.append(Item(f"{output.name} = {output.words}", (note,) if note else ()))
    yield Section("outputs", tuple(items))


def _groups(plan: PlanData) -> Item:
    assert plan.grouping is not None
    if plan.best_group:
        return Item(plan.grouping, (f"keys: {plan.keys}", "rows with other values are dropped"))
    if plan.keys is None:
        (law, *_) = (r.law for r in plan.releases if isinstance(r.law, KeyMechanism))
        half, sure = law.size_at(Fraction(1, 2)), law.size_at(Fraction(95, 100))
        return Item(
            plan.grouping,
            (
                f"a group of {half} people appears half of the time, one of {sure} in 95% of "
                "cases; groups that do not appear are missing, and results are sorted by key",
            ),
        )
    return Item(
        plan.grouping,
        (
            f"keys: {plan.keys}",
            "every key appears, with or without rows; rows with other values are dropped, and null "
            "unless it is a key",
        ),
    )


def is_biased(plan: PlanData) -> bool:
    """Whether rows are dropped or weighed by a limit, or groups by their size."""
    return plan.found is not None or any(s.words.startswith("limit_") for s in plan.steps)


def _draws(plan: PlanData, whole: Draws) -> Iterator[Item]:
    """Each draw with its cost, and below it what follows from it, a line each."""
    for draw in plan.draws:
        parts = [release for release in plan.releases if release.draw == draw.draw]
        if draw.mechanism == "none":
            head = f"no noise, at no cost; {reword(draw.reason)}"
            yield Item(head, tuple(_contents(part) for part in parts))
            continue
        lines = [line for part in parts for line in _part(plan, part)]
        law, details = draw.law.label, draw.law.details()
        if isinstance(draw.law, KeyMechanism):
            law = draw.law.rule
        elif details:
            law += f", {details}"
        elif draw.repeats > 1 and draw.scores is not None:
            law += f", {draw.repeats} rounds that share the cost equally"
        cost = f"cost {amounts(draw.cost)}, {float(whole.share(draw.cost)):.0%} of the plan"
        yield Item(separated(f"{law}: {cost}"), tuple(map(separated, lines)))


def _contents(release: NoisyAggregate) -> str:
    head = f"{release.name} [{release.aggregate}]: {bounds_separated(reword(release.contents))}"
    if len(release.users) > 1:
        head += f" (used by {', '.join(release.users)})"
    return head


def _part(plan: PlanData, release: NoisyAggregate) -> Iterator[str]:
    """What a draw gives; on the next line its error, and how far one individual moves it."""
    yield _contents(release)
    if isinstance(release.law, KeyMechanism):
        yield f"{_sensitivity(plan, release)}; {reword(release.reason)}"
        return
    scale = f"{release.law.scale_label} {shown(release.scale)}"
    if release.scores is None and (release.joint is not None or not release.law.details()):
        scale += f" in steps of {shown(release.step)}"
        if release.bias:
            far = "half a step" if release.bias == release.step / 2 else shown(release.bias)
            scale += f", to which each value is rounded ({far} at most)"
    yield f"{_error(release)}; {scale}; {_sensitivity(plan, release)}; {reword(release.reason)}"


def _sensitivity(plan: PlanData, release: NoisyAggregate) -> str:
    """The norms, and why they are what they are."""
    s = release.sensitivity
    total, groups, k = release.spread.tight
    one = shown(s.linf / max(k, 1))
    rows = "one row" if k == 1 else f"each of {k} rows"
    of = "groups" if release.joint is not None else "numbers"  # its own one, of a vector of several
    what = "it" if release.entries == 1 else f"one of {release.entries} {of}"
    place = next(i for i, other in enumerate(plan.releases) if other is release)
    errors = [output.error for output in plan.outputs if place in output.releases]
    if any(isinstance(output.error, RunningError) for output in plan.outputs):
        why = _nightly_words(plan, release)
    elif isinstance(release.law, KeyMechanism):
        why = _groups_words(plan, groups)
    elif release.spread.norm is not None:
        why = _weighed_words(release, groups)
    elif (cells := next((e.cells for e in errors if isinstance(e, RootError)), None)) is not None:
        grouped = release.entries > cells
        who = rows
        if isinstance(plan.unit, Identifier):
            who = f"{_rows_words(total, groups, k, grouped)}, each"
        after = f"by at most {one}, and each after it{' in its group' if grouped else ''} by less"
        why = f"{who} moves the number of its step {after}"
        if plan.unit.adjacency == "change-one":
            why = f"{who} may leave a step for another, and moves the number of each {after}"
    elif isinstance(plan.unit, Identifier):
        why = f"{_rows_words(total, groups, k, release.entries > 1)}, each moves "
        why += f"{what} by at most {one}"
        if release.candidates is not None:
            why = f"{_rows_words(total, groups, k, True)}, {_apart(release)}"
    elif release.candidates is not None:
        why = f"{rows} moves a score by at most {one}, {_apart(release)}"
    elif plan.unit.adjacency == "add-remove" or release.entries == 1:
        why = f"{rows} moves {what} by at most {one}"
    else:
        moved, turned = shown(s.l1 / max(2 * k, 1)), f", or stays and moves it by at most {one}"
        why = f"{rows} may leave {what} for another, and then moves each by at most {moved}"
        why += turned if one != moved else ""
    scores = " of the scores" if release.candidates is not None else ""
    norms = f"L0 {s.l0}, L1 {shown(s.l1)}, L2 {shown(s.l2)}, Linf {shown(s.linf)}"
    return f"sensitivity{scores} {norms}: {why}"


def _nightly_words(plan: PlanData, release: NoisyAggregate) -> str:
    """What one individual adds to sums that are drawn night after night."""
    rows, groups, k = release.spread.tight
    most = "one row" if rows == 1 else f"{rows} rows"
    if not isinstance(plan.unit, Identifier):
        within = ""
    elif k == 1:
        within = ", in as many periods and keys" if rows > 1 else ""
    else:
        within = f", {k} in each of {groups} periods and keys" if groups > 1 else ""
    return (
        f"through all nights one individual has at most {most}{within}; together they move a sum "
        f"of a night by at most {shown(release.sensitivity.linf)}, and those of later nights by as "
        "much or less"
    )


def _weighed_words(release: NoisyAggregate, groups: int) -> str:
    """What one individual adds where its rows weigh so little that their norm is bounded."""
    s, norm = release.sensitivity, release.spread.norm
    assert norm is not None
    most = Fraction(norm, PARTS)
    over = "" if groups == 1 else f" over {groups} groups"
    inside = Fraction(release.spread.tight[2], PARTS)
    return (
        f"the rows of one individual weigh so little that their norm{over} is at most "
        f"{shown(most)}; one of full weight moves one number by at most "
        f"{shown(s.linf / float(inside))}, and weights are whole parts of 1/{PARTS}"
    )


def _groups_words(plan: PlanData, groups: int) -> str:
    """In how many groups one individual changes the number of individuals."""
    if isinstance(plan.unit, Identifier):
        return f"{_rows_words(groups, groups, 1, True)}, each moves it by at most 1"
    k, changes = plan.unit.contributions, plan.unit.adjacency == "change-one"
    rows = ("a row that changes" if changes else "one row") if k == 1 else f"{k} rows together"
    many = "one group" if groups == 1 else f"{groups} groups"
    each = "by" if groups == 1 else "each by"
    return f"{rows} may move the number of {many}, {each} at most 1"


def _rows_words(rows: int, groups: int, per_group: int, grouped: bool) -> str:
    """What one individual may contribute."""
    if rows == groups and per_group == 1:
        once = "once" if groups == 1 else f"once in each of {groups} groups"
        return f"one individual counts {once} at most"
    inside = f", {per_group} in each of {groups} groups" if grouped and groups > 1 else ""
    return f"one individual has at most {rows} rows{inside}"


def _apart(release: NoisyAggregate) -> str:
    """How much one individual changes the difference of two scores, which the noise must hide."""
    found = release.scores
    assert found is not None
    law = release.law
    chosen = law if isinstance(law, SelectionMechanism) else None
    squares = chosen is not None and release.cost.currency in chosen.adds_squares
    reach = (sqrt_up(found.l2_squared) if squares else found.l1) * release.step
    many = release.spread.tight[0]
    rows = "" if many == 1 else f"all {many} together "
    once = max(release.repeats, 1 if chosen is None else chosen.at_once)
    groups = ", over all groups" if release.entries > once else ""
    return f"and {rows}the difference of two scores by at most {shown(reach)}{groups}"


def _error(release: NoisyAggregate) -> str:
    if isinstance(release.law, ReportMechanism):
        one = about(release.law.error_per_root(0.95))
        all_ = about(release.law.error_per_root(0.95, release.entries))
        return (
            f"95%: within about {one} times the root of the number of rows; "
            f"within {all_} times "
            f"for all {release.entries} at once"
        )
    one = about(release.accuracy(0.95))
    together, law = "", release.law
    each = law.at_once if isinstance(law, SelectionMechanism) else 1
    if release.entries > each:
        all_ = about(release.accuracy(0.95, simultaneous=True))
        every = "both" if release.entries == 2 else f"all {release.entries}"
        together = f"; within {all_} for {every} at once"
    if isinstance(law, SelectionMechanism):
        return f"95%: {law.nearness.format(one, release.candidates)}{together}"
    return f"95%: within {one} of the exact value{together}"


def _cost_of_plan(plan: PlanData) -> Item:
    """What is charged, and why that is enough."""
    asked = "" if plan.cost == plan.requested else f", of {amounts(plan.requested)} allowed"
    together: tuple[str, ...] = ()
    if plan.composition != "sum":
        together = (f"{_composed(plan)}, {_COMPOSED[plan.composition]}",)
    if plan.cost.measure != plan.requested.measure:
        asked = f", for a spend of {amounts(plan.requested)}"
        together = (
            f"the plan alone satisfies the spend; the session adds up {plan.cost.currency}, which "
            "implies its epsilon and delta as a whole",
        )
    if sum(1 for r in plan.draws if not r.cost.is_zero) > 1:
        together = (*together, f"divided {_DIVIDED[plan.split]}")
    if plan.forced:
        together = (*together, forced_words(plan))
    return Item(f"cost: {amounts(plan.cost)} ({plan.cost.guarantee}){asked}", together)


def _composed(plan: PlanData) -> str:
    """The costs that are composed, each in its own measure."""
    if plan.found is None:
        cost = _total(plan.draws)
        assert cost is not None
        return f"the releases cost {cost.currency} {shown(cost.main)} in all"
    search, query, *_ = (draws.cost for draws in draws_by_block(plan))
    assert search is not None
    assert query is not None
    return (
        f"the search costs {amounts(search)} and the query "
        f"{amounts(plan.found.choices[-1].cost)}; the releases of the query cost "
        f"{query.currency} {shown(query.main)} in all"
    )


def _session(plan: PlanData) -> Iterator[Item]:
    """What the session had left, and which budget pays. Another run of the plan finds other
    amounts, so no fingerprint covers them.
    """
    if plan.share is not None:
        n, g = plan.share.parts, plan.share.touched
        dearest = "the most expensive part" if g == 1 else f"the {g} most expensive parts"
        words = (
            f"one of {n} disjoint parts, and one individual is in at most {g} of them: the session "
            f"pays for {dearest}, which is now {amounts(plan.share.charged)} more, and never more "
            "than this cost"
        )
        yield Item("charged to a part", (words,))
    if plan.remaining is not None:
        fits = plan.remaining.covers(plan.cost)
        left = plan.remaining - plan.cost if fits else None
        after = "too little, so it will be refused" if left is None else f"{amounts(left)} after"
        whose = "session" if plan.share is None else "part"
        whose = charged_words(plan) or whose
        yield Item(f"{whose}: {amounts(plan.remaining)} before; {after}")
    stated = plan.budget
    if stated is not None and stated.name is not None:
        each = "" if stated.per is None else f" for each {NAMES[stated.per]}"
        where = ", which does not exist yet"
        if stated.ledger is not None:
            where = f" in the ledger {stated.ledger[:16]}"
        of = f"{amounts(stated.whole)}{each}{where}"
        yield Item(f"charged to the budget {stated.name!r} of {of}")


def charged_to(plan: PlanData) -> str:
    """Which windows of a budget pay; nothing where it is for all time."""
    words = charged_words(plan)
    return "" if words is None else f" ({words})"


def amounts(budget: Budget) -> str:
    """Amounts in a sentence."""
    return budget.words().replace(", ", " and ")


# Plans as chapters: one for a plan of one query. A plan of several queries has one for each frame
# with its groups, and one for all queries.

_USELESS: Final = 20_000
"""A plan without a guess of its size has a risk if an error is above a tenth of this many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Chapter:
    """A part of the details of a plan."""

    title: str  # The heading; empty where a plan has no other chapter
    plan: PlanData  # The plan, or the block of a plan, that the chapter describes
    sections: tuple[Section, ...]  # The contents
    draws: Draws  # All draws whose costs are added to those in the chapter


def chapters(plan: PlanData) -> tuple[Chapter, ...]:
    """The details of a plan, in the order in which a reviewer asks."""
    sentences = (*windows_words(plan), *notes_in(plan))
    items = tuple(Item(separated(reword(sentence))) for sentence in sentences)
    last = [Section("budget", (_cost_of_plan(plan), *_session(plan)))]
    last += [Section(NOTES, items)] if items else []
    if not plan.blocks:
        own = draws_of(plan)
        return (Chapter("", plan, (*frame_sections(plan, own), *last), own),)
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
            tuple(last),
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
    things = "groups" if found.by else "rows"
    rule = "the least that all but 1% of individuals keep"
    if found.is_by_loss:
        rule = (
            f"the one with the least error from dropped {things} of individuals and from noise "
            "together"
        )
        if plan.blocks[1].grouping is not None and plan.blocks[1].groups is None:
            rule += ", of those that let a group of usual size appear"
    errors = [f"{c.error:g} under {c.n}" for c in found.choices if c.error is not None]
    share = f"{float(found.share * 100):g}%"
    return Item(
        f"{found.words('n')}, with n found when the query runs",
        (
            f"n is one of {', '.join(str(choice.n) for choice in found.choices)}: "
            f"{rule}, by a noisy histogram that has {share} of the spend",
            "noise fits the limit that is found; the charge is what the query costs under the most "
            "expensive limit, so the guarantee holds whichever is found",
            f"intervals also cover what the limit drops, if no person has more than {REACH[0]} n "
            f"{things}, or {REACH[1]:,} where that is more",
            *([f"95% error of `{name}`: {', '.join(errors)}"] if errors else []),
            f"shown below under the largest, {found.words(last.n)}",
        ),
    )


_SEARCHED = ("the search for the limit", "the query", "what limits drop")
"""The names of blocks where the first one finds a limit for the others."""
_RELATED = ", group_by(grouping_sets("
"""The beginning of groups that serve several queries with different groups."""


def _query_items(plan: PlanData) -> Iterator[Item]:
    rules = [[output.error for output in block.outputs] for block in blocks_of(plan)]
    sets = [{rule.sets for rule in own if isinstance(rule, RebuiltError)} for own in rules]
    for query in plan.queries:
        block = plan.blocks[query.block]
        groups = "" if block.grouping is None else f", {block.grouping.partition(': ')[0]}"
        if len(sets[query.block]) > 1 and groups.startswith(_RELATED):
            words = dict.fromkeys(plan.outputs[number].words for number in query.outputs)
            groups = f": {', '.join(words)}"
        yield Item(f"{', '.join(query.names)} of {block.source}{groups}")


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
