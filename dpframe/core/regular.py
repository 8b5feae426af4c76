"""Long lists of numbers in definitions, by a rule: at equal distances, or over one denominator.

A histogram of a hundred thousand bins has as many edges, which are eight megabytes of text. The
previous edition made digests and fingerprints from the list, so `write_out` lists the numbers of a
rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any, Final, TypeAlias

from dpframe.core.exact import Rationals, share_denominator, texts
from dpframe.kernel.plan import LISTED_UP_TO

__all__ = [
    "RULES",
    "Json",
    "by_rules",
    "canonical",
    "ends_of_rule",
    "numbers_of_rule",
    "require_room",
    "rule_of",
    "text_of",
    "write_out",
]

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

_REGULAR: Final = "regular"
_RATIOS: Final = "ratios"
RULES: Final = frozenset((_REGULAR, _RATIOS))
"""What rules are called. Nothing else in a definition is called so."""
_MOST: Final = 10**6 + 1
"""No rule stands for more numbers."""
_MOST_IN_ALL: Final = 10 * _MOST
"""Nor do the regular ones of a document together: a few bytes could else ask for any amount of
time.
"""
_LONGEST: Final = 256
"""Bits of a regular rule's numbers over their common denominator, and of that, for the same
reason.
"""
_TEXT: Final = re.compile(r"-?[0-9]{1,100}(/[0-9]{1,100})?")
_WRITTEN: Final = re.compile(
    rf'{{"{_REGULAR}":{{"number":([0-9]+),"start":"([-0-9/]+)","step":"([-0-9/]+)"}}}}'
    rf'|{{"{_RATIOS}":{{"denominator":"([0-9]+)","numerators":"([-0-9 ]+)"}}}}'
)
"""A rule in canonical JSON. Texts cannot hold one, because their quotation marks are escaped."""


def rule_of(numbers: Rationals) -> Json:
    """The rule for a long list of numbers; None where it is listed. Whole numbers are one text:
    nothing walks over a hundred thousand objects then, and readers of JSON round long numbers.
    """
    if not LISTED_UP_TO < len(numbers) <= _MOST or not numbers.are_short:
        return None
    if not isinstance(numbers.numerators, range):
        listed = " ".join(map(str, numbers.numerators))
        return {_RATIOS: {"numerators": listed, "denominator": str(numbers.denominator)}}
    step = Fraction(numbers.numerators.step, numbers.denominator)
    ends = (numbers.denominator, *map(abs, (numbers.numerators[0], numbers.numerators[-1])))
    if max(ends).bit_length() > _LONGEST:
        return None
    return {_REGULAR: {"start": str(numbers[0]), "step": str(step), "number": len(numbers)}}


def numbers_of_rule(rule: Mapping[str, Any]) -> Rationals:
    """The numbers that a rule stands for.

    Raises
    ------
    ValueError
        For what `rule_of` does not write.
    """
    match rule:
        case {"regular": {"start": str(start), "step": str(step), "number": int(number)}}:
            if not _TEXT.fullmatch(start) or not _TEXT.fullmatch(step) or not 1 < number <= _MOST:
                raise ValueError
            found = _regular(start, step, number)
        case {"ratios": {"numerators": str(listed), "denominator": str(under)}}:
            found = Rationals([int(number) for number in listed.split(" ")], max(1, int(under)))
        case _:
            raise ValueError
    if rule_of(found) != rule:
        raise ValueError
    return found


def ends_of_rule(rule: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """The first and the last number of a rule that is one."""
    if _REGULAR in rule:
        start, step, number = (rule[_REGULAR][name] for name in ("start", "step", "number"))
        return Fraction(start), Fraction(start) + (number - 1) * Fraction(step)
    listed, under = rule[_RATIOS]["numerators"], int(rule[_RATIOS]["denominator"])
    ends = listed.split(" ", 1)[0], listed.rsplit(" ", 1)[-1]
    return Fraction(int(ends[0]), under), Fraction(int(ends[1]), under)


def _regular(start: str, step: str, number: int) -> Rationals:
    try:
        first, each = Fraction(start), Fraction(step)
    except ZeroDivisionError:
        raise ValueError from None
    under = lcm(first.denominator, each.denominator)
    if not each:
        raise ValueError
    low, by = int(first * under), int(each * under)
    return Rationals(range(low, low + number * by, by), under)


def by_rules(value: Any) -> Any:
    """A part of a document of the edition before, with rules for its long lists."""
    if isinstance(value, dict):
        return {name: by_rules(inner) for name, inner in value.items()}
    if not isinstance(value, list):
        return value
    pairs = list(map(_ratio, value)) if len(value) > LISTED_UP_TO else [None]
    known = [pair for pair in pairs if pair is not None]
    numbers = share_denominator(known) if len(known) == len(value) else None
    rule = None if numbers is None else rule_of(numbers)
    return [by_rules(inner) for inner in value] if rule is None else rule


def _ratio(number: Any) -> tuple[int, int] | None:
    """A listed number as numerator and denominator; None for other values."""
    text = number.get("fraction") if isinstance(number, dict) and len(number) == 1 else None
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        return None
    above, _, below = text.partition("/")
    return (int(above), int(below or 1)) if below.strip("0") or not below else None


def require_room(canonical: str) -> None:
    """Refuse a document in canonical JSON whose rules stand for too many numbers.

    Raises
    ------
    ValueError
        When they do.
    """
    numbers = (int(rule[1]) for rule in _WRITTEN.finditer(canonical) if rule[1])
    if sum(numbers) > _MOST_IN_ALL:
        raise ValueError


def write_out(canonical: str) -> str:
    """Canonical JSON with the lists that rules stand for, as the edition before wrote them."""

    def write_list(rule: re.Match[str]) -> str:
        number, start, step, under, numerators = rule.groups()
        numbers = (
            Rationals([*map(int, numerators.split(" "))], int(under))
            if number is None
            else _regular(start, step, int(number))
        )
        return '[{"fraction":"' + '"},{"fraction":"'.join(texts(numbers)) + '"}]'

    return _WRITTEN.sub(write_list, canonical)


def canonical(value: object) -> str:
    """JSON in its only canonical form."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def text_of(constant: Json) -> str:
    """A constant of a definition as JSON, in one form."""
    return json.dumps(constant, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
