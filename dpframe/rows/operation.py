"""What a row-wise operation is: one class with everything about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.tree import Options

Namespace: TypeAlias = "Any"
"""The module that expressions are built with: `polars`, or another with the same functions."""


class RowOperation(ABC):
    """One operation whose result in a row depends on that row alone.

    A subclass states four things side by side: the domain of its result, how it is lowered, how a
    plan words it, and examples. The examples are not only documentation: laws run each of them on
    random frames and check that the result is row-wise, never raises, has the inferred type, lies
    in the inferred interval, and is null or NaN only where inference allows it.

    Guarantee
    ---------
    `lower` gives a *total* row-wise function: whatever the values in a row, it yields a value or
    null, never an error, and rows do not influence each other.
    """

    name: ClassVar[str]
    """The name in trees, the same as the Polars method where there is one."""
    summary: ClassVar[str]
    """One line for documentation, with what differs from plain Polars, if anything."""
    examples: ClassVar[tuple[str, ...]]
    """Polars expressions over the laws' frame, as text."""

    @abstractmethod
    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        """The domain of the result, from the domains of the operands.

        Raises
        ------
        UnsupportedOperation
            When the operation is not defined for these types; the caller adds the expression.
        """

    @abstractmethod
    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        """The same operation as a total expression of the engine."""

    @abstractmethod
    def words(self, args: Sequence[str], options: Options) -> str:
        """The operation as an analyst would write it, for plans and errors."""
