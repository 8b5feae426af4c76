"""Several sums of one margin of grouping sets as one vector, so that one draw serves them all."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.request import QueryScope
from dpframe.core.contribution_bounds import ContributionBounds

__all__ = ["JointMargins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMargins(JointSums):
    """Several sums of each group of a margin as one vector, so that one draw serves them all.

    Guarantee
    ---------
    The sensitivity of several sums as one vector (`JointSums`), grouped by the columns of the
    margin alone. A row that comes or goes moves the vector of one of its groups within the box of
    the widths, and an individual moves at most as many boxes as the margin has rows of it.

    Proof
    -----
    A margin of a vector of sums is the vector of their margins, because both are linear. Entry by
    entry it adds up disjoint sets of rows, so each row is in one entry of the margin and adds to
    it what it adds to its finest group. The number of rows and groups of one individual there is
    the same for all sums of the vector, and follows from `Margin` for each.

    Parameters
    ----------
    sizes, columns, by
        The margin: sizes, the numbers of its columns and their names, as `Margin` has them.
    """

    sizes: tuple[int, ...]
    columns: tuple[int, ...]
    by: tuple[str, ...]

    @classmethod
    def of(cls, joint: JointSums, margin: Margin) -> Self:
        """The sums by the columns of a margin."""
        own = {field.name: getattr(joint, field.name) for field in fields(JointSums)}
        return cls(**own, sizes=margin.sizes, columns=margin.kept, by=margin.by)

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The margin of each sum."""
        return tuple(Margin(table, self.sizes, self.columns, self.by) for table in self.sums)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.margins[0].spread(scope)

    def _columns(self, scope: QueryScope) -> tuple[int, ...]:
        return self.columns

    def groups(self, scope: QueryScope) -> int:
        return self.margins[0].entries(scope)

    def words(self) -> str:
        return "together: " + "; ".join(margin.words() for margin in self.margins)
