"""What an analyst asks for: one dp aggregate, read and resolved against a frame's columns."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from dpframe.aggregates.rules import Rules
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.grid import RESOLUTION_BITS
from dpframe.core.tree import Tree
from dpframe.core.weights import PARTS, WEIGHT_BITS
from dpframe.frames.contributions import unlimited
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups

GivenBounds: TypeAlias = "tuple[Any, ...] | None"
"""Bounds as they were given, not checked yet; None where they were left out."""
Per: TypeAlias = "Literal['unit'] | None"
"""Whether totals of individuals are aggregated; None for rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked(ABC):
    """An aggregate with all arguments except its column: the fields of its class."""

    kind: ClassVar[str]
    """The aggregate's name: ``"count"``, ``"sum"``, ..."""
    positional: ClassVar[tuple[str, ...]] = ()
    """The fields that are written without their names."""

    @property
    def method(self) -> str:
        """What it was written as, after ``dp_``."""
        return self.kind

    @property
    def name_without_column(self) -> str | None:
        """What its output is called where it has no column; None where it needs one."""
        return None

    @property
    def counts_missing(self) -> bool:
        """Whether a row without a value counts for something all the same."""
        return False

    def arguments(self) -> dict[str, Any]:
        """The arguments, by name, in the order in which plans show them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One dp aggregate of one expression.

    Parameters
    ----------
    aggregate
        Which one, with its bounds, q, bins, candidates, k, ...
    name
        The output column it is first used in.
    tree
        The expression, None for a count of rows.
    weight
        Its share of the cost relative to the other outputs.
    mechanism
        ``"auto"`` or a mechanism's name.
    score
        For a selection, the request that scores candidates, or None for the number of rows.
    denominator
        For a ratio, the expression below the line.
    """

    aggregate: Asked
    name: str
    tree: Tree | None
    weight: Fraction = Fraction(1)
    mechanism: str = "auto"
    score: Request | Tree | None = None
    denominator: Tree | None = None

    @property
    def kind(self) -> str:
        """The aggregate's name."""
        return self.aggregate.kind


UNKNOWN = 1 << 62
"""Stands for the number of unlisted groups."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryScope:
    """Where aggregates are computed: a frame, grouped or not."""

    facts: FrameFacts
    groups: Groups | None = None
    rules: Rules = field(init=False, repr=False)
    """How far one individual moves what is drawn in this scope."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", Rules(self.facts, self.groups))

    @property
    def entries(self) -> int | None:
        """The number of groups, None when the frame is not grouped; if unknown, more than there
        can be.
        """
        if self.groups is None:
            return None
        return UNKNOWN if self.groups.discovered else self.groups.size

    @property
    def spread(self) -> ContributionBounds:
        """How many rows one individual may have in these groups.

        Raises
        ------
        UnboundedSensitivity
            When nothing limits them.
        """
        found = self.rules.spread
        if self.norm is not None:
            found = found.weighed(self.norm)
        if not found.is_bounded:
            raise unlimited(self.facts, self.groups, found)
        return found

    @property
    def norm(self) -> Fraction | None:
        """What the norm of an individual's rows over the groups is limited to; None where rows
        count as they are.
        """
        return self.facts.norm

    @property
    def parts(self) -> int:
        """How many parts one row has in exact tables: 1 where rows are not weighed."""
        return 1 if self.norm is None else PARTS

    @property
    def resolution(self) -> int:
        """The binary places to which values are placed on grids, fewer where they are weighed:
        this many rows can be added up in either case.
        """
        return RESOLUTION_BITS - (0 if self.norm is None else WEIGHT_BITS)

    @property
    def unit_spread(self) -> ContributionBounds:
        """In how many of these groups one individual may be, once in each.

        Raises
        ------
        UnboundedSensitivity
            When nothing limits them.
        """
        found = self.rules.spread
        if found.groups is None and found.rows is None:
            raise unlimited(self.facts, self.groups, replace(found, per_group=1))
        _, groups, _ = replace(found, per_group=1).tight
        once = ContributionBounds(groups, groups, 1, found.changes)
        return once if self.norm is None else once.weighed(self.norm)
