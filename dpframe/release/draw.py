"""Drawing: the only place where exact tables meet noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dpframe.aggregates.bound import MeasurementKey, Noisy
from dpframe.aggregates.cells import PointCells
from dpframe.aggregates.chosen_together import ChosenTogether
from dpframe.aggregates.joint_sums import JointSums, Rebuilt
from dpframe.aggregates.level_sums import CellSums
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import (
    Additive,
    CellCounts,
    Measurement,
    Responses,
    Runs,
    Selection,
    Table,
)
from dpframe.aggregates.noise_law import noise_of
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.quantile_tree import QuantileTree
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.aggregates.request import QueryScope
from dpframe.mechanisms import (
    AdditiveMechanism,
    Mechanism,
    NoNoise,
    RecursiveMechanism,
    ReportMechanism,
    SelectionMechanism,
    TogetherMechanism,
    VectorMechanism,
    fair_coins,
)
from dpframe.release.at_once import choose_at_once
from dpframe.release.many_points import MANY, choose_point
from dpframe.release.recursive import choose_recursively

_AT_ONCE = 1 << 20
"""Scores that are chosen among at the same time, which bounds the memory."""


@dataclass(slots=True, eq=False)
class CandidateScores:
    """Scores of one exact table that are chosen among again and again, remembered up to a size: to
    make them takes longer than to choose.
    """

    room: int = 1 << 24
    kept: dict[tuple[Measurement, int, int], Noisy | Runs] = field(default_factory=dict)

    def of(self, part: Selection, tables: list[CellCounts], first: int, end: int) -> Noisy | Runs:
        """The scores of groups `first` to `end` - 1; callers must not write to them."""
        result = self.kept.get((part, first, end))
        if result is None:
            result = part.ballots(tables, first, end)
            arrays = [result.scores, result.weights] if isinstance(result, Runs) else [result]
            if arrays[0].size <= self.room:
                self.room -= arrays[0].size
                self.kept[(part, first, end)] = result
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


def draw(
    one: Draw,
    counted: Mapping[Table, CellCounts],
    scope: QueryScope,
    ballots: CandidateScores | None = None,
) -> dict[MeasurementKey, Noisy]:
    """The noisy integers of all parts that are drawn at once, and of the vector that they follow
    from where that is another.

    `ballots` are those of earlier draws from the same tables, if there are to be more.
    """
    if one.rebuilt is None:
        (key,) = one.keys
        return {key: _draw_part(one.measurement, one.law, counted, scope, ballots)}
    return followed(one, _draw_part(one.measurement, one.law, counted, scope, ballots))


def followed(one: Draw, vector: Noisy) -> dict[MeasurementKey, Noisy]:
    """The parts that follow from noisy numbers, and these."""
    if one.rebuilt is None:
        return {one.keys[0]: vector}
    result = {one.vector: vector}
    for key, rebuilt in zip(one.keys, one.rebuilt, strict=True):
        whole, half = rebuilt.of(vector)
        result[key] = (whole + (half & fair_coins(half.size))).reshape(-1, 1)
    return result


def _draw_part(
    part: Measurement,
    law: Mechanism,
    counted: Mapping[Table, CellCounts],
    scope: QueryScope,
    ballots: CandidateScores | None = None,
) -> Noisy:
    """The noisy integers of one vector.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, cells) for sums, (groups, numbers) for several of them, (groups, rounds)
        of candidate codes for selections.

    Notes
    -----
    Exact integers and noise are added modulo 2**64, so that an overflow, should there be one, is
    the same whether it happens before or after the noise: it never costs privacy.
    """
    tables = [counted[table] for table in part.tables]
    match part, law:
        case Additive(), AdditiveMechanism():
            cells = part.table.cells
            return _with_noise(tables[0].dense(1 if cells is None else cells.size), law)
        case Margin(), AdditiveMechanism():
            return _with_noise(part.exact(tables[0]), law)
        case CellSums(), AdditiveMechanism():
            assert part.table.cells is not None
            return _with_noise(part.of(tables[0].dense(part.table.cells.size)), law)
        case QuantileTree(), RecursiveMechanism():
            groups = part.entries(scope)
            spans = _spans(part, tables, 0, groups)
            found = [choose_recursively(part, law, tables[0], scope, span) for span in spans]
            return np.concatenate(found) if found else np.empty((0, part.chosen), np.int64)
        case QuantilesAtOnce(), TogetherMechanism():
            return choose_at_once(part, law, tables[0], part.entries(scope))
        case ChosenTogether(), _ if law.is_exact:
            return np.concatenate([_best(q, tables, scope) for q in part.apart], axis=1)
        case JointSums(), AdditiveMechanism() | VectorMechanism():
            return _together(part, law, tables)
        case Selection(), SelectionMechanism():
            return _select(part, law, tables, scope, ballots or CandidateScores(room=0))
        case Responses(), ReportMechanism():
            return law.draw(tables[0].dense(part.categories)[0]).reshape(1, -1)
        case Selection(), _ if law.is_exact:
            return _best(part, tables, scope)
        case _:
            raise AssertionError(f"a {type(law).__name__} cannot release {part.words()}")


def _with_noise(exact: Noisy, law: AdditiveMechanism) -> Noisy:
    """Exact integers with noise on each."""
    noisy = law.draw(exact.size).reshape(exact.shape)
    noisy += exact
    return noisy


def _together(
    part: JointSums, law: AdditiveMechanism | VectorMechanism, tables: list[CellCounts]
) -> Noisy:
    """The noisy numbers of several sums, whose noise is drawn number by number or as a vector."""
    noisy = part.vector(tables)
    if isinstance(law, VectorMechanism):
        noisy += law.draw(len(noisy))
    else:
        noisy += law.draw(noisy.size).reshape(noisy.shape)
    return noisy


def without_noise(
    part: Measurement, counted: Mapping[Table, CellCounts], scope: QueryScope
) -> Noisy:
    """What one part would be without noise, for simulations on public data."""
    if isinstance(part, Responses):
        return counted[part.table].dense(part.categories)
    result = _draw_part(part, NoNoise(), counted, scope)
    if scope.parts == 1:
        return result
    whole, half = Rebuilt((1,), scope.parts).of(result)
    return (whole + half).reshape(-1, 1)


def _select(
    part: Selection,
    law: SelectionMechanism,
    tables: list[CellCounts],
    scope: QueryScope,
    box: CandidateScores,
) -> Noisy:
    codes = np.empty((part.entries(scope), part.rounds), dtype=np.int64)
    many = _with_many_points(part, tables)
    for group in many:
        codes[group, 0] = _of_many(part, law, tables[0], group)
    for low, high in pairwise([-1, *many, codes.shape[0]]):
        for first, end in _spans(part, tables, low + 1, high):
            ballots = box.of(part, tables, first, end)
            if isinstance(ballots, Runs):
                run, point = law.select_points(ballots.scores, ballots.weights, ballots.sizes)
                codes[first:end, 0] = ballots.starts[run] + point
            elif part.rounds == 1:
                codes[first:end, 0] = law.select_each(ballots)
            else:
                codes[first:end] = law.select_top_each(ballots, part.rounds)
    return codes


def _with_many_points(part: Selection, tables: list[CellCounts]) -> list[int]:
    """The groups in which not every point with rows needs a score."""
    if not isinstance(part, QuantileChoice) or not isinstance(part.cells, PointCells):
        return []
    entries = np.diff(tables[0].offsets(0, tables[0].size))
    return [int(group) for group in np.flatnonzero(entries >= MANY)]


def _of_many(part: Selection, law: SelectionMechanism, table: CellCounts, group: int) -> int:
    """The code that is chosen in such a group."""
    assert isinstance(part, QuantileChoice)
    assert table.cells is not None
    low, high = table.offsets(group, group + 1)
    own = slice(int(low), int(high))
    return choose_point(law, part.q, table.cells[own], table.values[own], part.candidates)


def _best(part: Selection, tables: list[CellCounts], scope: QueryScope) -> Noisy:
    """The best candidates of scores that no individual can change."""
    codes = np.empty((part.entries(scope), part.rounds), dtype=np.int64)
    for first, end in _spans(part, tables, 0, codes.shape[0]):
        ballots = part.ballots(tables, first, end)
        if isinstance(ballots, Runs):
            heads = np.cumsum(ballots.sizes) - ballots.sizes
            best = np.repeat(np.maximum.reduceat(ballots.scores, heads), ballots.sizes)
            winners = np.flatnonzero(ballots.scores == best)
            codes[first:end, 0] = ballots.starts[winners[np.searchsorted(winners, heads)]]
        else:
            order = np.argsort(-ballots, axis=1, kind="stable")
            codes[first:end] = order[:, : part.rounds]
    return codes


def _spans(
    part: Selection, tables: list[CellCounts], low: int, high: int
) -> Iterator[tuple[int, int]]:
    """First group and end of pieces of some groups that are chosen in at the same time."""
    if low == high:
        return pairwise(list[int]())
    if part.weighted:  # two runs per entry of the table, and one more
        load = 2 * tables[0].offsets(low, high) + np.arange(high - low + 1)
        load -= load[0]
        cuts = low + np.searchsorted(load, np.arange(_AT_ONCE, int(load[-1]), _AT_ONCE))
    else:
        rows = max(1, _AT_ONCE // part.candidates)
        cuts = np.arange(low + rows, high, rows)
    return pairwise(np.unique([low, *cuts.tolist(), high]).tolist())
