"""The first page of a plan: all that a reviewer decides by, on one screen."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.core.budget import Budget, PureDP
from dpframe.core.exact import nearest, show
from dpframe.core.windows import NAMES
from dpframe.mechanisms import KeyMechanism
from dpframe.plan import PlanData
from dpframe.plan.pieces import FoundLimit
from dpframe.plan.several import blocks_of
from dpframe.report.chapters import queries_of_block, risks_in
from dpframe.report.errors import PLACES, errors_of, limits_of
from dpframe.report.group_size import about
from dpframe.report.numbers import bounds_separated, separated, shown
from dpframe.report.questions import (
    anded,
    keys_of_stream,
    limits_in,
    periods_of,
    questions_in,
)
from dpframe.report.story import charged_to
from dpframe.report.structure import A_YEAR, yearly
from dpframe.report.too_wide import Typical
from dpframe.report.wording import reword

DECIDE: Final = "DECIDE"
RISKS: Final = "Risks"
QUESTIONS: Final = "Only you can answer"
DETAILS: Final = "explain(details=True), or on the command line: dpframe explain FILE --details"
"""How the rest is seen."""
_MOST_RISKS: Final = 8
_LONGEST: Final = 240
_NO_AMOUNT: Final = ("", "exact", "unknown", "depends on the data")
"""What stands in place of an error that has no amount."""
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A label with its lines, numbered where they are to be spoken of; or with outputs."""

    label: str
    lines: tuple[str, ...]
    outputs: tuple[OutputLine, ...] = ()
    numbered: bool = False


def first_page(
    plan: PlanData,
    size: int | None = None,
    typical: Typical = (),
    changes: Sequence[str] | None = None,
) -> tuple[Entry, ...]:
    """What to decide on, whom the plan protects, what it spends and publishes, and the questions.

    Parameters
    ----------
    size, typical
        Guesses of the individuals in each group, and of values.
    changes
        What differs from a plan that was approved before; None where there is none to compare.
    """
    risks = tuple(map(separated, risks_in(plan, size, typical)))
    questions = questions_in(plan, size, typical)
    entries = [Entry(DECIDE, (_decision(plan, risks, questions),))]
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
        entries.append(Entry("Changed", _changed(changes)))
    if questions:
        entries.append(Entry(QUESTIONS, questions, numbered=True))
    return tuple(entries)


def _decision(plan: PlanData, risks: Sequence[str], questions: Sequence[str]) -> str:
    many = {0: "no risks found", 1: "1 risk"}.get(len(risks), f"{len(risks)} risks")
    ask = {0: "", 1: "; 1 question for you"}.get(
        len(questions), f"; {len(questions)} questions for you"
    )
    if plan.remaining is not None and not plan.remaining.covers(plan.cost):
        return f"cannot run: it costs more than the budget has left; {many}{ask}"
    return many + ask


def _protects(plan: PlanData) -> Iterator[Entry]:
    said = dict[str, None]()
    for block in blocks_of(plan):
        said[f"{block.unit.whom()}, in {block.source}"] = None
        said |= {_of_other(other): None for other in block.others}
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


def _of_other(words: str) -> str:
    """Whom a joined frame protects."""
    name, _, whom = words.partition(": ")
    match = re.fullmatch(
        r'adding or removing all rows of one individual, identified by "(.*)"', whom
    )
    return (
        f"all rows of one person (column {match[1]}), in {name}" if match else f"{whom}, in {name}"
    )


def spend_words(budget: Budget) -> str:
    """An amount in four digits, rounded up."""
    slack = f" and delta {_rounded_up(budget.slack)}" if budget.slack else ""
    return f"{budget.currency} {_rounded_up(budget.main)}{slack}"


def _rounded_up(amount: Fraction) -> str:
    """In four digits; amounts may be larger than floats are."""
    return about(float(amount)) if amount < 10**15 else show(amount, 4)


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
        line += f", {_percent(share)} of the budget{name}{per}"
    yield line
    if (left := plan.remaining) is not None:
        where = charged_to(plan)
        if not left.covers(plan.cost):
            yield f"only {spend_words(left)} {_are(left)} left{where}: the plan will be refused"
        else:
            after = left - plan.cost
            runs = _runs(after, plan.cost)
            more = (
                f": enough for {runs:,} more such {run}{'s' if runs != 1 else ''}" if runs else ""
            )
            if not runs and plan.cost.main:
                more = f": not enough for another such {run}"
            words = (
                f"{_left_words(after)} {_are(after)}" if after.main else f"no {after.currency} is"
            )
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


def _left_words(budget: Budget) -> str:
    """An amount in four digits, rounded down because it is what may still be spent."""
    slack = f" and delta {_rounded_down(budget.slack)}" if budget.slack else ""
    return f"{budget.currency} {_rounded_down(budget.main)}{slack}"


def _rounded_down(amount: Fraction) -> str:
    context = decimal.Context(prec=4, rounding=decimal.ROUND_DOWN)
    found = context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))
    return show(Fraction(found), 4)


def _runs(left: Budget, cost: Budget) -> int:
    """How many more runs of the same cost are paid for; 0 where they cost nothing."""
    if not cost.main:
        return 0
    runs = left.main // cost.main
    return int(min(runs, left.slack // cost.slack) if cost.slack else runs)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


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
        if clamped := "; ".join(_clamps(block)):
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
    if match is None or form is None or "dp" in match["rest"] or not _is_closed(match["value"]):
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


def _is_closed(code: str) -> bool:
    """Whether each parenthesis that opens closes."""
    return code.count("(") == code.count(")")


def _reads(plan: PlanData) -> str:
    steps = [s for s in plan.steps if not s.words.startswith(("limit_", "drop(", "select("))]
    names = list(dict.fromkeys(column.name for column in plan.columns or ()))
    columns = f"column{'s' if len(names) > 1 else ''} {anded(names)} of " if names else ""
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
        yield f"excess rows of people with more than {' or '.join(limits)}"
    yield from (
        f"part of the weight of people with many rows, by {step.words}"
        for step in block.steps
        if step.words.startswith("limit_norm(")
    )
    if block.keys is not None and block.grouping is not None:
        periods = periods_of(block)
        if periods is not None:
            yield "rows outside these periods, or without a date"
        if periods is None or (block.groups or 0) > periods:
            yield _without_key(block.keys)
    if any("rows with other values are dropped" in r.contents for r in block.releases):
        yield "rows whose value is not listed"
    if block.grouping is not None and block.keys is None:
        yield "groups with few people"


def _without_key(keys: str) -> str:
    """The rows that listed keys drop."""
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"", "", keys)
    if re.search(r"\bnull\b", bare):
        return "rows with another key"
    unless = ", unless that is listed" if bare.endswith(" more") else ""
    return f"rows whose key is null or not listed{unless}"


def _clamps(block: PlanData) -> Iterator[str]:
    """What is set to the nearest bound where it lies beyond it."""
    for remark in block.remarks:
        if match := _CLAMPED.match(remark):
            yield _plain(match[1]).replace("each individual's", "each person's")


def _changed(changes: Sequence[str]) -> tuple[str, ...]:
    if not changes:
        return ("nothing since the plan that was approved before",)
    return tuple(map(_short, changes[:4])) + (
        (f"and {len(changes) - 4} more differences: see dpframe diff",) if len(changes) > 4 else ()
    )


def _short(text: str, longest: int = _LONGEST) -> str:
    if len(text) <= longest:
        return text
    cut = text[: longest - 4]
    whole = cut.rpartition(", ")[0] if ", " in cut[longest // 2 :] else cut.rstrip()
    return f"{whole} ..."
