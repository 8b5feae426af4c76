"""A plan as sections of short lines, before any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.aggregates.running_error import RunningError
from dpframe.core.budget import Budget
from dpframe.core.exact import sqrt_up
from dpframe.core.units import Identifier
from dpframe.core.weights import PARTS
from dpframe.core.windows import NAMES
from dpframe.ledger.parts import Share
from dpframe.mechanisms import KeyMechanism, ReportMechanism, SelectionMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.report.forced import forced_words
from dpframe.report.group_size import about
from dpframe.report.numbers import bounds_separated, separated, shown
from dpframe.report.windows import charged_words, windows_words

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


RISKS: Final = "risks"
NOTES: Final = "notes"
"""Titles of what is unusual, which comes first, and of what is routine."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line with details below it."""

    head: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A titled list of items; numbered where their order matters."""

    title: str
    items: tuple[Item, ...]
    numbered: bool = False

    def entries(self) -> Iterator[tuple[str, Item]]:
        """Each item with its number, such as ``"1. "``, or nothing."""
        for number, item in enumerate(self.items, start=1):
            yield f"{number}. " if self.numbered else "", item


def story(plan: PlanData, risks: Iterable[str], notes: Iterable[str]) -> tuple[Section, ...]:
    """The sections of a plan of one query, in the order in which a reviewer asks."""
    frame, *others = frame_sections(plan, spent_on(plan))
    first = (*said(RISKS, risks), frame, *parameter_sections(plan))
    return (*first, *others, *cost_sections(plan), *said(NOTES, notes))


def said(title: str, sentences: Iterable[str]) -> Iterator[Section]:
    """A section of sentences; none where there are none."""
    items = tuple(Item(separated(sentence)) for sentence in sentences)
    if items:
        yield Section(title, items)


def spent_on(plan: PlanData) -> Fraction:
    """What all draws cost together."""
    return sum((r.cost.main for r in plan.draws), Fraction(0))


def frame_sections(plan: PlanData, whole: Fraction) -> Iterator[Section]:
    """What is done to a frame, and released of it; `whole` is what all draws of the plan cost."""
    yield Section("protects", (_protected(plan),))
    yield Section(
        "rows",
        tuple(
            Item(step.words, (step.stability, *map(bounds_separated, step.learned)))
            for step in plan.steps
        )
        or (Item("all rows, as protected"),),
        numbered=bool(plan.steps),
    )
    if plan.grouping is not None:
        yield Section("groups", (_groups(plan),))
    yield Section("releases", _releases(plan, whole), numbered=True)
    yield Section("outputs, computed from the releases at no further cost", _outputs(plan))


def parameter_sections(plan: PlanData) -> Iterator[Section]:
    """What the job was given."""
    if plan.parameters:
        shown = (Item(f":{parameter.words()}") for parameter in plan.parameters)
        yield Section("parameters", tuple(shown))


def cost_sections(plan: PlanData) -> Iterator[Section]:
    """What the plan costs."""
    yield Section("budget", _budget(plan))


def _protected(plan: PlanData) -> Item:
    """Whom the plan protects, in each of its frames."""
    declared = [f"declared by the data owner, not checked: {d}" for d in plan.declared]
    declared += [
        f"stated by the data owner, for warnings alone: {one.column} is typically "
        f"{shown(one.value)}"
        for one in plan.typical
        if one.frame == plan.source
    ]
    details = (*plan.others, *map(bounds_separated, declared), *windows_words(plan))
    return Item(f"{plan.source}: {plan.unit.words()}", details)


def _groups(plan: PlanData) -> Item:
    assert plan.grouping is not None
    if plan.best_group:
        return Item(plan.grouping, (f"keys: {plan.keys}", "rows with anything else are dropped"))
    if plan.keys is None:
        (law, *_) = (r.law for r in plan.releases if isinstance(r.law, KeyMechanism))
        half, sure = law.size_at(Fraction(1, 2)), law.size_at(Fraction(95, 100))
        return Item(
            plan.grouping,
            (
                "groups appear at random, the larger the likelier: one of "
                f"{half} individuals with an even chance, one of {sure} with 95%; the others are "
                "missing, and results come sorted by key",
            ),
        )
    drops = (
        "every key appears, with or without rows; rows with anything else are dropped, null too "
        "unless it is a key"
    )
    return Item(plan.grouping, (f"keys: {plan.keys}", drops))


def _outputs(plan: PlanData) -> tuple[Item, ...]:
    return tuple(
        Item(f"{output.name} = {output.words}", (separated(output.note),) if output.note else ())
        for output in plan.outputs
    )


def _releases(plan: PlanData, whole: Fraction) -> tuple[Item, ...]:
    return tuple(_release(plan, release, whole) for release in plan.releases)


def _release(plan: PlanData, release: NoisyAggregate, whole: Fraction) -> Item:
    head = f"{release.name} [{release.aggregate}]: {bounds_separated(release.contents)}"
    if len(release.users) > 1:
        head += f" (shared by {', '.join(release.users)})"
    if release.mechanism == "none":
        return Item(head, (f"released exactly, at no cost; {release.reason}",))
    if isinstance(release.law, KeyMechanism):
        law = f"{release.law.rule}: {release.reason}"
        return Item(head, (_sensitivity(plan, release), separated(law), _cost(release, whole)))
    lines = [_sensitivity(plan, release), _noise(release), _error(release), _cost(release, whole)]
    return Item(head, tuple(map(separated, lines)))


def _sensitivity(plan: PlanData, release: NoisyAggregate) -> str:
    """The norms, and why they are what they are."""
    s = release.sensitivity
    total, groups, k = release.spread.tight
    one = shown(s.linf / max(k, 1))
    rows = "one row" if k == 1 else f"each of {k} rows"
    of = "groups" if release.joint is not None else "numbers"  # its own one, of a vector of several
    what = "it" if release.entries == 1 else f"one of {release.entries} {of}"
    if any(isinstance(output.error, RunningError) for output in plan.outputs):
        why = _nightly_words(plan, release)
    elif isinstance(release.law, KeyMechanism):
        why = _groups_words(plan, groups)
    elif release.spread.norm is not None:
        why = _weighed_words(release, groups)
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
    """How far one individual moves scores relative to each other, which is what a choice protects
    by.
    """
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
    return f"and {rows}two scores apart by at most {shown(reach)}{groups}"


def _noise(release: NoisyAggregate) -> str:
    law = f"{release.law.label}, {release.law.scale_label} {shown(release.scale)}"
    details = release.law.details()
    law += f", {details}" if details else ""
    if release.scores is None and (release.joint is not None or not details):
        law += f", in steps of {shown(release.step)}"
        law += _rounded(release)
    elif release.repeats > 1 and not details:
        law += f" in each of {release.repeats} rounds, which share the cost equally"
    return f"{law}: {release.reason}"


def _rounded(release: NoisyAggregate) -> str:
    if not release.bias:
        return ""
    far = "half a step" if release.bias == release.step / 2 else shown(release.bias)
    return f", to which each value is rounded ({far} at most)"


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


def _cost(release: NoisyAggregate, whole: Fraction) -> str:
    share = float(release.cost.main / whole) if whole else 0.0
    whom = "" if release.joint is None else " for all that is drawn together"
    return f"cost {amounts(release.cost)}{whom}, {share:.0%} of the plan"


def _budget(plan: PlanData) -> tuple[Item, ...]:
    asked = "" if plan.cost == plan.requested else f", of {amounts(plan.requested)} allowed"
    together: tuple[str, ...] = ()
    if plan.composition != "sum":
        together = (
            f"the releases cost rho {shown(spent_on(plan))} in all, {_COMPOSED[plan.composition]}",
        )
    if plan.cost.measure != plan.requested.measure:
        asked = f", for a spend of {amounts(plan.requested)}"
        together = (
            f"the plan by itself satisfies the spend; the session adds up "
            f"{plan.cost.currency}, which implies its epsilon and delta as a whole",
        )
    if sum(1 for r in plan.draws if r.cost.main) > 1:
        together = (*together, f"divided {_DIVIDED[plan.split]}")
    if plan.forced:
        together = (*together, forced_words(plan))
    if plan.share is not None:
        asked += ", charged to this part"
        together = (*together, _shared(plan.share))
    items = [Item(f"cost: {amounts(plan.cost)} ({plan.cost.measure}){asked}", together)]
    if plan.remaining is not None:
        fits = plan.remaining.covers(plan.cost)
        left = plan.remaining - plan.cost if fits else None
        after = "too little: it will be refused" if left is None else f"{amounts(left)} after"
        whose = "session" if plan.share is None else "part"
        whose = charged_words(plan) or whose
        items.append(Item(f"{whose}: {amounts(plan.remaining)} before; {after}"))
    stated = plan.budget
    if stated is not None and stated.ledger is not None:
        each = "" if stated.per is None else f" for each {NAMES[stated.per]}"
        of = f"{amounts(stated.whole)}{each} in the ledger {stated.ledger[:16]}"
        items.append(Item(f"charged to the budget {stated.name!r} of {of}"))
    return tuple(items)


def _shared(share: Share) -> str:
    """What a cost of one part is to the whole."""
    n, g = share.parts, share.touched
    dearest = "the most expensive part" if g == 1 else f"the {g} most expensive parts"
    return (
        f"one of {n} disjoint parts, of which one individual is in {g} at most: the session pays "
        f"for {dearest}, which is now {amounts(share.charged)} more, and never more than this cost"
    )


def amounts(budget: Budget) -> str:
    """Amounts in a sentence."""
    return budget.words().replace(", ", " and ")
