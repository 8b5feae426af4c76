"""From queries to their plan.

Queries that are planned together are composed as the draws of one query are. Parameters are fixed
before any noise is drawn, and each draw has its own cost for any frame, because the individual
that differs between neighbours is the same in all frames of a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.reconstruction import (
    CellReconstruction,
    PrefixReconstruction,
    RelatedReconstruction,
    ways_to_measure,
    with_totals,
    with_whole_levels,
)
from dpframe.choose import (
    WORTH_WHILE,
    in_mu,
    in_rho,
    least_error_way,
)
from dpframe.core.budget import GDP, Budget, PureDP
from dpframe.describe import described
from dpframe.errors import DPFrameError
from dpframe.infer import (
    Noise,
    Place,
    Related,
    brought_together,
    effects_of,
    measurements_of,
    related_blocks,
    ways_of,
)
from dpframe.planning.asked import Planned, asked_of, choose_for, chosen_apart
from dpframe.planning.gains import (
    ExpectedError,
    errors_of,
    least_expected,
    relative_error,
    telling_gains,
)
from dpframe.planning.prepared import Prepared

T = TypeVar("T")
_WITH_COUNTS = (CellReconstruction, PrefixReconstruction)
Errors: TypeAlias = Sequence[ExpectedError]


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """How queries are planned.

    Parameters
    ----------
    spend, remaining
        The total cost allowed, and the session's remaining budget.
    split
        The rule that divides the cost.
    charged_in
        The measure, of rho or mu, in which plans are charged, if not in that of the spend.
    """

    spend: Budget
    remaining: Budget | None
    split: str
    charged_in: type[Budget] | None

    def least(self, queries: Sequence[Query], alone: Errors | None = None) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost, measured with the least error. Counts
        in queries with histograms and distribution functions are rebuilt from the same noisy
        cells if that has a smaller error. If they are made of others, `alone` has the expected
        errors of the outputs alone.
        """
        apart = self.measured(queries, alone)
        best, least = apart, WORTH_WHILE
        before: Errors = ()
        for moved in _with_counts(queries):
            before = before or errors_of(apart)
            with suppress(DPFrameError):  # more noise in a total than can be drawn
                made = self.measured(moved, before if alone is None else alone)
                after = errors_of(made)
                error = relative_error(before, after)
                if error < least:
                    told = telling_gains(made, range(len(made)), before, after, _WITH_COUNTS)
                    best, least = told, error
        return best

    def measured(
        self, queries: Sequence[Query], alone: Errors | None = None
    ) -> tuple[Prepared, ...]:
        """The plan of each query, measured in the best of the ways that its aggregates know."""
        ways = combined([ways_to_measure(query, self.spend) for query in queries])
        return least_expected([self._planned(way) for way in ways], alone)

    def related(
        self, queries: tuple[Query, ...], places: tuple[Place, ...]
    ) -> tuple[tuple[Prepared, ...], tuple[Place, ...]]:
        """The same, with related tables rebuilt from what is drawn for all of them where that has
        a smaller error; and where outputs are then.
        """
        apart = self.least(queries)
        best, least = (apart, places), WORTH_WHILE
        for found in related_blocks(queries):
            found = [one for one in found if len(found) == 1 or self._errs_less(queries, one)]
            with suppress(DPFrameError):  # more noise in a margin than can be drawn
                moved, new_places = brought_together(queries, places, found)
                made = self.least(moved, _alone(moved, queries, found, apart)) if found else apart
                at = [next(i for i, p in enumerate(moved) if p is one.query) for one in found]
                numbers = [number for one in found for number in one.numbers]
                before = errors_of(apart[number] for number in numbers)
                after = errors_of(made[number] for number in at)
                error = relative_error(before, after)
                if error < least:
                    told = telling_gains(made, at, before, after, [RelatedReconstruction])
                    best, least = (told, new_places), error
        return best

    def _errs_less(self, queries: Sequence[Query], one: Related) -> bool:
        """Whether related queries have smaller errors together, were nothing else asked."""
        apart = self.least([queries[number] for number in one.numbers])
        with suppress(DPFrameError):
            before = errors_of(apart)
            together = self.least([one.query], before)
            return relative_error(before, errors_of(together)) < WORTH_WHILE
        return False

    @property
    def _noises(self) -> tuple[Noise, ...]:
        """What may be added to several numbers at once; Gaussian noise has no epsilon alone."""
        return ("box",) if isinstance(self.spend, PureDP) else ("box", "gaussian")

    def _planned(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost."""
        parts = [measurements_of(query) for query in queries]
        weighted = any(request.weight != 1 for query in queries for request in query.requests)
        by = "weights" if weighted else self.split
        ways = combined(
            [
                ways_of(query, found, by, self._noises)
                for query, found in zip(queries, parts, strict=True)
            ]
        )
        effects = list(map(effects_of, queries, parts))
        planned = [list(map(Planned, queries, parts, effects, way)) for way in ways]
        asked = [asked_of(one, by) for one in planned]
        chosen = least_error_way(
            asked,
            lambda way: choose_for(planned[asked.index(way)], way, self.spend),
        )
        tasks = asked[chosen.number].tasks
        allowed = chosen.together.cost
        if self.charged_in is not None:
            charge = (in_mu if self.charged_in is GDP else in_rho)(tasks, chosen.together)
            chosen = replace(chosen, together=charge)
        made = []
        taken = planned[chosen.number]
        for one, own in zip(taken, chosen_apart(taken, chosen), strict=True):
            plan = described(
                one.query, one.parts, one.way, own, allowed, self.spend, self.remaining, by
            )
            draws = one.drawn_by([choice.law for choice in own.together.choices])
            made.append(Prepared(plan, one.knowing(draws), one.parts, draws))
        return tuple(made)


def _with_counts(queries: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """The queries with counts that are rebuilt from the cells of histograms, of distribution
    functions, or of either.
    """
    cells = [with_totals(query) for query in queries]
    levels = [with_whole_levels(query) for query in queries]
    tried = [queries]
    for found in (cells, levels, list(map(with_whole_levels, cells))):
        if not any(_are_same(found, other) for other in tried):
            tried.append(found)
            yield found


def _are_same(some: Sequence[Query], others: Sequence[Query]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def _alone(
    moved: Sequence[Query],
    queries: Sequence[Query],
    related: Sequence[Related],
    apart: Sequence[Prepared],
) -> Errors:
    """Expected error of each output if its query were planned alone, to report the gain of
    batching."""
    numbers: dict[int, tuple[int, ...]] = {id(q): (number,) for number, q in enumerate(queries)}
    numbers |= {id(one.query): one.numbers for one in related}
    return errors_of(apart[number] for query in moved for number in numbers[id(query)])


def combined(ways: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """One way for each query at a time: the first of all of them, the second, and so on; a query
    that has fewer keeps to its last.
    """
    return [
        tuple(found[min(number, len(found) - 1)] for found in ways)
        for number in range(max(map(len, ways)))
    ]
