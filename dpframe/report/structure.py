"""Risks by the structure of a plan: what single people out by several conditions, numbers that are
not round, outputs that get nearly nothing of the spend, and names that mislead.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.core.exact import show
from dpframe.core.units import Identifier, Rows
from dpframe.core.windows import NAMES
from dpframe.plan import PlanData, PlanOutput
from dpframe.plan.definition import objects_in
from dpframe.plan.looks import (
    looks_identifying,
    looks_like_a_person,
    looks_like_an_event,
    name_words,
    words_of,
)
from dpframe.plan.several import blocks_of
from dpframe.report.conditions import Condition, conditions_by_output, constants_in

__all__ = [
    "A_YEAR",
    "Ends",
    "bounds_in",
    "differencing",
    "key_values",
    "structural_risks",
    "yearly_risk",
]

_MANY: Final = 3
"""This many equalities with constants select few people."""
_DIGITS: Final = 3
"""Numbers with more significant digits are not round."""
_STARVED: Final = Fraction(1, 100)
_LARGEST_YEAR: Final = {"epsilon": Fraction(12), "rho": Fraction(3)}
A_YEAR: Final = {"1d": 365, "1w": 52, "1mo": 12, "1q": 4, "1y": 1}
_USUAL: Final = frozenset(
    map(
        int,
        words_of(
            "1440 10080 1024 2048 4096 8192 16384 32768 65536 32767 65535 86400 604800 8760 8784 "
            "525600 1048576 2147483647 4294967295 31536000"
        ),
    )
)
"""Numbers with many digits that everybody knows: minutes of a day, limits of types."""
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER: Final = r"(-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)"
_PAIR: Final = re.compile(rf"\({_NUMBER}, {_NUMBER}\)")
_BEFORE_BOUNDS: Final = re.compile(
    r"dp_(?!count|cdf_points)\w*\(?$|dp_quantile\(.*$|clip\(?$|bounds=$"
)
_QUANTILES: Final = re.compile(r"dp_quantile\((\[[^\]]*\]|[\d.]+)")
_DECLARED: Final = re.compile(rf"^(.*) is (?:.*, )?in \[{_NUMBER}, {_NUMBER}\]")
_COLUMN: Final = re.compile(r"col\(\"([^\"]+)\"\)")
_TIMES: Final = re.compile(r"datetime\.datetime\((\d+(?:, \d+)+)\)")
_BIRTH: Final = words_of(
    "birth born dob birthday birthdate dateofbirth geburtsdatum geboren geb naissance nacimiento "
    "nascita nascimento geboortedatum"
)
_STATISTICS: Final = {
    "mean": "mean avg average mittel mittelwert durchschnitt moyenne promedio media",
    "sum": "sum total summe somme suma totale",
    "median": "median mediane médiane mediana",
    "n_unique": "unique distinct",
    "share": "share rate pct percent percentage ratio anteil prozent quote taux proportion",
}
_FITS: Final = {
    "mean": ("mean", "ratio", "/"),
    "sum": ("sum", "count", "n_unique", "cdf", "ratio", "/", "*"),
    "median": ("median", "quantile"),
    "n_unique": ("n_unique",),
    "share": ("ratio", "mean", "/", "cdf", "argmax", "quantile", "median"),
}
_FUNCTION: Final = re.compile(r"dp[._](\w+)\(")
_COUNTED_PEOPLE: Final = words_of(
    "people persons patients customers users members employees students pupils individuals "
    "personen patienten kunden nutzer personnes clients pazienti clientes"
)


@dataclass(frozen=True, slots=True)
class Ends:
    """Bounds that the plan rests on.

    Parameters
    ----------
    what
        The column, or the output where several are read.
    low, high
        As they were written.
    """

    what: str
    low: str
    high: str

    def words(self) -> str:
        """In a sentence."""
        return f"{self.what} {_separated(self.low)} to {_separated(self.high)}"

    @property
    def odd(self) -> list[str]:
        """The ends that are not round."""
        return [end for end in (self.low, self.high) if _is_odd(end)]

    @property
    def doubt(self) -> int:
        """How much they look as if data had been read: ends that are no multiples of 5."""
        return sum(1 for end in (self.low, self.high) if not _is_plain(end))


def _separated(number: str) -> str:
    digits, point, rest = number.replace("_", "").partition(".")
    if not digits.lstrip("-").isdigit() or len(digits) < 5:
        return number
    return f"{int(digits):,}{point}{rest}"


def _is_odd(number: str) -> bool:
    """Whether it has more than three significant digits, and is no year and nothing well known."""
    value = Fraction(number.replace("_", ""))
    if (
        value in _USUAL
        or abs(value) in _USUAL
        or (1800 <= value <= 2200 and value.denominator == 1)
    ):
        return False
    digits = re.sub(r"e.*", "", number.replace("_", "").lstrip("-")).replace(".", "").strip("0")
    return len(digits) > _DIGITS and set(digits) != {"9"} and not re.fullmatch(r"\d9+", digits)


def _is_plain(number: str) -> bool:
    value = Fraction(number.replace("_", ""))
    return (
        value in (0, 1, -1, 18, 99, 120, 12, 24, 31, 7, 60)
        or value % 5 == 0
        or (abs(value) < 1 and value.denominator in (2, 5, 10, 20, 100))
    )


def bounds_in(plan: PlanData) -> list[Ends]:
    """The bounds of columns and outputs, each once."""
    found = dict[Ends, None]()
    for declared in plan.declared:
        if match := _DECLARED.match(declared):
            found[Ends(match[1], match[2], match[3])] = None
    for words in [*(o.words for o in plan.outputs), *(s.words for s in plan.steps)]:
        bare = _QUOTED.sub(lambda m: m[0] if len(m[0]) < 40 else "''", words)
        for match in _PAIR.finditer(bare):
            before = bare[: match.start()]
            if not _BEFORE_BOUNDS.search(before):
                continue
            columns = _COLUMN.findall(before)
            found[Ends(columns[-1] if columns else "a value", match[1], match[2])] = None
    return list(found)


def key_values(plan: PlanData) -> list[str]:
    """The listed keys and candidates that plans show, texts alone."""
    return [text[1:-1] for text in re.findall(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"", plan.keys or "")]


def candidate_values(plan: PlanData) -> list[str]:
    """Texts among which winners are chosen, or that a histogram counts."""
    found = list[str]()
    for output in plan.outputs:
        if re.search(r"dp[._](argmax|histogram|mode)", output.words):
            inside = (
                output.words.partition("candidates=")[2] or output.words.partition("dp_hist")[2]
            )
            found += re.findall(r"'([^']*)'", inside)
    for release in plan.releases:
        if release.candidates is not None or release.aggregate == "histogram":
            listed = re.search(r"(?:categories|candidates) of .*?\((.*?)\)", release.contents)
            found += re.findall(r"'([^']*)'", listed[1]) if listed else []
    return list(dict.fromkeys(found))


def structural_risks(plan: PlanData) -> Iterator[str]:
    """What to decide on, of a plan of one query."""
    yield from _of_unit(plan)
    yield from _of_conditions(plan)
    yield from _of_values(plan)
    yield from _of_numbers(plan)
    yield from _of_shares(plan)
    yield from _of_exact(plan)
    yield from _of_names(plan)


def _of_unit(plan: PlanData) -> Iterator[str]:
    if not isinstance(plan.unit, Identifier):
        return
    column = plan.unit.column
    others = [one.column for one in plan.identifying if one.column != column]
    if looks_like_an_event(column):
        has = f"; the frame also has {_listed(others)}" if others else ""
        yield (
            f"{column!r} is protected, which looks like one event and not like a person: a person "
            f"with n of them is protected n times less{has}. Protect by the column of the person"
        )
    elif others and not looks_identifying(column):
        yield (
            f"{column!r} is protected, and {_listed(others)} in the same frame "
            f"look{'s' if len(others) == 1 else ''} like a person: is one {column!r} one person?"
        )


def _of_conditions(plan: PlanData) -> Iterator[str]:
    said = dict[str, None]()
    for name, conditions in conditions_by_output(plan).items():
        equal = {c.column: c for c in conditions if c.is_equality and not _is_flag(c)}
        if len(equal) >= _MANY:
            words = " and ".join(c.words() for c in equal.values())
            said[
                f"singles people out: {name!r} rests on rows with {words}; "
                f"{len(equal)} exact values together fit few people"
            ] = None
        for condition in conditions:
            said |= dict.fromkeys(_of_time(name, condition))
    first = list(said)
    if first:
        yield first[0]
        yield from (
            s
            for s in first[1:]
            if s.partition(" rests on")[2] != first[0].partition(" rests on")[2]
        )


def _is_flag(condition: Condition) -> bool:
    """Whether it compares with true, false or null, which many rows have."""
    return all(isinstance(value, bool) or value is None for value in condition.values)


def _of_time(name: str, condition: Condition) -> Iterator[str]:
    width = condition.width
    if width is not None and width < dt.timedelta(days=1) and not condition.is_parameter:
        yield (
            f"singles people out: {name!r} rests on rows with {condition.words()}, less than a day"
        )
    elif condition.is_equality and condition.is_plain and not condition.is_parameter:
        value = condition.values[0]
        if isinstance(value, dt.datetime):
            yield f"singles people out: {name!r} rests on rows of one moment, {condition.words()}"
        elif isinstance(value, dt.date) and _BIRTH & {*name_words(condition.column)}:
            yield (
                f"singles people out: {name!r} rests on rows with {condition.words()}, a date of "
                "birth that few people share"
            )


def _of_values(plan: PlanData) -> Iterator[str]:
    """Keys, candidates and constants that look like people."""
    keys, candidates = key_values(plan), candidate_values(plan)
    for what, values in (("key", keys), ("candidate", candidates)):
        kinds = [(value, kind) for value in values if (kind := looks_like_a_person(value))]
        if kinds and len(kinds) * 3 >= len(values):
            value, kind = kinds[0]
            many = f"{len(kinds)} of {len(values)} {what}s shown look like {_plural(kind)}"
            one = f"the {what} {value!r} looks like {kind}"
            yield (
                f"{one if len(values) == 1 else many}, such as {value!r}: each result is about one "
                "person or household"
            )
    by = _COLUMN.findall((plan.grouping or "").partition(": ")[0])
    person = plan.unit.column if isinstance(plan.unit, Identifier) else None
    for name in by:
        if name != person and looks_identifying(name) and not _are_kinds(keys):
            yield (
                f"has a group for each {name!r}, which looks like one person: each is a result "
                "about one"
            )
    for column, text in dict.fromkeys(constants_in(plan)):
        if (kind := looks_like_a_person(text)) and not text.islower():
            yield (
                f"compares {column!r} with {text!r}, which looks like {kind}: the result is about "
                "one person"
            )


def _are_kinds(keys: list[str]) -> bool:
    """Whether keys are words such as ``new`` and ``returning``."""
    return bool(keys) and all(re.fullmatch(r"[a-z][a-z _-]*", key) for key in keys)


def _plural(kind: str) -> str:
    return {"a name": "names", "an address": "addresses"}.get(kind, "personal codes")


def _of_numbers(plan: PlanData) -> Iterator[str]:
    for ends in bounds_in(plan):
        if odd := ends.odd:
            yield (
                f"the bound {' and '.join(map(_separated, odd))} of {ends.what!r} is not round: "
                "was it read from the data? Bounds must come from public knowledge"
            )
    for output in plan.outputs:
        for levels in _QUANTILES.findall(output.words):
            if {"0", "0.0", "1", "1.0"} & {*re.findall(r"[\d.]+", levels)}:
                yield (
                    f"{output.name!r} is the least or largest value, which is the value of one "
                    "person: a quantile such as 0.01 or 0.99 rests on several"
                )
        for found in _TIMES.finditer(output.words.partition("dp_")[2]):
            parts = [int(part) for part in found[1].split(", ")]
            if (
                any(parts[3:])
                and parts[3:] != [23, 59, 59][: len(parts[3:])]
                and parts[4:5] != [59]
            ):
                yield (
                    f"a bound of {output.name!r} is a moment within a day, "
                    f"{dt.datetime(*parts)}: was it read from the data?"  # type: ignore[arg-type]
                )


def _of_shares(plan: PlanData) -> Iterator[str]:
    """Outputs that get nearly nothing of the spend."""
    draws = [draw for draw in plan.draws if not draw.cost.is_zero]
    total = sum((draw.cost.main for draw in draws), Fraction(0))
    if not total or plan.found is not None or len({draw.cost.measure for draw in draws}) != 1:
        return
    for output in plan.outputs:
        used = {plan.releases[number].draw for number in output.releases}
        paid = sum((draw.cost.main for draw in draws if draw.draw in used), Fraction(0))
        if used and paid and paid < _STARVED * total:
            yield (
                f"{output.name!r} gets {float(100 * paid / total):.2g}% of the spend: its noise is "
                "far larger than that of the other outputs"
            )


def _of_exact(plan: PlanData) -> Iterator[str]:
    """Numbers without noise."""
    if not (isinstance(plan.unit, Rows) and plan.unit.adjacency == "change-one"):
        return
    names = [
        output.name
        for output in plan.outputs
        if output.releases and all(plan.releases[n].mechanism == "none" for n in output.releases)
    ]
    if names:
        yield (
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} released exactly, without "
            "noise: under change-one the number of rows is public, so whether a person is in the "
            "data is not protected"
        )


def _of_names(plan: PlanData) -> Iterator[str]:
    """Names of outputs that say something else than they are."""
    columns = {one.name for one in plan.columns or ()} | {one.column for one in plan.identifying}
    by = set(_COLUMN.findall(plan.grouping or ""))
    conditions = conditions_by_output(plan)
    for output in plan.outputs:
        used = {c.column for c in conditions[output.name]} | {
            str(part.get("name"))
            for part in objects_in(output.definition)
            if part.get("type") == "Column"
        }
        made = {w for s in plan.steps for w in re.findall(r"(\w+)=", s.words)}
        functions = set(_FUNCTION.findall(output.words)) | {s for s in "/*" if s in output.words}
        if output.name in columns and used and output.name not in used | made | by:
            yield (
                f"the output {output.name!r} is computed from {_listed(sorted(used))} and named "
                "like another column"
            )
            continue
        words = name_words(output.name)
        others = [
            column
            for column in sorted(columns - used - by - made)
            if len(column) > 2 and _contains(words, name_words(column))
        ]
        if others and used:
            yield (
                f"the output {output.name!r} has the name of {_listed(others)} in it, which it "
                f"does not read: it is computed from {_listed(sorted(used))}"
            )
        elif wrong := _wrong_statistic(words, functions):
            yield f"the output {output.name!r} is called a {wrong}, and is {output.words}"
        elif (
            _COUNTED_PEOPLE & {*words}
            and functions == {"count"}
            and not isinstance(plan.unit, Rows)
            and any(plan.releases[n].spread.tight[2] > 1 for n in output.releases)
        ):
            yield (
                f"the output {output.name!r} counts rows, and one person may have several: "
                f"people are dp.n_unique of {plan.unit.column!r}"
            )


def _contains(words: list[str], part: list[str]) -> bool:
    n = len(part)
    return bool(part) and any(words[i : i + n] == part for i in range(len(words) - n + 1))


def _wrong_statistic(words: list[str], functions: set[str]) -> str | None:
    """The statistic that a name claims and the output is not."""
    if not functions or functions & {"argmax", "histogram", "bounds"}:
        return None
    for name, spellings in _STATISTICS.items():
        if {*words} & {*spellings.split()} and not functions & {*_FITS[name]}:
            return name.replace("n_unique", "number of distinct values")
    return None


def yearly_risk(plan: PlanData) -> Iterator[str]:
    """What a budget that renews adds up to."""
    if (found := yearly(plan)) is None:
        return
    amount, times, whole, name = found
    if amount * times > _LARGEST_YEAR.get(whole, Fraction(12)):
        yield (
            f"protects each {name} alone: {whole} {show(amount)} a {name} is {whole} "
            f"{show(amount * times)} for someone present all year"
        )


def yearly(plan: PlanData) -> tuple[Fraction, int, str, str] | None:
    """What the plan costs in one window, how many a year has, in what, and what a window is called;
    None where a person is protected whole. Nothing of the session, which no fingerprint covers.
    """
    window = plan.unit.window if isinstance(plan.unit, Identifier) else None
    if window is None:
        return None
    return plan.cost.main, A_YEAR[window], plan.cost.currency, NAMES[window]


def differencing(plan: PlanData) -> Iterator[str]:
    """Pairs of outputs whose conditions are almost equal: their difference is about few people."""
    found = list[tuple[str, str, tuple[Condition, ...]]]()
    for block in blocks_of(plan):
        by_output = conditions_by_output(block)
        for output in block.outputs:
            found.append((output.name, _kind(output), by_output[output.name]))
    for (one, kind, mine), (other, kind2, theirs) in itertools.combinations(found, 2):
        if kind != kind2:
            continue
        less, more = {*mine}, {*theirs}
        apart = less ^ more
        if len(apart) == 1:
            (condition,) = apart
            if condition.sign == "!=" and not _is_flag(condition):
                yield (
                    f"{one!r} and {other!r} differ only in {condition.words()}: their difference "
                    "is a result about the rows that this leaves out"
                )
        elif len(apart) == 2 and len(less - more) == 1:
            a, b = sorted(apart, key=lambda c: c in more)
            if a.column == b.column and a.sign == b.sign and _are_close(a, b):
                yield (
                    f"{one!r} and {other!r} differ only in {a.words()} and {b.words()}: their "
                    "difference is a result about few people"
                )


def _kind(output: PlanOutput) -> str:
    return ",".join(sorted(_FUNCTION.findall(output.words)))


def _are_close(a: Condition, b: Condition) -> bool:
    """Whether two conditions with the same sign have almost the same constants."""
    if a.sign == "in" and len(a.values) > 1 and len(b.values) > 1:
        return len({*a.values} ^ {*b.values}) <= 1
    if len(a.values) != len(b.values) or a.sign in ("==", "!="):
        return False
    apart = [(x, y) for x, y in zip(a.values, b.values, strict=True) if x != y]
    if len(apart) != 1:
        return False
    ((x, y),) = apart
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return abs(x - y) * 20 <= max(abs(x), abs(y))
    if isinstance(x, dt.date) and isinstance(y, dt.date):
        first, last = sorted(d.date() if isinstance(d, dt.datetime) else d for d in (x, y))
        return last - first <= dt.timedelta(days=3)
    return False


def _listed(names: list[str]) -> str:
    return " and ".join(map(repr, names))
