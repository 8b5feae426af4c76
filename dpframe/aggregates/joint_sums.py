"""Several sums of the same rows as one vector, so that one draw serves them all.

One row moves all of its group's sums at once, but not each by the most that it could. With c
between lo and hi, and n the number of rows, the numbers n and 2 c - (lo + hi) n move by at most 1
and hi - lo. Noise that covers just that set is less than noise that covers each sum on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.aggregates.measurement import Integers, Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveTask, Arch, box_of

__all__ = ["JointSums", "Rebuilt"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How a sum follows from noisy numbers: sum(factor * number) / divisor, to the nearest integer.

    Parameters
    ----------
    factors
        One for each number.
    divisor
        Above 0.
    """

    factors: tuple[int, ...]
    divisor: int

    def of(self, noisy: Integers) -> tuple[Integers, Integers]:
        """The integers, rounded down, and where a half has to be rounded by a coin: 0 where it is
        clear, which is done already, 1 where it is not.

        Parameters
        ----------
        noisy
            Of shape (groups, numbers).

        Notes
        -----
        Modulo 2**64 as the numbers are. Fractions are compared with a half in floats, which can
        take for a half what differs from it by less than 2**-45.
        """
        whole = np.zeros(noisy.shape[0], dtype=np.int64)
        part = np.zeros(noisy.shape[0], dtype=np.float64)
        for place, factor in enumerate(self.factors):
            if factor:
                common = math.gcd(factor, self.divisor)
                quotient, fraction = _ratio(
                    noisy[:, place], factor // common, self.divisor // common
                )
                whole += quotient
                part += fraction
        over = np.floor(part)
        whole += over.astype(np.int64)
        part -= over
        half = np.abs(part - 0.5) <= _HALF
        whole += ((part > 0.5) & ~half).astype(np.int64)
        return whole, half.astype(np.int64)


_HALF = 2.0**-45


def has_several(groups: int) -> bool:
    """Whether a row may leave one of this many groups for another."""
    return groups > 1


def _ratio(numbers: Integers, factor: int, divisor: int) -> tuple[Integers, np.ndarray]:
    """numbers * factor / divisor as integers and fractions in [0, 1)."""
    quotient, rest = np.divmod(numbers, np.int64(divisor))
    if divisor == 1:
        return quotient * np.int64(factor), np.zeros(numbers.size)
    if abs(factor) * divisor < 2**63:
        more, rest = np.divmod(rest * np.int64(factor), np.int64(divisor))
        return quotient * np.int64(factor) + more, rest / float(divisor)
    parts = [divmod(r * factor, divisor) for r in rest.tolist()]
    more = np.array([q for q, _ in parts], dtype=np.int64)
    return quotient * np.int64(factor) + more, np.array([r / divisor for _, r in parts])


@dataclass(frozen=True, slots=True)
class JointSums(Measurement):
    """Several sums of each group as one vector, so that one draw serves them all.

    The numbers that are drawn are integer combinations of sums: usually the number of rows n, and
    2 c - (lo + hi) n for a sum c of values in [lo, hi], or half of that where it is whole. The
    sums are rebuilt from the noisy numbers and rounded to the nearest integer.

    Guarantee
    ---------
    One row that comes or goes moves number j of one vector by at most its width w_j, all numbers
    at once. So r rows of one individual move the vectors of all groups by at most r boxes of
    these half-widths together; the norms are those of `joint_sensitivity`. Noise for that is
    drawn from a discrete box at epsilon / r for each row, or is discrete Gaussian noise by L2.

    Proof
    -----
    A row adds (1, c) to the vector of its group, with c in [lo, hi] where it adds a value and 0
    where that is null; lo <= 0 <= hi, so 2 c - (lo + hi) lies in [lo - hi, hi - lo] in either case.
    Rows are added one after another, and boxes add up. Under change-one adjacency a row leaves one
    vector for another, each by at most its box, or stays in its own and moves number j by at most
    t_j, or comes, or goes. For a row that stays it is known which numbers move together
    (`conditions`). A number of rows does not move, as the row is there before and after. A number
    of values, and a sum of the same expression, move only where that has a value, since both skip
    the rows where it is null or NaN. The rebuilt and rounded numbers are computed from noisy
    numbers alone.

    *Arches.* Values are placed on a grid at s of -h to h, and their squares at 2 u - Q with s**2 /
    h**2 <= u / Q <= 1 (`grid_of_squares`), made of the very column of places that is added up
    (`row_columns`); a row is counted wherever it has a place. So over their widths 1, h and Q it
    adds (1, x, y) with 2 x**2 - 1 <= y <= 1, or (1, 0, 0) where it is counted and has no value, or
    nothing: all in the hull of the arch (`dpframe.samplers.box`) and its mirror image.

    Parameters
    ----------
    sums
        The exact tables, without cells.
    matrix
        For each number that is drawn its factors of the tables.
    widths, turned
        By how much a row that comes or goes, or one that stays and changes, moves each number.
    conditions, kept
        Of rows that change: what one needs to move each number, and by how much it does where it
        meets that before and after; nothing where each number is one on its own.
    arches
        The places of numbers that are a count of values, their sum, and the sum of their squares.
    """

    sums: tuple[Table, ...]
    matrix: tuple[tuple[int, ...], ...]
    widths: tuple[int, ...]
    turned: tuple[int, ...]
    conditions: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    arches: tuple[Arch, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.sums

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.sums[0].statistic.spread(scope)

    def node(self, scope: QueryScope) -> kernel.Vector:
        places = tuple(map(scope.rules.place, self.sums))
        return kernel.Vector(places, self.matrix, self._columns(scope), 1, total=False)

    def _columns(self, scope: QueryScope) -> tuple[int, ...]:
        """The key columns of each vector, by their numbers."""
        return scope.rules.columns(None)

    def groups(self, scope: QueryScope) -> int:
        """How many vectors there are."""
        return 1 if scope.entries is None else scope.entries

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    def entries(self, scope: QueryScope) -> int:
        return self.groups(scope) * len(self.widths)

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        box = None
        if mechanism == "auto":
            about = self.widths, self.turned, self.spread(scope)
            box = box_of(*about, has_several(self.groups(scope)), self.arches)
        return AdditiveTask(name, sensitivity, mechanism, box)

    def words(self) -> str:
        return "together: " + "; ".join(table.words() for table in self.sums)
