"""Long lists of numbers that lie at equal distances, as documents write them: by a rule.

A histogram of a hundred thousand bins has as many edges, which are eight megabytes of text. Digests
and fingerprints are those of the document with its rules written out, so how a list is written
changes neither.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import lcm
from typing import Any, Final

from dpframe.core.rationals import as_text
from dpframe.plan.codec import Malformed

__all__ = ["by_rules", "written_out"]

_RULE: Final = "regular"
_NUMBER: Final = "fraction"
_FEW: Final = 64
"""Up to this many numbers are listed."""
_MOST: Final = 10**6 + 1
"""No rule stands for more."""
_MOST_IN_ALL: Final = _MOST
"""Nor do those of a document together: a few bytes could else ask for any amount of memory."""
_HOLDERS: Final = ("definition", "grouped_by")
"""Where a plan may have long lists of numbers: nowhere else is a rule written out."""
_PHYSICAL: Final = "physical"
"""What the kernel verifies has long lists, too, of numbers that are plain text."""
_LONGEST: Final = 256
"""Bits of a rule's numbers over their common denominator, and of that: to write out a million long
ones would take minutes."""
_TEXT: Final = re.compile(r"-?[0-9]{1,100}(/[0-9]{1,100})?")


class _Room:
    """How many more numbers the rules of a document may stand for."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_IN_ALL

    def has(self, number: int) -> bool:
        """Whether this many more are allowed; they are taken then."""
        if number > self.left:
            return False
        self.left -= number
        return True


def by_rules(value: Any) -> Any:
    """JSON in which rules stand for long lists of numbers, at equal distances."""
    return _by_rules(value, _Room())


def _by_rules(value: Any, room: _Room, is_plain: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            name: _by_rules(inner, _Room(), True)
            if name == _PHYSICAL and not is_plain
            else _by_rules(inner, room, is_plain)
            for name, inner in value.items()
        }
    if not isinstance(value, list):
        return value
    return _rule(value, room, is_plain) or [_by_rules(inner, room, is_plain) for inner in value]


def _rule(numbers: list[Any], room: _Room, is_plain: bool) -> dict[str, Any] | None:
    """The rule that a list follows; None where it follows none."""
    size = len(numbers)
    ends = [numbers[i] for i in (0, 1, size // 2, size - 1)] if _FEW < size <= _MOST else []
    found = [Fraction(t) for end in ends if (t := _text_of(end, is_plain)) is not None]
    if len(found) != 4:
        return None
    first, second, middle, last = found
    step = second - first
    if not step or (first + size // 2 * step, first + (size - 1) * step) != (middle, last):
        return None
    if not _are_short(first, step, size) or _listed(first, step, size, is_plain) != numbers:
        return None
    if not room.has(size):
        return None
    return {_RULE: {"start": str(first), "step": str(step), "number": size}}


def _text_of(number: Any, is_plain: bool) -> str | None:
    """The text of a listed fraction; None for other values."""
    text = number if is_plain else None
    if isinstance(number, dict) and len(number) == 1 and not is_plain:
        text = number.get(_NUMBER)
    return text if isinstance(text, str) and _TEXT.fullmatch(text) else None


def _are_short(start: Fraction, step: Fraction, number: int) -> bool:
    """Whether all numbers of a rule can be written in little time."""
    under = lcm(start.denominator, step.denominator)
    ends = (start, start + number * step)
    return max(under, *(int(abs(end) * under) for end in ends)).bit_length() <= _LONGEST


def _listed(start: Fraction, step: Fraction, number: int, is_plain: bool) -> list[Any]:
    """The numbers of a rule, as they are listed."""
    under = lcm(start.denominator, step.denominator)
    first, each = int(start * under), int(step * under)
    texts = as_text(range(first, first + number * each, each), under)
    return list(texts) if is_plain else [{_NUMBER: text} for text in texts]


def written_out(value: Any) -> Any:
    """JSON with the numbers that rules stand for.

    Raises
    ------
    Malformed
        For what is no rule that `by_rules` writes.
    """
    return _written_out(value, _Room(), False, False)


def _written_out(value: Any, room: _Room, inside: bool, is_plain: bool) -> Any:
    if isinstance(value, list):
        return [_written_out(inner, room, inside, is_plain) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_RULE}:
        if not inside:
            raise Malformed(_RULE)
        return _read(value[_RULE], room, is_plain)
    return {
        name: _written_out(inner, _Room(), True, True)
        if name == _PHYSICAL and not inside
        else _written_out(inner, room, inside or name in _HOLDERS, is_plain)
        for name, inner in value.items()
    }


def _read(rule: Any, room: _Room, is_plain: bool) -> list[Any]:
    if not isinstance(rule, dict) or rule.keys() != {"start", "step", "number"}:
        raise Malformed(_RULE)
    number, start, step = rule["number"], _fraction(rule["start"]), _fraction(rule["step"])
    if type(number) is not int or not _FEW < number <= _MOST or not step or not room.has(number):
        raise Malformed(_RULE)
    if not _are_short(start, step, number):
        raise Malformed(_RULE)
    return _listed(start, step, number, is_plain)


def _fraction(text: Any) -> Fraction:
    """A fraction in lowest terms."""
    try:
        result = Fraction(text) if isinstance(text, str) and _TEXT.fullmatch(text) else None
    except ZeroDivisionError:
        result = None
    if result is None or str(result) != text:
        raise Malformed(_RULE)
    return result
