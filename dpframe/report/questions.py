"""What only the reviewer can answer: questions that follow from a plan, the most doubtful first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from dpframe.aggregates.running_error import RunningError
from dpframe.core.exact import show
from dpframe.core.units import Rows
from dpframe.frames.definition import Json, objects_in
from dpframe.plan import PlanData
from dpframe.plan.looks import looks_identifying, name_words, words_of
from dpframe.plan.several import blocks_of
from dpframe.report.conditions import conditions_by_output
from dpframe.report.errors import errors_of, rounded
from dpframe.report.structure import bounds_in, key_values, yearly, yearly_risk
from dpframe.report.too_wide import Typical

_MOST: Final = 5
_MUCH_NOISE: Final = 500
"""An output that is good from fewer rows on needs no question."""
_SENSITIVE: Final = words_of(
    """
    hiv aids std religion ethnicity race sexual orientation abortion pregnancy pregnant suicide
    psychiatric mental disability disabled criminal conviction convicted arrest drug addiction union
    party vote voted diagnosis disease cancer therapy medication debt asylum refugee nationality
    overdose violence income salary konfession krankheit diagnose
    """
)
_FIRST_KEY: Final = re.compile(r"\(?(.*?)(?:, )?(\d{4}-\d\d-\d\d)\)?(?:,|$)")
"""The first key of a stream: what it groups by, and the period."""
_PUBLIC: Final = re.compile(r"public frame of (\d+) rows? \(([^)]*)\)")
_STATISTIC: Final = words_of(
    "mean avg average median sum total count n nb num number std var min max share rate moyen "
    "moyenne moyens somme anzahl summe mittel mittelwert durchschnitt media promedio totale suma"
)
_PLACES: Final = words_of(
    """
    village postcode zip zipcode plz street block hamlet parish commune gemeinde ward building house
    school class classroom room cell town dorf ort quartier office branch team
    """
)


def questions_in(plan: PlanData, size: int | None = None, typical: Typical = ()) -> tuple[str, ...]:
    """At most five questions."""
    asked = dict[str, int]()
    blocks = list(blocks_of(plan))
    blocks = blocks[1:] if plan.found is not None else blocks
    for block in blocks:
        for weight, question in _of_block(plan, block, size, typical):
            asked[question] = max(weight, asked.get(question, 0))
    for weight, question in _of_plan(plan):
        asked[question] = weight
    first = sorted(asked.items(), key=lambda one: -one[1])  # which keeps the order of equals
    several = [question for question, _ in first]
    return tuple(
        question
        for question in several
        if not any(other != question and other.startswith(question) for other in several)
    )[:_MOST]


def _of_block(
    plan: PlanData, block: PlanData, size: int | None, typical: Typical
) -> Iterator[tuple[int, str]]:
    yield from _of_unit(block)
    yield from _of_limits(plan, block)
    yield from _of_public_frames(block)
    yield from _of_conditions(block)
    yield from _of_keys(block)
    yield from _of_bounds(block)
    yield from _of_scores(block)
    yield from _of_noise(plan, block, size, typical)


def _of_unit(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Who is a person."""
    unit = plan.unit
    frames = _frames(plan)
    known = None if isinstance(unit, Rows) else unit.column
    others = [one.column for one in plan.identifying if one.column != known]
    columns = f"column{'s' if len(others) > 1 else ''} {anded(others)}"
    has = f" The frame also has the {columns}." if others else ""
    if isinstance(unit, Rows):
        within = f"{anded(frames)} together" if len(frames) > 1 else frames[0]
        if unit.contributions == 1:
            yield (
                80,
                f"Does each person have exactly one row in {within}? A person with several "
                f"rows is protected less.{has}",
            )
        else:
            yield (
                80,
                f"Does each person have at most {unit.contributions} rows in {within}? Further "
                f"rows are not protected.{has}",
            )
        return
    same = f", the same in {anded(frames)}" if len(frames) > 1 else ""
    if not looks_identifying(unit.column) or others:
        yield 75, f"Is one value of {unit.column!r} one person{same}, and never several?{has}"
    else:
        yield 12, f"Does one person have only one {unit.column!r}{same}?"


def _frames(plan: PlanData) -> list[str]:
    """The private frame, and those that steps add."""
    others = (other.partition(": ")[0] for other in plan.others)
    return list(dict.fromkeys([plan.source, *others]))


def _of_limits(plan: PlanData, block: PlanData) -> Iterator[tuple[int, str]]:
    """Rows that limits drop."""
    if plan.found is None and (limits := limits_in(block)):
        yield 30, f"Do few people have more than {' or '.join(limits)}? Other rows are dropped."


def limits_in(plan: PlanData) -> list[str]:
    """The most that one person may have, of the frame and of those that steps add."""
    limits = dict[str, None]()
    for step in plan.steps:
        for frame, part in _steps_of(step.definition, plan.source):
            most, of, within = part.get("n"), _names(part.get("by")), ""
            if plan.others:
                within = f" in {frame}"
            if part.get("step") == "LimitRows":
                each = f" for each {of}" if of else ""
                limits[f"{_many(most, 'row')}{each}{within}"] = None
            elif part.get("step") == "LimitGroups":
                limits[f"{_many(most, 'value')} of {of}{within}"] = None
    return list(limits)


def _steps_of(definition: Json, source: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """A step and those of the frame that it adds, with the frame that each is of."""
    if not isinstance(definition, dict):
        return
    yield source, definition
    other = definition.get("other")
    if isinstance(other, dict):
        steps = other.get("steps")
        for step in steps if isinstance(steps, list) else ():
            yield from _steps_of(step, str(other.get("frame")))


def _many(number: Json, what: str) -> str:
    return f"one {what}" if number == 1 else f"{number} {what}s"


def _names(columns: Json) -> str:
    found = columns if isinstance(columns, list) else [columns]
    names = [p.get("name") for one in found for p in objects_in(one) if p.get("type") == "Column"]
    return " and ".join(map(str, names or found)) if columns else ""


def _of_public_frames(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Frames that the query treats as public, and private frames that are joined."""
    for step in plan.steps:
        kind = step.definition.get("step") if isinstance(step.definition, dict) else None
        if match := _PUBLIC.search(step.words):
            rows = "1 row" if match[1] == "1" else f"{match[1]} rows"
            yield (
                90,
                f"Is the public frame with {rows} ({match[2]}) free of private data, or was it "
                f"computed from the rows of people?{_computed(plan, match[2].split(', '))}",
            )
        elif "Join" in str(kind):
            yield 60, "May the join give one person many rows? Rows of both frames are multiplied."
        if kind == "Explode":
            yield 40, f"How many rows does {step.words} make of one?"


def _computed(plan: PlanData, columns: Sequence[str]) -> str:
    """The columns of a public frame that are named like statistics of private columns."""
    private = {one.name for one in plan.columns or ()} - {*columns}
    private |= set() if isinstance(plan.unit, Rows) else {plan.unit.column}
    words = {word.rstrip("s") for name in private for word in name_words(name)}
    like = [
        name
        for name in columns
        if _STATISTIC & {*name_words(name)}
        and words & {word.rstrip("s") for word in name_words(name)} - _STATISTIC
    ]
    if not like:
        return ""
    if len(like) == 1:
        return f" {like[0]} is named like a statistic of a private column."
    return f" {anded(like)} are named like statistics of private columns."


def _of_conditions(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Whether many people are in what is selected."""
    said = dict[str, int]()
    for conditions in conditions_by_output(plan).values():
        for one in conditions:
            values = one.values
            if one.is_parameter or all(isinstance(v, bool) or v is None for v in values):
                continue
            number = any(isinstance(v, Fraction) for v in values)
            weight = 72 if one.sign in ("<", "<=", ">", ">=", "between") and number else 65
            weight += 6 if one.sign == "!=" or not one.is_plain else 0
            said[one.words()] = weight
    if said:
        words = list(said)
        left = len(words) - 4
        more = f" and {left} more condition{'s' if left > 1 else ''}" if left > 0 else ""
        sensitive = _SENSITIVE & {w for word in words for w in name_words(word)}
        yield (
            min(95, max(said.values()) + 5 * (len(words) - 1) + (10 if sensitive else 0)),
            f"Are there many people with {' and '.join(words[:4])}{more}, so that none of them "
            "could be recognised?",
        )


def _of_keys(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Whether keys are public, and complete."""
    if plan.grouping is None:
        return
    by = re.findall(r"col\(\"([^\"]+)\"\)", plan.grouping.partition(": ")[0])
    words = {word for name in by for word in name_words(name)}
    read = {
        w
        for o in plan.outputs
        for c in re.findall(r"col\(\"([^\"]+)\"\)", o.words)
        for w in name_words(c)
    } | {w for o in plan.outputs for w in name_words(o.name)}
    if words & _PLACES and (read | words) & _SENSITIVE:
        yield (
            85,
            f"May it be known of each {' and '.join(by)}, however small, what "
            f"{' and '.join(sorted((read | words) & _SENSITIVE))} its people have?",
        )
    if plan.keys is None:
        yield 50, f"May it be known which values of {' and '.join(by) or 'the key'} occur?"
        return
    periods = periods_of(plan)
    if periods is not None:
        number, such, _ = keys_of_stream(plan, periods)
        if number > 1:
            yield (
                55,
                f"Are the {number:,} keys of each period, such as {such}, public and complete? "
                "Rows with other values are dropped.",
            )
    elif "types list them" not in plan.grouping:
        texts = len(key_values(plan))
        many = (plan.groups or 0) > 30
        these = "Is this one key" if plan.groups == 1 else f"Are these {plan.groups or 0:,} keys"
        yield (
            (70 if many else 55) if texts else 25,
            f"{these} public and complete: {plan.keys}? Rows with other values are dropped.",
        )
    if len(by) >= 3 and (plan.groups or 0) > 100:
        yield (
            45,
            f"Does each of the {plan.groups or 0:,} groups by {', '.join(by)} have many people?",
        )


def periods_of(plan: PlanData) -> int | None:
    """How many periods a stream has; None for a plan of something else."""
    errors = (output.error for output in plan.outputs)
    return next((rule.periods for rule in errors if isinstance(rule, RunningError)), None)


def keys_of_stream(plan: PlanData, periods: int) -> tuple[int, str, str]:
    """How many keys each period has, the first one, and the first day, as texts."""
    first = _FIRST_KEY.match(plan.keys or "")
    such, start = (first[1], first[2]) if first else ("", "")
    return (plan.groups or 0) // periods, such, start


def _of_bounds(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Where bounds come from."""
    ends = bounds_in(plan)
    if ends:
        words = "; ".join(one.words() for one in sorted(ends, key=lambda e: -e.doubt)[:4])
        yield (
            22 + 24 * max(one.doubt for one in ends),
            f"Do these bounds come from public knowledge and not from the data: {words}?",
        )


def _of_scores(plan: PlanData) -> Iterator[tuple[int, str]]:
    for output in plan.outputs:
        if "score=" in output.words:
            score = output.words.partition("score=")[2]
            yield 66, f"Does the score of {output.name!r} treat all alike: {score[:120]}?"
        elif re.search(r"candidates=\[|dp_argmax\(", output.words) and "'" in output.words:
            yield (
                50,
                f"Are the candidates of {output.name!r} public and no people: {output.words[:99]}?",
            )
    if plan.split == "weights":
        yield 48, "Are the weights of the outputs intended, which divide the spend among them?"


def _of_noise(
    plan: PlanData, block: PlanData, size: int | None, typical: Typical
) -> Iterator[tuple[int, str]]:
    """Whether groups are large enough for the noise."""
    if size is not None:
        return
    known = [
        (error.enough, output.name, error.words)
        for output, error in zip(block.outputs, errors_of(plan, block, None, typical), strict=True)
        if error.enough is not None and error.enough > _MUCH_NOISE
    ]
    if known:
        enough, name, words = max(known)
        each = "each group" if block.grouping is not None else block.source
        yield (
            min(88, 35 + int(enough).bit_length() * 3),
            f"Does {each} have {rounded(enough)} rows or more? With fewer, {name!r} "
            f"({words}) says little.",
        )


def _of_plan(plan: PlanData) -> Iterator[tuple[int, str]]:
    """How often it runs, and what that adds up to."""
    cost = plan.cost
    if (found := yearly(plan)) is not None and not any(yearly_risk(plan)):  # a risk then
        amount, times, currency, name = found
        yield (
            70,
            f"Is {currency} {show(amount * times)} a year intended for someone who is present in "
            f"all of it ({currency} {show(amount)} each {name})?",
        )
    if cost.slack >= Fraction(1, 10**6):
        yield (
            40,
            f"Is delta {show(cost.slack, 4)} far below one over the number of people?",
        )
    much = {"epsilon": Fraction(2), "rho": Fraction(1, 8)}.get(cost.currency, Fraction(1))
    if cost.main >= much:
        yield 58, f"Is {cost.currency} {show(cost.main, 4)} needed for this purpose?"
    if (periods := periods_of(plan)) is not None:
        yield 60, f"Are {periods:,} periods intended, all paid for at once?"
    if plan.parameters:
        names = ", ".join(f":{one.name}" for one in plan.parameters)
        yield 15, f"How often is it to run with other values of {names}? Each run costs as much."


def anded(names: Sequence[str], most: int = 12) -> str:
    """Names in a sentence, at most `most` of them."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
