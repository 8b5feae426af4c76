"""The conditions that a plan puts on rows, wherever they stand: in filters, in when/then, and in
filters inside aggregates; read from the definitions that plans hold.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.core.exact import show
from dpframe.plan import PlanData
from dpframe.plan.definition import PARAMETER, Json, objects_in

__all__ = ["Condition", "conditions_by_output", "constants_in"]

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


def constants_in(plan: PlanData) -> Iterator[tuple[str, str]]:
    """Texts that rows are compared with or replaced by, with what each is."""
    for definition in [*(s.definition for s in plan.steps), *(o.definition for o in plan.outputs)]:
        for condition in _conditions(definition):
            for value in condition.values:
                if isinstance(value, str):
                    yield condition.column, value


def _with_ranges(found: list[Condition]) -> list[Condition]:
    """Two ends of one column as a range."""
    made = list[Condition]()
    lows = {c.column: c for c in found if c.sign in (">", ">=") and c.is_plain}
    highs = {c.column: c for c in found if c.sign in ("<", "<=") and c.is_plain}
    for one in found:
        low, high = lows.get(one.column), highs.get(one.column)
        if low is not None and high is not None and one in (low, high):
            given = low.is_parameter or high.is_parameter
            made.append(Condition(one.column, "between", (*low.values, *high.values), given))
        else:
            made.append(one)
    return made


def _conditions(definition: Json) -> Iterator[Condition]:
    for part in objects_in(definition):
        if part.get("type") == "Call":
            yield from _condition(part)


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
                columns[place][0], sign, (_constant(other),), _given(other), _plain(operands[place])
            )
    elif op == "is_between" and len(operands) == 3 and literal == [False, True, True]:
        if len(columns[0]) == 1:
            ends = _constant(operands[1]), _constant(operands[2])
            given = _given(operands[1]) or _given(operands[2])
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


def _given(operand: Json) -> bool:
    return any(PARAMETER in part or part.get("type") == "Parameter" for part in objects_in(operand))


def _constant(operand: Json) -> Constant:
    return _value(operand.get("value")) if isinstance(operand, dict) else None


def _value(found: Json) -> Constant:
    if isinstance(found, bool | str) or found is None:
        return found
    if isinstance(found, int):
        return Fraction(found)
    if isinstance(found, dict):
        for name, text in found.items():
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
        if PARAMETER in found:
            return _value(found.get("value"))
    return json.dumps(found, sort_keys=True)


def _shown(value: Constant) -> str:
    if isinstance(value, Fraction):
        return show(value)
    return repr(value) if isinstance(value, str) else str(value)
