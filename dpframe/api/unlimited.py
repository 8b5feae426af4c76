"""Queries that an individual could change by any amount, until their frame is limited."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

from dpframe.aggregates.aggregate import BoundAggregate, OutputSpec, Query
from dpframe.api.protected_rows import ProtectedRows
from dpframe.core.tree import Column
from dpframe.core.units import Identifier
from dpframe.errors import DPFrameError, UnboundedSensitivity
from dpframe.frames.contributions import spread_of
from dpframe.frames.contributions import unlimited as unlimited_refusal
from dpframe.frames.groups import Groups
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.step import Step


@dataclass(frozen=True, slots=True, eq=False)
class Unlimited:
    """What is refused for want of a limit, and nothing else.

    Parameters
    ----------
    refusal
        What it was refused with.
    rows
        The rows.
    groups, specs
        The groups and outputs.
    """

    refusal: UnboundedSensitivity
    rows: ProtectedRows
    groups: Groups | None
    specs: tuple[OutputSpec, ...]

    def refused(self) -> UnboundedSensitivity:
        """A new copy of the refusal, because a traceback belongs to one raise."""
        return copy(self.refusal)

    def under(self, step: Step) -> Query:
        """The query of the limited frame.

        Raises
        ------
        DPFrameError
            When it is refused under that limit too.
        """
        rows = replace(self.rows, relation=self.rows.relation.then(step))
        return rows.ask(self.groups, self.specs)


def asked_or_unlimited(
    rows: ProtectedRows, groups: Groups | None, specs: list[OutputSpec]
) -> tuple[Query, Unlimited | None]:
    """A query; if it only lacks limits, the query with one row of each individual.

    Raises
    ------
    DPFrameError
        When the rows cannot answer it at any cost, under any limits.
    """
    try:
        asked = rows.ask(groups, specs)
    except UnboundedSensitivity as refusal:
        if not isinstance(rows.relation.facts.unit, Identifier):
            raise
        unlimited = Unlimited(refusal, rows, groups, tuple(specs))
    else:
        return asked, None
    try:
        limited = unlimited.under(LimitRows(1))
    except UnboundedSensitivity as refusal:  # missing bounds, which limits cannot replace
        raise refusal from None
    except DPFrameError:
        raise unlimited.refused() from None
    return limited, replace(unlimited, refusal=_tailored(unlimited, limited))


def _tailored(unlimited: Unlimited, limited: Query) -> UnboundedSensitivity:
    """The error for the strictest output, so that following its advice does not lead to a second
    error.
    """
    facts, groups = unlimited.rows.relation.facts, unlimited.groups
    found = spread_of(facts, groups)
    if found.is_bounded:
        return unlimited.refusal
    by_row = [a for a in limited.aggregates if not _is_of_individuals(a, facts.identifier)]
    kinds = {aggregate.request.kind for aggregate in by_row}
    if not by_row:  # and each counts once in a group
        found = replace(found, per_group=1)
    return unlimited_refusal(facts, groups, found, kinds)


def _is_of_individuals(aggregate: BoundAggregate, identifier: str | None) -> bool:
    """Whether an individual counts once in a group, with any number of rows there."""
    request = aggregate.request
    counted = request.kind == "n_unique" and request.tree == Column(identifier or "")
    return counted or getattr(request.aggregate, "per", None) == "unit"
