"""Which margins of a table to measure for grouping sets, at which shares, and how plans say it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from dpframe.aggregates.bound import MeasurementUse, Noisy
from dpframe.aggregates.margins import Margin, MarginWithTotal, by_words
from dpframe.aggregates.measurement import Additive, Measurement
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.run_margins import RunMargin, RunMarginWithTotal
from dpframe.aggregates.set_axes import SetAxes, columns_of
from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, ValueCount
from dpframe.core.exact import dyadic_down
from dpframe.workloads import (
    Axis,
    Degree,
    Factor,
    Part,
    Strategy,
    Wanted,
    Workload,
    tables,
    tables_with_total,
)

__all__ = [
    "adds_up",
    "best_margins",
    "margin_uses",
    "margin_weights",
    "margin_words",
    "sets_wanted",
    "table_wanted",
    "values_of",
    "with_total",
]

_ADDITIVE: Final = (RowCount, ValueCount, GridSum, SquareSum)
_BITS: Final = 20
Kept: TypeAlias = tuple[int, ...]


def adds_up(part: Measurement) -> bool:
    """Whether the numbers of a group are the sums of those of smaller groups."""
    if not isinstance(part, Additive) or part.table.cells is not None:
        return False
    return isinstance(part.table.statistic, _ADDITIVE)


def table_wanted(kept: Kept, columns: int, weight: Fraction = Fraction(1)) -> Wanted:
    """The table by some of this many columns."""
    return Wanted(tuple("cells" if i in kept else "total" for i in range(columns)), weight)


@lru_cache(maxsize=64)
def sets_wanted(sizes: tuple[int, ...], sets: tuple[tuple[Kept, Fraction], ...]) -> Workload:
    """The tables of grouping sets, by the numbers of their columns, each with its weight."""
    return Workload(
        tuple(map(Axis.nominal, sizes)),
        tuple(table_wanted(kept, len(sizes), weight) for kept, weight in sets),
    )


def best_margins(
    part: Measurement,
    axes: SetAxes,
    workload: Workload,
    scope: QueryScope,
    degree: Degree,
    has_total: bool = False,
) -> Strategy:
    """What to measure of a part, where each margin needs noise for its own sensitivity; with
    `has_total` the total may be one more number of another margin, where that costs nothing.
    """
    (table,) = part.tables
    unit = _norm(axes.margin(table, axes.everything), scope, degree)
    norms: dict[Part, Fraction] = {}
    for one in _parts(workload):
        norm = _norm(axes.measured(table, one), scope, degree)
        norms[one] = norm / (unit or 1) or Fraction(1)
    plain = _tables(workload, degree, tuple(norms.items()))
    if not has_total or not _has_free_total(axes.margin(table, axes.everything), scope):
        return plain
    found = _tables_with_total(workload, degree, tuple(norms.items()))
    return found if found is not None and found.objective() < plain.objective() else plain


def _has_free_total(margin: Margin, scope: QueryScope) -> bool:
    """Whether the total of a margin is one number more without further sensitivity."""
    adds = scope.rules.addition(margin.table)
    if not margin.spread(scope).changes or math.prod(margin.sizes) < 2 or adds.lo < 0 < adds.hi:
        return False
    plain, more = margin.sensitivity(scope), with_total(margin).sensitivity(scope)
    same = (plain.l1, plain.l2_squared) == (more.l1, more.l2_squared)
    return same and not plain.is_zero


def with_total(margin: Margin) -> MarginWithTotal:
    """The margin with its total next to it."""
    about = margin.table, margin.sizes, margin.kept, margin.by
    if isinstance(margin, RunMargin):
        return RunMarginWithTotal(*about, margin.branching, margin.level)
    return MarginWithTotal(*about)


def _norm(margin: Margin, scope: QueryScope, degree: Degree) -> Fraction:
    found = margin.sensitivity(scope)
    return found.l2_squared if degree == 1 else found.l1**2


@lru_cache(maxsize=64)
def _parts(workload: Workload) -> tuple[Part, ...]:
    return tuple(_all_parts(workload))


def _all_parts(workload: Workload) -> Iterator[Part]:
    for levels in workload.subspaces:
        yield Part(tuple(Factor(a, level) for a, level in zip(workload.axes, levels, strict=True)))


@lru_cache(maxsize=64)
def _tables(
    workload: Workload, degree: Degree, norms: tuple[tuple[Part, Fraction], ...]
) -> Strategy:
    return tables(workload, degree, dict(norms).__getitem__)


@lru_cache(maxsize=64)
def _tables_with_total(
    workload: Workload, degree: Degree, norms: tuple[tuple[Part, Fraction], ...]
) -> Strategy | None:
    plain = _tables(workload, degree, norms)
    return tables_with_total(workload, degree, dict(norms).__getitem__, plain)


def margin_uses(
    use: MeasurementUse,
    axes: SetAxes,
    strategy: Strategy,
    weight: Fraction,
    is_shared: bool = True,
) -> Iterator[MeasurementUse]:
    """The margins, with what makes the shares of a plan's cost those of the strategy.

    Parameters
    ----------
    use
        The part by the finest groups.
    axes
        These, and the cells in them.
    weight
        How much the error of the strategy counts for this use.
    is_shared
        See `MeasurementUse`.
    """
    (table,) = use.part.tables
    objective = dyadic_down(Fraction(strategy.objective()), _BITS) * weight
    made = list[MeasurementUse]()
    for part, share in zip(strategy.parts, strategy.shares, strict=True):
        impact = objective * share ** (strategy.degree + 1)
        margin = axes.measured(table, part)
        made.append(MeasurementUse(margin, use.role, impact, share, is_shared))
    if strategy.total_of is not None:  # the last number of the first vector, which pays for it
        made[0] = replace(made[0], part=with_total(axes.measured(table, strategy.parts[0])))
        made[-1] = replace(made[0], impact=Fraction(0))
    yield from made


def values_of(strategy: Strategy, values: Sequence[Noisy]) -> list[Noisy]:
    """The noisy numbers of each part of a strategy, of those of what is measured."""
    if strategy.total_of is None:
        return [*values]
    return [values[0][:-1], *values[1:-1], values[-1][-1:]]


def margin_weights(strategy: Strategy) -> tuple[Fraction, ...]:
    """What the margins count in least squares, in proportion."""
    return tuple(
        share**strategy.degree / norm
        for share, norm in zip(strategy.shares, strategy.norms, strict=True)
    )


def margin_words(strategy: Strategy, axes: SetAxes) -> str:
    """What is measured, at which shares, in a plan."""
    parts, shares = strategy.parts, strategy.shares
    if strategy.total_of is not None:
        parts, shares = parts[:-1], shares[:-1]
    kind, total = "rho" if strategy.degree == 1 else "epsilon", sum(shares, Fraction(0))
    found: dict[str, Fraction] = {}
    for part, share in zip(parts, shares, strict=True):
        what = _part_words(part, axes, parts)
        found[what] = found.get(what, Fraction(0)) + share / total
    shown = [f"{what} ({float(100 * share):.0f}% of the {kind})" for what, share in found.items()]
    if strategy.total_of is not None:
        shown[0] += " with its total, which costs nothing, as no row that changes moves it further"
    return f"{len(parts)} noisy table{'s' * (len(parts) > 1)}: {', '.join(shown)}"


def _part_words(part: Part, axes: SetAxes, parts: Sequence[Part]) -> str:
    """By which columns a noisy table is, in a plan, with the runs of all that are by the same."""
    if not part.factors[-1].axis.is_ordered:
        return by_words(tuple(axes.names[i] for i in columns_of(part)))
    columns = part.levels[:-1]
    names = tuple(axes.names[i] for i in columns_of(part) if i < len(columns))
    return f"{by_words(names)} in {_run_words([p for p in parts if p.levels[:-1] == columns])}"


def _run_words(parts: Sequence[Part]) -> str:
    """How many steps are summed up, in tables of the same columns."""
    last = [part.factors[-1] for part in parts]
    widths = [str(w) for w in sorted(min(f.axis.width(f.level), f.axis.size) for f in last)]
    listed = " and ".join(filter(None, (", ".join(widths[:-1]), widths[-1])))
    return f"runs of {listed} step{'s' * (widths != ['1'])}"
