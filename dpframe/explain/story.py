"""A plan as sections of short lines, before any format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpframe.core.exact import show

if TYPE_CHECKING:
    from dpframe.core.budget import Budget
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
        Section("protects", (_protected(plan),)),
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
        sections.append(Section("groups", (_groups(plan),)))
    sections += [
        Section("releases", tuple(_release(plan, r) for r in plan.releases), numbered=True),
        Section("outputs", _outputs(plan)),
        Section("budget", _budget(plan)),
    ]
    if plan.warnings:
        sections.append(Section("look twice", tuple(Item(w) for w in plan.warnings)))
    return tuple(sections)


def _protected(plan: Plan) -> Item:
    declared = tuple(f"declared by the data owner: {facts}" for facts in plan.declared)
    return Item(f"{plan.source}: {plan.unit.words()}", declared)


def _groups(plan: Plan) -> Item:
    assert plan.grouping is not None
    if plan.outputs[0][1].startswith("dp.argmax("):
        return Item(plan.grouping, (f"keys: {plan.keys}", "rows with anything else are dropped"))
    drops = (
        "every key appears, with or without rows; rows with anything else are dropped, null too "
        "unless it is a key"
    )
    return Item(plan.grouping, (f"keys: {plan.keys}", drops))


def _outputs(plan: Plan) -> tuple[Item, ...]:
    return tuple(
        Item(f"{name} = {words}", (note,) if note else ())
        for (name, words), note in zip(plan.outputs, plan.notes, strict=True)
    )


def _release(plan: Plan, release: NoisyAggregate) -> Item:
    head = f"{release.name} [{release.aggregate}]: {release.contents}"
    if len(release.users) > 1:
        head += f" (shared by {', '.join(release.users)})"
    if release.mechanism == "none":
        return Item(head, (f"released exactly, cost 0: {release.reason}",))
    lines = [_sensitivity(plan, release), _noise(release), _error(release), _cost(plan, release)]
    return Item(head, tuple(lines))


def _sensitivity(plan: Plan, release: NoisyAggregate) -> str:
    """The norms, and why they are what they are."""
    s, unit = release.sensitivity, plan.unit
    one = show(s.linf / unit.contributions)
    rows = "one row" if unit.contributions == 1 else f"each of {unit.contributions} rows"
    what = "it" if release.entries == 1 else f"one of {release.entries} numbers"
    if release.candidates is not None:
        why = f"{rows} moves a score by at most {one}"
    elif unit.adjacency == "add-remove" or release.entries == 1:
        why = f"{rows} moves {what} by at most {one}"
    else:
        why = f"{rows} may move from {what} to another, and moves each by at most {one}"
    of = " of the scores" if release.candidates is not None else ""
    norms = f"L0 {s.l0}, L1 {show(s.l1)}, L2 {show(s.l2)}, Linf {show(s.linf)}"
    return f"sensitivity{of} {norms}: {why}"


def _noise(release: NoisyAggregate) -> str:
    law = f"{_LAWS[release.mechanism]} {show(release.scale)}"
    if release.candidates is None:
        law += f", in steps of {show(release.step)}"
    return f"{law}: {release.reason}"


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
    return f"cost {_amounts(release.cost)}, {share:.0%} of the plan"


def _budget(plan: Plan) -> tuple[Item, ...]:
    asked = "" if plan.cost == plan.requested else f" of {_amounts(plan.requested)} asked for"
    items = [Item(f"cost: {_amounts(plan.cost)}{asked} ({plan.cost.measure})")]
    if plan.remaining is not None:
        fits = plan.remaining.covers(plan.cost)
        after = _amounts(plan.remaining - plan.cost) if fits else "refused, over budget"
        items.append(Item(f"session: {_amounts(plan.remaining)} before; {after} after"))
    return tuple(items)


def _amounts(budget: Budget) -> str:
    return budget.words().replace(", ", " and ")
