"""Running totals from what was drawn night after night; all of it is post-processing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.draw import Draw, law_of, part_of
from dpframe.aggregates.nightly import NightlyAggregate
from dpframe.aggregates.reconstructed_error import RunningError
from dpframe.frames.schedule import PERIOD, Schedule
from dpframe.mechanisms import AdditiveMechanism
from dpframe.workloads import RunningSums

__all__ = ["Drawn", "RunningResults"]

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Rows: TypeAlias = "list[Integers | None]"
"""What was drawn of one vector, for each period of shape (groups, rows); None where it was lost."""
Span: TypeAlias = tuple[int | None, int]
"""The numbers of the first and the last period of a window; without a first one a period and the
total up to it."""

_NEAR: Final = 7
"""From how many periods before it a lost one is guessed."""
_FINE: Final = 2.0**40
"""The fixed-point scale of factors."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows for some periods that follow one another.

    Parameters
    ----------
    first
        The number of the first period.
    rows
        For each period, for each vector the noisy integers, group after group.
    seal
        A seal with the ledger's key for the stream of these rows. None where an earlier version
        drew them.
    """

    first: int
    rows: tuple[tuple[tuple[int, ...], ...], ...]
    seal: str | None = None

    @property
    def values(self) -> list[object]:
        """What is sealed of them."""
        return [self.first, json.dumps(self.rows, separators=(",", ":"))]

    @property
    def last(self) -> int:
        """The number of the last period."""
        return self.first + len(self.rows) - 1

    def to_bytes(self) -> bytes:
        """The content as bytes."""
        said = {"first": self.first, "rows": self.rows, "seal": self.seal}
        return json.dumps(said, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Drawn | None:
        """What was kept; None where it makes no sense."""
        try:
            fields = json.loads(content)
            rows = tuple(tuple(tuple(map(int, one)) for one in each) for each in fields["rows"])
            seal = fields.get("seal")
            return cls(int(fields["first"]), rows, None if seal is None else str(seal))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class _Reach:
    """By how much numbers of one output may be off.

    Parameters
    ----------
    rule, law
        How they follow from what was drawn, and its noise.
    lost
        The numbers of periods whose draws are lost.
    """

    rule: RunningError
    law: AdditiveMechanism
    lost: frozenset[int]

    def of(self, kind: str, period: int, first: int, level: Fraction) -> int:
        """In whole steps, with that probability."""
        factors, rounded = _factors(self.rule.sums, self.lost, kind, period, first)
        return self.rule.reach(self.law, factors, level, rounded)


@dataclass(frozen=True, slots=True, eq=False)
class RunningResults:
    """What is released of a stream.

    Parameters
    ----------
    query, draws, schedule
        The query, by keys and periods, and what is drawn for it.
    monotone
        Whether totals never fall.
    """

    query: Query
    draws: Sequence[Draw]
    schedule: Schedule
    monotone: bool

    def rows_of(self, batches: Sequence[tuple[int, Drawn | None]]) -> list[Rows]:
        """What was drawn of each vector, from batches that follow one another, each with the number
        of its last period, and None for one that was lost.
        """
        result: list[Rows] = [[] for _ in self.draws]
        for last, batch in batches:
            for period in range(len(result[0]), last + 1):
                for number in range(len(self.draws)):
                    result[number].append(self._array(batch, period, number))
        return result

    @property
    def _groups(self) -> int:
        assert self.query.groups is not None
        return self.query.groups.size // self.schedule.periods

    def _array(self, batch: Drawn | None, period: int, number: int) -> Integers | None:
        if batch is None:
            return None
        rows = part_of(self.draws[number]).sums.rows_of(period)
        values = batch.rows[period - batch.first][number]  # sealed and recorded as this stream's
        return np.array(values, dtype=np.int64).reshape(self._groups, rows)

    def frame(self, rows: Sequence[Rows], span: Span) -> pl.DataFrame:
        """What is released of a period: keys, the period, and for each output its own estimate and
        the running total; of a window the sum of its periods alone.
        """
        first, last = span
        columns = self._columns(last)
        for name, aggregate, sums, number in self._outputs():
            drawn = fill_gaps(sums, rows[number][: last + 1], self._groups)
            own, total = self._numbers(sums, drawn, last)
            shown = {name: own, f"{name}_total": total}
            if first is not None:
                before = self._numbers(sums, drawn, first - 1)[1] if first else 0
                shown = {name: total - before}
            for column, values in shown.items():
                columns.append(aggregate.combine([values.reshape(-1, 1)]).alias(column))
        return pl.DataFrame(columns)

    def errors(self, span: Span, level: Fraction, lost: frozenset[int]) -> dict[str, float]:
        """By how much the numbers of a period or a window may be off by noise with that
        probability each, where what was drawn for some periods is lost.
        """
        result: dict[str, float] = {}
        missing = frozenset(period for period in lost if period <= span[1])
        for name, aggregate, _, number in self._outputs():
            one = self.draws[number]
            law, unit = law_of(one), part_of(one).part.step
            reach = _Reach(aggregate.rule, law, missing)
            errors = self._errors(name, reach, span, level)
            result |= {column: float(error * unit) for column, error in errors.items()}
        return result

    def _errors(self, name: str, reach: _Reach, span: Span, level: Fraction) -> dict[str, int]:
        first, last = span
        if self.monotone:  # by no more than the worst of all totals so far
            sure = 1 - (1 - level) / (last + 1)
            worst = max(reach.of("total", period, 0, sure) for period in range(last + 1))
            if first is not None:
                return {name: 2 * worst if first else worst}
            return {name: 2 * worst if last else worst, f"{name}_total": worst}
        if first is not None:
            return {name: reach.of("window", last, first, level)}
        own, total = (reach.of(kind, last, 0, level) for kind in ("own", "total"))
        return {name: own, f"{name}_total": total}

    def _columns(self, period: int) -> list[pl.Series]:
        assert self.query.groups is not None
        keys = self.query.groups.keys.gather_every(self.schedule.periods).drop(PERIOD)
        date = pl.repeat(self.schedule.first(period), self._groups, dtype=pl.Date, eager=True)
        return [*keys.get_columns(), date.alias(PERIOD)]

    def _outputs(self) -> Iterator[tuple[str, NightlyAggregate, RunningSums, int]]:
        """The name of each output, what it is, and the number of what is drawn for it."""
        places = {key: number for number, one in enumerate(self.draws) for key in one.keys}
        for output in self.query.outputs:
            (aggregate,) = output.aggregates.values()
            assert isinstance(aggregate, NightlyAggregate)
            number = places[aggregate.keys[0]]
            yield output.name, aggregate, part_of(self.draws[number]).sums, number

    def _numbers(
        self, sums: RunningSums, drawn: Sequence[Integers], period: int
    ) -> tuple[Integers, Integers]:
        """A period's own estimate and the total up to it, in whole steps."""
        if self.monotone:
            totals = _whole(sums.totals(drawn[: period + 1]))
            totals = np.maximum(np.maximum.accumulate(totals, axis=-1), 0)
            before = totals[..., period - 1] if period else np.zeros_like(totals[..., 0])
            return totals[..., period] - before, totals[..., period]
        total = _whole(sums.total(drawn, period))
        if not sums.adds_up:
            return _whole(sums.own(drawn, period)), total
        before = _whole(sums.total(drawn, period - 1)) if period else np.zeros_like(total)
        return total - before, total


def _whole(values: Floats) -> Integers:
    """The nearest integers, held far from the limits of Int64."""
    return np.rint(np.clip(values, -(2.0**62), 2.0**62)).astype(np.int64)


def fill_gaps(sums: RunningSums, drawn: Rows, groups: int) -> list[Integers]:
    """What was drawn, where what was lost is what a guess would make of it: that the period has as
    much as the few before it have on average, by their own estimates.
    """
    complete = all(one is not None for one in drawn)
    result: list[Integers] = []
    own: list[Floats] = []
    for period, one in enumerate(drawn):
        if one is None:
            near = own[-_NEAR:]
            guess = np.mean(near, axis=0) if near else np.zeros(groups)
            result.append(sums.sums(_whole(np.stack([*own, guess], axis=-1)), period))
        else:
            result.append(one)
        if not complete:
            own.append(sums.own(result, period))
    return result


def _factors(
    sums: RunningSums, lost: frozenset[int], kind: str, period: int, first: int
) -> tuple[Floats, Fraction]:
    """By what the noises in a number are multiplied, and what rounding it adds at most, in steps:
    half a step for each total, but of a tree, where they are whole.
    """
    half = Fraction(1, 2) if sums.adds_up and sums.unit > 1 else Fraction(0)
    rounded = half if kind == "total" or (kind == "window" and not first) else 2 * half
    if not lost:
        found = {
            "total": lambda: sums.total_factors(period),
            "own": lambda: sums.own_factors(period),
            "window": lambda: sums.window_factors(first, period),
        }[kind]()
        return found, rounded
    return _factors_by_draws(sums, lost, kind, period, first), 2 * half + Fraction(1, 2)


def _factors_by_draws(
    sums: RunningSums, lost: frozenset[int], kind: str, period: int, first: int
) -> Floats:
    """The same by what becomes of one noise after another."""
    sizes = [0 if p in lost else sums.rows_of(p) for p in range(period + 1)]
    drawn: Rows = []
    start = 0
    for p, size in enumerate(sizes):
        if p in lost:
            drawn.append(None)
            continue
        one = np.zeros((sum(sizes), size), dtype=np.int64)
        one[start + np.arange(size), np.arange(size)] = int(_FINE)
        drawn.append(one)
        start += size
    if not start:
        return np.zeros(1)
    complete = fill_gaps(sums, drawn, sum(sizes))
    if kind == "own":
        factors = sums.own(complete, period)
    else:
        factors = sums.total(complete, period)
        if kind == "window" and first:
            factors = factors - sums.total(complete, first - 1)
    return np.asarray(factors / _FINE)
