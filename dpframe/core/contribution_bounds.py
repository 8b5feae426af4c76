"""How the rows of one individual may lie among groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.units import Rows
from dpframe.kernel.frame import Bounds, Reach


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
        each group. It and the bounds on rows are in parts of rows then, see `dpframe.core.weights`.
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
    def touched(self) -> int:
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

    def weighed(self, norm: Fraction) -> ContributionBounds:
        """The bounds of an individual whose rows weigh so little that their norm is at most
        `norm`, in parts of rows.
        """
        found = Bounds(self.rows, self.groups, self.per_group).weighed(norm)
        about = found.rows, found.groups, found.per_group
        return ContributionBounds(*about, self.changes, found.norm)
