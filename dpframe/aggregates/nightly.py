"""Sums of periods that are drawn night after night, and give running totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import polars as pl

from dpframe.aggregates.aggregate import BoundAggregate, Clamp, MeasurementUse, Noisy, Output
from dpframe.aggregates.error import PartError
from dpframe.aggregates.measurement import Additive, Measurement, Table
from dpframe.aggregates.reconstructed_error import RunningError, running_sums
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import ONE
from dpframe.aggregates.statistics import (
    GridSum,
    RowCount,
    Statistic,
    UnitStatistic,
    UnitTotal,
    ValueCount,
)
from dpframe.aggregates.sum import BoundSum
from dpframe.aggregates.values import decimal_series
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.tree import Call, Column
from dpframe.errors import UnsupportedOperation
from dpframe.frames.definition import type_words
from dpframe.frames.nights import Schedule
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Through, column_of
from dpframe.mechanisms import AdditiveTask
from dpframe.workloads import RunningSums
from dpframe.workloads.prefix_sums import coefficients


@dataclass(frozen=True, slots=True)
class NightlySums(Measurement):
    """Sums over periods with public coefficients, in each group, drawn night after night.

    Guarantee
    ---------
    All results of all nights together, for frames that grow, cost the same as one vector with
    independent noise. Its L2 norm (for pure epsilon L1) moves by the norm of a column of the
    coefficients (`dpframe.workloads.prefix_sums`) times the contribution of one individual
    (`dpframe.frames.nights`). That holds for any acts after results of earlier nights: which
    nights are released, when, and which rows are added, although these may depend on earlier
    results. Each row of noise is drawn once.

    With `dp.Rows` it is the sensitivity b of the query by periods and keys, for either adjacency,
    times the norm of a column: L2 = b |c|. It holds whichever nights a row is there, so rows may
    come late, as long as a row has one period. With an identifier limits must hold through all
    nights; rows must neither vanish nor get another date then, and what steps
    before these limits make of a row must stay the same.

    Proof
    -----
    Fix two streams of frames that differ in one individual, and all that was released before a
    night. Then what is drawn on that night differs between the two by a vector that is fixed, and
    its noise is independent of all before. So with rho of discrete Gaussian noise, the divergence
    of order a between the laws of that night, given the past, is at most a |v_t|^2 / (2 sigma^2),
    v_t being that difference (Canonne, Kamath and Steinke 2020, Theorem 4). On every path the sum
    of |v_t|^2 over all nights is at most the bound on the squared norm. The expectation of
    exp((a-1) loss) then stays below exp((a-1) a bound / (2 sigma^2)) as nights are added one
    after another (Feldman and Zrnic 2021, Theorem 3.1; this is their filter with a bound that
    always holds). So the whole is (bound / (2 sigma^2))-zCDP. For continuous noise the same is
    known for each row of a lower triangular matrix with an adaptive adversary (Denisov, McMahan,
    Rush, Smith and Thakurta 2022, Theorem 2.1). So the whole is as private as one Gaussian
    vector, also as (epsilon, delta) or in mu (Smith and Thakurta 2022). Discrete noise is, up to
    a factor next to 1 for each entry that moves, such noise that was rounded at random, and
    rounding each entry after the past of it is post-processing. Pure losses of independent
    Laplace noise add up on every path.

    *Rows.* Row r adds to the difference on night t its value, or 0 while it is not there, times
    the coefficient of its period, in its key. So no entry is more than b times that of its
    column, for any nights on which it is there. Over rows norms add up. Where values change and a
    row of one stream has a counterpart in the other, the difference is v u - v' u', u and u'
    being columns without negative entries. Its square |v u|^2 + |v' u'|^2 - 2 v v' (u, u') is at
    most 2 b^2 |c|^2 where v and v' have one sign, since (u, u') is not negative. It is at most
    (|v| + |v'|)^2 |c|^2 where they have two, which is at most the width of the bounds squared.
    """

    part: Additive  # The sums that each period has
    periods: int  # How many there are
    # The branching of a tree of periods; 0 for the square root.
    branching: int
    levels: int
    # What an individual with an identifier may have through all nights, each separately; None with
    # `dp.Rows`.
    through: tuple[Through, ...] | None

    @property
    def sums(self) -> RunningSums:
        """What is drawn of the periods."""
        return running_sums(self.periods, self.branching, self.levels)

    @property
    def table(self) -> Table:
        """The exact sums of each period."""
        return self.part.table

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        if self.through is None:
            return self.part.spread(scope)
        nights = self.node(scope)

        def norm(one: Through) -> int:
            """What moves the vector least: by L1 where noise is made for that."""
            column = column_of(nights, one.run)
            if self.levels:
                return one.keys * one.rows * column.l1
            return one.keys * one.rows**2 * column.l2_squared

        most = min(self.through, key=norm)
        groups = most.keys * most.run
        return ContributionBounds(groups * most.rows, groups, most.rows)

    def node(self, scope: QueryScope) -> kernel.Nights:
        assert scope.groups is not None
        last = scope.groups.by[-1]
        every, day = "1d", last.tree
        if isinstance(day, Call) and day.operation.name == "dt_truncate":
            every = str(day.operation.constants[0][1])
            (day,) = day.args
        if isinstance(day, Call):
            (day,) = day.args
        dates = scope.groups.keys[last.name].to_list()
        if not isinstance(day, Column) or not dates:
            raise kernel.Refused("a stream without dates")
        schedule = Schedule(day.name, every, dates[0], self.periods)
        if dates != schedule.dates() * (len(dates) // self.periods):
            raise kernel.Refused("the periods of a stream are not one after the other")
        return kernel.Nights(
            scope.rules.place(self.table),
            day.name,
            type_words(scope.facts.columns[day.name].dtype),
            cast("kernel.Every", every),  # which the schedule accepted
            schedule.start.isoformat(),
            self.periods,
            kernel.Tree(self.branching, self.levels)
            if self.levels
            else kernel.Root(tuple(coefficients(self.periods))),
        )

    @property
    def step(self) -> Fraction:
        return self.part.step / self.sums.unit

    def entries(self, scope: QueryScope) -> int:
        assert scope.entries is not None
        return scope.entries // self.periods * self.sums.drawn_rows

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        noise = "discrete_laplace" if self.levels else "discrete_gaussian"
        return AdditiveTask(name, sensitivity, noise)

    def words(self) -> str:
        return f"{self.table.words()}; {self.sums.words()}"


@dataclass(frozen=True, slots=True, eq=False)
class NightlyAggregate(BoundAggregate):
    """A count or a sum whose running total is released."""

    inner: BoundAggregate  # What each period has
    rule: RunningError  # How totals follow

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def error(self) -> RunningError:
        return self.rule

    @property
    def note(self) -> str:
        total = "its running total is totals"
        if self.rule.sums.adds_up:
            total = "its running total is sums of what periods are said to have"
        return f"{total}, rebuilt from all nights so far"

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        summed = self.inner
        if isinstance(summed, BoundSum) and summed.scale is not None:
            return decimal_series(self.name, summed.decimals(values), summed.scale)
        return summed.combine(values)


def is_streamed(aggregate: BoundAggregate) -> bool:
    """Whether it is a count or a sum whose parts of periods add up."""
    if aggregate.shape is not ONE or not isinstance(aggregate.error, PartError):
        return False
    if len(aggregate.uses) != 1 or aggregate.request.mechanism != "auto":
        return False
    part = aggregate.uses[0].part
    return (
        isinstance(part, Additive)
        and part.table.cells is None
        and _adds_up(part.table.statistic)
        and not aggregate.is_nonnegative
    )


def _adds_up(statistic: Statistic) -> bool:
    if isinstance(statistic, UnitTotal):
        return isinstance(statistic.of, GridSum)
    return isinstance(statistic, (RowCount, ValueCount, GridSum, UnitStatistic))


def nightly_output(
    output: Output, rule: RunningError, through: tuple[Through, ...] | None
) -> Output:
    """A count or a sum as an output of a stream. Raises `UnsupportedOperation` for others."""
    inner = output.only
    if inner is None or not is_streamed(inner):
        raise UnsupportedOperation(
            "a stream releases counts and sums: no arithmetic, no nonnegative=, no mechanism=",
            where=output.words,
            remedy=(
                "ask for the counts and sums, and compute with the released numbers",
                "use monotone=True to keep totals from falling",
            ),
        )
    (use,) = inner.uses
    assert isinstance(use.part, Additive)
    part = NightlySums(use.part, rule.periods, rule.branching, rule.levels, through)
    made: tuple[MeasurementUse, ...] = (replace(use, part=part),)
    aggregate = NightlyAggregate(inner.request, made, inner, rule)
    (place,) = output.aggregates
    return replace(output, aggregates={place: aggregate})


def of_individuals(output: Output) -> bool:
    """Whether an individual counts once in each group of an output."""
    inner = output.only
    if inner is None or len(inner.uses) != 1:
        return False
    part = inner.uses[0].part
    return isinstance(part, Additive) and part.table.statistic.of_individuals
