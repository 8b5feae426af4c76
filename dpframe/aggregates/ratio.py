"""Ratios of two sums, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.error import ErrorRule, NoErrorBound
from dpframe.aggregates.mean import least_within
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.noise import JointNoise, Slices, pulls
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.statistics import PairSum, Statistic, UnitPairSum, is_per_unit
from dpframe.aggregates.values import Value, bounds_of, number_of_time, numeric_value, or_declare
from dpframe.core.exact import show
from dpframe.core.interval import Grid, grid_for
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnboundedSensitivity, UnsupportedOperation
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.rows.fold import words

# -- intervals of sums and of ratios of sums ------------------------------------------------------
# The error of a sum with public factors is the same sum of the noises, whose law is known. For a
# ratio r of two such sums, a' / b', the number a' - r b' has a known law for each r, so {r : |a' -
# r b'| <= q(r)} holds the exact ratio with the confidence asked for (Fieller 1954). With r =
# tan(w), and a' and b' in units of their noise, this is {w : |a' cos(w) - b' sin(w)| <= q(w)}, an
# interval around the angle of the release. It has no ends where b' may be 0.

Floats: TypeAlias = "NDArray[np.float64]"
Ends: TypeAlias = "tuple[Floats, Floats]"

_CELLS: Final = 96
_UP: Final = 1.0 + 2e-3
_TYPICAL: Final = Fraction(2, 3)


def sum_reach(noise: JointNoise, factors: tuple[float, ...], miss: float) -> float:
    """The least q with P(|sum of factor * noise| > q) <= miss, or barely more than that. `noise`:
    the noise of the numbers, in their own units. `factors`: one for each. `miss`: a probability.
    """
    return float(_reaches(noise, (factors,), miss)[0])


def ratio_ends(
    above: Floats,
    below: Floats,
    noise: JointNoise,
    factors: tuple[tuple[float, ...], tuple[float, ...]],
    miss: float,
) -> Ends:
    """The least and the largest ratio; NaN for both where there are no ends. `above`, `below`: the
    noisy sums of each group, constants included. `noise`: the noise of the numbers that they are
    sums of. `factors`: the factors of the numbers in either sum. `miss`: how often
    the exact ratio may lie outside.
    """
    reaches = [sum_reach(noise, side, miss) for side in factors]
    if not all(map(any, factors)):  # one of both is known, and the other is one noisy sum
        return _quotients((above, below), *reaches)
    units = [reach or 1.0 for reach in reaches]
    angles = np.linspace(-math.pi / 2, math.pi / 2, _CELLS + 1)
    turned = tuple(
        tuple(
            math.cos(angle) * a / units[0] - math.sin(angle) * b / units[1]
            for a, b in zip(*factors, strict=True)
        )
        for angle in angles.tolist()
    )
    reach = _reaches(noise, turned, miss)
    first, last = _around(above / units[0], below / units[1], angles, reach)
    with np.errstate(invalid="ignore"):
        open_ended = ~((first > -math.pi / 2) & (last < math.pi / 2))
    scale = units[0] / units[1]
    return (
        np.where(open_ended, np.nan, np.tan(first) * scale),
        np.where(open_ended, np.nan, np.tan(last) * scale),
    )


def _quotients(sums: tuple[Floats, Floats], p: float, q: float) -> Ends:
    """The ends of all quotients of numbers within p of the first sum and within q of the second."""
    above, below = sums
    known = np.abs(below) > q
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [a / b for a in (above - p, above + p) for b in (below - q, below + q)]
    low, high = np.minimum.reduce(found), np.maximum.reduce(found)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _around(a: Floats, b: Floats, angles: Floats, reach: Floats) -> Ends:
    """The least and the largest angle of the set, around that of a / b between -pi/2 and pi/2.

    |a cos(w) - b sin(w)| is the distance from 0 times the sine of the difference of angles.
    """
    far = np.hypot(a, b)
    flip = np.where(b < 0, -1.0, 1.0)
    middle = np.arctan2(a * flip, b * flip)
    low, high = np.zeros(a.shape), np.zeros(a.shape)
    for start, end, q in zip(
        angles[:-1], angles[1:], np.maximum(reach[:-1], reach[1:]), strict=True
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.where(q >= far, math.pi / 2, np.arcsin(np.minimum(1.0, q / far)))
        for turn in (-math.pi, 0.0, math.pi):
            left, right = start + turn - middle, end + turn - middle
            right_in, left_in = np.minimum(right, wide), np.maximum(left, -wide)
            found = left_in <= right_in
            low = np.where(found, np.minimum(low, left_in), low)
            high = np.where(found, np.maximum(high, right_in), high)
    return middle + low, middle + high


@lru_cache(maxsize=256)
def _reaches(noise: JointNoise, rows: tuple[tuple[float, ...], ...], miss: float) -> Floats:
    """For each row of factors the quantile of the size of the sum.

    The law of the first noise is exact in slices of the others, so it is the one that weighs most.
    """
    table = np.asarray(rows, dtype=np.float64)
    columns = range(table.shape[1])
    spread = [noise.unit(i) * (noise.reach(i, _TYPICAL) + 0.1) for i in columns]
    leads = np.argmax(np.abs(table) * np.asarray(spread), axis=1)
    found = np.zeros(len(table))
    for lead in np.unique(leads).tolist():
        mine, rest = leads == lead, [i for i in columns if i != lead]
        size = np.abs(table[mine, lead])  # 0 where nothing is added up
        scale = np.where(size > 0, size, 1.0)
        factors = table[mine][:, rest] / scale[:, None] * np.sign(table[mine, lead])[:, None]
        pull = pulls(np.abs(factors).max(axis=0).tolist())
        slices = noise.of((lead, *rest)).slices(miss, pull)
        others = np.stack(slices.others) if rest else np.zeros((0, slices.weights.size))
        shift = factors @ others

        def chance_of_miss(q: Floats, shift: Floats = shift, slices: Slices = slices) -> Floats:
            return slices.outside(-q[:, None] - shift, q[:, None] - shift)

        found[mine] = least_within(chance_of_miss, int(mine.sum()), miss, spread[lead]) * size
    return found * _UP


# -- ratios of two totals, whose pairs of numbers are clamped together ----------------------------

_LEVEL: Final = Fraction(95, 100)
"""A total below the line that noise alone stays above no oftener than 1 in 20 says nothing."""
_OUT: Final = 2.0**-40
"""By how much ends are moved outwards: more than floats lose."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundRatio(BoundAggregate):
    """The quotient of two noisy totals."""

    # The numbers above and below the line.
    value: Value
    below: Value
    # What they are scaled down to.
    bounds: tuple[Fraction, Fraction]
    below_bounds: tuple[Fraction, Fraction]
    per: Per  # Whether totals of individuals are
    # What 95% of the noise of the lower total is within, in its steps; 0 until it is known.
    reach: int = 0

    @property
    def is_of_totals(self) -> bool:
        return self.per == "unit"

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        of_units = self.per == "unit"
        return (
            Clamp(self.value.tree, self.bounds, of_units),
            Clamp(self.below.tree, self.below_bounds, of_units),
        )

    @property
    def depends_on_noise(self) -> bool:
        return True

    def knowing(self, noise: Sequence[Mechanism]) -> BoundRatio:
        if not noise:
            return self
        law = noise[1]
        assert isinstance(law, AdditiveMechanism)
        return replace(self, reach=law.quantile(_LEVEL))

    @property
    def note(self) -> str:
        whose = "an individual's pair of totals" if self.per == "unit" else "a pair"
        return (
            f"quotient of the two noisy totals; {whose} beyond its bounds counts less, by one "
            f"factor for both numbers{self._uncounted_words}; null where the total below the line "
            "is within the 95% bound of its noise"
        )

    @property
    def _uncounted_words(self) -> str:
        """Which pairs that factor is 0 for, because one of their numbers is beyond a bound of 0."""
        beyond = []
        for value, (lo, hi) in (
            (self.value, self.bounds),
            (self.below, self.below_bounds),
        ):
            known = value.domain.interval
            if lo == 0 and (known.lo is None or known.lo < 0):
                beyond.append(f"{words(value.tree)} below 0")
            if hi == 0 and (known.hi is None or known.hi > 0):
                beyond.append(f"{words(value.tree)} above 0")
        if not beyond:
            return ""
        total = "totals of " if self.per == "unit" else ""
        return f", which is 0 for those with {total}{' or '.join(beyond)}"

    @property
    def error(self) -> ErrorRule:
        return NoErrorBound(
            f"the error of {self.name!r} depends on how large its total below the line is",
            "ask for interval=0.95, or simulate it on public data",
        )

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        above, below = self._totals(values)
        known = np.abs(values[1].reshape(-1).astype(np.float64)) > self.reach
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(known, above / below, np.nan)
        return pl.Series(self.name, found).fill_nan(None)

    def _totals(
        self, values: Sequence[Noisy]
    ) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
        return [
            part.reshape(-1).astype(np.float64) * float(use.part.step)
            for part, use in zip(values, self.uses, strict=True)
        ]

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series]:
        factors = ((1.0, 0.0), (0.0, 1.0))
        above, below = self._totals(values)
        low, high = ratio_ends(above, below, noise, factors, float(1 - level))
        low, high = low - np.abs(low) * _OUT, high + np.abs(high) * _OUT
        ends = (pl.Series(self.name, end).fill_nan(None) for end in (low, high))
        return next(ends), next(ends)

    @property
    def plain_beside(self) -> Tree | None:
        return self.below.tree

    def plain_of_two(self, column: pl.Expr, beside: pl.Expr) -> tuple[pl.Expr, ...]:
        quotient = column.sum().cast(pl.Float64) / beside.sum().cast(pl.Float64)
        return (pl.when(beside.sum() != 0).then(quotient),)

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return pl.Series(self.name, numbers[0], dtype=pl.Float64)


@dataclass(frozen=True, slots=True, eq=False)
class Ratio(Aggregate):
    """The ratio of two totals. A row, or with ``per="unit"`` an individual in a group, whose
    numbers (a, b) exceed the bounds of either is scaled down: both are multiplied by the largest
    factor of at most 1 that brings both within their bounds.

    Clamped each separately, the two totals lose other shares where one number is clamped more
    often than the other, and their ratio is that of neither all nor of some individuals. Scaled
    together, each individual keeps its own ratio and counts less. The result is the ratio of
    weighted totals, so what is left of bias is that those who are scaled down weigh less.

    Guarantee
    ---------
    Two sums over the same rows or individuals with values within bounds that hold 0: each has the
    sensitivity of a sum with these bounds, and both are drawn jointly where that has a smaller
    error. The quotient is null where the lower total is within the 95% bound of its noise. It is
    post-processing, and so is its interval {r : |a' - r b'| <= q(r)} with q(r) the quantile of
    the noise of a' - r b' (Fieller 1954). The interval has no ends where the lower total may be
    0.

    Proof
    -----
    A pair is scaled by a factor that follows from that pair alone, so it is row-wise preprocessing;
    for totals it follows from the rows of one individual. Each scaled number is then clamped to its
    bounds and rounded to a grid by the lowered expression, as that of any sum.
    """

    bounds: GivenBounds = None
    denominator_bounds: GivenBounds = None
    per: Per = None

    kind: ClassVar[str] = "ratio"
    positional: ClassVar[tuple[str, ...]] = ("bounds",)
    summary: ClassVar[str] = "ratio of two totals whose pairs of numbers are clamped together"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_ratio("u8", (-5, 10))',
        'pl.col("f64").dp_ratio(pl.col("i64"), (0, 1.5), denominator_bounds=(-3, 100))',
        'pl.col("b").dp_ratio("f32", denominator_bounds=(0, 0.1))',
    )

    def bind(self, request: Request, scope: QueryScope) -> BoundRatio:
        assert request.tree is not None
        assert request.denominator is not None
        above = _number(request.tree, scope)
        below = _number(request.denominator, scope)
        per_unit = is_per_unit(request, scope, self.per, self.bounds, above.domain.dtype)
        if per_unit and self.denominator_bounds is None:
            raise InvalidBounds(
                "the denominator's total per individual has no known bounds",
                where=f'{words(request.tree)}.dp_ratio(per="unit")',
                remedy="write denominator_bounds=(0, high)",
            )
        if per_unit:
            above.require_totals()
            below.require_totals()
        bounds = _around_zero(above, self.bounds, "bounds")
        below_bounds = _around_zero(below, self.denominator_bounds, "denominator_bounds")
        grid, below_grid = _grid(bounds, scope), _grid(below_bounds, scope)
        uses = (
            _use(PairSum(above, grid, below, below_grid), per_unit, "ratio.numerator"),
            _use(PairSum(below, below_grid, above, grid), per_unit, "ratio.denominator"),
        )
        per: Per = "unit" if per_unit else None
        return BoundRatio(request, uses, above, below, bounds, below_bounds, per)


def _use(pair: PairSum, per_unit: bool, role: str) -> MeasurementUse:
    statistic: Statistic = UnitPairSum(pair) if per_unit else pair
    return MeasurementUse(Additive(Table(statistic)), role)


def _grid(bounds: tuple[Fraction, Fraction], scope: QueryScope) -> Grid:
    return grid_for(*bounds, centred=False, integers=False, bits=scope.resolution)


def _number(tree: Tree, scope: QueryScope) -> Value:
    value = numeric_value(tree, scope.facts.columns, "ratio")
    if value.domain.dtype.is_temporal:
        raise UnsupportedOperation(
            f"values of type {value.domain.dtype} have no ratio",
            where=words(tree),
            remedy=number_of_time(value.domain.dtype),
        )
    return value


def _around_zero(value: Value, given: GivenBounds, name: str) -> tuple[Fraction, Fraction]:
    """Bounds that hold 0, towards which pairs are scaled."""
    if given is None and value.bounds is None:
        raise UnboundedSensitivity(
            f"the values of {words(value.tree)} have no known bounds, so one individual could "
            "change the ratio by any amount",
            where=f"{words(value.tree)} in dp_ratio",
            remedy=or_declare(f"write {name}=(0, high)", value.tree, "bounds", "(0, high)"),
        )
    lo, hi = bounds_of(value, given, "ratio")
    if given is None:
        lo, hi = min(lo, Fraction(0)), max(hi, Fraction(0))
    if not lo <= 0 <= hi or lo == hi:
        raise InvalidBounds(
            f"{name}=({show(lo)}, {show(hi)}) must begin or end at 0",
            where=f"{words(value.tree)} in dp_ratio",
            why="pairs beyond the bounds are scaled down towards 0",
            remedy=f"write {name}=(0, {show(hi)})" if hi > 0 else f"write {name}=(0, high)",
        )
    return lo, hi
