"""All row-wise operations: the allow-list. What is not here is refused."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import dpframe.rows
from dpframe.core.tree import Constant
from dpframe.rows.operation import Kind, PlainOperation, RowOperation


def _kinds() -> tuple[Kind, ...]:
    """The `OPERATIONS` of all modules of this package, in the order of the modules' names."""
    found: list[Kind] = []
    for module in sorted(module.name for module in iter_modules(dpframe.rows.__path__)):
        found += getattr(import_module(f"dpframe.rows.{module}"), "OPERATIONS", ())
    return tuple(found)


OPERATIONS = _kinds()
BY_NAME = MappingProxyType({kind.name: kind for kind in OPERATIONS})


def operation(name: str, **constants: Constant) -> RowOperation:
    """The registered operation of that name, with constants.

    Raises
    ------
    KeyError
        When there is none.
    """
    kind = BY_NAME[name]
    if isinstance(kind, PlainOperation):
        return kind
    made: RowOperation = kind(**constants)
    return made
