"""How far one individual can move a released vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.exact import float_up, sqrt_up
from dpframe.core.fields import EXACT
from dpframe.kernel.moves import Norms


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of one released vector between neighbouring frames, in the value's units.

    Parameters
    ----------
    l0
        How many entries can change.
    l1
        The sum of absolute changes.
    l2
        The Euclidean norm of the change.
    linf
        The largest change of one entry.

    Notes
    -----
    For people: rounded up, but for L2, which is the nearest float to a root. Noise is calibrated to
    the exact values.
    """

    l0: int = field(metadata={EXACT: True})  # ways to place ten quantiles need 180 bits
    l1: float
    l2: float
    linf: float


@dataclass(frozen=True, slots=True)
class ExactSensitivity:
    """The same, exactly, with L2 squared so that it is rational."""

    l0: int = field(metadata={EXACT: True})
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @classmethod
    def of(cls, norms: Norms) -> ExactSensitivity:
        """The sensitivity that the kernel finds."""
        if not norms.l1:
            return NO_SENSITIVITY
        of_one = Fraction(norms.l1), Fraction(norms.l2_squared), Fraction(norms.linf)
        return cls(max(1, norms.l0), *of_one)

    @property
    def is_zero(self) -> bool:
        return self.l1 == 0

    def scaled(self, factor: Fraction) -> ExactSensitivity:
        """The sensitivity of the vector times `factor`."""
        f = abs(factor)
        return ExactSensitivity(self.l0, self.l1 * f, self.l2_squared * f * f, self.linf * f)

    def repeated(self, times: int) -> ExactSensitivity:
        """The sensitivity of `times` such vectors together, if one row can move them all."""
        n = times
        return ExactSensitivity(self.l0 * n, self.l1 * n, self.l2_squared * n, self.linf)

    def public(self) -> Sensitivity:
        """As floats, rounded up."""
        l2 = sqrt_up(self.l2_squared)
        return Sensitivity(self.l0, float_up(self.l1), _near(l2), float_up(self.linf))


def _near(value: Fraction) -> float:
    """The nearest float, which for an irrational root is the value that people expect."""
    return float(value)


def concentrated(l1: Fraction, linf: Fraction) -> tuple[Fraction, ...]:
    """As many numbers of size `linf` as L1 allows, and one with what is left of it: of all within
    both bounds those that differ most (they majorise the others).
    """
    if not linf:
        return ()
    full, left = divmod(l1, linf)
    return (linf,) * full + ((left,) if left else ())


NO_SENSITIVITY = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))


def joint_sensitivity(
    widths: tuple[int, ...],
    turned: tuple[int, ...],
    spread: ContributionBounds,
    grouped: bool,
    conditions: tuple[int, ...] = (),
    kept: tuple[int, ...] = (),
) -> ExactSensitivity:
    """The sensitivity of vectors of several numbers, one vector per group, each number a sum over
    the rows of its group.

    Parameters
    ----------
    widths
        By how much one row that comes or goes moves each number at most.
    turned
        By how much a row that stays in its group and changes moves each at most; no more than twice
        the width.
    spread
        How many rows of one individual may differ, and in how many groups.
    grouped
        Whether a row belongs to one of several groups, or to none.
    conditions
        What a row needs to move each number: 0 where it needs to be there, or the number of an
        expression that has to have a value. Without any, each number is a separate condition.
    kept
        By how much a row that stays, and meets the condition of a number before and after, moves it
        at most: a count not at all.

    Notes
    -----
    add-remove
        with w the widths, r rows come or go, at most m in each of g groups, and each moves one
        vector by at most w: L1 = r sum(w), L2**2 = (q m**2 + (r - q m)**2) sum(w**2),
        Linf = m max(w).
    change-one, one group of all rows
        k rows stay and change: L1 = k sum(t), L2**2 = k**2 sum(t**2), Linf = k max(t).
    change-one, groups
        each of k rows leaves one group for another, or stays: L1 = 2 k sum(w), L2 = k times the
        larger of sqrt(2 sum(w**2)) and sqrt(sum(t**2)), Linf = k max(w, t).
    change-one, conditions
        a row that comes, or goes, moves all numbers by at most w, and one that leaves one group for
        another the vectors of both. For a row that stays, the numbers of condition 0 move by at
        most their part of `kept`. The numbers of any other condition e move by at most `kept`
        where it is met before and after, by at most w where it is met once, and not at all where
        it never is. So let z(f) be the sum over condition 0 of f(kept), plus the sum over others
        of the larger of sum(f(kept)) and sum(f(w)). Then L1 = k max(c sum(w), z(size)) and L2**2
        = k**2 max(c sum(w**2), z(square)), with c = 2 for groups and else 1; Linf = k max(w,
        kept). All are attained where a row can move all of its numbers by as much as that at
        once.
    """
    rows, groups, most = spread.tight
    numbers = len(widths)
    if not spread.changes:
        return ExactSensitivity(
            numbers * min(rows, groups),
            Fraction(rows * sum(widths)),
            Fraction(spread.l2_squared * sum(w * w for w in widths)),
            Fraction(most * max(widths)),
        )
    vectors = 2 if grouped else 1
    if conditions:
        moved = stays(widths, conditions, kept)
        square = stays(_squares(widths), conditions, _squares(kept))
        leaves = vectors * sum(widths), vectors * sum(_squares(widths))
        return ExactSensitivity(
            (2 * rows if grouped else 1) * numbers,
            Fraction(rows * max(leaves[0], moved)),
            Fraction(rows * rows * max(leaves[1], square)),
            Fraction(rows * max(*widths, *kept)),
        )
    square = sum(t * t for t in turned)
    if not grouped:
        reach = rows * max(turned)
        norms = Fraction(rows * sum(turned)), Fraction(rows * rows * square), Fraction(reach)
        return ExactSensitivity(numbers, *norms)
    return ExactSensitivity(
        2 * rows * numbers,
        Fraction(2 * rows * sum(widths)),
        Fraction(rows * rows * max(2 * sum(w * w for w in widths), square)),
        Fraction(rows * max(*widths, *turned)),
    )


def stays(widths: tuple[int, ...], conditions: tuple[int, ...], kept: tuple[int, ...]) -> int:
    """The largest sum of what a row that stays moves numbers by; see `joint_sensitivity`."""
    found = 0
    for condition in {*conditions}:
        mine = [place for place, other in enumerate(conditions) if other == condition]
        both = sum(kept[place] for place in mine)
        found += max(both, sum(widths[place] for place in mine)) if condition else both
    return found


def _squares(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number * number for number in numbers)
