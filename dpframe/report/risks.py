"""What is unusual about a plan, and what is routine."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations, pairwise
from typing import Final, TypeAlias, cast

from dpframe.core.exact import show
from dpframe.core.tree import Call, Column, Literal, Tree, column_names, walk
from dpframe.core.units import Identifier, Rows
from dpframe.core.windows import NAMES
from dpframe.frames.definition import PARAMETER, Json, Written, objects_in
from dpframe.mechanisms import KeyMechanism
from dpframe.plan import PlanData, PlanOutput
from dpframe.plan.data import FAILS, NOBODY, is_risk
from dpframe.plan.looks import (
    looks_identifying,
    looks_like_a_person,
    looks_like_an_event,
    name_words,
    words_of,
)
from dpframe.plan.reading import columns_in, named_in, trees_in
from dpframe.plan.several import blocks_of
from dpframe.report.errors import Typical, too_wide, warnings_at
from dpframe.report.numbers import reword, shown

# The conditions that a plan puts on rows, wherever they stand: in filters, in when/then, and in
# filters inside aggregates; read from the definitions that plans hold.

_SIGNS: Final = {
    "eq": "==",
    "eq_missing": "==",
    "ne": "!=",
    "ne_missing": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MOST_WAYS: Final = 64

Way: TypeAlias = "tuple[Condition, ...]"
"""Conditions that a row meets all together."""
Constant = str | bool | Fraction | dt.date | dt.datetime | dt.time | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A column, or what is computed from it, compared with constants."""

    column: str  # Its name
    sign: str  # ``"=="``, ``"!="``, ``"<"``, ``"<="``, ``">"``, ``">="``, ``"in"``, ``"between"``
    values: tuple[Constant, ...]  # The constants; two ends of a range
    # Whether one of them is a parameter of the job, which another run changes.
    is_parameter: bool = False
    is_plain: bool = True  # Whether the column itself is compared, and nothing computed from it

    @property
    def is_equality(self) -> bool:
        """Whether one value passes."""
        if self.sign == "between":
            return self.values[0] == self.values[1]
        return self.sign == "==" or (self.sign == "in" and len(self.values) == 1)

    @property
    def width(self) -> dt.timedelta | None:
        """How long a range of times is."""
        low, high = self.values[0], self.values[-1]
        if self.sign != "between" or not isinstance(low, dt.datetime):
            return None
        if not isinstance(high, dt.datetime):
            return None
        return high.replace(tzinfo=None) - low.replace(tzinfo=None)

    @property
    def negated(self) -> Condition | None:
        """What rows meet that do not meet this one; None where that is not one condition."""
        sign = _NEGATED.get(self.sign)
        return None if sign is None else replace(self, sign=sign)

    def words(self) -> str:
        """As an analyst reads it."""
        values = [_shown(value) for value in self.values]
        name = self.column if self.is_plain else f"(computed from {self.column})"
        if self.sign == "between":
            return f"{name} from {values[0]} to {values[1]}"
        if self.sign == "in":
            more = f" and {len(values) - 3} more" if len(values) > 3 else ""
            return f"{name} in {', '.join(values[:3])}{more}"
        return f"{name} {self.sign} {values[0]}"


def conditions_by_output(plan: PlanData) -> dict[str, tuple[Condition, ...]]:
    """The conditions under which rows count in each output, those of steps first."""
    of_steps = _conditions([step.definition for step in plan.steps])
    return {
        output.name: tuple(dict.fromkeys(_with_ranges(of_steps + _conditions(output.definition))))
        for output in plan.outputs
    }


def ways_by_output(plan: PlanData) -> dict[str, tuple[Way, ...]]:
    """The ways in which rows count in each output: each is the conditions that a row must meet
    together, through filters, the branches of when/then, and columns that steps computed before.
    """
    ways: list[Way] = [()]
    computed = dict[str, list[Way]]()
    for step in plan.steps:
        said = step.definition if isinstance(step.definition, dict) else {}
        if said.get("step") == "Filter":
            predicates = trees_in(said.get("predicates"))
            ways = reduce(_both, (_ways(tree, computed) for tree in predicates), ways)
        elif said.get("step") in ("WithColumns", "Select"):
            computed |= {one.name: _ways(one.tree, computed) for one in named_in(said)}
    return {
        output.name: tuple(
            _both(ways, _either([[()], *(_ways(t, computed) for t in trees_in(output.definition))]))
        )
        for output in plan.outputs
    }


def aggregates_of(plan: PlanData) -> Iterator[tuple[PlanOutput, frozenset[Condition], str]]:
    """The noisy numbers that outputs are computed from: each output, the conditions of the number,
    and what is computed of the rows that meet them.
    """
    of_steps = _conditions([step.definition for step in plan.steps])
    pairs = (
        (output, part)
        for output in plan.outputs
        for part in (output.definition if isinstance(output.definition, list) else ())
    )
    for one, part in pairs:
        if not isinstance(part, dict) or part.get("type") == "Call":
            continue
        statistics = [
            str(statistic.get("type"))
            for inner in objects_in(part)
            if isinstance(statistic := inner.get("statistic"), dict)
        ]
        conditions = frozenset(_with_ranges(of_steps + _conditions(part)))
        values = {*columns_in(part)} - {condition.column for condition in conditions}
        yield one, conditions, " ".join([*statistics, *sorted(values)])


def definitions_in(plan: PlanData) -> list[Json]:
    """The definitions of steps and of outputs."""
    return [*(one.definition for one in plan.steps), *(one.definition for one in plan.outputs)]


def calls_in(definition: Json) -> list[Call]:
    """All calls of a definition, each before its operands."""
    nodes = (node for tree in trees_in(definition) for node in walk(tree))
    return [node for node in nodes if isinstance(node, Call)]


def columns_by_name(plan: PlanData) -> dict[str, set[str]]:
    """The columns that each computed column is computed from."""
    result = dict[str, set[str]]()
    for step in plan.steps:
        said = step.definition
        result |= {
            one.name: {c for name in column_names(one.tree) for c in result.get(name, {name})}
            for one in (named_in(said) if isinstance(said, dict) else ())
        }
    return result


def _ways(tree: Tree, computed: Mapping[str, list[Way]]) -> list[Way]:
    """The ways in which an expression is true, or is a value that counts."""
    match tree:
        case Column(name):
            return computed.get(name, [()])
        case Literal():
            return [()]
    match tree.operation.name, tree.args:
        case "and" | "mul", args:
            return reduce(_both, (_ways(one, computed) for one in args), [()])
        case "not", (negated, *_):
            return _negate(_ways(negated, computed))
        case "when", (condition, value, other):
            ways = _ways(condition, computed)
            inside = [] if _is_nothing(value) else _both(ways, _ways(value, computed))
            outside = [] if _is_nothing(other) else _both(_negate(ways), _ways(other, computed))
            return [*inside, *outside] or [()]
    conditions = tuple(_condition(tree))
    if not conditions:
        return _either(_ways(one, computed) for one in tree.args)
    own = [way for name in column_names(tree) for way in computed.get(name, ())]
    return own if any(own) else [conditions]


def _either(several: Iterable[list[Way]]) -> list[Way]:
    return list(dict.fromkeys(way for ways in several for way in ways)) or [()]


def _both(some: Sequence[Way], others: Sequence[Way]) -> list[Way]:
    """Both together; when there are too many ways, those with the most conditions."""
    if len(some) * len(others) > _MOST_WAYS:
        some, others = [max(some, key=len)], [max(others, key=len)]
    return list(dict.fromkeys(tuple(dict.fromkeys((*a, *b))) for a in some for b in others))


def _negate(ways: Sequence[Way]) -> list[Way]:
    """Ways in which none of these is met."""
    if len(ways) == 1 and len(ways[0]) == 1 and (other := ways[0][0].negated) is not None:
        return [(other,)]
    return [()]


def _is_nothing(tree: Tree) -> bool:
    """Whether it is null, false or 0, so that it adds nothing."""
    return isinstance(tree, Literal) and not _constant(tree)


def _with_ranges(found: list[Condition]) -> list[Condition]:
    """Two ends of one column as a range."""
    result = list[Condition]()
    lows = {c.column: c for c in found if c.sign in (">", ">=") and c.is_plain}
    highs = {c.column: c for c in found if c.sign in ("<", "<=") and c.is_plain}
    for one in found:
        low, high = lows.get(one.column), highs.get(one.column)
        if low is not None and high is not None and one in (low, high):
            given = low.is_parameter or high.is_parameter
            result.append(Condition(one.column, "between", (*low.values, *high.values), given))
        else:
            result.append(one)
    return result


def _conditions(definition: Json) -> list[Condition]:
    return [one for tree in trees_in(definition) for one in _conditions_of(tree)]


def _conditions_of(tree: Tree, *, is_negated: bool = False) -> Iterator[Condition]:
    if isinstance(tree, Call):
        for one in _condition(tree):
            yield (one.negated or one) if is_negated else one
        for arg in tree.args:
            yield from _conditions_of(arg, is_negated=tree.operation.name == "not")


def _condition(call: Call) -> Iterator[Condition]:
    """The condition that a call is, if it compares one column, or what is computed from it, with
    constants.
    """
    name, args, options = call.operation.name, call.args, options_of(call)
    of = next((arg for arg in args if not isinstance(arg, Literal)), None)
    columns = () if of is None else column_names(of)
    constants = [arg for arg in args if isinstance(arg, Literal)]
    if of is None or len(columns) != 1:
        return
    values = tuple(map(_constant, constants))
    is_alone, is_first = len(constants) == len(args) - 1, of is args[0]
    is_given = any(one.parameter is not None for one in constants)
    if name in _SIGNS and len(args) == 2 and is_alone:
        sign = _SIGNS[name] if is_first else _TURNED.get(_SIGNS[name], _SIGNS[name])
        yield Condition(columns[0], sign, values, is_given, _is_column(of))
    elif name == "is_between" and len(args) == 3 and is_alone and is_first:
        yield Condition(columns[0], "between", values, is_given, _is_column(of))
    elif name == "is_in" and is_first:
        listed = options.get("values")
        is_given = isinstance(listed, dict)
        listed = listed.get("values") if isinstance(listed, dict) else listed
        if isinstance(listed, list):
            values = tuple(map(_value, listed))
            yield Condition(columns[0], "in", values, is_given, _is_column(of))
    elif name in ("str_starts_with", "str_contains", "str_ends_with") and is_first:
        texts = tuple(value for value in options.values() if isinstance(value, str))[:1]
        if texts := texts or tuple(map(str, values)):
            yield Condition(columns[0], "==", texts, False, False)


def options_of(call: Call) -> dict[str, Json]:
    """The constants of an operation by name, as a definition has them."""
    said = cast("Written", call.operation.constants).json
    pairs = said if isinstance(said, list) else ()
    return {str(one[0]): one[1] for one in pairs if isinstance(one, list) and len(one) == 2}


def _is_column(tree: Tree) -> bool:
    while isinstance(tree, Call) and tree.operation.name in ("cast", "str_to_lowercase"):
        tree = tree.args[0]
    return isinstance(tree, Column)


def _constant(literal: Literal) -> Constant:
    return _value(cast("Written", literal.value).json)


def _value(result: Json) -> Constant:
    if isinstance(result, bool | str) or result is None:
        return result
    if isinstance(result, int):
        return Fraction(result)
    if isinstance(result, dict):
        for name, text in result.items():
            if name in ("float", "fraction", "int", "decimal"):
                try:
                    return Fraction(str(text))
                except (ValueError, ZeroDivisionError):
                    return str(text)
            if name == "datetime":
                return dt.datetime.fromisoformat(str(text))
            if name == "date":
                return dt.date.fromisoformat(str(text))
            if name == "time":
                return dt.time.fromisoformat(str(text))
        if PARAMETER in result:
            return _value(result.get("value"))
    return json.dumps(result, sort_keys=True)


def _shown(value: Constant) -> str:
    if isinstance(value, Fraction):
        return show(value)
    return repr(value) if isinstance(value, str) else str(value)


# Risks by the structure of a plan: what single people out by several conditions, numbers that are
# not round, outputs that get nearly nothing of the spend, and names that mislead.

_MANY: Final = 3
"""This many equalities with constants select few people."""
_FEW_DAYS: Final = 31
"""Few people with the same other values were born within this many days."""
_DIGITS: Final = 3
"""Numbers with more significant digits are not round."""
_STARVED: Final = Fraction(1, 20)
"""Outputs that get less than this part of an equal share of the spend get nearly nothing."""
_UNEQUAL: Final = 100
"""A row that counts this many times as much as another decides alone."""
_PARTS_OF_TIME: Final = words_of(
    "year month quarter week day weekday hour season period semester term version edition "
    "wave jahr monat woche tag quartal année annee mois año ano mes"
)
"""Many people share a value of these; of a date of birth they do not."""
_NOT: Final = words_of("not non no un without except kein keine nicht ohne sans pas sin niet ikke")
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
    "nascita nascimento geboortedatum "
    "fodselsdato fødselsdato fodelsedatum födelsedatum urodzenia narozeni syntymäaika"
)
_BAND: Final = re.compile(r"(\d+)\s?(?:-|–|to|bis|à|until)\s?(\d+)")
_OPEN_BAND: Final = re.compile(r"(?:[≥>]=?\s?)?(\d+)(?:\s?\+| and (?:over|older|more)| plus)")
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
_QUANTITIES: Final = (
    words_of("age ages alter alder edad eta idade wiek"),
    words_of(
        "income salary salaries pay wage wages revenue cost costs price amount spend spending rent "
        "fee fees earnings gehalt lohn einkommen umsatz kosten preis betrag miete"
    ),
    words_of("height tall size weight mass temperature distance speed groesse größe gewicht"),
    words_of("minutes hours seconds duration minuten stunden dauer"),
    words_of("score grade grades mark marks rating note noten"),
)
"""Words for quantities that are nothing alike."""
_FUNCTION: Final = re.compile(r"dp[._](\w+)\(")
_COUNTED_PEOPLE: Final = words_of(
    "people persons patients customers users members employees students pupils individuals "
    "personen patienten kunden nutzer personnes clients pazienti clientes"
)


@dataclass(frozen=True, slots=True)
class Ends:
    """Bounds that the plan rests on."""

    what: str  # The column, or the output where several are read
    # `low`, `high`: as they were written.
    low: str
    high: str

    def words(self) -> str:
        """In a sentence."""
        return f"{self.what} {_separated(self.low)} to {_separated(self.high)}"

    @property
    def odd(self) -> list[str]:
        """The ends that are not round: with many digits, or both with a part after the point."""
        ends = [self.low, self.high]
        if all(Fraction(end.replace("_", "")) * 2 % 1 and not _is_plain(end) for end in ends):
            return ends
        return [end for end in ends if _is_odd(end)]

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
    result = dict[Ends, None]()
    for declared in plan.declared:
        if match := _DECLARED.match(declared):
            result[Ends(match[1], match[2], match[3])] = None
    for words in [*(o.words for o in plan.outputs), *(s.words for s in plan.steps)]:
        bare = _QUOTED.sub(lambda m: m[0] if len(m[0]) < 40 else "''", words)
        for match in _PAIR.finditer(bare):
            before = bare[: match.start()]
            if not _BEFORE_BOUNDS.search(before):
                continue
            columns = _COLUMN.findall(before)
            result[Ends(columns[-1] if columns else "a value", match[1], match[2])] = None
    return list(result)


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
    rules = (_of_unit, _of_conditions, _of_values, _of_bands, _of_scores)
    for rule in (*rules, _of_numbers, _of_exact, _of_names):
        yield from rule(plan)


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
    said = dict[str, str]()
    for name, ways in ways_by_output(plan).items():
        for way in ways:
            # the equalities that a row must meet together
            exact = [c for c in way if c.is_equality and not (_is_flag(c) or _is_shared(c))]
            births = [c for c in way if _is_birth(c) and c.sign == "between"]
            exact_columns = {c.column for c in exact}
            exact += [c for c in births if c.column not in exact_columns and _days(c) <= _FEW_DAYS]
            equal = {c.column: c for c in exact}
            if len(equal) >= _MANY:
                words = " and ".join(c.words() for c in equal.values())
                said.setdefault(
                    f"rests on rows with {words}; these exact values together fit few people", name
                )
    for name, conditions in conditions_by_output(plan).items():
        for condition in conditions:
            for words in _of_time(condition):
                said.setdefault(f"rests on rows {words}", name)
    yield from (f"singles people out: {name!r} {words}" for words, name in said.items())


def _is_birth(condition: Condition) -> bool:
    return bool(_BIRTH & {*name_words(condition.column)})


def _is_shared(condition: Condition) -> bool:
    """Whether it picks a part of the time that the data is of, and not of a person's birth."""
    return bool(_PARTS_OF_TIME & {*name_words(condition.column)}) and not _is_birth(condition)


def _days(condition: Condition) -> float:
    low, high = condition.values
    if isinstance(low, dt.datetime) and isinstance(high, dt.datetime):
        return (high - low).days
    if isinstance(low, dt.datetime) or isinstance(high, dt.datetime):
        return float("inf")
    if isinstance(low, dt.date) and isinstance(high, dt.date):
        return (high - low).days
    return float("inf")


def _is_flag(condition: Condition) -> bool:
    """Whether it compares with true, false or null, which many rows have."""
    return all(isinstance(value, bool) or value is None for value in condition.values)


def _of_time(condition: Condition) -> Iterator[str]:
    width = condition.width
    if width is not None and width < dt.timedelta(days=1) and not condition.is_parameter:
        yield f"with {condition.words()}, less than a day"
    elif condition.is_equality and condition.is_plain and not condition.is_parameter:
        value = condition.values[0]
        if isinstance(value, dt.datetime):
            yield f"of one moment, {condition.words()}"
        elif isinstance(value, dt.date) and _is_birth(condition):
            yield f"with {condition.words()}, a date of birth that few people share"


def _of_values(plan: PlanData) -> Iterator[str]:
    """Keys, candidates and constants that look like people."""
    keys, candidates = key_values(plan), candidate_values(plan)
    for what, values in (("key", keys), ("candidate", candidates)):
        kinds = [(value, kind) for value in values if (kind := looks_like_a_person(value))]
        if kinds and len(kinds) * 3 >= len(values):
            value, kind = kinds[0]
            plural = {"a name": "names", "an address": "addresses"}.get(kind, "personal codes")
            many = f"{len(kinds)} of {len(values)} {what}s shown look like {plural}"
            one = f"the {what} {value!r} looks like {kind}"
            yield (
                f"{one if len(values) == 1 else many}, such as {value!r}: each result is about one "
                "person or household"
            )
    by = _COLUMN.findall((plan.grouping or "").partition(": ")[0])
    person = plan.unit.column if isinstance(plan.unit, Identifier) else None
    # words such as "new" and "returning"
    are_kinds = bool(keys) and all(re.fullmatch(r"[a-z][a-z _-]*", key) for key in keys)
    for name in by:
        if name != person and looks_identifying(name) and not are_kinds:
            yield (
                f"has a group for each {name!r}, which looks like one person: each is a result "
                "about one"
            )
    conditions = (one for part in definitions_in(plan) for one in _conditions(part))
    for column, text in dict.fromkeys((c.column, value) for c in conditions for value in c.values):
        if isinstance(text, str) and (kind := looks_like_a_person(text)) and not text.islower():
            yield (
                f"compares {column!r} with {text!r}, which looks like {kind}: the result is about "
                "one person"
            )


def _of_numbers(plan: PlanData) -> Iterator[str]:
    for ends in bounds_in(plan):
        if odd := ends.odd:
            many = len(odd) > 1
            yield (
                f"the bound{'s' if many else ''} {' and '.join(map(_separated, odd))} of "
                f"{ends.what!r} {'are' if many else 'is'} not round: "
                f"{'were they' if many else 'was it'} read from the data? Bounds must come from "
                "public knowledge"
            )
    for output in plan.outputs:
        for levels in _QUANTILES.findall(output.words):
            if {"0", "0.0", "1", "1.0"} & {*re.findall(r"[\d.]+", levels)}:
                yield (
                    f"{output.name!r} is the smallest or largest value, which is the value of one "
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


def _of_bands(plan: PlanData) -> Iterator[str]:
    """Ranges as keys, such as ``18-34`` and ``50-64``, with a gap between them."""
    if plan.keys is None:
        return
    bands = list[tuple[int, int, str]]()
    for key in dict.fromkeys(key_values(plan)):
        if match := _BAND.fullmatch(key):
            bands.append((int(match[1]), int(match[2]), key))
        elif match := _OPEN_BAND.fullmatch(key):
            bands.append((int(match[1]), int(match[1]), key))
    if not re.search(r" and [\d,]+ more$", plan.keys):  # else further keys may lie between
        bands.sort()
    pairs = list(pairwise(bands))
    if len(bands) < 3 or any(low > high for low, high, _ in bands):
        return
    if any(before[1] > after[0] for before, after in pairs):  # nested, or of several columns
        return
    for before, after in pairs:
        if after[0] > before[1] + 1:
            yield (
                f"the keys {before[2]!r} and {after[2]!r} leave out {before[1] + 1} to "
                f"{after[0] - 1}: rows between them are dropped and in no total"
            )


def _of_scores(plan: PlanData) -> Iterator[str]:
    """Scores in which one row counts far more than another."""
    scored = [output.name for output in plan.outputs if "score=" in output.words]
    if not scored:
        return
    for definition in definitions_in(plan):
        branches = (c.args[1:] for c in calls_in(definition) if c.operation.name == "when")
        numbers = [_constant(one) for args in branches for one in args if isinstance(one, Literal)]
        values = [one for one in numbers if isinstance(one, Fraction) and one > 0]
        if values and max(values) >= _UNEQUAL * min(values):
            times = show(max(values) / min(values), 4)
            yield (
                f"the score of {scored[0]!r} counts one row {_separated(times)} times as much as "
                "another: few people decide, and the noise hides all others"
            )


def starved(plan: PlanData) -> Iterator[str]:
    """Outputs of a plan of one or several queries that get nearly nothing of the spend."""
    draws = [draw for draw in plan.draws if not draw.cost.is_zero]
    total = sum((draw.cost.main for draw in draws), Fraction(0))
    if not total or plan.found is not None or len({draw.cost.measure for draw in draws}) != 1:
        return
    paid = dict[str, Fraction]()
    for output in plan.outputs:
        used = {plan.releases[number].draw for number in output.releases}
        cost = sum((draw.cost.main for draw in draws if draw.draw in used), Fraction(0))
        if cost:
            paid[output.name] = cost
    for name, cost in paid.items():
        if cost * len(paid) < _STARVED * total:
            yield (
                f"{name!r} gets {float(100 * cost / total):.2g}% of the spend: its noise is far "
                "larger than that of the other outputs"
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
    computed = columns_by_name(plan)
    made = {w for s in plan.steps for w in re.findall(r"(\w+)=", s.words)}
    for output in plan.outputs:
        words = name_words(output.name)
        if claimed := _other_value(output.name, conditions):
            own = conditions[output.name]
            texts = [c for c in own if any(isinstance(v, str) for v in c.values)]
            parts = (c.words() for c in texts if c.sign != "!=" or claimed in c.values)
            contradict = " and ".join(parts)
            yield (
                f"the output {output.name!r} is named like the value {claimed!r}, and rests on "
                f"rows with {contradict}"
            )
            continue
        read = {name for name in columns_in(output.definition) if not name.isdigit()}
        read.update(_COLUMN.findall(output.words))  # the identifier, which no definition names
        sources = {source for name in read for source in computed.get(name, {name})}
        used = {c.column for c in conditions[output.name]} | read | sources
        # whether the name says another quantity than the one column that it is computed from
        kinds = [
            [kind for kind in _QUANTITIES if kind & {*said}]
            for said in (words, name_words(min(sources, default="")))
        ]
        is_other = [*map(len, (sources, *kinds))] == [1, 1, 1] and kinds[0] != kinds[1]
        functions = set(_FUNCTION.findall(output.words)) | {s for s in "/*" if s in output.words}
        if output.name in columns and used and output.name not in used | made | by:
            yield (
                f"the output {output.name!r} is computed from {_listed(sorted(used))} and named "
                "like another column"
            )
            continue
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
        elif is_other:
            yield (
                f"the output {output.name!r} is computed from {_listed(sorted(sources))}, which "
                "its name does not say"
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


def _other_value(name: str, conditions: Mapping[str, Sequence[Condition]]) -> str | None:
    """The value that an output is named by and does not count, though another output does, or
    this one counts all others.
    """
    words = name_words(name)
    own = conditions[name]
    if _NOT & {*words}:
        return None
    columns = {c.column for c in own if c.sign in ("==", "in")}
    counted = {v for c in own if c.sign in ("==", "in") for v in c.values}
    left_out = {v for c in own if c.sign == "!=" for v in c.values}
    elsewhere = {
        v
        for other, theirs in conditions.items()
        if other != name
        for c in theirs
        if c.column in columns
        for v in c.values
    }
    texts = [v for v in counted if isinstance(v, str)]
    if any(_contains(words, name_words(text)) for text in texts):
        return None
    others = (v for v in (elsewhere | left_out) - counted if isinstance(v, str) and len(v) > 2)
    return min((v for v in others if _contains(words, name_words(v))), default=None)


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
    """Pairs of numbers whose conditions are almost equal: their difference is about few people."""
    found = dict[str, list[tuple[str, frozenset[Condition]]]]()
    for block in blocks_of(plan):
        for output, conditions, statistic in aggregates_of(block):
            last = output.definition[-1] if isinstance(output.definition, list) else None
            of = ",".join(sorted(_FUNCTION.findall(output.words)))
            if any(call.operation.name == "sub" for call in calls_in(last)):
                of = f"in {output.name}"
            found.setdefault(f"{statistic} {of}", []).append((output.name, conditions))
    said = set[str]()
    pairs = chain.from_iterable(combinations(alike, 2) for alike in found.values())
    for (one, mine), (other, theirs) in pairs:
        if not (words := _apart(mine, theirs)) or words in said:
            continue
        said.add(words)
        if one == other:
            yield f"{one!r} subtracts numbers that differ only in {words}"
        else:
            yield (
                f"{one!r} and {other!r} differ only in {words}: their difference is a result about "
                "few people"
            )


def _apart(mine: frozenset[Condition], theirs: frozenset[Condition]) -> str:
    """How two sets of conditions differ, where few people are between them."""
    apart = mine ^ theirs
    if len(apart) == 1:
        (condition,) = apart
        value = condition.values[0]
        exact = isinstance(value, Fraction | dt.date) or looks_like_a_person(str(value))
        if condition.sign == "!=" and exact and not _is_flag(condition):
            return "" if _is_shared(condition) else condition.words()
    elif len(apart) == 2 and len(mine - theirs) == 1:
        a, b = sorted(apart, key=lambda c: c in theirs)
        if a.column != b.column:
            return ""
        if {a.sign, b.sign} in ({"<", "<="}, {">", ">="}) and a.values == b.values:
            return f"rows with {replace(a, sign='==').words()}"
        if a.sign == b.sign and _are_close(a, b):
            return f"{a.words()} and {b.words()}"
    return ""


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


# Selections of single people, recognised by the definitions in plans.

_EQUAL = frozenset(("eq", "ne", "eq_missing", "ne_missing"))
_PICKING = frozenset(("inner", "semi", "anti"))
"""Joins with public rows that keep some rows and not others."""
_TESTS = frozenset(("str_contains", "str_starts_with", "str_ends_with"))
"""What a text is tested for."""
_COMPARED = _EQUAL | {"lt", "le", "gt", "ge", "is_between"}
_LOGIC = frozenset(("and", "or", "not", "xor"))
_OF_NULLS = frozenset(("is_null", "is_not_null"))


def single_people(plan: PlanData) -> Iterator[str]:
    """What a plan does that picks people: comparisons of the identifier with constants, groups by
    it, joins by it with public rows, and comparisons of what looks like one with a single constant.
    """
    names = _identifiers(plan)
    said: dict[str, None] = {}
    for part in _definitions(plan):
        for call in calls_in(part):
            said |= dict.fromkeys(_picked(call, names))
        for atom in _atoms(part):
            said |= dict.fromkeys(_computed(atom, names))
        if isinstance(part, dict):
            said |= dict.fromkeys(_of_step(part, names))
    said |= {f"has a group for each {c!r}": None for c in columns_in(plan.grouped_by) if c in names}
    yield from said


def _of_step(step: dict[str, Json], identifiers: set[str]) -> Iterator[str]:
    """Parts by the identifier, and joins by it with public rows that keep or leave out people."""
    if step.get("step") == "Part":
        yield from (f"divides the rows by {c!r}" for c in columns_in(step) if c in identifiers)
    elif step.get("step") == "JoinPublic" and step.get("how") in _PICKING:
        for name in _items(step.get("left_on")):
            if _is_one_of(name, identifiers):
                yield f"picks rows by public rows with values of {name!r}"


def _identifiers(plan: PlanData) -> set[str]:
    """What the identifier is called, and what is computed from it alone, from the first step to
    the last.
    """
    if not isinstance(plan.unit, Identifier):
        return set()
    names = {plan.unit.column}
    for step in plan.steps:
        said = step.definition if isinstance(step.definition, dict) else {}
        for pair in _items(said.get("mapping")) if said.get("step") == "Rename" else ():
            if isinstance(pair, list) and len(pair) == 2 and _is_one_of(pair[0], names):
                names.add(str(pair[1]))
        for named in named_in(said):
            used = {*column_names(named.tree)}
            if used and used <= names:
                names.add(named.name)
    return names


def _is_one_of(name: Json, names: set[str]) -> bool:
    """Whether this is one of some names; in a document it may be anything."""
    return isinstance(name, str) and name in names


def _items(said: Json) -> list[Json]:
    return said if isinstance(said, list) else []


def _definitions(plan: PlanData) -> list[Json]:
    return [*definitions_in(plan), plan.grouped_by]


def _column(tree: Tree, through: str = "cast(") -> str | None:
    """The column that an operand is, perhaps cast to another type, or after operations whose names
    begin so.
    """
    while isinstance(tree, Call) and f"{tree.operation.name}(".startswith(("cast(", through)):
        if not tree.args:
            return None
        tree = tree.args[0]
    return tree.name if isinstance(tree, Column) else None


def _picked(call: Call, identifiers: set[str]) -> Iterator[str]:
    operands, op = call.args, call.operation.name
    columns = [name for operand in operands if (name := _column(operand)) is not None]
    constants = [operand for operand in operands if isinstance(operand, Literal)]
    if op in _TESTS or ((op in _COMPARED or op == "is_in") and not columns):
        texts = [n for operand in operands if (n := _column(operand, "str_")) in identifiers]
        yield from (f"picks rows by the text of {name!r}" for name in texts)
    if len(columns) != 1:
        return
    (name,) = columns
    if op in _COMPARED and len(constants) == len(operands) - 1:
        if name in identifiers:
            yield f"compares {name!r} with a constant"
        elif op in _EQUAL and looks_identifying(name):
            yield f"compares {name!r} with one constant"
    elif op == "is_in":
        if name in identifiers:
            yield f"picks rows by a list of values of {name!r}"
        elif len(_items(options_of(call).get("values"))) == 1 and looks_identifying(name):
            yield f"compares {name!r} with one constant"


def _atoms(said: Json) -> Iterator[Call]:
    """What the conditions of filters and of when/then are put together from."""
    filters = [part for part in objects_in(said) if part.get("step") == "Filter"]
    conditions = [tree for part in filters for tree in trees_in(part.get("predicates"))]
    conditions += [call.args[0] for call in calls_in(said) if call.operation.name == "when"]
    while conditions:
        condition = conditions.pop(0)
        if isinstance(condition, Call) and condition.operation.name in _LOGIC:
            conditions = [*condition.args, *conditions]
        elif isinstance(condition, Call):
            yield condition


def _computed(atom: Call, identifiers: set[str]) -> Iterator[str]:
    """Conditions on values computed from the identifier, such as ``patient % 1000 == 7``.
    Comparisons of plain columns and tests for null select no single person.
    """
    operands, op = atom.args, atom.operation.name
    is_plain = op in _OF_NULLS or all(_column(operand) is not None for operand in operands)
    if is_plain and (op in _COMPARED | _OF_NULLS or op == "is_in"):
        return
    if next(_picked(atom, identifiers), None) is not None:  # which says more
        return
    columns = column_names(atom)
    for name in columns:
        if name in identifiers:
            yield f"picks rows by what it computes from {name!r}"
    others = [operand for operand in operands if isinstance(operand, Literal)]
    single = op in _EQUAL and others and len(columns) == 1
    if single and columns[0] not in identifiers and looks_identifying(columns[0]):
        yield f"compares what it computes from {columns[0]!r} with one constant"


# What is unusual about a plan, and what is routine: risks are to be decided on, notes are to be
# known.
#
# Risks follow from the rest of the plan whenever it is shown, so that documents of earlier versions
# have them too. The thresholds are rules of thumb, written here and nowhere else.

_LARGE: Final = {"epsilon": (Fraction(3), Fraction(5)), "rho": (Fraction(1, 5), Fraction(2, 5))}
"""Amounts that are large for a row, or a person in a window, and for a whole person. A rho of 1/5
and of 2/5 are epsilons of about 3.5 and 5 at a delta of 1e-6.
"""
_LARGE_MU: Final = (Fraction(3, 4), Fraction(11, 10))
_ROWS: Final = 500
"""More rows of one individual than these are unusual."""
_ONE: Final = (1, {"fraction": "1"})
"""How definitions write a norm of 1."""
_SETS: Final = ("group_by(rollup(", "group_by(cube(", "group_by(grouping_sets(")
"""How groups by several sets of columns begin."""
_FEW: Final = 6
"""Groups of fewer individuals than these should not appear with an even chance."""


def risks_of(plan: PlanData, typical: Typical = (), size: int | None = None) -> tuple[str, ...]:
    """What a reviewer must decide about a plan of one query. `typical` are further typical values,
    and `size` is a guess of the individuals in each group.
    """
    sized = () if size is None else warnings_at(plan, size)
    return tuple(dict.fromkeys((*_risks(plan, typical, size), *sized)))


def notes_of(plan: PlanData) -> tuple[str, ...]:
    """What a reviewer should know, but which is usual in plans."""
    return tuple(reword(sentence) for sentence in plan.remarks if not is_risk(sentence))


def _risks(plan: PlanData, typical: Typical, size: int | None) -> Iterator[str]:
    yield from _of_rows(plan)
    for words in single_people(plan):
        yield f"singles people out: the plan {words}, so a result may be about one person"
    yield from _of_cost(plan)
    yield from _of_limits(plan)
    yield from _of_weights(plan)
    yield from _of_sets(plan)
    yield from too_wide(plan, typical, size)
    yield from _of_thresholds(plan)
    yield from structural_risks(plan)
    remarks = (s for s in plan.remarks if is_risk(s) and not s.endswith((NOBODY, FAILS)))
    yield from map(reword, remarks)


def _of_rows(plan: PlanData) -> Iterator[str]:
    """Rows are protected where people may have several."""
    if not isinstance(plan.unit, Rows) or plan.unit.contributions > 1:
        return
    known = [
        one.column
        for one in plan.identifying
        if one.frame == plan.source or any(o.startswith(f"{one.frame}: ") for o in plan.others)
    ]
    read = filter(looks_identifying, columns_in(_definitions(plan)))
    names = list(dict.fromkeys([*known, *read]))
    if names:
        look = "looks like a person" if len(names) == 1 else "look like people"
        yield (
            f"one row is protected, and {' and '.join(map(repr, names))} {look}: a person with n "
            f"rows is protected n times less. Protect by that column (unit={names[0]!r}), or state "
            "the most rows of one person with dp.Rows(contributions=n)"
        )


def _of_cost(plan: PlanData) -> Iterator[str]:
    """The amount, by what an individual is, and delta."""
    cost = max(plan.cost, plan.requested, key=lambda budget: budget.slack)
    if cost.slack > Fraction(1, 10**5):
        yield f"delta {shown(cost.slack)} {FAILS}"
    spent = plan.cost
    for amount in (spent, plan.requested):
        if amount.currency == "epsilon" and amount.main > 10:
            yield f"epsilon {shown(amount.main)} {NOBODY}"
            return
    person = isinstance(plan.unit, Identifier) and plan.unit.window is None
    of_part, of_whole = _LARGE.get(spent.currency, _LARGE_MU)
    if spent.main <= (of_whole if person else of_part):
        return
    whom = "a person" if person else "one row"
    more = ""
    if not person:
        whom = "a person in one window" if isinstance(plan.unit, Identifier) else "one row"
        more = ", and a person who has several is protected less"
    if spent.currency == "epsilon":  # presence and absence are equally likely before
        sure = 1 / (1 + math.exp(-float(spent.main)))
        whom += f": an attacker who guesses whether it is there may then be {sure:.2%} sure"
    yield f"{spent.currency} {shown(spent.main)} is large for {whom}{more}"


def _of_limits(plan: PlanData) -> Iterator[str]:
    """How many rows of one individual may count."""
    if plan.found is not None:  # the query will find a limit; the plan shows the largest
        return
    found: dict[int, dict[str, float]] = {}
    for release in plan.releases:
        rows = release.spread.tight[0] if release.spread.is_bounded else 0
        weighed = release.spread.norm is not None
        if rows > _ROWS and not weighed and release.mechanism != "none":
            found.setdefault(rows, {}).setdefault(release.name, release.scale)
    for rows, names in found.items():
        words = ", ".join(map(repr, names))
        yield (
            f"one individual may have {shown(rows)} rows in {words}, and the noise hides as many: "
            f"with one row each it would be {shown(rows)} times less. Lower limits drop few rows "
            "where most people have few (frame.suggest_limits)"
        )


def _of_weights(plan: PlanData) -> Iterator[str]:
    """Weights of individuals, which make numbers too small."""
    norms = (s.definition for s in plan.steps if isinstance(s.definition, dict))
    numbers = any(not isinstance(release.law, KeyMechanism) for release in plan.releases)
    if (
        plan.groups is None
        and numbers
        and any(step.get("step") == "LimitNorm" and step.get("n") in _ONE for step in norms)
    ):
        yield (
            "limit_norm(1) weights individuals: a person in t groups counts 1 / sqrt(t) in each. "
            "So numbers are too small where people are in several groups, by more than the stated "
            "errors. Without limit_norm people count fully, under a limit that the query finds"
        )


def _of_sets(plan: PlanData) -> Iterator[str]:
    """Rows that are in no grouping set because one of their values is not a key."""
    if plan.grouping is not None and plan.grouping.startswith(_SETS):
        yield (
            "a row counts in a grouping set only if its values are keys in all columns of the "
            "group-by, also in those that the set leaves out. Totals miss the other rows: list "
            "null as a key, or use a query for each set"
        )


def _of_thresholds(plan: PlanData) -> Iterator[str]:
    """Unlisted groups with few people."""
    for release in plan.releases:
        if isinstance(release.law, KeyMechanism):
            half = release.law.size_at(Fraction(1, 2))
            if half < _FEW:
                yield (
                    f"groups of {half} {'people' if half != 1 else 'person'} appear half of the "
                    "time, and their keys show what these people have: list the keys, or spend less"
                )
