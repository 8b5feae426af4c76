"""Numbers as people read them: with a comma between thousands where there are many digits."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from dpframe.core.exact import show

_LONG = re.compile(r"(?<![\w.,'\"])(\d{5,})(?!\w)")
"""Five digits or more before the point, but not in names. Years have four."""
_POWER = re.compile(r"(?<![\w.,'\"])(\d(?:\.\d+)?e(?:[5-9]|1[0-4]))(?!\w)")
"""Numbers with a power of ten that read better without it."""
_ENDS = re.compile(
    r"\b(?:in|to) \[-?\d[^\[\]'\"]*, -?\d[^\[\]'\"]*\]|(?<=, )less -?\d[\d.e]*(?=[;)]|$)"
)


def shown(value: Fraction | int | float, digits: int = 6) -> str:
    """A number rounded for people, as `show`; below 10**15 without a power of ten."""
    return separated(show(value, digits))


def separated(text: str) -> str:
    """A sentence with separators in its long numbers; not for code."""
    text = _POWER.sub(lambda found: f"{Decimal(found[1]):f}", text)
    return _LONG.sub(lambda found: _in_thousands(found[1]), text)


def _in_thousands(digits: str) -> str:
    """Digits with commas; as text, because there may be more than Python converts to a number."""
    first = len(digits) % 3
    groups = [digits[i : i + 3] for i in range(first, len(digits), 3)]
    return ",".join([digits[:first], *groups] if first else groups)


def bounds_separated(text: str) -> str:
    """The same in bounds such as ``in [0, 100000]`` alone, and in what values are ``less``: the
    rest may be code.
    """
    return _ENDS.sub(lambda found: separated(found[0]), text)
