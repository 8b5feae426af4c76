"""Plans with what is needed to run them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import polars as pl

from dpframe.aggregates.aggregate import MeasurementKey, Query
from dpframe.aggregates.draw import Draw
from dpframe.aggregates.measurement import Measurement, Table
from dpframe.core.windows import Every
from dpframe.frames.relation import frames_of
from dpframe.ledger.scopes import Clock, WindowScope
from dpframe.mechanisms import Mechanism
from dpframe.optimise.limit_rule import LimitRule, LossOfLimit, MostDropped, remark_of
from dpframe.optimise.measurements import PlannedMeasurement
from dpframe.optimise.queries import Place
from dpframe.report import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A plan and what is needed to run it."""

    plan: Plan  # What reviewers read
    query: Query  # The query
    parts: tuple[PlannedMeasurement, ...]  # The parts in the order of `plan.releases`
    draws: tuple[Draw, ...]  # What is drawn for them

    @property
    def laws(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part on its own, for any joint draw."""
        return {key: law for draw in self.draws for key, law in draw.noises().items()}


@dataclass(frozen=True, slots=True, eq=False)
class LimitOptions:
    """A query under each of the limits that may be found when it runs."""

    rule: LimitRule  # How one of them is found
    options: tuple[PreparedTogether, ...]  # The query under each, with its plan

    def place(self, histogram: pl.DataFrame) -> int:
        """Which limit a noisy histogram of individuals gives."""
        return self.rule.place(histogram["count"].to_list())

    def loss(self, histogram: pl.DataFrame, place: int) -> LossOfLimit:
        """What a limit loses, by that histogram."""
        return self.rule.loss(histogram["count"].to_list(), place)

    def most(self, histogram: pl.DataFrame, place: int, miss: Fraction) -> MostDropped:
        """How much a limit drops at most by that histogram, unless with that probability."""
        return self.rule.most(histogram["count"].to_list(), place, miss)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTogether:
    """One plan of several queries, and what is needed to run it."""

    plan: Plan  # What reviewers read
    # The queries that are run, each with the plan that it has where all share the cost.
    parts: tuple[Prepared, ...]
    places: tuple[Place, ...]  # The places of the outputs of the original queries
    # If the first query finds a limit for the others: these under each limit, where one of them
    # runs. All `parts` but the first are those under the largest.
    limits: LimitOptions | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that are run."""
        return tuple(part.query for part in self.parts)

    def scope(self, per: Every | None) -> WindowScope | None:
        """Where its charge falls, of a budget that is for each window of time: on the windows that
        the plan says, which are all that is read.
        """
        windows = self.plan.windows  # which `require_sound` compares with what is read
        if per is None or windows is None:
            return None
        return WindowScope(windows, tuple(sorted(_clocks(self.queries))))

    def place(self, histogram: pl.DataFrame) -> int | None:
        """Which limit a noisy histogram gives; None where none is sought."""
        return None if self.limits is None else self.limits.place(histogram)

    def option(self, place: int) -> PreparedTogether:
        """What runs after the search: the query under one of the limits."""
        assert self.limits is not None
        return self.limits.options[place]

    def under(self, place: int | None) -> PreparedTogether:
        """The same with the query under the limit that was found, if one was."""
        return self if place is None else self.follow_with(self.option(place))

    def follow_with(self, option: PreparedTogether) -> PreparedTogether:
        """The first query alone, and what comes after it."""
        later = (replace(place, block=place.block + 1) for place in option.places)
        parts, places = (self.parts[0], *option.parts), (self.places[0], *later)
        return replace(self, parts=parts, places=places)

    def loss(self, histogram: pl.DataFrame, place: int | None) -> LossOfLimit | None:
        """What the limit that was found loses; None where none was."""
        if self.limits is None or place is None:
            return None
        return self.limits.loss(histogram, place)

    def limit_words(self, histogram: pl.DataFrame, place: int | None) -> str:
        """What limit was found, in words; empty where none was sought."""
        if self.limits is not None and place is None:
            return "a limit was found that the version which released this did not record"
        loss = self.loss(histogram, place)
        said = self.plan.found
        if loss is None or said is None:
            return ""
        return remark_of(loss, said.words(said.choices[loss.place].n), by_groups=bool(said.by))

    def with_draws(self, run: Iterable[Query]) -> list[tuple[Query, tuple[Draw, ...]]]:
        """The original queries, from those that were run, and the draws for each."""
        found = list(run)
        return [(p.of(found[p.block]), self.parts[p.block].draws) for p in self.places]

    def queries_and_laws(self) -> list[tuple[Query, dict[MeasurementKey, Mechanism]]]:
        """The original queries, and the mechanism of each part on its own."""
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
