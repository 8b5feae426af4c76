"""What two plans differ in, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from dpframe.core.budget import Budget
from dpframe.core.tree import quote_name
from dpframe.core.units import Identifier, Unit
from dpframe.errors import DPFrameError
from dpframe.kernel.render import render
from dpframe.plan.data import NoisyAggregate, PlanData, PlanStep
from dpframe.plan.document import fingerprint
from dpframe.plan.parameters import without_values
from dpframe.plan.reading import columns_in
from dpframe.plan.several import blocks_of
from dpframe.report.errors import about
from dpframe.report.numbers import amounts, change_words, separated
from dpframe.report.story import forced_words, notes_in, queries_of_block, risks_in

# What changes from one plan to another for who is protected, and for who reads the results.

_WINDOWS: Final = ("1d", "1w", "1mo", "1q", "1y", None)
"""From the shortest window to all of a person."""
_NEITHER: Final = "the guarantee changes"


def guarantee(before: PlanData, after: PlanData) -> Iterator[str]:
    """Whether it gets weaker or stronger: by whom it protects first, and then by how much.

    Protecting less of a person is weaker at any cost. Protecting more at a larger cost is neither.
    """
    # 1 if more of a person is protected, -1 if less; None if that cannot be compared: other people,
    # or another notion of neighbours.
    one, other = _reach(before.unit), _reach(after.unit)
    whom = (other > one) - (other < one) or (None if before.unit != after.unit else 0)
    # 1 where nothing costs more and something less, -1 the other way; None where both.
    costs = ((before.cost.main, after.cost.main), (before.cost.slack, after.cost.slack))
    less, more = any(a < b for b, a in costs), any(a > b for b, a in costs)
    much = None if (less and more) or before.cost.currency != after.cost.currency else less - more
    words = []
    if before.unit != after.unit:
        words.append(f"{before.unit.words()} -> {after.unit.words()}")
    if before.cost.currency != after.cost.currency or less or more:
        words.append(_cost_change(before.cost, after.cost))
    if not words:
        return
    if before.unit != after.unit and whom in (0, None):
        verdict = _NEITHER
    elif (whom or 0) < 0:
        verdict = "the guarantee gets weaker"
        words.append("less noise, where there is less, comes from protecting less")
    elif much is None or (whom and much < 0):
        verdict = _NEITHER
    else:
        both = (whom or 0) + much
        verdict = f"the guarantee gets {'stronger' if both > 0 else 'weaker'}"
    yield f"{verdict}: {'; '.join(words)}"


def _cost_change(before: Budget, after: Budget) -> str:
    """Two amounts: with what they promise where this differs, and in more digits where they would
    look the same.
    """
    one, other = before.words(), after.words()
    if before.guarantee != after.guarantee:
        return f"{one} ({before.guarantee}) -> {other} ({after.guarantee})"
    if one != other:
        return f"{one} -> {other}"
    main, slack = (before.main, after.main), (before.slack, after.slack)
    what, pair = (before.currency, main) if main[0] != main[1] else ("delta", slack)
    return f"{one} -> {other} ({what} {change_words(*pair)})"


def _reach(unit: Unit) -> tuple[int, int]:
    """How much of a person is protected: rows, windows, all."""
    if isinstance(unit, Identifier):
        return (1, _WINDOWS.index(unit.window))
    return (0, unit.contributions)


def errors(before: PlanData, after: PlanData) -> Iterator[str]:
    """The 95% errors of outputs that both have, where they are known and differ."""
    names = {output.name for output in after.outputs}
    for output in before.outputs:
        if output.name in names:
            with suppress(DPFrameError):
                one, other = before.accuracy(output.name), after.accuracy(output.name)
                if one != other:  # rounded up, or longer where they would look the same
                    words = separated(about(one)), separated(about(other))
                    alike = words[0] == words[1]
                    change = change_words(one, other) if alike else " -> ".join(words)
                    yield f"95% error of {quote_name(output.name)} {change}"


_BEHIND = "in what its words leave out"
_LIMITS = ("LimitRows", "LimitGroups")


def differences(before: PlanData, after: PlanData) -> Iterator[str]:
    """One line for each change from one plan to the other."""
    found = list(_differences(before, after))
    if not found:  # otherwise it follows from a change that is listed
        forced = (forced_words(plan) if plan.forced else None for plan in (before, after))
        found = list(_changed("forced", *forced))
    yield from found
    if before.physical is None or after.physical is None:  # a document of version 1
        before, after = replace(before, physical=None), replace(after, physical=None)
    elif not found:  # what happens, in the kernel's words
        pages = (render(plan).splitlines() for plan in (before.physical, after.physical))
        found = list(_items("physical plan:", *pages))
        yield from found
    if not found and fingerprint(before) != fingerprint(after):
        yield "the plans differ in unlisted details, such as the reason of a mechanism"


def _differences(before: PlanData, after: PlanData) -> Iterator[str]:
    old, new = ({p.name: p.words() for p in plan.parameters} for plan in (before, after))
    for name in sorted({*old, *new}):
        yield from _changed("parameter", old.get(name, "none"), new.get(name, "none"))
    before, after = without_values(before), without_values(after)
    yield from guarantee(before, after)
    yield from errors(before, after)
    if before.blocks or after.blocks:
        one, other = _answers(before), _answers(after)
        yield from _changed("queries", len(one), len(other))
        for number, (was, now) in enumerate(zip(one, other, strict=False), start=1):
            yield from _changed(f"query {number} answers", ", ".join(was), ", ".join(now))
        yield from _blocks(before, after)
    else:
        yield from _of_frame(before, after)
    limits = [
        f"{found.words('n')} with n of {', '.join(str(choice.n) for choice in found.choices)}"
        if found is not None
        else None
        for found in (before.found, after.found)
    ]
    yield from _changed("limit that is found", *limits)
    yield from _changed("reads", *(p.windows and p.windows.words() for p in (before, after)))
    yield from _but_delta(amounts("the plan", before.cost, after.cost))
    yield from _changed("composition", before.composition, after.composition)
    yield from _changed("split", before.split, after.split)
    if not list(amounts("the plan", before.cost, after.cost)):  # from which the spend follows
        requests = (before.requested, after.requested)  # counted in the session's measure
        words = (f"{one.words()}, counted in {one.measure}" for one in requests)
        yield from _changed("requested spend", *words)
    yield from _items("stated by the data owner:", _stated(before), _stated(after))
    yield from _items("risk:", tuple(risks_in(before)), tuple(risks_in(after)))
    yield from _items("note:", _unexplained_notes(before, after), _unexplained_notes(after, before))


def _stated(plan: PlanData) -> tuple[str, ...]:
    """The facts, other than the query itself, from which risks follow."""
    typical = (f"{one.column} of {one.frame} is typically {one.value}" for one in plan.typical)
    named = (f"{one.column} of {one.frame} is named as identifiers are" for one in plan.identifying)
    return (*typical, *named)


def _of_frame(before: PlanData, after: PlanData) -> Iterator[str]:
    """The changes of a frame, its groups, and its releases."""
    yield from _changed("frame", before.source, after.source)
    if before.unit.kind == after.unit.kind:  # otherwise the guarantee, listed first, shows it
        yield from _changed("protects", before.unit.words(), after.unit.words())
    yield from _items("also protects", before.others, after.others)
    yield from _items("declared by the data owner:", before.declared, after.declared)
    types = {(column.frame, column.name): column.type for column in before.columns or ()}
    for column in after.columns or ():  # documents of earlier versions lack types
        what = f"type of column {quote_name(column.name)} of {column.frame}"
        known = types.get((column.frame, column.name), column.type)
        yield from _changed(what, known, column.type)
    yield from _steps(before.steps, after.steps)
    yield from _groups(before, after)
    changed = list(_outputs(before, after))
    yield from (line for _, line in changed)
    yield from _releases(before, after, {name for name, _ in changed})


# -- several queries ------------------------------------------------------------------------------


def _answers(plan: PlanData) -> list[tuple[str, ...]]:
    if not plan.blocks:
        return [tuple(output.name for output in plan.outputs)]
    return [query.names for query in plan.queries]


def _blocks(before: PlanData, after: PlanData) -> Iterator[str]:
    """Frames with the same steps and groups are compared, then the others in order."""
    one, other = list(blocks_of(before)), list(blocks_of(after))
    left, pairs = [*range(len(one))], dict[int, int]()
    for alike in (lambda plan: (_rows(plan), plan.grouping, plan.keys_digest), _rows, None):
        for new, block in enumerate(other):
            same = (n for n in left if alike is None or alike(one[n]) == alike(block))
            old = None if new in pairs else next(same, None)
            if old is not None:
                left.remove(old)
                pairs[new] = old
    for new, block in enumerate(other):
        whose = queries_of_block(after, new) if after.blocks else "the query"
        if new in pairs:
            yield from (f"{whose}: {line}" for line in _of_frame(one[pairs[new]], block))
        else:
            yield f"{whose} added: {_block_words(block)}"
    for old in left:
        whose = queries_of_block(before, old) if before.blocks else "the query"
        yield f"{whose} removed: {_block_words(one[old])}"


def _rows(plan: PlanData) -> object:
    return plan.source, [_key(step) for step in plan.steps]


def _block_words(plan: PlanData) -> str:
    steps = "".join(f".{step.words}" for step in plan.steps)
    groups = "" if plan.grouping is None else f", {plan.grouping}"
    return f"{', '.join(output.name for output in plan.outputs)} of {plan.source}{steps}{groups}"


def _unexplained_notes(plan: PlanData, other: PlanData) -> list[str]:
    """The notes that do not follow from a step that is listed as changed."""
    told = _step_words(plan) - _step_words(other)
    return [note for note in notes_in(plan) if not any(words in note for words in told)]


def _step_words(plan: PlanData) -> set[str]:
    return {step.words for block in blocks_of(plan) for step in block.steps}


def _changed(what: str, before: object, after: object) -> Iterator[str]:
    if before != after:
        yield f"{what} {before} -> {after}"


def _items(what: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} {item} (removed)" for item in before if item not in after)
    yield from (f"{what} {item} (added)" for item in after if item not in before)


# -- steps ----------------------------------------------------------------------------------------


def _steps(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Iterator[str]:
    same = SequenceMatcher(None, [_key(s) for s in before], [_key(s) for s in after], False)
    blocks = [code for code in same.get_opcodes() if code[0] != "equal"]
    removed = [n for _, i, j, _, _ in blocks for n in range(i, j)]
    added = [n for _, _, _, k, m in blocks for n in range(k, m)]
    moved: set[tuple[int, int]] = set()
    for n in removed:
        to = next((m for m in added if _key(after[m]) == _key(before[n])), None)
        if to is not None:
            added.remove(to)
            moved.add((n, to))
            yield f"step {n + 1} is now step {to + 1}: {before[n].words}"
    gone, new = {n for n, _ in moved}, {n for _, n in moved}
    for act, i, j, k, m in same.get_opcodes():
        if act != "equal":
            left = [before[n] for n in range(i, j) if n not in gone]
            yield from _replaced(left, [after[n] for n in range(k, m) if n not in new])
        elif not moved and not blocks:  # otherwise changed facts follow from other steps
            for one, other in zip(before[i:j], after[k:m], strict=True):
                if one.learned != other.learned:
                    known = "; ".join(item for item in other.learned if item not in one.learned)
                    yield f"known after {other.words}: {known or 'less than before'}"
                elif one.stability != other.stability:
                    yield f"stability of {other.words}: {one.stability} -> {other.stability}"


def _key(step: PlanStep) -> str:
    return f"{step.words} {step.definition!r}"


def _replaced(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> Iterator[str]:
    """Steps of the same kind are taken for edited ones, in order."""
    left = list(after)
    for step in before:
        same = next((s for s in left if _verb(s) == _verb(step)), None)
        if same is None:
            yield f"{_on(step)} removed: {step.words}"
        else:
            left.remove(same)
            yield _edited(step, same)
    yield from (f"{_on(step)} added: {step.words}" for step in left)


def _edited(before: PlanStep, after: PlanStep) -> str:
    one, other = before.definition, after.definition
    if isinstance(one, dict) and isinstance(other, dict) and other.get("step") in _LIMITS:
        n, m = one.get("n"), other.get("n")
        if {**one, "n": m} == other and isinstance(n, int) and isinstance(m, int):
            return f"limit {'raised' if m > n else 'lowered'} {n} -> {m}: {after.words}"
    if before.words == after.words:
        return f"{_verb(after)} changed {_BEHIND}: {after.words}"
    return f"{_verb(after)} changed: {before.words} -> {after.words}"


def _verb(step: PlanStep) -> str:
    return step.words.partition("(")[0]


def _on(step: PlanStep) -> str:
    columns = sorted(columns_in(step.definition))
    return f"{_verb(step)} on {', '.join(map(quote_name, columns))}" if columns else _verb(step)


# -- groups, outputs, releases --------------------------------------------------------------------


def _groups(before: PlanData, after: PlanData) -> Iterator[str]:
    if before.grouping is None or after.grouping is None:
        if after.grouping is not None:
            yield f"groups added: {after.grouping}"
        elif before.grouping is not None:
            yield f"groups removed: {before.grouping}"
        return
    yield from _changed("groups", before.grouping, after.grouping)
    if before.grouping == after.grouping and before.grouped_by != after.grouped_by:
        yield f"groups changed {_BEHIND}: {after.grouping}"
    if _keys(before) != _keys(after):
        yield f"keys {_keys(before)} -> {_keys(after)}"
    elif before.keys_digest != after.keys_digest and before.grouped_by == after.grouped_by:
        yield f"keys changed {_BEHIND}: {_keys(after)}"
    if before.best_group != after.best_group:
        yield "the best group is chosen" if after.best_group else "all groups are released"


def _keys(plan: PlanData) -> str:
    return "chosen privately" if plan.groups is None else f"{plan.groups} ({plan.keys})"


def _outputs(before: PlanData, after: PlanData) -> Iterator[tuple[str, str]]:
    """The names of outputs with what changed of them."""
    one, other = ({o.name: o for o in plan.outputs} for plan in (before, after))
    for name in one:
        if name not in other:
            yield name, f"output {quote_name(name)} removed: {one[name].words}"
    for name, output in other.items():
        if name not in one:
            yield name, f"output {quote_name(name)} added: {output.words}"
        elif one[name].words != output.words:
            yield name, f"output {quote_name(name)} changed: {one[name].words} -> {output.words}"
        elif one[name].note != output.note:
            yield name, f"note on output {quote_name(name)}: {one[name].note} -> {output.note}"
        elif (one[name].definition, one[name].error) != (output.definition, output.error):
            yield name, f"output {quote_name(name)} changed {_BEHIND}: {output.words}"


def _releases(before: PlanData, after: PlanData, told: Collection[str]) -> Iterator[str]:
    """Changed costs by jointly drawn vector, and changed sensitivities and mechanisms by release.
    Changes that follow from an output that is listed already are left out.
    """
    yield from _costs(before, after)
    parts, others = _numbered(before), _numbered(after)
    for key, release in others.items():
        known = key[0] in told
        if key in parts:
            if before.unit == after.unit:  # norms of other units are no less and no more
                for norm in ("l0", "l1", "l2", "linf"):
                    was, now = (getattr(o.sensitivity, norm) for o in (parts[key], release))
                    if was != now:
                        words = f"{norm.capitalize()} sensitivity of {_named(release)}"
                        yield f"{words} {change_words(was, now)}"
            yield from _release(parts[key], release, known)
        elif not known:
            yield f"{_named(release)} is released: {release.contents}"
    for key, release in parts.items():
        if key not in others and key[0] not in told:
            yield f"{_named(release)} is no longer released: {release.contents}"


def _numbered(plan: PlanData) -> dict[tuple[str, str, int], NoisyAggregate]:
    """Releases by name, and by number among those of one name: a quantile has one for each q."""
    seen: Counter[tuple[str, str]] = Counter()
    result = {}
    for release in plan.releases:
        key = release.name, release.aggregate
        result[*key, seen[key]] = release
        seen[key] += 1
    return result


def _costs(before: PlanData, after: PlanData) -> Iterator[str]:
    """Changed costs by output. Outputs that are drawn jointly have one cost; if they were not drawn
    jointly before, each is listed with the cost of its draws.
    """
    one, other = _joint_names(before), _joint_names(after)
    kept = {name for names in other for name in names}
    for names in one:
        apart = [(name,) for name in names if name in kept]
        for whose in [names] if names in other else apart:
            costs = _cost_of(before, whose), _cost_of(after, whose)
            *some, last = map(quote_name, whose)
            found = amounts(f"{', '.join(some)} and {last} together" if some else last, *costs)
            all_of_it = [c.slack for c in costs] == [before.cost.slack, after.cost.slack]
            yield from _but_delta(found) if all_of_it else found


def _but_delta(lines: Iterator[str]) -> Iterator[str]:
    """Without the delta of the whole plan, which is listed first, with the guarantee."""
    return (line for line in lines if not line.startswith("delta of "))


def _joint_names(plan: PlanData) -> list[tuple[str, ...]]:
    """The names of releases, those together that have a draw in common, in order of first use."""
    found: list[dict[str, None]] = []
    for draw in plan.draws:
        mine = dict.fromkeys(r.name for r in plan.releases if r.draw == draw.draw)
        linked = [names for names in found if names.keys() & mine.keys()]
        found = [names for names in found if names not in linked]
        found.append({name: None for names in (*linked, mine) for name in names})
    order = {release.name: None for release in plan.releases}
    groups = [tuple(name for name in order if name in names) for names in found]
    return sorted(groups, key=lambda names: [*order].index(names[0]))


def _cost_of(plan: PlanData, names: Collection[str]) -> Budget:
    """What all draws that some outputs need cost, each once."""
    costs = {r.draw: r.cost for r in plan.releases if r.name in names}
    first, *rest = costs.values()
    return sum(rest, first)


def _named(release: NoisyAggregate) -> str:
    return f"{quote_name(release.name)} [{release.aggregate}]"


def _release(before: NoisyAggregate, after: NoisyAggregate, known: bool) -> Iterator[str]:
    name = _named(after)
    yield from _changed(f"mechanism of {name}", before.mechanism, after.mechanism)
    yield from _changed(f"mechanism asked for of {name}", before.asked, after.asked)
    yield from _changed(f"candidates of {name}", before.candidates, after.candidates)
    yield from _changed(f"rounds of {name}", before.repeats, after.repeats)
    same = (before.cost, before.exact, before.mechanism) == (
        after.cost,
        after.exact,
        after.mechanism,
    )
    if same and (before.law, before.step) != (after.law, after.step):
        told = before.scale != after.scale
        scales = change_words(before.scale, after.scale) if told else f"changed {_BEHIND}"
        yield f"noise of {name}: {'scale ' if told else ''}{scales}"
    if not known:
        yield from _changed(f"contents of {name}", before.contents, after.contents)
