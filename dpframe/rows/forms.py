"""Operations that are written as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dpframe.rows.operation import PlainOperation


class Infix(PlainOperation):
    """An operator between two operands."""

    __slots__ = ()

    symbol: ClassVar[str]

    def words(self, args: Sequence[str]) -> str:
        return f"({args[0]} {self.symbol} {args[1]})"
