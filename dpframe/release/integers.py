"""Arrays of whole numbers of any size: of 64 bits where these hold the results, else of Python's
integers, which take a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Integers", "choose"]

Bools: TypeAlias = "NDArray[np.bool_]"


class Integers:
    """Whole numbers, and how large they are at most; operations are as those of Python's integers.

    Parameters
    ----------
    array
        The numbers, of type int64 or object.
    most
        No magnitude is above; below 2**63 for int64.
    """

    __slots__ = ("array", "most")

    def __init__(self, array: NDArray[Any], most: int) -> None:
        self.array = array
        self.most = most

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Integers:
        listed = list(numbers)
        most = max(map(abs, listed), default=0)
        return cls(np.array(listed, dtype=np.int64 if most < 1 << 63 else object), most)

    @classmethod
    def of_array(cls, array: NDArray[np.int64]) -> Integers:
        least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
        size = max(-least, most)
        return cls(array if size < 1 << 63 else array.astype(object), size)

    def __len__(self) -> int:
        return len(self.array)

    def tolist(self) -> list[int]:
        numbers: list[int] = self.array.tolist()
        return numbers

    def repeat(self, times: int) -> Integers:
        return Integers(self.array.repeat(times), self.most)

    def broadcast(self, size: int) -> Integers:
        return Integers(np.broadcast_to(self.array, size), self.most)

    @property
    def is_zero(self) -> Bools:
        return np.asarray(self.array == 0, dtype=np.bool_)

    def equals(self, other: Integers | int) -> Bools:
        return np.asarray(self.array == _integers(other).array, dtype=np.bool_)

    def __lt__(self, other: Integers | int) -> Bools:
        return np.asarray(self.array < _integers(other).array, dtype=np.bool_)

    def __gt__(self, other: Integers | int) -> Bools:
        return np.asarray(self.array > _integers(other).array, dtype=np.bool_)

    def __add__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, self.most + _integers(other).most)
        return Integers(a + b, most)

    def __sub__(self, other: Integers | int) -> Integers:
        return self + -_integers(other)

    def __mul__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, self.most * _integers(other).most)
        return Integers(a * b, most)

    __rmul__ = __mul__

    def __floordiv__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, max(self.most, 1))
        return Integers(a // b, most)

    def __mod__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, _integers(other).most)
        return Integers(a % b, most)

    def __pow__(self, power: int) -> Integers:
        most = self.most**power
        array = self.array if most < 1 << 63 else self.array.astype(object)
        return Integers(array**power, most)

    def __neg__(self) -> Integers:
        return Integers(-self.array, self.most)

    def __abs__(self) -> Integers:
        return Integers(np.abs(self.array), self.most)

    def _with(self, other: Integers | int, most: int) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Both arrays, in a type that holds a result of this size."""
        a, b = self.array, _integers(other).array
        if most < 1 << 63 and a.dtype == b.dtype == np.int64:
            return a, b, most
        return a.astype(object), b.astype(object), most


def _integers(numbers: Integers | int) -> Integers:
    return numbers if isinstance(numbers, Integers) else Integers.of([numbers])


def choose(condition: Bools, first: Integers | int, second: Integers | int) -> Integers:
    """The first numbers where a condition holds, and the second elsewhere."""
    a, b = _integers(first), _integers(second)
    same = a.array.dtype == b.array.dtype
    arrays = (a.array, b.array) if same else (a.array.astype(object), b.array.astype(object))
    return Integers(np.where(condition, *arrays), max(a.most, b.most))
