"""Objects that hold expressions and hand them out: steps of frames, statistics, cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar, Self, TypeAlias

from dpframe.core.tree import Named, Tree

Change: TypeAlias = "Callable[[Tree], Tree]"


class HasExprs(ABC):
    """A frozen value with expressions over the columns of a frame.

    Engines check all of them before anything runs, so a class that holds some names every one.
    """

    __slots__ = ()

    engines: ClassVar[frozenset[str]]
    """The engines on which it runs, declared by each class for itself; `tests/engines` cover
    this."""

    @abstractmethod
    def map_exprs(self, change: Change) -> Self:
        """The same with other expressions."""

    @property
    def exprs(self) -> tuple[Tree, ...]:
        """Its expressions."""
        found: list[Tree] = []

        def note(tree: Tree) -> Tree:
            found.append(tree)
            return tree

        self.map_exprs(note)
        return tuple(found)


def map_named(named: Iterable[Named], change: Change) -> tuple[Named, ...]:
    """Named expressions with other expressions."""
    return tuple(replace(n, tree=change(n.tree)) for n in named)
