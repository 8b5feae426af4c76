"""How the rows of one individual may lie among groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from dpframe.core.units import Rows
from dpframe.core.weights import PARTS, norm_in_parts


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
        groups = self.rows if self.groups is None else self.groups
        per_group = self.rows if self.per_group is None else self.per_group
        assert groups is not None
        assert per_group is not None
        rows = groups * per_group if self.rows is None else min(self.rows, groups * per_group)
        return rows, min(groups, rows), min(per_group, rows)

    @property
    def touched(self) -> int:
        """In how many groups neighbours differ, at most: rows that change may leave one for
        another.
        """
        _, groups, _ = self.tight
        return 2 * groups if self.changes else groups

    @property
    def l2_squared(self) -> int:
        """The largest sum of squares of numbers of rows per group: as many groups as possible with
        m rows, and one with what is left.
        """
        rows, _, per_group = self.tight
        if not rows:
            return 0
        full, left = divmod(rows, per_group)
        squared = full * per_group**2 + left**2
        return squared if self.norm is None else min(squared, self.norm**2)

    def weighed(self, norm: Fraction) -> ContributionBounds:
        """The bounds of an individual whose rows weigh so little that their norm is at most
        `norm`, in parts of rows.

        With N = floor(2**12 norm) it has at most N parts in a group, and sqrt(groups) N in all
        (Cauchy and Schwarz). A limit on rows holds as well, because no row is more than 2**12
        parts.
        """
        most = norm_in_parts(norm)
        rows = None if self.rows is None else self.rows * PARTS
        per_group = most if self.per_group is None else min(most, self.per_group * PARTS)
        groups = self.groups if self.groups is not None else self.rows
        if groups is not None:
            whole = isqrt(most * most * groups)
            rows = whole if rows is None else min(rows, whole)
        return ContributionBounds(rows, groups, per_group, self.changes, most)
