"""A plan as sections of short lines, before any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Final, Literal, TypeAlias

from dpframe.aggregates.distribution_error import RootError
from dpframe.aggregates.running_error import RunningError
from dpframe.core.budget import Budget
from dpframe.core.exact import sqrt_up
from dpframe.core.units import Identifier
from dpframe.core.weights import PARTS
from dpframe.core.windows import NAMES
from dpframe.ledger.parts import Share
from dpframe.mechanisms import KeyMechanism, ReportMechanism, SelectionMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.plan.several import blocks_of
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


Title: TypeAlias = Literal[
    "risks",
    "limit",
    "queries",
    "parameters",
    "protects",
    "rows",
    "groups",
    "releases",
    "outputs, computed from the releases at no further cost",
    "budget",
    "outside the fingerprint",
    "notes",
]
"""What sections are called, in the order in which they stand; each format has a form for each."""
RISKS: Final = "risks"
NOTES: Final = "notes"
"""Titles of what is unusual, which comes first, and of what is routine."""
OUTSIDE: Final = "outside the fingerprint"
"""The title of what another run of the same plan changes: the state of the session. Whoever edits a
document can change it and keep the fingerprint.
"""


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


def story(plan: PlanData, risks: Iterable[str], notes: Iterable[str]) -> tuple[Section, ...]:
    """The sections of a plan of one query, in the order in which a reviewer asks."""
    frame, *others = frame_sections(plan, draws_of(plan))
    first = (*said(RISKS, risks), frame, *parameter_sections(plan))
    return (*first, *others, *cost_sections(plan), *said(NOTES, notes))


def said(title: Title, sentences: Iterable[str]) -> Iterator[Section]:
    """A section of sentences; none if none exist."""
    items = tuple(Item(separated(sentence)) for sentence in sentences)
    if items:
        yield Section(title, items)


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws whose costs add up, in one measure.

    Parameters
    ----------
    cost
        Of all of them; None where nothing is drawn.
    part
        How much of the plan's cost they are.
    """

    cost: Budget | None
    part: Fraction = Fraction(1)

    def share(self, cost: Budget) -> Fraction:
        """How much of the plan's cost one of them is."""
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
    """What the plan costs, and what the session had when it was made."""
    yield Section("budget", (_cost_of_plan(plan),))
    if items := tuple(_session(plan)):
        yield Section(OUTSIDE, items)


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


def _releases(plan: PlanData, whole: Draws) -> tuple[Item, ...]:
    return tuple(_release(plan, release, whole) for release in plan.releases)


def _release(plan: PlanData, release: NoisyAggregate, whole: Draws) -> Item:
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
    elif (cells := _root_cells(plan, release)) is not None:
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


def _root_cells(plan: PlanData, release: NoisyAggregate) -> int | None:
    """Of a release by the square root factorisation how many numbers each group has; else None."""
    place = next(i for i, other in enumerate(plan.releases) if other is release)
    of_it = [output.error for output in plan.outputs if place in output.releases]
    return next((error.cells for error in of_it if isinstance(error, RootError)), None)


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


def _cost(release: NoisyAggregate, whole: Draws) -> str:
    share = float(whole.share(release.cost))
    whom = "" if release.joint is None else " for all that is drawn together"
    return f"cost {amounts(release.cost)}{whom}, {share:.0%} of the plan"


def _cost_of_plan(plan: PlanData) -> Item:
    """What is charged, and why that is enough."""
    asked = "" if plan.cost == plan.requested else f", of {amounts(plan.requested)} allowed"
    together: tuple[str, ...] = ()
    if plan.composition != "sum":
        together = (f"{_composed(plan)}, {_COMPOSED[plan.composition]}",)
    if plan.cost.measure != plan.requested.measure:
        asked = f", for a spend of {amounts(plan.requested)}"
        together = (
            f"the plan by itself satisfies the spend; the session adds up "
            f"{plan.cost.currency}, which implies its epsilon and delta as a whole",
        )
    if sum(1 for r in plan.draws if not r.cost.is_zero) > 1:
        together = (*together, f"divided {_DIVIDED[plan.split]}")
    if plan.forced:
        together = (*together, forced_words(plan))
    return Item(f"cost: {amounts(plan.cost)} ({plan.cost.measure}){asked}", together)


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
        yield Item("charged to a part", (_shared(plan.share),))
    if plan.remaining is not None:
        fits = plan.remaining.covers(plan.cost)
        left = plan.remaining - plan.cost if fits else None
        after = "too little: it will be refused" if left is None else f"{amounts(left)} after"
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
