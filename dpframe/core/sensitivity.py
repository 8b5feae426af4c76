"""How far one individual can move a released vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.exact import float_up, sqrt_up
from dpframe.core.tree import EXACT
from dpframe.core.units import Rows
from dpframe.kernel.frame import Bounds, Reach
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

    def scale(self, factor: Fraction) -> ExactSensitivity:
        """The sensitivity of the vector times `factor`."""
        f = abs(factor)
        return ExactSensitivity(self.l0, self.l1 * f, self.l2_squared * f * f, self.linf * f)

    def repeat(self, times: int) -> ExactSensitivity:
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


def concentrate(l1: Fraction, linf: Fraction) -> tuple[Fraction, ...]:
    """As many numbers of size `linf` as L1 allows, and one with what is left of it: of all within
    both bounds those that differ most (they majorise the others).
    """
    if not linf:
        return ()
    full, left = divmod(l1, linf)
    return (linf,) * full + ((left,) if left else ())


NO_SENSITIVITY = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))


# How the rows of one individual may lie among groups.


@dataclass(frozen=True, slots=True)
class ContributionBounds:
    """The largest numbers of rows, of groups, and of rows in each group. None where there is no
    bound.

    Parameters
    ----------
    rows, groups, per_group
        The bounds r, g and m.
    changes
        Whether neighbours differ in the values of these rows (change-one adjacency), or in whether
        they are there at all.
    norm
        Where individuals are weighed: the largest root of the sum of squares of what one has in
        each group. It and the bounds on rows are in parts of rows then, see `dpframe.core.units`.
    """

    rows: int | None
    groups: int | None
    per_group: int | None
    changes: bool = False
    norm: int | None = None

    @classmethod
    def of_rows(cls, unit: Rows, copies: int = 1) -> ContributionBounds:
        """The bounds of rows that may be in any groups, where each may have become `copies`
        rows."""
        k = unit.contributions * copies
        return cls(k, k, k, unit.adjacency == "change-one")

    @property
    def is_bounded(self) -> bool:
        """Whether the number of rows is."""
        return self.rows is not None or None not in (self.groups, self.per_group)

    @property
    def tight(self) -> tuple[int, int, int]:
        """r, g and m where each is no more than the others allow.

        Raises
        ------
        ValueError
            When nothing bounds the number of rows.
        """
        if not self.is_bounded:
            raise ValueError("one individual may have any number of rows")
        return Bounds(self.rows, self.groups, self.per_group).tight()

    @property
    def changed_groups(self) -> int:
        """In how many groups neighbours differ, at most: rows that change may leave one for
        another.
        """
        _, groups, _ = self.tight
        return 2 * groups if self.changes else groups

    @property
    def l2_squared(self) -> int:
        """The largest sum of squares of numbers of rows per group."""
        rows, groups, most = self.tight
        return Reach(rows, groups, most, most, norm=self.norm).squares(1)

    def weigh(self, norm: Fraction) -> ContributionBounds:
        """The bounds of an individual whose rows weigh so little that their norm is at most
        `norm`, in parts of rows.
        """
        found = Bounds(self.rows, self.groups, self.per_group).weigh(norm)
        about = found.rows, found.groups, found.per_group
        return ContributionBounds(*about, self.changes, found.norm)


# The largest change in the difference of two scores by one individual.


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """How much one individual can change scores *relative to each other*.

    A selection compares scores, so in a group only the range R of the score changes matters: their
    maximum minus their minimum over candidates. R is at most twice the score's sensitivity, and
    equal to it where all scores move in the same direction.

    Parameters
    ----------
    l1
        The largest sum of ranges over groups.
    l2_squared
        The largest sum of squared ranges over groups.
    linf
        The largest range in one group.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @property
    def groups(self) -> tuple[Fraction, ...]:
        """As many groups with the largest range as L1 allows, and one with what is left.

        Choices in these groups cost no less than in any others within L1 and Linf, see
        `dpframe.accounting.losses`.
        """
        return concentrate(self.l1, self.linf)

    def is_shared(self, touched: int) -> bool:
        """Whether the ranges in this many groups may differ from those of `groups`, so that they
        are neither each at most one of these nor parts of one of them.
        """
        return self.linf < self.l1 < touched * self.linf
