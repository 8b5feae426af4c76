"""Parameters in expressions: the name that stands for one, and the constant that it is read into.

A parameter is never put into the text of an expression. It is written as a name that holds
everything about it in hexadecimal digits, for any value, and the reader makes a constant of it.
"""

from __future__ import annotations

import json
import re

from dpframe.core.parameters import NotAValue, Parameter
from dpframe.core.tree import Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operation import Operand, Values

SQL = "dpframe:sql"
"""The name of an expression that was written in SQL, by which the reader knows it."""

_MARK = "dpframe:parameter:"
_MARKED = re.compile(rf'(?:col\()?"?{_MARK}([0-9a-f]+)"?\)?')


def mark(parameter: Parameter) -> str:
    """The name that stands for a parameter."""
    text = json.dumps([parameter.name, parameter.type, parameter.value])
    return _MARK + text.encode().hex()


def marked(name: object) -> Parameter | None:
    """The parameter that a name stands for, if it does.

    Raises
    ------
    UnsupportedOperation
        When it only looks like one.
    """
    if not isinstance(name, str) or not name.startswith(_MARK):
        return None
    try:
        text, kind, value = json.loads(bytes.fromhex(name.removeprefix(_MARK)))
        return Parameter(text, kind, value)
    except (AttributeError, NotAValue, TypeError, ValueError):
        raise UnsupportedOperation(
            f"no column or output may be named {_MARK}...: parameters are called so",
            remedy="rename it",
        ) from None


def given(parameter: Parameter) -> Operand:
    """A parameter as the constant that it is, or as several."""
    held, dtype = parameter.held, parameter.kind.dtype
    if isinstance(held, tuple):
        return Values(held, dtype, parameter)
    return Literal(held, dtype, parameter)


def readable(shown: str) -> str:
    """An expression in a message, with parameters by their names."""
    return _MARKED.sub(_named, shown)


def _named(found: re.Match[str]) -> str:
    parameter = marked(_MARK + found[1])
    return found[0] if parameter is None else f":{parameter.name}"
