"""Plans with what is needed to run them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import polars as pl

from dpframe.aggregates.bound import MeasurementKey
from dpframe.aggregates.measurement import Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.core.windows import Every, Windows
from dpframe.frames.binary import frames_of
from dpframe.frames.windows_read import windows_read
from dpframe.infer import (
    Place,
    PlannedMeasurement,
)
from dpframe.ledger.clocks import Clock
from dpframe.ledger.scopes import WindowScope
from dpframe.mechanisms import Mechanism
from dpframe.release import Draw
from dpframe.report import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A plan and what is needed to run it.

    Parameters
    ----------
    plan
        What reviewers read.
    query
        What is asked.
    parts
        The parts in the order of `plan.releases`.
    draws
        What is drawn for them.
    """

    plan: Plan
    query: Query
    parts: tuple[PlannedMeasurement, ...]
    draws: tuple[Draw, ...]

    @property
    def tables(self) -> list[Table]:
        """The exact tables that it needs, each once."""
        return tables_of(draw.measurement for draw in self.draws)

    @property
    def laws(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part by itself, whatever else is drawn with it."""
        return {key: law for draw in self.draws for key, law in draw.noises().items()}


BLIND: Final = 10
"""The least limit that is found where noise hides who has more."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitOptions:
    """A query under each of the limits that may be found when it runs.

    Parameters
    ----------
    limits
        Them, in rising order.
    options
        The query under each, with its plan.
    variance
        Of the noise of each count of the histogram that they are found by.
    """

    limits: tuple[int, ...]
    options: tuple[Prepared, ...]
    variance: float

    def number(self, found: pl.DataFrame) -> int:
        """Which limit the noisy histogram gives: the least that all but one percent of individuals
        keep, or all but as many as noise can make, a standard deviation. Where noise can make more
        than a tenth of all, it hides who has more, and no limit below `BLIND` is taken.
        """
        counts = found["count"].to_list()
        whole = max(0, sum(counts))
        for place, n in enumerate(self.limits[:-1]):
            above, noise = self._above(counts, place)
            if above <= max(whole / 100, noise) and (noise <= whole / 10 or n >= BLIND):
                return place
        return len(self.limits) - 1

    def hidden(self, found: pl.DataFrame) -> int:
        """About how many individuals may have more than the limit that the histogram gives: those
        that are seen and two standard deviations of noise.
        """
        above, noise = self._above(found["count"].to_list(), self.number(found))
        return math.ceil(max(0.0, above) + 2 * noise)

    def _above(self, counts: Sequence[int], place: int) -> tuple[int, float]:
        """The noisy number of individuals with more than a limit, and its standard deviation."""
        above = counts[place + 1 :]
        return sum(above), math.sqrt(self.variance * len(above))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTogether:
    """One plan of several queries, and what is needed to run it.

    Parameters
    ----------
    plan
        What reviewers read.
    parts
        The queries that are run, each with the plan that it has where all share the cost.
    places
        Where the outputs of the queries that were asked are.
    limits
        Where the first query finds a limit for the second: that under each, of which it is one. The
        second of `parts` is that under the largest.
    """

    plan: Plan
    parts: tuple[Prepared, ...]
    places: tuple[Place, ...]
    limits: LimitOptions | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that are run."""
        return tuple(part.query for part in self.parts)

    def scope(self, per: Every | None) -> WindowScope | None:
        """Where its charge falls, of a budget that is for each window of time: on the windows that
        the plan says, which are all that is read.
        """
        said = self.plan.windows
        read = [windows_read(query.relation, query.groups) for query in self.queries]
        every = [windows for windows in read if windows is not None]
        assert said == (reduce(Windows.hull, every) if every else None), "plans say what they read"
        if per is None or said is None:
            return None
        return WindowScope(said, tuple(sorted(_clocks(self.queries))))

    def under(self, found: pl.DataFrame) -> PreparedTogether:
        """The same with the query under the limit that a noisy histogram gives."""
        if self.limits is None:
            return self
        option = self.limits.options[self.limits.number(found)]
        return replace(self, parts=(self.parts[0], option))

    def found(self, found: pl.DataFrame) -> str:
        """What limit was found, in words; empty where none was sought."""
        if self.limits is None or self.plan.found is None:
            return ""
        step = self.plan.found.words(self.limits.limits[self.limits.number(found)])
        hidden = self.limits.hidden(found)
        return f"{step} was found; up to about {hidden} individuals may have more, and lose rows"

    def asked(self, run: Iterable[Query]) -> list[tuple[Query, tuple[Draw, ...]]]:
        """The queries that were asked, of those that were run, and what is drawn for each."""
        found = list(run)
        return [(p.of(found[p.block]), self.parts[p.block].draws) for p in self.places]

    def answered(self) -> list[tuple[Query, dict[MeasurementKey, Mechanism]]]:
        """The queries that were asked, and the mechanism of each part by itself."""
        return [(p.of(self.parts[p.block].query), self.parts[p.block].laws) for p in self.places]


def _clocks(queries: Iterable[Query]) -> set[Clock]:
    """By what rows of protected frames are in windows."""
    frames = (frame for query in queries for frame in frames_of(query.relation))
    return {
        Clock(
            frame.name if frame.named else "",
            frame.source.time,
            frame.source.columns[frame.source.time].dtype.zone or "",
        )
        for frame in frames
        if frame.source.time is not None
    }


def tables_of(parts: Iterable[Measurement]) -> list[Table]:
    """The exact tables of some vectors, each once."""
    return list(dict.fromkeys(table for part in parts for table in part.tables))
