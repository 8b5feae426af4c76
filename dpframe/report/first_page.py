"""The first page of a plan: what a reviewer decides by, and what only the reviewer can answer."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Final

from dpframe.aggregates.reconstructed_error import RunningError
from dpframe.core.budget import Budget, PureDP
from dpframe.core.exact import nearest, show
from dpframe.core.units import Identifier, Rows
from dpframe.core.windows import NAMES
from dpframe.frames.definition import Json
from dpframe.mechanisms import KeyMechanism
from dpframe.plan import PlanData
from dpframe.plan.data import FoundLimit
from dpframe.plan.looks import looks_identifying, name_words, words_of
from dpframe.plan.several import blocks_of
from dpframe.report.errors import PLACES, Typical, about, errors_of, limits_of, rounded
from dpframe.report.numbers import bounds_separated, reword, separated, shown
from dpframe.report.risks import (
    A_YEAR,
    bounds_in,
    conditions_by_output,
    key_values,
    yearly,
    yearly_risk,
)
from dpframe.report.story import charged_to, queries_of_block, risks_in

# What only the reviewer can answer: questions that follow from a plan, the most doubtful first.

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
        of_block = (
            _of_unit(block),
            _of_limits(plan, block),
            _of_public_frames(block),
            _of_conditions(block),
            _of_keys(block),
            _of_bounds(block),
            _of_scores(block),
            _of_noise(plan, block, size, typical),
        )
        for weight, question in chain.from_iterable(of_block):
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


def _of_unit(plan: PlanData) -> Iterator[tuple[int, str]]:
    """Who is a person."""
    unit = plan.unit
    others = (other.partition(": ")[0] for other in plan.others)
    frames = list(dict.fromkeys([plan.source, *others]))
    known = None if isinstance(unit, Rows) else unit.column
    beside = [one.column for one in plan.identifying if one.column != known]
    columns = f"column{'s' if len(beside) > 1 else ''} {join_names(beside)}"
    has = f" The frame also has the {columns}." if beside else ""
    if isinstance(unit, Rows):
        within = f"{join_names(frames)} together" if len(frames) > 1 else frames[0]
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
    same = f", the same in {join_names(frames)}" if len(frames) > 1 else ""
    if not looks_identifying(unit.column) or beside:
        yield 75, f"Is one value of {unit.column!r} one person{same}, and never several?{has}"
    else:
        each = f"Does each person have one value of {unit.column!r}{same}?"
        yield 12, f"{each} A person with several is protected less."


def _of_limits(plan: PlanData, block: PlanData) -> Iterator[tuple[int, str]]:
    """Rows that limits drop."""
    if plan.found is None and (limits := limits_in(block)):
        most = " or ".join(limits)
        yield 30, f"Do only few people have more than {most}? Their other rows are dropped."


def limits_in(plan: PlanData) -> list[str]:
    """The most that one person may have, of the frame and of those that steps add."""
    limits = dict[str, None]()
    for step in plan.steps:
        for frame, part in _steps_of(step.definition, plan.source):
            by, most, within = part.get("by"), part.get("n"), ""
            of = " and ".join(map(str, by if isinstance(by, list) else ()))
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
    return f" {join_names(like)} are named like statistics of private columns."


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


def join_names(names: Sequence[str], most: int = 12) -> str:
    """Names in a sentence, at most `most` of them."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


DECIDE: Final = "DECIDE"
RISKS: Final = "Risks"
QUESTIONS: Final = "Only you can answer"
DETAILS: Final = "explain(details=True), or on the command line: dpframe explain FILE --details"
"""How the rest is seen."""
_MOST_RISKS: Final = 8
_LONGEST: Final = 240
_NO_AMOUNT: Final = ("", "exact", "unknown", "depends on the data")
"""What stands in place of an error that has no amount."""
_LIMITS: Final = ("limit_rows(", "limit_groups(")
_DROPS: Final = ("filter(", "drop_nulls(", "join(", "explode(")
"""Steps that may leave rows out, or add some."""
_CLAMPED: Final = re.compile(r"^(.*) (?:is|are) clamped to bounds,", re.DOTALL)
_SUM: Final = re.compile(r"^(?P<value>(?:(?!dp[._]).)+)\.dp_(?P<name>\w+)\((?P<rest>.*)\)$")
_WORDS: Final = {
    "count": "number of values of {}",
    "n_unique": "number of distinct values of {}",
    "sum": "sum of {}",
    "mean": "mean of {}",
    "median": "median of {}",
    "var": "variance of {}",
    "std": "standard deviation of {}",
    "quantile": "quantiles of {}",
    "histogram": "histogram of {}",
    "cdf": "distribution of {}",
}
_ALL_ROWS: Final = re.compile(
    r'adding or removing all rows of one individual, identified by "(.*)"'
)
_BOUNDS: Final = re.compile(r"^\((-?[\d.]+), (-?[\d.]+)\)")
_COUNT_PER_UNIT: Final = re.compile(r"dp\.count\(per='unit', \((-?[\d.]+), (-?[\d.]+)\)\)")
_PER_UNIT: Final = re.compile(r"(?:, )?per='unit'(?:, )?")
_LEVELS: Final = re.compile(r"^(?:\[([\d., ]+)\]|([\d.]+))")
_CANDIDATES: Final = re.compile(
    r"candidates=\[(-?[\d.]+(?:, -?[\d.]+){4,})(?:, \.\.\. ([\d,]+) in all)?\]"
)


@dataclass(frozen=True, slots=True)
class OutputLine:
    """An output: its error first."""

    name: str
    error: str
    verdict: str
    words: str

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """What a row of a table has."""
        return self.name, self.error, self.verdict, self.words


@dataclass(frozen=True, slots=True)
class Entry:
    """A label with its lines, numbered where they are to be spoken of; or with outputs."""

    label: str
    lines: tuple[str, ...]
    outputs: tuple[OutputLine, ...] = ()
    numbered: bool = False


def first_page(
    plan: PlanData,
    # `size`, `typical`: guesses of the individuals in each group, and of values.
    size: int | None = None,
    typical: Typical = (),
    # What differs from a plan that was approved before; None where there is none to compare.
    changes: Sequence[str] | None = None,
) -> tuple[Entry, ...]:
    """What to decide on, whom the plan protects, what it spends and shows, and the questions."""
    risks = tuple(map(separated, risks_in(plan, size, typical)))
    questions = questions_in(plan, size, typical)
    counts = (("risk", len(risks)), ("question", len(questions)))
    many, ask = (f"{n} {what}{'' if n == 1 else 's'}" if n else "" for what, n in counts)
    decision = (many or "no risks found") + (f"; {ask} for you" if ask else "")
    if plan.remaining is not None and not plan.remaining.covers(plan.cost):
        decision = f"cannot run: it costs more than the budget has left; {decision}"
    entries = [Entry(DECIDE, (decision,))]
    if risks:
        shown_risks = risks if len(risks) <= _MOST_RISKS else risks[: _MOST_RISKS - 1]
        more = len(risks) - len(shown_risks)
        rest = (f"and {more} more: see the details",) if more else ()
        entries.append(Entry(RISKS, (*shown_risks, *rest), numbered=True))
    entries += [
        *_protects(plan),
        Entry("Spends", tuple(_spends(plan))),
        *_publishes(plan, size, typical),
    ]
    if plan.parameters:
        words = ", ".join(f":{p.words()}" for p in plan.parameters)
        entries.append(Entry("Parameters", (words,)))
    if changes is not None:
        lines = [*map(_short, changes[:4])] or ["nothing since the plan that was approved before"]
        if len(changes) > 4:
            lines.append(f"and {len(changes) - 4} more differences: see dpframe diff")
        entries.append(Entry("Changed", tuple(lines)))
    if questions:
        entries.append(Entry(QUESTIONS, questions, numbered=True))
    return tuple(entries)


def _protects(plan: PlanData) -> Iterator[Entry]:
    said = dict[str, None]()
    for block in blocks_of(plan):
        said[f"{block.unit.whom()}, in {block.source}"] = None
        for other in block.others:
            name, _, whom = other.partition(": ")
            match = _ALL_ROWS.fullmatch(whom)
            whom = f"all rows of one person (column {match[1]})" if match else whom
            said[f"{whom}, in {name}"] = None
    declared = dict.fromkeys(d for block in blocks_of(plan) for d in block.declared)
    about_typical = dict.fromkeys(f"{t.column} is typically {shown(t.value)}" for t in plan.typical)
    facts = "; ".join(map(bounds_separated, [*declared, *about_typical]))
    by = "declared in protect(); dpframe cannot check it"
    lines = [*said, _short(f"also {by}: {facts}") if facts else by]
    if plan.windows is not None:
        every = NAMES[plan.windows.every]
        lines.append(
            f"reads {plan.windows.words()}; a person in n {every}s is protected n times less"
        )
    yield Entry("Protects", tuple(lines))


def _rounded_up(amount: Fraction) -> str:
    """In four digits; amounts may be larger than floats are."""
    return about(float(amount)) if amount < 10**15 else show(amount, 4)


def _rounded_down(amount: Fraction) -> str:
    """In four digits, of what may still be spent."""
    context = decimal.Context(prec=4, rounding=decimal.ROUND_DOWN)
    found = context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))
    return show(Fraction(found), 4)


def spend_words(budget: Budget, rounded: Callable[[Fraction], str] = _rounded_up) -> str:
    """An amount in four digits."""
    slack = f" and delta {rounded(budget.slack)}" if budget.slack else ""
    return f"{budget.currency} {rounded(budget.main)}{slack}"


def _spends(plan: PlanData) -> Iterator[str]:
    periods = next((n for block in blocks_of(plan) if (n := periods_of(block))), None)
    run = "run" if periods is None else "stream"
    none = ": no delta" if plan.cost.guarantee == PureDP.measure else ""
    line = f"{spend_words(plan.cost)} ({plan.cost.guarantee}{none})"
    if periods is not None:
        line += f" for all {periods:,} periods together"
    if plan.cost.measure != plan.requested.measure:
        line += f", for a spend of {spend_words(plan.requested)}"
    budget = plan.budget
    if budget is not None and budget.whole.measure == plan.cost.measure and budget.whole.main:
        share = nearest(plan.cost.main / budget.whole.main)
        name = "" if budget.name is None else f" {budget.name!r}"
        per = "" if budget.per is None else f" of each {NAMES[budget.per]}"
        percent = f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"
        line += f", {percent} of the budget{name}{per}"
    yield line
    if (left := plan.remaining) is not None:
        where = charged_to(plan)
        if not left.covers(plan.cost):
            yield f"only {spend_words(left)} {_are(left)} left{where}: the plan will be refused"
        else:
            after = left - plan.cost
            main, slack = plan.cost.main, plan.cost.slack
            runs = int(after.main // main) if main else 0  # how many more are paid for
            runs = min(runs, int(after.slack // slack)) if slack else runs
            more = (
                f": enough for {runs:,} more such {run}{'s' if runs != 1 else ''}" if runs else ""
            )
            if not runs and plan.cost.main:
                more = f": not enough for another such {run}"
            words = f"no {after.currency} is"
            if after.main:
                words = f"{spend_words(after, _rounded_down)} {_are(after)}"
            yield f"{words} left after it{where}{more if after.main else ''}"
    if plan.share is not None:
        touched, charged = plan.share.touched, plan.share.charged
        dearest = "most expensive" if touched == 1 else f"{touched} most expensive"
        if touched >= plan.share.parts > 1:
            dearest = "sum of all"
        pays = f"now {spend_words(charged)} more" if charged.main else "now nothing more"
        yield f"one of {plan.share.parts} parts: the session pays for the {dearest}, {pays}"
    if budget is not None and budget.per is not None:
        name, times = NAMES[budget.per], A_YEAR[budget.per]
        yield (
            f"the budget renews: {budget.whole.currency} {show(budget.whole.main, 4)} each {name}, "
            f"{show(budget.whole.main * times, 4)} for someone present all year"
        )
    elif (found := yearly(plan)) is not None:
        amount, times, currency, name = found
        yield (
            f"{currency} {show(amount, 4)} a {name}, {show(amount * times, 4)} for someone present "
            "all year"
        )


def _are(budget: Budget) -> str:
    return "are" if budget.slack else "is"


def _publishes(plan: PlanData, size: int | None, typical: Typical) -> Iterator[Entry]:
    numbered = [*enumerate(blocks_of(plan))]
    for number, block in numbered[1:] if plan.found is not None else numbered:
        name = (
            f"{queries_of_block(plan, number)}: " if len(plan.blocks) > 1 and not plan.found else ""
        )
        lines = [
            OutputLine(output.name, error.words, error.verdict, _output_words(output.words))
            for output, error in zip(
                block.outputs, errors_of(plan, block, size, typical), strict=True
            )
        ]
        many = len(lines) - 12
        if many > 1:
            lines = [
                *lines[:12],
                OutputLine("...", f"and {many} more outputs", "", "see the details"),
            ]
        first, *more = _per(block, plan.found)
        yield Entry("Publishes", (name + first, *more, *_legend(lines, plan)), tuple(lines))
        yield Entry("Reads", (_reads(block),))
        if dropped := "; ".join(_drops(plan, block)):
            yield Entry("Drops", (_short(dropped),))
        matches = filter(None, map(_CLAMPED.match, block.remarks))
        clamped = "; ".join(_plain(match[1]) for match in matches)
        if clamped := clamped.replace("each individual's", "each person's"):
            words = f"{_short(clamped)}: a value beyond its bounds counts as the nearest bound"
            yield Entry("Clamps", (words,))


def _per(plan: PlanData, found: FoundLimit | None) -> Iterator[str]:
    """The groups that are published."""
    if plan.grouping is None:
        yield "for all rows"
        return
    groups = plan.grouping.partition(": ")[0]
    groups = _plain(groups.removeprefix("group_by(").removesuffix(")"))
    if plan.keys is None:
        laws = [r.law for r in plan.releases if isinstance(r.law, KeyMechanism)]
        half = f"{laws[0].size_at(Fraction(1, 2)):,}" if laws else "few"
        under = f" with {found.words(found.choices[-1].n)}" if found is not None else ""
        yield (
            f"per {groups}, for groups found in the data: a group of {half} people appears half "
            f"of the time{under}"
        )
        return
    if (periods := periods_of(plan)) is not None:
        yield from _per_period(plan, groups, periods)
        return
    best = "the best of " if plan.best_group else "per "
    keys = f"{plan.groups or 0:,} key{'' if plan.groups == 1 else 's'}"
    yield f"{best}{groups}, {keys}: {_short(plan.keys, 110)}"


def _legend(outputs: Sequence[OutputLine], plan: PlanData) -> Iterator[str]:
    """What the errors and verdicts of these outputs mean."""
    verdicts = {one.verdict.partition(" ")[0] for one in outputs} - {""}
    if any(one.error not in _NO_AMOUNT for one in outputs):
        good = ". Good: ± is at most about a tenth of the result" if verdicts else ""
        rest = ". Rough: up to three tenths. Useless: more" if verdicts - {"good"} else ""
        yield f"Noise is at most ± in 95% of runs{good}{rest}"
    found, ends = plan.found, limits_of(plan)
    if found is not None and ends is not None and any(" to " in one.error for one in outputs):
        least, most, _ = ends
        yield (
            f"'a to b': a with {found.words(f'{least:,}')}, b with {found.words(f'{most:,}')}; "
            "dpframe chooses the limit when the query runs"
        )
    if any(PLACES in one.error for one in outputs):
        yield (
            "places in sorted order: how far the published value may stand from the exact one if "
            "you sort the rows"
        )


def _per_period(plan: PlanData, by: str, periods: int) -> Iterator[str]:
    """The groups of a stream, whose keys are those of its periods too."""
    keys, such, start = keys_of_stream(plan, periods)
    since = f" from {start} on" if start else ""
    names, _, period = by.rpartition("period=")
    each = f"each of {periods:,} periods of {period}{since}"
    if not names:
        yield each
    else:
        many = f"{keys:,} key{'' if keys == 1 else 's'}"
        yield f"per {names.removesuffix(', ')}, {many}, such as {such}, in {each}"
    yield "each output of the period, and its total so far (_total); errors are of the last total"


def _plain(code: str) -> str:
    """Columns without the code around them."""
    return re.sub(r"col\(\"([^\"]+)\"\)", r"\1", code)


def _output_words(words: str) -> str:
    """What an output is, in words where its form is known."""
    if words == "dp.count()":
        return "number of rows"
    if match := _COUNT_PER_UNIT.fullmatch(words):
        low, high = separated(match[1]), separated(match[2])
        return f"number of rows, for each person clamped to {low}..{high}"
    match = _SUM.match(words)
    form = _WORDS.get(match["name"]) if match else None
    is_closed = match is not None and match["value"].count("(") == match["value"].count(")")
    if match is None or form is None or "dp" in match["rest"] or not is_closed:
        return _short(_plain(words), 100)
    value = _plain(match["value"])
    said, rest = form.format(value), match["rest"]
    each = "each person's total " if _PER_UNIT.search(rest) else ""
    rest = _PER_UNIT.sub("", rest)
    if match["name"] == "quantile" and (levels := _LEVELS.match(rest)):
        said = f"quantile{'s' if levels[1] else ''} {levels[1] or levels[2]} of {value}"
        rest = rest[levels.end() :].lstrip(", ")
    if points := _CANDIDATES.fullmatch(rest):
        numbers = points[1].split(", ")
        many = points[2] or len(numbers)
        said += f", chosen from {many} candidates: {numbers[0]}, {numbers[1]}"
        said += ", ..." if points[2] else f", ..., {numbers[-1]}"
        rest = ""
    if bounds := _BOUNDS.match(rest):
        said += f", {each}clamped to {separated(bounds[1])}..{separated(bounds[2])}"
        rest = rest[bounds.end() :].lstrip(", ")
    return _short(f"{said} ({rest})" if rest and rest != "nonnegative=True" else said, 100)


def _reads(plan: PlanData) -> str:
    steps = [s for s in plan.steps if not s.words.startswith(("limit_", "drop(", "select("))]
    names = list(dict.fromkeys(column.name for column in plan.columns or ()))
    columns = f"column{'s' if len(names) > 1 else ''} {join_names(names)} of " if names else ""
    if not steps:
        return f"{columns}all rows of {plan.source}"
    words = [reword(_plain(step.words)) for step in steps]
    if all(word.startswith("filter(") for word in words):
        rows = f"the rows of {plan.source} where {' and '.join(w[7:-1] for w in words)}"
    else:
        rows = f"{plan.source}: {', then '.join(words)}"
    return _short(columns + rows)


def _drops(plan: PlanData, block: PlanData) -> Iterator[str]:
    found = plan.found
    if found is not None:
        choices = f"{found.choices[0].n} to {found.choices[-1].n:,}"
        yield (
            f"rows of a person beyond {_plain(found.words('n'))}; dpframe chooses n, from "
            f"{choices}, when the query runs"
        )
    limits = limits_in(block)
    if found is None and limits:
        yield f"excess rows of people with more than {' or '.join(limits)}{_later(block)}"
    yield from (
        f"part of the weight of people with many rows, by {step.words}"
        for step in block.steps
        if step.words.startswith("limit_norm(")
    )
    if isinstance(block.unit, Identifier):
        yield f"rows where {block.unit.column} is null"
    if block.keys is not None and block.grouping is not None:
        periods = periods_of(block)
        if periods is not None:
            yield "rows outside these periods, or without a date"
        if periods is None or (block.groups or 0) > periods:
            bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"", "", block.keys)
            unless = ", unless that is listed" if bare.endswith(" more") else ""
            has_null = re.search(r"\bnull\b", bare)
            yield (
                "rows with another key"
                if has_null
                else (f"rows whose key is null or not listed{unless}")
            )
    if any("rows with other values are dropped" in r.contents for r in block.releases):
        yield "rows whose value is not listed"
    if block.grouping is not None and block.keys is None:
        yield "groups with few people"


def _later(plan: PlanData) -> str:
    """The first step after a limit that drops rows: rows that it drops have counted for the limit.
    The same steps in another order keep other rows.
    """
    words = [step.words for step in plan.steps]
    first = next((n for n, one in enumerate(words) if one.startswith(_LIMITS)), len(words))
    later = next((one for one in words[first:] if one.startswith(_DROPS)), None)
    return "" if later is None else f", counted before {_short(_plain(later), 100)}"


def _short(text: str, longest: int = _LONGEST) -> str:
    if len(text) <= longest:
        return text
    cut = text[: longest - 4]
    whole = cut.rpartition(", ")[0] if ", " in cut[longest // 2 :] else cut.rstrip()
    return f"{whole} ..."
