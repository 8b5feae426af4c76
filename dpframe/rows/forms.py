"""How operations without constants are written: as operators, and as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dpframe.rows.operation import PlainOperation, RowOperation


class Infix(PlainOperation):
    """An operator between two operands."""

    __slots__ = ()

    symbol: ClassVar[str]

    def words(self, args: Sequence[str]) -> str:
        return f"({args[0]} {self.symbol} {args[1]})"


class Method(RowOperation):
    """A method of the same name, without arguments."""

    __slots__ = ()

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}()"
