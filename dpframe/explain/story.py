"""A plan as sections of short lines, before any format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpframe.core.exact import show

if TYPE_CHECKING:
    from dpframe.plan import NoisyAggregate, Plan

_LAWS = {
    "discrete_laplace": "discrete Laplace, scale",
    "discrete_gaussian": "discrete Gaussian, sigma",
    "exponential": "exponential mechanism, scale",
    "permute_and_flip": "permute-and-flip, scale",
}


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


def story(plan: Plan) -> tuple[Section, ...]:
    """The sections of a plan, in the order in which a reviewer asks."""
    sections = [
        Section("protects", (Item(f"{plan.source}: {plan.unit.words()}"),)),
        Section(
            "rows",
            tuple(
                Item(step.words, (f"1-stable: {step.stability}", *step.learned))
                for step in plan.steps
            )
            or (Item("all rows, as protected"),),
            numbered=bool(plan.steps),
        ),
    ]
    if plan.grouping is not None:
        sections.append(
            Section("groups", (Item(plan.grouping, ("every key appears, others are dropped",)),))
        )
    sections += [
        Section("releases", tuple(_release(plan, r) for r in plan.releases), numbered=True),
        Section("outputs", tuple(Item(f"{name} = {words}") for name, words in plan.outputs)),
        Section("budget", _budget(plan)),
    ]
    if plan.warnings:
        sections.append(Section("look twice", tuple(Item(w) for w in plan.warnings)))
    return tuple(sections)


def _release(plan: Plan, release: NoisyAggregate) -> Item:
    head = f"{release.name} [{release.aggregate}]: {release.contents}"
    if len(release.users) > 1:
        head += f" (shared by {', '.join(release.users)})"
    if release.mechanism == "none":
        return Item(head, (f"released exactly, cost 0: {release.reason}",))
    s = release.sensitivity
    what = "scores: " if release.candidates is not None else ""
    lines = [
        f"sensitivity {what}L0 {s.l0}, L1 {show(s.l1)}, L2 {show(s.l2)}, Linf {show(s.linf)}",
        f"{_LAWS[release.mechanism]} {show(release.scale)}: {release.reason}",
        _error(release),
        _cost(plan, release),
    ]
    return Item(head, tuple(lines))


def _error(release: NoisyAggregate) -> str:
    one = release.accuracy(0.95)
    together = ""
    if release.entries > 1:
        all_ = show(release.accuracy(0.95, simultaneous=True), 4)
        together = f"; within {all_} for all {release.entries} at once"
    if release.candidates is not None:
        return (
            f"95%: the chosen score is within {show(one, 4)} of the best of "
            f"{release.candidates} candidates{together}"
        )
    return f"95%: within {show(one, 4)} of the exact value{together}"


def _cost(plan: Plan, release: NoisyAggregate) -> str:
    share = float(release.cost.main / plan.cost.main) if plan.cost.main else 0.0
    return f"cost {release.cost.words()}, {share:.0%} of the plan"


def _budget(plan: Plan) -> tuple[Item, ...]:
    items = [Item(f"cost: {plan.cost.words()} ({plan.cost.measure})")]
    if plan.cost != plan.requested:
        items[0] = Item(
            f"cost: {plan.cost.words()} of the {plan.requested.words()} asked for "
            f"({plan.cost.measure})"
        )
    if plan.remaining is not None:
        fits = plan.remaining.covers(plan.cost)
        after = (plan.remaining - plan.cost).words() if fits else "refused, over budget"
        items.append(Item(f"session: {plan.remaining.words()} before, {after} after"))
    return tuple(items)
