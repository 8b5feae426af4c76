"""The conditions that a plan puts on rows, wherever they stand: in filters, in when/then, and in
filters inside aggregates; read from the definitions that plans hold.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Final, TypeAlias

from dpframe.core.exact import show
from dpframe.frames.definition import PARAMETER, Json, objects_in
from dpframe.plan import PlanData, PlanOutput

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
    """A column, or what is computed from it, compared with constants.

    Parameters
    ----------
    column
        Its name.
    sign
        ``"=="``, ``"!="``, ``"<"``, ``"<="``, ``">"``, ``">="``, ``"in"``, ``"between"``.
    values
        The constants; two ends of a range.
    is_parameter
        Whether one of them is a parameter of the job, which another run changes.
    is_plain
        Whether the column itself is compared, and nothing computed from it.
    """

    column: str
    sign: str
    values: tuple[Constant, ...]
    is_parameter: bool = False
    is_plain: bool = True

    @property
    def is_equality(self) -> bool:
        """Whether one value passes."""
        if self.sign == "between":
            return self.values[0] == self.values[1]
        return self.sign == "==" or (self.sign == "in" and len(self.values) == 1)

    @property
    def width(self) -> dt.timedelta | None:
        """How long a range of times is."""
        if self.sign != "between":
            return None
        return _between(*self.values)

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


def _between(low: Constant, high: Constant) -> dt.timedelta | None:
    if isinstance(low, dt.datetime) and isinstance(high, dt.datetime):
        return high.replace(tzinfo=None) - low.replace(tzinfo=None)
    return None


def conditions_by_output(plan: PlanData) -> dict[str, tuple[Condition, ...]]:
    """The conditions under which rows count in each output, those of steps first."""
    of_steps = list(_conditions([step.definition for step in plan.steps]))
    return {
        output.name: tuple(
            dict.fromkeys(_with_ranges([*of_steps, *_conditions(output.definition)]))
        )
        for output in plan.outputs
    }


def ways_by_output(plan: PlanData) -> dict[str, tuple[Way, ...]]:
    """The ways in which rows count in each output: each is the conditions that a row must meet
    together, through filters, the branches of when/then, and columns that steps computed before.
    """
    ways: list[Way] = [()]
    computed = dict[str, list[Way]]()
    for step in plan.steps:
        found = step.definition
        if not isinstance(found, dict):
            continue
        if found.get("step") == "Filter":
            ways = reduce(_both, (_ways(p, computed) for p in _list(found.get("predicates"))), ways)
        elif found.get("step") in ("WithColumns", "Select"):
            named = [one for one in _list(found.get("named")) if isinstance(one, dict)]
            computed |= {str(one.get("name")): _ways(one.get("tree"), computed) for one in named}
    return {
        output.name: tuple(_both(ways, _ways(output.definition, computed)))
        for output in plan.outputs
    }


def aggregates_of(plan: PlanData) -> Iterator[tuple[PlanOutput, frozenset[Condition], str]]:
    """The noisy numbers that outputs are computed from: each output, the conditions of the number,
    and what is computed of the rows that meet them.
    """
    of_steps = list(_conditions([step.definition for step in plan.steps]))
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
        conditions = frozenset(_with_ranges([*of_steps, *_conditions(part)]))
        values = {*_columns(part)} - {condition.column for condition in conditions}
        yield one, conditions, " ".join([*statistics, *sorted(values)])


def branch_numbers(definition: Json) -> list[Fraction]:
    """The numbers that the branches of when/then have."""
    values = [
        _constant(arg)
        for part in objects_in(definition)
        if part.get("type") == "Call" and part.get("op") == "when"
        for arg in _list(part.get("args"))[1:]
        if _is_literal(arg)
    ]
    return [value for value in values if isinstance(value, Fraction)]


def columns_by_name(plan: PlanData) -> dict[str, set[str]]:
    """The columns that each computed column is computed from."""
    result = dict[str, set[str]]()
    for step in plan.steps:
        if isinstance(step.definition, dict):
            named = [one for one in _list(step.definition.get("named")) if isinstance(one, dict)]
            result |= {
                str(one.get("name")): {
                    c for name in _columns(one.get("tree")) for c in result.get(name, {name})
                }
                for one in named
            }
    return result


def _ways(found: Json, computed: Mapping[str, list[Way]]) -> list[Way]:
    """The ways in which an expression is true, or is a value that counts."""
    if isinstance(found, list):
        return _either(_ways(one, computed) for one in found)
    if not isinstance(found, dict):
        return [()]
    if found.get("type") == "Column":
        return computed.get(str(found.get("name")), [()])
    if found.get("type") != "Call":
        return _either(_ways(one, computed) for one in found.values())
    args = _list(found.get("args"))
    match found.get("op"):
        case "and" | "mul":
            return reduce(_both, (_ways(one, computed) for one in args), [()])
        case "not":
            return _negated(_ways(args[0], computed)) if args else [()]
        case "when" if len(args) == 3:
            condition, value, other = args
            ways = _ways(condition, computed)
            inside = [] if _is_nothing(value) else _both(ways, _ways(value, computed))
            outside = [] if _is_nothing(other) else _both(_negated(ways), _ways(other, computed))
            return [*inside, *outside] or [()]
    conditions = list(_condition(found))
    if not conditions:
        return _either(_ways(one, computed) for one in args)
    own = [way for name in _columns(found) for way in computed.get(name, ())]
    return own if any(own) else [tuple(conditions)]


def _either(several: Iterable[list[Way]]) -> list[Way]:
    return list(dict.fromkeys(way for ways in several for way in ways)) or [()]


def _both(some: Sequence[Way], others: Sequence[Way]) -> list[Way]:
    """Both together; when there are too many ways, those with the most conditions."""
    if len(some) * len(others) > _MOST_WAYS:
        some, others = [max(some, key=len)], [max(others, key=len)]
    return list(dict.fromkeys(tuple(dict.fromkeys((*a, *b))) for a in some for b in others))


def _negated(ways: Sequence[Way]) -> list[Way]:
    """Ways in which none of these is met."""
    if len(ways) == 1 and len(ways[0]) == 1 and (other := ways[0][0].negated) is not None:
        return [(other,)]
    return [()]


def _is_nothing(found: Json) -> bool:
    """Whether it is null, false or 0, so that it adds nothing."""
    return isinstance(found, dict) and found.get("type") == "Literal" and not _constant(found)


def _list(found: Json) -> list[Json]:
    return found if isinstance(found, list) else []


def constants_in(plan: PlanData) -> Iterator[tuple[str, str]]:
    """Texts that rows are compared with or replaced by, with what each is."""
    for definition in [*(s.definition for s in plan.steps), *(o.definition for o in plan.outputs)]:
        for condition in _conditions(definition):
            for value in condition.values:
                if isinstance(value, str):
                    yield condition.column, value


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


def _conditions(definition: Json) -> Iterator[Condition]:
    turned = {
        id(arg)
        for part in objects_in(definition)
        if part.get("type") == "Call" and part.get("op") == "not"
        for arg in _list(part.get("args"))
    }
    for part in objects_in(definition):
        if part.get("type") == "Call":
            for one in _condition(part):
                yield (one.negated or one) if id(part) in turned else one


def _condition(call: dict[str, Json]) -> Iterator[Condition]:
    op, args = str(call.get("op")), call.get("args")
    operands = args if isinstance(args, list) else []
    options = call.get("options")
    pairs = (
        [o for o in options if isinstance(o, list) and len(o) == 2]
        if isinstance(options, list)
        else []
    )
    if not operands:
        return
    columns = [_columns(operand) for operand in operands]
    literal = [_is_literal(operand) for operand in operands]
    if op in _SIGNS and len(operands) == 2 and literal.count(True) == 1:
        place = literal.index(False)
        if len(columns[place]) == 1:
            sign = _SIGNS[op] if place == 0 else _TURNED.get(_SIGNS[op], _SIGNS[op])
            other = operands[1 - place]
            yield Condition(
                columns[place][0],
                sign,
                (_constant(other),),
                _has_parameter(other),
                _plain(operands[place]),
            )
    elif op == "is_between" and len(operands) == 3 and literal == [False, True, True]:
        if len(columns[0]) == 1:
            ends = _constant(operands[1]), _constant(operands[2])
            given = _has_parameter(operands[1]) or _has_parameter(operands[2])
            yield Condition(columns[0][0], "between", ends, given, _plain(operands[0]))
    elif op == "is_in" and len(columns[0]) == 1:
        listed = next((value for name, value in pairs if name == "values"), None)
        given = isinstance(listed, dict)
        if isinstance(listed, dict):
            listed = listed.get("values")
        if isinstance(listed, list):
            values = tuple(_value(value) for value in listed)
            yield Condition(columns[0][0], "in", values, given, _plain(operands[0]))
    elif op in ("str_starts_with", "str_contains", "str_ends_with") and len(columns[0]) == 1:
        values = tuple(value for _, value in pairs if isinstance(value, str))[:1]
        values = values or tuple(str(_constant(o)) for o in operands[1:] if _is_literal(o))
        if values:
            yield Condition(columns[0][0], "==", values, False, False)


def _plain(operand: Json) -> bool:
    while isinstance(operand, dict) and operand.get("op") in ("cast", "str_to_lowercase"):
        args = operand.get("args")
        operand = args[0] if isinstance(args, list) and args else None
    return isinstance(operand, dict) and operand.get("type") == "Column"


def _columns(operand: Json) -> list[str]:
    return list(
        dict.fromkeys(str(p.get("name")) for p in objects_in(operand) if p.get("type") == "Column")
    )


def _is_literal(operand: Json) -> bool:
    return isinstance(operand, dict) and operand.get("type") == "Literal"


def _has_parameter(operand: Json) -> bool:
    return any(PARAMETER in part or part.get("type") == "Parameter" for part in objects_in(operand))


def _constant(operand: Json) -> Constant:
    return _value(operand.get("value")) if isinstance(operand, dict) else None


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
