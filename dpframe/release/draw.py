"""Drawing: the only place where exact tables meet noise.

What is drawn, and by which law, is read from the physical plan that the kernel has verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpframe.aggregates.aggregate import MeasurementKey, Noisy
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import CellCounts, Measurement, Rebuilt, Selection, Table
from dpframe.aggregates.noise import noise_of
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import Mechanism, fair_coins
from dpframe.mechanisms.noise import (
    choose_each,
    choose_points,
    choose_top_each,
    noise,
    report,
)
from dpframe.release.at_once import choose_at_once
from dpframe.release.many_points import MANY, choose_point
from dpframe.release.numbers import (
    Runs,
    are_points,
    candidates_of,
    exact_numbers,
    scores_of,
    tables_of,
)
from dpframe.release.recursive import choose_recursively

_AT_ONCE = 1 << 20
"""Scores that are chosen among at the same time, which bounds the memory."""


@dataclass(slots=True, eq=False)
class CandidateScores:
    """Scores of one exact table that are chosen among again and again, remembered up to a size: to
    make them takes longer than to choose.
    """

    room: int = 1 << 24
    kept: dict[tuple[kernel.What, int, int], Noisy | Runs] = field(default_factory=dict)

    def of(
        self,
        plan: kernel.Plan,
        what: kernel.Choice | kernel.Rank,
        tables: Sequence[CellCounts],
        span: tuple[int, int],
    ) -> Noisy | Runs:
        """The scores of the groups of a span; callers must not write to them."""
        result = self.kept.get((what, *span))
        if result is None:
            result = scores_of(plan, what, tables, *span)
            arrays = [result.scores, result.weights] if isinstance(result, Runs) else [result]
            if arrays[0].size <= self.room:
                self.room -= arrays[0].size
                self.kept[(what, *span)] = result
                for array in arrays:
                    array.setflags(write=False)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """What is drawn at once.

    Parameters
    ----------
    measurement
        The vector.
    law
        Its mechanism.
    keys
        The parts of the query that follow from it.
    rebuilt
        How each of these does; None for one that is the vector.
    """

    measurement: Measurement
    law: Mechanism
    keys: tuple[MeasurementKey, ...]
    rebuilt: tuple[Rebuilt, ...] | None = None

    @property
    def vector(self) -> MeasurementKey:
        """What the vector itself is found by, where parts are rebuilt from it."""
        return self.measurement, "drawn"

    def noises(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part on its own."""
        each = self.rebuilt or (None,) * len(self.keys)
        return {k: noise_of(self.law, r) for k, r in zip(self.keys, each, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the tables and draws of a query stand in a physical plan.

    Parameters
    ----------
    plan
        The plan.
    draws
        The place of each draw.
    tables
        What the tables at some places are of.
    """

    plan: kernel.Plan
    draws: Mapping[Draw, int]
    tables: Mapping[int, Table] = field(default_factory=dict)

    def node(self, one: Draw) -> kernel.Draw:
        """The draw in the plan."""
        return self.plan.draws[self.draws[one]]

    @property
    def draw_tables(self) -> list[int]:
        """The places of the tables that draws are of, each once."""
        return list(dict.fromkeys(p for one in self.draws for p in tables_of(self.node(one).what)))

    def by_place(self, counted: Mapping[Table, CellCounts]) -> dict[int, CellCounts]:
        """Exact tables by their places."""
        return {place: counted[table] for place, table in self.tables.items()}

    def with_tables_of_draws(self) -> Places:
        """The same with the tables that the query has for its draws."""
        pairs = ((tables_of(self.node(one).what), one.measurement.tables) for one in self.draws)
        found = {p: t for places, tables in pairs for p, t in zip(places, tables, strict=True)}
        return replace(self, tables=found)


def draw(
    one: Draw,
    places: Places,
    counted: Mapping[int, CellCounts],
    ballots: CandidateScores | None = None,
) -> dict[MeasurementKey, Noisy]:
    """The noisy integers of all parts that are drawn at once, and of the vector that they follow
    from where that is another.

    `counted` has the exact tables by their places in the plan. `ballots` are those of earlier draws
    from the same tables, if there are to be more.
    """
    node = places.node(one)
    tables = [counted[place] for place in tables_of(node.what)]
    drawn = draw_node(places.plan, node.what, node.law, tables, ballots)
    if isinstance(one.measurement, Selection) and isinstance(node.what, kernel.Vector):
        # candidates whose numbers all have noise: the largest follow from these
        numbers = drawn.reshape(-1, one.measurement.candidates)
        drawn = choose_top_each(kernel.Exact(), numbers, one.measurement.rounds)
    if isinstance(one.measurement, Margin):
        drawn = drawn.reshape(-1, 1)
    return followed(one, drawn)


def followed(one: Draw, vector: Noisy) -> dict[MeasurementKey, Noisy]:
    """The parts that follow from noisy numbers, and these."""
    if one.rebuilt is None:
        return {one.keys[0]: vector}
    result = {one.vector: vector}
    for key, rebuilt in zip(one.keys, one.rebuilt, strict=True):
        whole, half = rebuilt.of(vector)
        result[key] = (whole + (half & fair_coins(half.size))).reshape(-1, 1)
    return result


def draw_node(
    plan: kernel.Plan,
    what: kernel.What,
    law: kernel.Law,
    tables: Sequence[CellCounts],
    ballots: CandidateScores | None = None,
) -> Noisy:
    """What one draw of a plan gives.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, numbers); of choices (groups, codes of candidates).

    Notes
    -----
    Exact integers and noise are added modulo 2**64, so that an overflow, should there be one, is
    the same whether it happens before or after the noise: it never costs privacy.
    """
    match what, law:
        case kernel.Reports(), kernel.Response():
            return report(law, exact_numbers(plan, what, tables)[0]).reshape(1, -1)
        case kernel.Vector() | kernel.Running(), _:
            exact = exact_numbers(plan, what, tables)
            drawn = noise(law, len(exact) if isinstance(law, kernel.Box) else exact.size)
            noisy = drawn.reshape(exact.shape)
            noisy += exact
            return noisy
        case kernel.Levels(), kernel.Exponential():
            groups = tables[0].size
            spans = _spans(plan, what, tables, 0, groups)
            found = [choose_recursively(plan, what, law, tables[0], span) for span in spans]
            return np.concatenate(found) if found else np.empty((0, len(what.quantiles)), np.int64)
        case kernel.Ranks(), kernel.Exponential():
            return choose_at_once(plan, what, law, tables[0], tables[0].size)
        case kernel.Ranks(place, quantiles) | kernel.Levels(place, quantiles), kernel.Exact():
            each = (kernel.Rank(place, q) for q in quantiles)
            return np.concatenate([_best(plan, one, tables) for one in each], axis=1)
        case kernel.Choice() | kernel.Rank(), kernel.Exact():
            return _best(plan, what, tables)
        case kernel.Choice() | kernel.Rank(), _:
            return _choose(plan, what, law, tables, ballots or CandidateScores(room=0))
        case _:
            raise kernel.Refused(f"{what} cannot be drawn by the law {law}")


def _groups(what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]) -> int:
    """How many choices there are."""
    return 1 if isinstance(what, kernel.Choice) and what.among == "groups" else tables[0].size


def _rounds(what: kernel.Choice | kernel.Rank) -> int:
    return what.rounds if isinstance(what, kernel.Choice) else 1


def _choose(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank,
    law: kernel.Law,
    tables: Sequence[CellCounts],
    box: CandidateScores,
) -> Noisy:
    groups, rounds = _groups(what, tables), _rounds(what)
    codes = np.empty((groups, rounds), dtype=np.int64)
    many = _with_many_points(plan, what, tables)
    for group in many:
        codes[group, 0] = _of_many(plan, what, law, tables[0], group)
    for low, high in pairwise([-1, *many, groups]):
        for first, end in _spans(plan, what, tables, low + 1, high):
            ballots = box.of(plan, what, tables, (first, end))
            if isinstance(ballots, Runs):
                scale = _scale_of_points(law)
                about = ballots.scores, ballots.weights, ballots.sizes
                run, point = choose_points(scale, *about)
                codes[first:end, 0] = ballots.starts[run] + point
            elif rounds == 1:
                codes[first:end, 0] = choose_each(law, ballots)
            else:
                codes[first:end] = choose_top_each(law, ballots, rounds)
    return codes


def _scale_of_points(law: kernel.Law) -> Fraction:
    """The scale of the only law that chooses among weighted candidates."""
    if isinstance(law, kernel.Exponential):
        return law.scale
    raise kernel.Refused(f"points cannot be chosen by the law {type(law).__name__}")


def _with_many_points(
    plan: kernel.Plan, what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]
) -> list[int]:
    """The groups in which not every point with rows needs a score."""
    if not isinstance(what, kernel.Rank) or not are_points(plan.tables[what.table]):
        return []
    entries = np.diff(tables[0].offsets(0, tables[0].size))
    return [int(group) for group in np.flatnonzero(entries >= MANY)]


def _of_many(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank,
    law: kernel.Law,
    table: CellCounts,
    group: int,
) -> int:
    """The code that is chosen in such a group."""
    assert isinstance(what, kernel.Rank)
    assert table.cells is not None
    low, high = table.offsets(group, group + 1)
    own = slice(int(low), int(high))
    points = candidates_of(plan, what, 1)
    rows = table.cells[own], table.values[own]
    return choose_point(_scale_of_points(law), what.quantile, *rows, points)


def _best(
    plan: kernel.Plan, what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]
) -> Noisy:
    """The best candidates of scores that no individual can change."""
    groups, rounds = _groups(what, tables), _rounds(what)
    codes = np.empty((groups, rounds), dtype=np.int64)
    for first, end in _spans(plan, what, tables, 0, groups):
        ballots = scores_of(plan, what, tables, first, end)
        if isinstance(ballots, Runs):
            heads = np.cumsum(ballots.sizes) - ballots.sizes
            best = np.repeat(np.maximum.reduceat(ballots.scores, heads), ballots.sizes)
            winners = np.flatnonzero(ballots.scores == best)
            codes[first:end, 0] = ballots.starts[winners[np.searchsorted(winners, heads)]]
        else:
            codes[first:end] = choose_top_each(kernel.Exact(), ballots, rounds)
    return codes


def _spans(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank | kernel.Levels,
    tables: Sequence[CellCounts],
    low: int,
    high: int,
) -> Iterator[tuple[int, int]]:
    """First group and end of pieces of some groups that are chosen in at the same time."""
    if low == high:
        return pairwise(list[int]())
    if isinstance(what, kernel.Levels) or (
        isinstance(what, kernel.Rank) and are_points(plan.tables[what.table])
    ):  # two runs per entry of the table, and one more
        load = 2 * tables[0].offsets(low, high) + np.arange(high - low + 1)
        load -= load[0]
        cuts = low + np.searchsorted(load, np.arange(_AT_ONCE, int(load[-1]), _AT_ONCE))
    else:
        rows = max(1, _AT_ONCE // candidates_of(plan, what, tables[0].size))
        cuts = np.arange(low + rows, high, rows)
    return pairwise(np.unique([low, *cuts.tolist(), high]).tolist())
