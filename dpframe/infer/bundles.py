"""Which parts of a query may be drawn jointly: sums over the same rows of the same groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import Additive
from dpframe.frames.groups import SetGroups
from dpframe.infer.measurements import PlannedMeasurement

__all__ = ["bundles_of"]

_MOST: Final = 63
"""The most parts drawn jointly, without the number of rows; more are drawn in several pieces."""


def bundles_of(query: Query, parts: Sequence[PlannedMeasurement]) -> Iterator[tuple[int, ...]]:
    """The numbers of parts that are sums over the same rows, or the same individuals, of the same
    groups; of grouping sets of the same margin.
    """
    found: dict[Hashable, list[int]] = {}
    taken = {p.part.table for p in parts if isinstance(p.part, KeySelection)}
    in_sets = isinstance(query.groups, SetGroups)
    for number, use in enumerate(parts):
        part = use.part
        # a margin with its total is another vector, and what is of one set alone another table
        if type(part) is not (Margin if in_sets else Additive):
            continue
        assert isinstance(part, (Additive, Margin))
        if part.table.cells is not None or part.table in taken:
            continue
        if use.mechanism == "auto" and not use.sensitivity.is_zero:
            kept = part.kept if isinstance(part, Margin) else None
            kind = kept, part.spread(query.scope), part.table.statistic.of_individuals
            found.setdefault(kind, []).append(number)
    for numbers in found.values():
        if len(numbers) > 1:
            pieces = -(-len(numbers) // _MOST)
            for piece in range(pieces):
                yield tuple(numbers[piece::pieces])
