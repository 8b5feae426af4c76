"""Long tuples, hashed once."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["HashedTuple"]

T = TypeVar("T")


class HashedTuple(tuple[T, ...]):
    """A tuple that keeps its hash: that of 5,000 fractions takes milliseconds, and a plan looks
    what has them up some dozens of times.
    """

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = tuple.__hash__(self)
            return self._hash
