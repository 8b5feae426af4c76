"""All row-wise operations, and the functions of Polars that are read into them: the allow-list.

Each module of this package says in `OPERATIONS` which it defines, and in `READERS` what else reads
functions of Polars, into calls of several. Unlisted operations are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

import dpframe.rows
from dpframe.rows.operation import Kind, PlainOperation, Reader, RowMethod


def _modules() -> list[ModuleType]:
    names = sorted(module.name for module in iter_modules(dpframe.rows.__path__))
    return [import_module(f"dpframe.rows.{name}") for name in names]


def _kinds(modules: Sequence[ModuleType]) -> tuple[Kind, ...]:
    kinds = tuple(kind for module in modules for kind in getattr(module, "OPERATIONS", ()))
    for kind in kinds:
        if not (isinstance(kind, PlainOperation) or issubclass(kind, RowMethod)):
            raise TypeError(f"{kind!r} is no row-wise operation")
    return kinds


def _by_name(kinds: Sequence[Kind]) -> Mapping[str, Kind]:
    found: dict[str, Kind] = {}
    for kind in kinds:
        if kind.name in found:
            raise TypeError(f"two row-wise operations are named {kind.name!r}")
        found[kind.name] = kind
    return MappingProxyType(found)


def _readers(modules: Sequence[ModuleType], kinds: Sequence[Kind]) -> Mapping[str, Reader]:
    pairs = [(function, kind.read) for kind in kinds for function in kind.reads]
    pairs += [pair for module in modules for pair in getattr(module, "READERS", {}).items()]
    found: dict[str, Reader] = {}
    for function, reader in pairs:
        if function in found:
            raise TypeError(f"two row-wise operations are read from {function!r}")
        found[function] = reader
    return MappingProxyType(found)


_MODULES = _modules()
OPERATIONS = _kinds(_MODULES)
"""All operations, in the order of the files that they are in."""
BY_NAME = _by_name(OPERATIONS)
READERS = _readers(_MODULES, OPERATIONS)
"""What reads each function of Polars that is known."""
